"""Training and choosing a classifier without truth on sets of the UCI repository; votes as in Su (2024), Section 5.4.

Thirteen labelers with the fallibilities that the paper prints vote on items of differing difficulty. Truth is for
measuring.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import trueup as tu
from benchmarks._coverage_tally import as_text, tracked
from experiments.dolatshah2018.sets import uci_table
from experiments.su2024.training import (
    CLASSIFIERS,
    PANELS,
    STRENGTHS,
    Split,
    actual_auc,
    ionosphere_runs,
    split_of,
)
from experiments.su2024.training import ionosphere as ionosphere_table
from trueup._base.types import Codes, Floats
from trueup.exceptions import TrueupWarning
from trueup.noise.majority import majority_codes
from trueup.training import NoisyLogisticRegression

N_LABELERS = PANELS[-1]
FIRST_SEED = 5400
N_SPLITS = 20
STEP = "noisylogisticregression__C"
PATHS = {
    "the paper's path": tuple(1 / strength for strength in STRENGTHS),
    "a wide path": tuple(float(c) for c in np.logspace(-3, 2, 20)),
}
SETS: dict[str, Callable[[], tuple[Floats, Codes]]] = {
    "ionosphere": ionosphere_table,
    "cancer": lambda: uci_table("cancer"),
    "diabetes": lambda: uci_table("diabetes"),
}
RULES = ("votes, test items", "votes, cross-validation", "truth, cross-validation", "majority, cross-validation")
CASES = (("ionosphere", "the paper's path"), *((name, "a wide path") for name in SETS))


def _with_error(values: Floats) -> str:
    return f"{values.mean():+.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def ionosphere(quick: bool) -> str:
    """Actual AUC of the five classifiers against the ideal one's, and the error of the AUC estimated without truth.

    λ is chosen as in the paper: of twenty values the one with the largest AUC as estimated from the votes on the test
    items; for the ideal classifier the one with the largest actual AUC. The estimates look at no other votes.
    """
    n = 2 if quick else N_SPLITS
    lines = [f"T = {N_LABELERS}, {n} stratified splits 75 to 25; ± is the standard error over splits."]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        for learned in (False, True):
            runs = ionosphere_runs(n, N_LABELERS, learned=learned)
            ideal = np.array([run.chosen["ideal"].actual for run in runs])
            rows = [["ideal", f"{ideal.mean():.4f}", *["–"] * 6]]
            for name in CLASSIFIERS[1:]:
                actual = np.array([run.chosen[name].actual for run in runs])
                first = np.array([run.chosen[name].estimated for run in runs]) - actual
                drawn = np.array([run.auc[name] for run in runs])
                held = (drawn[:, 1] - 1e-9 <= actual) & (actual <= drawn[:, 2] + 1e-9)
                second = drawn[:, 0] - actual
                errors = [cell for e in (first, second) for cell in (f"{np.abs(e).mean():.4f}", _with_error(e))]
                gap = [f"{actual.mean():.4f}", _with_error(actual - ideal)]
                rows.append([name, *gap, *errors, f"{100 * held.mean():.0f}%"])
            head = ["classifier", "actual AUC", "against ideal", "|error|, Algorithm 1", "error"]
            head += ["|error|, tu.auc", "error", "95% interval holds"]
            title = "Noise learned from the votes (Dawid–Skene)" if learned else "Noise known, as in the paper"
            lines += ["", title, as_text(head, rows)]
    return "\n".join(lines)


def _against(truth: Codes) -> Callable[[Any, Any, Any], float]:
    """A scorer of the AUC against these classes, for y that holds positions."""

    def score(model: Any, X: Any, y: Any) -> float:
        return float(roc_auc_score(truth[y], model.decision_function(X)))

    return score


def choices(split: Split, path: Sequence[float], seed: int) -> tuple[Floats, dict[str, int]]:
    """Actual test AUC along a path of C, shape (n_path,), and the position that each rule chooses.

    Logistic regression by the likelihood of the votes, with matrices of the labelers learned from the training votes.
    The first rule scores by the votes on the test items, as the paper does; the others see training items only.
    """
    labels, positions = split.train_labels, np.arange(len(split.train))
    X, X_test, truth = split.X[split.train], split.X[split.test], split.truth[split.train]
    model = make_pipeline(StandardScaler(), NoisyLogisticRegression(labels=labels, tol=1e-4))
    scoring = {
        RULES[1]: tu.scorer("auc", labels),
        RULES[2]: _against(truth),
        RULES[3]: _against(majority_codes(labels)),
    }
    folds = KFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(model, {STEP: list(path)}, scoring=scoring, cv=folds, refit=False).fit(X, positions)
    chosen = {rule: int(np.argmax(search.cv_results_[f"mean_test_{rule}"])) for rule in RULES[1:]}
    judge = tu.scorer("auc", split.test_labels)
    actual, estimated = [], []
    for c in path:
        model.set_params(**{STEP: c}).fit(X, positions)
        actual.append(actual_auc(split, model.decision_function(X_test)))
        estimated.append(judge(model, X_test))
    return np.array(actual), {RULES[0]: int(np.argmax(estimated)), **chosen}


def regrets(name: str, path: Sequence[float], n_splits: int) -> tuple[Floats, dict[str, Floats]]:
    """Actual AUC along the path, shape (n_splits, n_path), and the regret of each rule, shape (n_splits,).

    The regret is what the best of the path has more on the same test items, which no rule can know.
    """
    X, truth = SETS[name]()
    found = [choices(split_of(X, truth, FIRST_SEED + k), path, k) for k in tracked(range(n_splits), f"paths on {name}")]
    actual = np.array([one for one, _ in found])
    lost = {rule: np.array([one.max() - one[at[rule]] for one, at in found]) for rule in RULES}
    # One value for all splits, the best in hindsight: what choosing perfectly, but not by the test items, would lose.
    lost["one value for all, in hindsight"] = actual.max(axis=1) - actual[:, actual.mean(axis=0).argmax()]
    return actual, lost


def selection(quick: bool) -> str:
    """Regret in actual AUC of the penalty that is chosen from a path of twenty without truth; eight minutes."""
    cases = {CASES[0]: 2} if quick else {case: N_SPLITS if case[0] == "ionosphere" else N_SPLITS // 2 for case in CASES}
    rows, spans = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        for (name, path), n in cases.items():
            actual, lost = regrets(name, PATHS[path], n)
            rows.append([f"{name}, {path}", str(n), *(_with_error(values) for values in lost.values())])
            mean = actual.mean(axis=0)
            spans.append(f"{name}, {path}: mean AUC along the path {mean.min():.4f} to {mean.max():.4f}")
    first = f"T = {N_LABELERS}, twenty values of C; mean regret in actual test AUC ± standard error over splits."
    return "\n".join([first, as_text(["set and path", "splits", *lost], rows), "", *spans])
