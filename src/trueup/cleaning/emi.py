"""Expected model improvement: how much better the model gets, on average, if an oracle cleans a label."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, check_integer
from trueup.cleaning.fast_linear import (
    Block,
    FlipModels,
    LinearFlips,
    csr,
    dense,
    is_sparse,
    item_chunks,
    logistic_flips,
    positions_of,
    ridge_flips,
    squared_hinge_flips,
)
from trueup.cleaning.flips import (
    Candidates,
    UnbiasedScorer,
    fitted,
    flip_candidates,
    predicted_codes,
    retrained_predictions,
)
from trueup.exceptions import InvalidParameter
from trueup.training.copies import split_pipeline
from trueup.training.objectives import check_codes


class NaiveBayesFlips(LinearFlips):
    """Scores are linear in some features, and a change of a label moves the parameters of two classes."""

    exact = True

    def __init__(self, model: Any, X: Any, y: Codes, codes: Codes) -> None:
        self.model, self.y, self.columns_ = model, y, codes
        self.number = np.bincount(y, minlength=len(codes)).astype(float)
        self._prepare(X)
        self.features_ = self.features(X)
        self.theta = self._parameters(np.arange(len(codes)), self.number, None, 0.0)

    @abstractmethod
    def _prepare(self, X: Any) -> None:
        """Keep what parameters are made from."""

    @abstractmethod
    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        """Parameters (m, p) of classes, of which the items `rows` are taken away (sign −1) or added (1)."""

    def shifts(self, candidates: Candidates, *, exact: bool, memory_limit: int) -> Floats:
        """How the parameters move; shape (n_candidates, K, p)."""
        own, to = self.y[candidates.item], positions_of(self.columns_)[candidates.to]
        delta = np.zeros((len(candidates), *self.theta.shape))
        each = np.arange(len(candidates))
        delta[each, own] = self._parameters(own, self.number[own] - 1, candidates.item, -1.0) - self.theta[own]
        delta[each, to] = self._parameters(to, self.number[to] + 1, candidates.item, 1.0) - self.theta[to]
        return delta

    def _log_prior(self, of: Codes, number: Floats, given: Any, *, fit: bool = True) -> Floats:
        """As scikit-learn: given, or the shares of the labels, or uniform."""
        if given is not None:
            return np.asarray(np.log(np.asarray(given, dtype=float))[of])
        return np.log(number / len(self.y)) if fit else np.full(len(of), -np.log(len(self.columns_)))


class GaussianFlips(NaiveBayesFlips):
    """Features x², x and 1 around the mean of all items, so that squares do not cancel."""

    def _prepare(self, X: Any) -> None:
        rows = np.asarray(X, dtype=float)
        self._center = rows.mean(axis=0)
        self._rows = rows - self._center
        member = np.eye(len(self.columns_))[self.y]
        self._mean = member.T @ self._rows / self.number[:, None]
        self._spread = np.stack([self._rows[self.y == c].var(axis=0) for c in range(len(self.columns_))])

    def features(self, X: Any) -> Floats:
        """Squares, the values and 1."""
        rows = np.asarray(X, dtype=float) - self._center
        return np.column_stack([rows**2, rows, np.ones(len(rows))])

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        mean, spread = self._mean[of], self._spread[of]
        if rows is not None:
            away = self._rows[rows] - mean
            before, after = self.number[of][:, None], number[:, None]
            mean = mean + sign * away / after
            spread = np.maximum(before / after * (spread + sign * away**2 / after), 0.0)
        spread = spread + self.model.epsilon_
        log_prior = self._log_prior(of, number, self.model.priors)
        constant = log_prior - 0.5 * (np.log(2 * np.pi * spread) + mean**2 / spread).sum(axis=1)
        return np.column_stack([-0.5 / spread, mean / spread, constant])


class DiscreteFlips(NaiveBayesFlips):
    """Multinomial and Bernoulli models of counts.

    The first has log θ_cw = log(N_cw + α) − log Σ_w (N_cw + α), the second log p_cw = log(N_cw + α) − log(n_c + 2α),
    and the log of the rest for absent words.
    """

    def _prepare(self, X: Any) -> None:
        self._rows = self._counts(X)
        member = sparse.csr_array((np.ones(len(self.y)), (self.y, np.arange(len(self.y)))))
        self._sums = dense(member @ self._rows)

    def _counts(self, X: Any) -> Any:
        rows: Any = csr(X) if is_sparse(X) else np.asarray(X, dtype=float)
        edge = getattr(self.model, "binarize", None)
        if edge is None:
            return rows
        if not is_sparse(X):
            return (rows > edge).astype(float)
        rows.data = (rows.data > edge).astype(float)
        rows.eliminate_zeros()
        return rows

    def features(self, X: Any) -> Any:
        """The counts and 1."""
        rows = self._counts(X)
        constant: Any = np.ones((rows.shape[0], 1))
        return sparse.hstack([rows, constant], format="csr") if is_sparse(rows) else np.hstack([rows, constant])

    def _parameters(self, of: Codes, number: Floats, rows: Codes | None, sign: float) -> Floats:
        sums, alpha = self._sums[of], _alpha(self.model)
        if rows is not None:  # sums of counts taken away may be a rounding below zero
            sums = np.maximum(sums + sign * dense(self._rows[rows]), 0.0)
        prior = self._log_prior(of, number, self.model.class_prior, fit=self.model.fit_prior)
        if not hasattr(self.model, "binarize"):
            return np.column_stack([np.log(sums + alpha) - np.log((sums + alpha).sum(axis=1, keepdims=True)), prior])
        total = (number + 2 * alpha)[:, None]
        present = np.log(sums + alpha) - np.log(total)
        absent = np.log(np.maximum(total - alpha - sums, 1e-300)) - np.log(total)
        return np.column_stack([present - absent, prior + absent.sum(axis=1)])


def _alpha(model: Any) -> float:
    """The smoothing; scikit-learn raises values below 1e-10 by default."""
    alpha = float(model.alpha)
    return alpha if getattr(model, "force_alpha", True) is True else max(alpha, 1e-10)


def naive_bayes_flips(model: Any, X: Any, y: Codes, codes: Codes) -> FlipModels | None:
    """Flip models of fitted naive Bayes; None for sparse Gaussians, and for counts without smoothing."""
    if type(model).__name__ == "GaussianNB":
        return None if is_sparse(X) else GaussianFlips(model, X, y, codes)
    return DiscreteFlips(model, X, y, codes) if np.isscalar(model.alpha) and _alpha(model) > 0 else None


_FAMILIES = {
    "LogisticRegression": logistic_flips,
    "LinearSVC": squared_hinge_flips,
    "RidgeClassifier": ridge_flips,
    **dict.fromkeys(("GaussianNB", "MultinomialNB", "BernoulliNB"), naive_bayes_flips),
}
# Transformers that do not look at labels, so that a change of a label leaves the features as they are.
_BLIND = frozenset(
    """
    StandardScaler MinMaxScaler MaxAbsScaler RobustScaler Normalizer QuantileTransformer PowerTransformer
    PolynomialFeatures SplineTransformer OneHotEncoder OrdinalEncoder SimpleImputer PCA TruncatedSVD NMF
    CountVectorizer TfidfVectorizer TfidfTransformer HashingVectorizer VarianceThreshold Nystroem RBFSampler
    """.split()  # noqa: SIM905
)


def flip_models(model: Any, X: Any, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> FlipModels | None:
    r"""All models retrained with one label changed, without training them.

    For logistic regression and the linear SVM the Hessian H of the fitted objective is factorised once. A change of
    label i changes the gradient by :math:`\phi_i\gamma_i`, so a Newton step moves the parameters by

    .. math:: \delta_i = -\frac{\gamma_i}{1 + \eta_i\, \phi_i^\top H^{-1} \phi_i} H^{-1} \phi_i

    Ridge and naive Bayes have closed forms. The model's own solution is first made exact, because solvers stop early.
    The step is that of Rad and Maleki (2020) for a changed instead of a missing label.

    Parameters
    ----------
    model : fitted scikit-learn classifier
        ``LogisticRegression`` (l2), ``LinearSVC`` (squared hinge, l2), ``RidgeClassifier``, ``GaussianNB``,
        ``MultinomialNB``, ``BernoulliNB``, fitted without sample weights; or a pipeline that ends in one, behind
        transformers that do not look at labels (scalers, vectorizers, PCA, …).
    X : array or sparse matrix of shape (n, n_features). What it was fitted on.
    y : integer array of shape (n,). The labels, as codes.
    classes : array of shape (n_classes,), optional
        What the codes stand for; the model was fitted on ``classes[y]``. By default the codes themselves.
    """
    head, last = split_pipeline(model)
    if head is not None:
        steps = [step for _, step in head.steps if step is not None and not isinstance(step, str)]
        if not all(type(step).__name__ in _BLIND and type(step).__module__.startswith("sklearn.") for step in steps):
            return None
        models = flip_models(last, head.transform(X), y, classes)
        return None if models is None else _Behind(models, head)
    family = _FAMILIES.get(type(last).__name__)
    if family is None or not type(last).__module__.startswith("sklearn."):
        return None
    names = np.arange(int(np.max(y)) + 1) if classes is None else np.asarray(classes)
    labels = check_codes(y, len(names))
    position = {name: code for code, name in enumerate(names.tolist())}
    codes = np.array([position.get(name, -1) for name in last.classes_.tolist()], dtype=np.int64)
    if set(np.unique(labels).tolist()) != set(codes.tolist()):
        return None  # fitted on other labels
    return family(last, X, positions_of(codes)[labels], codes)


class _Behind(FlipModels):
    """Flip models of the last step of a pipeline."""

    def __init__(self, models: FlipModels, transformers: Any) -> None:
        self._models, self._transformers = models, transformers
        self.exact = models.exact

    def base_predictions(self, X_val: Any) -> Codes:
        """Of the transformed items."""
        return self._models.base_predictions(self._transformers.transform(X_val))

    def changed_blocks(self, X_val: Any, candidates: Candidates, **options: Any) -> Any:
        """Of the transformed items."""
        return self._models.changed_blocks(self._transformers.transform(X_val), candidates, **options)


_MOST_FEATURES = 64  # features of the surrogate; it only ranks, and its price grows with their cube


def numeric_features(X: Any) -> Any:
    """The features as an array or sparse rows of floats; ValueError or TypeError if they are no numbers."""
    if is_sparse(X):
        return csr(X)
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError("features that are no numbers")
    return rows


def few_features(train: Any, other: Any) -> tuple[Any, Any]:
    """Standardised features, at most `_MOST_FEATURES`."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import StandardScaler

    steps = [StandardScaler(with_mean=not is_sparse(train))]
    if train.shape[1] > _MOST_FEATURES:
        steps += [TruncatedSVD(min(_MOST_FEATURES, train.shape[0] - 1), random_state=0), StandardScaler()]
    for step in steps:
        step.fit(train)
        train, other = step.transform(train), step.transform(other)
    return train, other


