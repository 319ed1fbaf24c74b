"""Many classes: of each item a few that matter have a slot of their own, and all others share one.

An item's slots are the classes with effects, what systems name, its likeliest classes and its checked one. The others
are alike: each has the same part of what the base leaves to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trueup._base.types import Codes, Floats

MOST_CLASSES = 60  # with more, items have slots
_LIKELIEST = 3  # classes of the base
_NEVER = -600.0  # log-odds of a slot whose class has another one


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of items; the last one is for all classes without one."""

    classes: Codes = field(repr=False)  # (n_items, n_slots)
    n_others: Codes = field(repr=False)  # (n_items,): classes without a slot
    log_base: Floats = field(repr=False)  # (n_items, n_slots): as in `Rows`
    offset: Floats = field(repr=False)  # (n_items, n_slots): as in `Rows`
    n_classes: int

    @classmethod
    def of(cls, base: Floats, named: Codes) -> Slots:
        """The slots of items."""
        n_classes = base.shape[1]
        likeliest = np.argpartition(-base, _LIKELIEST, axis=1)[:, :_LIKELIEST]
        classes = np.column_stack([named.T, likeliest])
        is_first = classes >= 0
        for k in range(1, classes.shape[1]):
            is_first[:, k] &= ~(classes[:, :k] == classes[:, k : k + 1]).any(axis=1)
        of_slots = np.take_along_axis(base, np.maximum(classes, 0), axis=1)
        n_others = n_classes - is_first.sum(axis=1)
        left = np.maximum(1 - (of_slots * is_first).sum(axis=1), 1e-12) / np.maximum(n_others, 1)
        candidates = np.arange(classes.shape[1] + 1)  # one more than slots: some of these has none
        has_slot = (classes[:, :, None] == candidates).any(axis=1)
        offset = np.column_stack([np.where(is_first, 0.0, _NEVER), np.log(n_others)])
        log_base = np.log(np.column_stack([np.maximum(of_slots, 1e-12), left]))
        return cls(np.column_stack([classes, has_slot.argmin(axis=1)]), n_others, log_base, offset, n_classes)

    def at(self, positions: Codes) -> Slots:
        """The slots of some of the items."""
        return Slots(
            self.classes[positions],
            self.n_others[positions],
            self.log_base[positions],
            self.offset[positions],
            self.n_classes,
        )

    def places(self, codes: Codes) -> Codes:
        """The slots of classes, shape of the codes: (..., n_items); -1 stays."""
        found = np.stack([(self.classes[:, :-1] == row[:, None]).argmax(axis=1) for row in np.atleast_2d(codes)])
        return np.where(codes >= 0, found.reshape(codes.shape), -1)

    def draw_classes(self, slots: Codes, rng: np.random.Generator) -> Codes:
        """Classes for drawn slots, shape (n_draws, n_items); those without a slot are equally likely."""
        drawn = np.take_along_axis(self.classes, slots.T.astype(np.int64), axis=1).T.astype(np.int16)
        draw, item = np.nonzero(slots == self.classes.shape[1] - 1)
        other = rng.integers(self.n_classes, size=len(draw))
        is_taken = (self.classes[item, :-1] == other[:, None]).any(axis=1)
        drawn[draw, item] = np.where(is_taken, self.classes[item, -1], other)
        return drawn

    def spread(self, chances: Floats) -> Floats:
        """P(class) of items from P(slot), shape (n_items, n_classes)."""
        item = np.arange(len(chances))
        out = np.repeat((chances[:, -1] / self.n_others)[:, None], self.n_classes, axis=1)
        is_first = self.offset[:, :-1] == 0
        for k in range(self.classes.shape[1] - 1):
            at = item[is_first[:, k]]
            out[at, self.classes[at, k]] = chances[at, k]
        return out
