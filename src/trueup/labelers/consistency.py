"""How often a labeler says the same again of the same item."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from trueup._base.types import Booleans, Codes, Floats
from trueup.data.encoding import Vocabulary
from trueup.data.votes import Votes
from trueup.posteriors import Estimate, beta_estimate

_JEFFREYS = 0.5


def self_consistency(labels: Votes) -> dict[Hashable, Estimate]:
    """The chance that two verdicts of a labeler on one item are the same, of each who gave two on some.

    Of an item with n verdicts, n_a of them for the answer a, that is Σ n_a (n_a − 1) / (n (n − 1)). Each item counts as
    one trial of a Beta posterior, however many verdicts it has, so the interval is about items and none too narrow.
    Consistency is no skill: who always says "pass" is consistent, too.

    Parameters
    ----------
    labels : Labels
        With several votes of a labeler on an item, as epochs or temperatures of a judge; see `run` of
        `Labels.from_frame`. The votes of an anonymous crowd are of different people, and left out.

    Examples
    --------
    >>> import trueup as tu
    >>> votes = {"item": [1, 1, 2, 2, 3], "labeler": ["a"] * 5, "label": list("xxxyy"), "run": [1, 2, 1, 2, 1]}
    >>> labels = tu.Labels.from_frame(votes, run="run")
    >>> tu.labelers.self_consistency(labels)["a"].mean
    0.5
    """
    item, labeler, _, times = labels.vote_table()
    return consistency_of(labels.labelers, *agreement_with_self(item, labeler, times, ~labels.is_crowd))


def agreement_with_self(
    item: Codes, labeler: Codes, times: npt.NDArray[Any], counted: Booleans
) -> tuple[Floats, Floats]:
    """How far each labeler agrees with themselves, summed over items with several verdicts, and how many these are."""
    n_labelers = len(counted)
    pairs, place = np.unique(item.astype(np.int64) * n_labelers + labeler, return_inverse=True)
    n = np.bincount(place, times)
    same = np.bincount(place, times * (times - 1.0))
    of_labeler = pairs % n_labelers
    repeated = (n > 1) & counted[of_labeler]
    agreement = np.divide(same, n * (n - 1), out=np.zeros_like(same), where=repeated)
    n_items = np.bincount(of_labeler[repeated], minlength=n_labelers).astype(float)
    return np.bincount(of_labeler[repeated], agreement[repeated], n_labelers).astype(float), n_items


def consistency_of(labelers: Vocabulary, agreed: Floats, n_items: Floats) -> dict[Hashable, Estimate]:
    """The estimates, of each labeler with items that have several verdicts of theirs."""
    return {
        name: beta_estimate(_JEFFREYS + float(yes), _JEFFREYS + float(all_items - yes), name="consistency")
        for name, yes, all_items in zip(labelers.tolist(), agreed, n_items, strict=True)
        if all_items
    }
