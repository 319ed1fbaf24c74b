"""What is measured on the real sets: each returns the text to print and the numbers to compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from benchmarks._engine_answers import ASSUMPTIONS
from benchmarks._engine_runs import Case, Row, run_cases
from experiments.real_crowds.fitting import fit_widening, grades_of, read_set, widenings_left_out
from experiments.real_crowds.grading import (
    ALL_VOTES,
    FEWER_VOTES,
    HEADLINE,
    N_VETTED,
    PPI,
    RANKED_BY,
    REPETITIONS_A_CASE,
    SEPARATOR,
    WILSON,
    crowd_of,
    pairs_of,
    run_gold,
    run_gold_pair,
    run_pair,
    run_ranking,
    run_system,
)
from experiments.real_crowds.judging import (
    Grade,
    Overall,
    by_set,
    numbers_of,
    over_sets,
    ratio_of_widths,
)
from experiments.real_crowds.scoring import N_SPLITS, has_scores, run_scores
from experiments.real_crowds.sets import set_names
from experiments.su2024.report import table
from trueup.estimators.real_map import shipped_map

__all__ = ["FIGURES", "FOLDER", "Plan", "scale_interval", "sources"]

FOLDER = Path(__file__).parent
Answer = tuple[str, dict[str, float]]
N_REPETITIONS = 200
QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
QUICK_SYSTEMS = 1
HEAD = ["", "holds %", "± s.e.", "least set %", "width", "mean error", "mean |error|", "sets"]


@dataclass(frozen=True)
class Plan:
    """How much is measured, and where single runs are kept."""

    names: tuple[str, ...] | None = None
    quick: bool = False
    repetitions: int = N_REPETITIONS
    processes: int = 2
    folder: Path | None = None

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets, by default all of the data folder."""
        if self.names is not None:
            return self.names
        return QUICK_SETS if self.quick else tuple(set_names())

    def measure(self, name: str, run: Callable[[Case], list[Row]], cases: Sequence[Case]) -> list[Grade]:
        """The grades of all cases."""
        rows = run_cases(name, run, cases, processes=self.processes, folder=None if self.quick else self.folder)
        names = {field.name for field in fields(Grade)}
        return [Grade(**{key: value for key, value in row.items() if key in names}) for row in rows]

    def number(self, n: int) -> int:
        """So many systems or pairs of a set, fewer in a quick run."""
        return min(n, QUICK_SYSTEMS) if self.quick else n


def votes(plan: Plan) -> Answer:
    """Accuracy, recall and prevalence of labelers from all the others' votes, with the map that is shipped."""
    return _graded(plan, (ALL_VOTES,))


def fit(plan: Plan) -> Answer:
    """The widening of the map: fitted without each family, what it then holds, and what is shipped."""
    shipped = shipped_map()
    sets = [read_set(name) for name in plan.sets]
    if len({s.crowd.family for s in sets}) < 2:
        return "One family alone leaves nothing to fit on.", {}
    widenings = widenings_left_out(sets, floor=shipped.floor)
    grades = [g for s in sets for g in grades_of(s, replace(shipped, widening=widenings[s.crowd.family]))]
    overall, by_sets = over_sets(grades), by_set(grades)
    lines = [
        [
            f"{s.crowd.name} ({widenings[s.crowd.family]:.2f})",
            f"{100 * grade.coverage:.0f}",
            grade.width,
            grade.mean_error,
            grade.n,
            s.rhat,
        ]
        for s, grade in ((s, by_sets[s.crowd.name]) for s in sets)
    ]
    numbers = {
        **numbers_of(overall, "accuracy, family left out"),
        "widening, all sets": fit_widening(sets, floor=shipped.floor),
        "widening, least of those left out": min(widenings.values()),
        "widening, largest of those left out": max(widenings.values()),
        "widening, shipped": shipped.widening,
    }
    told = [f"{name}: {value:.4g}" for name, value in numbers.items()]
    head = ["set (widening without its family)", "holds %", "width", "mean error", "systems", "worst R-hat"]
    return "\n".join(
        [table(HEAD, [["accuracy, real, family left out", *_cells(overall)]]), "", table(head, lines), "", *told]
    ), numbers


def thinned(plan: Plan) -> Answer:
    """The same from five and from three votes an item."""
    return _graded(plan, tuple(FEWER_VOTES))


