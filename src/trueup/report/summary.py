"""An evaluation as plain data: all that a report says, ready for JSON and for the templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup._base.validation import RandomState
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.exceptions import InvalidParameter
from trueup.noise import IndependenceCheck
from trueup.report.compared import comparison_data, positive_of
from trueup.report.labelers import dependence_data, labeler_data
from trueup.report.measures import system_data
from trueup.report.reproduction import reproduction_data
from trueup.report.sentences import (
    answer,
    dirty_remark,
    is_unnamed,
    judged_words,
    metric_label,
    plain,
    plain_warnings,
    positive_words,
    text,
    title_for,
    verdict,
)
from trueup.report.vet_next import vet_next_data

FORMAT = 1
_WITH_PICTURES = 6  # systems; the others are in the tables
_MOST_CLASSES = 50  # whose names are listed


def build_report(
    evaluations: Mapping[str, Evaluation] | Evaluation,
    *,
    labels: Labels | LabelScan[Labels] | None = None,
    comparison: Comparison | None = None,
    title: str | None = None,
    seed: RandomState = None,
    settings: Mapping[str, Any] | None = None,
    with_text: bool = False,
) -> dict[str, Any]:
    """All that a report says, as a dict that JSON can hold.

    Numbers are those of the evaluations themselves. A part that there is nothing to say about is None or empty, and
    left out on the page. The same evaluations always give the same dict: there is no date in it.

    Parameters
    ----------
    evaluations : Evaluation or mapping from name to Evaluation
        Of one system or of several on the same labels. May be empty where there is a comparison.
    labels : Labels, optional
        The votes that the labeler table is about; by default those of the first evaluation.
    comparison : Comparison, optional
        Of the same systems.
    title : str, optional
    seed : int, optional
        By default that of the evaluation.
    settings : mapping, optional
        What else a reader needs to get the same numbers: file names, their checksums. Shown as given. ``"command"``
        is the whole command line, shown as the way to get the same numbers in place of the calls in Python.
    with_text : bool
        Whether texts about items (see `Labels.with_items`) may be shown; else only their other columns are.

    Returns
    -------
    dict
        With the key ``"format"``, a number that grows when the shape of the dict changes.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.report import build_report
    >>> sim = tu.simulate.baseline(n_items=200, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> data = build_report(ev, title="A trial")
    >>> data["format"], data["title"], data["systems"][0]["metrics"][0]["mean"] == ev["accuracy"].mean
    (1, 'A trial', True)
    """
    named = _named(evaluations)
    main: Any = next(iter(named.values()), comparison)
    if main is None:
        raise InvalidParameter("a report needs an evaluation or a comparison, got neither; pass evaluate's answer")
    labels = main.labels if labels is None else labels
    systems = []
    for place, (name, evaluation) in enumerate(named.items()):
        data = system_data(name, evaluation, with_pictures=place < _WITH_PICTURES)
        leading = data["metrics"][0]
        judged = judged_words(evaluation.n_items, labels.n_items)
        systems.append(
            {
                **data,
                "answer": answer(leading, data["rests_on"], refused=data["refused"]),
                "remark": dirty_remark(leading),
                "judged": judged,
            }
        )
    compared = None if comparison is None else comparison_data(comparison)
    positive = None if comparison is None else positive_of(comparison)
    found = {text(name): evaluation.warnings for name, evaluation in named.items()}
    if comparison is not None:
        known = {sentence for sentences in found.values() for sentence in sentences}
        found[""] = tuple(sentence for sentence in comparison.warnings if sentence not in known)
    names = list(named) or [system["system"] for system in compared["systems"]] if compared else list(named)
    check = next((e.independence for e in named.values() if e.independence is not None), None)
    return {
        "format": FORMAT,
        "title": plain(title) if title else title_for([text(n) for n in names], compared=comparison is not None),
        "about": {
            "n_items": labels.n_items,
            "n_votes": labels.n_votes,
            "n_labelers": labels.n_labelers,
            "n_classes": labels.n_classes,
            "n_gold": len(labels.gold),
            **_beside_votes(labels),
            "votes_per_item": labels.n_votes / max(labels.n_items, 1),
            "classes": [text(c) for c in labels.classes.tolist()[:_MOST_CLASSES]],
            "target": main.target,
            "level": main.level,
            "positive": _positive_sentences(systems, comparison, positive),
        },
        "systems": systems,
        "verdict": verdict(compared),
        "warnings": plain_warnings(found, max(len(named), 1)),
        "comparison": compared,
        **_from_votes(labels, main, check, seed=main.seed if seed is None else seed),
        "vet_next": _vet_next(main, named, comparison, positive=positive, with_text=with_text),
        "reproduction": reproduction_data(
            named,
            comparison,
            seed=seed,
            settings=settings,
            unnamed=comparison is None and is_unnamed(list(named)),
        ),
    }


def _positive_sentences(
    systems: list[dict[str, Any]], comparison: Comparison | None, positive: int | None
) -> list[str]:
    """Which class is the positive one, where a number on the page depends on it."""
    found = {s["name"]: (s["positive"], s["positive_metrics"]) for s in systems if s["positive_metrics"]}
    if comparison is not None and positive is not None:
        found[""] = (text(comparison.classes[positive]), [metric_label(comparison.metric)])
    return positive_words(found)


def _beside_votes(labels: Labels | LabelScan[Labels]) -> dict[str, Any]:
    """What is known of items and of their vetting; files of a scan have no columns of items."""
    if isinstance(labels, LabelScan):
        return {"n_gold_drawn": len(labels.reader.drawn), "item_columns": [], "remarks": []}
    return {
        "n_gold_drawn": len(labels.drawn_gold),
        "item_columns": [text(name) for name in labels.item_columns],
        "remarks": list(labels.remarks),
    }


def _from_votes(
    labels: Labels | LabelScan[Labels], main: Any, check: IndependenceCheck | None, *, seed: RandomState
) -> dict[str, Any]:
    """Who the labelers are, and whether they err together; nothing of a scan, whose votes are not in memory."""
    if isinstance(labels, LabelScan):
        return {"labelers": None, "dependence": None}
    return {
        "labelers": labeler_data(labels, level=main.level, seed=seed, **_noise_of_labelers(main)),
        "dependence": dependence_data(labels, check, model=main.model),
    }


def _noise_of_labelers(main: Any) -> dict[str, Any]:
    """By which models labelers are judged: as the answers are."""
    return {"model": main.model} if main.core is None else {"prior": main.core.prior}


def _vet_next(
    main: Evaluation | Comparison,
    named: Mapping[str, Evaluation],
    comparison: Comparison | None,
    **how: Any,
) -> dict[str, Any] | None:
    """What to vet next; nothing of a scan, which is asked item by item."""
    return vet_next_data(main.labels, dict(named), comparison, **how)


def _named(evaluations: Mapping[str, Evaluation] | Evaluation) -> dict[str, Evaluation]:
    """By name; one evaluation alone is that of "system"."""
    if isinstance(evaluations, Evaluation):  # itself a mapping, of metrics
        return {"system": evaluations}
    named = dict(evaluations)
    wrong = next((name for name, value in named.items() if not isinstance(value, Evaluation)), None)
    if wrong is not None:
        raise InvalidParameter(
            f"evaluations must be what evaluate returns, got {type(named[wrong]).__name__} for {wrong!r}; pass the "
            "Evaluation, or {name: Evaluation}"
        )
    return {str(name): value for name, value in named.items()}
