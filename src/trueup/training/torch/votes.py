"""The votes of a batch of items, as torch sees them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from trueup.exceptions import InvalidLabels

__all__ = ["Votes", "as_votes", "check_range", "check_votes"]


class Votes(NamedTuple):
    """Who said what about the items of a batch.

    Only votes that were cast are held, so thousands of labelers cost nothing. It is a tuple: `default_collate`, pinned
    memory and ``torch.compile`` know what to do with it.

    Attributes
    ----------
    labelers : integer tensor of shape (batch, width)
        The labeler of each vote; -1 where an item has fewer votes than `width`. The number after the last labeler is
        the oracle, who is always right: so a known truth is a vote too.
    answers : integer tensor of shape (batch, width)
        What was said: a class or, after the classes, an abstention that counts as an answer; -1 for none.

    Examples
    --------
    >>> import torch
    >>> from trueup.training.torch import Votes
    >>> votes = Votes.from_matrix(torch.tensor([[0, -1, 1], [-1, 2, -1]]))
    >>> votes.labelers.tolist(), votes.answers.tolist()
    ([[0, 2], [1, -1]], [[0, 1], [2, -1]])
    """

    labelers: torch.Tensor
    answers: torch.Tensor

    @classmethod
    def from_matrix(cls, matrix: torch.Tensor) -> Votes:
        """Votes from an integer tensor of shape (batch, n_labelers), -1 where a labeler did not vote."""
        matrix = torch.as_tensor(matrix)
        if matrix.ndim != 2 or matrix.is_floating_point() or matrix.is_complex() or matrix.dtype == torch.bool:
            raise InvalidLabels(
                f"votes must be an integer tensor of shape (batch, n_labelers), got {_told(matrix)}; "
                "pass codes of classes, and -1 where a labeler did not vote"
            )
        cast = matrix >= 0
        width = int(cast.sum(dim=1).max()) if len(matrix) else 0
        order = torch.argsort(~cast, dim=1, stable=True)[:, : max(width, 1)]
        answers = matrix.long().gather(1, order).clamp_min(-1)
        return cls(torch.where(answers >= 0, order, -1), answers)

    def to(self, device: Any, *, non_blocking: bool = False) -> Votes:
        """The same votes on another device."""
        return Votes(
            self.labelers.to(device, non_blocking=non_blocking), self.answers.to(device, non_blocking=non_blocking)
        )


def as_votes(target: Any, everyone: torch.Tensor) -> Votes:
    """What a loss was given as votes.

    Parameters
    ----------
    target : Votes, or integer tensor of shape (batch, n_labelers), or of shape (batch,) if there is one labeler
        -1 where there is no vote.
    everyone : integer tensor of shape (n_labelers,)
        The numbers of the labelers.
    """
    if isinstance(target, Votes):
        return target
    n_labelers = everyone.shape[0]
    if isinstance(target, torch.Tensor) and not target.is_floating_point() and target.dtype != torch.bool:
        if target.ndim == 1 and n_labelers == 1:
            target = target[:, None]
        if target.ndim == 2 and target.shape[1] == n_labelers:
            return Votes(everyone, target)
    raise InvalidLabels(
        f"the target must be Votes or an integer tensor of shape (batch, {n_labelers}), a column for each labeler, got "
        f"{_told(target)}; make it with VoteDataset or Votes.from_matrix"
    )


def check_votes(votes: Votes, n_labelers: int, n_answers: int) -> None:
    """Raise if a vote is of nobody or says nothing that is known."""
    check_range(votes.labelers, n_labelers + 1, "labelers of votes")
    check_range(votes.answers, n_answers, "answers of votes")


def check_range(codes: torch.Tensor, most: int, what: str) -> None:
    """Raise unless all are between -1 and below `most`.

    Only where it costs next to nothing: not on a GPU, which would have to be waited for, and not while compiling.
    """
    if torch.compiler.is_compiling() or codes.device.type != "cpu" or not codes.numel():
        return
    low, high = (int(value) for value in torch.aminmax(codes))
    if low < -1 or high >= most:
        raise InvalidLabels(
            f"{what} must lie between -1 (none) and {most - 1}, got {high if high >= most else low}; "
            "the loss must know the same labelers and answers as the data"
        )


def _told(value: Any) -> str:
    """What a wrong target is, for an error."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__
