"""Coverage on real people and real judges, where labelers err together.

Grading a labeler: his votes are the predictions of a classifier, to be evaluated from the others' votes. The model of
`evaluate` has the classifier as one more rater, with the same prior as everyone; so its posterior given the others'
votes and his is the posterior given all votes, whichever rater is called the classifier. One fit with all labelers
grades all of them: the share of a labeler's votes that name the drawn truth is what `evaluate` returns as accuracy.
`same_by_evaluate` does it the long way round on a small set.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._coverage_tally import LEVEL, Section, Tally, as_text, say, share, wald
from benchmarks._data import CROWD_SETS, JUDGE_SETS, data_folder, load_crowd
from trueup.exceptions import TrueupWarning
from trueup.posteriors import DrawnEstimate

__all__ = ["cifar", "graded", "graded_labelers", "true_accuracies"]

MODELS = ("dawid-skene", "clusters")
QUICK_SETS = ("crowd-bluebird", "crowd-snow-temp")
MAJORITY = "majority, Wald"
SEED = 7


@dataclass
class Graded:
    """What was found on one set."""

    name: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    rhats: dict[str, float] = field(default_factory=dict)
    ess: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    ratio: float = float("nan")
    p_value: float = float("nan")
    speaks_up: bool = False

    @property
    def needed(self) -> bool:
        """Whether the independent model fails here: it covers less than 80%."""
        return self.tallies["dawid-skene"].coverage < 0.8


def graded_labelers(name: str, labels: tu.Labels) -> npt.NDArray[np.int64]:
    """Whom to grade: the eight with most votes, or of LLM judges every fourth by name; positions."""
    if name in JUDGE_SETS:
        names = labels.labelers.tolist()
        return np.array(sorted(range(len(names)), key=lambda k: str(names[k]))[::4])
    return np.argsort(-labels.votes_per_labeler, kind="stable")[:8]


def true_accuracies(labels: tu.Labels, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The share of each labeler's votes that are right."""
    item, labeler, answer, times = labels.vote_table()
    right = np.bincount(labeler, times * (answer == truth[item]), labels.n_labelers)
    return np.asarray(right / np.bincount(labeler, times, labels.n_labelers))


def grade(name: str, **sampling: Any) -> Graded:
    """All graded labelers of a set, by both models and by the majority of the others."""
    labels, truth = load_crowd(name)
    known = labels.items[truth >= 0]
    if len(known) < labels.n_items:
        say(f"  {name}: {labels.n_items - len(known)} items without truth are left out")
        labels, truth = labels.select(items=known), truth[truth >= 0]
    chosen = graded_labelers(name, labels)
    true = true_accuracies(labels, truth)
    found = Graded(name)
    for model in MODELS:
        started = time.perf_counter()
        draws = tu.noise.sample(labels, model, random_state=SEED, **sampling)
        found.seconds[model] = time.perf_counter() - started
        found.rhats[model], found.ess[model] = draws.rhat, draws.ess
        tally = found.tallies[model] = Tally()
        for t in chosen:
            tally.add(float(true[t]), DrawnEstimate(draws.labeler_accuracy[:, t]))
        say(f"  {name}, {model}: {found.seconds[model]:.0f} s, covers {tally.coverage:.2f}, R-hat {draws.rhat:.2f}")
    tally = found.tallies[MAJORITY] = Tally()
    for t in chosen:
        others, votes = one_against_others(labels, int(t))
        ev = tu.evaluate(votes, others, metrics=["accuracy"], method="majority", missing="ignore", random_state=SEED)
        counts = ev.confusion.mean
        accuracy = float(np.trace(counts) / counts.sum())
        tally.add_interval(float(true[t]), accuracy, wald(accuracy, float(counts.sum())))
    check = tu.noise.check_independence(labels, tu.noise.DawidSkene().fit(labels), random_state=SEED)
    found.ratio, found.p_value, found.speaks_up = check.ratio, check.p_value, check.dependent
    return found


def one_against_others(labels: tu.Labels, t: int) -> tuple[tu.Labels, dict[Any, Any]]:
    """The labels without one labeler, and his votes as predictions (the last of repeated ones)."""
    item, labeler, answer, _ = labels.vote_table()
    mine = labeler == t
    votes = dict(zip(labels.items[item[mine]].tolist(), labels.classes[answer[mine]].tolist(), strict=True))
    return labels.without_labeler(labels.labelers[t]), votes


