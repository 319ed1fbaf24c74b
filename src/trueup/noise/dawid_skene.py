"""Dawid and Skene's model: a confusion matrix for each labeler."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Literal, Self

import numpy as np
from scipy.special import gammaln

from trueup._base.arrays import like, namespace, special_functions, to_numpy
from trueup._base.engines import OF_ONE_MACHINE
from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.noise.base import (
    CompiledStart,
    Sampler,
    TableModel,
    as_table,
    log_density,
    normalise,
    seen_as_matrices,
    warn_if_unidentifiable,
)
from trueup.noise.em import fit_matrices

Pooling = float | Literal["auto"]
_STRENGTHS = (0.5, 200.0)
_FITTED_POOLING = 2.0  # the strength of a fit where none was asked for
_STRENGTH_PRIOR = (2.0, 0.5)  # of the Gamma law of a strength that is drawn
_LEAST_STRENGTH = 1e-2
DIAGONAL_ALONE, _DIAGONAL_POOLED = 3.0, 4.0  # pseudo-counts of the right answer; the others have 1
_MOST_CLASSES_ALONE = 3  # beyond, pseudo-counts of rows by themselves say that labelers are wrong half of the time


class DawidSkene(TableModel):
    """Every labeler has a confusion matrix, and votes are independent given the class [1]_.

    Generative model: y_i ~ π; a vote of t on i is a with probability θ_t[y_i, a]. Rows have a Dirichlet prior centred
    on the pooled matrix m of all labelers, θ_t[y] ~ Dir(1 + s_y m[y]), so a labeler with few votes is taken for an
    average one and a labeler with many for what the votes say. Fitted by EM.

    Where the matrices are drawn together with the truth (`trueup.noise.sample`), rows have independent priors, 1 for
    each answer and `diagonal` for the right one; or, with four classes and more, or where `pooling` was asked for,
    θ_t[y] ~ Dir(s_y m[y]) with m[y] of that prior, drawn too.

    Parameters
    ----------
    max_iter : int
    tol : float
        Least change of the loss per vote to go on.
    pooling : float or "auto", optional
        The strength s of the pull towards the pooled matrix, in votes: by default 2 in a fit; in draws none with up to
        three classes, and "auto" with more, of each of which a labeler has few votes. 0 is none: a fit is then maximum
        likelihood, as published. "auto" learns one for each class from how much labelers differ (a fit by Minka's fixed
        point for the Dirichlet–multinomial).
    diagonal : float, optional
        Pseudo-count of the right answer where matrices are drawn; the other answers have 1. By default 3; where rows
        are pooled 4, and of C classes, four and more, 4 √(2.5 C).

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
    pooled_ : array of shape (n_classes, n_answers)
    pooling_ : array of shape (n_classes,)
        The strengths used.

    References
    ----------
    .. [1] Dawid and Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM algorithm",
       Applied Statistics 28(1).

    Examples
    --------
    >>> import trueup as tu
    >>> votes = [[0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 1, 1], [0, 0, 0]] * 4
    >>> model = tu.noise.DawidSkene().fit(tu.Labels.from_matrix(votes))
    >>> model.confusion_.shape, model.converged_
    ((3, 2, 2), True)
    """

    alias = "dawid-skene"
    engines = (*OF_ONE_MACHINE, "dask")

    def __init__(
        self, *, max_iter: int = 100, tol: float = 1e-5, pooling: Pooling | None = None, diagonal: float | None = None
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.pooling = pooling
        self.diagonal = diagonal

    def fit(self, labels: Labels | LabelScan[Labels]) -> Self:
        """Learn matrices and prior by EM, from the shares of votes."""
        check_integer(self.max_iter, name="max_iter", low=1)
        strength = np.full(labels.n_classes, _FITTED_POOLING if self.pooling is None else check_pooling(self.pooling))
        warn_if_unidentifiable(labels, what="DawidSkene")
        self._remember(labels)

        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            nonlocal strength
            by_labeler = seen_as_matrices(counts, labels.n_answers)
            pooled = normalise(by_labeler.sum(axis=0) + 1e-3)
            log_prior = 0.0
            if strength.any():
                if self.pooling == "auto":
                    strength = learn_strength(by_labeler, pooled, strength)
                pseudo = like(pooled, strength)[:, None] * pooled
                self.confusion_ = normalise(by_labeler + pseudo)
                log_prior = log_density(self.confusion_, pseudo)
                if self.pooling == "auto":  # the density's normaliser moves with the strength
                    masses = gammaln(1 + to_numpy(pseudo)).sum(axis=1)
                    log_prior += labels.n_labelers * float((gammaln(strength + labels.n_answers) - masses).sum())
            else:
                self.confusion_ = normalise(by_labeler)
            self.pooled_ = pooled
            return as_table(self.confusion_), normalise(state_counts), log_prior

        fit_matrices(self, labels, maximise, max_iter=self.max_iter, tol=self.tol)
        self.pooling_ = strength
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        """One for each chain, all alike."""
        size = (n_raters, labels.n_classes, labels.n_answers)
        usual: Pooling = "auto" if labels.n_classes > _MOST_CLASSES_ALONE else 0.0
        pooling = usual if self.pooling is None else self.pooling
        diagonal = self.diagonal
        if diagonal is None and pooling:
            diagonal = pooled_diagonal(_DIAGONAL_POOLED, labels.n_classes)
        return [row_sampler(*size, pooling=pooling, diagonal=diagonal) for _ in range(n_chains)]


def pooled_diagonal(of_few: float, n_classes: int) -> float:
    """Pseudo-count of the right answer in a pooled row: `of_few` up to three classes, and more with more of them.

    Votes do not say which state is of which class, only this does. If n raters all agree, and open one table each, that
    two classes are exchanged has odds of (d choose n, with repetition) to the power of -2: with d = 4 and two raters
    one to a hundred, for each of the 45 pairs of ten classes. So a crowd and a system that agree on nine items in ten
    could have been wrong about half of them.

    Examples
    --------
    >>> [round(pooled_diagonal(4.0, n_classes), 1) for n_classes in (2, 3, 4, 10)]
    [4.0, 4.0, 12.6, 20.0]
    """
    return of_few * (math.sqrt(2.5 * n_classes) if n_classes > _MOST_CLASSES_ALONE else 1.0)


def row_sampler(
    n_raters: int, n_classes: int, n_answers: int, *, pooling: Pooling, diagonal: float | None = None
) -> Sampler:
    """The sampler of rows that are pooled within classes as strongly as `pooling` says; 0 does not pool them."""
    if diagonal is None:
        diagonal = pooled_diagonal(DIAGONAL_ALONE, n_classes) if pooling else DIAGONAL_ALONE
    check_number(diagonal, name="diagonal", low=0.0, strict=True)
    check_pooling(pooling)
    if not pooling:
        return DawidSkeneSampler(n_raters, n_classes, n_answers, diagonal=diagonal)
    strength = None if isinstance(pooling, str) else max(float(pooling), _LEAST_STRENGTH)
    return PooledSampler(n_raters, n_classes, n_answers, diagonal=diagonal, strength=strength)


class DawidSkeneSampler(Sampler):
    """Rows of all matrices have independent Dirichlet priors: `diagonal` for the right answer, 1 for the others."""

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, diagonal: float = DIAGONAL_ALONE) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._prior = _row_prior(self.state_class, n_answers, diagonal)

    def compiled_start(self) -> CompiledStart:
        """Rows with fixed pseudo-counts."""
        total = self._prior.sum(axis=1)
        return CompiledStart(self.state_class.astype(np.int64), self._prior / total[:, None], total, np.ones(3), False)

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Dirichlet draws of rows and prior."""
        gamma = rng.standard_gamma(counts.reshape(self.n_raters, self.n_answers, self.n_states) + self._prior.T)
        self.table = (gamma / gamma.sum(axis=1, keepdims=True)).reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)


