"""A layer behind a network that learns how labels err."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from trueup._base.validation import check_choice, check_distribution, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import NoiseModel
from trueup.training.torch.losses import Reduction, class_scores, minus_log_sum_exp, read_votes
from trueup.training.torch.votes import as_float, as_numbers, matrices_of, oracle_logs, row_numbers

_LEAST = 1e-4  # the least probability a learned matrix starts with: from zero nothing is learned
_DROPPED = -1e4  # log-probability of a class that is dropped out


def start_matrix(diagonal: Any, n_classes: int, n_answers: int) -> npt.NDArray[np.float64]:
    """A matrix with `diagonal` for the right answer and equal shares of the rest, shape (n_classes, n_answers)."""
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
    """Log Σ_y p(y|x) A(a|y) for matrices of shape (n_rows, n_classes); shape (batch, n_rows)."""
    with torch.autocast(log_p.device.type, enabled=False):
        mixed = log_p.exp() @ matrices.to(log_p.dtype).T
    return mixed.clamp_min(torch.finfo(mixed.dtype).tiny).log()


class NoiseLayer(nn.Module):  # type: ignore[misc]
    r"""From logits of the truth to log-probabilities of a noisy label, by a matrix that is learned with the network.

    .. math:: p(\tilde y = a \mid x) = \sum_y A[y, a]\, p(y \mid x)

    with the rows of A a softmax of parameters (Sukhbaatar et al., arXiv:1406.2080). Train it on top of the network with
    ``nll_loss``, then drop it. The likelihood alone cannot distinguish noise from a network that has learned it by
    heart: `dropout` and `trace_weight` push the noise into the layer.

    Parameters
    ----------
    n_answers : int, optional. What a label can be; the classes by default. Further ones are abstentions.
    init : float, or array of shape (n_classes, n_answers). The diagonal of A at the start, or A.
    dropout : float
        The share of classes whose probability is left out before the layer while training (Jindal et al., ICDM 2016);
        the rest are scaled to a sum of 1. Drawn as in ``nn.Dropout``.
    trace_weight : float. λ of `penalty`.

    Notes
    -----
    ``layer(logits)`` has shape (batch, n_answers).
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


_FLAT = 0.01  # with much less on the diagonal the volume of an untrained network's predictions outweighs the votes


