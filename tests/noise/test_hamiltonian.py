"""What chains learn of the scale of their Hamiltonian steps, and that a seed gives the same draws."""

import numpy as np
import pytest

from trueup import noise, simulate


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
