"""Evaluating votes in files: as in memory, whatever files the items are in, and what cannot be had says so."""

import json

import numpy as np
import pytest

import trueup as tu
from trueup.data.rated import rated_scan
from trueup.estimators import collapsed
from trueup.estimators.readings import FEW_SWEEPS
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions
from trueup.report import build_report

pl = pytest.importorskip("polars")
N_ITEMS = 1000


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FEW_SWEEPS, "n_warmup", 30)
        patch.setitem(FEW_SWEEPS, "n_draws", 60)
        patch.setattr("trueup.answers.scanned._DRAWS", 800)
        yield


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    truth = (rng.random(N_ITEMS) < 0.4).astype(int)
    labeler = np.stack([rng.permutation(9)[:4] for _ in range(N_ITEMS)])
    right = rng.random(labeler.shape) < np.linspace(0.7, 0.95, 9)[labeler]
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    system = np.where(rng.random(N_ITEMS) < 0.85, truth, 1 - truth)
    names = np.array(["no", "yes"])
    return pl.DataFrame(
        {
            "item": np.repeat(np.arange(N_ITEMS), 4),
            "labeler": labeler.ravel(),
            "label": names[votes.ravel()],
            "model": names[np.repeat(system, 4)],
        }
    )


@pytest.fixture(scope="module")
def scan_of(frame, tmp_path_factory):
    """A function that scans the votes in so many files."""

    def scan(n_files, table=frame, suffix="parquet", **options):
        folder = tmp_path_factory.mktemp(f"{n_files}-{suffix}")
        for k in range(n_files):
            rows = table.filter(pl.col("item") % n_files == k)
            path = folder / f"{k}.{suffix}"
            rows.write_parquet(path) if suffix == "parquet" else rows.write_csv(path)
        return tu.Labels.scan(str(folder / f"*.{suffix}"), **options)

    return scan


@pytest.fixture(scope="module")
def evaluation(scan_of):
    """What a plain call says of votes in two files."""
    return tu.evaluate("model", scan_of(2))


def predictions_of(frame):
    return dict(frame.select("item", "model").unique().iter_rows())


def test_answers_do_not_depend_on_the_files(frame, scan_of, evaluation):
    one, other = evaluation, tu.evaluate("model", scan_of(5, suffix="csv"))
    by_name = tu.evaluate(predictions_of(frame), scan_of(3))
    for name in ("accuracy", "f1"):
        assert one[name].interval(0.95) == other[name].interval(0.95) == by_name[name].interval(0.95)
    assert one.n_items == N_ITEMS
    assert list(one) == ["accuracy", "precision", "recall", "f1"]
    assert one["mcc"].mean == other["mcc"].mean  # also what was not asked for


def test_the_answers_are_those_of_votes_in_memory(frame, scan_of, monkeypatch):
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 2000)  # so that both look at some items closely
    here = tu.evaluate(predictions_of(frame), tu.Labels.from_frame(frame), check_dependence=False)
    scanned = tu.evaluate("model", scan_of(4))
    for assumption in ("independent", "shared", "real"):
        one, other = (ev.assuming(assumption)["accuracy"] for ev in (here, scanned))
        assert one.mean == pytest.approx(other.mean, abs=0.25 * one.std + 0.004)
        assert one.std == pytest.approx(other.std, rel=0.35)


def test_models_are_drawn_on_items_with_predictions_first(frame, scan_of, monkeypatch):
    """By chance, one in ten of sixty predictions would be among a hundred items of a thousand."""
    monkeypatch.setattr("trueup.estimators.readings._LEAST_ITEMS", 100)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 10)
    few = {item: said for item, said in predictions_of(frame).items() if item % 16 == 3 and item < 960}
    samples = [collapsed.sample_items(rated_scan(scan_of(n), [few], may_miss=True), 0) for n in (1, 3, 7)]
    for labels, said in samples:
        assert labels.n_items == 100
        assert (said[0] >= 0).sum() == len(few) == 60
        assert (labels.votes != samples[0][0].votes).nnz == 0
        np.testing.assert_array_equal(said, samples[0][1])
    gold = dict.fromkeys(range(40), "yes")
    labels, said = collapsed.checked_items(rated_scan(scan_of(3).with_gold(gold), [few], may_miss=True), 0)
    assert (labels.gold_codes >= 0).sum() == 40
    assert 100 < labels.n_items <= 140
    assert (said[0] >= 0).sum() == 60


