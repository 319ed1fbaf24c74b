"""What to believe, in plain words: the sentences on top of a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from trueup._base.wording import chance, decimals, interval, level_words, listed, number, signed, some


def title_for(names: Sequence[str], *, compared: bool) -> str:
    """A title for a report that was given none; it asks which system is better only where that is answered."""
    if len(names) > 1:
        return "Which system is better?" if compared else f"How good are these {len(names)} systems really?"
    return "How good is it really?" if is_unnamed(names) else f"How good is {quoted(names[0])} really?"


def positive_words(found: Mapping[str, tuple[str, Sequence[str]]]) -> list[str]:
    """Which class is the positive one, for the metrics where that matters."""
    classes = list(dict.fromkeys(positive for positive, _ in found.values()))
    sentences = []
    for positive in classes:
        about = {system: labels for system, (of, labels) in found.items() if of == positive}
        labels = list(dict.fromkeys(label for of_system in about.values() for label in of_system))
        names = [quoted(system, 40) if system else "the comparison" for system in about]
        words = listed(labels) + ("" if len(classes) == 1 else f" of {listed(names)}")
        verb = "is" if len(labels) == 1 else "are"
        sentences.append(f"{words[:1].upper()}{words[1:]} {verb} about the positive class {quoted(positive, 40)}.")
    return sentences


def judged_words(n_judged: int, n_items: int) -> str | None:
    """How many of the items a number is about, where it is not about all of them."""
    if n_judged == n_items:
        return None
    return f"Judged on {n_judged:,} of {n_items:,} items, those with a prediction."


def answer(
    metric: Mapping[str, Any], rests_on: str, *, n_checked: int, is_named: bool, refused: bool
) -> dict[str, Any]:
    """The first metric of a system in words: ``claim``, ``value`` and ``rest`` make one sentence, ``sentences`` follow.

    It `is_named` where a noise model or method was named, and `refused` where checked items contradict the votes.
    """
    label = metric["label"][:1].upper() + metric["label"][1:]
    low, high, majority = metric["low"], metric["high"], metric["dirty"]
    found: dict[str, Any] = {"claim": f"{label} is", "value": "undefined", "rest": "on these items.", "sentences": []}
    if metric["mean"] is None:
        return found
    checked = f"{some(n_checked, 'item')} {'was' if n_checked == 1 else 'were'} checked."
    checked = checked if n_checked else "No item was checked: this rests on votes alone."
    found["sentences"] = [f"This rests on {rests_on}." if is_named else checked]
    places = decimals(low, high, least=2)
    if majority is not None:
        is_outside = low is not None and high is not None and not low <= majority <= high
        where = f", which lies {'below' if majority < low else 'above'} this interval" if is_outside else ""
        found["sentences"].append(f"The majority vote would have said {number(majority, places)}{where}.")
    if low is None or high is None:
        why = "by this method, which cannot say how sure that is."
        if refused:
            why = "by votes that checked items contradict, so there is no interval."
        return {**found, "value": number(metric["mean"]), "rest": why}
    found["rest"] = f"({level_words(metric['level'])})."
    if number(low, places) == number(high, places):
        return {**found, "value": number(low, places)}
    return {**found, "claim": f"{label} is between", "value": interval(low, high, least=2, joint=" and ")}


def verdict(comparison: Mapping[str, Any] | None) -> list[str]:
    """Which system is better, how sure that is, and what it rests on."""
    if comparison is None or len(comparison["systems"]) < 2:
        return []
    if comparison["refused"]:
        first, label = quoted(comparison["systems"][0]["system"]), metric_label(comparison["metric"])
        return [f"{first} comes first by {label} from votes, but checked items contradict them: nothing is claimed."]
    return [f"{_ranking_sentence(comparison)} This rests on {comparison['rests_on']}."]


def _ranking_sentence(comparison: Mapping[str, Any]) -> str:
    systems, label = comparison["systems"], metric_label(comparison["metric"])
    first, second = systems[0], systems[1]
    gap = next(p for p in comparison["pairs"] if (p["a"], p["b"]) == (first["system"], second["system"]))
    by = "–" if gap["low"] is None else interval(*sorted((abs(gap["low"]), abs(gap["high"]))), least=2)
    level = level_words(comparison["level"])
    way = "higher" if comparison["higher_is_better"] else "lower"
    if len(systems) == 2:
        if gap["told_apart"]:
            return (
                f"{quoted(first['system'])} is better than {quoted(second['system'])}: its {label} is {way} by {by} "
                f"({level}), and the probability that it is the better one is {chance(gap['prob_a_better'])}."
            )
        apart = interval(gap["low"], gap["high"], least=2)
        return (
            f"Which of {quoted(first['system'])} and {quoted(second['system'])} is better is open: the difference in "
            f"{label} is {apart} ({level}), and the probability that {quoted(first['system'])} is the better one is "
            f"{chance(gap['prob_a_better'])}."
        )
    group = next((g for g in comparison["groups"] if g[0] == first["system"]), [first["system"]])
    sentence = (
        f"{quoted(first['system'])} is the best of {len(systems)} systems by {label} with probability "
        f"{chance(first['prob_best'])}"
    )
    if len(group) == 1:
        return f"{sentence}; it is better than each of the others ({level})."
    more = f" and {len(group) - 4} more" if len(group) > 4 else ""
    others = ", ".join(quoted(name, 40) for name in group[1:4]) + more
    return f"{sentence}. It may be no better than {others} ({level})."


def plain_warnings(found: Mapping[str, Sequence[str]], n_systems: int) -> list[dict[str, Any]]:
    """Each sentence once, with the systems it is about (none where it is about all)."""
    about: dict[str, list[str]] = {}
    for system, sentences in found.items():
        for sentence in sentences:
            about.setdefault(sentence, []).append(system)
    return [
        {"text": sentence, "systems": [] if len(systems) >= n_systems else [s for s in systems if s]}
        for sentence, systems in about.items()
    ]


# Characters that no page can hold (controls, lone surrogates) or that turn the text around (bidirectional overrides).
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_SHORT_NAMES = {"f1": "F1", "auc": "AUC", "mcc": "MCC", "ndcg": "NDCG", "auc_ovr": "AUC (one against rest)"}
_SHORT_NAMES |= {"auc_ovo": "AUC (one against one)", "pr": "PR", "brier": "Brier score", "log_loss": "log loss"}

_DEFAULT_SYSTEMS = ("model", "system")  # Predictions call a system so, and build_report


def text(value: Any) -> str:
    """Any name as text that a page can hold."""
    return _UNFIT.sub("\ufffd", str(value))


def plain(value: Any) -> str:
    """A name on one line."""
    return " ".join(text(value).split())


def shorten(value: Any, most: int = 60) -> str:
    """A name on one line and not too long, the middle left out since names often differ at their end."""
    words = plain(value)
    if len(words) <= most:
        return words
    tail = (most - 1) // 3
    return f"{words[: most - 1 - tail].rstrip()}…{words[-tail:].lstrip()}"


def quoted(value: Any, most: int = 60) -> str:
    """A name in a sentence."""
    return f"“{shorten(value, most)}”"


def is_unnamed(names: Sequence[str]) -> bool:
    """Whether there is one system only, and nobody gave it a name."""
    return len(names) == 1 and names[0] in _DEFAULT_SYSTEMS


def setting(value: Any) -> str:
    """A setting in words: a file with its checksum, a list of them, or whatever was given."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        known = {key: v for key, v in value.items() if v is not None}
        if "file" in known:
            rest = "; ".join(f"{key} {setting(v)}" for key, v in known.items() if key != "file")
            return f"{setting(known['file'])} ({rest})" if rest else setting(known["file"])
        return "; ".join(f"{plain(key)}: {setting(v)}" for key, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(setting(v) for v in value) or "–"
    return text(value)


def metric_label(name: Any) -> str:
    """A metric's name for people: ``recall:cat`` is "recall of cat"."""
    key, _, of = plain(name).partition(":")
    label = _SHORT_NAMES.get(key) or re.sub(r"\b(f1|ap|ap\d+)\b", lambda m: m[0].upper(), key.replace("_", " "))
    return f"{label} of {of}" if of else label


# ------------------ Tables of evaluations and comparisons

Row = Mapping[str, Any]
Cell = str | Sequence[str]  # text, or text and a smaller line below it
_FIRST_SYSTEMS, _FIRST_PAIRS, _END_LABELERS, _MANY_LABELERS = 12, 20, 10, 24


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], *, n_words: int = 1, fold: str = ""
) -> dict[str, Any]:
    """A table: the first `n_words` columns hold words, the others numbers; `fold` is what a folded one is opened by."""
    return {"caption": caption, "head": list(head), "rows": [list(r) for r in rows], "n_words": n_words, "fold": fold}


