"""May a judge replace a person? The alternative annotator test, and the answer of the core."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy.special import stdtr

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_choice,
    check_integer,
    check_number,
    did_you_mean,
    numbers_of,
    preview,
)
from trueup._base.wording import percent, some
from trueup.answers.answer import frame_of
from trueup.core.base import base_of
from trueup.core.features import build_features
from trueup.core.truth import LabelersApart, TruthModel, labels_of_base, own_centres
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each
from trueup.exceptions import InvalidLabels, InvalidParameter, silenced_warnings
from trueup.posteriors import DrawnEstimate, Estimate, beta_estimate

Scale = Literal["nominal", "ordinal", "interval"]
Humans = Literal["experts", "skilled", "crowd"]
EPSILONS: dict[Humans, float] = {"experts": 0.2, "skilled": 0.15, "crowd": 0.1}
LEAST_HUMANS = 3  # as the paper asks: with two there is nobody to agree on anything
LEAST_ITEMS = 30  # of a person, for the t-test


@dataclass(frozen=True)
class HumanComparison:
    """A judge and one person, both compared with the other people."""

    human: Hashable
    n_items: int  # with a vote of the judge, of this person and of at least one other
    judge_as_good: float  # the share of these where the judge is at least as near to the others as the person
    human_as_good: float  # and the reverse
    p_value: float  # of the hypothesis that the person's share is larger by ε or more
    won: bool  # whether the judge beats this person, all people tested together


@dataclass(frozen=True)
class JudgeReplacement:
    """Whether one judge may replace a person."""

    judge: Hashable
    passed: bool  # whether the winning rate is one half or more
    winning_rate: float  # ω, the share of people that the judge beats
    # ρ, the chance that the judge is at least as near to the others as a person, whoever is drawn; over items.
    advantage: Estimate
    # By how much the mean person errs more than the judge, from the core's draws of the truth: share of wrong votes, or
    # mean distance from the truth for ratings.
    difference: Estimate
    humans: tuple[HumanComparison, ...] = field(repr=False)

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        may = "may replace a person" if self.passed else "has not shown that it may replace a person"
        mean = float(np.mean([row.judge_as_good for row in self.humans]))
        return (
            f"{self.judge} {may}: it beats {sum(row.won for row in self.humans)} of {len(self.humans)} people "
            f"(ω = {self.winning_rate:.2f}), is at least as near to the others as a person on {percent(mean)} of items "
            f"(ρ), and errs less than the mean person with probability {self.prob_better:.2f}, human errors modelled."
        )

    @property
    def prob_better(self) -> float:
        """The probability that the judge errs less than the mean person, whose errors are modelled too.

        Where both err as much, half of the probability counts.
        """
        return (1.0 + self.difference.prob_above(0.0) - self.difference.prob_below(0.0)) / 2

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a person."""
        names = [part.name for part in fields(HumanComparison)]
        return frame_of(names, [[getattr(row, name) for name in names] for row in self.humans], backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "judge": str(self.judge),
            "passed": self.passed,
            "winning_rate": self.winning_rate,
            "advantage": self.advantage.to_dict(),
            "prob_better": self.prob_better,
            "difference": self.difference.to_dict(),
            "humans": [{**vars(row), "human": str(row.human)} for row in self.humans],
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Replacement(Mapping[Any, JudgeReplacement]):
    """Which judges may replace a person; ``answer["gpt"]`` has the answer for one."""

    judges: dict[Any, JudgeReplacement]
    epsilon: float  # what a judge is allowed to fall short by, since it costs less
    scale: Scale
    error: float  # the false discovery rate of the wins
    warnings: tuple[str, ...] = ()

    def __getitem__(self, judge: Any) -> JudgeReplacement:
        if judge not in self.judges:
            raise InvalidParameter(
                f"no judge {judge!r} was tested, there are {preview(list(self.judges))}"
                f"{did_you_mean(judge, self.judges)}",
                parameter="judges",
            )
        return self.judges[judge]

    def __contains__(self, judge: object) -> bool:
        return judge in self.judges

    def __iter__(self) -> Iterator[Any]:
        return iter(self.judges)

    def __len__(self) -> int:
        return len(self.judges)

    def to_frame(self, *, backend: str | None = None) -> Any:
        """One row a judge: judge, passed, winning_rate, advantage with its interval, prob_better."""
        columns = ("judge", "passed", "winning_rate", "advantage", "advantage_low", "advantage_high", "prob_better")
        rows = [
            (name, row.passed, row.winning_rate, row.advantage.mean, *row.advantage.interval(0.95), row.prob_better)
            for name, row in self.judges.items()
        ]
        return frame_of(columns, rows, backend)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-able."""
        return {
            "epsilon": self.epsilon,
            "scale": self.scale,
            "error": self.error,
            "judges": [row.to_dict() for row in self.judges.values()],
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        lines = [f"Replacement of people by {some(len(self), 'judge')} (ε = {self.epsilon:g}, {self.scale})"]
        lines += [f"  {row.sentence}" for row in self.judges.values()]
        return "\n".join(lines + [f"  ! {sentence}" for sentence in self.warnings])


def may_replace(
    labels: Labels,
    *,
    judges: Hashable | Sequence[Hashable],
    humans: Sequence[Hashable] | None = None,
    epsilon: float | Humans = "experts",
    scale: Scale = "nominal",
    error: float = 0.05,
    n_draws: int = 2048,
    random_state: RandomState = 0,
) -> Replacement:
    r"""Test whether judges may replace people: the alternative annotator test, and the core's answer.

    Each person in turn is left out, and person and judge are compared with the votes of the others. On an item the
    score is the share of the others that agree, or for ratings minus the root mean squared distance from them. The
    judge beats a person if the share of items where the person scores at least as well, less that where the judge does,
    is below ε: a one-sided t-test over items for each person, and all of them together by Benjamini and Yekutieli. The
    winning rate ω is the share of people beaten; the judge passes with one half. The average advantage probability ρ
    is the mean over people of the share of items where the judge scores at least as well.

    The test takes the other people for right. The core also gives an answer, which models that people err: truths
    are drawn given the votes of the people and this judge, and `JudgeReplacement.prob_better` is the probability that
    the judge errs less than the mean person, without any ε. Checked items of the labels correct it.

    Parameters
    ----------
    humans : sequence of labelers, optional
        At least three that share 30 items with the judge and others; by default all labelers that are not judges.
    epsilon : float or {"experts", "skilled", "crowd"}
        What the judge may fall short by, since it costs less: 0.2, 0.15 or 0.1 by who the people are.
    scale : {"nominal", "ordinal", "interval"}
        Whether votes agree or not, or how far they are apart: by the rank of classes that are numbers or were named in
        their order (``classes=…`` when votes are read), or by the numbers that they are.
    error : float. The false discovery rate.
    n_draws : int. Truths that the answer of the core rests on.
    random_state : int, Generator or None. For repeated votes, of which one at random counts, and for the draws.

    References
    ----------
    Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically Justify
    Replacing Human Annotators with LLMs", ACL, arXiv 2501.10970.

    Examples
    --------
    >>> import trueup as tu
    >>> accuracy = [0.75, 0.75, 0.75, 0.75, 0.9]
    >>> votes = tu.simulate.dawid_skene(n_items=300, accuracy=accuracy, n_labelers=5, random_state=0).labels
    >>> answer = tu.may_replace(votes, judges=[4], humans=[0, 1, 2, 3], epsilon="skilled")[4]
    >>> answer.passed, answer.winning_rate, answer.prob_better > 0.9
    (True, 1.0, True)
    """
    if not isinstance(labels, Labels):
        raise InvalidLabels(f"labels must be trueup.Labels, got {type(labels).__name__}; use Labels.from_frame")
    tested, people = _check_people(labels, judges, humans)
    allowed = EPSILONS[check_choice(epsilon, tuple(EPSILONS), name="epsilon")] if isinstance(epsilon, str) else epsilon
    check_number(allowed, name="epsilon", low=0.0, high=1.0)
    check_number(error, name="error", low=0.0, high=1.0, strict=True)
    check_integer(n_draws, name="n_draws", low=10)
    values = _values_of(labels, check_choice(scale, ("nominal", "ordinal", "interval"), name="scale"))
    rng = as_generator(random_state)
    seed = int(rng.integers(2**31))
    codes = _codes_of(labels, rng)
    of_people = codes[labels.labeler_codes(people)]
    answers, notes = {}, []
    for judge in tested:
        of_judge = codes[labels.labeler_codes([judge])[0]]
        rows, influence, left_out = compare_people(of_judge, of_people, people, values, allowed, error)
        if len(rows) < LEAST_HUMANS:
            raise InvalidLabels(
                f"at least {LEAST_HUMANS} people must share {LEAST_ITEMS} items with judge {judge!r} and another "
                f"person, got {len(rows) or 'nobody'}; collect more votes on the same items",
                parameter="humans",
            )
        if left_out:
            names = preview(left_out)
            notes.append(f"Left out with fewer than {LEAST_ITEMS} items shared with {judge}: {names}.")
        with silenced_warnings():
            kept = np.array([name not in left_out for name in people])
            difference = _difference(labels, judge, people, of_judge, of_people, kept, values, n_draws, seed)
        answers[judge] = _answer(judge, rows, influence, difference)
    if scale == "nominal" and labels.n_classes > 2 and numbers_of(labels.classes.tolist()) is not None:
        notes.append("The classes are numbers; pass `scale='interval'` if they are ratings.")
    return Replacement(answers, float(allowed), scale, error, tuple(dict.fromkeys(notes)))


def _check_people(
    labels: Labels, judges: Hashable | Sequence[Hashable], humans: Sequence[Hashable] | None
) -> tuple[list[Any], list[Any]]:
    """Judges and people, all of them labelers and nobody both."""
    tested = list(judges) if isinstance(judges, list | tuple | set | np.ndarray) else [judges]
    if not tested:
        raise InvalidParameter("`judges` must name a labeler, got none; name whom to test")
    labels.labeler_codes(tested)
    if humans is not None and (isinstance(humans, str) or not isinstance(humans, Iterable)):
        raise InvalidParameter(
            f"`humans` must be a sequence of labelers, got {humans!r}; pass a list of {LEAST_HUMANS} or more",
        )
    people = [name for name in labels.labelers.tolist() if name not in tested] if humans is None else list(humans)
    labels.labeler_codes(people)
    both = [name for name in people if name in tested]
    if both:
        raise InvalidParameter(
            f"nobody can be judge and person at once, got {preview(both)} among both; leave them out of one",
            parameter="humans",
        )
    if len(set(people)) < LEAST_HUMANS:
        raise InvalidParameter(
            f"`humans` must be at least {LEAST_HUMANS} people, got {len(set(people))}; with fewer there is nobody to "
            "agree with, so ask one more, or compare with checked items by `trueup.compare`",
        )
    return tested, list(dict.fromkeys(people))


def _values_of(labels: Labels, scale: Scale) -> Floats | None:
    """The number of each class; None where classes are the same or not."""
    if scale == "nominal":
        return None
    names = labels.classes.tolist()
    numbers = numbers_of(names)
    if numbers is not None:
        return np.array(numbers) if scale == "interval" else np.unique(numbers, return_inverse=True)[1].astype(float)
    if scale == "interval":
        raise InvalidParameter(
            f"classes must be numbers for `scale='interval'`, got {preview(names)}; pass `scale='ordinal'` for classes "
            "in order",
            parameter="scale",
        )
    if not labels.fixed_classes and len(names) > 2:
        raise InvalidParameter(
            f"classes must be in order for `scale='ordinal'`, got {preview(names)} in the order of the alphabet; name "
            "them in their order with `classes=…` when the votes are read",
            parameter="scale",
        )
    return np.arange(len(names), dtype=float)


def _codes_of(labels: Labels, rng: np.random.Generator) -> Codes:
    """The class that each labeler names for each item, -1 for none, shape (n_labelers, n_items)."""
    item, labeler, answer, _ = one_vote_each(labels, rng).vote_table()
    codes = np.full((labels.n_labelers, labels.n_items), -1, dtype=np.int32)
    named = answer < labels.n_classes
    codes[labeler[named], item[named]] = answer[named]
    return codes


def compare_people(
    judge: Codes, humans: Codes, names: Sequence[Any], values: Floats | None, epsilon: float, error: float
) -> tuple[list[HumanComparison], Floats, list[Any]]:
    """Compare a judge with each person by the votes of the other people; those of people are humans × items."""
    has_vote = humans >= 0
    n_others = has_vote.sum(axis=0)
    kept, found, left_out = [], [], []
    influence = np.zeros(len(judge))
    for k, name in enumerate(names):
        items = np.flatnonzero(has_vote[k] & (judge >= 0) & (n_others > 1))
        if len(items) < LEAST_ITEMS:
            left_out.append(name)
            continue
        others = np.delete(humans[:, items], k, axis=0)
        of_judge, of_human = (distance_to_others(row[items], others, values) for row in (judge, humans[k]))
        as_good = of_judge <= of_human
        shortfall = (of_human <= of_judge).astype(float) - as_good
        spread = shortfall.std(ddof=1) / np.sqrt(len(items))
        gap = shortfall.mean() - epsilon
        p_value = float(stdtr(len(items) - 1, gap / spread)) if spread > 0 else float(gap >= 0)
        kept.append((name, len(items), float(as_good.mean()), float((of_human <= of_judge).mean()), p_value))
        found.append(items)
        influence[items] += (as_good - as_good.mean()) / len(items)
    won: Any = scipy.stats.false_discovery_control([row[-1] for row in kept], method="by") <= error if kept else []
    rows = [HumanComparison(*row, won=bool(is_won)) for row, is_won in zip(kept, won, strict=True)]
    return rows, influence / max(len(rows), 1), left_out


def distance_to_others(votes: Codes, others: Codes, values: Floats | None) -> npt.NDArray[Any]:
    """How far a vote on each item is from those of the others: how many differ, or the sum of squared distances."""
    voted = others >= 0
    gaps = others != votes if values is None else (values[others] - values[votes]) ** 2
    return np.asarray((gaps * voted).sum(axis=0))


def _difference(
    labels: Labels,
    judge: Hashable,
    people: Sequence[Hashable],
    of_judge: Codes,
    of_people: Codes,
    kept: Booleans,
    values: Floats | None,
    n_draws: int,
    seed: int,
) -> Estimate:
    """By how much people err more than the judge on the items they share, over the core's draws of the truth.

    The votes of other judges are left out: judges err together and would outvote people. The core has two systems, the
    judge and a person drawn at random for each item, whose expected accuracy is that of people whose own votes are
    divided out. Errors are then counted over all votes of the people who are kept; the votes of the others say what is
    true.
    """
    part = labels.select(labelers=[judge, *people])
    people, of_people = [name for name, is_kept in zip(people, kept, strict=True) if is_kept], of_people[kept]
    shared = (of_judge >= 0) & (of_people >= 0)
    items = np.flatnonzero(shared.any(axis=0))
    order = np.random.default_rng([seed, 1]).random(of_people.shape)
    anyone = np.where(of_people >= 0, order, -1.0).argmax(axis=0)
    codes = np.stack([of_judge, of_people[anyone, np.arange(labels.n_items)]])
    base, apart = base_of(labels_of_base(part)), LabelersApart(labels_of_base(part))
    places = part.labeler_codes(people)
    centres = own_centres(part, base, codes, np.array([part.labeler_codes([judge])[0], -1]))
    of_person = np.mean([_expected_level(apart, place, row) for place, row in zip(places, of_people, strict=True)])
    centres[np.flatnonzero(np.asarray(build_features(base, codes).systems) == 1)] = of_person
    model = TruthModel(part, base, codes, centres=centres, may_sample=False, n_draws=n_draws, seed=seed)
    truth = model.truth.truths[:, items]
    weights = shared[:, items] / np.maximum(shared.sum(axis=1, keepdims=True), 1)
    weights = weights[shared.any(axis=1)]
    gain = np.zeros(len(truth))
    for row, weight in zip(of_people[shared.any(axis=1)][:, items], weights / len(weights), strict=True):
        at = np.flatnonzero(weight)
        drawn = truth[:, at]
        gain += (_loss(drawn, row[at], values) - _loss(drawn, of_judge[items[at]], values)) @ weight[at]
    gain[np.abs(gain) < 1e-12] = 0.0  # as many errors, summed in another order
    reach = 1.0 if values is None else float(np.ptp(values)) or 1.0
    return DrawnEstimate(gain, bounds=(-reach, reach), name="difference")


def _expected_level(apart: LabelersApart, place: int, votes: Codes) -> float:
    """How often a labeler is right by the votes of the others."""
    items = np.flatnonzero(votes >= 0)
    return float(apart.base(place, items)[np.arange(len(items)), votes[items]].mean()) if len(items) else 0.5


def _loss(truth: Codes, votes: Codes, values: Floats | None) -> Floats:
    """What a vote costs in each draw of the truth: 1 if it is wrong, or its distance from the truth."""
    return np.asarray(truth != votes if values is None else np.abs(values[truth] - values[votes]), dtype=float)


def _answer(
    judge: Hashable, rows: Sequence[HumanComparison], influence: Floats, difference: Estimate
) -> JudgeReplacement:
    rate = sum(row.won for row in rows) / len(rows)
    mean = float(np.mean([row.judge_as_good for row in rows]))
    variance = float((influence**2).sum())
    # Always or never as good: Jeffreys' prior, so that the interval has a width.
    size, prior = (mean * (1 - mean) / variance, 0.0) if variance > 0 else (max(row.n_items for row in rows), 0.5)
    advantage = beta_estimate(mean * size + prior, (1 - mean) * size + prior, name="advantage")
    return JudgeReplacement(judge, rate >= 0.5, rate, advantage, difference, tuple(rows))
