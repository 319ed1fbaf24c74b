"""Which labelers can be trusted: skill, bias and spam of each, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Codes, Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_level,
    did_you_mean,
    refuse_options,
)
from trueup.core.base import base_of
from trueup.core.prior import CrowdPrior
from trueup.core.truth import LabelersApart, TruthModel, basis_in_words, labels_of_base
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.data.slices import slices_of
from trueup.estimators.problem import draw_categories
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.labelers.tables import (
    LabelerTable,
    Levels,
    draw_truths,
    labeler_draws,
    labeler_levels,
    named_votes,
    read_labelers,
    self_consistency,
)
from trueup.noise.base import NoiseModel
from trueup.noise.registry import resolve
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import new_axes

Sort = Literal["information", "accuracy"]
_TIE = 1e-9
_PLAIN = "learned from public sets"
_POINTS = 1000  # quantiles of an exact distribution
_SPAM_TRUTHS = 200  # drawn to tell who is a pure spammer


@dataclass(frozen=True)
class RankedLabeler:
    """The skill, bias and spam of one labeler.

    Attributes
    ----------
    votes : int. Several on one item count each here, and as one in all else.
    accuracy : Estimate. The chance that a vote of theirs that names a class is right.
    information : Estimate. Bits that a vote of theirs tells of the class.
    bias : Estimate. By how much more often they answer `bias_class` than items are of it, in [−1, 1].
    bias_class : Hashable
        The second class where there are two, so that the bias has a sign; else the class most over-answered.
    spam : Estimate
        The share of their votes that could have been given without looking at the item; 1 for a pure spammer.
    spam_probability : float
        The probability that they are a pure spammer, whose answers do not depend on the truth at all.
    rank : (int, int). Between which ranks they stand, 1 being the best, at the level of the ranking.
    basis : str. What the accuracy rests on: "votes alone" or "votes and 7 checked items".
    vetted : int. Checked items among their votes that were drawn at random.
    gold_only : Estimate or None. The accuracy by these items alone; None without such items.
    consistency : Estimate or None
        The chance that two verdicts of theirs on one item are the same; None where they gave no two on any.
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
    basis: str = "votes alone"
    vetted: int = 0
    gold_only: Estimate | None = None
    consistency: Estimate | None = None


@dataclass(frozen=True)
class LabelerRanking:
    """Labelers from the best to the worst; iterate over them, or ask for one by name.

    Attributes
    ----------
    sort : {"information", "accuracy"}
    level : float. Of the intervals shown.
    noise : str. How the truth was inferred.
    by : mapping from slice to LabelerRanking. The same within each slice; empty where none was asked for.
    warnings : tuple of str. Sentences a user should read before trusting order and numbers.
    """

    rows: tuple[RankedLabeler, ...] = field(repr=False)
    sort: Sort
    level: float
    noise: str
    by: Mapping[Any, LabelerRanking] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = field(default=(), repr=False)

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

        def add(name: str, *, has_mean: bool = True) -> None:
            estimates = [getattr(row, name) for row in self.rows]
            ends = [(nan, nan) if one is None else one.interval(self.level) for one in estimates]
            if has_mean:
                columns[name] = [nan if one is None else one.mean for one in estimates]
            columns[f"{name}_low"], columns[f"{name}_high"] = ([end[k] for end in ends] for k in (0, 1))

        for name in ("accuracy", "information", "bias", "spam"):
            add(name)
        for name in ("bias_class", "spam_probability"):
            columns[name] = [getattr(row, name) for row in self.rows]
        columns["rank_low"], columns["rank_high"] = ([row.rank[k] for row in self.rows] for k in (0, 1))
        for name in ("basis", "vetted"):
            columns[name] = [getattr(row, name) for row in self.rows]
        add("gold_only", has_mean=False)
        if any(row.consistency is not None for row in self.rows):
            add("consistency")
        return make_frame(columns, backend=backend)

    def plot(
        self, ax: Any = None, *, quantity: Literal["accuracy", "information", "bias", "spam"] | None = None
    ) -> Any:
        """Mean and interval of each labeler, the best on top; returns the Axes."""
        shown = check_choice(quantity or self.sort, ("accuracy", "information", "bias", "spam"), name="quantity")
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
        lines = [f"LabelerRanking of {len(self)} labelers by {self.sort} ({how}; {why})"]
        for row in self.rows[:10]:
            low, high = row.accuracy.interval(self.level)
            checked = f", {row.vetted} checked" if row.vetted else ""
            spam = f", spam {row.spam_probability:.0%}" if row.spam_probability >= 0.05 else ""
            lines.append(
                f"  {row.rank[0]}–{row.rank[1]}  {row.labeler}: accuracy {row.accuracy.mean:.3f} ({low:.3f} to "
                f"{high:.3f}{checked}), {row.information.mean:.3f} bits a vote, {row.votes} "
                f"votes{spam}"
            )
        if len(self) > 10:
            lines.append(f"  … and {len(self) - 10} more; see to_frame()")
        lines += [f"  ! {sentence}" for sentence in self.warnings]
        return "\n".join(lines)


