"""What is measured: a metric is a function of the confusion counts, or of scores and a truth, and knows no model."""

from trueup.metrics.concordance import GroupedItems, concordance, concordance_draws, concordance_many
from trueup.metrics.counts import (
    accuracy,
    balanced_accuracy,
    confusion_counts,
    error_rate,
    false_alarm_rate,
    fbeta,
    kappa,
    mcc,
    precision,
    prevalence,
    recall,
    specificity,
)
from trueup.metrics.metric import Metric
from trueup.metrics.probabilistic import auc_ovo, auc_ovr, brier, calibration_error, calibration_floor, log_loss
from trueup.metrics.ranking import (
    auc,
    auc_draws,
    average_precision,
    ndcg,
    partial_auc,
    precision_at_k,
    recall_at_k,
)
from trueup.metrics.ratings import mean_absolute_error, quadratic_kappa
from trueup.metrics.registry import (
    METRICS,
    MetricLike,
    as_metric,
    as_metrics,
    get_metric,
    list_metrics,
    list_score_metrics,
    register_metric,
)
from trueup.metrics.score_groups import check_scores

__all__ = [
    "METRICS",
    "GroupedItems",
    "Metric",
    "MetricLike",
    "accuracy",
    "as_metric",
    "as_metrics",
    "auc",
    "auc_draws",
    "auc_ovo",
    "auc_ovr",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "calibration_error",
    "calibration_floor",
    "check_scores",
    "concordance",
    "concordance_draws",
    "concordance_many",
    "confusion_counts",
    "error_rate",
    "false_alarm_rate",
    "fbeta",
    "get_metric",
    "kappa",
    "list_metrics",
    "list_score_metrics",
    "log_loss",
    "mcc",
    "mean_absolute_error",
    "ndcg",
    "partial_auc",
    "precision",
    "precision_at_k",
    "prevalence",
    "quadratic_kappa",
    "recall",
    "recall_at_k",
    "register_metric",
    "specificity",
]
