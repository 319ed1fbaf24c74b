"""Several labelers' votes on an item become one label with a confusion matrix of its own.

`consolidated_confusion` tells how often the most probable class given some labelers' votes is which class: exact
wherever that can be had. `consolidate` has one label and one such matrix for each item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import gammaln

from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice, check_distribution, check_integer
from trueup.data.labels import Labels
from trueup.estimators.problem import TINY
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.base import TableModel, as_table, normalise
from trueup.noise.soft_truth import compositions

Rule = Literal["map", "likelihood"]
Alike = list[tuple[Floats, int]]  # matrices, and how many votes each has
Voters = tuple[Positions, Positions]  # labelers, and how often each voted
_RULES: tuple[Rule, ...] = ("map", "likelihood")
MAX_NUMBERS = 1 << 21  # numbers held for all outcomes of the votes, or of half of them
N_DRAWS = 20_000
SINGULAR = 1e-6  # the smallest singular value from which a matrix can be inverted
_TIE = 1e-9  # log-probabilities that differ by less are equal up to rounding
_FEW = 1 << 12  # numbers for all outcomes of the votes of a set that is taken together with others


@dataclass(frozen=True, eq=False)
class ConsolidatedConfusion:
    """The confusion matrix of a consolidated label."""

    matrix: Floats  # (n_classes, n_classes): P(consolidated label | truth), rows the truth
    error: float  # 0 if exact, or the largest standard error of an entry
    how: str  # "exact" or "draws"


def consolidated_confusion(
    matrices: npt.ArrayLike,
    prior: npt.ArrayLike,
    *,
    times: npt.ArrayLike | None = None,
    max_numbers: int = MAX_NUMBERS,
    n_draws: int = N_DRAWS,
    random_state: RandomState = 0,
) -> ConsolidatedConfusion:
    r"""The confusion matrix of the most probable class given the votes of these labelers.

    The consolidated label is :math:`y' = \arg\max_y \pi(y) \prod_t q^{(t)}_{y, z_t}`; of equally probable classes it
    is the first. Its matrix sums over all votes that could have been cast [1]_ (eqs. 2–5):

    .. math::

        R_{y y'} = \sum_{z :\, y'(z) = y'} \prod_t q^{(t)}_{y, z_t}

    Labelers with equal matrices are counted together. For two classes the label depends on a sum of log-odds, so the
    outcomes of two halves of the labelers are listed, one half is sorted, and for each outcome of the other half the
    mass on either side of the threshold is looked up: 25 different labelers take 2¹² + 2¹³ outcomes in place of 2²⁵.
    Where outcomes are too many, beyond about 40 different labelers of two classes, votes are drawn.

    .. [1] Dolatshah, Teoh, Wang and Pei (2018), Section 3; see `trueup.estimators.published.tars2018`.

    Parameters
    ----------
    matrices : array of shape (n_labelers, n_classes, n_answers). P(answer | truth), rows the truth.
    prior : array of shape (n_classes,)
        P(class), as the rule above weighs the classes; uniform for the likeliest class.
    times : integer array of shape (n_labelers,), optional. How many votes each labeler casts; one by default.
    max_numbers : int. Numbers that may be held at once for an exact answer.
    n_draws : int. Draws of the votes where no exact answer can be had.

    Examples
    --------
    >>> one = [[0.8, 0.2], [0.2, 0.8]]
    >>> consolidated_confusion([one] * 3, [0.5, 0.5]).matrix.round(3)
    array([[0.896, 0.104],
           [0.104, 0.896]])
    """
    tables = np.asarray(matrices, dtype=float)
    if tables.ndim != 3 or not len(tables) or tables.shape[2] < tables.shape[1] or tables.shape[1] < 2:
        raise InvalidParameter(
            f"matrices must have the shape (n_labelers, n_classes, n_answers), got {tables.shape}; rows are the truth"
        )
    tables = check_distribution(tables, name="each row of the confusion matrices")
    pi = check_distribution(prior, name="prior", n=tables.shape[1])
    votes = np.ones(len(tables), dtype=np.int64) if times is None else np.asarray(times)
    if votes.shape != (len(tables),) or not np.issubdtype(votes.dtype, np.integer) or (votes < 1).any():
        raise InvalidParameter(f"times must be a positive number of votes for each labeler, got {times!r:.60}")
    check_integer(max_numbers, name="max_numbers", low=16)
    check_integer(n_draws, name="n_draws", low=1)
    base = _log(pi)
    groups = _alike(tables, votes)
    if len(base) == 2:
        # Two parts with about as many outcomes: the larger groups first, each to the smaller part.
        halves: tuple[Alike, Alike] = ([], [])
        for group in sorted(groups, key=lambda each: -_n_outcomes([each])):
            min(halves, key=_n_outcomes).append(group)
        if 2 * max(map(_n_outcomes, halves)) <= max_numbers:
            return _two_classes(halves, float(base[1] - base[0]))
    elif _n_outcomes(groups) * len(base) <= max_numbers:
        scores, chances = _outcomes(groups, len(base))
        label = _first_likeliest(scores + base)
        rows = [np.bincount(label, chances[:, y], len(base)) for y in range(len(base))]
        return ConsolidatedConfusion(normalise(np.array(rows)), 0.0, "exact")
    return _drawn(groups, base, n_draws, as_generator(random_state))


def _listed_confusions(tables: Floats, prior: Floats) -> Floats:
    """The matrices of many small sets of labelers at once, by listing all outcomes of each."""
    n_sets, n_votes, n_classes, n_answers = tables.shape
    matrices = np.empty((n_sets, n_classes, n_classes))
    rows = max((1 << 21) // (n_classes * n_answers**n_votes), 1)  # numbers held at once for many small sets
    for start in range(0, n_sets, rows):
        logs = _log(tables[start : start + rows])
        scores = np.zeros((len(logs), 1, n_classes))
        for vote in range(n_votes):
            each = logs[:, vote].transpose(0, 2, 1)  # answers × classes
            scores = (scores[:, :, None] + each[:, None]).reshape(len(logs), -1, n_classes)
        label = _first_likeliest(scores + _log(prior))
        chances = np.exp(scores)
        for c in range(n_classes):
            matrices[start : start + rows, :, c] = np.einsum("soy,so->sy", chances, label == c)
    return normalise(matrices)


def _log(chances: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(chances, TINY)))


def _first_likeliest(scores: Floats) -> Codes:
    """The class with the highest score along the last axis; the first of those that are equal up to rounding."""
    return np.asarray(np.argmax(scores >= scores.max(axis=-1, keepdims=True) - _TIE, axis=-1))


def _alike(tables: Floats, votes: npt.NDArray[np.integer]) -> Alike:
    """Distinct matrices, without answers that are never given, and how many votes each has."""
    distinct, which = np.unique(tables.reshape(len(tables), -1), axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=votes, minlength=len(distinct)).astype(int)
    shaped = distinct.reshape(-1, *tables.shape[1:])
    return [(table[:, table.any(axis=0)], int(n)) for table, n in zip(shaped, totals, strict=True)]


def _n_outcomes(groups: Alike) -> int:
    return math.prod(math.comb(n + table.shape[1] - 1, n) for table, n in groups)


def _outcomes(groups: Alike, n_classes: int) -> tuple[Floats, Floats]:
    """What votes can be: the log-likelihoods of the classes for m outcomes, and their chances, both (m, n_classes)."""
    scores, chances = np.zeros((1, n_classes)), np.ones((1, n_classes))
    for table, n in groups:
        counts = compositions(n, table.shape[1])  # of the answers in n votes that share one matrix
        logs = np.asarray(counts @ _log(table).T, dtype=float)
        ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
        scores = (scores[:, None] + logs).reshape(-1, n_classes)
        chances = (chances[:, None] * np.exp(logs + ways[:, None])).reshape(-1, n_classes)
    return scores, chances


def _two_classes(halves: tuple[Alike, Alike], base: float) -> ConsolidatedConfusion:
    """Class 1 wins where base + Σ log-odds > 0 (up to rounding: a tie goes to class 0)."""
    (scores, chances), (other_scores, other_chances) = (_outcomes(half, 2) for half in halves)
    odds, other_odds = scores[:, 1] - scores[:, 0], other_scores[:, 1] - other_scores[:, 0]
    by_odds = np.argsort(odds, kind="stable")
    upto = np.vstack([np.zeros(2), np.cumsum(chances[by_odds], axis=0)])
    cut = np.searchsorted(odds[by_odds], _TIE - base - other_odds, side="right")
    columns = [(other_chances * mass).sum(axis=0) for mass in (upto[cut], upto[-1] - upto[cut])]
    return ConsolidatedConfusion(normalise(np.column_stack(columns)), 0.0, "exact")


def _drawn(groups: Alike, base: Floats, n_draws: int, rng: np.random.Generator) -> ConsolidatedConfusion:
    """Votes drawn given each class in turn; weighted by p(votes | y) over their mean, each draw serves every class."""
    n_classes = len(base)
    truth = np.arange(n_draws) % n_classes
    scores = np.zeros((n_draws, n_classes))
    for table, n in groups:
        logs = _log(table).T
        if n == 1:
            upto = np.cumsum(table, axis=1)[truth, :-1]
            scores += logs[(rng.random(n_draws)[:, None] > upto).sum(axis=1)]
        else:
            scores += rng.multinomial(n, table[truth] / table[truth].sum(axis=1, keepdims=True)) @ logs
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = chances / chances.mean(axis=1, keepdims=True)
    is_label = np.eye(n_classes)[_first_likeliest(scores + base)]
    matrix, squares = normalise(weights.T @ is_label), (weights**2).T @ is_label
    # Σ w² (1 − R)² over draws with the label, and Σ w² R² over the others: the delta method for a weighted mean.
    around = squares * (1 - 2 * matrix) + matrix**2 * squares.sum(axis=1, keepdims=True)
    return ConsolidatedConfusion(matrix, math.sqrt(max(float(around.max()), 0.0)) / n_draws, "draws")


@dataclass(frozen=True, eq=False, repr=False)
class Consolidation:
    """One label for each item, and how far it can be trusted.

    Items on which the same labelers voted share a matrix. Gold items have their truth as label and the identity as
    matrix.

    Attributes
    ----------
    codes : integer array of shape (n_items,). The position of the label in ``labels.classes``; -1 without votes.
    group : integer array of shape (n_items,). Which of the matrices is the item's; -1 for an item without votes.
    matrices : array of shape (n_groups, n_classes, n_classes). P(consolidated label | truth), rows the truth.
    errors : array of shape (n_groups,). 0 where the matrix is exact, else as `ConsolidatedConfusion.error`.
    singular : boolean array of shape (n_groups,). Whether the matrix cannot be inverted.
    likeliest : boolean array of shape (n_groups,). Whether the label is the likeliest class but for the prior.
    labelers : tuple of integer arrays. Who voted on the first item of each group; empty for gold.
    """

    codes: Positions
    group: Positions
    matrices: Floats
    errors: Floats
    singular: Booleans
    likeliest: Booleans
    labelers: tuple[Positions, ...]

    @property
    def usable(self) -> Booleans:
        """Which items have a label whose matrix can be inverted, shape (n_items,)."""
        return self.of_items(~self.singular)

    def of_items(self, flags: Booleans) -> Booleans:
        """A flag of each group as one of each item; False for an item without votes."""
        return np.asarray(np.append(flags, False)[self.group])  # group -1 picks the last

    def matrix_of(self, item: int) -> Floats:
        """The matrix of one item, by its position."""
        if self.group[item] < 0:
            raise InvalidParameter(f"item {item} has no votes, got nothing to consolidate")
        return np.asarray(self.matrices[self.group[item]])

    def __repr__(self) -> str:
        return f"Consolidation({int((self.codes >= 0).sum())} labels, {len(self.matrices)} matrices)"


def consolidate(
    labels: Labels,
    noise: NoiseModel,
    *,
    rule: Rule = "map",
    max_numbers: int = MAX_NUMBERS,
    n_draws: int = N_DRAWS,
    random_state: RandomState = 0,
) -> Consolidation:
    """The most probable class of each item given its votes (Dolatshah et al. 2018, eq. 2), with its confusion matrix.

    Where the prior outweighs every vote that could have been cast, that label is always the same
    and says nothing; such items get the likeliest class instead, argmax_y Π_t q_t[y, z_t]. Either has its own matrix,
    so estimates that invert it stay unbiased.

    Parameters
    ----------
    noise : NoiseModel. With a confusion matrix for each labeler: known (`Confusion`) or fitted (e.g. `DawidSkene`).
    rule : {"map", "likelihood"}. "likelihood" leaves the prior out everywhere.
    max_numbers, n_draws, random_state : as for `consolidated_confusion`
    """
    how = check_choice(rule, _RULES, name="rule")
    confusion, prior = labeler_matrices(labels, noise)
    rng = as_generator(random_state)
    uniform = np.full(len(prior), 1 / len(prior))
    group, sets, examples = _voter_sets(labels, confusion)
    matrices_of = partial(_matrices, confusion, max_numbers=max_numbers, n_draws=n_draws, random_state=rng)
    likeliest = np.full(len(sets), how == "likelihood")
    matrices = matrices_of(sets, uniform if how == "likelihood" else prior)
    singular = _singular(matrices)
    if how == "map" and singular.any():
        again = np.flatnonzero(singular)
        likeliest[again] = True
        for k, other in zip(again.tolist(), matrices_of([sets[k] for k in again], uniform), strict=True):
            matrices[k] = other
    scores = labels.votes @ as_table(_log(confusion))
    scores[(group >= 0) & ~np.append(likeliest, True)[group]] += _log(prior)
    codes = np.where(group >= 0, _first_likeliest(scores), -1)
    singular, indptr = _singular(matrices), labels.votes.indptr
    columns = [labels.votes.indices[indptr[i] : indptr[i + 1]] for i in examples]
    voters = [np.unique(of_item // labels.n_answers).astype(np.int64) for of_item in columns]
    gold = np.flatnonzero(labels.gold_codes >= 0)
    if len(gold):
        codes[gold], group[gold] = labels.gold_codes[gold], len(matrices)
        matrices = [*matrices, ConsolidatedConfusion(np.eye(labels.n_classes), 0.0, "exact")]
        singular, likeliest = np.append(singular, False), np.append(likeliest, False)
        voters = [*voters, np.empty(0, np.int64)]
    return Consolidation(
        codes=codes,
        group=group,
        matrices=np.array([each.matrix for each in matrices]).reshape(-1, labels.n_classes, labels.n_classes),
        errors=np.array([each.error for each in matrices]),
        singular=singular,
        likeliest=likeliest,
        labelers=tuple(voters),
    )


def labeler_matrices(labels: Labels, noise: NoiseModel) -> tuple[Floats, Floats]:
    """The confusion matrices of the labelers and the prior; one sentence if the model has no matrices."""
    if not isinstance(noise, TableModel):
        raise InvalidParameter(
            f"a noise model with a confusion matrix for each labeler is needed, got {type(noise).__name__}; pass "
            '`noise="dawid-skene"`, `noise="one-coin"` or known rates (`trueup.noise.Confusion`)'
        )
    noise._check(labels)  # fitted, and on the same classes
    return np.asarray(noise.confusion_for(labels), dtype=float), np.asarray(noise.prior_, dtype=float)


def _matrices(confusion: Floats, sets: list[Voters], weights: Floats, **options: Any) -> list[ConsolidatedConfusion]:
    """The matrix of each set of voters; sets with few votes are many, and are taken together."""
    matrices: dict[int, ConsolidatedConfusion] = {}
    n_classes, n_answers = confusion.shape[1:]
    together: dict[int, list[int]] = {}
    for number, (voters, times) in enumerate(sets):
        if n_classes * n_answers ** min(int(times.sum()), 64) <= _FEW:
            together.setdefault(int(times.sum()), []).append(number)
        else:
            matrices[number] = consolidated_confusion(confusion[voters], weights, times=times, **options)
    for numbers in together.values():
        cast = np.array([np.repeat(*sets[number]) for number in numbers])
        for number, matrix in zip(numbers, _listed_confusions(confusion[cast], weights), strict=True):
            matrices[number] = ConsolidatedConfusion(matrix, 0.0, "exact")
    return [matrices[number] for number in range(len(sets))]


def _singular(matrices: list[ConsolidatedConfusion]) -> Booleans:
    """Which matrices cannot be inverted; drawn ones must differ from a singular one by more than chance."""
    if not matrices:
        return np.zeros(0, dtype=bool)
    smallest = np.linalg.svd(np.array([each.matrix for each in matrices]), compute_uv=False)[:, -1]
    slack = np.array([3 * each.error if each.how == "draws" else 0.0 for each in matrices])
    return np.asarray(smallest < np.maximum(SINGULAR, slack))


def _voter_sets(labels: Labels, confusion: Floats) -> tuple[Positions, list[Voters], list[int]]:
    """Which set of voters each item has (-1: none), the sets as labelers and how often each voted, an item of each."""
    _, first, kind = np.unique(confusion.reshape(len(confusion), -1), axis=0, return_index=True, return_inverse=True)
    item, labeler, _, times = labels.vote_table()
    shape = (labels.n_items, len(first))
    voted = sparse.coo_array((times, (item, kind.ravel()[labeler])), shape=shape).tocsr()  # adds up repeated votes
    voted.sort_indices()
    group = np.full(labels.n_items, -1, dtype=np.int64)
    numbers_of: dict[tuple[bytes, bytes], int] = {}
    sets: list[Voters] = []
    examples: list[int] = []
    unknown = np.flatnonzero((labels.gold_codes < 0) & (np.diff(voted.indptr) > 0))
    for i in unknown.tolist():
        part = slice(voted.indptr[i], voted.indptr[i + 1])
        key = (voted.indices[part].tobytes(), voted.data[part].tobytes())
        if key not in numbers_of:
            numbers_of[key] = len(sets)
            sets.append((first[voted.indices[part]].astype(np.int64), voted.data[part].astype(np.int64)))
            examples.append(i)
        group[i] = numbers_of[key]
    return group, sets, examples
