"""A page about how far labelers agree, and the few lines of it that every report has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueup.data.labels import Labels
from trueup.exceptions import TrueupError
from trueup.reliability.agreement import agreement
from trueup.report.sentences import plain

if TYPE_CHECKING:
    from trueup.reliability import Agreement

_MOST_VOTES = 200_000  # of a report that is about something else


def agreement_report(answer: Agreement) -> dict[str, Any]:
    """All that the page says, as a dict that JSON can hold."""
    data = answer.to_dict()
    return {
        "format": 1,
        "page": "agreement",
        "title": "Do the labelers agree?",
        **data,
        "verdict": [plain(data["sentence"])],
        "notes": [plain(note) for note in data["notes"]],
        "n_votes": answer.labels.n_votes,
    }


def agreement_data(labels: Labels) -> Mapping[str, Any] | None:
    """What every report says of agreement; None where no two labelers voted on an item."""
    if labels.n_votes > _MOST_VOTES:
        labels = labels.select(items=labels.items[:: -(-labels.n_votes // _MOST_VOTES)])
    try:
        answer = agreement(labels)
    except TrueupError:
        return None
    shown = [name for name in ("percent", "alpha", "ac1") if name in answer]
    return {
        "sentence": plain(answer.sentence),
        "coefficients": {name: answer[name].to_dict(answer.level) for name in shown},
    }
