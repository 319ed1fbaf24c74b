"""Items that are more or less easy, for all labelers alike."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import expit, log_expit

from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise.averaging import kept_sweeps, likeliest_classes
from trueup.noise.base import Sampler, from_table, warn_if_unidentifiable
from trueup.noise.hamiltonian import MOST_NUMBERS, CollapsingSampler, DistinctItems, Landscape, StepScale
from trueup.noise.subtypes import StateModel

_MANY_CLASSES = 4  # from here on fewer points tell how easy an item is
_MEAN = (1.5, 1.0)  # of the normal law of the raters' mean level, in log-odds
_LEVEL_SCALE = 0.7  # by which the levels of raters differ
_SLOPE_SCALE = 0.3  # by which the logarithms of their slopes do
_SPREAD_SCALE = 1.0  # of the half-normal law of the typical slope
_HYPER = (*_MEAN, _LEVEL_SCALE, _SLOPE_SCALE, _SPREAD_SCALE)
_GROUPS = 3  # of ease, in which the outputs of systems have rows of their own
_FEW_RATERS = 30  # up to which abilities are drawn twice in a sweep
_FIT_SWEEPS = (300, 300)


class SharedDifficulty(StateModel):
    """How easy an item is moves the chance of every labeler to be right on it, so labelers err together.

    Generative model: y_i ~ π, ease d_i ~ N(0, 1); a vote of t on an item of class y is right with probability
    expit(b_ty + g_t d_i), and a wrong one names another answer by e_ty ~ Dir(1). Levels b_ty ~ N(μ_y, 0.7²) around
    μ_y ~ N(1.5, 1), slopes log g_t ~ N(log g, 0.3²) around a half-normal g. So g near zero is independent errors, which
    votes can tell. Drawn together with the truth, with the ease on a grid; a fit is the mean of such draws.

    Parameters
    ----------
    n_points : int, optional
        Of the grid; by default 11, and 7 for more than three classes. With 1 all items are equally easy, and errors are
        independent.
    random_state : int, Generator or None
        Of a fit; the default gives the same each time.

    Attributes
    ----------
    state_prior_, state_class_, state_confusion_, pooled_, confusion_
        As of `Subtypes`; a state is a class and a point of the grid.
    """

    alias = "shared-difficulty"

    def __init__(self, *, n_points: int | None = None, random_state: RandomState = 0) -> None:
        self.n_points = n_points
        self.random_state = random_state

    @property
    def allows_dependence(self) -> bool:
        """Whether labelers may err together given the class: not if all items are equally easy."""
        return self.n_points != 1

    def _extra_choices(self, n_classes: int) -> tuple[int, ...]:
        return ((self._size(n_classes) - 1) * n_classes,)

    def _size(self, n_classes: int) -> int:
        if self.n_points is not None:
            size = check_integer(self.n_points, name="n_points", low=1)
            if size == 2:
                raise InvalidParameter(
                    "⟨n_points⟩ must be 1, for items that are equally easy, or at least 3, got 2; leave it out for the "
                    "default",
                    parameter="n_points",
                )
            return size
        return 11 if n_classes < _MANY_CLASSES else 7

    def fit(self, labels: Labels) -> Self:
        """The mean of the parameters over draws."""
        warn_if_unidentifiable(labels, what=type(self).__name__)
        self._remember(labels)
        rng = as_generator(self.random_state)
        sampler = DifficultySampler(
            labels.n_labelers, labels.n_classes, labels.n_answers, n_points=self._size(labels.n_classes)
        )
        states = sampler.first_states(likeliest_classes(labels), rng)
        warmup, n_draws = _FIT_SWEEPS
        tables = np.zeros((labels.n_labelers * labels.n_answers, sampler.n_states))
        weights = np.zeros(sampler.n_states)
        losses: list[float] = []
        for step in kept_sweeps(labels, sampler, states, rng, n_warmup=warmup, n_draws=n_draws):
            tables, weights = tables + sampler.table / n_draws, weights + sampler.weights / n_draws
            losses.append(-step.log_likelihood / max(labels.n_votes, 1))
        self.n_extra_ = sampler.n_states - labels.n_classes
        self.state_prior_ = weights
        self.state_class_ = np.eye(labels.n_classes)[sampler.state_class]
        self.state_confusion_ = from_table(tables, labels.n_answers)
        self.pooled_ = self.state_confusion_.mean(axis=0)
        self._set_class_matrices()
        self.n_iter_, self.converged_, self.loss_history_ = n_draws, True, losses
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        """One for each chain, all alike."""
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [DifficultySampler(*size, n_points=self._size(labels.n_classes)) for _ in range(n_chains)]


class DifficultyStart(NamedTuple):
    """What a compiled chain of items more or less easy starts from, and where it stands."""

    state_class: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]
    grid: Floats
    grid_weights: Floats
    levels: Floats
    slopes: Floats
    means: Floats
    spread: Floats
    learned: list[StepScale]  # one, as soon as the number of parameters is known
    n_answers: int

    def run(self, votes: Any, systems: Any, gold: Any, item_prior: Floats, states: Any, *rest: Any) -> None:
        """Run the sweeps; see `compiled_gibbs.run_chain`."""
        from trueup.noise.kernels import compiled_difficulty

        moved = (self.levels, self.slopes, self.means, self.spread)
        n_columns, n_systems = int(systems[1][-1]), len(systems[2])
        if not self.learned:
            self.learned.append(StepScale.start(_n_free(self.levels.shape, n_columns - n_systems, self.group)))
        where = (self.state_class, self.group, self.grid, self.grid_weights)
        compiled_difficulty.run_chain(
            votes,
            systems,
            gold,
            item_prior,
            states,
            *where,
            *moved,
            tuple(self.learned[0]),
            _HYPER,
            self.n_answers,
            *rest,
        )


def _n_free(shape: tuple[int, ...], n_ratios: int, group: npt.NDArray[np.int64]) -> int:
    """How many free numbers the parameters are: levels, slopes, spread, class shares and rows of systems."""
    n_raters, n_classes = shape
    return n_raters * (n_classes + 1) + n_classes + n_ratios * (int(group.max()) + 1)


class DifficultySampler(CollapsingSampler):
    """States are classes times points of ease; levels, slopes and their laws move by Metropolis steps on the counts.

    Every few sweeps they move with the states summed over too; see `trueup.noise.hamiltonian`.
    """

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, n_points: int) -> None:
        codes = np.repeat(np.arange(n_classes, dtype=np.int32), n_points)
        super().__init__(n_raters, n_classes, n_answers, state_class=codes)
        self.n_points = n_points
        self.grid = np.linspace(-2.5, 2.5, n_points) if n_points > 1 else np.zeros(1)
        density = scipy.stats.norm.pdf(self.grid)
        self.grid_weights = density / density.sum()
        by_ease = np.minimum((np.cumsum(self.grid_weights) - self.grid_weights / 2) * _GROUPS, _GROUPS - 1).astype(int)
        self.state_group = (codes * _GROUPS + np.tile(by_ease, n_classes)).astype(np.int64)
        self.levels = np.full((n_raters, n_classes), _MEAN[0])
        self.slopes = np.full(n_raters, np.log(0.3))
        self.means = np.full(n_classes, _MEAN[0])
        self.spread = np.log(np.array([0.3]))
        self._step_scale: StepScale | None = None
        self._wrong_rows: Floats = np.empty((0, 0, 0))

    def compiled_start(self) -> DifficultyStart:
        """Where the chain stands now."""
        moved = (self.levels.copy(), self.slopes.copy(), self.means.copy(), self.spread.copy())
        codes = self.state_class.astype(np.int64)
        return DifficultyStart(codes, self.state_group, self.grid, self.grid_weights, *moved, [], self.n_answers)

    def first_states(self, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Any ease of the class that an item starts from."""
        return truth * self.n_points + rng.choice(self.n_points, size=len(truth), p=self.grid_weights)

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Levels, slopes, their laws, wrong answers and class shares, in this order."""
        shape = (self.n_raters, self.n_answers, self.n_classes, self.n_points)
        by_class = counts.reshape(shape)
        diagonal = np.arange(self.n_classes)
        right = by_class[:, diagonal, diagonal]
        wrong = by_class.sum(axis=1) - right
        for _ in range(2 if self.n_raters <= _FEW_RATERS else 1):
            self._draw_abilities(right, wrong, rng)
            self._draw_laws(right, wrong, rng)
        said = by_class.sum(axis=3).transpose(0, 2, 1)  # raters, classes, answers
        rows = np.maximum(rng.standard_gamma(1.0 + said), 1e-100)
        rows[:, diagonal, diagonal] = 0.0
        rows /= rows.sum(axis=2, keepdims=True)
        self._wrong_rows = rows
        self._fill_table()
        shares = rng.dirichlet(1.0 + state_counts.reshape(self.n_classes, -1).sum(axis=1))
        self.weights = (shares[:, None] * self.grid_weights).ravel()

    def _fill_table(self) -> None:
        diagonal = np.arange(self.n_classes)
        chance = expit(self.levels[:, :, None] + np.exp(self.slopes)[:, None, None] * self.grid)
        table = self._wrong_rows[:, :, :, None] * (1 - chance)[:, :, None, :]
        table[:, diagonal, diagonal] = chance
        size = (self.n_raters * self.n_answers, self.n_states)
        self.table = np.ascontiguousarray(table.transpose(0, 2, 1, 3)).reshape(size)

    def collapse(self, items: DistinctItems, log_rows: Floats, rng: np.random.Generator, *, learns: bool) -> Floats:
        """A Hamiltonian step of all parameters but the rows of wrong answers; means of levels are drawn after it."""
        landscape = Landscape(items, self._wrong_rows, log_rows, self.grid, self.grid_weights, self.state_group, _HYPER)
        numbers = landscape.numbers(self.levels, self.slopes, float(self.spread[0]), self.class_prior())
        if len(numbers) > MOST_NUMBERS:
            return log_rows
        if self._step_scale is None:
            self._step_scale = StepScale.start(len(numbers))
        position = landscape.step(numbers, self._step_scale, rng, learns=learns)
        self.levels, self.slopes = position.levels, position.slopes
        self.spread = np.array([position.spread])
        self._draw_means(rng)
        self._fill_table()
        self.weights = (position.shares[:, None] * self.grid_weights).ravel()
        return position.log_rows

    def _draw_means(self, rng: np.random.Generator) -> None:
        precision = _MEAN[1] ** -2 + self.n_raters * _LEVEL_SCALE**-2
        centre = (_MEAN[0] * _MEAN[1] ** -2 + self.levels.sum(axis=0) * _LEVEL_SCALE**-2) / precision
        self.means = centre + rng.standard_normal(self.n_classes) / np.sqrt(precision)

    def _log_right(self, levels: Floats, slopes: Floats, right: Floats, wrong: Floats) -> Floats:
        """Log-likelihood of the votes of each rater on each class, shape (n_raters, n_classes)."""
        odds = levels[:, :, None] + np.exp(slopes)[:, None, None] * self.grid
        return np.asarray((right * log_expit(odds) + wrong * log_expit(-odds)).sum(axis=2))

    def _draw_abilities(self, right: Floats, wrong: Floats, rng: np.random.Generator) -> None:
        n = (right + wrong).sum(axis=2)
        value = self._log_right(self.levels, self.slopes, right, wrong)
        levels = self.levels + rng.standard_normal(n.shape) * 2.4 / np.sqrt(_LEVEL_SCALE**-2 + n / 6)
        moved = self._log_right(levels, self.slopes, right, wrong)
        change = moved - value
        change -= ((levels - self.means) ** 2 - (self.levels - self.means) ** 2) / (2 * _LEVEL_SCALE**2)
        accepted = np.log(rng.random(n.shape)) < change
        self.levels = np.where(accepted, levels, self.levels)
        total = np.where(accepted, moved, value).sum(axis=1)
        slopes = self.slopes + rng.standard_normal(len(n)) * 2.4 / np.sqrt(_SLOPE_SCALE**-2 + n.sum(axis=1) / 10)
        change = self._log_right(self.levels, slopes, right, wrong).sum(axis=1) - total
        change -= ((slopes - self.spread) ** 2 - (self.slopes - self.spread) ** 2) / (2 * _SLOPE_SCALE**2)
        self.slopes = np.where(np.log(rng.random(len(n))) < change, slopes, self.slopes)

    def _draw_laws(self, right: Floats, wrong: Floats, rng: np.random.Generator) -> None:
        self._draw_means(rng)
        # How much items differ at all: first alone, then with all slopes moved along.
        for joint in (False, True):
            step = rng.standard_normal() * (0.15 if joint else 0.3)
            new = self.spread + step
            change = step - float((np.exp(2 * new) - np.exp(2 * self.spread))[0]) / (2 * _SPREAD_SCALE**2)
            if joint:
                change += float(self._log_right(self.levels, self.slopes + step, right, wrong).sum())
                change -= float(self._log_right(self.levels, self.slopes, right, wrong).sum())
            else:
                gap = (self.slopes - new) ** 2 - (self.slopes - self.spread) ** 2
                change -= float(gap.sum()) / (2 * _SLOPE_SCALE**2)
            if np.log(rng.random()) < change:
                self.spread = new
                self.slopes = self.slopes + step if joint else self.slopes
