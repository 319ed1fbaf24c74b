"""Panels and experts that are worth the same."""

import numpy as np
import pytest

from trueup.exceptions import InvalidParameter
from trueup.labelers import equivalent_error, equivalent_labelers, mutual_information


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
    told = [float(mutual_information(error=labeler, n_labelers=k, prior=prior)) for k in range(1, n + 1)]
    assert np.flatnonzero(np.array(told) >= wanted)[0] + 1 == n


def test_an_equal_labeler_is_worth_an_expert():
    assert equivalent_labelers(expert_error=0.2, labeler_error=0.2) == 1
    assert equivalent_labelers(expert_error=0.3, labeler_error=0.2) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"expert_error": 0.1, "labeler_error": 0.5},
        {"expert_error": 0.0, "labeler_error": 0.1},
        {"expert_error": 0.01, "labeler_error": 0.499, "max_labelers": 50},
        {"expert_error": -0.1, "labeler_error": 0.1},
    ],
    ids=["guess", "perfect", "many", "negative"],
)
def test_bad_numbers_are_one_sentence(options):
    with pytest.raises(InvalidParameter):
        equivalent_labelers(**options)
