"""The library's advice in the words of the command line: ``missing="ignore"`` is ``--missing ignore`` here."""

from __future__ import annotations

import re

__all__ = ["for_the_command_line"]

_VALUE = re.compile(r'\b(missing|unknown|unknown_class|noise|duplicates|method|target|view|items)="([\w-]+)"')
_PHRASES = {
    "pass missing=None": "pass --no-vote ''",
    "file_format=…": "--format, which is for standard input",
    "system=…": "--system",
    "pass threshold= to from_scores": "add a column of predictions",
    "pass positive= to compare or Predictions.from_scores": "pass --positive",
    "pass n_draws": "pass --draws",
    "raise n_draws": "raise --draws",
}


def for_the_command_line(sentence: str) -> str:
    """A sentence of the library with options in place of parameters.

    Examples
    --------
    >>> for_the_command_line('predict them, or pass missing="ignore"')
    'predict them, or pass --missing ignore'
    """
    for phrase, words in _PHRASES.items():
        sentence = sentence.replace(phrase, words)
    return _VALUE.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2]}", sentence)
