"""Do labelers agree? All common coefficients with intervals, the pairs, the classes and the items behind them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from trueup._base.types import Booleans, Floats
from trueup._base.validation import check_choice, check_integer, check_level, did_you_mean
from trueup._base.wording import number, percent, some
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.slices import slices_of, weights_of
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.posteriors import Estimate
from trueup.posteriors.estimate import new_axes
from trueup.reliability.experts import Judges, judges_of
from trueup.reliability.sums import MOST_COLUMNS, AgreementSums, PairTables, RatingSums, kendall
from trueup.reliability.tables import (
    SCALES,
    CoefficientEstimate,
    RateEstimate,
    Scale,
    Spread,
    VoteRows,
    agreement_weights,
    class_values,
    distances,
    effective_number,
    intervals_of,
    jackknife,
    ordinal_differences,
    sums_by,
    vote_rows,
)

LabelersAre = Literal["random", "fixed"]
Weighting = Literal["quadratic", "linear"]

COEFFICIENTS = {
    "percent": "how often two labelers agree on an item",
    "cohen": "Cohen's kappa, the mean over pairs",
    "cohen_weighted": "Cohen's weighted kappa, the mean over pairs",
    "scott": "Scott's pi, the mean over pairs",
    "fleiss": "Fleiss' kappa",
    "conger": "Conger's kappa",
    "alpha": "Krippendorff's alpha",
    "ac1": "Gwet's AC1",
    "ac2": "Gwet's AC2",
    "brennan_prediger": "Brennan and Prediger's kappa",
    "icc1": "ICC(1): one vote, labelers differ from item to item",
    "icc_a1": "ICC(A,1): one vote, absolute agreement",
    "icc_c1": "ICC(C,1): one vote, consistency",
    "icc1k": "ICC(1,k): the mean of the votes on an item",
    "icc_ak": "ICC(A,k): the mean, absolute agreement",
    "icc_ck": "ICC(C,k): the mean, consistency",
    "kendall_w": "Kendall's W",
}
_RATINGS = {"icc1", "icc_a1", "icc_c1", "icc1k", "icc_ak", "icc_ck"}
_AC2 = {"ordinal": "ordinal", "interval": "quadratic", "ratio": "ratio"}
_FEW = 5  # with fewer labelers intervals were measured to hold a little less often
_DOMINANT = 0.8  # share of one class from which chance alone gives much agreement
_PAIR_COLUMNS = ("a", "b", "n_items", "percent", "kappa", "low", "high")
_NO_PAIR = "no item has votes of two labelers, so there is no agreement"
_CROWD = "votes of an anonymous crowd do not say which are of one labeler"


@dataclass(frozen=True)
class DisputedItem:
    """An item that labelers disagree on.

    Attributes
    ----------
    disagreement : float
        How much the item adds to the observed disagreement of Krippendorff's alpha; an even split counts the more, the
        more votes there are.
    votes : dict. How many labelers gave each class.
    """

    item: Hashable
    disagreement: float
    votes: dict[Any, float]


@dataclass(frozen=True, eq=False)
class PairAgreement(Mapping[tuple[Any, Any], Estimate]):
    """Cohen's kappa of every two labelers; ``pairs["ann", "bob"]`` is an `Estimate`, over items alone.

    Attributes
    ----------
    labelers : tuple. The names, in the order of the matrices.
    n_items : array of shape (n_labelers, n_labelers). Items that both voted on.
    percent, kappa, std : arrays of shape (n_labelers, n_labelers)
        How often they say the same, Cohen's kappa (weighted where the scale is not nominal) and its standard error;
        nan where two share no item or each says one class alone.
    level : float. Of the intervals in `to_frame`.
    effective : array of shape (n_labelers, n_labelers)
        How many items of one weight say as much as those that both voted on.
    """

    labelers: tuple[Any, ...]
    n_items: Floats = field(repr=False)
    percent: Floats = field(repr=False)
    kappa: Floats = field(repr=False)
    std: Floats = field(repr=False)
    level: float
    effective: Floats = field(repr=False)

    def __getitem__(self, pair: tuple[Any, Any]) -> Estimate:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise InvalidParameter(
                f"`pairs` must be asked for two labelers, got {pair!r}; write pairs[one, other]", parameter="pair"
            )
        for name in pair:
            if name not in self.labelers:
                raise InvalidParameter(
                    f"there is no labeler {name!r}{did_you_mean(name, self.labelers)}", parameter="pair"
                )
        a, b = map(self.labelers.index, pair)
        if a == b or not np.isfinite(self.kappa[a, b]):
            raise InvalidParameter(
                f"{pair[0]!r} and {pair[1]!r} have no kappa: they are one, share {self.n_items[a, b]:g} items, or say "
                "one class alone; take another pair",
                parameter="pair",
            )
        std, df = (float(of_pairs[a, b]) for of_pairs in self._spread)
        kappa = float(self.kappa[a, b])
        bounds = (-1.0 if kappa > -1 else kappa - 0.5, 1.0)
        return CoefficientEstimate(kappa, std, df, bounds=bounds, name=f"kappa of {pair[0]} and {pair[1]}")

    @cached_property
    def _spread(self) -> tuple[Floats, Floats]:
        """Standard error and degrees of freedom; where nothing varies, as if half an item did."""
        n = np.maximum(self.effective, 1.0)
        return np.maximum(np.nan_to_num(self.std), 0.5 / n), np.maximum(n - 1, 1.0)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        for a, b in zip(*np.nonzero(np.triu(np.isfinite(self.kappa), 1)), strict=True):
            yield self.labelers[a], self.labelers[b]

    def __len__(self) -> int:
        return int(np.triu(np.isfinite(self.kappa), 1).sum())

    def rows(self) -> list[dict[str, Any]]:
        """One row for each two that share an item, those that agree most first."""
        at = np.nonzero(np.triu(self.n_items, 1))
        kappa, std, df = self.kappa[at], *(values[at] for values in self._spread)
        low, high = intervals_of(kappa, std, df, np.where(kappa > -1, -1.0, kappa - 0.5), self.level)
        rows = []
        for a, b, *found in zip(*at, kappa.tolist(), low.tolist(), high.tolist(), strict=True):
            pair = self.labelers[a], self.labelers[b], int(self.n_items[a, b]), float(self.percent[a, b])
            rows.append(
                dict(zip(_PAIR_COLUMNS, (*pair, *(found if np.isfinite(found[0]) else (None,) * 3)), strict=True))
            )
        return sorted(rows, key=lambda row: (row["kappa"] is None, -(row["kappa"] or 0.0)))

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row for each two that share an item: a, b, n_items, percent, kappa, low, high."""
        rows = self.rows()
        return make_frame({name: [row[name] for row in rows] for name in _PAIR_COLUMNS}, backend=backend)


