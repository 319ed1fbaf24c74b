"""`trueup detect`: how good are detectors really, when boxes and masks of annotators are noisy and incomplete?"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.writing import check_readable
from trueup.cli import _options as options
from trueup.cli._command import Answer, add_to, call_library, this_call
from trueup.cli._console import (
    interval_head,
    name_options,
    note,
    print_records,
    print_table,
    progress_bar,
    say,
    shown,
    with_cli_terms,
)
from trueup.cli._files import about_files, is_pipe
from trueup.cli._options import Command, Option, given, opt
from trueup.cli.judge import about_comparison, show_comparison
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.evaluation import Evaluation
    from trueup.data.labels import Labels
    from trueup.detection import MissedObjects, Pool, Shapes, Vetted

detect = typer.Typer(
    help="How good are detectors really? Average precision with intervals when boxes and masks of annotators are "
    "noisy, incomplete or cheap.",
    no_args_is_help=True,
)

# Options ------------------------------------------------------------------------------------------------------------

_FILES = "COCO's .json, a table (.csv, …), or a folder of YOLO or Pascal VOC"
_METRICS = "precision, recall, pool_recall, f0.5, f1, f2, ap50, ap75, ap, ap_small, ap_medium, ap_large, froc or "
_METRIC = f"A metric: {_METRICS}panoptic_quality."
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


Detections = Annotated[
    list[str],
    Option(
        f"What systems found, with scores: {_FILES}; a file for each, or NAME=FILE. Before --annotators.",
        "DETECTIONS…",
        is_argument=True,
    ),
]
OptionalDetections = Annotated[
    list[str] | None, Option(f"What systems found, if any: {_FILES}.", "[DETECTIONS…]", is_argument=True)
]
Threshold = Annotated[float, Option("Detections from this score on are reported.")]


@dataclass(frozen=True)
class ShapeOptions:
    """How to read the files."""

    annotators: list[str] = opt([], f"What annotators drew: {_FILES}; a file for each, or NAME=FILE.", "FILES…")
    labeler: str | None = opt(None, "The column that names the annotator, where a file holds several.", "COLUMN")
    system: str | None = opt(None, "The column that names the system in a table of detections.", "COLUMN")
    seen: str = opt("all", "Who looked where: all (of their file), none, or a table: labeler, image.", "WHO", show=True)
    image: str = opt("image", "The column of tables that names the image.", "COLUMN", show=True)
    class_names: list[str] = opt([], "A class of YOLO's texts; once for each, in order.", "NAME", "--class")
    sizes: str | None = opt(None, "A table of all images where files do not tell: image, width, height.", "FILE")
    unknown: str = opt("error", "Detections in images that the annotators do not have: error or drop.")


@dataclass(frozen=True)
class MatchOptions:
    """When shapes are one thing."""

    iou: float = opt(0.5, "The overlap from which on a detection is at a candidate.")
    join: float | None = opt(None, "The same for shapes of annotators, on average.", "IOU", show="as --iou")
    shape: str | None = opt(None, "What is compared: box or mask.", "SHAPE", show="masks where all have them")
    any_class: bool = opt(False, "Shapes of different classes can be one thing; it has the class that most drew.")
    by_centre: bool = opt(False, "For small things: shapes whose centres lie in each other are one thing.")


@dataclass(frozen=True)
class CheckedOptions:
    """What was checked."""

    answers: str | None = opt(None, "The answers that a page of 'trueup detect vet' has saved.", "FILE")
    searched: str | None = opt(None, "The storage of the tiles that were searched in the app: sqlite:///FILE, …", "URL")
    searched_name: str | None = opt(None, "The session about tiles, where the storage has several.", "NAME")
    gold: str | None = opt(None, "Checked candidates as a table: item, label (object or nothing).", "FILE")
    gold_drawn: str | None = opt(None, "How the candidates in --gold were drawn: random or chosen.", "HOW")


# Files --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidates:
    """A pool with what was checked of it."""

    pool: Pool
    labels: Labels
    missed: MissedObjects | None
    checked: tuple[Vetted, ...]
    files: dict[str, Any]

    @property
    def warnings(self) -> list[str]:
        """About who checked."""
        return [sentence for vetted in self.checked for sentence in vetted.warnings]

    @property
    def counts(self) -> dict[str, int]:
        """Of planted and hidden cards, over the page and the app."""
        names = ("planted", "accepted", "hidden", "noticed")
        return {name: sum(getattr(vetted, f"n_{name}") for vetted in self.checked) for name in names}

    def record(self) -> dict[str, Any]:
        """The pool, and what was checked of it, for JSON."""
        n, missed = self.counts, self.missed
        counts = {
            "planted": {"shown": n["planted"], "taken_for_objects": n["accepted"]},
            "hidden": {"shown": n["hidden"], "noticed": n["noticed"]},
        }
        return {
            "pool": _about_pool(self.pool),
            "vetted": len(self.labels.gold),
            "missed": None if missed is None else {**missed.total.to_dict(0.95), "searched": missed.n_searched},
            **(counts if self.checked else dict.fromkeys(counts)),
        }

    def show(self) -> None:
        """The same for people."""
        from trueup.detection.evaluating import pool_sentences

        about, n = _about_pool(self.pool), self.counts
        for sentence in pool_sentences(self.pool, self.missed):
            say(sentence)
        annotators = [{"name": name, **counts} for name, counts in about["annotators"].items()]
        print_records({"annotator": "name", "drew": "drawn", "looked and did not draw": "not_drawn"}, annotators)
        systems = [{"name": name, **counts} for name, counts in about["systems"].items()]
        if systems:
            print_records({"system": "name", "detections": "detections", "duplicates": "duplicates"}, systems)
        if self.labels.gold:
            say(f"{len(self.labels.gold):,} candidates are checked.")
        if n["planted"]:
            say(f"{n['accepted']} of {n['planted']} empty places were taken for objects.")
        if n["hidden"]:
            say(f"{n['noticed']} of {n['hidden']} objects whose outline was hidden were noticed.")


def _named_files(texts: Sequence[str], option_name: str) -> dict[str, str]:
    """Files by the names of who made them: as in ``NAME=FILE``, else that of the file."""
    files: dict[str, str] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            path, name = text, Path(text).name.split(".")[0]
        if name in files:
            raise InvalidFile(f"{option_name} must have a name for each, got {name!r} twice; write NAME=FILE for one")
        files[name] = _readable(path)
    return files


def _readable(path: str) -> str:
    if is_pipe(path):
        raise InvalidFile(f"shapes are read from files, got the pipe {path!r}; write it to a file")
    check_readable(path, folders=True)
    return path


def _read(
    detections: Sequence[str] | None,
    shapes: ShapeOptions,
    how: MatchOptions,
    checked: CheckedOptions | None = None,
    seed: int = 0,
) -> Candidates:
    """The candidates that the files make, with what was checked of them."""
    from trueup.adapters import read_gold
    from trueup.detection import match, read_annotations, read_answers, read_detections, read_searched
    from trueup.detection.reading import read_seen, read_sizes

    checked = checked or CheckedOptions()
    name_options(categories="--class", objects="--annotators", found="DETECTIONS", missed="--answers or --searched")
    name_options(name="--searched-name", split="--split")
    if not shapes.annotators:
        raise InvalidParameter(
            "--annotators must name what people drew, got none; write e.g. --annotators a.json b.json"
        )
    if checked.searched is None and checked.searched_name is not None:
        raise InvalidParameter(
            f"--searched-name is of a storage, got {checked.searched_name!r} and no --searched; add it"
        )
    if checked.gold is None and checked.gold_drawn is not None:
        raise InvalidParameter(f"--gold-drawn is of a gold file, got {checked.gold_drawn!r} and no --gold; name it")
    drawn, found = _named_files(shapes.annotators, "--annotators"), _named_files(detections or [], "DETECTIONS")
    categories = shapes.class_names or None
    sizes = None if shapes.sizes is None else read_sizes(_readable(shapes.sizes), image=shapes.image)
    seen = None if shapes.seen == "none" else "all"
    objects: Shapes = call_library(read_annotations, drawn, categories=categories, sizes=sizes, seen=seen)
    if shapes.seen not in ("all", "none"):
        objects = read_seen(_readable(shapes.seen), objects, image=shapes.image)
    systems = call_library(read_detections, found, objects, categories=categories) if found else None
    pool: Pool = call_library(match, systems, objects, same_class=not how.any_class)
    if not len(pool):
        raise InvalidFile("there is no candidate: nobody drew anything and no system found anything; check the files")
    labels, parts = pool.labels, []
    if checked.answers is not None:
        parts.append(read_answers(_readable(checked.answers), pool, random_state=seed))
        labels = parts[0].labels
    if checked.searched is not None:
        parts.append(read_searched(checked.searched, pool, name=checked.searched_name, random_state=seed))
    counted = [part.missed for part in parts if part.missed is not None]
    if len(counted) > 1:
        raise InvalidParameter(
            "tiles must be searched on a page or in the app, got --answers with tiles and --searched; leave one out"
        )
    if checked.gold is not None:
        gold_drawn: Any = checked.gold_drawn
        labels = labels.with_gold(read_gold(_readable(checked.gold), labels=labels, drawn=gold_drawn))
    paths = {"annotators": list(drawn.values()), "detections": list(found.values()) or None}
    files = about_files(**paths, answers=checked.answers, gold=checked.gold)
    return Candidates(pool, labels, counted[0] if counted else None, tuple(parts), files)


# Commands -----------------------------------------------------------------------------------------------------------


@add_to(detect, cls=ManyFiles)
def match(
    shapes: ShapeOptions,
    how: MatchOptions,
    checked: CheckedOptions,
    detections: OptionalDetections = None,
    votes: str | None = opt(None, "Also write the votes on candidates: item, labeler, label.", "FILE", writes=True),
    coco: str | None = opt(None, "Also write what most drew, or is checked, as COCO.", "FILE", writes=True),
) -> Answer:
    """Join what annotators drew and systems found into candidate objects, and show how they agree."""
    from trueup.data.reading import write_labels
    from trueup.detection import write_coco

    candidates = _read(detections, shapes, how, checked)
    pool = candidates.pool
    if votes is not None:
        write_labels(candidates.labels, votes)
        note(f"votes: {votes}")
    if coco is not None:
        note(f"{write_coco(pool, coco, labels=candidates.labels):,} candidates: {coco}")
    return Answer(_about_pool(pool), lambda _: candidates.show(), head={"files": candidates.files})


@add_to(detect, cls=ManyFiles)
def evaluate(
    detections: Detections,
    shapes: ShapeOptions,
    how: MatchOptions,
    checked: CheckedOptions,
    sampler: options.SamplerOptions,
    metric: list[str] = opt(["ap", "ap50", "precision", "recall", "f1"], f"{_METRIC} May be repeated.", None, "-m"),
    threshold: Threshold = 0.5,
    by_class: bool = opt(False, "Each metric for each class, too."),
    cuts: bool = opt(False, "How the answer moves where shapes are one thing from .4, .5 or .6 on."),
    only_system: options.OnlySystem = None,
    coco: str | None = opt(None, "Also write probable objects as COCO, with probabilities.", "FILE", writes=True),
    noise: options.Noise = None,
    level: options.Level = 0.95,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How good is a detector really? Precision, recall and average precision with intervals."""
    from trueup.detection import evaluate as judge
    from trueup.detection import evaluate_at_cuts, write_coco
    from trueup.detection.evaluating import cut_table, object_probabilities

    candidates = _read(detections, shapes, how, checked, seed)
    pool, labels = candidates.pool, candidates.labels
    if only_system is not None and only_system not in pool.found:
        raise InvalidParameter(f"there is no system {only_system!r}, got {', '.join(pool.found)}")
    asked: dict[str, Any] = {"metrics": metric, "threshold": threshold, "labels": labels, "missed": candidates.missed}
    asked |= given(noise=noise, level=level, random_state=seed, n_draws=sampler.draws, n_warmup=sampler.warmup)
    answers: dict[str, Evaluation] = {}
    moved: dict[str, dict[float, Evaluation]] = {}
    for name in [only_system] if only_system is not None else pool.systems:
        with progress_bar(f"evaluating {name}") as progress:
            answers[name] = with_cli_terms(judge(pool, name, by_class=by_class, progress=progress, **asked))
            moved[name] = evaluate_at_cuts(pool, name, **asked) if cuts else {}
    if coco is not None:
        chances = object_probabilities(pool, next(iter(answers.values())))
        note(f"{write_coco(pool, coco, probabilities=chances, labels=labels):,} objects: {coco}")

    def body() -> Mapping[str, Any]:
        systems = [
            {
                "system": name,
                **evaluation.to_dict(),
                "cuts": {f"{cut:g}": _estimates(moved_to) for cut, moved_to in moved[name].items()},
            }
            for name, evaluation in answers.items()
        ]
        return {**candidates.record(), **(systems[0] if len(systems) == 1 else {"systems": systems})}

    def show(_: Any) -> None:
        candidates.show()
        for name, evaluation in answers.items():
            say(f"{shown(name)}: this rests on {evaluation.answer_in_words()}.")
            rows = [{"metric": metric, **estimate} for metric, estimate in _estimates(evaluation).items()]
            print_records({"metric": "metric", "estimate": "mean", interval_head(level): "interval"}, rows)
            if cuts:
                table = cut_table(name, moved[name])
                print_table(table["head"], table["rows"], title=table["words"])

    found = {name: at_cuts for name, at_cuts in moved.items() if at_cuts}
    warnings = [*candidates.warnings, *(text for evaluation in answers.values() for text in evaluation.warnings)]
    page = functools.partial(_page, candidates, answers, threshold, cuts=found)
    return Answer(body, show, warnings=warnings, head={"files": candidates.files}, page=page)