def rank(
    labels: Labels | LabelScan[Labels],
    *,
    noise: str | NoiseModel | None = None,
    prior: CrowdPrior | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    sort: Sort = "information",
    level: float = 0.95,
    spam_prior: float = 0.1,
    n_draws: int = 2000,
    random_state: RandomState = 0,
    engine: str | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Any,
) -> LabelerRanking:
    """Rank labelers by skill, with intervals for skill, bias and spam.

    All quantities are of the population that the items came from. Truths are drawn from their posterior given all
    votes, and for each drawn truth the confusion matrix θ of every labeler from its Dirichlet posterior. Each quantity
    is a function of θ and of the class prior π:

    - accuracy: Σ_y π(y) θ[y, y], among answers that name a class
    - information: bits of one vote, as in `mutual_information`
    - bias: Σ_y π(y) θ[y, a] − π(a), for the class a that is answered too often
    - spam: λ = Σ_a min_y θ[y, a], see `spam_share`. That answers do not depend on the truth at all (λ = 1) is weighed
      by its marginal likelihood averaged over the drawn truths, and has mass of its own in spam and information.

    The accuracy is that of the plain answer: each labeler is a system that is judged by the votes of the others, off by
    as much as on real sets, and checked items among their votes that were drawn at random (``labels.with_gold(…,
    drawn="random")``) correct it, from the first on; information, bias and spam follow, and the probability of a pure
    spammer does not. A noise model that is named gives its own answer alone, and its intervals hold as far as it does.

    Several votes of a labeler on an item count as one; how often two of them agree is `RankedLabeler.consistency`.

    Raykar and Yu (2012), "Eliminating Spammers and Ranking Annotators for Crowdsourced Labeling Tasks", JMLR 13.

    Parameters
    ----------
    labels : Labels or LabelScan
        Votes that are scanned (`Labels.scan`) are passed over, and nothing is kept of an item.
    noise : {"dawid-skene", "one-coin"}, another name, or a NoiseModel, optional
        By default none: the plain answer. With these truths are drawn together with the noise by
        `trueup.noise.sample`. Another model, and any of votes that are scanned, is taken as known once it is fitted.
    prior : CrowdPrior, optional. How far accuracies may be from what votes suggest; see `trueup.evaluate`.
    by : str or mapping, optional
        Slices of the items to rank within, too, as `LabelerRanking.by`: a column of the items (``labels.with_items``),
        or a mapping from item to slice. All come from one fit: a labeler is in a slice much as on all items, as far as
        their votes say that slices differ little.
    sort : {"information", "accuracy"}. What to rank by.
    level : float. Of intervals in `to_frame`, plots and ranks.
    spam_prior : float. The share of pure spammers expected beforehand.
    n_draws : int. Draws of truth and matrices.
    engine : {"scipy", "numba", "torch", "dask"}, optional
        What works it out, "torch" for votes in memory, "dask" for votes that are scanned; see `trueup.engines`.
    progress : callable, optional. Called with the share of the work that is done; not for votes that are scanned.
    """
    if not isinstance(labels, Labels | LabelScan):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    refuse_options(options)
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="labelers.rank")
    check_choice(sort, ("information", "accuracy"), name="sort")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    if noise is not None and prior is not None:
        raise InvalidParameter("`prior` is for the plain answer, got it beside a `noise`; leave one out")
    used = CrowdPrior() if prior is None else prior
    name = _PLAIN if noise is None else noise if isinstance(noise, str) else repr(noise)
    with using_engine(engine):
        if isinstance(labels, LabelScan):
            if by is not None:
                raise InvalidParameter("scans are ranked on all items, got `by`; use scan.read()", parameter="by")
            model = None if noise is None else resolve(noise)
            table, levels = read_labelers(labels, model, used, n_draws=n_draws, spam_prior=spam_prior, rng=rng)
            return _ranked(labels, table, levels, sort, level, name, rng)
        slicing = None if by is None else slices_of(labels, by)
        codes = None if slicing is None else slicing.codes
        n_slices = 0 if slicing is None else slicing.n_slices
        parts = [np.arange(labels.n_items), *(np.flatnonzero(codes == k) for k in range(n_slices))]
        levels_of: list[Any] = [None] * len(parts)
        moves = spam_truths = None
        if noise is None:
            truths, spam_truths, levels_of = _plain_truths(labels, parts, used, n_draws, rng)
            moves = [_moves(labels, truths, *pair) for pair in zip(parts, levels_of, strict=True)]
            notes: tuple[str, ...] = ()
        else:
            truths, notes = draw_truths(labels, noise, n_draws=n_draws, rng=rng, progress=progress)
        drawn: Any = {"slices": codes, "moves": moves, "spam_truths": spam_truths}
        draws = labeler_draws(labels, truths, spam_prior=spam_prior, rng=rng, **drawn)
        members = [labels, *(labels.select(items=labels.items[part]) for part in parts[1:])]
        ranked = []
        for part, one, of_part in zip(members, draws, levels_of, strict=True):
            table = LabelerTable(one, part.votes_per_labeler.astype(float), self_consistency(part))
            ranked.append(_ranked(part, table, of_part, sort, level, name, rng))
        whole, *others = ranked
    within = {} if slicing is None else dict(zip(slicing.names.tolist(), others, strict=True))
    return replace(whole, by=within, warnings=notes)