@dataclass(frozen=True, eq=False)
class Agreement(Mapping[str, Estimate]):
    """Coefficients of agreement by name, each an `Estimate`.

    Attributes
    ----------
    scale : {"nominal", "ordinal", "interval", "ratio"}
    labelers : {"random", "fixed"}
        Whether labelers are a sample, too; "fixed" also where "random" was asked for and there are only two.
    level : float. Of the intervals that are shown.
    by_class : dict from class to Estimate. If a labeler says this class, how often another says it, too.
    left_out : dict from name to str. Why a coefficient has no value.
    notes : tuple of str. What a reader should know before using the numbers.
    by : mapping from slice to Agreement. Empty where no slices were asked for.
    """

    labels: Labels = field(repr=False)
    scale: Scale
    labelers: LabelersAre
    level: float
    coefficients: Mapping[str, Estimate]
    by_class: Mapping[Any, Estimate] = field(repr=False)
    left_out: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    by: Mapping[Any, Agreement] = field(repr=False)
    experts: tuple[Any, ...] = field(repr=False)
    _rows: VoteRows = field(repr=False)
    _tables: PairTables | None = field(repr=False)
    _values: Floats | None = field(repr=False)
    _pair_weights: Floats = field(repr=False)

    def __getitem__(self, name: str) -> Estimate:
        if name in self.coefficients:
            return self.coefficients[name]
        if name in self.left_out:
            raise InvalidParameter(f"{name!r} has no value here: {self.left_out[name]}")
        check_choice(name, tuple(COEFFICIENTS), name="coefficient")
        needs = '"interval" or "ratio"' if name in _RATINGS else '"ordinal", "interval" or "ratio"'
        raise InvalidParameter(
            f"{name!r} is for another scale than {self.scale}; pass `scale`, one of {needs}", parameter="scale"
        )

    def __contains__(self, name: object) -> bool:
        return name in self.coefficients

    def __iter__(self) -> Iterator[str]:
        return iter(self.coefficients)

    def __len__(self) -> int:
        return len(self.coefficients)

    @cached_property
    def pairs(self) -> PairAgreement:
        """Every two labelers."""
        names = tuple(self.labels.labelers.tolist())
        if self._tables is None:
            none = np.full((len(names), len(names)), np.nan)
            return PairAgreement(names, np.zeros_like(none), none, none, none, self.level, np.zeros_like(none))
        kappa, variance = self._tables.spread(self._pair_weights)
        same = self._tables.agreement(np.eye(self.labels.n_classes))
        np.fill_diagonal(kappa, np.nan)
        items = self._tables.items - np.diag(np.diag(self._tables.items))
        return PairAgreement(names, items, same, kappa, np.sqrt(variance), self.level, self._tables.effective)

    @cached_property
    def judges(self) -> Judges:
        """Each judge against the experts, or against gold where no experts were named; see `Judges`.

        All items count alike: `weights` are not used, and a note says so.
        """
        weighted = bool(np.ptp(self._rows.weights) > 1e-9)
        return judges_of(self.labels, self.experts, level=self.level, weighted=weighted)

    def disputed(self, n: int = 10) -> list[DisputedItem]:
        """The items that labelers disagree on most, the most disputed first; none that they all agree on."""
        check_integer(n, name="n", low=1)
        added, gaps = [], self._gaps
        for part in self._rows.parts(self.labels.n_classes):
            share, m = part.shares.toarray(), part.votes_per_item
            counts = sums_by(part.item, share, part.n_items)
            with_self = np.bincount(part.item, ((share @ gaps) * share).sum(axis=1), part.n_items)
            every = ((counts @ gaps) * counts).sum(axis=1) - with_self
            added.append(np.where(m > 1, every / np.maximum(m - 1, 1), 0.0)[m > 0])
        by_item, names = np.zeros(self._rows.n_items), self.labels.classes.tolist()
        by_item[np.unique(self._rows.item)] = np.concatenate(added)
        order = np.argsort(-by_item, kind="stable")[:n]
        found = []
        for at in order[by_item[order] > 1e-12].tolist():
            rows = slice(*np.searchsorted(self._rows.item, [at, at + 1]))
            said = np.asarray(self._rows.shares[rows].sum(axis=0)).ravel()
            votes = {names[k]: float(said[k]) for k in np.flatnonzero(said).tolist()}
            found.append(DisputedItem(self.labels.items[[at]].tolist()[0], float(by_item[at]), votes))
        return found

    @property
    def _gaps(self) -> Floats:
        """How far apart two classes are, as alpha has it."""
        if self._values is None:
            return 1 - np.eye(self.labels.n_classes)
        if self.scale == "ordinal":
            return ordinal_differences(self._values, self._said)
        return distances(self.scale, self._values)

    @cached_property
    def _said(self) -> Floats:
        """How often each class was said of items with two votes, by what these count for."""
        kept = np.flatnonzero(self._rows.votes_per_item[self._rows.item] >= 2)
        return np.asarray(self._rows.weights[self._rows.item[kept]] @ self._rows.shares[kept], dtype=float).ravel()

    @property
    def chance(self) -> float:
        """How often two votes would be the same if votes were dealt out anew among all items."""
        return float(((self._said / self._said.sum()) ** 2).sum())

    @property
    def accuracy_if_independent(self) -> float | None:
        """How often a vote would be right if errors were independent and even over classes; None where none fits.

        Labelers who err together agree as much and are right less often: agreement is not accuracy.
        """
        rest = 1 / max(self.labels.n_classes - 1, 1)
        inside = rest**2 - (1 + rest) * (rest - self["percent"].mean)
        return None if inside < 0 else float((rest + np.sqrt(inside)) / (1 + rest))

    @property
    def sentence(self) -> str:
        """What is high and what is low, in a few words."""
        same = self["percent"]
        low, high = (percent(end) for end in same.interval(self.level))
        words = [f"Two labelers agree on an item {percent(same.mean)} of the time ({low} to {high})"]
        if "alpha" in self:
            words[0] += (
                f"; chance alone gives {percent(self.chance)}. Krippendorff's alpha is "
                f"{number(self['alpha'].mean, 2)}, where 0 is chance and 1 is full agreement."
                if self.scale == "nominal"
                else f"; Krippendorff's alpha on the {self.scale} scale is {number(self['alpha'].mean, 2)}."
            )
        else:
            words[0] += "."
        if len(self.by_class) > 1:
            ordered = sorted(self.by_class, key=lambda name: -self.by_class[name].mean)
            most, least = ordered[0], ordered[-1]
            words.append(
                f"If one labeler says {most!r}, another does so {percent(self.by_class[most].mean)} of the time; "
                f"for {least!r} it is {percent(self.by_class[least].mean)}."
            )
        right = self.accuracy_if_independent
        if right is not None:
            words.append(
                f"If they erred independently, votes would be right about {percent(right)} of the time; if they err "
                "together, less often."
            )
        return " ".join(words)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a coefficient: coefficient, meaning, mean, low, high; slices in a column before, where asked for."""
        names = ("slice", "coefficient", "meaning", "mean", "low", "high")
        rows = [
            (name, key, COEFFICIENTS[key], estimate.mean, *estimate.interval(self.level))
            for name, part in [("all", self), *self.by.items()]
            for key, estimate in part.items()
        ]
        columns = {name: [row[k] for row in rows] for k, name in enumerate(names) if self.by or name != "slice"}
        return make_frame(columns, backend=backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "scale": self.scale,
            "labelers": self.labelers,
            "level": self.level,
            "n_items": self._rows.n_items,
            "n_labelers": self.labels.n_labelers,
            "n_pairable": int((self._rows.votes_per_item >= 2).sum()),
            "coefficients": {
                name: {"meaning": COEFFICIENTS[name], **estimate.to_dict(self.level)} for name, estimate in self.items()
            },
            "left_out": dict(self.left_out),
            "by_class": [{"class": str(k), **e.to_dict(self.level)} for k, e in self.by_class.items()],
            "pairs": [row | {"a": str(row["a"]), "b": str(row["b"])} for row in self.pairs.rows()],
            "disputed": [
                {"item": str(d.item), "disagreement": d.disagreement, "votes": {str(k): v for k, v in d.votes.items()}}
                for d in self.disputed()
            ],
            "judges": self.judges.to_dict() if self.experts or self.labels.gold else None,
            "by": {str(name): part.to_dict() for name, part in self.by.items()},
            "sentence": self.sentence,
            "notes": list(self.notes),
        }

    def plot(self, ax: Any = None) -> Any:
        """Each coefficient with its interval; returns the Axes."""
        ax = new_axes(ax, purpose="Agreement.plot()", figsize=(6, 0.3 * len(self) + 1))
        for place, estimate in enumerate(self.values()):
            ax.plot(estimate.interval(self.level), [-place, -place], color="tab:blue", linewidth=3, alpha=0.5)
            ax.plot(estimate.mean, -place, "o", color="tab:blue")
        ax.set_yticks(-np.arange(len(self)), list(self))
        ax.set_xlabel(f"agreement, with {self.level:.0%} interval")
        ax.grid(axis="x", alpha=0.3)
        return ax

    def save_html(self, path: str | PathLike[str]) -> Path:
        """Write a page with all of it; Markdown or JSON by the suffix of the path."""
        from trueup.report import save_report
        from trueup.report.summary import agreement_report

        return save_report(agreement_report(self), path)

    def __repr__(self) -> str:
        how = "items and labelers as samples" if self.labelers == "random" else "items as samples, labelers fixed"
        lines = [
            f"Agreement of {some(self.labels.n_labelers, 'labeler')} on {some(self._rows.n_items, 'item')} ({how})"
        ]
        width = max(map(len, self))
        for name, estimate in self.items():
            low, high = estimate.interval(self.level)
            lines.append(f"  {name:<{width}}  {estimate.mean:.3f}  {self.level:.0%} interval {low:.3f} to {high:.3f}")
        lines += [f"  {self.sentence}", *(f"  ! {note}" for note in self.notes)]
        return "\n".join(lines)


def agreement(
    labels: Labels,
    *,
    scale: Scale = "nominal",
    labelers: LabelersAre = "random",
    values: Mapping[Hashable, float] | None = None,
    weighting: Weighting = "quadratic",
    weights: str | Mapping[Hashable, float] | None = None,
    by: str | Mapping[Hashable, Hashable] | None = None,
    experts: list[Hashable] | tuple[Hashable, ...] = (),
    level: float = 0.95,
) -> Agreement:
    """How far labelers agree: every common coefficient, with intervals.

    Most coefficients are (p − c) / (1 − c), with p the agreement of two votes on an item and c what chance gives. Means
    over pairs (Cohen, Scott) weigh each pair by the items that it shares. Several votes of a labeler on an item share
    one vote. Intervals are by a jackknife over items and labelers with Student's quantiles on the scale of log odds.

    Gwet (2014), "Handbook of Inter-Rater Reliability"; Krippendorff (2011), "Computing Krippendorff's alpha
    reliability"; McGraw and Wong (1996), "Forming inferences about some intraclass correlation coefficients".

    Parameters
    ----------
    labels : Labels. Votes may be missing. Items with one vote or none say nothing of agreement.
    scale : {"nominal", "ordinal", "interval", "ratio"}
        How far apart classes are. Beyond "nominal" there are "cohen_weighted", "ac2" and "kendall_w", and on "interval"
        and "ratio" the intraclass correlations; "alpha" follows the scale.
    labelers : {"random", "fixed"}. Whether labelers are a sample of those who might have voted.
    values : mapping from class to number, optional
        By default classes are their own numbers, and on an ordinal scale in the order they were named in.
    weighting : {"quadratic", "linear"}. Of "cohen_weighted" and the pairs where the scale is not nominal.
    weights : str or mapping from item to number, optional
        What each item counts for: a column of the items, or a mapping. Intraclass correlations, "kendall_w" and
        `Agreement.judges` take all items alike.
    by : str or mapping from item to slice, optional. The same within slices of the items, as `Agreement.by`.
    experts : sequence of labelers, optional
        Labelers that the others are compared with in `Agreement.judges`; by default these are compared with gold. One
        named twice counts once.
    level : float. Of the intervals that are shown.
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(
            f"`labels` must be trueup.Labels, got {type(labels).__name__}; make them with read_labels",
        )
    check_choice(scale, SCALES, name="scale")
    check_choice(labelers, ("random", "fixed"), name="labelers")
    check_choice(weighting, ("quadratic", "linear"), name="weighting")
    check_level(level)
    numbers = class_values(labels, scale, values)
    rows = vote_rows(labels, None if weights is None else weights_of(labels, weights))
    listed = experts.tolist() if isinstance(experts, np.ndarray) else [experts] if isinstance(experts, str) else experts
    named = list(dict.fromkeys(listed))
    chosen = tuple(labels.labelers[labels.labeler_codes(named)].tolist()) if named else ()

    def on(kept: Booleans | None) -> Agreement:
        part = rows if kept is None else rows.on_items(kept)
        some_labels = labels if kept is None else labels.select(items=labels.items[kept])
        return _agreement(some_labels, part, scale, labelers, numbers, weighting, chosen, level)

    whole = on(None)
    if by is None:
        return whole
    slicing = slices_of(labels, by)
    parts, lacking = {}, []
    for name in slicing.names.tolist():
        if (rows.votes_per_item[slicing.members(name)] > 1).any():
            parts[name] = on(slicing.members(name))
        else:
            lacking.append(name)
    notes = list(slicing.notes())
    if lacking:
        notes.append(f"No item of {', '.join(map(repr, lacking))} has two votes; these slices are left out.")
    return replace(whole, by=parts, notes=(*whole.notes, *notes))


