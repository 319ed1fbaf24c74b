"""By how much judges of pairs prefer a place, given who wins each contest in truth."""

from __future__ import annotations

import numpy as np

from trueup._base.types import Codes, Floats
from trueup.data.pairs import REVERSED, mirrored
from trueup.noise.mirrored import draw_rows

# Verdicts that each cell has beforehand, as Jeffreys has it: with those of a chain, which expects judges to be right
# whatever the place, 100 contests say .23 of a bias of .25.
_LITTLE = 0.5


def draw_biases(
    truths: Codes, verdict: Codes, shown: Codes, weights: Floats, *, n_classes: int, rng: np.random.Generator
) -> Floats:
    """Draws of half the difference between a judge's chances to say "first" and "second", the two truths averaged.

    Given the truth, verdicts are counted by who wins in truth and who was chosen, both as places that were shown, and
    rows of the judge's matrix are drawn from these counts. A contest that was shown in both orders counts once where
    the first place is right and once where the second is, whoever wins: its truth cancels.

    Parameters
    ----------
    truths : integer array of shape (n_draws, n_verdicts)
        Who wins the contest of each verdict in each draw, in canonical order.
    verdict, shown : integer array of shape (n_verdicts,)
        Of one judge; see `Pairs`.
    weights : array of shape (n_verdicts,)
        What each verdict counts; see `weights_of_repeats`.

    Returns
    -------
    array of shape (n_draws,)
    """
    n_draws = len(truths)
    is_reversed = shown == REVERSED
    right = np.where(is_reversed, mirrored(truths), truths).astype(np.int64)
    said = np.where(is_reversed, mirrored(verdict), verdict)
    cell = right * n_classes + said + n_classes**2 * np.arange(n_draws)[:, None]
    mass = np.broadcast_to(weights, cell.shape)
    counts = np.bincount(cell.ravel(), mass.ravel(), minlength=n_draws * n_classes**2)
    rows = draw_rows(counts.reshape(n_draws, n_classes, n_classes).astype(np.float64) + _LITTLE, rng)
    return np.asarray((rows[:, :2, 0] - rows[:, :2, 1]).mean(axis=1) / 2)


def weights_of_repeats(contest: Codes, shown: Codes) -> Floats:
    """What each verdict of a judge counts: verdicts on one contest in one order are together one that wavers.

    Examples
    --------
    >>> import numpy as np
    >>> weights_of_repeats(np.array([4, 4, 4, 7]), np.array([0, 0, 1, 0])).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    asked = np.stack([contest, shown], axis=1).astype(np.int64)
    _, place, times = np.unique(asked, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / times[place.ravel()])