class CrowdLayer(nn.Module):  # type: ignore[misc]
    r"""Confusion matrices of labelers that are learned together with a network.

    Labeler r answers a to class y with probability :math:`A_r[y, a]`, a softmax of parameters. `loss` is one of

    .. math::

       -\sum_r \log \sum_y p(y \mid x) A_r[y, z_r] \qquad\text{or}\qquad -\log \sum_y p(y \mid x) \prod_r A_r[y, z_r]

    for the votes z of an item. The first takes every vote for a noisy label of its own (Tanno et al., CVPR 2019), the
    second (``joint=True``) is the likelihood of all votes of the item together (Raykar et al., JMLR 2010). Both add
    :math:`\lambda \frac1R \sum_r \mathrm{tr} A_r`: of all matrices that explain the votes these trust the labelers
    least. Without it a network that has learned a labeler's errors by heart makes them look perfect. And both subtract
    :math:`\nu \log\det (\tfrac1n P^\top P + 0.01 I)` for the predictions P of the batch: of all that explain the votes
    these are the surest and most evenly spread (Ibrahim et al., ICLR 2023). It finds out where a whole crowd errs
    together, if features separate the classes; if they do not it does harm.

    Parameters
    ----------
    n_answers : int, optional. What a labeler can say; the classes by default. Further ones are abstentions.
    init : float, NoiseModel, or array of shape (n_labelers, n_classes, n_answers)
        The diagonal of all matrices at the start; or the matrices of a fitted noise model. These start where the votes
        alone lead, which matters where labelers have few votes or err more often than not.
    labels : Labels, optional
        The labels that the votes are numbered by, if `init` is a noise model fitted to others, as for `MMSELoss`.
    trace_weight : float. λ.
    volume_weight : float
        ν; 0.3 to 1 is much. Batches should have several items for each class, and classes similar shares.

    Notes
    -----
    ``layer(logits)`` has shape (batch, n_labelers, n_answers): log-probabilities of what everyone would say.
    Train on ``layer.loss(network(x), votes)`` with an optimiser that has the layer's parameters too.
    """

    oracle: torch.Tensor
    rows: torch.Tensor
    everyone: torch.Tensor
    trace: torch.Tensor

    def __init__(
        self,
        n_labelers: int,
        n_classes: int,
        n_answers: int | None = None,
        *,
        init: float | NoiseModel | npt.ArrayLike = 0.9,
        labels: Labels | None = None,
        trace_weight: float = 0.01,
        volume_weight: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
        self.n_classes, self.n_answers = check_sizes(n_classes, n_answers)
        self.trace_weight = check_number(trace_weight, name="trace_weight", low=0.0)
        self.volume_weight = check_number(volume_weight, name="volume_weight", low=0.0)
        shape = (self.n_labelers, self.n_classes, self.n_answers)
        if isinstance(init, int | float | np.number):
            matrices = np.broadcast_to(start_matrix(init, self.n_classes, self.n_answers), shape)
        else:
            matrices, _ = matrices_of(init, labels, multiply=False)
        if matrices.shape != shape:
            raise InvalidParameter(
                f"init must have a matrix for each labeler, shape {shape}, got shape {matrices.shape}; pass labels= to "
                "take the matrices of their labelers"
            )
        self.weight = nn.Parameter(start_logits(matrices))
        tail = np.concatenate([oracle_logs(self.n_classes, self.n_answers), np.zeros((1, self.n_classes))])
        self.register_buffer("oracle", as_float(tail))
        self.register_buffer("rows", row_numbers(self.n_labelers, self.n_answers))
        self.register_buffer("everyone", torch.arange(self.n_labelers))
        own = np.eye(self.n_answers, self.n_classes)
        right = np.broadcast_to(own, (self.n_labelers, *own.shape))
        self.register_buffer("trace", as_float(right / self.n_labelers), persistent=False)

    @property
    def matrices(self) -> torch.Tensor:
        """A, shape (n_labelers, n_classes, n_answers)."""
        return torch.softmax(self.weight, dim=1).transpose(1, 2)

    def penalty(self) -> torch.Tensor:
        """λ · the mean over labelers of the trace of A."""
        return self._penalty(functional.log_softmax(self.weight, dim=1))

    def _penalty(self, logs: torch.Tensor) -> torch.Tensor:
        return torch.dot(logs.exp().reshape(-1), self.trace.reshape(-1)) * self.trace_weight

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """Log p(answer | x) of every labeler, shape (batch, n_labelers, n_answers)."""
        log_p = functional.log_softmax(class_scores(logits, self.n_classes), dim=1)
        flat = torch.softmax(self.weight, dim=1).reshape(-1, self.n_classes)
        return log_mix(log_p, flat).view(-1, self.n_labelers, self.n_answers)

    def loss(
        self, logits: torch.Tensor, target: Any, *, joint: bool = False, reduction: Reduction = "mean"
    ) -> torch.Tensor:
        """The loss of a batch; only the entries of the matrices that votes point at are touched.

        Parameters
        ----------
        logits : tensor of shape (batch, n_classes)
        target : Votes, or integer tensor of shape (batch, n_labelers) with -1 for no vote
        joint : bool. The likelihood of all votes of an item together, or of each on its own.
        reduction : {"mean", "sum", "none"}
            Over items, not votes. With the mean come trace and volume, with the sum as often as there are items; the
            losses of single items are without.
        """
        how = check_choice(reduction, get_args(Reduction), name="reduction")
        scores = class_scores(logits, self.n_classes)
        votes = read_votes(target, self.everyone, scores, self.weight, self.n_labelers, self.n_answers)
        logs = functional.log_softmax(self.weight, dim=1)
        table = torch.cat([logs.reshape(-1, self.n_classes), self.oracle])
        rows = self.rows[votes.labelers, votes.answers]
        evidence = functional.embedding(rows, table).to(scores.dtype)  # (batch, width, n_classes)
        log_p = functional.log_softmax(scores, dim=1)
        if joint:
            loss = minus_log_sum_exp(log_p + evidence.sum(dim=1), how)
        else:
            # Where there is no vote this is the sum of p(y|x), whose logarithm is 0.
            each = (log_p[:, None] + evidence).reshape(-1, self.n_classes)
            loss = minus_log_sum_exp(each, "none" if how == "none" else "sum")
            if how == "none":
                loss = loss.view(evidence.shape[:2]).sum(dim=1)
            elif how == "mean":
                loss = loss / max(scores.shape[0], 1)
        if how == "none":
            return loss
        times = min(scores.shape[0], 1) if how == "mean" else scores.shape[0]  # of no items nothing is to be learned
        if self.trace_weight:
            loss = loss + self._penalty(logs) * times
        if self.volume_weight:
            loss = loss - log_volume(log_p) * (self.volume_weight * times)
        return loss

    def extra_repr(self) -> str:
        """Sizes and regulariser."""
        sizes = f"n_labelers={self.n_labelers}, n_classes={self.n_classes}, n_answers={self.n_answers}"
        return f"{sizes}, trace_weight={self.trace_weight:g}, volume_weight={self.volume_weight:g}"


def log_volume(log_p: torch.Tensor) -> torch.Tensor:
    """Log det (PᵀP / n + 0.01 I) of the predictions of a batch."""
    n, n_classes = log_p.shape
    with torch.autocast(log_p.device.type, enabled=False):
        p = log_p.exp()
        moments = p.T @ p / max(n, 1) + _FLAT * torch.eye(n_classes, dtype=p.dtype, device=p.device)
        # The matrix is positive, so that a Cholesky factor does, and a GPU need not be waited for.
        factor, _ = torch.linalg.cholesky_ex(moments)
    return 2 * factor.diagonal().log().sum()
