"""trueup: how good is a classifier really, when the labels are noisy?

The parts, each loaded on first use so that ``import trueup`` stays quick:

- `Labels`, `Predictions`, `read_labels`, `read_predictions`, `read_gold`, `read_items`, `write_labels`: the data
- `engines`: what works the numbers out, and why
- `read_export`: the same from the exports of other tools; `trueup.adapters`
- `evaluate`: how good a classifier is, with an interval
- `share`, `mean_score`: how often groups of items are of a class in truth, without predictions
- `read_pairs`, `preferences`: which of several systems judges of pairs prefer in truth
- `agreement`: how far labelers agree, and judges with experts
- `compare`, `auc`: which of several systems is better, and how sure that is
- `may_replace`: whether a judge may replace a person
- `gate`: whether a release may go out: passed, failed or undecided
- `ActiveTest`: which items an expert should vet, and what follows from their answers
- `connect`: the same verbs for a session on a server of ``trueup serve``
- `Monitor`: whether a system or its judges changed over time
- `CleaningAdvisor`: which training label an oracle should fix next
- `trueup.rates`: true error from apparent error
- `trueup.labelers`, `plan`: what a label is worth, and how to spend a budget
- `trueup.noise`: who can be trusted
- `trueup.training`, `scorer`: train on votes, and choose a model without truth
- `trueup.report`: a page to show a colleague, from an evaluation or a comparison
- `trueup.simulate`: data with a known truth
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueup import (
        active,
        adapters,
        cleaning,
        detection,
        estimators,
        exceptions,
        labelers,
        metrics,
        monitor,
        noise,
        posteriors,
        rates,
        report,
        simulate,
        training,
    )
    from trueup._base.engines import engines
    from trueup.active import ActiveTest
    from trueup.adapters.readers import read_export, read_gold, read_labels, read_pairs, read_predictions
    from trueup.answers.calibrate import calibrate
    from trueup.answers.compare import auc, compare
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluate import evaluate
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.gates import GateReport, gate
    from trueup.answers.preferences import Preferences, preferences
    from trueup.answers.replacement import may_replace
    from trueup.answers.share import mean_score, share
    from trueup.cleaning import CleaningAdvisor
    from trueup.core.prior import CrowdPrior
    from trueup.data.labels import Labels
    from trueup.data.pairs import Pairs
    from trueup.data.predictions import Predictions
    from trueup.data.reading import read_items, write_labels
    from trueup.decisions import Decision, decide
    from trueup.labelers.planning import plan
    from trueup.monitor import Monitor
    from trueup.reliability.agreement import agreement
    from trueup.serve.client import connect
    from trueup.training import scorer

__version__ = "0.2.0"

__all__ = [
    "ActiveTest",
    "CleaningAdvisor",
    "Comparison",
    "CrowdPrior",
    "Decision",
    "Evaluation",
    "GateReport",
    "Labels",
    "Monitor",
    "Pairs",
    "Predictions",
    "Preferences",
    "__version__",
    "active",
    "adapters",
    "agreement",
    "auc",
    "calibrate",
    "cleaning",
    "compare",
    "connect",
    "decide",
    "decisions",
    "detection",
    "engines",
    "estimators",
    "evaluate",
    "exceptions",
    "gate",
    "labelers",
    "may_replace",
    "mean_score",
    "metrics",
    "monitor",
    "noise",
    "plan",
    "posteriors",
    "preferences",
    "rates",
    "read_export",
    "read_gold",
    "read_items",
    "read_labels",
    "read_pairs",
    "read_predictions",
    "report",
    "scorer",
    "share",
    "simulate",
    "training",
    "write_labels",
]

_HOME_OF = {
    "ActiveTest": "trueup.active",
    "CleaningAdvisor": "trueup.cleaning",
    "Comparison": "trueup.answers.comparison",
    "CrowdPrior": "trueup.core.prior",
    "Decision": "trueup.decisions",
    "Evaluation": "trueup.answers.evaluation",
    "GateReport": "trueup.answers.gates",
    "Labels": "trueup.data.labels",
    "Monitor": "trueup.monitor",
    "Pairs": "trueup.data.pairs",
    "Predictions": "trueup.data.predictions",
    "Preferences": "trueup.answers.preferences",
    "auc": "trueup.answers.compare",
    "calibrate": "trueup.answers.calibrate",
    "compare": "trueup.answers.compare",
    "connect": "trueup.serve.client",
    "decide": "trueup.decisions",
    "engines": "trueup._base.engines",
    "evaluate": "trueup.answers.evaluate",
    "gate": "trueup.answers.gates",
    "may_replace": "trueup.answers.replacement",
    "mean_score": "trueup.answers.share",
    "agreement": "trueup.reliability.agreement",
    "plan": "trueup.labelers.planning",
    "preferences": "trueup.answers.preferences",
    "read_export": "trueup.adapters.readers",
    "read_gold": "trueup.adapters.readers",
    "read_items": "trueup.data.reading",
    "read_labels": "trueup.adapters.readers",
    "read_pairs": "trueup.adapters.readers",
    "read_predictions": "trueup.adapters.readers",
    "share": "trueup.answers.share",
    "scorer": "trueup.training",
    "write_labels": "trueup.data.reading",
}
_MODULES = frozenset(__all__) - _HOME_OF.keys() - {"__version__"}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"trueup.{name}")
    else:
        raise AttributeError(f"module 'trueup' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
