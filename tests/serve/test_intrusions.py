"""Every attempt to get in, by its name, against a server on the network of this machine."""

import pytest
from attacked_site import open_site
from intruders import INTRUDERS
from tricks import TRICKS


@pytest.fixture(scope="module")
def site():
    with open_site() as opened:
        yield opened


@pytest.mark.parametrize("intrusion", [*INTRUDERS, *TRICKS], ids=lambda one: one.name)
def test_nobody_gets_in(site, intrusion):
    outcome = intrusion.run(site)
    assert outcome.kept_out, outcome.told
