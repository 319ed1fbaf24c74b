"""Classes of an item that a tilt cannot tell apart, taken together: with thousands of classes few are left.

All classes on which the features of an item agree are multiplied by one number, whatever the tilt. So it is enough to
tilt their sum, and to draw one of them afterwards by its share in it. Nothing is approximated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup._base.types import Codes, Floats, Positions


@dataclass(frozen=True, eq=False)
class EqualClasses:
    """The classes of each item in groups, within which its features are the same.

    Attributes
    ----------
    posterior : array of shape (n_items, n_groups)
        P(group) of each item.
    features : array of shape (n_features, n_items, n_groups)
    order : integer array of shape (n_items, n_classes)
        The classes of each item, group by group.
    upto : array of shape (n_items, n_classes)
        P(class) in that order, added up.
    starts : integer array of shape (n_items, n_groups + 1)
        Where each group begins in that order; groups that an item does not have are empty.
    """

    posterior: Floats
    features: Floats
    order: Codes
    upto: Floats
    starts: Positions

    def draw_classes(self, groups: Codes, rng: np.random.Generator) -> Codes:
        """A class of each drawn group, shape (n_draws, n_items)."""
        classes = np.empty(groups.shape, dtype=np.int16 if self.order.shape[1] <= 1 << 15 else np.int32)
        uniform = rng.random(groups.shape, dtype=np.float32)
        for item, order in enumerate(self.order):
            starts, upto = self.starts[item], np.concatenate([[0.0], self.upto[item]])
            # A group that the item has not is all but impossible, and stands for the last that it has.
            group = np.minimum(groups[:, item], np.flatnonzero(np.diff(starts)).max())
            first, last = starts[group], starts[group + 1] - 1
            height = upto[first] + uniform[:, item] * (upto[last + 1] - upto[first])
            place = np.searchsorted(upto, height, side="right") - 1
            classes[:, item] = order[np.clip(place, first, last)]
        return classes


def group_equal_classes(posterior: Floats, features: Floats, rng: np.random.Generator) -> EqualClasses:
    """Classes in groups.

    Parameters
    ----------
    posterior : array of shape (n_items, n_classes)
        P(class) of each item, above zero where no class is certain.
    features : array of shape (n_features, n_items, n_classes)
    rng : Generator
        Vectors of features are compared by their products with one random vector.
    """
    n_items, n_classes = posterior.shape
    keys = np.tensordot(rng.standard_normal(len(features)), features, axes=1)
    order = np.argsort(keys, axis=1, kind="stable")
    along = np.take_along_axis(keys, order, axis=1)
    is_new = np.diff(along, axis=1, prepend=along[:, :1] - 1.0) > 0
    group = np.cumsum(is_new, axis=1) - 1
    n_groups = int(group.max(initial=0)) + 1
    starts = np.full((n_items, n_groups + 1), n_classes)
    item, place = np.nonzero(is_new)
    starts[item, group[item, place]] = place
    chances = np.take_along_axis(posterior, order, axis=1)
    cells = (np.arange(n_items)[:, None] * n_groups + group).ravel()
    sums = np.bincount(cells, weights=chances.ravel(), minlength=n_items * n_groups)
    firsts = np.take_along_axis(order, np.minimum(starts[:, :-1], n_classes - 1), axis=1)
    kept = np.take_along_axis(features, np.broadcast_to(firsts, (len(features), *firsts.shape)), axis=2)
    posterior_of_groups = np.asarray(sums, dtype=float).reshape(n_items, n_groups)
    return EqualClasses(posterior_of_groups, kept, order, np.cumsum(chances, axis=1), starts)