def record_table(
    caption: str,
    columns: Sequence[tuple[str, str | Callable[[Row], Cell]]],
    records: Iterable[Row],
    *,
    n_words: int = 1,
    fold: str = "",
) -> dict[str, Any]:
    """A table of records: for each heading a key, or a function of the record.

    The key "interval" is the ends "low" and "high"; "exact" is the mean with as many decimals as tell these apart.
    """

    def cell(record: Row, key: str | Callable[[Row], Cell]) -> Cell:
        if callable(key):
            return key(record)
        if key == "interval":
            return interval(record["low"], record["high"])
        if key == "exact":
            return number(record["mean"], decimals(record["low"], record["high"]))
        value = record[key]
        return shorten(value) if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else number(value)

    rows = [[cell(record, key) for _, key in columns] for record in records]
    return table(caption, [heading for heading, _ in columns], rows, n_words=n_words, fold=fold)


def short(key: str, most: int = 40) -> Callable[[Row], str]:
    """A name of a record, not longer than in a table of two."""
    return lambda row: shorten(row[key], most)


def as_chance(key: str) -> Callable[[Row], str]:
    """A probability of a record from draws."""
    return lambda row: chance(row[key])


def metric_table(report: Row) -> dict[str, Any]:
    """Every metric of every system, and with the majority vote as truth."""
    systems = report["systems"]
    lone = is_unnamed([system["name"] for system in systems])
    records = [{**metric, "system": system["name"]} for system in systems for metric in system["metrics"]]

    def ends(row: Row) -> Cell:
        shown = interval(row["low"], row["high"])
        return (shown, f"undefined for {chance(row['undefined'])}") if row["undefined"] else shown

    columns: list[tuple[str, Any]] = [] if lone else [("System", "system")]
    columns += [("Metric", lambda row: row["label"]), ("Mean", "exact")]
    columns.append((f"{level_words(report['about']['level'])} interval", ends))
    if any(row["dirty"] is not None for row in records):
        columns.append(("Majority vote", lambda row: number(row["dirty"], decimals(row["low"], row["high"]))))
    return record_table("All metrics in numbers", columns, records, n_words=1 if lone else 2)


