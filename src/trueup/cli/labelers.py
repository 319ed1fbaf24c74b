"""trueup labelers, agreement and plan: who can be trusted, do they agree, and how to spend money on labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from trueup._base.cells import csv_text, safe_cell
from trueup._base.wording import interval, level_words, percent
from trueup._base.writing import write_text_safely
from trueup.cli import _options as options
from trueup.cli._command import Answer, add_to, as_command, call_library
from trueup.cli._console import ends_of, note, print_records, print_report_table, progress_bar, say, shown
from trueup.cli._files import (
    by_name,
    class_named,
    one_system,
    predicted_classes,
    read_systems,
    read_votes,
    sheet_text,
    source_of,
)
from trueup.cli._gates import numbers_by_name
from trueup.cli._options import arg, given, opt
from trueup.cli.judge import about_independence, dependence_findings
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, silenced_warnings

if TYPE_CHECKING:
    from trueup.data.pairs import Pairs
    from trueup.labelers import LabelerRanking, RankedLabeler
    from trueup.labelers.planning import Plan, Sample
    from trueup.reliability import Agreement


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
    sort: str = opt("information", f"Order of the rows: {', '.join(_KEYS)}."),
    top: int | None = opt(None, "Show the first N rows only.", "N", min=1),
    level: options.Level = 0.95,
    spam_prior: float = opt(0.1, "Share of labelers expected beforehand not to look at all."),
    fail_if_dependent: options.FailIfDependent = False,
    fail_if_spam: float | None = opt(
        None, "Exit with 1 if more than this share of votes is by probable spammers.", "SHARE", min=0.0, max=1.0
    ),
    panel: bool = opt(False, "Also who errs alike, and the panel without each labeler or with one more."),
    by: options.By = None,
    plot: options.Plot = None,
    seed: options.Seed = 0,
) -> Answer:
    """Skill, bias, volume and spam of every labeler, and what their votes are worth together."""
    from trueup._base.validation import check_choice, check_level
    from trueup.answers.notes import about_votes
    from trueup.labelers import panel as find_panel
    from trueup.labelers import rank
    from trueup.noise import effective_labelers
    from trueup.noise.registry import resolve

    check_choice(sort, tuple(_KEYS), name="sort")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    labels = read_votes(votes, how)
    model = None if noise is None else resolve(noise)
    order = "accuracy" if sort == "accuracy" else "information"
    with progress_bar("ranking labelers") as progress:
        of_ranking = None if progress is None else (lambda share: progress(_OF_RANKING * share))
        ranking: LabelerRanking = call_library(rank, labels, progress=of_ranking, sort=order)
        notes, independence = about_votes(labels)
        effective = None
        if (labels.votes_per_item > 1).any():
            with silenced_warnings():  # what it would warn of is among the warnings
                effective = effective_labelers(labels, random_state=seed)
        together = find_panel(labels, random_state=seed) if panel else None
    spam_share = sum(row.votes for row in ranking if row.spam_probability > _SPAMMER) / max(labels.n_votes, 1)
    rows = sorted(ranking, key=_KEYS[sort])[:top]
    findings = dependence_findings(independence, wanted=fail_if_dependent)
    if fail_if_spam is not None and spam_share > fail_if_spam:
        findings.append(
            f"{percent(spam_share, 1)} of the votes are by labelers who are more probably spammers than not, more than "
            f"{percent(fail_if_spam, 1)}"
        )
    slices = {str(name): [_record(row, level) for row in part] for name, part in ranking.by.items()}
    warnings = [*notes, *ranking.warnings, *(() if together is None else together.warnings)]
    body = {
        "labelers": [_record(row, level) for row in rows],
        "n_labelers": labels.n_labelers,
        "n_votes": labels.n_votes,
        "sort": sort,
        "level": level,
        "noise": ranking.noise,
        "effective": None if effective is None else vars(effective),
        "independence": about_independence(labels, independence, model),
        "spam_vote_share": spam_share,
        "warnings": warnings,
        **({} if together is None else {"panel": together.to_dict()}),
        **({} if by is None else {"by": slices}),
    }
    sentence = None if independence is None else independence.sentence
    others = [text for text in warnings if text != sentence]
    return Answer(body, _show, findings=findings, warnings=others, picture=ranking.plot)


def _show(body: Mapping[str, Any]) -> None:
    from trueup.report.sentences import labeler_table

    rows = body["labelers"]
    print_report_table(labeler_table("Labelers", rows))
    if len(rows) < body["n_labelers"]:
        say(f"… and {body['n_labelers'] - len(rows):,} more.")
    say(f"{body['n_labelers']:,} labelers; noise {body['noise']}; intervals {level_words(body['level'])}.")
    say("Spammer: the probability that no vote depends on the truth; bias: answered more often than true.")
    n_corrected = sum(row["vetted"] > 0 for row in rows)
    if n_corrected:
        say(f"Checked items that were drawn at random correct the accuracy of {n_corrected:,} of {len(rows):,}.")
    for row in rows:
        if "consistency" in row:
            bounds = interval(row["consistency"]["low"], row["consistency"]["high"])
            say(f"{shown(row['labeler'])} repeats an earlier vote on an item with probability {bounds}.")
    for name, part in body.get("by", {}).items():
        print_report_table(labeler_table(name, part))
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
    optional = [name for name in ("gold_only", "consistency") if getattr(row, name) is not None]
    return {
        "labeler": row.labeler,
        "votes": row.votes,
        **{name: ends_of(getattr(row, name), level) for name in ("accuracy", "information", "bias", "spam", *optional)},
        **{name: getattr(row, name) for name in ("bias_class", "spam_probability", "rank", "basis", "vetted")},
    }


@as_command
def agreement(
    votes: options.VotesFile,
    how: options.VoteOptions,
    scale: str = opt("nominal", "How far apart classes are: nominal, ordinal, interval or ratio."),
    labelers: str = opt("random", "Whether the labelers are a sample, too: random or fixed."),
    values: list[str] = opt([], "The number of a class that is none; once for each.", "CLASS=NUMBER"),
    expert: list[str] = opt([], "A labeler that the others are compared with; once for each.", "NAME"),
    weighting: str = opt("quadratic", "Of the weighted kappa: quadratic or linear."),
    weights: options.Weights = None,
    by: options.By = None,
    level: options.Level = 0.95,
    report: options.Report = None,
) -> Answer:
    """How far labelers agree: kappas, alpha and the like with intervals, pairs, and the items they disagree on."""
    from trueup.reliability import agreement as entry_point
    from trueup.report.summary import agreement_report

    labels = read_votes(votes, how)
    numbers = {class_named(labels, name): n for name, n in numbers_by_name(values, "--values", "class").items()}
    names = by_name(labels.labelers.tolist())
    experts = [names.get(name, name) for name in expert]
    answer: Agreement = call_library(entry_point, labels, values=numbers or None, experts=experts)
    return Answer(answer.to_dict, page=lambda: agreement_report(answer))


_SHOWN = 5  # other budgets in the table, about
_LEAST_CORRELATION = 0.01  # below it votes are as good as independent
_LEAST, _START, _STEP, _MOST = 1e-3, 100.0, 100.0, 1e14  # the budgets that are tried for a half-width
_EXACT = 1.01  # the least budget is found to within a hundredth


class GroupWithDefault(TyperGroup):
    """A group whose first command is meant where none is named: ``plan votes.csv`` is ``plan spend votes.csv``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the first command unless a command, or the help of all, is asked for."""
        names = self.list_commands(ctx)
        if not args or args[0] not in (*names, *ctx.help_option_names):
            args = [names[0], *args]
        return super().parse_args(ctx, args)


plan = typer.Typer(
    cls=GroupWithDefault,
    help="How to spend money on labels, and which items to check. Without a command it is 'spend'.",
    add_completion=False,
)


@add_to(plan)
def spend(
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    votes: str | None = arg(None, "VOTES", "Votes to learn how labelers err from.", reads=True),
    predictions: options.OptionalPredictionsFile = None,
    budget: float | None = opt(None, "What may be spent.", "MONEY"),
    half_width: float | None = opt(None, "In place of a budget: the precision to be paid for.", "WIDTH"),
    vote_price: float | None = opt(None, "Of a vote.", "MONEY"),
    expert_price: float | None = opt(None, "Of an item checked by an expert.", "MONEY"),
    item_price: float = opt(0.0, "Of an item itself, beyond votes and checks.", "MONEY", show=True),
    labeler_accuracy: float | None = opt(None, "Rough accuracy of a labeler; learned from VOTES.", "RATE"),
    error: float | None = opt(None, "The model's rough error; learned from VOTES and PREDICTIONS.", "RATE"),
    correlation: float | None = opt(None, "Of errors on an item; learned from VOTES, otherwise 0.", "RHO"),
    classes: int | None = opt(None, "Number of classes; that of VOTES, otherwise 2.", "C"),
    noise_known: bool = opt(False, "The labelers' error rate is known, not learned from the votes that are bought."),
    max_items: int | None = opt(None, "The items there are.", "N"),
    max_votes: int = opt(15, "The most votes on an item.", "K", show=True),
    design: list[str] = opt([], "Choose from this kind: votes, vetted, both. Repeatable.", "KIND"),
    level: options.Level = 0.95,
    fail_above: float | None = opt(None, "Exit with 1 if the half-width that is bought is wider.", "WIDTH"),
    plot: options.Plot = None,
) -> Answer:
    """How many items, votes and checks give the narrowest interval of a model's accuracy for the money."""
    from trueup.labelers import planning

    if (budget is None) == (half_width is None):
        raise InvalidParameter("one of --budget and --half-width is needed, got both or none; give one")
    if predictions is not None and votes is None:
        raise InvalidParameter("predictions need votes, got none; name the votes first")
    learned = {} if votes is None else _learned(votes, predictions, how, how_predicted)
    asked = {"labeler_accuracy": labeler_accuracy, "error": error, "correlation": correlation, "n_classes": classes}
    assumed = learned | given(**asked)
    if assumed.get("n_classes") != learned.get("n_classes"):
        assumed.pop("prior", None)  # of the votes' classes, which were not asked about
    for name in ("labeler_accuracy", "error"):
        if name not in assumed:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidParameter(f"{flag} is needed, got none; give it, or the votes and predictions to learn it")

    def buy(money: float) -> Plan:
        return cast("Plan", call_library(planning.plan, budget=money, designs=design or None, **assumed))

    chosen = buy(float(budget)) if budget is not None else _cheapest(buy, float(half_width or 0.0))
    findings = []
    if fail_above is not None and chosen.half_width > fail_above:
        findings.append(f"the half-width is {chosen.half_width:.4f}, wider than {fail_above:g}")
    body = {
        **vars(chosen.design),
        "budget": chosen.budget,
        "level": chosen.level,
        "notes": chosen.notes,
        "assumed": assumed,
        "learned": sorted(learned),
        "alternatives": [vars(design) for design in chosen.alternatives],
        "frontier": [vars(design) for design in chosen.frontier.best()],
    }
    return Answer(body, _show_plan, findings=findings, picture=chosen.plot)


