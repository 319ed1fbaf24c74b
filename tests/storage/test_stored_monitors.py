"""A monitor in each of the databases."""

from contextlib import closing

import numpy as np

import trueup as tu
from trueup.storage import open_storage


def add_days(watch, first, last, *, accuracy=0.9):
    """Add a batch for each day, the same ones for the same days."""
    for day in range(first, last + 1):
        rng = np.random.default_rng(day)
        truth = rng.integers(2, size=150)
        said = np.where(rng.random((150, 3)) < [0.9, 0.9, accuracy], truth[:, None], 1 - truth[:, None])
        labels = tu.Labels.from_matrix(said[:, :2], labelers=["ann", "bob"])
        vetted = {int(k): int(truth[k]) for k in rng.choice(150, 5, replace=False)}
        watch.add(labels.with_gold(vetted, drawn="random"), said[:, 2], when=f"2026-11-{day:02}")
    return watch


def test_processes_share_a_monitor(database):
    here, there = tu.Monitor(storage=database, baseline=4), tu.Monitor(storage=database)
    add_days(there, 1, 5)
    add_days(here, 6, 8)
    there.restart("a new release")
    add_days(here, 9, 13)
    add_days(there, 14, 16, accuracy=0.5)
    here.refresh()
    alone = add_days(tu.Monitor(baseline=4), 1, 8)
    alone.restart("a new release")
    add_days(add_days(alone, 9, 13), 14, 16, accuracy=0.5)
    assert here.alarm is not None
    assert here.alarm.since == "2026-11-14"
    assert here.alarms == there.alarms == alone.alarms == tu.Monitor(storage=database).alarms
    copy = tu.Monitor.from_json(here.to_json(), storage=database, name="copy")
    assert (copy.times, copy.alarms) == (here.times, here.alarms)


def test_a_judge_is_forgotten(database):
    watch = add_days(tu.Monitor(storage=database, baseline=4), 1, 6)
    errors = watch.judges
    with closing(open_storage(database)) as storage:
        assert storage.forget("ann") == 6
    again = tu.Monitor(storage=database)
    assert "ann" not in again.to_json()
    judges = again.judges
    assert sorted(set(judges["judge"])) == ["bob", "forgotten person 1"]
    np.testing.assert_array_equal(judges["error"], errors["error"])
