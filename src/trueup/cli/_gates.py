"""Gates: the options of a release that may go out or not, and how a command ends by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trueup.cli._console import FINDING, FINE, UNDECIDED, complain, note, option_names, to_cli_terms
from trueup.cli._files import by_name
from trueup.cli._options import OutputFile, key_and_value, option
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.answers.evaluation import Evaluation
    from trueup.answers.preferences import Preferences
    from trueup.answers.share import Shares
    from trueup.answers.verdicts import GateReport, GateResult


_gate = functools.partial(option, panel="Gates: exit with 0 if passed, 1 if failed, 5 if undecided")
_BELOW = "The metric must be at least this. May be given several times."
_ABOVE = "The metric must be at most this (log_loss and the like)."
_PROBABILITY = "How probable a condition must be to pass, and its contrary to fail; in between it is undecided."
_REQUIRE_GOLD = "Leave undecided what rests on votes alone, or on fewer than 20 vetted items of the group or pair."
_JUNIT = "Also write the verdicts as JUnit XML, which GitLab and Jenkins show."
_CANDIDATE = "Whom the gates are about; by default all but those they are held against."


@dataclass(frozen=True)
class VerdictOptions:
    """When gates are passed, and where that is written."""

    probability: Annotated[float, _gate("--probability", _PROBABILITY)] = 0.95
    require_gold: Annotated[bool, _gate("--require-gold", _REQUIRE_GOLD)] = False
    junit: Annotated[str | None, _gate("--junit", _JUNIT, metavar="PATH"), OutputFile()] = None

    @property
    def names_one(self) -> bool:
        """Whether there is any gate."""
        return False


@dataclass(frozen=True)
class GateOptions(VerdictOptions):
    """What a number must reach."""

    fail_below: Annotated[list[str], _gate("--fail-below", _BELOW, metavar="METRIC=VALUE")] = field(
        default_factory=list
    )
    fail_above: Annotated[list[str], _gate("--fail-above", _ABOVE, metavar="METRIC=VALUE")] = field(
        default_factory=list
    )

    @property
    def bounds(self) -> dict[str, dict[str, float]]:
        """By the side, as `trueup.gate` names it, and by metric."""
        sides = (("at_least", "--fail-below", self.fail_below), ("at_most", "--fail-above", self.fail_above))
        return {side: numbers_by_name(texts, option, "metric") for side, option, texts in sides if texts}

    @property
    def names_one(self) -> bool:
        """Whether there is any gate."""
        return bool(self.fail_below or self.fail_above)


@dataclass(frozen=True)
class PairGateOptions:
    """What a system must be beside another."""

    not_worse_than: Annotated[
        str | None,
        _gate("--not-worse-than", "The candidate must not be worse than this one, but for --margin.", metavar="NAME"),
    ] = None
    margin: Annotated[
        float, _gate("--margin", "How much worse --not-worse-than allows, in the units of the metric.", min=0.0)
    ] = 0.0
    better_than: Annotated[
        str | None, _gate("--better-than", "The candidate must be better than this one.", metavar="NAME")
    ] = None
    candidate: Annotated[str | None, _gate("--candidate", _CANDIDATE, metavar="NAME")] = None

    @property
    def names_one(self) -> bool:
        """Whether there is any gate."""
        return self.not_worse_than is not None or self.better_than is not None

    def named_as(self, names: Iterable[Any]) -> dict[str, Any]:
        """As `trueup.gate` takes them: what was typed is found among the names of systems or groups, else an error."""
        from trueup.answers.gates import candidates_among

        known = by_name(names)
        typed = {"not_worse_than": self.not_worse_than, "better_than": self.better_than, "candidate": self.candidate}
        named = {key: known.get(name, name) for key, name in typed.items() if name is not None}
        references = [name for key, name in named.items() if key != "candidate"]
        candidates_among(list(known.values()), named.get("candidate"), references)
        return {**named, "margin": self.margin}


def check_gates(how: VerdictOptions, pairs: PairGateOptions | None = None) -> bool:
    """Whether there is a gate; what makes no sense stops before long work."""
    has_gate = how.names_one or (pairs is not None and pairs.names_one)
    if not 0.5 < how.probability < 1:
        raise InvalidParameter(
            f"--probability must be a number between 0.5 and 1, got {how.probability:g}; write e.g. --probability 0.95"
        )
    alone = {"--junit": how.junit is not None, "--require-gold": how.require_gold}
    if pairs is not None:
        alone |= {"--margin": bool(pairs.margin), "--candidate": pairs.candidate is not None}
    said = [name for name, is_said in alone.items() if is_said]
    if said and not has_gate:
        example = "--fail-below accuracy=0.9" if isinstance(how, GateOptions) else "--better-than NAME"
        raise InvalidParameter(f"{said[0]} is about gates, got none; add one, e.g. {example}")
    return has_gate


def numbers_by_name(texts: Sequence[str], option: str, of: str) -> dict[str, float]:
    """The numbers of texts such as ``accuracy=0.9``."""
    bounds: dict[str, float] = {}
    for text in texts:
        metric, value = key_and_value(text, option=option)
        try:
            bound = float(value)
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            raise InvalidParameter(f"{option} takes {of.upper()}=NUMBER, got {text!r}; write e.g. {metric}=0.9")
        if metric in bounds:
            raise InvalidParameter(f"{option} takes one number for each {of}, got {metric!r} twice; leave one out")
        bounds[metric] = bound
    return bounds


def gates_of(
    answer: Evaluation | Comparison | Shares | Preferences,
    how: VerdictOptions,
    bounds: Mapping[str, Mapping[str, float]],
    pairs: Mapping[str, Any] | None = None,
) -> GateReport:
    """The verdicts on an answer, in the words of the command line."""
    from trueup.answers.gates import gate

    asked: dict[str, Any] = {**bounds, **(pairs or {})}
    with option_names(at_least="--fail-below", at_most="--fail-above"):
        report = gate(answer, **asked, probability=how.probability, require_gold=how.require_gold)
    return replace(report, results=tuple(map(_to_cli_terms, report.results)))


def _to_cli_terms(result: GateResult) -> GateResult:

    return replace(result, sentence=(to_cli_terms(result.sentence)))


def about_gates(report: GateReport | None) -> dict[str, Any]:
    """The verdicts for JSON, if there are any."""
    return {} if report is None else {"gate": report.to_dict()}


def write_junit(report: GateReport | None, path: str | None, *, name: str) -> None:
    """Write the verdicts as JUnit XML, if they are wanted, and tell where on standard error."""
    if report is None or path is None:
        return
    from trueup.report import save_junit

    save_junit(report, path, name=name)
    note(f"junit: {path}")


def end_by(report: GateReport | None, findings: Sequence[str]) -> None:
    """End a command: a line on standard error for each finding and each gate, and the exit code.

    Call it last, after everything was printed and written.
    """
    for sentence in findings:
        complain(sentence, kind="finding")
    for result in () if report is None else report.results:
        complain(result.sentence, kind="gate")
    verdict = "passed" if report is None else report.verdict
    code = FINDING if findings or verdict == "failed" else UNDECIDED if verdict == "undecided" else FINE
    if code != FINE:
        raise typer.Exit(code)
