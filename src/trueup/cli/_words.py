"""The library's advice in the words of the command line: ``missing="ignore"`` is ``--missing ignore`` here."""

from __future__ import annotations

import re

__all__ = ["for_the_command_line"]

_VALUE = re.compile(r'\b(missing|unknown|unknown_class|noise|duplicates|method|target|view|items)="([\w-]+)"')
_COLUMN = re.compile(r"name it with (item|labeler|label|prediction|score|system|truth)=…")
_NUMPY = re.compile(r"\bnp\.(?:int|float)\d+\(([^()]*)\)")
_FIRST_ROW = re.compile(r"\(first: row (\d+)\)")
# Longer phrases first: a short one may be a part of them.
_PHRASES = {
    "declare what that means: missing=None for no vote, abstain=None for an abstention": (
        "declare what that means: --no-vote '' for no vote, --abstain '' for an abstention"
    ),
    "pass missing=None": "pass --no-vote ''",
    "abstain=… for an abstention": "--abstain … for an abstention",
    "file_format=…": "--format, which is for standard input",
    "system=…": "--system",
    "pass classes=[…] with all that could be chosen": "name all that could be chosen with --class, once for each",
    "read the votes with classes=[…]": "name all classes with --class",
    "predict them, select the others with labels.select, or pass": "predict them, or pass",
    ": convert one of them, e.g. with int(…)": ": write them alike in both files",
    "pass Predictions.from_scores, arrays of scores, or class probabilities": (
        "add a column of scores (--score), or of the probability of each class (--probability)"
    ),
    "pass positive= to compare or Predictions.from_scores, or class probabilities": (
        "pass --positive, or a column with the probability of each class (--probability)"
    ),
    "pass positive= to compare or Predictions.from_scores": "pass --positive",
    "pass Predictions.from_scores": "add a column of scores (--score)",
    "pass threshold= to from_scores": "add a column of predictions",
    "they are kept, and without_labeler() leaves them out": "they are kept; remove their rows to leave them out",
    "with labels.without_labeler": "by removing its rows from the votes",
    ", add gold with labels.with_gold, or pass known rates with trueup.noise.Confusion": ", or add gold with --gold",
    ", or pass known rates with trueup.noise.Confusion": "",
    ", pass known rates with trueup.noise.Confusion": "",
    "with labels.with_gold": "with --gold",
    "labels.with_gold": "--gold",
    "pass n_draws": "pass --draws",
    "raise n_draws": "raise --draws",
}


def for_the_command_line(sentence: str) -> str:
    """A sentence of the library with options in place of parameters.

    Rows are counted from 0 there; here from 1, as in a file without its header.

    Examples
    --------
    >>> for_the_command_line('predict them, or pass missing="ignore"')
    'predict them, or pass --missing ignore'
    >>> for_the_command_line("got 1 of 3 rows where it is (first: row 0); name it with label=…")
    'got 1 of 3 rows where it is (first: row 1 after the header); name it with --label'
    """
    for phrase, words in _PHRASES.items():
        sentence = sentence.replace(phrase, words)
    sentence = _COLUMN.sub(lambda match: f"name it with --{match[1]}", sentence)
    sentence = _FIRST_ROW.sub(lambda match: f"(first: row {int(match[1]) + 1} after the header)", sentence)
    sentence = _NUMPY.sub(r"\1", sentence)
    sentence = re.sub(r"missing=('[^']*') for no vote", r"--no-vote \1 for no vote", sentence)
    return _VALUE.sub(lambda match: f"--{match[1].replace('_', '-')} {match[2]}", sentence)
