"""Cleaning: is fast expected model improvement the same as retraining all models, and how much quicker is it?

Run ``python -m benchmarks.cleaning [section ...] [--quick] [--json out.json]``; without names all sections are run.
Everything is simulated and seeded. Times are those of this machine; ratios are of times in the same run. Set
OMP_NUM_THREADS=1: on problems this small, threads of the linear algebra cost both ways of training more than they give.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg, special
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import trueup as tu
from benchmarks._cleaning_curves import curves, replay
from benchmarks._coverage_tally import as_text, tracked
from benchmarks._peer_tasks import peak_bytes
from benchmarks._sections import apart, run_sections
from trueup._base.types import Codes, Floats
from trueup.cleaning import (
    EMI,
    UnbiasedScorer,
    expected_improvement,
    flip_candidates,
    flip_models,
    model_uncertainty,
    true_class_probabilities,
)
from trueup.cleaning.strategies import believed_scorer, believed_truths

TOP = 50
# Section 6.3 of the paper: most labels of one kind, the rest of another.
NOISE = np.array([[[0.6, 0.4], [0.2, 0.8]], [[0.8, 0.2], [0.2, 0.8]]])


@dataclass(frozen=True)
class Task:
    """Noisy labels of training and validation items."""

    X: Floats
    y: Codes
    X_val: Floats
    scorer: UnbiasedScorer
    chances: Floats

    def emi(self, estimator: Any, **options: Any) -> EMI:
        """The expected improvement of each training label."""
        return expected_improvement(estimator, self.X, self.y, self.X_val, self.scorer, self.chances, **options)


def make(n: int, n_val: int, d: int, seed: int, n_classes: int = 2) -> Task:
    """Gaussian classes, labels with a mix of two noise rates."""
    rng = np.random.default_rng([seed, n, d])
    truth = rng.integers(0, n_classes, n + n_val)
    X = rng.normal(size=(n + n_val, d))
    X[np.arange(n + n_val), truth] += 1.9
    kind = (rng.random(n + n_val) < 0.5).astype(int)
    noise = NOISE if n_classes == 2 else np.stack([a * np.eye(n_classes) + (1 - a) / n_classes for a in (0.5, 0.7)])
    y = (rng.random(n + n_val)[:, None] > noise[kind, truth].cumsum(axis=1)).sum(axis=1)
    scorer = UnbiasedScorer(y[n:], noise[kind[n:]])
    prior = np.full(n_classes, 1 / n_classes)
    return Task(X[:n], y[:n], X[n:], scorer, true_class_probabilities(y[:n], noise[kind[:n]], prior))


def timed(
    work: Callable[[], Any], repeats: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The median time, and the last result."""
    took = []
    for _ in range(repeats):
        started = clock()
        found = work()
        took.append(clock() - started)
    return float(np.median(took)), found


def compared(label: str, n: int, d: int, seeds: int, estimator: Any, n_classes: int = 2) -> list[list[str]]:
    """Fast against full retraining: one fit for each label, from scratch, in one process."""
    # Whether the first choice is the same, and the share of the top that is in common.
    found: dict[bool, list[tuple[bool, float]]] = {True: [], False: []}
    ratios = []
    for seed in tracked(range(seeds), f"{label}, {d} features"):
        task = make(n, n, d, seed, n_classes)
        task.emi(estimator)  # the first call loads libraries
        quick, _ = timed(lambda task=task: task.emi(estimator), 5)
        for weigh in (True, False):
            fast = task.emi(estimator, weigh=weigh)
            if weigh:
                options = {"how": "exact", "warm_start": False}
                slow, full = timed(lambda task=task, options=options: task.emi(estimator, **options))
            else:  # the same models, ranked by the improvement alone
                full = EMI(**{**vars(full), "score": full.improvement})
            top = min(TOP, len(full.items))
            common = np.intersect1d(fast.best(top), full.best(top))
            found[weigh].append((bool(fast.best()[0] == full.best()[0]), len(common) / top))
        ratios.append(slow / quick)
    rows = []
    for weigh, agreements in found.items():
        same, shares = zip(*agreements, strict=True)
        ranked = "improvement × uncertainty" if weigh else "improvement alone"
        cells = [f"{sum(same)} of {seeds}", f"{100 * np.mean(shares):.1f} ({100 * min(shares):.0f})"]
        rows.append([label, str(d), ranked, *cells, f"{np.median(ratios):.0f} ({min(ratios):.0f})"])
    return rows


