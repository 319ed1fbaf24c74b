"""The number of objects that nobody drew, from tiles of images that were drawn at random and searched.

Counts of tiles follow a negative binomial law, because a crowded image has many.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.detection.shapes import Images
from trueup.exceptions import InvalidParameter, InvalidShapes
from trueup.posteriors import DrawnEstimate, Estimate

_SIZES = np.geomspace(0.1, 100.0, 25)  # of the negative binomial law: small ones for counts that vary much
_LEAST_MEAN = 1e-4  # objects of a tile
_N_MEANS = 400
_FAR_BELOW = 25.0  # the logarithm of a density below that of the mode which nothing is drawn from
_MOST_SPLIT = 50


@dataclass(frozen=True, eq=False)
class Tiles:
    """Parts of images, all of the same shape within an image.

    Attributes
    ----------
    image : integer array of shape (n_tiles,)
    boxes : array of shape (n_tiles, 4). Left edge, top edge, width, height.
    names : tuple of str. Image, row and column.
    """

    images: Images
    image: Positions
    boxes: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.image)

    def draw(self, n: int, random_state: RandomState = None) -> Positions:
        """`n` of the tiles at random, each with the same chance; sorted positions."""
        n = check_integer(n, name="n", low=1)
        if n > len(self):
            raise InvalidParameter(f"n must be at most {len(self)}, the number of tiles, got {n}")
        return np.sort(as_generator(random_state).choice(len(self), n, replace=False))


def make_tiles(images: Images, split: int = 2) -> Tiles:
    """Each image in split × split tiles."""
    split = check_integer(split, name="split", low=1)
    if split > _MOST_SPLIT:
        raise InvalidParameter(f"`split` must be at most {_MOST_SPLIT}, got {split}; tiles are too small to search")
    if np.isnan(images.sizes).any():
        name = images.ids.tolist()[int(np.isnan(images.sizes).any(axis=1).argmax())]
        raise InvalidShapes(f"image {name!r} has no width and height; tell its size to cut it into tiles")
    steps = np.arange(split)
    row, column = np.repeat(steps, split), np.tile(steps, split)
    corners = np.column_stack([column, row])[None] * images.sizes[:, None] / split
    sides = np.broadcast_to(images.sizes[:, None] / split, corners.shape)
    boxes = np.concatenate([corners, sides], axis=2).reshape(-1, 4)
    names = tuple(f"{name}/{y + 1}.{x + 1}" for name in images.ids.tolist() for y in steps for x in steps)
    return Tiles(images, np.repeat(np.arange(images.n), split**2), boxes, names)


@dataclass(frozen=True, eq=False)
class MissedObjects:
    """How many objects nobody drew.

    Attributes
    ----------
    draws : array of shape (n_draws, n_categories)
    n_seen : int. Objects without an outline in the tiles that were searched.
    """

    draws: Floats = field(repr=False)
    n_searched: int
    n_tiles: int
    n_seen: int

    @property
    def total(self) -> Estimate:
        """Of all classes together."""
        sums = self.draws.sum(axis=1)
        return DrawnEstimate(sums, bounds=(0.0, float(max(sums.max(), 1.0))), name="missed objects")


def missed_objects(
    counts: npt.ArrayLike, n_tiles: int, *, n_draws: int = 2000, random_state: RandomState = 0
) -> MissedObjects:
    """The number of objects that are no candidates, from tiles that were drawn at random.

    Parameters
    ----------
    counts : array of shape (n_searched,) or (n_searched, n_categories)
        Objects without an outline in each tile that was searched; an object is in the tile of its centre.
    n_tiles : int. All tiles of all images.

    Examples
    --------
    >>> none = missed_objects([0] * 20, 80).total.interval(0.95)  # nothing in 20 of 80 tiles
    >>> none[0] == 0.0, none[1] < 10
    (True, True)
    """
    table = np.asarray(counts, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all() or (table < 0).any() or (table % 1).any():
        raise InvalidParameter("counts must be whole numbers from 0 on, one for each tile that was searched")
    n_tiles = check_integer(n_tiles, name="n_tiles", low=1)
    if len(table) > n_tiles:
        raise InvalidParameter(f"n_tiles must be at least the {len(table)} tiles that were searched, got {n_tiles}")
    rng = as_generator(random_state)
    draws = np.stack([_draw(column, n_tiles - len(table), n_draws, rng) for column in table.T], axis=1)
    return MissedObjects(draws, len(table), n_tiles, int(table.sum()))


def _draw(counts: Floats, n_left: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """What was seen, and what the other tiles hold, by the posterior on a grid of means and sizes."""
    grid = np.geomspace(_LEAST_MEAN, max(1e2, 10 * counts.max()), _N_MEANS)
    # Many tiles tell the mean to less than a step of this grid: a finer one where the posterior is.
    is_near = np.flatnonzero(_log_posterior(counts, grid).max(axis=0) > -_FAR_BELOW)
    grid = np.geomspace(grid[max(is_near[0] - 1, 0)], grid[min(is_near[-1] + 1, _N_MEANS - 1)], _N_MEANS)
    weights = np.exp(_log_posterior(counts, grid)).ravel()
    chosen = rng.choice(len(weights), size=n_draws, p=weights / weights.sum())
    size, mean = np.repeat(_SIZES, _N_MEANS)[chosen], np.tile(grid, len(_SIZES))[chosen]
    rates = rng.gamma(size * n_left, mean / size) if n_left else np.zeros(n_draws)
    return np.asarray(counts.sum() + rng.poisson(rates), dtype=float)


def _log_posterior(counts: Floats, grid: Floats) -> Floats:
    """Of the sizes and of means of equal steps of the logarithm, 0 at the mode; shape (n_sizes, n_means)."""
    sizes, means = np.meshgrid(_SIZES, grid, indexing="ij")
    # Jeffreys' prior of a mean is 1/√mean; on a grid of equal steps of its logarithm that is √mean.
    logs = 0.5 * np.log(means)
    values, times = np.unique(counts, return_counts=True)
    for value, n in zip(values, times, strict=True):
        logs += n * (gammaln(value + sizes) - gammaln(sizes) + sizes * np.log(sizes) + value * np.log(means))
        logs -= n * (sizes + value) * np.log(sizes + means)
    return np.asarray(logs - logs.max())
