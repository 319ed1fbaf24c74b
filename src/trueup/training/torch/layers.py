"""A layer behind a network that learns how labels err."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from trueup._validation import check_distribution, check_integer, check_number
from trueup.exceptions import InvalidParameter
from trueup.training.torch._tables import as_float, as_numbers
from trueup.training.torch.losses import class_scores

__all__ = ["NoiseLayer"]

_LEAST = 1e-4  # the least probability a learned matrix starts with: from zero nothing is learned
_DROPPED = -1e4  # log-probability of a class that is dropped out


def start_matrix(diagonal: Any, n_classes: int, n_answers: int) -> npt.NDArray[np.float64]:
    """A matrix with `diagonal` for the right answer and the rest shared by the others, shape (n_classes, n_answers)."""
    check_number(diagonal, name="init", low=1 / n_answers, high=1.0, strict=True)
    matrix = np.full((n_classes, n_answers), (1 - diagonal) / (n_answers - 1))
    np.fill_diagonal(matrix, diagonal)
    return matrix


def start_logits(matrices: npt.ArrayLike) -> torch.Tensor:
    """Parameters whose softmax over answers is `matrices`, shape (..., n_answers, n_classes)."""
    return as_float(np.log(np.maximum(np.asarray(matrices, dtype=float), _LEAST)).swapaxes(-1, -2))


def check_sizes(n_classes: int, n_answers: int | None) -> tuple[int, int]:
    """The number of classes and of answers, which is the same by default."""
    classes = check_integer(n_classes, name="n_classes", low=2)
    return classes, classes if n_answers is None else check_integer(n_answers, name="n_answers", low=classes)


def log_mix(log_p: torch.Tensor, matrices: torch.Tensor) -> torch.Tensor:
    """Log Σ_y p(y|x) A(a|y) for matrices of shape (n_rows, n_classes); shape (batch, n_rows).

    All terms are positive, so sums in single precision lose nothing; under autocast the product must stay there.
    """
    with torch.autocast(log_p.device.type, enabled=False):
        mixed = log_p.exp() @ matrices.to(log_p.dtype).T
    return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()


class NoiseLayer(nn.Module):  # type: ignore[misc]
    r"""From logits of the truth to log-probabilities of a noisy label, by a matrix that is learned with the network.

    .. math:: p(\tilde y = a \mid x) = \sum_y A[y, a]\, p(y \mid x)

    with the rows of A a softmax of parameters, so that it stays stochastic [1]_. Train ``NoiseLayer`` on top of the
    network with ``nll_loss``, then drop it. The likelihood alone cannot tell noise from a network that has learned it
    by heart: `dropout` and `trace_weight` push the noise into the layer.

    Parameters
    ----------
    n_classes : int
    n_answers : int, optional
        What a label can be; the classes by default. Further ones are abstentions.
    init : float, or array of shape (n_classes, n_answers)
        The diagonal of A at the start, or A.
    dropout : float
        The share of classes whose probability is left out before the layer while training [2]_; the rest are scaled to
        a sum of 1. Drawn as in ``nn.Dropout``.
    trace_weight : float
        λ of `penalty`.

    Notes
    -----
    ``layer(logits)`` has shape (batch, n_answers).

    References
    ----------
    .. [1] S. Sukhbaatar, J. Bruna, M. Paluri, L. Bourdev, R. Fergus, "Training convolutional networks with noisy
       labels", ICLR 2015 workshop, arXiv:1406.2080.
    .. [2] I. Jindal, M. Nokleby, X. Chen, "Learning deep networks from noisy labels with dropout regularization", ICDM
       2016.

    Examples
    --------
    >>> import torch
    >>> from trueup.training.torch import NoiseLayer
    >>> layer = NoiseLayer(3, init=0.8)
    >>> log_p = layer(torch.tensor([[9.0, 0.0, 0.0]]))
    >>> [round(p, 2) for p in log_p.exp()[0].tolist()]
    [0.8, 0.1, 0.1]
    >>> loss = torch.nn.functional.nll_loss(log_p, torch.tensor([1])) + layer.penalty()
    """

    def __init__(
        self,
        n_classes: int,
        n_answers: int | None = None,
        *,
        init: float | npt.ArrayLike = 0.95,
        dropout: float = 0.0,
        trace_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_classes, self.n_answers = check_sizes(n_classes, n_answers)
        self.dropout = check_number(dropout, name="dropout", low=0.0, high=0.95)
        self.trace_weight = check_number(trace_weight, name="trace_weight", low=0.0)
        number = isinstance(init, int | float | np.number)
        given: Any = start_matrix(init, self.n_classes, self.n_answers) if number else as_numbers(init, name="init")
        if np.shape(given) != (self.n_classes, self.n_answers):
            raise InvalidParameter(
                f"init must be a number or a matrix of shape ({self.n_classes}, {self.n_answers}), got shape "
                f"{np.shape(given)}; rows are the truth"
            )
        self.weight = nn.Parameter(start_logits(check_distribution(given, name="each row of init")))

    @property
    def matrix(self) -> torch.Tensor:
        """A, shape (n_classes, n_answers)."""
        return torch.softmax(self.weight, dim=0).T

    def penalty(self) -> torch.Tensor:
        """λ · trace of A / n_classes, to be added to the loss: the least trust in labels that explains them."""
        return self.matrix.diagonal().mean() * self.trace_weight

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """Log p(noisy label | x), shape (batch, n_answers)."""
        log_p = functional.log_softmax(class_scores(logits, self.n_classes), dim=1)
        if self.dropout and self.training:
            # If every class of an item is dropped all move by the same, and none is.
            kept = functional.dropout(torch.ones_like(log_p), self.dropout)
            log_p = functional.log_softmax(torch.where(kept > 0, log_p, log_p + _DROPPED), dim=1)
        return log_mix(log_p, torch.softmax(self.weight, dim=0))

    def extra_repr(self) -> str:
        """Sizes and regularisers."""
        sizes = f"n_classes={self.n_classes}, n_answers={self.n_answers}"
        return f"{sizes}, dropout={self.dropout:g}, trace_weight={self.trace_weight:g}"
