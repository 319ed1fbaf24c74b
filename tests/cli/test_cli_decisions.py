"""Gates that go on: a table of items to check, filled in and given back until it is decided."""

import json

import numpy as np
import pytest
from cli_helpers import assert_one_sentence, rows_of, write_csv


@pytest.fixture
def verdicts(tmp_path):
    """Outputs of two systems for prompts, three judges, and the truth."""
    rng = np.random.default_rng(0)
    rows, truth = [], {}
    for k in range(60):
        for system, rate in (("new", 0.95), ("old", 0.6)):
            right = rng.random() < rate
            truth[f"p{k}", system] = "pass" if right else "fail"
            for judge in ("a", "b", "c"):
                rows.append((f"p{k}", system, judge, "pass" if (rng.random() < 0.8) == right else "fail"))
    return write_csv(tmp_path / "verdicts.csv", ("prompt", "system", "labeler", "label"), rows), truth


@pytest.fixture
def ask(run_main, verdicts, tmp_path):
    """The gate of the tests, with options."""
    how = ("--item", "prompt,system", "--of", "pass", "--by", "system", "--candidate", "new", "--not-worse-than", "old")

    def run(*more):
        return run_main("share", verdicts[0], *how, "--margin", "0.02", *more)

    return run


def write_rows(path, rows):
    write_csv(path, tuple(rows[0]), [tuple(row.values()) for row in rows])


def fill_in(path, truth):
    write_rows(path, [{**row, "label": truth[row["prompt"], row["system"]]} for row in rows_of(path)])


def test_from_undecided_to_passed(ask, verdicts, tmp_path):
    files, ran = [], ask("--ask", tmp_path / "ask0.csv", "--n-ask", "30", "--summary", tmp_path / "summary.md")
    assert ran.code == 5, ran.err
    assert "next: " in ran.err
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("## trueup share: undecided")
    assert "┃ is -0.02" in summary
    assert "more check" in summary
    for k in range(4):
        fill_in(tmp_path / f"ask{k}.csv", verdicts[1])
        files += ["--gold", tmp_path / f"ask{k}.csv"]
        ran = ask(*files, "--ask", tmp_path / f"ask{k + 1}.csv", "--n-ask", "30")
        if ran.code != 5:
            break
    assert ran.code == 0, ran.err
    assert "gate: passed" in ran.err
    record = json.loads(ask(*files, "--json").out)
    assert record["gate"]["verdict"] == "passed"
    assert "checked items" in record["basis"]


def test_the_order_of_the_files_and_empty_rows_play_no_part(ask, verdicts, tmp_path):
    ask("--ask", tmp_path / "a.csv", "--n-ask", "6")
    fill_in(tmp_path / "a.csv", verdicts[1])
    ask("--gold", tmp_path / "a.csv", "--ask", tmp_path / "b.csv", "--n-ask", "6")
    one, other = (
        json.loads(ask("--gold", tmp_path / first, "--gold", tmp_path / second, "--json").out)["gate"]
        for first, second in (("a.csv", "b.csv"), ("b.csv", "a.csv"))
    )
    assert one == other
    ask("--gold", tmp_path / "a.csv", "--gold", tmp_path / "b.csv", "--ask", tmp_path / "c.csv", "--n-ask", "8")
    rows = rows_of(tmp_path / "c.csv")
    assert [row["draw"] for row in rows] == [str(k) for k in range(7, 15)]  # those that wait, and two more


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda rows: rows[1:], "all draws from the first on"),
        (lambda rows: [{**rows[0], "draw": "one"}, *rows[1:]], "must be numbers"),
        (lambda rows: [{**rows[0], "label": "perhaps"}, *rows[1:]], "must be one of"),
        (lambda rows: [{**rows[0], "prompt": "p999"}, *rows[1:]], "which the votes do not have"),
        (lambda rows: [rows[0], {**rows[1], "draw": "1"}, *rows[1:]], "must be of one item"),
    ],
)
def test_damaged_tables_are_refused_in_a_sentence(ask, verdicts, tmp_path, damage, message):
    path = tmp_path / "a.csv"
    ask("--ask", path, "--n-ask", "4")
    fill_in(path, verdicts[1])
    write_rows(path, damage(rows_of(path)))
    ran = ask("--gold", path)
    assert_one_sentence(ran)
    assert message in ran.err


def test_tables_of_another_decision_are_refused(ask, verdicts, run_main, tmp_path):
    ask("--ask", tmp_path / "a.csv", "--n-ask", "10")
    fill_in(tmp_path / "a.csv", verdicts[1])
    other = ("--item", "prompt,system", "--of", "pass", "--fail-below", "pass=0.5", "--gold", tmp_path / "a.csv")
    ran = run_main("share", verdicts[0], *other)
    assert_one_sentence(ran)
    assert "must be those of this decision" in ran.err


def test_ask_needs_a_gate(run_main, verdicts, tmp_path):
    ran = run_main("share", verdicts[0], "--item", "prompt,system", "--of", "pass", "--ask", tmp_path / "a.csv")
    assert_one_sentence(ran)
    assert "--ask is about gates, got none" in ran.err


def test_contests_are_asked_for_and_answered_by_the_name_of_the_winner(run_main, tmp_path):
    rng = np.random.default_rng(1)
    rows = [(k, "x", "y", j, "x" if rng.random() < 0.85 else "y") for k in range(50) for j in "ab"]
    pairs = write_csv(tmp_path / "pairs.csv", ("item", "first", "second", "judge", "winner"), rows)
    how = ("preferences", pairs, "--candidate", "x", "--better-than", "y", "--target", "sample", "--ask")
    assert run_main(*how, tmp_path / "a.csv", "--n-ask", "30").code == 5
    write_rows(tmp_path / "a.csv", [{**row, "winner": "x"} for row in rows_of(tmp_path / "a.csv")])
    ran = run_main(*how, tmp_path / "b.csv", "--gold", tmp_path / "a.csv")
    assert ran.code == 0, ran.err
