"""trueup share, mean-score, preferences and inspect: true rates, ratings and rankings, without predictions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import interval, level_words, number, percent, signed, some
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command, this_call
from trueup.cli._console import interval_head, note, print_records, progress_bar, say, shown
from trueup.cli._files import Sheets, class_named, read_votes, sheets_among, sheets_of, source_of
from trueup.cli._gates import GateOptions, Gates, PairGateOptions, VerdictOptions, numbers_by_name
from trueup.cli._options import given, opt
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.gates import GateReport
    from trueup.answers.preferences import Preferences
    from trueup.answers.share import DerivedAnswer, Shares
    from trueup.data.labels import Labels
    from trueup.data.pairs import Pairs


@dataclass(frozen=True)
class BinOptions:
    """Ratings of which few are equal."""

    n_bins: int | None = opt(None, "Put ratings into so many bins of equal width.", "N", max=10_000)
    low: float | None = opt(None, "Where the first bin begins; by default at the lowest rating.", "NUMBER")
    high: float | None = opt(None, "Where the last bin ends; by default at the highest rating.", "NUMBER")

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
    of: str | None = opt(None, "The class whose share is asked for, e.g. pass.", "CLASS"),
    at_least: float | None = opt(None, "In place of --of: the least rating that counts.", "NUMBER"),
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """How often is the truth of some class? A rate with an interval for each group of items; no predictions needed.

    Of ratings: the share of those from --at-least on; ratings such as 0.37 go into --n-bins first.
    """
    from trueup.answers.share import share as entry_point

    def ask(labels: Labels, **settings: Any) -> Shares:
        return entry_point(labels, of=None if of is None else class_named(labels, of), at_least=at_least, **settings)

    what = of if of is not None else f"{at_least or 0:g}"
    gate = Gates(gates, pair_gates).only_on(what, f"the share of {what!r}")
    labels = bins.put(read_votes(votes, votes_how))
    return _answer(ask, labels, votes_how, gate, random_state=seed, **vars(asked), **sampler.named)


@as_command
def mean_score(
    votes: options.VotesFile,
    votes_how: options.CheckedVoteOptions,
    sampler: options.SamplerOptions,
    gates: GateOptions,
    pair_gates: PairGateOptions,
    asked: options.AnswerOptions,
    bins: BinOptions,
    values: list[str] = opt([], "The score of a class that is no number; once for each.", "CLASS=NUMBER"),
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

    gate = Gates(gates, pair_gates).only_on("mean", "the mean")
    labels = bins.put(read_votes(votes, votes_how))
    return _answer(ask, labels, votes_how, gate, random_state=seed, **vars(asked), **sampler.named)


def _answer(
    ask: Callable[..., Shares],
    labels: Labels,
    how: options.CheckedVoteOptions,
    gate: Gates,
    *,
    by: str | None,
    **settings: Any,
) -> Answer:
    """The rates or means, and the verdicts on them."""
    from trueup.data.slices import slices_of

    gate.find([] if by is None else slices_of(labels, by).names.tolist())

    def ask_with_progress(labels: Labels) -> Shares:
        with progress_bar("reading the votes") as progress:
            return ask(labels, progress=progress, **given(by=by, **settings))

    shares, verdicts = gate.settle(ask_with_progress, labels, sheets_of(how))
    return _derived(shares, show_shares, verdicts)


def _derived(answer: DerivedAnswer, show: Callable[[Any, Any], None], verdicts: GateReport | None) -> Answer:
    """Rates or preferences with their page."""
    return Answer(
        answer.to_dict,
        functools.partial(show, answer),
        warnings=answer.warnings,
        verdicts=verdicts,
        page=lambda: answer.report(settings=this_call().settings),
    )


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


@as_command
def preferences(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    sampler: options.SamplerOptions,
    gates: VerdictOptions,
    pair_gates: PairGateOptions,
    gold: list[str] = opt(
        [],
        "Verdicts taken to be right, as those of people; columns as of the pairs; or a table of --ask. Repeatable.",
        "FILE",
        reads=True,
    ),
    gold_drawn: str | None = opt(None, "How the contests in --gold were drawn: random or chosen.", "HOW"),
    ties: str = opt("half", "A true tie is half a win for both, or neither's: half or class."),
    noise: str | None = opt(None, "How judges err, by this model alone, e.g. mirrored.", "MODEL"),
    target: str = opt("population", "Items like these, or exactly these contests: population or sample."),
    level: options.Level = 0.95,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """Which system is preferred in truth? Win rates, a ranking and the judges' position bias, with intervals."""
    from trueup.adapters import read_pairs
    from trueup.answers.preferences import preferences as entry_point

    gate = Gates(gates, pair_gates)
    sheets = sheets_among(gold)
    people = [path for path in gold if path not in sheets]
    if len(people) > 1:
        raise InvalidParameter(f"--gold takes one file that --ask did not write, got {len(people)}; join them")
    verdicts = read_pairs(
        source_of(pairs),
        **vars(columns),
        gold=source_of(people[0]) if people else None,
        gold_drawn=gold_drawn,  # type: ignore[arg-type]  # checked by the callee, with a sentence
    )
    for sentence in verdicts.notes:
        note(sentence)
    gate.find(verdicts.systems.tolist())

    def ask(verdicts: Pairs) -> Preferences:
        with progress_bar("reading the verdicts") as progress:
            return entry_point(
                verdicts,
                ties=ties,  # type: ignore[arg-type]  # checked by the callee, with a sentence
                target=target,  # type: ignore[arg-type]
                level=level,
                random_state=seed,
                progress=progress,
                **given(noise=noise, **sampler.named),
            )

    named = Sheets(sheets, [columns.item, columns.first, columns.second], columns.winner)
    answer, decided = gate.settle(ask, verdicts, named)
    return _derived(answer, _show, decided)


