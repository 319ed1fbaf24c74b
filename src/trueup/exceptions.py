"""The errors and warnings trueup raises.

Every error says in one sentence what was wrong, what was got and what to do. All derive from `TrueupError`; each
also derives from the builtin that a caller would catch without knowing trueup.

Parameters, functions and rows stand between backticks, as in "pass `missing=None`". The command line names its own
options there.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "ClusterLost",
    "ConvergenceWarning",
    "DataWarning",
    "IdentifiabilityWarning",
    "InvalidFile",
    "InvalidLabels",
    "InvalidParameter",
    "InvalidPredictions",
    "InvalidShapes",
    "MissingExtra",
    "MissingFile",
    "NotFitted",
    "SessionMissing",
    "StorageError",
    "TrueupError",
    "TrueupWarning",
    "UndefinedMetricWarning",
    "silenced_warnings",
]


_LEADING = re.compile(r"`(\w+)")  # the parameter that a sentence begins with
_BOXED = re.compile(r"\bnp\.(?:u?int|float|str|bool)_?\d*\((\w+|-?[\d.e+-]+|'[^']*'|\"[^\"]*\")\)")


class TrueupError(Exception):
    """Base class of all errors raised on purpose.

    Parameters
    ----------
    sentence : str. What was wrong, what was got and what to do.
    parameter : str, optional. The parameter whose value was refused; by default the one that the sentence begins with.
    """

    def __init__(self, sentence: str = "", *, parameter: str | None = None) -> None:
        # A reader is shown 1 and "a", not numpy's np.int64(1) and np.str_("a").
        super().__init__(_BOXED.sub(r"\1", sentence))
        named = _LEADING.match(sentence)
        self.parameter = named[1] if parameter is None and named is not None else parameter

    @property
    def sentence(self) -> str:
        """What was wrong, what was got and what to do."""
        return str(self.args[0]) if self.args else ""


class InvalidLabels(TrueupError, ValueError):
    """The votes, or what was asked of them, make no sense."""

    only_class: object = None  # the one class that all votes name, where that is what is wrong


class InvalidPredictions(TrueupError, ValueError):
    """The predictions do not fit the labels or themselves."""


class InvalidShapes(TrueupError, ValueError):
    """Boxes, masks or images do not fit each other or themselves."""


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


class ClusterLost(TrueupError, TimeoutError):
    """A cluster has had no worker for so long that its answer is not waited for."""


class InvalidFile(TrueupError, ValueError):
    """A file cannot be read as what it was said to be."""


class MissingFile(TrueupError, FileNotFoundError):
    """A file does not exist."""


class StorageError(TrueupError, ValueError):
    """A storage cannot be opened, or holds something else than what was asked for."""


class SessionMissing(StorageError, LookupError):
    """A storage has no session of this name."""


@contextmanager
def silenced_warnings() -> Iterator[None]:
    """No warnings of trueup within the block, for callers that say the same in their own answer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        yield
