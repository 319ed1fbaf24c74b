"""Every keyword of every door counts: it changes the answer, or it raises. A new keyword needs a row here.

A row holds what both calls have in common and what the second call adds; the keyword of the row must be part of that.
"""

import inspect
import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.exceptions import TrueupError, TrueupWarning

# What says how, and not what: chance, the level of intervals, who is told of progress, and resources.
NOT_ASKED = {"random_state", "level", "progress", "n_jobs", "engine"}
N_ITEMS = 60
FAST = {"noise": "dawid-skene", "n_draws": 60, "n_warmup": 30}
PLAIN = {"noise": None, "n_warmup": None}


@dataclass(frozen=True)
class Row:
    """One keyword: what the second call says beyond the first, and what both say."""

    changed: dict[str, Any]
    both: dict[str, Any] = field(default_factory=dict)


class Data:
    """Votes of three labelers who err together on some items, a few gold items, and systems."""

    def __init__(self):
        rng = np.random.default_rng(8)
        self.truth = (rng.random(N_ITEMS) < 0.35).astype(int)
        self.X = np.stack([2.0 * self.truth + rng.normal(size=N_ITEMS), rng.normal(size=N_ITEMS)], axis=1)
        right = rng.random((N_ITEMS, 4)) < [0.9, 0.8, 0.7, 0.7]
        right[rng.random(N_ITEMS) < 0.3, 1:] = False
        votes = np.where(right, self.truth[:, None], 1 - self.truth[:, None])
        self.labels = tu.Labels.from_matrix(votes, classes=[0, 1]).with_gold(dict(enumerate(self.truth[:5].tolist())))
        self.scores = self.truth + rng.normal(size=N_ITEMS)
        self.other_scores = self.truth + 2 * rng.normal(size=N_ITEMS)
        self.classes, self.other = (self.scores > 0.5).astype(int), (self.other_scores > 0.5).astype(int)


def dependent_votes():
    """Eight labelers who err together on hard items."""
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(2, size=300), rng.random(300) < 0.4
    wrong = rng.random((300, 8)) < np.where(hard, 0.45, 0.02)[:, None]
    return tu.Labels.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]), classes=[0, 1]), truth


DATA = Data()
DEPENDENT, DEPENDENT_TRUTH = dependent_votes()
LAST = N_ITEMS - 1
PARTLY = dict(enumerate(DATA.classes[:-10].tolist()))
HALVES = {item: item % 2 for item in range(N_ITEMS)}
WEIGHTS = {item: 1.0 + item % 3 for item in range(N_ITEMS)}
NO_FOLDER = "sqlite:///no/such/folder/test.db"
WITH_UNKNOWN_ITEM = {**dict(enumerate(DATA.classes.tolist())), "nowhere": 1}
WITH_UNKNOWN_CLASS = {**dict(enumerate(DATA.classes.tolist())), LAST: 7}


def run_evaluate(predictions=DATA.classes, labels=DATA.labels, **options):
    said = {name: value for name, value in {**FAST, **options}.items() if value is not None}
    answer = tu.evaluate(predictions, labels, **said)
    return {name: (answer[name].mean, answer[name].std) for name in answer}, answer.n_items, answer.warnings


def run_compare(systems=None, labels=DATA.labels, **options):
    systems = {"a": DATA.classes, "b": DATA.other} if systems is None else systems
    said = {name: value for name, value in {**FAST, **options}.items() if value is not None}
    answer = tu.compare(systems, labels, **said)
    return {name: (answer[name].mean, answer[name].std) for name in answer}, answer.n_items, answer.warnings


def run_auc(scores=DATA.scores, **options):
    said = ({} if "view" in options else FAST) | options
    answer = tu.auc(scores, DATA.labels, **{name: value for name, value in said.items() if value is not None})
    return answer.mean, answer.std


def run_active_test(predictions=DATA.classes, **options):
    test = tu.ActiveTest(predictions, DATA.labels, **{"noise": "dawid-skene", **options})
    asked = list(test.ask(40))  # from 20 on a rule may stop it
    test.tell({item: int(DATA.truth[item]) for item in asked})
    estimate = test.estimate("a" if isinstance(predictions, dict) else None)
    return asked, estimate.mean, estimate.std, test.finished


