"""Steps of shared difficulty with the states summed over: densities, gradients, exact posteriors and mixing."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit

from trueup import Labels, noise, simulate
from trueup.noise.chain import SamplingProblem
from trueup.noise.hamiltonian import LEAST_ROW, Landscape, StepScale
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.shared_difficulty import _HYPER, DifficultySampler
from trueup.noise.system_outputs import SystemOutputs

SAID = np.array([["a", "a", "u"], ["b", "b", "b"], ["a", "u", "-"], ["b", "a", "b"], ["a", "a", "u"]], dtype=object)
LABELS = Labels.from_matrix(SAID, classes=["a", "b"], missing="-", abstain="u", abstain_policy="answer")
LABELS = LABELS.with_gold({3: "b"})
OUTPUTS = SystemOutputs(
    np.array([[0, 1, 0, -1, 0], [1, 1, 0, 2, 1], [0, 0, 1, 1, 0]]), np.array([2, 3, 2]), np.array([1.0, 1.0, 0.5])
)
PRIORS = {"class shares": None, "an item prior": np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1], [0.3, 0.7]])}


def landscape_of(prior, rng):
    """A landscape at random rows, and free numbers there."""
    problem = SamplingProblem(LABELS, LABELS.votes, 0, OUTPUTS)
    at, items = problem.distinct
    assert at.tolist() == [0, 1, 2, 3]
    assert items.times.tolist() == [2, 1, 1, 1]
    object.__setattr__(items, "item_prior", PRIORS[prior])
    sampler = DifficultySampler(LABELS.n_labelers, LABELS.n_classes, LABELS.n_answers, n_points=5)
    wrong = rng.random((3, 2, 3))
    wrong[:, [0, 1], [0, 1]] = 0.0
    wrong /= wrong.sum(axis=2, keepdims=True)
    rows = np.concatenate([rng.dirichlet(np.full(n, 2.0), 6).T for n in OUTPUTS.n_answers])
    rows[:2, 4] = LEAST_ROW / 2, 1 - LEAST_ROW / 2
    landscape = Landscape(items, wrong, np.log(rows), sampler.grid, sampler.grid_weights, sampler.state_group, _HYPER)
    levels, slopes = rng.normal(1, 1, (3, 2)), rng.normal(-1, 1, 3)
    return landscape, landscape.numbers(levels, slopes, -0.5, np.array([0.3, 0.7]))


@pytest.mark.parametrize("prior", PRIORS)
def test_the_gradient_is_that_of_the_density(prior):
    landscape, numbers = landscape_of(prior, np.random.default_rng(0))
    still = landscape.still
    assert still.sum() == 7  # the row with a rare answer, and all of the system that counts for half
    position = landscape.at(numbers, still)
    np.testing.assert_allclose(position.log_rows, landscape.log_rows, atol=1e-12)
    error = check_grad(
        lambda q: landscape.at(q, still).value, lambda q: landscape.at(q, still).gradient, numbers, epsilon=1e-6
    )
    assert error < 1e-4
    moved = landscape.at(numbers + 0.3, still)
    held = np.repeat(still, np.diff(landscape.items.first), axis=0)
    np.testing.assert_array_equal(moved.log_rows[held], landscape.log_rows[held])
    assert (moved.log_rows[~held] != landscape.log_rows[~held]).all()


@pytest.mark.parametrize("prior", PRIORS)
def test_compiled_densities_and_gradients_are_the_same(prior):
    compiled = pytest.importorskip("trueup.noise.kernels.compiled_hamiltonian")
    landscape, numbers = landscape_of(prior, np.random.default_rng(1))
    items = landscape.items
    votes = (items.votes.indptr.astype(np.int64), items.votes.indices.astype(np.int64), items.votes.data.astype(float))
    at = SamplingProblem(LABELS, LABELS.votes, 0, OUTPUTS).distinct[0]
    systems = (np.ascontiguousarray(OUTPUTS.codes[:, at]), items.first, items.power, OUTPUTS.row_prior(6))
    known_of_items = np.empty((0, 2)) if items.item_prior is None else items.item_prior
    distinct = (votes, systems, items.gold, known_of_items, items.times)
    n_states, n_columns = 10, int(items.first[-1])
    parts = (np.empty((3, 2)), np.empty(3), np.empty(2), np.empty(n_states), np.empty((9, n_states)))
    parts = (*parts, np.exp(landscape.log_rows))
    by_state = np.empty((n_columns, n_states))
    work = (
        np.empty((9, n_states)),
        np.empty(2),
        np.empty((n_columns, 6)),
        by_state,
        by_state.copy(),
        np.empty(n_states),
    )
    known = (landscape.wrong_rows, landscape.grid, landscape.grid_weights, _HYPER, distinct, landscape.group)
    packed, gradient = np.empty(len(numbers)), np.empty(len(numbers))
    levels, slopes = numbers[:6].reshape(3, 2), numbers[6:9]
    rows = np.exp(landscape.log_rows)
    compiled.pack(levels, slopes, np.array([-0.5]), np.array([0.3, 0.7]), rows, items.first, packed)
    np.testing.assert_allclose(packed, numbers)
    for moved in (numbers, numbers + np.random.default_rng(2).normal(0, 0.5, len(numbers))):
        value = compiled.evaluate(moved, landscape.still, known, work, parts, gradient)
        expected = landscape.at(moved, landscape.still)
        assert value == pytest.approx(expected.value)
        np.testing.assert_allclose(gradient, expected.gradient, atol=1e-9)


def exact_posterior(labels, outputs, features=None, n_points=11, n_draws=100_000):
    """P(class of each item) by weighing draws of the parameters from their prior.

    With features, the log-odds of the second class are a coefficient ~ N(0, 1) times the feature of the item.
    """
    rng = np.random.default_rng(0)
    sampler = DifficultySampler(labels.n_labelers, 2, 2, n_points=n_points)
    shape = (n_draws, labels.n_labelers)
    means = rng.normal(1.5, 1.0, (n_draws, 1, 2))
    levels = means + 0.7 * rng.standard_normal((*shape, 2))
    slopes = np.abs(rng.standard_normal((n_draws, 1))) * np.exp(0.3 * rng.standard_normal(shape))
    right = expit(levels[..., None] + slopes[..., None, None] * sampler.grid)
    shares = rng.dirichlet([1, 1], n_draws)
    coefficient = rng.standard_normal(n_draws)
    prior = outputs.row_prior()[:, 0]
    rows = rng.dirichlet(prior, (n_draws, 6)).transpose(0, 2, 1)[:, :, sampler.state_group]
    rows = rows.reshape(n_draws, 2, 2, n_points)
    joint = []
    for i, said in enumerate(labels.votes.toarray().reshape(labels.n_items, -1, 2)):
        if features is not None:
            second = expit(coefficient * features[i])
            shares = np.column_stack([1 - second, second])
        chances = shares[:, :, None] * sampler.grid_weights
        for t, votes in enumerate(said):
            for answer in np.flatnonzero(votes):
                correct = np.arange(2) == answer
                chances = chances * np.where(correct[:, None], right[:, t], 1 - right[:, t])
        chances = (chances * rows[:, outputs.codes[0, i]]).sum(axis=2)
        if labels.gold_codes[i] >= 0:
            chances[:, 1 - labels.gold_codes[i]] = 0.0
        joint.append(chances)
    total = np.prod([chances.sum(axis=1) for chances in joint], axis=0)
    weight = total / total.sum()
    assert 1 / (weight**2).sum() > 5000
    return np.array([weight @ (chances / chances.sum(axis=1, keepdims=True)) for chances in joint])


@pytest.mark.parametrize(
    ("gold", "features"),
    [({}, None), pytest.param({1: 0}, None, marks=pytest.mark.slow), ({}, np.array([-2.0, 1.0, 1.0, 3.0]))],
    ids=["", "gold", "prior"],
)
@pytest.mark.parametrize("engine", [pytest.param("scipy", marks=pytest.mark.slow), "numba"], indirect=True)
def test_the_posterior_is_exact(engine, gold, features):
    labels = Labels.from_matrix(np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]])).with_gold(gold)
    outputs = SystemOutputs(np.array([[0, 1, 0, 1]]), np.array([2]), np.ones(1))
    item_prior = None
    if features is not None:
        item_prior = LogLinearPrior(np.stack([np.zeros(4), features], axis=1)[:, :, None], [1.0])
    n_draws, tolerance = (1500, 0.06) if engine == "scipy" else (15_000, 0.025)
    draws = noise.sample(
        labels,
        "shared-difficulty",
        outputs=outputs,
        item_prior=item_prior,
        n_chains=2,
        n_warmup=200,
        n_draws=n_draws,
        random_state=0,
        warn=False,
    )
    np.testing.assert_allclose(draws.posterior, exact_posterior(labels, outputs, features), atol=tolerance)


def test_equally_easy_items_are_drawn_exactly_too():
    labels = Labels.from_matrix(np.array([[0, 0, 1], [1, 1, 1], [0, 1, -1], [1, 0, 1]]))
    outputs = SystemOutputs(np.array([[0, 1, 0, 1]]), np.array([2]), np.ones(1))
    sweeps = {"n_chains": 2, "n_warmup": 200, "n_draws": 15_000, "random_state": 0, "warn": False}
    draws = noise.sample(labels, noise.SharedDifficulty(n_points=1), outputs=outputs, **sweeps)
    np.testing.assert_allclose(draws.posterior, exact_posterior(labels, outputs, n_points=1), atol=0.025)


def test_step_and_scale_are_learned_in_the_warm_up_alone():
    labels = simulate.baseline(n_items=40, random_state=0).labels
    problem = SamplingProblem(labels, labels.votes, 0, SystemOutputs.none(40))
    sampler, rng = DifficultySampler(3, 2, 2, n_points=7), np.random.default_rng(0)
    sampler.draw(np.ones((6, 14)), np.ones(14), np.zeros((14, 2)), rng)
    for _ in range(60):
        sampler.collapse(problem.distinct[1], np.empty((0, 6)), rng, learns=True)
    learned = [part.copy() for part in sampler._step_scale]
    assert learned[3][0] == 60
    assert np.abs(np.tril(learned[2], -1)).max() > 0.01
    before = sampler.levels
    for _ in range(5):
        sampler.collapse(problem.distinct[1], np.empty((0, 6)), rng, learns=False)
    assert (sampler.levels != before).all()
    for part, then in zip(sampler._step_scale, learned, strict=True):
        np.testing.assert_array_equal(part, then)


def test_many_numbers_have_variances_alone():
    step_scale, rng = StepScale.start(100), np.random.default_rng(0)
    scales = np.linspace(0.1, 3, 100)
    for _ in range(500):
        step_scale.learn(scales * rng.standard_normal(100), 0.7)
    np.testing.assert_allclose(step_scale.root[:, 0], scales, rtol=0.4)
    np.testing.assert_allclose(step_scale.push(np.ones(100)), step_scale.shift(np.ones(100)))


def test_chains_of_shared_difficulty_mix():
    """Without steps: R-hat 1.5 and 8 effective draws."""
    pytest.importorskip("numba")
    data = simulate.shared_difficulty(n_items=300, n_labelers=5, random_state=20)
    outputs = SystemOutputs(data.predictions[None].astype(np.int64), np.array([2]), np.ones(1))
    draws = noise.sample(
        data.labels, "shared-difficulty", outputs=outputs, n_warmup=500, n_draws=1000, random_state=0, warn=False
    )
    assert draws.rhat < 1.2
    assert draws.ess > 30


def test_a_seed_gives_the_same_draws_to_the_last_bit():
    """Also where chains run side by side and memory lies elsewhere each time: a rounding is enough for other draws."""
    labels = simulate.shared_difficulty(n_items=60, n_labelers=5, random_state=0).labels

    def drawn():
        return noise.sample(labels, "shared-difficulty", n_warmup=100, n_draws=100, random_state=5, warn=False)

    first = drawn()
    for _ in range(30):
        again = drawn()
        np.testing.assert_array_equal(again.posterior, first.posterior)
        np.testing.assert_array_equal(again.truths, first.truths)
