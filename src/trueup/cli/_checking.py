"""What `trueup check` looks at: predictions against votes, and labelers against each other."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trueup.cli._judging import about_independence
from trueup.exceptions import InvalidPredictions, TrueupWarning

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from trueup._systems import System
    from trueup.labels import Labels
    from trueup.predictions import Predictions

__all__ = ["about_dependence", "about_systems", "class_shares", "problems_with"]

_MOST_CLASSES = 20
_MOST_VOTES = 60_000  # dependence is looked for in this many votes at most, of items chosen by chance


def class_shares(labels: Labels) -> list[tuple[Hashable, float]]:
    """The share of votes of each class, the commonest first; of very many classes the commonest only."""
    totals = labels.answer_counts.sum(axis=0)[: labels.n_classes]
    order = sorted(range(labels.n_classes), key=lambda k: -totals[k])[:_MOST_CLASSES]
    names = labels.classes.tolist()
    return [(names[k], float(totals[k] / max(totals.sum(), 1))) for k in order]


def about_systems(predictions: Predictions, labels: Labels) -> list[dict[str, Any]]:
    """Counts for each system: rows, items of the votes predicted and not, items and classes the votes do not have."""
    return [_about(part, labels) for part in predictions.parts]


def _about(system: System, labels: Labels) -> dict[str, Any]:
    gives = [
        what
        for what, values in (
            ("classes", system.codes),
            ("scores", system.scores),
            ("probabilities", system.probabilities),
        )
        if values is not None
    ]
    known = None if system.items is None else labels.find_items(system.items) >= 0
    n_known = system.n if known is None else int(known.sum())
    strange: list[str] = []
    n_strange = 0
    if system.codes is not None and system.classes is not None:
        classes = set(labels.classes.tolist())
        odd = {k: name for k, name in enumerate(system.classes.tolist()) if name not in classes}
        used = [odd[code] for code in system.codes.tolist() if code in odd]
        n_strange, strange = len(used), sorted({str(name) for name in used})
    return {
        "system": str(system.name),
        "gives": ", ".join(gives),
        "rows": system.n,
        "items": n_known,
        "missing": labels.n_items - n_known,
        "unknown_items": system.n - n_known,
        "unknown_classes": n_strange,
        "classes_nobody_voted_for": strange,
    }


def problems_with(predictions: Predictions, labels: Labels, policies: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason why an evaluation would refuse the files."""
    found = []
    ignoring: dict[str, Any] = dict.fromkeys(policies, "ignore")
    for name in predictions.systems.tolist():
        one = predictions[name]
        # One policy at a time, so that each reason is told, not only the first.
        for policy, value in policies.items():
            try:
                one.align(labels, **{**ignoring, policy: value})
            except InvalidPredictions as error:
                found.append(str(error))
    return list(dict.fromkeys(found))


def about_dependence(labels: Labels) -> dict[str, Any]:
    """Whether labelers err together, and how many independent ones the votes are worth."""
    import numpy as np

    from trueup._findings import about_votes
    from trueup.noise import effective_labelers

    if labels.n_votes > _MOST_VOTES:
        chosen = np.random.default_rng(0).random(labels.n_items) < _MOST_VOTES / labels.n_votes
        labels = labels.select(items=labels.items[chosen])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        _, independence = about_votes(labels, learned=True, drawn=True, check_dependence=True)
        # Where no item has two votes nothing can be said of either.
        effective = None if independence is None else effective_labelers(labels)
    return {
        "independence": about_independence(independence),
        "effective_labelers": None if effective is None else asdict(effective),
        "votes_looked_at": labels.n_votes,
    }
