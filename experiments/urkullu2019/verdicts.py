"""The paper's verdicts (Section 5), one by one, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from experiments.urkullu2019.report import Answer, table
from experiments.urkullu2019.results import Results, gaps
from experiments.urkullu2019.settings import Array

__all__ = ["Verdict", "case_verdicts", "general_verdicts", "ties_once", "verdicts"]

VIEWS = ("DGT", "SGT", "PGT")
HIGH, LOW = 0.1, 0.25  # swap errors: high quality below, low quality from there on, middle between
BOUNDS = {"high": (0.0, HIGH), "middle": (HIGH, LOW), "low": (LOW, 1.0)}
SURE = 3.0  # standard errors, with up to 180 configurations in one claim


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper; `gap` is by how many standard errors ours contradicts it, not above zero if it holds."""

    case: str
    claim: str
    ours: str
    gap: float

    @property
    def holds(self) -> str:
        """In words."""
        if self.gap <= 0:
            return "yes"
        return "within error" if self.gap <= SURE else "NO"


def verdicts(results: Results) -> Answer:
    """All of them as a table."""
    found = [*general_verdicts(results), *case_verdicts(results)]
    return _table(found), {f"{v.case}: {v.claim}": v.gap for v in found}


def ties_once(results: Results) -> str:
    """What becomes of the verdicts on DGT if ties are solved once for all classifiers."""
    other = results.with_ties_solved_once()
    return _table([v for v in (*general_verdicts(other), *case_verdicts(other)) if "DGT" in v.claim])


def _table(found: list[Verdict]) -> str:
    rows = [[f"{v.case}: {v.claim}", v.ours, f"{v.gap:+.1f}", v.holds] for v in found]
    text = table(["the paper says", "ours", "contradicted by, std. errors", "holds"], rows)
    counts = ", ".join(f"{sum(v.holds == word for v in found)} {word}" for word in ("yes", "within error", "NO"))
    return f"{text}\n{len(found)} verdicts: {counts}"


# ---------------------------------------------------------------------- the five cases


def case_verdicts(results: Results) -> Iterator[Verdict]:
    """The list at the end of Section 5."""
    for view in VIEWS:
        yield _range(results, "extreme", view, "low", "low")
    yield _range(results, "bad", "DGT", "low", "middle")
    yield _range(results, "bad", "SGT", "low", "high")
    yield _range(results, "bad", "PGT", "low", "high")
    yield _beats(results, "bad", "PGT", "with 45 labels per item", lambda n: n == 45)
    yield _range(results, "average", "DGT", "low", "high")
    yield _range(results, "average", "SGT", "low", "high")
    yield _range(results, "average", "PGT", "middle", "high")
    yield _beats(results, "average", "PGT", "with 15 or more", lambda n: n >= 15)
    yield _beats(results, "average", "SGT", "with 15 or more", lambda n: n >= 15, share=11 / 18)
    for view in VIEWS:
        yield _range(results, "good", view, "middle", "high")
    yield _beats(results, "good", "PGT", "with 5 or more", lambda n: n >= 5)
    yield _beats(results, "good", "SGT", "with 5 or more", lambda n: n >= 5, share=21 / 30)
    for view in VIEWS:
        yield _beats(results, "good", view, "with 45", lambda n: n == 45)
    for view in VIEWS:
        yield _range(results, "outstanding", view, "middle", "high")
    yield _beats(results, "outstanding", "PGT", "always", lambda n: True)
    yield _beats(results, "outstanding", "SGT", "with 15 or more", lambda n: n >= 15)
    if 9 in results.design.levels:
        yield _fails(results, "outstanding", "SGT", "with 9", lambda n: n == 9)
    yield _beats(results, "outstanding", "DGT", "with 27 or more", lambda n: n >= 27)
    yield _fails(results, "outstanding", "DGT", "with 15", lambda n: n == 15)


def _range(results: Results, case: str, view: str, worst: str, best: str) -> Verdict:
    """No mean is worse than the one quality or better than the other, and both occur."""
    errors = results.of_view(view, case)
    (start, _), (_, stop) = BOUNDS[best], BOUNDS[worst]
    below, above = -gaps(errors, start), gaps(errors, stop)
    reaches_best, reaches_worst = gaps(errors, BOUNDS[best][1]), -gaps(errors, BOUNDS[worst][0])
    gap = max(below.max(), above.max(), reaches_best.min(), reaches_worst.min())
    means = errors.mean(axis=0)
    said = f"{view} ranges from {worst} to {best} quality" if worst != best else f"{view} has {worst} quality only"
    return Verdict(case, said, f"{means.min():.3f} to {means.max():.3f}", float(gap))


def _against_supervised(results: Results, case: str, view: str, per_item: Callable[[int], bool]) -> Array:
    """Swap errors less those of the supervised reference on the same truths."""
    return results.of_view(view, case, per_item) - results.supervised[:, None]


def _beats(
    results: Results, case: str, view: str, when: str, per_item: Callable[[int], bool], *, share: float = 1.0
) -> Verdict:
    """In a share of the configurations the mean is below that of the supervised reference."""
    each = np.sort(gaps(_against_supervised(results, case, view, per_item)))
    asked, count = round(share * len(each)), int((each < 0).sum())
    # Those that must change sides for the paper's count: the nearest on the wrong side.
    gap = max(each[asked - 1], -each[asked]) if asked < len(each) else each[-1]
    part = f"in {share:.2%}" if share < 1 else "always"
    always = when if when == "always" else f"{when}: {part}"
    return Verdict(case, f"{view} beats the supervised, {always}", f"{count} of {len(each)}", float(gap))


