"""Losses that take the place of ``CrossEntropyLoss`` where targets are votes: the MMSE risk and the likelihood."""

from __future__ import annotations

from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from trueup._base.validation import check_choice, check_distribution, check_integer
from trueup.data.labels import Labels
from trueup.estimators.published.tars2018.unbiased import inverse_weights
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import NoiseModel
from trueup.training.torch.votes import (
    Votes,
    as_float,
    as_numbers,
    as_votes,
    can_look,
    check_range,
    is_integer,
    log_table,
    matrices_of,
    shown,
    vote_table,
)

_ORACLE = 3e4  # the weight of a known truth, within half precision …
_VOTE = 0.03  # … and of a vote of the best labeler
_TINY = 1e-30


def virtual_loss(
    scores: torch.Tensor, virtual: torch.Tensor, n_items: torch.Tensor | int, reduction: str, floor: bool
) -> torch.Tensor:
    r"""Cross-entropy with virtual labels, :math:`-\sum_y v_y \log p(y \mid x)`, whose entries may be negative."""
    if reduction == "mean":
        virtual = virtual / n_items
    log_p = log_chances(scores)
    if reduction == "none" or floor:
        parts = virtual * log_p
        return -parts.sum(dim=1) if reduction == "none" else functional.relu(-parts.sum(dim=0)).sum()
    return -torch.dot(virtual.reshape(-1), log_p.reshape(-1))


def _check_floor(floor: bool, reduction: str) -> bool:
    if floor and reduction == "none":
        raise InvalidParameter('floor=True is for the sum over a batch, got reduction="none"; pass "mean" or "sum"')
    return bool(floor)


