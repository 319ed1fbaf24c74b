"""The settings and runs of Section 5.4: logistic regression trained and tested on noisy votes, Ionosphere.

Nothing but the ideal classifier and what is called *actual* sees the truth.
"""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import trueup as tu
from benchmarks._data import data_folder
from experiments.su2024.runs import tracked
from experiments.su2024.settings import METHODS
from trueup.exceptions import TrueupWarning
from trueup.training import NoisyLabelClassifier, NoisyLogisticRegression

__all__ = [
    "CLASSIFIERS",
    "FALLIBILITY",
    "PANELS",
    "STRENGTHS",
    "Chosen",
    "Judge",
    "PanelRun",
    "Split",
    "actual_auc",
    "area_under",
    "at_half",
    "auc_posterior",
    "chosen_model",
    "ionosphere",
    "ionosphere_runs",
    "panel_run",
    "shown_split",
    "split_of",
    "su_votes",
    "trained_scores",
]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Noise = str | tu.noise.NoiseModel

PANELS = (1, 5, 9, 13)
# As printed, for T = 13; fewer labelers are the first ones.
FALLIBILITY = (0.079, 0.440, 0.137, 0.207, 0.148, 0.314, 0.290, 0.300, 0.133, 0.142, 0.127, 0.164, 0.072)
STRENGTHS = tuple(0.5 * k for k in range(1, 21))  # λ of the penalty λ‖θ‖² / 2N; scikit-learn's C is 1/λ
CLASSIFIERS = ("ideal", "ml", "mmse", "label-estimation", "voting")
PAIR = ("recall", "precision")
FIRST_SEED = 5400


