"""Numbers as text: one rounding for tables, reports and the command line."""

import pytest

from trueup._base.cells import csv_text, plain_cell, safe_cell
from trueup._base.html import html_table
from trueup._base.wording import (
    chance,
    decimals,
    interval,
    level_words,
    listed,
    number,
    percent,
    signed,
    some,
    text_bar,
)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ([some(1, "item"), some(1000, "class"), some(2, "box")], ["1 item", "1,000 classes", "2 boxes"]),
        ([listed(["a", "b", "c"]), listed(["a"]), listed([])], ["a, b and c", "a", ""]),
        ([listed(["a", "b", "c"], most=1)], ["a and 2 more"]),
        ([decimals(0.8, 0.91), decimals(0.8, 0.91, least=2), decimals(0.99912, 0.99987)], [3, 2, 4]),
        ([number(0.87654), number(-1234.5, 1)], ["0.877", "−1,234.5"]),
        ([interval(0.9, 1.0, joint=" and "), interval(0.9, 0.99999)], ["0.900 and 1.000", "0.900 to 1.000"]),
        ([text_bar(0.5, 0.75, bounds=(0.0, 1.0), mark=0.6, width=20)], ["0 ··········━━┃━━━···· 1"]),
        ([percent(0.954), percent(0.9541, 1), chance(0.5), chance(0.953)], ["95%", "95.4%", "50%", "95.3%"]),
        ([safe_cell("=cmd()"), safe_cell("a=b"), safe_cell(-1)], ["'=cmd()", "a=b", -1]),
        ([plain_cell("'=cmd()", {"=cmd()": "=cmd()"}), plain_cell("'tis", {"tis": "tis"})], ["=cmd()", "'tis"]),
        ([csv_text(["item", "label"], [["a,b", 1]])], ['item,label\n"a,b",1\n']),
    ],
)
def test_what_is_written(text, expected):
    assert text == expected


def test_a_table_with_bars():
    page = html_table("<b>", [("a", 0.5, 0.25, 0.75), (1, 0.2, float("nan"), float("nan"))])
    assert "&lt;b&gt;" in page
    assert page.count("left:25.0%;width:50.0%") == page.count("left:0.0%;width:20.0%") == 1
    assert html_table("", [], notes=["pass `a<b`"]).endswith("<p>pass <code>a&lt;b</code></p></div>")
