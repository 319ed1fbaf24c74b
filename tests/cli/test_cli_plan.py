"""trueup plan, plan draw, and gold files that say how their items were drawn."""

import json

import pytest
from cli_helpers import crowd, rows_of, write_csv

import trueup as tu

PRICES = ("--vote-price", "0.05", "--expert-price", "2")
RATES = ("--labeler-accuracy", "0.8", "--error", "0.1")


def test_json_is_what_the_library_says(run_main):
    found = json.loads(run_main("plan", "--budget", "500", *PRICES, *RATES, "--correlation", "0.2", "--json").out)
    plan = tu.plan(
        budget=500, vote_price=0.05, expert_price=2, labeler_accuracy=0.8, error=0.1, correlation=0.2, n_classes=2
    )
    assert found["half_width"] == plan.half_width
    assert [d["kind"] for d in found["alternatives"]] == [d.kind for d in plan.alternatives]
    assert found["learned"] == []


def test_what_is_not_given_is_learned_from_votes_and_predictions(votes_csv, predictions_csv, run_main):
    ran = run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES, "--json")
    found = json.loads(ran.out)
    assert found["learned"] == ["correlation", "error", "labeler_accuracy", "n_classes", "prior"]
    assert found["assumed"]["labeler_accuracy"] == pytest.approx(0.85, abs=0.06)
    assert found["assumed"]["error"] == pytest.approx(0.05, abs=0.06)
    assert found["assumed"]["n_classes"] == 2
    given = json.loads(
        run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES, "--error", "0.3", "--json").out
    )
    assert given["assumed"]["error"] == 0.3
    assert "From the votes" in run_main("plan", votes_csv, predictions_csv, "--budget", "200", *PRICES).out


def test_a_precision_that_is_not_reached_can_fail_the_run(run_main):
    asked = ("plan", "--budget", "500", *PRICES, *RATES)
    ran = run_main(*asked, "--fail-above", "0.01")
    assert ran.code == 1
    assert "finding: the half-width is 0.0146" in ran.err
    assert run_main(*asked, "--fail-above", "0.02").code == 0


def test_a_plot(tmp_path, run_main):
    assert run_main("plan", "--budget", "500", *PRICES, *RATES, "--plot", tmp_path / "plan.svg").code == 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()


@pytest.fixture
def truth_csv(tmp_path):
    """The truth of all items: item, label."""
    rows = [(f"i{i}", ("no", "yes")[y]) for i, y in enumerate(crowd()["truth"])]
    return write_csv(tmp_path / "truth.csv", ("item", "label"), rows)


def filled(path, truth_csv):
    """The file that was drawn, with the truth in every row."""
    truth = {row["item"]: row["label"] for row in rows_of(truth_csv)}
    rows = [{**row, "label": truth[row["item"]]} for row in rows_of(path)]
    return write_csv(path.with_name("filled.csv"), list(rows[0]), [tuple(row.values()) for row in rows])


def drawn_in(run_main, *args):
    return json.loads(run_main("check", *args, "--no-dependence", "--json").out)["votes"]


def test_a_filled_list_is_gold_with_its_draw(run_main, votes_csv, truth_csv, tmp_path):
    out = tmp_path / "draw.csv"
    ran = run_main("plan", "draw", votes_csv, "--n", "20", "--seed", "1", "--out", out)
    assert (ran.code, ran.out) == (0, "")
    assert "drew 20 of 60 items" in ran.err
    rows = rows_of(out)
    assert [list(rows[0]), len(rows)] == [["item", "label", "chance"], 20]
    assert {row["label"] for row in rows} == {""}
    assert float(rows[0]["chance"]) == pytest.approx(1 / 3)
    votes = drawn_in(run_main, votes_csv, "--gold", filled(out, truth_csv))
    assert (votes["gold"], votes["drawn_gold"]) == (20, 20)


def test_strata_of_votes_predictions_and_columns(run_main, votes_csv, predictions_csv, systems_csv, tmp_path):
    items = write_csv(tmp_path / "items.csv", ("item", "topic"), [(f"i{i}", "ab"[i % 2]) for i in range(60)])
    calls = [
        (votes_csv, "--by", "votes"),
        (votes_csv, predictions_csv, "--by", "prediction"),
        (votes_csv, systems_csv, "--by", "prediction", "--only-system", "bad"),
        (votes_csv, "--by", "topic", "--items", items),
    ]
    for args in calls:
        found = json.loads(run_main("plan", "draw", *args, "-n", "10", "--json").out)
        strata = [one["stratum"] for one in found["sample"]]
        assert sorted(strata.count(name) for name in set(strata)) == [5, 5]
        assert sum(1 / one["chance"] for one in found["sample"]) == pytest.approx(60)
        assert (found["seed"], found["n_items"]) == (0, 60)


def test_names_like_formulas_come_back(run_main, tmp_path):
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), [("=1+1", "w", "-a"), ("@b", "w", "c")])
    gold = write_csv(tmp_path / "g.csv", ("item", "label"), [("=1+1", "-a"), ("@b", "c")])
    out = tmp_path / "draw.csv"
    assert run_main("plan", "draw", votes, "--n", "2", "--gold", gold, "--out", out).code == 0
    assert "'=1+1" in out.read_text()
    assert drawn_in(run_main, votes, "--gold", out)["drawn_gold"] == 2


def test_the_option_overrules_the_file(run_main, votes_csv, truth_csv, tmp_path):
    rows = [(*row.values(), "random" if k < 10 else "chosen") for k, row in enumerate(rows_of(truth_csv)[:25])]
    gold = write_csv(tmp_path / "gold.csv", ("item", "label", "drawn"), rows)
    for options, n_drawn in (((), 10), (("--gold-drawn", "random"), 25), (("--gold-drawn", "chosen"), 0)):
        votes = drawn_in(run_main, votes_csv, "--gold", gold, *options)
        assert (votes["gold"], votes["drawn_gold"]) == (25, n_drawn)
    ran = run_main("check", votes_csv, "--gold", gold, "--gold-drawn", "chosen")
    assert "25 of 25 checked items are taken as chosen" in ran.out
    assert "--gold-drawn random" in ran.out
