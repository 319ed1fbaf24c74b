"""The cheapest set against all sets, one by one."""

import itertools

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.labelers import cheapest_set, expected_width, mutual_information, symmetric_matrix


def cheapest_by_hand(matrices, prices, reaches):
    """The least price of a set that reaches the target, by trying all."""
    sets = [s for r in range(1, len(prices) + 1) for s in itertools.combinations(range(len(prices)), r)]
    return min(sum(prices[t] for t in s) for s in sets if reaches(matrices[list(s)]))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_information_is_bought_at_the_least_price(seed, share):
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.ones(3), size=(6, 2)) if seed % 2 else symmetric_matrix(rng.uniform(0.05, 0.45, 6), 2)
    prices = rng.integers(1, 8, 6).astype(float)
    target = share * float(mutual_information(matrices))
    found = cheapest_set(matrices, prices, information=target)
    expected = cheapest_by_hand(matrices, prices, lambda m: float(mutual_information(m)) >= target)
    assert found.exact
    assert found.price == pytest.approx(expected)
    assert float(found.information) >= target - 1e-9


def test_width_is_bought_at_the_least_price():
    rng = np.random.default_rng(0)
    matrices, prices = symmetric_matrix(rng.uniform(0.05, 0.45, 6), 2), rng.integers(1, 8, 6).astype(float)
    target = 1.15 * expected_width(matrices, n_items=500, model_error=0.1)
    found = cheapest_set(matrices, prices, width=target, n_items=500, model_error=0.1)
    expected = cheapest_by_hand(
        matrices, prices, lambda m: expected_width(m, n_items=500, model_error=0.1) <= target * (1 + 1e-9)
    )
    assert found.exact
    assert found.price == pytest.approx(expected)
    hired = matrices[list(found.labelers)]
    assert found.width == pytest.approx(expected_width(hired, n_items=500, model_error=0.1))
    assert found.width <= target


def test_dependent_labelers_can_be_hired():
    data = tu.simulate.dependent(n_items=300, n_labelers=5, random_state=0)
    noise = tu.noise.GLAD(tol=1e-3).fit(data.labels)
    target = 0.9 * float(mutual_information(noise))
    found = cheapest_set(noise, 1.0, information=target)
    sizes = [
        len(s)
        for r in range(1, 6)
        for s in itertools.combinations(range(5), r)
        if float(mutual_information(noise, labelers=list(s))) >= target
    ]
    assert len(found.labelers) == min(sizes)
    assert found.to_frame().shape == (min(sizes), 2)


@pytest.mark.parametrize(
    ("prices", "options"),
    [
        ([1, 1], {}),
        ([1, 1], {"information": 0.1, "width": 0.1}),
        ([1, -1], {"information": 0.1}),
        ([1, 1, 1], {"information": 0.1}),
        ({0: 1.0}, {"information": 0.1}),
        ([1, 1], {"information": 0.99}),
        ([1, 1], {"information": 0.0}),
        ([1, 1], {"width": 0.1}),
        ([1, 1], {"width": 0.1, "n_items": 10, "model_error": 0.6}),
        ([1, 1], {"width": 0.001, "n_items": 10, "model_error": 0.1}),
    ],
)
def test_bad_offers_are_one_sentence(prices, options):
    with pytest.raises(InvalidParameter):
        cheapest_set(symmetric_matrix([0.1, 0.2], 2), prices, **options)
