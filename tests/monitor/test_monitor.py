"""The monitor: alarms, what it refuses, what it says, and where it is kept."""

import json
import multiprocessing
import time
from contextlib import suppress
from datetime import UTC, date, datetime

import numpy as np
import pytest
from batches import day, draw, filled

import trueup as tu
from trueup.exceptions import TrueupError
from trueup.monitor import Alarm
from trueup.report.saving import over_time

NAMES = ["ann", "bob", "cy"]


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def fallen(rng):
    """A system that falls by a quarter after fourteen days."""
    watch = filled(tu.Monitor(), rng, 14, names=NAMES)
    return filled(watch, rng, 10, start=14, accuracy=0.6, names=NAMES)


def test_a_fall_of_the_system_is_noticed_from_votes_and_named_by_gold(fallen):
    something, system = fallen.alarms[-1], fallen.alarm
    assert isinstance(system, Alarm)
    assert (system.kind, system.since) == ("the system", day(14))
    assert {alarm.kind for alarm in fallen.alarms} == {"the system", "something"}
    main = next(alarm for alarm in fallen.alarms if "agreed with most judges" in alarm.sentence)
    assert main.since == day(14)
    assert main.when in (day(14), day(15))
    assert main.before > 0.8 > 0.7 > main.after
    assert 0 < main.chance <= 0.05
    assert system.before == pytest.approx(0.85, abs=0.08)
    assert system.after == pytest.approx(0.6, abs=0.12)
    assert system.n_before == 140
    assert f"since {day(14)}" in system.sentence
    assert something.when <= system.when


def test_a_fall_of_a_judge_is_named(rng):
    watch = filled(tu.Monitor(), rng, 14, names=NAMES)
    filled(watch, rng, 16, start=14, judges=(0.55, 0.9, 0.9), names=NAMES)
    named = [alarm for alarm in watch.alarms if alarm.kind == "the judge"]
    assert [alarm.judge for alarm in named] == ["ann"]
    assert named[0].after > 0.3 > 0.2 > named[0].before
    assert not any(alarm.kind == "the system" for alarm in watch.alarms)
    assert "The judge 'ann' changed" in named[0].sentence


def test_nothing_is_said_while_nothing_changes(rng):
    watch = filled(tu.Monitor(), rng, 40)
    assert watch.alarm is None
    assert watch.alarms == ()
    assert watch.notes == ()
    (headline,) = watch.status
    assert headline.startswith("No alarm")
    assert repr(watch) == "Monitor(40 batches, no alarm)"


def test_the_fall_that_a_chart_shows_is_an_alarm_by_the_sixth_batch(rng):
    """Agreement of about .85, then .67 and .71; for 500 runs see benchmarks/judges.py."""
    watch = tu.Monitor()
    for k, agreement in enumerate([0.85, 0.84, 0.86, 0.85, 0.67, 0.71]):
        votes = rng.integers(2, size=150)
        agrees = rng.permutation(150) < round(150 * agreement)
        watch.add(tu.Labels.from_matrix(votes[:, None]), np.where(agrees, votes, 1 - votes), when=day(k))
    assert (watch.alarm.kind, watch.alarm.since) == ("something", day(4))
    assert watch.alarm.when in (day(4), day(5))


def test_a_fall_that_is_not_yet_an_alarm_is_not_denied():
    """Batches before it hardly differ, so that the newest alone makes nobody say that batches differ."""
    watch, votes = tu.Monitor(), np.tile([0, 1], 75)
    for k, n_agree in enumerate((124, 122, 123, 95)):
        prediction = np.where(np.arange(150) < n_agree, votes, 1 - votes)
        watch.add(tu.Labels.from_matrix(votes[:, None]), prediction, when=day(k))
    (headline,) = watch.status
    assert headline.startswith("No alarm yet: the system agreed with most judges on 63.3% of the newest 150 items")
    assert not any("more than their items explain" in note for note in watch.notes)
    watch.add(tu.Labels.from_matrix(votes[:, None]), np.roll(prediction, 2), when=day(4))
    assert watch.alarm.since == day(3)


def test_the_page_says_how_many_batches_judges_are_counted_on(fallen):
    lead = over_time(fallen.report())["parts"][1]["lead"]
    assert "of the last 10 batches" in lead
    last = fallen.judges.iloc[-1]
    n_checked = [row["n_gold"] for row in fallen.course_rows()]
    assert last["n_gold"] == sum(n_checked[-10:])


def test_a_share_is_followed_without_predictions(rng):
    watch = tu.Monitor(of="pass")
    for k in range(16):
        truth = rng.random(200) < (0.8 if k < 13 else 0.5)
        said = truth[:, None] ^ (rng.random((200, 3)) > 0.9)
        watch.add(tu.Labels.from_matrix(np.where(said, "pass", "fail"), classes=["fail", "pass"]), when=day(k))
    assert watch.alarm.kind == "something"
    assert "most judges said 'pass'" in watch.alarms[0].sentence
    assert watch.metric == "share of pass"
    assert tu.Monitor.from_json(watch.to_json()).alarms == watch.alarms


