"""What every strategy keeps to, of active testing and of cleaning, as checks; CONTRIBUTING.md has examples.

Each check takes a strategy. Those of active testing also take the metric of the session they are tried in, for
strategies that know some metrics only.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from trueup._base.types import Floats
from trueup.active import ActiveTest, Strategy
from trueup.cleaning import CleaningAdvisor, CleaningStrategy
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.testing.noise import example_labels, refusal

_N_ITEMS = 60
_METRIC = "precision@5"


def _example(*, reverse: bool = False) -> tuple[Labels, dict[str, Floats], dict[Any, int]]:
    """Votes, the scores of two systems, and the truth of each item; on request in the opposite order."""
    labels, truth = example_labels(n_items=_N_ITEMS, n_classes=2)
    rng = np.random.default_rng(1)
    scores = {name: truth * skill + rng.normal(size=_N_ITEMS) for name, skill in (("good", 2.0), ("fair", 0.7))}
    known = dict(zip(labels.items.tolist(), truth.tolist(), strict=True))
    if reverse:
        item, labeler, answer, _ = labels.vote_table()
        votes = np.full((_N_ITEMS, labels.n_labelers), -1)
        votes[_N_ITEMS - 1 - item, labeler] = answer
        labels = Labels.from_matrix(votes, items=labels.items[::-1].tolist(), classes=labels.classes.tolist())
        scores = {name: values[::-1] for name, values in scores.items()}
    return labels, scores, known


def _session_of(strategy: Any, metric: str = _METRIC, *, reverse: bool = False) -> tuple[Any, dict[Any, int]]:
    """A session of active testing or of cleaning after some answers, and the truth of each item."""
    labels, scores, truth = _example(reverse=reverse)
    session: ActiveTest | CleaningAdvisor
    if isinstance(strategy, CleaningStrategy):
        from sklearn.linear_model import LogisticRegression

        features = np.column_stack(list(scores.values()))
        session = CleaningAdvisor(LogisticRegression(), features, labels, strategy=strategy)
    else:
        session = ActiveTest(scores, labels, metric=metric, strategy=strategy, noise="majority")
    session.tell({item: truth[item] for item in sorted(truth)[:6]})
    return session, truth


def _assert_sentences(reasons: Sequence[str], n: int) -> None:
    assert len(reasons) == n, "one sentence for each item"
    for sentence in reasons:
        assert sentence.strip().endswith("."), f"a sentence, got {sentence!r}"
        assert "\n" not in sentence


def check_stateless(strategy: Any, metric: str = _METRIC) -> None:
    """A strategy is a frozen dataclass of its options, that can be compared and hashed, and keeps nothing else."""
    assert isinstance(strategy, Strategy | CleaningStrategy)
    assert strategy.name == str(strategy.name), "a strategy has a name"
    assert is_dataclass(strategy), "a strategy is a dataclass of its options"
    kind: Any = type(strategy)
    assert kind.__dataclass_params__.frozen, "a strategy cannot be changed: make the dataclass frozen"
    assert isinstance(hash(strategy), int), "what is worked out for a strategy is kept by it"
    options = {option.name: getattr(strategy, option.name) for option in fields(strategy)}
    assert kind(**options) == strategy, "the options are all there is"
    state = _session_of(strategy, metric)[0].state
    before = dict(vars(strategy))
    assert np.array_equal(strategy.scores(state), strategy.scores(state)), "the same state gives the same scores"
    assert vars(strategy) == before, "a strategy keeps nothing of what it saw"


def check_replay(strategy: Any, metric: str = _METRIC) -> None:
    """What is asked next is a function of the log: a session that is replayed asks the same again."""
    session, truth = _session_of(strategy, metric)
    asked = list(session.ask(3))
    session.tell({item: truth[item] for item in asked[:2]})
    session.skip(asked[2:])
    replayed, written = session.replay(session.log), session.replay(session.to_json())
    expected = session.ask(3).details
    assert replayed.ask(3).details == expected, "a replayed session asks the same"
    assert written.ask(3).details == expected, "a session that was written asks the same"


def check_pickle(strategy: Any, metric: str = _METRIC) -> None:
    """A strategy can be sent to another process."""
    again = pickle.loads(pickle.dumps(strategy))
    assert again == strategy
    state = _session_of(strategy, metric)[0].state
    assert np.array_equal(again.scores(state), strategy.scores(state))


# ---------------------------------------------------------------------- active testing


def check_scores(strategy: Strategy, metric: str = _METRIC) -> None:
    """One finite score for each item, not negative, and 0 for those that cannot be asked."""
    test, _ = _session_of(strategy, metric)
    scores = strategy.scores(test.state)
    assert scores.shape == (_N_ITEMS,)
    assert np.isfinite(scores).all()
    assert (scores >= 0).all()
    assert (scores[~test.state.available] == 0).all(), "what is known is not wanted"
    asked = list(test.ask(4))
    assert len(set(asked)) == 4
    assert not set(asked) & {event.item for event in test.log if event.kind == "tell"}


def check_chances(strategy: Strategy, metric: str = _METRIC) -> None:
    """Chances sum to one, and each is written in the log; a strategy without chance has none to give."""
    test, _ = _session_of(strategy, metric)
    if strategy.is_random:
        chances = strategy.propensities(test.state)
        assert np.isclose(chances.sum(), 1)
        assert (chances[test.state.available] > 0).all(), "every item can be drawn, or no interval holds"
        assert np.array_equal(chances, strategy.scores(test.state)), "the score is the chance"
    else:
        due = "a strategy that does not draw has no chances to give"
        refusal(lambda: strategy.propensities(test.state), InvalidParameter, due)
    details = test.ask(4).details
    assert [event.propensity for event in test.log[-4:]] == [one.propensity for one in details]
    assert all((one.propensity is not None) == strategy.is_random for one in details)


def check_order(strategy: Strategy, metric: str = _METRIC) -> None:
    """The order of the items does not matter."""
    scores = strategy.scores(_session_of(strategy, metric)[0].state)
    turned = strategy.scores(_session_of(strategy, metric, reverse=True)[0].state)
    assert np.allclose(scores, turned[::-1], atol=1e-8)


def check_reasons(strategy: Strategy, metric: str = _METRIC) -> None:
    """A strategy says why it asks, in one sentence for each item."""
    test, _ = _session_of(strategy, metric)
    _assert_sentences(strategy.reasons(test.state, [0, 20, 40]), 3)
    _assert_sentences([one.why for one in test.ask(4).details], 4)
    assert strategy.reasons(test.state, []) == []


STRATEGY_CHECKS: tuple[Callable[..., None], ...] = (
    check_stateless,
    check_scores,
    check_chances,
    check_replay,
    check_order,
    check_reasons,
    check_pickle,
)


# ---------------------------------------------------------------------- cleaning


def check_cleaning_scores(strategy: CleaningStrategy) -> None:
    """One number for each training label that may be wrong, -inf for one that is known to be right."""
    advisor, _ = _session_of(strategy)
    state = advisor.state
    scores, ties = strategy.scores(state), strategy.ties(state)
    assert scores.shape == ties.shape == state.train.shape
    is_open = np.isin(np.arange(len(state.train)), state.open)
    assert np.isfinite(scores[is_open]).all()
    assert np.isneginf(scores[~is_open]).all(), "what is known is not wanted"
    assert np.isfinite(ties).all()
    asked = advisor.ask(4)
    assert len(set(asked)) == 4
    assert set(asked) <= set(advisor.problem.labels.items[state.train[is_open]].tolist())
    assert [(event.kind, event.item) for event in advisor.log[-4:]] == [("ask", item) for item in asked]


def check_cleaning_reasons(strategy: CleaningStrategy) -> None:
    """A strategy says why it asks, in one sentence for each label."""
    advisor, _ = _session_of(strategy)
    _assert_sentences([one.why for one in advisor.ask(4).details], 4)


CLEANING_CHECKS: tuple[Callable[[CleaningStrategy], None], ...] = (
    check_stateless,
    check_cleaning_scores,
    check_replay,
    check_cleaning_reasons,
    check_pickle,
)
