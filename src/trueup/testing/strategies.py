"""What every strategy keeps to, of active testing and of cleaning, as checks that anyone can run on a new one.

    from trueup.testing.strategies import CLEANING_CHECKS, STRATEGY_CHECKS

    @pytest.mark.parametrize("check", STRATEGY_CHECKS)
    def test_contract(check):
        check(MyStrategy(floor=0.2))

Each check takes a strategy and raises AssertionError where the contract is broken. Those of active testing also take
the metric of the session they are tried in, for strategies that know some metrics only.
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
from trueup.sessions.session import Session
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


def _test_session(strategy: Strategy, metric: str, *, reverse: bool = False) -> tuple[ActiveTest, dict[Any, int]]:
    """A session of active testing after some answers."""
    labels, scores, truth = _example(reverse=reverse)
    test = ActiveTest(scores, labels, metric=metric, strategy=strategy, noise="majority")
    test.tell({item: truth[item] for item in sorted(truth)[:6]})
    return test, truth


def _advisor(strategy: CleaningStrategy) -> tuple[CleaningAdvisor, dict[Any, int]]:
    """A session of cleaning after some answers."""
    from sklearn.linear_model import LogisticRegression

    labels, scores, truth = _example()
    advisor = CleaningAdvisor(LogisticRegression(), np.column_stack(list(scores.values())), labels, strategy=strategy)
    advisor.tell({item: truth[item] for item in sorted(truth)[:6]})
    return advisor, truth


def _assert_stateless(strategy: Any, scores: Callable[[], Floats]) -> None:
    """A frozen dataclass of its options, that can be compared and hashed, and says the same again."""
    assert strategy.name == str(strategy.name), "a strategy has a name"
    assert is_dataclass(strategy), "a strategy is a dataclass of its options"
    kind: Any = type(strategy)
    assert kind.__dataclass_params__.frozen, "a strategy cannot be changed: make the dataclass frozen"
    assert isinstance(hash(strategy), int), "what is worked out for a strategy is kept by it"
    options = {option.name: getattr(strategy, option.name) for option in fields(strategy)}
    assert kind(**options) == strategy, "the options are all there is"
    before = dict(vars(strategy))
    first = scores()
    assert np.array_equal(first, scores()), "the same state gives the same scores"
    assert vars(strategy) == before, "a strategy keeps nothing of what it saw"


def _assert_replayed(session: Session, truth: dict[Any, int]) -> None:
    """The state is a function of the log: a session that is replayed asks the same again."""
    asked = list(session.ask(3))
    session.tell({item: truth[item] for item in asked[:2]})
    session.skip(asked[2:])
    other = session.replay(session.log)
    written = session.replay(session.to_json())
    expected = session.ask(3).details
    assert other.ask(3).details == expected, "a replayed session asks the same"
    assert written.ask(3).details == expected, "a session that was written asks the same"


def _assert_sentences(reasons: Sequence[str], n: int) -> None:
    assert len(reasons) == n, "one sentence for each item"
    for sentence in reasons:
        assert sentence.strip().endswith("."), f"a sentence, got {sentence!r}"
        assert "\n" not in sentence


# ---------------------------------------------------------------------- active testing


def check_stateless(strategy: Strategy, metric: str = _METRIC) -> None:
    """A strategy is a frozen dataclass of its options and keeps nothing else."""
    assert isinstance(strategy, Strategy)
    test, _ = _test_session(strategy, metric)
    _assert_stateless(strategy, lambda: strategy.scores(test.state))


def check_scores(strategy: Strategy, metric: str = _METRIC) -> None:
    """One finite score for each item, not negative, and 0 for those that cannot be asked."""
    test, _ = _test_session(strategy, metric)
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
    test, _ = _test_session(strategy, metric)
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


def check_replay(strategy: Strategy, metric: str = _METRIC) -> None:
    """What is asked next is a function of the log."""
    _assert_replayed(*_test_session(strategy, metric))


def check_order(strategy: Strategy, metric: str = _METRIC) -> None:
    """The order of the items does not matter."""
    scores = strategy.scores(_test_session(strategy, metric)[0].state)
    turned = strategy.scores(_test_session(strategy, metric, reverse=True)[0].state)
    assert np.allclose(scores, turned[::-1], atol=1e-8)


def check_reasons(strategy: Strategy, metric: str = _METRIC) -> None:
    """A strategy says why it asks, in one sentence for each item."""
    test, _ = _test_session(strategy, metric)
    _assert_sentences(strategy.reasons(test.state, [0, 20, 40]), 3)
    _assert_sentences([one.why for one in test.ask(4).details], 4)
    assert strategy.reasons(test.state, []) == []


def check_pickle(strategy: Strategy, metric: str = _METRIC) -> None:
    """A strategy can be sent to another process."""
    again = pickle.loads(pickle.dumps(strategy))
    assert again == strategy
    test, _ = _test_session(strategy, metric)
    assert np.array_equal(again.scores(test.state), strategy.scores(test.state))


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


def check_cleaning_stateless(strategy: CleaningStrategy) -> None:
    """A strategy is a frozen dataclass of its options and keeps nothing else."""
    assert isinstance(strategy, CleaningStrategy)
    advisor, _ = _advisor(strategy)
    _assert_stateless(strategy, lambda: strategy.scores(advisor.problem.after(advisor.progress.truth)))


def check_cleaning_scores(strategy: CleaningStrategy) -> None:
    """One number for each training label that may be wrong, -inf for one that is known to be right."""
    advisor, _ = _advisor(strategy)
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


def check_cleaning_replay(strategy: CleaningStrategy) -> None:
    """What is asked next is a function of the log."""
    _assert_replayed(*_advisor(strategy))


def check_cleaning_reasons(strategy: CleaningStrategy) -> None:
    """A strategy says why it asks, in one sentence for each label."""
    advisor, _ = _advisor(strategy)
    _assert_sentences([one.why for one in advisor.ask(4).details], 4)


def check_cleaning_pickle(strategy: CleaningStrategy) -> None:
    """A strategy can be sent to another process."""
    again = pickle.loads(pickle.dumps(strategy))
    assert again == strategy
    state = _advisor(strategy)[0].state
    assert np.array_equal(again.scores(state), strategy.scores(state))


CLEANING_CHECKS: tuple[Callable[[CleaningStrategy], None], ...] = (
    check_cleaning_stateless,
    check_cleaning_scores,
    check_cleaning_replay,
    check_cleaning_reasons,
    check_cleaning_pickle,
)
