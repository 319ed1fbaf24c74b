"""`trueup simulate`: votes, predictions and the truth of a simulated crowd, as files."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.cells import csv_text
from trueup._base.writing import write_text_safely
from trueup.cli._command import Answer, as_command
from trueup.cli._console import as_json, note, print_table, say
from trueup.cli._options import Force, Seed, arg, opt, parse_pairs
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.simulate import Simulation

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
    from trueup.data.reading import write_labels

    if list_them:
        listed = {key: {"about": about, "parameters": _parameters(key)} for key, about in SIMULATORS.items()}
        return Answer(listed, _show_list, is_bare=True)
    if name is None:
        raise InvalidParameter("a simulator must be named, got none; see 'trueup simulate --list'")
    function, parameters = _simulator(name), parse_pairs(settings, option="--set")
    _check_parameters(name, parameters)
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


def _check_parameters(name: str, given: dict[str, Any]) -> None:
    from trueup._base.validation import did_you_mean

    known = _parameters(name)
    for key in given:
        if key == "random_state":
            raise InvalidParameter("--set must not hold random_state, got it; use --seed")
        if key not in known:
            raise InvalidParameter(
                f"--set must name a parameter of {name}, got {key!r}{did_you_mean(key, list(known))}; "
                "see 'trueup simulate --list'"
            )


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
