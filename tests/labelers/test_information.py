"""Bits of votes against the paper's values and brute force; equal panels; what one more vote tells."""

import itertools

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter, NotFitted
from trueup.labelers import (
    equivalent_error,
    equivalent_labelers,
    marginal_value,
    mutual_information,
    symmetric_matrix,
)
from trueup.labelers.information import channel_of, entropy


def brute_force(weights, state_class, matrices):
    """I(Z; Y) in bits, one outcome after the other."""
    n_labelers, n_states, n_answers = matrices.shape
    prior = weights @ state_class
    total = 0.0
    for z in itertools.product(range(n_answers), repeat=n_labelers):
        joint = np.zeros(len(prior))
        for s in range(n_states):
            chance = weights[s] * np.prod([matrices[t, s, a] for t, a in enumerate(z)])
            joint += chance * state_class[s]
        for y, p in enumerate(joint):
            if p > 0:
                total += p * np.log2(p / (joint.sum() * prior[y]))
    return total


def random_matrices(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


@pytest.mark.parametrize(("error", "bits"), [(0.10, 0.512), (0.05, 0.690), (0.02, 0.832), (0.01, 0.891)])
def test_one_labeler_gives_the_values_of_su_2024_figure_8(error, bits):
    found = mutual_information(error=error, prior=[0.6, 0.4])
    assert round(float(found), 3) == bits
    assert (found.exact, found.error, found.bits) == (True, 0.0, float(found))


@pytest.mark.parametrize(("n_classes", "n_answers", "n_labelers"), [(2, 2, 6), (3, 3, 4), (3, 4, 3), (2, 5, 3)])
def test_any_channel_equals_brute_force(n_classes, n_answers, n_labelers):
    """Asymmetric matrices, several classes, abstentions as one more symbol."""
    rng = np.random.default_rng(n_classes + 10 * n_answers)
    matrices, prior = random_matrices(rng, n_labelers, n_classes, n_answers), rng.dirichlet(np.ones(n_classes))
    found = mutual_information(matrices, prior=prior)
    assert found.exact
    assert float(found) == pytest.approx(brute_force(prior, np.eye(n_classes), matrices), abs=1e-12)


def test_labelers_of_one_difficulty_equal_brute_force_and_are_worth_less():
    data = tu.simulate.dependent(n_items=300, n_labelers=4, random_state=0)
    noise = tu.noise.GLAD(tol=1e-3).fit(data.labels)
    channel = channel_of(noise)
    found = float(mutual_information(noise))
    assert found == pytest.approx(brute_force(channel.weights, channel.state_class, channel.matrices), abs=1e-12)
    share = channel.weights[:, None] * channel.state_class
    by_class = np.einsum("sy,lsa->lya", share / share.sum(axis=0), channel.matrices)
    assert found < 0.99 * float(mutual_information(by_class, prior=noise.prior_))


@pytest.mark.parametrize("seed", range(3))
def test_monte_carlo_is_as_close_as_its_error_says(seed):
    rng = np.random.default_rng(seed)
    matrices, prior = random_matrices(rng, 5, 3, 4), rng.dirichlet(np.ones(3))
    exact = mutual_information(matrices, prior=prior)
    drawn = mutual_information(matrices, prior=prior, max_outcomes=10, n_draws=20_000, random_state=seed)
    assert (drawn.method, drawn.exact) == ("monte-carlo", False)
    assert 0 < drawn.error < 0.01
    assert abs(drawn.bits - exact.bits) < 3.3 * drawn.error
    again = mutual_information(matrices, prior=prior, max_outcomes=10, n_draws=20_000, random_state=seed)
    assert again == drawn


def test_more_votes_never_tell_less_and_never_more_than_their_sum():
    rng = np.random.default_rng(4)
    matrices, prior = random_matrices(rng, 5, 2, 2), [0.3, 0.7]
    parts = [float(mutual_information(matrices[:k], prior=prior)) for k in range(1, 6)]
    assert np.all(np.diff(parts) >= -1e-12)
    singles = [float(mutual_information(m, prior=prior)) for m in matrices]
    assert parts[-1] <= sum(singles) + 1e-12


def test_every_noise_model_has_a_channel():
    data = tu.simulate.dawid_skene(n_items=150, n_labelers=4, accuracy=0.8, random_state=0)
    told = {}
    for name in ("majority", "one-coin", "dawid-skene", "glad", "difficulty"):
        told[name] = float(mutual_information(tu.noise.fit(data.labels, name)))
        assert 0 < told[name] < 1, name
    truth = float(mutual_information(data.parameters["confusion"], prior=data.parameters["prior"]))
    assert told["dawid-skene"] == pytest.approx(truth, abs=0.1)
    known = tu.noise.Difficulty(difficulty={0: 0.0}, fallibility={"a": 0.2, "b": 0.4}, prior=[0.5, 0.5])
    assert float(mutual_information(known)) == pytest.approx(float(mutual_information(error=[0.1, 0.2])))
    with pytest.raises(InvalidParameter, match=r"noise.best_"):
        mutual_information(tu.noise.fit(data.labels, "auto", models=[tu.noise.OneCoin()]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"noise": np.eye(2), "error": 0.1},
        {"error": 1.2},
        {"error": "x"},
        {"error": 0.1, "prior": [0.5, 0.6]},
        {"error": 0.1, "prior": [1.0]},
        {"error": [0.1, 0.2], "n_labelers": 5},
        {"error": 0.1, "n_labelers": 0},
        {"noise": [[0.9, 0.2], [0.1, 0.9]]},
        {"noise": [0.5, 0.5]},
        {"noise": tu.noise.Confusion(np.eye(2)), "prior": [0.5, 0.5]},
        {"error": 0.1, "labelers": [0], "n_labelers": 2},
    ],
)
def test_bad_input_is_one_sentence(options):
    with pytest.raises(InvalidParameter):
        mutual_information(options.pop("noise", None), **options)
    with pytest.raises(NotFitted):
        mutual_information(tu.noise.DawidSkene())


