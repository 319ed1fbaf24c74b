"""trueup labelers and agreement: who can be trusted, who does not look, do they err together, do they agree?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trueup._base.wording import chance, interval, percent, signed
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import as_json, interval_head, note, print_records, progress_bar, say, shown, silenced
from trueup.cli._files import by_name, class_named, read_votes, save_plot
from trueup.cli._gates import numbers_by_name
from trueup.cli.judge import about_independence, dependence_findings

if TYPE_CHECKING:
    from trueup.labelers import RankedLabeler


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
    sort: str = options.opt("information", f"Order of the rows: {', '.join(_KEYS)}."),
    top: int | None = options.opt(None, "Show the first N rows only.", "N", min=1),
    level: options.Level = 0.95,
    spam_prior: float = options.opt(0.1, "Share of labelers expected beforehand not to look at all."),
    fail_if_dependent: options.FailIfDependent = False,
    fail_if_spam: float | None = options.opt(
        None, "Exit with 1 if more than this share of votes is by probable spammers.", "SHARE", min=0.0, max=1.0
    ),
    panel: bool = options.opt(False, "Also who errs alike, and the panel without each labeler or with one more."),
    by: options.By = None,
    plot: options.Plot = None,
    seed: options.Seed = 0,
) -> Answer:
    """Skill, bias, volume and spam of every labeler, and what their votes are worth together."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.notes import about_votes, advice_on_dependence
    from trueup.labelers import panel as find_panel
    from trueup.labelers import rank
    from trueup.noise import effective_labelers
    from trueup.noise.registry import resolve

    check_choice(sort, tuple(_KEYS), name="sort")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    labels = read_votes(votes, how)
    model = None if noise is None else resolve(noise)
    settings: dict[str, Any] = {"noise": noise, "by": by, "random_state": seed}
    with progress_bar("ranking labelers") as progress:
        ranking = rank(
            labels,
            sort="accuracy" if sort == "accuracy" else "information",
            level=level,
            spam_prior=spam_prior,
            progress=None if progress is None else (lambda share: progress(_OF_RANKING * share)),
            **settings,
        )
        notes, independence = about_votes(labels)
        effective = None
        if (labels.votes_per_item > 1).any():
            with silenced():  # what it would warn of is among the warnings
                effective = effective_labelers(labels, random_state=seed)
        together = find_panel(labels, random_state=seed) if panel else None
    spam_share = sum(row.votes for row in ranking if row.spam_probability > _SPAMMER) / max(labels.n_votes, 1)
    rows = sorted(ranking, key=_KEYS[sort])[:top]
    if plot is not None:
        save_plot(ranking.plot(), plot)
    findings = dependence_findings(independence, wanted=fail_if_dependent)
    if fail_if_spam is not None and spam_share > fail_if_spam:
        findings.append(
            f"{percent(spam_share, 1)} of the votes are by labelers who are more probably spammers than not, more than "
            f"{percent(fail_if_spam, 1)}"
        )
    slices = {str(name): [_record(row, level) for row in part] for name, part in ranking.by.items()}
    warnings = [*notes, *ranking.warnings, *(() if together is None else together.warnings)]
    dependence = about_independence(independence, model)
    if dependence is not None:
        dependence["advice"] = advice_on_dependence(labels, independence, model)
    body = {
        "labelers": [_record(row, level) for row in rows],
        "n_labelers": labels.n_labelers,
        "n_votes": labels.n_votes,
        "sort": sort,
        "level": level,
        "noise": ranking.noise,
        "effective": None if effective is None else vars(effective),
        "independence": dependence,
        "spam_vote_share": spam_share,
        "warnings": warnings,
        **({} if together is None else {"panel": together.to_dict()}),
        **({} if by is None else {"by": slices}),
    }
    sentence = None if independence is None else independence.sentence
    return Answer(body, _show, findings=findings, warnings=[text for text in warnings if text != sentence])


def _show(body: Mapping[str, Any]) -> None:
    rows, ends = body["labelers"], interval_head(body["level"])
    columns: dict[Any, Any] = {"labeler": "labeler", "votes": "votes", "accuracy": lambda row: row["accuracy"]["mean"]}
    columns[ends] = lambda row: (row["accuracy"]["low"], row["accuracy"]["high"])
    columns["bits a vote"] = lambda row: row["information"]["mean"]
    more: dict[Any, Any] = {
        "bias": lambda row: f"class {row['bias_class']}: {signed(row['bias']['mean'], 3)}",
        "spam": lambda row: chance(row["spam_probability"]),
        "rank": lambda row: "–".join(dict.fromkeys(map(str, row["rank"]))),
    }
    print_records(columns | more, rows)
    if len(rows) < body["n_labelers"]:
        say(f"… and {body['n_labelers'] - len(rows):,} more.")
    say(f"{body['n_labelers']:,} labelers; noise {body['noise']}.")
    say("spam: the probability that no vote depends on the truth; bias: answered more often than true.")
    n_corrected = sum(row["vetted"] > 0 for row in rows)
    if n_corrected:
        say(f"Checked items that were drawn at random correct the accuracy of {n_corrected:,} of {len(rows):,}.")
    for row in rows:
        if "consistency" in row:
            bounds = interval(row["consistency"]["low"], row["consistency"]["high"])
            say(f"{shown(row['labeler'])} repeats an earlier vote on an item with probability {bounds}.")
    for name, part in body.get("by", {}).items():
        print_records({(name, "left"): "labeler"} | {k: v for k, v in columns.items() if k != "labeler"}, part)
    if body["effective"] is not None:
        say(body["effective"]["sentence"])
    if body["independence"] is not None:
        say(body["independence"]["sentence"])
        if body["independence"]["dependent"]:
            say(f"What to do: {shown(body['independence']['advice'])} See 'trueup vet'.")
    if "panel" in body:
        _show_panel(body["panel"])


