"""Losses that take the place of ``CrossEntropyLoss`` where targets are votes: the MMSE risk and the likelihood."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from trueup._base.validation import check_choice
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import NoiseModel
from trueup.training.torch.votes import (
    Votes,
    as_float,
    as_votes,
    can_look,
    check_prior,
    check_votes,
    log_table,
    matrices_of,
    shown,
)

Reduction = Literal["mean", "sum", "none"]
_LEAST_LOG = -1e30  # in place of -inf, which is nan where it is multiplied by a belief of 0


def class_scores(logits: torch.Tensor, n_classes: int | None) -> torch.Tensor:
    """The logits in single precision at least, after a look at their shape."""
    if not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
        raise InvalidParameter(
            f"logits must be a floating tensor, got {shown(logits)}; pass what the network gives, without a softmax"
        )
    if logits.ndim != 2 or (n_classes is not None and logits.shape[1] != n_classes):
        raise InvalidParameter(
            f"logits must have shape (batch, {n_classes or 'n_classes'}), got {tuple(logits.shape)}; "
            "the network must have an output for each class"
        )
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def log_chances(scores: torch.Tensor) -> torch.Tensor:
    """Log p(y|x), finite also for a class that was ruled out by a logit of -inf."""
    return functional.log_softmax(scores, dim=1).clamp_min(_LEAST_LOG)


class EvidenceLoss(nn.Module):  # type: ignore[misc]
    """Base: what the votes of an item say of each class, whichever way they come."""

    table: torch.Tensor | None
    everyone: torch.Tensor | None

    def __init__(self, noise: NoiseModel | npt.ArrayLike | None, labels: Labels | None, reduction: Reduction) -> None:
        super().__init__()
        self.reduction = check_choice(reduction, get_args(Reduction), name="reduction")
        matrices, prior = (None, None) if noise is None else matrices_of(noise, labels)
        self._known_prior = prior
        self.n_classes = None if matrices is None else matrices.shape[1]
        self.register_buffer("table", None if matrices is None else log_table(matrices))
        self.register_buffer("everyone", None if matrices is None else torch.arange(len(matrices)))

    def evidence(self, scores: torch.Tensor, target: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Log p(votes | class) of the items of a batch, shape (batch, n_classes), like `scores` in type.

        Evidence that was given is taken relative to its best class; what was taken off comes second, (batch, 1).
        """
        if isinstance(target, torch.Tensor) and target.is_floating_point():
            if target.shape != scores.shape:
                raise InvalidLabels(
                    f"evidence must have the shape of the logits, {tuple(scores.shape)}, got {tuple(target.shape)}; "
                    "pass log p(votes | class), a column for each class"
                )
            given = target.detach()
            best = given.amax(dim=1, keepdim=True)
            _check_possible(best)
            return (given - best).to(scores.dtype), best.to(scores.dtype)
        if not isinstance(target, Votes | torch.Tensor):
            raise InvalidLabels(
                f"the target must be Votes or a tensor, got {shown(target)}; make it with VoteDataset, "
                "Votes.from_matrix or torch.as_tensor"
            )
        if self.table is None:
            raise InvalidParameter(
                f"votes can only be read with a noise model, got none; pass {type(self).__name__}(noise), or evidence "
                "of VoteDataset(X, labels, noise=…) as target"
            )
        votes = as_votes(target, self.everyone)
        check_place(scores, votes, self.table)
        check_votes(votes, self.table.shape[0] - 2, self.table.shape[1] - 1)
        return self.table[votes.labelers, votes.answers].sum(dim=1, dtype=scores.dtype), None

    def extra_repr(self) -> str:
        """Sizes and reduction."""
        known = "" if self.table is None else f"n_labelers={self.table.shape[0] - 2}, n_classes={self.n_classes}, "
        return f"{known}reduction={self.reduction!r}"


