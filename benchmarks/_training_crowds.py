"""Training on real crowds: test accuracy of every strategy, of majority votes, of the truth and of other libraries.

The classifier is logistic regression throughout. Its C is chosen on the training items by cross-validation of the
method itself, and nobody sees the truth but the method that trains on it: what trueup trains is scored with
``trueup.scorer``, majority training against majority votes (ties at random, five times). Test items are used once, to
count right answers. Voting has C = 1 on wide features, where a model for each of 203 labelers takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

import trueup as tu
from benchmarks._coverage_tally import as_text, say
from benchmarks._data import data_folder, load_crowd
from benchmarks._peer_tasks import TRAINING_TASKS, WIDE
from benchmarks.peers import ask, votes_of
from trueup._base.types import Codes, Floats
from trueup.training import NoisyLabelClassifier, NoisyLogisticRegression

PATH = [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2]
LEAVES_REPEATS = 2
N_DRAWS = 60  # of the truth, for a score
N_TIES = 5  # ways to break ties of majority votes


@dataclass(frozen=True, eq=False)
class Split:
    """Votes and truth of the items to train on; test items, and where they stand among all of the set's."""

    X: Any
    labels: tu.Labels
    truth: Codes
    X_test: Any
    truth_test: Codes
    test: Codes


def _table(name: str, file: str) -> tuple[Floats, Codes]:
    import polars as pl

    frame = pl.read_parquet(data_folder() / name / file)
    return frame.drop("item", "truth").to_numpy().astype(float), frame["truth"].to_numpy()


def sentiment(quick: bool) -> Iterator[Split]:
    """TF-IDF of words and pairs; the test texts are phrases, mostly shorter than those to train on."""
    import polars as pl
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels, truth = load_crowd("crowd-sentiment-text")
    train, test = (
        pl.read_parquet(data_folder() / "crowd-sentiment-text" / f"text_{p}.parquet") for p in ("train", "test")
    )
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit(train["text"].to_list())
    X, X_test = (words.transform(frame["text"].to_list()) for frame in (train, test))
    keep = slice(0, 800 if quick else None)
    part = labels.select(items=labels.items[keep])
    yield Split(X[keep], part, truth[keep], X_test, test["truth"].to_numpy(), np.arange(X_test.shape[0]))


def labelme(quick: bool) -> Iterator[Split]:
    """512 features of a network, as published with the votes; scaled."""
    labels, truth = load_crowd("crowd-labelme-feat")
    (X, _), (X_test, truth_test) = (_table("crowd-labelme-feat", f"features_{p}.parquet") for p in ("train", "test"))
    scale = StandardScaler().fit(X)
    keep = slice(0, 300 if quick else None)
    part = labels.select(items=labels.items[keep])
    yield Split(
        scale.transform(X)[keep], part, truth[keep], scale.transform(X_test), truth_test, np.arange(len(X_test))
    )


def leaves(quick: bool) -> Iterator[Split]:
    """No test items were published: five folds, repeated."""
    labels, truth = load_crowd("crowd-leaves")
    X, _ = _table("crowd-leaves", "features.parquet")
    for repeat in range(1 if quick else LEAVES_REPEATS):
        cut = list(StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, truth))
        for train, test in cut[: 1 if quick else None]:
            scale = StandardScaler().fit(X[train])
            part = labels.select(items=labels.items[train])
            yield Split(scale.transform(X[train]), part, truth[train], scale.transform(X[test]), truth[test], test)


SETS: dict[str, Callable[[bool], Iterator[Split]]] = {"sentiment-text": sentiment, "labelme": labelme, "leaves": leaves}


# What the classifiers are made with; "likelihood" is a classifier of its own, the others train logistic regression.
STRATEGIES: dict[str, dict[str, Any]] = {
    "mmse": {},
    "mmse, noise=majority": {"noise": "majority"},
    "mmse, noise=glad": {"noise": "glad"},
    **{name: {"strategy": name} for name in ("label-estimation", "replication", "voting", "unbiased", "alternation")},
    "likelihood (map)": {"tol": 1e-5},
    "likelihood, joint": {"joint": True, "tol": 1e-5},
    "likelihood, joint, volume=1": {"joint": True, "volume": 1.0, "tol": 1e-5},
}


def choose(estimator: Any, name: str, scoring: Any, path: list[float]) -> GridSearchCV:
    """The cross-validation that chooses C."""
    return GridSearchCV(estimator, {name: path}, scoring=scoring, cv=KFold(3, shuffle=True, random_state=0))


def majority_of(labels: tu.Labels, seed: int) -> Codes:
    """The class with most votes, of tied ones any: 13% of the items of LabelMe are tied."""
    counts = labels.answer_counts[:, : labels.n_classes]
    return np.asarray((counts + np.random.default_rng(seed).random(counts.shape) / 2).argmax(axis=1))


@dataclass(frozen=True)
class Trained:
    """Whether each test item is right, the C that was chosen, and the score it was chosen by."""

    right: Floats
    C: float
    score: float


def train_on_classes(split: Split, codes: Codes, quick: bool) -> Trained:
    """Ordinary training on a class for each item."""
    path = PATH[1:2] if quick else PATH
    search = choose(LogisticRegression(max_iter=1000), "C", "accuracy", path).fit(split.X, codes)
    right = search.predict(split.X_test) == split.truth_test
    return Trained(right.astype(float), search.best_params_["C"], float(search.best_score_))


