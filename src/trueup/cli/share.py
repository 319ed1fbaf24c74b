"""trueup share: how often is the truth of some class, for each group of items?"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import (
    in_our_words,
    json_head,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    speaking,
    warn_once,
)
from trueup.cli._files import about_files, class_named, read_votes
from trueup.cli._gates import GateOptions, PairGateOptions, about_gates, check_gates, end_by, gates_of, write_junit
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.share import Shares
    from trueup.data.labels import Labels


@as_command
def share(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    of: Annotated[
        str | None, options.option("--of", "The class whose share is asked for, e.g. pass.", metavar="CLASS")
    ] = None,
    at_least: Annotated[
        float | None, options.option("--at-least", "In place of --of: the least rating that counts.", metavar="NUMBER")
    ] = None,
    mean: Annotated[bool, options.option("--mean", "In place of --of: the mean of ratings that are numbers.")] = False,
    bins: Annotated[
        int | None,
        options.option(
            "--bins", "Put ratings, few of which are equal, into so many bins of equal width.", metavar="N", max=10_000
        ),
    ] = None,
    lowest: Annotated[
        float | None,
        options.option("--lowest", "Where the first bin begins; by default at the lowest rating.", metavar="NUMBER"),
    ] = None,
    highest: Annotated[
        float | None,
        options.option("--highest", "Where the last bin ends; by default at the highest rating.", metavar="NUMBER"),
    ] = None,
    by: options.By = None,
    cluster: options.Cluster = None,
    weights: options.Weights = None,
    noise: options.Noise = None,
    target: options.Target = None,
    level: options.Level = 0.95,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed.

    Of ratings: the share of those from --at-least on, or the --mean; ratings such as 0.37 go into --bins first.
    """
    from trueup.answers.share import mean_score
    from trueup.answers.share import share as share_of
    from trueup.data.slices import slices_of

    has_gate = check_gates(gates, pair_gates)
    bounds = gates.bounds
    if mean and (of is not None or at_least is not None):
        raise InvalidParameter("--mean is asked for in place of --of or --at-least, got both; leave one out")
    what = "mean" if mean else of if of is not None else f"{at_least or 0:g}"
    for metric in {name for by_metric in bounds.values() for name in by_metric} - {what}:
        about = "the mean" if mean else f"the share of {what!r}"
        raise InvalidParameter(f"a bound here is on {about}, got one on {metric!r}; write {what}=0.9")
    labels = _into_bins(read_votes(votes, votes_how), bins, lowest, highest)
    pairs = pair_gates.named_as([] if by is None else slices_of(labels, by).names.tolist())
    settings: dict[str, Any] = {"noise": noise, "target": target, **sampler.named}
    asked = {} if mean else {"of": None if of is None else class_named(labels, of), "at_least": at_least}
    door: Callable[..., Shares] = mean_score if mean else share_of
    with progress_bar("reading the votes") as hear:
        shares = door(
            labels,
            **asked,
            by=by,
            cluster=cluster,
            weights=weights,
            level=level,
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
    with speaking(missing="--no-vote"):
        warn_once([tuple(map(in_our_words, shares.warnings))])
    end_by(verdicts, [])


def _into_bins(labels: Labels, bins: int | None, lowest: float | None, highest: float | None) -> Labels:
    """Ratings in bins of equal width, where the user asks for some."""
    if bins is None:
        if lowest is not None or highest is not None:
            raise InvalidParameter("--lowest and --highest are the ends of bins, got no --bins; say how many")
        return labels
    with speaking(n_bins="--bins", low="--lowest", high="--highest"):
        return labels.binned(bins, low=lowest, high=highest)


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