def _check_possible(best: torch.Tensor) -> None:
    """Raise if the evidence of an item rules out every class. Elsewhere than on the CPU its loss is nan."""
    if not can_look(best):
        return
    try:
        possible = bool(best.isfinite().all())
    except RuntimeError:  # mapped by torch.func.vmap
        return
    if not possible:
        raise InvalidLabels(
            "evidence must leave each item a class that is possible, got an item whose best class has evidence of "
            "-inf or nan; give items whose votes say nothing zeros"
        )


def check_place(scores: torch.Tensor, votes: Votes, table: torch.Tensor) -> None:
    """Raise if logits and votes are not of the same items, or the loss is not where they are."""
    if scores.shape[0] != votes.answers.shape[0]:
        raise InvalidLabels(
            f"logits and votes must be of the same items, got {scores.shape[0]} rows of logits and "
            f"{votes.answers.shape[0]} of votes; take both from one batch"
        )
    if table.device != scores.device:
        raise InvalidParameter(
            f"the loss must be where the logits are, on {scores.device}, got it on {table.device}; call "
            f"loss.to({str(scores.device)!r})"
        )


class MMSELoss(EvidenceLoss):
    r"""Cross-entropy that is to be expected given the votes.

    .. math:: -\sum_y p(y \mid z) \log p(y \mid x), \qquad p(y \mid z) \propto \pi_y \prod_r \theta_r[y, z_r]

    for the votes z of an item, with p(y|x) the softmax of the logits [1]_. With labelers who never err it is
    ``CrossEntropyLoss``. An item whose votes say nothing is trained on with the prior. Its minimum E[p(y|z) | x] is
    flatter than p(y|x): decisions suffer little, probabilities more (see `NoisyLikelihoodLoss`).

    Parameters
    ----------
    noise : NoiseModel, or array of shape (n_labelers, n_classes, n_answers), optional
        A fitted model with a confusion matrix for each labeler, or the matrices θ; rows are the truth. Without it the
        targets must be evidence.
    prior : array of shape (n_classes,), optional
        π; that of the noise model by default, or else uniform.
    labels : Labels, optional
        The labels that the votes are numbered by: numbers are positions in ``labels.labelers`` and ``labels.classes``.
        By default those the noise model was fitted to. Pass them if the data have other labelers or another order;
        labelers the model does not know get its pooled matrix, and other classes are an error.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    ``loss(logits, target)`` takes logits of shape (batch, n_classes), and as target

    - `Votes`, as `VoteDataset` yields them;
    - an integer tensor of shape (batch, n_labelers), -1 where there is no vote; (batch,) if there is one labeler;
    - a floating tensor of shape (batch, n_classes): evidence log p(z | y), up to a constant for each item.

    Evidence may be -inf for classes that are ruled out, but not for all of an item: that is an error on the CPU and nan
    elsewhere. A class with a logit of -inf counts nothing where p(y|z) is 0. Half-precision logits are taken to single
    precision first. No gradient goes through p(y|z).

    References
    ----------
    .. [1] Su (2024), Section 3.2, eqs. 37 and 40.

    Examples
    --------
    >>> import torch
    >>> from trueup.training.torch import MMSELoss
    >>> loss = MMSELoss([[[0.9, 0.1], [0.2, 0.8]]] * 3)
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    >>> value = loss(logits, torch.tensor([[0, 0, 1], [-1, 1, -1]]))
    >>> value.backward()
    >>> round(value.item(), 3), logits.grad.shape
    (0.559, torch.Size([2, 2]))
    """

    log_prior: torch.Tensor

    def __init__(
        self,
        noise: NoiseModel | npt.ArrayLike | None = None,
        *,
        prior: npt.ArrayLike | None = None,
        labels: Labels | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(noise, labels, reduction)
        known = check_prior(prior, self._known_prior, self.n_classes)
        if known is not None:
            self.n_classes = len(known)
        shares = np.full(self.n_classes or 1, 1.0) if known is None else known
        self.register_buffer("log_prior", as_float(np.log(np.maximum(shares, 1e-12))))

    def beliefs(self, logits: torch.Tensor, target: Any) -> torch.Tensor:
        """P(class | votes), shape (batch, n_classes); of the logits only shape and type matter."""
        evidence, _ = self.evidence(class_scores(logits, self.n_classes), target)
        return torch.softmax(evidence + self.log_prior, dim=1).to(logits.dtype)

    def forward(self, logits: torch.Tensor, target: Any) -> torch.Tensor:
        """The loss of a batch."""
        scores = class_scores(logits, self.n_classes)
        beliefs = self.beliefs(scores, target)
        log_p = log_chances(scores)
        if self.reduction == "none":
            return -(beliefs * log_p).sum(dim=1)
        # One product for all, scaled where no gradient flows: small networks wait for each operation.
        scale = 1 if self.reduction == "sum" else max(scores.shape[0], 1)
        return torch.dot((beliefs / -scale).reshape(-1), log_p.reshape(-1))


class NoisyLikelihoodLoss(EvidenceLoss):
    r"""The negative log-likelihood of the votes.

    .. math:: -\log \sum_y p(y \mid x) \, p(z \mid y), \qquad p(z \mid y) = \prod_r \theta_r[y, z_r]

    for the votes z of an item, with p(y|x) the softmax of the logits [1]_. Its minimum is p(y|x), so probabilities come
    out calibrated. With labelers who never err it is ``CrossEntropyLoss``: an answer of probability 0 counts as
    :math:`e^{-100}`, so this holds until a network contradicts them by 80 or more. Votes that say nothing have no
    gradient. Nothing is left out of the likelihood; with evidence as target the loss is shifted by the constant of each
    item's evidence (that of `VoteDataset` is 0 at the best class).

    Parameters
    ----------
    noise : NoiseModel, or array of shape (n_labelers, n_classes, n_answers), optional
        A fitted model with a confusion matrix for each labeler, or the matrices θ; rows are the truth. Without it the
        targets must be evidence.
    labels : Labels, optional
        The labels that the votes are numbered by, as for `MMSELoss`.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    ``loss(logits, target)`` takes the targets that `MMSELoss` takes.

    References
    ----------
    .. [1] Su (2024), Section 3.1, eq. 32.

    Examples
    --------
    >>> import torch
    >>> from trueup.training.torch import NoisyLikelihoodLoss
    >>> loss = NoisyLikelihoodLoss([[[0.9, 0.1], [0.2, 0.8]]] * 3)
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> round(loss(logits, torch.tensor([[0, 0, 1], [-1, 1, -1]])).item(), 3)
    1.54
    """

    def __init__(
        self,
        noise: NoiseModel | npt.ArrayLike | None = None,
        *,
        labels: Labels | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(noise, labels, reduction)

    def forward(self, logits: torch.Tensor, target: Any) -> torch.Tensor:
        """The loss of a batch."""
        scores = class_scores(logits, self.n_classes)
        evidence, best = self.evidence(scores, target)
        loss = minus_log_sum_exp(functional.log_softmax(scores, dim=1) + evidence, self.reduction)
        if best is None:
            return loss
        if self.reduction == "none":
            return loss - best[:, 0]
        return loss - best.sum() / (max(scores.shape[0], 1) if self.reduction == "mean" else 1)


def minus_log_sum_exp(joint: torch.Tensor, reduction: str) -> torch.Tensor:
    """-log Σ exp of the rows of a matrix, reduced; 0 if there are none.

    A log-softmax less its argument is the same all along a row. It is read where the row is largest: what is -inf or
    far below then matters neither to the value nor to the gradient. ``torch.logsumexp`` takes twice as many kernels.
    """
    at = joint.detach().argmax(dim=1)
    how = reduction if joint.shape[0] else reduction.replace("mean", "sum")
    return functional.nll_loss(joint - functional.log_softmax(joint, dim=1), at, reduction=how)
