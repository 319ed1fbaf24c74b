"""Confusion matrices as tables that votes are looked up in.

A table has shape (n_labelers + 2, n_answers + 1, k). Behind the labelers stands the oracle, number -2, and behind her
nobody, number -1, whose rows are zero; so is the row behind the last answer. A vote that is missing is -1 and finds one
of these zeros by itself: nothing has to be masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from trueup._validation import check_distribution
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labels import Labels
from trueup.noise import Confusion, NoiseModel
from trueup.noise.base import TableModel

__all__ = [
    "CERTAIN",
    "as_float",
    "as_numbers",
    "check_prior",
    "log_table",
    "matrices_of",
    "oracle_logs",
    "row_numbers",
    "vote_table",
]

Floats = npt.NDArray[np.float64]

FLOOR = 1e-10  # the least probability of an answer that is possible, as in the noise models
IMPOSSIBLE = -100.0  # the logarithm of 0: softmax in single precision ends there too, and contradictions can be weighed
# Log-odds of a known truth. It fits in half precision, and beats what votes against it add up to: some 1300 by labelers
# who give such an answer with the least probability, 300 by labelers who never do.
CERTAIN = 3e4


def matrices_of(noise: Any, labels: Labels | None = None, *, multiply: bool = True) -> tuple[Floats, Floats | None]:
    """Confusion matrices of shape (n_labelers, n_classes, n_answers), and the prior where a noise model knows it.

    Parameters
    ----------
    noise : NoiseModel, or array of shape (n_labelers, n_classes, n_answers)
    labels : Labels, optional
        Their labelers, in their order; by default those the model was fitted to.
    multiply : bool
        Whether the likelihood of an item's votes must be the product of what the matrices say of each.
    """
    if labels is not None and not isinstance(labels, Labels):
        raise InvalidLabels(
            f"labels must be Labels, got {type(labels).__name__}; pass those whose labelers the votes are numbered by"
        )
    if not isinstance(noise, NoiseModel):
        known = Confusion(noise)  # checks
        matrices = known.confusion_ if known.confusion_.ndim == 3 else known.confusion_[None]
        if labels is not None:
            known._check(labels)
            matrices = known.confusion_for(labels)
        return np.array(matrices), None
    if not isinstance(noise, TableModel) or (
        multiply and type(noise)._log_likelihood is not TableModel._log_likelihood
    ):
        raise InvalidParameter(
            "a noise model is needed in which a confusion matrix of each labeler says all, got "
            f"{type(noise).__name__}; pass e.g. DawidSkene, or take evidence from VoteDataset(X, labels, noise=…), "
            "which works with any model"
        )
    if labels is not None:
        noise._check(labels)
        return np.array(noise.confusion_for(labels), dtype=float), np.array(noise.prior_)
    if isinstance(noise, Confusion) and (noise.confusion_.ndim == 2 or isinstance(noise.matrices, Mapping)):
        raise InvalidParameter(
            "the labelers and their order are not known from these matrices, got no labels; pass labels="
        )
    if not hasattr(noise, "confusion_"):
        raise InvalidParameter(
            f"{type(noise).__name__} must be fitted, got one that is not; call noise.fit(labels) first"
        )
    return np.array(noise.confusion_, dtype=float), np.array(noise.prior_)


def check_prior(prior: Any, known: Floats | None, n_classes: int | None) -> Floats | None:
    """The prior that was given, else that of the noise model, else None."""
    if prior is None:
        return known
    return check_distribution(prior, name="prior", n=n_classes)


def as_numbers(values: Any, *, name: str, shape: tuple[int, ...] | None = None) -> Floats:
    """What a user gave as numbers, as an array; broadcast to `shape` where that is possible."""
    try:
        array = np.asarray(values, dtype=float)
        return array if shape is None else np.broadcast_to(array, shape)
    except (TypeError, ValueError):
        need = "numbers" if shape is None else f"a number or {' by '.join(map(str, shape))} of them"
        raise InvalidParameter(f"{name} must be {need}, got {values!r}; pass probabilities") from None


def as_float(values: npt.ArrayLike) -> torch.Tensor:
    """Single precision; `module.double()` gives more."""
    return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32)


def vote_table(values: npt.ArrayLike, oracle: npt.ArrayLike) -> torch.Tensor:
    """The table of `values`, shape (n_labelers, n_answers, k), and of the oracle's votes, (n_answers, k)."""
    values = np.asarray(values, dtype=float)
    n_labelers, n_answers, k = values.shape
    table = np.zeros((n_labelers + 2, n_answers + 1, k))
    table[:n_labelers, :n_answers] = values
    table[n_labelers, :n_answers] = oracle
    return as_float(table)


def oracle_logs(n_classes: int, n_answers: int) -> Floats:
    """Log-likelihoods of the oracle's answers, shape (n_answers, n_classes)."""
    logs = np.full((n_answers, n_classes), -CERTAIN)
    np.fill_diagonal(logs, 0.0)
    return logs


def log_table(matrices: Floats) -> torch.Tensor:
    """Log p(answer | class): the table that turns votes into evidence."""
    logs = np.where(matrices > 0, np.log(np.maximum(matrices, FLOOR)), IMPOSSIBLE).transpose(0, 2, 1)
    return vote_table(logs, oracle_logs(matrices.shape[1], matrices.shape[2]))


def row_numbers(n_labelers: int, n_answers: int) -> torch.Tensor:
    """The row of each vote among those of the labelers, the oracle's and one of zeros; (n_labelers + 2, n_answers + 1).

    For tables that are learned: their rows are (labeler, answer), flat, and only the last is a row of zeros.
    """
    nobody = (n_labelers + 1) * n_answers
    rows = np.full((n_labelers + 2, n_answers + 1), nobody)
    rows[:-1, :-1] = np.arange(nobody).reshape(n_labelers + 1, n_answers)
    return torch.as_tensor(rows)