def test_cells_hold_all_that_the_posterior_says(frame, scan_of):
    scan = rated_scan(scan_of(3), ["model"], may_miss=False)
    cells, _ = collapsed.collapse(scan)
    labels = scan.read()
    posterior = tu.noise.DawidSkene().fit(labels).posterior(labels)
    said = np.array([predictions_of(frame)[item] == "yes" for item in labels.items.tolist()])
    assert cells.times.sum() == N_ITEMS
    assert len(cells.times) < 0.7 * N_ITEMS
    np.testing.assert_allclose(cells.mass[cells.codes[0] == 1].sum(axis=0), posterior[said].sum(axis=0), atol=1e-8)
    coarse = cells.doubled()
    assert len(coarse.times) < len(cells.times)
    np.testing.assert_allclose(coarse.mass.sum(axis=0), posterior.sum(axis=0), atol=1e-8)


def test_cells_are_no_more_than_memory_holds_and_no_others_in_another_order(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [
        collapsed.cells_of(rng.dirichlet([1, 1, 1], 300), rng.integers(3, size=(300, 1)), np.full(300, -1))
        for _ in range(3)
    ]
    monkeypatch.setattr(collapsed, "_MOST_CELLS", 200)
    one = collapsed.joined(collapsed.joined(parts[0], parts[1]), parts[2])
    other = collapsed.joined(parts[2], collapsed.joined(parts[1], parts[0]))
    assert len(one.times) <= 200
    assert np.array_equal(one.bins, other.bins)
    np.testing.assert_allclose(one.mass, other.mass, atol=1e-12)
    monkeypatch.setattr(collapsed, "_MOST_CELLS", 2)  # fewer than what the system says: steps go, predictions stay
    assert collapsed.joined(one, other).bins[:, 0].tolist() == [0, 1, 2]


def test_gold_is_certain(frame, scan_of):
    truths = predictions_of(frame)  # as if the system was right on all of a hundred items
    vetted = {item: truths[item] for item in range(100)}
    readings = tu.evaluate("model", scan_of(2).with_gold(vetted)).readings
    assert readings.times[readings.known >= 0].sum() == 100
    assert readings.unknown_share == pytest.approx(1 - 100 / N_ITEMS)


def test_what_is_vetted_narrows_the_headline_as_in_memory(frame, scan_of, monkeypatch):
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 2000)
    labels = tu.Labels.from_frame(frame)
    likeliest = labels.classes[tu.noise.DawidSkene().fit(labels).posterior(labels).argmax(axis=1)].tolist()
    vetted = dict(zip(range(3 * N_ITEMS // 4), likeliest[: 3 * N_ITEMS // 4], strict=True))
    here = tu.evaluate(predictions_of(frame), labels.with_gold(vetted), check_dependence=False)
    scanned = tu.evaluate("model", scan_of(2).with_gold(vetted), check_dependence=False)
    for name in ("shared", "real"):
        mine, theirs = (one.assuming(name)["accuracy"] for one in (here, scanned))
        assert mine.std == pytest.approx(theirs.std, rel=0.3)


def random_gold(frame, n):
    """The first votes on so many items drawn at random, as if these were true."""
    chosen = np.random.default_rng(7).choice(N_ITEMS, n, replace=False).tolist()
    first = dict(frame.unique("item", keep="first").select("item", "label").iter_rows())
    return {item: first[item] for item in chosen}


def test_random_gold_answers_as_in_memory(frame, scan_of, monkeypatch):
    monkeypatch.setattr("trueup.estimators.readings.MOST_VOTES", 2000)
    monkeypatch.setattr("trueup.estimators.readings._SOME_VOTES", 1000)
    gold = random_gold(frame, 100)
    labels = tu.Labels.from_frame(frame).with_gold(gold, drawn="random")
    here = tu.evaluate(predictions_of(frame), labels, check_dependence=False)
    scanned = tu.evaluate("model", scan_of(3).with_gold(gold, drawn="random"), check_dependence=False)
    for name in ("accuracy", "precision", "recall", "f1", "balanced_accuracy"):
        assert here.basis_of(name) == scanned.basis_of(name) == "gold"
        assert here[name].mean == pytest.approx(scanned[name].mean, abs=0.15 * here[name].std)
        assert here[name].std == pytest.approx(scanned[name].std, rel=0.15)
    np.testing.assert_allclose(here.confusion.mean, scanned.confusion.mean, atol=5)
    one, other = (ev.assuming("independent")["accuracy"] for ev in (here, scanned))
    assert one.mean == pytest.approx(other.mean, abs=0.25 * one.std + 0.004)
    assert "rests on gold" in repr(scanned)
    assert scanned.warnings == ()


def test_answers_from_random_gold_do_not_depend_on_the_files(frame, scan_of):
    gold = random_gold(frame, 40)
    chances = dict.fromkeys(gold, 0.04) | {next(iter(gold)): 0.5}
    one, other = (tu.evaluate("model", scan_of(n).with_gold(gold, drawn=chances)) for n in (2, 5))
    assert one["accuracy"].interval(0.95) == pytest.approx(other["accuracy"].interval(0.95), abs=1e-12)
    equal = tu.evaluate("model", scan_of(3).with_gold(gold, drawn="random"))
    assert equal["accuracy"].mean != one["accuracy"].mean  # chances count


def test_metrics_that_see_few_vetted_items_rest_on_votes(frame, scan_of):
    gold = {item: name for item, name in random_gold(frame, 60).items() if name == "no"}
    answer = tu.evaluate("model", scan_of(2).with_gold(gold, drawn="random"), metrics=["accuracy", "recall"])
    assert (answer.basis_of("accuracy"), answer.basis_of("recall")) == ("gold", "votes")
    assert any("before in part on votes: recall looks at 0." in sentence for sentence in answer.warnings)


def test_gold_that_makes_no_sense_is_named(frame, scan_of):
    scan = scan_of(2)
    with pytest.raises(InvalidLabels, match="gold must be of items of the scan, got 1 of 2 that are in none"):
        tu.evaluate("model", scan.with_gold({1: "no", N_ITEMS: "no"}, drawn="random"))
    with pytest.raises(InvalidLabels, match="do not add up, got 1 items drawn at random beside 1 with chances"):
        scan.with_gold({1: "no"}, drawn="random").with_gold({2: "no"}, drawn={2: 0.5})
    with pytest.raises(InvalidParameter, match="labelers of a scan are ranked by votes, got 1 vetted items"):
        tu.labelers.rank(scan.with_gold({1: "no"}, drawn="random"))


def test_a_population_is_wider_than_its_sample(scan_of, evaluation):
    sample = evaluation.assuming("independent")
    population = tu.evaluate("model", scan_of(2), target="population").assuming("independent")
    assert population["accuracy"].std > sample["accuracy"].std
    assert population.confusion.mean.shape == (2, 2)
    assert "assuming independent errors, target population" in repr(population)
    assert population.to_frame(backend="polars")["metric"].to_list() == list(population.metrics)


def test_predictions_of_unknown_items_are_refused_unless_ignored(frame, scan_of):
    more, scan = predictions_of(frame) | {N_ITEMS: "no"}, scan_of(2)
    with pytest.raises(
        InvalidPredictions, match="must be of items of the scan, got 1 of 1,001 for items that are in none"
    ):
        tu.evaluate(more, scan)
    assert tu.evaluate(more, scan, unknown="ignore").n_items == N_ITEMS


def test_items_may_lack_a_prediction_if_that_is_said(frame, scan_of):
    some = {item: name for item, name in predictions_of(frame).items() if item >= 10}
    scan = scan_of(2)
    with pytest.raises(InvalidPredictions, match=r"every item must have a prediction, got none for 5 of 500"):
        tu.evaluate(some, scan)
    assert tu.evaluate(some, scan, missing="ignore").n_items == N_ITEMS - 10


@pytest.mark.parametrize(
    ("keywords", "error", "sentence"),
    [
        ({"noise": "dawid-skene"}, InvalidParameter, "evaluate of votes that are scanned takes .* got noise"),
        ({"by": "topic"}, InvalidParameter, "evaluate of votes that are scanned takes .* got by"),
        ({"metrics": ["auc"]}, InvalidParameter, "must be of the confusion counts, got 'auc'"),
        ({"metrics": [lambda y, p: 1.0]}, InvalidParameter, "must be of the confusion counts"),
        ({"engine": "torch"}, InvalidParameter, "engine of evaluate must be one of 'scipy', 'numba', 'dask'"),
        ({"target": "all"}, InvalidParameter, "target must be one of"),
    ],
)
def test_what_a_scan_cannot_answer_says_so(scan_of, keywords, error, sentence):
    with pytest.raises(error, match=sentence):
        tu.evaluate("model", scan_of(2), **keywords)


def test_predictions_that_make_no_sense_are_named_with_their_file(frame, scan_of):
    scan = scan_of(2)
    with pytest.raises(InvalidPredictions, match="a column of its files or a mapping from item to class, got ndarray"):
        tu.evaluate(np.zeros(N_ITEMS), scan)
    with pytest.raises(InvalidLabels, match=r"there is no column 'modell'.*did you mean 'model'.*\(file 1 of 2"):
        tu.evaluate("modell", scan)
    with pytest.raises(InvalidPredictions, match=r"predictions must be among the classes .* got \['maybe'\]"):
        tu.evaluate(dict.fromkeys(range(N_ITEMS), "no") | {7: "maybe"}, scan)
    twice = frame.with_columns(model=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("no")).otherwise(pl.lit("yes")))
    with pytest.raises(InvalidLabels, match=r"column 'model' must say one thing of an item, got \['no', 'yes'\] of 0"):
        tu.evaluate("model", scan_of(1, table=twice))


def test_a_column_goes_along_when_votes_are_regrouped(frame, tmp_path):
    for k in range(2):
        frame[k::2].write_parquet(tmp_path / f"{k}.parquet")
    scan = tu.Labels.scan(str(tmp_path / "*.parquet"), regroup=tmp_path / "by-item")
    assert tu.evaluate("model", scan).n_items == N_ITEMS


def test_a_cluster_gives_the_same(frame, scan_of):
    distributed = pytest.importorskip("distributed", reason="needs dask: pip install 'trueup[dask]'")
    gold = random_gold(frame, 30)
    here = tu.evaluate("model", scan_of(3).with_gold(gold, drawn="random"))
    place = {"processes": False, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, **place)
    with cluster, distributed.Client(cluster):
        there = tu.evaluate("model", scan_of(4).with_gold(gold, drawn="random"), engine="dask")
    assert there.basis == "gold"
    assert here["accuracy"].mean == pytest.approx(there["accuracy"].mean, abs=1e-10)
    assert here["accuracy"].interval(0.9) == there["accuracy"].interval(0.9)
    one, other = (ev.assuming("real")["accuracy"].mean for ev in (here, there))
    assert one == pytest.approx(other, abs=1e-10)


# ---------------------------------------------------------------------- what is said


def frame_of(votes, system):
    """A table of votes and of what a system says, a row a vote."""
    names = np.array(["no", "yes"])
    n_items, n_labelers = votes.shape
    columns = {"item": np.repeat(np.arange(n_items), n_labelers), "labeler": np.tile(np.arange(n_labelers), n_items)}
    return pl.DataFrame({**columns, "label": names[votes.ravel()], "model": names[np.repeat(system, n_labelers)]})


@pytest.fixture(scope="module")
def wrong_together():
    """A crowd that a quarter of the items misleads, and a system that errs with it."""
    rng = np.random.default_rng(2)
    truth, misleading = rng.integers(2, size=600), rng.random(600) < 0.25
    right = rng.random((600, 5)) < np.where(misleading, 0.05, 0.95)[:, None]
    system = np.where(rng.random(600) < np.where(misleading, 0.1, 0.98), truth, 1 - truth)
    return frame_of(np.where(right, truth[:, None], 1 - truth[:, None]), system), truth


def test_chosen_gold_is_held_against_the_models_of_a_scan(wrong_together, scan_of):
    table, truth = wrong_together
    chosen = {i: ["no", "yes"][truth[i]] for i in range(0, 600, 4)}
    answer = tu.evaluate("model", scan_of(2, table).with_gold(chosen), metrics=["accuracy"])
    assert answer.refused
    assert "of the 150 chosen items, and it is on 1" in answer.warnings[0]
    assert np.isnan(answer["accuracy"].interval(0.95)).all()
    assert np.isnan(answer.assuming("shared")["accuracy"].interval(0.95)).all()
    assert np.isnan(answer.confusion.intervals()).all()
    assert any("150 of 150 vetted items are taken as chosen" in sentence for sentence in answer.warnings)
    same = table.with_columns(other=pl.col("model"))
    assert tu.compare({"a": "model", "b": "other"}, scan_of(3, same).with_gold(chosen)).refused


def test_what_is_said_of_votes_in_memory_is_said_of_a_scan(scan_of, evaluation):
    assert not evaluation.independence.dependent
    assert "No sign that labelers err together" in repr(evaluation)
    assert tu.evaluate("model", scan_of(3), metrics=["accuracy"], check_dependence=False).independence is None
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=500)
    copied = np.where(rng.random(500) < 0.7, truth, 1 - truth)
    votes = np.where(rng.random((500, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    votes[:, :3] = np.where(rng.random((500, 3)) < 0.8, copied[:, None], votes[:, :3])
    answer = tu.evaluate("model", scan_of(4, frame_of(votes, votes[:, 4])), metrics=["accuracy"])
    assert answer.independence.dependent
    assert any("Labelers err together" in sentence for sentence in answer.warnings)
    assert any("looks like a copy of labeler 4" in sentence for sentence in answer.warnings)


def test_gold_of_a_scan_that_does_not_look_drawn_is_doubted(frame, scan_of):
    most = frame.group_by("item").agg((pl.col("label") == "yes").mean().alias("share"))
    of_one_class = most.filter(pl.col("share") > 0.7)["item"].sort().to_list()[:60]
    answer = tu.evaluate("model", scan_of(2).with_gold(dict.fromkeys(of_one_class, "yes"), drawn="random"))
    assert any("said to be drawn at random, but" in sentence for sentence in answer.warnings)


def test_the_width_that_vetting_would_bring_is_that_of_memory(frame, evaluation):
    labels = tu.Labels.from_frame(frame)
    few = {"n_chains": 2, "n_warmup": 30, "n_draws": 60}
    here = tu.evaluate(predictions_of(frame), labels, metrics=["accuracy"], check_dependence=False, **few)
    assert set(evaluation.vettings) & set(here.vettings) >= {50, 100}
    assert evaluation.vettings[100] == pytest.approx(here.vettings[100], rel=0.35), "of models averaged, and of one"
    low, high = evaluation["accuracy"].interval(0.95)
    assert all(width < high - low for width in evaluation.vettings.values())


def test_few_vetted_items_stand_beside_the_votes_of_a_scan(frame, scan_of):
    gold = random_gold(frame, 15)
    few = {"n_chains": 2, "n_warmup": 30, "n_draws": 60}
    scan = scan_of(2).with_gold(gold, drawn="random")
    there = tu.evaluate("model", scan, metrics=["accuracy"], check_dependence=False)
    labels = tu.Labels.from_frame(frame).with_gold(gold, drawn="random")
    here = tu.evaluate(predictions_of(frame), labels, metrics=["accuracy"], check_dependence=False, **few)
    assert there.gold_alone["accuracy"].interval(0.95) == pytest.approx(
        here.gold_alone["accuracy"].interval(0.95), abs=0.03
    )
    assert "vetted items alone" in repr(there)


def test_it_can_be_written_down_and_shown(frame, scan_of, tmp_path):
    ev = tu.evaluate("model", scan_of(2), random_state=1)
    record = json.loads(json.dumps(ev.to_dict()))
    assert record["metrics"]["f1"]["mean"] == ev["f1"].mean
    assert record["assuming"]["independent"]["accuracy"]["mean"] == ev.assuming("independent")["accuracy"].mean
    np.testing.assert_allclose(record["confusion"], ev.confusion.mean)
    here = tu.evaluate(predictions_of(frame), tu.Labels.from_frame(frame), check_dependence=False)
    assert record.keys() == here.to_dict().keys()
    page = ev.save_html(tmp_path / "page.html", title="From files").read_text(encoding="utf-8")
    assert "From files" in page
    assert "Every metric</h2>" in page
    in_words = ev.save_html(tmp_path / "page.md").read_text(encoding="utf-8")
    # What the majority of votes would say is not counted where votes are scanned, and no column is left empty for it.
    assert "ajority vote" not in page + in_words
    written = json.loads(ev.save_html(tmp_path / "page.json").read_text(encoding="utf-8"))
    system = written["systems"][0]
    assert system["metrics"][0]["mean"] == ev["accuracy"].mean
    assert (system["metrics"][0]["dirty"], system["curves"], written["labelers"]) == (None, [], None)
    beside = build_report(ev, labels=tu.Labels.from_frame(frame))
    assert (beside["labelers"], beside["dependence"]) == (None, None)
