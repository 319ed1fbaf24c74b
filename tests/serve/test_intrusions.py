"""Every attempt to get in, by its name, against a server on the network of this machine."""

import pytest

from benchmarks._serve_intrusions import INTRUSIONS
from benchmarks._serve_site import open_site


@pytest.fixture(scope="module")
def site():
    with open_site() as opened:
        yield opened


@pytest.mark.parametrize("intrusion", INTRUSIONS, ids=lambda one: one.name)
def test_nobody_gets_in(site, intrusion):
    outcome = intrusion.run(site)
    assert outcome.kept_out, outcome.told
