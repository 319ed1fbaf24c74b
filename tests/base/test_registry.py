"""Parts by name: what is registered, what another package brings, and what is forgotten after a block."""

import threading

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


def test_another_package_brings_parts(coins, install):
    assert "dime" not in coins
    install("mint", "DIME = 10\nPENNY = 100\n", "[trueup.coins]\ndime = mint:DIME\npenny = mint:PENNY\n")
    with coins.preserved():
        assert coins["dime"] == 10
        assert coins["penny"] == 1  # a part of trueup is not replaced by being installed
        assert coins.names() == ["dime", "nickel", "penny"]
    assert "dime" not in coins
    assert coins["PENNY"] == 1


def test_a_package_that_cannot_be_loaded_leaves_the_others(coins, install):
    install("mint", "raise OSError('worn out')\n", "[trueup.coins]\ndime = mint:DIME\n")
    install("bank", "QUARTER = 25\n", "[trueup.coins]\nquarter = bank:QUARTER\n")
    with coins.preserved():
        with pytest.warns(
            TrueupWarning, match=r"the coin 'dime' of 'mint:DIME' cannot be loaded, got OSError: worn out"
        ):
            assert coins.names() == ["nickel", "penny", "quarter"]
        with pytest.raises(InvalidParameter, match="`coin` must be one of"):
            coins["dime"]


def test_a_part_of_another_kind_is_refused():
    def check(name, part):
        if not isinstance(part, int):
            raise InvalidParameter(f"coin {name!r} must be a whole number, got {part!r}")

    coins = Registry("coin", {"penny": 1}, check=check)
    with pytest.raises(InvalidParameter, match="must be a whole number, got 'ten'"):
        coins.register("dime", "ten")


@pytest.mark.parametrize(
    ("name", "aliases"), [("cent", ()), ("dime", ("penny",)), ("dime", ("cent",)), ("nickel", ("Penny",))]
)
def test_a_name_that_means_another_part_is_refused(coins, name, aliases):
    with pytest.raises(InvalidParameter, match=r"that no other has, got '(cent|penny)', which means 'penny'"):
        coins.register(name, 10, aliases=aliases)
    assert coins["penny"] == coins["cent"] == 1
    assert coins.names() == ["nickel", "penny"]


def test_a_part_may_be_replaced_with_its_aliases(coins):
    coins.register("penny", 2, aliases=("cent", "copper"))
    assert coins["cent"] == coins["copper"] == coins["penny"] == 2


@pytest.mark.parametrize("name", [None, "Dime_Coin", int])
def test_an_unknown_name_is_shown_as_it_was_passed(coins, name):
    with pytest.raises(InvalidParameter) as caught:
        coins.resolve(name)
    assert f"got {name!r}" in str(caught.value)


def test_threads_wait_until_other_packages_are_loaded(coins, install):
    install("mint", "import time\ntime.sleep(0.2)\nDIME = 10\n", "[trueup.coins]\ndime = mint:DIME\n")
    seen = []
    with coins.preserved():
        threads = [threading.Thread(target=lambda: seen.append(coins.names())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [["dime", "nickel", "penny"]] * 4
