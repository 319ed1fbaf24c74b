"""A report as one HTML file: no script, nothing loaded from anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from trueup._base.writing import write_text_safely
from trueup.exceptions import InvalidParameter
from trueup.report import figures
from trueup.report import sentences as words
from trueup.report.sentences import (
    chance,
    decimals,
    is_unnamed,
    number,
    percent,
    quoted,
    setting,
    shorten,
    signed,
    span,
)

__all__ = ["check_format", "render_html", "render_json", "render_markdown", "save_report"]

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


_SPECIAL = re.compile(r"([\\`*_\[\]|#~$])")
_MOST_LABELERS = 10  # shown from each end


def _escaped(value: Any) -> str:
    """Words that Markdown shows as they are, on one line."""
    words = " ".join(str(value).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> list[str]:
    """A table whose first `words` columns are text and the others numbers; cells are escaped already."""
    marks = [":---" if k < words else "---:" for k in range(len(head))]
    return ["", *(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows)), ""]


def render_markdown(data: Mapping[str, Any]) -> str:
    """The report as Markdown, with tables in place of pictures.

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
    >>> render_markdown(build_report(ev, title="A trial")).splitlines()[0]
    '# A trial'
    """
    check_format(data)
    lines = [f"# {_escaped(shorten(data['title'], 160))}", "", *_answers(data), *_warnings(data), *_metrics(data)]
    lines += [*_mistakes(data), *_comparison(data), *_labelers(data), *_dependence(data), *_vet_next(data)]
    lines += _reproduction(data)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _answers(data: Mapping[str, Any]) -> list[str]:
    lines = []
    for system in data["systems"]:
        said = system["answer"]
        who = "" if is_unnamed([s["name"] for s in data["systems"]]) else f"{_escaped(quoted(system['name']))}: "
        remark = "".join(f" {_escaped(system[key])}" for key in ("remark", "judged") if system[key])
        lines += [f"{who}{_escaped(said['claim'])} **{said['value']}** {_escaped(said['rest'])}{remark}", ""]
    lines += [line for sentence in data["verdict"] for line in (_escaped(sentence), "")]
    about = data["about"]
    return [
        *lines,
        f"{about['n_items']:,} items, {about['n_votes']:,} votes, {about['n_labelers']:,} labelers, "
        f"{about['n_classes']:,} classes, {about['n_gold']:,} vetted items.",
        "",
        *(line for sentence in about["positive"] for line in (_escaped(sentence), "")),
    ]


def _warnings(data: Mapping[str, Any]) -> list[str]:
    if not data["warnings"]:
        return ["## Before you trust it", "", "The checks found nothing that speaks against these numbers.", ""]
    lines = []
    for warning in data["warnings"]:
        about = (
            f" (About {', '.join(_escaped(quoted(s, 40)) for s in warning['systems'])}.)" if warning["systems"] else ""
        )
        lines.append(f"- {_escaped(warning['text'])}{about}")
    return ["## Before you trust it", "", *lines, ""]


def _metrics(data: Mapping[str, Any]) -> list[str]:
    rows = []
    for system in data["systems"]:
        for metric in system["metrics"]:
            low, high = metric["low"], metric["high"]
            places = decimals(low, high) + 1
            rows.append(
                (
                    _escaped(shorten(system["name"])),
                    _escaped(metric["label"]),
                    number(metric["mean"], places),
                    span(low, high, places),
                    number(metric["dirty"], places),
                )
            )
    if not rows:
        return []
    level = percent(data["about"]["level"])
    head = ("System", "Metric", "Mean", f"{level} interval", "Majority vote")
    return ["## Every metric, against the majority vote", *_table(head, rows, words=2)]


def _mistakes(data: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    for system in data["systems"]:
        confusion = system["confusion"]
        if not confusion or not confusion["biggest"]:
            continue
        shares = confusion["unit"] == "share"
        rows = [
            (
                _escaped(shorten(cell["truth"], 30)),
                _escaped(shorten(cell["prediction"], 30)),
                number(cell["mean"], 3 if shares else 1),
                span(cell["low"], cell["high"], 3 if shares else 0),
            )
            for cell in confusion["biggest"]
        ]
        head = ("Truth", "Taken for", "Share" if shares else "Items", f"{percent(confusion['level'])} interval")
        lines += [f"### {_escaped(shorten(system['name'], 80))}", *_table(head, rows, words=2)]
    return ["## Where the mistakes are", "", *lines] if lines else []


def _comparison(data: Mapping[str, Any]) -> list[str]:
    compared = data["comparison"]
    if compared is None:
        return []
    level = percent(compared["level"])
    rows = []
    for row in compared["systems"]:
        places = decimals(row["low"], row["high"]) + 1
        rows.append(
            (
                _escaped(shorten(row["system"])),
                str(row["rank"]),
                number(row["mean"], places),
                span(row["low"], row["high"], places),
                chance(row["prob_best"]),
            )
        )
    pairs = []
    for pair in compared["pairs"][:20]:
        places = decimals(pair["low"], pair["high"]) + 1
        pairs.append(
            (
                _escaped(f"{shorten(pair['a'], 40)} − {shorten(pair['b'], 40)}"),
                number(pair["mean"], places),
                span(pair["low"], pair["high"], places),
                chance(pair["prob_a_better"]),
            )
        )
    return [
        f"## Which system is better, by {_escaped(compared['label'])}",
        *(["", _escaped(compared["judged"])] if compared["judged"] else []),
        *_table(("System", "Rank", "Mean", f"{level} interval", "Is the best"), rows),
        *_table(("Difference", "Mean", f"{level} interval", "First is better"), pairs),
    ]


def _labelers(data: Mapping[str, Any]) -> list[str]:
    labelers = data["labelers"]
    if labelers is None:
        return []
    rows, left_out = labelers["rows"], 0
    if len(rows) > 2 * _MOST_LABELERS + 4:
        left_out = len(rows) - 2 * _MOST_LABELERS
        rows = rows[:_MOST_LABELERS] + rows[-_MOST_LABELERS:]
    cells = [
        (
            _escaped(shorten(row["labeler"])),
            f"{row['votes']:,}",
            f"{row['rank'][0]}–{row['rank'][1]}",
            f"{number(row['accuracy']['mean'], 2)} ({span(row['accuracy']['low'], row['accuracy']['high'], 2)})",
            f"{signed(row['bias']['mean'])} towards {_escaped(quoted(row['bias_class'], 20))}",
            chance(row["spam_probability"]),
        )
        for row in rows
    ]
    head = ("Labeler", "Votes", "Rank", "Accuracy", "Bias", "Probably a spammer")
    more = [f"The best and the worst; {left_out} in between are left out.", ""] if left_out else []
    notes = [line for note in labelers["notes"] for line in (_escaped(note), "")]
    table = _table(head, cells) if cells else []
    return ["## Who the labelers are", "", *notes, *table, *more]


def _dependence(data: Mapping[str, Any]) -> list[str]:
    found = data["dependence"]
    if found is None:
        return []
    said = [_escaped(found[key]) for key in ("sentence", "panel_sentence") if found[key]]
    advice = [f"- {_escaped(sentence)}" for sentence in found["advice"]]
    return ["## Do labelers err together?", "", *(line for s in said for line in (s, "")), *advice, ""]


def _vet_next(data: Mapping[str, Any]) -> list[str]:
    found = data["vet_next"]
    if found is None:
        return []
    rows = [
        (_escaped(shorten(row["item"])), _escaped(row["why"]), f"±{number(row['moves'], 5)}") for row in found["rows"]
    ]
    about = f"An expert's answer on these items tells most about {_escaped(found['about'])}."
    return ["## What to vet next", "", about, *_table(("Item", "Why", "Would move it by"), rows, words=2)]


def _reproduction(data: Mapping[str, Any]) -> list[str]:
    how = data["reproduction"]
    facts = {"Method": how["method"], "Noise model": how["noise"], "Target": how["target"]}
    facts |= {"Level": percent(how["level"]), "Seed": how["seed_words"]}
    facts |= {key: setting(value) for key, value in how["settings"].items()}
    facts["Versions"] = ", ".join([f"Python {how['python']}", *(f"{k} {v}" for k, v in how["versions"].items())])
    code, language = (how["snippet"], "python") if how["command"] is None else (how["command"], "sh")
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)  # a file may have a fence in its name, a class too
    return [
        "## Method, and how to get the same numbers",
        "",
        *(f"- {_escaped(key)}: {_escaped(value)}" for key, value in facts.items()),
        "",
        _escaped(how["words"]),
        "",
        f"{fence}{language}",
        code,
        fence,
    ]


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
