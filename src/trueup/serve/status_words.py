"""The figures of the owner's page: made from the latest snapshot and the log, as words and as a chart."""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np

from trueup._base.wording import chance, decimals, interval, level_words, number, percent
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.exceptions import TrueupError, silenced_warnings
from trueup.reliability import agreement
from trueup.report.figures import Drawing, Scale
from trueup.serve.card_service import OUTCOMES, Entry, Journal, plain
from trueup.serve.estimating import DecisionState, Range, Row, Snapshot
from trueup.serve.services import Texts
from trueup.sessions.progress import MEASURING
from trueup.storage import Card

RARE = 0.05
_PAUSE = 600.0  # seconds between two answers of a person after which they were away


@dataclass(frozen=True)
class Pace:
    """How quickly answers come."""

    seconds: float  # The median time between two answers of one person, without breaks
    n_active: int  # Who answered within the last minutes

    @property
    def per_hour(self) -> float:
        """Of all who are at work."""
        return 3600.0 / self.seconds * max(self.n_active, 1)

    def minutes(self, n: float) -> float:
        """For n more answers."""
        return n / self.per_hour * 60


def pace_of(entries: Sequence[Entry], now: float) -> Pace | None:
    """The pace of the last answers; None before there are two of one person."""
    times: dict[str, list[float]] = {}
    for entry in entries[-500:]:
        event = entry.event
        if event.kind in (*OUTCOMES, "later") and event.who is not None and event.at is not None:
            times.setdefault(event.who, []).append(event.at)
    gaps = [b - a for at in times.values() for a, b in pairwise(at) if b - a < _PAUSE]
    if not gaps:
        return None
    return Pace(max(statistics.median(gaps), 0.1), sum(at[-1] > now - _PAUSE for at in times.values()))


def figures(
    snapshot: Snapshot | None,
    journal: Journal,
    cards: Sequence[Card],
    *,
    texts: Texts,
    n_items: int,
    paused: bool,
    problem: str | None,
) -> dict[str, Any]:
    """What the page of the owner says, in words."""
    now = time.time()
    entries = journal.entries()
    pace = pace_of(entries, now)
    begun = snapshot is not None
    snapshot = snapshot or Snapshot()
    first, gain, words = snapshot.first, snapshot.gain, texts["owner"]
    n_answers = len({one.event.item for one in entries if one.event.kind in ("tell", "correct", "none of these")})
    names = list(snapshot.ranges)
    rare = [
        words["rare"].format(share=percent(share, 1), name=isolated(name))
        for name, share in snapshot.shares.items()
        if share < RARE and snapshot.n_answers >= 20
    ]
    facts: dict[str, Any] = {
        "metric": plain(snapshot.metric) if begun else "",
        "system": plain(names[0]) if len(names) > 1 else "",
        "has_estimate": False,
        "level": level_words(snapshot.level),
        "n_answers": f"{n_answers:,}",
        "n_items": f"{n_items:,}",
        "n_out": sum(card.seconds_left > 0 for card in cards),
        "n_waiting": snapshot.n_waiting,
        "n_cannot_tell": snapshot.n_cannot_tell,
        "n_outside": snapshot.n_outside,
        "is_paused": paused,
        "finished": snapshot.finished,
        "has_rule": any(rule is not None for rule in (snapshot.budget, snapshot.half_width, snapshot.prob_better)),
        "warnings": [*([problem] if problem else []), *snapshot.warnings, *rare],
        "n_disputed": snapshot.n_disputed,
        "experts": experts(journal, entries, snapshot.expert_errors),
        "expert_error": None if snapshot.expert_error is None else _rate_words(snapshot.expert_error),
        "per_hour": None if pace is None else f"{pace.per_hour:,.0f}",
        "seconds": None if pace is None else f"{pace.seconds:,.0f}",
        "budget": None if snapshot.budget is None else f"{snapshot.budget:,.0f}",
        "minutes_left": "" if snapshot.budget is None else _minutes(snapshot.left_of_budget, pace),
        "to_width": _to_width(snapshot, pace),
        "with_all": None if snapshot.with_all is None else _ends(snapshot.with_all),
        "anytime_interval": None,
        "gain": None,
        "decision": _decision_words(snapshot.decision, pace, words),
    }
    if first is not None and not math.isnan(first.mean):
        low, high = _ends(first)
        facts |= {"has_estimate": True, "low": low, "high": high, "age": duration(now - snapshot.made)}
        facts |= {"mean": number(first.mean, _places(first)), "half": number(first.half, _places(first))}
        facts["interval"] = interval(first.low, first.high, _places(first))
        anytime = next(iter(snapshot.anytime_interval.values()), None)
        facts["anytime_interval"] = None if anytime is None else interval(*anytime)
    if gain is not None:
        places = decimals(gain.low, gain.high)
        facts["gain"] = {"mean": number(gain.mean, places), "interval": interval(gain.low, gain.high)}
    return facts


