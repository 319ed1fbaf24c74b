"""What all tests share: what a machine may lack, repeatable property tests, figures without a screen."""

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from chromium import Chromium
    from postgres_server import Postgres

# Before anything imports matplotlib.
os.environ.setdefault("MPLBACKEND", "Agg")

# The same examples each time, so that a red suite is red for everyone; HYPOTHESIS_PROFILE=explore looks for new ones.
# A busy machine is slow, which is no fault of a test.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", patient, derandomize=True, database=None)
settings.register_profile("explore", patient, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# What a machine may lack, by the marker of the tests that need it. A test without it is skipped with the reason, and
# fails instead where TRUEUP_REQUIRE names the marker: there a failed installation must not look like a passed test.
FOLDERS = {"data": "TRUEUP_DATA", "adapters": "TRUEUP_ADAPTERS"}
REQUIREMENTS = {*FOLDERS, "browser", "postgres", "integrations", "node"}

# What builds for long before its first test starts first. Workers take over from the end of each other's list, so that
# one worker has the whole of these files and builds once, and none is left with them at the end.
FIRST = ("test_wheel.py", "test_docs_site.py", "test_no_network.py")

# Tests of how the project is built and measured, and not of the library: they run after the others.
WORKSHOP = {"benchmarks", "test_ci_run.py", "test_docs_site.py", "test_lock.py", "test_release.py", "test_wheel.py"}
WORKSHOP |= {"test_system_packages.py"}

# Folders whose tests draw as much as users do; see `short_chains`.
LONG_CHAINS = ("noise", "estimators", "statistical", "examples", "benchmarks", "experiments")


def named_folder(marker: str) -> Path | str:
    """The folder that the tests with this marker read, or the sentence that says why there is none."""
    variable = FOLDERS[marker]
    name = os.environ.get(variable)
    if not name:
        return f"{variable} is not set; it names the folder that this test reads"
    return Path(name).resolve() if Path(name).is_dir() else f"{variable} names {name!r}, which is no folder"


def required_markers() -> set[str]:
    """The markers whose tests must not be skipped."""
    return {name.strip() for name in os.environ.get("TRUEUP_REQUIRE", "").split(",")} - {""}


def pytest_configure() -> None:
    """A misspelled requirement would demand nothing."""
    unknown = sorted(required_markers() - REQUIREMENTS)
    if unknown:
        raise pytest.UsageError(
            f"TRUEUP_REQUIRE must name some of {', '.join(sorted(REQUIREMENTS))}, got {', '.join(unknown)}"
        )


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for tests alone: examples in docstrings are in src, and to look for some here takes every worker seconds."""
    collectors = yield
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if WORKSHOP & set(item.path.relative_to(item.config.rootpath).parts):
            item.add_marker("workshop")
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in FOLDERS:
        if item.get_closest_marker(marker) and isinstance(reason := named_folder(marker), str):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    lacking = sorted(name for name in required_markers() if item.get_closest_marker(name))
    if report.skipped and lacking and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"TRUEUP_REQUIRE asks for {', '.join(lacking)}, but this test was skipped: {reason}"
    return report


@pytest.fixture(scope="module", autouse=True)
def short_chains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Little is drawn where a call does not say how much: for modules about what is said, not about how well it holds.

    The latter is what these folders are about; documents and examples are run as users run them.
    """
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    if folder in LONG_CHAINS or folder == request.path.name:
        yield
        return
    from trueup.noise import check_independence

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(check_independence.__kwdefaults__, "n_replicates", 100)
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the open data sets, for tests marked ``data``."""
    folder = named_folder("data")
    if isinstance(folder, str):
        pytest.fail(f"a test that reads the data folder must be marked with data: {folder}")
    return folder


@pytest.fixture(scope="session")
def exports_folder() -> Path:
    """The folder of exports of other tools, for tests marked ``adapters``."""
    folder = named_folder("adapters")
    if isinstance(folder, str):
        pytest.fail(f"a test that reads the folder of exports must be marked with adapters: {folder}")
    return folder


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    """A browser that runs, for tests marked ``browser``."""
    from chromium import NoBrowser, start_chromium

    with ExitStack() as stack:
        try:
            browser = stack.enter_context(start_chromium())
        except NoBrowser as problem:
            pytest.skip(str(problem))
        yield browser


@pytest.fixture(scope="module")
def browser(chromium: "Browser") -> "Chromium":
    """One page of a browser."""
    from chromium import Chromium

    return Chromium(chromium)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["Postgres"]:
    """A PostgreSQL server, for tests marked ``postgres``."""
    from postgres_server import NoPostgres, start_postgres

    try:
        server = start_postgres()
    except NoPostgres as problem:
        pytest.skip(str(problem))
    try:
        yield server
    finally:
        server.close()
