"""One number for each labeler: how often it is right."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from trueup._base.arrays import like, namespace, to_numpy
from trueup._base.engines import OF_ONE_MACHINE
from trueup._base.types import Floats
from trueup._base.validation import check_integer, check_number
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.noise.base import LoopSampler, Sampler, TableModel, as_table, normalise, warn_if_unidentifiable
from trueup.noise.em import fit_matrices


class OneCoin(TableModel):
    """The one-coin model: labeler t is right with probability p_t whatever the class.

    Generative model: y_i ~ π; a vote of t on i equals y_i with probability p_t and is else uniform over the other
    classes. Fitted by EM [1]_ with a Beta prior on p_t, and drawn with the same prior where the truth is drawn too.
    Abstentions that count as an answer have a probability of the labeler that says nothing about the class.

    .. [1] Zhang, Chen, Zhou and Jordan (2016), "Spectral methods meet EM", JMLR.

    Parameters
    ----------
    tol : float. Least change of the loss per vote to go on.
    right, wrong : float. Pseudo-counts of right and wrong votes; 0 and 0 is maximum likelihood, which cannot be drawn.

    Attributes
    ----------
    accuracy_ : array of shape (n_labelers,)
    """

    alias = "one-coin"
    engines = (*OF_ONE_MACHINE, "dask")

    accuracy_: Floats

    def __init__(self, *, max_iter: int = 100, tol: float = 1e-5, right: float = 2.0, wrong: float = 1.0) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.right = right
        self.wrong = wrong

    def fit(self, labels: Labels | LabelScan[Labels]) -> Self:
        check_integer(self.max_iter, name="max_iter", low=1)
        check_number(self.right, name="right", low=0.0)
        check_number(self.wrong, name="wrong", low=0.0)
        warn_if_unidentifiable(labels, what="OneCoin")
        self._remember(labels)

        def maximise(counts: Floats, state_counts: Floats) -> tuple[Floats, Floats, float]:
            self._set_rates(counts.reshape(labels.n_labelers, labels.n_answers, labels.n_classes), labels)
            xp = namespace(counts)
            p = xp.clip(self.accuracy_, 1e-12, 1 - 1e-12)
            log_prior = float((self.right * xp.log(p) + self.wrong * xp.log1p(-p)).sum())
            return as_table(self.confusion_), normalise(state_counts), log_prior

        fit_matrices(self, labels, maximise, max_iter=self.max_iter, tol=self.tol)
        self.accuracy_ = to_numpy(self.accuracy_)
        return self

    def _set_rates(self, counts: Floats, labels: Labels | LabelScan[Labels]) -> None:
        """Accuracy and matrices from expected counts (labelers, answers, classes)."""
        n_classes, xp = labels.n_classes, namespace(counts)
        per_answer = counts.sum(axis=2)
        right = xp.einsum("tcc->t", counts[:, :n_classes])
        decided = per_answer[:, :n_classes].sum(axis=1)
        prior_total = self.right + self.wrong
        average = (right.sum() + self.right) / max(float(decided.sum()) + prior_total, 1e-12)
        with np.errstate(invalid="ignore"):
            accuracy = (right + self.right) / (decided + prior_total)
        self.accuracy_ = xp.where(decided + prior_total > 0, accuracy, average)
        # The 1e-9: a labeler without votes decides.
        answer_rate = normalise(xp.column_stack([decided + 1e-9, per_answer[:, n_classes:]]))
        self.confusion_ = coin_matrices(self.accuracy_, answer_rate, n_classes)
        pooled_rate = normalise(xp.hstack([decided.sum(), per_answer[:, n_classes:].sum(axis=0)]))[None]
        self.pooled_ = coin_matrices(average.reshape(1), pooled_rate, n_classes)[0]

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        right = check_number(self.right, name="right", low=0.0, strict=True)
        wrong = check_number(self.wrong, name="wrong", low=0.0, strict=True)
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [OneCoinSampler(*size, right=right, wrong=wrong) for _ in range(n_chains)]


class OneCoinSampler(LoopSampler):
    """Accuracies have Beta(right, wrong) priors; abstentions are drawn with a rate that ignores the class."""

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, right: float, wrong: float) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._right, self._wrong = float(right), float(wrong)

    def state(self, problem: Any = None) -> Any:
        from trueup.noise.kernels.loops import OneCoinState

        return OneCoinState(self.state_class.astype(np.int64), self._right, self._wrong, self.n_answers)


def coin_matrices(accuracy: Floats, answer_rate: Floats, n_classes: int) -> Floats:
    """P(answer | class): right or wrong where the labeler decides, which it does with the first rate, else the rest."""
    diagonal = like(accuracy, np.eye(n_classes))
    wrong = ((1 - accuracy) / (n_classes - 1))[:, None, None]
    decided: Floats = (diagonal * accuracy[:, None, None] + (1 - diagonal) * wrong) * answer_rate[:, :1, None]
    if answer_rate.shape[1] == 1:
        return decided
    xp = namespace(accuracy)
    others = xp.broadcast_to(answer_rate[:, None, 1:], (len(accuracy), n_classes, answer_rate.shape[1] - 1))
    matrices: Floats = xp.concatenate([decided, others], axis=2)
    return matrices
