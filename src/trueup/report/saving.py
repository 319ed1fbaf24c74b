"""A report to a file, whose name says which form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trueup._writing import write_text_safely
from trueup.exceptions import InvalidParameter
from trueup.report.html import check_format, render_html
from trueup.report.markdown import render_markdown

__all__ = ["render_json", "save_report"]


def render_json(data: Mapping[str, Any]) -> str:
    """The report as JSON, what has no value as null.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.report import build_report
    >>> sim = tu.simulate.baseline(n_items=200, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> json.loads(render_json(build_report(ev)))["format"]
    1
    """
    check_format(data)
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


_FORMS = {
    ".html": render_html,
    ".htm": render_html,
    ".md": render_markdown,
    ".markdown": render_markdown,
    ".json": render_json,
}


def save_report(data: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write a report as HTML, Markdown or JSON, by the suffix of the path.

    The file is whole or not there: it is written beside its place and then renamed.

    Parameters
    ----------
    data : mapping
        What `build_report` returns.
    path : path
        With the suffix .html, .md or .json.

    Returns
    -------
    Path

    Examples
    --------
    >>> save_report({"format": 1}, "report.pdf")
    Traceback (most recent call last):
    ...
    trueup.exceptions.InvalidParameter: a report is written as .html, .md or .json, got 'report.pdf'; name it so
    """
    render = _FORMS.get(Path(path).suffix.lower())
    if render is None:
        raise InvalidParameter(f"a report is written as .html, .md or .json, got {fspath(path)!r}; name it so")
    write_text_safely(path, render(data))
    return Path(path)
