"""trueup monitor, through its entry point."""

import json

import numpy as np
import pytest
from cli_helpers import assert_one_sentence, write_csv

import trueup as tu


@pytest.fixture
def day_files(tmp_path):
    """Files of one day: votes of three judges, what the system says, and vetted items."""

    def write(k, accuracy=0.9):
        rng = np.random.default_rng([k, 3])
        truth = rng.integers(2, size=80)
        is_right = rng.random((80, 4)) < [0.9, 0.9, 0.9, accuracy]
        answers = np.array(["fail", "pass"])[np.where(is_right, truth[:, None], 1 - truth[:, None])]
        votes = [(f"i{i}", f"judge {j}", answers[i, j]) for i in range(80) for j in range(3)]
        gold = [(f"i{i}", ("fail", "pass")[truth[i]]) for i in range(10)]
        return (
            write_csv(tmp_path / "votes.csv", ("item", "labeler", "label"), votes),
            write_csv(tmp_path / "predictions.csv", ("item", "prediction"), list(enumerate_items(answers[:, 3]))),
            *("--gold", write_csv(tmp_path / "gold.csv", ("item", "label"), gold), "--gold-drawn", "random"),
            *("--when", f"2026-02-{k + 1:02}"),
        )

    return write


def enumerate_items(values):
    return ((f"i{i}", value) for i, value in enumerate(values))


def test_batches_are_added_until_an_alarm(run_main, day_files, tmp_path):
    watch = tmp_path / "watch.json"
    for k in range(5):
        ran = run_main("monitor", "add", watch, *day_files(k), "--baseline", 4, "--fail-on-alarm")
        assert ran.code == 0, ran.err
        assert ("Cannot test yet" if k < 4 else "No alarm") in ran.out
    ran = run_main("monitor", "add", watch, *day_files(5, accuracy=0.2), "--fail-on-alarm", "--json")
    assert ran.code == 1
    parsed = json.loads(ran.out)
    assert parsed["alarm"]["since"] == "2026-02-06"
    assert parsed["batches"][-1] == "2026-02-06"
    assert parsed["findings"][0] in ran.err
    assert tu.Monitor.from_json(watch.read_text()).alarm.sentence == parsed["alarm"]["sentence"]
    # Only who asks is failed.
    assert run_main("monitor", "show", watch, "--no-estimates").code == 0
    ran = run_main("monitor", "restart", watch, "--why", "mended")
    assert ran.code == 0
    shown = run_main("monitor", "show", watch, "--no-estimates", "--fail-on-alarm")
    assert shown.code == 0
    assert "Cannot test yet" in shown.out


def test_show_tells_the_course_and_writes_a_page(run_main, day_files, tmp_path):
    watch, page = tmp_path / "watch.json", tmp_path / "watch.html"
    run_main("monitor", "add", watch, *day_files(0))
    ran = run_main("monitor", "show", watch, "--report", page)
    assert ran.code == 0, ran.err
    assert "Accuracy over time" in ran.out
    assert "judge 2" in ran.out
    assert "<svg" in page.read_text(encoding="utf-8")
    parsed = json.loads(run_main("monitor", "show", watch, "--json", "--no-estimates").out)
    assert 0.5 < parsed["course"][0]["low"] < parsed["course"][0]["mean"] < parsed["course"][0]["high"] <= 1
    assert [row["judge"] for row in parsed["judge_rows"]] == ["judge 0", "judge 1", "judge 2"]


def test_a_share_in_a_storage(run_main, day_files, tmp_path):
    pytest.importorskip("sqlalchemy")
    votes, _, *rest = day_files(0)
    kept = ("--storage", f"sqlite:///{tmp_path}/watch.db", "--name", "q3")
    ran = run_main("monitor", "add", votes, *rest, *kept, "--of", "pass")
    assert ran.code == 0, ran.err
    parsed = json.loads(run_main("monitor", "show", *kept, "--no-estimates", "--json").out)
    assert parsed["settings"]["of"] == "pass"
    assert parsed["course"][0]["metric"] == "share of pass"
    assert_one_sentence(run_main("monitor", "show", *kept[:2], "--name", "q4"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--when", "2026-02-01"), "a batch is added once"),
        (("--when", "2026-01-01"), "in the order of time"),
        (("--when", "today"), "--when must be a date"),
        (("--when", "2026-03-01", "--baseline", 5), "--baseline of this monitor is fixed"),
        (("--when", "2026-03-01", "--of", "pass"), "--of of this monitor is fixed"),
        (("--when", "2026-03-01", "--storage", "sqlite:///x.db"), "both --storage and --name"),
    ],
)
def test_bad_input_gets_a_sentence(run_main, day_files, tmp_path, more, words):
    watch = tmp_path / "watch.json"
    files = day_files(0)
    run_main("monitor", "add", watch, *files)
    before = watch.read_text()
    ran = run_main("monitor", "add", watch, *files[:2], *more)
    assert_one_sentence(ran)
    assert words in ran.err
    assert watch.read_text() == before


def test_what_is_no_monitor_is_refused(run_main, day_files, tmp_path):
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert_one_sentence(run_main("monitor", "show", other))
    assert_one_sentence(run_main("monitor", "show", tmp_path / "none.json"))
    assert_one_sentence(run_main("monitor", "add", tmp_path / "new.json", "--when", "2026-01-01"))
    assert_one_sentence(run_main("monitor", "show"))
    assert not (tmp_path / "new.json").exists()
