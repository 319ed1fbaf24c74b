"""Do decisions keep their word, and how many checks do they take?

Run ``python -m benchmarks.decisions [section ...] [--runs N] [--quick] [--processes 1] [--folder DIR] [--json
out.json]``; without names all sections are run. Every run is seeded, and kept in a folder as it ends.

Sections: error (false verdicts on the very bound, with a look after every check), checks (how many until it is decided,
beside the same bets on items drawn at random and beside a sample of a size that is fixed before, and how often the
number that was named is enough), intervals (how often those that are shown beside a verdict hold, after so many checks
and where it ends), look (the time of one).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import ndtri

import trueup as tu
from benchmarks._answers import row_of, select, tally_of
from benchmarks._coverage_tally import as_text, share
from benchmarks._data import data_folder, load_crowd, one_against_others
from benchmarks._runs import Case, Figure, Row, run_figures
from benchmarks._worlds import better_system, equal_system, make
from trueup._base.types import Codes
from trueup.decisions.sequential import Standing, View, advance, bet, stake_weights

RESTS_ON = ("decisions", "sessions")  # what numbers rest on beside the packages that _runs names
ERROR = 0.05
N_ITEMS = 600
N_LOOKS = 300
N_SEEDS = 20  # decisions on the same votes
N_EXCHANGED = 60
GAPS = (0.05, 0.1)  # how far the bound is from the truth
DESIGNS = ("drawn", "votes", "random", "fixed")
SHOWN_AFTER = (10, 20, 40)  # answers
NAMED_AFTER = (0, 20, 60)  # answers before the number of further ones is asked for
OPEN_SETS = "open judge sets"


@dataclass(frozen=True, eq=False)
class Problem:
    """A question with its true answer.

    `asked` leads from a distance to the conditions of a decision, and to whether they are met in truth.
    """

    answer: Any
    labels: tu.Labels
    truth: Codes
    asked: Callable[[float], tuple[dict[str, Any], bool]]

    def truths_of(self, items: Sequence[Any]) -> dict[Any, Any]:
        """The true classes of items."""
        return {item: self._true_class[item] for item in items}

    @cached_property
    def _true_class(self) -> dict[Any, Any]:
        return dict(zip(self.labels.items.tolist(), self.labels.classes[self.truth].tolist(), strict=True))


# ------------------------------------------------------------------ the problems


def one_system(world: str, seed: int) -> Problem:
    """Is the accuracy of a classifier at least so much?"""
    made = make(world, N_ITEMS, seed)
    answer = tu.evaluate(made.predictions, made.labels, metrics=["accuracy"], check_dependence=False)
    return Problem(answer, made.labels, made.truth, _at_least(made.accuracy, seed))


def _at_least(accuracy: float, seed: int) -> Callable[[float], tuple[dict[str, Any], bool]]:
    """Conditions below the accuracy, or above it; on the bound itself with one that is met and one that is not."""
    is_met = seed % 2 == 0

    def asked(gap: float) -> tuple[dict[str, Any], bool]:
        bound = accuracy - gap if is_met else accuracy + max(gap, 1e-6)
        return {"at_least": {"accuracy": float(np.clip(bound, 0.01, 0.99))}}, is_met

    return asked


def two_systems(world: str, seed: int) -> Problem:
    """Is a system no worse than another that is exactly as good?"""
    made, rng = make(world, N_ITEMS, seed), np.random.default_rng([seed, 3])
    systems = {
        "old": equal_system(made, N_EXCHANGED, rng),
        "new": equal_system(made, N_EXCHANGED, rng) if seed % 2 else better_system(made, 0.0, rng),
    }
    answer = tu.compare(systems, made.labels, check_dependence=False)
    return Problem(answer, made.labels, made.truth, _no_worse)


def _no_worse(gap: float) -> tuple[dict[str, Any], bool]:
    """With a margin of the gap; without one the equal system is to be better, which it is not."""
    if gap:
        return {"candidate": "new", "not_worse_than": "old", "margin": gap}, True
    return {"candidate": "new", "better_than": "old"}, False


def two_rates(kind: str, seed: int) -> Problem:
    """Does a system pass as often as another that passes exactly as often, by judges of which one favours it?"""
    rng = np.random.default_rng([seed, 5])
    half = N_ITEMS // 2
    truth = np.concatenate([rng.permutation(np.arange(half) < round(0.7 * half)) for _ in range(2)]).astype(np.int64)
    is_new = np.arange(N_ITEMS) >= half
    right = np.full((4, N_ITEMS), 0.8)
    if kind == "one judge favours":
        right[0] = np.where(is_new, np.where(truth == 1, 0.97, 0.4), 0.8)
    else:
        right[:] = np.where(truth == 1, 0.7, 0.3)  # they say of 70% that they pass, whichever
    votes = np.where(rng.random((4, N_ITEMS)) < right, truth, 1 - truth)
    labels = tu.Labels.from_matrix(votes.T)
    by = dict(zip(labels.items.tolist(), np.where(is_new, "new", "old").tolist(), strict=True))
    answer = tu.share(labels, of=1, by=by, check_dependence=False, target="sample")
    return Problem(answer, labels, truth, _no_worse)


def on_open_sets(_: str, seed: int) -> Problem:
    """Is the accuracy of one of the judges of an open set at least so much, by the votes of the others?"""
    names = sorted(folder.name for folder in data_folder().glob("judge-*"))
    rng = np.random.default_rng([seed, 9])
    while True:
        labels, truth = load_crowd(names[int(rng.integers(len(names)))])
        if labels.n_labelers < 3:
            continue
        others, predictions = one_against_others(labels, int(rng.integers(labels.n_labelers)))
        true_of = {item: code for item, code in zip(labels.items.tolist(), truth.tolist(), strict=True) if code >= 0}
        voted = set(others.items[np.unique(others.vote_table()[0])].tolist())
        items = [item for item in predictions if item in true_of and item in voted][: 2 * N_ITEMS]
        if len(items) >= 150:
            break
    others = others.select(items=items)
    codes = np.array([true_of[item] for item in others.items.tolist()])
    own = {item: predictions[item] for item in items}
    answer = tu.evaluate(own, others, metrics=["accuracy"], check_dependence=False)
    right = [predictions[item] == labels.classes[true_of[item]] for item in others.items.tolist()]
    return Problem(answer, others, codes, _at_least(float(np.mean(right)), seed))


PROBLEMS: dict[str, tuple[Callable[[str, int], Problem], str]] = {
    "accuracy, independent": (one_system, "independent"),
    "accuracy, families": (one_system, "families"),
    "accuracy, misled crowd": (one_system, "misled crowd"),
    "two systems, independent": (two_systems, "independent"),
    "two systems, families": (two_systems, "families"),
    "two rates, one judge favours": (two_rates, "one judge favours"),
    "two rates, judges guess": (two_rates, "judges guess"),
    OPEN_SETS: (on_open_sets, ""),
}
ON_THE_BOUND = ("accuracy, independent", "accuracy, families", "two systems, families", "two rates, one judge favours")
ON_THE_BOUND += (OPEN_SETS,)
UNINFORMATIVE = ("two rates, judges guess",)


def _problem(case: Case) -> Problem:
    build, kind = PROBLEMS[case.world]
    return build(kind, case.seed)


# ------------------------------------------------------------------ false verdicts


def run_error(case: Case) -> list[Row]:
    """Decisions on the very bound, with a look after each of up to 300 checks."""
    problem = _problem(case)
    conditions, is_met = problem.asked(0.0)
    rows = []
    for seed in range(N_SEEDS):
        decision = tu.decide(problem.answer, **conditions, error=ERROR, random_state=seed)
        for _ in range(N_LOOKS):
            asked = list(decision.ask(1))
            if not asked or decision.verdict != "undecided":
                break
            decision.tell(problem.truths_of(asked))
        everything = decision.progress.n_tells >= len(problem.truth)
        rows.append({"false": decision.verdict == ("failed" if is_met else "passed") and not everything})
    return rows


def summarise_error(rows: Sequence[Row]) -> str:
    lines = []
    for name in dict.fromkeys(row["world"] for row in rows):
        false = [row["false"] for row in select(rows, world=name)]
        rate = float(np.mean(false))
        error = math.sqrt(ERROR * (1 - ERROR) / len(false))
        lines.append([name, f"{100 * rate:.1f}", f"{100 * (ERROR + 2 * error):.1f}", f"{len(false):,}"])
    return (
        f"False verdicts on the very bound: a look after each of up to {N_LOOKS} checks of {N_ITEMS} items, "
        f"{N_SEEDS} decisions on\nthe same votes\n\n{as_text(['question', 'false %', 'at most %', 'runs'], lines)}\n\n"
        "Target: at most 5%, within two standard errors."
    )


# ------------------------------------------------------------------ how many checks


def run_checks(case: Case) -> list[Row]:
    """Checks until it is decided, for each distance of the bound, and by other designs."""
    problem, rows = _problem(case), []
    for gap in GAPS:
        conditions, _ = problem.asked(gap)
        open_at: dict[int, int | None] = {}
        decision = tu.decide(problem.answer, **conditions, error=ERROR, random_state=case.seed)
        n = _checks_until(decision, problem, open_at)
        named: dict[str, bool] = {}
        for after, checks in open_at.items():
            named[f"within {after}"] = checks is None or n - after <= checks
        rng = np.random.default_rng([case.seed, 11])
        fresh = _InRandomOrder(problem.answer, **conditions, error=ERROR, random_state=case.seed)
        others = {"random": _at_random(fresh, problem, rng), "fixed": _of_fixed_size(fresh, problem)}
        others["votes"] = _checks_until(fresh, problem, {})
        rows.append({"gap": gap, "drawn": n, **others, **named})
    return rows


def _checks_until(decision: tu.Decision, problem: Problem, open_at: dict[int, int | None]) -> int:
    """Checks until it is decided; the number that is named after some goes into a table."""
    n = 0
    while decision.verdict == "undecided":
        if n in NAMED_AFTER:
            open_at[n] = decision.needed.checks
        asked = list(decision.ask(1))
        if not asked:
            break
        decision.tell(problem.truths_of(asked))
        n += 1
    return n


class _InRandomOrder(tu.Decision):
    """A decision that expects the same of each item, but draws all with the same chance."""

    def _fit(self, codes: Codes) -> View:
        view = super()._fit(codes)
        return replace(view, pull=(view.pull > 0).astype(float))


def _at_random(decision: tu.Decision, problem: Problem, rng: np.random.Generator) -> int:
    """Checks until the same bets decide on items in random order.

    They expect of each item the shares of classes so far among those with the same predictions or of the same group.
    """
    sides, is_open = decision._sides, decision._open
    n_sides, n_items, n_classes = sides.terms.shape
    shift, pull = np.zeros(n_sides), is_open.astype(float)
    alike = np.unique(sides.terms.round(12).swapaxes(0, 1).reshape(n_items, -1), axis=0, return_inverse=True)[1].ravel()
    counts = np.ones((alike.max() + 1, n_classes))

    def view_now() -> View:
        chances = (counts / counts.sum(axis=1, keepdims=True))[alike]
        return View(np.einsum("sic,ic->si", sides.terms, chances), pull, shift)

    drawn = rng.integers(n_classes, size=(256, n_items))
    sums = np.stack([sides.terms[:, np.arange(n_items), row].sum(axis=1) for row in drawn], axis=1)
    wealth = stake_weights(sides, view_now(), is_open, sums)
    known = sides.terms[:, ~is_open, problem.truth[~is_open]].sum(axis=1)
    standing = advance(sides, Standing(known, is_open, wealth, np.zeros(n_sides)), shift)
    n_conditions = sides.n_conditions
    for n, item in enumerate(rng.permutation(np.flatnonzero(is_open)).tolist()):
        proved = standing.most >= decision._limits
        if proved[:n_conditions].all() or proved[n_conditions:].any():
            return n
        code, view = int(problem.truth[item]), view_now()
        standing = bet(sides, standing, item, code, 1 / standing.is_open.sum(), view, view)
        counts[alike[item], code] += 1
    return int(is_open.sum())


def _of_fixed_size(decision: tu.Decision, problem: Problem) -> int:
    """The random sample whose size, with the truth known, is enough for the condition in 80 of 100 samples."""
    terms = decision._sides.terms[0][np.arange(len(problem.truth)), problem.truth]
    n_items, mean, deviation = len(terms), abs(terms.mean()), terms.std()
    base = ((float(-ndtri(ERROR)) + float(ndtri(0.8))) * deviation / max(mean, 1e-12)) ** 2
    return int(min(np.ceil(base / (1 + base / n_items)), n_items))


def summarise_checks(rows: Sequence[Row]) -> str:
    lines = []
    for name in dict.fromkeys(row["world"] for row in rows):
        for gap in GAPS:
            own = select(rows, world=name, gap=gap)
            drawn, votes, chance, fixed = (float(np.median([row[key] for row in own])) for key in DESIGNS)
            asked = "at most 1.05" if name in UNINFORMATIVE else "at most .7"
            cells = [f"{n:.0f}" for n in (drawn, votes, chance, fixed)]
            cells += [f"{drawn / votes:.2f}", f"{drawn / chance:.2f}", asked, str(len(own))]
            lines.append([f"{name}, {gap:g}", *cells])
    named = []
    for after in NAMED_AFTER:
        inside = [row[f"within {after}"] for row in rows if f"within {after}" in row]
        named.append([f"{after} answers", f"{100 * np.mean(inside):.1f}", f"{len(inside):,}"])
    head = ["question, distance", "drawn", "random, votes", "random", "fixed", "ratio, votes", "ratio", "asked", "runs"]
    return (
        f"Checks until it is decided, of {N_ITEMS} items, medians: drawn as `ask` draws them; at random, with what "
        "the votes let expect;\nat random, without votes; a random sample of a size that is fixed before, for a power "
        "of 80%. The bets are the same\n\n"
        f"{as_text(head, lines)}\n\nDecided within the number that `needed` names, of all questions\n\n"
        f"{as_text(['named after', 'within %', 'runs'], named)}\n\nTarget: from 75 to 90%."
    )


# ------------------------------------------------------------------ the intervals that are shown


def run_intervals(case: Case) -> list[Row]:
    """The estimate of a decision after so many checks, which were drawn for the decision, and where it ends by then."""
    problem = _problem(case)
    conditions, _ = problem.asked(GAPS[0])
    decision = tu.decide(problem.answer, **conditions, error=ERROR, random_state=case.seed)
    true = float(decision.conditions[0].numbers(problem.truth[None])[0])
    rows = []
    for n in range(SHOWN_AFTER[-1] + 1):
        is_end = n == SHOWN_AFTER[-1] or decision.verdict != "undecided"
        if n in SHOWN_AFTER and decision.verdict == "undecided":
            rows.append(row_of(str(n), true, decision.estimates[0]))
        if is_end:
            rows.append(row_of("where it ends", true, decision.estimates[0]))
            break
        decision.tell(problem.truths_of(list(decision.ask(1))))
    return rows


def summarise_intervals(rows: Sequence[Row]) -> str:
    lines = []
    for name in [*dict.fromkeys(row["world"] for row in rows), "all"]:
        for after in (*map(str, SHOWN_AFTER), "where it ends"):
            own = [row for row in rows if row["answer"] == after and name in (row["world"], "all")]
            if own:
                tally = tally_of(own)
                lines.append([name, after, share(tally), f"{tally.width:.3f}", str(len(own))])
    return (
        f"95% intervals beside a verdict, {N_ITEMS} items, the bound {GAPS[0]:g} off: after so many checks, where it "
        f"is still open, and\nwhere it ends, after {SHOWN_AFTER[-1]} checks at most\n\n"
        f"{as_text(['question', 'checks', 'holds % ± s.e.', 'width', 'runs'], lines)}\n\nTarget: at least 93% of all."
    )


# ------------------------------------------------------------------ the time of a look


def run_look(case: Case) -> list[Row]:
    """Seconds of a look: an answer is taken, the verdict given, and the next item drawn."""
    problem = _problem(case)
    conditions, _ = problem.asked(0.0)
    decision = tu.decide(problem.answer, **conditions, error=ERROR, random_state=case.seed)
    asked = list(decision.ask(1))
    seconds: list[float] = []
    while asked and len(seconds) < N_LOOKS:
        started = time.perf_counter()
        decision.tell(problem.truths_of(asked))
        _ = decision.verdict
        asked = list(decision.ask(1))
        seconds.append(time.perf_counter() - started)
    return [{"seconds": float(np.mean(seconds))}]


def summarise_look(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(row["world"] for row in rows))
    means = [float(np.mean([row["seconds"] for row in select(rows, world=name)])) for name in names]
    lines = [[name, f"{1000 * mean:.1f}"] for name, mean in zip(names, means, strict=True)]
    return (
        f"A look: an answer is taken, the verdict given and the next item drawn; mean of {N_LOOKS} with "
        f"the fits among them\n\n{as_text(['question', 'ms'], lines)}\n\nTarget: at most 5 ms."
    )


ALL, FIRST = tuple(PROBLEMS), ON_THE_BOUND[:1]
FIGURES: dict[str, Figure] = {
    "error": Figure(ON_THE_BOUND, run_error, summarise_error, 50, 1, 171_000, FIRST),
    "checks": Figure(ALL, run_checks, summarise_checks, 50, 1, 172_000, FIRST),
    "intervals": Figure(ALL, run_intervals, summarise_intervals, 50, 1, 174_000, FIRST),
    "look": Figure(ON_THE_BOUND[:4], run_look, summarise_look, 10, 1, 173_000, FIRST),
}
# What else runs would be measured too.
main = partial(run_figures, "decisions", __doc__, FIGURES, one_at_a_time={"look"})


if __name__ == "__main__":
    from benchmarks import decisions  # by this name other processes find what is sent to them

    decisions.main()