class PooledSampler(Sampler):
    """Raters are pooled within a state g: rows θ_t[g] ~ Dir(s_g m_g), m_g ~ Dir(1, with `diagonal` at g's class).

    Votes do not say which of two states is of which class; only the prior of their pooled rows does. So moves exchange
    the classes of states (exact Metropolis steps), and chains agree where fixed classes would leave each in a mode of
    its own.

    Parameters
    ----------
    n_raters, n_classes, n_answers
        As of every sampler.
    diagonal : float, optional
        By default as `pooled_diagonal` says.
    strength : float, optional
        s of all states; by default s_g ~ Gamma(2, 1/2) is drawn.
    """

    def __init__(
        self,
        n_raters: int,
        n_classes: int,
        n_answers: int,
        *,
        diagonal: float | None = None,
        strength: float | None = None,
    ) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._diagonal = pooled_diagonal(_DIAGONAL_POOLED, n_classes) if diagonal is None else diagonal
        self._fixed = strength is not None
        self.strength = np.full(n_classes, _STRENGTH_PRIOR[0] / _STRENGTH_PRIOR[1] if strength is None else strength)
        self.pooled = normalise(_row_prior(self.state_class, n_answers, self._diagonal))

    def compiled_start(self) -> CompiledStart:
        """Where the chain stands now."""
        hyper = np.array([self._diagonal, *((0.0, 0.0) if self._fixed else _STRENGTH_PRIOR)])
        codes = self.state_class.astype(np.int64)
        return CompiledStart(codes, self.pooled.copy(), self.strength.copy(), hyper, True)

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Strengths, exchanges, pooled rows, exchanges, weights and rows, in this order."""
        by_state = counts.reshape(self.n_raters, self.n_answers, -1).transpose(2, 0, 1)  # states, raters, answers
        tables = self._draw_tables(by_state, rng)
        if not self._fixed:
            self._draw_strengths(by_state.sum(axis=2), tables.sum(axis=1), rng)
        forbidden = np.asarray(gold.sum(axis=1, keepdims=True) > gold)  # classes that a known item of a state excludes
        # By the tables, pooled rows integrated out.
        of_class = tables[:, : self.n_classes]
        self._exchange_classes(gammaln(self._diagonal + of_class) - gammaln(1.0 + of_class), forbidden, rng)
        gamma = rng.standard_gamma(_row_prior(self.state_class, self.n_answers, self._diagonal) + tables) + 1e-12
        self.pooled = gamma / gamma.sum(axis=1, keepdims=True)
        # Rows that were drawn for a class hold it back where it counts for much, and tables where it counts for little.
        self._exchange_classes((self._diagonal - 1) * np.log(self.pooled[:, : self.n_classes]), forbidden, rng)
        gamma = np.maximum(rng.standard_gamma(1.0 + state_counts), 1e-300)
        self.weights = gamma / gamma.sum()
        shape = (self.strength[:, None] * self.pooled)[:, None, :] + by_state
        rows = np.maximum(rng.standard_gamma(shape), 1e-100)
        rows /= rows.sum(axis=2, keepdims=True)
        self.table = np.ascontiguousarray(rows.transpose(1, 2, 0)).reshape(counts.shape)

    def _draw_tables(self, by_state: Floats, rng: np.random.Generator) -> Floats:
        """Auxiliary table counts of the Dirichlet–multinomials, shape (states, answers).

        With n votes drawn from a Dirichlet–multinomial with mass b on an answer, the number of tables is a sum of
        Bernoulli(b / (b + r)), r = 0 … n − 1 (Antoniak); given tables, pooled rows are conjugate. Only the sum over
        raters counts, so what is drawn for each r is how many of the raters with more than r votes open a table.
        """
        state, rater, answer = np.nonzero(by_state)
        votes = by_state[state, rater, answer]
        n = np.maximum(np.floor(votes + rng.random(len(votes)) * (votes % 1 > 0)), 1).astype(
            np.int64
        )  # parts by chance
        n_cells, cell = self.n_states * self.n_answers, state * self.n_answers + answer
        most = np.zeros(n_cells, dtype=np.int64)
        np.maximum.at(most, cell, n)
        first = np.concatenate([[0], np.cumsum(most)])
        of_cell = np.repeat(np.arange(n_cells), most)
        seated = np.arange(first[-1]) - first[of_cell]  # r, from 0 in each cell
        with_so_many = np.bincount(first[cell] + n - 1, minlength=first[-1])
        upwards = np.append(np.cumsum(with_so_many[::-1])[::-1], 0)
        with_more = upwards[:-1] - upwards[first[1:]][of_cell]
        mass = (self.strength[:, None] * self.pooled).ravel()[of_cell]
        opened = rng.binomial(with_more, mass / (mass + seated))
        return np.bincount(of_cell, opened, n_cells).reshape(self.n_states, -1).astype(float, copy=False)

    def _draw_strengths(self, totals: Floats, n_tables: Floats, rng: np.random.Generator) -> None:
        """Strengths given the numbers of tables, with the auxiliary variables of Escobar and West."""
        state, rater = np.nonzero(totals)
        total = totals[state, rater]
        strength = self.strength[state]
        log_x = np.bincount(state, np.log(rng.beta(strength + 1, total)), self.n_states)
        seats = np.bincount(state, rng.random(len(total)) * (total + strength) < total, self.n_states)
        shape, rate = _STRENGTH_PRIOR
        drawn = rng.standard_gamma(np.maximum(shape + n_tables - seats, 1e-3)) / (rate - log_x)
        self.strength = np.maximum(drawn, _LEAST_STRENGTH)

    def _exchange_classes(self, fit: Floats, forbidden: Booleans, rng: np.random.Generator) -> None:
        """Propose that two states exchange their classes; `fit` is the log probability of each state by its class."""
        # Pairs are unordered and the conditions are the same from both sides, so each step has its own reverse.
        for a, b in combinations(range(self.n_states), 2):
            class_a, class_b = self.state_class[a], self.state_class[b]
            if forbidden[a, class_b] or forbidden[b, class_a]:
                continue
            change = fit[a, class_b] + fit[b, class_a] - fit[a, class_a] - fit[b, class_b]
            if self.evidence is not None:
                change += self.evidence[a, class_b] + self.evidence[b, class_a]
                change -= self.evidence[a, class_a] + self.evidence[b, class_b]
            if np.log(rng.random()) < change:
                self.state_class[a], self.state_class[b] = class_b, class_a


def _row_prior(state_class: Codes, n_answers: int, diagonal: float) -> Floats:
    """Pseudo-counts of the row of each state: `diagonal` at the answer that is right, and 1 at the others."""
    prior = np.ones((len(state_class), n_answers))
    prior[np.arange(len(state_class)), state_class] = diagonal
    return prior


def check_pooling(pooling: Pooling) -> float:
    """The strength to start from."""
    if isinstance(pooling, str):
        check_choice(pooling, ("auto",), name="pooling")
        return 4.0
    return check_number(pooling, name="pooling", low=0.0)


def learn_strength(counts: Floats, pooled: Floats, strength: Floats) -> Floats:
    """One step of Minka's fixed point for the concentration of a Dirichlet–multinomial with a known mean.

    Parameters
    ----------
    counts : array of shape (n_labelers, n_rows, n_answers)
    pooled : array of shape (n_rows, n_answers)
    strength : array of numpy, of shape (n_rows,)
    """
    psi, before = special_functions(counts).psi, like(counts, strength)
    alpha = namespace(counts).clip(before[:, None] * pooled, 1e-6, None)
    rise = (pooled * (psi(counts + alpha) - psi(alpha))).sum(axis=(0, 2))
    fall = (psi(counts.sum(axis=2) + before) - psi(before)).sum(axis=0)
    return np.clip(strength * to_numpy(rise) / np.maximum(to_numpy(fall), 1e-12), *_STRENGTHS)
