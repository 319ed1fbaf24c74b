"""trueup share and mean-score: how often is the truth of some class, how high is the true rating, by group of items?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from trueup._base.wording import interval, level_words, number
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import interval_head, print_records, progress_bar, say, shown
from trueup.cli._files import class_named, read_votes, sheet_columns, sheets_among
from trueup.cli._gates import GateOptions, Gates, PairGateOptions, numbers_by_name
from trueup.cli.judge import write_answer_report
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.share import Shares
    from trueup.data.labels import Labels
    from trueup.decisions import Decision


@dataclass(frozen=True)
class BinOptions:
    """Ratings of which few are equal."""

    n_bins: int | None = options.opt(None, "Put ratings into so many bins of equal width.", "N", max=10_000)
    low: float | None = options.opt(None, "Where the first bin begins; by default at the lowest rating.", "NUMBER")
    high: float | None = options.opt(None, "Where the last bin ends; by default at the highest rating.", "NUMBER")

    def put(self, labels: Labels) -> Labels:
        """Ratings in bins, where the user asks for some."""
        if self.n_bins is None and (self.low is not None or self.high is not None):
            raise InvalidParameter("--low and --high are the ends of bins, got no --n-bins; say how many")
        return labels if self.n_bins is None else labels.binned(self.n_bins, low=self.low, high=self.high)


@as_command
def share(
    votes: options.VotesFile,
    votes_how: options.CheckedVoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    asked: options.AnswerOptions,
    bins: BinOptions,
    of: str | None = options.opt(None, "The class whose share is asked for, e.g. pass.", "CLASS"),
    at_least: float | None = options.opt(None, "In place of --of: the least rating that counts.", "NUMBER"),
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed.

    Of ratings: the share of those from --at-least on; ratings such as 0.37 go into --n-bins first.
    """
    from trueup.answers.share import share as entry_point

    def ask(labels: Labels, **settings: Any) -> Shares:
        return entry_point(labels, of=None if of is None else class_named(labels, of), at_least=at_least, **settings)

    gate = _gates_on(of if of is not None else f"{at_least or 0:g}", gates, pair_gates)
    labels = bins.put(read_votes(votes, votes_how))
    return _answer(ask, labels, votes_how, gate, report, random_state=seed, **vars(asked), **sampler.named)


@as_command
def mean_score(
    votes: options.VotesFile,
    votes_how: options.CheckedVoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    asked: options.AnswerOptions,
    bins: BinOptions,
    values: list[str] = options.opt([], "The score of a class that is no number; once for each.", "CLASS=NUMBER"),
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How high is the true rating? A mean with an interval for each group of items; no predictions needed.

    Bounds are on the mean: --fail-below mean=3.5.
    """
    from trueup.answers.share import mean_score as entry_point

    def ask(labels: Labels, **settings: Any) -> Shares:
        typed = numbers_by_name(values, "--values", "class")
        scores = {class_named(labels, name): score for name, score in typed.items()}
        return entry_point(labels, values=scores or None, **settings)

    gate = _gates_on("mean", gates, pair_gates)
    labels = bins.put(read_votes(votes, votes_how))
    return _answer(ask, labels, votes_how, gate, report, random_state=seed, **vars(asked), **sampler.named)


def _gates_on(what: str, gates: GateOptions, pair_gates: PairGateOptions) -> Gates:
    """The gates, whose bounds must be on what is asked for."""
    gate = Gates(gates, pair_gates)
    for metric in set(gate.metrics) - {what}:
        about = "the mean" if what == "mean" else f"the share of {what!r}"
        raise InvalidParameter(f"a bound here is on {about}, got one on {metric!r}; write {what}=0.9")
    return gate


def _answer(
    ask: Callable[..., Shares],
    labels: Labels,
    how: options.CheckedVoteOptions,
    gate: Gates,
    report: str | None,
    *,
    by: str | None,
    **settings: Any,
) -> Answer:
    """The rates or means, and the verdicts on them."""
    from trueup.data.slices import slices_of

    gate.find([] if by is None else slices_of(labels, by).names.tolist())

    def answer_on(decision: Decision | None) -> Shares:
        with progress_bar("reading the votes") as progress:
            checked = labels if decision is None else decision.checked_labels
            return ask(checked, progress=progress, **options.given(by=by, **settings))

    bounds = {side: next(iter(bound.values())) for side, bound in gate.bounds.items()}
    sheets = sheets_among(how)
    shares, verdicts = gate.settle(
        answer_on, sheets=sheets, columns=sheet_columns(how), seed=settings["random_state"], **bounds
    )
    write_answer_report(report, shares)
    return Answer(shares.to_dict, lambda body: show_shares(shares, body), warnings=shares.warnings, verdicts=verdicts)


def show_shares(shares: Shares, body: Mapping[str, Any]) -> None:
    """The rates for people."""
    from trueup.answers.next_checks import on_which

    ends, is_sample = interval_head(shares.level), shares.evaluation.target == "sample"
    bounds = interval(body["overall"]["low"], body["overall"]["high"], joint=" to ")
    where = "of these items" if is_sample else "of items like these"
    rests = f"{level_words(shares.level)} interval; rests on {shares.evaluation.answer_in_words()}"
    say(f"{shown(shares.name)} {where}: {bounds} ({rests}).")
    if len(shares) < 2:
        _show_next(shares)
        return
    columns: dict[Any, Any] = {body["by"]: "group", "items": "n_items"}
    columns |= {"mean" if shares.name == "mean score" else "rate": "mean", ends: "interval", "highest": "prob_best"}
    if shares.vettings:
        columns[f"checks in all for ±{number(shares.vetting_width / 2, 3)} {on_which(body['target'])}"] = "vettings"
    print_records(columns, body["groups"])
    beside = [
        {
            "pair": f"{a} minus {b}",
            **shares.difference(a, b).to_dict(shares.level),
            "prob": shares.comparison.prob_better(a, b),
        }
        for a, b in pairwise(shares.ranking)
    ]
    print_records({"difference": "pair", "mean": "mean", ends: "interval", "first is higher": "prob"}, beside)
    _show_next(shares)
    if body["lower"]:
        say(f"Lower than the rest: {', '.join(map(shown, body['lower']))}.")


def _show_next(shares: Shares) -> None:
    for sentence in shares.next_steps():
        say(shown(sentence))
    if shares.evaluation.settings.arguments["by"] is None and "system" in shares.evaluation.labels.item_columns:
        say("For each system by itself: --by system.")
