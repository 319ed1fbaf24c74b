"""trueup auc: the area under the ROC curve, under four views of what the truth is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import interval_head, print_records, progress_bar, say
from trueup.cli._files import check_overlap, read_both


@as_command
def auc(
    votes: options.VotesFile,
    predictions: options.PredictionsFile,
    votes_how: options.VoteOptions,
    predictions_how: options.PredictionOptions,
    sampler: options.SamplerOptions,
    view: list[str] = options.opt(["bayes"], "What the truth is: VIEWS or all. Several may be given.", chosen="VIEWS"),
    target: options.Target = None,
    noise: options.Noise = None,
    level: options.Level = 0.95,
    only_system: options.OnlySystem = None,
    seed: options.Seed = 0,
) -> Answer:
    """The area under the ROC curve of a system's scores (columns item, score), from noisy votes alone."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.auc import auc as area
    from trueup.answers.prepare import DEFAULT_TARGET

    known = options.lists["VIEWS"]()
    views = known if "all" in view else [check_choice(name, known, name="view") for name in dict.fromkeys(view)]
    check_level(level)
    labels, systems, positive = read_both(votes, predictions, votes_how, predictions_how, only_system)
    check_overlap(systems, labels)
    settings = options.given(noise=noise, target=target, **sampler.named)
    results = []
    for name in systems.systems.tolist():
        for chosen in views:
            # Beside the posterior, which they are for, options of the noise say nothing to the other views.
            is_meant = chosen == "bayes" or "bayes" not in views
            with progress_bar(f"{name}, {chosen}") as progress:
                estimate = area(
                    systems[name],
                    labels,
                    view=chosen,  # type: ignore[arg-type]  # checked above
                    positive=positive,
                    random_state=seed,
                    progress=progress,
                    **{key: value for key, value in settings.items() if is_meant or key == "n_draws"},
                )
            results.append({"system": str(name), "view": chosen, **estimate.to_dict(level)})
    # The other views take the votes as they are.
    noise_words = (noise or "as real sets err") if "bayes" in views else "not used"
    target = target or DEFAULT_TARGET

    def show(_: Mapping[str, Any]) -> None:
        columns: dict[Any, Any] = {
            "system": "system",
            ("view", "left"): "view",
            "AUC": "mean",
            interval_head(level): "interval",
        }
        print_records(columns, results)
        say(f"{labels.n_items:,} items; noise {noise_words}, target {target}.")

    return Answer({"noise": noise_words, "target": target, "results": results}, show)
