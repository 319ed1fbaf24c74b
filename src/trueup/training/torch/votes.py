"""The votes of items, as torch sees them: those of a batch, and a data set that yields items with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_integer, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import Confusion, NoiseModel
from trueup.noise.base import TableModel
from trueup.training.copies import Unlabelled, as_rows, gather, n_rows_of, take


class Votes(NamedTuple):
    """The votes on the items of a batch: only those that were cast, so thousands of labelers cost nothing.

    Attributes
    ----------
    labelers : integer tensor of shape (batch, width)
        The labeler of each vote, a position in ``labels.labelers``; -1 where an item has fewer votes than `width`, and
        -2 for the oracle, who gives known truths.
    answers : integer tensor of shape (batch, width)
        A position in ``labels.classes`` or, after the classes, an abstention that counts as an answer; -1 for none.

    Notes
    -----
    Losses must know the labelers and classes in the same order. Numbers out of range are an error on the CPU; on a GPU,
    and in what is compiled or mapped by ``torch.func``, they are not checked.
    """

    labelers: torch.Tensor
    answers: torch.Tensor

    @classmethod
    def from_matrix(cls, matrix: torch.Tensor) -> Votes:
        """Votes from an integer tensor of shape (batch, n_labelers), -1 where a labeler did not vote."""
        matrix = torch.as_tensor(matrix)
        if matrix.ndim != 2 or not is_integer(matrix):
            raise InvalidLabels(
                f"votes must be an integer tensor of shape (batch, n_labelers), got {shown(matrix)}; "
                "pass codes of classes, and -1 where a labeler did not vote"
            )
        cast = matrix >= 0
        width = int(cast.sum(dim=1).max()) if len(matrix) else 0
        order = torch.argsort(~cast, dim=1, stable=True)[:, : max(width, 1)]
        answers = matrix.long().gather(1, order).clamp_min(-1)
        return cls(torch.where(answers >= 0, order, -1), answers)

    def to(self, device: Any, *, non_blocking: bool = False) -> Votes:
        """The same votes on another device."""
        return Votes(*(part.to(device, non_blocking=non_blocking) for part in self))


def as_votes(target: Any, everyone: torch.Tensor) -> Votes:
    """What a loss was given as votes, in long integers: torch takes bytes for a mask."""
    if isinstance(target, Votes):
        labelers, answers = target
        if not (is_integer(labelers) and is_integer(answers)):
            raise InvalidLabels(
                f"votes must be integer tensors, got labelers in {shown(labelers)} and answers in {shown(answers)}; "
                "pass positions in labels.labelers and labels.classes"
            )
        if answers.ndim != 2 or labelers.shape not in (answers.shape, answers.shape[1:]):
            raise InvalidLabels(
                "labelers and answers of votes must have the same shape (batch, width), got "
                f"{tuple(labelers.shape)} and {tuple(answers.shape)}; pad both with -1"
            )
        return Votes(labelers.long(), answers.long())
    n_labelers = everyone.shape[0]
    if is_integer(target):
        if target.ndim == 1 and n_labelers == 1:
            target = target[:, None]
        if target.ndim == 2 and target.shape[1] == n_labelers:
            return Votes(everyone, target.long())
    raise InvalidLabels(
        f"the target must be Votes or an integer tensor of shape (batch, {n_labelers}), a column for each labeler, got "
        f"{shown(target)}; make it with VoteDataset or Votes.from_matrix"
    )


def is_integer(value: Any) -> bool:
    """Whether it is a tensor of integers; booleans are none."""
    if not isinstance(value, torch.Tensor):
        return False
    return not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)


def check_range(codes: torch.Tensor, most: int, what: str, *, oracle: bool = False) -> None:
    """Raise unless all are from -1, or -2 if the oracle may be among them, to below `most`."""
    if not can_look(codes) or not codes.numel():
        return
    try:
        low, high = (int(value) for value in torch.aminmax(codes))
    except RuntimeError:  # mapped by torch.func.vmap: no number can be read
        return
    least = -2 if oracle else -1
    if low < least or high >= most:
        raise InvalidLabels(
            f"{what} must lie between {'-2 (the oracle)' if oracle else '-1 (none)'} and {most - 1}, got "
            f"{high if high >= most else low}; the loss must know the same labelers and answers as the data"
            f"{': pass it labels=' if oracle else ''}"
        )


def can_look(values: torch.Tensor) -> bool:
    """Whether a look at values costs next to nothing: not on a GPU, which had to be waited for, nor in a compiler."""
    return not torch.compiler.is_compiling() and values.device.type == "cpu"


def shown(value: Any) -> str:
    """What a wrong target is, for an error."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__


