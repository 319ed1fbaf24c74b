"""The people behind the votes: skill, bias, volume and spam of each; and whether they err together."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from trueup._base.validation import RandomState
from trueup.core.prior import CrowdPrior
from trueup.estimators.truth import is_drawn
from trueup.exceptions import Sentence, TrueupError, TrueupWarning
from trueup.labelers import RankedLabeler, rank
from trueup.noise import DawidSkene, IndependenceCheck, NoiseModel, effective_labelers
from trueup.report.measures import finite
from trueup.report.sentences import text

if TYPE_CHECKING:
    from trueup.data.labels import Labels


_MOST_VOTES = 20_000  # looked at: skill needs no more, and a page should not take longer than the evaluation
# Numbers in all confusion matrices: each sweep of a chain draws them, and each step of a fit with subtypes counts them.
_MOST_PARAMETERS = 30_000


def labeler_data(
    labels: Labels,
    *,
    level: float,
    seed: RandomState = None,
    model: NoiseModel | None = None,
    prior: CrowdPrior | None = None,
) -> dict[str, Any] | None:
    """One row a labeler, the best first; None where there is nobody to tell apart.

    The same draws as those of `trueup labelers` with this seed and noise, so that the two agree: of the model behind
    the answers where one was named to be drawn, else of the plain answer.
    """
    if labels.n_labelers < 2 or not labels.n_votes:
        return None
    part, notes = _part(labels)
    if _parameters(part) > _MOST_PARAMETERS:
        notes = [
            "There are too many labelers and classes to judge skill while a page is made; see trueup.labelers.rank."
        ]
        return _table([], labels, level, notes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrueupWarning)
        try:
            named = model if model is not None and is_drawn(model) else None
            ranking = rank(
                part,
                noise=named,
                prior=prior if named is None else None,
                level=level,
                random_state=int(seed) if isinstance(seed, int | np.integer) else 0,
            )
        except TrueupError:  # e.g. votes that say nothing of skill: the report does without the table
            return None
    notes += [_sentence(w.message) for w in caught if issubclass(w.category, TrueupWarning)]
    notes += [_sentence(said) for said in ranking.warnings]
    votes = dict(zip(labels.labelers.tolist(), labels.votes_per_labeler.tolist(), strict=True))
    rows = [_row(row, int(votes[row.labeler]), level) for row in ranking]
    return _table(rows, labels, level, notes)


def _table(rows: list[dict[str, Any]], labels: Labels, level: float, notes: list[str]) -> dict[str, Any]:
    suspects = [row for row in rows if row["spam_probability"] > 0.5]
    return {
        "level": level,
        "rows": rows,
        "n_suspects": len(suspects),
        "suspect_votes": sum(row["votes"] for row in suspects),
        "n_votes": labels.n_votes,
        "notes": list(dict.fromkeys(notes)),
    }


def _parameters(labels: Labels) -> int:
    """Numbers in the confusion matrices of all labelers."""
    return labels.n_labelers * labels.n_classes * labels.n_answers


def _part(labels: Labels) -> tuple[Labels, list[str]]:
    """These labels, or a random part of the items where there are many votes."""
    if labels.n_votes <= _MOST_VOTES:
        return labels, []
    chosen = np.random.default_rng(0).random(labels.n_items) < _MOST_VOTES / labels.n_votes
    chosen &= labels.votes_per_item > 0
    if not chosen.any():
        return labels, []
    part = labels.select(items=labels.items[chosen])
    part = part.select(labelers=part.labelers[part.votes_per_labeler > 0])
    return part, [
        f"Skill was judged on {part.n_items:,} of {labels.n_items:,} items, chosen at random, to save time"
        + (
            f"; {labels.n_labelers - part.n_labelers:,} labelers are not among them."
            if part.n_labelers < labels.n_labelers
            else "."
        )
    ]


def _sentence(message: Any) -> str:
    words = text(message).strip()
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _row(row: RankedLabeler, votes: int, level: float) -> dict[str, Any]:
    data: dict[str, Any] = {"labeler": text(row.labeler), "votes": votes, "rank": list(row.rank)}
    for name in ("accuracy", "information", "bias", "spam"):
        estimate = getattr(row, name)
        low, high = estimate.interval(level)
        data[name] = {"mean": finite(estimate.mean), "low": finite(low), "high": finite(high)}
    return {**data, "bias_class": text(row.bias_class), "spam_probability": row.spam_probability}


def dependence_data(
    labels: Labels, check: IndependenceCheck | None, *, model: NoiseModel | None
) -> dict[str, Any] | None:
    """Whether labelers err together, what the panel is worth, and what to do."""
    if labels.n_labelers < 2 or not (labels.votes_per_item > 1).any():
        return None
    part, _ = _part(labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # said among the warnings of the evaluation
        try:
            panel = effective_labelers(part, _quick_model(part))
        except TrueupError:
            panel = None
    if check is None and panel is None:
        return None
    return {
        "dependent": None if check is None else check.dependent,
        "ratio": None if check is None else finite(check.ratio),
        "p_value": None if check is None else finite(check.p_value),
        "sentence": None if check is None else check.sentence,
        "votes_per_item": None if panel is None else finite(panel.votes_per_item),
        "effective": None if panel is None else finite(panel.effective),
        "correlation": None if panel is None else finite(panel.correlation),
        "panel_sentence": None if panel is None else panel.sentence,
        "advice": _advice(check, model),
    }


def _quick_model(labels: Labels) -> DawidSkene | None:
    """A model without subtypes where these would take minutes, None where the default will do."""
    if _parameters(labels) <= _MOST_PARAMETERS:
        return None
    return DawidSkene().fit(labels)


def _advice(check: IndependenceCheck | None, model: NoiseModel | None) -> list[str]:
    """What to do about it, the most useful first."""
    if check is None:
        return [Sentence("The check was not made; leave ⟨check_dependence⟩ on to have it made.")]
    if not check.dependent:
        return ["Nothing needs to be done. The check misses weak dependence, so a few vetted items are still worth it."]
    return [
        *([] if model is None else [check.advice(model)]),
        "Vet some items, first those listed below: an expert's answer is the only evidence that does not share the "
        "labelers' mistakes.",
        "More votes of the same kind of labelers help little; votes of labelers who err differently help more.",
    ]
