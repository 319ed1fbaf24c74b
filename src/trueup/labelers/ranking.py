"""Which labelers can be trusted: skill, bias and spam of each, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any, Literal

import numpy as np

from trueup._base.engines import check_engine, using_engine
from trueup._base.types import Floats
from trueup._base.validation import RandomState, as_generator, check_choice, check_integer, check_level, did_you_mean
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.data.slices import slices_of
from trueup.estimators.assumptions import Assumption, all_kinds_in_words, doubts_of_many_classes, settle_assumption
from trueup.estimators.real_map import RealMap
from trueup.estimators.truth import Basis
from trueup.estimators.truth_draws import mixed_draws
from trueup.exceptions import InvalidLabels, InvalidParameter, Sentence, silenced_warnings
from trueup.labelers.as_systems import labeler_engine
from trueup.labelers.real_errors import accuracy_moves
from trueup.labelers.skill_draws import draw_truths, labeler_draws
from trueup.labelers.tables import LabelerTable, read_labelers
from trueup.labelers.vetted import FEWER_SWEEPS, VettedAccuracy, vetted_accuracies
from trueup.noise.base import NoiseModel
from trueup.noise.registry import DEFAULT_NOISE, resolve
from trueup.posteriors import DrawnEstimate, Estimate
from trueup.posteriors.estimate import new_axes

Sort = Literal["information", "accuracy"]
_TIE = 1e-9


@dataclass(frozen=True)
class RankedLabeler:
    """What is known of one labeler.

    Attributes
    ----------
    labeler : Hashable
    votes : int
        With several on one item, of which each counts here; they are one witness in all else.
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
    basis: Basis = "votes"
    vetted: int = 0
    gold_only: Estimate | None = None
    consistency: Estimate | None = None


