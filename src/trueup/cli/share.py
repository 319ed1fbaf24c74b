"""trueup share: how often is the truth of some class, for each group of items?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import (
    json_head,
    option_names,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    to_cli_terms,
    warn_once,
)
from trueup.cli._files import about_files, class_named, read_votes
from trueup.cli._gates import GateOptions, PairGateOptions, about_gates, check_gates, end_by, gates_of, write_junit
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.share import Shares
    from trueup.data.labels import Labels


_bins = functools.partial(options.option, panel="Ratings of which few are equal")


@dataclass(frozen=True)
class RateOptions:
    """Of which items a rate or a mean is, and how it is worked out."""

    by: options.By = None
    cluster: options.Cluster = None
    weights: options.Weights = None
    n_bins: Annotated[
        int | None,
        _bins("--n-bins", "Put ratings into so many bins of equal width.", metavar="N", max=10_000),
    ] = None
    low: Annotated[
        float | None, _bins("--low", "Where the first bin begins; by default at the lowest rating.", metavar="NUMBER")
    ] = None
    high: Annotated[
        float | None, _bins("--high", "Where the last bin ends; by default at the highest rating.", metavar="NUMBER")
    ] = None
    noise: options.Noise = None
    target: options.Target = None
    level: options.Level = 0.95


@as_command
def share(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    rate: RateOptions,
    of: Annotated[
        str | None, options.option("--of", "The class whose share is asked for, e.g. pass.", metavar="CLASS")
    ] = None,
    at_least: Annotated[
        float | None, options.option("--at-least", "In place of --of: the least rating that counts.", metavar="NUMBER")
    ] = None,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed.

    Of ratings: the share of those from --at-least on; ratings such as 0.37 go into --n-bins first.
    """
    from trueup.answers.share import share as entry_point

    def ask(labels: Labels, **settings: Any) -> Shares:
        return entry_point(labels, of=None if of is None else class_named(labels, of), at_least=at_least, **settings)

    what = of if of is not None else f"{at_least or 0:g}"
    answer_rate(ask, what, votes, votes_how, sampler, gates, pair_gates, rate, as_json=as_json, seed=seed)


def answer_rate(
    ask: Callable[..., Shares],
    what: str,
    votes: str,
    votes_how: options.VoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    rate: RateOptions,
    *,
    as_json: bool,
    seed: int,
) -> None:
    """Ask for rates or means, show them and end by their gates; `what` is what a bound is on."""
    from trueup.data.slices import slices_of

    has_gate = check_gates(gates, pair_gates)
    bounds = gates.bounds
    for metric in {name for by_metric in bounds.values() for name in by_metric} - {what}:
        about = "the mean" if what == "mean" else f"the share of {what!r}"
        raise InvalidParameter(f"a bound here is on {about}, got one on {metric!r}; write {what}=0.9")
    labels = _into_bins(read_votes(votes, votes_how), rate.n_bins, rate.low, rate.high)
    pairs = pair_gates.named_as([] if rate.by is None else slices_of(labels, rate.by).names.tolist())
    settings: dict[str, Any] = {"noise": rate.noise, "target": rate.target, **sampler.named}
    with progress_bar("reading the votes") as hear:
        shares = ask(
            labels,
            by=rate.by,
            cluster=rate.cluster,
            weights=rate.weights,
            level=rate.level,
            random_state=seed,
            progress=hear,
            **{name: value for name, value in settings.items() if value is not None},
        )
    verdicts = None
    if has_gate:
        renamed = {side: {shares.name: by_metric[what]} for side, by_metric in bounds.items()}
        verdicts = gates_of(shares, gates, renamed, pairs)
    write_junit(verdicts, gates.junit, name="share")
    if as_json:
        files = about_files(votes=votes, gold=votes_how.gold, items=votes_how.items)
        print_json({**json_head(seed=seed, files=files), **shares.to_dict(), **about_gates(verdicts)})
    else:
        _show(shares)
    with option_names(missing="--no-vote"):
        warn_once([tuple(map(to_cli_terms, shares.warnings))])
    end_by(verdicts, [])


def _into_bins(labels: Labels, n_bins: int | None, low: float | None, high: float | None) -> Labels:
    """Ratings in bins of equal width, where the user asks for some."""
    if n_bins is None:
        if low is not None or high is not None:
            raise InvalidParameter("--low and --high are the ends of bins, got no --n-bins; say how many")
        return labels
    return labels.binned(n_bins, low=low, high=high)


def _show(shares: Shares) -> None:
    """The rates for people."""
    words = level_words(shares.level)
    low, high = shares.overall.interval(shares.level)
    where = "of these items" if shares.evaluation.target == "sample" else "of items like these"
    what = shown(shares.name)
    rests = f"rests on {shares.evaluation.answer_in_words()}"
    say(f"{what} {where}: {interval(low, high, joint=' to ')} ({words} interval; {rests}).")
    if len(shares) < 2:
        return
    sizes = dict(zip(shares.slicing.names.tolist(), shares.slicing.sizes.tolist(), strict=True))
    vettings = shares.vettings
    rows = [
        (
            shown(group),
            f"{sizes[group]:,}",
            number(shares[group].mean),
            interval(*shares[group].interval(shares.level)),
            percent(shares.prob_best[group]),
            *([f"{vettings[group]:,}"] if vettings else []),
        )
        for group in shares
    ]
    half_width = number(shares.vetting_width / 2, 3)
    here = "" if shares.evaluation.target == "sample" else " on these items"  # more of them is another matter
    head = (
        shares.slicing.column,
        "items",
        "mean" if shares.name == "mean score" else "rate",
        f"{words} interval",
        "highest",
        *([f"to check for ±{half_width}{here}"] if vettings else []),
    )
    print_table(head, rows)
    differences = [(a, b, shares.difference(a, b)) for a, b in pairwise(shares.ranking)]
    print_table(
        ("difference", "mean", f"{words} interval", "first is higher"),
        [
            (
                f"{shown(a)} minus {shown(b)}",
                number(difference.mean),
                interval(*difference.interval(shares.level)),
                percent(shares.comparison.prob_better(a, b)),
            )
            for a, b, difference in differences
        ],
    )
    lower = shares.lower()
    if lower:
        say(f"Lower than the rest: {', '.join(shown(group) for group in lower)}.")