def same_by_evaluate(name: str = "crowd-bluebird", n: int = 2, **sampling: Any) -> str:
    """Grade some labelers with `evaluate` and beside it from one fit of all labelers."""
    labels, _ = load_crowd(name)
    rows = []
    for model in MODELS:
        draws = tu.noise.sample(labels, model, random_state=SEED, **sampling)
        for t in graded_labelers(name, labels)[:n]:
            others, votes = one_against_others(labels, int(t))
            ev = tu.evaluate(
                votes, others, noise=model, metrics=["accuracy"], missing="ignore", check_dependence=False,
                random_state=SEED, **sampling,
            )  # fmt: skip
            for how, e in (("one fit", DrawnEstimate(draws.labeler_accuracy[:, t])), ("evaluate", ev["accuracy"])):
                low, high = e.interval(LEVEL)
                rows.append([model, str(labels.labelers[t]), how, f"{e.mean:.4f}", f"{low:.4f} to {high:.4f}"])
    return as_text(["model", "labeler", "by", "accuracy", "95% interval"], rows, left=(0, 1, 2))


def graded(quick: bool) -> Section:
    """Labelers and judges graded from the others' votes."""
    data_folder()
    sampling: dict[str, Any] = {"n_warmup": 200, "n_draws": 400} if quick else {}
    names = QUICK_SETS if quick else (*CROWD_SETS, *JUDGE_SETS)
    sets = [grade(name, **sampling) for name in names]
    crowd = [s for s in sets if s.name in CROWD_SETS]
    groups = [([s], s.name) for s in sets] + [(crowd, "all crowd sets")]
    if len(sets) > len(crowd):
        groups.append((sets, "with the judges"))
    kinds = (*MODELS, MAJORITY)
    rows = []
    for group, title in groups:
        for kind in kinds:
            t = sum((s.tallies[kind] for s in group), Tally())
            mixed = "" if kind == MAJORITY else f"{max(s.rhats[kind] for s in group):.2f}"
            worth = "" if kind == MAJORITY else f"{min(s.ess[kind] for s in group):.0f}"
            took = "" if kind == MAJORITY else f"{sum(s.seconds[kind] for s in group):.0f}"
            numbers = [f"{t.bias:+.3f}", f"{t.mae:.4f}", f"{t.width:.4f}", mixed, worth, took, str(len(t))]
            rows.append([title if kind == kinds[0] else "", kind, share(t), f"{100 * t.coverage_equal:.1f}", *numbers])
    head = [
        "set",
        "by",
        "covers % ± s.e.",
        "equal tails",
        "mean error",
        "mean |error|",
        "width",
        "R-hat",
        "ESS",
        "s",
        "cases",
    ]
    checks = [
        [s.name, f"{s.ratio:.2f}", f"{s.p_value:.3f}", _yes(s.speaks_up),
         f"{100 * s.tallies['dawid-skene'].coverage:.0f}", _yes(s.needed),
         "right" if s.speaks_up == s.needed else "wrong"]
        for s in sets
    ]  # fmt: skip
    heads = ["set", "joint errors / expected", "p", "speaks up", "dawid-skene covers %", "below 80", "verdict"]
    right = sum(s.speaks_up == s.needed for s in sets)
    how = ", ".join(f"{k}={v}" for k, v in sampling.items()) or "default settings"
    text = "\n\n".join(
        [
            f"Labelers and judges graded from the others' votes, accuracy on their items ({how})\n"
            "Cases of one set share its votes, so the binomial s.e. is too small for the sum over sets.",
            as_text(head, rows, left=(0, 1)),
            "The same by `evaluate` with the labeler's votes as predictions, on a small set\n"
            + same_by_evaluate(**sampling),
            f"Does check_independence speak up where the independent model fails? Right on {right} of {len(sets)}\n"
            + as_text(heads, checks),
        ]
    )
    return Section(text, {s.name: _numbers(s) for s in sets})


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _numbers(s: Graded) -> dict[str, Any]:
    found: dict[str, Any] = {kind: t.numbers() for kind, t in s.tallies.items()}
    check = {"ratio": s.ratio, "p_value": s.p_value, "speaks_up": s.speaks_up, "needed": s.needed}
    return {**found, "r_hat": s.rhats, "ess": s.ess, "seconds": s.seconds, "independence": check}


# ---------------------------------------------------------------------------------------------------- CIFAR-10H


