"""Numbers as text: one rounding for tables, reports and the command line."""

import pytest

from trueup._base.wording import chance, interval, level_words, number, percent, signed


def test_numbers_do_not_round_to_certainty():
    assert interval(0.99912, 0.99987) == "0.9991 to 0.9999"
    assert interval(0.00004, 0.3) == "0.00004 to 0.30000"
    assert interval(0.9, 1.0) == "0.900 to 1.000"
    assert interval(1e-7, 0.3) == "0.000 to 0.300", "nobody needs seven decimals"
    assert (number(0.99996), number(1.0), number(0.0), number(1e-17)) == ("0.99996", "1.000", "0.000", "0.000")
    assert (percent(0.99999, 1), percent(1e-5, 1), percent(1.0, 1)) == ("over 99.9%", "under 0.1%", "100.0%")
    assert (chance(1.0), chance(0.0)) == ("over 99.9%", "under 0.1%")


@pytest.mark.parametrize("level", [0.999, 0.9999, 0.99999])
def test_levels_do_not_round_to_certainty(level):
    assert level_words(level) == f"{level * 100:.10g}%" != "100%"


def test_what_has_no_value_is_a_dash():
    assert {number(None), number(float("inf")), interval(None, 1.0), percent(None), chance(float("nan"))} == {"–"}


def test_signs_are_those_of_print():
    assert (number(-0.25), signed(0.031), signed(-0.031), signed(0.0)) == ("−0.250", "+0.03", "−0.03", "0.00")
    assert interval(-0.04, 0.012) == "−0.040 to 0.012"
    assert number(-0.0) == "0.000"