def _agreement(
    labels: Labels,
    rows: VoteRows,
    scale: Scale,
    labelers: LabelersAre,
    values: Floats | None,
    weighting: Weighting,
    experts: tuple[Any, ...],
    level: float,
) -> Agreement:
    """The agreement on some items; `values` are those of classes on a scale that is not nominal."""
    votes = rows.votes_per_item
    if not (votes > 1).any():
        what = "one labeler voted" if labels.n_labelers == 1 and rows.is_named else _NO_PAIR
        raise InvalidLabels(
            f"agreement needs items with votes of two labelers, got {some(int((votes > 0).sum()), 'item')} with one at "
            f"most: {what}; add votes of others on the same items",
            parameter="labels",
        )
    rows = replace(rows, weights=rows.weights / rows.weights[votes > 1].mean())  # 1 is that of items with two votes
    n_labelers = len(np.unique(rows.labeler[votes[rows.item] > 1]))
    random = labelers == "random" and rows.is_named and n_labelers > 2
    notes = _notes_about(labels, rows, n_labelers, asked=labelers)
    same_class = np.eye(labels.n_classes)
    ac2 = None if values is None else agreement_weights(_AC2[scale], values)
    pair_weights = same_class if values is None else agreement_weights(weighting, values)
    sums = AgreementSums(rows, scale, values, ac2)
    spread = jackknife(sums, with_labelers=random)
    found: dict[str, Estimate] = {}
    left_out: dict[str, str] = {}
    said = np.asarray(rows.shares.sum(axis=0)).ravel()
    share = said / said.sum()
    room, even = max(1 - float((share**2).sum()), 1e-9), 1 - 1 / max(labels.n_classes, 2)

    def put(name: str, one: Spread) -> None:
        if not np.isfinite(one.value):
            left_out[name] = "all votes are for one class, so chance alone gives full agreement"
            return
        left = {"percent": 1.0, "ac1": even, "brennan_prediger": even}.get(name, room)  # by chance
        found[name] = _estimate(name, one, least=0.5 / rows.effective(2) / left)

    n_named = len(sums.names)
    for k, name in enumerate(sums.names):
        put(name, spread.at(k))
    by_class = {
        name: _class_estimate(rows, k, spread.at(n_named + k)).named(f"agreement on {name}")
        for k, name in enumerate(labels.classes.tolist())
        if np.isfinite(spread.value[n_named + k])
    }
    tables = None
    if not rows.is_named:
        reason = left_out["conger"] = _CROWD
    elif labels.n_labelers * labels.n_classes > MOST_COLUMNS:
        reason = f"there are too many labelers and classes for all pairs; select at most {MOST_COLUMNS} columns"
    else:
        tables = PairTables(rows)
    for name, pooled in (("cohen", False), ("cohen_weighted", False), ("scott", True)):
        if name == "cohen_weighted" and values is None:
            continue
        if tables is None:
            left_out[name] = reason
        else:
            of_classes = pair_weights if name == "cohen_weighted" else same_class
            put(name, tables.mean(of_classes, pooled=pooled, with_labelers=random).at(0))
    if values is not None:
        if scale != "ordinal":
            _put_ratings(rows, values, found, left_out, random=random)
        _put_kendall(rows, values, found, left_out, random=random)
    if "alpha" in found and "ac1" in found:
        alpha, ac1 = found["alpha"].mean, found["ac1"].mean
        if share.max() > _DOMINANT and ac1 - alpha > 0.2:
            notes.append(
                f"{percent(share.max())} of the votes are for {labels.classes.tolist()[int(said.argmax())]!r}, so "
                f"chance alone gives much agreement: alpha ({number(alpha, 2)}) says how well labelers find the other "
                f"classes, AC1 ({number(ac1, 2)}) and percent agreement hardly do."
            )
    notes += [f"{name} is left out: {reason}." for name, reason in left_out.items()]
    in_order = {name: found[name] for name in COEFFICIENTS if name in found}
    how: LabelersAre = "random" if random else "fixed"
    unique_notes = tuple(dict.fromkeys(notes))
    return Agreement(
        labels,
        scale,
        how,
        level,
        in_order,
        by_class,
        left_out,
        unique_notes,
        {},
        experts,
        rows,
        tables,
        values,
        pair_weights,
    )