_PREDICTION = "prediction"

SheetFile = Annotated[
    str | None,
    options.Option("Where to write them (csv); else standard output.", "FILE", ("--out", "-o"), writes=(".csv",)),
]


@add_to(plan)
def draw(
    votes: options.VotesFile,
    how: options.VoteOptions,
    how_predicted: options.PredictionOptions,
    *,
    predictions: options.OptionalPredictionsFile = None,
    n: int = opt(..., "How many items.", "N", "-n", "--n", min=1),
    by: str | None = opt(
        None,
        "Draw by strata: votes (the class most of them name), prediction (of PREDICTIONS), or a column of --items.",
        "WHAT",
    ),
    allocation: str = opt("equal", "Items from each stratum: equal (as many of each) or proportional."),
    only_system: options.OnlySystem = None,
    out: SheetFile = None,
    with_text: bool = opt(False, "Write the columns of --items, too."),
    force: options.Force = False,
    seed: options.Seed = 0,
) -> Answer:
    """Draw items at random for an expert to check, with the chance of each, so that the answers hold for all items.

    The column of the labels is to be filled in; then the file is what --gold takes.
    """
    from trueup.labelers.planning import draw_sample

    if (predictions is not None) != (by == _PREDICTION):
        got = "none" if predictions is None else "them without it"
        raise InvalidParameter(f"PREDICTIONS and --by prediction go together, got {got}; give both or neither")
    labels = read_votes(votes, how)
    strata: Any = by
    if predictions is not None:
        systems = one_system(read_systems(predictions, labels, how_predicted, how), only_system)
        if systems.n_systems > 1:
            raise InvalidPredictions(
                f"one system must divide the items, got {systems.n_systems} in {predictions!r}; name it with "
                "--only-system"
            )
        strata = predicted_classes(systems, labels)
    sample: Sample = call_library(draw_sample, labels, n, by=strata)
    columns = sample.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    about = {"n_items": labels.n_items, "n_known": len(sample.known), "by": by, "sample": rows}
    of_strata = "" if sample.strata is None else f" from {len(set(sample.strata))} strata"
    known = f", of which {len(sample.known):,} are known already and filled in" if sample.known else ""
    drawn = f"drew {len(sample):,} of {labels.n_items:,} items{of_strata}{known}"
    items, key = columns.pop("item"), [name.strip() for name in how.item.split(",")]
    is_joint = len(key) > 1 and all(isinstance(name, tuple) for name in items)
    parts = zip(key, map(list, zip(*items, strict=True)), strict=True) if is_joint else [(how.item, items)]
    named = {**dict(parts), how.gold_column or how.label: columns.pop("label"), **columns}
    sheet = sheet_text(named, labels, sample.items, with_text=with_text)
    return _answer(about, sheet, out, drawn, f"{how.gold_column or how.label!r}", "pass it as --gold")


