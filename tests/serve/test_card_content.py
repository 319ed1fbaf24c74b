"""What experts see of an item."""

import json

import pytest

import trueup as tu
from trueup.exceptions import InvalidFile, InvalidParameter
from trueup.serve.card_service import LONGEST_SHOWN, CardMaker, Layout, digit_keys, messages, outline_points, plain


def labels_with(columns, classes=("a", "b")):
    n = len(next(iter(columns.values())))
    votes = {"item": list(range(n)) * 2, "labeler": ["x"] * n + ["y"] * n, "label": [classes[0]] * n + [classes[1]] * n}
    labels = tu.Labels.from_frame(votes, classes=list(classes))
    return labels.with_items({"item": list(range(n)), **columns})


def face_of(columns, layout=None, person="ann", at=0, **options):
    return CardMaker(labels_with(columns), layout, **options).face(at, person=person)


def test_long_text_is_cut_and_the_rest_kept():
    (passage,) = face_of({"text": ["x" * 1_000_000]}).passages
    assert (len(passage.text), len(passage.rest)) == (LONGEST_SHOWN, 1_000_000 - LONGEST_SHOWN)


def test_a_conversation_has_turns():
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    face = face_of({"messages": [json.dumps(turns)], "topic": ["greeting"]})
    assert face.kind == "conversation"
    assert [(p.heading, p.text) for p in face.passages] == [
        ("topic", "greeting"),
        ("user", "Hi"),
        ("assistant", "Hello"),
    ]


@pytest.mark.parametrize("value", ["no json", '{"a": 1}', "[1, 2]", None, 3])
def test_what_is_no_conversation_is_text(value):
    (passage,) = messages(value)
    assert passage.text == plain(value)


def test_two_answers_stand_in_random_order_which_is_the_same_when_seen_again():
    n = 60
    labels = labels_with({"prompt": ["?"] * n, "answer_a": ["A"] * n, "answer_b": ["B"] * n})
    maker = CardMaker(labels, seed=1)
    faces = [maker.face(at, person="ann") for at in range(n)]
    assert {face.order for face in faces} == {(0, 1), (1, 0)}
    assert [face.order for face in faces] == [maker.face(at, person="ann").order for at in range(n)]
    assert [face.order for face in faces] != [maker.face(at, person="bob").order for at in range(n)]
    for face in faces:
        shown = [p.text for p in face.passages[1:]]
        assert shown == [("A", "B")[code] for code in face.order]
        assert [choice.code for choice in face.choices] == list(face.order)
        assert [choice.name for choice in face.choices] == ["1", "2"]  # the place, never which answer it is


@pytest.mark.parametrize(
    ("names", "keys"),
    [
        (["0", "1", "2"], ["0", "1", "2"]),
        (["no", "yes"], ["1", "2"]),
        (["1", "2", "unsure", "3"], ["1", "2", "4", "3"]),
        (["0", "5", "10"], ["0", "5", ""]),
        (["10", "20"], ["1", "2"]),
        (["٣", "b"], ["1", "2"]),
        ([f"class {k}" for k in range(11)], [*"123456789", "", ""]),
    ],
)
def test_a_digit_is_the_key_of_the_class_of_that_name(names, keys):
    assert digit_keys(names) == keys


def test_guidelines_stand_under_the_classes_that_they_name():
    text = "For all.\n\n## a\nFirst.\n### Examples\nx\n## `Looks wrong`\nSecond.\n"
    passages = face_of({"text": ["x"]}, class_names={"b": "Looks wrong"}, guidelines=text).guidelines
    found = [(one.heading, one.text) for one in passages]
    assert found == [("", "For all."), ("a", "First.\nExamples\n\nx"), ("Looks wrong", "Second.")]
    with pytest.raises(InvalidFile):
        face_of({"text": ["x"]}, guidelines="# In general\nLook twice.")


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout("text", ("tetx",)), "did you mean 'text'"),
        (Layout("image"), "column of the paths"),
        (Layout("records", left=("text",)), "as many columns"),
        (Layout("answers"), "two classes"),
        (Layout("answers", answers=(("a", "text"), ("z", "text"))), "two classes"),
        (Layout("conversation"), "messages in show"),
        (Layout("picture"), "must be one of"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(layout, words):
    with pytest.raises(InvalidParameter, match=words):
        face_of({"text": ["x"]}, layout)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\x00b\x1b[1m", "a␀b␛[1m"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\ud800", "\ufffd"),
        (float("nan"), "–"),
        ((1, "a"), '[1, "a"]'),
    ],
)
def test_every_character_can_be_seen(value, text):
    assert plain(value) == text


def test_a_cell_that_cannot_be_read_is_shown_as_it_is():
    (passage,) = messages("[" * 100_000)
    assert passage.text.startswith("[[[")
    assert outline_points("[" + "9" * 400 + ", 2, 3, 4]") == outline_points("[" * 100_000) == ""