How = Literal["auto", "fast", "shortlist", "exact"]
_HOW: tuple[How, ...] = ("auto", "fast", "shortlist", "exact")
_DIGITS = 12  # improvements are sums of few numbers: what differs by less is a tie
_BLOCK = 1 << 26  # bytes for the gains of some models
_ROUNDS = 3  # how often candidates that come up are made exact too
_NEGLIGIBLE = 1e-4  # chance of a class below which the fast path trains no model; 1e-3 moves ranks in 3 of 40 rounds


@dataclass(frozen=True, eq=False)
class EMI:
    r"""What cleaning each label is worth.

    Attributes
    ----------
    items : integer array of shape (n,). Positions in the training part that may be cleaned.
    improvement : array of shape (n,)
        :math:`\sum_c P(c \mid y'_i)\,(\mathrm{eval}(f_{i \to c}) - \mathrm{eval}(f))`, positive if it gets better.
    standard_error : array of shape (n,). Of the improvement, over validation items, the same for both models.
    uncertainty : array of shape (n,). 1 minus the highest class probability of the model.
    score : array of shape (n,)
        What ranks: the improvement, or :math:`u(x_i)\,\sigma(s \cdot \mathrm{EMI}(i))`, times the chance that the
        label is wrong if that was asked for.
    exact : boolean array of shape (n,). Whether the models behind it are those of full retraining.
    base : float. The unbiased metric of the model as it is.
    how : {"fast", "shortlist", "exact"}
    """

    items: Codes
    improvement: Floats
    standard_error: Floats
    uncertainty: Floats
    score: Floats
    exact: npt.NDArray[np.bool_]
    base: float
    how: str

    @property
    def order(self) -> Codes:
        """Positions in `items`, best first; ties go to the less certain item, then to the earlier one."""
        return np.lexsort((-self.uncertainty, -self.score)).astype(np.int64)

    def best(self, n: int = 1) -> Codes:
        """The `n` best items, as positions in the training part."""
        return self.items[self.order[: check_integer(n, name="n", low=1)]]

    def __repr__(self) -> str:
        return f"EMI({len(self.items)} items, {self.how})"