class ProxyLoss(nn.Module):  # type: ignore[misc]
    r"""A loss of the votes whose mean over the noise is the cross-entropy under the truth.

    The answer of labeler r stands for weights :math:`w_{ra}` over the classes, rows of :math:`\theta_r^{-1}`
    (Natarajan et al., NIPS 2013; backward correction of Patrini et al., CVPR 2017). The loss of an item is

    .. math:: -\sum_y v_y \log p(y \mid x), \qquad v = \sum_r \alpha_r w_{r z_r} \Big/ \sum_r \alpha_r, \qquad
        \alpha_r = 1 / \lVert W_r \rVert^2

    Labelers who guess, whose matrix cannot be inverted, do not count, and items with no others are left out of the
    mean.

    It is unbiased and noisy: some weights are negative, and a network that can learn items by heart makes the loss as
    small as it likes. Take `MMSELoss` or `NoisyLikelihoodLoss` unless a network is small or `floor` helps.

    Parameters
    ----------
    noise : NoiseModel, or array of shape (n_labelers, n_classes, n_answers)
        A fitted model with a confusion matrix for each labeler, or the matrices θ; rows are the truth.
    prior : array of shape (n_classes,), optional
        Which of many inverses is taken where there are more answers than classes: that of least variance under it.
    labels : Labels, optional. The labels that the votes are numbered by, as for `MMSELoss`.
    floor : bool
        Take the part of each class in the batch as at least 0 (Kiryo et al., NIPS 2017). No longer unbiased, but never
        below 0.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    ``loss(logits, target)`` takes `Votes` or an integer tensor of votes, not evidence, which does not name labelers.
    """

    table: torch.Tensor
    everyone: torch.Tensor

    def __init__(
        self,
        noise: NoiseModel | npt.ArrayLike,
        *,
        prior: npt.ArrayLike | None = None,
        labels: Labels | None = None,
        floor: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.reduction = check_choice(reduction, get_args(Reduction), name="reduction")
        self.floor = _check_floor(floor, self.reduction)
        matrices, known = matrices_of(noise, labels, multiply=False)
        n_labelers, self.n_classes, n_answers = matrices.shape
        weight = known if prior is None else check_distribution(prior, name="prior", n=self.n_classes)
        weight = np.full(self.n_classes, 1 / self.n_classes) if weight is None else weight
        inverse = inverse_weights(matrices, np.einsum("y,rya->ra", weight, matrices))
        size = (inverse**2).sum(axis=(1, 2))
        if np.isnan(size).all():
            raise InvalidParameter(
                "a labeler whose confusion matrix can be inverted is needed, got none; leave out labelers who guess, "
                "or add gold with labels.with_gold"
            )
        alpha = np.where(np.isnan(size), 0.0, 1 / size)[:, None, None]
        alpha *= _VOTE / alpha.max()
        rows = np.concatenate([np.nan_to_num(inverse * alpha), np.broadcast_to(alpha, (n_labelers, n_answers, 1))], 2)
        oracle = np.pad(np.eye(n_answers, self.n_classes), ((0, 0), (0, 1)), constant_values=1.0) * _ORACLE
        self.register_buffer("table", vote_table(rows, oracle))
        self.register_buffer("everyone", torch.arange(n_labelers))

    def forward(self, logits: torch.Tensor, target: Any) -> torch.Tensor:
        """The loss of a batch."""
        scores = class_scores(logits, self.n_classes)
        if isinstance(target, torch.Tensor) and target.is_floating_point():
            raise InvalidLabels(
                "ProxyLoss needs the votes, got evidence, which does not say who gave which answer; pass Votes, or "
                "take MMSELoss or NoisyLikelihoodLoss"
            )
        n_labelers, n_answers = self.table.shape[0] - 2, self.table.shape[1] - 1
        votes = read_votes(target, self.everyone, scores, self.table, n_labelers, n_answers)
        sums = self.table[votes.labelers, votes.answers].sum(dim=1, dtype=scores.dtype)
        weight = sums[:, self.n_classes :]
        virtual = sums[:, : self.n_classes] / weight.clamp_min(_TINY)
        return virtual_loss(scores, virtual, weight.count_nonzero().clamp_min(1), self.reduction, self.floor)

    def extra_repr(self) -> str:
        """Sizes and reduction."""
        sizes = f"n_labelers={self.table.shape[0] - 2}, n_classes={self.n_classes}"
        return f"{sizes}, reduction={self.reduction!r}{', floor=True' if self.floor else ''}"


class PartialLabelLoss(nn.Module):  # type: ignore[misc]
    r"""Cross-entropy for weak labels: symbols or sets of candidate classes that depend on the truth.

    A weak label z comes with probability :math:`M[z, y] = P(z \mid y)`. With a left inverse, :math:`Y M = I`, the loss
    :math:`-\sum_y Y[y, z] \log p(y \mid x)` has the cross-entropy under the truth as its mean over z. So it is proper:
    its minimum is p(y|x) (Cid-Sueiro, NIPS 2012; Cid-Sueiro et al., ECML PKDD 2014).

    Parameters
    ----------
    mixing : array of shape (n_weak, n_classes). M; its columns sum to 1.
    prior : array of shape (n_classes,), optional
        Of all left inverses take the one of least variance under these shares of classes; by default the
        pseudo-inverse.
    floor : bool. Take the part of each class in the batch as at least 0. No longer unbiased, but never below 0.
    reduction : {"mean", "sum", "none"}

    Notes
    -----
    ``loss(logits, target)`` takes an integer tensor of shape (batch,), the row of M that was seen, -1 for none; such
    items are left out of the mean. Made by `from_sets` it takes a boolean tensor of shape (batch, n_classes).
    """

    virtual: torch.Tensor | None
    scale: torch.Tensor | None
    shift: torch.Tensor | None

    def __init__(
        self,
        mixing: npt.ArrayLike,
        *,
        prior: npt.ArrayLike | None = None,
        floor: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        M = as_numbers(mixing, name="mixing")
        if M.ndim != 2 or M.shape[0] < M.shape[1] or M.shape[1] < 2:
            raise InvalidParameter(
                "mixing must have shape (n_weak, n_classes) with at least as many weak labels as classes, got "
                f"{M.shape}; M[z, y] is P(weak label z | class y)"
            )
        R = check_distribution(M.T, name="each column of mixing")
        frequencies = None if prior is None else check_distribution(prior, name="prior", n=len(R)) @ R
        virtual = inverse_weights(R, frequencies)
        if np.isnan(virtual).any():
            raise InvalidParameter(
                "mixing must tell the classes apart, got a matrix whose columns are not independent; merge the classes "
                "that give the same weak labels"
            )
        self._set_up(len(R), floor, reduction, virtual=as_float(np.pad(virtual, ((0, 1), (0, 0)))))

    def _set_up(self, n_classes: int, floor: bool, reduction: Reduction, **buffers: torch.Tensor) -> None:
        super().__init__()
        self.reduction = check_choice(reduction, get_args(Reduction), name="reduction")
        self.floor = _check_floor(floor, self.reduction)
        self.n_classes = n_classes
        for name in ("virtual", "scale", "shift"):
            self.register_buffer(name, buffers.get(name))

    @classmethod
    def from_sets(
        cls,
        n_classes: int,
        *,
        extra: npt.ArrayLike,
        hit: npt.ArrayLike = 1.0,
        floor: bool = False,
        reduction: Reduction = "mean",
    ) -> Self:
        r"""For candidate sets S that hold the true class with probability `hit` and each other one with `extra`.

        Then :math:`(1[c \in S] - e_c) / (h_c - e_c)` is unbiased for the indicator of the truth. Classes must be in the
        set or not independently of each other, given the truth.

        Parameters
        ----------
        extra : float or array of shape (n_classes,)
            e: the probability that a class is in the set of an item of another class.
        hit : float or array of shape (n_classes,)
            h: the probability that a class is in the set of its own items; 1 by default.
        floor, reduction
            As for the class itself.
        """
        n = check_integer(n_classes, name="n_classes", low=2)
        given = {"extra": extra, "hit": hit}
        e, h = (as_numbers(value, name=name, shape=(n,)) for name, value in given.items())
        for name, value in (("extra", e), ("hit", h)):
            if not ((value >= 0) & (value <= 1)).all():
                raise InvalidParameter(f"{name} must hold probabilities, got {given[name]!r}; pass numbers from 0 to 1")
        if (h - e < 1e-6).any():
            raise InvalidParameter(
                f"a class must be likelier in the sets of its own items than in others, got extra={extra!r} and "
                f"hit={hit!r}; sets with these say nothing of the class, or must be turned round with ~sets"
            )
        loss = cls.__new__(cls)
        loss._set_up(n, floor, reduction, scale=as_float(1 / (h - e)), shift=as_float(-e / (h - e)))
        return loss

    def virtual_labels(self, target: torch.Tensor) -> torch.Tensor:
        """The virtual label of each item, a column of Y; shape (batch, n_classes)."""
        if self.virtual is not None:
            if not is_integer(target) or target.ndim != 1:
                raise InvalidLabels(
                    f"weak labels must be an integer tensor of shape (batch,), got {shown(target)}; candidate sets "
                    "need PartialLabelLoss.from_sets"
                )
            check_range(target, self.virtual.shape[0] - 1, "weak labels")
            return self.virtual[target.long()]
        shaped = isinstance(target, torch.Tensor) and target.ndim == 2 and target.shape[1] == self.n_classes
        if not shaped or target.dtype != torch.bool:
            raise InvalidLabels(
                f"candidate sets must be a boolean tensor of shape (batch, {self.n_classes}), got {shown(target)}; "
                "True is a class that the item may have"
            )
        virtual = torch.addcmul(self.shift, self.scale, target)
        return virtual + (1 - virtual.sum(dim=1, keepdim=True)) / self.n_classes

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The loss of a batch."""
        scores = class_scores(logits, self.n_classes)
        virtual = self.virtual_labels(target).to(scores.dtype)
        if virtual.shape != scores.shape:
            raise InvalidLabels(
                f"logits and weak labels must be of the same items, got {scores.shape[0]} rows of logits and "
                f"{virtual.shape[0]} weak labels; take both from one batch"
            )
        n_items = scores.shape[0] if self.virtual is None else (target >= 0).sum().clamp_min(1)
        return virtual_loss(scores, virtual, n_items, self.reduction, self.floor)

    def extra_repr(self) -> str:
        """Sizes and reduction."""
        kind = "sets" if self.virtual is None else f"n_weak={self.virtual.shape[0] - 1}"
        return f"{kind}, n_classes={self.n_classes}, reduction={self.reduction!r}{', floor=True' if self.floor else ''}"


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
    """Log p(y|x), finite also for a class with a logit of -inf."""
    return functional.log_softmax(scores, dim=1).clamp_min(_LEAST_LOG)


class EvidenceLoss(nn.Module):  # type: ignore[misc]
    """Base: what the votes of an item say of each class, whichever way they come."""

    table: torch.Tensor | None
    everyone: torch.Tensor | None

    def __init__(
        self,
        noise: NoiseModel | npt.ArrayLike | None = None,
        *,
        labels: Labels | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__()
        self.reduction = check_choice(reduction, get_args(Reduction), name="reduction")
        matrices, prior = (None, None) if noise is None else matrices_of(noise, labels)
        self._model_prior = prior
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
            try:
                is_possible = not can_look(best) or bool(best.isfinite().all())
            except RuntimeError:  # mapped by torch.func.vmap
                is_possible = True
            if not is_possible:
                raise InvalidLabels(
                    "evidence must leave each item a class that is possible, got an item whose best class has evidence "
                    "of -inf or nan; give items whose votes say nothing zeros"
                )
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
        n_labelers, n_answers = self.table.shape[0] - 2, self.table.shape[1] - 1
        votes = read_votes(target, self.everyone, scores, self.table, n_labelers, n_answers)
        return self.table[votes.labelers, votes.answers].sum(dim=1, dtype=scores.dtype), None

    def extra_repr(self) -> str:
        """Sizes and reduction."""
        sizes = "" if self.table is None else f"n_labelers={self.table.shape[0] - 2}, n_classes={self.n_classes}, "
        return f"{sizes}reduction={self.reduction!r}"


def read_votes(
    target: Any, everyone: torch.Tensor, scores: torch.Tensor, table: torch.Tensor, n_labelers: int, n_answers: int
) -> Votes:
    """What a loss was given as votes: of the items and on the device of the logits, and with numbers in range."""
    votes = as_votes(target, everyone)
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
    check_range(votes.labelers, n_labelers, "labelers of votes", oracle=True)
    check_range(votes.answers, n_answers, "answers of votes")
    return votes


class MMSELoss(EvidenceLoss):
    r"""Cross-entropy that is to be expected given the votes.

    .. math:: -\sum_y p(y \mid z) \log p(y \mid x), \qquad p(y \mid z) \propto \pi_y \prod_r \theta_r[y, z_r]

    for the votes z of an item (Su 2024, eqs. 37 and 40). With labelers who never err it is ``CrossEntropyLoss``. An
    item whose votes say nothing is trained on with the prior. Its minimum E[p(y|z) | x] is flatter than p(y|x):
    decisions suffer little, probabilities more (see `NoisyLikelihoodLoss`).

    Parameters
    ----------
    noise : NoiseModel, or array of shape (n_labelers, n_classes, n_answers), optional
        A fitted model with a confusion matrix for each labeler, or the matrices θ; rows are the truth. Without it the
        targets must be evidence.
    prior : array of shape (n_classes,), optional. π; that of the noise model by default, or else uniform.
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
        super().__init__(noise, labels=labels, reduction=reduction)
        shares = self._model_prior if prior is None else check_distribution(prior, name="prior", n=self.n_classes)
        if shares is None:
            shares = np.ones(self.n_classes or 1)
        else:
            self.n_classes = len(shares)
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

    for the votes z of an item (Su 2024, eq. 32). Its minimum is p(y|x), so probabilities come out calibrated. With
    labelers who never err it is ``CrossEntropyLoss``: an answer of probability 0 counts as :math:`e^{-100}`. With
    evidence as target the loss is shifted by the constant of each item's evidence.

    Parameters
    ----------
    noise, labels, reduction
        As for `MMSELoss`, which takes the same targets.
    """

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
    """-log Σ exp of the rows of a matrix, reduced; 0 if there are none."""
    at = joint.detach().argmax(dim=1)
    how = reduction if joint.shape[0] else reduction.replace("mean", "sum")
    return functional.nll_loss(joint - functional.log_softmax(joint, dim=1), at, reduction=how)