def fast(quick: bool) -> str:
    n, seeds = (200, 1) if quick else (2000, 3)
    exact = {"tol": 1e-8, "max_iter": 10_000}
    settings: list[tuple[str, int, Any]] = [
        ("logistic regression", 2, LogisticRegression(**exact)),
        ("logistic regression", 20, LogisticRegression(**exact)),
        ("the same, default tolerance", 20, LogisticRegression()),
        ("multinomial, 3 classes", 20, LogisticRegression(**exact)),
        ("linear SVM", 20, LinearSVC(dual=False, **exact)),
        ("ridge", 20, RidgeClassifier()),
        ("Gaussian naive Bayes", 20, GaussianNB()),
    ]
    rows = []
    for position, (label, d, estimator) in enumerate(settings):
        n_classes = 3 if "3 classes" in label else 2
        rows += compared(label, n, d, seeds if position < 2 else 1, estimator, n_classes)
    head = [f"N = {n}", "features", "ranked by", "same first choice", f"top {TOP} in common % (worst)"]
    return as_text([*head, "times faster (worst)"], rows, left=(0, 2))


def decisions(quick: bool) -> str:
    """How long one decision takes, the base model's fit included."""
    rows = []
    for n, n_val in ((500, 500),) if quick else ((5000, 5000), (10_000, 10_000)):
        for d in (2, 20):
            task = make(n, n_val, d, 0)
            task.emi(LogisticRegression())
            seconds, _ = timed(lambda task=task: task.emi(LogisticRegression()), 5)
            rows.append([f"{n:,}", f"{n_val:,}", str(d), f"{seconds:.3f}"])
    return as_text(["labels to choose from", "validation items", "features", "seconds"], rows)


N_DIGITS, ASKED, SHORTLIST = 849, 10, 25


def digits_with_votes() -> tuple[Floats, Codes, tu.Labels]:
    """849 pictures of digits, 64 features, 10 classes; five labelers who are right in 60 to 90% see 60% of them."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    some = rng.permutation(len(truth))[:N_DIGITS]
    X, truth = X[some], truth[some]
    other = (truth[:, None] + rng.integers(1, 10, (N_DIGITS, 5))) % 10
    votes = np.where(rng.random((N_DIGITS, 5)) < rng.uniform(0.6, 0.9, 5), truth[:, None], other)
    votes[rng.random((N_DIGITS, 5)) < 0.4] = -1
    silent = (votes < 0).all(axis=1)
    votes[silent, 0] = truth[silent]
    return X, truth, tu.Labels.from_matrix(votes)


def newton(X: Floats, y: Codes) -> Floats:
    """Multinomial logistic regression with C = 1, by Newton's method with halved steps; the intercept comes first."""
    phi = np.column_stack([np.ones(len(X)), X])
    k, p = int(y.max()) + 1, phi.shape[1]
    penalty, unit = np.append(0.0, np.ones(p - 1)), np.eye(k)
    pairs = (phi[:, :, None] * phi[:, None]).reshape(len(phi), -1)

    def value(theta: Floats) -> float:
        own = special.log_softmax(phi @ theta.T, axis=1)[np.arange(len(y)), y]
        return float(-own.sum() + 0.5 * (penalty * theta**2).sum())

    theta = np.zeros((k, p))
    while True:
        chance = special.softmax(phi @ theta.T, axis=1)
        gradient = (chance - unit[y]).T @ phi + penalty * theta
        curves = (chance[:, :, None] * (unit - chance[:, None])).reshape(len(phi), -1)
        hessian = (curves.T @ pairs).reshape(k, k, p, p).transpose(0, 2, 1, 3).copy()
        hessian[np.arange(k), :, np.arange(k)] += np.diag(penalty)
        hessian[:, 0, :, 0] += 1.0  # the same for all intercepts changes nothing
        step = -linalg.solve(hessian.reshape(k * p, -1), gradient.ravel(), assume_a="pos").reshape(k, p)
        if -(step * gradient).sum() < 1e-14:
            return theta + step
        size = 1.0
        while value(theta + size * step) > value(theta) + 1e-4 * size * (step * gradient).sum() + 1e-11:
            size /= 2
        theta = theta + size * step