def expected_improvement(
    estimator: Any,
    X: Any,
    y: npt.ArrayLike,
    X_val: Any,
    scorer: UnbiasedScorer,
    probabilities: npt.ArrayLike,
    *,
    items: npt.ArrayLike | None = None,
    how: How = "auto",
    weigh: bool = True,
    by_chance: bool = False,
    scale: float = 1.0,
    shortlist: int = 50,
    refine: int = 100,
    model: Any = None,
    n_jobs: int | None = None,
    warm_start: bool = True,
    memory_limit: int = 1 << 30,
    progress: Callable[[int, int], None] | None = None,
) -> EMI:
    r"""The expected improvement of the model for each label that could be cleaned (Dolatshah et al. 2018, Section 5).

    .. math:: \mathrm{EMI}(i) = \sum_c P(y_i = c \mid y'_i)\,\bigl(\mathrm{eval}(f_{i\to c}) - \mathrm{eval}(f)\bigr)

    with the unbiased metric on validation items (eq. 16). With `weigh` items rank by
    :math:`u(x_i)\,\sigma(\mathrm{EMI}(i))`, where u is the model's uncertainty (eq. 22).

    Parameters
    ----------
    X : array or sparse matrix of shape (n_train, n_features)
    y : integer array of shape (n_train,). The labels as they are, as codes of ``scorer.classes``.
    X_val : array or sparse matrix of shape (n_validation, n_features)
    scorer : UnbiasedScorer. Of the validation items.
    probabilities : array of shape (n_train, n_classes). P(truth = c | label), as `true_class_probabilities` gives them.
    items : integer array, optional. Positions that may be cleaned; by default those whose label is not certain.
    how : {"auto", "fast", "shortlist", "exact"}
        "fast": all models at once (`flip_models`), and the `refine` best items to convergence. "shortlist": a
        surrogate ranks, and models are trained for the best `shortlist` items; those behind it keep the surrogate's
        improvement, and rank below. "exact": a model is trained for each change. "auto" is fast where there is a fast
        path, else a shortlist.
    weigh : bool. Weigh by the model's uncertainty.
    by_chance : bool. Weigh by the chance that the label is wrong too. A shortlist is then that of the largest weights.
    scale : float. A factor of the improvement in :math:`\sigma`.
    shortlist, refine : int. Numbers of items.
    model : fitted classifier, optional. Of the labels as they are; trained if not given.
    n_jobs, warm_start, progress
        As for `retrained_scores`.
    memory_limit : int. Bytes for temporary arrays.
    """
    chosen = check_choice(how, _HOW, name="how")
    labels = check_codes(y, scorer.n_classes)
    chances = np.asarray(probabilities, dtype=float)
    if np.shape(X)[0] != len(labels) or np.shape(X_val)[0] != scorer.n_items:
        raise InvalidParameter(
            f"X and X_val must have a row for each of {len(labels)} training labels and {scorer.n_items} validation "
            f"labels, got {np.shape(X)[0]} and {np.shape(X_val)[0]}"
        )
    certain = chances[np.arange(len(labels)), labels] >= 1
    where = np.flatnonzero(~certain) if items is None else np.unique(np.asarray(items, dtype=np.int64))
    base = fitted(estimator, X, scorer.classes[labels]) if model is None else model
    models = flip_models(base, X, labels, scorer.classes) if chosen in ("auto", "fast") else None
    likely = chances if models is None else np.where(chances < _NEGLIGIBLE, 0.0, chances)
    changes = flip_candidates(labels, likely, items=where)
    unsure = model_uncertainty(base, X)[where]
    weights = unsure * (1 - chances[where, labels[where]]) if by_chance else unsure
    worth = _Worth(scorer, changes, chances, where, unsure, weights if weigh else None, scale)
    if models is None and chosen == "fast":
        raise InvalidParameter(
            f"how='fast' needs an estimator with a fast path and usual options, got {estimator!r}; pass how='auto'"
        )
    if models is not None:
        worth.take_fast(models, X_val, refine, memory_limit, progress)
        return worth.result("fast")
    before = predicted_codes(base, X_val, scorer.classes)
    training = {"model": base, "n_jobs": n_jobs, "warm_start": warm_start, "progress": progress}

    worth.start(before)
    if chosen == "exact":
        first: Codes = where
    elif weigh and by_chance:  # weights need no training
        first = np.sort(where[np.argsort(-weights, kind="stable")[:shortlist]])
    else:
        first = worth.ranked_by_surrogate(X, labels, X_val, shortlist, memory_limit)
    rows = changes.of(first)
    if len(rows):
        codes = retrained_predictions(estimator, X, labels, X_val, scorer.classes, changes.select(rows), **training)
        worth.take(Block(rows, np.arange(scorer.n_items), codes), exact=True)
    return worth.result("exact" if chosen == "exact" else "shortlist", above=first)


