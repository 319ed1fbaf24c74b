"""How often the intervals of a ranking hold, on simulated labelers whose matrices are known.

``python tests/labelers/ranking_runs.py`` prints the table (some minutes).
"""

import warnings
from dataclasses import dataclass

import numpy as np

import trueup as tu
from trueup.exceptions import ConvergenceWarning
from trueup.labelers import mutual_information, rank, spam_share


@dataclass(frozen=True)
class Runs:
    """One entry for each labeler of each data set."""

    held: dict[str, np.ndarray]  # whether the 95% interval held, by quantity
    spammers: np.ndarray
    suspected: np.ndarray  # with which probability


def random_matrices(rng, n_classes):
    """Six labelers of random accuracy in each class, errors split at random, one in ten a pure spammer."""
    diagonal = np.arange(n_classes)
    least = 0.55 if n_classes == 2 else 0.4
    right = np.clip(rng.uniform(least, 0.95, (6, 1)) + rng.uniform(-0.15, 0.15, (6, n_classes)), 0.35, 0.98)
    split = rng.standard_exponential((6, n_classes, n_classes))
    split[:, diagonal, diagonal] = 0.0
    confusion = split / split.sum(axis=2, keepdims=True) * (1 - right[..., None])
    confusion[:, diagonal, diagonal] = right
    pure = rng.random(6) < 0.1
    for t in np.flatnonzero(pure):
        confusion[t] = rng.dirichlet(np.ones(n_classes))
    return confusion, pure


def ranking_runs(n_sets: int, *, n_items: int, seed: int, n_classes: int = 2, noise="dawid-skene") -> Runs:
    """Rank six labelers in each of many data sets."""
    held: dict[str, list[bool]] = {"accuracy": [], "information": [], "bias": [], "spam": []}
    spammers, suspected = [], []
    for s in range(n_sets):
        rng = np.random.default_rng([seed, s])
        confusion, pure = random_matrices(rng, n_classes)
        prior = rng.dirichlet(np.full(n_classes, 8.0))
        data = tu.simulate.dawid_skene(
            n_items=n_items, n_classes=n_classes, n_labelers=6, prior=prior, confusion=confusion, random_state=rng
        )
        with warnings.catch_warnings():  # sets on which the chains mix slowly count like all others
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = rank(data.labels, noise=noise, random_state=s)
        answered = np.einsum("y,tya->ta", prior, confusion) - prior
        for row in found:
            t = row.labeler
            true = {
                "accuracy": prior @ np.diag(confusion[t]),
                "information": float(mutual_information(confusion[t], prior=prior)),
                "bias": answered[t, row.bias_class],
                "spam": spam_share(confusion[t]),
            }
            for name, value in true.items():
                low, high = getattr(row, name).interval(0.95)
                held[name].append(bool(low - 1e-9 <= value <= high + 1e-9))
            spammers.append(pure[t])
            suspected.append(row.spam_probability)
    return Runs({name: np.array(each) for name, each in held.items()}, np.array(spammers), np.array(suspected))


def main() -> None:
    cases = (
        ("two classes, 300 items", {"n_items": 300, "seed": 2}, 120),
        ("two classes, 100 items", {"n_items": 100, "seed": 3}, 60),
        ("four classes, 300 items", {"n_items": 300, "n_classes": 4, "seed": 4}, 40),
        ("two classes, 300 items, majority", {"n_items": 300, "seed": 2, "noise": "majority"}, 40),
    )
    for name, options, n_sets in cases:
        runs = ranking_runs(n_sets, **options)
        shares = ", ".join(f"{quantity} {100 * held.mean():.1f}%" for quantity, held in runs.held.items())
        print(f"{name}, {len(runs.spammers)} labelers: {shares}", end="; ")  # noqa: T201
        print(f"{runs.spammers.sum()} spammers, {runs.suspected.sum():.1f} expected", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