def _put_ratings(
    rows: VoteRows, values: Floats, found: dict[str, Estimate], left_out: dict[str, str], *, random: bool
) -> None:
    """The intraclass correlations, and those of the mean of the votes on an item by Spearman and Brown's formula."""
    votes = rows.votes_per_item
    k = float(1 / np.mean(1 / votes[votes > 1]))  # the harmonic mean, since errors of a mean shrink with 1 / votes
    sums = RatingSums(rows, values)
    spread = jackknife(sums, with_labelers=random)
    least = 1e-3 / max(len(votes), 1)
    for place, (name, of_mean) in enumerate(zip(sums.names, ("icc1k", "icc_ak", "icc_ck"), strict=True)):
        one = spread.at(place)
        value = float(one.value)
        if not rows.is_named and name != "icc1":
            left_out[name] = left_out[of_mean] = _CROWD
        elif not np.isfinite(value):
            left_out[name] = left_out[of_mean] = (
                "ratings do not vary, their variances add up to nothing, or no labeler rated items that others did, too"
            )
        elif not -1 <= value <= 1 + 1e-9:
            left_out[name] = left_out[of_mean] = (
                "a variance of labelers or of the rest comes out below zero, so the votes are too few for it"
            )
        else:
            found[name] = _estimate(name, one, least=least)
            below = 1 + (k - 1) * value
            if below <= 0 or k * value < -below:
                left_out[of_mean] = f"the correlation of single votes is too low ({value:.2f}) for one of their mean"
            else:
                mean = Spread(k * one.value / below, one.variance * (k / below**2) ** 2, one.df)
                found[of_mean] = _estimate(of_mean, mean, least=least)


