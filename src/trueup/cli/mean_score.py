"""trueup mean-score: how high is the true rating, for each group of items?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._files import class_named
from trueup.cli._gates import GateOptions, PairGateOptions, numbers_by_name
from trueup.cli.share import RateOptions, answer_rate

if TYPE_CHECKING:
    from trueup.answers.share import Shares
    from trueup.data.labels import Labels


@as_command
def mean_score(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    rate: RateOptions,
    values: Annotated[
        list[str] | None,
        options.option("--values", "The score of a class that is no number; once for each.", metavar="CLASS=NUMBER"),
    ] = None,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """How high is the true rating? A mean with an interval for each group of items; no predictions needed.

    Bounds are on the mean: --fail-below mean=3.5.
    """
    from trueup.answers.share import mean_score as entry_point

    def ask(labels: Labels, **settings: Any) -> Shares:
        typed = numbers_by_name(values or [], "--values", "class")
        scores = {class_named(labels, name): score for name, score in typed.items()}
        return entry_point(labels, values=scores or None, **settings)

    answer_rate(ask, "mean", votes, votes_how, sampler, gates, pair_gates, rate, as_json=as_json, seed=seed)
