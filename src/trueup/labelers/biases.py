"""Does a judge favour long answers, the first one, or those of its own family?

For each labeler, with y a favourable verdict, x the columns asked about and z the truth, on the items it has voted on,
E[y] = a + b z + γ x. γ is the difference in the rate of favourable verdicts that x makes, given the truth. With gold z
is known. Without it the mean verdict ō of the other labelers is taken for z. Their errors in it would leave some of z
in γ, so the square of ō in the normal equations is replaced by the mean product of the verdicts of two different
others, which is free of the variance of errors as long as two others err independently. Standard errors are those of
the jackknife over items.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueup._base.types import Codes, Floats
from trueup._base.validation import check_choice, did_you_mean, numbers_of, preview
from trueup._base.wording import some
from trueup.core.truth import drawn_gold
from trueup.data.encoding import is_null
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.data.pairs import REVERSED, UNKNOWN, VERDICTS, Pairs
from trueup.data.votes import one_vote_each
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers.panels import CHOSEN, gold_weights, student_estimate
from trueup.posteriors import Estimate

LEAST_CHECKED = 30  # checked items, from which gold is the truth
LEAST_ITEMS = 20  # of a labeler, from which an effect is reported
OWN_FAMILY, POSITION = "own_family", "position"
_FAMILY = "family"  # the column of labelers and of items
_LEVEL = 0.95
_SINGULAR = 1e8  # condition number
_MANY_TEXTS = 20  # different ones, from which a column that differs on most items is not one of categories
_TEXTS = re.compile(  # words in the names of columns of texts
    "(^|[^a-z])(length|len|text|answer|response|reply|output|message|prompt|question|summary|comment|review|title)s?"
    "([^a-z]|$)"
)


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """Verdicts as numbers, a row each."""

    names: list[Any]  # of the labelers
    item: Codes
    labeler: Codes
    y: Floats  # 1 for a favourable one, between 0 and 1 for a tie
    columns: Floats  # (n_verdicts, n_columns), NaN where a value is not known
    truth: Codes  # (n_items,), the class as a number, -1 where it is not known
    weights: Floats  # (n_items,), what an item with a known truth counts for
    is_chosen: bool  # whether all known truths are of items that somebody chose


@dataclass(frozen=True, eq=False)
class LabelerBias(Mapping[str, Estimate]):
    """The biases of one labeler; ``bias["length"]`` is the effect of a column.

    Attributes
    ----------
    effects : dict from column to Estimate
        The difference in the rate of favourable verdicts: between items that are and are not, or for each standard
        deviation of a number.
    n_items : int. Items that they rest on.
    """

    labeler: Hashable
    effects: dict[str, Estimate]
    n_items: int

    def __getitem__(self, column: str) -> Estimate:
        if column not in self.effects:
            raise InvalidParameter(
                f"there is no effect of {column!r} on {self.labeler!r}, got those of {preview(list(self.effects))}"
                f"{did_you_mean(column, self.effects)}",
                parameter="on",
            )
        return self.effects[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self.effects)

    def __len__(self) -> int:
        return len(self.effects)


@dataclass(frozen=True, eq=False)
class Biases(Mapping[Any, LabelerBias]):
    """The biases of all labelers; ``biases["gpt"]["length"]`` is an `Estimate`.

    Attributes
    ----------
    basis : str. What stood for the truth.
    """

    labelers: dict[Any, LabelerBias]
    on: tuple[str, ...]
    basis: str
    warnings: tuple[str, ...] = field(default=(), repr=False)

    def __getitem__(self, labeler: Any) -> LabelerBias:
        if labeler not in self.labelers:
            raise InvalidParameter(
                f"no bias of {labeler!r} was estimated{did_you_mean(labeler, self.labelers)}", parameter="labeler"
            )
        return self.labelers[labeler]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labelers)

    def __len__(self) -> int:
        return len(self.labelers)

    def to_frame(self, *, level: float = _LEVEL, backend: str | None = None) -> Any:
        """One row a labeler and column: labeler, column, effect, low, high, items."""
        rows = [
            (name, column, effect.mean, *effect.interval(level), found.n_items)
            for name, found in self.labelers.items()
            for column, effect in found.items()
        ]
        columns = ("labeler", "column", "effect", "low", "high", "items")
        return make_frame({name: [row[k] for row in rows] for k, name in enumerate(columns)}, backend=backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "basis": self.basis,
            "on": list(self.on),
            "labelers": [
                {"labeler": str(name), "n_items": one.n_items, "effects": {c: e.to_dict() for c, e in one.items()}}
                for name, one in self.labelers.items()
            ],
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        lines = [f"Biases of {some(len(self), 'labeler')}, in the rate of favourable verdicts ({self.basis})"]
        for name, found in self.labelers.items():
            effects = []
            for column, effect in found.items():
                low, high = effect.interval(_LEVEL)
                effects.append(f"{column} {effect.mean:+.3f} ({low:+.3f} to {high:+.3f})")
            lines.append(f"  {name}: {', '.join(effects)}")
        return "\n".join(lines + [f"  ! {sentence}" for sentence in self.warnings])


def bias(
    labels: Labels | Pairs,
    *,
    on: str | Sequence[str],
    of: Hashable | Sequence[Hashable] | None = None,
    truth: Literal["gold", "votes"] | None = None,
) -> Biases:
    """Estimate whether labelers favour long answers, the first one, or those of their own family.

    An effect is a difference in the rate of favourable verdicts given the truth: between items with and without a
    property, or for each standard deviation of a number. All columns enter at once, so each effect is beside the
    others. With gold the truth is known. Without it the other labelers stand for it, with their errors allowed for, and
    an effect is by how much more a labeler favours the column than the others do: what all favour does not show.

    Fuller (1987), "Measurement Error Models": normal equations without the variance of errors.

    Parameters
    ----------
    labels : Labels or Pairs
        Votes with columns of the items (``labels.with_items``); or verdicts on pairs, of which "position" can be asked:
        by how much more often a system wins if it is shown first.
    on : str or sequence of str
        Item columns of numbers or of two values, such as "length"; of texts the number of characters, where the name
        says that they are texts ("answer", "text") or most of them differ; and "own_family", whether the columns
        "family" of labeler (``labels.with_labelers``) and item are the same.
    of : class or sequence of classes, optional. The favourable verdicts; by default the second of two classes.
    truth : {"gold", "votes"}, optional
        By default gold where 30 items are checked. Items drawn at random count, each by the inverse of its chance;
        those that somebody chose where no others are checked.
    """
    columns = _check_columns(on)
    if isinstance(labels, Pairs):
        verdicts, needs_truth = _of_pairs(labels, columns), False
    elif isinstance(labels, Labels):
        verdicts, needs_truth = _of_labels(labels, columns, of), True
    else:
        raise InvalidLabels(f"labels must be Labels or Pairs, got {type(labels).__name__}; use Labels.from_frame")
    n_checked = int((verdicts.truth >= 0).sum())
    default = "gold" if n_checked >= LEAST_CHECKED else "votes"
    by_gold = check_choice(truth or default, ("gold", "votes"), name="truth") == "gold"
    if by_gold and not n_checked:
        raise InvalidParameter(
            "effects given the truth need checked items, got none; add gold (`labels.with_gold`) or leave `truth` out",
            parameter="truth",
        )
    if not by_gold and needs_truth and len(verdicts.names) < 3:
        raise InvalidLabels(
            f"without gold a labeler needs two others to stand for the truth, got {len(verdicts.names)} labelers in "
            "all; add the votes of others, or gold (`labels.with_gold`)"
        )
    found, lacking = {}, []
    has_two = [len(np.unique(x[~np.isnan(x)])) <= 2 for x in verdicts.columns.T]
    for t, name in enumerate(verdicts.names):
        solved = _effects_of(verdicts, t, by_gold=by_gold, needs_truth=needs_truth)
        if solved is None:
            lacking.append(name)
            continue
        n_items, *numbers = solved
        effects = {}
        for column, is_difference, *effect in zip(columns, has_two, *numbers, strict=True):
            how: Any = {"bounds": (-1.0, 1.0), "back": lambda x: np.clip(x, -1.0, 1.0)} if is_difference else {}
            effects[column] = student_estimate(*effect, name=column, **how)
        found[name] = LabelerBias(name, effects, n_items)
    if not found:
        raise InvalidLabels(
            f"a labeler must have {LEAST_ITEMS} items on which {preview(columns)} differ and the truth or two others "
            "are known, got none who does; add votes, gold, or other columns",
            parameter="on",
        )
    notes = []
    if lacking:
        notes.append(
            f"Of {some(len(lacking), 'labeler')} no effect is known: too few items differ ({preview(lacking)})."
        )
    if not by_gold and needs_truth:
        notes.append("Effects are beside those of the other labelers; what all favour shows on checked items alone.")
    if by_gold and verdicts.is_chosen:
        notes.append(CHOSEN)
    basis = f"given the truth of {some(n_checked, 'checked item')}" if by_gold else "by the other labelers"
    return Biases(found, tuple(columns), basis, tuple(notes))


def _check_columns(on: object) -> list[str]:
    """The names of columns, each once."""
    columns: list[Any] = list(on) if isinstance(on, Iterable) and not isinstance(on, str) else [on]
    wrong = [name for name in columns if not isinstance(name, str)]
    if wrong or not columns:
        raise InvalidParameter(
            f"`on` must name columns, got {preview(wrong) if wrong else 'none'}; name one of the items, such as "
            "'length'",
        )
    if len(set(columns)) < len(columns):
        raise InvalidParameter(f"`on` must name each column once, got {preview(columns)}; leave one out")
    return columns


def _of_labels(labels: Labels, columns: Sequence[str], of: Hashable | Sequence[Hashable] | None) -> _Verdicts:
    """Votes as verdicts on items."""
    classes = labels.classes.tolist()
    if of is None and len(classes) != 2:
        raise InvalidParameter(
            f"of {len(classes)} classes the favourable ones must be named, got none; pass `of` one or several of "
            f"{preview(classes)}",
            parameter="of",
        )
    asked = [classes[1]] if of is None else [of]
    if isinstance(of, list | tuple | set) and of not in classes:
        asked = list(of)
    wrong = [name for name in asked if name not in classes]
    if wrong or not asked:
        raise InvalidParameter(f"`of` must be classes, got {preview(wrong)}{did_you_mean(of, classes)}")
    item, labeler, answer, times = one_vote_each(labels, np.random.default_rng(0)).vote_table()
    named = np.flatnonzero(answer < labels.n_classes)
    item, labeler, answer = (np.repeat(codes[named], times[named]) for codes in (item, labeler, answer))
    favourable = np.isin(np.arange(labels.n_classes), [classes.index(name) for name in asked])
    parts = []
    for name in columns:
        if name == OWN_FAMILY:
            known: dict[Any, int] = {}
            of_labelers, of_items = (
                np.array([-1 if is_null(a) else known.setdefault(a, len(known)) for a in column.tolist()])
                for column in (labels.labeler_column(_FAMILY), labels.item_column(_FAMILY))
            )
            a, b = of_labelers[labeler], of_items[item]
            parts.append(np.where((a < 0) | (b < 0), np.nan, a == b))
        else:
            parts.append(_as_numbers(labels.item_column(name), name)[item])
    drawn = drawn_gold(labels)
    is_chosen = not (drawn >= 0).any()
    truth, y = labels.gold_codes if is_chosen else drawn, favourable[answer].astype(float)
    names, weights = labels.labelers.tolist(), gold_weights(labels)
    return _Verdicts(names, item, labeler, y, np.column_stack(parts), truth, weights, is_chosen)


def _as_numbers(values: npt.NDArray[Any], name: str) -> Floats:
    """A column as 0 and 1 if it has two values, else in standard deviations from its mean; NaN where it has none."""
    listed = values.tolist()
    present = [value for value in listed if not is_null(value)]
    distinct = list(dict.fromkeys(present))
    endless = [value for value in distinct if isinstance(value, float) and np.isinf(value)]
    wrong, are_numbers = "", numbers_of(distinct) is not None
    if endless:
        wrong = f"numbers of a column must be finite, got {preview(endless)} in {name!r}; leave these values empty"
    elif len(distinct) < 2:
        wrong = (
            f"items must differ in {name!r} for it to have an effect, got {preview(distinct)} for all; name another "
            "column"
        )
    elif len(distinct) == 2:
        is_ordered = are_numbers or isinstance(distinct[0], bool)
        second = max(distinct) if is_ordered else sorted(distinct, key=str)[1]
        return np.array([np.nan if is_null(value) else float(value == second) for value in listed])
    elif not are_numbers and not all(isinstance(value, str) for value in distinct):
        wrong = f"a column must have numbers, texts or two values, got {preview(distinct)} in {name!r}; name another"
    elif not are_numbers and len(distinct) < max(_MANY_TEXTS, len(present) / 2) and not _TEXTS.search(name.lower()):
        wrong = (
            f"a column must have numbers or two values, got the categories {preview(distinct)} in {name!r}; make a "
            "column of each category, or pass the length of texts as a number"
        )
    if wrong:
        raise InvalidLabels(wrong, parameter="on")
    size: Any = float if are_numbers else len
    numbers = np.array([np.nan if is_null(value) else float(size(value)) for value in listed])
    return np.asarray((numbers - np.nanmean(numbers)) / (float(np.nanstd(numbers)) or 1.0))


def _of_pairs(pairs: Pairs, columns: Sequence[str]) -> _Verdicts:
    """Verdicts for the first system of a contest by name; the column is 1/2 where it was shown first, else −1/2."""
    if list(columns) != [POSITION]:
        raise InvalidParameter(
            f"pairs have the column {POSITION!r} alone, got {preview(list(columns))}; pass `on={POSITION!r}`",
            parameter="on",
        )
    known = np.flatnonzero(pairs.shown != UNKNOWN)
    truth = np.full(pairs.n_contests, -1, dtype=np.int32)
    place = {contest: k for k, contest in enumerate(pairs.contests)}
    ways = {contest: pairs.drawn.get(contest, "chosen") for contest in pairs.gold}
    drawn = {contest: verdict for contest, verdict in pairs.gold.items() if ways[contest] != "chosen"}
    for contest, verdict in (drawn or pairs.gold).items():
        truth[place[contest]] = VERDICTS.index(verdict)
    wins = np.array([1.0, 0.0, 0.5])[pairs.verdict[known]]
    shown = np.where(pairs.shown[known] == REVERSED, -0.5, 0.5)
    at_random = sum(way == "random" for way in ways.values()) / pairs.n_contests
    weights = np.ones(pairs.n_contests)
    for contest in drawn:
        weights[place[contest]] = 1 / (at_random if ways[contest] == "random" else float(ways[contest]))
    return _Verdicts(
        pairs.judges.tolist(), pairs.contest[known], pairs.judge[known], wins, shown[:, None], truth, weights, not drawn
    )


def _effects_of(
    verdicts: _Verdicts, t: int, *, by_gold: bool, needs_truth: bool
) -> tuple[int, Floats, Floats, Floats] | None:
    """The number of items, the effects, their standard errors and degrees of freedom; None where they are unknown."""
    is_own = verdicts.labeler == t
    n_items = len(verdicts.truth)
    sums, squares, counts = (
        np.bincount(verdicts.item[~is_own], weights, n_items)
        for weights in (verdicts.y[~is_own], verdicts.y[~is_own] ** 2, None)
    )
    rows = is_own & ~np.isnan(verdicts.columns).any(axis=1)
    if by_gold:
        rows &= verdicts.truth[verdicts.item] >= 0
    elif needs_truth:
        rows &= counts[verdicts.item] > 1
    at = np.flatnonzero(rows)
    item, y, x = verdicts.item[at], verdicts.y[at], verdicts.columns[at]
    parts = [x, np.ones((len(at), 1))]
    if by_gold:
        seen = np.unique(verdicts.truth[item])
        parts += [(verdicts.truth[item] == k).astype(float)[:, None] for k in seen[1:]]
    elif needs_truth:
        parts.append((sums[item] / counts[item])[:, None])
    design = np.concatenate(parts, axis=1)
    products = design[:, :, None] * design[:, None, :]
    if not by_gold and needs_truth:
        n = counts[item]
        products[:, -1, -1] = (sums[item] ** 2 - squares[item]) / (n * (n - 1))
    weights = verdicts.weights[item][:, None] if by_gold else np.ones((len(at), 1))
    return _solve(item, products * weights[..., None], design * y[:, None] * weights, x.shape[1])


def _solve(item: Codes, products: Floats, targets: Floats, n_columns: int) -> tuple[int, Floats, Floats, Floats] | None:
    """The first coefficients of the normal equations, with the jackknife over items."""
    _, place = np.unique(item, return_inverse=True)
    n, width = int(place.max(initial=-1)) + 1, targets.shape[1]
    if n < max(LEAST_ITEMS, width + 2):
        return None
    left, right = np.zeros((n, width, width)), np.zeros((n, width))
    np.add.at(left, place, products)
    np.add.at(right, place, targets)
    whole, aim = left.sum(axis=0), right.sum(axis=0)
    if np.linalg.cond(whole) > _SINGULAR:
        return None
    found = np.linalg.solve(whole, aim)[:n_columns]
    without = whole - left
    if (np.linalg.cond(without) > _SINGULAR).any():  # all rests on one item
        return None
    shift = np.linalg.solve(without, (aim - right)[..., None])[:, :n_columns, 0]
    shift -= shift.mean(axis=0)
    second = (shift**2).sum(axis=0)
    spread = np.sqrt(second * (n - 1) / n * n / (n - width))
    kurtosis = (shift**4).sum(axis=0) / np.maximum(second**2, 1e-300) - 1 / n
    return n, found, spread, np.clip(2 / np.maximum(kurtosis, 1e-9), 3.0, None)