def left_out(plan: Plan) -> Answer:
    """The *real* answer of a plain call with the widening that `fit` finds without the family of the set.

    One widening for all metrics and numbers of votes, as the map that is shipped has one: the ends of its intervals are
    moved in proportion, by a few percent.
    """
    sets = [read_set(name) for name in plan.sets]
    if len({s.crowd.family for s in sets}) < 2:
        return "One family alone leaves nothing to fit on.", {}
    shipped = shipped_map()
    widenings = widenings_left_out(sets, floor=shipped.floor)
    grades = [*_system_grades(plan, (ALL_VOTES, *FEWER_VOTES)), *_pair_grades(plan)]
    grades = [scale_interval(g, widenings[g.family] / shipped.widening) for g in grades if g.answer == "real"]
    lines, numbers = [], {}
    for metric, condition in dict.fromkeys((g.metric, g.condition) for g in grades):
        overall = over_sets(_of(grades, metric=metric, condition=condition))
        lines.append([f"{metric}, {condition}", *_cells(overall)])
        numbers.update(numbers_of(overall, f"{metric}, {condition}"))
    by_sets = [
        [f"{name}, {condition}", f"{100 * s.coverage:.0f}", s.width, s.mean_error, s.mean_absolute_error, s.n]
        for condition in (ALL_VOTES, *FEWER_VOTES)
        for name, s in by_set(_of(grades, metric="accuracy", condition=condition)).items()
    ]
    told = f"A plain call, its widening fitted without the family: {min(widenings.values()):.2f} to "
    told += f"{max(widenings.values()):.2f}, shipped {shipped.widening}"
    head = ["accuracy", "holds %", "width", "mean error", "mean |error|", "systems"]
    return f"{told}\n{table(HEAD, lines)}\n\n{table(head, by_sets)}", numbers


def scale_interval(grade: Grade, factor: float) -> Grade:
    """The same answer with an interval whose ends are so many times as far from its mean."""
    low, high = grade.mean - factor * (grade.mean - grade.low), grade.mean + factor * (grade.high - grade.mean)
    if grade.metric != "difference":
        low, high = max(low, 0.0), min(high, 1.0)
    return replace(grade, low=low, high=high)


def differences(plan: Plan) -> Answer:
    """Differences of accuracy of two labelers from the others' votes."""
    grades = _pair_grades(plan)
    lines, numbers = [], {}
    for answer in ASSUMPTIONS:
        own = _of(grades, answer=answer)
        apart = [g for g in own if g.low > 0 or g.high < 0]
        wrong = sum((g.low > 0 > g.true) or (g.high < 0 < g.true) for g in apart)
        overall = over_sets(own)
        lines.append([answer, *_cells(overall), f"{len(apart)} of {len(own)}", f"{wrong}"])
        numbers.update(numbers_of(overall, f"difference, {answer}"))
        numbers[f"difference, {answer}: wholly on the wrong side, %"] = 100 * wrong / len(own)
    return table([*HEAD, "told apart", "on the wrong side"], lines), numbers


def scores(plan: Plan) -> Answer:
    """AUC of quarters of the crowds of two classes from the votes of the other half, and its differences."""
    cases = [Case(name, k) for name in plan.sets if has_scores(crowd_of(name)) for k in range(plan.number(N_SPLITS))]
    grades = plan.measure("real-scores", run_scores, cases)
    lines, numbers = [], {}
    for metric in ("auc", "difference"):
        for answer in ASSUMPTIONS:
            overall = over_sets(_of(grades, metric=metric, answer=answer))
            lines.append([f"{metric}, {answer}", *_cells(overall)])
            numbers.update(numbers_of(overall, f"AUC, {metric}, {answer}"))
    sets = [
        [name, f"{100 * s.coverage:.0f}", s.width, s.mean_error, s.mean_absolute_error, s.n]
        for name, s in by_set(_of(grades, metric="difference", answer="real")).items()
    ]
    by_sets = table(["difference, real", "holds %", "width", "mean error", "mean |error|", "pairs"], sets)
    return f"{table(HEAD, lines)}\n\n{by_sets}", numbers