def _plain_truths(
    labels: Labels, parts: Sequence[Codes], prior: CrowdPrior, n_draws: int, rng: np.random.Generator
) -> tuple[Codes, Codes, list[Any]]:
    """Truths of the plain answer from votes alone, and the levels of labelers on each part."""
    if not (labels.vote_table()[2] < labels.n_classes).any():
        raise InvalidLabels("labelers are judged by votes that name a class, got none; keep items with such votes")
    with silenced_warnings():  # what fits would say is among the notes
        base, apart = base_of(labels_of_base(labels)), LabelersApart(labels_of_base(labels))
    nobody = np.empty((0, labels.n_items), dtype=np.int32)
    seed = int(rng.integers(2**31))
    truths = TruthModel(labels, base, nobody, may_sample=False, prior=prior, n_draws=n_draws, seed=seed).truth.truths
    spam_truths = draw_categories(base, _SPAM_TRUTHS, rng)  # as votes say, since a wrong truth makes all spammers
    levels = [labeler_levels(labels, apart, part, prior, n_draws=len(truths), rng=rng) for part in parts]
    return truths, spam_truths, levels


def _moves(labels: Labels, truths: Codes, part: Codes, levels: Levels) -> Floats:
    """By how much accuracies must change in each draw to be as drawn, shape (n_draws, n_labelers)."""
    item, labeler, answer, shares = named_votes(labels, part)
    total = np.maximum(np.bincount(labeler, shares, labels.n_labelers), 1e-300)
    right = np.stack([np.bincount(labeler, shares * (truth[item] == answer), labels.n_labelers) for truth in truths])
    return np.asarray(np.nan_to_num(levels.draws - right / total))


def _ranked(
    labels: Labels | LabelScan[Labels],
    table: LabelerTable,
    levels: Levels | None,
    sort: Sort,
    level: float,
    noise: str,
    rng: np.random.Generator,
) -> LabelerRanking:
    """The ranking by draws."""
    ranked = getattr(table.draws, sort)
    # Accuracies of 1 are equal: who is ahead then is left to chance, not to the order of the names.
    order = (_TIE * rng.random(ranked.shape) - ranked).argsort(axis=1, kind="stable")
    places = order.argsort(axis=1, kind="stable") + 1
    tails = np.quantile(places, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(int)
    order = np.argsort(-ranked.mean(axis=0), kind="stable")
    rows = tuple(_row(labels, table, int(t), (int(tails[0, t]), int(tails[1, t])), levels) for t in order)
    return LabelerRanking(rows, sort, level, noise)


def _row(
    labels: Labels | LabelScan[Labels], table: LabelerTable, t: int, places: tuple[int, int], levels: Levels | None
) -> RankedLabeler:
    drawn = table.draws
    of_class = 1 if labels.n_classes == 2 else int(drawn.bias[:, t].mean(axis=0).argmax())
    most = float(np.log2(labels.n_classes))
    n_checked, n_right = (0, 0) if levels is None else (int(levels.n_checked[t]), int(levels.n_right[t]))
    even = (np.arange(_POINTS) + 0.5) / _POINTS
    checks = betaincinv(n_right + 0.5, n_checked - n_right + 0.5, even)  # of checked items alone, with Jeffreys' prior
    return RankedLabeler(
        labeler=labels.labelers.tolist()[t],
        votes=int(table.votes[t]),
        accuracy=DrawnEstimate(drawn.accuracy[:, t], name="accuracy"),
        information=DrawnEstimate(drawn.information[:, t], bounds=(0.0, most), name="information"),
        bias=DrawnEstimate(drawn.bias[:, t, of_class], bounds=(-1.0, 1.0), name="bias"),
        bias_class=labels.classes.tolist()[of_class],
        spam=DrawnEstimate(np.minimum(drawn.spam[:, t], 1.0), name="spam"),
        spam_probability=float(drawn.spam_probability[t]),
        rank=places,
        basis=basis_in_words(n_checked, -1),
        vetted=n_checked,
        gold_only=DrawnEstimate(checks, name="accuracy") if n_checked else None,
        consistency=table.consistency.get(labels.labelers.tolist()[t]),
    )