def _show(answer: Preferences, body: Mapping[str, Any]) -> None:
    """The ranking, the win rates and the judges for people."""
    pairs, ends = answer.pairs, interval_head(answer.level)
    say(
        f"{some(pairs.n_contests, 'contest')} of {some(len(pairs.systems), 'system')}, "
        f"{some(pairs.n_verdicts, 'verdict')} of {some(len(pairs.judges), 'judge')}. "
        f"This rests on {answer.evaluation.answer_in_words()}."
    )

    def with_sign(row: Mapping[str, Any]) -> str:
        return signed(row["mean"])

    columns: dict[Any, Any] = {"system": "system", "wins against an average opponent": lambda row: row["wins"]["mean"]}
    columns |= {ends: lambda row: (row["wins"]["low"], row["wins"]["high"])}
    columns |= {"log-odds": with_sign, "log-odds interval": "interval", "best": "prob_best"}
    print_records(columns, body["systems"])
    together = "; ".join(", ".join(map(shown, group)) for group in body["groups"] if len(group) > 1)
    if together:
        say(f"Too close to rank: {together}.")
    for sentence in answer.next_steps():
        say(shown(sentence))
    columns = {"stronger": "a", "weaker": "b", "contests": "n_contests", "win rate": "mean", ends: "interval"}
    print_records(columns, body["win_rates"])
    judges = [
        {"judge": name, **bias, "same": percent(body["consistency"][name]) if name in body["consistency"] else ""}
        for name, bias in body["position_bias"].items()
    ]
    columns = {"judge": "judge", "position bias": with_sign, ends: "interval"}
    if body["consistency"]:
        columns["same winner in both orders"] = "same"
    if judges:
        print_records(columns, judges)


@as_command
def inspect(
    logs: Annotated[list[str], options.Option("Logs, .eval or .json.", "LOGS", reads=True, is_argument=True)],
    of: str = opt("C", "The grade whose share is asked for.", "GRADE", show=True),
    question: str | None = opt(None, "Of several kinds of scores, this one.", "NAME"),
    gold_key: str | None = opt(None, "The key of the metadata that holds the right grade.", "KEY"),
    gold_drawn: str | None = opt(None, "How the checked samples were drawn: random or chosen.", "HOW"),
    by: str = opt("system", "The groups: a column of the answers, such as a key of the metadata.", "COLUMN"),
    scores: str | None = opt(
        None, "Also write a copy of the log, with what its graders say together as a score more.", "LOG", writes=True
    ),
    level: options.Level = 0.95,
    seed: options.Seed = 0,
) -> Answer:
    """How often is each model right, and do its graders agree? From finished logs of Inspect."""
    from trueup.answers.share import share
    from trueup.exceptions import InvalidParameter
    from trueup.integrations.inspect import read_logs, write_scores
    from trueup.reliability import agreement

    if scores is not None and len(logs) != 1:
        raise InvalidParameter(f"--scores writes a copy of one log, got {len(logs)}; name one")
    labels = read_logs(*logs, question=question, gold=gold_key, drawn=gold_drawn)  # type: ignore[arg-type]
    grade = class_named(labels, of)
    shares = share(labels, of=grade, by=by, cluster="sample", level=level, random_state=seed)
    agreed = agreement(labels, level=level).to_dict() if labels.n_labelers > 1 else None
    if scores is not None:
        note(f"log: {write_scores(logs[0], scores, question=question)}")

    def show(body: Mapping[str, Any]) -> None:
        show_shares(shares, body)
        if agreed is not None:
            say(agreed["sentence"])

    return Answer(lambda: {**shares.to_dict(), "agreement": agreed}, show, warnings=shares.warnings)
