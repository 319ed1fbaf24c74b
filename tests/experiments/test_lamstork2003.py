"""The reproduction of Lam and Stork (2003): formulas by hand, bounds on real pairs of digits and on CIFAR-10H."""

import pytest

from experiments.lamstork2003 import bounds
from experiments.lamstork2003.__main__ import main
from experiments.lamstork2003.arithmetic import ARITHMETIC
from experiments.lamstork2003.report import checks, comparison, expected


def wrong(name: str, ours: dict[str, float]) -> list[str]:
    """What is not as expected.json says, in words."""
    compared = checks(name, ours)
    assert compared, "nothing was compared"
    return [f"{c.label}: ours {c.ours}, asked {c.paper} {c.rule}" for c in compared if not (c.ok or c.differs)]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_formulas_give_what_was_worked_out_by_hand(name):
    text, ours = ARITHMETIC[name](quick=True)
    assert not wrong(name, ours)
    assert set(expected()[name]["limits"]) <= set(ours)
    assert "agree" in comparison(name, ours)
    assert "ε" in text or "P(ω₁)" in text


@pytest.mark.data
def test_bounds_hold_on_pairs_of_digits(data_folder):
    text, ours = bounds.table3(quick=True)
    assert not wrong("table3", ours)
    assert ours["gaussian: pairs with a labeler's error"] == 18
    assert ours["gaussian: e in [(A − ε)/(1 − 2ε), A + ε], of 45"] == 40  # what the README explains
    # Errors do come together, which is what the lower bound supposes.
    assert ours["gaussian: joint errors, all pairs"] > 3 * ours["gaussian: joint errors if independent"]
    assert "8 and 9" in text


@pytest.mark.data
def test_bounds_hold_for_five_networks_and_one_human_vote(data_folder):
    pytest.importorskip("pyarrow")
    _, ours = bounds.cifar10h(quick=True)
    assert not wrong("cifar10h", ours)


def test_a_command_saves_its_figure_and_prints_the_comparison(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["figure1", "curves", "figure2", "--quick", "--out", str(tmp_path)]) == 0
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("figure1", "figure2", "curves"))
    assert "e = 0.1, ε = 0.05" in capsys.readouterr().out
