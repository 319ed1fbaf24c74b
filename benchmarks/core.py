"""Does the plain answer keep its word on simulated data, and how fast is it?

Run ``python -m benchmarks.core [section ...] [--runs N] [--quick] [--processes 1] [--folder DIR] [--json out.json]``;
without names all sections are run. Every run is seeded, and kept in a folder as it ends, so that an interrupted
measurement goes on where it stopped; runs of other code are not taken up, and quick ones not kept. ``±`` is one
standard error. What real sets say is measured by ``experiments.real_crowds``.

Sections: checks (accuracy of one system), pairs (two systems), smooth (one checked item more), advice (the width after
as many checks as were advised), sparse (few votes, many classes), speed (each call in a process of its own, without
compiled code).
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

import trueup as tu
from benchmarks._answers import (
    coverage_table,
    draw_gold,
    row_of,
    rows_of_rivals,
    select,
    tally_of,
    width_over,
    with_checks,
)
from benchmarks._coverage_tally import as_text, share
from benchmarks._runs import Case, Figure, Row, run_figures
from benchmarks._sections import apart
from benchmarks._worlds import WORLDS, Codes, World, better_system, equal_system, make
from trueup.answers.compare import compare_again
from trueup.answers.evaluate import evaluate_again
from trueup.training import scorer

OURS, RIVAL = "trueup", "PPI++, pool"
N_ITEMS = 300
N_CHECKED = (0, 10, 20, 40)
N_SPARSE = 400
N_CLASSES = 10
N_CLOSE, N_EXCHANGED, GAIN = 20, 10, 0.03


# ------------------------------------------------------------------ accuracy of one system


def run_checks(case: Case) -> list[Row]:
    """The plain answer after so many checks, and what others make of the same ones."""
    world = make(case.world, N_ITEMS, case.seed)
    rng = np.random.default_rng([case.seed, 16])
    plain = tu.evaluate(world.predictions, world.labels, check_dependence=False, random_state=case.seed)
    assert plain.core is not None
    right = (world.predictions == world.truth).astype(np.int64)
    p_right = plain.core.base[np.arange(N_ITEMS), world.predictions]
    rows = []
    for n in N_CHECKED:
        labels, at = draw_gold(world.labels, world.truth, n, rng)
        ev = evaluate_again(plain, labels) if n else plain
        rows.append(row_of(OURS, world.accuracy, ev["accuracy"], n=n))
        rows += rows_of_rivals(right, p_right, at, n=n) if n else []
    return rows


def summarise_checks(rows: Sequence[Row]) -> str:
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    groups = [(f"{world}, {n} checked", {"world": world, "n": n}) for world in worlds for n in N_CHECKED]
    ratios = {"× PPI++": width_over(RIVAL)}
    text = coverage_table(rows, groups, (OURS, RIVAL, "Wilson"), ratios=ratios)
    return (
        f"Accuracy of one system: two classes, {N_ITEMS} items, 5 labelers; the accuracy on exactly these items. PPI++ "
        f"predicts with\nP(right) of the base\n\n{text}\n\nTarget: a misled crowd with 20 checked items holds at least "
        "92%; independent errors with 40 are at most 1.02 times as wide as\nPPI++."
    )


# ------------------------------------------------------------------ two systems


def _pair_rows(world: World, first: Codes, second: Codes, pair: str, seed: int) -> list[Row]:
    true = float(np.mean(second == world.truth) - np.mean(first == world.truth))
    plain = tu.compare({"a": first, "b": second}, world.labels, check_dependence=False, random_state=seed)
    labels, _ = draw_gold(world.labels, world.truth, N_CLOSE, np.random.default_rng([seed, 16]))
    answers = {0: plain, N_CLOSE: compare_again(plain, labels)}
    return [
        row_of(OURS, true, cmp.difference("b", "a"), pair=pair, n=n, differ=cmp.is_significant("b", "a"))
        for n, cmp in answers.items()
    ]


def run_pairs(case: Case) -> list[Row]:
    """A system that errs with the crowd and a better one; and two that err with the crowd, and are equal."""
    world = make(case.world, N_ITEMS, case.seed)
    rng = np.random.default_rng([case.seed, 3])
    better = better_system(world, GAIN, rng)
    equals = equal_system(world, N_EXCHANGED, rng), equal_system(world, N_EXCHANGED, rng)
    return [
        *_pair_rows(world, world.predictions, better, "better", case.seed),
        *_pair_rows(world, *equals, "equal", case.seed),
    ]


def summarise_pairs(rows: Sequence[Row]) -> str:
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        for pair in ("better", "equal"):
            for n in (0, N_CLOSE):
                own = select(rows, world=world, pair=pair, n=n)
                tally = tally_of(own)
                wrong = float(np.mean([row["high"] < 0 for row in own]))
                apart = float(np.mean([row["differ"] for row in own]))
                cells = [f"{100 * wrong:.1f}", f"{100 * apart:.1f}", f"{tally.bias:+.4f}", f"{tally.width:.3f}"]
                lines.append([f"{world}, {pair}, {n} checked", share(tally), *cells, str(len(own))])
    head = ["world, second system", "covers % ± s.e.", "wrong side %", "called different %", "mean error", "width"]
    return (
        f"Two systems on {N_ITEMS} items of 5 labelers who err together. Better: the first errs with the crowd, the "
        f"second is {100 * GAIN:.0f} points\nbetter and errs on items of its own. Equal: both err with the crowd but "
        f"for {N_EXCHANGED} items each, equally often. Difference of the\nsecond over the first, on exactly these "
        f"items\n\n{as_text([*head, 'runs'], lines)}\n\nTarget: wholly on the wrong side in at most 5%; equals are "
        "called different in at most 5%."
    )


# ------------------------------------------------------------------ one checked item more


def run_smooth(case: Case) -> list[Row]:
    """Widths while items are checked one by one, up to half of them."""
    name, _, size = case.world.partition(", ")
    world = make(name, int(size), case.seed)
    options: dict[str, Any] = {"metrics": ["accuracy"], "check_dependence": False, "random_state": case.seed}
    plain = tu.evaluate(world.predictions, world.labels, **options)
    order = np.random.default_rng([case.seed, 7]).permutation(int(size))
    widths = []
    for n in range(int(size) // 2 + 1):
        labels = with_checks(world.labels, world.truth, order[:n]) if n else world.labels
        low, high = evaluate_again(plain, labels)["accuracy"].interval(0.95)
        widths.append(high - low)
    return [{"widths": widths}]


def summarise_smooth(rows: Sequence[Row]) -> str:
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        widths = np.array([row["widths"] for row in select(rows, world=world)])
        change = widths.mean(axis=0)[1:] / widths.mean(axis=0)[:-1] - 1
        worst = int(np.abs(change).argmax())
        before, after = widths[:, worst], widths[:, worst + 1]
        error = (after - before).std() / math.sqrt(len(widths)) / before.mean()
        cells = [f"{100 * change[worst]:+.1f} ± {100 * error:.1f}", f"{worst} to {worst + 1}"]
        shown = [f"{widths[:, n].mean():.3f}" for n in (0, 1, 5, 10, 20, 40)]
        lines.append([f"{world} items", *cells, *shown, str(len(widths))])
    head = ["world", "largest change %", "checks", *(f"width {n}" for n in (0, 1, 5, 10, 20, 40)), "runs"]
    return (
        "Mean width of the interval of accuracy while items are checked one by one at random, up to half of them\n\n"
        f"{as_text(head, lines)}\n\nTarget: one checked item more changes the mean width by less than 10%."
    )


# ------------------------------------------------------------------ as many checks as were advised


def outputs_of_prompts(seed: int) -> tuple[tu.Labels, Codes, Codes]:
    """Verdicts on three systems' outputs for each of 150 prompts, the truth, and the system of each output.

    Judges are misled together, on all outputs of a prompt.
    """
    rng = np.random.default_rng([seed, 5])
    prompt, system = np.repeat(np.arange(150), 3), np.tile(np.arange(3), 150)
    hard, misled = rng.normal(0, 1.5, 150)[prompt], np.where(rng.random(150) < 0.1, 0.6, 0.05)[prompt]
    truth = (rng.random(450) < expit(np.array([1.4, 1.0, 0.6])[system] + hard)).astype(np.int64)
    wrong = (rng.random(450) < misled)[:, None] | (rng.random((450, 4)) < 0.12)
    labels = tu.Labels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]), classes=[0, 1])
    items = {"item": labels.items.tolist(), "prompt": prompt.tolist(), "system": system.tolist()}
    return labels.with_items(items), truth, system


def run_advice(case: Case) -> list[Row]:
    """The mean width after as many checks as a share advises, beside the width that was said."""
    by, cluster = ("system" if "by system" in case.world else None), ("prompt" if "clusters" in case.world else None)
    labels, truth, system = outputs_of_prompts(case.seed)
    rng = np.random.default_rng([case.seed, 6])
    shares = tu.share(labels, of=1, by=by, cluster=cluster, check_dependence=False, random_state=case.seed)
    groups = [(n, np.flatnonzero((by is None) | (system == name))) for name, n in shares.vettings.items()]
    drawn = np.concatenate([rng.permutation(members)[:n] for n, members in groups])
    checked = labels.with_gold({int(i): int(truth[i]) for i in drawn}, drawn="random")
    again = replace(shares, evaluation=evaluate_again(shares.evaluation, checked))
    widths = [float(np.diff(estimate.interval(0.95))[0]) for estimate in again.values()]
    return [{"n": len(drawn), "said": shares.vetting_width, "came": float(np.mean(widths))}]


def summarise_advice(rows: Sequence[Row]) -> str:
    lines = []
    for world in dict.fromkeys(row["world"] for row in rows):
        n, said, came = (np.array([row[key] for row in select(rows, world=world)]) for key in ("n", "said", "came"))
        ratio, error = came / said, float((came / said).std() / math.sqrt(len(n)))
        cells = [f"{n.mean():.0f}", f"{said.mean():.3f}", f"{came.mean():.3f}", f"{ratio.mean():.2f} ± {error:.2f}"]
        lines.append([world, *cells, str(len(n))])
    head = ["share", "checks", "width said", "width that came", "that came / said", "runs"]
    return (
        "Three systems' outputs for each of 150 prompts, four judges who are misled together on prompts: as many "
        f"checked items\nas the share of passes advises\n\n{as_text(head, lines)}\n\nTarget: within 15% in the mean of "
        "100 runs."
    )


# ------------------------------------------------------------------ few votes, many classes


class Repeater(ClassifierMixin, BaseEstimator):
    """A classifier that repeats the class that stands in the first column of X."""

    def __init__(self, classes: Any) -> None:
        self.classes = classes
        self.classes_ = np.asarray(classes)

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        return self.classes_[np.asarray(X)[:, 0].astype(int)]


def sparse_world(n_items: int, seed: int) -> World:
    """2.4 votes an item of 40 labelers who are right with 50 to 90%, ten classes, independent errors."""
    labelers = {"n_labelers": 40, "votes_per_item": 3, "accuracy": (0.5, 0.9)}
    data = tu.simulate.dawid_skene(n_items=n_items, n_classes=N_CLASSES, **labelers, random_state=seed)
    item, labeler, answer, _ = data.labels.vote_table()
    is_third = np.arange(len(item)) - np.searchsorted(item, item) == 2
    kept = ~is_third | (np.random.default_rng([seed, 4]).random(len(item)) < 0.4)
    votes = {"item": item[kept], "labeler": labeler[kept], "label": answer[kept]}
    assert data.predictions is not None
    return World(tu.Labels.from_frame(votes, classes=range(N_CLASSES)), data.truth, data.predictions)


def run_sparse(case: Case) -> list[Row]:
    """Accuracy by the plain call, by a model that is named, and by the scorer of cross-validation."""
    world = sparse_world(N_SPARSE, case.seed)
    options: dict[str, Any] = {"metrics": ["accuracy"], "check_dependence": False, "random_state": case.seed}
    rows = []
    for name, noise in ((OURS, None), ("dawid-skene", "dawid-skene"), ("one-coin", "one-coin")):
        ev = tu.evaluate(world.predictions, world.labels, noise=noise, **options)
        rows.append(row_of(name, world.accuracy, ev["accuracy"]))
    judge = scorer("accuracy", world.labels, random_state=case.seed)
    model = Repeater(range(N_CLASSES))
    rows.append(row_of("training.scorer", world.accuracy, judge.estimate(model, world.predictions[:, None])))
    return rows


def summarise_sparse(rows: Sequence[Row]) -> str:
    answers = list(dict.fromkeys(row["answer"] for row in rows))
    text = coverage_table(rows, [("independent", {})], answers)
    return (
        f"Few votes and many classes: {N_SPARSE} items, 2.4 votes an item of 40 labelers, {N_CLASSES} classes, "
        f"independent errors, votes alone\n\n{text}\n\nTarget: the plain call holds at least 92%."
    )


# ------------------------------------------------------------------ time

# What is measured, and the seconds and bytes that are asked of it. Items, labelers, votes an item and classes follow.
_SIZES: dict[str, tuple[float, float, tuple[int, int, int, int]]] = {
    "500 items × 5 votes": (0.3, math.inf, (500, 20, 5, 2)),
    "600 × 3 votes, 16 classes": (0.5, math.inf, (600, 20, 3, 16)),
    "one judge, 60 checks": (0.1, math.inf, (600, 1, 1, 2)),
    "another look": (0.005, math.inf, (500, 20, 5, 2)),
    "10⁵ votes": (2.0, math.inf, (20_000, 200, 5, 2)),
    "10⁶ votes": (10.0, math.inf, (200_000, 200, 5, 2)),
    "10⁷ votes": (60.0, 2e9, (2_000_000, 200, 5, 2)),
    "2,000 classes, 6,000 votes": (10.0, math.inf, (1_200, 200, 5, 2_000)),
}
_REPEATED = 5  # calls of those that take seconds at most


def write_speed(
    file: str, n_items: int, n_labelers: int, per_item: int, n_classes: int, n_checks: int, seed: int
) -> None:
    """Write votes, eight times checked items, predictions and their true accuracy."""
    labelers = {"n_labelers": n_labelers, "votes_per_item": per_item, "accuracy": (0.6, 0.9)}
    data = tu.simulate.dawid_skene(n_items=n_items, n_classes=n_classes, **labelers, random_state=seed)
    rng = np.random.default_rng(seed)
    checked = [draw_gold(data.labels, data.truth, n_checks, rng)[0] for _ in range(8)] if n_checks else []
    Path(file).write_bytes(pickle.dumps((data.labels, checked, data.predictions, data.accuracy)))


# Reading the votes and importing are not counted. The first call is cold: nothing was called before it.
_MEASURE = """
import pickle, sys, time, warnings
import trueup as tu
from benchmarks._peer_tasks import peak_bytes
from trueup.answers.evaluate import evaluate_again
warnings.simplefilter("ignore")
with open(sys.argv[1], "rb") as file:
    labels, checked, predictions, true = pickle.load(file)
