"""A torch data set that yields items with their votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler

from trueup._base.types import Positions
from trueup._base.validation import check_integer, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.base import TableModel
from trueup.training.copies import as_rows, n_rows_of, take
from trueup.training.torch.votes import CERTAIN, Votes
from trueup.training.votes import Unlabelled, gather

__all__ = ["VoteDataset"]


class VoteDataset(Dataset):  # type: ignore[misc]
    r"""Items with the votes on them, for a network to be trained on.

    Parameters
    ----------
    X : array, tensor, sparse matrix or frame of n_items rows
        Row i is item i of ``labels.items``; rows may have any shape. Sparse rows are made dense when asked for.
    labels : Labels
        The votes. Items whose truth is known (``labels.with_gold``) get a vote of the oracle, number -2, or certain
        evidence.
    unlabelled : {"drop", "prior", "error"}
        Items without votes are left out, kept with no vote at all, or an error.
    noise : str or NoiseModel, optional
        Yield evidence instead of votes: log p(votes | class) by this model, fitted to `labels` unless it is already,
        less that of the item's best class.
        Any noise model will do, also one without a confusion matrix for each labeler.
    dtype : torch.dtype or None
        Of the rows of X; None leaves it.

    Attributes
    ----------
    classes, labelers, answers : array
        The names that numbers in votes stand for.
    n_classes, n_labelers, n_answers : int
    rows : integer array of shape (len(self),)
        The rows of X, and items of `labels`, that are here.
    noise_ : NoiseModel or None
    prior : array of shape (n_classes,) or None
        Shares of the classes by the noise model; pass it to `MMSELoss` together with evidence.
    confusion : array of shape (n_labelers, n_classes, n_answers) or None
        Where the noise model has it.

    Notes
    -----
    ``data[i]`` is ``(x, Votes)``, padded to the item with most votes, or ``(x, evidence)``. A ``DataLoader`` works as
    with any data set; `loader` makes one that fetches a batch at once, which is many times quicker for small rows.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.training.torch import VoteDataset
    >>> labels = tu.Labels.from_matrix([[0, 1, -1], [1, 1, 1], [-1, 0, -1]])
    >>> data = VoteDataset([[0.1], [0.2], [0.3]], labels)
    >>> x, votes = data[0]
    >>> len(data), votes.labelers.tolist(), votes.answers.tolist()
    (3, [0, 1, -1], [0, 1, -1])
    >>> [votes.answers.shape for _, votes in data.loader(2)]
    [torch.Size([2, 3]), torch.Size([1, 3])]
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
            raise InvalidLabels(
                f"labels must be Labels, got {type(labels).__name__}; make them with tu.Labels.from_frame"
            )
        table = X if isinstance(X, torch.Tensor) else as_rows(X)
        votes = gather(labels, None, n_rows_of(table))
        self.rows: Positions = votes.used(unlabelled)
        self.classes, self.labelers, self.answers = votes.classes, labels.labelers, labels.answers
        self.n_classes, self.n_labelers, self.n_answers = labels.n_classes, labels.n_labelers, labels.n_answers
        self.dtype = dtype
        self._X = _stored(table, self.rows, dtype)
        self.noise_: NoiseModel | None = None
        self.prior: npt.NDArray[np.float64] | None = None
        self.confusion: npt.NDArray[np.float64] | None = None
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
        one = isinstance(index, int | np.integer)
        x = self._features([index] if one else index)
        target = self._target
        found: Any = (
            Votes(target.labelers[index], target.answers[index]) if isinstance(target, Votes) else target[index]
        )
        return (x[0] if one else x), found

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[torch.Tensor, Any]]:
        """The items of a batch, which a ``DataLoader`` asks for at once and puts together itself."""
        x, target = self[list(indices)]
        if isinstance(target, Votes):
            each: Any = map(Votes, target.labelers.unbind(), target.answers.unbind())
        else:
            each = target.unbind()
        return list(zip(x.unbind(), each, strict=True))

    def loader(
        self, batch_size: int = 32, *, shuffle: bool = True, generator: torch.Generator | None = None, **options: Any
    ) -> DataLoader:
        """A ``DataLoader`` that fetches whole batches.

        Parameters
        ----------
        batch_size : int
        shuffle : bool
        generator : torch.Generator, optional
            Draws the order; pass one with a seed of its own to draw the same order again.
        **options
            Of ``DataLoader``: num_workers, pin_memory, …
        """
        size = check_integer(batch_size, name="batch_size", low=1)
        drop_last = bool(options.pop("drop_last", False))
        order = RandomSampler(self, generator=generator) if shuffle else SequentialSampler(self)
        return DataLoader(self, batch_size=None, sampler=BatchSampler(order, size, drop_last), **options)

    def _features(self, index: Any) -> torch.Tensor:
        if isinstance(self._X, torch.Tensor):
            return self._X[index]
        at = index.numpy() if isinstance(index, torch.Tensor) else index
        return torch.as_tensor(self._X[at].toarray(), dtype=self.dtype)


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


def relative(logs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Evidence less that of each item's best class, and at least -CERTAIN: many votes make all of it small."""
    best = logs.max(axis=1, keepdims=True)
    if not np.isfinite(best).all():
        raise InvalidLabels(
            "the noise model must leave each item a class that is possible, got an item with none; take a model in "
            "which every answer has a probability above 0"
        )
    return np.asarray(np.maximum(logs - best, -CERTAIN))


def padded_votes(labels: Labels) -> tuple[Positions, Positions]:
    """Labelers and answers of the votes on each item, shape (n_items, most votes), padded with -1.

    A truth that is known comes after the votes, as a vote of labeler number -2, the oracle.
    """
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
