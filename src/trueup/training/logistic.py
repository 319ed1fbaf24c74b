"""Logistic regression trained on votes, by the likelihood of the votes or by the MMSE risk."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Floats, Positions
from trueup._base.validation import check_choice, check_integer, check_number
from trueup.data.labels import Labels
from trueup.exceptions import ConvergenceWarning, InvalidParameter
from trueup.noise import NoiseModel
from trueup.noise.base import with_gold
from trueup.training.objectives import LogisticObjective, NoisyLikelihood, SoftTargets, Solution, WithVolume, minimise
from trueup.training.sklearn import VoteClassifier
from trueup.training.strategies import matrices_given
from trueup.training.votes import TrainingVotes, Unlabelled

Method = Literal["ml", "map", "mmse"]
Solver = Literal["lbfgs", "trust-ncg"]


class NoisyLogisticRegression(VoteClassifier):
    r"""Logistic regression for two or more classes, trained on votes.

    The votes :math:`z_i` say of the truth what the labelers' matrices :math:`\theta` say, the features
    :math:`x_i` what the coefficients :math:`\psi` say [1]_:

    .. math:: p(z \mid x; \psi, \theta) = \prod_i \sum_y p(y \mid x_i; \psi) \prod_t p(z_{it} \mid y; \theta)

    Parameters
    ----------
    method : {"ml", "map", "mmse"}
        Maximise that likelihood, without a penalty; the same with ‖ψ‖² / 2C as the prior of the coefficients; or
        minimise the risk :math:`\sum_i \sum_y p(y \mid z_i) (-\log p(y \mid x_i))` with the same penalty. Trained on
        a plain y, or on gold, all are ordinary logistic regression; "map" and "mmse" are then scikit-learn's with the
        same C.
    C : float
        Inverse strength of the penalty, as in scikit-learn. Intercepts are free.
    volume : float
        Strength, for each item, of a term that makes predictions sure and spread over the classes [3]_. Matrices and
        predictions that are learned together from votes alone are not unique; this takes the widest predictions that
        fit. Take it (0.3 to 1) with `joint` where features tell the classes apart and labelers err together, or
        features are many; where features do not tell them apart it does harm. Not for "mmse".
    class_shares : {"equal", "noise"} or array of shape (n_classes,)
        The shares of the classes to which `volume` pulls: equal ones (as published), those of the noise model, which
        err as the votes do, or known ones in the order of ``labels.classes``.
    joint : bool
        Learn the matrices together with the coefficients [2]_, by EM: the classifier then teaches who can be trusted.
        For "ml" and "map".
    noise : str or NoiseModel
        As for `trueup.noise.fit`; with `joint` where EM starts.
    unlabelled : {"drop", "prior", "error"}
        Items without votes are left out; stay ("mmse": with the prior as target; they say nothing in a likelihood); or
        are an error.
    labels : Labels, optional
        The votes of all items, for cross-validation: `fit` then takes the positions of its items as y.
    fit_intercept : bool
    solver : {"lbfgs", "trust-ncg"}
        The second uses Hessian-vector products.
    tol : float
        Largest derivative, per item, at which to stop; with `joint` also the largest change of a belief, times 1000.
    max_iter : int
        Of the solver, and of EM.
    warm_start : bool
        Start from the coefficients of the last fit.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features)
    intercept_ : array of shape (1 or n_classes,)
    classes_ : array of shape (n_classes,)
    noise_ : NoiseModel
        With `joint`, a `Confusion` with the learned matrices.
    posterior_ : array of shape (n_rows, n_classes)
        P(class | votes), and for "ml" and "map" P(class | features, votes), of the rows trained on.
    loss_ : float
        The objective where the search ended.
    n_iter_ : int

    References
    ----------
    .. [1] Su (2024), eqs. 32, 37 and Table 9.
    .. [2] V. C. Raykar et al., "Learning from crowds", Journal of Machine Learning Research 11 (2010).
    .. [3] S. Ibrahim, T. Nguyen, X. Fu, "Deep learning from crowdsourced labels: coupled cross-entropy minimization,
       identifiability, and regularization", ICLR 2023; here with the likelihood of all votes of an item at once and
       any shares of the classes.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.training import NoisyLogisticRegression
    >>> sim = tu.simulate.tars(n_items=600, n_labelers=3, noise_rates=0.3, means=[[0, 0], [3, 0]], random_state=0)
    >>> model = NoisyLogisticRegression(joint=True).fit(sim.features, sim.labels)
    >>> model.coef_.shape, bool(model.score(sim.features, sim.truth) > 0.9)
    ((1, 2), True)
    """

    def __init__(
        self,
        *,
        method: Method = "map",
        C: float = 1.0,
        joint: bool = False,
        volume: float = 0.0,
        class_shares: str | npt.ArrayLike = "equal",
        noise: str | NoiseModel = "dawid-skene",
        unlabelled: Unlabelled = "drop",
        labels: Labels | None = None,
        fit_intercept: bool = True,
        solver: Solver = "lbfgs",
        tol: float = 1e-6,
        max_iter: int = 1000,
        warm_start: bool = False,
    ) -> None:
        self.method = method
        self.C = C
        self.joint = joint
        self.volume = volume
        self.class_shares = class_shares
        self.noise = noise
        self.unlabelled = unlabelled
        self.labels = labels
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on votes; `y` as for `NoisyLabelClassifier.fit`."""
        method = check_choice(self.method, get_args(Method), name="method")
        check_choice(self.solver, get_args(Solver), name="solver")
        check_number(self.C, name="C", low=0.0, strict=True)
        check_number(self.tol, name="tol", low=0.0, strict=True)
        check_integer(self.max_iter, name="max_iter", low=1)
        check_number(self.volume, name="volume", low=0.0)
        if self.volume and method == "mmse":
            raise InvalidParameter(
                f'volume is a term of a likelihood, got {self.volume} with method="mmse"; pass method="ml" or "map"'
            )
        if self.joint and method == "mmse":
            raise InvalidParameter(
                'joint=True maximises a likelihood, got method="mmse"; pass method="ml" or "map", or '
                'NoisyLabelClassifier(…, strategy="alternation")'
            )
        features, votes, items = self._read(X, y)
        self._shares = self._checked_shares(len(votes.classes))
        if self.joint and not votes.perfect:
            solution, beliefs = self._fit_jointly(features, votes, items)
        else:
            posterior = self.noise_.posterior(votes.labels)[items]
            loss = (
                SoftTargets(posterior)
                if method == "mmse"
                else NoisyLikelihood(votes.log_likelihood(self.noise_)[items])
            )
            objective = self._objective(features, loss, len(votes.classes))
            solution = self._search(objective, self._start(objective))
            beliefs = loss.beliefs(objective.scores(solution.theta)) if isinstance(loss, NoisyLikelihood) else posterior
        self.posterior_, self.loss_, self.n_iter_ = beliefs, solution.value, solution.n_iter
        objective = self._objective(features, SoftTargets(beliefs), len(votes.classes))
        self.coef_, self.intercept_ = (np.array(part) for part in objective.parts(solution.theta))
        if not solution.converged:
            warnings.warn(
                f"NoisyLogisticRegression did not settle in {solution.n_iter} iterations; raise max_iter or scale X",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _objective(self, X: Any, loss: SoftTargets | NoisyLikelihood, n_classes: int) -> LogisticObjective:
        penalty = 0.0 if self.method == "ml" else 1 / self.C
        whole = WithVolume(loss, self.volume, self._shares) if self.volume else loss
        return LogisticObjective(X, whole, n_classes, penalty, self.fit_intercept)

    def _checked_shares(self, n_classes: int) -> Floats:
        """The shares that `volume` pulls to."""
        if isinstance(self.class_shares, str):
            named = check_choice(self.class_shares, ["equal", "noise"], name="class_shares")
            floored = np.maximum(np.asarray(self.noise_.prior_, dtype=float), 1e-12)
            return np.full(n_classes, 1 / n_classes) if named == "equal" else floored / floored.sum()
        shares = np.asarray(self.class_shares, dtype=float)
        if shares.shape != (n_classes,) or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
            raise InvalidParameter(
                f"class_shares must be {n_classes} positive numbers that sum to 1, got {shares.tolist()}; pass one for "
                'each class in the order of labels.classes, or "equal"'
            )
        return shares

    def _start(self, objective: LogisticObjective) -> Floats:
        """The last coefficients if they are wanted; else none, and intercepts that give the prior.

        Votes that say nothing leave the likelihood flat, and the search where it starts: at the prior.
        """
        shape = (objective.n_rows, objective.X.shape[1])
        if self.warm_start and getattr(self, "coef_", np.empty(0)).shape == shape:
            return objective.flat(self.coef_, self.intercept_)
        prior = np.log(np.maximum(self.noise_.prior_, 1e-12))
        return objective.flat(np.zeros(shape), (prior - (prior[0] if objective.n_rows == 1 else 0.0))[-shape[0] :])

    def _search(self, objective: LogisticObjective, start: Floats) -> Solution:
        return minimise(objective, start, solver=self.solver, tol=self.tol, max_iter=self.max_iter)

    def _fit_jointly(self, X: Any, votes: TrainingVotes, items: Positions) -> tuple[Solution, Floats]:
        """EM: beliefs from features and votes; coefficients and matrices from the beliefs."""
        labels = votes.labels
        beliefs = self.noise_.posterior(labels)
        theta = self._start(self._objective(X, SoftTargets(beliefs[items]), labels.n_classes))
        for n_iter in range(1, self.max_iter + 1):
            objective = self._objective(X, SoftTargets(beliefs[items]), labels.n_classes)
            theta = self._search(objective, theta).theta
            counted = np.zeros_like(beliefs)
            counted[items] = beliefs[items]
            if n_iter == 1:
                # One vote an item makes its labeler look perfect, and EM would stay there; the classifier disagrees.
                counted[items] = (beliefs[items] + softmax(objective.scores(theta), axis=1)) / 2
                counted = with_gold(counted, labels)
            self.noise_ = matrices_given(counted, votes, prior=beliefs[items].mean(axis=0))
            loss = NoisyLikelihood(votes.log_likelihood(self.noise_)[items])
            new = beliefs.copy()
            new[items] = loss.beliefs(objective.scores(theta))
            new = with_gold(new, labels)
            moved, beliefs = float(np.abs(new - beliefs).max()), new
            if moved < 1000 * self.tol:
                break
        value = self._objective(X, loss, labels.n_classes).value_and_gradient(theta)[0]
        return Solution(theta, value, n_iter, moved < 1000 * self.tol), beliefs[items]

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes, shape (n_rows,), or scores of the classes, (n_rows, n_classes)."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        scores = np.asarray(self._checked(X) @ self.coef_.T) + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _joint(self, X: Any) -> Floats:
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return np.pad(scores, ((0, 0), (1, 0))) if scores.shape[1] == 1 else scores
