"""trueup share: how often is the truth of some class, for each group of items?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import interval, level_words, number, percent
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import in_our_words, json_head, print_json, print_table, progress_bar, say, shown, warn_once
from trueup.cli._files import about_files, class_named, read_votes

if TYPE_CHECKING:
    from trueup.answers.share import Shares


@as_command
def share(
    votes: options.VotesFile,
    votes_how: options.VoteOptions,
    sampler: options.SamplerOptions,
    of: Annotated[str, options.option("--of", "The class whose share is asked for, e.g. pass.", metavar="CLASS")],
    by: Annotated[
        str | None, options.option("--by", "A column of the items: one rate for each of its values.", metavar="COLUMN")
    ] = None,
    cluster: Annotated[
        str | None,
        options.option(
            "--cluster", "A column of the items: those with the same value came together.", metavar="COLUMN"
        ),
    ] = None,
    weights: Annotated[
        str | None, options.option("--weights", "A column of the items: what each counts for.", metavar="COLUMN")
    ] = None,
    assume: options.Assume = None,
    target: options.Target = None,
    level: options.Level = 0.95,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed."""
    from trueup.answers.share import share as door

    labels = read_votes(votes, votes_how)
    settings: dict[str, Any] = {"assume": assume, "target": target, **sampler.named}
    with progress_bar("reading the votes") as hear:
        shares = door(
            labels,
            of=class_named(labels, of),
            by=by,
            cluster=cluster,
            weights=weights,
            level=level,
            random_state=seed,
            progress=hear,
            **{name: value for name, value in settings.items() if value is not None},
        )
    if as_json:
        files = about_files(votes=votes, gold=votes_how.gold, items=votes_how.items)
        print_json({**json_head(seed=seed, files=files), **shares.to_dict()})
    else:
        _show(shares)
    warn_once([tuple(map(in_our_words, shares.warnings))])


def _show(shares: Shares) -> None:
    """The rates for people."""
    words = level_words(shares.level)
    low, high = shares.overall.interval(shares.level)
    where = "of these items" if shares.evaluation.target == "sample" else "of items like these"
    what = shown(shares.name)
    rests = (
        "vetted items drawn at random" if shares.basis == "gold" else f"votes, {shares.evaluation.assumption} errors"
    )
    say(f"{what} {where}: {interval(low, high, joint=' to ')} ({words} interval; rests on {rests}).")
    if len(shares) < 2:
        return
    sizes = dict(zip(shares.slicing.names.tolist(), shares.slicing.sizes.tolist(), strict=True))
    rows = [
        (
            shown(group),
            f"{sizes[group]:,}",
            number(shares[group].mean),
            interval(*shares[group].interval(shares.level)),
            percent(shares.prob_best[group]),
            f"{shares.vettings[group]:,}",
        )
        for group in shares
    ]
    head = (shares.slicing.column, "items", "rate", f"{words} interval", "highest", "to vet for ±.05")
    print_table(head, rows)
    lower = shares.lower()
    if lower:
        say(f"Lower than the rest: {', '.join(shown(group) for group in lower)}.")