def train_on_votes(split: Split, strategy: str, quick: bool) -> Trained:
    """A strategy of trueup, with C chosen without truth."""
    name, model = "C", NoisyLogisticRegression
    if not strategy.startswith("likelihood"):
        name, model = "estimator__C", partial(NoisyLabelClassifier, LogisticRegression(max_iter=1000))
    scoring = tu.scorer("accuracy", split.labels, n_draws=10 if quick else N_DRAWS)
    slow = split.X.shape[1] > WIDE and strategy == "voting"
    search = choose(
        model(labels=split.labels, **STRATEGIES[strategy]),
        name,
        scoring,
        [1.0] if slow else PATH[1:2] if quick else PATH,
    )
    search.fit(split.X, np.arange(split.labels.n_items))
    right = search.predict(split.X_test) == split.truth_test
    return Trained(right.astype(float), search.best_params_[name], float(search.best_score_))


def ask_peers(split: Split, C: float, majorities: Sequence[Codes], quick: bool) -> dict[str, Floats]:
    """Right answers of other libraries, run by the Python that TRUEUP_PEERS names; empty where it is not set."""
    if not os.environ.get("TRUEUP_PEERS"):
        return {}
    arrays = {**votes_of(split.labels), "majority": np.stack(majorities), "C": np.array(C), "quick": np.array(quick)}
    for part, X in (("train", split.X), ("test", split.X_test)):
        matrix = sparse.csr_matrix(X)
        arrays |= {
            f"{part} {name}": np.asarray(getattr(matrix, name)) for name in ("data", "indices", "indptr", "shape")
        }
    found = {}
    for task, (package, _) in TRAINING_TASKS.items():
        if "hidden" not in task or split.X.shape[1] <= WIDE:
            answer = ask(task, package, [arrays], limit=None)
            if answer.error:
                raise RuntimeError(f"{task} {answer.error}")
            found[task] = np.mean(answer.arrays[0] == split.truth_test, axis=0)
    return found


@dataclass
class Tally:
    """Right answers of each method on each test item of a set, averaged over repeats."""

    right: dict[str, Floats]
    times: dict[str, Floats]
    C: dict[str, list[float]]
    score: dict[str, list[float]]

    def add(self, name: str, n: int, test: Codes, right: Floats) -> None:
        self.right.setdefault(name, np.zeros(n))[test] += right
        self.times.setdefault(name, np.zeros(n))[test] += 1

    def mean(self, name: str) -> Floats:
        """The share of right answers of each item that was tested."""
        tested = self.times[name] > 0
        return np.asarray(self.right[name][tested] / self.times[name][tested])


def measure(splits: list[Split], quick: bool, what: str) -> Tally:
    """All methods on all splits of a set."""
    tally = Tally({}, {}, {}, {})
    n = 1 + max(int(split.test.max()) for split in splits)
    for number, split in enumerate(splits):
        say(f"  {what}: split {number + 1} of {len(splits)}")
        ties = [majority_of(split.labels, seed) for seed in range(1 if quick else N_TIES)]
        majority = [train_on_classes(split, codes, quick) for codes in ties]
        trained = {"truth": [train_on_classes(split, split.truth, quick)], "majority": majority}
        trained |= {name: [train_on_votes(split, name, quick)] for name in STRATEGIES}
        for name, runs in trained.items():
            tally.add(name, n, split.test, np.mean([run.right for run in runs], axis=0))
            tally.C.setdefault(name, []).extend(run.C for run in runs)
            tally.score.setdefault(name, []).extend(run.score for run in runs)
        C = float(np.median([run.C for run in majority]))
        for name, right in ask_peers(split, C, ties, quick).items():
            tally.add(name, n, split.test, right)
    return tally


def rows_of(tally: Tally) -> list[list[str]]:
    """A row for each method: accuracy, its difference from majority training, the share of the gap closed, and C."""
    majority, truth = tally.mean("majority"), tally.mean("truth")
    gap = float(truth.mean() - majority.mean())
    rows = []
    for name in tally.right:
        difference = tally.mean(name) - majority
        ahead, error = float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
        chosen = tally.C.get(name)
        lead = "" if name == "majority" else f"{100 * ahead:+.2f} ± {100 * error:.2f}"
        closed = "" if name in ("majority", "truth") or gap <= 0 else f"{100 * ahead / gap:.0f}%"
        score = f"{np.mean(tally.score[name]):.3f}" if name in STRATEGIES else ""
        C = f"{np.median(chosen):g}" if chosen else ""
        rows.append([name, f"{tally.mean(name).mean():.4f}", lead, closed, C, score])
    return rows


def summary(tally: Tally) -> str:
    """The best strategy, and the one that its score without truth would have chosen."""
    ahead = {name: float((tally.mean(name) - tally.mean("majority")).mean()) for name in (*STRATEGIES, "truth")}
    best = max(STRATEGIES, key=ahead.__getitem__)
    chosen = max(STRATEGIES, key=lambda name: float(np.mean(tally.score[name])))
    gap = ahead["truth"]
    closes = "ahead of training on the truth" * (ahead[best] > gap)
    if gap > 0:
        closes = f"closes {ahead[best] / gap:.0%} of the gap"
    return (
        f"gap of truth and majority {100 * gap:+.2f} points; best: {best}, {100 * ahead[best]:+.2f} points, "
        f"{closes}; of highest score without truth: {chosen}, {100 * ahead[chosen]:+.2f} points"
    )


def crowd(name: str, quick: bool) -> str:
    """Test accuracy of all methods on one crowd."""
    head = ["", "accuracy", "ahead of majority, points", "of the gap", "C", "score without truth"]
    tally = measure(list(SETS[name](quick)), quick, name)
    texts = [as_text(head, rows_of(tally)), summary(tally)]
    if not os.environ.get("TRUEUP_PEERS"):
        texts.append("crowd-kit and cleanlab are left out: set TRUEUP_PEERS to a Python that has them and torch")
    return "\n".join(texts)
