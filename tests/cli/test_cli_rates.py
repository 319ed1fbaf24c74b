"""trueup rates."""

import json

import pytest

from trueup import rates


def test_a_table_through_the_installed_program(run_trueup):
    ran = run_trueup("rates", "true-error", "--apparent", "0.12", "--mislabeling", "0.05", "-n", "1000")
    assert ran.code == 0, ran.err
    assert "0.0778" in ran.out
    assert "0.0570 to 0.1018" in ran.out
    assert "allow 0.0700 to 0.1700" in ran.out


def test_an_error_that_is_surely_too_large_can_fail_the_run(run_main):
    asked = ("rates", "true-error", "--apparent", "120/1000", "--mislabeling", "0.05")
    assert run_main(*asked, "--fail-above", "0.06").code == 0  # it may be below
    ran = run_main(*asked, "--fail-above", "0.05")
    assert ran.code == 1
    assert "surely above 0.05" in ran.err


KNOWN = {"mislabeling": 0.05}
NUMBERS = {
    "apparent-error --error 0.08": ("apparent_error", rates.apparent_error(error=0.08, **KNOWN)),
    "bounds --apparent 0.12": ("low", rates.error_bounds(apparent=0.12, **KNOWN)[0]),
    "bounds --apparent 0.12 --dependence any --classes 4": (
        "high",
        rates.error_bounds(apparent=0.12, dependence="any", n_classes=4, **KNOWN)[1],
    ),
    "worth --error 0.1": ("noisy_labels_per_perfect", rates.noisy_labels_per_perfect(error=0.1, **KNOWN)),
    "policy --error 0.1 --labelers 3 --items 200": (
        "same_std",
        rates.labeling_policy(error=0.1, n_labelers=3, n_items=200, **KNOWN).same_std,
    ),
    "policy --error 0.1 --labelers 3": ("boundary", rates.policy_boundary(n_labelers=3, **KNOWN)),
}
EVEN = {"labeler": 0.95, "prevalence": 0.1}
BREAK_EVEN = "break-even --labeler 0.95 --prevalence 0.1"
CALLS = {f"{call} --mislabeling 0.05": found for call, found in NUMBERS.items()} | {
    f"{BREAK_EVEN} --apparent 0.8556": ("true_break_even", rates.true_break_even(apparent=0.8556, **EVEN)),
    f"{BREAK_EVEN} --true 0.9": ("apparent_break_even", rates.apparent_break_even(break_even=0.9, **EVEN)),
}


@pytest.mark.parametrize(("call", "found"), CALLS.items(), ids=CALLS)
def test_numbers_are_those_of_the_library(call, found, run_main):
    key, expected = found
    assert json.loads(run_main("rates", *call.split(), "--json").out)[key] == pytest.approx(expected, abs=1e-12)
    shown = run_main("rates", *call.split())
    assert shown.code == 0
    assert f"{expected:.4f}" in shown.out


def test_a_confusion_matrix(run_main):
    asked = ("rates", "confusion", "--joint", "520,60;80,340", "--labeler", "95,5;10,90", "-m", "precision")
    found = json.loads(run_main(*asked, "--json").out)
    expected = rates.recover_confusion(joint=[[520, 60], [80, 340]], labeler=[[95, 5], [10, 90]])
    assert found["confusion"] == expected.confusion.tolist()
    assert found["metrics"]["precision"]["mean"] == expected.estimate("precision").mean
    assert found["metrics"]["error"]["high"] == pytest.approx(0.1257, abs=1e-4)
    shown = run_main(*asked).out
    assert "0.958" in shown
    assert "0.0390 to 0.1257" in shown
