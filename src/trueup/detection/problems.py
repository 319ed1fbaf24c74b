"""What is wrong with shapes of a file: collected, and told in one sentence with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from trueup._base.types import Booleans, Floats
from trueup.exceptions import InvalidShapes

_MOST_KINDS = 4


class Problems:
    """Problems of the rows of one file."""

    def __init__(self, file: str, n: int, rows: str) -> None:
        self.file, self.n, self.rows = file, n, rows
        self._first: dict[str, int] = {}
        self._count: Counter[str] = Counter()

    def refuse_one(self, position: int, problem: str) -> None:
        """A row with a problem."""
        self._first.setdefault(problem, position)
        self._count[problem] += 1

    def refuse(self, is_wrong: Booleans, problem: str) -> None:
        """Rows with a problem."""
        at = np.flatnonzero(is_wrong)
        if len(at):
            self._first.setdefault(problem, int(at[0]))
            self._count[problem] += len(at)

    def refuse_repeated(self, ids: Sequence[Hashable], problem: str) -> None:
        """Rows whose id was there before."""
        known: set[Hashable] = set()
        for position, name in enumerate(ids):
            if name in known:
                self.refuse_one(position, problem)
            known.add(name)

    def refuse_boxes(self, boxes: Floats, sizes: Floats) -> None:
        """Boxes that are no numbers, have no size, or lie wholly outside their image; many reach over its edge."""
        is_number = np.isfinite(boxes).all(axis=1)
        self.refuse(np.asarray(~is_number), "a box with numbers missing")
        flat = is_number & ((boxes[:, 2] <= 0) | (boxes[:, 3] <= 0))
        self.refuse(np.asarray(flat), "a box without width or height")
        with np.errstate(invalid="ignore"):
            ends = boxes[:, :2] + boxes[:, 2:]
            outside = (ends <= 0).any(axis=1) | (boxes[:, :2] >= sizes).any(axis=1)
        self.refuse(np.asarray(is_number & ~flat & outside), "a box outside its image")

    def refuse_scores(self, scores: Floats) -> None:
        """Scores that are missing or are no probabilities."""
        self.refuse(np.isnan(scores), "no score")
        with np.errstate(invalid="ignore"):
            self.refuse((scores < 0) | (scores > 1), "a score outside 0 to 1")

    def raise_if_any(self) -> None:
        """One sentence on all of them."""
        if not self._count:
            return
        parts = [
            f"{count:,} with {problem} (the first is number {self._first[problem] + 1:,})"
            for problem, count in self._count.most_common(_MOST_KINDS)
        ]
        more = len(self._count) - _MOST_KINDS
        rest = f" and {more} more kinds of problems" if more > 0 else ""
        raise InvalidShapes(
            f"{self.file}: of {self.n:,} {self.rows} there are {'; '.join(parts)}{rest}; mend or remove them: "
            "nothing is dropped silently"
        )
