"""trueup demo and simulate: the main job on data the project makes itself, and simulated crowds as files."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.cells import csv_text
from trueup._base.wording import interval, number, text_bar
from trueup._base.writing import write_text_safely
from trueup.cli._command import Answer, as_command
from trueup.cli._console import as_json, note, print_table, progress_bar, say
from trueup.cli._options import Force, Report, Seed, arg, opt, parse_pairs
from trueup.cli.judge import systems_page
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.decisions import Decision
    from trueup.simulate import Simulation


N_CHECKED = 40
N_AT_ONCE = 5  # checks between two looks at the decision
_N_ITEMS, _N_TRAINED = 600, 300
_SHOWN = (0.5, 1.0)  # the ends of the picture
_WIDTH = 46


@as_command
def demo(report: Report = "trueup-demo.html", seed: Seed = 0) -> Answer:
    """Two classifiers, a crowd that errs together, and forty checks: how good are they really, and which is better?"""
    with progress_bar("judging two classifiers") as progress:
        found = run_demo(random_state=seed, progress=progress or (lambda share: None))
    title = "Two classifiers of handwritten digits, judged by a crowd and forty checks"
    about = {"comparison": found.comparison, "title": title}
    path = str(Path(str(report)).resolve())
    body = {**found.to_dict(), "report": path}
    return Answer(
        body, lambda _: _show(found, path), page=lambda: systems_page(found.evaluations, found.labels, **about)
    )


def _show(found: Demo, report: str) -> None:
    """The story, in the order in which it happens."""
    say(
        f"Two classifiers read {_N_ITEMS} handwritten digits. Five people voted on each; nobody looked up the truth.\n"
        "Some digits look like another, and on those most people err together.\n"
    )
    for name in found.truth:
        say(f"Accuracy of {name!r} (┃ is the truth, which nobody knows yet)")
        for basis, (low, high) in found.ranges(name).items():
            bar = text_bar(low, high, bounds=_SHOWN, mark=found.truth[name], width=_WIDTH)
            say(f"  {basis:<20} {interval(low, high, 2)}  {bar}")
        say("")
    first, second = sorted(found.truth, key=lambda name: -found.majority[name][0])
    counted = f"{number(found.majority[first][0], 2)} against {number(found.majority[second][0], 2)}"
    is_wrong = found.truth[first] < found.truth[second]
    ranges = [(found.truth[name], *list(found.ranges(name).values())[-1]) for name in found.truth]
    is_right = all(low <= true <= high for true, low, high in ranges)
    n, (better, other) = found.decision.progress.n_tells, found.comparison.ranking
    verdict = {"passed": "yes", "failed": "no"}.get(found.decision.verdict, "still open")
    say(
        f"The majority vote is narrow{' and wrong' if is_wrong else ''}: by it {first!r} is better, {counted}.\n"
        "Votes alone are wide, since they do not show how often people err together.\n"
        f"An expert who checks {N_CHECKED} images drawn at random makes it narrow{', and right' if is_right else ''}.\n"
        f"\nIs {better!r} better than {other!r}? After {n} more checks: {verdict} (false in 5% at most).\n"
        f"The whole report: {report}"
    )


@dataclass(frozen=True)
class Demo:
    """What the demonstration found, and what it had hidden."""

    labels: Labels  # the votes, with the checks
    evaluations: dict[str, Evaluation]  # by votes and checks
    alone: Comparison  # by votes alone
    comparison: Comparison  # by votes and checks
    decision: Decision
    majority: dict[str, tuple[float, float, float]]  # the accuracy with the majority for the truth, and its interval
    truth: dict[str, float]

    def ranges(self, name: str) -> dict[str, tuple[float, float]]:
        """The interval of a classifier by each way to judge it."""
        return {
            "majority vote": self.majority[name][1:],
            "votes alone": self.alone[name].interval(0.95),
            f"votes, {N_CHECKED} checks": self.evaluations[name]["accuracy"].interval(0.95),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        systems = [
            {
                "system": name,
                "hidden_accuracy": self.truth[name],
                **{basis: {"low": low, "high": high} for basis, (low, high) in self.ranges(name).items()},
            }
            for name in self.truth
        ]
        return {"systems": systems, "comparison": self.comparison.to_dict(), "decision": self.decision.to_dict()}


def crowd_on_digits(random_state: int = 0) -> tuple[Labels, npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    """Votes of a crowd on scikit-learn's digits, the truth, and the predictions of two classifiers.

    The people compare an image with a picture of each digit in their mind: on the fifth of the images that are nearly
    as near to another digit, most of them say that one. "templates" works like them, and so errs where they do.
    """
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.svm import SVC

    from trueup.data.labels import Labels

    images, digits = load_digits(return_X_y=True)
    train, test, y_train, truth = train_test_split(
        images, digits, train_size=_N_TRAINED, test_size=_N_ITEMS, random_state=random_state, stratify=digits
    )
    predictions = {
        "templates": _distances(test, train, y_train).argmin(axis=1),
        "support vectors": SVC(gamma=0.001).fit(train, y_train).predict(test),
    }
    rng = np.random.default_rng(random_state)
    distance = _distances(test, images, digits)
    of_others = np.where(np.arange(10) == truth[:, None], np.inf, distance)
    margin = of_others.min(axis=1) - distance[np.arange(_N_ITEMS), truth]
    is_hard = (margin < np.quantile(margin, 0.2))[:, None]
    labeler = np.argsort(rng.random((_N_ITEMS, 12)), axis=1, kind="stable")[:, :5]
    is_right = rng.random(labeler.shape) < np.where(is_hard, 0.25, rng.uniform(0.85, 0.97, 12)[labeler])
    looks_like = np.where(
        rng.random(labeler.shape) < np.where(is_hard, 0.95, 0.2),
        of_others.argmin(axis=1)[:, None],
        rng.integers(10, size=labeler.shape),
    )
    vote = np.where(is_right, truth[:, None], looks_like)
    names = np.array([f"labeler {t + 1:02d}" for t in range(12)], dtype=object)
    item = np.repeat(np.arange(_N_ITEMS), labeler.shape[1])
    table = {"item": item, "labeler": names[labeler.ravel()], "label": vote.ravel()}
    return Labels.from_frame(table, classes=list(range(10))), truth, predictions


def _distances(images: Any, of: Any, digits: Any) -> Any:
    """How far each image is from the mean image of each digit."""
    import numpy as np

    means = np.stack([of[digits == digit].mean(axis=0) for digit in range(10)])
    return np.linalg.norm(images[:, None, :] - means, axis=2)


def run_demo(*, random_state: int = 0, progress: Any = lambda share: None) -> Demo:
    """Judge both classifiers by votes, then by votes and forty checks, then check until one is surely better."""
    from trueup.answers.compare import compare
    from trueup.answers.evaluate import evaluate
    from trueup.decisions import decide
    from trueup.labelers import draw_sample
    from trueup.posteriors.continuous import wilson
    from trueup.report.summary import majority_values

    labels, truth, predictions = crowd_on_digits(random_state)
    right = {name: float((predicted == truth).mean()) for name, predicted in predictions.items()}
    how: dict[str, Any] = {"random_state": random_state, "target": "sample", "check_dependence": False}
    progress(0.1)
    alone = compare(predictions, labels, **how)
    progress(0.3)
    sample = draw_sample(labels, N_CHECKED, random_state=random_state)
    answers = {item: int(truth[item]) for item in sample.items.tolist()}  # what an expert says
    checked = labels.with_gold(answers, drawn=sample.drawn)
    metrics = ["accuracy", "macro_f1", "balanced_accuracy"]
    evaluations = {
        name: evaluate(predicted, checked, metrics=metrics, **how) for name, predicted in predictions.items()
    }
    progress(0.7)
    comparison = compare(predictions, checked, **how)
    better, other = comparison.ranking  # as far as anybody knows
    decision = decide(comparison, candidate=better, better_than=other, random_state=random_state)
    while decision.finished is None:
        decision.tell({item: int(truth[item]) for item in decision.ask(N_AT_ONCE)})
    progress(1.0)
    majority = {}
    for name, evaluation in evaluations.items():
        share = majority_values(evaluation, labels)["accuracy"] or 0.0
        majority[name] = (share, *wilson(share * _N_ITEMS, _N_ITEMS))  # the interval of textbooks
    return Demo(checked, evaluations, alone, comparison, decision, majority, right)


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
    from importlib.metadata import version

    from trueup import simulate as simulators
    from trueup._base.validation import check_choice, check_options
    from trueup.data.reading import write_labels

    def simulator(name: str) -> Any:
        return getattr(simulators, name.replace("-", "_"))

    if list_them:
        listed = {
            key: {
                "about": about,
                "parameters": {
                    name: parameter.default
                    for name, parameter in inspect.signature(simulator(key)).parameters.items()
                    if name != "random_state"
                },
            }
            for key, about in SIMULATORS.items()
        }
        return Answer(listed, _show_list, is_bare=True)
    if name is None:
        raise InvalidParameter("a simulator must be named, got none; see 'trueup simulate --list'")
    function = simulator(check_choice(name.replace("_", "-"), tuple(SIMULATORS), name="the simulator"))
    parameters = parse_pairs(settings, option="--set")
    check_options(parameters, function, name=f"the simulator {name}")
    if out is None:
        raise InvalidParameter("a folder to write to is needed, got none; name one with --out DIR")
    if out.exists() and not out.is_dir():
        raise InvalidFile(f"--out must be a folder, got the file {str(out)!r}; name a folder")
    there = [file for file in _FILES if (out / file).exists()]
    if there and not force:
        raise InvalidFile(
            f"{str(out)!r} must not hold what would be written, got {', '.join(there)}; name another folder, or use "
            "--force to replace them"
        )
    found: Simulation = function(**parameters, random_state=seed)
    labels, truth, accuracy = found.labels, found.truth.tolist(), None
    if found.predictions is not None:
        accuracy = float((found.predictions == found.truth)[labels.votes_per_item > 0].mean())
    voted = [(k, item) for k, item in enumerate(labels.items.tolist()) if labels.votes_per_item[k] > 0]
    record = {"simulator": name, "parameters": parameters, "seed": seed, "trueup": version("trueup")}
    texts = {
        "predictions.csv": _predictions(found, voted),
        "truth.csv": csv_text(("item", "label"), [(item, truth[k]) for k, item in voted]),
        "simulation.json": json.dumps(as_json({**record, "accuracy": accuracy}), indent=2, allow_nan=False) + "\n",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"the folder {str(out)!r} cannot be made, got {error!s:.100}; check the path") from error
    write_labels(labels, out / "votes.csv")
    for file, text in texts.items():
        write_text_safely(out / file, text)
    if left_out := labels.n_items - len(voted):
        note(f"{left_out} items got no vote; they are left out of all files")

    def show(_: Any) -> None:
        say(f"{labels.n_votes:,} votes of {labels.n_labelers:,} labelers on {len(voted):,} items.")
        for file in _FILES:
            say(f"wrote {out / file}")

    paths = {file: str(out / file) for file in _FILES}
    return Answer({"simulator": name, "seed": seed, "files": paths}, show, is_bare=True)


def _show_list(listed: Any) -> None:
    print_table(("simulator", ("what it is", "left")), list(SIMULATORS.items()))
    for name, about in listed.items():
        say(f"{name}: " + ", ".join(f"{key}={value!r}" for key, value in about["parameters"].items()))


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
