"""Vetted items that were drawn with different chances, thinned to those that are as if all chances had been equal.

What is counted of vetted items is the share of a batch only if each item had the same chance to be vetted: items on
which the system and its judges disagree, drawn more often from some day on, look like a system that fell. So each
vetted item is kept with the smallest chance over its own. Drawn and kept, every item then has the smallest chance.
Weights would use them all, but the exact tests of `change` and the likelihoods of `attribution` are of counts.

References
----------
P. A. W. Lewis, G. S. Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", Naval Research Logistics
Quarterly 26, 1979.
"""

from __future__ import annotations

import numpy as np

from trueup._base.types import Booleans, Floats

_COMPLETE = 0.75  # part of a batch that its vetted items stand for, from which on no kind of item is taken for missing


def are_kept(chances: Floats, *, when: str, earlier: float) -> Booleans:
    """Which vetted items of a batch to count.

    Parameters
    ----------
    chances : float array of shape (n_items,)
        With which each vetted item was drawn; nan for those that were not.
    when : str
        The time of the batch: the seed. Neither votes nor truths have a say in which items are kept.
    earlier : float
        The smallest chance in batches before. It stands for items that were seldom drawn and of which this batch has
        none, which shows where the items that the vetted ones stand for, one over its chance each, are few: else in
        small batches those that were often drawn would all be kept.

    Examples
    --------
    >>> chances = np.array([np.nan, 0.1, np.nan, 0.1])
    >>> are_kept(chances, when="2026-11-15", earlier=1.0).tolist()
    [False, True, False, True]
    >>> often = np.where(np.arange(2000) < 1000, 0.05, 0.5)
    >>> kept = are_kept(often, when="2026-11-15", earlier=1.0)
    >>> int(kept[:1000].sum()), int(kept[1000:].sum()) < 150
    (1000, True)
    """
    is_vetted = ~np.isnan(chances)
    if not is_vetted.any():
        return is_vetted
    told = np.where(is_vetted, chances, np.inf)
    smallest = float(told.min())
    if float((1 / told).sum()) < _COMPLETE * len(chances):
        smallest = min(smallest, earlier)
    draws = np.random.default_rng(list(when.encode())).random(len(chances))
    return np.asarray(draws < smallest / told)
