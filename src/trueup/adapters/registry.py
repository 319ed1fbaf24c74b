"""All adapters by name, and which of them a file is for."""

from __future__ import annotations

from trueup._base.registry import Registry
from trueup.adapters.adapter import Adapter, check_adapter
from trueup.adapters.annotation_tools import DOCCANO, LABEL_STUDIO, PRODIGY
from trueup.adapters.argilla import ARGILLA
from trueup.adapters.content import Content
from trueup.adapters.feedback import LANGFUSE, LANGSMITH, PHOENIX
from trueup.adapters.ground_truth import GROUND_TRUTH
from trueup.adapters.inspect_ai import INSPECT
from trueup.adapters.judge_logs import DEEPEVAL, LM_EVAL, RAGAS
from trueup.adapters.pairwise import ALPACA_EVAL, ARENA, JUDGE_BENCH, MT_BENCH, REWARD_BENCH
from trueup.adapters.presets import APPEN, CROWD_KIT, MTURK, TOLOKA
from trueup.adapters.promptfoo import PROMPTFOO
from trueup.exceptions import InvalidFile

_MARKS_NEEDED = 2

ADAPTERS: Registry[Adapter] = Registry(
    "file_format",
    {
        "label-studio": LABEL_STUDIO,
        "inspect": INSPECT,
        "promptfoo": PROMPTFOO,
        "argilla": ARGILLA,
        "langfuse": LANGFUSE,
        "langsmith": LANGSMITH,
        "phoenix": PHOENIX,
        "mt-bench": MT_BENCH,
        "arena": ARENA,
        "judgebench": JUDGE_BENCH,
        "alpaca-eval": ALPACA_EVAL,
        "reward-bench": REWARD_BENCH,
        "ground-truth": GROUND_TRUTH,
        "prodigy": PRODIGY,
        "doccano": DOCCANO,
        "lm-eval": LM_EVAL,
        "deepeval": DEEPEVAL,
        "ragas": RAGAS,
        "mturk": MTURK,
        "appen": APPEN,
        "toloka": TOLOKA,
        "crowd-kit": CROWD_KIT,
    },
    aliases={"labelstudio": "label-studio", "inspect-ai": "inspect", "sagemaker": "ground-truth"},
    group="trueup.adapters",
    check=check_adapter,
)


def list_formats() -> list[str]:
    """The names of the formats of other tools, as ``file_format=`` takes them."""
    return ADAPTERS.names()


def matches(content: Content) -> dict[str, list[str]]:
    """The formats that a file may be, each with the marks that were seen; two marks are needed."""
    seen = {name: ADAPTERS[name].sniff(content.head) for name in ADAPTERS}
    return {name: marks for name, marks in seen.items() if len(marks) >= _MARKS_NEEDED}


def detect(content: Content) -> str:
    """The one format that a file is; none or several are an error that lists what was seen."""
    likely = matches(content)
    if len(likely) == 1:
        return next(iter(likely))
    known = ", ".join(ADAPTERS)
    if likely:
        listed = " and ".join(f"{name} ({', '.join(marks)})" for name, marks in likely.items())
        raise InvalidFile(
            f"{content.who} may be the export of several tools, got the marks of {listed}; name one with "
            "`file_format=…`"
        )
    raise InvalidFile(
        f"the format of {content.who} is not known, got {content.head.described()}; known are the exports of {known}, "
        "which `file_format=…` names, and tables (csv, tsv, jsonl, parquet) with columns for the item, the labeler and "
        "the label: convert it, or name its columns"
    )
