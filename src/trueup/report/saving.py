"""A report as one file: HTML or Markdown, each from its template, or JSON; and what the pages of templates say."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from trueup._base import wording
from trueup._base.wording import chance, interval, level_words, listed, number, percent, signed, some, text_bar
from trueup._base.writing import write_text_safely
from trueup.answers.gates import GateReport
from trueup.answers.next_checks import on_which
from trueup.exceptions import InvalidParameter
from trueup.report import figures, sentences
from trueup.report.sentences import plain, quoted, record_table, short, shorten, with_ends
from trueup.report.summary import FORMAT, arguments, plain_data, reproduction_data
from trueup.sessions.log import plain_name

if TYPE_CHECKING:
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.share import DerivedAnswer


Row = Mapping[str, Any]
Columns = list[tuple[str, Any]]
_FIRST_WITH_PICTURES = 12  # judges, groups or systems
_MOST_ROWS = 60  # of pairs


def _part(name: str, heading: str, lead: str, figures: Sequence[tuple[str, str]], *tables: Row) -> dict[str, Any]:
    shown = [{"svg": svg, "caption": caption} for svg, caption in figures]
    return {"id": name, "heading": heading, "lead": lead, "figures": shown, "tables": tables}


def _page(
    report: Row, verdict: Sequence[str], facts: Sequence[Any], parts: Sequence[Any], meaning: Sequence[str] = ()
) -> dict[str, Any]:
    """What the templates and the command line show; steps, notes and settings where a report has some."""
    return {
        "title": report["title"],
        "verdict": verdict,
        "next_steps": report.get("next_steps", []),
        "facts": facts,
        "remarks": meaning or [f"This rests on {report['rests_on']}."],
        "notes": report.get("notes", report.get("warnings", [])),
        "parts": parts,
        "how_to": report.get("reproduction"),
    }


def _facts(**counts: int) -> list[tuple[str, str]]:
    return [
        (f"{n:,}", name.removesuffix("es" if name == "batches" else "s") if n == 1 else name)
        for name, n in counts.items()
    ]


def _numbers(report: Row, mean: str = "Mean", key: str = "mean") -> Columns:
    """The columns of an estimate."""
    return [(mean, key), (f"{level_words(report['level'])} interval", "interval")]


# ------------------ A monitor.


def course_report(
    *,
    rows: Sequence[Row],
    judges: Sequence[Row],
    alarms: Sequence[Row],
    status: Sequence[str],
    notes: Sequence[str],
    settings: Mapping[str, Any],
    window: int,
    metric: str,
    began: str | None,
) -> dict[str, Any]:
    """All that the page of a monitor says, as a dict that JSON can hold."""
    by_judge: dict[Any, list[dict[str, Any]]] = {}
    for row in judges:
        by_judge.setdefault(row["judge"], []).append(_plain(row))
    return {
        "format": FORMAT,
        "page": "over_time",
        "title": f"{plain(metric[:1].upper() + metric[1:])} over time",
        "metric": plain(metric),
        "level": settings["level"],
        "false_alarms": settings["false_alarms"],
        "window": window,
        "began": began,
        "verdict": list(status),
        "alarms": [_plain(alarm) for alarm in alarms],
        "notes": list(notes),
        "course": [_plain(row) for row in rows],
        "judges": [{"judge": plain_name(name), "rows": own} for name, own in by_judge.items()],
    }


def _plain(row: Row) -> dict[str, Any]:
    """A row as JSON takes it, what is no number as None."""
    values = {name: plain_name(value) for name, value in row.items()}
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in values.items()}


def over_time(report: Row) -> dict[str, Any]:
    """The page of a monitor."""
    course, level = report["course"], level_words(report["level"])
    bases = list(dict.fromkeys(row["basis"] for row in course))
    varies = len(bases) > 1
    basis: Columns = [("Rests on", lambda row: row["basis"] or "–")] if varies else []
    columns = [("When", "when"), *basis, *_numbers(report), ("Agreement", "agreement")]
    columns += [("Items", "n"), ("Checked", "n_gold")]
    of_batches = record_table("The course in numbers", columns, course, n_words=1 + varies)
    columns = [("Judge", "judge"), ("Batch", "when"), *_numbers(report, "Errors", "error")]
    columns += [("Checked", "n_gold"), ("Differs from most", "disagreement")]
    last = [{**judge["rows"][-1], "judge": judge["judge"]} for judge in report["judges"]]
    of_judges = record_table("The judges, as of their last batch", columns, last, n_words=2)
    about_course = (
        f"A dot is the {shorten(report['metric'])} of one batch, the band holds the true one with a probability of "
        f"{level}. The dashed line is the share of items on which the system and most judges agree, which the alarms "
        "from votes rest on."
    )
    about_judges = (
        f"A dot is the share of errors on the checked items of the last {report['window']} batches, with its {level} "
        "band. The dashed line is how often the judge said something else than most in a batch."
    )
    shown = report["judges"][:_FIRST_WITH_PICTURES]
    pictures = [(figures.judge_figure(judge, report["level"]), shorten(judge["judge"])) for judge in shown]
    facts = _facts(batches=len(course), items=sum(row["n"] for row in course))
    facts.append((f"{sum(row['n_gold'] for row in course):,}", "checked items, drawn at random"))
    facts += [(str(report["began"]), "began the baseline")] if report["began"] else []
    meaning = [
        f"If nothing changes, the chance that any alarm is ever raised is at most {chance(report['false_alarms'])},"
        " however often one looks.",
        *[f"This rests on {basis}." for basis in bases if basis and not varies],
    ]
    parts = [
        _part("course", "The course of the system", about_course, [(figures.course_figure(report), "")], of_batches),
        _part("judges", "The judges", about_judges, pictures, of_judges),
    ]
    return _page(report, report["verdict"], facts, parts if course else [], meaning)


# ------------------ Rates of groups.


def answer_report(
    answer: DerivedAnswer, page: str, *, title: str | None = None, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """All that the page of `share`, `mean_score` or `preferences` says, as a dict that JSON can hold."""
    what = answer.evaluation.metrics[0]
    own_title = f"{what[:1].upper()}{what[1:]}" if page == "rates" else "Which system is preferred?"
    report = {
        "format": FORMAT,
        "page": page,
        "title": plain(title or own_title),
        **plain_data(answer.to_dict()),
        "rests_on": answer.evaluation.answer_in_words(),
        "n_checked": answer.evaluation.n_checked,
        "next_steps": answer.next_steps(),
        "reproduction": _how_to(answer.evaluation, settings),
    }
    for row, pair in zip(report.get("differences", ()), combinations(answer.ranking, 2), strict=False):
        row["prob_a_higher"] = answer.comparison.prob_better(*pair)
    return report


def _how_to(evaluation: Evaluation, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """How to get the same numbers again: the command, or the call of the function that was asked."""
    how = reproduction_data({"system": evaluation}, None, seed=None, settings=settings, unnamed=True)
    name = evaluation.settings.entry_point
    given = ["    pairs," if name == "preferences" else "    labels,", *arguments(evaluation.settings)[1:]]
    snippet = "\n".join(["import trueup as tu", "", f"answer = tu.{name}(", *given, ")", "print(answer)"])
    return {**how, "method": name, "snippet": snippet if how["command"] is None else None}


def rates(report: Row) -> dict[str, Any]:
    """The page of a share or a mean score."""
    overall, groups, level = report["overall"], report["groups"], level_words(report["level"])
    what = f"{report['what'][:1].upper()}{report['what'][1:]}"
    where = "these items" if report["target"] == "sample" else "items like these"
    low, high = overall["low"], overall["high"]
    ends = f"between {interval(low, high, least=2, joint=' and ')}" if low is not None else number(overall["mean"])
    claims = [f"{what} of {where} is {ends} ({level}).", _checked(report)]
    if report["counted"] is not None:
        claims.append(f"Counting votes would have said {number(report['counted'], 2)}.")
    goal = f"±{number(report['vetting_width'] / 2, 2)} {on_which(report['target'])}"
    columns: Columns = [("Group" if report["by"] is None else shorten(report["by"]), "group"), ("Items", "n_items")]
    columns += [*_numbers(report, key="exact"), ("Highest", lambda row: percent(row["prob_best"]))]
    columns.append((f"Checks in all for {goal}", "vettings"))
    bars = [{**row, "label": row["group"], "dirty": row["counted"]} for row in groups[:_FIRST_WITH_PICTURES]]
    lower = [f"Lower than the rest: {listed([quoted(name, 40) for name in report['lower']])}."] * bool(report["lower"])
    tables = [record_table("Each group, the highest first", columns, groups)] if len(groups) > 1 else []
    if pairs := report["differences"][:_MOST_ROWS]:
        columns = [("Group", short("a")), ("against", short("b")), *_numbers(report, "Difference")]
        columns.append(("First is higher", lambda row: chance(row.get("prob_a_higher"))))
        tables.append(record_table("Differences in numbers", columns, pairs, n_words=2))
    figure = figures.interval_figure(
        bars or [{**overall, "label": "all items", "dirty": report["counted"]}], title=what
    )
    lead = f"The bar holds the true number with a probability of {level}; the diamond is what counting votes says."
    part = _part("groups", "Each group" if len(groups) > 1 else "In a picture", lead, [(figure, "")], *tables)
    return _page(report, [" ".join(claims), *lower], _facts(items=report["n_items"], votes=report["n_votes"]), [part])


def _checked(report: Row) -> str:
    n = report["n_checked"]
    return f"{some(n, 'item')} {'was' if n == 1 else 'were'} checked." if n else "No item was checked."


# ------------------ Preferences.


def preferences(report: Row) -> dict[str, Any]:
    """The page of preferences: a leaderboard, win rates and judges."""
    systems, level = report["systems"], level_words(report["level"])
    best = systems[0]
    claim = (
        f"{quoted(best['system'])} comes first: it wins {interval(best['wins']['low'], best['wins']['high'], least=2)} "
        f"of its contests against an average opponent ({level}), and is the best with probability "
        f"{chance(best['prob_best'])}. {_checked(report).replace('item', 'contest')}"
    )
    together = ["; ".join(listed([quoted(n, 40) for n in group]) for group in report["groups"] if len(group) > 1)]
    more = [f"Not separated: {words}." for words in together if words]
    columns: Columns = [
        ("System", "system"),
        ("Wins against an average opponent", lambda row: with_ends(row["wins"])),
        ("Log-odds", lambda row: (signed(row["mean"]), interval(row["low"], row["high"]))),
        ("Is the best", lambda row: percent(row["prob_best"])),
    ]
    board = record_table("Leaderboard", columns, systems)
    bars = [{**row["wins"], "label": row["system"]} for row in systems]
    columns = [("Stronger", short("a")), ("Weaker", short("b")), ("Contests", "n_contests")]
    columns += _numbers(report, "Win rate")
    of_two = record_table("Win rates", columns, report["win_rates"][:_MOST_ROWS], n_words=2)
    about = f"The bar holds the true share with a probability of {level}; half is an average system."
    picture = figures.interval_figure(bars[:_FIRST_WITH_PICTURES], title="Wins against an average opponent")
    parts = [
        _part("leaderboard", "Leaderboard", about, [(picture, "")], board),
        _part("pairs", "Pairs", "", [], of_two),
    ]
    if judges := [{**row, "judge": name} for name, row in report["position_bias"].items()]:
        columns = [("Judge", "judge"), ("Position bias", lambda row: signed(row["mean"])), _numbers(report)[1]]
        if report["consistency"]:
            columns.append(("Same winner in both orders", lambda row: percent(report["consistency"].get(row["judge"]))))
        about = "How much more often than half a judge chooses what is shown first."
        parts.append(_part("judges", "Judges", about, [], record_table("Judges", columns, judges)))
    facts = _facts(systems=len(systems), contests=report["n_contests"], verdicts=report["n_verdicts"])
    return _page(report, [claim, *more], facts, parts)


# ------------------ Agreement of labelers.


def agreement(report: Row) -> dict[str, Any]:
    """The page of agreement: coefficients, classes, pairs, judges and disputed items."""
    numbers = _numbers(report)
    columns: Columns = [("Coefficient", "name"), ("What it is", lambda row: row["meaning"]), *numbers]
    coefficients = [
        record_table(caption, columns, part["coefficients"].values(), n_words=2)
        for caption, part in [("All items", report), *((shorten(name), part) for name, part in report["by"].items())]
    ]
    of_classes = record_table("Agreement on each class", [("Class", "class"), *numbers], report["by_class"])
    about = "If a labeler says this class, how often another says it, too."
    parts = [
        _part("coefficients", "Coefficients", "", [], *coefficients),
        _part("classes", "Classes", about, [], of_classes),
    ]
    if pairs := report["pairs"]:
        columns = [("Labeler", short("a")), ("With", short("b")), ("Items", "n_items"), ("Same", "percent")]
        columns.append(("Kappa", "kappa"))
        columns.append((numbers[1][0], lambda row: "" if row["kappa"] is None else interval(row["low"], row["high"])))
        about = f"Those that agree most first; {some(len(pairs), 'pair')} in all."
        of_two = record_table("Every two labelers", columns, pairs[:_MOST_ROWS], n_words=2)
        parts.append(_part("pairs", "Pairs", about, [], of_two))
    if judges := report["judges"]:
        ceiling = [{"judge": "an expert", "measure": k, "class": None, **v} for k, v in judges["ceiling"].items()]
        columns = [("Judge", "judge"), ("Measure", "measure"), ("Class", lambda row: row["class"] or ""), *numbers]
        of_each = record_table("Each judge", columns, [*ceiling, *judges["judges"]], n_words=3)
        against = "experts" if judges["experts"] else "gold"
        parts.append(_part("judges", f"Judges against {against}", judges["sentence"], [], of_each))
    if report["disputed"]:

        def votes_on(row: Row) -> str:
            return ", ".join(f"{shorten(name)} {n:g}" for name, n in row["votes"].items())

        columns, lead = [("Item", "item"), ("Votes", votes_on)], "Those on which labelers disagree most."
        of_items = record_table("Disputed items", columns, report["disputed"], n_words=2)
        parts.append(_part("disputed", "Items", lead, [], of_items))
    these = "other labelers like these" if report["labelers"] == "random" else "these labelers"
    facts = [*_facts(items=report["n_items"]), (f"{report['n_pairable']:,}", "with two votes and more")]
    facts += _facts(labelers=report["n_labelers"])
    return _page(report, report["verdict"], facts, parts, [f"Intervals are about other items and {these}."])


# ------------------ A decision.


def decision_report(found: Row, *, course: Sequence[Row], level: float) -> dict[str, Any]:
    """All that the page of a decision says, from its `to_dict` and its history, as a dict that JSON can hold."""
    title = f"Decision: {found['verdict']}"
    return {"format": FORMAT, "page": "decision", "title": title, "level": level, **found, "course": list(course)}


def decision(report: Row) -> dict[str, Any]:
    """The page of a decision."""
    records = [{**one, **one["estimate"], "label": one["condition"]} for one in report["conditions"]]
    columns: Columns = [("Condition", lambda row: plain(row["condition"])), ("Verdict", "verdict"), *_numbers(report)]
    table = record_table("Conditions", columns, records, n_words=2)
    picture = figures.interval_figure(records[:_FIRST_WITH_PICTURES], title="What the conditions are about")
    about = "The bar is what votes and checks say now. The verdict does not rest on it, but on bets on drawn checks."
    parts = [_part("conditions", "Conditions", about, [(picture, "")], table)]
    if report["course"]:
        metric = "The chance that the conditions are met"
        rows = [{**row, "when": f"{row['n']:.0f} checks"} for row in report["course"]]
        lead = f"{metric}, by votes and checks, after each number of checks."
        course = figures.chance_figure({"course": rows, "metric": metric})
        parts.append(_part("course", "How it came about", lead, [(course, "")]))
    facts = [*_facts(checks=report["n_checks"]), (chance(report["probability"]), "chance that it is met")]
    checks = report["needed"]["checks"]
    step = f"Check {some(checks or 0, 'more item')}: then it is decided with probability 80%."
    steps = [step] if report["verdict"] == "undecided" and checks else []
    meaning = [f"A verdict is false with a chance of {percent(report['error'])} at most, at whatever look."]
    page = _page(report, [one["sentence"] for one in report["conditions"]], facts, parts, meaning)
    return {**page, "next_steps": steps}


PAGES: dict[str, Callable[[Row], dict[str, Any]]] = {
    page.__name__: page for page in (agreement, decision, over_time, preferences, rates)
}


def check_format(data: Mapping[str, Any]) -> None:
    """Stop where data are of another shape than this version writes."""
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        got = data.get("format") if isinstance(data, Mapping) else type(data).__name__
        raise InvalidParameter(f"data must be a report of format {FORMAT}, got {got!r}; make it with build_report")


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
    environment.globals |= vars(figures) | vars(sentences)  # the templates mark figures, which escape names, as safe
    environment.filters |= vars(wording) | vars(sentences) | {"raw": _Raw, "fence": _fence}
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
    """
    check_format(data)
    return re.sub(r"\n{3,}", "\n\n", _rendered(data, "md")).strip() + "\n"