@add_to(plan)
def draw_pairs(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    *,
    n: int = opt(..., "How many contests.", "N", "-n", "--n", min=1),
    out: SheetFile = None,
    force: options.Force = False,
    seed: options.Seed = 0,
) -> Answer:
    """Draw contests of two systems at random for people to judge; which system comes first is by chance, too.

    The column of the winners is to be filled in; then the file is what --gold takes, with --gold-drawn random.
    """
    from trueup.adapters import read_pairs
    from trueup.labelers.planning import draw_contests

    verdicts: Pairs = call_library(read_pairs, source_of(pairs))
    contests = draw_contests(verdicts, n, random_state=seed)
    names = (columns.item, columns.first, columns.second, columns.winner)
    sheet = csv_text(list(names), [[safe_cell(cell) for cell in (*contest, None)] for contest in contests])
    rows = [dict(zip(("item", "first", "second"), contest, strict=True)) for contest in contests]
    drawn = f"drew {len(contests):,} of {verdicts.n_contests:,} contests"
    then = "pass it to trueup preferences as --gold with --gold-drawn random"
    return _answer({"n_contests": verdicts.n_contests, "sample": rows}, sheet, out, drawn, "'winner'", then)


def _answer(body: dict[str, Any], sheet: str, out: str | None, drawn: str, column: str, then: str) -> Answer:
    """What was drawn: in the file, or as it is on standard output, where another program may read it."""
    if out is not None:
        write_text_safely(out, sheet)

    def show(_: Any) -> None:
        if out is None:
            typer.echo(sheet, nl=False)
        note(drawn)
        note(f"fill in the column {column} of {out or 'the file'}, then {then}")

    return Answer(body, show)


