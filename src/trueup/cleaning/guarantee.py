"""Which items to check until all labels together have at most an error, with a confidence that needs no model.

Some items are drawn at random and checked. Of the others, the votes say which are surest. How many of the surest may go
unchecked is decided by the sample alone: by the hypergeometric distribution, the labels of these, were they wrong too
often, would have shown more wrong ones in the sample (Candès, Ilyas and Zrnic 2025, with an exact bound).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np
import scipy

from trueup._base.types import Booleans, Codes
from trueup._base.validation import RandomState, as_generator, check_integer, check_number
from trueup.core.base import base_of
from trueup.core.truth import labels_of_base
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter

_MOST_AFFORDED = 10  # wrong labels in the sample with which all others may still go unchecked
_AFFORDED_ELSE = 2  # where votes let expect more: then the surest alone can go unchecked


def check_until(
    labels: Labels,
    *,
    error: float = 0.02,
    confidence: float = 0.95,
    n_sample: int | None = None,
    random_state: RandomState = None,
) -> CheckUntil:
    """Which items to check so that the labels of all items are wrong for a share of `error` at most.

    Parameters
    ----------
    labels : Labels. Checked items among them are right.
    error : float. The share of all items whose label may be wrong in the end.
    confidence : float. With which this holds, over the draw of the sample; whatever the votes are.
    n_sample : int, optional
        How many items are drawn at random and checked first; by default as many as afford the wrong
        labels that votes let expect among them.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.dawid_skene(n_items=2000, n_labelers=5, accuracy=0.9, random_state=0)
    >>> check = tu.cleaning.check_until(sim.labels, error=0.02, random_state=0)
    >>> while not check.finished:
    ...     check.tell({item: int(sim.truth[item]) for item in check.ask(100)})
    >>> wrong = sum(label != sim.truth[item] for item, label in check.labels.items())
    >>> bool(wrong <= 0.02 * 2000), check.n_checked < 1000
    (True, True)
    """
    return CheckUntil(labels, error=error, confidence=confidence, n_sample=n_sample, random_state=random_state)


class CheckUntil:
    """A check of labels that ends when they are good enough; see `check_until`."""

    def __init__(
        self, labels: Labels, *, error: float, confidence: float, n_sample: int | None, random_state: RandomState
    ) -> None:
        if not isinstance(labels, Labels):
            raise InvalidLabels(f"`labels` must be Labels, got {type(labels).__name__}; make them with trueup.Labels")
        self.error = check_number(error, low=0, high=1, strict=True, name="error")
        self.confidence = check_number(confidence, low=0, high=1, strict=True, name="confidence")
        self._votes = labels
        known = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes).astype(np.int32)
        self._given, self._truth = known >= 0, known.copy()
        chances = base_of(labels_of_base(labels))
        self._proposed = chances.argmax(axis=1).astype(np.int32)
        open_items = np.flatnonzero(~self._given)
        self._n_open = len(open_items)
        self._wrong_at_first = int(np.floor(self.error * labels.n_items)) + 1  # the fewest wrong ones that are too many
        sure = chances[open_items].max(axis=1)
        size = self._size_of_sample(float(1 - sure.mean())) if n_sample is None else n_sample
        rng = as_generator(random_state)
        self._sample = np.sort(
            rng.choice(open_items, min(check_integer(size, name="n_sample", low=1), self._n_open), replace=False)
        )
        # The surest first; those that are equally sure in an order of chance, the same each time.
        order = np.lexsort((rng.random(self._n_open), -sure))
        self._surest = open_items[order]
        self._place = {name: k for k, name in enumerate(labels.items.tolist())}

    def _size_of_sample(self, expected_error: float) -> int:
        """The smallest sample that affords the wrong labels which votes let expect in it."""
        n, wrong = self._n_open, min(self._wrong_at_first, self._n_open)

        def is_enough(size: int, n_seen: int) -> bool:
            return bool(scipy.stats.hypergeom.cdf(n_seen, n, wrong, size) <= 1 - self.confidence)

        sizes = [bisect_left(range(n), True, key=partial(is_enough, n_seen=k)) for k in range(_MOST_AFFORDED + 1)]
        afforded = [size for n_seen, size in enumerate(sizes) if expected_error * size <= n_seen]
        return max(1, afforded[0] if afforded else sizes[_AFFORDED_ELSE])

    # ------------------------------------------------------------------ what is left

    @property
    def n_checked(self) -> int:
        """Items that were checked here."""
        return int(((self._truth >= 0) & ~self._given).sum())

    def _sampled_wrong(self) -> Booleans:
        """Of the surest items in order, which are in the sample and have a wrong label."""
        wrong = np.zeros(len(self._truth), dtype=np.bool_)
        wrong[self._sample] = self._truth[self._sample] != self._proposed[self._sample]
        return wrong[self._surest]

    def _n_unchecked(self) -> int:
        """How many of the surest items may go unchecked."""
        n_wrong = np.cumsum(self._sampled_wrong())
        if self._wrong_at_first > self._n_open:
            return self._n_open  # not even all of them wrong are too many
        chance = scipy.stats.hypergeom.cdf(
            np.arange(len(self._sample) + 1), self._n_open, self._wrong_at_first, len(self._sample)
        )
        return int((chance[n_wrong] <= 1 - self.confidence).sum())

    def _left(self) -> Codes:
        """The items that are still to be checked, those of the sample first, then the least sure."""
        waiting = self._sample[self._truth[self._sample] < 0]
        if len(waiting):
            return np.asarray(waiting)
        rest = self._surest[self._n_unchecked() :][::-1]
        return np.asarray(rest[self._truth[rest] < 0])

    @property
    def finished(self) -> bool:
        """Whether the labels are as good as was asked for."""
        return not len(self._left())

    def ask(self, n: int = 10) -> list[Hashable]:
        """The next items to check, as many as are left at most."""
        chosen = self._left()[: check_integer(n, name="n", low=1)]
        return [self._votes.items[k] for k in chosen.tolist()]

    def tell(self, answers: Mapping[Any, Any]) -> None:
        """True classes of items; of any items, asked or not."""
        codes = {}
        for item, name in answers.items():
            if item not in self._place:
                raise InvalidParameter(f"the items must be among the labels, got {item!r}", parameter="answers")
            codes[self._place[item]] = self._votes.class_code(name, parameter="answers")
        for place, code in codes.items():
            self._truth[place] = code

    # ------------------------------------------------------------------ what came of it

    @property
    def labels(self) -> dict[Hashable, Hashable]:
        """The label of each item: what was checked, and for all others what votes say."""
        final = np.where(self._truth >= 0, self._truth, self._proposed)
        return dict(zip(self._votes.items.tolist(), self._votes.classes[final].tolist(), strict=True))

    @property
    def bound(self) -> float:
        """The share of wrong labels that is not exceeded with the confidence, if checking ends now.

        It is 1 until the sample is checked. It is for one look: who stops where it pleases has less confidence.
        """
        if (self._truth[self._sample] < 0).any():
            return 1.0
        is_unchecked = self._truth[self._surest] < 0
        n_surest = int(np.flatnonzero(is_unchecked)[-1]) + 1 if is_unchecked.any() else 0
        if not n_surest:
            return 0.0
        seen = int(self._sampled_wrong()[:n_surest].sum())
        wrong = np.arange(seen, self._n_open + 1)
        likely = scipy.stats.hypergeom.cdf(seen, self._n_open, wrong, len(self._sample)) > 1 - self.confidence
        most = int(wrong[likely][-1]) - seen
        return min(most, int(is_unchecked.sum())) / self._votes.n_items

    def __repr__(self) -> str:
        n_left = len(self._left())
        what = "finished" if not n_left else f"{n_left:,} to check now"
        return f"CheckUntil({self.n_checked:,} of {self._n_open:,} checked, {what}, error at most {self.bound:.3g})"
