"""trueup plan draw, and gold files that say how their items were drawn."""

import json

import pytest
from cli_helpers import crowd, rows_of, write_csv


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
