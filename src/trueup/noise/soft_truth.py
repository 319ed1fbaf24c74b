"""An item can be half a cat: votes under a truth that is itself a probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from math import comb
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi

from trueup._base.arrays import to_numpy
from trueup._base.engines import OF_ONE_MACHINE, choose_engine
from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.data.partitions import VoteBlock
from trueup.data.scanning import LabelScan
from trueup.noise import kernels
from trueup.noise.base import NoiseModel, as_table, normalise, rows_for, warn_if_unidentifiable
from trueup.noise.dawid_skene import Pooling, check_pooling
from trueup.noise.em import EMResult, expectation_maximisation, passes_over, sum_over_blocks
from trueup.noise.kernels import run_where_memory_suffices

_EVEN = 1.4  # on twelve points, the ends among them, this spreads as much as the uniform distribution on [0, 1]
_PRIOR_ITEMS = 5.0  # of the even shape; they decide where votes cannot tell
_STARTING_SHAPES = (_EVEN, 0.05)  # the other is all but hard classes
_FIRST_ITERATIONS = 5  # of each start, before only the better is gone on with
_OWN_MATRIX = 100  # votes for each class from which a labeler has a matrix of its own when the shape is learned
_STRENGTHS = (1.0, 300.0)


class SoftTruth(NoiseModel):
    r"""The truth of an item is a distribution over the classes, and each vote sees a draw of its own from it [1]_.

    Generative model: item i has class probabilities ρ_i, a point of a lattice on the simplex (`lattice_`) drawn with
    weights w; a vote of t on i is a with probability

    .. math:: \textstyle\sum_y \rho_i[y]\, \theta_t[y, a].

    Rows are pulled towards the pooled matrix m of all labelers, θ_t[y] ~ Dir(1 + s m[y]). The weights are a Dirichlet
    distribution made discrete, whose shape α is learned. The smaller the shape, the clearer the
    items; as it goes to zero the truth is one class and the model is `DawidSkene`, which grows overconfident with many
    votes on an ambiguous item.

    Sharp labelers on soft items and poor labelers on clear items differ only in how the shares of votes spread, which
    matrices of labelers with few votes would take up. So the shape is learned first, with one matrix for all labelers
    who have few votes, from an even and from a hard start; where votes cannot tell, an even spread is preferred. Then
    every labeler gets a matrix, the shape held fixed. Of the k votes of a labeler for an answer, k − 1 count, or
    labelers with few votes would confirm themselves. Gold items are taken to be wholly of their class.

    .. [1] Urkullu et al. (2019), on the evaluation and selection of models with crowdsourced labels, Section 4, has
       this truth; the model and its fit are of this library.

    Parameters
    ----------
    max_iter, tol : most iterations of each of the two stages, and the least change of the loss per vote to go on
    pooling : float or "auto". The strength s, in votes; "auto" takes it from how much labelers differ.
    shape : float or "auto"
        The mean over the classes of the shape α; "auto" learns that too. 1.4 spreads the probability of one of two
        classes as much as the uniform distribution does, 0.01 says that items have hard classes.
    """

    alias = "soft-truth"
    allows_dependence = True
    engines = OF_ONE_MACHINE

    lattice_: Floats  # (n_states, n_classes): the class probabilities an item can have
    state_prior_: Floats  # (n_states,): w
    shape_: Floats  # (n_classes,): α
    confusion_: Floats  # (n_labelers, n_classes, n_answers): P(answer | class that the labeler saw)
    pooled_: Floats  # (n_classes, n_answers)
    pooling_: float

    def __init__(
        self,
        *,
        max_iter: int = 100,
        tol: float = 1e-5,
        pooling: Pooling = "auto",
        shape: float | Literal["auto"] = "auto",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.pooling = pooling
        self.shape = shape

    def fit(self, labels: Labels | LabelScan[Labels]) -> Self:
        check_integer(self.max_iter, name="max_iter", low=1)
        strength = check_pooling(self.pooling)
        if isinstance(self.shape, str):
            check_choice(self.shape, ("auto",), name="shape")
        else:
            check_number(self.shape, name="shape", low=1e-3, high=1e3)
        warn_if_unidentifiable(labels, what="SoftTruth")
        self._remember(labels)
        self.lattice_ = simplex_lattice(labels.n_classes)

        on_host = partial(sum_over_blocks, labels, _count_votes, labels.n_answers)
        totals = _Totals(*_over_votes(labels, lambda passes: passes.totals(), on_host))
        n_votes = totals.votes.reshape(labels.n_labelers, labels.n_answers, 1)
        # All labelers who have few votes are taken for one, the first.
        heavy = n_votes.sum(axis=(1, 2)) >= _OWN_MATRIX * labels.n_classes
        place = np.where(heavy, np.cumsum(heavy), 0) - heavy.all()
        of_places = np.zeros((int(place.max()) + 1, *n_votes.shape[1:]))
        np.add.at(of_places, place, n_votes)
        crowd = self._fit_crowd(_merged(labels, place), of_places, totals, strength)
        self.shape_, self.state_prior_, self.pooled_ = crowd.shape, crowd.weights, crowd.pooled.T
        if self.pooling == "auto":
            spread = labeler_spread(labels, self.pooled_, self.lattice_, self.state_prior_)
            strength = float(np.clip(1 / max(spread, 1e-6) - 1, *_STRENGTHS))
        everyone = _Stage(labels, self.lattice_, n_votes, crowd.table[place], crowd.pooled, self.shape_, strength)
        result = everyone.run(max_iter=self.max_iter, tol=self.tol, warn=True)
        self.pooling_ = strength
        self.confusion_ = np.ascontiguousarray(everyone.table.transpose(0, 2, 1))
        self.prior_ = self.state_prior_ @ self.lattice_
        self.n_iter_, self.converged_ = len(result.loss_history), result.converged
        self.loss_history_ = result.loss_history
        return self

    def _fit_crowd(
        self, labels: Labels | LabelScan[Labels], n_votes: Floats, totals: _Totals, strength: float
    ) -> _Stage:
        """The first stage; of several starts the one that is ahead after a few iterations is finished."""
        share = normalise(n_votes.sum(axis=(0, 2)) + 1.0)
        fixed = None if isinstance(self.shape, str) else float(self.shape)
        uneven = normalise(share[: labels.n_classes]) * labels.n_classes
        stages = []
        for level in _STARTING_SHAPES if fixed is None else (fixed,):
            shape = level * uneven
            skill = _first_skill(totals, share, self.lattice_, polya_weights(self.lattice_, shape))
            pooled = (1 - skill) * share[:, None] + skill * np.eye(labels.n_answers, labels.n_classes)
            table = np.broadcast_to(pooled, (len(n_votes), *pooled.shape))
            given = (labels, self.lattice_, n_votes, table, pooled, shape, strength)
            stage = _Stage(*given, learns=True, fixed_mean=fixed)
            stage.run(max_iter=min(_FIRST_ITERATIONS, self.max_iter), tol=self.tol / 10, warn=False)
            stages.append(stage)
        best = min(stages, key=lambda stage: stage.loss)
        best.run(max_iter=self.max_iter, tol=self.tol / 10, warn=False)
        return best

    def state_posterior(self, labels: Labels) -> Floats:
        """P(class probabilities are those of a state | votes) of each item, shape (n_items, n_states)."""
        self._check(labels)
        by_state = self._answers_by_state(labels)
        return _state_posterior(labels.votes, labels.gold_codes, by_state, self.lattice_, self.state_prior_)

    def posterior(self, labels: Labels) -> Floats:
        self._check(labels)
        table, lattice = self._answers_by_state(labels), self.lattice_
        given = (table, self.state_prior_, corners(lattice), lattice)
        chances: Floats = _over_votes(
            labels, lambda passes: passes.posterior(*given), lambda: self.state_posterior(labels) @ lattice
        )
        return chances

    def predict_votes(self, labels: Labels, item: npt.NDArray[np.int64], labeler: npt.NDArray[np.int64]) -> Floats:
        return np.asarray(np.einsum("nc,nca->na", self.posterior(labels)[item], self.confusion_for(labels)[labeler]))

    def confusion_for(self, labels: Labels) -> Floats:
        """The matrices of the labelers of `labels`, in their order."""
        return rows_for(labels.labelers, self.labelers_, self.confusion_, self.pooled_)

    def _answers_by_state(self, labels: Labels) -> Floats:
        """The kernels' table P(answer | labeler, state)."""
        return as_table(self.confusion_for(labels)) @ self.lattice_.T

    def _log_likelihood(self, labels: Labels) -> Floats:
        votes = kernels.log_likelihood(labels.votes, self._answers_by_state(labels))
        with np.errstate(divide="ignore"):  # a state may have nothing of a class
            state_given_class = np.log(normalise((self.state_prior_[:, None] * self.lattice_).T))
        return np.column_stack([logsumexp(votes + weights, axis=1) for weights in state_given_class])