def load_cifar() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Counts of human votes (10000, 10), the true classes, and what each network predicts."""
    import pyarrow.parquet as pq

    folder = data_folder() / "cifar10h"

    def table(path: Any) -> npt.NDArray[Any]:
        columns = pq.read_table(path)
        names = [c for c in columns.column_names if c != "item"]
        return np.column_stack([columns[c].to_numpy() for c in names])

    nets = {p.stem.removeprefix("pred_"): table(p).argmax(axis=1) for p in sorted(folder.glob("pred_*.parquet"))}
    return (
        table(folder / "human_counts.parquet").astype(np.int64),
        table(folder / "truth.parquet")[:, -1].astype(int),
        nets,
    )


def draw_votes(counts: npt.NDArray[np.int64], n_votes: int, *, seed: int) -> npt.NDArray[np.int64]:
    """Some of the votes on each image, drawn without replacement."""
    rng = np.random.default_rng(seed)
    return np.array([rng.multivariate_hypergeometric(row, n_votes) for row in counts])


def cifar(quick: bool) -> Section:
    """The error of five networks from one, two and three anonymous human votes an image."""
    counts, truth, nets = load_cifar()
    if quick:
        counts, truth, nets = counts[:2000], truth[:2000], {k: v[:2000] for k, v in nets.items()}
    repetitions = 1 if quick else 3
    sampling = {"n_chains": 2, "n_warmup": 200, "n_draws": 400} if quick else {"n_warmup": 300, "n_draws": 700}
    rows, summary, numbers = [], [], {}
    for n_votes, noise in ((3, "dawid-skene"), (2, "dawid-skene"), (1, "dawid-skene"), (1, "clusters")):
        tally, bounds = Tally(), Tally()
        for repetition in range(repetitions):
            labels = drawn_labels(counts, n_votes, seed=10 * n_votes + repetition)
            for name, predicted in nets.items():
                row = _network(labels, predicted, truth, noise, (tally, bounds), **sampling)
                if repetition == 0:
                    rows.append([str(n_votes), noise, name, *row])
        held = [f"{sum(t.held)} of {len(t)}" for t in (tally, bounds)]
        numbers_of = [
            f"{tally.mae:.3f}",
            f"{tally.bias:+.3f}",
            f"{tally.width:.2f}",
            held[0],
            f"{bounds.width:.2f}",
            held[1],
        ]
        summary.append([str(n_votes), noise, *numbers_of])
        numbers[f"{n_votes}, {noise}"] = {**tally.numbers(), "bounds": bounds.numbers()}
        say(f"  {n_votes} votes, {noise}: mean |error| {tally.mae:.3f} points, held {held[0]}")
    how = ", ".join(f"{k}={v}" for k, v in sampling.items())
    text = "\n\n".join(
        [
            f"CIFAR-10H: error of five networks on {len(truth)} images from anonymous human votes ({how})\n"
            f"Of {repetitions} draws of the votes, the first:",
            as_text(_NETWORK_HEAD, rows, left=(0, 1, 2)),
            f"All {repetitions} draws:",
            as_text(_VOTES_HEAD, summary, left=(0, 1)),
            "Target: mean error at most 0.1 points from three votes and 0.3 from two; from one vote an interval that "
            "holds\nat least four of five.",
        ]
    )
    return Section(text, numbers)


_NETWORK_HEAD = [
    "votes",
    "noise",
    "network",
    "true error %",
    "estimate",
    "95% interval",
    "holds",
    "sensitivity",
    "holds",
    "R-hat",
]
_VOTES_HEAD = ["votes", "noise", "mean |error|, points", "mean error", "width", "hold", "sensitivity: width", "hold"]


def drawn_labels(counts: npt.NDArray[np.int64], n_votes: int, *, seed: int) -> tu.Labels:
    """Labels of an anonymous crowd: some of the votes on each image."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        return tu.Labels.from_counts(draw_votes(counts, n_votes, seed=seed), classes=range(counts.shape[1]))


def _network(
    labels: tu.Labels,
    predicted: npt.NDArray[np.int64],
    truth: npt.NDArray[np.int64],
    noise: str,
    tallies: tuple[Tally, Tally],
    **sampling: Any,
) -> list[str]:
    """Tally the error of one network in percent: the interval, and the bounds if errors may depend on each other."""
    ev = tu.evaluate(
        predicted,
        labels,
        noise=noise,
        metrics=["accuracy"],
        check_dependence=False,
        random_state=SEED,
        **sampling,
    )
    true = 100 * float((predicted != truth).mean())
    error = 100 * (1 - ev["accuracy"].mean)
    low, high = (100 * (1 - end) for end in ev["accuracy"].interval(LEVEL)[::-1])
    least, most = (100 * bound for bound in ev.sensitivity().bounds)
    tallies[0].add_interval(true, error, (low, high))
    tallies[1].add_interval(true, (least + most) / 2, (least, most))
    held = [_yes(tally.held[-1]) for tally in tallies]
    shown = [f"{low:.2f} to {high:.2f}", held[0], f"{least:.2f} to {most:.2f}", held[1]]
    return [f"{true:.2f}", f"{error:.2f}", *shown, f"{ev.solution.diagnostics['r_hat']:.2f}"]
