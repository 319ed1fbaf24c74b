"""What the library says of labelers graded as systems, with no checked item and with a few, beside its rivals."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

import trueup as tu
from benchmarks._vetting_rivals import Sample, ppi_of_pool
from experiments.real_crowds.sets import CrowdSet, Grading, grade
from trueup.answers.compare import compare_again
from trueup.answers.evaluate import evaluate_again
from trueup.core.prior import to_angle
from trueup.exceptions import silenced_warnings
from trueup.posteriors import wilson

__all__ = ["N_CHECKED", "active_rows", "auc_rows", "deviations", "pair_rows", "system_rows"]

Row = dict[str, Any]
Floats = npt.NDArray[np.float64]

N_CHECKED = (0, 5, 10, 20, 40)
N_REPETITIONS = 4  # draws of checked items of each case
N_ACTIVE = 50
_MOST_PAIRS = 3
_LEVEL = 0.95


def deviations(crowd: CrowdSet) -> list[Row]:
    """How far each accuracy is from what votes let expect, on the scale of angles: what the prior is fitted to."""
    rows = []
    for graded in _gradings(crowd, 1):
        base = _plain(graded, tu.CrowdPrior()).core.base
        expected = base[np.arange(len(graded.truth)), graded.said[0]].mean()
        right = np.mean(graded.said[0] == graded.truth)
        rows.append(
            {"family": crowd.family, "set": crowd.name, "deviation": float(to_angle(right) - to_angle(expected))}
        )
    return rows


def system_rows(crowd: CrowdSet, prior: tu.CrowdPrior) -> list[Row]:
    """Accuracy, and recall, precision, F1 and share of a class, after so many checks; PPI++ and Wilson beside."""
    rows = []
    for graded in _gradings(crowd, 1):
        plain, one_class = _plain(graded, prior), _graded_class(graded)
        true = _true_values(graded.said[0], graded.truth, one_class)
        for n, k, at in _draws(graded):
            ev = evaluate_again(plain, graded.checked(at), random_state=k)
            rows += [_row(graded, name, n, "trueup", ev[name].interval(_LEVEL), true[name]) for name in plain.metrics]
            if n:
                right = (graded.said[0] == graded.truth).astype(float)
                rows.append(_row(graded, "accuracy", n, "Wilson", wilson(right[at].sum(), n, _LEVEL), true["accuracy"]))
                expected = plain.core.base[np.arange(len(right)), graded.said[0]]
                rest = np.setdiff1d(np.arange(len(right)), at)
                _, ends = ppi_of_pool(Sample(right[at], expected[at], expected[rest]))
                rows.append(_row(graded, "accuracy", n, "PPI++", ends, true["accuracy"]))
    return rows


def pair_rows(crowd: CrowdSet, prior: tu.CrowdPrior) -> list[Row]:
    """The accuracy of the first of two labelers, and their difference, after so many checks."""
    rows = []
    for graded in _gradings(crowd, 2):
        systems = {f"s{k}": graded.classes_of(said) for k, said in enumerate(graded.said)}
        right = [float(np.mean(said == graded.truth)) for said in graded.said]
        with silenced_warnings():
            plain = tu.compare(systems, graded.labels, prior=prior, check_dependence=False)
        for n, k, at in _draws(graded):
            cmp = compare_again(plain, graded.checked(at), random_state=k)
            rows.append(_row(graded, "accuracy", n, "trueup", cmp["s0"].interval(_LEVEL), right[0]))
            difference = cmp.difference("s0", "s1").interval(_LEVEL)
            rows.append(_row(graded, "difference", n, "trueup", difference, right[0] - right[1]))
            if n:
                gains = (graded.said[0] == graded.truth).astype(float) - (graded.said[1] == graded.truth)
                half = 1.96 * np.sqrt(gains[at].var(ddof=1) / n * (1 - n / len(gains)))
                ends = (gains[at].mean() - half, gains[at].mean() + half)
                rows.append(_row(graded, "difference", n, "checks alone", ends, right[0] - right[1]))
    return rows


def auc_rows(crowd: CrowdSet, prior: tu.CrowdPrior) -> list[Row]:
    """The AUC of a quarter of the labelers, who score by their share of votes, by the votes of the others."""
    labels = crowd.labels
    if labels.n_classes != 2 or labels.n_labelers < 8:
        return []
    known = np.flatnonzero(crowd.truth >= 0)
    rows = []
    for part in range(2):
        rng = np.random.default_rng([part, labels.n_items])
        scorers = rng.permutation(labels.n_labelers)[: labels.n_labelers // 4]
        of_scorers = labels.select(labelers=labels.labelers[np.sort(scorers)].tolist()).answer_counts
        rest = np.setdiff1d(np.arange(labels.n_labelers), scorers)
        at = known[of_scorers[known].sum(axis=1) > 0]
        at = np.sort(rng.choice(at, min(len(at), 400), replace=False))
        truth = crowd.truth[at]
        if len(at) < 60 or np.ptp(truth) == 0:
            continue
        scores = of_scorers[at, 1] / of_scorers[at, :2].sum(axis=1)
        others = labels.select(items=labels.items[at].tolist(), labelers=labels.labelers[rest].tolist())
        graded = Grading(crowd, (f"quarter {part}",), others, truth[None], truth)
        predictions = tu.Predictions.from_scores(scores, threshold=0.5)
        with silenced_warnings():
            plain = tu.evaluate(predictions, others, metrics=["auc"], prior=prior, check_dependence=False)
        true = float(plain.metric("auc").of_outputs(truth[None], scores, positive=1)[0])
        for n, k, drawn in _draws(graded):
            ev = evaluate_again(plain, graded.checked(drawn), random_state=k)
            rows.append(_row(graded, "AUC", n, "trueup", ev["auc"].interval(_LEVEL), true))
    return rows


def active_rows(crowd: CrowdSet, prior: tu.CrowdPrior) -> list[Row]:
    """The accuracy after 50 answers that `ActiveTest` asks for, and after a few; Wilson on 50 random answers."""
    rows = []
    for graded in _gradings(crowd, 1):
        if len(graded.truth) < 2 * N_ACTIVE:
            continue
        with silenced_warnings():
            base = tu.ActiveTest(graded.classes_of(graded.said[0]), graded.labels, random_state=0)
        truth = dict(zip(graded.labels.items.tolist(), graded.classes_of(graded.truth), strict=True))
        right = (graded.said[0] == graded.truth).astype(float)
        for k in range(2):
            test = base.restart(random_state=k)
            for n in (5, 10, 20, N_ACTIVE):
                while test.n_vetted < n:
                    asked = test.ask(1)
                    test.tell({item: truth[item] for item in asked})
                rows.append(_row(graded, "accuracy", n, "ActiveTest", test.estimate().interval(_LEVEL), right.mean()))
            at = graded.rng(7, k).choice(len(right), N_ACTIVE, replace=False)
            ends = wilson(right[at].sum(), N_ACTIVE, _LEVEL)
            rows.append(_row(graded, "accuracy", N_ACTIVE, "Wilson", ends, right.mean()))
    return rows


def _gradings(crowd: CrowdSet, n_systems: int) -> list[Grading]:
    """The graded labelers one by one, or some pairs of them."""
    groups = list(combinations(crowd.graded, n_systems))[: len(crowd.graded) if n_systems == 1 else _MOST_PAIRS]
    return [graded for graded in (grade(crowd, *group) for group in groups) if graded is not None]


def _plain(graded: Grading, prior: tu.CrowdPrior) -> tu.Evaluation:
    one_class = graded.labels.classes.tolist()[_graded_class(graded)]
    metrics = {"accuracy": "accuracy", "share": f"prevalence:{one_class}"}
    metrics |= {name: f"{name}:{one_class}" for name in ("recall", "precision", "f1")}
    with silenced_warnings():
        return tu.evaluate(
            graded.classes_of(graded.said[0]), graded.labels, metrics=metrics, prior=prior, check_dependence=False
        )


def _graded_class(graded: Grading) -> int:
    """The class that recall and the like are about: the second of two, or that with most votes."""
    counts = graded.labels.answer_counts[:, : graded.labels.n_classes].sum(axis=0)
    return 1 if len(counts) == 2 else int(counts.argmax())


def _true_values(said: npt.NDArray[Any], truth: npt.NDArray[Any], one_class: int) -> dict[str, float]:
    is_said, is_true = said == one_class, truth == one_class
    hits, n_said, n_true = float(np.sum(is_said & is_true)), float(is_said.sum()), float(is_true.sum())
    return {
        "accuracy": float(np.mean(said == truth)),
        "share": n_true / len(truth),
        "recall": hits / n_true if n_true else np.nan,
        "precision": hits / n_said if n_said else np.nan,
        "f1": 2 * hits / (n_said + n_true) if n_said + n_true else np.nan,
    }


def _draws(graded: Grading) -> list[tuple[int, int, npt.NDArray[np.int64]]]:
    """How many items are checked, the number of the draw, and which; half of the items at most."""
    size = len(graded.truth)
    return [
        (n, k, graded.rng(n, k).choice(size, n, replace=False))
        for n in N_CHECKED
        for k in range(N_REPETITIONS if n else 1)
        if n <= size / 2
    ]


def _row(graded: Grading, metric: str, n: int, answer: str, ends: tuple[float, float], true: float) -> Row:
    low, high = ends
    return {
        "family": graded.crowd.family,
        "set": graded.crowd.name,
        "metric": metric,
        "n": n,
        "answer": answer,
        "holds": bool(low - 1e-9 <= true <= high + 1e-9) if np.isfinite(low) and np.isfinite(true) else None,
        "width": float(high - low),
    }
