"""trueup demo: the main job on data the project makes itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.wording import chance
from trueup.cli._command import Answer, as_command
from trueup.cli._console import interval_head, note, print_records, progress_bar, say
from trueup.cli._options import Report, Seed, opt
from trueup.cli.judge import write_report

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.noise import EffectiveLabelers


@as_command
def demo(
    report: Report = "trueup-demo.html",
    quick: bool = opt(False, "Some of the digits, few draws, a simple noise model: done in seconds."),
    seed: Seed = 0,
) -> Answer:
    """Train two classifiers, let a simulated crowd label the test part, and say how good they really are."""
    with progress_bar("judging two classifiers") as progress:
        shares: dict[str, float] = {}

        def show_step(step: str, share: float) -> None:
            if progress is None and step not in shares:  # no terminal to draw a bar on
                note(f"{step} …")
            shares[step] = share
            if progress is not None:
                progress(sum(shares.values()) / 3)  # two evaluations and a comparison take almost all of the time

        result = run_demo(quick=quick, random_state=seed, progress=show_step)
    labels, comparison = result.labels, result.comparison
    # Before anything is printed: the reader of a pipe may go away.
    title = "Two classifiers of handwritten digits, judged by a simulated crowd"
    write_report(report, result.evaluations, labels, comparison=comparison, title=title, seed=seed)
    systems = [
        {
            "system": name,
            **evaluation.to_dict(),
            "majority_accuracy": result.majority[name],
            "hidden_accuracy": result.truth[name],
        }
        for name, evaluation in result.evaluations.items()
    ]
    path = str(Path(str(report)).resolve())

    def show(_: Any) -> None:
        say(
            f"A crowd of {labels.n_labelers} gave {labels.n_votes:,} votes on {labels.n_items:,} handwritten digits; "
            f"the truth stays hidden. {result.effective.sentence}"
        )
        columns = {"accuracy of": "system", "trueup": "mean", interval_head(0.95): "interval"}
        columns |= {"majority as truth": "majority_accuracy", "hidden truth": "hidden_accuracy"}
        print_records(columns, [{**system["metrics"]["accuracy"], **system} for system in systems])
        best, other = comparison.ranking[:2]
        truly = "better" if result.truth[best] > result.truth[other] else "not better"
        probability = chance(comparison.prob_better(best, other))
        say(f"{best} is better than {other} with probability {probability}; in truth it is {truly}.")
        say(f"The report is at {path}")

    body = {"systems": systems, "comparison": comparison.to_dict(), "report": path}
    warnings = [sentence for evaluation in result.evaluations.values() for sentence in evaluation.warnings]
    return Answer(body, show, warnings=warnings)


@dataclass(frozen=True)
class Demo:
    """What the demonstration found, and what it had hidden."""

    labels: Labels
    effective: EffectiveLabelers
    evaluations: dict[str, Evaluation]
    comparison: Comparison  # of the two, by accuracy, on exactly these items
    majority: dict[str, float | None]
    truth: dict[str, float]


def crowd_on_digits(
    *, n_labelers: int = 12, votes_per_item: int = 5, random_state: int = 0
) -> tuple[Labels, npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Votes of a simulated crowd on scikit-learn's digits, the truth, and the predictions of two classifiers."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    from trueup.data.labels import Labels

    images, digits = load_digits(return_X_y=True)
    train, test, y_train, truth = train_test_split(images, digits, train_size=2 / 3, random_state=random_state)
    predictions = {
        "support vectors": SVC(gamma=0.001).fit(train, y_train).predict(test),
        "naive Bayes": GaussianNB(var_smoothing=1e-2).fit(train, y_train).predict(test),
    }
    centres = np.array([images[digits == digit].mean(axis=0) for digit in range(10)])
    distance = np.linalg.norm(test[:, None, :] - centres, axis=2)
    lookalike = np.where(np.arange(10) == truth[:, None], np.inf, distance).argmin(axis=1)
    margin = distance[np.arange(len(truth)), lookalike] - distance[np.arange(len(truth)), truth]
    rng = np.random.default_rng(random_state)
    hard = 1 / (1 + np.exp((margin - np.quantile(margin, 0.12)) / 3))
    skill = rng.uniform(0.75, 0.97, n_labelers)
    n_items = len(truth)
    item = np.repeat(np.arange(n_items), votes_per_item)
    labeler = np.argsort(rng.random((n_items, n_labelers)), axis=1, kind="stable")[:, :votes_per_item].ravel()
    chance = skill[labeler] * (1 - 0.5 * hard[item])
    slip = np.where(rng.random(len(item)) < 0.8 * hard[item] + 0.1, lookalike[item], rng.integers(10, size=len(item)))
    vote = np.where(rng.random(len(item)) < chance, truth[item], slip)
    names = np.array([f"labeler {t + 1:02d}" for t in range(n_labelers)], dtype=object)
    labels = Labels.from_frame({"item": item, "labeler": names[labeler], "label": vote}, classes=list(range(10)))
    return labels, truth, predictions


def run_demo(
    *, quick: bool = False, random_state: int = 0, progress: Callable[[str, float], None] = lambda step, share: None
) -> Demo:
    """Evaluate and compare both classifiers from the crowd's votes alone, and only then look at the truth."""
    from trueup.answers.compare import compare
    from trueup.answers.evaluate import evaluate
    from trueup.noise import DawidSkene, effective_labelers
    from trueup.report.measures import majority_values

    def begin(step: str) -> Callable[[float], None]:
        progress(step, 0.0)
        return lambda share: progress(step, share)

    begin("training two classifiers and asking a crowd")
    labels, truth, predictions = crowd_on_digits(random_state=random_state)
    asked: dict[str, Any] = {"random_state": random_state}
    model = None
    if quick:
        labels, truth = labels.select(items=labels.items[:200]), truth[:200]
        predictions = {name: predicted[:200] for name, predicted in predictions.items()}
        asked["n_draws"] = 512
        model = DawidSkene().fit(labels)
    effective = effective_labelers(labels, model)
    metrics = ["accuracy", "macro_f1", "balanced_accuracy"]
    evaluations = {
        name: evaluate(predicted, labels, metrics=metrics, progress=begin(f"evaluating {name}"), **asked)
        for name, predicted in predictions.items()
    }
    asked |= {"check_dependence": False, "progress": begin("comparing the two")}  # evaluations checked the same votes
    comparison = compare(predictions, labels, target="sample", **asked)
    by_majority = {name: majority_values(evaluation, labels)["accuracy"] for name, evaluation in evaluations.items()}
    hidden = {name: float((predicted == truth).mean()) for name, predicted in predictions.items()}
    return Demo(labels, effective, evaluations, comparison, by_majority, hidden)
