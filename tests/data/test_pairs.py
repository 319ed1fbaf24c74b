"""Verdicts on pairs: reading, canonical order, judges heard once, and gold."""

import io
import json

import numpy as np
import pytest

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter

HEAD = "item,judge,first,second,winner\n"


def read(*rows):
    return tu.read_pairs(io.StringIO(HEAD + "\n".join(rows)))


def test_canonical_order_comes_first():
    pairs = read(
        "1,j,beta,alpha,beta", "1,j,alpha,beta,second", "2,k,alpha,beta,tie", "2,j,beta,alpha,first", "3,j,a,b,"
    )
    assert pairs.contests == [("1", "alpha", "beta"), ("2", "alpha", "beta")]
    assert pairs.shown.tolist() == [1, 0, 0, 1]
    assert pairs.verdict.tolist() == [1, 1, 2, 1]
    assert pairs.judges.tolist() == ["j", "k"]
    assert pairs.has_ties
    assert pairs.consistency() == {"j": 1.0}
    assert repr(pairs) == "Pairs(2 contests of 2 systems, 2 judges, 4 verdicts)"


def test_a_judge_of_both_orders_is_heard_once():
    pairs = read("1,j,a,b,a", "1,j,b,a,a", "2,j,a,b,a", "2,j,b,a,b", "3,j,a,b,b", "3,k,b,a,b")
    contest, judge, how, said = pairs.heard
    assert list(zip(contest.tolist(), judge.tolist(), how.tolist(), said.tolist(), strict=True)) == [
        (0, 0, 2, 0),
        (1, 0, 2, 2),
        (2, 0, 0, 1),
        (2, 1, 1, 1),
    ]
    assert pairs.labels.n_items == 2  # nothing is left of the second: its verdicts cancel out, and nobody calls a tie
    assert pairs.labels.labelers.tolist() == ["j", "j (both orders)", "k (reversed)"]
    judge, presentation = pairs.presentation
    assert judge.tolist() == [0, 0, 1]
    assert presentation.tolist() == [0, 2, 1]
    assert pairs.consistency() == {"j": 0.5}


def test_frames_and_files_without_judges(tmp_path):
    columns = {"q": [1, 2], "x": ["a", "b"], "y": ["b", "a"], "won": ["a", "tie"]}
    pairs = tu.Pairs.from_frame(columns, item="q", judge=None, first="x", second="y", winner="won")
    assert pairs.judges.tolist() == ["judge"]
    (tmp_path / "pairs.csv").write_text("item,first,second,winner\n1,a,b,a\n")
    assert tu.read_pairs(tmp_path / "pairs.csv").n_verdicts == 1


def test_gold_in_any_order():
    pairs = read("1,j,a,b,a", "2,j,a,b,b", "3,j,b,a,a")
    vetted = pairs.with_gold({("1", "b", "a"): "first", ("3", "a", "b"): "a"}, drawn="random")
    assert vetted.gold == {("1", "a", "b"): "second", ("3", "a", "b"): "first"}
    labels = vetted.labels
    assert labels.gold == {0: "second", 2: "first"}
    assert labels.drawn_gold == {0: pytest.approx(2 / 3), 2: pytest.approx(2 / 3)}
    people = read("2,someone,b,a,a")
    assert pairs.with_gold(people).gold == {("2", "a", "b"): "first"}
    chances = pairs.with_gold(people, drawn={("2", "b", "a"): 0.25}).labels.drawn_gold
    assert chances == {1: 0.25}
    places = read("1,j,a,first,a", "2,j,a,first,first")
    assert places.with_gold(places).gold == {("1", "a", "first"): "first", ("2", "a", "first"): "second"}
    both = pairs.with_gold({("1", "a", "b"): "first"}).with_gold({("3", "a", "b"): "a"}, drawn="random")
    assert both.labels.drawn_gold == {2: pytest.approx(1 / 3)}  # what was chosen before stays so
    assert both.with_gold({("3", "a", "b"): "a"}).labels.drawn_gold == {2: pytest.approx(1 / 3)}
    with pytest.raises(InvalidLabels):
        both.with_gold({("1", "a", "b"): "b"})
    with pytest.raises(InvalidParameter, match="chosen"):
        pairs.with_gold(people, drawn="by lot")
    differing = read("2,someone,a,b,a", "2,other,a,b,b")
    wrong_gold = [(gold, None) for gold in (read("9,someone,a,b,a"), differing, {"1": "first"})]
    for gold, drawn in (*wrong_gold, (people, {}), (people, {("2", "b", "a"): 1.5})):
        with pytest.raises(InvalidLabels):
            pairs.with_gold(gold, drawn=drawn)


