"""What is measured: a metric is a function of the confusion counts and knows no model."""

from trueup.metrics.confusion import (
    accuracy,
    balanced_accuracy,
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
from trueup.metrics.counts import confusion_counts
from trueup.metrics.metric import FunctionMetric, Metric
from trueup.metrics.registry import as_metric, get_metric, list_metrics, register_metric

__all__ = [
    "FunctionMetric",
    "Metric",
    "accuracy",
    "as_metric",
    "balanced_accuracy",
    "confusion_counts",
    "error_rate",
    "false_alarm_rate",
    "fbeta",
    "get_metric",
    "kappa",
    "list_metrics",
    "mcc",
    "precision",
    "prevalence",
    "recall",
    "register_metric",
    "specificity",
]