@dataclass(frozen=True)
class LabelerRanking:
    """Labelers from the best to the worst; iterate over them, or ask for one by name.

    Attributes
    ----------
    rows : tuple of RankedLabeler
    sort : {"information", "accuracy"}
    level : float
        Of the intervals shown.
    noise : str
        How the truth was inferred.
    by : mapping from slice to LabelerRanking
        The same within each slice; empty where none was asked for.
    warnings : tuple of str
        Sentences a user should read before trusting order and numbers.
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
        if any(row.consistency is not None for row in self.rows):
            own = [row.consistency for row in self.rows]
            ends = [(nan, nan) if one is None else one.interval(self.level) for one in own]
            columns["consistency"] = [nan if one is None else one.mean for one in own]
            columns["consistency_low"], columns["consistency_high"] = ([end[k] for end in ends] for k in (0, 1))
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
        order = f"the order rests on {self._basis_of_order()}"
        lines = [f"LabelerRanking of {len(self)} labelers by {self.sort} ({how}; {why}; {order})"]
        for row in self.rows[:10]:
            low, high = row.accuracy.interval(self.level)
            spam = f", spam {row.spam_probability:.0%}" if row.spam_probability >= 0.05 else ""
            lines.append(
                f"  {row.rank[0]}–{row.rank[1]}  {row.labeler}: accuracy {row.accuracy.mean:.3f} ({low:.3f} to "
                f"{high:.3f}{self._vetted_words(row)}), {row.information.mean:.3f} bits a vote, {row.votes} votes{spam}"
            )
        if len(self) > 10:
            lines.append(f"  … and {len(self) - 10} more; see to_frame()")
        lines += [f"  ! {sentence}" for sentence in self.warnings]
        return "\n".join(lines)

    def _basis_of_order(self) -> str:
        """What the order rests on, in words."""
        n_vetted = sum(row.basis == "gold" for row in self.rows)
        if self.sort == "information" or not n_vetted:
            return "votes and the noise model"
        if n_vetted == len(self):
            return "vetted items drawn at random"
        return f"vetted items drawn at random for {n_vetted} labelers, on votes and the noise model for the others"

    def _vetted_words(self, row: RankedLabeler) -> str:
        """What vetted items that were drawn say of the accuracy of a labeler."""
        if row.gold_only is None:
            return ""
        if row.basis == "gold":
            return f" by {row.vetted} vetted"
        low, high = row.gold_only.interval(self.level)
        return f" by votes, {low:.3f} to {high:.3f} by {row.vetted} vetted alone"


def rank(
    labels: Labels | LabelScan[Labels],
    *,
    noise: str | NoiseModel | None = None,
    assume: Assumption | RealMap | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    sort: Sort = "information",
    level: float = 0.95,
    spam_prior: float = 0.1,
    n_draws: int = 2000,
    random_state: RandomState = 0,
    engine: str | None = None,
    progress: Callable[[float], None] | None = None,
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
    "dawid-skene" and up to three classes that average is the exact Bayes factor), and has mass of its own in the
    posteriors of spam and information.

    Gold first: the accuracy of a labeler with 20 vetted items or more among their votes that were drawn at random
    (``labels.with_gold(…, drawn="random")``) rests on these, as that of a system in `trueup.evaluate` does: it is
    right whatever the noise model. Below that it rests on them in part, and what they say alone stands beside it
    (`RankedLabeler.gold_only`). The other quantities, which need every class, rest on votes and the noise model, which
    is told vetted truths and no more. So does the order by information, the default: to rank by what vetted items say,
    pass ``sort="accuracy"``.

    From votes alone, truths are those of `trueup.evaluate`: by default of all kinds of models, and accuracies are
    widened by what real crowds taught. Then the truth of each of their answers is tilted, in each draw, towards that
    answer or away from it until the accuracy is as far off as that; information, bias and spam follow, and the
    probability of a pure spammer does not. What is wrong about one labeler is wrong about another as far as they said
    the same of the same items. A noise model that is named gives its own answer alone, and
    its intervals hold as far as it does.

    Several votes of a labeler on an item are one witness who wavers, whatever their number; how often two of them agree
    is told as `RankedLabeler.consistency`.

    Parameters
    ----------
    labels : Labels or LabelScan
        Of votes that are scanned (`Labels.scan`), a sweep of the sampler is one pass over the files.
    noise : {"clusters", "subtypes", "dawid-skene", "one-coin"}, another name, or a NoiseModel, optional
        By default all kinds of models are drawn, as `assume` says; votes that are scanned are read by
        `trueup.noise.DEFAULT_NOISE`. A model that is named gives its own answer alone, gold or not. With these, by
        name or as a model, truths are drawn together with the noise by `trueup.noise.sample`. Another model is taken
        as known once it is fitted, and truths are drawn item by item from its posterior. That is right for known noise
        (`Confusion`). For a learned model it is far too sure: nominal 95% intervals of accuracy held in one case of
        three with "majority". Votes that are scanned can be read by "clusters", "dawid-skene" and "one-coin".
    assume : {"real", "shared", "independent"} or RealMap, optional
        What the answer from votes assumes of errors, as for `trueup.evaluate`; "real" by default.
    by : str or mapping, optional
        Slices of the items to rank within, too, as `LabelerRanking.by`: a column of the items (``labels.with_items``),
        or a mapping from item to slice. All come from one fit: in a slice a labeler is much as on all items, as far as
        their votes say that slices differ little, and vetted items correct a slice as far as it has some.
    sort : {"information", "accuracy"}
        What to rank by.
    level : float
        Of intervals in `to_frame`, plots and ranks.
    spam_prior : float
        The share of pure spammers expected beforehand.
    n_draws : int
        Draws of truth and matrices.
    random_state : int, Generator or None
    engine : {"scipy", "numba", "dask"}, optional
        What works it out, "dask" for votes that are scanned; by default as `trueup.engines` says.
    progress : callable, optional
        Called with the share of the work that is done; not for votes that are scanned.

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
    if not isinstance(labels, Labels | LabelScan):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    check_engine(engine, is_scan=isinstance(labels, LabelScan), purpose="labelers.rank")
    check_choice(sort, ("information", "accuracy"), name="sort")
    check_level(level)
    check_level(spam_prior, name="spam_prior")
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    assumption = settle_assumption(assume, alone=noise is not None)
    with using_engine(engine):
        if isinstance(labels, LabelScan):
            if by is not None:
                raise InvalidParameter(
                    "votes that are scanned are ranked on all items, got ⟨by⟩; leave it out, or read all votes into "
                    "memory with scan.read()",
                    parameter="by",
                )
            if noise is None and labels.reader.drawn:
                raise InvalidParameter(
                    f"labelers of a scan are ranked by votes, got {len(labels.reader.drawn)} vetted items drawn at "
                    "random; name a ⟨noise⟩, whose answer does not rest on them, or read all votes into memory with "
                    "scan.read()",
                    parameter="noise",
                )
            if assume is not None:
                raise InvalidParameter(
                    f"votes that are scanned are ranked by one noise model, got ⟨assume⟩={assume!r}; leave it out, or "
                    "read all votes into memory with scan.read()",
                    parameter="assume",
                )
            model = DEFAULT_NOISE if noise is None else noise
            told = read_labelers(labels, resolve(model), n_draws, spam_prior, rng)
            return _ranked(labels, told, {}, sort, level, _name_of(model), rng)
        real_map = assume if isinstance(assume, RealMap) else None
        return _rank_in_memory(labels, noise, assumption, real_map, by, sort, level, spam_prior, n_draws, rng, progress)


def _name_of(noise: str | NoiseModel) -> str:
    return noise if isinstance(noise, str) else repr(noise)


def _rank_in_memory(
    labels: Labels,
    noise: str | NoiseModel | None,
    assumption: Assumption,
    real_map: RealMap | None,
    by: str | Mapping[Hashable, Hashable] | None,
    sort: Sort,
    level: float,
    spam_prior: float,
    n_draws: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> LabelerRanking:
    """The ranking on all items, and within slices."""
    slicing = None if by is None else slices_of(labels, by)
    codes = None if slicing is None else slicing.codes
    vetted: dict[int, VettedAccuracy] = {}
    moves: list[Floats] | None = None
    if noise is None:
        name = all_kinds_in_words(assumption)
        how: dict[str, Any] = {"n_draws": n_draws, "seed": int(rng.integers(2**31)), "slices": codes}
        # Models are told all that is vetted; those that drawn items are to correct are not told these.
        told = replace(labels, gold_chance=np.full(labels.n_items, nan))
        engine = labeler_engine(told, **how, real_map=real_map, progress=progress)
        with silenced_warnings():  # what fits would say is among the notes
            readings = engine.readings("classes")
            drawn = readings.of_all_kinds() if assumption == "real" else readings.assuming(assumption)
            moves = accuracy_moves(engine, drawn.truths, rng) if assumption == "real" else None
            if not np.isnan(labels.gold_chance).all():
                untold = labeler_engine(labels, **how, sampling=FEWER_SWEEPS)
                vetted = vetted_accuracies(untold, n_draws=drawn.n_draws)
        doubts = engine.real_map.doubts(labels) if assumption == "real" else []
        doubts += doubts_of_many_classes(labels.n_classes)
        truths, notes = drawn.truths, (*(Sentence(note) for note in drawn.notes), *doubts)
    else:
        name = _name_of(noise)
        truths, notes = draw_truths(labels, noise, n_draws=n_draws, rng=rng, progress=progress)
    draws = labeler_draws(labels, truths, spam_prior=spam_prior, rng=rng, slices=codes, moves=moves)
    members = [labels, *(labels.select(items=labels.items[codes == k]) for k in range(len(draws) - 1))]
    of_parts = _vetted_by_part(vetted, len(draws))
    whole, *parts = (
        _ranked(part, LabelerTable.of(part, drawn), of_part, sort, level, name, rng)
        for part, drawn, of_part in zip(members, draws, of_parts, strict=True)
    )
    whole = replace(whole, warnings=(*notes, *_order_notes(whole)))
    if slicing is None:
        return whole
    return replace(whole, by=dict(zip(slicing.names.tolist(), parts, strict=True)))


def _order_notes(ranking: LabelerRanking) -> list[Sentence]:
    """What to say where accuracies rest on vetted items and the order does not."""
    n_vetted = sum(row.basis == "gold" for row in ranking)
    if not n_vetted or ranking.sort == "accuracy":
        return []
    whose = "The accuracy of one labeler rests" if n_vetted == 1 else f"The accuracies of {n_vetted:,} labelers rest"
    return [
        Sentence(
            f"{whose} on vetted items drawn at random, but the order, by information, on votes and the noise model; "
            'pass ⟨sort="accuracy"⟩ to rank by what vetted items say.'
        )
    ]


def _vetted_by_part(vetted: Mapping[int, VettedAccuracy], n_parts: int) -> list[dict[int, VettedAccuracy]]:
    """What vetted items say on all items, then in each slice."""
    slices = [
        {t: of_labeler.slices[k] for t, of_labeler in vetted.items() if k in of_labeler.slices}
        for k in range(n_parts - 1)
    ]
    return [dict(vetted), *slices]


def _ranked(
    labels: Labels | LabelScan[Labels],
    told: LabelerTable,
    vetted: Mapping[int, VettedAccuracy],
    sort: Sort,
    level: float,
    noise: str,
    rng: np.random.Generator,
) -> LabelerRanking:
    """The ranking by draws, with what vetted items say of accuracies."""
    drawn = told.draws
    for t, of_labeler in vetted.items():
        drawn.accuracy[:, t] = mixed_draws(drawn.accuracy[:, t], of_labeler.draws, of_labeler.share, rng)
    ranked = getattr(drawn, sort)
    # Accuracies of 1 are equal: who is ahead then is left to chance, not to the order of the names.
    places = (_TIE * rng.random(ranked.shape) - ranked).argsort(axis=1, kind="stable").argsort(
        axis=1, kind="stable"
    ) + 1
    tails = np.quantile(places, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf").astype(int)
    order = np.argsort(-ranked.mean(axis=0), kind="stable")
    rows = tuple(_row(labels, told, int(t), (int(tails[0, t]), int(tails[1, t])), vetted.get(int(t))) for t in order)
    return LabelerRanking(rows, sort, level, noise)


def _row(
    labels: Labels | LabelScan[Labels],
    told: LabelerTable,
    t: int,
    places: tuple[int, int],
    vetted: VettedAccuracy | None,
) -> RankedLabeler:
    drawn = told.draws
    of_class = 1 if labels.n_classes == 2 else int(drawn.bias[:, t].mean(axis=0).argmax())
    most = float(np.log2(labels.n_classes))
    return RankedLabeler(
        labeler=labels.labelers.tolist()[t],
        votes=int(told.votes[t]),
        accuracy=DrawnEstimate(drawn.accuracy[:, t], name="accuracy"),
        information=DrawnEstimate(drawn.information[:, t], bounds=(0.0, most), name="information"),
        bias=DrawnEstimate(drawn.bias[:, t, of_class], bounds=(-1.0, 1.0), name="bias"),
        bias_class=labels.classes.tolist()[of_class],
        spam=DrawnEstimate(np.minimum(drawn.spam[:, t], 1.0), name="spam"),
        spam_probability=float(drawn.spam_probability[t]),
        rank=places,
        basis="gold" if vetted is not None and vetted.share == 1 else "votes",
        vetted=0 if vetted is None else vetted.n_vetted,
        gold_only=None if vetted is None else vetted.gold_only,
        consistency=told.consistency.get(labels.labelers.tolist()[t]),
    )