def _put_kendall(
    rows: VoteRows, values: Floats, found: dict[str, Estimate], left_out: dict[str, str], *, random: bool
) -> None:
    """Kendall's W, of the items that all labelers rated."""
    present, labeler = np.unique(rows.labeler, return_inverse=True)
    m = len(present)
    one = None
    if rows.is_named and m > 1:
        one = kendall(replace(rows, labeler=labeler, n_labelers=m), values, with_labelers=random).at(0)
    if one is None or not np.isfinite(one.value):
        left_out["kendall_w"] = "it needs three items that all labelers voted on, with more than one class"
        return
    w = Spread((1 + (m - 1) * one.value) / m, one.variance * ((m - 1) / m) ** 2, one.df)
    found["kendall_w"] = _estimate("kendall_w", w, least=1e-3 / rows.n_items)


def _estimate(name: str, one: Spread, *, least: float) -> Estimate:
    """An estimate; where nothing varies, as if half an item did: its standard error is then `least`."""
    value, df = float(one.value), float(one.df)
    low = 0.0 if name in ("percent", "kendall_w") else -1.0
    if one.variance > 1e-16:
        std = float(np.sqrt(one.variance))
        low = low if value > low or low == 0.0 else value - 0.5  # no coefficient but alpha and an ICC is ever below −1
        bias, df = float(np.clip(one.bias, -std / 2, std / 2)), max(df, 1.0)
    else:
        at_end = value > 1 - 1e-9 or value < low + 1e-9
        std, df = least, max(df, 30.0)
        bias = 0.0 if not at_end else least if value > (1 + low) / 2 else -least
    return CoefficientEstimate(value, std, df, bias=bias, bounds=(low, 1.0), name=name)