def run_cleaning_advisor(estimator=None, **options):
    estimator = LogisticRegression() if estimator is None else estimator
    advisor = tu.CleaningAdvisor(estimator, DATA.X, DATA.labels, **options)
    asked = []
    for _ in range(3):
        batch = list(advisor.ask(2))
        asked += batch
        advisor.tell({item: int(DATA.truth[item]) for item in batch})
    return asked, advisor.score_.mean, advisor.spent, advisor.finished


def run_scorer(metric="f1", **options):
    model = LogisticRegression().fit(DATA.X, DATA.truth)
    estimate = tu.scorer(metric, DATA.labels, **options).estimate(model, DATA.X, np.arange(N_ITEMS))
    return estimate.mean, estimate.std


DEPENDENT_PAIRS = tu.Pairs.from_rows(
    (item, f"judge-{judge}", "a", "b", 0, int(vote))
    for item, votes in enumerate(DEPENDENT.votes.toarray()[:, 1::2].astype(int))
    for judge, vote in enumerate(votes)
)
PAIRS = tu.simulate.pairs(n_contests=40, n_systems=3, ties=0.2, random_state=0).pairs


def run_preferences(pairs=PAIRS, **options):
    said = {**FAST, "noise": "mirrored", **options}
    answer = tu.preferences(pairs, **{name: value for name, value in said.items() if value is not None})
    rate = answer.win_rate(*answer.ranking[:2])
    return (
        [(answer.strength(name).mean, answer.strength(name).std) for name in answer.ranking],
        rate.std,
        answer.warnings,
    )


class Slow(LogisticRegression):
    """A classifier without a fast path, for which a shortlist is trained."""


