r"""Truths of checked items where experts err: the answers are votes of good labelers, and no gold.

The class of a checked item, its correction and the error rates of the experts are drawn in turn (Tanner and Wong 1987):

.. math:: P(y_i | \theta, e) \propto P(y_i | \theta) \prod_w (1 - e_w)^{[c_{iw} = y_i]}
    \left(\frac{e_w}{K - 1}\right)^{[c_{iw} \ne y_i]},

where :math:`c_{iw}` is what expert w answered and θ the coefficients of the core given the classes drawn before. An
expert's rate :math:`e_w` is drawn from a beta law by their answers whose truth is known beside them: by gold, by a
settled item, by two who agree. It learns nothing from the votes, which would believe themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trueup._base.types import Codes, Floats, Positions
from trueup.active.influence import Pool
from trueup.active.rectified import PoolModel, draw_theta_given, draw_truths_given
from trueup.sessions.progress import MEASURING, Opinion, Progress, Rate, rates_of_experts, standing_class

ASSUMED = (1.0, 16.0)  # errors of so many answers: what is assumed before anything is known of experts
_ALIKE = 30.0  # answers that the rate of the other experts counts for
_TURNS_BEFORE = 16  # before truths are kept: from right answers it takes so many to forget them
_KEPT_TURNS = 24


@dataclass(frozen=True)
class ExpertErrors:
    """How often experts err: the answers whose truth is known beside them, of all and of each."""

    of_all: Rate
    of_each: Mapping[str | None, Rate]

    @classmethod
    def known_from(cls, progress: Progress, gold: Codes) -> ExpertErrors:
        """From what a session knows."""
        of_each = rates_of_experts(progress, gold)
        n_wrong, n = (sum(getattr(rate, name) for rate in of_each.values()) for name in ("count", "n"))
        return cls(Rate.of(n_wrong, n, 0.95), of_each)

    @property
    def mean(self) -> float:
        """The share of wrong answers, with what is assumed beforehand."""
        return (ASSUMED[0] + self.of_all.count) / (ASSUMED[1] + self.of_all.n)

    def draw(self, rng: np.random.Generator) -> dict[str | None, float]:
        """A rate for each expert: from their own answers, and from the rates of the others."""
        drawn = {}
        for who, own in self.of_each.items():
            expected = (ASSUMED[0] + self.of_all.count - own.count) / (ASSUMED[1] + self.of_all.n - own.n)
            wrong, right = _ALIKE * expected + own.count, _ALIKE * (1 - expected) + own.n - own.count
            drawn[who] = float(rng.beta(wrong, right))
        return drawn

    def sentence(self, ratio: float) -> str:
        """What of the width of the interval comes from them, `ratio` times as wide as without errors."""
        known = f"{self.of_all.count} of {self.of_all.n} answers whose truth is known beside them were wrong"
        source = known if self.of_all.n else "assumed, since the truth of no answer is known beside it"
        return (
            f"Experts are taken to err on {self.mean:.1%} of the items ({source}): the interval is {max(ratio, 1):.2f} "
            "times as wide as if every answer were right."
        )


def draw_truths_of_fallible(
    model: PoolModel,
    pool: Pool,
    progress: Progress,
    errors: ExpertErrors,
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> Codes:
    """Truths of all items, shape (about n_draws, n_items), where answers may be wrong; gold is right."""
    items, opinions = _answered(pool, progress)
    n_points = max(n_draws // _KEPT_TURNS, 1)
    truths, current = [], progress
    for turn in range(_TURNS_BEFORE + _KEPT_TURNS):
        theta = draw_theta_given(model, pool, current, n_points=n_points, rng=rng)
        if turn >= _TURNS_BEFORE:
            truths.append(draw_truths_given(theta, model, pool, current, each=1, rng=rng))
        one = [int(rng.integers(len(theta.beta)))]
        chances = model.rows.at(items).probabilities(theta.beta[one], theta.gamma[one])[:, :, 0]
        heights = np.log(chances) + _log_likelihoods(opinions, errors.draw(rng), pool.n_classes)
        truth = progress.truth.copy()
        truth[items] = (heights + rng.gumbel(size=heights.shape)).argmax(axis=1)  # as the exponentials are large
        current = replace(progress, truth=truth)
    return np.concatenate(truths)


def _answered(pool: Pool, progress: Progress) -> tuple[Positions, list[list[Opinion]]]:
    """The items whose class rests on answers, and these; one that is taken at its worst or best keeps its class."""
    items, opinions = [], []
    for at in np.flatnonzero(progress.vetted & (pool.labels.gold_codes < 0)).tolist():
        latest = {
            one.who: one for one in progress.opinions.get(at, ()) if one.purpose not in MEASURING and one.code >= 0
        }
        if latest and standing_class(progress.opinions[at]) == (int(progress.truth[at]), False):
            items.append(at)
            opinions.append(list(latest.values()))
    return np.array(items, dtype=np.int64), opinions


def _log_likelihoods(
    opinions: Sequence[Sequence[Opinion]], rates: Mapping[str | None, float], n_classes: int
) -> Floats:
    """Log P(answers | class) of each item, shape (n_items, n_classes)."""
    table = np.zeros((len(opinions), n_classes))
    for row, of_item in zip(table, opinions, strict=True):
        for one in of_item:
            wrong = np.log(rates[one.who] / (n_classes - 1))
            row += wrong
            row[one.code] += np.log1p(-rates[one.who]) - wrong
    return table
