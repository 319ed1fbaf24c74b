"""The tables of a page, as rows of text that HTML and Markdown show alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trueup._base.wording import chance, decimals, interval, level_words, number, signed
from trueup.report.sentences import is_unnamed, quoted, shorten

Row = Mapping[str, Any]
Cell = str | Sequence[str]  # text, or text and a smaller line below it
_FIRST_SYSTEMS, _FIRST_PAIRS, _END_LABELERS, _MANY_LABELERS = 12, 20, 10, 24


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], *, n_words: int = 1, fold: str = ""
) -> dict[str, Any]:
    """A table: the first `n_words` columns hold words, the others numbers; `fold` is what a folded one is opened by."""
    return {"caption": caption, "head": list(head), "rows": [list(r) for r in rows], "n_words": n_words, "fold": fold}


def metric_table(report: Row) -> dict[str, Any]:
    """Every metric of every system, beside the majority vote as truth."""
    systems, level = report["systems"], level_words(report["about"]["level"])
    lone = is_unnamed([system["name"] for system in systems])
    has_majority = any(metric["dirty"] is not None for system in systems for metric in system["metrics"])
    rows = []
    for system in systems:
        for metric in system["metrics"]:
            places = decimals(metric["low"], metric["high"])
            ends: Cell = interval(metric["low"], metric["high"], places)
            if metric["undefined"]:
                ends = (str(ends), f"undefined for {chance(metric['undefined'])}")
            row: list[Cell] = [] if lone else [shorten(system["name"])]
            row += [metric["label"], number(metric["mean"], places), ends]
            rows.append([*row, number(metric["dirty"], places)] if has_majority else row)
    head = [*([] if lone else ["System"]), "Metric", "Mean", f"{level} interval", "Majority vote"]
    return table("All metrics in numbers", head[: len(head) - (not has_majority)], rows, n_words=1 if lone else 2)


def biggest_confusions(confusion: Row) -> dict[str, Any]:
    """The classes that are taken for others most often."""
    unit, places = ("Share", 3) if confusion["unit"] == "share" else ("Items", 1)
    rows = [
        (
            shorten(cell["truth"], 30),
            shorten(cell["prediction"], 30),
            number(cell["mean"], places),
            interval(cell["low"], cell["high"], 3 if places == 3 else 0),
        )
        for cell in confusion["biggest"]
    ]
    head = ("Truth", "Taken for", unit, f"{level_words(confusion['level'])} interval")
    return table("Biggest confusions", head, rows, n_words=2)


def system_tables(comparison: Row) -> list[dict[str, Any]]:
    """The ranking; of many systems those further down are folded."""
    level = level_words(comparison["level"])
    head = ("System", "Mean", f"{level} interval", "Is the best", "Expected regret")
    rows = []
    for row in comparison["systems"]:
        places = decimals(row["low"], row["high"])
        ends = interval(row["low"], row["high"], places)
        best = (shorten(row["system"]), number(row["mean"], places), ends, chance(row["prob_best"]))
        rows.append([*best, number(row["regret"], 4)])
    first, others = rows[:_FIRST_SYSTEMS], rows[_FIRST_SYSTEMS:]
    tables = [table(f"Ranking by {comparison['label']}", head, first)]
    if others:
        fold = f"The other {len(others)} systems"
        tables.append(table(f"Ranking, from place {_FIRST_SYSTEMS + 1} on", head, others, fold=fold))
    return tables


def pair_table(comparison: Row) -> dict[str, Any]:
    """The differences of two systems."""
    rows = []
    for pair in comparison["pairs"][:_FIRST_PAIRS]:
        places = decimals(pair["low"], pair["high"])
        names = shorten(pair["a"], 40), shorten(pair["b"], 40)
        ends = interval(pair["low"], pair["high"], places)
        apart = "yes" if pair["told_apart"] else "no"
        rows.append([*names, number(pair["mean"], places), ends, chance(pair["prob_a_better"]), apart])
    head = ("System", "against", "Difference", f"{level_words(comparison['level'])} interval")
    return table("Differences in numbers", [*head, "First is better", "Told apart"], rows, n_words=2)


def labeler_tables(labelers: Row) -> list[dict[str, Any]]:
    """Each labeler, the best first; of many those in the middle are folded."""
    head = ("Labeler", "Votes", "Rank", "Accuracy", "Bits a vote", "Bias", "Probably a spammer")
    rows = [
        (
            shorten(row["labeler"]),
            f"{row['votes']:,}",
            "–".join(dict.fromkeys(map(str, row["rank"]))),
            _with_ends(row["accuracy"]),
            _with_ends(row["information"]),
            (signed(row["bias"]["mean"]), f"towards {quoted(row['bias_class'], 20)}"),
            chance(row["spam_probability"]),
        )
        for row in labelers["rows"]
    ]
    if len(rows) <= _MANY_LABELERS:
        return [table("All labelers, the best first", head, rows)] if rows else []
    middle = rows[_END_LABELERS:-_END_LABELERS]
    return [
        table("The ten best", head, rows[:_END_LABELERS]),
        table("The ten worst", head, rows[-_END_LABELERS:]),
        table("All others, the best first", head, middle, fold=f"The other {len(middle)} labelers"),
    ]


def _with_ends(row: Row) -> Cell:
    return number(row["mean"], 2), interval(row["low"], row["high"], 2)


def vet_table(vet_next: Row) -> dict[str, Any]:
    """The items whose check would move the answer most."""
    rows = []
    for row in vet_next["rows"]:
        known = "; ".join(f"{shorten(name, 40)}: {shorten(value, 300)}" for name, value in row["known"].items())
        rows.append((shorten(row["item"]), (row["why"], known) if known else row["why"], f"±{number(row['moves'], 5)}"))
    return table("Items to check, the most telling first", ("Item", "Why", "Would move it by"), rows, n_words=2)


def confusion_table(confusion: Row) -> dict[str, Any]:
    """Expected counts or shares, rows the truth; `shades` is each cell's share of its row."""
    places = 3 if confusion["unit"] == "share" else 1
    rows, shades = [], []
    for y, (name, row) in enumerate(zip(confusion["classes"], confusion["mean"], strict=True)):
        total = sum(value or 0.0 for value in row) or 1.0
        cells: list[Cell] = [shorten(name, 40)]
        for p, value in enumerate(row):
            shown = number(value, places)
            if confusion["low"]:
                ends = confusion["low"][y][p], confusion["high"][y][p]
                cells.append((shown, interval(*ends, 3 if places == 3 else 0)))
            else:
                cells.append(shown)
        rows.append(cells)
        shades.append([(value or 0.0) / total for value in row])
    head = ["Truth", *(f"predicted {shorten(name, 24)}" for name in confusion["classes"])]
    caption = f"Expected {'shares' if confusion['unit'] == 'share' else 'counts'}, rows the truth"
    return {**table(caption, head, rows), "shades": shades}
