"""Which labelers can be trusted: skill, bias and spam of each, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import nan
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_level, did_you_mean
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.estimators.exact_multiclass import draw_categories
from trueup.estimators.truth import Basis
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.channel import entropy
from trueup.labelers.vetted import VettedAccuracy, vetted_accuracies
from trueup.noise import kernels
from trueup.noise.base import NoiseModel
from trueup.noise.registry import DEFAULT_NOISE, fit, resolve
from trueup.noise.sampling import sample
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import new_axes

By = Literal["information", "accuracy"]


@dataclass(frozen=True)
class RankedLabeler:
    """What is known of one labeler.

    Attributes
    ----------
    labeler : Hashable
    votes : int
    accuracy : Estimate
        The chance that a vote of theirs that names a class is right.
    information : Estimate
        Bits that a vote of theirs tells of the class.
    bias : Estimate
        By how much more often they answer `bias_class` than items are of it, in [−1, 1].
    bias_class : Hashable
        The second class where there are two, so that the bias has a sign; else the class most over-answered.
    spam : Estimate
        The share of their votes that could have been given without looking at the item; 1 for a pure spammer.
    spam_probability : float
        The probability that they are a pure spammer, whose answers do not depend on the truth at all.
    rank : (int, int)
        Between which ranks they stand, 1 being the best, at the level of the ranking.
    basis : {"gold", "votes"}
        What the accuracy rests on: vetted items that were drawn at random, or votes and the noise model.
    vetted : int
        Items among their votes that were drawn at random and vetted.
    gold_only : Estimate or None
        The accuracy by these items alone, to stand beside an answer from votes; None without such items.
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
    basis: Basis = "votes"
    vetted: int = 0
    gold_only: Estimate | None = None


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
        columns["basis"], columns["vetted"] = (
            [getattr(row, name) for row in self.rows] for name in ("basis", "vetted")
        )
        alone = [(nan, nan) if row.gold_only is None else row.gold_only.interval(self.level) for row in self.rows]
        columns["gold_only_low"], columns["gold_only_high"] = ([end[k] for end in alone] for k in (0, 1))
        return make_frame(columns, backend=backend)

    def plot(
        self, ax: Any = None, *, quantity: Literal["accuracy", "information", "bias", "spam"] | None = None
    ) -> Any:
        """Mean and interval of each labeler, the best on top; returns the Axes."""
        shown = check_choice(quantity or self.by, ("accuracy", "information", "bias", "spam"), name="quantity")
        ax = new_axes(ax, purpose="LabelerRanking.plot()", figsize=(6, min(0.3 * len(self) + 1, 30)))
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
        how = f"noise {self.noise}, target population, {self.level:.0%} intervals"
        why = "a labeler's skill is about items to come"
        lines = [f"LabelerRanking of {len(self)} labelers by {self.by} ({how}; {why})"]
        for row in self.rows[:10]:
            low, high = row.accuracy.interval(self.level)
            spam = f", spam {row.spam_probability:.0%}" if row.spam_probability >= 0.05 else ""
            lines.append(
                f"  {row.rank[0]}–{row.rank[1]}  {row.labeler}: accuracy {row.accuracy.mean:.3f} ({low:.3f} to "
                f"{high:.3f}{self._vetted_words(row)}), {row.information.mean:.3f} bits a vote, {row.votes} votes{spam}"
            )
        if len(self) > 10:
            lines.append(f"  … and {len(self) - 10} more; see to_frame()")
        return "\n".join(lines)

    def _vetted_words(self, row: RankedLabeler) -> str:
        """What vetted items that were drawn say of the accuracy of a labeler."""
        if row.gold_only is None:
            return ""
        if row.basis == "gold":
            return f" by {row.vetted} vetted"
        low, high = row.gold_only.interval(self.level)
        return f" by votes, {low:.3f} to {high:.3f} by {row.vetted} vetted alone"


