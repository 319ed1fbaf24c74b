"""Parts by name: what is registered, what another package brings, and what is forgotten after a block."""

import pytest

from trueup._base.registry import Registry
from trueup.exceptions import InvalidParameter, TrueupWarning


@pytest.fixture
def coins():
    return Registry("coin", {"penny": 1, "nickel": 5}, aliases={"cent": "penny"}, group="trueup.coins")


def test_what_a_block_registers_is_forgotten_after_it(coins):
    with coins.preserved():
        coins.register("dime", 10, aliases=("ten",))
        coins.register("penny", 2)
        assert coins["ten"] == 10
        assert coins["penny"] == 2
    assert coins.names() == ["nickel", "penny"]
    assert coins["cent"] == 1
    assert "ten" not in coins


def test_a_block_that_fails_is_forgotten_too(coins):
    with pytest.raises(ZeroDivisionError), coins.preserved():
        coins.register("dime", 1 / 0)
    assert "dime" not in coins


def test_another_package_brings_parts(coins, install):
    assert "dime" not in coins
    install("mint", "DIME = 10\nPENNY = 100\n", "[trueup.coins]\ndime = mint:DIME\npenny = mint:PENNY\n")
    with coins.preserved():
        assert coins["dime"] == 10
        assert coins["penny"] == 1  # a part of trueup is not replaced by being installed
        assert coins.names() == ["dime", "nickel", "penny"]
    assert "dime" not in coins


def test_a_package_that_cannot_be_loaded_leaves_the_others(coins, install):
    install("mint", "raise OSError('worn out')\n", "[trueup.coins]\ndime = mint:DIME\n")
    install("bank", "QUARTER = 25\n", "[trueup.coins]\nquarter = bank:QUARTER\n")
    with coins.preserved():
        with pytest.warns(
            TrueupWarning, match=r"the coin 'dime' of 'mint:DIME' cannot be loaded, got OSError: worn out"
        ):
            assert coins.names() == ["nickel", "penny", "quarter"]
        with pytest.raises(InvalidParameter, match="coin must be one of"):
            coins["dime"]


def test_a_part_of_another_kind_is_refused():
    def check(name, part):
        if not isinstance(part, int):
            raise InvalidParameter(f"coin {name!r} must be a whole number, got {part!r}")

    coins = Registry("coin", {"penny": 1}, check=check)
    with pytest.raises(InvalidParameter, match="must be a whole number, got 'ten'"):
        coins.register("dime", "ten")
