"""Which labelers can be trusted: skill, bias and spam of each, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from trueup._frames import make_frame
from trueup._optional import require
from trueup._validation import RandomState, as_generator, check_choice, check_integer, check_level, did_you_mean
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.draws import LabelerDraws, draw_labelers
from trueup.labels import Labels
from trueup.noise.base import NoiseModel
from trueup.posteriors import DrawnEstimate, Estimate

__all__ = ["LabelerRanking", "RankedLabeler", "rank"]

By = Literal["information", "accuracy"]


@dataclass(frozen=True)
class RankedLabeler:
    """What is known of one labeler.

    Attributes
    ----------
    labeler : Hashable
    votes : int
    accuracy : Estimate
        The chance that a vote of hers that names a class is right.
    information : Estimate
        Bits that a vote of hers tells of the class.
    bias : Estimate
        By how much more often she answers `bias_class` than items are of it, in [−1, 1].
    bias_class : Hashable
        The second class where there are two, so that the bias has a sign; else the class most over-answered.
    spam : Estimate
        The share of her votes that could have been given without looking at the item; 1 for a pure spammer.
    spam_probability : float
        The probability that she is a pure spammer, whose answers do not depend on the truth at all.
    rank : (int, int)
        Between which ranks she stands, 1 being the best, at the level of the ranking.
    """

    labeler: Hashable
    votes: int
    accuracy: Estimate
    information: Estimate
    bias: Estimate
    bias_class: Hashable
    spam: Estimate
    spam_probability: float
    rank: tuple[int, int]


@dataclass(frozen=True)
class LabelerRanking:
    """Labelers from the best to the worst; iterate over them, or ask for one by name.

    Attributes
    ----------
    rows : tuple of RankedLabeler
    by : {"information", "accuracy"}
    level : float
        Of the intervals shown.
    noise : str
        How the truth was inferred.
    """

    rows: tuple[RankedLabeler, ...] = field(repr=False)
    by: By
    level: float
    noise: str

    @property
    def labelers(self) -> tuple[Hashable, ...]:
        """The names, the best first."""
        return tuple(row.labeler for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[RankedLabeler]:
        return iter(self.rows)

    def __getitem__(self, labeler: Hashable) -> RankedLabeler:
        for row in self.rows:
            if row.labeler == labeler:
                return row
        raise InvalidParameter(f"no labeler {labeler!r} was ranked{did_you_mean(labeler, self.labelers)}")

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a labeler, the best first; each quantity with the ends of its interval."""
        columns: dict[str, Any] = {"labeler": list(self.labelers), "votes": [row.votes for row in self.rows]}
        for name in ("accuracy", "information", "bias", "spam"):
            estimates = [getattr(row, name) for row in self.rows]
            ends = [estimate.interval(self.level) for estimate in estimates]
            columns[name] = [estimate.mean for estimate in estimates]
            columns[f"{name}_low"], columns[f"{name}_high"] = ([end[k] for end in ends] for k in (0, 1))
        columns["bias_class"] = [row.bias_class for row in self.rows]
        columns["spam_probability"] = [row.spam_probability for row in self.rows]
        columns["rank_low"], columns["rank_high"] = ([row.rank[k] for row in self.rows] for k in (0, 1))
        return make_frame(columns, backend=backend)

    def plot(
        self, ax: Any = None, *, quantity: Literal["accuracy", "information", "bias", "spam"] | None = None
    ) -> Any:
        """Mean and interval of each labeler, the best on top; returns the Axes."""
        shown = check_choice(quantity or self.by, ("accuracy", "information", "bias", "spam"), name="quantity")
        if ax is None:
            _, ax = require("matplotlib.pyplot", purpose="LabelerRanking.plot()").subplots(
                figsize=(6, min(0.3 * len(self) + 1, 30)), layout="constrained"
            )
        for place, row in enumerate(self.rows):
            estimate: Estimate = getattr(row, shown)
            low, high = estimate.interval(self.level)
            ax.plot([low, high], [-place, -place], color="tab:blue", linewidth=3, alpha=0.5, solid_capstyle="butt")
            ax.plot(estimate.mean, -place, "o", color="tab:red" if row.spam_probability > 0.5 else "tab:blue")
        ax.set_yticks(-np.arange(len(self)), [f"{row.labeler} ({row.votes})" for row in self.rows])
        unit = " (bits a vote)" if shown == "information" else ""
        ax.set_xlabel(f"{shown}{unit}, mean and {self.level:.0%} interval")
        ax.grid(axis="x", alpha=0.3)
        return ax

    def __repr__(self) -> str:
        lines = [
            f"LabelerRanking of {len(self)} labelers by {self.by} (noise {self.noise}, {self.level:.0%} intervals)"
        ]
        for row in self.rows[:10]:
            low, high = row.accuracy.interval(self.level)
            spam = f", spam {row.spam_probability:.0%}" if row.spam_probability >= 0.05 else ""
            lines.append(
                f"  {row.rank[0]}–{row.rank[1]}  {row.labeler}: accuracy {row.accuracy.mean:.3f} ({low:.3f} to "
                f"{high:.3f}), {row.information.mean:.3f} bits a vote, {row.votes} votes{spam}"
            )
        if len(self) > 10:
            lines.append(f"  … and {len(self) - 10} more; see to_frame()")
        return "\n".join(lines)