def _minutes(n: float, pace: Pace | None) -> str:
    """How long n more answers take."""
    return "?" if pace is None else f"{math.ceil(pace.minutes(n)):,}"


def _decision_words(state: DecisionState | None, pace: Pace | None, words: Mapping[str, str]) -> dict[str, Any] | None:
    """The verdict, how probable each is, and how many answers it takes."""
    if state is None:
        return None
    needed = words["needed_unknown"]
    if state.checks is not None:
        needed = words["needed"].format(n=f"{state.checks:,}", minutes=_minutes(state.checks, pace))
    return {
        "verdict": words[state.verdict],
        "is_open": state.verdict == "undecided",
        "chances": words["chances"].format(passed=chance(state.passed), failed=chance(state.failed)),
        "needed": needed,
        "error": words["error_of_looks"].format(error=percent(state.error)),
        "conditions": [plain(sentence) for sentence in state.conditions],
    }


def _ends(one: Range) -> tuple[str, str]:
    places = _places(one)
    return number(one.low, places), number(one.high, places)


def _places(one: Range | Row) -> int:
    """Decimals of a range: of a count, which spans several whole numbers as no share and no rating does, none."""
    return decimals(one.low, one.high, least=0 if one.high - one.low >= 3 else 3)


def _to_width(snapshot: Snapshot, pace: Pace | None) -> dict[str, str] | None:
    """How many more answers the rule of the width needs, if the width falls with their square root; at most all."""
    first, target, n = snapshot.first, snapshot.half_width, snapshot.n_answers - snapshot.n_waiting
    if first is None or target is None or n < 10 or not first.half > target:
        return None
    more = min(math.ceil(n * ((first.half / target) ** 2 - 1)), snapshot.n_items - snapshot.n_answers)
    return {"n": f"{more:,}", "half": f"{target:g}", "minutes": _minutes(more, pace)}


def goal(snapshot: Snapshot | None, words: Mapping[str, str], n_items: int) -> str:
    """What the session is to reach and how many answers are left, without the estimate: experts see it."""
    snapshot = snapshot or Snapshot(n_items=n_items)
    left = f"{max(snapshot.n_items - snapshot.n_answers, 0):,}"
    if snapshot.finished is not None:
        return words["met"]
    if snapshot.decision is not None:
        checks = snapshot.decision.checks
        return words["decision_begin"] if checks is None else words["decision"].format(left=f"{checks:,}")
    if snapshot.half_width is not None:
        more = _to_width(snapshot, None)
        half = f"{snapshot.half_width:g}"
        if more is None:
            return words["half_width_begin"].format(half=half)
        return words["half_width"].format(half=half, left=more["n"])
    if snapshot.budget is not None:
        return words["budget"].format(budget=f"{snapshot.budget:,.0f}", left=f"{snapshot.left_of_budget:,.0f}")
    if snapshot.prob_better is not None:
        return words["prob_better"].format(chance=f"{snapshot.prob_better:g}", left=left)
    return words["all"].format(left=left, n=f"{snapshot.n_items:,}")


def isolated(text: object) -> str:
    """A name inside a sentence, whatever direction it is written in."""
    return f"\u2068{plain(text)}\u2069"


