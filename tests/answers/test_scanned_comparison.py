"""Comparing systems on votes in files: as in memory, whatever files the items are in."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.data.rated import rated_scan
from trueup.estimators import collapsed, kinds
from trueup.estimators.collapsed_readings import class_features
from trueup.estimators.readings import FEW_SWEEPS, blind_correlations
from trueup.exceptions import InvalidParameter, InvalidPredictions

pl = pytest.importorskip("polars")
N_ITEMS = 900
SYSTEMS = {"good": "a", "copy": "b", "bad": "c"}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setitem(FEW_SWEEPS, "n_warmup", 30)
    monkeypatch.setitem(FEW_SWEEPS, "n_draws", 60)
    monkeypatch.setattr(
        "trueup.estimators.readings.MOST_VOTES", 2000
    )  # so that models look at some items in memory, too
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 1000)


@pytest.fixture(scope="module")
def frame():
    """Votes, and three systems: two that are the same but for a few items, and a worse one."""
    rng = np.random.default_rng(3)
    truth = (rng.random(N_ITEMS) < 0.4).astype(int)
    labeler = np.stack([rng.permutation(9)[:4] for _ in range(N_ITEMS)])
    votes = np.where(rng.random(labeler.shape) < np.linspace(0.7, 0.95, 9)[labeler], truth[:, None], 1 - truth[:, None])
    good, bad = (np.where(rng.random(N_ITEMS) < share, truth, 1 - truth) for share in (0.9, 0.7))
    copy = np.where(np.arange(N_ITEMS) % 100 == 0, 1 - good, good)
    names = np.array(["no", "yes"])
    said = {column: names[np.repeat(codes, 4)] for column, codes in {"a": good, "b": copy, "c": bad}.items()}
    votes = {"item": np.repeat(np.arange(N_ITEMS), 4), "labeler": labeler.ravel(), "label": names[votes.ravel()]}
    return pl.DataFrame(votes | said)


@pytest.fixture
def scan_of(frame, tmp_path):
    """A function that scans the votes in so many files."""

    def scan(n_files):
        folder = tmp_path / str(n_files)
        folder.mkdir()
        for k in range(n_files):
            frame.filter(pl.col("item") % n_files == k).write_parquet(folder / f"{k}.parquet")
        return tu.Labels.scan(str(folder / "*.parquet"))

    return scan


def outputs_of(frame, column, first=0):
    return {item: name for item, name in frame.select("item", column).unique().iter_rows() if item >= first}


def test_answers_do_not_depend_on_the_files(frame, scan_of):
    systems = {name: outputs_of(frame, column) for name, column in SYSTEMS.items()}
    one, other = tu.compare(SYSTEMS, scan_of(2), n_draws=200), tu.compare(systems, scan_of(5), n_draws=200)
    np.testing.assert_allclose(one.draws, other.draws, rtol=0, atol=1e-12)
    assert one.ranking == other.ranking
    assert one.ranking[-1] == "bad"
    assert one.n_items == N_ITEMS


def test_the_answers_are_those_of_votes_in_memory(frame, scan_of, monkeypatch):
    # Models look at most of the items, long enough that what differs is not by chance.
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 3200)
    monkeypatch.setitem(FEW_SWEEPS, "n_warmup", 100)
    monkeypatch.setitem(FEW_SWEEPS, "n_draws", 200)
    systems = {name: outputs_of(frame, column) for name, column in SYSTEMS.items()}
    here = tu.compare(systems, tu.Labels.from_frame(frame), check_dependence=False)
    scanned = tu.compare(SYSTEMS, scan_of(4))
    for assumption in ("independent", "shared", "real"):
        one, other = (cmp.assuming(assumption) for cmp in (here, scanned))
        pairs = [(one.difference("good", name), other.difference("good", name)) for name in ("bad", "copy")]
        for mine, theirs in [*pairs, *((one[name], other[name]) for name in SYSTEMS)]:
            # Between seeds of so few sweeps, means of the headline differ by .35 of their deviation.
            assert mine.mean == pytest.approx(theirs.mean, abs=0.4 * mine.std + 0.004)
            assert mine.std == pytest.approx(theirs.std, rel=0.35, abs=0.002)
    assert here.disagreement("good", "bad").n_different == scanned.disagreement("good", "bad").n_different


def test_what_systems_have_in_common_is_counted_exactly(frame, scan_of):
    rated = rated_scan(scan_of(3), list(SYSTEMS.values()), may_miss=False)
    patterns = collapsed.patterns_of(rated)
    outputs = [outputs_of(frame, column) for column in SYSTEMS.values()]
    codes = np.array([[output[k] == "yes" for k in range(N_ITEMS)] for output in outputs]).astype(int)
    assert patterns.times.sum() == N_ITEMS
    np.testing.assert_allclose(
        kinds.witness_weights(patterns.codes, patterns.times), kinds.witness_weights(codes), atol=1e-12
    )
    of_patterns = blind_correlations(class_features(patterns.codes, patterns.times, 2), patterns.times)
    np.testing.assert_allclose(of_patterns, blind_correlations(class_features(codes, np.ones(N_ITEMS), 2)), atol=1e-12)


def test_systems_are_no_labelers(scan_of):
    scan = scan_of(3)
    rated = rated_scan(scan, list(SYSTEMS.values()), may_miss=False)
    assert (rated.n_votes, rated.labelers.tolist()) == (scan.n_votes, scan.labelers.tolist())
    one, other = (tu.noise.DawidSkene().fit(part) for part in (rated, scan))
    np.testing.assert_allclose(one.confusion_, other.confusion_, rtol=0, atol=1e-12)
    assert collapsed.collapse(rated)[0].codes.shape[0] == 3


def test_disagreements_add_up(scan_of):
    cmp = tu.compare(SYSTEMS, scan_of(2), n_draws=200)
    told = cmp.disagreement("good", "bad")
    assert told.n_items == N_ITEMS
    assert told.a_right.mean + told.b_right.mean + told.both_wrong.mean == pytest.approx(told.n_different)
    assert told.both_wrong.mean == 0  # of two classes
    apart = (told.a_right.mean - told.b_right.mean) / N_ITEMS
    assert apart == pytest.approx(cmp.difference("good", "bad").mean, abs=1e-12)


def test_items_that_a_system_lacks_are_left_out_of_all(frame, scan_of):
    systems = {"good": "a", "bad": outputs_of(frame, "c", first=300)}
    scan = scan_of(2)
    common, own = (tu.compare(systems, scan, items=rule, n_draws=200) for rule in (None, "own"))
    assert common.n_items == N_ITEMS - 300
    assert any("300 items lack the prediction of some system" in sentence for sentence in common.warnings)
    assert own.n_items == N_ITEMS
    assert any("each on its own" in sentence for sentence in own.warnings)
    with pytest.raises(InvalidPredictions, match="no item in common"):
        tu.compare({"good": {1: "no"}, "bad": {2: "no"}}, scan)


def test_random_gold_answers_as_in_memory(frame, scan_of):
    gold = {item: frame["label"][4 * item] for item in range(0, N_ITEMS, 15)}
    systems = {name: outputs_of(frame, column) for name, column in SYSTEMS.items()}
    labels = tu.Labels.from_frame(frame).with_gold(gold, drawn="random")
    here = tu.compare(systems, labels, check_dependence=False, metric="f1", n_draws=1000)
    scan = scan_of(3).with_gold(gold, drawn="random")
    scanned = tu.compare(SYSTEMS, scan, metric="f1", n_draws=1000)
    assert here.basis == scanned.basis == "gold"
    mine, theirs = (cmp.difference("good", "bad") for cmp in (here, scanned))
    assert mine.mean == pytest.approx(theirs.mean, abs=0.2 * mine.std)
    assert mine.std == pytest.approx(theirs.std, rel=0.2)
    assert "rests on gold" in repr(scanned)
    assert scanned.assuming("shared").basis == "votes"


def test_random_gold_corrects_eight_systems_as_in_memory(frame, scan_of):
    rng = np.random.default_rng(1)
    gold = {item: frame["label"][4 * item] for item in range(0, N_ITEMS, 15)}
    good = outputs_of(frame, "a")
    other = {"no": "yes", "yes": "no"}
    systems = {
        f"s{k}": {item: other[name] if rng.random() < 0.05 * k else name for item, name in good.items()}
        for k in range(8)
    }
    labels = tu.Labels.from_frame(frame).with_gold(gold, drawn="random")
    here = tu.compare(systems, labels, check_dependence=False, n_draws=500)
    scanned = tu.compare(systems, scan_of(2).with_gold(gold, drawn="random"), n_draws=500)
    assert here.basis == scanned.basis == "gold"
    for name in systems:
        assert scanned[name].mean == pytest.approx(here[name].mean, abs=0.5 * here[name].std)
        assert scanned[name].std == pytest.approx(here[name].std, rel=0.35)


def test_few_random_gold_items_have_their_share_of_the_draws(frame, scan_of):
    """One more vetted item makes a scan no wider either where the answer goes over to gold."""
    order = np.random.default_rng(0).permutation(N_ITEMS)
    widths = []
    for n in (19, 20):
        gold = {int(item): frame["label"][4 * int(item)] for item in order[:n]}
        low, high = tu.evaluate("a", scan_of(n).with_gold(gold, drawn="random"))["accuracy"].interval()
        widths.append(high - low)
    assert 0.75 < widths[1] / widths[0] < 1.25


def test_a_population_is_wider_than_its_sample(scan_of):
    scan = scan_of(2)
    sample, population = (
        tu.compare(SYSTEMS, scan, target=target, metric="f1", n_draws=300).assuming("independent")
        for target in ("sample", "population")
    )
    assert population.difference("good", "bad").std > sample.difference("good", "bad").std
    assert len(sample.draws) == 300
    assert "by f1 on 900 items (from votes, assuming independent errors, target population)" in repr(population)
    assert population.to_frame(backend="polars")["system"].to_list() == population.ranking


@pytest.mark.parametrize(
    ("systems", "keywords", "error", "sentence"),
    [
        ({"one": "a"}, {}, InvalidPredictions, "a mapping of two or more, .* got 1 of them"),
        (["a", "b"], {}, InvalidPredictions, "a mapping of two or more, .* got list"),
        ({"one": "a", "two": np.zeros(3)}, {}, InvalidPredictions, "or a mapping from item to class, got ndarray"),
        (SYSTEMS, {"noise": "dawid-skene"}, InvalidParameter, "compare of votes that are scanned takes .* got noise"),
        (SYSTEMS, {"by": "topic"}, InvalidParameter, "compare of votes that are scanned takes .* got by"),
        (SYSTEMS, {"metric": "auc"}, InvalidParameter, "must be of the confusion counts, got 'auc'"),
        (SYSTEMS, {"metric": {"a": "f1", "b": "recall"}}, InvalidParameter, "takes one metric, got 2"),
        (SYSTEMS, {"engine": "torch"}, InvalidParameter, "engine of compare must be one of 'scipy', 'numba', 'dask'"),
    ],
)
def test_what_a_scan_cannot_answer_says_so(scan_of, systems, keywords, error, sentence):
    with pytest.raises(error, match=sentence):
        tu.compare(systems, scan_of(2), **keywords)


def test_predictions_of_unknown_items_are_refused_if_that_is_said(frame, scan_of):
    systems = {"good": "a", "bad": outputs_of(frame, "c") | {N_ITEMS: "no", N_ITEMS + 1: None}}
    with pytest.raises(InvalidPredictions, match="must be of items of the scan, got 1 of 901"):
        tu.compare(systems, scan_of(2), unknown="error")


def test_systems_that_say_too_many_things_together_are_refused(scan_of, monkeypatch):
    monkeypatch.setattr(collapsed, "_MOST_PATTERNS", 3)
    with pytest.raises(InvalidPredictions, match="3 different things together, got more from 3 systems; compare fewer"):
        tu.compare(SYSTEMS, scan_of(2))


def test_a_cluster_gives_the_same(frame, scan_of):
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    systems = {"good": "a", "copy": "b", "bad": outputs_of(frame, "c", first=50)}
    here = tu.compare(systems, scan_of(3), n_draws=200)
    place = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, **place)
    with cluster, distributed.Client(cluster):
        there = tu.compare(systems, scan_of(4), n_draws=200, engine="dask")
    np.testing.assert_allclose(here.draws, there.draws, rtol=0, atol=1e-10)
    assert here.warnings == there.warnings


def test_it_can_be_written_down_and_shown(scan_of, tmp_path):
    cmp = tu.compare(SYSTEMS, scan_of(3), n_draws=200, random_state=1)
    record = json.loads(json.dumps(cmp.to_dict()))
    assert [row["system"] for row in record["systems"]] == cmp.ranking
    assert record["systems"][0]["mean"] == cmp[cmp.best].mean
    assert record["assuming"]["independent"]["difference"]["mean"] == pytest.approx(
        cmp.assuming("independent").difference(*cmp.ranking[:2]).mean
    )
    assert (record["basis"], record["n_items"]) == ("votes", N_ITEMS)
    page = cmp.save_html(tmp_path / "page.html", title="From files").read_text(encoding="utf-8")
    assert "From files" in page
    assert f"<b>{N_ITEMS}</b>" in page
    written = json.loads(cmp.save_html(tmp_path / "page.json").read_text(encoding="utf-8"))
    assert [row["system"] for row in written["comparison"]["systems"]] == cmp.ranking
    assert (written["labelers"], written["dependence"], written["vet_next"]) == (None, None, None)
