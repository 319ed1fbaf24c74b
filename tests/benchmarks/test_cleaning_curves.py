"""The curves of the cleaning benchmark: who is level with whom can fail, and the sections print."""

import numpy as np

from benchmarks import _cleaning_curves as bench
from benchmarks._results import tables_in
from experiments.dolatshah2018 import cleaning_runs
from experiments.dolatshah2018.cleaning_runs import Curve, Task


def of(values, strategy, data="set"):
    return {Task(data, strategy, r, 1): Curve(np.array([v]), np.zeros(1), 0.0) for r, v in enumerate(values)}


def test_level_is_within_one_standard_error_of_the_paired_difference():
    base = np.array([0.6, 0.7, 0.8, 0.9])
    wobble = np.array([0.02, -0.02, 0.02, -0.02])
    slightly = of(base, "EMI") | of(base + 0.005 + wobble, "A")
    clearly = of(base, "EMI") | of(base + 0.03 + wobble, "A")
    assert bench.level_on(slightly, ["set"], "A") == ["set"]
    assert bench.level_on(clearly, ["set"], "A") == []
    # Pairing matters: the same values with a constant lead are not level although sets differ by far more.
    assert bench.level_on(of(base, "EMI") | of(base + 0.005, "A"), ["set"], "A") == []


def test_curves_are_printed_and_a_second_run_reads_them(monkeypatch, tmp_path):
    file = tmp_path / "curves.jsonl"
    text = bench.curves(True, file=file)
    assert "At least level with every baseline on" in text
    means = {row[0]: float(row[1].split()[0]) for row in tables_in(text)[0].rows}
    assert means["truth"] > means["noisy labels"]
    monkeypatch.setattr(cleaning_runs, "one", None)
    assert bench.curves(True, file=file) == text
