"""How far experts agree among themselves, and the labelers with them, for the owner's page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from trueup._base.wording import interval, number, percent
from trueup.data.encoding import vocabulary_from
from trueup.data.labels import Labels
from trueup.exceptions import TrueupError, silenced_warnings
from trueup.reliability import agreement
from trueup.serve.card_service import Journal

_MOST_LABELERS = 20  # those with most votes on checked items


def agreement_of_experts(labels: Labels, journal: Journal) -> dict[str, Any] | None:
    """What the page shows; None until an expert and a labeler, or two experts, share items."""
    answers = {
        (name, entry.event.item): entry.event.truth
        for name in journal.people()
        for entry in reversed(journal.last_answers(name))
        if entry.event.kind in ("tell", "correct") and entry.event.truth is not None
    }
    try:
        with silenced_warnings():
            return _agreement(labels, answers)
    except TrueupError:
        return None


def _agreement(labels: Labels, answers: Mapping[tuple[str, Hashable], Hashable]) -> dict[str, Any] | None:
    """The same from the last answer of each expert on each item."""
    known = [(who, item, truth) for (who, item), truth in answers.items() if labels.find_items([item])[0] >= 0]
    if not known:
        return None
    checked = labels.without_gold().select(items={item for _, item, _ in known})
    often = np.argsort(-checked.votes_per_labeler, kind="stable")[:_MOST_LABELERS]
    checked = checked.select(labelers=checked.labelers[often])
    names = {who: f"expert {who}" for who, _, _ in known}
    said = Labels.from_frame(
        {
            "item": [item for _, item, _ in known],
            "labeler": [names[who] for who, _, _ in known],
            "label": [truth for _, _, truth in known],
        },
        classes=labels.classes.tolist(),
    )
    judges = agreement(_with_text_names(checked).merge(said), experts=list(names.values())).judges
    ceiling = judges.ceiling.get("percent")
    return {
        "sentence": judges.sentence,
        "ceiling": None if ceiling is None else _words(ceiling, judges.level),
        "rows": [
            {
                "judge": str(row.judge),
                "n_items": f"{row.n_items:,}",
                "percent": _words(row.percent, judges.level),
                "kappa": "–" if row.kappa is None else number(row.kappa.mean, 2),
            }
            for row in judges.rows
        ],
        "notes": list(judges.notes),
    }


def _with_text_names(labels: Labels) -> Labels:
    """Labelers named by text, as experts are."""
    names = vocabulary_from([str(name) for name in labels.labelers.tolist()])
    return replace(labels, labelers=names, crowds=frozenset())


def _words(estimate: Any, level: float) -> str:
    return f"{percent(estimate.mean)} ({interval(*estimate.interval(level))})"