def _learned(
    votes: str, predictions: str | None, how: options.VoteOptions, how_predicted: options.PredictionOptions
) -> dict[str, Any]:
    """What votes and predictions say about labelers and model, by the model that their correlation is compared with."""
    from trueup.noise import DawidSkene, effective_labelers

    labels = read_votes(votes, how)
    if (labels.votes_per_item < 2).all():
        raise InvalidLabels(
            f"how labelers err cannot be learned from {votes!r}, got no item with two votes; give --labeler-accuracy "
            "and --error in place of the file"
        )
    model = DawidSkene().fit(labels)
    posterior = model.posterior(labels)
    item, _, answer, counts = labels.vote_table()
    named = answer < labels.n_classes
    right = posterior[item[named], answer[named]] @ counts[named] / max(counts[named].sum(), 1)
    correlation = effective_labelers(labels, model).correlation
    found: dict[str, Any] = {
        "labeler_accuracy": float(right),
        "correlation": correlation if correlation >= _LEAST_CORRELATION else 0.0,
        "n_classes": labels.n_classes,
        "prior": [float(share) for share in posterior.mean(axis=0)],
    }
    if predictions is not None:
        codes = read_systems(predictions, labels, how_predicted, how).align(labels).codes
        if codes is None:
            raise InvalidPredictions("predictions must name classes, got scores alone; add a column 'prediction'")
        right_of = [posterior[there, row[there]] for row in codes if (there := row >= 0).any()]
        errors = [1 - float(chances.mean()) for chances in right_of]
        found["error"] = min(max(sum(errors) / max(len(errors), 1), 1e-3), 0.999)
        if len(errors) > 1:
            note(f"the mean error of {len(errors)} systems is taken")
    return found


