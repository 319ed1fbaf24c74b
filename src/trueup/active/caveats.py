"""What a user should read before trusting an estimate, from how the answers came in."""

from __future__ import annotations

import numpy as np

from trueup.active.estimators import ENOUGH_DRAWS
from trueup.sessions.counting import Answers, Counted
from trueup.sessions.progress import Progress


def caveats(progress: Progress, counted: Counted, answers: Answers, *, by_chance: bool) -> list[str]:
    """What of the way the answers came in makes an estimate less sure than it looks."""
    sentences = []
    n_chosen = int((progress.vetted & (progress.draw > 0) & np.isnan(progress.propensity)).sum())
    if not by_chance:
        sentences.append(
            "Most answers are on items that were not drawn by chance: the interval may not hold as often as it says; "
            'ask with a strategy that draws, such as "propensity" or "random".'
        )
    elif n_chosen:
        sentences.append(
            f"{n_chosen} items were chosen and not drawn by chance: an interval from them may not hold as often as it "
            "says."
        )
    if by_chance and 0 < counted.n_draws < ENOUGH_DRAWS:
        sentences.append(
            f"{counted.n_draws} draws count so far: before there are {ENOUGH_DRAWS} the interval is a rough one."
        )
    n_told = int((progress.vetted & (progress.draw == 0)).sum())
    if n_told:
        sentences.append(
            f"{n_told} items were told without being asked: their chance to be drawn is unknown, so they count for "
            "themselves and correct nothing else."
        )
    n_after = int((progress.vetted & (progress.draw == 0) & (progress.told_after >= max(counted.n_draws, 1))).sum())
    if by_chance and n_after:
        sentences.append(
            f"{n_after} items were told after the draws that stand for them: they change nothing before more are drawn."
        )
    n_ahead = int(counted.ahead.sum())
    if n_ahead:
        sentences.append(
            f"{n_ahead} answers wait to count: an item that was drawn before them has none yet, and those that are "
            "answered first are the easy ones."
        )
    n_undecided = int(counted.undecided.sum())
    if n_undecided:
        n_doubted = int((counted.undecided & progress.cannot_tell).sum())
        n_disputed = int((counted.undecided & progress.disputed).sum())
        reasons = {
            "nobody could tell": n_doubted,
            "experts differ": n_disputed,
            "the prediction was in sight": n_undecided - n_doubted - n_disputed,
        }
        listed = ", ".join(f"{reason}: {n}" for reason, n in reasons.items() if n)
        sentences.append(
            f"{n_undecided} items that were drawn have no valid answer ({listed}): the interval is wide enough for "
            "each of them to be right or wrong."
        )
    n_changed = int((progress.truth != progress.unswayed).sum())
    if n_changed and answers == "all":
        sentences.append(
            f"{n_changed} answers were given or corrected with the prediction or the estimate in sight: an interval "
            "from them may not hold as often as it says."
        )
    return sentences
