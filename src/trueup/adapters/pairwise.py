"""Judges of pairs: MT-Bench and arena, JudgeBench, AlpacaEval, RewardBench; and MT-Bench's grades of single answers.

An item is a pair in canonical order, the first system before the second by name, and the classes are "first", "second"
and "tie". Each layout has its own convention for the order in which a judge saw the two: verdicts are turned into
canonical order, and the order that was shown is kept with each verdict where the file has it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from trueup.adapters.collecting import Adapter, Basis, Collector, hashed, listed, member, number_of, plain
from trueup.adapters.content import Content, Head
from trueup.data.pairs import (
    AS_NAMED,
    FIRST,
    ITEM_TEXTS,
    ONE_HOT,
    REVERSED,
    SECOND,
    TIE,
    UNKNOWN,
    VERDICTS,
    marked_winner,
    who_won,
)

_QUESTION = "winner"
_LONGEST_NAME = 40  # characters of a prompt that names its item; longer ones are hashed
_QUESTION_IDS = ("item", "question_id", "prompt_id", "conversation_id")
_SIDE = re.compile(r"(.+)_[ab12]")  # columns about one of the two sides, such as conversation_a and conversation_b
_SYSTEM = re.compile(r"model_|generator_|winner")  # columns that name a system or the winner
_NO_QUESTION = (
    "No column says what the two systems answered (question_id, prompt, question, instruction or id), so each row is a "
    "contest of its own; name the prompts if several judges saw the same contest."
)
_SWAPPED: dict[str | None, str] = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}


_Verdicts = dict[Any, list[str]]  # of a judge on a pair, by item and labeler


def _vote(
    item: Any,
    labeler: str,
    winner: str | None,
    verdicts: _Verdicts,
    collector: Collector,
    *,
    swap: bool,
    run: int | None = None,
    shown: int = UNKNOWN,
) -> None:
    """Collect the verdict of a judge on a pair, in canonical order; no winner is an abstention."""
    label = _SWAPPED.get(winner) if swap else winner
    if run is not None and label is not None:
        verdicts[item, labeler].append(label)
    why = "verdicts that could not be parsed"
    collector.vote(_QUESTION, item, labeler, label, run=run, shown=shown, abstention=why)


def _judge_name(judge: Any) -> str:
    """The judge of a row: a name, or a list of a model and its prompt."""
    first = judge[0] if isinstance(judge, list) and judge else judge
    return str(plain(first) or "judge")


_NO_ORDER = (
    "The file does not say in which order a judge saw two answers: a preference for a place cannot be corrected."
)


def _mt_bench_pair(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    a, b = str(row.get("model_1")), str(row.get("model_2"))
    item, labeler = _pair_item(row, a, b, collector), _judge_name(row.get("judge"))
    names = {"model_1": FIRST, "model_2": SECOND, "tie": TIE}  # already turned back to the models in the file
    orders = (REVERSED, AS_NAMED) if a > b else (AS_NAMED, REVERSED)  # the first game shows model_1 first
    for run, (key, shown) in enumerate(zip(("g1_winner", "g2_winner"), orders, strict=True), start=1):
        _vote(item, labeler, names.get(row.get(key, "")), verdicts, collector, swap=a > b, run=run, shown=shown)


def _arena(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    a, b = str(row.get("model_a")), str(row.get("model_b"))
    item, judge = _pair_item(row, a, b, collector), row.get("judge")  # a model and its prompt, or a person
    winner = row["winner"] if "winner" in row else marked_winner([row.get(name) for name in ONE_HOT])
    place = who_won(winner, a, b)
    if str(winner).startswith("tie ("):
        collector.map("ties of a special kind read as ties")
    labeler = _judge_name(judge) if isinstance(judge, list) else str(collector.person(judge))
    verdict = None if place is None else VERDICTS[place]
    _vote(item, labeler, verdict, verdicts, collector, swap=a > b, shown=REVERSED if a > b else AS_NAMED)


def _pair_item(row: Mapping[str, Any], a: str, b: str, collector: Collector) -> str:
    """The name of a pair, the same whichever of the two systems comes first."""
    first, second = sorted((a, b))
    turn, question = row.get("turn"), _question_of(row, collector)
    item = f"{question}/{first}/{second}" + (f"/turn {turn}" if str(turn) not in ("None", "1") else "")
    collector.describe(item, {"first": first, "second": second, "question": question, "turn": turn})
    return item


def _question_of(row: Mapping[str, Any], collector: Collector) -> Any:
    """What two systems answered: by its id, its text, the id of the battle, or the texts of both sides."""
    for names, is_text in ((_QUESTION_IDS, False), (ITEM_TEXTS, True), (("id",), False)):
        for name in names:
            value = row.get(name)
            if plain(value) is not None:
                # A short text is its own name.
                return plain(value) if not is_text or len(str(value)) <= _LONGEST_NAME else hashed(value)
            if is_text and value:  # a conversation as a list of messages
                return hashed(value)
    sides = sorted(str(_asked(row[name])) for name in row if _SIDE.fullmatch(name) and not _SYSTEM.match(name))
    if any(side not in ("", "None") for side in sides):
        return hashed(*dict.fromkeys(sides))
    collector.note(_NO_QUESTION)
    return f"row {row['__row']}"


def _asked(conversation: Any) -> Any:
    """The turns of the user of a conversation, which both sides have; what is no conversation as it is."""
    asked = [
        turn.get("content") for turn in listed(conversation) if isinstance(turn, dict) and turn.get("role") == "user"
    ]
    return asked or conversation


def _mt_bench_single(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    turn, system = row.get("turn"), str(row.get("model"))
    item = f"{row.get('question_id')}/{system}" + (f"/turn {turn}" if str(turn) not in ("None", "1") else "")
    collector.describe(item, {"system": system, "question": plain(row.get("question_id")), "turn": turn})
    labeler, score = _judge_name(row.get("judge")), plain(row.get("score"))
    score = None if number_of(score) == -1 else score
    collector.vote("score", item, labeler, score, abstention="grades that could not be parsed")


_ARROWS = {"A>B": FIRST, "B>A": SECOND, "A=B": TIE}


def _judge_bench(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    item = row.get("pair_id")
    collector.describe(item, {name: row.get(name) for name in ("source", "original_id", "response_model")})
    if row.get("label") in ("A>B", "B>A"):
        collector.truth(_QUESTION, item, _ARROWS[row["label"]])
    for run, judgment in enumerate(listed(row.get("judgments")), start=1):
        about = judgment if isinstance(judgment, dict) else {}
        model = member(about, "judgment").get("judge_model")
        labeler = str(plain(model) or plain(row.get("judge_model")) or plain(row.get("judge_name")) or "judge")
        verdict, is_second = _ARROWS.get(str(about.get("decision"))), run == 2
        # The second judgement is of the pair shown the other way round, and the file has it as it was said.
        shown = REVERSED if is_second else AS_NAMED
        _vote(item, labeler, verdict, verdicts, collector, swap=is_second, run=run, shown=shown)
        if is_second and verdict in (FIRST, SECOND):
            collector.map("verdicts on swapped pairs turned back")


def _alpaca_eval(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    a, b = str(row.get("generator_1")), str(row.get("generator_2"))
    (first, second), question = sorted((a, b)), hashed(row.get("instruction"))
    item = f"{question}/{first}/{second}"
    columns = {"first": first, "second": second, "question": question, "dataset": plain(row.get("dataset"))}
    collector.describe(item, {**columns, "instruction": plain(row.get("instruction"))})
    preference = number_of(row.get("preference"))  # 1 is the first output and 2 the second; the order is undone already
    verdict: str | None = None
    if preference is not None and (preference == 0 or 1 <= preference <= 2):
        verdict = TIE if preference in (0, 1.5) else FIRST if preference < 1.5 else SECOND
        if preference not in (0, 1, 1.5, 2):
            collector.map("soft preferences read as the likelier side")
    _vote(item, _judge_name(row.get("annotator")), verdict, verdicts, collector, swap=a > b)


def _reward_bench(row: Mapping[str, Any], verdicts: _Verdicts, collector: Collector) -> None:
    chosen, rejected = str(row.get("text_chosen")), str(row.get("text_rejected"))
    item = hashed(row.get("prompt"), *sorted((chosen, rejected)))
    swap = chosen > rejected  # in canonical order the chosen text is the first or the second by chance
    collector.describe(item, {"subset": plain(row.get("subset")), "prompt": plain(row.get("prompt"))})
    collector.truth(_QUESTION, item, SECOND if swap else FIRST)
    result = number_of(row.get("results"))
    verdict = None if result is None else {1.0: FIRST, 0.0: SECOND}.get(result)
    _vote(item, str(plain(row.get("model")) or row["__stem"]), verdict, verdicts, collector, swap=swap)


_Reader = Callable[[Mapping[str, Any], _Verdicts, Collector], None]


def _adapter(
    title: str, becomes: str, basis: Basis, layouts: Mapping[tuple[str, ...], _Reader], *, note: str | None = None
) -> Adapter:
    """The adapter of layouts that are recognised by keys which they must have, with a note that users should read."""

    def layout_of(head: Head) -> tuple[str, ...]:
        keys = {str(key).casefold() for key in head.keys}
        return next((layout for layout in layouts if keys.issuperset(layout)), ())

    def read(content: Content, collector: Collector) -> None:
        read_row = layouts[layout_of(content.head) or next(iter(layouts))]
        verdicts: _Verdicts = defaultdict(list)
        collector.from_text = content.head.shape == "table"
        columns, rows = content.head.document, content.records()
        if columns and all(isinstance(column, list) for column in columns.values()):  # the hub has RewardBench so
            whole = next(rows)
            rows = (dict(zip(whole, cells, strict=True)) for cells in zip(*whole.values(), strict=True))
        # JudgeBench has the judge in the file's name.
        judge = re.search(r"judge_model=([^,]+?)(\.jsonl?|,|$)", content.file_name)
        stem = re.sub(r"_outputs$", "", content.stem)
        for number, cells in enumerate(collector.objects(rows, "rows"), start=1):
            row = {str(name).casefold(): cell for name, cell in cells.items()}
            if judge and not row.get("judge_model"):
                row = {"judge_model": judge[1], **row}
            read_row({**row, "__stem": stem, "__row": number}, verdicts, collector)
        if _QUESTION in collector.asked:
            collector.ask(_QUESTION, classes=(FIRST, SECOND))
        in_both_orders = [labels for labels in verdicts.values() if len(labels) > 1]
        n_flipped = sum({FIRST, SECOND} <= set(labels) for labels in in_both_orders)
        if n_flipped:
            collector.note(
                f"The verdict goes to the other system in {n_flipped} of {len(in_both_orders)} pairs when they are "
                "shown in the other order: the judge looks at positions."
            )
        if note is not None:
            collector.note(note)

    return Adapter(title, lambda head: list(layout_of(head)), read, becomes, basis)


TOOLS: dict[str, Adapter] = {
    "mt-bench": _adapter(
        "MT-Bench: judgements of pairs and of single answers, JSON Lines",
        "votes: verdicts, each order of a pair a run; or grades",
        "real files",
        {
            ("g1_winner", "g2_winner", "model_1"): _mt_bench_pair,
            ("question_id", "judgment", "score", "model"): _mt_bench_single,
        },
    ),
    "arena": _adapter(
        "Votes of an arena or of MT-Bench's people: JSON, JSON Lines",
        "votes: winners",
        "the documented layout",
        {("model_a", "model_b", "winner"): _arena, ("model_a", "model_b", *ONE_HOT[:2]): _arena},
    ),
    "judgebench": _adapter(
        "JudgeBench: outputs of judges, JSON Lines",
        "votes: verdicts, each order a run; gold: the label of the pair",
        "the documented layout",
        {("pair_id", "judgments"): _judge_bench},
    ),
    "alpaca-eval": _adapter(
        "AlpacaEval: annotations.json",
        "votes: preferences",
        "the documented layout",
        {("generator_1", "generator_2", "preference"): _alpaca_eval},
        note=_NO_ORDER,
    ),
    "reward-bench": _adapter(
        "RewardBench: outputs of reward models and judges",
        "votes: which text won; gold: the chosen text",
        "the documented layout",
        {("text_chosen", "text_rejected", "results"): _reward_bench},
        note=_NO_ORDER,
    ),
}