DOORS = {
    "evaluate": (tu.evaluate, run_evaluate),
    "compare": (tu.compare, run_compare),
    "auc": (tu.auc, run_auc),
    "ActiveTest": (tu.ActiveTest, run_active_test),
    "CleaningAdvisor": (tu.CleaningAdvisor, run_cleaning_advisor),
    "scorer": (tu.scorer, run_scorer),
    "preferences": (tu.preferences, run_preferences),
}
ROWS = {
    "evaluate": {
        "noise": Row({"noise": "one-coin"}),
        "prior": Row({"prior": tu.CrowdPrior(level_scale=0.2)}, PLAIN),
        "metrics": Row({"metrics": ["mcc"]}),
        "method": Row({"method": "majority"}, {"n_draws": None, "n_warmup": None}),
        "target": Row({"target": "population"}),
        "positive": Row({"positive": 0}),
        "missing": Row({"missing": "ignore"}, {"predictions": PARTLY}),
        "unknown": Row({"unknown": "ignore"}, {"predictions": WITH_UNKNOWN_ITEM}),
        "unknown_class": Row({"unknown_class": "ignore"}, {"predictions": WITH_UNKNOWN_CLASS, "missing": "ignore"}),
        "truth": Row({"truth": DATA.truth}, {"method": "ideal", "n_draws": None, "n_warmup": None, "noise": None}),
        "by": Row({"by": HALVES}),
        "cluster": Row({"cluster": HALVES}, PLAIN),
        "weights": Row({"weights": WEIGHTS}, {**PLAIN, "target": "population"}),
        "check_dependence": Row({"check_dependence": False}, {"labels": DEPENDENT, "predictions": DEPENDENT_TRUTH}),
        "options": Row({"n_drawn": 3}),
    },
    "compare": {
        "metric": Row({"metric": "f1"}),
        "noise": Row({"noise": "one-coin"}),
        "prior": Row({"prior": tu.CrowdPrior(level_scale=0.2)}, PLAIN),
        "target": Row({"target": "population"}, {"target": "sample"}),
        "positive": Row({"positive": 0}, {"metric": "precision"}),
        "items": Row({"items": "own"}, {"systems": {"a": PARTLY, "b": DATA.other}}),
        "unknown": Row({"unknown": "error"}, {"systems": {"a": WITH_UNKNOWN_ITEM, "b": DATA.other}}),
        "unknown_class": Row({"unknown_class": "ignore"}, {"systems": {"a": WITH_UNKNOWN_CLASS, "b": DATA.other}}),
        "by": Row({"by": HALVES}),
        "cluster": Row({"cluster": HALVES}, PLAIN),
        "weights": Row({"weights": WEIGHTS}, {**PLAIN, "target": "population"}),
        "n_draws": Row({"n_draws": 80}),
        "check_dependence": Row(
            {"check_dependence": False},
            {"labels": DEPENDENT, "systems": {"a": DEPENDENT_TRUTH, "b": 1 - DEPENDENT_TRUTH}},
        ),
        "sampling": Row({"n_warm": 3}),
    },
    "auc": {
        "view": Row({"view": "deterministic"}),
        "noise": Row({"noise": "one-coin"}),
        "prior": Row({"prior": tu.CrowdPrior(level_scale=0.2)}, PLAIN),
        "target": Row({"target": "population"}),
        "positive": Row({"positive": 0}, {"scores": tu.Predictions.from_scores(DATA.scores, positive=1)}),
        "n_draws": Row({"n_draws": 80}),
        "sampling": Row({"n_warm": 3}),
    },
    "ActiveTest": {
        "metric": Row({"metric": "f1"}),
        "strategy": Row({"strategy": "uncertainty"}),
        "estimator": Row({"estimator": "bayes"}),
        "experts": Row({"experts": "fallible"}),
        "noise": Row({"noise": "one-coin"}),
        "categories": Row({"categories": (np.arange(N_ITEMS) < 40).tolist()}, {"metric": "f1"}),
        "budget": Row({"budget": 12}),
        "half_width": Row({"half_width": 0.9}),
        "prob_better": Row({"prob_better": 0.5}, {"predictions": {"a": DATA.classes, "b": DATA.other}}),
        "target": Row({"target": "population"}),
        "positive": Row({"positive": 0}, {"metric": "precision"}),
        "blind": Row({"blind": False}),
        "overlap": Row({"overlap": 1.5}),
        "repeat": Row({"repeat": 1.5}),
        "checks": Row({"checks": 1.5}),
        "storage": Row({"storage": NO_FOLDER, "name": "q3"}),
        "name": Row({"name": "q3"}),
        "options": Row({"flor": 0.5}),
    },
    "CleaningAdvisor": {
        "noise": Row({"noise": "one-coin"}),
        "metric": Row({"metric": "f1"}),
        "strategy": Row({"strategy": "noise-rate"}),
        "split": Row({"split": False}),
        "validation": Row({"validation": 0.5}),
        "weigh": Row({"weigh": False}),
        "prune": Row({"prune": 1.0}),
        "shortlist": Row({"shortlist": 1}, {"estimator": Slow()}),
        "costs": Row({"costs": (1.0 + np.arange(N_ITEMS) % 7).tolist()}),
        "budget": Row({"budget": 6}),
        "min_improvement": Row({"min_improvement": 0.9}),
        "positive": Row({"positive": 0}, {"metric": "precision"}),
        "memory_limit": Row({"memory_limit": 0}),
        "storage": Row({"storage": NO_FOLDER, "name": "q3"}),
        "name": Row({"name": "q3"}),
        "options": Row({"belive": "votes"}),
    },
    "scorer": {"noise": Row({"noise": "one-coin"}), "positive": Row({"positive": 0}), "n_draws": Row({"n_draws": 80})},
    "preferences": {
        "ties": Row({"ties": "class"}),
        "noise": Row({"noise": "one-coin"}),
        "prior": Row({"prior": tu.CrowdPrior(level_scale=0.2)}, PLAIN),
        "target": Row({"target": "sample"}),
        "check_dependence": Row({"check_dependence": False}, {"pairs": DEPENDENT_PAIRS}),
        "options": Row({"n_warm": 3}),
    },
}


def outcome(run, options):
    """The answer, or the sentence of the error; a value of None leaves an option out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)
        try:
            return run(**options)
        except TrueupError as error:
            return f"{type(error).__name__}: {error}"


@cache
def outcome_without_options(door):
    """Most rows are held against it."""
    return outcome(DOORS[door][1], {})


@pytest.mark.parametrize("door", DOORS)
def test_every_keyword_has_a_row(door):
    parameters = inspect.signature(DOORS[door][0]).parameters.values()
    asked = {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD)} - NOT_ASKED
    assert set(ROWS[door]) == asked


@pytest.mark.parametrize(("door", "keyword"), [(door, keyword) for door, rows in ROWS.items() for keyword in rows])
def test_a_keyword_changes_the_answer_or_raises(door, keyword):
    function, run = DOORS[door]
    row = ROWS[door][keyword]
    assert keyword in row.changed or inspect.signature(function).parameters[keyword].kind.name == "VAR_KEYWORD"
    before = outcome(run, row.both) if row.both else outcome_without_options(door)
    assert repr(outcome(run, {**row.both, **row.changed})) != repr(before)
