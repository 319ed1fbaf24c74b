"""What the commands of `trueup detect` share: their options, and the way from files to a pool of candidates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.writing import check_readable
from trueup.cli._app import as_command
from trueup.cli._console import option_names
from trueup.cli._files import about_files, is_pipe
from trueup.cli._options import Command, option
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.data.labels import Labels
    from trueup.detection import MissedObjects, Pool, Shapes, Vetted

_FILES = "COCO's .json, a table (.csv, …), or a folder of YOLO or Pascal VOC"
_read = functools.partial(option, panel="How to read the files")
_match = functools.partial(option, panel="When shapes are one thing")
_vetted = functools.partial(option, panel="What was vetted")
_SEVERAL = ("--annotators",)  # take several files at once


class ManyFiles(Command):
    """A command in which ``--annotators a.json b.json`` is the same as naming the option for each file."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of the files that follow it."""
        spread: list[str] = []
        repeating = ""
        for k, word in enumerate(args):
            if word == "--":
                spread += args[k:]
                break
            if word in _SEVERAL:
                repeating = word
                if k + 1 == len(args) or args[k + 1].startswith("-"):
                    spread.append(word)  # nothing follows, which the parser complains of
                continue
            if word.startswith("-"):
                repeating = ""
            spread += [repeating, word] if repeating else [word]
        return super().parse_args(ctx, spread)


def add_to(group: typer.Typer) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of the group."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        return group.command(cls=ManyFiles)(as_command(function))

    return add


Detections = Annotated[
    list[str],
    typer.Argument(
        metavar="DETECTIONS…",
        help=f"What systems found, with scores: {_FILES}; a file for each, or NAME=FILE. Before --annotators.",
    ),
]
OptionalDetections = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DETECTIONS…]", show_default=False, help=f"What systems found, if any: {_FILES}."),
]


@dataclass(frozen=True)
class ShapeOptions:
    """What annotators drew, and how files are read."""

    annotators: Annotated[
        list[str],
        _read("--annotators", f"What annotators drew: {_FILES}; a file for each, or NAME=FILE.", metavar="FILES…"),
    ] = field(default_factory=list)
    labeler: Annotated[
        str | None,
        _read(
            "--labeler", "The field or column that names the annotator, where a file holds several.", metavar="COLUMN"
        ),
    ] = None
    system: Annotated[
        str | None, _read("--system", "The column that names the system in a table of detections.", metavar="COLUMN")
    ] = None
    seen: Annotated[
        str,
        _read(
            "--seen",
            "Who looked at which image, where not drawing is a vote: all (of their file), none (nobody knows), or a "
            "table with the columns labeler and image.",
            metavar="WHO",
            show_default=True,
        ),
    ] = "all"
    image: Annotated[
        str, _read("--image", "The column of tables that names the image.", metavar="COLUMN", show_default=True)
    ] = "image"
    class_names: Annotated[
        list[str], _read("--class", "A class of YOLO's texts; once for each, in order.", metavar="NAME")
    ] = field(default_factory=list)
    sizes: Annotated[
        str | None,
        _read("--sizes", "A table of all images where files do not tell: image, width, height.", metavar="FILE"),
    ] = None
    unknown: Annotated[
        str, _read("--unknown", "Detections in images that the annotators do not have: error or drop.")
    ] = "error"


@dataclass(frozen=True)
class MatchOptions:
    """When shapes are one thing."""

    iou: Annotated[float, _match("--iou", "The overlap from which on a detection is at a candidate.")] = 0.5
    join: Annotated[
        float | None,
        _match(
            "--join",
            "The mean overlap from which on shapes of annotators are one candidate.",
            metavar="IOU",
            show_default="as --iou",
        ),
    ] = None
    shape: Annotated[
        str | None,
        _match("--shape", "What is compared: box or mask.", metavar="SHAPE", show_default="masks where all have them"),
    ] = None
    any_class: Annotated[
        bool, _match("--any-class", "Shapes of different classes can be one thing; it has the class that most drew.")
    ] = False
    by_centre: Annotated[
        bool, _match("--by-centre", "For small things: shapes whose centres lie in each other are one thing.")
    ] = False


@dataclass(frozen=True)
class VettedOptions:
    """What was vetted of the candidates."""

    answers: Annotated[
        str | None,
        _vetted("--answers", "The answers that a page of 'trueup detect vet' has saved.", metavar="FILE"),
    ] = None
    searched: Annotated[
        str | None,
        _vetted(
            "--searched", "The storage of the tiles that were searched in the app: sqlite:///FILE, …", metavar="URL"
        ),
    ] = None
    searched_name: Annotated[
        str | None,
        _vetted("--searched-name", "The session about tiles, where the storage has several.", metavar="NAME"),
    ] = None
    gold: Annotated[
        str | None,
        _vetted("--gold", "Vetted candidates as a table: item, label (object or nothing).", metavar="FILE"),
    ] = None
    gold_drawn: Annotated[
        str | None,
        _vetted("--gold-drawn", "How the candidates in --gold were drawn: random or chosen.", metavar="HOW"),
    ] = None


