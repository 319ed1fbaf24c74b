"""trueup demo and simulate: the main job on data the project makes itself, and simulated crowds as files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.cells import csv_text
from trueup._base.wording import chance
from trueup._base.writing import write_text_safely
from trueup.cli._command import Answer, as_command
from trueup.cli._console import as_json, interval_head, note, print_records, print_table, progress_bar, say
from trueup.cli._options import Force, Report, Seed, arg, opt, parse_pairs
from trueup.cli.judge import write_report
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.noise import EffectiveLabelers
    from trueup.simulate import Simulation


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


_N_LABELERS, _VOTES_PER_ITEM = 12, 5


def crowd_on_digits(random_state: int) -> tuple[Labels, npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
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
    skill = rng.uniform(0.75, 0.97, _N_LABELERS)
    n_items = len(truth)
    item = np.repeat(np.arange(n_items), _VOTES_PER_ITEM)
    labeler = np.argsort(rng.random((n_items, _N_LABELERS)), axis=1, kind="stable")[:, :_VOTES_PER_ITEM].ravel()
    chance = skill[labeler] * (1 - 0.5 * hard[item])
    slip = np.where(rng.random(len(item)) < 0.8 * hard[item] + 0.1, lookalike[item], rng.integers(10, size=len(item)))
    vote = np.where(rng.random(len(item)) < chance, truth[item], slip)
    names = np.array([f"labeler {t + 1:02d}" for t in range(_N_LABELERS)], dtype=object)
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
    labels, truth, predictions = crowd_on_digits(random_state)
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


# What --list says; the order is that of the guide.
SIMULATORS = {
    "baseline": "three labelers with one accuracy each, two classes, all vote",
    "dawid-skene": "a confusion matrix for each labeler, independent given the class",
    "dependent": "labelers and a classifier that err together: subtypes, families, shared difficulty",
    "shared-difficulty": "all find the same items hard, by degrees; a blind spot where everyone errs alike",
    "su": "errors grow with the item's difficulty and the labeler's fallibility (Su 2024)",
    "urkullu": "the truth is a probability, many classifiers of graded quality (Urkullu et al. 2019)",
    "ratings": "classes in an order, labelers with biases and sharpness of their own, neighbours taken for each other",
    "tars": "Gaussian features, votes from confusion matrices (Dolatshah et al. 2018)",
}
_FILES = ("votes.csv", "predictions.csv", "truth.csv", "simulation.json")


@as_command
def simulate(
    *,
    name: str | None = arg(None, "NAME", "The simulator; see --list.", autocompletion=lambda: list(SIMULATORS)),
    out: Path | None = opt(None, "The folder to write to.", "DIR", "-o"),
    settings: list[str] = opt(
        [], "A parameter, e.g. n_items=500 or accuracy='(0.6, 0.9)'. May be given several times.", "NAME=VALUE", "--set"
    ),
    list_them: bool = opt(False, "List the simulators and their parameters.", None, "--list"),
    force: Force = False,
    seed: Seed = 0,
) -> Answer:
    """Simulate a crowd with a known truth: writes votes.csv, predictions.csv, truth.csv and simulation.json."""
    from trueup._base.validation import check_options
    from trueup.data.reading import write_labels

    if list_them:
        listed = {key: {"about": about, "parameters": _parameters(key)} for key, about in SIMULATORS.items()}
        return Answer(listed, _show_list, is_bare=True)
    if name is None:
        raise InvalidParameter("a simulator must be named, got none; see 'trueup simulate --list'")
    function, parameters = _simulator(name), parse_pairs(settings, option="--set")
    check_options(parameters, function, name=f"the simulator {name}")
    if out is None:
        raise InvalidParameter("a folder to write to is needed, got none; name one with --out DIR")
    _check_folder(out, force=force)
    found: Simulation = function(**parameters, random_state=seed)
    texts, left_out = _texts(found)
    texts["simulation.json"] = _record(name, parameters, seed, found)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"the folder {str(out)!r} cannot be made, got {error!s:.100}; check the path") from error
    write_labels(found.labels, out / "votes.csv")
    for file, text in texts.items():
        write_text_safely(out / file, text)
    if left_out:
        note(f"{left_out} items got no vote; they are left out of all files")
    labels = found.labels

    def show(_: Any) -> None:
        n_items = labels.n_items - left_out
        say(f"{labels.n_votes:,} votes of {labels.n_labelers:,} labelers on {n_items:,} items.")
        for file in _FILES:
            say(f"wrote {out / file}")

    paths = {file: str(out / file) for file in _FILES}
    return Answer({"simulator": name, "seed": seed, "files": paths}, show, is_bare=True)


def _simulator(name: str) -> Any:
    from trueup import simulate as simulators
    from trueup._base.validation import check_choice

    chosen = check_choice(name.replace("_", "-"), tuple(SIMULATORS), name="the simulator")
    return getattr(simulators, chosen.replace("-", "_"))


def _parameters(name: str) -> dict[str, Any]:
    """The parameters of a simulator and their defaults, without the seed."""
    parameters = inspect.signature(_simulator(name)).parameters.items()
    return {key: parameter.default for key, parameter in parameters if key != "random_state"}


def _show_list(listed: Any) -> None:
    print_table(("simulator", ("what it is", "left")), list(SIMULATORS.items()))
    for name, about in listed.items():
        say(f"{name}: " + ", ".join(f"{key}={value!r}" for key, value in about["parameters"].items()))


def _check_folder(out: Path, *, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise InvalidFile(f"--out must be a folder, got the file {str(out)!r}; name a folder")
    there = [file for file in _FILES if (out / file).exists()]
    if there and not force:
        raise InvalidFile(
            f"{str(out)!r} must not hold what would be written, got {', '.join(there)}; name another folder, or use "
            "--force to replace them"
        )


def _texts(found: Simulation) -> tuple[dict[str, str], int]:
    """Predictions and truth as csv, and how many items have no vote and so are in no table."""
    labels = found.labels
    voted = [(k, name) for k, name in enumerate(labels.items.tolist()) if labels.votes_per_item[k] > 0]
    truth = found.truth.tolist()
    texts = {
        "predictions.csv": _predictions(found, voted),
        "truth.csv": csv_text(("item", "label"), [(name, truth[k]) for k, name in voted]),
    }
    return texts, labels.n_items - len(voted)


def _predictions(found: Simulation, voted: list[tuple[int, Any]]) -> str:
    """The predictions as csv: classes or scores of one system, or scores of several."""
    scores = [] if found.scores is None else found.scores.tolist()
    if len(scores) > 1:
        rows = [(f"system-{s + 1}", name, row[k]) for s, row in enumerate(scores) for k, name in voted]
        return csv_text(("system", "item", "score"), rows)
    columns = {} if found.predictions is None else {"prediction": found.predictions.tolist()}
    columns |= {"score": scores[0]} if scores else {}
    if not columns:
        raise InvalidParameter(
            "a simulation must have a classifier, got none; leave classifier_accuracy as it is, or give a number"
        )
    rows = [(name, *(values[k] for values in columns.values())) for k, name in voted]
    return csv_text(("item", *columns), rows)


def _record(name: str, parameters: dict[str, Any], seed: int, found: Simulation) -> str:
    """All that is needed to make the files again, and the true accuracy on the written items where there is one."""
    from importlib.metadata import version

    accuracy = None
    if found.predictions is not None:
        accuracy = float((found.predictions == found.truth)[found.labels.votes_per_item > 0].mean())
    record = {"simulator": name, "parameters": parameters, "seed": seed, "trueup": version("trueup")}
    return json.dumps(as_json({**record, "accuracy": accuracy}), indent=2, allow_nan=False) + "\n"
