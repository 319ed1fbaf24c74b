"""trueup share, mean-score, preferences and inspect: true rates, ratings and rankings, without predictions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command, call_library, this_call
from trueup.cli._console import note, progress_bar, say, show_page
from trueup.cli._files import Sheets, class_named, read_votes, sheets_among, sheets_of, source_of
from trueup.cli._gates import GateOptions, Gates, PairGateOptions, VerdictOptions, numbers_by_name
from trueup.cli._options import opt
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

    what = of if of is not None else f"{at_least or 0:g}"
    gate = Gates(gates, pair_gates).only_on(what, f"the share of {what!r}")
    labels = bins.put(read_votes(votes, votes_how))
    chosen = None if of is None else class_named(labels, of)
    return _answer(entry_point, labels, votes_how, gate, asked.by, of=chosen, at_least=at_least)


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

    gate = Gates(gates, pair_gates).only_on("mean", "the mean")
    labels = bins.put(read_votes(votes, votes_how))
    scores = {class_named(labels, name): score for name, score in numbers_by_name(values, "--values", "class").items()}
    return _answer(entry_point, labels, votes_how, gate, asked.by, values=scores or None)


def _answer(
    entry_point: Callable[..., Shares],
    labels: Labels,
    how: options.CheckedVoteOptions,
    gate: Gates,
    by: str | None,
    **what: Any,
) -> Answer:
    """The rates or means, and the verdicts on them."""
    from trueup.data.slices import slices_of

    gate.find([] if by is None else slices_of(labels, by).names.tolist())

    def ask(labels: Labels) -> Shares:
        with progress_bar("reading the votes") as progress:
            return cast("Shares", call_library(entry_point, labels, progress=progress, **what))

    hint = "For each system by itself: --by system." if by is None and "system" in labels.item_columns else ""
    return _derived(*gate.settle(ask, labels, sheets_of(how)), hint)


def _derived(answer: DerivedAnswer, verdicts: GateReport | None, hint: str = "") -> Answer:
    """Rates or preferences, which are printed as their page has them."""
    page = functools.partial(answer.report, settings=this_call().settings)

    def show(_: Any) -> None:
        show_page(page(), without=answer.warnings)
        if hint:
            say(hint)

    return Answer(answer.to_dict, show, warnings=answer.warnings, verdicts=verdicts, page=page)


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
            return cast("Preferences", call_library(entry_point, verdicts, progress=progress))

    named = Sheets(sheets, [columns.item, columns.first, columns.second], columns.winner)
    return _derived(*gate.settle(ask, verdicts, named))


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
    from trueup.integrations.inspect import read_logs, write_scores
    from trueup.reliability import agreement

    if scores is not None and len(logs) != 1:
        raise InvalidParameter(f"--scores writes a copy of one log, got {len(logs)}; name one")
    labels = read_logs(*logs, question=question, gold=gold_key, drawn=gold_drawn)  # type: ignore[arg-type]
    shares = share(labels, of=class_named(labels, of), by=by, cluster="sample", level=level, random_state=seed)
    agreed = agreement(labels, level=level).to_dict() if labels.n_labelers > 1 else None
    if scores is not None:
        note(f"log: {write_scores(logs[0], scores, question=question)}")

    def show(_: Any) -> None:
        show_page(shares.report(), without=shares.warnings)
        if agreed is not None:
            say(agreed["sentence"])

    return Answer(lambda: {**shares.to_dict(), "agreement": agreed}, show, warnings=shares.warnings)
