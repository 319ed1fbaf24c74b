"""A report as one HTML file: no script, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from trueup.exceptions import InvalidParameter
from trueup.report import figures, words

__all__ = ["check_format", "render_html"]

_FORMAT = 1


def check_format(data: Mapping[str, Any]) -> None:
    """Stop where data are of another shape than this version writes."""
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidParameter(f"data must be a report of format {_FORMAT}, got {got!r}; make it with build_report")


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("trueup.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    for name in figures.__all__:
        environment.globals[name] = getattr(figures, name)  # the template marks pictures as safe: theirs is escaped
    for name in words.__all__:
        environment.filters[name] = getattr(words, name)
    return environment.get_template("report.html.j2")


def render_html(data: Mapping[str, Any]) -> str:
    """The report as one self-contained HTML page.

    The page holds its style and its pictures, has no script and asks for nothing from anywhere: its policy forbids
    both. All names in it are escaped.

    Parameters
    ----------
    data : mapping
        What `build_report` returns, or the same read from JSON.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.report import build_report
    >>> sim = tu.simulate.baseline(n_items=200, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> page = render_html(build_report(ev, title="<A trial>"))
    >>> "<h1>&lt;A trial&gt;</h1>" in page, "<script" in page
    (True, False)
    """
    check_format(data)
    return str(_template().render(report=data))