def render_json(data: Mapping[str, Any]) -> str:
    """The report as JSON, what has no value as null."""
    check_format(data)
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


_FORMS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    **dict.fromkeys((".html", ".htm"), render_html),
    **dict.fromkeys((".md", ".markdown"), render_markdown),
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


def render_junit(report: GateReport, *, name: str = "gates") -> str:
    """A test case for each gate: one that failed is a failure, one that is undecided an error.

    Parameters
    ----------
    name : str. Of the suite, and the class of its cases.
    """
    verdicts = [result.verdict for result in report.results]
    n_failed, n_undecided = verdicts.count("failed"), verdicts.count("undecided")
    counts = {"tests": str(len(verdicts)), "failures": str(n_failed), "errors": str(n_undecided)}
    suites = ElementTree.Element("testsuites", {"name": "trueup", **counts, "time": "0"})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": _allowed(name), **counts, "skipped": "0", "time": "0"})
    for result in report.results:
        about = {"classname": f"trueup.{_allowed(name)}", "name": _allowed(str(result.gate)), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", about)
        sentence = _allowed(result.sentence)
        if result.verdict == "passed":
            ElementTree.SubElement(case, "system-out").text = sentence
        else:
            kind = "failure" if result.verdict == "failed" else "error"
            ElementTree.SubElement(case, kind, {"message": sentence, "type": result.verdict}).text = sentence
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def save_junit(report: GateReport, path: str | PathLike[str], *, name: str = "gates") -> None:
    """Write gates as JUnit XML, whole or not at all; see `render_junit`."""
    write_text_safely(path, render_junit(report, name=name))


def render_summary(report: GateReport, *, name: str = "trueup") -> str:
    """Verdict, interval of each gate as a bar of text, and what to do next, as Markdown."""
    lines = [f"## {name}: {report.verdict}", ""]
    for result in report.results:
        lines.append(f"- {_escaped(_allowed(result.sentence))}")
        low, high = result.estimate.interval(report.level)
        if low <= high:
            bar = text_bar(low, high, bounds=result.estimate.bounds, mark=result.gate.bound)
            lines += ["", "  ```text", f"  {bar}  ({interval(low, high)}; ┃ is {result.gate.bound:g})", "  ```", ""]
    if report.next_steps:
        lines += ["", "**Next**", "", *(f"- {_escaped(_allowed(step))}" for step in report.next_steps)]
    return "\n".join(lines).rstrip() + "\n"


def save_summary(report: GateReport, path: str | PathLike[str], *, name: str = "trueup") -> None:
    """Write gates as Markdown, whole or not at all; see `render_summary`."""
    write_text_safely(path, render_summary(report, name=name))


def _allowed(text: str) -> str:
    """Text with escapes for what XML cannot hold: control characters and halves of characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
