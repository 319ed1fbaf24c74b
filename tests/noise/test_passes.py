"""Fits pass over votes wherever they are, and give the same."""

from contextlib import contextmanager

import numpy as np
import pytest

import trueup as tu
from trueup._base import clusters
from trueup.exceptions import ClusterLost, InvalidParameter, MissingExtra
from trueup.noise import em as passes
from trueup.noise import kernels

pl = pytest.importorskip("polars")
MODELS = ["majority", "one-coin", "dawid-skene"]


@pytest.fixture(scope="module")
def labels():
    votes = tu.simulate.dawid_skene(n_items=400, random_state=1).labels
    return votes.with_gold({3: votes.classes[0], 250: votes.classes[1]})


@pytest.fixture(scope="module")
def pattern(labels, tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    frame = labels.to_frame(backend="polars")
    for k in range(5):
        frame.filter(pl.col("item") % 5 == k).write_parquet(folder / f"{k}.parquet")
    return str(folder / "*.parquet")


def scanned(pattern, labels):
    return tu.Labels.scan(pattern).with_gold(labels.gold)


@contextmanager
def cluster_of(n_workers):
    """A cluster of workers in this process, and its client."""
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    place = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    cluster = distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, **place)
    with cluster, distributed.Client(cluster) as client:
        yield cluster, client


@pytest.fixture(scope="class")
def client():
    with cluster_of(2) as (_, client):
        yield client


@pytest.mark.parametrize("engine", ["scipy", "numba"])
@pytest.mark.parametrize("model", MODELS)
def test_a_scan_gives_the_fit_of_votes_in_memory(labels, pattern, model, engine, monkeypatch):
    pytest.importorskip(engine)
    monkeypatch.setenv("TRUEUP_ENGINE", engine)
    one, other = tu.noise.fit(scanned(pattern, labels), model), tu.noise.fit(labels, model)
    np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.prior_, other.prior_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(one.loss_history_, other.loss_history_, rtol=0, atol=1e-10)
    assert one.n_iter_ == other.n_iter_


def test_posteriors_come_file_by_file(labels, pattern):
    scan = scanned(pattern, labels)
    model = tu.noise.fit(scan, "dawid-skene")
    chances = {}
    for part in scan.partitions():
        chances |= dict(zip(part.items.tolist(), model.posterior(part).tolist(), strict=True))
    np.testing.assert_allclose([chances[item] for item in labels.items.tolist()], model.posterior(labels), atol=1e-12)


def test_repeated_votes_count_as_often(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"item": rng.integers(40, size=600), "labeler": rng.integers(4, size=600), "label": rng.integers(2, size=600)}
    ).sort("item")
    frame.filter(pl.col("item") < 20).write_parquet(tmp_path / "a.parquet")
    frame.filter(pl.col("item") >= 20).write_parquet(tmp_path / "b.parquet")
    with pytest.warns(tu.exceptions.DataWarning, match="repeat"):
        one = tu.noise.fit(tu.Labels.scan(str(tmp_path / "*.parquet")), "dawid-skene", max_iter=5, tol=0)
    with pytest.warns(tu.exceptions.DataWarning, match="repeat"):
        other = tu.noise.fit(tu.Labels.from_frame(frame), "dawid-skene", max_iter=5, tol=0)
    np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)


