"""Files of a pool: for COCO's tools, cards as one HTML page, and tables, pictures and tiles for the vetting app."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from trueup._base.cells import csv_text, safe_cell
from trueup._base.types import Floats
from trueup._base.writing import write_text_safely
from trueup.data.labels import Labels
from trueup.detection.deck import FORMAT, Card, Deck, candidate_card
from trueup.detection.pool import NOTHING, REAL, Pool, image_size
from trueup.detection.shapes import Images, Mask, bitmap
from trueup.detection.tile_search import TilesToSearch
from trueup.exceptions import InvalidParameter
from trueup.report.figures import crop_figure


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
    labels : Labels, optional. ``pool.labels`` with gold: vetted candidates are what was said of them.
    least : float. Candidates with less are left out.
    """
    looked = np.maximum((pool.votes >= 0).sum(axis=0), 1)
    chances = (pool.votes == 1).sum(axis=0) / looked if probabilities is None else np.array(probabilities, dtype=float)
    if chances.shape != (len(pool),):
        raise InvalidParameter(f"probabilities must be one for each of {len(pool)} candidates, got {chances.shape}")
    gold = {} if labels is None else labels.gold
    position = {item: k for k, item in enumerate(pool.items)}
    for item, truth in gold.items():
        chances[position[str(item)]] = float(truth == REAL)
    images: list[dict[str, Any]] = []
    ids = pool.images.ids.tolist()
    for name, size, file in zip(ids, pool.images.sizes, pool.images.files, strict=True):
        images.append({"id": name, "file_name": file})
        if not np.isnan(size).any():
            images[-1] |= {"width": int(size[0]), "height": int(size[1])}
    annotations: list[dict[str, Any]] = []
    for k in np.flatnonzero(chances >= least).tolist():
        row: dict[str, Any] = {
            "id": k + 1,
            "image_id": ids[pool.image[k]],
            "category_id": int(pool.category[k]) + 1,
            "bbox": pool.boxes[k].tolist(),
            "area": float(pool.areas[k]),
            "iscrowd": 0,
            "probability": float(chances[k]),
            "vetted": pool.items[k] in gold,
        }
        for field, code in (("drawn_by", 1), ("not_drawn_by", 0)):
            row[field] = [pool.annotators[j] for j in np.flatnonzero(pool.votes[:, k] == code)]
        if pool.masks is not None:
            mask = pool.masks[k]
            row["segmentation"] = {"size": list(mask["size"]), "counts": mask["counts"].decode("ascii")}
        annotations.append(row)
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(pool.categories)]
    content = {"images": images, "categories": categories, "annotations": annotations}
    Path(path).write_text(json.dumps(content), encoding="utf-8")
    return len(annotations)


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

    environment = Environment(
        loader=PackageLoader("trueup.detection"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("cards.html.j2")


def render_cards(deck: Deck, *, images: str | PathLike[str] | None = None, title: str = "What is there?") -> str:
    """Cards as one HTML page; see `save_cards`."""
    shown = sorted({card.image for card in deck.cards})
    files = {} if images is None else find_photos(images, deck.pool.images, shown)
    photos = {k: f"#photo-{k}" for k in files}
    sizes = {k: image_size(deck.pool, k) for k in files}
    stored = [
        {"name": f"photo-{k}", "address": photo_address(path), "width": sizes[k][0], "height": sizes[k][1]}
        for k, path in files.items()
    ]
    cards = []
    for card in deck.cards:
        row = {"is_tile": card.is_tile, "picture": "", "thumbnail": "", "category": ""}
        if card.is_tile:
            row["picture"] = tile_figure(deck.pool, card, photos)
        else:
            part, whole = _crop_of(deck.pool, card, photos), thumbnail(deck.pool, card.image, card.box, photos)
            row["picture"] = crop_figure(part, width=420, label="an outline in a part of an image")
            row["thumbnail"] = crop_figure(whole, width=180, label="the whole image")
            row["category"] = "an object" if card.category == REAL else f"an object of the class {card.category}"
        cards.append(row)
    choices = [dict(zip(("answer", "words", "key"), choice, strict=True)) for choice in _CHOICES]
    page = {"title": title, "intro": _INTRO, "photos": stored, "cards": cards, "choices": choices}
    return str(_template().render(**page, deck=deck.drawn, format=FORMAT))


def save_cards(
    deck: Deck, path: str | PathLike[str], *, images: str | PathLike[str] | None = None, title: str = "What is there?"
) -> Path:
    """Write cards as one HTML file, which saves the answers as a file for `read_answers`.

    Each card has a crop with a margin, a thumbnail and the outline, and tells neither votes nor scores nor which places
    are empty. Tiles are asked for objects without an outline.

    Parameters
    ----------
    deck : Deck. See `make_deck`.
    images : path, optional
        A folder of the photographs. Without it cards are drawn from the shapes alone, which is enough for a rehearsal.
    """
    write_text_safely(path, render_cards(deck, images=images, title=title))
    return Path(path)


def _crop_of(pool: Pool, card: Card, photos: Photos | None = None) -> dict[str, Any]:
    """The candidate or the empty place of a card with a margin around it."""
    if card.candidate >= 0:
        return candidate_crop(pool, card.candidate, photos)
    return shape_crop(pool, card.image, card.box, [{"role": "candidate", "box": card.box.tolist()}], photos)


def tile_figure(pool: Pool, card: Card, photos: Photos) -> str:
    """A tile to search with the outlines in it but for a hidden one, and some of what is around it, as SVG."""
    size, (x, y, w, h) = image_size(pool, card.image), (float(value) for value in card.box)
    margin = 0.08 * max(w, h)
    view = _clipped(x - margin, y - margin, w + 2 * margin, h + 2 * margin, size)
    inside = [k for k in _inside(pool, card.image, view) if k != card.candidate]
    shapes = [{"role": "candidate", **_outline(pool, k)} for k in inside]
    crop = _part(pool, card.image, view, [*shapes, {"role": "tile", "box": [x, y, w, h]}], photos)
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
    deck : Deck. Of which the empty places and the tiles are taken.
    folder : path. Is made where it is not there.
    images : path, optional
        A folder of the photographs, which is then the one to serve. Without it a drawing of each candidate is written.
    """
    pool, place = deck.pool, Path(folder)
    looked = None if pool.matching is None else pool.matching.objects.seen  # annotators by images, where that is known
    if looked is None or looked.shape[1] != pool.images.n:
        looked = np.zeros((len(pool.annotators), pool.images.n), dtype=bool)
    planted = [card for card in deck.cards if card.kind == "planted" and looked[:, card.image].any()]
    names, n_of_image, ids = (
        list(pool.items),
        np.bincount(pool.image, minlength=pool.images.n),
        pool.images.ids.tolist(),
    )
    for card in planted:  # with names like those of candidates
        n_of_image[card.image] += 1
        names.append(f"{ids[card.image]}/{n_of_image[card.image]}")
    pictures = place / "pictures" if images is None else Path(images)
    pictures.mkdir(parents=True, exist_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    order = np.random.default_rng([deck.drawn["seed"], 28]).permutation(len(names))  # empty places are not the last
    rows = []
    files = {} if images is None else find_photos(images, pool.images, list(range(pool.images.n)))
    for k in order.tolist():
        card = planted[k - len(pool)] if k >= len(pool) else candidate_card(pool, k)
        if files:
            file = files[card.image].relative_to(pictures.resolve()).as_posix()
            rows.append([names[k], file, json.dumps(card.box.tolist()), card.category])
        else:
            file, crop = f"{k + 1}.svg", _crop_of(pool, card)
            write_text_safely(pictures / file, _standing_alone(crop_figure(crop, width=480, label=names[k])))
            rows.append([names[k], file, "", card.category])
    tables = {name: place / f"{name}.csv" for name in ("votes", "predictions", "items", "gold")}
    made = AppFiles(**tables, images=pictures, tiles=_write_tiles(deck, place, files))
    _write_table(made.items, ["item", "image", "outline", "class"], rows)
    votes = [
        [pool.items[k], pool.annotators[j], REAL if pool.votes[j, k] else NOTHING]
        for j, k in np.argwhere(pool.votes >= 0).tolist()
    ]
    # Annotators who looked at an image drew nothing at its empty places, and no system reports them.
    empty = names[len(pool) :]
    for name, card in zip(empty, planted, strict=True):
        votes += [[name, pool.annotators[j], NOTHING] for j in np.flatnonzero(looked[:, card.image]).tolist()]
    _write_table(made.votes, ["item", "labeler", "label"], votes)
    predicted = [
        [system, item, said, score]
        for system, of in pool.predictions().items()
        for (item, said), score in zip(of.items(), pool.scores(system).tolist(), strict=True)
    ]
    predicted += [[system, name, NOTHING, 0.0] for system in pool.systems for name in empty]
    _write_table(made.predictions, ["system", "item", "prediction", "score"], predicted)
    _write_table(made.gold, ["item", "label"], [[name, NOTHING] for name in empty])
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


def _standing_alone(svg: str) -> str:
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


def _write_table(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    write_text_safely(path, csv_text(header, [[safe_cell(cell) for cell in row] for row in rows]))


_MARGIN = 0.75  # of the larger side of a shape, on each side
_LEAST_SIDE = 24.0  # pixels of an image that a crop shows at least
_MOST_CELLS = 96  # of a side of a mask, from which on it is drawn coarser
_LARGEST_PHOTO = 20 << 20
_PHOTO_TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp", ".gif": "gif", ".bmp": "bmp"}
Photos = Mapping[int, str]  # for some images, the address of the photograph


def candidate_crop(pool: Pool, candidate: int, photos: Photos | None = None) -> dict[str, Any]:
    """A candidate with a margin around it, outline only; others nearby are drawn faintly where there is no photo."""
    outline = {"role": "candidate", **_outline(pool, candidate)}
    return shape_crop(pool, int(pool.image[candidate]), pool.boxes[candidate], [outline], photos, leave_out=candidate)


def shape_crop(
    pool: Pool, image: int, box: Floats, shapes: list[dict[str, Any]], photos: Photos | None = None, leave_out: int = -1
) -> dict[str, Any]:
    """A part of an image with a margin around a box, and these shapes in it."""
    view = _view(box, image_size(pool, image))
    nearby = [] if (photos or {}).get(image) else [k for k in _inside(pool, image, view) if k != leave_out]
    return _part(pool, image, view, [*({"role": "other", **_outline(pool, k)} for k in nearby), *shapes], photos)


def _part(
    pool: Pool, image: int, view: list[float], shapes: list[dict[str, Any]], photos: Photos | None
) -> dict[str, Any]:
    """A part of an image as `crop_figure` takes it."""
    size, photo = list(image_size(pool, image)), (photos or {}).get(image)
    return {"view": view, "size": size, "shapes": shapes, "photo": photo}


def thumbnail(pool: Pool, image: int, box: Floats, photos: Photos | None = None) -> dict[str, Any]:
    """A whole image with the place of a crop in it."""
    size = image_size(pool, image)
    return _part(pool, image, [0.0, 0.0, *size], [{"role": "tile", "box": _view(box, size)}], photos)


def _outline(pool: Pool, candidate: int) -> dict[str, Any]:
    if pool.masks is None:
        return {"box": pool.boxes[candidate].tolist()}
    return {"edges": mask_edges(pool.masks[candidate], pool.boxes[candidate])}


def mask_edges(mask: Mask, box: Floats) -> list[list[float]]:
    """The outline of a mask as lines between pixels: x1, y1, x2, y2."""
    pixels = np.asarray(bitmap(mask), dtype=bool)
    height, width = pixels.shape
    x0, y0 = max(int(box[0]) - 1, 0), max(int(box[1]) - 1, 0)
    x1, y1 = min(int(box[0] + box[2]) + 2, width), min(int(box[1] + box[3]) + 2, height)
    step = max(int(np.ceil(max(x1 - x0, y1 - y0, 1) / _MOST_CELLS)), 1)
    part = np.pad(pixels[y0:y1:step, x0:x1:step], 1)
    edges = []
    for changes, is_upright in ((part[:, 1:] != part[:, :-1], True), ((part[1:] != part[:-1]).T, False)):
        for at in np.flatnonzero(changes.any(axis=0)).tolist():
            along = np.flatnonzero(np.diff(np.r_[0, changes[:, at].astype(np.int8), 0]))
            for first, last in along.reshape(-1, 2).tolist():
                ends = [at, first - 1, at, last - 1] if is_upright else [first - 1, at, last - 1, at]
                edges.append([float(value * step + (y0 if k % 2 else x0)) for k, value in enumerate(ends)])
    return edges


def _view(box: Floats, size: tuple[float, float]) -> list[float]:
    x, y, w, h = (float(value) for value in box)
    side = max(max(w, h) * (1 + 2 * _MARGIN), min(_LEAST_SIDE, *size))
    return _clipped(x + w / 2 - side / 2, y + h / 2 - side / 2, side, side, size)


def _clipped(x: float, y: float, w: float, h: float, size: tuple[float, float]) -> list[float]:
    """A part that is moved into its image, and no larger than that."""
    w, h = min(float(w), size[0]), min(float(h), size[1])
    return [min(max(float(x), 0.0), size[0] - w), min(max(float(y), 0.0), size[1] - h), w, h]


def _inside(pool: Pool, image: int, view: list[float]) -> list[int]:
    """Candidates that reach into a part of an image."""
    own = np.flatnonzero(pool.image == image)
    boxes = pool.boxes[own]
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    meets = (high > view[:2]).all(axis=1) & (low < np.add(view[:2], view[2:])).all(axis=1)
    return [int(k) for k in own[meets]]


def find_photos(folder: str | os.PathLike[str], images: Images, which: list[int]) -> dict[int, Path]:
    """The files of some images below a folder; by the name of the file, or by the name of the image."""
    root = Path(os.path.realpath(folder))
    if not root.is_dir():
        raise InvalidParameter(f"`images` must be a folder, got {str(folder)!r}; name the folder of the images")
    ids, found, missing = images.ids.tolist(), {}, []
    for k in which:
        names = [images.files[k], str(ids[k]), *(f"{ids[k]}{suffix}" for suffix in _PHOTO_TYPES)]
        places = [Path(os.path.realpath(root / name)) for name in names if name]
        for place in places:
            if place.is_relative_to(root) and place.is_file() and place.suffix.lower() in _PHOTO_TYPES:
                found[k] = place
                break
        else:
            missing.append(names[0] or str(ids[k]))
    if missing:
        raise InvalidParameter(
            f"{str(folder)!r} must hold the images, got none for {len(missing):,} of {len(which):,} (the first "
            f"is {missing[0]!r}); name their folder, or leave it out to draw from shapes alone"
        )
    return found


def photo_address(path: Path) -> str:
    """A picture as an address that holds it."""
    if path.stat().st_size > _LARGEST_PHOTO:
        raise InvalidParameter(f"{path.name!r} is larger than 20 MB; make smaller copies of the images")
    kind = _PHOTO_TYPES[path.suffix.lower()]
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
