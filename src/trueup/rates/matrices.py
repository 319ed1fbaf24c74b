"""A classifier's confusion matrix from the labels' one, for any number of classes; after Lam and Stork (2003)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.types import Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_distribution,
    check_integer,
    check_level,
)
from trueup.exceptions import InvalidParameter
from trueup.metrics import get_metric
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import plain
from trueup.rates.errors import check_square

_ROUNDING = 1e-9
_SINGULAR = 1e-6  # smallest singular value; an error of a cell would be blown up a million times
_METHODS: tuple[Literal["delta", "bootstrap"], ...] = ("delta", "bootstrap")


@dataclass(frozen=True, eq=False)
class RecoveredConfusion:
    """A classifier's confusion matrix behind noisy labels; made by `recover_confusion`.

    Attributes
    ----------
    joint : array of shape (..., C, C). J[z, ŷ], the observed shares of label and prediction.
    labeler : array of shape (..., C, C). L[y, z] = P(z | y).
    n : array of shape (...). Items that J was counted on; nan if unknown.
    n_checked : array of shape (..., C). Checked labels of each true class that L was counted on; inf if L is known.
    """

    joint: Floats
    labeler: Floats
    n: Floats
    n_checked: Floats

    @property
    def raw(self) -> Floats:
        """L⁻ᵀJ, the joint distribution of truth and prediction as it comes out, shape (..., C, C); cells may be < 0."""
        return np.asarray(np.linalg.solve(_transposed(self.labeler), self.joint))

    @property
    def truth(self) -> Floats:
        """P(y, ŷ): the nearest to `raw` without negative cells and with its error rate, if that is possible.

        Shape (..., C, C).
        """
        return _truncated(self.raw)

    @property
    def truncated(self) -> bool | npt.NDArray[np.bool_]:
        """Whether `raw` had negative cells, by sampling error or because errors are not independent."""
        below = np.asarray((self.raw < -_ROUNDING).any(axis=(-2, -1)))
        return bool(below) if below.ndim == 0 else below

    @property
    def prior(self) -> Floats:
        """π(y), shape (..., C)."""
        return np.asarray(self.truth.sum(axis=-1))

    @property
    def confusion(self) -> Floats:
        """M[y, ŷ] = P(ŷ | y), shape (..., C, C); a class that does not occur has a row of nan."""
        rows = self.prior[..., None]
        shares = np.divide(self.truth, rows, out=np.full(self.truth.shape, np.nan), where=rows > _ROUNDING)
        return np.asarray(shares)

    def metric(self, name: str) -> float | Floats:
        """Any metric by name, such as ``"precision"``, ``"recall:2"``, ``"error_rate"``; classes are 0, 1, …"""
        return plain(self._metric(name)(self.truth))

    @property
    def error(self) -> float | Floats:
        """The true error rate, 1 − trace of `truth`: `raw_error`, truncated to [0, 1]."""
        return self.metric("error_rate")

    @property
    def raw_error(self) -> float | Floats:
        """1 − trace of `raw`, which may be negative."""
        return plain(1 - np.trace(self.raw, axis1=-2, axis2=-1))

    @property
    def error_std(self) -> float | Floats:
        """The standard error of `raw_error` by the delta method, with the uncertainty of L; nan without `n`."""
        return plain(np.sqrt(_error_variance(self.joint, self.labeler, self.n, self.n_checked)))

    def error_interval(
        self,
        level: float = 0.95,
        method: Literal["delta", "bootstrap"] = "delta",
        *,
        n_draws: int = 4000,
        random_state: RandomState = 0,
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """A confidence interval of the true error rate, truncated to [0, 1]; nan without `n`.

        "delta" is `raw_error` ± z times `error_std`; "bootstrap" takes percentiles over draws of J and L from their
        Dirichlet posteriors.
        """
        level = check_level(level)
        if check_choice(method, _METHODS, name="method") == "delta":
            half = scipy.stats.norm.isf((1 - level) / 2) * np.asarray(self.error_std)
            ends = np.stack([self.raw_error - half, self.raw_error + half])
        else:
            drawn = 1 - np.trace(self._draws(n_draws, random_state), axis1=-2, axis2=-1)
            ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        low, high = (plain(np.where(np.isnan(self.n), np.nan, np.clip(end, 0.0, 1.0))) for end in ends)
        return low, high  # type: ignore[return-value]

    def estimate(self, name: str, *, n_draws: int = 4000, random_state: RandomState = 0) -> Estimate:
        """The distribution of any metric by name, for one matrix; draws of J and L, truncated like `truth`.

        Precision of one class, or recall: ``estimate("precision:1")``, ``estimate("recall:1")``.
        """
        if self.joint.ndim > 2 or np.isnan(self.n):
            raise InvalidParameter(
                f"estimate() needs one matrix and its n, got shape {self.joint.shape} and n {self.n}; pass counts"
            )
        metric = self._metric(name)
        draws = metric(_truncated(self._draws(n_draws, random_state)))
        return DrawnEstimate(draws, name=metric.name, bounds=metric.bounds)

    def _metric(self, name: str) -> Any:
        return get_metric(name, list(range(self.joint.shape[-1])))

    def _draws(self, n_draws: int, random_state: RandomState) -> Floats:
        """Draws of `raw`, shape (n_draws, ..., C, C), one pseudo-count spread over J and over each row of L."""
        rng, size = as_generator(random_state), check_integer(n_draws, name="n_draws", low=1)
        c = self.joint.shape[-1]
        n = np.where(np.isnan(self.n), 1.0, self.n)[..., None, None]
        joint = rng.standard_gamma(self.joint * n + 1 / c**2, (size, *self.joint.shape))
        joint /= joint.sum(axis=(-2, -1), keepdims=True)
        is_given = np.isinf(self.n_checked)[..., None]
        counts = self.labeler * np.where(is_given, 1.0, self.n_checked[..., None])
        rows = rng.standard_gamma(counts + 1 / c, (size, *counts.shape))
        rows /= rows.sum(axis=-1, keepdims=True)
        labeler = np.where(is_given, self.labeler, rows)
        return np.asarray(np.linalg.solve(_transposed(labeler), joint))

    def __repr__(self) -> str:
        if self.joint.ndim > 2:
            return f"RecoveredConfusion({self.joint.shape[:-2]} matrices of {self.joint.shape[-1]} classes)"
        cut = ", truncated" if self.truncated else ""
        interval = ""
        if not np.isnan(self.n):
            low, high = self.error_interval()
            interval = f", 95% interval {low:.4f} to {high:.4f}"
        return f"RecoveredConfusion({self.joint.shape[-1]} classes, error {self.error:.4f}{interval}{cut})"


def joint_distribution(*, confusion: npt.ArrayLike, labeler: npt.ArrayLike, prior: npt.ArrayLike) -> Floats:
    """The shares of label and prediction, J = Lᵀ diag(π) M, if both err independently given the truth.

    Returns an array of shape (..., C, C), J[z, ŷ].

    Parameters
    ----------
    confusion : array of shape (..., C, C). M[y, ŷ] = P(ŷ | y) of the classifier.
    labeler : array of shape (..., C, C). L[y, z] = P(z | y).
    prior : array of shape (..., C). π.

    Examples
    --------
    >>> joint_distribution(confusion=[[0.9, 0.1], [0.2, 0.8]], labeler=[[1, 0], [0, 1]], prior=[0.5, 0.5]).tolist()
    [[0.45, 0.05], [0.1, 0.4]]
    """
    m = check_distribution(check_square(confusion, name="confusion"), name="confusion")
    own = check_distribution(check_square(labeler, name="labeler"), name="labeler", n=m.shape[-1])
    pi = check_distribution(prior, name="prior", n=m.shape[-1])
    return np.asarray(_transposed(own) @ (pi[..., None] * m))


def recover_confusion(
    *,
    joint: npt.ArrayLike,
    labeler: npt.ArrayLike,
    n: npt.ArrayLike | None = None,
    n_checked: npt.ArrayLike | None = None,
    labelers: Sequence[Any] | None = None,
) -> RecoveredConfusion:
    """A classifier's confusion matrix from how often labels and predictions meet, M = D⁻¹ L⁻ᵀ J.

    J = Lᵀ D M if labels and classifier err independently given the truth, with D = diag(π) and π = L⁻ᵀ·(shares of
    the labels). Leading axes broadcast, e.g. one matrix for each labeler.

    Parameters
    ----------
    joint : array of shape (..., C, C). Counts of label (rows) and prediction (columns), or their shares.
    labeler : array of shape (..., C, C)
        P(label | truth), rows the truth; or counts of checked labels, which carry their own `n_checked`.
    n : int or array of shape (...), optional. The number of items, if `joint` has shares.
    n_checked : int or array of shape (..., C), optional
        Checked labels of each true class, if `labeler` has shares that were estimated. Without it L is known.
    labelers : sequence, optional. Names for the first axis of `labeler`, for the error message.
    """
    j, own = check_square(joint, name="joint"), check_square(labeler, name="labeler")
    if j.shape[-1] != own.shape[-1]:
        raise InvalidParameter(
            f"joint and labeler must have the same classes, got {j.shape[-1]} and {own.shape[-1]}; add empty classes"
        )
    shares, sizes = _as_shares(j, n)
    rows, checked = _as_rows(own, n_checked)
    _check_invertible(rows, labelers)
    lead = np.broadcast_shapes(shares.shape[:-2], rows.shape[:-2])
    c = j.shape[-1]
    shapes = ((*lead, c, c), (*lead, c, c), lead, (*lead, c))
    parts = zip((shares, rows, sizes, checked), shapes, strict=True)
    return RecoveredConfusion(*(np.broadcast_to(part, shape) for part, shape in parts))


def _as_shares(joint: Floats, n: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    """J as shares, and the number of items behind it."""
    total = joint.sum(axis=(-2, -1))
    if (total <= 0).any():
        raise InvalidParameter("joint must have some items, got none; count labels and predictions first")
    counts = not np.allclose(total, 1.0, atol=1e-6)
    if n is None:
        return joint / total[..., None, None], total if counts else np.full(total.shape, np.nan)
    sizes = np.asarray(n, dtype=float)
    if not (sizes >= 1).all() or (counts and not np.allclose(sizes, total)):
        raise InvalidParameter(f"n must be the number of items of joint, got {n!r}; leave it out if joint has counts")
    return joint / total[..., None, None], np.broadcast_to(sizes, total.shape)


def _as_rows(labeler: Floats, n_checked: npt.ArrayLike | None) -> tuple[Floats, Floats]:
    """L with rows that sum to one, and the number of checked labels behind each."""
    total = labeler.sum(axis=-1)
    if (total <= 0).any():
        empty = np.argwhere(total <= 0)[0].tolist()
        source = f" of labeler {empty[0]}" if len(empty) > 1 else ""
        raise InvalidParameter(
            f"labeler must have a label for each true class, got none for class {empty[-1]}{source}: its errors "
            "cannot be identified; check labels of that class or leave it out"
        )
    counts = not np.allclose(total, 1.0, atol=1e-6)
    if n_checked is None:
        return labeler / total[..., None], total if counts else np.full(total.shape, np.inf)
    sizes = np.asarray(n_checked, dtype=float)
    if counts or not (sizes >= 1).all():
        raise InvalidParameter(
            f"n_checked must be at least 1 and is for shares only, got {n_checked!r}; "
            "leave it out if labeler has counts"
        )
    return labeler / total[..., None], np.broadcast_to(sizes, total.shape)


def _truncated(raw: Floats) -> Floats:
    """The nearest matrix without negative cells that has the same error rate, if that is one from 0 to 1."""
    is_right = np.eye(raw.shape[-1], dtype=bool)
    right = np.clip(np.trace(raw, axis1=-2, axis2=-1), 0.0, 1.0)
    cells = np.empty(raw.shape)
    cells[..., is_right] = _nearest(raw[..., is_right], right)
    cells[..., ~is_right] = _nearest(raw[..., ~is_right], 1 - right)
    return cells


def _nearest(values: Floats, total: Floats) -> Floats:
    """The nearest numbers along the last axis that are not negative and have this sum: less of each, down to zero."""
    order = -np.sort(-values, axis=-1)
    less = (np.cumsum(order, axis=-1) - total[..., None]) / np.arange(1, values.shape[-1] + 1)
    n_kept = np.maximum((order > less).sum(axis=-1, keepdims=True), 1)
    return np.maximum(values - np.take_along_axis(less, n_kept - 1, axis=-1), 0.0)


def _transposed(matrices: Floats) -> Floats:
    """Each matrix transposed, leading axes kept."""
    return np.swapaxes(matrices, -1, -2)


def _check_invertible(labeler: Floats, names: Sequence[Any] | None) -> None:
    """Every L must have an inverse; the sentence says whose has none, and why."""
    least = np.linalg.svd(labeler, compute_uv=False)[..., -1]
    if (least > _SINGULAR).all():
        return
    first = tuple(np.argwhere(np.atleast_1d(least) <= _SINGULAR)[0].tolist())
    matrix = labeler if labeler.ndim == 2 else labeler[first]
    source = "the labeler"
    if names is not None and len(names) == len(labeler) and labeler.ndim > 2:
        source = f"labeler {names[first[0]]!r}"
    elif labeler.ndim > 2:
        source = f"labeler {first[0] if len(first) == 1 else first!r}"
    gaps = np.abs(matrix[:, None] - matrix[None]).sum(axis=-1) / 2
    gaps[np.diag_indices_from(gaps)] = np.inf
    a, b = np.unravel_index(int(np.argmin(gaps)), gaps.shape)
    why = f"classes {a} and {b} get the same labels" if gaps[a, b] < 1e-5 else "its rows are linearly dependent"
    raise InvalidParameter(
        f"labeler must have confusion matrices that can be inverted, got a singular one for {source}: {why}, so the "
        "classifier's rates cannot be identified; leave that labeler out or merge the classes"
    )


def _error_variance(joint: Floats, labeler: Floats, n: Floats, n_checked: Floats) -> Floats:
    """Variance of 1 − tr(L⁻ᵀJ) by the delta method, shape (...)."""
    inverse = np.asarray(np.linalg.inv(labeler), dtype=float)
    c = labeler.shape[-1]
    cells = (joint * n[..., None, None] + 1 / c**2) / (n[..., None, None] + 1)
    first = (cells * inverse**2).sum(axis=(-2, -1)) - (cells * inverse).sum(axis=(-2, -1)) ** 2
    slope = _transposed(inverse) @ joint @ _transposed(inverse)
    is_given = np.isinf(n_checked)
    size = np.where(is_given, 1.0, n_checked)[..., None]
    rows = (labeler * size + 1 / c) / (size + 1)
    spread = (rows * slope**2).sum(axis=-1) - (rows * slope).sum(axis=-1) ** 2
    second = np.where(is_given, 0.0, spread / size[..., 0]).sum(axis=-1)
    return np.asarray(np.maximum(first, 0.0) / n + second)
