import io
import json

import pytest

from trueup.adapters import content
from trueup.adapters.content import JsonStream, glimpse
from trueup.exceptions import InvalidFile

VALUE = {
    "eval": {"model": "m", "n": -1.5e10},
    "samples": [{"id": k, "text": 'é\n"]' * 7} for k in range(50)],
    "z": None,
}


def stream_of(text: str) -> JsonStream:
    return JsonStream(io.StringIO(text), "it")


@pytest.mark.parametrize("block", [1, 2, 7, 64, 10_000])
def test_pieces_of_any_size_give_what_json_gives(monkeypatch, block):
    monkeypatch.setattr(content, "_BLOCK", block)
    stream = stream_of(json.dumps(VALUE, indent=1))
    read = {key: list(stream.elements()) if key == "samples" else stream.value() for key in stream.members()}
    assert read == VALUE
    assert stream.next_character() == ""


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('[{"a": 1}, {"a": ', "at its end"),
        ('[{"a": 1} {"a": 2}]', "no ','"),
        ("[1, 2", "its end"),
        ("[1, tru]", "line 1"),
        ("[" * 100_000, "deeply"),
        ("[" + "1" * 5000 + "]", "not whole JSON"),
        ("7", "no list"),
    ],
)
def test_damage_is_one_sentence(text, word):
    with pytest.raises(InvalidFile, match="it is n") as caught:
        list(stream_of(text).elements())
    assert word in str(caught.value)


def test_damage_is_told_with_its_line_before_the_whole_text_is_read(monkeypatch):
    text = io.StringIO("[1, x " + "2, " * 2_000_000)
    with pytest.raises(InvalidFile):
        list(JsonStream(text, "it").elements())
    assert text.tell() <= 2 * content._BLOCK
    monkeypatch.setattr(content, "_BLOCK", 5)
    with pytest.raises(InvalidFile, match="line 3"):
        list(stream_of("[1,\n2,\n x]").elements())


@pytest.mark.parametrize("cut", [2, 20, 45, 60, 100])
def test_a_glimpse_holds_what_was_seen(cut):
    whole = [{"id": 1, "data": {"text": "hello"}, "annotations": [{"result": [1, 2]}], "rest": {"a": [{}]}}]
    value, rest = glimpse(json.dumps(whole)[:cut])
    assert isinstance(value, list)
    assert rest == ""
    assert not value or set(value[0]) <= set(whole[0])
    if cut >= 60:
        assert value[0]["data"] == {"text": "hello"}


def test_a_glimpse_tells_where_the_first_value_ends():
    assert glimpse('{"a": 1}\n{"a": 2}') == ({"a": 1}, '{"a": 2}')
    assert glimpse("[" * 100_000)[1] == ""
