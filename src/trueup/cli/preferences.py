"""trueup preferences: which of several systems do judges of pairs prefer in truth?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueup._base.wording import percent, signed, some
from trueup.cli import _options as options
from trueup.cli._command import Answer, as_command
from trueup.cli._console import interval_head, note, print_records, progress_bar, say, shown
from trueup.cli._files import source_of
from trueup.cli._gates import Gates, PairGateOptions, VerdictOptions
from trueup.cli.judge import write_answer_report
from trueup.exceptions import InvalidParameter

if TYPE_CHECKING:
    from trueup.answers.preferences import Preferences
    from trueup.decisions import Decision


@as_command
def preferences(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    sampler: options.SamplerOptions,
    gates: VerdictOptions,
    pair_gates: PairGateOptions,
    gold: list[str] = options.opt(
        [],
        "Verdicts taken to be right, as those of people; columns as of the pairs; or a table of --ask. Repeatable.",
        "FILE",
        reads=True,
    ),
    gold_drawn: str | None = options.opt(None, "How the contests in --gold were drawn: random or chosen.", "HOW"),
    ties: str = options.opt("half", "A true tie is half a win for both, or neither's: half or class."),
    noise: str | None = options.opt(None, "How judges err, by this model alone, e.g. mirrored.", "MODEL"),
    target: str = options.opt("population", "Items like these, or exactly these contests: population or sample."),
    level: options.Level = 0.95,
    report: options.Report = None,
    seed: options.Seed = 0,
) -> Answer:
    """Which system is preferred in truth? Win rates, a ranking and the judges' position bias, with intervals."""
    from trueup.adapters import read_pairs
    from trueup.answers.preferences import preferences as entry_point
    from trueup.decisions.sheets import is_sheet

    gate = Gates(gates, pair_gates)
    sheets = [path for path in gold if is_sheet(source_of(path))]
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

    def answer_on(decision: Decision | None) -> Preferences:
        with progress_bar("reading the verdicts") as progress:
            return entry_point(
                verdicts if decision is None else verdicts.with_gold(decision.checked, drawn="random"),
                ties=ties,  # type: ignore[arg-type]  # checked by the callee, with a sentence
                target=target,  # type: ignore[arg-type]
                level=level,
                random_state=seed,
                progress=progress,
                **options.given(noise=noise, **sampler.named),
            )

    named = [columns.item, columns.first, columns.second], columns.winner
    answer, decided = gate.settle(answer_on, sheets=sheets, columns=named, seed=seed)
    write_answer_report(report, answer)
    return Answer(answer.to_dict, lambda body: _show(answer, body), warnings=answer.warnings, verdicts=decided)


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
