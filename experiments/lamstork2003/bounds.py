"""Table 3: the bounds on pairs of optdigits classes; and on CIFAR-10H with one human vote."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier

from benchmarks._data import data_folder
from experiments.lamstork2003.report import Answer
from experiments.su2024.report import table
from trueup import rates

__all__ = ["CLASSIFIERS", "Pair", "cifar10h", "digit_pairs", "table3"]

CLASSIFIERS = {
    "gaussian": lambda: GaussianNB(),
    "multinomial": lambda: MultinomialNB(),
    "categorical": lambda: CategoricalNB(min_categories=17),
}
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Pair:
    """Two digits: how often the nearest neighbour (labeler) and naive Bayes (classifier) err on the test set."""

    digits: tuple[int, int]
    n: int
    wrong: int
    mislabeled: int
    both: int

    @property
    def error(self) -> float:
        """The classifier's true error."""
        return self.wrong / self.n

    @property
    def mislabeling(self) -> float:
        """The labeler's."""
        return self.mislabeled / self.n

    @property
    def apparent(self) -> float:
        """The share on which they differ; with two classes they agree where both are wrong."""
        return (self.wrong + self.mislabeled - 2 * self.both) / self.n

    @property
    def bounds(self) -> tuple[float, float]:
        """With non-negative dependence."""
        low, high = rates.error_bounds(apparent=self.apparent, mislabeling=self.mislabeling)
        return float(low), float(high)

    @property
    def holds_any(self) -> bool:
        """Whether the bounds without an assumption hold."""
        low, high = rates.error_bounds(apparent=self.apparent, mislabeling=self.mislabeling, dependence="any")
        return bool(low - _ROUNDING <= self.error <= high + _ROUNDING)

    @property
    def missed_items(self) -> float:
        """By how many items the true error lies below the lower bound; negative or zero if it does not."""
        return self.n * (self.bounds[0] - self.error)

    @property
    def p_negative(self) -> float:
        """P(so few joint errors) if errors were independent: small means that they avoid each other."""
        return float(stats.hypergeom.cdf(self.both, self.n, self.wrong, self.mislabeled))


def _digits(name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    with gzip.open(data_folder() / "uci" / f"optdigits_{name}.csv.gz", "rt") as file:
        rows = np.loadtxt(file, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1].astype(int)


def digit_pairs(classifier: str) -> list[Pair]:
    """All 45 pairs, trained on the training set and counted on the test set."""
    (x, y), (x_test, y_test) = _digits("tra"), _digits("tes")
    found = []
    for digits in combinations(range(10), 2):
        train, test = np.isin(y, digits), np.isin(y_test, digits)
        label = KNeighborsClassifier(1).fit(x[train], y[train]).predict(x_test[test])
        predicted = CLASSIFIERS[classifier]().fit(x[train], y[train]).predict(x_test[test])
        mislabeled, wrong = label != y_test[test], predicted != y_test[test]
        found.append(
            Pair(digits, int(test.sum()), int(wrong.sum()), int(mislabeled.sum()), int((wrong & mislabeled).sum()))
        )
    return found


def table3(*, quick: bool = False) -> Answer:
    """True error of naive Bayes within its bounds, pair by pair, and a count for other kinds of naive Bayes."""
    ours, summary, text = {}, [], []
    for name in ["gaussian"] if quick else CLASSIFIERS:
        pairs = digit_pairs(name)
        noisy = [p for p in pairs if p.mislabeled]
        if name == "gaussian":
            rows = [
                [
                    f"{p.digits[0]} and {p.digits[1]}",
                    p.n,
                    p.mislabeling,
                    p.apparent,
                    p.bounds[0],
                    p.error,
                    p.bounds[1],
                    p.both,
                    f"{p.wrong * p.mislabeled / p.n:.2f}",
                    "yes" if p.missed_items <= _ROUNDING else f"below by {p.missed_items:.2f} items",
                ]
                for p in noisy
            ]
            head = ["digits", "n", "ε", "A", "low", "true e", "high", "both err", "if independent", "inside"]
            text += [
                f"Pairs on which the labeler errs ({len(noisy)} of {len(pairs)}), Gaussian naive Bayes:",
                table(head, rows),
            ]
        inside = sum(p.missed_items <= _ROUNDING for p in pairs)
        numbers = {
            "pairs with a labeler's error": len(noisy),
            "e in [|A − ε|, A + ε], of 45": sum(p.holds_any for p in pairs),
            "e in [(A − ε)/(1 − 2ε), A + ε], of 45": inside,
            "the same to a whole item, of 45": sum(p.missed_items < 1 for p in pairs),
            "largest miss, items": max(max(p.missed_items for p in pairs), 0.0),
            "least p of negative dependence": min(p.p_negative for p in noisy),
            "joint errors, all pairs": sum(p.both for p in pairs),
            "joint errors if independent": sum(p.wrong * p.mislabeled / p.n for p in pairs),
            "e at the upper bound": sum(p.both == p.mislabeled for p in noisy),
        }
        ours |= {f"{name}: {label}": float(value) for label, value in numbers.items()}
        summary.append([name, *(f"{v:.3g}" for v in numbers.values())])
    text += ["", table(["naive Bayes", *numbers], summary)]
    return "\n".join(text), ours


@lru_cache(maxsize=1)
def load_cifar() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Counts of human votes (10000, 10), the true classes, and what each network predicts."""
    import pyarrow.parquet as pq

    folder = data_folder() / "cifar10h"

    def table(path: Path) -> npt.NDArray[Any]:
        columns = pq.read_table(path)
        names = [c for c in columns.column_names if c != "item"]
        return np.column_stack([columns[c].to_numpy() for c in names])

    nets = {p.stem.removeprefix("pred_"): table(p).argmax(axis=1) for p in sorted(folder.glob("pred_*.parquet"))}
    return (
        table(folder / "human_counts.parquet").astype(np.int64),
        table(folder / "truth.parquet")[:, -1].astype(int),
        nets,
    )


def cifar10h(*, quick: bool = False) -> Answer:
    """Five networks against one human vote an image: is the true error within its bounds?"""
    counts, truth, nets = load_cifar()
    rows, held = [], {"any": [], "non-negative": [], "two classes": []}
    for draw in range(1 if quick else 3):
        rng = np.random.default_rng(10 + draw)
        vote = np.array([rng.multivariate_hypergeometric(row, 1) for row in counts]).argmax(axis=1)
        mislabeling = float((vote != truth).mean())
        for name, predicted in nets.items():
            error, apparent = float((predicted != truth).mean()), float((predicted != vote).mean())
            given = {"apparent": apparent, "mislabeling": mislabeling}
            ends = {
                "any": rates.error_bounds(**given, n_classes=10, dependence="any"),
                "non-negative": rates.error_bounds(**given, n_classes=10),
                "two classes": rates.error_bounds(**given),
            }
            for key, (low, high) in ends.items():
                held[key].append(bool(low <= error <= high))
            independent = float(rates.true_error(**given, n_classes=10))
            shown = [f"{float(low):.4f}–{float(high):.4f}" for low, high in ends.values()]
            rows.append([f"draw {draw + 1}, {name}", mislabeling, apparent, error, independent, *shown])
    head = ["", "ε", "A", "true e", "if independent", "any dependence", "non-negative, C = 10", "non-negative, C = 2"]
    ours = {f"{key}: share inside": float(np.mean(value)) for key, value in held.items()}
    return table(head, rows), ours