@add_to(detect, cls=ManyFiles)
def compare(
    detections: Detections,
    shapes: ShapeOptions,
    how: MatchOptions,
    checked: CheckedOptions,
    sampler: options.SamplerOptions,
    metric: str = opt("ap", _METRIC, None, "-m"),
    threshold: Threshold = 0.5,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """Which detector is better, and how sure is that?"""
    from trueup.detection import compare as judge_all
    from trueup.detection import evaluate as judge

    candidates = _read(detections, shapes, how, checked, seed)
    pool = candidates.pool
    if len(pool.found) < 2:
        raise InvalidParameter(f"a comparison needs two systems, got {', '.join(pool.found) or 'none'}; add files")
    asked: dict[str, Any] = {"threshold": threshold, "labels": candidates.labels, "missed": candidates.missed}
    asked |= given(noise=noise, level=level, random_state=seed, n_draws=sampler.draws, n_warmup=sampler.warmup)
    with progress_bar(f"comparing {len(pool.found)} systems") as progress:
        comparison = with_cli_terms(judge_all(pool, metric=metric, progress=progress, **asked))

    def page() -> Mapping[str, Any]:
        names = list(dict.fromkeys([metric, "precision", "recall"]))
        each = {name: with_cli_terms(judge(pool, name, metrics=names, **asked)) for name in comparison.ranking}
        return _page(candidates, each, threshold, comparison=comparison)

    def show(_: Any) -> None:
        show_comparison(comparison)
        candidates.show()

    return Answer(
        lambda: {**candidates.record(), **about_comparison(comparison)},
        show,
        warnings=[*candidates.warnings, *comparison.warnings],
        head={"files": candidates.files},
        page=page,
    )


@add_to(detect, cls=ManyFiles)
def vet(
    shapes: ShapeOptions,
    how: MatchOptions,
    detections: OptionalDetections = None,
    out: str | None = opt(
        None, "Write the cards as one HTML page, which saves the answers.", "PATH", "-o", writes=(".html", ".htm")
    ),
    for_app: str | None = opt(None, "Write votes, predictions, cards and pictures for 'trueup serve'.", "FOLDER"),
    n: int = opt(60, "How many candidates, drawn at random.", None, "--number", "-n", min=1),
    tiles: int = opt(20, "How many tiles to search for objects that nobody drew.", min=0),
    split: int = opt(2, "Each image has so many tiles in each direction.", min=1),
    planted: int | None = opt(
        None, "Empty places among the candidates, to measure the expert.", "N", min=0, show="one for ten candidates"
    ),
    hidden: int | None = opt(
        None, "Tiles without an object's outline, to measure the expert.", "N", min=0, show="one for five tiles"
    ),
    images: str | None = opt(None, "A folder of the photographs; else cards are drawn from shapes.", "FOLDER"),
    title: str = opt("What is there?", "Of the page."),
    seed: options.Seed = 0,
) -> Answer:
    """Make blind cards for an expert: random candidates, empty places, and random tiles to search."""
    from trueup.detection import make_deck, save_cards, save_for_app

    if out is None and for_app is None:
        raise InvalidParameter("cards must go somewhere, got neither --out nor --for-app; write e.g. --out cards.html")
    candidates = _read(detections, shapes, how)
    name_options(n_candidates="--number", n_tiles="--tiles", n_planted="--planted", n_hidden="--hidden")
    measuring = {"n_planted": planted, "n_hidden": hidden}
    deck = make_deck(candidates.pool, n_candidates=n, n_tiles=tiles, split=split, seed=seed, **measuring)
    if out is not None:
        save_cards(deck, out, images=images, title=title)
    made = None if for_app is None else save_for_app(deck, for_app, images=images)

    def show(_: Any) -> None:
        n_of = {kind: sum(card.kind == kind for card in deck.cards) for kind in ("planted", "hidden")}
        say(
            f"{deck.drawn['n_candidates']:,} of {len(candidates.pool):,} candidates, {n_of['planted']:,} empty places, "
            f"{deck.drawn['n_tiles']:,} of {deck.n_tiles:,} tiles, and {n_of['hidden']:,} with an outline hidden."
        )
        if out is not None:
            say(f"Open {out}, answer, save the answers; then: trueup detect evaluate … --answers answers.json")
        if made is not None:
            files = f"--items {made.items} --gold {made.gold} --images {made.images}"
            say(f"trueup serve {made.votes} {made.predictions} {files}")
        if made is not None and made.tiles is not None:
            say(f"trueup serve {made.tiles}; then: trueup detect evaluate … --searched sqlite:///tiles.vetting.db")

    body = {"pool": _about_pool(candidates.pool), "deck": deck.drawn, "cards": len(deck)}
    return Answer(body, show, head={"files": candidates.files})


# What is shown ------------------------------------------------------------------------------------------------------


def _about_pool(pool: Pool) -> dict[str, Any]:
    return {
        "images": pool.images.n,
        "candidates": len(pool),
        "classes": list(pool.categories),
        "iou": pool.iou,
        "shape": "box" if pool.masks is None else "mask",
        "annotators": {
            name: {"drawn": int((row == 1).sum()), "not_drawn": int((row == 0).sum())}
            for name, row in zip(pool.annotators, pool.votes, strict=True)
        },
        "systems": {
            name: {"detections": len(of.scores), "duplicates": int((~of.is_first).sum())}
            for name, of in pool.found.items()
        },
    }


def _page(
    candidates: Candidates, answers: Mapping[str, Evaluation], threshold: float, **further: Any
) -> Mapping[str, Any]:
    """The report on detectors."""
    from trueup.detection.evaluating import build_detection_report

    about: dict[str, Any] = {"labels": candidates.labels, "missed": candidates.missed, "threshold": threshold}
    settings = {**candidates.files, **this_call().settings}
    return build_detection_report(candidates.pool, answers, settings=settings, **about, **further)


def _estimates(evaluation: Evaluation) -> dict[str, Any]:
    return {name: evaluation[name].to_dict(evaluation.level) for name in evaluation.metrics}