@cache
def ionosphere() -> tuple[Array, Codes]:
    """Features and classes; 1 is a bad radar return."""
    with gzip.open(data_folder() / "uci" / "ionosphere.csv.gz", "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    columns = [name for name in rows[0] if name != "label"]
    features = np.array([[float(row[name]) for name in columns] for row in rows])
    return features, np.array([int(row["label"] == "b") for row in rows])


def su_votes(
    truth: Codes, difficulty: Array, fallibility: Sequence[float], participation: Array, rng: np.random.Generator
) -> tu.Labels:
    """Votes on items whose truth is known, Section 5.1.2; somebody has to vote on everything."""
    shape = (len(truth), len(fallibility))
    d, f = difficulty[:, None], np.asarray(fallibility)
    wrong = rng.random(shape) < (d - d * f + f) / 2
    votes = np.where(wrong, 1 - truth[:, None], truth[:, None])
    return tu.Labels.from_matrix(
        np.where(rng.random(shape) < participation, votes, -1), missing=-1, classes=[0, 1], labelers=range(shape[1])
    )


@dataclass(frozen=True, eq=False)
class Split:
    """Items to train and to test on, with votes on all of them.

    Attributes
    ----------
    X, truth : arrays
        Of all items.
    labels : Labels
    noise : Difficulty
        The true parameters of the votes: the paper takes ψ and π as known.
    train, test : integer arrays
        Positions of the items, increasing.
    """

    X: Array
    truth: Codes
    labels: tu.Labels
    noise: tu.noise.Difficulty
    train: Codes
    test: Codes

    def panel(self, n_labelers: int) -> Split:
        """The votes of the first labelers only."""
        labels = self.labels.select(labelers=range(n_labelers))
        return Split(self.X, self.truth, labels, self.noise, self.train, self.test)

    @property
    def train_labels(self) -> tu.Labels:
        """The votes on the training items."""
        return self.labels.select(items=self.labels.items[self.train])

    @property
    def test_labels(self) -> tu.Labels:
        """The votes on the test items."""
        return self.labels.select(items=self.labels.items[self.test])


def split_of(
    X: Array,
    truth: Codes,
    seed: int,
    *,
    fallibility: Sequence[float] = FALLIBILITY,
    difficulty: tuple[float, float] | None = (1, 5),
    participation: tuple[float, float] = (0.33, 1.0),
) -> Split:
    """A stratified split, 75 to 25, with fresh difficulties, participation and votes; the first labeler votes always.

    With `difficulty` None no item is difficult.
    """
    rng = np.random.default_rng(seed)
    delta = np.zeros(len(truth)) if difficulty is None else rng.beta(*difficulty, len(truth))
    eta = rng.uniform(*participation, len(fallibility))
    eta[0] = 1.0
    labels = su_votes(truth, delta, fallibility, eta, rng)
    noise = tu.noise.Difficulty(
        difficulty=dict(zip(labels.items.tolist(), delta.tolist(), strict=True)),
        fallibility=dict(enumerate(fallibility)),
        prior=np.bincount(truth) / len(truth),
    )
    train, test = train_test_split(np.arange(len(truth)), test_size=0.25, stratify=truth, random_state=seed)
    return Split(X, truth, labels, noise, np.sort(train), np.sort(test))


def trained_scores(name: str, split: Split, strength: float, noise: Noise) -> Array:
    """Train one of the five classifiers; P(class 1) of the test items."""
    X, X_test, labels = split.X[split.train], split.X[split.test], split.train_labels
    plain = LogisticRegression(C=1 / strength, max_iter=2000)
    model: Any
    if name == "ideal":
        return np.asarray(plain.fit(X, split.truth[split.train]).predict_proba(X_test)[:, 1])
    if name == "voting":
        # Most of the models exceed a threshold where their median does: this is the paper's vote at every threshold.
        item, whose, answer, _ = labels.vote_table()
        own = [whose == t for t in range(labels.n_labelers)]
        said = [plain.fit(X[item[mine]], answer[mine]).predict_proba(X_test)[:, 1] for mine in own]
        return np.asarray(np.median(said, axis=0))
    if name in ("ml", "mmse"):
        # The paper's ML training has a penalty too.
        model = NoisyLogisticRegression(method="map" if name == "ml" else "mmse", C=1 / strength, noise=noise)
    else:
        model = NoisyLabelClassifier(plain, strategy=name, noise=noise)
    return np.asarray(model.fit(X, labels).predict_proba(X_test)[:, 1])


def actual_auc(split: Split, scores: Array) -> float:
    """The area under the actual ROC curve."""
    return float(roc_auc_score(split.truth[split.test], scores))


class Judge:
    """Estimates curves without truth: Algorithm 1 at each threshold, from the votes on the test items.

    Parameters
    ----------
    labels : Labels
        Of the test items.
    noise : NoiseModel
        Known, or fitted to these very votes.
    """

    def __init__(self, labels: tu.Labels, noise: tu.noise.NoiseModel) -> None:
        self.labels, self.noise = labels, noise
        self._likelihood = noise.log_likelihood(labels)
        self._known: dict[bytes, tuple[float, float]] = {}  # classifiers of neighbouring λ share many predictions

    def point(self, predictions: Codes) -> tuple[float, float]:
        """The estimated operating point: P_FA and P_D."""
        key = np.packbits(predictions).tobytes()
        if key not in self._known:
            problem = tu.estimators.Problem(
                predictions, self._likelihood, self.noise.prior_, np.full(len(predictions), -1)
            )
            found = tu.estimators.mmse(problem, **METHODS["ratios"][1])
            self._known[key] = (float(found.confusion[0, 1]), float(found.confusion[1, 1]))
        return self._known[key]

    def roc(self, scores: Array) -> Array:
        """Estimated P_FA and P_D where each score in turn is the threshold, shape (n + 1, 2), and the corner (0, 0)."""
        levels = np.unique(scores)[::-1]
        return np.array([(0.0, 0.0), *(self.point((scores >= level).astype(np.int64)) for level in levels)])

    def auc(self, scores: Array) -> float:
        """The area under the estimated curve."""
        return area_under(self.roc(scores))


def area_under(points: Array) -> float:
    """By trapezoids, after the points are put in order of P_FA; the corner (1, 1) is added."""
    x, y = points[np.lexsort((points[:, 1], points[:, 0]))].T
    return float(np.trapezoid(np.r_[y, 1.0], np.r_[x, 1.0]))


@dataclass(frozen=True, eq=False)
class Chosen:
    """The classifier with the largest (estimated) area under the curve of the twenty.

    Attributes
    ----------
    strength : float
        Its λ.
    scores : array of shape (n_test,)
    actual, estimated : float
        The area under its ROC curve; the estimate is Algorithm 1's, the actual one for the ideal classifier.
    regret : float
        How much larger the largest actual area of the twenty is.
    """

    strength: float
    scores: Array
    actual: float
    estimated: float
    regret: float


def chosen_model(name: str, split: Split, noise: Noise, estimate: Callable[[Array], float]) -> Chosen:
    """Sweep λ and choose by an estimate of the area under the curve."""
    every = [trained_scores(name, split, strength, noise) for strength in STRENGTHS]
    actual = [actual_auc(split, scores) for scores in every]
    judged = actual if name == "ideal" else [estimate(scores) for scores in every]
    k = int(np.argmax(judged))
    return Chosen(STRENGTHS[k], every[k], actual[k], judged[k], max(actual) - actual[k])


@dataclass(frozen=True, eq=False)
class PanelRun:
    """One split and one panel, by classifier.

    Attributes
    ----------
    chosen : dict from classifier to Chosen
    auc : dict from classifier to (mean, low, high)
        The posterior of the area under the curve, by `trueup.auc`.
    point : dict from classifier to array of shape (2,)
        Actual recall and precision at τ = 1/2.
    region : dict from (classifier, method) to (mean recall, mean precision, area, whether it holds the actual point)
        Of the 95% region.
    """

    chosen: dict[str, Chosen]
    auc: dict[str, tuple[float, float, float]]
    point: dict[str, Array]
    region: dict[tuple[str, str], tuple[float, float, float, bool]]


def panel_run(split: Split, *, learned: bool = False) -> PanelRun:
    """Train, choose λ and judge.

    With known noise, as in the paper; or with `learned` with labelers' matrices that are learned from the votes on the
    training items to train, and from those on the test items to judge. Regions are for known noise.
    """
    labels = split.test_labels
    train_noise: Noise = "dawid-skene" if learned else split.noise
    judge = Judge(labels, tu.noise.fit(labels, "dawid-skene") if learned else split.noise)
    run = PanelRun({}, {}, {}, {})
    for name in CLASSIFIERS:
        chosen = run.chosen[name] = chosen_model(name, split, train_noise, judge.auc)
        ideal = at_half(split, chosen.scores, "ideal")
        run.point[name] = np.array([ideal[metric].mean for metric in PAIR])
        if name == "ideal":
            continue
        run.auc[name] = auc_posterior(chosen.scores, labels, "dawid-skene" if learned else split.noise)
        if not learned:
            for method in ("ratios", "bayes"):
                joint = at_half(split, chosen.scores, method).joint(*PAIR)
                region = joint.region(0.95)
                run.region[name, method] = (*joint.means, region.area, bool(region.contains(*run.point[name])))
    return run


def at_half(split: Split, scores: Array, method: str) -> tu.Evaluation:
    """The evaluation, with known noise, of the classifier that says 1 from a score of 1/2; "ideal" knows the truth."""
    how, own = METHODS.get(method, (method, {}))
    return tu.evaluate(
        tu.Predictions.from_scores(scores, threshold=0.5, positive=1),
        split.test_labels,
        noise=split.noise,
        metrics=PAIR,
        method=how,
        truth=split.truth[split.test] if method == "ideal" else None,
        check_dependence=False,
        **own,
    )


def auc_posterior(scores: Array, labels: tu.Labels, noise: Noise) -> tuple[float, float, float]:
    """Mean and 95% interval of the area under the curve from votes alone."""
    drawn = {"n_warmup": 200} if isinstance(noise, str) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # that there are few items and votes is known here
        found = tu.auc(scores, labels, noise=noise, n_draws=1000, **drawn)
    return (found.mean, *found.interval(0.95))


@cache
def ionosphere_runs(n: int, n_labelers: int, *, learned: bool = False) -> tuple[PanelRun, ...]:
    """The experiment of Section 5.4 on `n` splits; panels of different size meet the same splits and votes."""
    what = f"Ionosphere, {n_labelers} labelers{', learned noise' if learned else ''}"
    return tuple(panel_run(shown_split(k).panel(n_labelers), learned=learned) for k in tracked(range(n), what))


def shown_split(number: int = 0) -> Split:
    """One of the splits of Ionosphere."""
    return split_of(*ionosphere(), FIRST_SEED + number)