@pytest.mark.parametrize("rows", [["1,j,a,a,a"], ["1,j,a,b,a", "1,j,a,b,c"], ["1,j,a,b,A"], ["1,,a,b,a"], ["1,j,a,b,"]])
def test_bad_rows_get_a_sentence(rows):
    with pytest.raises(InvalidLabels):
        read(*rows)


@pytest.fixture
def battles():
    """Verdicts of judges who prefer the first place, on contests of which most show one system first."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(120):
        a_wins = rng.random() < 0.465
        for judge in ("j", "k", "l"):
            two = ("alpha", "beta") if rng.random() < 0.8 else ("beta", "alpha")
            right = a_wins == (two[0] == "alpha")
            said = "model_a" if rng.random() < (0.9 if right else 0.4) else "model_b"
            rows.append({"prompt": f"p{k}", "judge": judge, "model_a": two[0], "model_b": two[1], "winner": said})
    return rows


@pytest.mark.parametrize("kind", ["csv", "jsonl", "json", "frame"])
def test_arenas_keep_the_order_shown_and_both_orders_are_one_contest(tmp_path, battles, kind):
    plain = read(
        *(
            f"{r['prompt']},{r['judge']},{r['model_a']},{r['model_b']},{r['winner'].replace('model_', '')}"
            for r in battles
        )
    )
    path = tmp_path / f"arena.{kind}"
    if kind == "csv":
        lines = [",".join(battles[0]), *(",".join(row.values()) for row in battles)]
        path.write_text("\n".join(lines))
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, battles)))
    else:
        path.write_text(json.dumps(battles))
    columns = {name: [row[name] for row in battles] for name in battles[0]}
    pairs = tu.Pairs.from_frame(columns) if kind == "frame" else tu.read_pairs(path)
    assert pairs.n_contests == plain.n_contests == 120
    assert pairs.contests == plain.contests
    for name in ("contest", "judge", "shown", "verdict"):
        assert np.array_equal(getattr(pairs, name), getattr(plain, name))


def in_capitals(row):
    return {name.replace("prompt", "item").title(): value for name, value in row.items()}


def with_marks(row):
    marks = {f"winner_{place}": int(row["winner"] == place) for place in ("model_a", "model_b")} | {"winner_tie": 0}
    return {name: value for name, value in row.items() if name != "winner"} | marks


@pytest.mark.parametrize("way", [in_capitals, with_marks])
@pytest.mark.parametrize("kind", ["csv", "json", "frame"])
def test_columns_in_capitals_or_with_marks_of_the_winner_are_known(tmp_path, battles, way, kind):
    battles[0] = {**battles[0], "winner": "tie"} if way is in_capitals else battles[0]
    plain = tu.Pairs.from_frame({name: [row[name] for row in battles] for name in battles[0]})
    rows, path = [way(row) for row in battles], tmp_path / f"arena.{kind}"
    table = {name: [row[name] for row in rows] for name in rows[0]}
    if kind == "csv":
        path.write_text("\n".join([",".join(table), *(",".join(map(str, row.values())) for row in rows)]))
    elif kind == "json":
        path.write_text(json.dumps(rows))
    pairs = tu.read_pairs(table if kind == "frame" else path)
    assert pairs.contests == plain.contests
    assert np.array_equal(pairs.shown, plain.shown)
    assert np.array_equal(pairs.verdict, plain.verdict)