def rank(
    labels: Labels,
    *,
    noise: str | NoiseModel = "dawid-skene",
    by: By = "information",
    level: float = 0.95,
    spam_prior: float = 0.1,
    n_draws: int = 2000,
    random_state: RandomState = 0,
) -> LabelerRanking:
    r"""Rank labelers by skill, with intervals for skill, bias and spam.

    Truths are drawn from their posterior given all votes, and for each drawn truth the confusion matrix θ of every
    labeler from its Dirichlet posterior given the votes and that truth. So intervals count in that truths are unknown.
    Each quantity is a function of θ and of the class prior π:

    - accuracy: Σ_y π(y) θ[y, y], among answers that name a class
    - information: bits of one vote, as in `mutual_information`
    - bias: Σ_y π(y) θ[y, a] − π(a), for the class a that is answered too often
    - spam: the largest λ for which θ = (1 − λ) Q + λ 1rᵀ, with Q a confusion matrix and r a distribution of answers
      that does not depend on the truth. That is λ = Σ_a min_y θ[y, a], Doeblin's coefficient.

    A pure spammer has λ = 1, a value that no draw of θ attains. So the hypothesis that answers do not depend on the
    truth is weighed against the one that they do, by their marginal likelihoods averaged over the drawn truths (with
    "dawid-skene" that average is the exact Bayes factor), and has mass of its own in the posteriors of spam and
    information.

    Parameters
    ----------
    labels : Labels
    noise : {"dawid-skene", "one-coin", "subtypes"}, another name, or a NoiseModel
        With these three, by name or as a model, truths are drawn together with the noise by `trueup.noise.sample`.
        Another model is taken as known once it is fitted, and truths are drawn item by item from its posterior. That is
        right for known noise (`Confusion`). For a learned model it is far too sure: nominal 95% intervals of accuracy
        held in one case of three with "majority".
    by : {"information", "accuracy"}
        What to rank by.
    level : float
        Of intervals in `to_frame`, plots and ranks.
    spam_prior : float
        The share of pure spammers expected beforehand.
    n_draws : int
        Draws of truth and matrices.
    random_state : int, Generator or None

    References
    ----------
    Raykar and Yu (2012), "Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks", JMLR 13.

    Examples
    --------
    >>> import trueup as tu
    >>> votes = tu.simulate.dawid_skene(n_items=300, accuracy=[0.9, 0.8, 0.7, 0.5], n_labelers=4, random_state=0).labels
    >>> ranking = tu.labelers.rank(votes, random_state=0)
    >>> ranking.labelers
    (0, 1, 2, 3)
    >>> ranking[3].spam.interval(0.95)[1], ranking[0].spam_probability < 1e-6  # the last may be a pure spammer
    (1.0, True)
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    check_choice(by, ("information", "accuracy"), name="by")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    drawn = draw_labelers(labels, noise, n_draws=n_draws, spam_prior=spam_prior, rng=rng)
    ranked = getattr(drawn, by)
    places = (-ranked).argsort(axis=1, kind="stable").argsort(axis=1) + 1
    tails = np.quantile(places, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(int)
    order = np.argsort(-ranked.mean(axis=0), kind="stable")
    rows = tuple(_row(labels, drawn, int(t), (int(tails[0, t]), int(tails[1, t]))) for t in order)
    name = noise if isinstance(noise, str) else repr(noise)
    return LabelerRanking(rows, by, level, name)


def _row(labels: Labels, drawn: LabelerDraws, t: int, places: tuple[int, int]) -> RankedLabeler:
    of_class = 1 if labels.n_classes == 2 else int(drawn.bias[:, t].mean(axis=0).argmax())
    most = float(np.log2(labels.n_classes))
    return RankedLabeler(
        labeler=labels.labelers.tolist()[t],
        votes=int(labels.votes_per_labeler[t]),
        accuracy=DrawnEstimate(drawn.accuracy[:, t], name="accuracy"),
        information=DrawnEstimate(drawn.information[:, t], bounds=(0.0, most), name="information"),
        bias=DrawnEstimate(drawn.bias[:, t, of_class], bounds=(-1.0, 1.0), name="bias"),
        bias_class=labels.classes.tolist()[of_class],
        spam=DrawnEstimate(np.minimum(drawn.spam[:, t], 1.0), name="spam"),
        spam_probability=float(drawn.spam_probability[t]),
        rank=places,
    )