FLOOR = 1e-10  # the least probability of an answer that is possible, as in the noise models
IMPOSSIBLE = -100.0  # the logarithm of 0: softmax in single precision ends there too, and contradictions can be weighed
# Log-odds of a known truth. It fits in half precision, and beats what votes against it add up to: some 1300 by labelers
# who give such an answer with the least probability, 300 by labelers who never do.
CERTAIN = 3e4


def matrices_of(noise: Any, labels: Labels | None = None, *, multiply: bool = True) -> tuple[Floats, Floats | None]:
    """Confusion matrices of shape (n_labelers, n_classes, n_answers), and the prior where a noise model knows it."""
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
        raise InvalidParameter("the labelers and their order are not known, got no labels; pass labels=")
    if not hasattr(noise, "confusion_"):
        raise InvalidParameter(f"{type(noise).__name__} must be fitted, got one that is not; call fit first")
    return np.array(noise.confusion_, dtype=float), np.array(noise.prior_)


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
    """The row of each vote among labelers, the oracle's and one of zeros; (n_labelers + 2, n_answers + 1)."""
    nobody = (n_labelers + 1) * n_answers
    rows = np.full((n_labelers + 2, n_answers + 1), nobody)
    rows[:-1, :-1] = np.arange(nobody).reshape(n_labelers + 1, n_answers)
    return torch.as_tensor(rows)


class VoteDataset(Dataset):  # type: ignore[misc]
    r"""Items with the votes on them, for a network to be trained on.

    Parameters
    ----------
    X : array, tensor, sparse matrix or frame of n_items rows
        Row i is item i of ``labels.items``; rows may have any shape. Sparse rows are made dense when asked for.
    labels : Labels
        The votes. Items whose truth is known (``labels.with_gold``) get a vote of the oracle, number -2, or certain
        evidence.
    unlabelled : {"drop", "prior", "error"}. Items without votes are left out, kept with no vote at all, or an error.
    noise : str or NoiseModel, optional
        Yield evidence instead of votes: log p(votes | class) by this model, fitted to `labels` unless it is already,
        less that of the item's best class.
        Any noise model will do, also one without a confusion matrix for each labeler.
    dtype : torch.dtype or None. Of the rows of X; None leaves it.

    Attributes
    ----------
    classes, labelers, answers : array. The names that numbers in votes stand for.
    rows : integer array of shape (len(self),). The rows of X, and items of `labels`, that are here.
    noise_ : NoiseModel or None
    prior : array of shape (n_classes,) or None
        Shares of the classes by the noise model; pass it to `MMSELoss` together with evidence.
    confusion : array of shape (n_labelers, n_classes, n_answers) or None. Where the noise model has it.

    Notes
    -----
    ``data[i]`` is ``(x, Votes)``, padded to the item with most votes, or ``(x, evidence)``. A ``DataLoader`` works as
    with any data set; `loader` makes one that fetches a batch at once, which is many times quicker for small rows.
    """

    def __init__(
        self,
        X: Any,
        labels: Labels,
        *,
        unlabelled: Unlabelled = "drop",
        noise: str | NoiseModel | None = None,
        dtype: torch.dtype | None = torch.float32,
    ) -> None:
        if not isinstance(labels, Labels):
            raise InvalidLabels(f"labels must be Labels, got {type(labels).__name__}; use Labels.from_frame")
        table = X if isinstance(X, torch.Tensor) else as_rows(X)
        votes = gather(labels, None, n_rows_of(table))
        self.rows: Positions = votes.used(unlabelled)
        self.classes, self.labelers, self.answers = votes.classes, labels.labelers, labels.answers
        self.n_classes, self.n_labelers, self.n_answers = labels.n_classes, labels.n_labelers, labels.n_answers
        self.dtype = dtype
        self._X = _stored(table, self.rows, dtype)
        self.noise_: NoiseModel | None = None
        self.prior: Floats | None = None
        self.confusion: Floats | None = None
        self._target: Votes | torch.Tensor
        if noise is None:
            self._target = Votes(*(torch.from_numpy(part[self.rows]) for part in padded_votes(labels)))
            return
        fitted = isinstance(noise, NoiseModel) and hasattr(noise, "prior_")
        model = noise if isinstance(noise, NoiseModel) and fitted else votes.noise(noise)
        self._target = torch.as_tensor(relative(votes.log_likelihood(model)[self.rows]), dtype=torch.float32)
        self.noise_, self.prior = model, np.asarray(model.prior_)
        if isinstance(model, TableModel):
            self.confusion = np.asarray(model.confusion_for(labels))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> tuple[torch.Tensor, Any]:
        """The item, or a batch of items for a list of indices."""
        if isinstance(index, torch.Tensor | np.ndarray) and not index.ndim:
            index = int(index)
        is_single = isinstance(index, int | np.integer)
        rows = [index] if is_single else index
        if isinstance(self._X, torch.Tensor):
            x = self._X[rows]
        else:
            positions = rows.numpy() if isinstance(rows, torch.Tensor) else rows
            x = torch.as_tensor(self._X[positions].toarray(), dtype=self.dtype)
        target = self._target
        part: Any = Votes(*(each[index] for each in target)) if isinstance(target, Votes) else target[index]
        return (x[0] if is_single else x), part

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[torch.Tensor, Any]]:
        """The items of a batch, which a ``DataLoader`` asks for at once and puts together itself."""
        x, target = self[list(indices)]
        each = map(Votes, *(part.unbind() for part in target)) if isinstance(target, Votes) else target.unbind()
        return list(zip(x.unbind(), each, strict=True))

    def loader(
        self, batch_size: int = 32, *, shuffle: bool = True, generator: torch.Generator | None = None, **options: Any
    ) -> DataLoader:
        """A ``DataLoader`` that fetches whole batches.

        Parameters
        ----------
        generator : torch.Generator, optional
            Draws the order; pass one with a seed of its own to draw the same order again.
        **options
            Of ``DataLoader``: num_workers, pin_memory, …
        """
        size = check_integer(batch_size, name="batch_size", low=1)
        drop_last = bool(options.pop("drop_last", False))
        order = RandomSampler(self, generator=generator) if shuffle else SequentialSampler(self)
        return DataLoader(self, batch_size=None, sampler=BatchSampler(order, size, drop_last), **options)


