"""What an answer from votes may assume of errors, and what it is called."""

from __future__ import annotations

from typing import Literal, get_args

from trueup._base.validation import check_choice
from trueup.estimators.real_map import RealMap
from trueup.exceptions import InvalidParameter, Sentence

Assumption = Literal["independent", "shared", "real"]
ASSUMPTIONS: tuple[Assumption, ...] = get_args(Assumption)
DEFAULT_ASSUMPTION: Assumption = "real"
MANY_CLASSES = 60  # above, nothing but accuracies of labelers can be learned


def settle_assumption(assume: Assumption | RealMap | None, *, alone: bool) -> Assumption:
    """The assumption that is meant; an error where a noise model or method that is named leaves no choice."""
    if assume is None:
        return DEFAULT_ASSUMPTION
    if alone:
        raise InvalidParameter(
            f"⟨assume⟩ chooses between the answers of all models, got {assume!r} beside a ⟨noise⟩ or ⟨method⟩ that is "
            "named and gives its own alone; leave out one of them",
            parameter="assume",
        )
    if isinstance(assume, RealMap):
        return "real"
    check_choice(assume, ASSUMPTIONS, name="assume")
    return assume


def all_kinds_in_words(assumption: Assumption) -> str:
    """The noise of an answer for which no model was named."""
    return f"all kinds of models, assuming {assumption} errors"


def doubts_of_many_classes(n_classes: int) -> list[Sentence]:
    """What to say of classes that are too many to learn what labelers take for what."""
    if n_classes <= MANY_CLASSES:
        return []
    return [
        Sentence(
            f"With {n_classes:,} classes, more than {MANY_CLASSES}, one accuracy of each labeler is learned and taken "
            "as known: the answer assuming shared errors is that assuming independent ones, and both are too narrow; "
            "vet some items drawn at random."
        )
    ]
