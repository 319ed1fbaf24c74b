"""trueup preferences, through its entry point."""

import json

import pytest
from cli_helpers import CHAINS, assert_one_sentence, write_csv

import trueup as tu

HEAD = ("item", "judge", "first", "second", "winner")


@pytest.fixture
def pairs_csv(tmp_path):
    """Verdicts of three judges on contests of three systems."""
    pairs = tu.simulate.pairs(n_contests=60, n_systems=3, n_judges=3, random_state=0).pairs
    rows = []
    for contest, judge, shown, verdict in zip(pairs.contest, pairs.judge, pairs.shown, pairs.verdict, strict=True):
        item, a, b = pairs.contests[contest]
        first, second = (b, a) if shown else (a, b)
        rows.append((item, pairs.judges[judge], first, second, (a, b)[verdict]))
    return write_csv(tmp_path / "pairs.csv", HEAD, rows)


def test_a_ranking_with_win_rates_and_judges(run_main, pairs_csv):
    ran = run_main("preferences", pairs_csv, "--noise", "mirrored", *CHAINS)
    assert ran.code == 0, ran.err
    for words in ("3 systems, 60 contests", "Log-odds", "average opponent", "Win rate", "Position bias", "judge-3"):
        assert words in ran.out
    assert "noise model mirrored" in ran.out


def test_json_is_what_python_says(run_main, pairs_csv):
    ran = run_main("preferences", pairs_csv, "--noise", "mirrored", "--ties", "class", "--json", "--seed", "2", *CHAINS)
    assert ran.code == 0, ran.err
    parsed = json.loads(ran.out)
    answer = tu.preferences(
        tu.read_pairs(pairs_csv), noise="mirrored", ties="class", random_state=2, n_warmup=40, n_draws=60
    )
    assert [row["system"] for row in parsed["systems"]] == answer.ranking
    assert parsed["systems"][0]["mean"] == pytest.approx(answer.strength(answer.ranking[0]).mean)
    assert parsed["ties"] == "class"


def test_the_list_of_contests_on_standard_output_and_as_json(run_main, pairs_csv):
    listed = run_main("plan", "draw-pairs", pairs_csv, "--n", "5")
    assert len(listed.out.splitlines()) == 6
    parsed = json.loads(run_main("plan", "draw-pairs", pairs_csv, "--n", "5", "--json").out)
    assert [",".join(map(str, row.values())) + "," for row in parsed["sample"]] == listed.out.splitlines()[1:]
    assert_one_sentence(run_main("plan", "draw-pairs", pairs_csv, "--n", "61"))
    assert_one_sentence(run_main("plan", "draw-pairs", pairs_csv, "--n", "5", "--out", pairs_csv))


@pytest.mark.parametrize(
    ("more", "words"),
    [(("--ties", "third"), "half"), (("--gold-drawn", "random"), "no --gold"), (("--target", "items"), "population")],
)
def test_bad_input_gets_a_sentence(run_main, pairs_csv, more, words):
    ran = run_main("preferences", pairs_csv, *more)
    assert_one_sentence(ran)
    assert words in ran.err


def test_gates_on_who_is_preferred(run_main, pairs_csv, tmp_path):
    args = ("preferences", pairs_csv, "--noise", "mirrored", *CHAINS)
    ranking = [row["system"] for row in json.loads(run_main(*args, "--json").out)["systems"]]
    junit = tmp_path / "gates.xml"
    ran = run_main(*args, "--candidate", ranking[-1], "--better-than", ranking[0], "--junit", junit, "--json")
    gate = json.loads(ran.out)["gate"]
    assert ran.code == {"passed": 0, "failed": 1, "undecided": 5}[gate["verdict"]]
    assert gate["gates"][0]["probability"] < 0.5
    assert f"win rate of '{ranking[-1]}'" in junit.read_text(encoding="utf-8")
    even = run_main(*args, "--candidate", ranking[-1], "--not-worse-than", ranking[0], "--margin", "0.49")
    assert even.code == 0, even.err
    alone = run_main(*args, "--require-gold")
    assert_one_sentence(alone)
    assert "--require-gold is about gates" in alone.err


def test_a_page_and_a_leaderboard(run_main, pairs_csv, tmp_path):
    page = tmp_path / "page.html"
    ran = run_main("preferences", pairs_csv, "--draws", "60", "--report", page, "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["systems"]
    assert all(0 < row["wins"]["low"] < row["wins"]["mean"] < row["wins"]["high"] < 1 for row in rows)
    shown = page.read_text(encoding="utf-8")
    assert shown.count('class="bar"') == len(rows)
    assert "trueup preferences" in shown
    assert run_main("preferences", pairs_csv, "--report", tmp_path / "page.pdf").code == 2
