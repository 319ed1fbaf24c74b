"""Metrics of scores and of class probabilities, by name."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats
from trueup._base.validation import check_integer
from trueup.exceptions import InvalidParameter
from trueup.metrics.probabilistic import auc_ovo, auc_ovr, brier, calibration_error, log_loss
from trueup.metrics.ranking import auc, average_precision, check_max_fpr, ndcg, partial_auc, precision_at_k, recall_at_k
from trueup.metrics.score_groups import check_codes, check_finite

__all__ = ["ScoreMetric", "check_scores", "get_score_metric", "list_score_metrics"]

Needs = Literal["scores", "probabilities"]
_Function = Callable[..., Floats]


@dataclass(frozen=True)
class ScoreMetric:
    """A metric of scores, or of class probabilities, and a drawn truth.

    Parameters
    ----------
    name : str
        E.g. ``"precision@10"``.
    function : callable
        ``function(truths, outputs, weights)`` to values of shape (n_draws,), nan where undefined. If `needs` is
        "scores", truths say which items are positive; else they are class codes.
    needs : {"scores", "probabilities"}
        What a system must give: a score an item, shape (n_items,), or class probabilities, shape
        (n_items, n_classes).
    n_classes : int
        The number of classes.
    bounds : (float, float)
        The smallest and the largest value.
    higher_is_better : bool
    description : str
        One sentence for reports.

    Examples
    --------
    >>> metric = get_score_metric("auc", 2)
    >>> metric.evaluate([[0, 0, 1, 1], [0, 1, 0, 1]], [0.1, 0.4, 0.35, 0.8], positive=1).tolist()
    [0.75, 1.0]
    """

    name: str
    function: _Function
    needs: Needs
    n_classes: int = 2
    bounds: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True
    description: str = ""

    def evaluate(
        self,
        truths_codes: npt.ArrayLike,
        outputs: npt.ArrayLike,
        *,
        positive: int,
        weights: npt.ArrayLike | None = None,
    ) -> Floats:
        """The metric for each of many truths.

        Parameters
        ----------
        truths_codes : integer array of shape (n_draws, n_items)
            The class of each item in each draw.
        outputs : array of shape (n_items,) or (n_items, n_classes)
            Scores for the positive class, or class probabilities, as `needs` says.
        positive : int
            The code of the positive class. Metrics of probabilities treat all classes alike and do not use it.
        weights : array of shape (n_draws, n_items), optional
            What each item counts for in each draw, e.g. from a Bayesian bootstrap.

        Returns
        -------
        array of shape (n_draws,)
        """
        codes = check_codes(truths_codes, self.n_classes)
        if self.needs == "probabilities":
            return self.function(codes, outputs, weights)
        code = check_integer(positive, name="positive", low=0)
        if code >= self.n_classes:
            raise InvalidParameter(f"positive must be the code of one of {self.n_classes} classes, got {code}")
        return self.function(codes == code, outputs, weights)


# name -> (function, what it needs, bounds, higher is better, what it is)
_PLAIN: dict[str, tuple[_Function, Needs, tuple[float, float], bool, str]] = {
    "auc": (auc, "scores", (0.0, 1.0), True, "share of pairs of a positive and a negative that are ordered right"),
    "auc_ovr": (auc_ovr, "probabilities", (0.0, 1.0), True, "AUC of each class against all others, averaged"),
    "auc_ovo": (auc_ovo, "probabilities", (0.0, 1.0), True, "Hand and Till's mean AUC over pairs of classes"),
    "average_precision": (average_precision, "scores", (0.0, 1.0), True, "mean precision over the positives"),
    "ndcg": (ndcg, "scores", (0.0, 1.0), True, "discounted gain of the ranking beside that of the best one"),
    "log_loss": (log_loss, "probabilities", (0.0, math.inf), False, "mean of −log p(true class), in nats"),
    "brier": (brier, "probabilities", (0.0, 1.0), False, "mean squared error of the probabilities"),
    "calibration_error": (
        calibration_error,
        "probabilities",
        (0.0, 1.0),
        False,
        "mean gap between confidence and accuracy in 15 bins; biased upwards on short lists",
    ),
}
# name -> (function, what it is) of metrics that look at the first k items
_AT_K: dict[str, tuple[_Function, str]] = {
    "precision": (precision_at_k, "share of positives among the {k} items with the highest scores"),
    "recall": (recall_at_k, "share of the positives among the {k} items with the highest scores"),
    "ndcg": (ndcg, "discounted gain of the first {k} places beside that of the best ranking"),
}
_PARTIAL = "area under the ROC curve up to a false positive rate of {f:g}, scaled so that chance is ½"
_ALIASES = {
    "roc_auc": "auc",
    "roc_auc_ovr": "auc_ovr",
    "roc_auc_ovo": "auc_ovo",
    "hand_till": "auc_ovo",
    "ap": "average_precision",
    "logloss": "log_loss",
    "cross_entropy": "log_loss",
    "brier_score": "brier",
    "ece": "calibration_error",
    "expected_calibration_error": "calibration_error",
}
_EXAMPLES = ("precision@10", "recall@10", "ndcg@10", "partial_auc@0.1")
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")


def list_score_metrics() -> list[str]:
    """The names `get_score_metric` knows; after an @ any number may stand.

    Examples
    --------
    >>> "average_precision" in list_score_metrics()
    True
    """
    return [*_PLAIN, *_EXAMPLES]


def get_score_metric(name: str, n_classes: int) -> ScoreMetric | None:
    """The metric of scores or probabilities of this name, or None if no such metric has it.

    Hyphens and underscores are the same. ``"auc"`` needs scores where there are two classes; where there are more it
    is ``"auc_ovr"``, which needs probabilities. The other metrics of scores take all classes but the positive one as
    negative.

    Parameters
    ----------
    name : str
        E.g. ``"auc"``, ``"ap"``, ``"precision@10"``, ``"ndcg"``, ``"partial_auc@0.1"``, ``"hand_till"``, ``"ece"``.
    n_classes : int

    Examples
    --------
    >>> get_score_metric("Precision@10", 2).description
    'share of positives among the 10 items with the highest scores'
    >>> get_score_metric("auc", 3).name
    'auc_ovr'
    >>> get_score_metric("accuracy", 2) is None
    True
    """
    n = check_integer(n_classes, name="n_classes", low=2)
    key = str(name).strip().lower().replace("-", "_")
    base, at, number = key.partition("@")
    base = _ALIASES.get(base, base)
    if base == "partial_auc":
        return _partial_auc(name, number, n)
    if at and base in _AT_K:
        return _at_k(name, base, number, n)
    if base not in _PLAIN:
        return None
    if at:
        raise InvalidParameter(f"metric {base} takes no number, got {name!r}; write {base!r}")
    if base == "auc" and n > 2:
        base = "auc_ovr"
    function, needs, bounds, higher, description = _PLAIN[base]
    if base == "brier" and n > 2:
        bounds = (0.0, 2.0)  # the sum over classes, see `brier`
    return ScoreMetric(base, function, needs, n, bounds, higher, description)


def _at_k(name: str, base: str, number: str, n_classes: int) -> ScoreMetric:
    k = int(number) if number.isdecimal() else 0
    if k < 1:
        raise InvalidParameter(
            f"metric {base}@k needs a whole number k of at least 1, got {name!r}; write e.g. {base + '@10'!r}"
        )
    function, words = _AT_K[base]
    return ScoreMetric(f"{base}@{k}", partial(function, k=k), "scores", n_classes, description=words.format(k=k))


def _partial_auc(name: str, number: str, n_classes: int) -> ScoreMetric:
    rate = float(number) if _NUMBER.fullmatch(number) else math.nan
    if not 0 < rate <= 1:
        raise InvalidParameter(
            f"metric partial_auc@f needs a false positive rate f in (0, 1], got {name!r}; write e.g. 'partial_auc@0.1'"
        )
    most = check_max_fpr(rate)
    function = partial(partial_auc, max_fpr=most)
    return ScoreMetric(f"partial_auc@{most:g}", function, "scores", n_classes, description=_PARTIAL.format(f=most))


def check_scores(scores: npt.ArrayLike, *, system: object = None) -> str | None:
    """What is odd about the scores of a system: None, or a sentence for a warning. What cannot be used raises.

    Parameters
    ----------
    scores : array of shape (n_items,) or (n_items, n_classes)
    system : object
        The name of the system, for the sentence.

    Raises
    ------
    InvalidPredictions
        If a score is not a finite number.

    Examples
    --------
    >>> check_scores([0.5, 0.5, 0.5], system="lazy")
    "The scores of 'lazy' are all 0.5: they rank nothing, so every order of the items is as good as another."
    >>> check_scores([0.5, 0.6]) is None
    True
    """
    values = check_finite(scores, system=system)
    if len(values) < 2 or (values != values[0]).any():
        return None
    whose = "The scores" if system is None else f"The scores of {system!r}"
    same = f"{float(values[0]):g}" if values.ndim == 1 else str(np.round(values[0], 6).tolist())
    return f"{whose} are all {same}: they rank nothing, so every order of the items is as good as another."
