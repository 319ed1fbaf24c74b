"""trueup preferences: which of several systems do judges of pairs prefer in truth?"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.wording import interval, level_words, number, percent, signed, some
from trueup.cli import _options as options
from trueup.cli._app import as_command
from trueup.cli._console import (
    json_head,
    note,
    print_json,
    print_table,
    progress_bar,
    say,
    shown,
    to_cli_terms,
    warn_once,
)
from trueup.cli._files import about_files, source_of
from trueup.cli._gates import PairGateOptions, VerdictOptions, about_gates, check_gates, end_by, gates_of, write_junit

if TYPE_CHECKING:
    from trueup.answers.preferences import Preferences

_GOLD = "Verdicts that are taken to be right, as those of people; columns as of the pairs."


@as_command
def preferences(
    pairs: options.PairsFile,
    columns: options.PairOptions,
    sampler: options.SamplerOptions,
    gates: VerdictOptions,
    pair_gates: PairGateOptions,
    gold: Annotated[str | None, options.option("--gold", _GOLD, metavar="FILE"), options.InputFile()] = None,
    gold_drawn: Annotated[
        str | None,
        options.option("--gold-drawn", "How the contests in --gold were drawn: random or chosen.", metavar="HOW"),
    ] = None,
    ties: Annotated[
        str, options.option("--ties", "A true tie is half a win for both, or neither's: half or class.")
    ] = "half",
    noise: Annotated[
        str | None, options.option("--noise", "How judges err, by this model alone, e.g. mirrored.", metavar="MODEL")
    ] = None,
    target: Annotated[
        str, options.option("--target", "Items like these, or exactly these contests: population or sample.")
    ] = "population",
    level: options.Level = 0.95,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
) -> None:
    """Which system is preferred in truth? Win rates, a ranking and the judges' position bias, with intervals."""
    from trueup.adapters import read_pairs
    from trueup.answers.preferences import preferences as door

    has_gate = check_gates(gates, pair_gates)
    verdicts = read_pairs(
        source_of(pairs),
        **asdict(columns),
        gold=None if gold is None else source_of(gold),
        gold_drawn=gold_drawn,  # type: ignore[arg-type]  # checked by the callee, with a sentence
    )
    for sentence in verdicts.notes:
        note(sentence)
    named = pair_gates.named_as(verdicts.systems.tolist())
    settings: dict[str, Any] = {"noise": noise, **sampler.named}
    with progress_bar("reading the verdicts") as hear:
        answer = door(
            verdicts,
            ties=ties,  # type: ignore[arg-type]  # checked by the callee, with a sentence
            target=target,  # type: ignore[arg-type]
            level=level,
            random_state=seed,
            progress=hear,
            **{name: value for name, value in settings.items() if value is not None},
        )
    decided = gates_of(answer, gates, {}, named) if has_gate else None
    write_junit(decided, gates.junit, name="preferences")
    if as_json:
        head = json_head(seed=seed, files=about_files(pairs=pairs, gold=gold))
        print_json({**head, **answer.to_dict(), **about_gates(decided)})
    else:
        _show(answer)
    warn_once([tuple(map(to_cli_terms, answer.warnings))])
    end_by(decided, [])


def _show(answer: Preferences) -> None:
    """The ranking, the win rates and the judges for people."""
    words = f"{level_words(answer.level)} interval"
    pairs = answer.pairs
    say(
        f"{some(pairs.n_contests, 'contest')} of {some(len(pairs.systems), 'system')}, "
        f"{some(pairs.n_verdicts, 'verdict')} of {some(len(pairs.judges), 'judge')}. "
        f"This rests on {answer.evaluation.answer_in_words()}."
    )
    rows = [
        (
            shown(name),
            signed(answer.strength(name).mean),
            interval(*answer.strength(name).interval(answer.level)),
            percent(answer.prob_best[name]),
        )
        for name in answer.ranking
    ]
    print_table(("system", "strength", words, "best"), rows)
    together = [group for group in answer.groups if len(group) > 1]
    if together:
        listed = "; ".join(", ".join(map(shown, group)) for group in together)
        say(f"Not told from one another: {listed}.")
    rates = [(a, b, n, answer.win_rate(a, b)) for a, b, n in answer.met()]
    print_table(
        ("stronger", "weaker", "contests", "win rate", words),
        [(shown(a), shown(b), f"{n:,}", number(r.mean), interval(*r.interval(answer.level))) for a, b, n, r in rates],
    )
    consistency = answer.consistency
    judges = [
        (
            shown(name),
            signed(bias.mean),
            interval(*bias.interval(answer.level)),
            percent(consistency[name]) if name in consistency else "",
        )
        for name, bias in answer.position_bias.items()
    ]
    if judges:
        print_table(("judge", "position bias", words, "same winner in both orders"), judges)