def _stored(X: Any, rows: Positions, dtype: torch.dtype | None) -> Any:
    """The rows of X as a tensor, or as a CSR matrix."""
    if isinstance(X, torch.Tensor):
        kept = X if len(rows) == len(X) else X[torch.from_numpy(rows)]
        return kept if dtype is None else kept.to(dtype)
    part = take(X, rows)
    if hasattr(part, "tocsr"):
        return part.tocsr()
    array = np.array(part)
    try:
        return torch.as_tensor(array if array.dtype.kind in "biufc" else array.astype(float), dtype=dtype)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"X must hold numbers, got {preview(array.ravel(), most=1)}; turn texts and categories into features first"
        ) from None


def relative(logs: Floats) -> Floats:
    """Evidence less that of each item's best class, and at least -CERTAIN: many votes make all of it small."""
    best = logs.max(axis=1, keepdims=True)
    if not np.isfinite(best).all():
        raise InvalidLabels(
            "the noise model must leave each item a class that is possible, got an item with none; take a model in "
            "which every answer has a probability above 0"
        )
    return np.asarray(np.maximum(logs - best, -CERTAIN))


def padded_votes(labels: Labels) -> tuple[Positions, Positions]:
    """Labelers and answers of the votes on each item, shape (n_items, most votes), padded with -1."""
    item, labeler, answer, times = (np.asarray(part, dtype=np.int64) for part in labels.vote_table())
    gold = np.flatnonzero(labels.gold_codes >= 0)
    item = np.concatenate([np.repeat(item, times), gold])
    labeler = np.concatenate([np.repeat(labeler, times), np.full(len(gold), -2)])
    answer = np.concatenate([np.repeat(answer, times), labels.gold_codes[gold].astype(np.int64)])
    order = np.argsort(item, kind="stable")
    item, labeler, answer = item[order], labeler[order], answer[order]
    counts = np.bincount(item, minlength=labels.n_items)
    place = np.arange(len(item)) - np.repeat(np.cumsum(counts) - counts, counts)
    padded = np.full((2, labels.n_items, max(int(counts.max(initial=0)), 1)), -1, dtype=np.int64)
    padded[0, item, place], padded[1, item, place] = labeler, answer
    return padded[0], padded[1]
