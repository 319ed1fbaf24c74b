"""trueup rates."""

import json

import pytest
from cli_helpers import assert_one_sentence

from trueup import rates


def test_a_table_through_the_installed_program(run_trueup):
    ran = run_trueup("rates", "true-error", "--apparent", "0.12", "--mislabeling", "0.05", "-n", "1000")
    assert ran.code == 0, ran.err
    assert "0.0778" in ran.out
    assert "0.0570 to 0.1018" in ran.out
    assert "allow 0.0700 to 0.1700" in ran.out


def test_counts_say_how_many_were_counted(run_main):
    ran = run_main("rates", "true-error", "--apparent", "120/1000", "--mislabeling", "5/100", "--json")
    found = json.loads(ran.out)
    expected = rates.true_error(apparent=0.12, mislabeling=0.05, n=1000, n_checked=100)
    assert (found["low"], found["high"]) == expected.interval(0.95)
    assert found["true_error"] == float(expected)
    percent = run_main(
        "rates", "true-error", "--apparent", "12%", "--mislabeling", "5%", "-n", "1000", "--n-checked", "100", "--json"
    )
    assert json.loads(percent.out)["high"] == found["high"]


def test_without_a_number_there_is_no_interval(run_main):
    ran = run_main("rates", "true-error", "--apparent", "0.12", "--mislabeling", "0.05")
    assert "no interval" in ran.out
    found = json.loads(run_main("rates", "true-error", "--apparent", "0.12", "--mislabeling", "0.05", "--json").out)
    assert found["low"] is None
    assert found["true_error"] == pytest.approx(0.07 / 0.9)


def test_what_does_not_fit_is_said(run_main):
    ran = run_main("rates", "true-error", "--apparent", "30/1000", "--mislabeling", "0.05")
    assert ran.code == 0
    assert "more than bad luck" in ran.out


def test_an_error_that_is_surely_too_large_can_fail_the_run(run_main):
    asked = ("rates", "true-error", "--apparent", "120/1000", "--mislabeling", "0.05")
    assert run_main(*asked, "--fail-above", "0.06").code == 0  # it may be below
    ran = run_main(*asked, "--fail-above", "0.05")
    assert ran.code == 1
    assert "surely above 0.05" in ran.err


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        (
            ("apparent-error", "--error", "0.08", "--mislabeling", "0.05"),
            "apparent_error",
            rates.apparent_error(error=0.08, mislabeling=0.05),
        ),
        (
            ("bounds", "--apparent", "0.12", "--mislabeling", "0.05"),
            "low",
            rates.error_bounds(apparent=0.12, mislabeling=0.05)[0],
        ),
        (
            ("bounds", "--apparent", "0.12", "--mislabeling", "0.05", "--dependence", "any", "--classes", "4"),
            "high",
            rates.error_bounds(apparent=0.12, mislabeling=0.05, dependence="any", n_classes=4)[1],
        ),
        (
            ("break-even", "--apparent", "0.8556", "--labeler", "0.95", "--prevalence", "0.1"),
            "true_break_even",
            rates.true_break_even(apparent=0.8556, labeler=0.95, prevalence=0.1),
        ),
        (
            ("break-even", "--true", "0.9", "--labeler", "0.95", "--prevalence", "0.1"),
            "apparent_break_even",
            rates.apparent_break_even(break_even=0.9, labeler=0.95, prevalence=0.1),
        ),
        (
            ("worth", "--error", "0.1", "--mislabeling", "0.05"),
            "noisy_labels_per_perfect",
            rates.noisy_labels_per_perfect(error=0.1, mislabeling=0.05),
        ),
        (
            ("policy", "--error", "0.1", "--mislabeling", "0.05", "--labelers", "3", "--items", "200"),
            "same_std",
            rates.labeling_policy(error=0.1, mislabeling=0.05, n_labelers=3, n_items=200).same_std,
        ),
        (
            ("policy", "--error", "0.1", "--mislabeling", "0.1", "--labelers", "3"),
            "boundary",
            rates.policy_boundary(mislabeling=0.1, n_labelers=3),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_numbers_are_those_of_the_library(options, key, expected, run_main):
    assert json.loads(run_main("rates", *options, "--json").out)[key] == pytest.approx(expected, abs=1e-12)
    shown = run_main("rates", *options)
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


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("true-error", "--apparent", "often", "--mislabeling", "0.05"), "--apparent must be a rate"),
        (("true-error", "--apparent", "120/100", "--mislabeling", "0.05"), "part of a whole"),
        (("true-error", "--apparent", "0/0", "--mislabeling", "0.05"), "part of a whole"),
        (("true-error", "--apparent", "1.2", "--mislabeling", "0.05"), "apparent"),
        (("true-error", "--apparent", "nan", "--mislabeling", "0.05"), "apparent"),
        (("true-error", "--apparent", "0.1", "--mislabeling", "0.5"), "0.5"),
        (("true-error", "--apparent", "1/10", "--mislabeling", "0.05", "-n", "20"), "-n must be"),
        (("true-error", "--apparent", "0.1", "--mislabeling", "0.05", "--method", "guess", "-n", "9"), "method"),
        (("true-error", "--apparent", "0.1", "--mislabeling", "0.05", "--fail-above", "0.1"), "needs an interval"),
        (("true-error", "--mislabeling", "0.05"), "--apparent"),
        (("bounds", "--apparent", "0.1", "--mislabeling", "0.05", "--dependence", "some"), "dependence"),
        (("break-even", "--labeler", "0.9", "--prevalence", "0.1"), "--apparent and --true"),
        (("confusion", "--joint", "1,2;3", "--labeler", "9,1;1,9"), "--joint must be a matrix"),
        (("confusion", "--joint", "a,b;c,d", "--labeler", "9,1;1,9"), "--joint must be a matrix"),
        (("confusion", "--joint", "5,1;1,5", "--labeler", "5,5;5,5"), "cannot"),
        (("confusion", "--joint", "5,1;1,5", "--labeler", "9,1;1,9", "-m", "beauty"), "beauty"),
        (("policy", "--error", "0.1", "--mislabeling", "0.1", "--labelers", "3", "--combine", "dice"), "combine"),
        (("guess",), "guess"),
    ],
)
def test_bad_options_are_one_sentence(options, sentence, run_main):
    ran = run_main("rates", *options)
    assert_one_sentence(ran)
    assert sentence in ran.err


def test_a_policy_that_never_pays(run_main):
    ran = run_main("rates", "policy", "--error", "0.1", "--mislabeling", "0.1", "--labelers", "2")
    assert "The same items are better for no true error." in ran.out
    assert "0.0000" not in ran.out.splitlines()[-1]
