"""The benchmark of the core: worlds as they are described, runs that go on, rivals by formula, tables by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _runs as runs
from benchmarks._vetting_rivals import Sample, ppi_of_pool, ppi_plus_plus, ppi_ratio_of_pool
from benchmarks._worlds import WORLDS, make
from benchmarks.vetting import run_crowd


def rows_for(case: runs.Case) -> list[runs.Row]:
    return [{"value": case.seed * 10}]


def as_section(rows: Sequence[runs.Row]) -> str:
    return str(sum(row["value"] for row in rows))


FIGURE = runs.Figure(("x", "y"), rows_for, as_section, n_runs=3, n_quick=1, first_seed=5, quick_worlds=("y",))


def test_kept_runs_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = runs.run_cases("a", FIGURE.run, FIGURE.cases(2), processes=1, folder=tmp_path)
    measured = []

    def count(case: runs.Case) -> list[runs.Row]:
        measured.append(case)
        return rows_for(case)

    counted = runs.Figure(FIGURE.worlds, count, as_section, 3, 1, 5)
    rows = runs.run_cases("a", counted.run, counted.cases(3), processes=1, folder=tmp_path)
    assert measured == [runs.Case("x", 7), runs.Case("y", 7)]
    assert rows[: len(first)] == first
    assert rows[-1] == {"world": "y", "seed": 7, "value": 70}
    monkeypatch.setattr(runs, "fingerprint", lambda run: "other code")
    runs.run_cases("a", counted.run, counted.cases(1), processes=1, folder=tmp_path)
    assert measured[-2:] == counted.cases(1)


def test_runs_are_known_by_all_code_of_benchmarks_that_they_rest_on(monkeypatch):
    """What a run imports decides its numbers too: how often a case is repeated was in another file than the run."""
    known = runs.fingerprint(run_crowd)
    read = Path.read_bytes
    for name in ("vetting.py", "_vetting_rivals.py", "_data.py"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", lambda path, name=name: read(path) + b"#" * (path.name == name))
            assert runs.fingerprint(run_crowd) != known, name
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path.name == "_training_torch.py"))
        assert runs.fingerprint(run_crowd) == known


@pytest.mark.parametrize("name", [name for name in WORLDS if name != "independent"])
def test_the_classifier_errs_with_the_crowd_where_it_should(name: str) -> None:
    def joint(world_name: str) -> float:
        world = make(world_name, 4000, 3)
        crowd_errs = world.labels.answer_counts.argmax(axis=1) != world.truth
        errs = world.predictions != world.truth
        return float(np.mean(errs & crowd_errs) / (errs.mean() * crowd_errs.mean()))

    assert joint(name) > 1.3
    assert 0.7 < joint("independent") < 1.3


def test_prediction_powered_intervals_hold() -> None:
    rng = np.random.default_rng(2)
    held_pool, held_population = [], []
    for _ in range(600):
        f = rng.beta(2, 1, 300)
        y = (rng.random(300) < f).astype(float)
        sample = Sample(y[:60], f[:60], f[60:])
        (_, pool), (_, population) = ppi_of_pool(sample), ppi_plus_plus(sample)
        held_pool.append(pool[0] <= y.mean() <= pool[1])
        held_population.append(population[0] <= 2 / 3 <= population[1])
    assert np.mean(held_pool) == pytest.approx(0.94, abs=0.03)
    assert np.mean(held_population) == pytest.approx(0.94, abs=0.03)


def test_prediction_powered_ratios_hold() -> None:
    """Recall of a system: a ratio of two means that are both unknown."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(400):
        f = rng.beta(1, 1, 1000)
        y = (rng.random(1000) < f).astype(float)
        said = (rng.random(1000) < 0.2 + 0.6 * y).astype(float)
        above, below = (Sample((v * y)[:200], (v * f)[:200], (v * f)[200:]) for v in (said, np.ones(1000)))
        interval = ppi_ratio_of_pool(above, below)
        assert interval is not None
        held.append(interval[1][0] <= (said * y).sum() / y.sum() <= interval[1][1])
    assert np.mean(held) == pytest.approx(0.94, abs=0.035)
    nothing = Sample(np.zeros(3), np.zeros(3), np.zeros(5))
    assert ppi_ratio_of_pool(nothing, nothing) is None
