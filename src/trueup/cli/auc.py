"""trueup auc: the area under the ROC curve, under four views of what the truth is."""

from __future__ import annotations

from typing import Annotated, Any

from trueup._base.wording import interval, level_words, number
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import json_head, print_json, print_table, progress_bar, say
from trueup.cli._files import about_files, check_overlap, class_named, one_system, read_systems, read_votes


@as_command
def auc(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    sampler: options.SamplerOptions,
    view: Annotated[
        list[str],
        options.option("--view", "What the truth is: VIEWS or all. Several may be given.", chosen_from="VIEWS"),
    ] = ["bayes"],  # noqa: B006  typer shows it as the default
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    only_system: options.OnlySystem = None,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """The area under the ROC curve of a system's scores (columns item, score), from noisy votes alone."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.auc import auc as area
    from trueup.answers.prepare import DEFAULT_TARGET

    known = options.lists["VIEWS"]()
    views = known if "all" in view else [check_choice(v, known, name="view") for v in dict.fromkeys(view)]
    check_level(level)
    labels = read_votes(votes, votes_how)
    systems = read_systems(predictions, labels, predictions_how, votes_how)
    systems = one_system(systems, only_system)
    check_overlap(systems, labels)
    positive = None if predictions_how.positive is None else class_named(labels, predictions_how.positive)
    asked: dict[str, Any] = {"noise": noise, "target": target, **sampler.named}
    settings = {name: value for name, value in asked.items() if value is not None}
    results = []
    for name in systems.systems.tolist():
        for one_view in views:
            # Beside the posterior, which they are for, options of the noise say nothing to the other views.
            is_meant = one_view == "bayes" or "bayes" not in views
            with progress_bar(f"{name}, {one_view}") as hear:
                estimate = area(
                    systems[name],
                    labels,
                    view=one_view,  # type: ignore[arg-type]  # checked above
                    positive=positive,
                    random_state=seed,
                    progress=hear,
                    **{name: value for name, value in settings.items() if is_meant or name == "n_draws"},
                )
            results.append({"system": str(name), "view": one_view, **estimate.to_dict(level)})
    # The other views take the votes as they are.
    noise_words = (noise or "as real sets err") if "bayes" in views else "not used"
    if as_json:
        files = about_files(votes=votes, predictions=predictions, gold=votes_how.gold, items=votes_how.items)
        about = {"noise": noise_words, "target": target or DEFAULT_TARGET}
        print_json({**json_head(seed=seed, files=files), **about, "results": results})
        return
    rows = [(r["system"], r["view"], number(r["mean"]), interval(r["low"], r["high"])) for r in results]
    columns = ("system", ("view", "left"), "AUC", f"{level_words(level)} interval")
    print_table(columns, rows)
    say(f"{labels.n_items:,} items; noise {noise_words}, target {target or DEFAULT_TARGET}.")