def _show_panel(panel: Mapping[str, Any]) -> None:
    columns: dict[Any, Any] = {"labeler": "labeler", "errs most like": "nearest"}
    columns["correlation"] = lambda row: (row["correlation"]["low"], row["correlation"]["high"])
    columns["worth without"] = lambda row: row["without"]["effective"]["mean"]
    columns["with one more like it"] = lambda row: row["with_another"]["effective"]["mean"]
    print_records(columns, panel["labelers"])
    groups = [", ".join(map(shown, group)) for group in panel["groups"] if len(group) > 1]
    say(f"Who errs alike: {'; '.join(groups) or 'nobody'} ({panel['basis']}).")
    say(shown(panel["sentence"]))


def _record(row: RankedLabeler, level: float) -> dict[str, Any]:
    def about(name: str) -> dict[str, Any]:
        estimate = getattr(row, name)
        low, high = estimate.interval(level)
        return {"mean": estimate.mean, "low": low, "high": high}

    optional = [name for name in ("gold_only", "consistency") if getattr(row, name) is not None]
    return {
        "labeler": row.labeler,
        "votes": row.votes,
        **{name: about(name) for name in ("accuracy", "information", "bias", "spam", *optional)},
        **{name: getattr(row, name) for name in ("bias_class", "spam_probability", "rank", "basis", "vetted")},
    }


_MOST_PAIRS = 10


@as_command
def agreement(
    votes: options.VotesFile,
    how: options.VoteOptions,
    scale: str = options.opt("nominal", "How far apart classes are: nominal, ordinal, interval or ratio."),
    labelers: str = options.opt("random", "Whether the labelers are a sample, too: random or fixed."),
    values: list[str] = options.opt([], "The number of a class that is none; once for each.", "CLASS=NUMBER"),
    expert: list[str] = options.opt([], "A labeler that the others are held against; once for each.", "NAME"),
    weighting: str = options.opt("quadratic", "Of the weighted kappa: quadratic or linear."),
    weights: options.Weights = None,
    by: options.By = None,
    level: options.Level = 0.95,
    report: options.Report = None,
) -> Answer:
    """How far labelers agree: kappas, alpha and the like with intervals, pairs, and the items they disagree on."""
    from trueup.reliability import agreement as entry_point
    from trueup.report import save_report
    from trueup.report.agreement import agreement_report

    labels = read_votes(votes, how)
    numbers = numbers_by_name(values, "--values", "class")
    names = by_name(labels.labelers.tolist())
    answer = entry_point(
        labels,
        scale=scale,  # type: ignore[arg-type]  # these are checked by the callee, with a sentence
        labelers=labelers,  # type: ignore[arg-type]
        weighting=weighting,  # type: ignore[arg-type]
        values={class_named(labels, name): number for name, number in numbers.items()} or None,
        weights=weights,
        by=by,
        experts=[names.get(name, name) for name in expert],
        level=level,
    )
    if report is not None:
        save_report(as_json(agreement_report(answer)), report)
        note(f"report: {report}")
    return Answer(answer.to_dict, _show_agreement)


def _show_agreement(body: Mapping[str, Any]) -> None:
    """The tables for people."""
    ends = interval_head(body["level"])
    columns: dict[Any, Any] = {
        "coefficient": "name",
        ("what it is", "left"): "meaning",
        "mean": "mean",
        ends: "interval",
    }
    for name, part in [(None, body), *body["by"].items()]:
        print_records(columns, list(part["coefficients"].values()), title=name)
    pairs = body["pairs"]
    if len(pairs) > _MOST_PAIRS:
        pairs = [*pairs[: _MOST_PAIRS // 2], *pairs[-_MOST_PAIRS // 2 :]]
    if pairs:
        columns = {"labeler": "a", ("with", "left"): "b", "items": "n_items", "same": "percent", "kappa": "kappa"}
        print_records(columns | {ends: "interval"}, pairs)
    notes = list(body["notes"])
    if body["judges"] is not None:
        judges = [{"judge": "an expert", "measure": k, "class": "", **v} for k, v in body["judges"]["ceiling"].items()]
        judges += [row | {"class": row["class"] or ""} for row in body["judges"]["judges"]]
        columns = {"judge": "judge", ("measure", "left"): "measure", ("class", "left"): "class", "mean": "mean"}
        print_records(columns | {ends: "interval"}, judges)
        notes += body["judges"]["notes"]
    if body["disputed"]:

        def votes_on(row: Mapping[str, Any]) -> str:
            return ", ".join(f"{name} {n:g}" for name, n in row["votes"].items())

        print_records({"disputed item": "item", ("votes", "left"): votes_on}, body["disputed"][:5])
    say(body["sentence"])
    for sentence in notes:
        say(f"- {sentence}")
