"""How often the most probable class given some labelers' votes is which class: exact wherever that can be had."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_distribution, check_integer
from trueup.estimators.problem import TINY
from trueup.exceptions import InvalidParameter

__all__ = [
    "MAX_NUMBERS",
    "N_DRAWS",
    "ConsolidatedConfusion",
    "consolidated_confusion",
    "first_likeliest",
    "listed_confusions",
]

MAX_NUMBERS = 1 << 21  # numbers held for all outcomes of the votes, or of half of them
N_DRAWS = 20_000
TIE = 1e-9  # log-probabilities that differ by less are equal up to rounding
_BLOCK = 1 << 21  # numbers held at once for many small sets
_LATTICE = 1 << 17  # points of the lattice for very many labelers
_DECISIVE = 40.0  # log-odds beyond which a vote overrules all others


@dataclass(frozen=True, eq=False)
class ConsolidatedConfusion:
    """The confusion matrix of a consolidated label.

    Attributes
    ----------
    matrix : array of shape (n_classes, n_classes)
        P(consolidated label | truth), rows the truth.
    error : float
        0 if exact; a bound on the error of each entry ("lattice"), or the largest standard error ("draws").
    how : str
        "exact", "lattice" or "draws".
    """

    matrix: Floats
    error: float
    how: str


@dataclass(frozen=True, eq=False)
class _Outcomes:
    """What some votes can be: m outcomes with their scores (m, d) and their chances given each class (m, C)."""

    scores: Floats
    chances: Floats

    def times(self, other: _Outcomes) -> _Outcomes:
        scores = self.scores[:, None] + other.scores[None]
        chances = self.chances[:, None] * other.chances[None]
        return _Outcomes(scores.reshape(-1, scores.shape[-1]), chances.reshape(-1, chances.shape[-1]))


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
    Beyond about 40 different labelers log-odds are rounded to a lattice, with a bound on the error. For more classes
    all outcomes are listed, or drawn where they are too many.

    Parameters
    ----------
    matrices : array of shape (n_labelers, n_classes, n_answers)
        P(answer | truth), rows the truth.
    prior : array of shape (n_classes,)
        P(class), as the rule above weighs the classes; uniform for the likeliest class.
    times : integer array of shape (n_labelers,), optional
        How many votes each labeler casts; one by default.
    max_numbers : int
        Numbers that may be held at once for an exact answer.
    n_draws : int
        Draws of the votes where no exact answer can be had.
    random_state : int, Generator or None
        For these draws.

    Returns
    -------
    ConsolidatedConfusion

    References
    ----------
    .. [1] M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
       Classification", PVLDB 12(4) (2018), Section 3.

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
    base = np.log(np.maximum(pi, TINY))
    groups = _alike(tables, votes)
    if len(base) == 2:
        return _two_classes(groups, float(base[1] - base[0]), max_numbers)
    if _n_outcomes(groups) * len(base) <= max_numbers:
        everything = _product([_outcomes(table, n) for table, n in groups])
        label = first_likeliest(everything.scores + base)
        rows = [np.bincount(label, everything.chances[:, y], len(base)) for y in range(len(base))]
        return ConsolidatedConfusion(_normalised(np.array(rows)), 0.0, "exact")
    return _drawn(groups, base, n_draws, as_generator(random_state))


def listed_confusions(tables: Floats, prior: Floats) -> Floats:
    """The same for many small sets of labelers at once, by listing all outcomes of each.

    Parameters
    ----------
    tables : array of shape (n_sets, n_votes, n_classes, n_answers)
        The matrix behind each vote.
    prior : array of shape (n_classes,)

    Returns
    -------
    array of shape (n_sets, n_classes, n_classes)

    Examples
    --------
    >>> listed_confusions(np.array([[[[0.8, 0.2], [0.2, 0.8]]] * 3]), np.array([0.5, 0.5])).round(3).tolist()
    [[[0.896, 0.104], [0.104, 0.896]]]
    """
    n_sets, n_votes, n_classes, n_answers = tables.shape
    found = np.empty((n_sets, n_classes, n_classes))
    rows = max(_BLOCK // (n_classes * n_answers**n_votes), 1)
    for start in range(0, n_sets, rows):
        logs = np.log(np.maximum(tables[start : start + rows], TINY))
        scores = np.zeros((len(logs), 1, n_classes))
        for vote in range(n_votes):
            each = logs[:, vote].transpose(0, 2, 1)  # answers × classes
            scores = (scores[:, :, None] + each[:, None]).reshape(len(logs), -1, n_classes)
        label = first_likeliest(scores + np.log(np.maximum(prior, TINY)))
        chances = np.exp(scores)
        for c in range(n_classes):
            found[start : start + rows, :, c] = np.einsum("soy,so->sy", chances, label == c)
    return np.asarray(found / found.sum(axis=2, keepdims=True))


def first_likeliest(scores: Floats) -> Codes:
    """The class with the highest score along the last axis; the first of those that are equal up to rounding."""
    return np.asarray(np.argmax(scores >= scores.max(axis=-1, keepdims=True) - TIE, axis=-1))


def _alike(tables: Floats, votes: npt.NDArray[np.integer]) -> list[tuple[Floats, int]]:
    """Distinct matrices, without answers that are never given, and how many votes each has."""
    distinct, which = np.unique(tables.reshape(len(tables), -1), axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=votes, minlength=len(distinct)).astype(int)
    shaped = distinct.reshape(-1, *tables.shape[1:])
    return [(table[:, table.any(axis=0)], int(n)) for table, n in zip(shaped, totals, strict=True)]


def _n_outcomes(groups: Sequence[tuple[Floats, int]]) -> int:
    return math.prod(math.comb(n + table.shape[1] - 1, n) for table, n in groups)


def _compositions(n: int, parts: int) -> npt.NDArray[np.int64]:
    """All ways to share out n votes over the answers, shape (comb(n + parts - 1, n), parts)."""
    rows = np.full((1, 1), n)
    for _ in range(parts - 1):
        left = rows[:, -1]
        grown = np.repeat(rows, left + 1, axis=0)
        first = np.repeat(np.cumsum(left + 1) - (left + 1), left + 1)
        taken = np.arange(len(grown)) - first
        rows = np.column_stack([grown[:, :-1], taken, grown[:, -1] - taken])
    return rows


def _outcomes(table: Floats, n: int) -> _Outcomes:
    """The counts of answers in n votes that share one matrix; scores are log-likelihoods, shape (m, C)."""
    counts = _compositions(n, table.shape[1])
    scores = np.asarray(counts @ np.log(np.maximum(table, TINY)).T, dtype=float)
    ways = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1)
    return _Outcomes(scores, np.exp(scores + ways[:, None]))


def _product(parts: Sequence[_Outcomes]) -> _Outcomes:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.times(part)
    return whole


def _normalised(matrix: Floats) -> Floats:
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def _two_classes(groups: Sequence[tuple[Floats, int]], base: float, max_numbers: int) -> ConsolidatedConfusion:
    """Class 1 wins where base + Σ log-odds > 0 (up to rounding: a tie goes to class 0)."""
    order = sorted(groups, key=lambda group: -_n_outcomes([group]))
    halves: tuple[list[tuple[Floats, int]], ...] = ([], [])
    for group in order:  # the larger ones first, each to the half that is smaller by now
        min(halves, key=_n_outcomes).append(group)
    listed = [[_log_odds(_outcomes(table, n)) for table, n in half] for half in halves if half]
    if 2 * max(map(_n_outcomes, halves)) > max_numbers:
        return _lattice([part for half in listed for part in half], base)
    nothing = _Outcomes(np.zeros((1, 1)), np.ones((1, 2)))
    one = _product(listed[0])
    other = _product(listed[1]) if len(listed) > 1 else nothing
    by_odds = np.argsort(one.scores[:, 0], kind="stable")
    odds = one.scores[by_odds, 0]
    upto = np.vstack([np.zeros(2), np.cumsum(one.chances[by_odds], axis=0)])
    at = np.searchsorted(odds, TIE - base - other.scores[:, 0], side="right")
    to_zero = (other.chances * upto[at]).sum(axis=0)
    to_one = (other.chances * (upto[-1] - upto[at])).sum(axis=0)
    return ConsolidatedConfusion(_normalised(np.column_stack([to_zero, to_one])), 0.0, "exact")


def _log_odds(outcomes: _Outcomes) -> _Outcomes:
    return _Outcomes(outcomes.scores[:, 1:] - outcomes.scores[:, :1], outcomes.chances)


def _lattice(parts: Sequence[_Outcomes], base: float) -> ConsolidatedConfusion:
    """Log-odds rounded to a lattice and added up labeler by labeler; what rounding could move bounds the error."""
    odds = [np.clip(part.scores[:, 0], -_DECISIVE, _DECISIVE) for part in parts]
    lowest = np.array([o.min() for o in odds])
    step = max(float(sum(o.max() for o in odds) - lowest.sum()), TIE) / _LATTICE
    mass = np.ones((2, 1))
    for part, value, low in zip(parts, odds, lowest, strict=True):
        shift = np.rint((value - low) / step).astype(int)
        grown = np.zeros((2, mass.shape[1] + int(shift.max())))
        for k, by in enumerate(shift.tolist()):
            grown[:, by : by + mass.shape[1]] += part.chances[k][:, None] * mass
        mass = grown
    at = base + float(lowest.sum()) + step * np.arange(mass.shape[1])
    moved = step * len(parts) / 2
    ones = mass[:, at > TIE].sum(axis=1)
    matrix = _normalised(np.column_stack([mass.sum(axis=1) - ones, ones]))
    unsure = mass[:, np.abs(at - TIE) <= moved].sum(axis=1)
    return ConsolidatedConfusion(matrix, float(unsure.max()), "lattice")


def _drawn(
    groups: Sequence[tuple[Floats, int]], base: Floats, n_draws: int, rng: np.random.Generator
) -> ConsolidatedConfusion:
    """Votes drawn given each class in turn; weighted by p(votes | y) over their mean, each draw serves every class."""
    n_classes = len(base)
    truth = np.arange(n_draws) % n_classes
    scores = np.zeros((n_draws, n_classes))
    for table, n in groups:
        logs = np.log(np.maximum(table, TINY)).T
        if n == 1:
            upto = np.cumsum(table, axis=1)[truth, :-1]
            scores += logs[(rng.random(n_draws)[:, None] > upto).sum(axis=1)]
        else:
            scores += rng.multinomial(n, table[truth] / table[truth].sum(axis=1, keepdims=True)) @ logs
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = chances / chances.mean(axis=1, keepdims=True)
    is_label = np.eye(n_classes)[first_likeliest(scores + base)]
    matrix, squares = _normalised(weights.T @ is_label), (weights**2).T @ is_label
    # Σ w² (1 − R)² over draws with the label, and Σ w² R² over the others: the delta method for a weighted mean.
    around = squares * (1 - 2 * matrix) + matrix**2 * squares.sum(axis=1, keepdims=True)
    return ConsolidatedConfusion(matrix, math.sqrt(max(float(around.max()), 0.0)) / n_draws, "draws")
