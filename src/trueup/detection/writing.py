"""Files of a pool: for COCO's tools, cards as one HTML page, and tables, pictures and tiles for the vetting app."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.cells import csv_text, safe_cell
from trueup._base.types import Booleans, Floats
from trueup._base.writing import write_text_safely
from trueup.data.labels import Labels
from trueup.detection.deck import FORMAT, Card, Deck
from trueup.detection.drawing import (
    Photos,
    candidate_crop,
    find_photos,
    image_size,
    photo_address,
    shape_crop,
    thumbnail,
    tile_picture,
)
from trueup.detection.pool import NOTHING, REAL, Pool
from trueup.detection.tile_search import TilesToSearch
from trueup.exceptions import InvalidParameter
from trueup.report.crops import crop_figure

# ------------------ Candidate objects as annotations in COCO's format, with how sure each is and who drew it.


def write_coco(
    pool: Pool,
    path: str | PathLike[str],
    *,
    probabilities: Floats | None = None,
    labels: Labels | None = None,
    least: float = 0.5,
) -> int:
    """Write the candidates that are probably objects; how many these are.

    Parameters
    ----------
    path : path
        A JSON file of COCO's instances. Each annotation has "probability" (that it is an object), "drawn_by",
        "not_drawn_by" and "vetted". Its "area" is that of the pool, so of the mask where there is one.
    probabilities : array of shape (n_candidates,), optional
        P(object) of each; by default the share of annotators who drew it among those who looked.
    labels : Labels, optional
        ``pool.labels`` with gold: vetted candidates are what was said of them.
    least : float
        Candidates with less are left out.
    """
    chances = _shares(pool) if probabilities is None else np.array(probabilities, dtype=float)  # changed below
    if chances.shape != (len(pool),):
        raise InvalidParameter(f"probabilities must be one for each of {len(pool)} candidates, got {chances.shape}")
    gold = {} if labels is None else labels.gold
    position = {item: k for k, item in enumerate(pool.items)}
    for item, truth in gold.items():
        chances[position[str(item)]] = float(truth == REAL)
    ids = pool.images.ids.tolist()
    annotations = [
        _annotation(pool, k, ids[pool.image[k]], float(chances[k]), pool.items[k] in gold)
        for k in np.flatnonzero(chances >= least).tolist()
    ]
    content = {
        "images": [
            _image(name, size, file) for name, size, file in zip(ids, pool.images.sizes, pool.images.files, strict=True)
        ],
        "categories": [{"id": k + 1, "name": name} for k, name in enumerate(pool.categories)],
        "annotations": annotations,
    }
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return len(annotations)


def _annotation(pool: Pool, k: int, image: Any, probability: float, is_vetted: bool) -> dict[str, Any]:
    votes = pool.votes[:, k]
    row: dict[str, Any] = {
        "id": int(k) + 1,
        "image_id": image,
        "category_id": int(pool.category[k]) + 1,
        "bbox": pool.boxes[k].tolist(),
        "area": float(pool.areas[k]),
        "iscrowd": 0,
        "probability": probability,
        "vetted": is_vetted,
        "drawn_by": [name for name, vote in zip(pool.annotators, votes, strict=True) if vote == 1],
        "not_drawn_by": [name for name, vote in zip(pool.annotators, votes, strict=True) if vote == 0],
    }
    if pool.masks is not None:
        mask = pool.masks[k]
        row["segmentation"] = {"size": list(mask["size"]), "counts": mask["counts"].decode("ascii")}
    return row


def _image(name: Any, size: Floats, file: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": name, "file_name": file}
    if not np.isnan(size).any():
        row |= {"width": int(size[0]), "height": int(size[1])}
    return row


def _shares(pool: Pool) -> Floats:
    drawn, looked = (pool.votes == 1).sum(axis=0), (pool.votes >= 0).sum(axis=0)
    return np.asarray(drawn / np.maximum(looked, 1), dtype=float)


# ------------------ Cards as one HTML file that works without a server.

_CHOICES = (
    ("yes", "Yes", "y"),
    ("no", "No", "n"),
    ("class", "Another class", "c"),
    ("duplicate", "Drawn twice", "d"),
    ("outline", "Yes, but a bad outline", "b"),
    ("skip", "Cannot tell", "s"),
)
_INTRO = (
    "Only the outline is shown: not who drew it, nor how sure anybody is. Answers stay in this browser until you save "
    "them as a file."
)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("trueup.detection")
    return Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).get_template("cards.html.j2")


def render_cards(deck: Deck, *, images: str | PathLike[str] | None = None, title: str = "What is there?") -> str:
    """Cards as one HTML page; see `save_cards`."""
    shown = sorted({card.image for card in deck.cards})
    files = {} if images is None else find_photos(images, deck.pool.images, shown)
    photos = {k: f"#photo-{k}" for k in files}
    stored = [
        {"name": f"photo-{k}", "address": photo_address(path), "width": size[0], "height": size[1]}
        for k, path in files.items()
        for size in [image_size(deck.pool, k)]
    ]
    return str(
        _template().render(
            title=title,
            intro=_INTRO,
            photos=stored,
            cards=[_card(deck.pool, card, photos) for card in deck.cards],
            choices=[dict(zip(("answer", "words", "key"), choice, strict=True)) for choice in _CHOICES],
            deck=deck.drawn,
            format=FORMAT,
        )
    )


def save_cards(
    deck: Deck, path: str | PathLike[str], *, images: str | PathLike[str] | None = None, title: str = "What is there?"
) -> Path:
    """Write cards as one HTML file, which saves the answers as a file for `read_answers`.

    Each card has a crop with a margin, a thumbnail and the outline, and tells neither votes nor scores nor which places
    are empty. Tiles are asked for objects without an outline.

    Parameters
    ----------
    deck : Deck
        See `make_deck`.
    images : path, optional
        A folder of the photographs. Without it cards are drawn from the shapes alone, which is enough for a rehearsal.
    """
    write_text_safely(path, render_cards(deck, images=images, title=title))
    return Path(path)


def _card(pool: Pool, card: Card, photos: Photos) -> dict[str, Any]:
    if card.is_tile:
        return {"is_tile": True, "picture": tile_figure(pool, card, photos), "thumbnail": "", "category": ""}
    if card.candidate >= 0:
        crop = candidate_crop(pool, card.candidate, photos)
    else:
        crop = shape_crop(pool, card.image, card.box, [{"role": "candidate", "box": card.box.tolist()}], photos)
    return {
        "is_tile": False,
        "picture": crop_figure(crop, width=420, label="an outline in a part of an image"),
        "thumbnail": crop_figure(thumbnail(pool, card.image, card.box, photos), width=180, label="the whole image"),
        "category": "an object" if card.category == REAL else f"an object of the class {card.category}",
    }


def tile_figure(pool: Pool, card: Card, photos: Photos) -> str:
    """A tile to search, as SVG."""
    crop = tile_picture(pool, card.image, card.box, photos, leave_out=card.candidate)
    return crop_figure(crop, width=760, label="a tile of an image")


@dataclass(frozen=True)
class AppFiles:
    """What `trueup serve` takes: files in one folder."""

    votes: Path  # of the session about candidates
    predictions: Path
    items: Path
    gold: Path
    images: Path
    tiles: Path | None = None  # of the session in which tiles are searched, if any is in the deck


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
