"""trueup auc: the area under the ROC curve, under four views of what the truth is."""

from __future__ import annotations

from typing import Annotated

import typer

from trueup.cli._options import (
    AsJson,
    Level,
    Noise,
    OnlySystem,
    PredictionOptions,
    PredictionsFile,
    SamplerOptions,
    Seed,
    VoteOptions,
    VotesFile,
)
from trueup.cli._reading import unbundled

__all__ = ["auc"]

_VIEWS = ["bayes", "deterministic", "subjectivist", "probabilistic"]


@unbundled
def auc(
    votes: VotesFile,
    predictions: PredictionsFile,
    votes_how: VoteOptions,
    predictions_how: PredictionOptions,
    sampler: SamplerOptions,
    view: Annotated[
        list[str],
        typer.Option(
            "--view",
            autocompletion=lambda: [*_VIEWS, "all"],
            help="What the truth is: bayes, deterministic, subjectivist, probabilistic or all. Several may be given.",
        ),
    ] = ["bayes"],  # noqa: B006  typer shows it as the default
    target: Annotated[
        str, typer.Option("--target", help="For bayes: these very items (sample), or where they came from.")
    ] = "sample",
    noise: Noise = "clusters",
    level: Level = 0.95,
    only_system: OnlySystem = None,
    as_json: AsJson = False,
    seed: Seed = 0,
) -> None:
    """The area under the ROC curve of a system's scores (columns item, score), from noisy votes alone."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.auc import auc as area
    from trueup.cli._console import interval, level_words, number, print_json, print_table, progress_bar
    from trueup.cli._reading import (
        about_files,
        check_one_stdin,
        check_overlap,
        class_named,
        one_system,
        read_systems,
        read_votes,
    )
    from trueup.cli._reporting import json_head

    views = _VIEWS if "all" in view else [check_choice(v, _VIEWS, name="--view") for v in dict.fromkeys(view)]
    check_level(level)
    sampler.check(noise=noise)
    check_one_stdin(votes, predictions, votes_how.gold)
    labels = read_votes(votes, votes_how)
    systems = read_systems(predictions, labels, predictions_how, item=votes_how.item, file_format=votes_how.file_format)
    systems = one_system(systems, only_system)
    check_overlap(systems, labels)
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    results = []
    for name in systems.systems.tolist():
        for wanted in views:
            with progress_bar(f"{name}, {wanted}") as hear:
                estimate = area(
                    systems[name],
                    labels,
                    view=wanted,  # type: ignore[arg-type]  # checked above
                    noise=noise,
                    target=target,  # type: ignore[arg-type]  # checked by the callee, with a sentence
                    positive=positive,
                    random_state=seed,
                    progress=hear,
                    **sampler.given,
                )
            results.append({"system": str(name), "view": wanted, **estimate.to_dict(level)})
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=votes_how.gold)
        print_json({**json_head(seed=seed, files=files), "results": results})
        return
    rows = [(r["system"], r["view"], number(r["mean"]), interval(r["low"], r["high"])) for r in results]
    columns = ("system", ("view", "left"), "AUC", f"{level_words(level)} interval")
    print_table(columns, rows)
