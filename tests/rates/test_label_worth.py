"""What a label is worth: noisy against perfect, same items against different ones, and break-even points."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from trueup import rates
from trueup.exceptions import InvalidParameter

inner = st.floats(0.001, 0.999)
below_half = st.floats(0.0, 0.45)


@given(error=inner, mislabeling=below_half)
def test_a_perfect_label_is_worth_what_the_variances_say(error, mislabeling):
    a = rates.apparent_error(error=error, mislabeling=mislabeling)
    expected = a * (1 - a) / ((1 - 2 * mislabeling) ** 2 * error * (1 - error))
    ours = rates.noisy_labels_per_perfect(error=error, mislabeling=mislabeling)
    assert ours == pytest.approx(expected, rel=1e-9)
    assert ours >= 1 - 1e-9


def test_that_many_noisy_labels_give_the_same_standard_error():
    worth = rates.noisy_labels_per_perfect(error=0.1, mislabeling=0.08)
    noisy = rates.true_error(
        apparent=rates.apparent_error(error=0.1, mislabeling=0.08), mislabeling=0.08, n=1000 * worth
    )
    perfect = rates.true_error(apparent=0.1, mislabeling=0.0, n=1000)
    assert noisy.std == pytest.approx(perfect.std)


@pytest.mark.parametrize("n_labelers", [1, 2, 3, 4, 5])
def test_majority_error_is_that_of_enumeration(n_labelers):
    expected = 0.0
    for errs in itertools.product([0, 1], repeat=n_labelers):
        chance = np.prod([0.3 if wrong else 0.7 for wrong in errs])
        expected += chance * (1.0 if 2 * sum(errs) > n_labelers else 0.5 if 2 * sum(errs) == n_labelers else 0.0)
    assert rates.combined_mislabeling(mislabeling=0.3, n_labelers=n_labelers) == pytest.approx(expected)
    optimistic = rates.combined_mislabeling(mislabeling=0.3, n_labelers=n_labelers, combine="optimistic")
    assert optimistic == pytest.approx(0.3**n_labelers)


@pytest.mark.parametrize("combine", ["majority", "optimistic"])
def test_policy_is_the_smaller_variance_of_a_simulation(combine):
    # K = 3 labelers, 200 items each. The standard errors are checked by exact sums over all counts.
    error, mislabeling, k, n = 0.05, 0.15, 3, 200
    policy = rates.labeling_policy(error=error, mislabeling=mislabeling, n_labelers=k, n_items=n, combine=combine)
    for std, size, eps in [
        (policy.different_std, k * n, mislabeling),
        (policy.same_std, n, policy.combined_mislabeling),
    ]:
        a = rates.apparent_error(error=error, mislabeling=eps)
        counts = np.arange(size + 1)
        raw = rates.true_error(apparent=counts / size, mislabeling=eps, n=size).raw
        variance = stats.binom.pmf(counts, size, a) @ (raw - error) ** 2
        assert std == pytest.approx(np.sqrt(variance))
    assert policy.variance_ratio == pytest.approx((policy.same_std / policy.different_std) ** 2)
    assert policy.best == ("different" if policy.variance_ratio >= 1 else "same")


@pytest.mark.parametrize("combine", ["majority", "optimistic"])
def test_boundary_is_where_the_policies_are_equally_good(combine):
    eps, k = np.linspace(0.01, 0.45, 23), np.array([[2], [3], [5]])
    boundary = rates.policy_boundary(mislabeling=eps, n_labelers=k, combine=combine)
    assert boundary.shape == (3, 23)
    given = {"mislabeling": eps, "n_labelers": k, "combine": combine}
    inside = (boundary > 1e-6) & (boundary < 0.5 - 1e-3)
    at = rates.labeling_policy(error=boundary, **given).variance_ratio
    np.testing.assert_allclose(at[inside], 1.0, atol=1e-9)
    below = rates.labeling_policy(error=0.9 * boundary, **given).best
    above = rates.labeling_policy(error=np.minimum(1.1 * boundary + 1e-6, 0.5), **given).best
    assert (below[inside] == "same").all()
    assert (above[inside] == "different").all()
    assert (above[boundary == 0] == "different").all()


@pytest.mark.parametrize(
    ("function", "given", "sentence"),
    [
        (rates.labeling_policy, {"error": 0.1, "n_labelers": 0}, "n_labelers must be an integer of at least 1"),
        (rates.policy_boundary, {"n_labelers": 1}, "n_labelers must be an integer of at least 2"),
        (rates.combined_mislabeling, {"n_labelers": 2.5}, "n_labelers must be an integer"),
        (rates.labeling_policy, {"error": 0.1, "mislabeling": 0.5, "n_labelers": 2}, "cannot be identified"),
        (rates.labeling_policy, {"error": 0.1, "n_labelers": 2, "combine": "mean"}, "`combine` must be one of"),
    ],
)
def test_policies_are_checked(function, given, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        function(**{"mislabeling": 0.1, **given})


@pytest.mark.parametrize("prevalence", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("labeler", [0.75, 1.0])
def test_break_even_is_that_of_the_matrices(prevalence, labeler):
    def at_break_even(rate):
        alarm = prevalence * (1 - rate) / (1 - prevalence)
        return np.array([[1 - alarm, alarm], [1 - rate, rate]])

    joint = rates.joint_distribution(
        confusion=at_break_even(0.8), labeler=at_break_even(labeler), prior=[1 - prevalence, prevalence]
    )
    shown = rates.apparent_break_even(break_even=0.8, labeler=labeler, prevalence=prevalence)
    assert joint[1, 1] / joint[:, 1].sum() == pytest.approx(shown)  # precision against the labels
    assert joint[1, 1] / joint[1].sum() == pytest.approx(shown)  # recall
    assert rates.true_break_even(apparent=shown, labeler=labeler, prevalence=prevalence) == pytest.approx(0.8)
