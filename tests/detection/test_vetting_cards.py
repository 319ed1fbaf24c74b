"""Cards for a vetter: what they show, what they hide, and what the answers say."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from trueup import detection
from trueup.detection import make_deck, match, read_answers, save_cards, save_for_app, take_answers
from trueup.detection.writing import render_cards, tile_figure
from trueup.exceptions import TrueupError
from trueup.report.figures import crop_figure


def test_cards_are_random_candidates_empty_places_and_tiles(pool):
    deck = make_deck(pool, n_candidates=20, n_tiles=5, n_planted=4, n_hidden=3, seed=3)
    kinds = [card.kind for card in deck.cards]
    assert [kinds.count(kind) for kind in ("candidate", "planted", "tile", "hidden")] == [20, 4, 5, 3]
    assert set(kinds[-8:]) == {"tile", "hidden"}
    assert kinds[-8:] not in (["tile"] * 5 + ["hidden"] * 3, ["hidden"] * 3 + ["tile"] * 5)
    assert kinds[:24] != sorted(kinds[:24])  # empty places are among the candidates
    images = [card.image for card in deck.cards if card.kind == "tile"]
    assert images != sorted(images)  # who stops early has searched a random part
    for card in deck.cards:
        if card.kind == "planted":
            others = pool.boxes[pool.image == card.image]
            assert not detection.shapes.box_overlaps(card.box[None], others).any()
    again = make_deck(pool, n_candidates=20, n_tiles=5, n_planted=4, n_hidden=3, seed=3)
    assert [card.item for card in again.cards] == [card.item for card in deck.cards]
    other = make_deck(pool, n_candidates=20, n_tiles=5, n_planted=4, n_hidden=3, seed=4)
    assert [card.item for card in other.cards] != [card.item for card in deck.cards]


def test_hidden_objects_are_certain_and_in_tiles_that_were_not_drawn(pool):
    deck = make_deck(pool, n_tiles=10, n_hidden=6, seed=2)
    hidden = [card for card in deck.cards if card.kind == "hidden"]
    assert len(hidden) == 6
    assert not {card.item for card in hidden} & {card.item for card in deck.cards if card.kind == "tile"}
    for card in hidden:
        assert (pool.votes[:, card.candidate] == 1).all()
        x, y, width, height = pool.boxes[card.candidate]
        centre = np.array([x + width / 2, y + height / 2])
        assert ((card.box[:2] <= centre) & (centre < card.box[:2] + card.box[2:])).all()
        assert (pool.image == card.image)[card.candidate]
        full, without = (tile_figure(pool, one, {}) for one in (replace(card, candidate=-1), card))
        assert full.count("<path") == without.count("<path") + 1
    assert not [card for card in make_deck(pool, n_tiles=40, n_hidden=6).cards if card.kind == "hidden"]


def test_hidden_objects_measure_the_vetter_and_count_nothing(pool):
    deck = make_deck(pool, n_candidates=1, n_planted=0, n_tiles=5, n_hidden=5)
    cards = {number: card for number, card in deck.numbered.items() if card.is_tile}
    middle = {number: (card.box[:2] + card.box[2:] / 2).tolist() for number, card in cards.items()}
    hidden = [number for number, card in cards.items() if card.kind == "hidden"]
    answers = {number: [] for number in cards}
    boxes = pool.boxes[[cards[number].candidate for number in hidden]]
    for number, (x, y, width, height) in zip(hidden[:3], boxes[:3].tolist(), strict=True):
        answers[number] = [[x + width / 3, y + height / 3]]
    vetted = take_answers(deck, answers)
    assert (vetted.n_hidden, vetted.n_noticed, vetted.missed.n_seen, vetted.missed.n_searched) == (5, 3, 0, 5)
    assert "did not notice 2 of 5 objects whose outline was hidden" in vetted.warnings[0]
    counts = take_answers(deck, dict.fromkeys(cards, 2))
    assert (counts.n_noticed, counts.missed.n_seen, counts.warnings) == (5, 10, ())
    first, *_, last = cards
    assert take_answers(deck, {first: 0, last: [middle[last]]}).n_left_out == 8
    assert "8 tiles were left out" in take_answers(deck, {first: 0, last: 1}).warnings[-1]
    assert take_answers(deck, {first: 0}).n_left_out == 0


def test_answers_are_gold_and_count_what_was_missed(pool):
    deck = make_deck(pool, n_candidates=30, n_tiles=4, n_planted=2, n_hidden=0)
    answers = {}
    for number, card in enumerate(deck.cards, start=1):
        if card.is_tile:
            x, y, width, height = card.box
            answers[str(number)] = [[x + width / 2, y + height / 2], [x - 5, y]]  # one beside the tile
        else:
            answers[str(number)] = "yes" if card.kind == "planted" or number % 2 else "no"
    vetted = take_answers(deck, answers)
    assert len(vetted.labels.drawn_gold) == 30
    assert (vetted.n_planted, vetted.n_accepted) == (2, 2)
    assert "2 of 2 empty places" in vetted.warnings[0]
    assert vetted.missed is not None
    assert (vetted.missed.n_seen, vetted.missed.n_searched, vetted.missed.n_tiles) == (4, 4, 40)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [("yes", "object"), ("outline", "object"), ("no", "nothing"), ("class", "nothing"), ("duplicate", "nothing")],
)
def test_what_answers_mean(pool, answer, truth):
    deck = make_deck(pool, n_candidates=5, n_planted=0, n_tiles=0)
    vetted = take_answers(deck, {"1": answer, "2": "skip"})
    assert vetted.labels.gold == {deck.cards[0].item: truth}
    assert vetted.missed is None
    assert "1 cards were skipped" in vetted.warnings[-1]


@pytest.mark.parametrize(
    "answers",
    [{"1": "perhaps"}, {"1": []}]
    + [{"6": answer} for answer in ("yes", [["a", 1]], [[float("nan"), 1]], -1, True, 1.5)],
)
def test_bad_answers_get_one_sentence(pool, answers):
    deck = make_deck(pool, n_candidates=5, n_planted=0, n_tiles=1)
    with pytest.raises(TrueupError, match="1 unknown answers"):
        take_answers(deck, answers)
    with pytest.raises(TrueupError, match="1 answers about cards that there are not"):
        take_answers(deck, {"99": "yes"})


def test_a_page_is_read_back_with_the_same_pool_only(pool, tmp_path):
    deck = make_deck(pool, n_candidates=8, n_tiles=2, seed=5)
    save_cards(deck, tmp_path / "cards.html")
    page = (tmp_path / "cards.html").read_text()
    drawn = json.loads(re.search(r'id="deck">(.*?)</script>', page)[1])
    assert drawn == deck.drawn
    answers = {"format": 2, "deck": drawn, "answers": {"1": "yes", "2": "no"}}
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    assert len(read_answers(tmp_path / "answers.json", pool).labels.gold) == 2
    other = match(None, pool.matching.objects)
    with pytest.raises(TrueupError, match="another pool"):
        read_answers(tmp_path / "answers.json", other)
    (tmp_path / "answers.json").write_text(json.dumps({**answers, "deck": {"pool": drawn["pool"]}}))
    with pytest.raises(TrueupError, match="must say how the cards were drawn"):
        read_answers(tmp_path / "answers.json", pool)
    (tmp_path / "answers.json").write_text("[]")
    with pytest.raises(TrueupError, match="answers that a page of cards has saved"):
        read_answers(tmp_path / "answers.json", pool)


def test_the_page_hides_who_drew_what(pool):
    deck = make_deck(pool, n_candidates=20, n_tiles=3, n_planted=3)
    page = render_cards(deck)
    assert page.count('<section class="card') == len(deck)
    for word in (*pool.annotators, *pool.systems, "planted", *(card.item for card in deck.cards if card.item)):
        assert f">{word}<" not in page
        assert f'"{word}"' not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert "<title>&lt;b&gt;</title>" in render_cards(deck, title="<b>")


def test_pictures_hold_no_code():
    crop = {"view": [0, 0, 9, 9], "size": [9, 9], "shapes": [], "photo": 'x" onload="alert(1)'}
    assert "onload" not in crop_figure(crop)
    assert "<script" not in crop_figure(crop, label='"><script>')


def test_files_for_the_vetting_app(pool, photos):
    from trueup.serve.card_service import CardMaker

    deck = make_deck(pool, n_candidates=20, n_planted=3, n_tiles=0)
    files = save_for_app(deck, photos / "app")
    import trueup as tu

    labels = tu.read_labels(files.votes)
    items = tu.read_items(files.items)
    planted = [line.split(",")[0] for line in files.gold.read_text().splitlines()[1:]]
    assert len(items["item"]) == len(pool) + 3
    assert not set(planted) & set(pool.items)
    assert all((files.images / name).read_text().startswith("<svg xmlns=") for name in items["image"])
    face = CardMaker(labels.with_items(items, unknown="ignore")).face(0, person="ann")
    assert (face.kind, face.has_image) == ("image", True)
    with_photos = tu.read_items(save_for_app(deck, photos / "app", images=photos).items)
    assert len(json.loads(with_photos["outline"][0])) == 4
    assert set(with_photos["image"]) <= {f"{name}.png" for name in pool.images.ids.tolist()}