def biggest_confusions(confusion: Row) -> dict[str, Any]:
    """The classes that are taken for others most often."""
    unit, places = ("Share", 3) if confusion["unit"] == "share" else ("Items", 1)
    level = level_words(confusion["level"])
    columns: list[tuple[str, Any]] = [("Truth", short("truth", 30)), ("Taken for", short("prediction", 30))]
    columns.append((unit, lambda row: number(row["mean"], places)))
    columns.append((f"{level} interval", lambda row: interval(row["low"], row["high"], 3 if places == 3 else 0)))
    return record_table("Biggest confusions", columns, confusion["biggest"], n_words=2)


def system_tables(comparison: Row) -> list[dict[str, Any]]:
    """The ranking; of many systems those further down are folded."""
    level, systems = level_words(comparison["level"]), comparison["systems"]
    columns: list[tuple[str, Any]] = [("System", "system"), ("Mean", "exact"), (f"{level} interval", "interval")]
    columns += [] if comparison["refused"] else [("Is the best", as_chance("prob_best"))]
    columns.append(("Expected regret", lambda row: number(row["regret"], 4)))
    first, others = systems[:_FIRST_SYSTEMS], systems[_FIRST_SYSTEMS:]
    tables = [record_table(f"Ranking by {comparison['label']}", columns, first)]
    if others:
        fold = f"The other {len(others)} systems"
        tables.append(record_table(f"Ranking, from place {_FIRST_SYSTEMS + 1} on", columns, others, fold=fold))
    return tables


def pair_table(comparison: Row) -> dict[str, Any]:
    """The differences of two systems."""
    level = level_words(comparison["level"])
    columns: list[tuple[str, Any]] = [("System", short("a")), ("against", short("b")), ("Difference", "exact")]
    columns.append((f"{level} interval", "interval"))
    columns += [] if comparison["refused"] else [("First is better", as_chance("prob_a_better"))]
    columns.append(("Differ", lambda row: "yes" if row["told_apart"] else "no"))
    return record_table("Differences in numbers", columns, comparison["pairs"][:_FIRST_PAIRS], n_words=2)


def labeler_table(caption: str, rows: Sequence[Row], *, fold: str = "") -> dict[str, Any]:
    """Skill, bias and spam of labelers."""

    def bias(row: Row) -> Cell:
        return signed(row["bias"]["mean"]), f"towards {quoted(row['bias_class'], 20)}"

    columns: list[tuple[str, Any]] = [("Labeler", "labeler"), ("Votes", "votes")]
    columns.append(("Rank", lambda row: "–".join(dict.fromkeys(map(str, row["rank"])))))
    columns += [("Accuracy", lambda row: with_ends(row["accuracy"], 2))]
    columns += [("Bits a vote", lambda row: with_ends(row["information"], 2)), ("Bias", bias)]
    columns.append(("Probably a spammer", as_chance("spam_probability")))
    return record_table(caption, columns, rows, fold=fold)


def labeler_tables(labelers: Row) -> list[dict[str, Any]]:
    """Each labeler, the best first; of many those in the middle are folded."""
    rows = labelers["rows"]
    if len(rows) <= _MANY_LABELERS:
        return [labeler_table("All labelers, the best first", rows)] if rows else []
    middle = rows[_END_LABELERS:-_END_LABELERS]
    return [
        labeler_table("The ten best", rows[:_END_LABELERS]),
        labeler_table("The ten worst", rows[-_END_LABELERS:]),
        labeler_table("All others, the best first", middle, fold=f"The other {len(middle)} labelers"),
    ]


def with_ends(row: Row, places: int | None = None) -> Cell:
    """A mean, and its interval below."""
    return number(row["mean"], places or 3), interval(row["low"], row["high"], places)


def vet_table(vet_next: Row) -> dict[str, Any]:
    """The items whose check would move the answer most."""

    def why(row: Row) -> Cell:
        known = "; ".join(f"{shorten(name, 40)}: {shorten(value, 300)}" for name, value in row["known"].items())
        return (row["why"], known) if known else row["why"]

    columns: list[tuple[str, Any]] = [("Item", "item"), ("Why", why)]
    columns.append(("Would move it by", lambda row: f"±{number(row['moves'], 5)}"))
    return record_table("Items to check, the most telling first", columns, vet_next["rows"], n_words=2)


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