@dataclass(frozen=True, eq=False)
class Question:
    """A pool with what was vetted of it."""

    pool: Pool
    labels: Labels
    missed: MissedObjects | None
    vetted: tuple[Vetted, ...]
    files: dict[str, Any]


def read_pool(detections: Sequence[str], shapes: ShapeOptions, how: MatchOptions) -> Pool:
    """The pool that the files make."""
    from trueup.detection import match, read_annotations, read_detections
    from trueup.detection.reading import read_seen, read_sizes

    if not shapes.annotators:
        raise InvalidParameter(
            "--annotators must name what people drew, got none; write e.g. --annotators ann.json bob.json"
        )
    drawn, found = named_files(shapes.annotators, "--annotators"), named_files(detections, "DETECTIONS")
    seen = None if shapes.seen == "none" else "all"
    with option_names(
        categories="--class",
        unknown="--unknown",
        objects="--annotators",
        found="DETECTIONS",
        image="--image",
        shape="--shape",
    ):
        objects: Shapes = read_annotations(
            drawn,
            labeler=shapes.labeler,
            seen=seen,
            categories=shapes.class_names or None,
            sizes=None if shapes.sizes is None else read_sizes(_readable(shapes.sizes), image=shapes.image),
            image=shapes.image,
            shape=how.shape,
        )
        if shapes.seen not in ("all", "none"):
            objects = read_seen(_readable(shapes.seen), objects, image=shapes.image)
        systems = (
            read_detections(
                found,
                objects,
                system=shapes.system,
                categories=shapes.class_names or None,
                unknown=shapes.unknown,  # type: ignore[arg-type]  # checked by the callee, with a sentence
                image=shapes.image,
                shape=how.shape,
            )
            if found
            else None
        )
        return match(
            systems,
            objects,
            iou=how.iou,
            join=how.join,
            shape=how.shape,
            same_class=not how.any_class,
            by_centre=how.by_centre,
        )


def named_files(texts: Sequence[str], option_name: str) -> dict[str, str]:
    """Files by the names of who made them: as in ``NAME=FILE``, else that of the file."""
    files: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            path, name = text, Path(text).name.split(".")[0]
        if name in files:
            raise InvalidFile(
                f"{option_name} must have a name for each, got {name!r} twice; write NAME=FILE for one of them"
            )
        files[name] = _readable(path)
    return files


def _readable(path: str) -> str:
    if is_pipe(path):
        raise InvalidFile(f"shapes are read from files, got the pipe {path!r}; write it to a file")
    check_readable(path, folders=True)
    return path


def ask(
    detections: Sequence[str], shapes: ShapeOptions, how: MatchOptions, vetted: VettedOptions, seed: int
) -> Question:
    """The pool with what was vetted of it."""
    from trueup.adapters import read_gold
    from trueup.detection import read_answers, read_searched

    pool = read_pool(detections, shapes, how)
    if not len(pool):
        raise InvalidFile("there is no candidate: nobody drew anything and no system found anything; check the files")
    said = None if vetted.answers is None else read_answers(_readable(vetted.answers), pool, random_state=seed)
    labels = pool.labels if said is None else said.labels
    if vetted.searched is None and vetted.searched_name is not None:
        raise InvalidParameter(
            f"--searched-name is about a storage, got {vetted.searched_name!r} and no --searched; name its URL"
        )
    searched = None
    if vetted.searched is not None:
        with option_names(name="--searched-name", split="--split"):
            searched = read_searched(vetted.searched, pool, name=vetted.searched_name, random_state=seed)
    everything = tuple(one for one in (said, searched) if one is not None)
    counted = [one.missed for one in everything if one.missed is not None]
    if len(counted) > 1:
        raise InvalidParameter(
            "tiles must be searched on a page or in the app, got --answers with tiles and --searched; leave one out"
        )
    if vetted.gold is None and vetted.gold_drawn is not None:
        raise InvalidParameter(
            f"--gold-drawn is about a gold file, got {vetted.gold_drawn!r} and no --gold; name the file"
        )
    if vetted.gold is not None:
        with option_names(drawn="--gold-drawn"):
            truths = read_gold(_readable(vetted.gold), labels=labels, drawn=vetted.gold_drawn)  # type: ignore[arg-type]
            labels = labels.with_gold(truths)
    files = about_files(
        annotators=list(named_files(shapes.annotators, "").values()),
        detections=list(named_files(detections, "").values()) or None,
        answers=vetted.answers,
        gold=vetted.gold,
    )
    return Question(pool, labels, counted[0] if counted else None, everything, files)