def exact_choice(advisor: tu.CleaningAdvisor, n_checked: int) -> tuple[list[int], bool, int]:
    """The ten items that rank first with all models trained to convergence, and whether no other can be among them.

    Models are trained for the `SHORTLIST` largest weights; another item would need a larger improvement than any of
    theirs. `n_checked` of the models are trained by `newton` too; told is for how many all predictions are the same.
    """
    state = advisor.state
    believed = believed_truths(state)
    chances, rows = believed[state.train], np.arange(len(state.train))
    weight = (1 - chances[rows, state.y]) * model_uncertainty(state.model, state.features)
    first = state.open[np.argsort(-weight[state.open], kind="stable")]
    X, X_val, scorer = state.features, state.validation_features, believed_scorer(state, believed)
    models = flip_models(state.model, X, state.y, scorer.classes)
    assert models is not None
    gains = scorer.gains(models.base_predictions(X_val))
    changes = flip_candidates(state.y, chances, items=first[:SHORTLIST])
    codes = np.empty((len(changes), scorer.n_items), dtype=np.int64)
    for at, found in models.decision_blocks(X_val, changes, exact=True):
        codes[at] = found
    each = gains[np.arange(scorer.n_items), codes] * chances[changes.item, changes.to][:, None]
    scores = []
    for item in first[:SHORTLIST].tolist():
        gain = each[changes.item == item].sum(axis=0)
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        scores.append((weight[item] * special.expit(gain.mean()) - (gain.mean() < -2 * error), gain.mean()))
    score, improvement = np.transpose(scores)
    best = np.argsort(-score, kind="stable")[:ASKED]
    is_sure = score[best[-1]] > weight[first[SHORTLIST]] * special.expit(np.abs(improvement).max())
    n_same = 0
    for k in np.linspace(0, len(changes) - 1, n_checked).astype(int).tolist():
        labels = state.y.copy()
        labels[changes.item[k]] = changes.to[k]
        theta = newton(X, labels)
        n_same += bool(((theta[:, 0] + X_val @ theta[:, 1:].T).argmax(axis=1) == codes[k]).all())
    return state.train[first[best]].tolist(), bool(is_sure), n_same


def rounds(quick: bool) -> str:
    """Rounds of ask(10) and tell on digits: how long they take, and whether the choice is that of exact models."""
    X, truth, labels = digits_with_votes()
    n = 2 if quick else 40
    calls: list[int] = []
    seconds, same, sure, n_checked, n_equal = [], [], [], 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # at its default scikit-learn stops early on digits
        advisor = tu.CleaningAdvisor(LogisticRegression(), X, labels, progress=lambda done, of: calls.append(done))
        for k in tracked(range(n), "rounds"):
            asked, items = timed(lambda: advisor.ask(ASKED), clock=time.process_time)
            some = 10 if k % 20 == 0 else 0
            wanted, is_sure, n_same = exact_choice(advisor, some)
            n_checked, n_equal = n_checked + some, n_equal + n_same
            told, _ = timed(
                lambda items=items: advisor.tell({item: int(truth[item]) for item in items}), clock=time.process_time
            )
            seconds.append(asked + told)
            same.append(list(items) == wanted)
            sure.append(is_sure)
    some = max(n // 4, 1)
    rows = [
        ["median of all rounds", f"{np.median(seconds):.2f}"],
        [f"median of the first {some}", f"{np.median(seconds[:some]):.2f}"],
        [f"median of the last {some}", f"{np.median(seconds[-some:]):.2f}"],
        ["slowest", f"{max(seconds):.2f}"],
    ]
    text = [
        f"{N_DIGITS} digits, 64 features, 10 classes, {n} rounds of ask({ASKED}) and tell",
        as_text(["a round", "seconds of one core"], rows),
        f"The same ten in the same order as exact models: {sum(same)} of {n} rounds.",
        f"No other item could be among the exact ten: {sum(sure)} of {n} rounds.",
        f"Of {n_checked} of these models Newton's method, from scratch, gives all predictions of {n_equal}.",
        f"Progress was reported {len(calls) / n:.0f} times a round.",
    ]
    return "\n".join(text)


def decide(n: int, n_val: int, d: int) -> tuple[float, float]:
    """The peak in GiB of this process, which makes one decision, libraries and data included, and its seconds."""
    task = make(n, n_val, d, 0)
    seconds, _ = timed(lambda: task.emi(LogisticRegression()))
    return peak_bytes() / 2**30, seconds


def memory(quick: bool) -> str:
    """The peak of a process that makes one decision."""
    rows = []
    for n, n_val in ((2000, 2000),) if quick else ((50_000, 50_000), (100_000, 100_000)):
        for d in (2, 20):
            peak, seconds = apart(decide, n, n_val, d)
            rows.append([f"{n:,}", f"{n_val:,}", str(d), f"{peak:.2f}", f"{seconds:.1f}"])
    return as_text(["labels to choose from", "validation items", "features", "peak GiB", "seconds"], rows)


OWN = {"fast": fast, "decisions": decisions, "memory": memory, "rounds": rounds}
main = partial(run_sections, "cleaning", __doc__, {**OWN, "curves": curves, "replay": replay})


if __name__ == "__main__":
    main()