def _class_estimate(rows: VoteRows, place: int, one: Spread) -> Estimate:
    """How often another says this class, too: as sure as the items that it was said of allow."""
    said = rows.shares[:, [place]].toarray().ravel()
    votes = rows.votes_per_item
    kept = (np.bincount(rows.item, said, rows.n_items) > 0) & (votes > 1)
    n = effective_number(rows.weights[kept])
    most, df = n * (float(votes[kept].mean()) - 1), min(float(one.df), max(n - 1, 1.0))
    return RateEstimate.of(float(one.value), float(one.variance), n, most=most, df=df)


def _notes_about(labels: Labels, rows: VoteRows, n_labelers: int, *, asked: LabelersAre) -> list[str]:
    """What is to be said of the votes."""
    votes = rows.votes_per_item
    notes: list[str] = []
    few = int((votes < 2).sum())
    if few:
        notes.append(f"{few:,} of {some(len(votes), 'item')} have fewer than two votes and say nothing of agreement.")
    if labels.has_repeats:
        notes.append("Several votes of a labeler on an item share one vote.")
    if asked == "random" and not rows.is_named:
        notes.append("Labelers are not named, so intervals are about other items and these labelers.")
    elif asked == "random" and n_labelers == 2:
        notes.append("Two labelers do not say how much others differ; intervals are about these two.")
    elif asked == "random" and n_labelers < _FEW:
        notes.append(
            f"{n_labelers} labelers say little of how much others differ, so the intervals are wide; those about these "
            'labelers alone are narrower (`labelers="fixed"`).'
        )
    return notes