def _fails(results: Results, case: str, view: str, when: str, per_item: Callable[[int], bool]) -> Verdict:
    """In some configuration the mean is not below that of the supervised reference."""
    each = gaps(_against_supervised(results, case, view, per_item))
    claim = f"{view} beats the supervised, {when}: not always"
    return Verdict(case, claim, f"{int((each < 0).sum())} of {len(each)}", float(-each.max()))


# ---------------------------------------------------------------------- in general


def general_verdicts(results: Results) -> Iterator[Verdict]:
    """What Section 5 says before it comes to the cases."""
    yield _better_than_chance(results)
    yield from (_falls_with_labels_per_item(results, view) for view in VIEWS)
    yield from _labels_per_labeler(results)
    each = {view: results.of_view(view) for view in VIEWS}
    mean = {view: errors.mean(axis=1, keepdims=True) for view, errors in each.items()}
    shown = ", ".join(f"{view} {float(mean[view].mean()):.4f}" for view in VIEWS)
    lowest = max(gaps(mean["PGT"] - mean[view])[0] for view in ("DGT", "SGT"))
    yield Verdict("all", "PGT is best on average", shown, float(lowest))
    highest = max(gaps(mean[view] - mean["DGT"])[0] for view in ("SGT", "PGT"))
    yield Verdict("all", "DGT is worst on average", shown, float(highest))
    difference = each["PGT"] - each["DGT"]
    count = f"worse in {int((difference.mean(axis=0) < 0).sum())} of {difference.shape[1]}"
    yield Verdict("all", "DGT matches PGT in no configuration", count, float(gaps(difference).max()))
    beyond = np.stack([each["PGT"] - each["SGT"], each["SGT"] - each["DGT"]], axis=1)
    between = gaps(beyond).max(axis=0)
    count = f"surely beyond in {int((between > SURE).sum())} of {len(between)}"
    yield Verdict("all", "SGT lies between PGT and DGT, or level with one", count, float(between.max()))
    yield _unstable(results)


def _better_than_chance(results: Results) -> Verdict:
    """Only unskilled labelers with few labels per item come near 0.5."""
    skilled = [case for case in results.design.cases if case != "extreme"]
    worst = max(float(gaps(results.of_view(view, case), 0.5).max()) for view in VIEWS for case in skilled)
    means = np.array([results.of_view(view).mean(axis=0) for view in VIEWS])
    said = "mean swap errors are below 0.5 but for unskilled labelers and few labels"
    return Verdict("all", said, f"{int((means >= 0.5).sum())} of {means.size} are not", worst)


def _by_level(results: Results, view: str, axis: int) -> Array:
    """Averages over the other axis of the grids, shape (n_runs, cases, levels)."""
    shape = (results.n_runs, *results.design.shape[:3])
    return np.asarray(results.of_view(view).reshape(shape).mean(axis=axis))


def _falls_with_labels_per_item(results: Results, view: str) -> Verdict:
    """From each level to the next, in each case."""
    steps = np.diff(_by_level(results, view, 3), axis=2)
    falls = int((steps.mean(axis=0) < 0).sum())
    claim = f"{view} improves with labels per item"
    return Verdict("all", claim, f"{falls} of {steps[0].size} steps", float(gaps(steps).max()))


def _labels_per_labeler(results: Results) -> Iterator[Verdict]:
    """What the most labels per labeler gain over the fewest, and the same for labels per item."""
    of_labeler, of_item = (
        {view: _gain(_by_level(results, view, axis)).mean(axis=1, keepdims=True) for view in VIEWS} for axis in (2, 3)
    )
    shown = ", ".join(f"{view} {float(of_labeler[view].mean()):+.3f}" for view in VIEWS)
    # "Only effectively" is read as: the others gain or lose less than a quarter of what SGT gains.
    others = [sign * of_labeler[view] - of_labeler["SGT"] / 4 for view in ("DGT", "PGT") for sign in (1, -1)]
    gap = max(float(gaps(other)[0]) for other in others)
    yield Verdict("all", "labels per labeler matter to SGT alone", shown, gap)
    both = f"{float(of_labeler['SGT'].mean()):.3f} against {float(of_item['SGT'].mean()):.3f}"
    gap = float(gaps(of_labeler["SGT"] - of_item["SGT"])[0])
    yield Verdict("all", "and matter less to it than labels per item", both, gap)


def _gain(by_level: Array) -> Array:
    return np.asarray(by_level[..., 0] - by_level[..., -1])


def _unstable(results: Results) -> Verdict:
    """The deviation of the swap error between runs, averaged over configurations."""
    deviation = {view: results.of_view(view).std(axis=0, ddof=1) for view in VIEWS}
    shown = ", ".join(f"{view} {float(deviation[view].mean()):.4f}" for view in VIEWS)
    # A deviation of n runs is known to 1 / √(2n) of itself.
    error = {view: np.sqrt((d**2).sum() / (2 * results.n_runs)) / len(d) for view, d in deviation.items()}
    gap = max(
        (deviation[view].mean() - deviation["SGT"].mean()) / np.sqrt(2 * (error[view] ** 2 + error["SGT"] ** 2))
        for view in ("DGT", "PGT")
    )
    return Verdict("all", "SGT is the most unstable", shown, float(gap))
