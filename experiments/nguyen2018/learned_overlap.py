r"""How much detections overlap masks that nobody drew yet, learned from those that somebody drew.

A box around each object is cheap, its mask is not. What is asked of a detection is whether its mask overlaps the mask
of the object by a threshold *t* or more; what is known is how it lies to the box. One model answers for all thresholds,

.. math:: P(\mathrm{overlap} \ge t \mid x) = \mathrm{logit}^{-1}(x^\top \beta - c_t), \qquad c_{.50} < c_{.55} < \dots

so that the chance falls with the threshold whatever the features are, and every known mask teaches all of them. The
features of a pair are the overlap of the two boxes, that of the detection's mask with the object's box, the share of
its own box that the detection's mask fills (a thin shape that is a little off overlaps much less than its box does),
the size of the object's box, and how much the detection's mask overlaps itself *stretched* onto the object's box: were
that mask the right one, it would be the answer. Their squares and products enter too.

Which objects are vetted may depend on anything that the features say: the model is of the overlap given them.

References
----------
P. Nguyen, D. Ramanan, C. Fowlkes, "Active testing: an efficient and robust framework for estimating accuracy",
ICML 2018. There it is one support vector machine for each threshold, without the last three features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import expit, logit

from trueup._base.types import Booleans, Floats
from trueup._base.validation import RandomState, as_generator, check_integer, check_number
from trueup.detection.metrics import THRESHOLDS, Pairs, overlaps_of
from trueup.detection.shapes import Mask, Shapes, bitmap, mask_areas, read_mask
from trueup.exceptions import InvalidParameter, InvalidShapes

Pixels = npt.NDArray[np.uint8]

FEATURES = ("boxes", "mask in box", "fill", "size", "stretched")
LEAST_OVERLAP = 0.2  # of boxes; below it masks do not overlap by half
_CLIP = 0.02  # of shares, so that their logits stay of one order
_LARGEST_PRODUCT = 9.0  # of standardised features: a pair far from all others should not rule the fit
_STEP = -1.5  # log of the distance of cut points beforehand, with a small weight
_STEP_WEIGHT = 0.1


def mask_of_box(box: Floats, height: float, width: float) -> Mask:
    """A box as a mask."""
    x, y, w, h = (float(value) for value in box)
    return read_mask([[x, y, x, y + h, x + w, y + h, x + w, y]], height, width)


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """What is known of each pair of a detection and an object before its mask is drawn."""

    values: Floats  # (n_pairs, n_features): the logits of shares, and the logarithm of the size
    can_overlap: Booleans  # (n_pairs,): whether the boxes overlap at all; the masks of other pairs do not
    in_box: Floats  # (n_pairs,)
    boxes: Floats  # (n_pairs,): the overlap of the two boxes


def pair_features(
    pairs: Pairs, detections: Shapes, objects: Shapes, *, features: Sequence[str] = FEATURES
) -> PairFeatures:
    """The features of all pairs."""
    unknown = [name for name in features if name not in FEATURES]
    if unknown or not features:
        raise InvalidParameter(f"features must be some of {', '.join(FEATURES)}, got {', '.join(unknown) or 'none'}")
    if detections.masks is None:
        raise InvalidShapes("detections need masks for their overlap with masks; read results with segmentations")
    own, other = pairs.members
    boxes = overlaps_of(pairs, detections.boxes_only(), objects.boxes_only())
    in_box = overlaps_of(pairs, detections, with_box_masks(objects))
    can_overlap = (boxes >= LEAST_OVERLAP) & ~objects.is_crowd[other]
    sides = detections.boxes[:, 2] * detections.boxes[:, 3]
    fill = mask_areas(detections.masks) / np.maximum(sides, 1.0)
    columns: dict[str, Callable[[], Floats]] = {
        "boxes": lambda: _logits(boxes),
        "mask in box": lambda: _logits(in_box),
        "fill": lambda: _logits(fill)[own],
        "size": lambda: np.log(np.maximum(objects.boxes[other, 2] * objects.boxes[other, 3], 1.0)),
        "stretched": lambda: _logits(stretched_overlaps(pairs, detections, objects, can_overlap)),
    }
    return PairFeatures(np.stack([columns[name]() for name in features], axis=1), can_overlap, in_box, boxes)


def _logits(shares: Floats) -> Floats:
    return np.asarray(logit(np.clip(shares, _CLIP, 1 - _CLIP)))


def with_box_masks(objects: Shapes) -> Shapes:
    """The same with boxes for masks; crowd regions keep theirs, if there are any."""
    sizes = objects.images.sizes[objects.image]
    if np.isnan(sizes).any():
        raise InvalidShapes("boxes become masks in images of known width and height; give the sizes of the images")
    masks = [mask_of_box(box, height, width) for box, (width, height) in zip(objects.boxes, sizes, strict=True)]
    if objects.masks is not None:
        masks = [
            own if is_crowd else box for own, box, is_crowd in zip(objects.masks, masks, objects.is_crowd, strict=True)
        ]
    return replace(objects, masks=tuple(masks))


def stretched_overlaps(pairs: Pairs, detections: Shapes, objects: Shapes, chosen: Booleans) -> Floats:
    """The overlap of a detection's mask with itself put into the object's box; 0 for pairs that are not chosen."""
    assert detections.masks is not None
    own, other = pairs.members
    overlaps = np.zeros(len(own))
    at = np.flatnonzero(chosen)
    at = at[np.argsort(own[at], kind="stable")]  # so that each mask is unpacked once
    last, pixels = -1, np.zeros((0, 0), dtype=np.uint8)
    for pair in at:
        if own[pair] != last:
            last = int(own[pair])
            pixels = bitmap(detections.masks[last])
        overlaps[pair] = _overlap_with_stretched(pixels, detections.boxes[last], objects.boxes[other[pair]])
    return overlaps


def stretch(pixels: Pixels, box: Floats, onto: Floats) -> tuple[Pixels, slice, slice]:
    """A mask stretched from its box onto another one: its pixels there, and the rows and columns they fill."""
    height, width = pixels.shape
    columns = np.arange(max(int(onto[0]), 0), min(int(np.ceil(onto[0] + onto[2])), width))
    rows = np.arange(max(int(onto[1]), 0), min(int(np.ceil(onto[1] + onto[3])), height))
    from_x = box[0] + (columns + 0.5 - onto[0]) / max(onto[2], 1.0) * box[2]
    from_y = box[1] + (rows + 0.5 - onto[1]) / max(onto[3], 1.0) * box[3]
    x, y = np.clip(from_x.astype(int), 0, width - 1), np.clip(from_y.astype(int), 0, height - 1)
    first_row, first_column = (int(rows[0]), int(columns[0])) if len(rows) and len(columns) else (0, 0)
    return (
        pixels[np.ix_(y, x)],
        slice(first_row, first_row + len(rows)),
        slice(first_column, first_column + len(columns)),
    )


def _overlap_with_stretched(pixels: Pixels, box: Floats, onto: Floats) -> float:
    moved, rows, columns = stretch(pixels, box, onto)
    x, y = int(box[0]), int(box[1])
    area = float(
        np.count_nonzero(pixels[max(y, 0) : int(np.ceil(box[1] + box[3])), max(x, 0) : int(np.ceil(box[0] + box[2]))])
    )
    common = float(np.count_nonzero(moved & pixels[rows, columns]))
    union = area + float(np.count_nonzero(moved)) - common
    return common / union if union else 0.0


def design_matrix(values: Floats, among: Booleans) -> Floats:
    """Standardised features, their squares and products; means and deviations are of the rows `among`."""
    main = _standardised(values, among)
    first, second = np.triu_indices(values.shape[1])
    products = np.clip(main[:, first] * main[:, second], -_LARGEST_PRODUCT, _LARGEST_PRODUCT)
    return np.concatenate([main, _standardised(products, among)], axis=1)


def _standardised(values: Floats, among: Booleans) -> Floats:
    if not among.any():
        return np.zeros_like(values)
    spread = values[among].std(axis=0)
    return np.asarray((values - values[among].mean(axis=0)) / np.where(spread > 0, spread, 1.0))


@dataclass(frozen=True, eq=False)
class LearnedOverlap:
    """The chance of an overlap by at least each threshold, given features; see `fit_overlap`."""

    thresholds: Floats  # (n_thresholds,)
    cuts: Floats  # (n_thresholds,): increasing
    weights: Floats  # (n_columns,): of the columns of `design_matrix`

    def chances(self, design: Floats) -> Floats:
        """P(overlap ≥ t), shape (n_pairs, n_thresholds); falls along each row."""
        return np.asarray(expit((design @ self.weights)[:, None] - self.cuts))

    def draw(self, design: Floats, *, n_draws: int, random_state: RandomState = None) -> Floats:
        """Overlaps drawn for each pair, shape (n_draws, n_pairs): in the middle between two thresholds.

        The draws of a pair are spread evenly over its chances, so that few of them do.
        """
        check_integer(n_draws, name="n_draws", low=1)
        rng = as_generator(random_state)
        places = rng.permuted(np.tile(np.arange(n_draws), (len(design), 1)), axis=1).T
        uniform = (places + rng.random(places.shape)) / n_draws
        chances = self.chances(design)
        reached = np.zeros(uniform.shape, dtype=np.int64)
        for k in range(len(self.thresholds)):
            reached += uniform < chances[:, k]
        edges = np.concatenate([[0.0], self.thresholds, [1.0]])
        return np.asarray((edges[reached] + edges[reached + 1]) / 2 * (reached > 0))


def fit_overlap(
    design: Floats, overlaps: Floats, *, thresholds: Floats = THRESHOLDS, ridge: float = 1.0
) -> LearnedOverlap:
    """Fit one model for all thresholds (proportional odds with ordered cut points) on pairs with a known overlap.

    Parameters
    ----------
    design : array of shape (n_pairs, n_columns). From `design_matrix`.
    overlaps : array of shape (n_pairs,). Of masks.
    thresholds : array of shape (n_thresholds,). Increasing.
    ridge : float. How strongly weights are drawn towards 0: a normal prior with this precision.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> boxes = rng.uniform(0.4, 1.0, size=(400, 1))
    >>> design = design_matrix(boxes, np.ones(400, dtype=bool))
    >>> model = fit_overlap(design, boxes[:, 0] - 0.1 * rng.random(400))
    >>> model.chances(design[[boxes.argmin(), boxes.argmax()]])[:, 0].round(1).tolist()  # by half
    [0.0, 1.0]
    """
    precision = check_number(ridge, name="ridge", low=0.0, strict=True)
    if design.ndim != 2 or overlaps.shape != design.shape[:1] or not len(overlaps):
        raise InvalidParameter(
            f"overlaps must be one for each row of the design, at least one, got the shapes {overlaps.shape} and "
            f"{design.shape}; vet an object first"
        )
    n_cuts = len(thresholds)
    level = np.searchsorted(thresholds - 1e-12, overlaps, side="right")  # how many thresholds each overlap reaches

    def loss(parameters: Floats) -> tuple[float, Floats]:
        steps, weights = parameters[1:n_cuts], parameters[n_cuts:]
        cuts = _cuts(parameters[:n_cuts])
        ends = np.concatenate([[-np.inf], cuts, [np.inf]])
        place = design @ weights
        above, below = expit(place - ends[level]), expit(place - ends[level + 1])
        chance = np.maximum(above - below, 1e-12)
        slope_above, slope_below = above * (1 - above) / chance, below * (1 - below) / chance
        value = -np.log(chance).sum() + precision / 2 * weights @ weights
        value += _STEP_WEIGHT / 2 * ((steps - _STEP) ** 2).sum()
        by_cut = np.bincount(level, slope_above, n_cuts + 2) - np.bincount(level + 1, slope_below, n_cuts + 2)
        later = np.cumsum(by_cut[1:-1][::-1])[::-1]
        gradient = np.concatenate(
            [
                later[:1],
                later[1:] * np.exp(steps) + _STEP_WEIGHT * (steps - _STEP),
                design.T @ (slope_below - slope_above) + precision * weights,
            ]
        )
        return float(value), gradient

    start = np.concatenate([[0.0], np.full(n_cuts - 1, _STEP), np.zeros(design.shape[1])])
    best = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B").x
    return LearnedOverlap(np.asarray(thresholds), _cuts(best[:n_cuts]), best[n_cuts:])


def _cuts(parameters: Floats) -> Floats:
    return np.asarray(parameters[0] + np.concatenate([[0.0], np.cumsum(np.exp(parameters[1:]))]))
