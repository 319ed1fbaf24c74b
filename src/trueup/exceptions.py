"""The errors and warnings trueup raises.

Every error says in one sentence what was wrong, what was got and what to do. All derive from `TrueupError`; each
also derives from the builtin that a caller would catch without knowing trueup.

A sentence names what differs from door to door between ⟨ and ⟩: a parameter, as in "pass ⟨missing=None⟩", a function,
as in "add gold (⟨labels.with_gold⟩)", or a row, as in "⟨row 0⟩", which a file counts from 1. Python callers read
``missing=None``; another door, such as the command line, spells it its own way with `Sentence.spelled`. What users
named goes into a sentence through `quoted`, so that brackets of theirs are no marks.
"""

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

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
    "Sentence",
    "SessionMissing",
    "StorageError",
    "TrueupError",
    "TrueupWarning",
    "UndefinedMetricWarning",
    "quoted",
    "silenced_warnings",
]


_MARK = re.compile(r"⟨((?:[^\W\d]\w*\.)*[^\W\d]\w*(?:\(\))?)(?:([= ])([^⟩]*))?⟩")
_BRACKET_OF_DATA = "\ufdd0"  # never a character of text, and `repr` writes it as an escape, so that no data hold it


def quoted(value: object) -> str:
    """The repr of what a user named, for a sentence, in which a bracket ⟨ then begins no mark.

    Examples
    --------
    >>> print(Sentence(f"⟨positive⟩ must be a class, got {quoted('⟨x⟩')}"))
    positive must be a class, got '⟨x⟩'
    """
    return _guarded(repr(value))


def _guarded(text: str) -> str:
    return text.replace("⟨", _BRACKET_OF_DATA)


def _unguarded(text: str) -> str:
    return text.replace(_BRACKET_OF_DATA, "⟨")


class Sentence(str):
    """Text for people that knows which of its words are parameters.

    Parameters
    ----------
    marked : str
        With parameters as ``⟨name⟩`` or ``⟨name=value⟩``, and rows as ``⟨row 0⟩``.

    Examples
    --------
    >>> sentence = Sentence("items lack votes; pass ⟨missing=None⟩")
    >>> print(sentence)
    items lack votes; pass missing=None
    >>> sentence.spelled(lambda name, value: f"--{name} {value}")
    'items lack votes; pass --missing None'
    """

    marked: str

    def __new__(cls, marked: str) -> Self:
        """The text as Python callers read it."""
        marked = marked.marked if isinstance(marked, Sentence) else marked
        sentence = super().__new__(cls, _unguarded(_MARK.sub(lambda match: match[0][1:-1], marked)))
        sentence.marked = marked
        return sentence

    def __getnewargs__(self) -> tuple[str]:
        """What a copy is made from."""
        return (self.marked,)

    def spelled(self, spell: Callable[[str, str | None], str]) -> str:
        """The text with each parameter as ``spell(name, value)`` has it; `value` is None where none was named."""
        return _unguarded(_MARK.sub(lambda match: spell(match[1], match[3]), self.marked))


class TrueupError(Exception):
    """Base class of all errors raised on purpose.

    Parameters
    ----------
    sentence : str
        What was wrong, what was got and what to do, with parameters marked as in `Sentence`.
    parameter : str, optional
        The parameter whose value was refused.
    """

    def __init__(self, sentence: str = "", *, parameter: str | None = None) -> None:
        super().__init__(Sentence(sentence))
        self.parameter = parameter

    @property
    def sentence(self) -> Sentence:
        """What was said, with its parameters marked."""
        text = self.args[0] if self.args else ""
        return text if isinstance(text, Sentence) else Sentence(_guarded(str(text)))  # another door has spelled it


class InvalidLabels(TrueupError, ValueError):
    """The votes, or what was asked of them, make no sense."""


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
    """Base class of all warnings.

    Parameters
    ----------
    sentence : str
        What was noticed and what to do, with parameters marked as in `Sentence`.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(Sentence(sentence))

    @property
    def sentence(self) -> Sentence:
        """What was said, with its parameters marked."""
        return Sentence(self.args[0])


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
