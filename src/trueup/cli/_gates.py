"""Gates: the options of a release that may go out or not, and the verdicts on an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from trueup._base.wording import some
from trueup._base.writing import write_text_safely
from trueup.cli._command import this_call
from trueup.cli._console import option_names, to_cli_terms
from trueup.cli._files import Sheets, by_name, source_of
from trueup.cli._options import given, key_and_value, opt
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.gates import GateReport
    from trueup.answers.preferences import Preferences
    from trueup.answers.share import Shares
    from trueup.data.labels import Labels
    from trueup.data.pairs import Pairs


@dataclass(frozen=True)
class VerdictOptions:
    """Gates: exit with 0 if passed, 1 if failed, 5 if undecided."""

    probability: float = opt(0.95, "How probable a condition must be to pass, and its contrary to fail.")
    require_gold: bool = opt(False, "Leave undecided what rests on fewer than 20 checked items.")
    junit: str | None = opt(None, "Also write JUnit XML, which GitLab and Jenkins show.", "PATH", writes=True)
    summary: str | None = opt(None, "Also write verdict, intervals and next steps as Markdown.", "PATH", writes=True)
    ask: str | None = opt(
        None,
        "Where it is undecided, write the items to check next; filled in, give the file back by --gold.",
        "PATH",
        writes=(".csv",),
    )
    n_ask: int = opt(20, "How many items --ask writes.", "N", min=1)


@dataclass(frozen=True)
class BoundOptions:
    """Bounds of metrics."""

    fail_below: list[str] = opt([], "The metric must be at least this. May be given several times.", "METRIC=VALUE")
    fail_above: list[str] = opt([], "The metric must be at most this (log_loss and the like).", "METRIC=VALUE")

    @property
    def bounds(self) -> dict[str, dict[str, float]]:
        """By the side, as `trueup.gate` names it, and by metric."""
        sides = (("at_least", "--fail-below", self.fail_below), ("at_most", "--fail-above", self.fail_above))
        return {side: numbers_by_name(texts, option, "metric") for side, option, texts in sides if texts}


@dataclass(frozen=True)
class GateOptions(BoundOptions, VerdictOptions):
    """Gates: exit with 0 if passed, 1 if failed, 5 if undecided."""


@dataclass(frozen=True)
class PairGateOptions:
    """Gates: exit with 0 if passed, 1 if failed, 5 if undecided."""

    not_worse_than: str | None = opt(None, "The candidate must not be worse than this one, but for --margin.", "NAME")
    margin: float = opt(0.0, "How much worse --not-worse-than allows, in the units of the metric.", min=0.0)
    better_than: str | None = opt(None, "The candidate must be better than this one.", "NAME")
    candidate: str | None = opt(None, "The system or group that the gates are about; by default all others.", "NAME")


@dataclass(frozen=True)
class DecisionOptions(BoundOptions, PairGateOptions):
    """A decision in place of a test: it ends by itself."""

    probability: float = opt(0.95, "How sure a verdict is to be, over all looks.")
    of: str | None = opt(None, "The class whose share it is about; then no PREDICTIONS.", "CLASS")
    by: str | None = opt(None, "The groups of --of: a column of the items, such as system.", "COLUMN")

    @property
    def gates(self) -> Gates:
        """The conditions."""
        pairs = PairGateOptions(**{part.name: getattr(self, part.name) for part in fields(PairGateOptions)})
        bounds = GateOptions(fail_below=self.fail_below, fail_above=self.fail_above, probability=self.probability)
        return Gates(bounds, pairs)


class Gates:
    """The gates of a command; what makes no sense stops before long work."""

    def __init__(self, how: VerdictOptions, pairs: PairGateOptions | None = None) -> None:
        self.how, self.pairs = how, pairs or PairGateOptions()
        self.bounds: dict[str, Any] = how.bounds if isinstance(how, GateOptions) else {}
        self.references = given(not_worse_than=self.pairs.not_worse_than, better_than=self.pairs.better_than)
        self.named: dict[str, Any] = {}
        if not 0.5 < how.probability < 1:
            raise InvalidParameter(f"--probability must be between 0.5 and 1, got {how.probability:g}; write e.g. 0.95")
        values = vars(how) | vars(self.pairs)
        alone = ("junit", "summary", "ask", "require_gold", "margin", "candidate")
        first = next((name for name in alone if values[name]), None)
        if first is not None and self.is_empty:
            example = "--fail-below accuracy=0.9" if isinstance(how, GateOptions) else "--better-than NAME"
            flag = f"--{first.replace('_', '-')}"
            raise InvalidParameter(f"{flag} is about gates, got none; add one, e.g. {example}")

    @property
    def metrics(self) -> list[str]:
        """The metrics that have a bound."""
        return list(dict.fromkeys(name for by_metric in self.bounds.values() for name in by_metric))

    def only_on(self, what: str | None, about: str = "") -> Gates:
        """These gates where an answer is one number: their bounds must be on it, and are bare numbers from here on."""
        for metric in self.metrics:
            if what is not None and metric != what:
                raise InvalidParameter(f"a bound here is on {about}, got one on {metric!r}; write {what}=0.9")
        self.bounds = {side: next(iter(bound.values())) for side, bound in self.bounds.items()}
        return self

    def find(self, names: Iterable[Any]) -> None:
        """Find what was typed among the names of systems or groups, else an error."""
        from trueup.answers.gates import candidates_among

        by_text = by_name(names)
        typed = self.references | given(candidate=self.pairs.candidate)
        self.named = {key: by_text.get(name, name) for key, name in typed.items()}
        references = [self.named[key] for key in self.references]
        candidates_among(list(by_text.values()), self.named.get("candidate"), references)

    def on(self, answer: Evaluation | Comparison | Shares | Preferences) -> GateReport | None:
        """The verdicts on an answer, in the terms of the command line; None without a gate."""
        if self.is_empty:
            return None
        from trueup.answers.gates import gate

        how: dict[str, Any] = {"probability": self.how.probability, "require_gold": self.how.require_gold}
        with option_names(at_least="--fail-below", at_most="--fail-above"):
            return self._in_cli_terms(gate(answer, **self.asked, **how))

    def settle(self, ask: Callable[[Any], Any], about: Labels | Pairs, sheets: Sheets) -> tuple[Any, GateReport | None]:
        """The answer that is asked for with the checks of tables that came back, and the verdicts on it.

        Where that is asked for, it writes the next table.
        """
        if self.how.ask is None and not sheets.paths:
            answer = ask(about)
            return answer, self.on(answer)
        if self.is_empty:
            raise InvalidParameter(
                f"a table of --ask goes on with a gate, got {sheets.paths[0]!r} without one; give the gate that it was "
                "written for"
            )
        from trueup.data.labels import Labels
        from trueup.decisions import decide
        from trueup.decisions.sheets import events_of, read_sheet, sheet_of

        answer = ask(about)
        named: dict[str, Any] = {"item": sheets.items, "label": sheets.label}
        with option_names(at_least="--fail-below", at_most="--fail-above"):
            decision = decide(answer, **self.asked, error=self.error, random_state=this_call().values["seed"])
        rows = [row for path in sheets.paths for row in read_sheet(source_of(path), **named)]
        decision = decision.replay(events_of(rows, decision.labels.items.tolist(), decision.labels.classes.tolist()))
        if decision.n_strange:
            raise InvalidParameter(
                f"the chances in the tables must be those of this decision, got {decision.n_strange} others; give the "
                "same votes, gates and options as when they were written"
            )
        if decision.progress.n_tells:
            is_of_votes = isinstance(about, Labels)
            answer = ask(decision.checked_labels if is_of_votes else about.with_gold(decision.checked, drawn="random"))
        report = decision.report()
        if self.how.ask is not None and report.verdict == "undecided":
            asked = list(decision.waiting)
            if len(asked) < self.how.n_ask:
                asked += decision.ask(self.how.n_ask - len(asked))
            write_text_safely(self.how.ask, sheet_of(decision, asked, **named))
            given_back = " ".join(f"--gold {path}" for path in [*sheets.paths, self.how.ask])
            step = (
                f"Fill in the column {sheets.label!r} of {self.how.ask} ({some(len(asked), 'item')}), and run this "
                f"again with {given_back}."
            )
            report = replace(report, next_steps=(*report.next_steps, step))
        return answer, self._in_cli_terms(report)

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not (self.bounds or self.references)

    @property
    def error(self) -> float:
        """The chance of a false verdict that is allowed."""
        return round(1 - self.how.probability, 9)

    @property
    def asked(self) -> dict[str, Any]:
        """The conditions, as `trueup.gate` and `trueup.decide` take them."""
        asked: dict[str, Any] = {**self.bounds, **self.named}
        return {**asked, "margin": self.pairs.margin} if self.references else asked

    @staticmethod
    def _in_cli_terms(report: GateReport) -> GateReport:
        results = (replace(result, sentence=to_cli_terms(result.sentence)) for result in report.results)
        return replace(report, results=tuple(results))


def numbers_by_name(texts: Sequence[str], option: str, of: str) -> dict[str, float]:
    """The numbers of texts such as ``accuracy=0.9``."""
    numbers: dict[str, float] = {}
    for text in texts:
        name, value = key_and_value(text, option=option)
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise InvalidParameter(f"{option} takes {of.upper()}=NUMBER, got {text!r}; write e.g. {name}=0.9")
        if name in numbers:
            raise InvalidParameter(f"{option} takes one number for each {of}, got {name!r} twice; leave one out")
        numbers[name] = number
    return numbers
