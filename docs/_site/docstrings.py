"""The few marks of reStructuredText that numpydoc docstrings use, as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

INLINE = re.compile(r":math:`([^`]+)`")
BLOCK = re.compile(r"^( *)\.\. math::(.*\n(?:(?:\1 +\S.*)?\n)*)", re.MULTILINE)
PARAMETERS = re.compile(r"^(?:Parameters|Attributes)\n-+\n(?:(?!^\S.*\n-{3,}\n).*\n)*", re.MULTILINE)
IN_A_LINE = re.compile(r"^(\S.*? : .*?)\. (\S.*)$", re.MULTILINE)
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)((?: : .*)?\n(?: +.*\n|\n(?= ))*)", re.MULTILINE)
CITATION = re.compile(r"(?<![\w`])(\[\d+\])_(?!\w)")
REFERENCE = re.compile(r"^( *)\.\. (\[\d+\])", re.MULTILINE)


def as_markdown(text: str) -> str:
    """``.. math::`` and ``:math:`` as dollars, references without their dots, parameters one by one.

    Parameters that share a line, ``a, b : int``, would all be shown with the default of the first; of one with its text
    beside it, ``b : int. Text``, all would be the type.
    """
    text = PARAMETERS.sub(lambda m: TOGETHER.sub(_one_by_one, IN_A_LINE.sub(r"\1\n    \2", m[0])), f"{text}\n")
    text = BLOCK.sub(_display, text)
    text = INLINE.sub(lambda m: f"${_one_line(m[1])}$", text)
    return REFERENCE.sub(r"\1\2", CITATION.sub(r"\1", text)).rstrip("\n")


def _one_by_one(match: re.Match[str]) -> str:
    return "".join(f"{name}{match[2]}" for name in match[1].split(", "))


def _one_line(formula: str) -> str:
    return " ".join(formula.split())


def _display(match: re.Match[str]) -> str:
    first, _, rest = match[2].partition("\n")
    formula = f"{first.strip()}\n{textwrap.dedent(rest)}".strip()
    if "&" in formula or "\\\\" in formula:
        formula = f"\\begin{{aligned}}\n{formula}\n\\end{{aligned}}"
    return f"\n$$\n{formula}\n$$\n\n"


class Docstrings(griffe.Extension):
    """Rewrite each docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that was found."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