@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.9, 0.1], [0.2, 0.3, 0.5]], ids=["even", "skewed", "three"])
@pytest.mark.parametrize("n_labelers", [1, 4])
def test_equivalent_error_inverts_the_information(prior, n_labelers):
    for error in (0.01, 0.1, 0.3, 0.45):
        bits = mutual_information(error=error, n_labelers=n_labelers, prior=prior)
        assert equivalent_error(bits, n_labelers=n_labelers) == pytest.approx(error, abs=1e-8)
        assert equivalent_error(bits.bits, prior, n_labelers=n_labelers) == pytest.approx(error, abs=1e-8)


@pytest.mark.parametrize(
    ("expert", "labeler", "prior"), [(0.02, 0.2, [0.6, 0.4]), (0.01, 0.4, [0.5, 0.5]), (0.1, 0.3, [0.2, 0.3, 0.5])]
)
def test_equivalent_labelers_is_the_least_number(expert, labeler, prior):
    n = equivalent_labelers(expert_error=expert, labeler_error=labeler, prior=prior)
    wanted = float(mutual_information(error=expert, prior=prior))
    assert equivalent_labelers(expert_error=labeler, labeler_error=labeler, prior=prior) == 1
    told = [float(mutual_information(error=labeler, n_labelers=k, prior=prior)) for k in range(1, n + 1)]
    assert np.flatnonzero(np.array(told) >= wanted)[0] + 1 == n


@pytest.mark.parametrize(
    "options",
    [
        {"expert_error": 0.1, "labeler_error": 0.5},
        {"expert_error": 0.0, "labeler_error": 0.1},
        {"expert_error": 0.01, "labeler_error": 0.499, "max_labelers": 50},
        {"expert_error": -0.1, "labeler_error": 0.1},
    ],
)
def test_bad_numbers_of_equivalents(options):
    with pytest.raises(InvalidParameter):
        equivalent_labelers(**options)


def test_gains_add_up_to_the_information():
    found = marginal_value(error=0.2, prior=[0.7, 0.3], max_votes=6)
    assert found.per_item is None
    assert found.gains.sum() == pytest.approx(float(mutual_information(error=0.2, n_labelers=6, prior=[0.7, 0.3])))
    assert np.all(np.diff(found.gains) < 0)
    assert found.to_frame().shape == (6, 3)
    pytest.importorskip("matplotlib")
    ax = found.plot()
    assert found.plot(ax=ax) is ax


def expected_fall(posterior, matrix):
    """Expected fall of the entropy by hand, answer by answer."""
    left = 0.0
    for a in range(matrix.shape[1]):
        joint = posterior * matrix[:, a]
        if joint.sum() > 0:
            left += joint.sum() * float(entropy(joint / joint.sum()))
    return float(entropy(posterior)) - left


@pytest.mark.parametrize("labeler", [None, 2])
def test_each_item_has_its_expected_fall_of_entropy(labeler):
    labels = tu.simulate.dawid_skene(n_items=60, n_classes=3, n_labelers=4, votes_per_item=3, random_state=0).labels
    noise = tu.noise.fit(labels, "dawid-skene")
    found = marginal_value(noise, labels, labeler=labeler)
    matrix = noise.pooled_ if labeler is None else noise.confusion_[labeler]
    expected = [expected_fall(p, matrix) for p in noise.posterior(labels)]
    assert found.per_item == pytest.approx(expected, abs=1e-12)
    assert found.to_frame().shape == (60, 2)


def test_what_is_expected_is_what_happens_on_average():
    """Draw the next vote of labeler 2 many times from the model itself, and see by how much entropy falls."""
    rng = np.random.default_rng(0)
    noise = tu.noise.Confusion(symmetric_matrix([0.1, 0.3, 0.2], 2), prior=[0.6, 0.4])
    labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0]], classes=[0, 1])
    two = tu.noise.Confusion(symmetric_matrix([0.1, 0.3], 2), prior=[0.6, 0.4])
    expected = marginal_value(two, labels, labeler=1, max_votes=1).per_item
    posterior = two.posterior(labels)
    matrix = noise.confusion_[1]
    n = 20_000
    for i, p in enumerate(posterior):
        truth = (rng.random(n) < p[1]).astype(int)
        answer = (rng.random(n) < matrix[truth, 1]).astype(int)
        after = p * matrix[:, answer].T
        falls = float(entropy(p)) - entropy(after / after.sum(axis=1, keepdims=True))
        assert abs(falls.mean() - expected[i]) < 3.3 * falls.std() / np.sqrt(n)
