"""Files of strangers: what is read, what is refused, and what is written, through `evaluate` and `check`."""

import io
import json

import pytest
from cli_helpers import QUICK, assert_one_sentence, crowd, write_csv

from trueup.cli._files import read_votes
from trueup.cli._options import VoteOptions

HOSTILE = ("=cmd()", "<script>alert(1)</script>")


def test_votes_from_standard_input(run_main, votes_csv, predictions_csv, monkeypatch):
    args = (predictions_csv, "--json", "-m", "accuracy", *QUICK)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(votes_csv.read_bytes())))
    piped = run_main("evaluate", "-", *args)
    named = run_main("evaluate", votes_csv, *args)
    assert json.loads(piped.out)["metrics"] == json.loads(named.out)["metrics"]
    expected = json.loads(named.out)["files"]["votes"]
    assert json.loads(piped.out)["files"]["votes"] == {**expected, "file": "standard input"}


@pytest.mark.parametrize("is_wide", [True, False], ids=["wide", "long"])
def test_one_table_has_votes_and_predictions(run_main, votes_csv, tmp_path, is_wide):
    data = crowd()
    rows = [
        (f"i{i}", ("no", "yes")[p], [("no", "yes")[v] for v in row])
        for i, (p, row) in enumerate(zip(data["good"], data["votes"], strict=True))
    ]
    if is_wide:
        head = ("doc", "prediction", *(f"w{t}" for t in range(5)))
        table = [(name, said, *votes) for name, said, votes in rows]
    else:
        head = ("doc", "prediction", "labeler", "label")
        table = [(name, said, f"w{t}", vote) for name, said, votes in rows for t, vote in enumerate(votes)]
    one = write_csv(tmp_path / "one.csv", head, table)
    ran = run_main("evaluate", one, one, "--item", "doc", "--json", "-m", "accuracy")
    alone = write_csv(tmp_path / "alone.csv", ("item", "prediction"), [row[:2] for row in rows])
    two = run_main("evaluate", votes_csv, alone, "--json", "-m", "accuracy")
    assert json.loads(ran.out)["metrics"] == json.loads(two.out)["metrics"]


def test_standard_input_is_empty_or_named_twice(run_main, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    ran = run_main("check", "-")
    assert_one_sentence(ran)
    assert "standard input is empty" in ran.err
    ran = run_main("evaluate", "-", "-")
    assert_one_sentence(ran)
    assert "twice" in ran.err


def test_labels_that_are_formulas_or_scripts_are_escaped_in_the_report(run_main, tmp_path):
    data = crowd()
    rows = [(f"i{i}", f"<b>{t}</b>", HOSTILE[v]) for i, row in enumerate(data["votes"]) for t, v in enumerate(row)]
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), rows)
    rows = [(f"i{i}", "<img src=x>", HOSTILE[p]) for i, p in enumerate(data["good"])]
    guesses = write_csv(tmp_path / "p.csv", ("item", "system", "prediction"), rows)
    report = tmp_path / "report.html"
    ran = run_main("evaluate", votes, guesses, "-m", "accuracy", "--report", report, *QUICK)
    assert ran.code == 0, ran.err
    page = report.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in page
    for text in ("<script>alert", "<b>0</b>", "<img src=x>"):
        assert text not in page


@pytest.mark.parametrize("where", ["", "file.csv/r.html", "/proc/nowhere/r.html"], ids=["folder", "file", "proc"])
def test_a_report_that_cannot_be_written_stops_before_the_work(run_main, votes_csv, predictions_csv, tmp_path, where):
    (tmp_path / "file.csv").write_text("x", encoding="utf-8")
    (tmp_path / "r.html").mkdir()
    path = tmp_path / where if where else tmp_path / "r.html"
    ran = run_main("evaluate", votes_csv, predictions_csv, "--report", path)
    assert_one_sentence(ran)
    assert "r.html" in ran.err


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_report_is_there_when_the_reader_of_the_pipe_has_gone(
    run_main, votes_csv, systems_csv, tmp_path, monkeypatch, command
):
    def gone(data):
        raise BrokenPipeError

    monkeypatch.setattr("trueup.cli._command.print_json", gone)
    report = tmp_path / "r.md"
    ran = run_main(command, votes_csv, systems_csv, "-m", "accuracy", "--json", "--report", report, *QUICK)
    assert ran.code == 141, ran.err
    assert "accuracy" in report.read_text(encoding="utf-8")


def test_digits_that_are_text_in_the_file_stay_text(tmp_path):
    path = tmp_path / "v.jsonl"
    rows = [{"item": i, "labeler": "a", "label": "1"} for i in range(3)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_votes(str(path), VoteOptions(class_names=["0", "1"])).classes.tolist() == ["0", "1"]


def test_no_result_replaces_a_file_of_the_same_call(run_main, tmp_path, votes_csv, predictions_csv):
    source = tmp_path / "votes.json"
    source.write_text("[]", encoding="utf-8")
    link = tmp_path / "link.json"
    link.symlink_to(source)
    for args in (
        ("evaluate", source, predictions_csv, "--report", source),
        ("evaluate", source, predictions_csv, "--report", link),
        ("convert", votes_csv, tmp_path / "o.csv", "--gold-out", tmp_path / "o.csv"),
        ("convert", votes_csv, votes_csv, "--force"),
        ("monitor", "show", source, "--report", source),
        ("vet", "ask", source, votes_csv, predictions_csv, "--out", tmp_path / "votes.json", "--force"),
        ("detect", "match", "--annotators", f"ann={source}", "--coco", source),
    ):
        ran = run_main(*args)
        assert_one_sentence(ran)
        assert "must be a file of its own, got" in ran.err, args
    assert source.read_text(encoding="utf-8") == "[]"
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.csv", "item,labeler,label," + "x" * 200_000 + "\n1,a,b,c\n"),
        ("v.jsonl", '{"item": ' + "9" * 5000 + ', "labeler": "a", "label": "b"}'),
        ("v.jsonl", "[" * 100_000),
    ],
    ids=["long header", "long number", "deep"],
)
def test_what_no_parser_takes_is_one_sentence(run_main, tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert_one_sentence(run_main("check", path))
