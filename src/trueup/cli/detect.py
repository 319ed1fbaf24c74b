"""`trueup detect`: how good are detectors really, when boxes and masks of annotators are noisy and incomplete?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup._base.wording import interval, level_words, number, some
from trueup.cli import _options as options
from trueup.cli._app import command_line
from trueup.cli._console import as_json as plain_data
from trueup.cli._console import (
    json_head,
    note,
    option_names,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    to_cli_terms,
    warn_once,
)
from trueup.cli._detecting import (
    Detections,
    MatchOptions,
    OptionalDetections,
    Question,
    ShapeOptions,
    VettedOptions,
    add_to,
    ask,
)
from trueup.cli._files import check_report_path
from trueup.cli.compare import about_pairs, show_comparison
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.evaluation import Evaluation
    from trueup.detection import Pool


app = typer.Typer(
    help="How good are detectors really? Average precision with intervals when boxes and masks of annotators are "
    "noisy, incomplete or cheap.",
    no_args_is_help=True,
)

_METRICS = ["precision", "recall", "f1", "ap50", "ap"]
_METRIC = (
    "A metric: precision, recall, pool_recall, f0.5, f1, f2, ap50, ap75, ap, ap_small, ap_medium, ap_large, froc or "
)
_METRIC += "panoptic_quality."
Threshold = Annotated[float, options.option("--threshold", "Detections from this score on are reported.")]


@add_to(app)
def match(
    shapes: ShapeOptions,
    how: MatchOptions,
    vetted: VettedOptions,
    detections: OptionalDetections = None,
    votes: Annotated[
        str | None,
        options.option("--votes", "Also write the votes on candidates: item, labeler, label.", metavar="FILE"),
        options.OutputFile(),
    ] = None,
    coco: Annotated[
        str | None,
        options.option(
            "--coco", "Also write candidates that most drew, or that were vetted as objects, as COCO.", metavar="FILE"
        ),
        options.OutputFile(),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Join what annotators drew and systems found into candidate objects, and show how they agree."""
    from trueup.data.reading import write_labels
    from trueup.detection import write_coco

    question = ask(detections or [], shapes, how, vetted, 0)
    pool = question.pool
    if votes is not None:
        write_labels(question.labels, votes)
        note(f"votes: {votes}")
    if coco is not None:
        n = write_coco(pool, coco, labels=question.labels)
        note(f"{n:,} candidates: {coco}")
    if as_json:
        print_json({**json_head(seed=None, files=question.files), **_about_pool(pool)})
    else:
        _show_pool(pool)


