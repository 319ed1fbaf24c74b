"""The errors and warnings trueup raises.

Every error says in one sentence what was wrong, what was got and what to do. All derive from `TrueupError`; each
also derives from the builtin that a caller would catch without knowing trueup.
"""

__all__ = [
    "ConvergenceWarning",
    "DataWarning",
    "IdentifiabilityWarning",
    "InvalidFile",
    "InvalidLabels",
    "InvalidParameter",
    "InvalidPredictions",
    "MissingExtra",
    "MissingFile",
    "NotFitted",
    "TrueupError",
    "TrueupWarning",
    "UndefinedMetricWarning",
]


class TrueupError(Exception):
    """Base class of all errors raised on purpose."""


class InvalidLabels(TrueupError, ValueError):
    """The votes, or what was asked of them, make no sense."""


class InvalidPredictions(TrueupError, ValueError):
    """The predictions do not fit the labels or themselves."""


class InvalidParameter(TrueupError, ValueError):
    """A parameter is outside what it may be."""


class NotFitted(TrueupError, ValueError, AttributeError):
    """A model was asked for an answer before `fit`."""


class MissingExtra(TrueupError, ImportError):
    """An optional dependency is needed and is not installed."""


class TrueupWarning(UserWarning):
    """Base class of all warnings."""


class DataWarning(TrueupWarning):
    """The data are usable but hold something a user should know."""


class ConvergenceWarning(TrueupWarning):
    """An iteration or a chain did not settle."""


class IdentifiabilityWarning(TrueupWarning):
    """The votes alone cannot determine what was asked."""


class UndefinedMetricWarning(TrueupWarning):
    """A metric has no value for some of the possible truths."""


class InvalidFile(TrueupError, ValueError):
    """A file cannot be read as what it was said to be."""


class MissingFile(TrueupError, FileNotFoundError):
    """A file does not exist."""
