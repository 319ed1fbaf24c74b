"""Expected model improvement: how much better the model gets, on average, if an oracle cleans a label."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, check_integer
from trueup.cleaning.fast_base import Block, FlipModels, item_chunks
from trueup.cleaning.fast_models import flip_models, surrogate_problem
from trueup.cleaning.flips import Candidates, fitted, flip_candidates, predicted_codes, retrained_predictions
from trueup.cleaning.validation import UnbiasedScorer
from trueup.exceptions import InvalidParameter
from trueup.training.consolidated import check_codes

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
    r"""The expected improvement of the model for each label that could be cleaned [1]_.

    .. math:: \mathrm{EMI}(i) = \sum_c P(y_i = c \mid y'_i)\,\bigl(\mathrm{eval}(f_{i\to c}) - \mathrm{eval}(f)\bigr)

    with the unbiased metric on validation items (eq. 16, for any number of classes). With `weigh` items rank by
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

    References
    ----------
    .. [1] M. Dolatshah, M. Teoh, J. Wang, J. Pei, "Cleaning Crowdsourced Labels Using Oracles for Statistical
       Classification", PVLDB 12(4) (2018), Section 5.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from trueup.cleaning import true_class_probabilities
    >>> rng = np.random.default_rng(0)
    >>> X, matrix = rng.normal(size=(400, 2)), np.array([[0.8, 0.2], [0.4, 0.6]])
    >>> y = np.where(rng.random(400) < matrix[(X[:, 0] > 0).astype(int), 1], 1, 0)
    >>> chances = true_class_probabilities(y[:200], matrix, [0.5, 0.5])
    >>> scorer = UnbiasedScorer(y[200:], matrix)
    >>> emi = expected_improvement(LogisticRegression(), X[:200], y[:200], X[200:], scorer, chances)
    >>> emi.how, len(emi.items), emi.best(3).shape
    ('fast', 200, (3,))
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

    def train(rows: Codes) -> Block:
        codes = retrained_predictions(estimator, X, labels, X_val, scorer.classes, changes.select(rows), **training)
        return Block(rows, np.arange(scorer.n_items), codes)

    worth.start(before)
    first: Codes = where
    if chosen != "exact":
        by_weight = weigh and by_chance  # which needs no training
        first = (
            np.sort(where[np.argsort(-weights, kind="stable")[:shortlist]])
            if by_weight
            else worth.ranked_by_surrogate(X, labels, X_val, shortlist, memory_limit)
        )
    rows = changes.of(first)
    if len(rows):
        worth.take(train(rows), exact=True)
    return worth.result("exact" if chosen == "exact" else "shortlist", above=None if chosen == "exact" else first)


def model_uncertainty(model: Any, X: Any) -> Floats:
    """u(x) = 1 − max_c p(c | x); from scores through the logistic function for models without probabilities.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> model = GaussianNB().fit([[-1.0], [-2.0], [1.0], [2.0]], [0, 0, 1, 1])
    >>> model_uncertainty(model, [[0.0], [9.0]]).round(3).tolist()
    [0.5, 0.0]
    """
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(X), dtype=float)
    else:
        scores = np.asarray(model.decision_function(X), dtype=float)
        if scores.ndim == 1:
            return np.asarray(special.expit(-np.abs(scores)))
        chances = special.softmax(scores, axis=1)
    return np.asarray(1 - chances.max(axis=1))


class _Worth:
    """Gathers the improvement of each item from blocks of predictions."""

    def __init__(
        self,
        scorer: UnbiasedScorer,
        changes: Candidates,
        chances: Floats,
        items: Codes,
        unsure: Floats,
        weights: Floats | None,
        scale: float,
    ) -> None:
        self.scorer, self.changes, self.items, self.unsure = scorer, changes, items, unsure
        self.weights, self.scale = weights, scale
        self.chance = chances[changes.item, changes.to]
        self.place = np.searchsorted(items, changes.item)
        self.improvement, self.standard_error = np.zeros(len(items)), np.zeros(len(items))
        # An item that no candidate changes is exact as it is.
        self.exact = ~np.isin(np.arange(len(items)), self.place)

    def start(self, before: Codes) -> None:
        """The base model's predictions, with which all others are compared."""
        self.before = before
        self.shares = self.scorer.shares(before)
        self.base = float(self.scorer.values(self.shares))
        self.gains = self.scorer.gains(before)

    def take(self, block: Block, *, exact: bool) -> None:
        """Improvements and their standard errors from the predictions of some models."""
        most = max(_BLOCK // (8 * max(len(block.columns), 1)), 1)
        for part in item_chunks(self.place[block.rows], most):
            self._take(Block(block.rows[part], block.columns, block.predictions[part]), exact=exact)

    def _take(self, block: Block, *, exact: bool) -> None:
        sign, n = self.scorer.sign, self.scorer.n_used
        places = self.place[block.rows]
        starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
        of = places[starts]
        before = self.before[block.columns]
        sums, squares = self._moments(block, starts, before)
        if self.scorer.linear:
            expected = sums / n
        else:
            shares = self.scorer.changed_shares(self.shares, before, block.columns, block.predictions)
            expected = np.add.reduceat(self.chance[block.rows] * (self.scorer.values(shares) - self.base), starts)
        self.improvement[of] = np.round(sign * expected, _DIGITS)
        self.standard_error[of] = np.sqrt(np.maximum(squares - sums**2 / n, 0.0) / (n * max(n - 1, 1)))
        self.exact[of] = exact

    def _moments(self, block: Block, starts: Codes, before: Codes) -> tuple[Floats, Floats]:
        """For each item the sums over validation items of its expected gain, and of the square."""
        gains = self.gains[block.columns]
        if gains.shape[1] == 2:  # an item has one candidate, and a prediction changes or does not
            gain = gains[np.arange(len(before)), 1 - before]
            changed = (block.predictions != before).astype(float)
            chance = self.chance[block.rows]
            return chance * (changed @ gain), chance**2 * (changed @ gain**2)
        each = gains.ravel()[np.arange(len(before)) * gains.shape[1] + block.predictions]
        expected = np.add.reduceat(each * self.chance[block.rows][:, None], starts, axis=0)
        return expected.sum(axis=1), np.einsum("ij,ij->i", expected, expected)

    def score(self) -> Floats:
        """What ranks."""
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
        """The most promising items by a model that has a fast path; their improvements are kept as a guess."""
        models, there = surrogate_problem(X, y, X_val, self.scorer.classes)
        if models is None:
            chance = np.bincount(self.place, self.chance, len(self.items))
            return np.sort(self.items[np.lexsort((-self.unsure, -chance))[:n]])
        own = copy(self)
        own.improvement, own.standard_error = np.zeros(len(self.items)), np.zeros(len(self.items))
        own.exact = self.exact.copy()
        own.take_fast(models, there, 0, memory_limit)
        self.improvement, self.standard_error = own.improvement, own.standard_error
        return np.sort(self.items[own.order()[:n]])

    def result(self, how: str, above: Codes | None = None) -> EMI:
        """The result; items in `above` rank before all others."""
        score = self.score()
        if above is not None and len(above) < len(self.items):
            behind = ~np.isin(self.items, above)
            if behind.any() and not behind.all():
                score[behind] = np.minimum(score[behind], np.nextafter(score[~behind].min(), -np.inf))
        return EMI(self.items, self.improvement, self.standard_error, self.unsure, score, self.exact, self.base, how)