def test_a_restart_begins_a_new_baseline(fallen, rng):
    fallen.restart("the new release is meant")
    assert fallen.alarm is None
    filled(fallen, rng, 12, start=24, accuracy=0.6, names=NAMES)
    assert fallen.alarm is None
    again = tu.Monitor.from_json(fallen.to_json())
    assert again.times == fallen.times
    assert again.alarm is None
    with pytest.raises(TrueupError, match="no batch since the last start"):
        tu.Monitor().restart()


def test_it_comes_back_from_json(fallen):
    again = tu.Monitor.from_json(fallen.to_json())
    assert again.alarms == fallen.alarms
    assert again.settings == fallen.settings
    with pytest.raises(TrueupError, match="is fixed when it begins"):
        tu.Monitor.from_json(fallen.to_json(), baseline=4)
    with pytest.raises(TrueupError, match="no monitor"):
        tu.Monitor.from_json(tu.ActiveTest([0, 1], tu.Labels.from_matrix([[0, 1], [1, 0]])).to_json())


def test_the_course_is_what_evaluate_says_of_a_batch(rng):
    labels, said = draw(rng, n_items=40, names=NAMES)
    watch = tu.Monitor(metric="recall", level=0.8)
    watch.add(labels, said, when="2026-01-01")
    ev = tu.evaluate(said, labels, metrics=["recall"], target="population", level=0.8)
    row = watch.course.iloc[0]
    assert row["mean"] == pytest.approx(ev["recall"].mean)
    assert (row["low"], row["high"]) == pytest.approx(ev["recall"].interval(0.8))
    assert (row["metric"], row["basis"]) == ("recall", ev.basis)
    # It is kept in the log, and is not worked out again.
    assert [event.kind for event in tu.Monitor.from_json(watch.to_json())._events] == ["batch", "estimate"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"when": day(1)}, "a batch is added once, got one of 2026-01-02 again"),
        ({"when": "2026-01-02T00:00:00+00:00"}, "added once"),
        ({"when": "2025-12-31"}, "in the order of time, got one of 2025-12-31 after that of 2026-01-02"),
        ({"when": "yesterday"}, "must be a date, a time"),
        ({"when": 7.5}, "must be a date, a time"),
        ({"said": None}, "all batches have predictions or none has, got none"),
        ({"labels": [[1]]}, "a batch must be Labels, got list"),
        ({"classes": (0, 2)}, "must be those of the first, .0, 1., got 2"),
        ({"systems": 2}, "a monitor watches one system, got 2"),
        ({"names": [date(2026, 1, k) for k in (1, 2, 3)]}, "every labeler of a stored session must be text"),
    ],
)
def test_bad_batches_get_a_sentence_and_change_nothing(rng, how, words):
    watch = filled(tu.Monitor(), rng, 2)
    before = watch.to_json()
    labels, said = draw(rng, classes=how.get("classes", (0, 1)), names=how.get("names"))
    labels, said = how.get("labels", labels), how.get("said", said) if "said" in how else said
    said = {"a": said, "b": said} if "systems" in how else said
    with pytest.raises(TrueupError, match=words) as caught:
        watch.add(labels, said, when=how.get("when", day(5)))
    assert "\n" not in str(caught.value)
    assert watch.to_json() == before


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metric": "auc"}, "hard classes"),
        ({"metric": "acuracy"}, "accuracy"),
        ({"metric": "recall", "of": 1}, "pass one of them"),
        ({"baseline": 1}, "baseline"),
        ({"false_alarms": 0}, "false_alarms"),
        ({"level": 2}, "level"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(TrueupError, match=words):
        tu.Monitor(**settings)


def test_the_question_is_settled_by_the_first_batch(rng):
    labels, said = draw(rng)
    with pytest.raises(TrueupError, match="needs predictions, or the class"):
        tu.Monitor().add(labels, when=day(0))
    with pytest.raises(TrueupError, match="for batches without predictions"):
        tu.Monitor(of=1).add(labels, said, when=day(0))
    with pytest.raises(TrueupError, match="positive"):
        tu.Monitor(positive="x").add(labels, said, when=day(0))
    # A class that nobody votes for later is still one of them, and classes can be named at first.
    watch = tu.Monitor(classes=["a", 0, 1])
    watch.add(labels, said, when=day(0))
    ones = tu.Labels.from_matrix(np.ones((5, 3), dtype=int), classes=[1, 2]).select(items=range(4))
    with pytest.raises(TrueupError, match="got 2"):
        watch.add(ones, [1] * 4, when=date(2026, 1, 2))
    watch.add(tu.Labels.from_matrix(np.ones((5, 3), dtype=int), classes=[1, 0]), [1] * 5, when=date(2026, 1, 2))
    watch.add(*draw(rng), when=datetime(2026, 1, 3, 8, tzinfo=UTC))
    assert watch.times == ("2026-01-01", "2026-01-02", "2026-01-03T08:00:00+00:00")


def test_the_same_votes_are_no_other_batch(rng):
    watch = tu.Monitor()
    labels, said = draw(rng)
    watch.add(labels, said, when="2026-01-01")
    with pytest.raises(TrueupError, match="got for 2026-01-02 what was added for 2026-01-01, vote for vote"):
        watch.add(labels, said, when="2026-01-02")
    # Nor are they where other items of theirs were vetted, or none.
    vetted = labels.without_gold().with_gold({labels.items[0].item(): 1}, drawn="random")
    for again in (vetted, labels.without_gold()):
        with pytest.raises(TrueupError, match="vote for vote"):
            watch.add(again, said, when="2026-01-02")
    watch.add(labels, 1 - np.asarray(said), when="2026-01-03")  # another system on the same items
    small = tu.Monitor()
    for day_of_month in range(1, 4):  # single items are alike by chance
        small.add(tu.Labels.from_matrix([[0, 1, 1]]), [1], when=f"2026-01-0{day_of_month}")
    assert len(small.times) == 3


def test_a_monitor_in_a_storage_keeps_its_settings(rng, tmp_path):
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/watch.db"
    here, there = tu.Monitor(storage=url, baseline=4), tu.Monitor(storage=url)
    assert there.settings["baseline"] == 4
    filled(there, rng, 2, names=NAMES)
    assert here.times == ()
    with pytest.raises(TrueupError, match="once"):
        here.add(*draw(rng, names=NAMES), when=day(1))
    with pytest.raises(TrueupError, match="of the monitor 'monitor' in sqlite"):
        tu.Monitor(storage=url, baseline=5)
    tu.Monitor.from_json(there.to_json(), storage=url, name="copy")
    with pytest.raises(TrueupError, match="into a new monitor"):
        tu.Monitor.from_json(there.to_json(), storage=url, name="copy")


def add_days(url, days, seed):
    rng = np.random.default_rng(seed)
    watch = tu.Monitor(storage=url)
    for k in days:
        labels, said = draw(rng, n_items=20, n_gold=0)
        with suppress(TrueupError):  # the other one was quicker
            watch.add(labels, said, when=day(k))


def test_processes_that_add_at_once_lose_and_double_nothing(tmp_path):
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/watch.db"
    tu.Monitor(storage=url)
    other = multiprocessing.get_context("spawn").Process(target=add_days, args=(url, range(4), 0))
    other.start()
    while len(tu.Monitor(storage=url).times) < 1 and other.is_alive():
        time.sleep(0.01)
    add_days(url, range(4), 1)
    other.join()
    assert other.exitcode == 0
    times = tu.Monitor(storage=url).times
    assert list(times) == sorted(set(times))
    assert times[-1] == day(3)


def test_the_page_shows_alarms_course_and_judges(fallen, tmp_path):
    for k, when in enumerate(fallen.times):
        if k != 3:  # one batch without an estimate
            fallen._estimates[when] = {"mean": 0.8 - 0.01 * k, "low": 0.7, "high": 0.9, "basis": "gold"}
    from trueup.report import render_html, render_json, render_markdown

    data = fallen.report()
    page = render_html(data)
    assert fallen.alarm.sentence.replace("'", "&#39;") in page
    assert page.count("<figure>") == 1 + 3
    assert "<script" not in page
    assert f'aria-label="{data["metric"]} of 24 batches' in page
    assert "0.730" in render_markdown(data)
    told = json.loads(render_json(data))
    assert told["course"][3]["mean"] is None
    assert told["alarms"][0]["kind"] == "the system"


def test_names_on_the_page_are_escaped(rng):
    watch = filled(tu.Monitor(), rng, 2, names=["<b>", "&", '"'])
    from trueup.report import render_html, render_markdown

    page = render_html(watch.report())
    assert "&lt;b&gt;" in page
    assert "<td><b>" not in page
    assert "&lt;b&gt;" in render_markdown(watch.report())
    assert "0 batches" in render_markdown(tu.Monitor().report())


def test_a_monitor_of_version_0_2_opens_and_its_estimates_are_replaced(rng):
    """It estimated each batch by itself, and its log has a row for each."""
    stored = json.loads(filled(tu.Monitor(baseline=10), rng, 2, n_items=40, names=NAMES).to_json())
    old = {"mean": 0.5, "low": 0.4, "high": 0.6, "basis": "votes alone"}
    key = f"estimate {day(0)}"
    stored["log"].append({"kind": "estimate", "item": day(0), "key": key, "text": json.dumps(old)})
    watch = tu.Monitor.from_json(json.dumps(stored))
    assert watch.settings["baseline"] == 10
    assert "1 estimate by version 0.2" in watch.notes[-1]
    watch.estimate()
    means = [row["mean"] for row in watch.course_rows()]
    assert all(0.6 < mean < 1 for mean in means)
    assert [row["mean"] for row in tu.Monitor.from_json(watch.to_json()).course_rows()] == means
