"""Unbiased confusion counts: the noise of consolidated labels is inverted (TARS, advice 1)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer
from trueup.data.labels import Labels
from trueup.estimators.counts import (
    JOINT_DRAWS,
    BootstrapEstimate,
    CountsPosterior,
    ScoreEstimate,
    frozen,
    linear_ratio,
    point_estimate,
)
from trueup.estimators.problem import Solution, covariance_root
from trueup.estimators.published.tars2018.consolidation import (
    MAX_NUMBERS,
    N_DRAWS,
    SINGULAR,
    Consolidation,
    Rule,
    consolidate,
)
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.metrics import Metric
from trueup.noise import Confusion, NoiseModel
from trueup.posteriors import DiscreteEstimate, Estimate, JointEstimate

Interval = Literal["delta", "bootstrap"]
_INTERVALS: tuple[Interval, ...] = ("delta", "bootstrap")
_HELD = 1 << 22  # numbers held at once
_RARE = 1e-10  # the least frequency of an answer
_STEP = 1e-6  # of the numerical derivative, in shares
_FLAT_DRAWS = 4000
_REMEDY = "leave such labelers out (`labels.without_labeler`), or add gold (`labels.with_gold`)"


def unbiased(
    labels: Labels,
    predictions: npt.ArrayLike,
    *,
    noise: NoiseModel,
    interval: Interval = "delta",
    rule: Rule = "map",
    n_bootstrap: int = 2000,
    max_numbers: int = MAX_NUMBERS,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> Solution:
    r"""Unbiased true and false positives and negatives, for any number of classes [1]_.

    The votes of item i become one label :math:`y'_i` with a confusion matrix :math:`R_i` of its own (`consolidate`).
    Since :math:`E[e_{y'_i} \mid y_i] = R_i^\top e_{y_i}`, the vector :math:`w_i = R_i^{-\top} e_{y'_i}` is an
    unbiased estimate of the truth's indicator (for two classes, eq. 7), and

    .. math:: \widehat{N}_{y \hat y} = \sum_{i : \hat y_i = \hat y} w_{i y}

    of the confusion counts (eq. 8). The accuracy is unbiased, a quotient of counts up to O(1/n). The target is the
    population the items came from. Labels must err independently of the predictions given the truth, and the matrices
    are taken as known: fitted ones add an uncertainty that is not in the interval.

    .. [1] Dolatshah, Teoh, Wang and Pei (2018), Section 4; see `trueup.estimators.published.tars2018`.

    Parameters
    ----------
    labels, predictions, noise : as for `majority` and `consolidate`; gold items enter exactly
    interval : {"delta", "bootstrap"}
        Analytic (a test of each value for quotients of counts, the delta method for other metrics), or percentiles of
        `n_bootstrap` resamples of the items.
    rule, max_numbers, n_draws : as for `consolidate`

    Examples
    --------
    >>> import trueup as tu
    >>> data = tu.simulate.tars(n_items=2000, noise_rates=0.2, random_state=0)
    >>> noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    >>> counts = unbiased(data.labels, data.predictions, noise=noise).counts
    >>> counts.counts.sum().round(6), bool(abs(counts.shares.trace() - data.accuracy) < 0.05)
    (np.float64(2000.0), True)
    """
    how = check_choice(interval, _INTERVALS, name="interval")
    n_bootstrap = check_integer(n_bootstrap, name="n_bootstrap", low=1)
    codes = np.asarray(predictions)
    if (codes >= 0).any():  # other items have nothing to say here
        labels, codes = labels.select(items=labels.items[codes >= 0]), codes[codes >= 0]
    rng = as_generator(random_state)
    consolidated = consolidate(labels, noise, rule=rule, max_numbers=max_numbers, n_draws=n_draws, random_state=rng)
    used = np.flatnonzero(consolidated.usable & (codes >= 0))
    if not len(used):
        lost = np.flatnonzero((codes >= 0) & consolidated.of_items(consolidated.singular))
        if len(lost):
            raise InvalidParameter(f"{_why_singular(labels, consolidated, lost)}; {_REMEDY}")
        raise InvalidLabels("no item has both votes and a prediction, got nothing to compare; check the items' names")
    weights, counts, cells = _cells(consolidated, codes, used, labels.n_classes)
    shares, moments = _sums(weights, counts, cells, labels.n_classes)
    draws = _resample(weights, counts, cells, shares, moments, n_bootstrap, rng) if how == "bootstrap" else None
    posterior = UnbiasedCounts(shares, moments, n_items=len(used), draws=draws)
    true = shares.sum(axis=1, keepdims=True)
    return Solution(
        posterior,
        confusion=np.divide(shares, true, out=np.full_like(shares, np.nan), where=true > 0),
        diagnostics={
            "n_used": float(len(used)),
            "n_matrices": float(len(consolidated.matrices)),
            "largest_weight": float(np.abs(weights).max()),
            "matrix_error": float(consolidated.errors.max(initial=0.0)),
        },
        notes=tuple(_notes(labels, noise, consolidated, codes, posterior, rule == "map")),
    )


def inverse_weights(matrices: npt.ArrayLike, frequencies: npt.ArrayLike | None = None) -> Floats:
    r"""Unbiased estimates of the truth's indicator for each label: rows of W with R W = I.

    For square matrices W is :math:`R^{-1}`. With more answers than classes there are many; of these

    .. math:: W = D^{-1} R^\top (R D^{-1} R^\top)^{-1}

    has the least :math:`\sum_a d_a \lVert w_a \rVert^2`. If d are the frequencies of the answers, this is the least
    variance, and the weights of each answer sum to 1. They are nan where a matrix cannot be inverted.

    Parameters
    ----------
    matrices : array of shape (..., n_classes, n_answers). R; rows are the truth.
    frequencies : array of shape (..., n_answers), optional. d; equal by default, which gives the pseudo-inverse.

    Examples
    --------
    >>> inverse_weights([[0.8, 0.2], [0.2, 0.8]]).round(3)
    array([[ 1.333, -0.333],
           [-0.333,  1.333]])
    """
    R = np.asarray(matrices, dtype=float)
    usable = (np.linalg.svd(R, compute_uv=False)[..., -1] >= SINGULAR)[..., None, None]
    if R.shape[-1] == R.shape[-2]:
        return np.where(usable, np.linalg.inv(np.where(usable, R, np.eye(R.shape[-1]))), np.nan)
    d = np.ones(R.shape[-1]) if frequencies is None else np.maximum(np.asarray(frequencies, dtype=float), _RARE)
    transposed = np.swapaxes(R, -1, -2) / d[..., None]
    gram = np.where(usable, R @ transposed, np.eye(R.shape[-2]))
    return np.where(usable, transposed @ np.linalg.inv(gram), np.nan)


def _cells(consolidated: Consolidation, codes: Codes, used: Positions, c: int) -> tuple[Floats, Floats, Codes]:
    """Items that add the same: their weights (m, C), how many there are (m,), and their prediction (m,)."""
    inverse = inverse_weights(consolidated.matrices)
    key = (consolidated.group[used] * c + consolidated.codes[used]) * c + codes[used]
    distinct, counts = np.unique(key, return_counts=True)
    group_label, prediction = np.divmod(distinct, c)
    return inverse.reshape(-1, c)[group_label], counts.astype(float), prediction


def _sums(weights: Floats, counts: Floats, predictions: Codes, c: int) -> tuple[Floats, Floats]:
    """The mean of X and, for each prediction, of w wᵀ."""
    shares, moments = np.zeros((c, c)), np.zeros((c, c, c))
    for prediction in range(c):
        mine = predictions == prediction
        scaled = weights[mine] * (counts[mine] / counts.sum())[:, None]
        shares[:, prediction], moments[prediction] = scaled.sum(axis=0), weights[mine].T @ scaled
    return shares, moments


def _resample(
    weights: Floats, counts: Floats, codes: Codes, shares: Floats, moments: Floats, n: int, rng: np.random.Generator
) -> Floats:
    """Shares of `n` resamples of the items; from the normal limit where there are very many different items."""
    total, c = int(counts.sum()), weights.shape[1]
    if n * len(counts) > (1 << 28):  # cells × resamples from which resamples come from their normal limit
        return UnbiasedCounts(shares, moments, n_items=total).draw_counts(n, rng)
    added = (weights[:, :, None] * np.eye(c)[codes][:, None, :]).reshape(len(counts), -1)  # by one such item
    rows = max(_HELD // len(counts), 1)
    sizes = [min(rows, n - start) for start in range(0, n, rows)]
    sums = np.concatenate([rng.multinomial(total, counts / total, size=size) @ added for size in sizes])
    return np.asarray(sums.reshape(n, c, c) / total)


def _why_singular(labels: Labels, consolidated: Consolidation, lost: Positions) -> str:
    """Which labelers, which classes and on how many items, in one clause."""
    group = int(np.bincount(consolidated.group[lost]).argmax())
    matrix = consolidated.matrices[group]
    apart = np.abs(matrix[:, None] - matrix[None]).sum(axis=2) + 9 * np.eye(len(matrix))
    a, b = np.unravel_index(int(apart.argmin()), apart.shape)
    names = [repr(name) for name in labels.labelers[consolidated.labelers[group][:3]].tolist()]
    voters = f"labeler {names[0]}" if len(names) == 1 else f"labelers {', '.join(names)}"
    classes = labels.classes.tolist()
    alike = f"the same for classes {classes[a]!r} and {classes[b]!r}"
    if apart.min() > 1e-3:
        alike = "a mixture of what other classes give for some class"
    cause = f"the answers of {voters} are {alike}"
    return f"the truth of {len(lost)} items cannot be recovered from their votes, because {cause}"


def _notes(
    labels: Labels, noise: NoiseModel, consolidated: Consolidation, codes: Codes, counts: UnbiasedCounts, by_prior: bool
) -> list[str]:
    notes: list[str] = []
    if not isinstance(noise, Confusion):
        notes.append(
            "The confusion matrices were fitted to these votes and are taken as known: their uncertainty is not in "
            'the intervals; `method="bayes"` has it.'
        )
    lost = np.flatnonzero((codes >= 0) & consolidated.of_items(consolidated.singular))
    if len(lost):
        why = _why_singular(labels, consolidated, lost)
        notes.append(f"{why[0].upper()}{why[1:]}; these items are left out.")
    silent = int(((codes >= 0) & (consolidated.group < 0)).sum())
    if silent:
        notes.append(f"{silent} items with a prediction have no votes and are left out.")
    without_prior = (codes >= 0) & consolidated.of_items(consolidated.likeliest & ~consolidated.singular)
    if by_prior and without_prior.any():
        notes.append(
            f"On {int(without_prior.sum())} items the prior outweighs any votes, so the likeliest class without the "
            "prior is taken as their label."
        )
    worst = float(consolidated.errors.max(initial=0.0))
    if worst > 0.01:
        notes.append(f"Confusion matrices of consolidated labels are known up to {worst:.2g} only; raise `n_draws`.")
    # A share that is negative beyond chance says that the model of the labels is wrong.
    worst, classes = -4.0, labels.classes.tolist()
    impossible: list[str] = []
    for y, t in np.argwhere(counts.shares < 0).tolist():
        cell = np.zeros(counts.shares.shape)
        cell[y, t] = 1.0
        se = counts.covariance(cell, cell) ** 0.5
        if se > 0 and counts.shares[y, t] / se < worst:
            worst = float(counts.shares[y, t] / se)
            impossible = [
                f"The estimated share of class {classes[y]!r} predicted as {classes[t]!r} is negative by "
                f"{-worst:.0f} standard errors: the labelers' rates are wrong, or their errors depend on the "
                "classifier's."
            ]
    return notes + impossible


class UnbiasedCounts(CountsPosterior):
    r"""Unbiased shares of the cells (truth × prediction) in the population, with their covariance.

    Item i adds :math:`X_i = w_i e_{\hat y_i}^\top` with :math:`w_i = R_i^{-\top} e_{y'_i}`, and the share of a cell is
    the mean of :math:`X_i`. A metric that is a quotient of two linear forms, :math:`\theta = \langle A, \mu\rangle /
    \langle B, \mu\rangle`, is tested at each value: the mean of :math:`\langle A - \theta B, X_i\rangle` has
    expectation 0 and the variance

    .. math::

        V(\theta)/n, \qquad V(\theta) = V_\text{labels}(\theta) + D\,\theta(1-\theta)\,(c(1-\theta) + \kappa\theta)

    with :math:`D = \langle B, \mu\rangle`. The first term is what wrong labels add; the second is what drawing the
    items adds, for a share :math:`D\theta(1-\theta)`. Inverting the test gives Wilson's interval where labels are
    perfect, and for the accuracy with labels that are wrong at one rate β the interval of Dolatshah et al. (eq. 15)
    with the variance at the tested value. Other metrics are linearised (delta method). Near the ends of a metric's
    range `ScoreEstimate` keeps intervals inside, and as sure as they say.

    Parameters
    ----------
    shares : array of shape (n_classes, n_classes). The mean of X_i, rows the truth; sums to 1, may be negative.
    moments : array of shape (n_classes, n_classes, n_classes)
        For each prediction the mean over all items of w_i w_iᵀ, 0 for items of other predictions.
    draws : array of shape (n_draws, n_classes, n_classes), optional. Shares of resampled items, for the bootstrap.
    """

    def __init__(
        self, shares: npt.ArrayLike, moments: npt.ArrayLike, *, n_items: int, draws: npt.ArrayLike | None = None
    ) -> None:
        self.shares = frozen(shares)
        self.moments = frozen(moments)
        self.n_items = check_integer(n_items, name="n_items", low=1)
        self.draws = None if draws is None else frozen(draws)

    @property
    def counts(self) -> Floats:
        """The unbiased counts: shares times the number of items."""
        return np.asarray(self.shares * self.n_items)

    @property
    def mean_counts(self) -> Floats:
        return self.shares

    def covariance(self, a: Floats, b: Floats) -> float:
        """The covariance of the means of `a, X` and `b, X`, for weights of shape (n_classes, n_classes)."""
        mixed = self._moment(a, b) - float((a * self.shares).sum() * (b * self.shares).sum())
        return mixed / max(self.n_items - 1, 1)

    def _moment(self, a: Floats, b: Floats) -> float:
        """The mean of `a, X``b, X`; X has one column that is not 0, so blocks by prediction suffice."""
        return float(np.einsum("yt,tyv,vt->", a, self.moments, b))

    def estimate(self, metric: Metric) -> Estimate:
        value = float(metric(self.shares))
        ratio = linear_ratio(metric, self.n_classes)
        if self.draws is not None and not math.isnan(value):
            return self._spread(metric, value, metric(self.draws))
        if ratio is not None:
            return self._tested(*ratio, metric)
        if math.isnan(value):
            return DiscreteEstimate([math.nan], [1.0], bounds=metric.bounds, name=metric.name)
        slope = self.gradient(metric)
        variance = self.covariance(slope, slope) if np.isfinite(slope).all() else math.nan
        if not variance > 0:  # at an end of its range, where a metric may be flat: see how far its values reach
            return self._spread(metric, value, metric(self.draw_counts(_FLAT_DRAWS, 0)))
        se = math.sqrt(variance)
        return ScoreEstimate(value, lambda x: np.full(np.shape(x), se), bounds=metric.bounds, name=metric.name)

    def _tested(self, a: Floats, b: Floats, metric: Metric) -> Estimate:
        total = float((b * self.shares).sum())
        right = float((a * self.shares).sum())
        bounds = metric.bounds
        if not (b * np.abs(self.shares)).any():
            return DiscreteEstimate([math.nan], [1.0], bounds=bounds, name=metric.name)
        weight, other = float(a.max()), self._other_weight(a, b)
        noise = [self._label_noise(a, a), self._label_noise(a, b), self._label_noise(b, b)]

        def deviation(x: Floats) -> Floats:
            labels = np.maximum(noise[0] - 2 * x * noise[1] + x**2 * noise[2], 0.0)
            items = total * x * (1 - x) * (weight * (1 - x) + other * x)
            return np.asarray(np.sqrt((labels + items) / self.n_items) / total)

        if total <= 0:  # a denominator that chance made negative: no value can be rejected
            return ScoreEstimate(math.nan, lambda x: np.full(np.shape(x), np.inf), bounds=bounds, name=metric.name)
        return ScoreEstimate(right / total, deviation, bounds=bounds, name=metric.name)

    def _other_weight(self, a: Floats, b: Floats) -> float:
        """The mean weight in the denominator of an item that is no success (1, but for F-scores with β ≠ 1)."""
        rest = np.where(a > 0, 0.0, b)
        inside = rest[rest > 0]
        mass = np.maximum(self.shares, 0.0)
        if not inside.size:
            return 1.0
        held = float((rest * mass).sum())
        return float((rest**2 * mass).sum()) / held if held > 0 else float(inside.mean())

    def _label_noise(self, a: Floats, b: Floats) -> float:
        """The mean covariance of `a, X` and `b, X` that wrong labels add: 0 where all labels are perfect."""
        return self._moment(a, b) - float((a * b * self.shares).sum())

    def _spread(self, metric: Metric, value: float, values: Floats) -> Estimate:
        if np.ptp(np.nan_to_num(values)) <= 1e-12:  # draws that are all alike say nothing of the spread
            return point_estimate(metric, value)
        return BootstrapEstimate(value, values, bounds=metric.bounds, name=metric.name)

    def gradient(self, metric: Metric) -> Floats:
        """The derivative of a metric by each share, numerically; shape (n_classes, n_classes)."""
        c, slope = self.n_classes, np.empty((self.n_classes, self.n_classes))
        for y in range(c):  # a row at a time: all steps at once are too many of hundreds of classes
            steps = np.zeros((c, c, c))
            steps[:, y] = _STEP * np.eye(c)
            slope[y] = (metric(self.shares + steps) - metric(self.shares - steps)) / (2 * _STEP)
        return slope

    def joint(self, a: Metric, b: Metric) -> JointEstimate:
        shares = self.draw_counts(JOINT_DRAWS, 0) if self.draws is None else self.draws
        x, y = (np.clip(metric(shares), *metric.bounds) for metric in (a, b))
        return JointEstimate.from_draws(x, y, bounds=(a.bounds, b.bounds), names=(a.name, b.name))

    def cell(self, truth: int, prediction: int) -> Estimate:
        y, yhat = self._check_cell(truth, prediction)
        only = np.zeros((self.n_classes, self.n_classes))
        only[y, yhat] = 1.0
        return self._tested(
            only, np.ones_like(only), Metric("share", lambda counts: counts[..., y, yhat], bounds=(0.0, 1.0))
        )

    def draw_counts(self, n: int, random_state: RandomState = None) -> Floats:
        rng = as_generator(random_state)
        if self.draws is not None:
            return np.asarray(self.draws[rng.integers(len(self.draws), size=check_integer(n, name="n", low=0))])
        c = self.n_classes
        noise = np.empty((check_integer(n, name="n", low=0), c, c))
        for prediction in range(c):
            noise[:, :, prediction] = rng.standard_normal((n, c)) @ covariance_root(self.moments[prediction])
        # Each X sums to 1, so taking μ times the sum away turns second moments into the covariance.
        noise -= self.shares * noise.sum(axis=(1, 2), keepdims=True)
        return np.asarray(self.shares + noise / math.sqrt(self.n_items))

    def draw_truths(self, n: int, random_state: RandomState = None) -> Codes:
        """Not there: a population is no list of items."""
        raise InvalidParameter(
            "the unbiased estimate is about rates of the population and has no items to draw the truth of; use "
            "`method='bayes'` for a metric(y_true, y_pred)"
        )
