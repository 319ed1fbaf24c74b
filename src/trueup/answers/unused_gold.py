"""What to say of vetted items that were drawn at random where what the caller named does not rest on them."""

from __future__ import annotations

from trueup.data.labels import Labels
from trueup.estimators.truth import ENOUGH_GOLD, drawn_gold
from trueup.exceptions import Sentence


def unused_gold(labels: Labels) -> list[Sentence]:
    """Whether enough items were drawn and vetted for an answer to rest on, beside a noise model or method by name."""
    n_drawn = int((drawn_gold(labels) >= 0).sum())
    if n_drawn < ENOUGH_GOLD:
        return []
    return [
        Sentence(
            f"{n_drawn:,} vetted items were drawn at random, and correct nothing here but themselves; leave out "
            "⟨noise⟩ and ⟨method⟩ for an answer that rests on them."
        )
    ]