is_look, n_calls = sys.argv[2] == "another look", int(sys.argv[3])
first = tu.evaluate(predictions, labels, check_dependence=False) if is_look else None
for k in range(n_calls):
    known = checked[k] if checked else labels
    started = time.perf_counter()
    ev = evaluate_again(first, known) if is_look else tu.evaluate(predictions, known)
    low, high = ev["accuracy"].interval(0.95)
    print(time.perf_counter() - started, low, high)
print(peak_bytes(), true)
"""


def run_speed(case: Case) -> list[Row]:
    """Seconds of the first call and of the best of some more, and the most memory."""
    _, _, (n_items, n_labelers, per_item, n_classes) = _SIZES[case.world]
    n_checks = {"one judge, 60 checks": 60, "another look": 20}.get(case.world, 0)
    n_calls = 1 + _REPEATED if n_items * per_item <= 100_000 else 1
    environment = {"TRUEUP_ENGINE": "scipy", "OMP_NUM_THREADS": "2"}
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "votes.pickle")
        apart(write_speed, file, n_items, n_labelers, per_item, n_classes, n_checks, case.seed, **environment)
        command = [sys.executable, "-c", _MEASURE, file, case.world, str(n_calls)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
    *calls, last = ([float(word) for word in line.split()] for line in done.stdout.splitlines())
    seconds = [call[0] for call in calls]
    warm = min(seconds[1:], default=math.nan)
    low, high = calls[0][1:]
    return [{"cold": seconds[0], "warm": warm, "low": low, "high": high, "peak": last[0], "true": last[1]}]


def summarise_speed(rows: Sequence[Row]) -> str:
    lines = []
    for name in dict.fromkeys(row["world"] for row in rows):
        own = select(rows, world=name)
        seconds, memory, _ = _SIZES[name]
        cold, peak = (float(np.median([row[key] for row in own])) for key in ("cold", "peak"))
        warm = min(row["warm"] for row in own)
        asked = f"{seconds:g}" + (f", {memory / 1e9:g} GB" if math.isfinite(memory) else "")
        cells = [f"{cold:.3f}", "–" if math.isnan(warm) else f"{warm:.3f}", f"{peak / 1e9:.2f}", asked]
        lines.append([name, *cells, f"{own[0]['low']:.3f} to {own[0]['high']:.3f}", f"{own[0]['true']:.3f}"])
    head = ["data", "cold s", "warm s", "peak GB", "asked s", "95% interval", "true"]
    return (
        "A plain `evaluate` with all that it does by default, without compiled code, a process for each: the first "
        "call, and the best of\nfive more. Another look: other checked items for the same votes. Memory with the "
        f"libraries and the votes themselves\n\n{as_text(head, lines)}"
    )


SMOOTH_WORLDS = ("independent, 100", "independent, 200", "misled crowd, 100", "misled crowd, 200")
ADVICE_WORLDS = ("of all", "by system", "of all, clusters", "by system, clusters")
FIGURES: dict[str, Figure] = {
    "checks": Figure(tuple(WORLDS), run_checks, summarise_checks, 400, 2, 160_000),
    "pairs": Figure(("families", "difficulty"), run_pairs, summarise_pairs, 400, 2, 163_000),
    "smooth": Figure(SMOOTH_WORLDS, run_smooth, summarise_smooth, 100, 1, 164_000, SMOOTH_WORLDS[:1]),
    "advice": Figure(ADVICE_WORLDS, run_advice, summarise_advice, 100, 1, 167_000),
    "sparse": Figure(("independent",), run_sparse, summarise_sparse, 400, 1, 165_000),
    "speed": Figure(tuple(_SIZES), run_speed, summarise_speed, 3, 1, 166_000, tuple(_SIZES)[:5]),
}
# What else runs would be measured too.
main = partial(run_figures, "core", __doc__, FIGURES, one_at_a_time={"speed"})


if __name__ == "__main__":
    main()
