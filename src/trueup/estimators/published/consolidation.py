"""Several labelers' votes on an item become one label with a confusion matrix of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from trueup._base.types import Floats, Positions
from trueup._base.validation import RandomState, as_generator, check_choice
from trueup.data.labels import Labels
from trueup.estimators.problem import TINY
from trueup.estimators.published.consolidated_matrix import (
    MAX_NUMBERS,
    N_DRAWS,
    ConsolidatedConfusion,
    consolidated_confusion,
    first_likeliest,
    listed_confusions,
)
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.base import TableModel, as_table

__all__ = ["SINGULAR", "Consolidation", "Rule", "consolidate"]

Rule = Literal["map", "likelihood"]
_RULES: tuple[Rule, ...] = ("map", "likelihood")
_FEW = 1 << 12  # numbers for all outcomes of the votes of a set that is taken together with others
SINGULAR = 1e-6  # the smallest singular value from which a matrix can be inverted


@dataclass(frozen=True, eq=False, repr=False)
class Consolidation:
    """One label for each item, and how far it can be trusted.

    Items on which the same labelers voted share a matrix. Gold items have their truth as label and the identity as
    matrix.

    Attributes
    ----------
    codes : integer array of shape (n_items,)
        The consolidated label, as a position in ``labels.classes``; -1 for an item without votes.
    group : integer array of shape (n_items,)
        Which of the matrices is the item's; -1 for an item without votes.
    matrices : array of shape (n_groups, n_classes, n_classes)
        P(consolidated label | truth), rows the truth.
    errors : array of shape (n_groups,)
        0 where the matrix is exact, else as `ConsolidatedConfusion.error`.
    singular : boolean array of shape (n_groups,)
        Whether the label says too little of the truth to be corrected: the matrix cannot be inverted.
    likeliest : boolean array of shape (n_groups,)
        Whether the label is the likeliest class without regard to the prior.
    labelers : tuple of integer arrays, one for each group
        Who voted on the first item of the group, as positions in ``labels.labelers``; empty for gold. Others in the
        group may have had other voters with the same matrices.
    """

    codes: Positions
    group: Positions
    matrices: Floats
    errors: Floats
    singular: npt.NDArray[np.bool_]
    likeliest: npt.NDArray[np.bool_]
    labelers: tuple[Positions, ...]

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
    """The most probable class of each item given its votes, with the confusion matrix of that label.

    The label is argmax_y π(y) Π_t q_t[y, z_t] (Dolatshah et al. 2018, eq. 2), the first class where several are
    equally probable. Where the prior outweighs every vote that could have been cast, that label is always the same
    and says nothing; such items get the likeliest class instead, argmax_y Π_t q_t[y, z_t]. Either has its own matrix,
    so estimates that invert it stay unbiased.

    Parameters
    ----------
    labels : Labels
    noise : NoiseModel
        With a confusion matrix for each labeler: known (`Confusion`) or fitted (`DawidSkene`, `OneCoin`).
    rule : {"map", "likelihood"}
        "likelihood" leaves the prior out everywhere.
    max_numbers, n_draws, random_state
        As for `consolidated_confusion`.

    Returns
    -------
    Consolidation

    Examples
    --------
    >>> import trueup as tu
    >>> labels = tu.Labels.from_matrix([[0, 1, 1], [1, -1, -1]])
    >>> noise = tu.noise.Confusion([[0.8, 0.2], [0.2, 0.8]])
    >>> found = consolidate(labels, noise)
    >>> found.codes.tolist(), found.matrices[:, 0, 0].round(3).tolist()
    ([1, 1], [0.896, 0.8])
    """
    how = check_choice(rule, _RULES, name="rule")
    confusion, prior = labeler_matrices(labels, noise)
    rng = as_generator(random_state)
    log_prior = np.log(np.maximum(prior, TINY))
    uniform = np.full(len(prior), 1 / len(prior))
    group, sets, examples = _voter_sets(labels, confusion)
    options: dict[str, Any] = {"max_numbers": max_numbers, "n_draws": n_draws, "random_state": rng}
    likeliest = np.full(len(sets), how == "likelihood")
    found = _matrices(confusion, sets, uniform if how == "likelihood" else prior, options)
    singular = _singular(found)
    if how == "map" and singular.any():
        again = np.flatnonzero(singular)
        others = _matrices(confusion, [sets[k] for k in again], uniform, options)
        for k, other in zip(again.tolist(), others, strict=True):
            found[k], likeliest[k] = other, True
    scores = labels.votes @ as_table(np.log(np.maximum(confusion, TINY)))
    by_prior = np.flatnonzero((group >= 0) & ~np.append(likeliest, True)[group])
    scores[by_prior] += log_prior
    codes = np.where(group >= 0, first_likeliest(scores), -1)
    return _with_gold(labels, codes, group, found, likeliest, [_voters(labels, i) for i in examples])


def labeler_matrices(labels: Labels, noise: NoiseModel) -> tuple[Floats, Floats]:
    """The confusion matrices of the labelers and the prior; one sentence if the model has no matrices."""
    if not isinstance(noise, TableModel):
        raise InvalidParameter(
            f"a noise model with a confusion matrix for each labeler is needed, got {type(noise).__name__}; pass "
            '⟨noise="dawid-skene"⟩, ⟨noise="one-coin"⟩ or known rates (⟨trueup.noise.Confusion⟩)'
        )
    noise._check(labels)  # fitted, and on the same classes
    return np.asarray(noise.confusion_for(labels), dtype=float), np.asarray(noise.prior_, dtype=float)


def _matrices(
    confusion: Floats, sets: list[tuple[Positions, Positions]], weights: Floats, options: dict[str, Any]
) -> list[ConsolidatedConfusion]:
    """The matrix of each set of voters; sets with few votes are many, and are taken together."""
    found: list[ConsolidatedConfusion | None] = [None] * len(sets)
    n_classes, n_answers = confusion.shape[1:]
    together: dict[int, list[int]] = {}
    for number, (voters, times) in enumerate(sets):
        n_votes = int(times.sum())
        if n_classes * n_answers ** min(n_votes, 64) <= _FEW:
            together.setdefault(n_votes, []).append(number)
        else:
            found[number] = consolidated_confusion(confusion[voters], weights, times=times, **options)
    for numbers in together.values():
        cast = np.array([np.repeat(*sets[number]) for number in numbers])
        for number, matrix in zip(numbers, listed_confusions(confusion[cast], weights), strict=True):
            found[number] = ConsolidatedConfusion(matrix, 0.0, "exact")
    return [one for one in found if one is not None]


def _singular(found: list[ConsolidatedConfusion]) -> npt.NDArray[np.bool_]:
    """Which matrices cannot be inverted; drawn ones must differ from a singular one by more than chance."""
    if not found:
        return np.zeros(0, dtype=bool)
    smallest = np.linalg.svd(np.array([one.matrix for one in found]), compute_uv=False)[:, -1]
    slack = np.array([3 * one.error if one.how == "draws" else 0.0 for one in found])
    return np.asarray(smallest < np.maximum(SINGULAR, slack))


def _voters(labels: Labels, item: int) -> Positions:
    part = slice(labels.votes.indptr[item], labels.votes.indptr[item + 1])
    return np.unique(labels.votes.indices[part] // labels.n_answers).astype(np.int64)


def _voter_sets(labels: Labels, confusion: Floats) -> tuple[Positions, list[tuple[Positions, Positions]], list[int]]:
    """Which set of voters each item has (-1: none), the sets as labelers and how often each voted, an item of each.

    Labelers with equal matrices are the same voter here, so an anonymous crowd has as many sets as numbers of votes.
    """
    _, first, kind = np.unique(confusion.reshape(len(confusion), -1), axis=0, return_index=True, return_inverse=True)
    item, labeler, _, times = labels.vote_table()
    shape = (labels.n_items, len(first))
    voted = sparse.coo_array((times, (item, kind.ravel()[labeler])), shape=shape).tocsr()  # adds up repeated votes
    voted.sort_indices()
    group = np.full(labels.n_items, -1, dtype=np.int64)
    known: dict[tuple[bytes, bytes], int] = {}
    sets: list[tuple[Positions, Positions]] = []
    examples: list[int] = []
    unknown = np.flatnonzero((labels.gold_codes < 0) & (np.diff(voted.indptr) > 0))
    for i in unknown.tolist():
        part = slice(voted.indptr[i], voted.indptr[i + 1])
        key = (voted.indices[part].tobytes(), voted.data[part].tobytes())
        if key not in known:
            known[key] = len(sets)
            sets.append((first[voted.indices[part]].astype(np.int64), voted.data[part].astype(np.int64)))
            examples.append(i)
        group[i] = known[key]
    return group, sets, examples


def _with_gold(
    labels: Labels,
    codes: Positions,
    group: Positions,
    found: list[ConsolidatedConfusion],
    likeliest: npt.NDArray[np.bool_],
    voters: list[Positions],
) -> Consolidation:
    gold = np.flatnonzero(labels.gold_codes >= 0)
    singular = _singular(found)
    if len(gold):
        codes[gold], group[gold] = labels.gold_codes[gold], len(found)
        found = [*found, ConsolidatedConfusion(np.eye(labels.n_classes), 0.0, "exact")]
        singular, likeliest = np.append(singular, False), np.append(likeliest, False)
        voters = [*voters, np.empty(0, np.int64)]
    return Consolidation(
        codes=codes,
        group=group,
        matrices=np.array([one.matrix for one in found]).reshape(-1, labels.n_classes, labels.n_classes),
        errors=np.array([one.error for one in found]),
        singular=singular,
        likeliest=likeliest,
        labelers=tuple(voters),
    )
