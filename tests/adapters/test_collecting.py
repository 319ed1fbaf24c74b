import pytest

from trueup.adapters.collecting import Collector, is_address


@pytest.mark.parametrize(
    "name",
    [
        "ann@lab.org",
        " ann@lab.org ",
        "Ann Lee <ann@lab.org>",
        "ann@localhost",
        "Lee, Ann",
        "Ana María de la Cruz Gil",
        "Ann\u00a0Lee",
        "10.0.0.1:443",
        "::ffff:10.0.0.1",
        "[fe80::1]:80",
        "fe80::1%eth0",
    ],
)
def test_people_are_not_kept_however_they_are_written(name):
    assert Collector().person(name) == "annotator-1"
    assert Collector(keep_names=True).person(name) == name


@pytest.mark.parametrize("name", ["A1XF3", "expert_12", "12:30:45", 7, "0.3.285", "2024-01-01T00:00:00", "a:b"])
def test_ids_are_kept(name):
    assert Collector().person(name) == name


def test_the_version_of_a_model_is_no_mail():
    assert not is_address("claude-3-5-sonnet@20240620")
    assert not is_address("text with ann@lab.org in it")


def test_no_reader_can_tell_an_address_as_a_labeler_or_a_system():
    collector = Collector()
    collector.vote("q", 1, "ann@lab.org", "a")
    collector.abstain("q", 2, "ann@lab.org", "skipped answers")
    collector.predict("q", 1, "10.0.0.1", "a")
    export = collector.finish("desk", "it")
    assert export.votes["labeler"] == ["annotator-1", "annotator-1"]
    assert export.answers.predictions["system"] == ["annotator-2"]


def test_item_columns_hold_no_mails_in_any_form():
    collector = Collector()
    columns = {
        "a": "Ann <ann@lab.org>",
        "b": " ann@lab.org",
        "c": "10.0.0.1:80",
        "email_address": "x",
        "at": "12:30:45",
    }
    collector.describe(1, columns)
    collector.vote("q", 1, 1, "a")
    export = collector.finish("desk", "it")
    assert set(export.items) == {"item", "at"}
    assert "Left out: mails, addresses and personal item columns (4)." in map(str, export.notes)


@pytest.mark.parametrize("names", [["annotator-1", "ann@lab.org"], ["ann@lab.org", "annotator-1", "annotator-2"]])
def test_nobody_is_called_as_somebody_else_is_named(names):
    collector = Collector()
    called = [collector.person(name) for name in names]
    assert len(set(called)) == len(names)
    assert [collector.person(name) for name in names] == called
