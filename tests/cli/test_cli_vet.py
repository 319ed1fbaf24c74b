"""trueup vet: a session file, an expert and a spreadsheet."""

import contextlib
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from cli_helpers import HANGS_AFTER, assert_one_sentence, crowd, write_csv

import trueup as tu
from trueup.adapters import read_labels, read_predictions
from trueup.cli import main

QUICK = {"TRUEUP_ENGINE": "scipy"}  # nothing to compile; both engines give the same
TRUTH = {f"i{i}": ("no", "yes")[y] for i, y in enumerate(crowd()["truth"])}


@pytest.fixture
def session(tmp_path):
    return tmp_path / "session.json"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A folder with votes, predictions and a session of five items that wait for an answer; made once, then copied."""
    folder, data = tmp_path_factory.mktemp("template"), crowd()
    votes = [(f"i{i}", f"w{t}", ("no", "yes")[v]) for i, row in enumerate(data["votes"]) for t, v in enumerate(row)]
    write_csv(folder / "votes.csv", ("item", "labeler", "label"), votes)
    predictions = [
        (f"i{i}", ("no", "yes")[p], s) for i, (p, s) in enumerate(zip(data["good"], data["score"], strict=True))
    ]
    write_csv(folder / "predictions.csv", ("item", "prediction", "score"), predictions)
    files = [str(folder / name) for name in ("session.json", "votes.csv", "predictions.csv")]
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as leaving:
        main(["vet", "ask", *files, "-n", "5", "--noise", "majority", "--json"])  # quick to fit
    assert leaving.value.code == 0
    return folder


@pytest.fixture
def begun(template, tmp_path):
    """The items of a session that wait for an answer; a session finds its files wherever the folder is."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return [item for item, _ in json.loads((tmp_path / "session.json").read_text())["reasons"]]


def answers(items):
    return [f"{item}={TRUTH[item]}" for item in items]


