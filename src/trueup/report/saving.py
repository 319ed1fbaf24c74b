"""A report as one file: HTML or Markdown, each from its template, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from trueup._base import wording
from trueup._base.wording import interval, text_bar
from trueup._base.writing import write_text_safely
from trueup.answers.gates import GateReport
from trueup.exceptions import InvalidParameter
from trueup.report import crops, figures, sentences, tables
from trueup.report.pages import PAGES
from trueup.report.summary import FORMAT


def check_format(data: Mapping[str, Any]) -> None:
    """Stop where data are of another shape than this version writes."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidParameter(f"data must be a report of format {FORMAT}, got {got!r}; make it with build_report")


# What the templates call; figures escape what they draw.
_FIGURES: tuple[Callable[..., Any], ...] = (
    crops.crop_figure,
    figures.answer_strip,
    figures.confusion_map,
    figures.curve_figure,
    figures.density_figure,
    figures.interval_figure,
    figures.labeler_scatter,
    figures.metric_groups,
    figures.same_metrics,
    tables.biggest_confusions,
    tables.confusion_table,
    tables.labeler_tables,
    tables.metric_table,
    tables.pair_table,
    tables.system_tables,
    tables.vet_table,
)
_WORDS: tuple[Callable[..., Any], ...] = (
    *(
        wording.chance,
        wording.decimals,
        wording.interval,
        wording.level_words,
        wording.listed,
        wording.number,
        wording.signed,
    ),
    *(sentences.is_unnamed, sentences.quoted, sentences.setting, sentences.shorten),
)


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    is_html = name.endswith(".html.j2")
    environment = Environment(
        loader=PackageLoader("trueup.report"),
        autoescape=is_html,
        finalize=None if is_html else _escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals |= {figure.__name__: figure for figure in _FIGURES}  # the template marks them as safe
    environment.filters |= {word.__name__: word for word in _WORDS}
    environment.filters |= {"raw": _Raw, "fence": _fence}
    return environment.get_template(name)


def render_html(data: Mapping[str, Any]) -> str:
    """The report as one self-contained HTML page.

    The page holds its style and its pictures, has no script and asks for nothing from anywhere: its policy forbids
    both. All names in it are escaped.

    Parameters
    ----------
    data : mapping. What `build_report` returns, or the same read from JSON.

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
    return _rendered(data, "html")


def _rendered(data: Mapping[str, Any], form: str) -> str:
    """A page by its template; what is no report of systems is first made into parts that all such pages have."""
    parts = PAGES.get(data.get("page", ""))
    if parts is None:
        return str(_template(f"report.{form}.j2").render(report=data))
    return str(_template(f"page.{form}.j2").render(page=parts(data)))


_SPECIAL = re.compile(r"([\\`*_\[\]|#~$])")


class _Raw(str):
    """Text that goes into Markdown as it is."""


def _escaped(value: Any) -> str:
    """Words that Markdown shows as they are, on one line."""
    if isinstance(value, _Raw):
        return value
    words = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    kept = f" {words}" if str(value)[:1] == " " else words
    return _SPECIAL.sub(r"\\\1", kept)


def _fence(code: str) -> str:
    """What stands around code that may hold a fence itself: a file may have one in its name, a class too."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    return "`" * max(3, longest + 1)


def render_markdown(data: Mapping[str, Any]) -> str:
    """The report as Markdown, with tables in place of pictures.

    Parameters
    ----------
    data : mapping. What `build_report` returns, or the same read from JSON.

    Examples
    --------
    >>> import trueup as tu
    >>> from trueup.report import build_report
    >>> sim = tu.simulate.baseline(n_items=200, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> render_markdown(build_report(ev, title="A trial")).splitlines()[0]
    '# A trial'
    """
    check_format(data)
    return re.sub(r"\n{3,}", "\n\n", _rendered(data, "md")).strip() + "\n"


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
    data : mapping. What `build_report` returns.
    path : path. With the suffix .html, .md or .json.

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


_SUITE = "trueup"


def render_junit(report: GateReport, *, name: str = "gates") -> str:
    """A test case for each gate: one that failed is a failure, one that is undecided an error.

    Parameters
    ----------
    name : str. Of the suite, and the class of its cases.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> text = render_junit(tu.gate(ev, at_least={"accuracy": 0.999}))
    >>> 'tests="1" failures="1" errors="0"' in text, "<failure" in text
    (True, True)
    """
    verdicts = [result.verdict for result in report.results]
    counts = {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count("failed")),
        "errors": str(verdicts.count("undecided")),
    }
    suites = ElementTree.Element("testsuites", {"name": _SUITE, **counts, "time": "0"})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _allowed(name), **counts, "skipped": "0", "time": "0"})
    for result in report.results:
        about = {"classname": f"{_SUITE}.{_allowed(name)}", "name": _allowed(str(result.gate)), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", about)
        sentence = _allowed(result.sentence)
        if result.verdict == "passed":
            ElementTree.SubElement(case, "system-out").text = sentence
        else:
            kind = "failure" if result.verdict == "failed" else "error"
            problem = ElementTree.SubElement(case, kind, {"message": sentence, "type": result.verdict})
            problem.text = sentence
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def save_junit(report: GateReport, path: str | PathLike[str], *, name: str = "gates") -> None:
    """Write gates as JUnit XML, whole or not at all; see `render_junit`."""
    write_text_safely(path, render_junit(report, name=name))


def render_summary(report: GateReport, *, name: str = "trueup") -> str:
    """Verdict, interval of each gate as a bar of text, and what to do next, as Markdown.

    Examples
    --------
    >>> import trueup as tu
    >>> sim = tu.simulate.baseline(n_items=300, random_state=0)
    >>> ev = tu.evaluate(sim.predictions, sim.labels, noise="dawid-skene", n_draws=200, n_warmup=100)
    >>> print(render_summary(tu.gate(ev, at_least={"accuracy": 0.999})).splitlines()[0])
    ## trueup: failed
    """
    lines = [f"## {name}: {report.verdict}", ""]
    for result in report.results:
        lines += [f"- {_plain_markdown(result.sentence)}"]
        low, high = result.estimate.interval(report.level)
        if low <= high:
            bar = text_bar(low, high, bounds=result.estimate.bounds, mark=result.gate.bound)
            lines += ["", "  ```text", f"  {bar}  ({interval(low, high)}; ┃ is {result.gate.bound:g})", "  ```", ""]
    if report.next_steps:
        lines += ["", "**Next**", "", *(f"- {_plain_markdown(step)}" for step in report.next_steps)]
    return "\n".join(lines).rstrip() + "\n"


def save_summary(report: GateReport, path: str | PathLike[str], *, name: str = "trueup") -> None:
    """Write gates as Markdown, whole or not at all; see `render_summary`."""
    write_text_safely(path, render_summary(report, name=name))


def _plain_markdown(text: str) -> str:
    """Text in which nothing is markup, and that stays on one line."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(_allowed(text).split()))


def _allowed(text: str) -> str:
    """Text with escapes for what XML cannot hold: control characters and halves of characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
