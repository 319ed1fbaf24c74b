"""`trueup simulate`: votes, predictions and the truth of a simulated crowd, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.cells import csv_text
from trueup.cli._app import as_command
from trueup.cli._console import as_json as plain
from trueup.cli._console import note, print_json, print_table, say
from trueup.cli._options import AsJson, Seed, parse_pairs
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


def _names() -> list[str]:
    return list(SIMULATORS)


@as_command
def simulate(
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", show_default=False, autocompletion=_names, help="The simulator; see --list."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", show_default=False, help="The folder to write to.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            show_default=False,
            help="A parameter, e.g. n_items=500 or accuracy='(0.6, 0.9)'. May be given several times.",
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the simulators and their parameters.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a crowd with a known truth: writes votes.csv, predictions.csv, truth.csv and simulation.json."""
    if list_them:
        _show_list(as_json)
        return
    if name is None:
        raise InvalidParameter("a simulator must be named, got none; see 'trueup simulate --list'")
    function, parameters = _simulator(name), parse_pairs(settings or [], option="--set")
    _check_parameters(name, parameters)
    if out is None:
        raise InvalidParameter("a folder to write to is needed, got none; name one with --out DIR")
    _check_folder(out, force=force)
    found: Simulation = function(**parameters, random_state=seed)
    texts, left_out = _texts(found)
    texts["simulation.json"] = _record(name, parameters, seed, found)
    _write(out, texts)
    if left_out:
        note(f"{left_out} items got no vote; they are left out of all files")
    if as_json:
        print_json({"simulator": name, "seed": seed, "files": {file: str(out / file) for file in texts}})
        return
    labels = found.labels
    say(
        f"{labels.n_votes:,} votes of {labels.n_labelers:,} labelers on {labels.n_items - left_out:,} items of "
        f"{labels.n_classes} classes."
    )
    for file in texts:
        say(f"wrote {out / file}")


def _simulator(name: str) -> Any:
    from trueup import simulate as simulators
    from trueup._base.validation import check_choice

    return getattr(
        simulators, check_choice(name.replace("_", "-"), tuple(SIMULATORS), name="the simulator").replace("-", "_")
    )


def _parameters(name: str) -> dict[str, Any]:
    """The parameters of a simulator and their defaults, without the seed."""
    import inspect

    signature = inspect.signature(_simulator(name))
    return {key: one.default for key, one in signature.parameters.items() if key != "random_state"}


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


def _show_list(as_json: bool) -> None:
    if as_json:
        print_json({name: {"about": about, "parameters": _parameters(name)} for name, about in SIMULATORS.items()})
        return
    print_table(("simulator", ("what it is", "left")), list(SIMULATORS.items()))
    for name in SIMULATORS:
        say(f"{name}: " + ", ".join(f"{key}={value!r}" for key, value in _parameters(name).items()))


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
    """The tables as csv, and how many items have no vote and so are in none of them."""
    labels = found.labels
    item, labeler, answer, times = labels.vote_table()
    codes = [column.repeat(times) for column in (item, labeler, answer)]
    columns = zip((labels.items, labels.labelers, labels.answers), codes, strict=True)
    votes = zip(*(names[code].tolist() for names, code in columns), strict=True)
    voted = [(k, name) for k, name in enumerate(labels.items.tolist()) if labels.votes_per_item[k] > 0]
    truth = found.truth.tolist()
    texts = {
        "votes.csv": csv_text(("item", "labeler", "label"), votes),
        "predictions.csv": _predictions(found, voted),
        "truth.csv": csv_text(("item", "label"), [(name, truth[k]) for k, name in voted]),
    }
    return texts, labels.n_items - len(voted)


def _predictions(found: Simulation, voted: list[tuple[int, Any]]) -> str:
    predictions = None if found.predictions is None else found.predictions.tolist()
    scores = None if found.scores is None else found.scores.tolist()
    if predictions is not None and (scores is None or len(scores) == 1):
        score = None if scores is None else scores[0]
        header = ("item", "prediction") if score is None else ("item", "prediction", "score")
        rows = [(name, predictions[k]) if score is None else (name, predictions[k], score[k]) for k, name in voted]
        return csv_text(header, rows)
    if scores is None:
        raise InvalidParameter(
            "a simulation must have a classifier, got none; leave classifier_accuracy as it is, or give a number"
        )
    if len(scores) == 1:
        return csv_text(("item", "score"), [(name, scores[0][k]) for k, name in voted])
    rows = [(f"system-{s + 1}", name, row[k]) for s, row in enumerate(scores) for k, name in voted]
    return csv_text(("system", "item", "score"), rows)


def _record(name: str, parameters: dict[str, Any], seed: int, found: Simulation) -> str:
    """All that is needed to make the files again, and the true accuracy where there is one."""
    from importlib.metadata import version

    record = {
        "simulator": name,
        "parameters": parameters,
        "seed": seed,
        "trueup": version("trueup"),
        "accuracy": _accuracy(found),
    }
    return json.dumps(plain(record), indent=2, allow_nan=False) + "\n"


def _accuracy(found: Simulation) -> float | None:
    """Of the classifier on the items that are written."""
    if found.predictions is None:
        return None
    voted = found.labels.votes_per_item > 0
    return float((found.predictions == found.truth)[voted].mean())


def _write(out: Path, texts: dict[str, str]) -> None:
    from trueup._base.writing import write_text_safely

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(
            f"the folder {str(out)!r} cannot be made, got {error!s:.100}; check the path and its rights"
        ) from error
    for file, text in texts.items():
        write_text_safely(out / file, text)
