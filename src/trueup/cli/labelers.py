"""`trueup labelers`: who can be trusted, who does not look, and do they err together?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import chance, interval, level_words, number, percent, signed
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import (
    complain,
    fail_on,
    json_head,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    silenced,
    to_cli_terms,
)
from trueup.cli._files import Plot, about_files, check_picture, read_votes, save_plot
from trueup.cli.evaluate import about_independence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trueup.labelers import LabelerRanking, RankedLabeler
    from trueup.noise import EffectiveLabelers, IndependenceCheck, NoiseModel


_OF_RANKING = 0.7  # of the time, about: chains take most of it
_SPAMMER = 0.5  # more probably a spammer than not

_KEYS: dict[str, Callable[[RankedLabeler], Any]] = {
    "information": lambda row: -row.information.mean,
    "accuracy": lambda row: -row.accuracy.mean,
    "votes": lambda row: -row.votes,
    "bias": lambda row: -abs(row.bias.mean),
    "spam": lambda row: -row.spam_probability,
    "name": lambda row: shown(row.labeler),
}


@as_command
def labelers(
    votes: options.VotesFile,
    how: options.VoteOptions,
    noise: options.Noise = None,
    sort: Annotated[str, options.option("--sort", f"Order of the rows: {', '.join(_KEYS)}.")] = "information",
    top: Annotated[int | None, options.option("--top", "Show the first N rows only.", metavar="N", min=1)] = None,
    level: options.Level = 0.95,
    spam_prior: Annotated[
        float, options.option("--spam-prior", "Share of labelers expected beforehand not to look at all.")
    ] = 0.1,
    fail_if_dependent: options.FailIfDependent = False,
    fail_if_spam: Annotated[
        float | None,
        options.option(
            "--fail-if-spam",
            "Exit with 1 if more than this share of the votes is by labelers who are more probably spammers than not.",
            metavar="SHARE",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    by: options.By = None,
    plot: Plot = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Skill, bias, volume and spam of every labeler, and what their votes are worth together."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.notes import about_votes
    from trueup.labelers import rank
    from trueup.noise import DEFAULT_NOISE, effective_labelers
    from trueup.noise.registry import resolve

    check_choice(sort, tuple(_KEYS), name="sort")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    picture = check_picture(plot)
    labels = read_votes(votes, how)
    model = resolve(noise or DEFAULT_NOISE)
    with progress_bar("ranking labelers") as hear:
        options_of_rank: dict[str, Any] = {"noise": noise, "by": by, "random_state": seed}
        ranking = rank(
            labels,
            sort="accuracy" if sort == "accuracy" else "information",
            level=level,
            spam_prior=spam_prior,
            progress=None if hear is None else (lambda share: hear(_OF_RANKING * share)),
            **options_of_rank,
        )
        about, independence = about_votes(labels)
        warnings = [to_cli_terms(sentence) for sentence in (*about, *ranking.warnings)]
        effective = None
        if (labels.votes_per_item > 1).any():
            with silenced():  # what it would warn of is among the warnings
                effective = effective_labelers(labels, random_state=seed)
    spam_votes = sum(row.votes for row in ranking if row.spam_probability > _SPAMMER)
    spam_share = spam_votes / max(labels.n_votes, 1)
    rows = sorted(ranking, key=_KEYS[sort])[:top]
    if picture is not None:
        save_plot(ranking.plot(), picture)
    dependent = independence is not None and independence.dependent
    findings: list[str] = (
        [independence.sentence] if fail_if_dependent and independence is not None and dependent else []
    )
    if fail_if_spam is not None and spam_share > fail_if_spam:
        findings.append(
            f"{percent(spam_share, 1)} of the votes are by labelers who are more probably spammers than not, more than "
            f"{percent(fail_if_spam, 1)}"
        )
    if as_json:
        print_json(
            {
                **json_head(seed=seed, files=about_files(votes=votes, gold=how.gold, items=how.items)),
                "labelers": [_record(row, level) for row in rows],
                "n_labelers": labels.n_labelers,
                "n_votes": labels.n_votes,
                "sort": sort,
                "level": level,
                "noise": ranking.noise,
                "effective": None if effective is None else vars(effective),
                "independence": about_independence(independence, model),
                "spam_vote_share": spam_share,
                "warnings": warnings,
                **(
                    {}
                    if by is None
                    else {"by": {str(name): _records(part, level) for name, part in ranking.by.items()}}
                ),
                "findings": findings,
            }
        )
    else:
        _print(ranking, rows, effective, independence, warnings, level=level, model=model)
    fail_on(findings)


def _print(
    ranking: LabelerRanking,
    rows: list[RankedLabeler],
    effective: EffectiveLabelers | None,
    independence: IndependenceCheck | None,
    warnings: Sequence[str],
    *,
    level: float,
    model: NoiseModel,
) -> None:
    print_table(
        ("labeler", "votes", "accuracy", f"{level_words(level)} interval", "bits a vote", "bias", "spam", "rank"),
        [
            (
                shown(row.labeler),
                f"{row.votes:,}",
                number(row.accuracy.mean),
                interval(*row.accuracy.interval(level)),
                number(row.information.mean),
                f"{signed(row.bias.mean, 3)} {shown(row.bias_class)}",
                chance(row.spam_probability),
                "–".join(dict.fromkeys(map(str, row.rank))),
            )
            for row in rows
        ],
    )
    if len(rows) < len(ranking):
        say(f"… and {len(ranking) - len(rows):,} more.")
    say(f"{len(ranking):,} labelers; noise {ranking.noise}.")
    say("spam: the probability that no vote depends on the truth; bias: answered more often than true.")
    _say_checked(rows)
    _say_consistency(rows, level)
    for name, part in ranking.by.items():
        _print_slice(name, part, level)
    if effective is not None:
        say(effective.sentence)
    if independence is not None:
        say(independence.sentence)
        if independence.dependent:
            say(f"What to do: {shown(independence.advice(model))} See 'trueup vet'.")
    for sentence in warnings:
        if independence is None or sentence != independence.sentence:
            complain(sentence, kind="warning")


def _say_checked(rows: list[RankedLabeler]) -> None:
    """Whose accuracy checked items correct that were drawn at random."""
    n_corrected = sum(row.vetted > 0 for row in rows)
    if n_corrected:
        say(f"Checked items that were drawn at random correct the accuracy of {n_corrected:,} of {len(rows):,}.")


def _say_consistency(rows: list[RankedLabeler], level: float) -> None:
    """How often those who gave several verdicts on an item say the same again."""
    for row in rows:
        if row.consistency is not None:
            ends = interval(*row.consistency.interval(level))
            say(f"{shown(row.labeler)} says the same again of an item with probability {ends}.")


def _print_slice(name: object, ranking: LabelerRanking, level: float) -> None:
    print_table(
        (shown(name), "votes", "accuracy", f"{level_words(level)} interval", "bits a vote"),
        [
            (
                shown(row.labeler),
                f"{row.votes:,}",
                number(row.accuracy.mean),
                interval(*row.accuracy.interval(level)),
                number(row.information.mean),
            )
            for row in ranking
        ],
    )


def _records(ranking: LabelerRanking, level: float) -> list[dict[str, Any]]:
    return [_record(row, level) for row in ranking]


def _record(row: RankedLabeler, level: float) -> dict[str, Any]:
    record: dict[str, Any] = {"labeler": row.labeler, "votes": row.votes}
    for name in ("accuracy", "information", "bias", "spam"):
        estimate = getattr(row, name)
        low, high = estimate.interval(level)
        record[name] = {"mean": estimate.mean, "low": low, "high": high}
    record |= {"bias_class": row.bias_class, "spam_probability": row.spam_probability, "rank": row.rank}
    record |= {"basis": row.basis, "vetted": row.vetted}
    if row.gold_only is not None:
        low, high = row.gold_only.interval(level)
        record["gold_only"] = {"mean": row.gold_only.mean, "low": low, "high": high}
    if row.consistency is not None:
        low, high = row.consistency.interval(level)
        record["consistency"] = {"mean": row.consistency.mean, "low": low, "high": high}
    return record