def fill_in(path, truths, *, encoding="utf-8", delimiter=","):
    """What an expert does in a spreadsheet."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["truth"] = truths.get(row["item"], "")
    with path.open("w", encoding=encoding, newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def log_of(session):
    return json.loads(session.read_text(encoding="utf-8"))["test"]["log"]


# ---------------------------------------------------------------------- from end to end


def test_from_end_to_end_through_the_installed_program(tmp_path, votes_csv, predictions_csv, run_trueup, run_main):
    files = ("s.json", "votes.csv", "predictions.csv")
    asked = run_trueup("vet", "ask", *files, "-n", "6", "--out", "batch.csv", "--budget", "6", **QUICK)
    assert asked.code == 0, asked.err
    assert "fill in its column 'truth'" in asked.err
    fill_in(tmp_path / "batch.csv", TRUTH)
    parsed = run_main("vet", "tell", tmp_path / "s.json", "--from", tmp_path / "batch.csv", "--who", "ann")
    assert parsed.code == 0, parsed.err
    assert "Answers taken: 6, of which new: 6." in parsed.out
    picture = tmp_path / "course.png"
    status = run_main("vet", "status", tmp_path / "s.json", "--json", "--fail-unless-finished", "--plot", picture)
    assert status.code == 0, status.err
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    found = json.loads(status.out)
    assert found["n_vetted"] == 6
    assert found["finished"] == "The budget of 6 answers is spent."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batch.csv", "predictions.csv", "s.json", "votes.csv"]


def test_the_session_is_that_of_the_library(session, votes_csv, predictions_csv, run_main):
    options = ("--strategy", "random", "--seed", "5", "--noise", "majority", "--metric", "recall", "--level", "0.9")
    ran = run_main("vet", "start", session, votes_csv, predictions_csv, *options)
    assert ran.code == 0, ran.err
    first = json.loads(run_main("vet", "ask", session, "-n", "8", "--json").out)
    items = [row["item"] for row in first["items"]]
    assert all(row["why"] for row in first["items"])
    run_main("vet", "tell", session, *answers(items))
    second = json.loads(run_main("vet", "ask", session, "-n", "4", "--json").out)
    found = json.loads(run_main("vet", "status", session, "--json", "--history", "--every", "4").out)

    labels = read_labels(votes_csv)
    how = {"strategy": "random", "random_state": 5, "noise": "majority", "metric": "recall", "level": 0.9}
    test = tu.ActiveTest(read_predictions(predictions_csv, labels=labels), labels, **how)
    assert list(test.ask(8)) == items
    test.tell({item: TRUTH[item] for item in items})
    assert list(test.ask(4)) == [row["item"] for row in second["items"]]
    low, high = test.estimate().interval(0.9)
    (estimate,) = found["estimates"].values()
    assert (estimate["mean"], estimate["low"], estimate["high"]) == (test.estimate().mean, low, high)
    assert found["history"] == test.history(every=4)
    assert found["warnings"] == list(test.warnings)
    assert sorted(found["waiting"]) == sorted(test.waiting)


# ---------------------------------------------------------------------- answers


def test_odd_names_survive_a_spreadsheet(session, tmp_path, run_main):
    names = ["=cmd()", "<script>", 'a,"b"\nc', "a=b", "+1", "'tis", "[red]"]
    classes = ["=no", "<b>yes</b>"]
    votes = [(name, f"w{t}", classes[(k + (t == 2)) % 2]) for k, name in enumerate(names) for t in range(3)]
    write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), votes)
    write_csv(tmp_path / "p.csv", ("item", "prediction"), [(name, classes[0]) for name in names])
    batch = tmp_path / "batch.csv"
    ran = run_main("vet", "ask", session, tmp_path / "v.csv", tmp_path / "p.csv", "-n", "7", "--out", batch)
    assert ran.code == 0, ran.err
    assert "[red]" in ran.out
    assert 'a,"b"\\nc' in ran.out
    with batch.open(newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    fill_in(batch, {"'=cmd()": "'=no", 'a,"b"\nc': "<B>yes</B> ", "'+1": "=no", "'tis": "=no"})
    ran = run_main("vet", "tell", session, "--from", batch)
    assert ran.code == 0, ran.err
    parsed = {event["item"]: event["truth"] for event in log_of(session) if event["kind"] == "tell"}
    assert parsed == {"=cmd()": "=no", 'a,"b"\nc': "<b>yes</b>", "+1": "=no", "'tis": "=no"}
    assert run_main("vet", "tell", session, "a=b==no", "[red]=<b>yes</b>").code == 0
    assert json.loads(run_main("vet", "status", session, "--json").out)["n_vetted"] == 6


@pytest.mark.parametrize(
    ("encoding", "delimiter"), [("utf-8-sig", ","), ("utf-8", ";")], ids=["byte-order mark", "semicolons"]
)
def test_files_as_spreadsheets_save_them(encoding, delimiter, session, begun, tmp_path, run_main):
    batch = tmp_path / "batch.csv"
    assert run_main("vet", "ask", session, "--again", "--out", batch).code == 0
    fill_in(batch, {item: TRUTH[item].upper() for item in begun[:3]}, encoding=encoding, delimiter=delimiter)
    ran = run_main("vet", "tell", session, "--from", batch, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (found["told"], sorted(found["waiting"])) == (3, sorted(begun[3:]))


def test_who_said_what_corrections_and_skips(session, begun, run_main):
    a, b, c = begun[:3]
    run_main("vet", "tell", session, f"{a}=no", f"{b}=no", "--who", "ann")
    refused = run_main("vet", "tell", session, f"{a}=yes", f"{c}=yes")
    assert_one_sentence(refused)
    assert "known to be 'no'" in refused.err
    assert "--correct" in refused.err
    assert len(log_of(session)) == 7  # c was not taken either
    assert run_main("vet", "tell", session, f"{a}=yes", "--correct", "--who", "bob").code == 0
    assert log_of(session)[-1]["kind"] == "correct"
    assert [event.get("who") for event in log_of(session)][-3:] == ["ann", "ann", "bob"]
    assert run_main("vet", "skip", session, c).code == 0
    found = json.loads(run_main("vet", "status", session, "--json").out)
    assert (found["n_vetted"], sorted(found["waiting"])) == (2, sorted(begun[3:]))


# ---------------------------------------------------------------------- files


def test_the_folder_can_be_moved(session, begun, tmp_path, votes_csv, predictions_csv, run_main):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in (session, votes_csv, predictions_csv):
        path.rename(elsewhere / path.name)
    assert run_main("vet", "tell", elsewhere / session.name, *answers(begun)).code == 0


def test_a_changed_or_missing_file_is_an_error(session, begun, votes_csv, predictions_csv, run_main):
    before = session.read_bytes()
    content = votes_csv.read_bytes()
    votes_csv.write_bytes(content.replace(b"yes", b"no", 1))
    for command in (("tell", session, *answers(begun)), ("status", session), ("ask", session)):
        ran = run_main("vet", *command)
        assert_one_sentence(ran)
        assert "must be as it was when the session" in ran.err
    votes_csv.write_bytes(content)
    predictions_csv.unlink()
    ran = run_main("vet", "status", session)
    assert_one_sentence(ran)
    assert "put it back" in ran.err
    assert session.read_bytes() == before


def test_what_is_fixed_stays_fixed(session, begun, votes_csv, predictions_csv, systems_csv, run_main):
    again = run_main("vet", "ask", session, votes_csv, predictions_csv, "--metric", "accuracy", "-n", "1")
    assert again.code == 0, again.err  # given again, and the same
    for options, sentence in (
        (("--metric", "recall"), "--metric is fixed"),
        (("--seed", "9"), "--seed is fixed"),
        (("--option", "floor=0.1"), "--option is fixed"),
        (("--item", "image"), "how files are read is fixed"),
        ((votes_csv, systems_csv), "the files of a session are fixed"),
        ((predictions_csv,), "the files of a session are fixed"),
    ):
        ran = run_main("vet", "ask", session, *options)
        assert_one_sentence(ran)
        assert sentence in ran.err
    again = run_main("vet", "start", session, votes_csv, predictions_csv)
    assert_one_sentence(again)
    assert "must not exist yet" in again.err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x81\x82",
        b"[1, 2]",
        b'{"format": "trueup vet", "version": 1}',
        b'{"format": "trueup vet", "version": 1, "files": {"votes": {"path": "v',
        b'{"format": "trueup vet", "version": 1, "files": {}, "reading": {}, "test": {}, "reasons": 5}',
        b'{"format": "trueup vet", "files": {"votes": {"path": 1, "sha256": "x"}}, "reading": {}, "test": {}}',
        b"[" * 100_000,
    ],
    ids=["empty", "binary", "other JSON", "parts missing", "cut off", "reasons", "path", "deep"],
)
def test_what_is_no_session_is_one_sentence(content, session, run_main):
    session.write_bytes(content)
    for command in (("status", session), ("tell", session, "a=b"), ("ask", session)):
        ran = run_main("vet", *command)
        assert_one_sentence(ran)
        assert "is no session" in ran.err
    assert_one_sentence(run_main("monitor", "show", session))
    assert session.read_bytes() == content


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("tell", "{s}"), "got both or none"),
        (("tell", "{s}", "i1=no", "--from", "x.csv"), "got both or none"),
        (("tell", "{s}", "i1"), "ITEM=CLASS"),
        (("tell", "{s}", "i999=no"), "no item 'i999'"),
        (("tell", "{s}", "i1=maybe"), "one of the classes"),
        (("tell", "{s}", "i1=no", "i1=yes"), "one truth"),
        (("tell", "{s}", "--from", "missing.csv"), "does not exist"),
        (("tell", "{s}", "--from", "empty.csv"), "has no answers"),
        (("tell", "{s}", "--from", "latin.csv"), "save it as UTF-8"),
        (("tell", "{s}", "--from", "columns.csv"), "'truth'"),
        (("tell", "{s}", "--from", "unknown.csv"), "i999"),
        (("skip", "{s}", "i999"), "no item 'i999'"),
        (("ask", "{s}", "-n", "0"), "-n"),
        (("ask", "{s}", "--out", "no/such/folder/b.csv"), "does not exist"),
        (("status", "nothing.json"), "there is no session"),
        (("ask", "nothing.json"), "got no files to begin one"),
        (("ask", "no/such/folder/s.json", "votes.csv", "predictions.csv"), "cannot be written"),
        (("ask", "new.json", "-", "predictions.csv"), "standard input"),
        (("ask", "new.json", "votes.csv", "predictions.csv", "--strategy", "luck"), "strategy"),
        (("ask", "new.json", "votes.csv", "predictions.csv", "--option", "floors=1"), "floors"),
        (("ask", "new.json", "votes.csv", "predictions.csv", "--budget", "1000"), "budget"),
        (("status", "{s}", "--plot", "h.doc"), ".png"),
    ],
)
def test_bad_use_is_one_sentence_and_changes_nothing(
    arguments, sentence, session, begun, tmp_path, monkeypatch, run_main
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.csv").write_text("item,truth\ni1,\n")
    (tmp_path / "latin.csv").write_bytes("item,truth\ni1,né\n".encode("latin-1"))
    (tmp_path / "columns.csv").write_text("item,answer\ni1,no\n")
    (tmp_path / "unknown.csv").write_text("item,truth\ni1,no\ni999,no\n")
    before = session.read_bytes()
    ran = run_main("vet", *(str(session) if part == "{s}" else part for part in arguments))
    assert_one_sentence(ran)
    assert sentence in ran.err
    assert session.read_bytes() == before
    assert not (tmp_path / "new.json").exists()


# ---------------------------------------------------------------------- crashes, and two at once


def killed_while_writing(*args):
    """Run the program so that it is killed, by the signal nobody can catch, just before the file takes its place."""
    code = (
        "import os, signal, sys\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from trueup.cli import main\n"
        "main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, timeout=HANGS_AFTER, env={**os.environ, **QUICK})


def test_a_kill_in_the_middle_leaves_the_session_as_it_was(session, begun, run_main):
    before = session.read_bytes()
    assert killed_while_writing("vet", "tell", session, *answers(begun)).returncode == -signal.SIGKILL
    assert session.read_bytes() == before
    left_behind = list(session.parent.glob(".session.json.*"))
    assert len(left_behind) == 2  # it did get as far: a lock and a part
    ran = run_main("vet", "tell", session, *answers(begun), "--json")  # and neither is in the way
    assert json.loads(ran.out)["n_vetted"] == 5


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [(KeyboardInterrupt(), 130, "interrupted"), (OSError(28, "No space left on device"), 4, "No space left")],
    ids=["interrupt", "disk full"],
)
def test_what_stops_the_writing_loses_nothing(error, code, sentence, session, begun, monkeypatch, run_main):
    before = session.read_bytes()

    def fail(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        ran = run_main("vet", "tell", session, *answers(begun))
    assert ran.code == code
    assert sentence in ran.err
    assert "Traceback" not in ran.err
    assert session.read_bytes() == before
    assert not list(session.parent.glob(".*"))
    assert run_main("vet", "tell", session, *answers(begun)).code == 0


def test_two_at_once_wait_for_each_other(session, begun, run_main, start_process):
    patient = (
        "import sys\n"
        "from trueup._base import writing as locking\n"
        "from trueup.cli import main\n"
        f"locking._SECONDS_TO_WAIT = {HANGS_AFTER}\n"  # the other may be slow on a busy machine
        "main(sys.argv[1:])"
    )
    programs = [
        start_process(sys.executable, "-c", patient, "vet", "tell", session, answer, **QUICK)
        for answer in answers(begun[:2])
    ]
    errors = [program.communicate()[1] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], errors
    assert json.loads(run_main("vet", "status", session, "--json").out)["n_vetted"] == 2
    assert not list(session.parent.glob(".*"))


def test_later_none_of_these_and_answers_in_sight_are_told_apart(tmp_path, run_main):
    session = tmp_path / "s.json"
    (tmp_path / "v.csv").write_text("item,labeler,label\n" + "".join(f"i{k},ann,{'xyz'[k % 3]}\n" for k in range(12)))
    (tmp_path / "p.csv").write_text("item,prediction\n" + "".join(f"i{k},x\n" for k in range(12)))
    run_main("vet", "ask", session, tmp_path / "v.csv", tmp_path / "p.csv", "-n", "5", "--strategy", "random")
    items = json.loads(run_main("vet", "status", session, "--json").out)["waiting"]
    draws = [event["item"] for event in log_of(session)]
    assert run_main("vet", "skip", session, draws[0], "--later", "--who", "ann").code == 0
    assert run_main("vet", "skip", session, draws[1], "--who", "ann").code == 0
    assert run_main("vet", "tell", session, f"{draws[2]}=x", "--none", draws[3]).code == 0
    assert run_main("vet", "tell", session, f"{draws[4]}=y", "--sighted").code == 0
    assert [event["kind"] for event in log_of(session)[5:]] == ["later", "cannot tell", "tell", "none of these", "tell"]
    assert log_of(session)[-1]["blind"] is False
    status = json.loads(run_main("vet", "status", session, "--json").out)
    progress = status["progress"]
    assert set(items) == set(draws)
    assert (progress["later"], progress["cannot_tell"], progress["none_of_these"], progress["sighted"]) == (1, 1, 1, 1)
    assert (progress["counted"], progress["ahead"]) == (0, 4), "the first draw has no outcome yet"
    (estimate,) = status["estimates"].values()
    assert estimate["at_every_look"][0] <= estimate["low"]
    words = run_main("vet", "status", session).out
    assert "4 wait to count" in words
    assert "at every look" in words
    assert run_main("vet", "tell", session, f"{draws[2]}=x", "--from", "x.csv", "--none", draws[3]).code == 2
