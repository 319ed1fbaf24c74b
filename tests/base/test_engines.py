"""One place says which engine is used, and why."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import trueup as tu
from trueup._base import engines as module
from trueup._base.engines import ENGINES, VARIABLE, choose_engine, for_threads, named_engine, using_engine
from trueup._base.optional import is_installed
from trueup.exceptions import InvalidParameter, MissingExtra


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.fixture
def without(monkeypatch):
    """A function that hides packages from trueup."""

    def hide(*packages: str) -> None:
        present = {name: is_installed(name) for name in ("scipy", "numba", "torch", "distributed")}
        look = (present | dict.fromkeys(packages, False)).__getitem__
        monkeypatch.setattr(module, "is_installed", look)
        monkeypatch.setattr("trueup._base.optional.is_installed", look)

    return hide


def test_little_work_is_left_to_scipy_and_much_to_compiled_code():
    assert choose_engine(work=10) == "scipy"
    assert choose_engine(work=10**7) == ("numba" if is_installed("numba") else "scipy")
    assert choose_engine(work=10, worth=10) == ("numba" if is_installed("numba") else "scipy")
    assert choose_engine(work=10**7, offers=["scipy"]) == "scipy"


def test_the_environment_names_an_engine(monkeypatch):
    monkeypatch.setenv(VARIABLE, "scipy")
    assert choose_engine(work=10**7) == "scipy"
    assert tu.engines()["scipy"].reason == "TRUEUP_ENGINE=scipy"
    assert not tu.engines()["numba"].is_default
    monkeypatch.setenv(VARIABLE, "torch")  # which this work does not offer
    assert choose_engine(work=10) == "scipy"
    monkeypatch.setenv(VARIABLE, "fortran")
    with pytest.raises(InvalidParameter, match=r"TRUEUP_ENGINE must be one of .* got 'fortran'"):
        choose_engine(work=10)


def test_threads_use_the_engine_that_was_named():
    with ThreadPoolExecutor(1) as pool:
        with using_engine("scipy"):
            named = list(pool.map(for_threads(lambda _: named_engine()), range(2)))
            assert list(pool.map(lambda _: named_engine(), range(2))) == [None, None]
        assert named == ["scipy", "scipy"]


def test_errors_say_what_to_do(without):
    with pytest.raises(InvalidParameter, match=r"`engine` must be one of .* got 'numbat'; did you mean 'numba'"):
        choose_engine("numbat")
    with pytest.raises(InvalidParameter, match=r"`engine` of noise\.fit must be one of 'scipy', 'numba', got 'torch'"):
        choose_engine("torch", purpose="noise.fit")
    without("torch", "distributed")
    with pytest.raises(MissingExtra, match=r"`engine='torch'` needs torch, .*: pip install 'trueup\[torch\]'"):
        choose_engine("torch", offers=ENGINES)
    with pytest.raises(MissingExtra, match=r"`engine='dask'` needs distributed, .*: pip install 'trueup\[dask\]'"):
        choose_engine("dask", offers=ENGINES)


def test_the_table_has_a_row_for_each_engine(without):
    without("torch", "distributed")  # which take seconds to load
    table = tu.engines()
    assert [engine.name for engine in table] == list(ENGINES)
    assert table["scipy"].is_installed
    assert table["scipy"].version
    lines = repr(table).splitlines()
    assert lines[0].split() == ["engine", "version", "runs", "on", "default", "why"]
    assert len(lines) == 5
    assert "pip install 'trueup[dask]'" in lines[4]
    assert table.to_dict()["name"] == list(ENGINES)
    with pytest.raises(InvalidParameter, match="`engine` must be one of"):
        table["cobol"]
