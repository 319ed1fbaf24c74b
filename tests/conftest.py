"""What all tests share: the data folder, repeatable property tests, figures without a screen."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Each folder has its own; pytest loads them as plugins, and must not look for examples in them as modules.
collect_ignore_glob = ["*conftest.py"]

ROOT = Path(__file__).parents[1]

# Before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# The same examples each time, so that a red suite is red for everyone; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the open data sets, named by TRUEUP_DATA; a test that asks for it is skipped where it is absent."""
    named = os.environ.get("TRUEUP_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the data folder {str(folder)!r} does not exist; name one in TRUEUP_DATA")
    return folder.resolve()