def duration(seconds: float) -> str:
    """A time in words."""
    whole = max(round(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d} h"


def experts(journal: Journal, entries: Sequence[Entry], errors: Mapping[str, Range | None]) -> list[dict[str, Any]]:
    """Answers, agreement and errors of each expert."""
    first: dict[Hashable, dict[str, Hashable]] = defaultdict(dict)  # answers to each item, by expert
    agreements, repeats = defaultdict[str, list[bool]](list), defaultdict[str, list[bool]](list)
    for event in (entry.event for entry in entries):
        if event.kind not in ("tell", "none of these") or event.who is None:
            continue
        answer, of_item = (event.kind, event.truth), first[event.item]
        if event.purpose == "repeat" and event.who in of_item:
            repeats[event.who].append(of_item[event.who] == answer)
        elif event.purpose not in MEASURING:
            of_item.setdefault(event.who, answer)
    for of_item in first.values():
        for who, given in of_item.items():
            agreements[who] += [other == given for name, other in of_item.items() if name != who]
    rows = []
    for who in journal.people():
        seconds = [entry.event.seconds for entry in journal.of_person(who) if entry.event.seconds is not None]
        rows.append(
            {
                "name": plain(who),
                "n": f"{journal.n_answered(who):,}",
                "agreement": _share(agreements[who]),
                "repeats": _share(repeats[who]),
                "errors": "–" if (error := errors.get(who)) is None else _rate_words(error),
                "seconds": "–" if not seconds else f"{statistics.median(seconds):.1f}",
            }
        )
    return rows


def _rate_words(rate: Range) -> str:
    return f"{percent(rate.mean, 1)} ({percent(rate.low, 1)} to {percent(rate.high, 1)})"


def _share(are_same: Sequence[bool]) -> str:
    return "–" if not are_same else f"{percent(sum(are_same) / len(are_same))} ({sum(are_same)}/{len(are_same)})"


def recent_answers(journal: Journal, words: Any, now: float) -> list[dict[str, Any]]:
    """The last answers, each with what is needed to correct it."""
    rows = []
    given = (entry for entry in reversed(journal.entries()) if entry.event.kind in (*OUTCOMES, "later"))
    for entry in islice(given, 15):
        event = entry.event
        rows.append(
            {
                "number": entry.number,
                "key": secrets.token_urlsafe(18),
                "when": "–" if event.at is None else duration(now - event.at),
                "who": plain(event.who or "–"),
                "item": plain(event.item),
                "answer": words(event),
                "is_class": event.truth is not None,
                "comment": plain(event.text) if event.text else "",
                "is_correction": event.kind == "correct",
                "saw_estimate": bool(event.saw_estimate) and event.kind == "correct",
                "can_correct": event.kind in OUTCOMES,
            }
        )
    return rows


_WIDTH, _HEIGHT = 900, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 880, 14, 264


def chart(rows: Sequence[Row], bounds: tuple[float, float], words: str) -> dict[str, Any] | None:
    """The interval against the number of answers as SVG, and the same as rows; None before there are rows."""
    rows = [row for row in rows if math.isfinite(row.low) and math.isfinite(row.high)]
    if not rows:
        return None
    low, high = min(row.low for row in rows), max(row.high for row in rows)
    air = max(0.1 * (high - low), 0.01)
    up = Scale(max(low - air, bounds[0]), min(high + air, bounds[1]), _BOTTOM, _TOP)
    across = Scale(0.0, rows[-1].n, _LEFT, _RIGHT)
    d = Drawing(_WIDTH, _HEIGHT, words)
    d.axis_left(up, _LEFT, right=_RIGHT)
    d.axis_below(across, _BOTTOM, most=6)
    d.line("grid", _LEFT, _BOTTOM, _RIGHT, _BOTTOM)
    upper = [(across(row.n), up(row.high)) for row in rows]
    d.path("band", [*upper, *((across(row.n), up(row.low)) for row in reversed(rows))], closed=True)
    d.path("mean", [(across(row.n), up(row.mean)) for row in rows])
    table = []
    for row in rows:
        mean, ends = number(row.mean, _places(row)), interval(row.low, row.high, _places(row))
        table.append({"n": row.n, "mean": mean, "interval": ends})
        said = number(row.mean, 2) if row.low == row.high else f"{mean} ({ends})"
        d.circle("dot", across(row.n), up(row.mean), 3, label=f"{row.n}: {said}")
    return {"picture": d.render(), "rows": table}


def agreement_of_experts(labels: Labels, journal: Journal) -> dict[str, Any] | None:
    """What the page shows; None until an expert and a labeler, or two experts, share items."""
    last = {
        (who, entry.event.item): entry.event.truth
        for who in journal.people()
        for entry in reversed(journal.last_answers(who))
        if entry.event.kind in ("tell", "correct") and entry.event.truth is not None
    }
    answers = [
        (f"expert {who}", item, truth) for (who, item), truth in last.items() if labels.find_items([item])[0] >= 0
    ]
    if not answers:
        return None
    try:
        with silenced_warnings():
            checked = labels.without_gold().select(items={item for _, item, _ in answers})
            often = np.argsort(-checked.votes_per_labeler, kind="stable")[:20]
            checked = checked.select(labelers=checked.labelers[often])
            names = vocabulary_from([str(name) for name in checked.labelers.tolist()])  # text, as those of experts
            checked = replace(checked, labelers=names, crowds=frozenset())
            experts, items, truths = zip(*answers, strict=True)
            columns = {"item": list(items), "labeler": list(experts), "label": list(truths)}
            given = Labels.from_frame(columns, classes=labels.classes.tolist())
            judges = agreement(checked.merge(given), experts=list(dict.fromkeys(experts))).judges
    except TrueupError:
        return None

    def words(estimate: Any) -> str:
        return f"{percent(estimate.mean)} ({interval(*estimate.interval(judges.level))})"

    ceiling = judges.ceiling.get("percent")
    return {
        "sentence": judges.sentence,
        "ceiling": None if ceiling is None else words(ceiling),
        "rows": [
            {
                "judge": str(row.judge),
                "n_items": f"{row.n_items:,}",
                "percent": words(row.percent),
                "kappa": "–" if row.kappa is None else number(row.kappa.mean, 2),
            }
            for row in judges.rows
        ],
        "notes": list(judges.notes),
    }
