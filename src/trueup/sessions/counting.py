"""Which answers count: those of the completed prefix of the draw order.

Easy items are answered first. Where several experts work at once, or one of them leaves the hard items for later, the
answers that are there are no random sample of the items that were drawn. The first k draws of which all have an outcome
are: which items these are was decided by chance before anybody looked. Answers to later draws are kept, and wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from trueup._base.types import Booleans
from trueup.sessions.progress import UNKNOWN, Progress

Answers = Literal["valid", "all"]
ANSWERS: tuple[Answers, ...] = get_args(Answers)


@dataclass(frozen=True, eq=False)
class Counted:
    """What an estimate may use.

    Attributes
    ----------
    progress : Progress
        With the truth of the items that count, and -1 for all others.
    undecided : boolean array of shape (n_items,)
        Draws that count although nothing valid says their class: nobody could tell, experts differ and nobody has
        settled it, or the only answer was given with the prediction in sight.
    ahead : boolean array of shape (n_items,)
        Items with an outcome that waits to count, since an earlier draw has none.
    n_draws : int
        The length of the completed prefix.
    """

    progress: Progress
    undecided: Booleans
    ahead: Booleans
    n_draws: int


def completed_draws(progress: Progress) -> int:
    """The number of first draws that all have an outcome: an answer, or that nobody can tell.

    Examples
    --------
    >>> from trueup.sessions.log import Event, Names
    >>> from trueup.sessions.progress import fold
    >>> asked = [Event("ask", item, propensity=0.5) for item in "abc"]
    >>> log = [*asked, Event("tell", "c", "yes"), Event("tell", "a", "no")]
    >>> completed_draws(fold(log, Names(["a", "b", "c"], ["no", "yes"])))
    1
    """
    places = np.sort(progress.draw[(progress.draw > 0) & progress.outcome])
    return int(np.count_nonzero(places == np.arange(1, len(places) + 1)))


def count_answers(progress: Progress, answers: Answers = "valid") -> Counted:
    """The answers that count, and what is undecided among the draws that do.

    Parameters
    ----------
    progress : Progress
    answers : {"valid", "all"}
        "valid" leaves out answers given with a prediction in sight, and corrections by someone who had seen the
        estimate. "all" takes every answer as it stands.
    """
    n_draws = completed_draws(progress)
    ahead = progress.outcome & (progress.draw > n_draws)
    truth = np.where(progress.disputed, UNKNOWN, progress.unswayed if answers == "valid" else progress.truth)
    undecided = progress.outcome & (progress.draw > 0) & ~ahead & (truth < 0)
    return Counted(replace(progress, truth=np.where(ahead, UNKNOWN, truth)), undecided, ahead, n_draws)
