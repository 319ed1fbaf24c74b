"""What a condition of a gate asks of the true classes: the sign of a sum over items.

A mean such as accuracy is at least b where the sum of (1 if right, else 0) − b over the items is not negative, and a
quotient such as recall where the sum of its numerator minus b times its denominator is not. So every such condition
is a table of what each item adds, for each class that it may have.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from trueup._base.types import Booleans, Codes, Floats
from trueup.answers.evaluation import Evaluation
from trueup.answers.gates import Asked, Gate, Subject
from trueup.answers.preferences import Preferences
from trueup.answers.share import Shares
from trueup.exceptions import InvalidParameter
from trueup.metrics import Metric
from trueup.metrics.score_groups import ratio

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Condition:
    """A gate as sums over items: it is about the sum of one table over the sum of another."""

    gate: Gate
    numerator: Floats = field(repr=False)  # (n_items, n_classes): what an item adds where it is of a class
    denominator: Floats = field(repr=False)
    groups: list[Booleans] = field(repr=False)  # the items of each mean that the number is made of
    bounds: tuple[float, float]  # of the number

    @property
    def terms(self) -> Floats:
        """What an item adds to the sum that is positive where the condition is met, shape (n_items, n_classes)."""
        sign = 1.0 if self.gate.side in ("at least", "above") else -1.0
        return np.asarray(sign * (self.numerator - self.gate.bound * self.denominator))

    @property
    def includes_bound(self) -> bool:
        """Whether the condition is met on the bound itself."""
        return self.gate.side in ("at least", "at most")

    def is_met(self, numbers: Floats) -> Booleans:
        """In which draws the condition is met."""
        sign = 1.0 if self.gate.side in ("at least", "above") else -1.0
        beyond = sign * (numbers - self.gate.bound)
        return np.asarray(beyond >= -_TOLERANCE if self.includes_bound else beyond > _TOLERANCE)

    def numbers(self, truths: Codes) -> Floats:
        """The number that the condition is about, for truths of shape (n_draws, n_items)."""
        items = np.arange(truths.shape[1])
        sums = [np.array([table[items, row].sum() for row in truths]) for table in (self.numerator, self.denominator)]
        return ratio(*sums)


def conditions_of(subject: Subject, asked: list[Asked]) -> list[Condition]:
    """The conditions of gates on an answer."""
    conditions = []
    for gate, estimate, metric in asked:
        if isinstance(subject.answer, Preferences):
            tables = _win_rate(subject.answer, gate.candidate, gate.reference)
        else:
            tables = _quotient(subject, metric, gate.candidate)
            if gate.reference is not None:
                tables = _difference(tables, _quotient(subject, metric, gate.reference), metric)
        conditions.append(Condition(gate, *tables, subject.groups_of(gate), estimate.bounds))
    return conditions


def _win_rate(answer: Preferences, candidate: Hashable, reference: Hashable) -> tuple[Floats, Floats]:
    """Wins of one system over another, a tie half a win, and contests of the two."""
    members = answer.contests_of(candidate, reference)
    place = answer.pairs.systems.tolist().index(candidate)
    contests = np.asarray(answer.evaluation.labels.items.tolist(), dtype=np.int64)
    is_first = answer.pairs.sides[contests, 0] == place
    n_classes = answer.evaluation.labels.n_classes
    wins = np.where(is_first[:, None], [1.0, 0.0, 0.5][:n_classes], [0.0, 1.0, 0.5][:n_classes])
    return _mean_over(members, wins, None)


def _quotient(subject: Subject, metric: str, name: Hashable | None) -> tuple[Floats, Floats]:
    """The metric of a system or group as a sum over another."""
    evaluation = subject.evaluation
    labels, population = evaluation.labels, evaluation.task.population
    weights = None if population is None else population.weights
    if isinstance(subject.answer, Shares):
        scores = np.diagonal(_cells(subject.answer.evaluation.metric(metric), labels.n_classes))
        members = np.ones(labels.n_items, bool) if name is None else subject.answer.slicing.members(name)
        members = members & np.asarray(evaluation.task.outputs.has_output("classes").any(axis=0))
        return _mean_over(members, np.broadcast_to(scores, (labels.n_items, labels.n_classes)), weights)
    codes = evaluation.task.outputs.codes
    if codes is None or subject.measure(metric).needs != "counts":
        raise InvalidParameter(
            f"a decision needs a metric that counts items by class, got {metric!r}; name accuracy, recall, precision, "
            "f1 or another of `trueup.metrics.list_metrics`",
            parameter="metric",
        )
    names = evaluation.task.outputs.systems.tolist()
    row = codes[0 if isinstance(evaluation, Evaluation) else names.index(name)]
    numerator, denominator = parts_of(subject.measure(metric), labels.n_classes)
    judged = row >= 0
    tables = [np.where(judged[:, None], part[:, row].T, 0.0) for part in (numerator, denominator)]
    if weights is not None:
        tables = [table * weights[:, None] for table in tables]
    total = tables[1].mean(axis=1).sum()
    return tables[0] / total, tables[1] / total


def _mean_over(members: Booleans, values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """The mean of values over some items, as tables of shape (n_items, n_classes)."""
    counts = members * (1.0 if weights is None else weights)
    each = np.broadcast_to((counts / counts.sum())[:, None], values.shape)
    return np.asarray(values * each), np.asarray(each)


def _difference(first: tuple[Floats, Floats], second: tuple[Floats, Floats], metric: str) -> tuple[Floats, Floats]:
    """One number minus another."""
    if all(np.ptp(denominator, axis=1).max() < _TOLERANCE for _, denominator in (first, second)):
        total = first[1] + second[1]
        return first[0] - second[0], total / total.mean(axis=1).sum()
    if np.allclose(first[1], second[1], atol=_TOLERANCE):
        return first[0] - second[0], first[1]
    raise InvalidParameter(
        "a decision between two systems needs a metric with the same items below the line for both, as accuracy and "
        f"recall are, got {metric!r}; name one of those, or set a bound for one system",
        parameter="metric",
    )


def parts_of(metric: Metric, n_classes: int) -> tuple[Floats, Floats]:
    """What an item adds above and below the line of a metric, by its true class (rows) and predicted one.

    Examples
    --------
    >>> from trueup.metrics import as_metrics
    >>> above, below = parts_of(as_metrics(["recall"], ["no", "yes"], "yes")["recall"], 2)
    >>> above.round(6).tolist(), below.round(6).tolist()
    ([[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 1.0]])
    """
    cells = _cells(metric, n_classes)
    rng = np.random.default_rng(0)
    counts = rng.gamma(1.0, 10.0, (2 * n_classes**2 + 20, n_classes, n_classes))
    values = metric(counts)
    if np.isfinite(cells).all() and np.allclose(values, (counts * cells).sum(axis=(1, 2)) / counts.sum(axis=(1, 2))):
        return cells, np.ones_like(cells)
    if n_classes <= 16:  # the equations below have as many unknowns as two tables have cells
        # value · (below · counts) = above · counts for all counts: the null space of these equations, of one dimension.
        flat = counts.reshape(len(counts), -1) / counts.sum(axis=(1, 2))[:, None]
        _, sizes, directions = np.linalg.svd(np.hstack([flat, -values[:, None] * flat]))
        if sizes[-1] < 1e-9 * sizes[0] < sizes[-2] * 1e-3:
            above, below = directions[-1].reshape(2, n_classes, n_classes)
            largest = below.ravel()[np.abs(below).argmax()]
            above, below = (np.where(np.abs(part / largest) < 1e-7, 0.0, part / largest) for part in (above, below))
            if (below >= 0).all():
                return above, below
    raise InvalidParameter(
        "a decision needs a metric that is a mean over items or a quotient of two counts, as accuracy, recall and f1 "
        f"are, got {metric.name!r}; name one of those",
        parameter="metric",
    )


def _cells(metric: Metric, n_classes: int) -> Floats:
    """The metric of a single item, by its true class (rows) and predicted one."""
    one = np.eye(n_classes**2).reshape(-1, n_classes, n_classes)
    return np.asarray(metric(one)).reshape(n_classes, n_classes)
