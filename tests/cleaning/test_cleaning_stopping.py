"""What cleaning is worth: shrinkage, the stop rule, budgets, and the oracle against another vote."""

from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.cleaning import budget_curve, clean_or_vote, shrunk_improvement
from trueup.exceptions import InvalidParameter

MATRIX = np.array([[0.6, 0.4], [0.1, 0.9]])


def test_the_best_of_many_is_worth_what_is_said():
    """The largest raw estimate is far too large on average; the largest shrunk one is right, and its spread too."""
    rng = np.random.default_rng(0)
    raw, shrunk, inside = [], [], 0
    for _ in range(300):
        truth = rng.normal(0.001, 0.002, size=200)
        errors = rng.uniform(0.002, 0.006, size=200)
        seen = truth + errors * rng.normal(size=200)
        mean, sd = shrunk_improvement(seen, errors)
        k = int(mean.argmax())
        raw.append(seen.max() - truth[seen.argmax()])
        shrunk.append(mean[k] - truth[k])
        inside += abs(mean[k] - truth[k]) < 1.96 * sd[k]
    assert np.mean(raw) > 0.005
    assert abs(np.mean(shrunk)) < 0.0005
    assert 270 <= inside <= 299


def test_budget_curve_by_trying_all_sets_of_equal_cost():
    gains = np.array([0.02, -0.01, 0.05, 0.01, 0.03])
    curve = budget_curve(gains, np.zeros(5))
    for n in range(6):
        best = max(gains[list(chosen)].sum() for chosen in subsets(5, n))
        assert curve.at(n) == pytest.approx(best)
    assert curve.cost.tolist() == [1, 2, 3, 4]
    assert curve.at(100) == pytest.approx(0.11)
    dear = budget_curve(gains, np.zeros(5), [1, 1, 100, 1, 1])
    assert dear.order.tolist() == [4, 0, 3, 2]
    with pytest.raises(InvalidParameter, match="costs must be"):
        budget_curve(gains, np.zeros(5), np.zeros(5))


def subsets(n, most):
    return [[k for k in range(n) if taken[k]] for taken in product([0, 1], repeat=n) if sum(taken) <= most]


def test_a_vote_and_the_oracle_by_simulation():
    rng = np.random.default_rng(2)
    chances, gains = np.array([0.5, 0.3, 0.2]), np.array([0.0, 0.02, -0.01])
    q = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]])
    found = clean_or_vote(gains, chances, q)
    truth = rng.choice(3, size=200_000, p=chances)
    vote = (rng.random(200_000)[:, None] > q[truth].cumsum(axis=1)).sum(axis=1)
    label = (chances[:, None] * q).argmax(axis=0)[vote]
    assert found.clean == pytest.approx(gains[truth].mean(), abs=1e-4)
    assert found.vote == pytest.approx(gains[label].mean(), abs=1e-4)


def advisor(n=300, seed=0, **options):
    sim = tu.simulate.tars(n_items=n, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.1), random_state=seed)
    noise = options.pop("noise", tu.noise.Confusion(MATRIX))
    return sim, tu.CleaningAdvisor(LogisticRegression(), sim.features, sim.labels, noise=noise, **options)


def test_the_stop_rule_stops_where_little_is_left_to_gain():
    sim, eager = advisor(min_improvement=0.5)
    assert "by more than 0.5 with probability 0.000 only" in eager.finished
    _, patient = advisor(min_improvement=-0.5)
    assert patient.finished is None
    _, plain = advisor()
    assert plain.finished is None
    first = plain.value
    assert plain.value.mean == first.mean
    while plain.n_cleaned < 80:
        plain.tell({item: int(sim.truth[item]) for item in plain.ask(10)})
    assert plain.value.prob_above(first.mean + first.std) < 0.9


def test_the_value_is_there_beside_every_strategy():
    for name in ("random", "hung"):
        _, session = advisor(150, strategy=name)
        assert -1 < session.value.mean < 1
        curve = session.forecast()
        assert set(curve.order.tolist()) <= set(np.flatnonzero(session.problem.trains).tolist())
        assert (np.diff(curve.improvement) >= 0).all()


def test_clean_or_vote_for_an_item():
    _, session = advisor(150)
    (item,) = session.ask()
    found = session.clean_or_vote(item, labeler_error=0.0, vote_cost=1.0)
    assert found.item == item
    assert found.vote == pytest.approx(found.clean)
    by_name = session.clean_or_vote(item, labeler=session.problem.labels.labelers[0])
    assert by_name == session.clean_or_vote(item, labeler_error=MATRIX) == session.clean_or_vote(item)
    state = session.state
    at = int(np.flatnonzero(state.train == item)[0])
    y = state.y.copy()
    y[at] = 1 - y[at]
    other = LogisticRegression().fit(state.features, y).predict(state.validation_features)
    base = state.model.predict(state.validation_features)
    gain = state.scorer.scores(other) - state.scorer.scores(base)
    assert found.clean == pytest.approx(state.chances[at, y[at]] * float(gain), abs=1e-9)


def test_clean_or_vote_refuses_what_makes_no_sense():
    sim, session = advisor(150)
    held = int(np.flatnonzero(session.problem.validates)[0])
    with pytest.raises(InvalidParameter, match="no label that may be wrong"):
        session.clean_or_vote(held)
    (item,) = session.ask()
    with pytest.raises(InvalidParameter, match="there is no labeler"):
        session.clean_or_vote(item, labeler="nobody")
    with pytest.raises(InvalidParameter, match="labeler_error"):
        session.clean_or_vote(item, labeler_error=1.5)
    session.tell({item: int(sim.truth[item])})
    with pytest.raises(InvalidParameter, match="no label that may be wrong"):
        session.clean_or_vote(item)
