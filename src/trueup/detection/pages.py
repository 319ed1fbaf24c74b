"""Cards as one HTML file that works without a server."""

from __future__ import annotations

from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from trueup._base.writing import write_text_safely
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
from trueup.detection.pool import REAL, Pool
from trueup.report.crops import crop_figure

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
    path : path
    images : path, optional
        A folder of the photographs. Without it cards are drawn from the shapes alone, which is enough for a rehearsal.
    title : str
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