def _cheapest(buy: Callable[[float], Plan], half_width: float) -> Plan:
    """The plan of the least budget that buys a half-width."""
    if not 0 < half_width < 1:
        raise InvalidParameter(f"--half-width must be between 0 and 1, got {half_width:g}; give e.g. 0.02")

    def enough(money: float) -> Plan | None:
        try:
            plan = buy(money)
        except InvalidParameter:
            return None  # less than the least design costs, or another fault, which the last try shows
        return plan if plan.half_width <= half_width else None

    low, high = _LEAST, _START
    while (best := enough(high)) is None:
        low, high = high, high * _STEP
        if high > _MOST:
            raise InvalidParameter(
                f"--half-width must be within reach, got {half_width:g} where {buy(high).half_width:.4f} is the least; "
                "allow more items or other designs"
            )
    while high / low > _EXACT:
        middle = (low * high) ** 0.5
        plan = enough(middle)
        low, high, best = (middle, high, best) if plan is None else (low, middle, plan)
    return best


def _show_plan(body: Mapping[str, Any]) -> None:
    assumed, learned = body["assumed"], body["learned"]
    names = {"labeler_accuracy": "labelers' accuracy", "error": "model's error", "correlation": "correlation"}
    from_votes = ", ".join(f"{label} {assumed[name]:.3f}" for name, label in names.items() if name in learned)
    if from_votes:
        say(f"From the votes: {from_votes} (options of these names overrule them).")
    parts = [f"{body['n_items']:,} items"]
    parts += [f"{body['votes_per_item']} votes on each"] if body["votes_per_item"] else []
    parts += [f"{body['n_vettings']:,} checked by the expert"] if body["n_vettings"] else []
    say(
        f"Buy {', '.join(parts)}: accuracy ± {body['half_width']:.4f} at {level_words(body['level'])}, for "
        f"{body['cost']:,.6g} of {body['budget']:,.6g}."
    )
    for sentence in body["notes"]:
        say(f"! {sentence}")
    best = {design["kind"]: design for design in reversed(body["alternatives"])}
    others = body["frontier"]
    for title, designs in (
        ("The best of each kind at this budget", sorted(best.values(), key=lambda design: design["half_width"])),
        ("What other budgets buy", others[:: max(len(others) // _SHOWN, 1)]),
    ):
        columns: dict[Any, Any] = {"kind": "kind", "items": "n_items", "votes each": "votes_per_item"}
        columns |= {"checked": "n_vettings", "half-width": "half_width", "cost": lambda row: f"{row['cost']:,.6g}"}
        print_records(columns, designs, title=title, places=4)
