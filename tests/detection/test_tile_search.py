"""Tiles that are searched in the app: the order, the chances, which answers count, and the way back."""

import json

import pytest

from trueup.active import NONE_OF_THESE
from trueup.detection import (
    TileSearch,
    TilesToSearch,
    evaluate,
    make_deck,
    match,
    missed_objects,
    read_searched,
    save_for_app,
)
from trueup.exceptions import TrueupError


@pytest.fixture(scope="module")
def deck(pool):
    return make_deck(pool, n_candidates=5, n_planted=0, n_tiles=12, n_hidden=3, seed=4)


@pytest.fixture
def tiles(deck, tmp_path):
    return TilesToSearch.read(save_for_app(deck, tmp_path / "app").tiles)


def ordinary(tiles):
    return [number for number in tiles.pictures if number not in tiles.hidden]


def test_cards_come_in_the_drawn_order_with_their_chances(tiles):
    search = TileSearch(tiles)
    batch = search.ask(15)
    assert list(batch) == list(tiles.pictures)
    chances = {one.item: one.propensity for one in batch.details}
    assert {chances[number] for number in ordinary(tiles)} == {12 / 40}
    assert {chances[number] for number in tiles.hidden} == {None}
    assert search.finished is None
    assert len(search.ask(1)) == 0


def test_counts_are_those_of_tiles_and_not_of_hidden_outlines(tiles):
    search = TileSearch(tiles)
    assert search.missed is None
    search.tell({number: 1 if number in tiles.hidden else k % 3 for k, number in enumerate(search.ask(15))})
    counts = [k % 3 for k, number in enumerate(tiles.pictures) if number not in tiles.hidden]
    assert search.missed.n_seen == sum(counts)
    assert (search.missed.n_searched, search.missed.n_tiles) == (12, 40)
    assert search.estimate.interval(0.9) == missed_objects(counts, 40, random_state=0).total.interval(0.9)
    assert search.finished == "All 15 tiles are searched."
    assert search.warnings == ()


def test_overlooked_outlines_and_too_many_objects_are_told(tiles):
    search = TileSearch(tiles)
    numbers = list(search.ask(15))
    search.tell({number: NONE_OF_THESE if number == ordinary(tiles)[0] else 0 for number in numbers})
    assert "did not notice 3 of 3 objects" in search.warnings[0]
    assert "at most 30 objects without an outline, got 1 with more" in search.warnings[1]
    assert search.missed.n_searched == 11


def test_answers_come_back_out_of_the_storage(pool, deck, tiles, tmp_path):
    pytest.importorskip("sqlalchemy", reason="needs trueup[storage]")
    url = f"sqlite:///{tmp_path}/tiles.db"
    search = TileSearch(tiles, storage=url, name="q3")
    with pytest.raises(TrueupError, match="got no answer that counts"):
        read_searched(url, pool)
    search.tell(dict.fromkeys(search.ask(15), 1), who="ann")
    joined = TileSearch(tiles, storage=url, name="q3")
    assert joined.missed.n_seen == 12
    vetted = read_searched(url, pool)
    assert (vetted.missed.n_seen, vetted.missed.n_searched, vetted.missed.n_tiles) == (12, 12, 40)
    assert (vetted.n_hidden, vetted.n_noticed, vetted.n_left_out) == (3, 3, 0)
    assert vetted.missed.total.mean == search.estimate.mean
    quick = {"noise": "majority", "metrics": ["recall", "pool_recall"], "n_draws": 200}
    answer = evaluate(pool, labels=vetted.labels, missed=vetted.missed, **quick)
    assert answer["recall"].mean < answer["pool_recall"].mean - 0.05
    other = match(None, pool.matching.objects)
    with pytest.raises(TrueupError, match="another pool"):
        read_searched(url, other)
    TileSearch(tiles, storage=url, name="again")
    with pytest.raises(TrueupError, match=r"must hold one session about tiles, got .*again"):
        read_searched(url, pool)
    assert read_searched(url, pool, name="q3").missed.n_seen == 12
    with pytest.raises(TrueupError, match="got none"):
        read_searched(url, pool, name="q4")
    search.tell({ordinary(tiles)[0]: NONE_OF_THESE}, who="ann", correct=True)
    with pytest.raises(TrueupError, match="got 1 with more"):
        read_searched(url, pool, name="q3")


def test_pictures_hold_outlines_and_the_photograph(pool, deck, photos):
    files = save_for_app(deck, photos / "app", images=photos)
    tiles = TilesToSearch.read(files.tiles)
    for number, name in tiles.pictures.items():
        picture = (files.tiles.parent / name).read_text()
        card = deck.numbered[number]
        assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        assert "data:image/png;base64," in picture
        assert picture.count("<path") >= 1  # the frame
        assert "hidden" not in picture
        assert card.is_tile
    assert save_for_app(make_deck(pool, n_tiles=0), photos / "none").tiles is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 7}, "must be the tiles of a pool"),
        ({"hidden": ["99"]}, "got damaged ones"),
        ({"pictures": {}}, "got damaged ones"),
        ({"drawn": {}}, "got damaged ones"),
        ({"n_tiles": 2}, "got damaged ones"),
    ],
)
def test_damaged_files_get_one_sentence(deck, tmp_path, change, sentence):
    path = save_for_app(deck, tmp_path / "app").tiles
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(TrueupError, match=sentence):
        TilesToSearch.read(path)
