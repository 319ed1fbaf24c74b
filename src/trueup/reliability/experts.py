"""Judges against experts: agreement, sensitivity and specificity, beside how well an expert agrees with another.

Experts err too. Where two and more of them answered the same items of a judge, sensitivity and specificity are those
against the class that no one saw: Dawid and Skene's model of the experts and one judge, by maximum likelihood.

Spreads are by a jackknife over items. Items of the same votes change the same, so that one of each kind is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np

from trueup._base.types import Codes, Floats
from trueup._base.validation import did_you_mean
from trueup._base.wording import number, percent, some
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.noise import DawidSkene
from trueup.posteriors import Estimate
from trueup.reliability.sums import beyond_chance, ratio
from trueup.reliability.tables import CoefficientEstimate, RateEstimate, vote_rows

_MOST_TABLES = 20_000_000  # numbers of the tables without an item each: 160 MB
_MOST_FITS = 40  # of the model without an item; of more kinds of items, groups of them are left out
_IDENTIFIED = 30  # items with the judge and two experts from which experts' errors can be estimated
_MOST_MODELS = 40  # judges whose experts' errors are modelled: two seconds

_AGREEMENTS = ("percent", "kappa", "ac1")
Measure = Callable[[Floats], Floats]  # of tables (..., experts, class of the expert or truth, class of the judge)


@dataclass(frozen=True)
class JudgeAgreement:
    """One judge against the experts, or against gold.

    Attributes
    ----------
    n_items : int. Items of its votes that an expert voted on, too.
    percent, kappa, ac1 : Estimate. Agreement with an expert, the mean over experts.
    sensitivity, specificity : dict from class to Estimate
        How often it finds the class where it is the truth, and does not say it where it is not.
    corrected : Estimate or None. Cohen's kappa of judge and truth; None where experts' errors could not be modelled.
    """

    judge: Any
    n_items: int
    percent: Estimate
    kappa: Estimate | None
    ac1: Estimate
    sensitivity: Mapping[Any, Estimate] = field(repr=False)
    specificity: Mapping[Any, Estimate] = field(repr=False)
    corrected: Estimate | None = None

    def estimates(self) -> Iterator[tuple[str, Any, Estimate]]:
        """Measure, class and estimate."""
        for name in ("percent", "kappa", "ac1", "corrected"):
            if getattr(self, name) is not None:
                yield name, None, getattr(self, name)
        for name in ("sensitivity", "specificity"):
            for of_class, estimate in getattr(self, name).items():
                yield name, of_class, estimate


@dataclass(frozen=True, eq=False)
class Judges(Mapping[Any, JudgeAgreement]):
    """All judges by name, those that agree most with the experts first.

    Attributes
    ----------
    experts : tuple. The experts; empty where judges are compared with gold.
    ceiling : dict from measure to Estimate
        How well an expert agrees with another: "percent", "kappa", "ac1"; empty without two experts.
    """

    rows: tuple[JudgeAgreement, ...]
    experts: tuple[Any, ...]
    ceiling: Mapping[str, Estimate]
    level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, judge: Any) -> JudgeAgreement:
        for row in self.rows:
            if row.judge == judge:
                return row
        raise InvalidParameter(f"there is no judge {judge!r}{did_you_mean(judge, list(self))}")

    def __iter__(self) -> Iterator[Any]:
        return (row.judge for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sentence(self) -> str:
        """The best judge beside the ceiling."""
        best = self.rows[0]
        against = "an expert" if self.experts else "gold"
        beside = ""
        if self.ceiling:
            beside = f"; an expert agrees with another {percent(self.ceiling['percent'].mean)} of the time"
        return f"{best.judge} agrees with {against} most, {percent(best.percent.mean)} of the time{beside}."

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a judge, measure and class: judge, measure, class, n_items, mean, low, high."""
        rows = self._rows()
        return make_frame({name: [row[name] for row in rows] for name in rows[0]}, backend=backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "experts": [str(name) for name in self.experts],
            "ceiling": {name: estimate.to_dict(self.level) for name, estimate in self.ceiling.items()},
            "judges": [
                row | {"judge": str(row["judge"]), "class": None if row["class"] is None else str(row["class"])}
                for row in self._rows()
            ],
            "sentence": self.sentence,
            "notes": list(self.notes),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Each estimate of each judge with its interval."""
        rows = []
        for row in self.rows:
            for measure, of_class, estimate in row.estimates():
                low, high = estimate.interval(self.level)
                about = {"judge": row.judge, "measure": measure, "class": of_class, "n_items": row.n_items}
                rows.append(about | {"mean": estimate.mean, "low": low, "high": high})
        return rows

    def __repr__(self) -> str:
        lines = [f"Judges against {'experts' if self.experts else 'gold'}: {self.sentence}"]
        for row in self.rows[:20]:
            kappa = "" if row.kappa is None else f", kappa {number(row.kappa.mean, 2)}"
            lines.append(f"  {row.judge}: {percent(row.percent.mean)}{kappa}, {some(row.n_items, 'item')}")
        return "\n".join([*lines, *(f"  ! {note}" for note in self.notes)])


def judges_of(labels: Labels, experts: tuple[Any, ...], *, level: float, weighted: bool = False) -> Judges:
    """Each labeler that is no expert against the experts, or against gold where none are named."""
    if not experts and not labels.gold:
        raise InvalidLabels(
            "judges are compared with experts or gold, got neither; name `experts`, or add gold (`with_gold`)",
            parameter="experts",
        )
    rows, names = vote_rows(labels), labels.labelers.tolist()
    votes = np.zeros((labels.n_labelers, labels.n_items, labels.n_classes))
    np.add.at(votes, (rows.labeler, rows.item), rows.shares.toarray())
    votes /= np.maximum(votes.sum(axis=2, keepdims=True), 1.0)  # several of a crowd
    if experts:
        said = votes[[names.index(name) for name in experts]]
    else:
        said = np.where(labels.gold_codes[:, None] >= 0, np.eye(labels.n_classes)[labels.gold_codes], 0.0)[None]
    notes: list[str] = []
    if weighted:
        notes.append("All items count equally in the comparison of judges: the weights of items are not used.")
    judges = [(name, own) for name, own in zip(names, votes, strict=True) if name not in experts]
    with_model = len(experts) > 1 and len(judges) <= _MOST_MODELS
    if experts and not with_model:
        notes.append(
            "One expert does not say how often experts err, so judges are compared with the uncorrected answers."
            if len(experts) == 1
            else f"The errors of experts are modelled for {_MOST_MODELS} judges at most; select some labelers."
        )
    n_answers = (said.sum(axis=2) > 0).sum(axis=0)
    found = []
    for name, own in judges:
        at = np.flatnonzero((n_answers > 0) & (own.sum(axis=1) > 0))
        if len(at) < 2:
            notes.append(f"{name!r} shares no two items with {'an expert' if experts else 'gold'}.")
            continue
        of_two = int((n_answers[at] > 1).sum())
        is_modelled = with_model and of_two >= _IDENTIFIED
        if with_model and not is_modelled:
            notes.append(
                f"{name!r} shares {some(of_two, 'item')} with two experts, and {_IDENTIFIED} are needed to say how "
                "often experts err, so it is compared with the uncorrected answers."
            )
        found.append(_judge(labels, name, said[:, at], own[at], at, experts, is_modelled))
    if not found:
        raise InvalidLabels(
            "no labeler voted on two items that experts or gold have, too; add votes on these items", parameter="labels"
        )
    ceiling = _ceiling(said) if len(experts) > 1 else {}
    return Judges(tuple(sorted(found, key=lambda row: -row.percent.mean)), experts, ceiling, level, tuple(notes))


def _judge(
    labels: Labels, name: Any, said: Floats, own: Floats, at: Codes, experts: tuple[Any, ...], with_model: bool
) -> JudgeAgreement:
    """One judge on the items that it shares with experts."""
    classes = labels.classes.tolist()
    left = LeftOut.of(said, own)
    tables = _tables(said, own, left)
    agreed = _estimates(tables, _agreements, _AGREEMENTS, left)
    tables, corrected = tables.sum(axis=-3, keepdims=True), None
    if with_model:
        part = labels.select(items=labels.items[at], labelers=[*experts, name])
        left = LeftOut.of(said, own, most=_MOST_FITS)
        without = [_fit(part.select(items=labels.items[np.delete(at, gone)]), name) for gone in left.items]
        tables = np.stack([_fit(part, name), *without])[:, None]
        corrected = _estimates(tables, _agreements, _AGREEMENTS, left).get("kappa")
    kinds = ("sensitivity", "specificity")
    rates = _estimates(tables, _rates, list(product(kinds, range(len(classes)))), left)
    finds, excludes = ({classes[k]: rate for (kind, k), rate in rates.items() if kind == what} for what in kinds)
    return JudgeAgreement(
        name, len(at), agreed["percent"], agreed.get("kappa"), agreed["ac1"], finds, excludes, corrected
    )


def _fit(part: Labels, judge: Any) -> Floats:
    """How often truth and judge are of which classes, by the model; shape (n_classes, n_classes)."""
    with silenced_warnings():
        model = DawidSkene(pooling=0.0, tol=1e-8, max_iter=500).fit(part)
    place = part.labelers.tolist().index(judge)
    table = model.prior_[:, None] * model.confusion_[place][:, : part.n_classes]
    return np.asarray(table / table.sum())


def _ceiling(said: Floats) -> dict[str, Estimate]:
    """How well an expert agrees with another, the mean over pairs."""
    shared = (said.sum(axis=2) > 0).sum(axis=0) > 1
    if shared.sum() < 2:
        return {}
    said = said[:, shared]
    left = LeftOut.of(said, said[0], most=_MOST_TABLES // (len(said) * said.shape[2]) ** 2)
    pairs = [_tables(said[[a]], said[b], left) for a, b in combinations(range(len(said)), 2)]
    return _estimates(np.concatenate(pairs, axis=1), _agreements, _AGREEMENTS, left)


@dataclass(frozen=True)
class LeftOut:
    """Which items are left out together, and how often: kinds of items, or groups of them where these are many."""

    items: tuple[Codes, ...]  # those that are left out together
    times: Floats  # (n_left_out,): how many times that counts: the number of items of a kind
    n_items: int

    @staticmethod
    def of(said: Floats, own: Floats, most: int | None = None) -> LeftOut:
        """From the votes of experts and judge, and not from the names or the order of items."""
        n = len(own)
        votes = np.ascontiguousarray(np.concatenate([*said, own], axis=1))
        _, first, kind, times = np.unique(votes, axis=0, return_index=True, return_inverse=True, return_counts=True)
        most = max(_MOST_FITS, _MOST_TABLES // (len(said) * own.shape[1] ** 2)) if most is None else max(most, 2)
        if len(first) <= most:
            return LeftOut(tuple(np.split(first, len(first))), times.astype(float), n)
        dealt = np.random.default_rng(0).permutation(n) % most  # to items in the order of their kinds
        order = np.argsort(kind.ravel(), kind="stable")
        return LeftOut(tuple(order[dealt == g] for g in range(most)), np.ones(most), n)


def _tables(said: Floats, own: Floats, left: LeftOut) -> Floats:
    """How often experts and judge say which classes, of all and without some items each; (1 + left, experts, C, C)."""
    gone = np.stack([np.einsum("eik,il->ekl", said[:, some_items], own[some_items]) for some_items in left.items])
    total = np.einsum("eik,il->ekl", said, own, optimize=True)
    return np.concatenate([total[None], total - gone])


def _agreements(tables: Floats) -> Floats:
    """Percent agreement, Cohen's kappa and AC1, the mean over experts who share items with the judge."""
    mass = tables.sum(axis=(-2, -1))
    shares = ratio(tables, mass[..., None, None])
    same = np.trace(shares, axis1=-2, axis2=-1)
    one, other = shares.sum(axis=-1), shares.sum(axis=-2)
    middle = (one + other) / 2
    chance = (middle * (1 - middle)).sum(axis=-1) / max(tables.shape[-1] - 1, 1)
    all_three = np.stack([same, beyond_chance(same, (one * other).sum(axis=-1)), beyond_chance(same, chance)], axis=-1)
    weight = np.where(np.isfinite(all_three), mass[..., None], 0.0)
    return ratio((np.nan_to_num(all_three) * weight).sum(axis=-2), weight.sum(axis=-2))


def _rates(tables: Floats) -> Floats:
    """Sensitivity and then specificity for each class."""
    table = tables.sum(axis=-3)
    right = np.diagonal(table, axis1=-2, axis2=-1)
    truth, answered, total = table.sum(axis=-1), table.sum(axis=-2), table.sum(axis=(-2, -1))[..., None]
    return np.concatenate([ratio(right, truth), ratio(total - truth - answered + right, total - truth)], axis=-1)


def _estimates(tables: Floats, measure: Measure, names: Sequence[Any], left: LeftOut) -> dict[Any, Estimate]:
    """Each measure of all items that has a value, with its spread over the tables without some items each."""
    values = measure(tables)
    table, n_tables = tables[0].sum(axis=0), tables.shape[1]
    of_class = table.sum(axis=1) / table.sum() * left.n_items
    found: dict[Any, Estimate] = {}
    for k, name in enumerate(names):
        value, word = float(values[0, k]), name if isinstance(name, str) else name[0]
        if not np.isfinite(value):
            continue
        has = np.isfinite(values[1:, k])
        without, times = values[1:, k][has], left.times[has]
        n = max(float(times.sum()), 2.0)
        variance = 0.0
        if len(without):
            variance = (n - 1) / n * float(times @ (without - np.average(without, weights=times)) ** 2)
        if name in ("kappa", "ac1"):
            least = 0.5 / left.n_items
            std, bias = max(variance**0.5, least), least if value > 1 - 1e-9 else 0.0
            bounds = (min(-1.0, value), 1.0)
            found[name] = CoefficientEstimate(value, std, n - 1, bias=bias, bounds=bounds, name=word)
            continue
        items = float(left.n_items)  # behind the rate; one of several experts counts once
        if word != "percent":
            items = float(of_class[name[1]]) if word == "sensitivity" else items - float(of_class[name[1]])
        df = max(items - 1, 1.0) if n_tables > 1 else np.inf  # answers of one expert are independent
        found[name] = RateEstimate.of(value, variance, items, most=items * n_tables, df=df, name=word)
    return found