def rank(
    labels: Labels,
    *,
    noise: str | NoiseModel | None = None,
    by: By = "information",
    level: float = 0.95,
    spam_prior: float = 0.1,
    n_draws: int = 2000,
    random_state: RandomState = 0,
) -> LabelerRanking:
    r"""Rank labelers by skill, with intervals for skill, bias and spam.

    A labeler's skill is about items to come, so all quantities are of the population the items came from, whatever the
    default target of other doors; the votes they gave on these items are what it is learned from.

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

    Gold first: the accuracy of a labeler with 20 vetted items or more among their votes that were drawn at random
    (``labels.with_gold(…, drawn="random")``) rests on these, as that of a system in `trueup.evaluate` does: it is
    right whatever the noise model. Below that both stand side by side (`RankedLabeler.gold_only`). The other
    quantities, which need every class, rest on votes and the noise model.

    Parameters
    ----------
    labels : Labels
    noise : {"clusters", "subtypes", "dawid-skene", "one-coin"}, another name, or a NoiseModel, optional
        By default `trueup.noise.DEFAULT_NOISE`. A model that is named gives its own answer alone, gold or not.
        With these, by name or as a model, truths are drawn
        together with the noise by `trueup.noise.sample`. Another model is taken as known once it is fitted, and truths
        are drawn item by item from its posterior. That is right for known noise (`Confusion`). For a learned model it
        is far too sure: nominal 95% intervals of accuracy held in one case of three with "majority".
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
    >>> ranking = tu.labelers.rank(votes, noise="dawid-skene", random_state=0)
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
    drawn = draw_labelers(labels, noise or DEFAULT_NOISE, n_draws=n_draws, spam_prior=spam_prior, rng=rng)
    vetted: dict[int, VettedAccuracy] = {}
    if noise is None:
        vetted = vetted_accuracies(labels, n_draws=len(drawn.accuracy), seed=int(rng.integers(2**31)))
    for t, of_labeler in vetted.items():
        if of_labeler.draws is not None:
            drawn.accuracy[:, t] = of_labeler.draws
    ranked = getattr(drawn, by)
    places = (-ranked).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable") + 1
    tails = np.quantile(places, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(int)
    order = np.argsort(-ranked.mean(axis=0), kind="stable")
    rows = tuple(_row(labels, drawn, int(t), (int(tails[0, t]), int(tails[1, t])), vetted.get(int(t))) for t in order)
    name = DEFAULT_NOISE if noise is None else noise if isinstance(noise, str) else repr(noise)
    return LabelerRanking(rows, by, level, name)


def _row(
    labels: Labels, drawn: LabelerDraws, t: int, places: tuple[int, int], vetted: VettedAccuracy | None
) -> RankedLabeler:
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
        basis="votes" if vetted is None or vetted.draws is None else "gold",
        vetted=0 if vetted is None else vetted.n_vetted,
        gold_only=None if vetted is None else vetted.gold_only,
    )


_RIGHT = 3.0  # pseudo-votes for the right answer, 1 for the others: the prior of the sampler of Dawid–Skene
_CELLS = 2_000_000  # votes times draws that are counted at once
_WORTH = 1.0  # pseudo-votes of a row, shared by all answers (Perks): the sampler's own prior pulls accuracies too far


@dataclass(frozen=True, eq=False)
class LabelerDraws:
    """Draws of what a labeler is like; arrays are (n_draws, n_labelers), the bias has n_classes more."""

    accuracy: Floats
    information: Floats
    bias: Floats
    spam: Floats
    spam_probability: Floats


def draw_truths(labels: Labels, noise: str | NoiseModel, *, n_draws: int, rng: np.random.Generator) -> Codes:
    """Draws of the truth of all items given all votes, shape (at most n_draws, n_items)."""
    model = resolve(noise)
    if model.can_be_drawn:
        if kernels.engine_for(labels.votes, 1000) == "scipy":  # a second run would take minutes
            drawn = sample(labels, model, n_warmup=400, n_draws=800, random_state=rng)
        else:
            drawn = sample(labels, model, n_warmup=500, n_draws=500, random_state=rng, warn=False)
            if not drawn.converged:
                drawn = sample(labels, model, n_warmup=2000, n_draws=4000, random_state=rng)
        kept = np.linspace(0, len(drawn.truths) - 1, min(n_draws, len(drawn.truths))).astype(np.int64)
        return drawn.truths[kept]
    fitted = model if model.is_fitted else fit(labels, model)
    return draw_categories(fitted.posterior(labels), n_draws, rng)


def draw_labelers(
    labels: Labels, noise: str | NoiseModel, *, n_draws: int, spam_prior: float, rng: np.random.Generator
) -> LabelerDraws:
    """Draw truths, then matrices given truths, and read accuracy, information, bias and spam from them."""
    truths = draw_truths(labels, noise, n_draws=n_draws, rng=rng)
    shape = (len(truths), labels.n_labelers)
    accuracy, information, spam = np.empty(shape), np.empty(shape), np.empty(shape)
    bias = np.empty((*shape, labels.n_classes))
    log_factor = np.empty(shape)
    base = np.ones((labels.n_classes, labels.n_answers))
    base[np.arange(labels.n_classes), np.arange(labels.n_classes)] = _RIGHT
    size = max(1, _CELLS // max(labels.votes.nnz, 1))
    for start in range(0, len(truths), size):
        block = slice(start, min(start + size, len(truths)))
        counts = _confusion_counts(labels, truths[block])
        gamma = rng.standard_gamma(counts + _WORTH / labels.n_answers)
        theta = gamma / np.maximum(gamma.sum(axis=-1, keepdims=True), 1e-300)
        in_class = np.stack([(truths[block] == y).sum(axis=1) for y in range(labels.n_classes)], axis=1)
        gamma = rng.standard_gamma(1.0 + in_class)
        prior = gamma / gamma.sum(axis=1, keepdims=True)
        accuracy[block], bias[block] = _accuracy_and_bias(theta, prior)
        information[block] = _information(theta, prior)
        spam[block] = spam_share(theta)
        log_factor[block] = _log_spam_factor(counts, base)
    # The Bayes factor is the mean over truths drawn under the hypothesis that answers depend on the truth.
    log_odds = np.log(spam_prior / (1 - spam_prior)) + logsumexp(log_factor, axis=0) - np.log(len(truths))
    probability = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    is_spam = rng.random(shape) < probability
    spam[is_spam], information[is_spam] = 1.0, 0.0
    return LabelerDraws(accuracy, information, bias, spam, probability)


def _confusion_counts(labels: Labels, truths: Codes) -> Floats:
    """How often each labeler gave each answer to items of each class; (draws, labelers, classes, answers)."""
    item, labeler, answer, times = labels.vote_table()
    shape = (len(truths), labels.n_labelers, labels.n_classes, labels.n_answers)
    draw = np.arange(len(truths))[:, None]
    cell = np.ravel_multi_index((draw, labeler, truths[:, item].astype(np.int64), answer), shape)
    weights = np.broadcast_to(times, cell.shape).ravel()
    return np.bincount(cell.ravel(), weights, int(np.prod(shape))).astype(float).reshape(shape)


def _accuracy_and_bias(theta: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Among answers that name a class: the chance of a right one, and answered less true shares.

    `theta` is (..., labelers, classes, answers) and `prior` (..., classes).
    """
    joint = prior[..., None, :, None] * theta[..., : prior.shape[-1]]
    joint = joint / np.maximum(joint.sum(axis=(-2, -1), keepdims=True), 1e-300)
    return np.einsum("...yy->...", joint), joint.sum(axis=-2) - joint.sum(axis=-1)


