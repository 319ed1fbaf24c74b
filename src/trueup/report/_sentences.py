"""What to believe, in plain words: the sentences on top of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueup.report.words import chance, decimals, is_unnamed, listed, metric_label, number, percent, quoted, span

__all__ = ["answer", "dirty_remark", "judged_words", "plain_warnings", "positive_words", "title_for", "verdict"]


def title_for(names: Sequence[str], *, compared: bool) -> str:
    """A title for a report that was given none; it asks which system is better only where that is answered."""
    if len(names) > 1:
        return "Which system is better?" if compared else f"How good are these {len(names)} systems really?"
    return "How good is it really?" if is_unnamed(names) else f"How good is {quoted(names[0])} really?"


def positive_words(found: Mapping[str, tuple[str, Sequence[str]]]) -> list[str]:
    """Which class is the positive one, for the metrics where that matters.

    Parameters
    ----------
    found : mapping from system to (class, labels of metrics)
        Systems without such a metric are left out; "" is the comparison.
    """
    classes = list(dict.fromkeys(positive for positive, _ in found.values()))
    sentences = []
    for positive in classes:
        mine = {system: labels for system, (of, labels) in found.items() if of == positive}
        labels = list(dict.fromkeys(label for some in mine.values() for label in some))
        names = [quoted(system, 40) if system else "the comparison" for system in mine]
        who = "" if len(classes) == 1 else f" of {listed(names)}"
        words = listed(labels)
        verb = "is" if len(labels) == 1 else "are"
        sentences.append(
            f"{words[:1].upper()}{words[1:]}{who} {verb} about the positive class, {quoted(positive, 40)}."
        )
    return sentences


def judged_words(n_judged: int, n_items: int) -> str | None:
    """How many of the items a number is about, where it is not about all of them."""
    if n_judged == n_items:
        return None
    return f"Judged on {n_judged:,} of {n_items:,} items, those with a prediction."


def answer(metric: Mapping[str, Any]) -> dict[str, str]:
    """The first metric of a system in words: ``claim``, ``value`` and ``rest`` make one sentence."""
    label = metric["label"]
    label = label[:1].upper() + label[1:]
    low, high, level = metric["low"], metric["high"], percent(metric["level"])
    if metric["mean"] is None:
        return {"claim": f"{label} is", "value": "undefined", "rest": "on these items."}
    if low is None or high is None:
        return {
            "claim": f"{label} is",
            "value": number(metric["mean"]),
            "rest": "by this method, which cannot say how sure that is.",
        }
    places = decimals(low, high)
    if number(low, places) == number(high, places):
        return {"claim": f"{label} is", "value": number(low, places), "rest": f"({level})."}
    return {"claim": f"{label} is between", "value": span(low, high, joint=" and "), "rest": f"({level})."}


def dirty_remark(metric: Mapping[str, Any]) -> str | None:
    """What taking the majority vote for the truth would have said of the same metric."""
    dirty, low, high = metric["dirty"], metric["low"], metric["high"]
    if dirty is None or metric["mean"] is None:
        return None
    said = f"Taking the majority vote for the truth would have said {number(dirty, decimals(low, high))}"
    if low is None or high is None:
        return f"{said}."
    if low <= dirty <= high:
        return f"{said}, which this interval does not rule out."
    return f"{said}, which lies {'below' if dirty < low else 'above'} this interval."


def verdict(comparison: Mapping[str, Any] | None) -> list[str]:
    """Which system is better, and how sure that is."""
    if comparison is None or len(comparison["systems"]) < 2:
        return []
    systems, label = comparison["systems"], metric_label(comparison["metric"])
    first, second = systems[0], systems[1]
    gap = next(p for p in comparison["pairs"] if (p["a"], p["b"]) == (first["system"], second["system"]))
    by = span(*sorted((abs(gap["low"]), abs(gap["high"])))) if gap["low"] is not None else "–"
    level = percent(comparison["level"])
    way = "higher" if comparison["higher_is_better"] else "lower"
    if len(systems) == 2:
        if gap["told_apart"]:
            return [
                f"{quoted(first['system'])} is better than {quoted(second['system'])}: its {label} is {way} by {by} "
                f"({level}), and the probability that it is the better one is {chance(gap['prob_a_better'])}."
            ]
        return [
            f"{quoted(first['system'])} and {quoted(second['system'])} cannot be told apart: the difference in {label} "
            f"is {span(gap['low'], gap['high'])} ({level}), and the probability that {quoted(first['system'])} is the "
            f"better one is {chance(gap['prob_a_better'])}."
        ]
    group = next((g for g in comparison["groups"] if g[0] == first["system"]), [first["system"]])
    sentence = (
        f"{quoted(first['system'])} is the best of {len(systems)} systems by {label} with probability "
        f"{chance(first['prob_best'])}"
    )
    if len(group) == 1:
        return [f"{sentence}; it is better than each of the others ({level})."]
    more = f" and {len(group) - 4} more" if len(group) > 4 else ""
    others = ", ".join(quoted(name, 40) for name in group[1:4]) + more
    return [f"{sentence}. It cannot be told apart from {others} ({level})."]


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
