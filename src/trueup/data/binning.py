"""Ratings of which few are equal, put into bins: what follows is about classes, and bins are classes in an order.

A normal model of the ratings would need its own truth, metrics, gold and answers. Ten bins lose about three hundredths
of the range on an item, by its place within the bin, which means over many items do not see.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from trueup._base.types import Codes
from trueup._base.validation import check_integer, check_number, numbers_of, preview
from trueup.data.encoding import vocabulary_from
from trueup.data.votes import NO_GOLD, Votes, vote_matrix
from trueup.exceptions import InvalidLabels, InvalidParameter

_V = TypeVar("_V", bound=Votes)


def binned(labels: _V, n_bins: int, low: float | None, high: float | None) -> _V:
    """The labels with bins of equal width for classes, each named by its middle; see `Labels.binned`."""
    check_integer(n_bins, name="n_bins", low=2)
    names = labels.classes.tolist()
    numbers = numbers_of(names)
    if numbers is None:
        raise InvalidLabels(
            f"classes must be numbers to be put into bins, got {preview(names)}; name the column of ratings"
        )
    values = np.array(numbers)
    bottom = values.min() if low is None else check_number(low, name="low")
    top = values.max() if high is None else check_number(high, name="high")
    outside = values[(values < bottom) | (values > top)]
    if not bottom < top or len(outside):
        got = f"{preview(outside.tolist())} outside" if bottom < top else "no width"
        raise InvalidParameter(
            f"ratings must lie between ⟨low⟩ and ⟨high⟩, got {got} of {bottom:g} to {top:g}; name a wider range",
            parameter="low",
        )
    width = (top - bottom) / n_bins
    bin_of = np.minimum(((values - bottom) / width).astype(np.int32), n_bins - 1)
    classes = vocabulary_from([float(f"{bottom + (k + 0.5) * width:.10g}") for k in range(n_bins)])
    abstentions = labels.answers.tolist()[labels.n_classes :]
    answers = vocabulary_from([*classes.tolist(), *abstentions]) if abstentions else classes
    answer_of = np.concatenate([bin_of, n_bins + np.arange(len(abstentions))]).astype(np.int32)
    item, labeler, answer, times = labels.vote_table()
    shape = labels.n_items, labels.n_labelers, len(answers)
    codes = (item.astype(np.int32), labeler.astype(np.int32), answer_of[answer])
    votes = vote_matrix(*codes, shape, times=times.astype(float))

    def moved(codes: Codes) -> Codes:
        return np.asarray(np.append(bin_of, NO_GOLD)[codes], dtype=codes.dtype)  # the last serves items without gold

    return replace(
        labels,
        classes=classes,
        answers=answers,
        votes=votes,
        gold_codes=moved(labels.gold_codes),
        held_codes=moved(labels.held_codes),
    )
