"""The votes of a batch of items, as torch sees them."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from trueup.exceptions import InvalidLabels

__all__ = ["Votes", "as_votes", "can_look", "check_range", "check_votes", "is_integer", "told"]


class Votes(NamedTuple):
    """Who said what about the items of a batch.

    Only votes that were cast are held, so thousands of labelers cost nothing. It is a tuple: `default_collate`, pinned
    memory and ``torch.compile`` know what to do with it.

    Attributes
    ----------
    labelers : integer tensor of shape (batch, width)
        The labeler of each vote, a position in ``labels.labelers``; -1 where an item has fewer votes than `width`, and
        -2 for the oracle, who is always right: so a known truth is a vote too.
    answers : integer tensor of shape (batch, width)
        What was said: a position in ``labels.classes`` or, after the classes, an abstention that counts as an answer;
        -1 for none.

    Notes
    -----
    Names are not held. Numbers mean what they meant in the labels the votes come from, and losses must know the
    labelers and classes in the same order. Numbers out of range are an error on the CPU; on a GPU, and in what is
    compiled or mapped by ``torch.func``, they are not looked at.

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
        if matrix.ndim != 2 or not is_integer(matrix):
            raise InvalidLabels(
                f"votes must be an integer tensor of shape (batch, n_labelers), got {told(matrix)}; "
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
        return _checked(target)
    n_labelers = everyone.shape[0]
    if is_integer(target):
        if target.ndim == 1 and n_labelers == 1:
            target = target[:, None]
        if target.ndim == 2 and target.shape[1] == n_labelers:
            return Votes(everyone, target.long())
    raise InvalidLabels(
        f"the target must be Votes or an integer tensor of shape (batch, {n_labelers}), a column for each labeler, got "
        f"{told(target)}; make it with VoteDataset or Votes.from_matrix"
    )


def is_integer(value: Any) -> bool:
    """Whether it is a tensor of integers; booleans are none."""
    return (
        isinstance(value, torch.Tensor)
        and not value.is_floating_point()
        and not value.is_complex()
        and value.dtype != torch.bool
    )


def _checked(votes: Votes) -> Votes:
    """Votes as long integers: torch takes bytes for a mask, and other short ones not at all."""
    labelers, answers = votes
    if not (is_integer(labelers) and is_integer(answers)):
        raise InvalidLabels(
            f"votes must be integer tensors, got labelers in {told(labelers)} and answers in {told(answers)}; pass "
            "positions in labels.labelers and labels.classes"
        )
    if answers.ndim != 2 or labelers.shape not in (answers.shape, answers.shape[1:]):
        raise InvalidLabels(
            "labelers and answers of votes must have the same shape (batch, width), got "
            f"{tuple(labelers.shape)} and {tuple(answers.shape)}; pad both with -1"
        )
    return Votes(labelers.long(), answers.long())


def check_votes(votes: Votes, n_labelers: int, n_answers: int) -> None:
    """Raise if a vote is of nobody or says nothing that is known."""
    check_range(votes.labelers, n_labelers, "labelers of votes", oracle=True)
    check_range(votes.answers, n_answers, "answers of votes")


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


def told(value: Any) -> str:
    """What a wrong target is, for an error."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__