def gold(plan: Plan) -> Answer:
    """Vetted items drawn at random: accuracy, precision, recall, F1 and differences, beside PPI++ and Wilson."""
    n_cases = 1 if plan.quick else -(-plan.repetitions // REPETITIONS_A_CASE)
    cases = [Case(name, k) for name in plan.sets for k in range(n_cases)]
    grades = plan.measure("real-gold", run_gold, cases)
    with_pairs = [case for case in cases if pairs_of(crowd_of(case.world))]
    grades += plan.measure("real-gold-pairs", run_gold_pair, with_pairs)
    lines, numbers = [], {}
    for metric in ("accuracy", "precision", "recall", "f1", "difference"):
        for n in N_VETTED:
            of_case = _of(grades, metric=metric, condition=f"{n} vetted")
            for answer in (HEADLINE, PPI, WILSON):
                own = _of(of_case, answer=answer)
                if not own:
                    continue
                overall = over_sets(own)
                rivals = {PPI: _of(of_case, answer=PPI), WILSON: _of(of_case, answer=WILSON)}
                ratios = {name: ratio_of_widths(own, rows) for name, rows in rivals.items() if rows}
                shown = [f"{ratios[name]:.2f}" if name in ratios else "" for name in (PPI, WILSON)]
                lines.append([f"{metric}, {n} vetted, {answer}", *_cells(overall), *shown])
                if answer == HEADLINE:
                    numbers.update(numbers_of(overall, f"{metric}, {n} vetted"))
                    numbers.update({f"{metric}, {n} vetted: width over {k}": v for k, v in ratios.items()})
    return table([*HEAD, "× PPI++", "× Wilson"], lines), numbers


def sources() -> str:
    """The sets with their sources and licences, as the README has them."""
    from experiments.real_crowds.sets import licence_table, load_sets

    return licence_table(load_sets())


def ranking(plan: Plan) -> Answer:
    """Accuracies of the same labelers in the ranking of all, from all votes and by one model that is named."""
    grades = plan.measure("real-ranking", run_ranking, [Case(name, 0) for name in plan.sets])
    lines, numbers = [], {}
    for answer in ("real", RANKED_BY):
        overall = over_sets(_of(grades, answer=answer))
        lines.append([f"accuracy, {answer}", *_cells(overall)])
        numbers.update(numbers_of(overall, f"accuracy in the ranking, {answer}"))
    summaries = by_set(_of(grades, answer="real"))
    sets = [[name, f"{100 * s.coverage:.0f}", s.width, s.mean_error, s.n] for name, s in summaries.items()]
    by_sets = table(["accuracy, real", "holds %", "width", "mean error", "labelers"], sets)
    return f"{table(HEAD, lines)}\n\n{by_sets}", numbers


def _system_grades(plan: Plan, conditions: Sequence[str]) -> list[Grade]:
    cases = [
        Case(f"{name}{SEPARATOR}{condition}", k)
        for name in plan.sets
        for condition in conditions
        for k in range(plan.number(len(crowd_of(name).graded)))
    ]
    return plan.measure("real-votes", run_system, cases)


def _pair_grades(plan: Plan) -> list[Grade]:
    cases = [Case(name, k) for name in plan.sets for k in range(plan.number(len(pairs_of(crowd_of(name)))))]
    return plan.measure("real-pairs", run_pair, cases)


def _graded(plan: Plan, conditions: Sequence[str]) -> Answer:
    grades = _system_grades(plan, conditions)
    lines, sets, numbers = [], [], {}
    for condition in conditions:
        for metric in ("accuracy", "recall", "prevalence"):
            for answer in ASSUMPTIONS:
                own = _of(grades, metric=metric, condition=condition, answer=answer)
                overall = over_sets(own)
                lines.append([f"{metric}, {condition}, {answer}", *_cells(overall)])
                numbers.update(numbers_of(overall, f"{metric}, {condition}, {answer}"))
        headline = by_set(_of(grades, metric="accuracy", condition=condition, answer="real"))
        sets += [
            [f"{name}, {condition}", f"{100 * s.coverage:.0f}", s.width, s.mean_error, s.mean_absolute_error, s.n]
            for name, s in headline.items()
        ]
    by_sets = table(["accuracy, real", "holds %", "width", "mean error", "mean |error|", "systems"], sets)
    return f"{table(HEAD, lines)}\n\n{by_sets}", numbers


def _of(grades: Sequence[Grade], **values: str) -> list[Grade]:
    return [g for g in grades if all(getattr(g, name) == value for name, value in values.items())]


def _cells(overall: Overall) -> list[object]:
    return [
        f"{100 * overall.coverage:.1f}",
        f"{100 * overall.coverage_error:.1f}",
        f"{100 * overall.least_coverage:.0f}",
        overall.width,
        f"{overall.mean_error:+.4f}",
        overall.mean_absolute_error,
        overall.n_sets,
    ]


FIGURES: dict[str, Callable[[Plan], Answer]] = {
    "fit": fit,
    "votes": votes,
    "thinned": thinned,
    "left-out": left_out,
    "differences": differences,
    "scores": scores,
    "gold": gold,
    "ranking": ranking,
}