class TestOnACluster:
    @pytest.mark.parametrize("model", MODELS)
    def test_an_open_client_fits_a_scan(self, labels, pattern, model, client):
        scan = scanned(pattern, labels)
        one, other = tu.noise.fit(scan, model), tu.noise.fit(labels, model)
        assert scan.encoded.client is client
        np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)
        np.testing.assert_allclose(one.prior_, other.prior_, rtol=0, atol=1e-10)

    def test_votes_in_memory_go_there_if_dask_is_named(self, labels, client, monkeypatch):
        monkeypatch.setattr(passes, "_FEWEST_ROWS", 50)
        sent = []
        monkeypatch.setattr(
            passes, "blocks_in_memory", lambda *args, cut=passes.blocks_in_memory: sent.extend(cut(*args)) or sent
        )
        one, other = tu.noise.fit(labels, "dawid-skene", engine="dask"), tu.noise.fit(labels, "dawid-skene")
        assert len(sent) == 4
        np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("limit", [{"_BRANCHES": 2}, {"_MOST_BESIDE": 0}], ids=["a tree of sums", "large tables"])
    def test_many_files_and_large_tables_give_the_same(self, labels, pattern, client, monkeypatch, limit):
        for name, value in limit.items():
            monkeypatch.setattr(clusters, name, value)
        one, other = tu.noise.fit(scanned(pattern, labels), "dawid-skene"), tu.noise.fit(labels, "dawid-skene")
        np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)

    def test_bad_files_are_named_there_too(self, pattern, client, tmp_path):
        frame = pl.DataFrame({"item": [9, 9], "labeler": ["a", "b"], "label": [0, 1]})
        frame.write_parquet(tmp_path / "a.parquet")
        frame.with_columns(item=pl.Series([8, 8])).write_parquet(tmp_path / "b.parquet")
        scan = tu.Labels.scan(str(tmp_path / "*.parquet"))
        (tmp_path / "b.parquet").write_bytes(b"nothing")
        with pytest.raises(tu.exceptions.InvalidFile, match=r"b.parquet' cannot be read as parquet.*\(file 2 of 2"):
            tu.noise.fit(scan, "majority")


def test_what_a_lost_worker_held_is_computed_again(labels, pattern, monkeypatch):
    other = tu.noise.fit(labels, "dawid-skene")
    with cluster_of(3) as (cluster, _):
        steps = []
        expect = passes.BlockPasses.expect

        def expect_and_lose(self, *args):
            steps.append(1)
            if len(steps) == 3:
                cluster.sync(cluster.workers[0].close, reason="lost")
            return expect(self, *args)

        monkeypatch.setattr(passes.BlockPasses, "expect", expect_and_lose)
        one = tu.noise.fit(scanned(pattern, labels), "dawid-skene")
    assert len(steps) > 3
    np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-10)


def test_a_cluster_without_workers_is_given_up(labels, pattern, monkeypatch):
    monkeypatch.setattr(clusters, "_LONGEST_WITHOUT_WORKERS", 0.2)
    monkeypatch.setattr(clusters, "_LOOK_EVERY", 0.1)
    with cluster_of(2) as (cluster, _):
        scan = scanned(pattern, labels)
        tu.noise.fit(scan, "majority")
        for worker in list(cluster.workers.values()):
            cluster.sync(worker.close, reason="lost")
        with pytest.raises(ClusterLost, match=r"must have workers, got none for 0 seconds at <Client.*; start some"):
            tu.noise.fit(scan, "dawid-skene")


def test_a_task_that_ran_out_of_time_says_so_itself():
    with cluster_of(1) as (_, client), pytest.raises(TimeoutError, match="of its own"):
        clusters.wait_for(client, client.submit(_run_out_of_time, pure=False))


def _run_out_of_time():
    raise TimeoutError("of its own")


def test_dask_needs_an_open_client(labels):
    pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    with pytest.raises(InvalidParameter, match=r"`engine='dask'` needs a cluster, got no open client"):
        tu.noise.fit(labels, "dawid-skene", engine="dask")


def test_dask_that_is_not_installed_is_named_with_its_command(labels, monkeypatch):
    monkeypatch.setattr("trueup._base.optional.is_installed", lambda name: name != "distributed")
    with pytest.raises(MissingExtra, match=r"pip install 'trueup\[dask\]'"):
        tu.noise.fit(labels, "dawid-skene", engine="dask")


@pytest.mark.parametrize("name", ["scipy", "numba"])
def test_the_named_engine_takes_every_step(labels, name, monkeypatch):
    pytest.importorskip(name)
    used = []
    step = kernels.em_step
    monkeypatch.setattr(
        kernels, "em_step", lambda *args, **kwargs: used.append(kwargs["engine"]) or step(*args, **kwargs)
    )
    tu.noise.fit(labels, "dawid-skene", engine=name)
    assert set(used) == {name}


@pytest.mark.parametrize("model", ["majority", "glad", "auto"])
def test_a_model_without_compiled_steps_refuses_the_name(labels, model):
    with pytest.raises(InvalidParameter, match=r"`engine` of \w+ must be one of 'scipy'.*, got 'numba'; leave it out"):
        tu.noise.fit(labels, model, engine="numba")
