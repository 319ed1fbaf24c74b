"""What chains learn of the scale of their Hamiltonian steps, and that a seed gives the same draws."""

import numpy as np
import pytest

from trueup import noise, simulate
from trueup.noise.kernels.rating_loops import StepScale, learn


def test_many_numbers_have_variances_alone():
    step_scale, rng = StepScale.start(100), np.random.default_rng(0)
    scales = np.linspace(0.1, 3, 100)
    for _ in range(500):
        learn(scales * rng.standard_normal(100), 0.7, *step_scale)
    np.testing.assert_allclose(step_scale.root[:, 0], scales, rtol=0.4)
    assert step_scale.progress[0] == 500


def test_few_numbers_have_a_covariance():
    step_scale, rng = StepScale.start(3), np.random.default_rng(0)
    root = np.array([[1.0, 0.0, 0.0], [0.8, 0.5, 0.0], [0.0, -0.3, 2.0]])
    for _ in range(2000):
        learn(root @ rng.standard_normal(3), 0.7, *step_scale)
    np.testing.assert_allclose(step_scale.root @ step_scale.root.T, root @ root.T, atol=0.5)


def test_a_seed_gives_the_same_draws_to_the_last_bit():
    """Also where chains run side by side and memory lies elsewhere each time: a rounding is enough for other draws."""
    pytest.importorskip("numba")
    labels = simulate.ratings(n_items=40, random_state=0).labels

    def drawn():
        return noise.sample(labels, "ordinal", n_warmup=60, n_draws=60, random_state=5, warn=False)

    first = drawn()
    for _ in range(10):
        again = drawn()
        np.testing.assert_array_equal(again.posterior, first.posterior)
        np.testing.assert_array_equal(again.truths, first.truths)