@add_to(app)
def evaluate(
    detections: Detections,
    shapes: ShapeOptions,
    how: MatchOptions,
    vetted: VettedOptions,
    sampler: options.SamplerOptions,
    metric: Annotated[list[str], options.option("--metric", f"{_METRIC} May be repeated.", "-m")] = _METRICS,
    threshold: Threshold = 0.5,
    by_class: Annotated[bool, options.option("--by-class", "Each metric for each class, too.")] = False,
    cuts: Annotated[
        bool, options.option("--cuts", "How the answer moves where shapes are one thing from .4, .5 or .6 on.")
    ] = False,
    only_system: options.OnlySystem = None,
    coco: Annotated[
        str | None,
        options.option(
            "--coco", "Also write what is probably an object as COCO, with its probability.", metavar="FILE"
        ),
        options.OutputFile(),
    ] = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    as_json: options.AsJson = False,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> None:
    """How good is a detector really? Precision, recall and average precision with intervals."""
    from trueup.detection import evaluate as judge
    from trueup.detection import evaluate_at_cuts, write_coco
    from trueup.detection.evaluating import object_probabilities

    check_report_path(report)
    question = ask(detections, shapes, how, vetted, seed)
    pool = question.pool
    if only_system is not None and only_system not in pool.found:
        raise InvalidParameter(f"there is no system {only_system!r}, got {', '.join(pool.found)}")
    settings = _settings(sampler, noise=noise, level=level, random_state=seed)
    answers: dict[str, Evaluation] = {}
    moved: dict[str, dict[float, Evaluation]] = {}
    for name in [only_system] if only_system is not None else pool.systems:
        asked: dict[str, Any] = {"metrics": metric, "threshold": threshold, "missed": question.missed, **settings}
        with (
            progress_bar(f"evaluating {name}") as hear,
            option_names(missed="--answers or --searched", metric="--metric"),
        ):
            one = judge(pool, name, labels=question.labels, by_class=by_class, progress=hear, **asked)
            answers[name] = _in_words(one)
            if cuts:
                moved[name] = evaluate_at_cuts(pool, name, labels=question.labels, **asked)
    head = json_head(seed=seed, files=question.files)
    if coco is not None:
        chances = object_probabilities(pool, next(iter(answers.values())))
        note(f"{write_coco(pool, coco, probabilities=chances, labels=question.labels):,} objects: {coco}")
    if report is not None:
        _write_report(report, question, answers, threshold, cuts=moved)
    if as_json:
        systems = [
            {
                "system": name,
                **evaluation.to_dict(),
                "cuts": {f"{cut:g}": _estimates(at) for cut, at in moved.get(name, {}).items()},
            }
            for name, evaluation in answers.items()
        ]
        body = systems[0] if len(systems) == 1 else {"systems": systems}
        print_json({**head, "pool": _about_pool(pool), **_about_vetted(question), **body})
    else:
        _show_pool(pool)
        _show_vetted(question)
        for name, evaluation in answers.items():
            _show_evaluation(name, evaluation)
            _show_cuts(moved.get(name, {}), level)
    warn_once([*(_said_of_vetter(question),), *(evaluation.warnings for evaluation in answers.values())])


@add_to(app)
def compare(
    detections: Detections,
    shapes: ShapeOptions,
    how: MatchOptions,
    vetted: VettedOptions,
    sampler: options.SamplerOptions,
    metric: Annotated[str, options.option("--metric", _METRIC, "-m")] = "ap",
    threshold: Threshold = 0.5,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    as_json: options.AsJson = False,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> None:
    """Which detector is better, and how sure is that?"""
    from trueup.detection import compare as judge_all
    from trueup.detection import evaluate as judge

    check_report_path(report)
    question = ask(detections, shapes, how, vetted, seed)
    pool = question.pool
    if len(pool.found) < 2:
        raise InvalidParameter(
            f"a comparison needs two systems, got {', '.join(pool.found) or 'none'}; name more files"
        )
    settings = _settings(sampler, noise=noise, level=level, random_state=seed)
    asked: dict[str, Any] = {"threshold": threshold, "labels": question.labels, "missed": question.missed, **settings}
    with progress_bar(f"comparing {len(pool.found)} systems") as hear, option_names(missed="--answers or --searched"):
        comparison = judge_all(pool, metric=metric, progress=hear, **asked)
        comparison = replace(comparison, warnings=tuple(map(to_cli_terms, comparison.warnings)))
    head = json_head(seed=seed, files=question.files)
    if report is not None:
        names = list(dict.fromkeys([metric, "precision", "recall"]))
        each = {name: _in_words(judge(pool, name, metrics=names, **asked)) for name in comparison.ranking}
        _write_report(report, question, each, threshold, comparison=comparison)
    if as_json:
        body = {**comparison.to_dict(), "pairs": about_pairs(comparison)}
        print_json({**head, "pool": _about_pool(pool), **_about_vetted(question), **body})
    else:
        show_comparison(comparison, dict.fromkeys(map(str, comparison.ranking), comparison.n_items))
        _show_vetted(question)
    warn_once([_said_of_vetter(question), comparison.warnings])


@add_to(app)
def vet(
    shapes: ShapeOptions,
    how: MatchOptions,
    detections: OptionalDetections = None,
    out: Annotated[
        str | None,
        options.option("--out", "Write the cards as one HTML page, which saves the answers.", "-o", metavar="PATH"),
        options.OutputFile(),
    ] = None,
    for_app: Annotated[
        str | None,
        options.option(
            "--for-app", "Write votes, predictions, cards and pictures for 'trueup serve'.", metavar="FOLDER"
        ),
    ] = None,
    n: Annotated[int, options.option("--number", "How many candidates, drawn at random.", "-n", min=1)] = 60,
    tiles: Annotated[
        int, options.option("--tiles", "How many tiles to search for objects that nobody drew.", min=0)
    ] = 20,
    split: Annotated[int, options.option("--split", "Each image has so many tiles in each direction.", min=1)] = 2,
    planted: Annotated[
        int | None,
        options.option(
            "--planted",
            "Empty places among the candidates, which measure the vetter.",
            metavar="N",
            min=0,
            show_default="one for ten candidates",
        ),
    ] = None,
    hidden: Annotated[
        int | None,
        options.option(
            "--hidden",
            "Further tiles without the outline of an object, which measure the vetter.",
            metavar="N",
            min=0,
            show_default="one for five tiles",
        ),
    ] = None,
    images: Annotated[
        str | None,
        options.option("--images", "A folder of the photographs; else cards are drawn from shapes.", metavar="FOLDER"),
    ] = None,
    title: Annotated[str, options.option("--title", "Of the page.")] = "What is there?",
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """Make blind cards for a vetter: random candidates, empty places, and random tiles to search."""
    from trueup.detection import make_deck, save_cards, save_for_app

    if out is None and for_app is None:
        raise InvalidParameter(
            "the cards must go somewhere, got neither --out nor --for-app; write e.g. --out cards.html"
        )
    if out is not None and Path(out).suffix.lower() not in (".html", ".htm"):
        raise InvalidParameter(f"--out must end in .html, got {out!r}; name it so")
    question = ask(detections or [], shapes, how, VettedOptions(), seed)
    with option_names(
        n_candidates="--number", n_tiles="--tiles", n_planted="--planted", n_hidden="--hidden", images="--images"
    ):
        deck = make_deck(
            question.pool,
            n_candidates=n,
            n_tiles=tiles,
            n_planted=planted,
            n_hidden=hidden,
            split=split,
            seed=seed,
        )
        if out is not None:
            save_cards(deck, out, images=images, title=title)
        made = None if for_app is None else save_for_app(deck, for_app, images=images)
    if as_json:
        head = json_head(seed=seed, files=question.files)
        print_json({**head, "pool": _about_pool(question.pool), "deck": deck.drawn, "cards": len(deck)})
        return
    say(
        f"{deck.drawn['n_candidates']:,} of {len(question.pool):,} candidates, "
        f"{sum(card.kind == 'planted' for card in deck.cards):,} empty places, {deck.drawn['n_tiles']:,} of "
        f"{deck.n_tiles:,} tiles, and {sum(card.kind == 'hidden' for card in deck.cards):,} with an outline hidden."
    )
    if out is not None:
        say(f"Open {out}, answer, save the answers; then: trueup detect evaluate … --answers answers.json")
    if made is not None:
        say(
            f"trueup serve {made.votes} {made.predictions} --items {made.items} --gold {made.gold} "
            f"--images {made.images}"
        )
    if made is not None and made.tiles is not None:
        say(f"trueup serve {made.tiles}; then: trueup detect evaluate … --searched sqlite:///tiles.vetting.db")


def _settings(sampler: options.SamplerOptions, **said: Any) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None} | sampler.named


def _in_words(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, warnings=tuple(map(to_cli_terms, evaluation.warnings)))


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


def _about_vetted(question: Question) -> dict[str, Any]:
    said, missed = question.vetted, question.missed
    planted = {"shown": sum(one.n_planted for one in said), "taken_for_objects": sum(one.n_accepted for one in said)}
    hidden = {"shown": sum(one.n_hidden for one in said), "noticed": sum(one.n_noticed for one in said)}
    return {
        "vetted": len(question.labels.gold),
        "missed": None if missed is None else {**missed.total.to_dict(0.95), "searched": missed.n_searched},
        "planted": planted if said else None,
        "hidden": hidden if said else None,
    }


def _write_report(
    path: str, question: Question, answers: Mapping[str, Evaluation], threshold: float, **further: Any
) -> None:
    """Write the report, with what else there is to show, and tell where on standard error."""
    from trueup.detection.evaluating import save_detection_report

    save_detection_report(
        path,
        question.pool,
        answers,
        labels=question.labels,
        missed=question.missed,
        threshold=threshold,
        settings={**question.files, "command": command_line()},
        plain=plain_data,
        **further,
    )
    note(f"report: {path}")


def _show_pool(pool: Pool) -> None:
    about = _about_pool(pool)
    say(
        f"{some(about['candidates'], 'candidate')} of {some(len(pool.categories), 'class')} in "
        f"{some(about['images'], 'image')}, "
        f"compared by {'boxes' if pool.masks is None else 'masks'} from an overlap of {pool.iou:g} on."
    )
    rows = [(name, one["drawn"], one["not_drawn"]) for name, one in about["annotators"].items()]
    print_table(("annotator", "drew", "looked and did not draw"), rows)
    if pool.found:
        rows = [(name, one["detections"], one["duplicates"]) for name, one in about["systems"].items()]
        print_table(("system", "detections", "duplicates"), rows)


def _show_vetted(question: Question) -> None:
    if question.labels.gold:
        say(f"{len(question.labels.gold):,} candidates are vetted.")
    if question.missed is not None:
        missed = question.missed
        low, high = missed.total.interval(0.95)
        say(
            f"{missed.n_seen:,} objects that nobody drew in {missed.n_searched:,} of {missed.n_tiles:,} tiles: between "
            f"{low:.0f} and {high:.0f} in all (95% interval)."
        )
    for said in question.vetted:
        if said.n_planted:
            say(f"{said.n_accepted} of {said.n_planted} empty places were taken for objects.")
        if said.n_hidden:
            say(f"{said.n_noticed} of {said.n_hidden} objects whose outline was hidden were noticed.")


def _said_of_vetter(question: Question) -> tuple[str, ...]:
    return tuple(to_cli_terms(sentence) for said in question.vetted for sentence in said.warnings)


def _show_evaluation(name: str, evaluation: Evaluation) -> None:
    say(f"{shown(name)}: this rests on {evaluation.answer_in_words()}.")
    rows = [
        (metric, number(evaluation[metric].mean), interval(*evaluation[metric].interval(evaluation.level)))
        for metric in evaluation.metrics
    ]
    print_table(("metric", "estimate", f"{level_words(evaluation.level)} interval"), rows)


def _show_cuts(moved: Mapping[float, Evaluation], level: float) -> None:
    if not moved:
        return
    names = next(iter(moved.values())).metrics
    rows = [
        (metric, *(f"{number(at[metric].mean)} ({interval(*at[metric].interval(level))})" for at in moved.values()))
        for metric in names
    ]
    print_table(("where shapes are one thing from", *(f"{cut:g}" for cut in moved)), rows)


def _estimates(evaluation: Evaluation) -> dict[str, Any]:
    return {name: evaluation[name].to_dict(evaluation.level) for name in evaluation.metrics}