def _information(theta: Floats, prior: Floats) -> Floats:
    """Bits of one vote of each labeler; shapes as above."""
    joint = prior[..., None, :, None] * theta
    told = entropy(joint.sum(axis=-1)) + entropy(joint.sum(axis=-2))
    return np.asarray(np.maximum(told - entropy(joint.reshape(*joint.shape[:-2], -1)), 0.0))


def spam_share(confusion: npt.ArrayLike) -> Floats:
    """The largest share of votes that could be given without looking: λ = Σ_a min_y θ[y, a].

    The largest λ with θ = (1 − λ) Q + λ 1rᵀ for a confusion matrix Q and a distribution r of answers, since λ r[a] can
    be at most min_y θ[y, a] (Doeblin's coefficient). For two classes 1 − λ is how far the two rows are apart.

    Parameters
    ----------
    confusion : array of shape (..., n_classes, n_answers)

    Examples
    --------
    >>> spam_share([[[0.9, 0.1], [0.1, 0.9]], [[0.7, 0.3], [0.7, 0.3]]]).round(3).tolist()
    [0.2, 1.0]
    """
    return np.asarray(np.asarray(confusion, dtype=float).min(axis=-2).sum(axis=-1))


def _log_spam_factor(counts: Floats, base: Floats) -> Floats:
    """Log p(votes | truth, answers ignore the truth) − log p(votes | truth, they depend on it), of each labeler."""
    return np.asarray(
        _log_evidence(counts.sum(axis=-2), np.ones(counts.shape[-1])) - _log_evidence(counts, base).sum(axis=-1)
    )


def _log_evidence(counts: Floats, prior: Floats) -> Floats:
    """Log-probability of a sequence of answers under a Dirichlet prior, along the last axis."""
    each = gammaln(counts + prior).sum(axis=-1) - gammaln(prior).sum(axis=-1)
    return np.asarray(each + gammaln(prior.sum(axis=-1)) - gammaln((counts + prior).sum(axis=-1)))