class _Stage:
    """EM over the states of the lattice; tables are (labelers, answers, classes), as the kernels' lie."""

    loss: float

    def __init__(
        self,
        labels: Labels | LabelScan[Labels],
        lattice: Floats,
        n_votes: Floats,
        table: Floats,
        pooled: Floats,
        shape: Floats,
        strength: float,
        *,
        learns: bool = False,
        fixed_mean: float | None = None,
    ) -> None:
        self.labels, self.lattice = labels, lattice
        self.table, self.pooled, self.shape = table, pooled, shape
        self.strength, self.learns, self.fixed_mean = strength, learns, fixed_mean
        self.weights = polya_weights(lattice, shape)
        self.by_state = self._answers_by_state()
        self.counted = np.maximum(n_votes - 1.0, 0.0) / np.maximum(n_votes, 1.0)  # (k − 1) / k
        self.diagonal = 1.0 + 2.0 * np.eye(labels.n_answers, labels.n_classes)  # a weak pull to right answers
        self.pseudo_items = _PRIOR_ITEMS * polya_weights(lattice, _EVEN * shape / shape.mean())

    def run(self, *, max_iter: int, tol: float, warn: bool) -> EMResult:
        """Iterate from what follows from the table."""
        how: Any = {"state_class": corners(self.lattice), "first": (self.by_state, self.weights), "name": "SoftTruth"}
        limits: Any = {"max_iter": max_iter, "tol": tol, "warn": warn, "offers": OF_ONE_MACHINE}
        result = expectation_maximisation(self.labels, self.maximise, **how, **limits)
        self.loss = result.loss_history[-1]
        return result

    def maximise(self, counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
        """Split the votes in each state over the class that the labeler saw, and count."""
        counts, state_counts = to_numpy(counts), to_numpy(state_counts)  # small beside the votes of a device
        counts /= self.by_state  # nobody else needs them, and they can be large
        seen = (counts @ self.lattice).reshape(self.table.shape)
        seen *= self.table  # expected votes, by labeler, answer and class seen
        log_prior = 0.0
        if self.learns:
            pooled = seen.sum(axis=0) + self.diagonal
            self.pooled = pooled / pooled.sum(axis=0)
            log_prior += float((self.diagonal * np.log(self.pooled)).sum())
        pseudo = self.strength * self.pooled
        seen *= self.counted
        seen += pseudo
        seen /= np.einsum("tac->tc", seen)[:, None]  # ten times as fast as sum over so short an axis
        self.table = np.maximum(seen, kernels.FLOOR, out=seen)
        self.by_state = self._answers_by_state()
        if self.strength > 0:
            log_prior += float((pseudo * np.log(seen).sum(axis=0)).sum())
        if self.learns:
            self.shape = learn_shape(self.lattice, state_counts + self.pseudo_items, self.shape)
            if self.fixed_mean is not None:
                self.shape = self.shape * (self.fixed_mean / self.shape.mean())
            self.weights = polya_weights(self.lattice, self.shape)
            log_prior += float(self.pseudo_items @ np.log(self.weights))
        return self.by_state, self.weights, log_prior

    def _answers_by_state(self) -> Floats:
        """P(answer | labeler, state) as the kernels take it."""
        return np.asarray(self.table.reshape(-1, self.table.shape[2]) @ self.lattice.T)


def corners(lattice: Floats) -> Codes:
    """The class of each state that is wholly of one; the others get a class that no gold item has."""
    states = np.where(lattice.max(axis=1) == 1, lattice.argmax(axis=1), lattice.shape[1])
    return np.asarray(states, dtype=np.int32)


def _state_posterior(
    votes: sparse.csr_array, gold: Codes, by_state: Floats, lattice: Floats, weights: Floats
) -> Floats:
    return kernels.posterior(votes, by_state, weights, gold=gold, state_class=corners(lattice))


class _Totals(NamedTuple):
    """Sums over all items: votes (labelers·answers,), pairs of votes on an item, and such that agree."""

    votes: Floats
    pairs: float
    agreed: float


def _over_votes(
    labels: Labels | LabelScan[Labels], of_device: Callable[[Any], Any], elsewhere: Callable[[], Any]
) -> Any:
    """What the passes of a device give where one is named, else another function."""

    def run() -> Any:
        if isinstance(labels, Labels) and choose_engine(offers=OF_ONE_MACHINE) == "torch":
            return of_device(passes_over(labels, 1, offers=OF_ONE_MACHINE))
        return elsewhere()

    return run_where_memory_suffices(run, labels.n_votes, 1, offers=OF_ONE_MACHINE)


def _count_votes(block: VoteBlock, n_answers: int) -> tuple[Floats, float, float]:
    """The totals of a block; of items with gold the votes count, too."""
    repeats = block.data if len(block.data) else np.ones(len(block.indices))
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    counts = np.bincount(item * n_answers + block.indices % n_answers, repeats, block.n_items * n_answers)
    counts = counts.reshape(block.n_items, n_answers)
    of_items = counts.sum(axis=1)
    pairs, agreed = float((of_items * (of_items - 1)).sum()), float((counts * (counts - 1)).sum())
    return np.bincount(block.indices, repeats, block.n_columns).astype(float), pairs, agreed


def _merged(labels: Labels | LabelScan[Labels], place: Positions) -> Labels | LabelScan[Labels]:
    """The votes with labelers moved to places; votes that fall together become one that counts often."""
    if np.array_equal(place, np.arange(labels.n_labelers)):
        return labels
    if isinstance(labels, LabelScan):
        return labels.mapped(partial(_merge_block, place=place, n_answers=labels.n_answers))
    return replace(labels, votes=_moved(labels.votes, place, labels.n_answers))


def _merge_block(block: VoteBlock, *, place: Positions, n_answers: int) -> VoteBlock:
    return VoteBlock.of_matrix(_moved(block.matrix, place, n_answers), block.gold_codes)


def _moved(votes: sparse.csr_array, place: Positions, n_answers: int) -> sparse.csr_array:
    labeler, answer = np.divmod(votes.indices, n_answers)
    moved = sparse.csr_array(
        (votes.data, (place[labeler] * n_answers + answer).astype(np.int32), votes.indptr),
        shape=(votes.shape[0], (int(place.max()) + 1) * n_answers),
        copy=True,  # summing works in place
    )
    moved.sum_duplicates()
    return moved


def _first_skill(totals: _Totals, share: Floats, lattice: Floats, weights: Floats) -> float:
    """How often labelers say what they saw, if they else answer at random, from how often two votes on an item agree.

    Two votes agree by chance, Σ share², and as much more as items differ, skill² · Σ Var ρ.
    """
    agreement = totals.agreed / totals.pairs if totals.pairs else 0.0
    spread = float((weights @ lattice**2 - (weights @ lattice) ** 2).sum())
    skill = np.sqrt(max(agreement - float(share @ share), 0.0) / max(spread, 1e-12))
    return float(np.clip(skill, 0.1, 0.9))


def labeler_spread(labels: Labels | LabelScan[Labels], pooled: Floats, lattice: Floats, weights: Floats) -> float:
    r"""How much labelers differ, as 1/(1 + s) of the Dirichlet distribution of their rows; 0 if not at all.

    A vote's residual is its difference from what the other votes on the item and the pooled matrix m predict. Two
    residuals of one labeler, on different items, are related only by what is the labeler's own. With r the expected
    class probabilities given the other votes and x = r[y] · (residual of answer y),

    .. math:: \mathrm E[x_v x_{v'}] = \frac{1}{1 + s}
        \sum_{y'} r_v[y] r_v[y'] r_{v'}[y] r_{v'}[y']\, m[y', y] (1 - m[y', y]),

    so sums over all pairs of votes of a labeler give s by the method of moments, however few votes each has.
    """
    given = (labels.n_labelers, pooled, lattice, weights)
    on_host = partial(sum_over_blocks, labels, _residual_sums, *given)
    sums = _over_votes(labels, lambda passes: passes.residual_sums(*given, corners(lattice)), on_host)
    residuals, products, own_residuals, own_products = sums
    first, second = np.triu_indices(labels.n_classes)
    of_row = pooled[:, : labels.n_classes] * (1 - pooled[:, : labels.n_classes])
    weight = np.where(first == second, of_row[first, second], of_row[first, second] + of_row[second, first])
    found = float(((residuals**2).sum(axis=1) - own_residuals).sum())
    wanted = float(weight @ ((products**2).sum(axis=1) - own_products))
    return max(found, 0.0) / wanted if wanted > 0 else 0.0


def _residual_sums(
    block: VoteBlock, n_labelers: int, pooled: Floats, lattice: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Of a block the sums over the votes of each labeler of x and of products of r, and of their squares."""
    votes, (n_classes, n_answers) = block.matrix, pooled.shape
    item = np.repeat(np.arange(block.n_items), np.diff(votes.indptr))
    labeler, answer = np.divmod(votes.indices, n_answers)
    counts = np.bincount(item * n_answers + answer, votes.data, block.n_items * n_answers)
    counts = counts.reshape(block.n_items, n_answers)
    first_alike, kind = _alike(np.column_stack([counts, block.gold_codes]))  # many items have the same votes
    table = np.maximum(pooled.T @ lattice.T, kernels.FLOOR)
    of_kinds = sparse.csr_array(counts[first_alike])
    states = _state_posterior(of_kinds, block.gold_codes[first_alike], table, lattice, weights)
    # The prediction from an item's votes without one for an answer, by kind of item and answer.
    expected = (normalise(states[:, None] / table).reshape(-1, lattice.shape[0])) @ lattice
    answers = np.tile(np.eye(n_answers, n_classes), (len(states), 1))
    residual = expected * (answers - expected @ pooled[:, :n_classes])
    first, second = np.triu_indices(n_classes)
    cell = kind[item] * n_answers + answer
    n_votes = np.bincount(cell, minlength=len(expected))

    def sums(x: Floats) -> tuple[Floats, Floats]:
        of_labelers = np.array([np.bincount(labeler, column[cell], n_labelers) for column in x.T])
        return of_labelers.reshape(x.shape[1], n_labelers), n_votes @ x**2

    residuals, own_residuals = sums(residual)
    products, own_products = sums(expected[:, first] * expected[:, second])
    return residuals, products, own_residuals, own_products


_OF_ONE = 2**31 - 1  # parts of a vote, as which equal rows are found; odd, so that no bit of the sums is lost


def _alike(rows: Floats) -> tuple[Positions, Positions]:
    """The first of each kind of equal rows of numbers, whole or shares of votes, and the kind of each row."""
    odd = np.random.default_rng(0).integers(2**62, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    _, first, kind = np.unique(
        (np.rint(rows * _OF_ONE).astype(np.int64).astype(np.uint64) * odd).sum(axis=1),
        return_index=True,
        return_inverse=True,
    )
    return first, kind


_MOST_STATES = 60
_MOST_PAIRS = 465  # of classes, each with itself too, where an item can be only half and half
_FINEST = 11  # for two classes twelve states, which fill vectors of the processor
_SHAPES = (1e-6, 1e3)


@lru_cache(maxsize=32)
def simplex_lattice(n_classes: int) -> Floats:
    """All class probabilities that are multiples of 1/m, shape (n_states, n_classes); the corners are among them.

    m is 11, or less where that would be more than 60 states, but 2 up to 30 classes. With more classes than that only
    the corners are left.
    """
    finest = _FINEST
    while finest > 1 and comb(finest + n_classes - 1, finest) > (_MOST_STATES if finest > 2 else _MOST_PAIRS):
        finest -= 1
    lattice = compositions(finest, n_classes)[::-1] / finest  # the first state is the first class
    lattice.flags.writeable = False  # it is shared by all who ask
    return lattice


def compositions(n: int, parts: int) -> Positions:
    """All ways to share out n among so many parts, shape (comb(n + parts - 1, n), parts)."""
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(parts - 1):  # each part takes up to what the ones before it have left
        left = n - rows.sum(axis=1)
        taken = np.concatenate([np.arange(most + 1) for most in left])
        rows = np.column_stack([np.repeat(rows, left + 1, axis=0), taken])
    return np.column_stack([rows, n - rows.sum(axis=1)])


def polya_weights(lattice: Floats, shape: Floats) -> Floats:
    r"""The Dirichlet–multinomial (Pólya) distribution on a lattice.

    .. math:: w_g \propto \prod_y \frac{\Gamma(k_{gy} + \alpha_y)}{k_{gy}!\,\Gamma(\alpha_y)}, \qquad k_g = m \rho_g

    It is a Dirichlet distribution made discrete: uniform for a shape of ones, all at the corners as the shape goes to
    zero, and its mean is the normalised shape.
    """
    counts = _counts(lattice)
    log_weights = (gammaln(counts + shape) - gammaln(counts + 1)).sum(axis=1)
    return normalise(np.exp(log_weights - log_weights.max()))


def learn_shape(lattice: Floats, state_counts: Floats, shape: Floats) -> Floats:
    """One step of Minka's fixed point for the shape, given how many items are in each state; never less likely."""
    counts = _counts(lattice)
    rise = state_counts @ (psi(counts + shape) - psi(shape))
    total = shape.sum()
    fall = state_counts.sum() * (psi(counts[0].sum() + total) - psi(total))
    return np.asarray(np.clip(shape * rise / max(float(fall), 1e-12), *_SHAPES))


def _counts(lattice: Floats) -> Floats:
    """Multiples of 1/m as the integers they are; the least step is 1/m."""
    return np.asarray(np.round(lattice / lattice[lattice > 0].min()))