def model_uncertainty(model: Any, X: Any) -> Floats:
    """u(x) = 1 − max_c p(c | x); from scores through the logistic function for models without probabilities."""
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(X), dtype=float)
    else:
        scores = np.asarray(model.decision_function(X), dtype=float)
        if scores.ndim == 1:
            return np.asarray(special.expit(-np.abs(scores)))
        chances = special.softmax(scores, axis=1)
    return np.asarray(1 - chances.max(axis=1))


@dataclass(eq=False)
class _Worth:
    """Gathers the improvement of each item from blocks of predictions."""

    scorer: UnbiasedScorer
    changes: Candidates
    chances: Floats
    items: Codes
    unsure: Floats
    weights: Floats | None
    scale: float

    def __post_init__(self) -> None:
        self.chance = self.chances[self.changes.item, self.changes.to]
        self.place = np.searchsorted(self.items, self.changes.item)
        self.improvement, self.standard_error = np.zeros(len(self.items)), np.zeros(len(self.items))
        # An item that no candidate changes is exact as it is.
        self.exact = ~np.isin(np.arange(len(self.items)), self.place)

    def start(self, before: Codes) -> None:
        """The base model's predictions, with which all others are compared."""
        self.before = before
        self.shares = self.scorer.shares(before)
        self.base = float(self.scorer.values(self.shares))
        self.gains = self.scorer.gains(before)

    def take(self, block: Block, *, exact: bool) -> None:
        """Improvements and their standard errors from the predictions of some models."""
        most = max(_BLOCK // (8 * max(len(block.columns), 1)), 1)
        sign, n = self.scorer.sign, self.scorer.n_used
        before, gains = self.before[block.columns], self.gains[block.columns]
        for part in item_chunks(self.place[block.rows], most):
            rows, predictions = block.rows[part], block.predictions[part]
            places, chance = self.place[rows], self.chance[rows]
            starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
            of = places[starts]
            # For each item the sums over validation items of its expected gain, and of the square.
            if gains.shape[1] == 2:  # an item has one candidate, and a prediction changes or does not
                gain = gains[np.arange(len(before)), 1 - before]
                changed = (predictions != before).astype(float)
                sums, squares = chance * (changed @ gain), chance**2 * (changed @ gain**2)
            else:
                each = gains.ravel()[np.arange(len(before)) * gains.shape[1] + predictions]
                expected = np.add.reduceat(each * chance[:, None], starts, axis=0)
                sums, squares = expected.sum(axis=1), np.einsum("ij,ij->i", expected, expected)
            if self.scorer.linear:
                change = sums / n
            else:
                shares = self.scorer.changed_shares(self.shares, before, block.columns, predictions)
                change = np.add.reduceat(chance * (self.scorer.values(shares) - self.base), starts)
            self.improvement[of] = np.round(sign * change, _DIGITS)
            self.standard_error[of] = np.sqrt(np.maximum(squares - sums**2 / n, 0.0) / (n * max(n - 1, 1)))
            self.exact[of] = exact

    def score(self) -> Floats:
        """The number that items rank by."""
        if self.weights is None:
            return self.improvement
        return np.asarray(self.weights * special.expit(self.scale * self.improvement))

    def order(self) -> Codes:
        """Positions in `items`, best first."""
        return np.lexsort((-self.unsure, -self.score())).astype(np.int64)

    def take_fast(
        self,
        models: FlipModels,
        X_val: Any,
        refine: int,
        memory_limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """All items by the fast path, and the best ones once more to convergence."""
        self.start(models.base_predictions(X_val))

        def take(rows: Codes, *, exact: bool) -> None:
            done, some = 0, self.changes.select(rows)
            for block in models.changed_blocks(X_val, some, memory_limit=memory_limit, exact=exact):
                self.take(Block(rows[block.rows], block.columns, block.predictions), exact=exact or models.exact)
                done += len(block.rows)
                if progress is not None:
                    progress(done, len(rows))

        take(np.arange(len(self.changes)), exact=False)
        for _ in range(_ROUNDS):
            # A Newton step overshoots where an item has much influence, so weights say more of who can come first.
            top = (self.order() if self.weights is None else np.argsort(-self.weights, kind="stable"))[:refine]
            rows = self.changes.of(self.items[top[~self.exact[top]]])
            if not len(rows):
                break
            take(rows, exact=True)

    def ranked_by_surrogate(self, X: Any, y: Codes, X_val: Any, n: int, memory_limit: int) -> Codes:
        """The most promising items by a logistic regression on few features; its improvements are kept as a guess."""
        from sklearn.linear_model import LogisticRegression

        try:
            train, validation = few_features(numeric_features(X), numeric_features(X_val))
        except (TypeError, ValueError):
            models = None
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the solution is made exact afterwards
                model = LogisticRegression(max_iter=200).fit(train, self.scorer.classes[y])
            models = flip_models(model, train, y, self.scorer.classes)
        if models is None:
            chance = np.bincount(self.place, self.chance, len(self.items))
            return np.sort(self.items[np.lexsort((-self.unsure, -chance))[:n]])
        surrogate = replace(self)
        surrogate.take_fast(models, validation, 0, memory_limit)
        self.improvement, self.standard_error = surrogate.improvement, surrogate.standard_error
        return np.sort(self.items[surrogate.order()[:n]])

    def result(self, how: str, above: Codes | None = None) -> EMI:
        """The result; items in `above` rank before all others."""
        score = self.score()
        if above is not None:
            behind = ~np.isin(self.items, above)
            if behind.any() and not behind.all():
                score[behind] = np.minimum(score[behind], np.nextafter(score[~behind].min(), -np.inf))
        return EMI(self.items, self.improvement, self.standard_error, self.unsure, score, self.exact, self.base, how)
