"""A pool for the vetting app: tables and pictures of the candidates, and the tiles to search."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.cells import csv_text, safe_cell
from trueup._base.types import Booleans
from trueup._base.writing import write_text_safely
from trueup.detection.deck import Card, Deck
from trueup.detection.drawing import candidate_crop, find_photos, photo_address, shape_crop
from trueup.detection.pages import tile_figure
from trueup.detection.pool import NOTHING, REAL, Pool
from trueup.detection.tile_search import TilesToSearch
from trueup.report.crops import crop_figure


@dataclass(frozen=True)
class AppFiles:
    """What `trueup serve` takes: files in one folder.

    Attributes
    ----------
    votes, predictions, items, gold, images : Path
        Of the session about candidates.
    tiles : Path or None
        Of the session in which tiles are searched, if any is in the deck.
    """

    votes: Path
    predictions: Path
    items: Path
    gold: Path
    images: Path
    tiles: Path | None = None


def save_for_app(deck: Deck, folder: str | PathLike[str], *, images: str | PathLike[str] | None = None) -> AppFiles:
    """Write a pool for the vetting app: votes, predictions, what cards show, pictures, and empty places as gold.

    The app asks for the candidates that matter most. Its checks are the empty places: their truth is known. Where
    nobody is known to have looked at an image, it has none. The tiles of the deck are a session of their own
    (``trueup serve tiles.json``), whose answers `read_searched` takes out of its storage. Predictions are those of
    `Pool.predictions`, without duplicates: a warning says where precision in the app is not the detector's.

    Parameters
    ----------
    deck : Deck
        Of which the empty places and the tiles are taken.
    folder : path
        Is made where it is not there.
    images : path, optional
        A folder of the photographs, which is then the one to serve. Without it a drawing of each candidate is written.
    """
    pool, place = deck.pool, Path(folder)
    looked = _who_looked(pool)
    planted = [card for card in deck.cards if card.kind == "planted" and looked[:, card.image].any()]
    names = [*pool.items, *_names_like_candidates(pool, planted)]
    pictures = place / "pictures" if images is None else Path(images)
    pictures.mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng([deck.drawn["seed"], 28]).permutation(len(names))  # empty places are not the last
    rows = []
    files = {} if images is None else find_photos(images, pool.images, list(range(pool.images.n)))
    for k in order.tolist():
        card = planted[k - len(pool)] if k >= len(pool) else None
        image = int(pool.image[k]) if card is None else card.image
        box = pool.boxes[k] if card is None else card.box
        category = pool.categories[pool.category[k]] if card is None else card.category
        if files:
            file = files[image].relative_to(pictures.resolve()).as_posix()
            rows.append([names[k], file, json.dumps(box.tolist()), category])
        else:
            file = f"{k + 1}.svg"
            shapes = [{"role": "candidate", "box": box.tolist()}]
            crop = candidate_crop(pool, k) if card is None else shape_crop(pool, image, box, shapes)
            write_text_safely(pictures / file, _standing_alone(crop_figure(crop, width=480, label=names[k])))
            rows.append([names[k], file, "", category])
    made = AppFiles(
        place / "votes.csv",
        place / "predictions.csv",
        place / "items.csv",
        place / "gold.csv",
        pictures,
        _write_tiles(deck, place, files),
    )
    _write_table(made.items, ["item", "image", "outline", "class"], rows)
    votes = [
        [pool.items[k], pool.annotators[who], REAL if pool.votes[who, k] else NOTHING]
        for who, k in np.argwhere(pool.votes >= 0).tolist()
    ]
    # Who looked at an image drew nothing at its empty places, and no system reports them.
    empty = list(zip(names[len(pool) :], planted, strict=True))
    votes += [
        [name, pool.annotators[who], NOTHING]
        for name, card in empty
        for who in np.flatnonzero(looked[:, card.image]).tolist()
    ]
    _write_table(made.votes, ["item", "labeler", "label"], votes)
    predicted = [
        [system, item, said, score]
        for system, of in pool.predictions().items()
        for (item, said), score in zip(of.items(), pool.scores(system).tolist(), strict=True)
    ]
    predicted += [[system, name, NOTHING, 0.0] for system in pool.systems for name, _ in empty]
    _write_table(made.predictions, ["system", "item", "prediction", "score"], predicted)
    _write_table(made.gold, ["item", "label"], [[name, NOTHING] for name in names[len(pool) :]])
    return made


def _write_tiles(deck: Deck, place: Path, files: dict[int, Path]) -> Path | None:
    """The tiles of a deck with a picture each; outlines lie over the photograph, which is in the picture."""
    cards = {number: card for number, card in deck.numbered.items() if card.is_tile}
    if not cards:
        return None
    pictures = place / "tiles"
    pictures.mkdir(exist_ok=True)
    for number, card in cards.items():
        photos = {card.image: photo_address(files[card.image])} if files else {}
        write_text_safely(pictures / f"{number}.svg", _standing_alone(tile_figure(deck.pool, card, photos)))
    path = place / "tiles.json"
    TilesToSearch.of(deck, {number: f"tiles/{number}.svg" for number in cards}).write(path)
    return path


def _who_looked(pool: Pool) -> Booleans:
    """Annotators by images, where that is known."""
    seen = None if pool.matching is None else pool.matching.objects.seen
    if seen is None or seen.shape[1] != pool.images.n:
        return np.zeros((len(pool.annotators), pool.images.n), dtype=bool)
    return seen


def _names_like_candidates(pool: Pool, planted: list[Card]) -> list[str]:
    """Names of empty places that do not tell them from candidates."""
    numbers = np.bincount(pool.image, minlength=pool.images.n)
    ids, names = pool.images.ids.tolist(), []
    for card in planted:
        numbers[card.image] += 1
        names.append(f"{ids[card.image]}/{numbers[card.image]}")
    return names


def _standing_alone(svg: str) -> str:
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def _write_table(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    write_text_safely(path, csv_text(header, [[safe_cell(cell) for cell in row] for row in rows]))
