"""Pictures of shapes in images, drawn as SVG from plain data; a photograph lies below where there is one."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

# By what a shape is: colour of the line, its width in pixels of the screen, and its dashes.
_LINES = {
    "candidate": ("#d1495b", 2.5, ""),
    "system": ("#00798c", 2.0, "5 3"),
    "other": ("#8d99ae", 1.2, ""),
    "tile": ("#edae49", 2.5, ""),
}
_PHOTO = re.compile(r"^(?:#[\w-]+|data:image/[a-z+.]+;base64,[A-Za-z0-9+/=]+)$")


def crop_figure(crop: Mapping[str, Any], *, width: int = 260, label: str = "") -> str:
    """A part of an image as SVG.

    Examples
    --------
    >>> crop = {"view": [0, 0, 20, 10], "size": [100, 50], "shapes": [{"role": "candidate", "box": [2, 2, 5, 5]}]}
    >>> "<rect" in crop_figure(crop), "2 2" in crop_figure(crop)
    (True, True)
    """
    x, y, w, h = (float(value) for value in crop["view"])
    height = max(round(width * h / max(w, 1e-9)), 1)
    parts = [
        f'<svg class="crop" viewBox="{x:g} {y:g} {w:g} {h:g}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(label)}" preserveAspectRatio="xMidYMid meet">',
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="#e9ecef"/>',
        _image(crop),
        *(_shape(shape) for shape in crop["shapes"]),
        "</svg>",
    ]
    return "".join(parts)


def _image(crop: Mapping[str, Any]) -> str:
    """The whole image: its paper, and its photograph where there is one."""
    w, h = (float(value) for value in crop["size"])
    paper = f'<rect width="{w:g}" height="{h:g}" fill="#f8f9fa"/>'
    photo = crop.get("photo")
    if not isinstance(photo, str) or not _PHOTO.match(photo):
        return paper
    if photo.startswith("#"):
        return f'{paper}<use href="{photo}"/>'
    return f'{paper}<image href="{photo}" width="{w:g}" height="{h:g}" preserveAspectRatio="none"/>'


def _shape(shape: Mapping[str, Any]) -> str:
    colour, thickness, dashes = _LINES.get(str(shape["role"]), _LINES["other"])
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<path d="{_path(shape)}" fill="none" stroke="{colour}" stroke-width="{thickness}"{dashed} '
        'vector-effect="non-scaling-stroke"/>'
    )


def _path(shape: Mapping[str, Any]) -> str:
    if "edges" in shape:
        edges: Sequence[Sequence[float]] = shape["edges"]
        return "".join(f"M{float(a):g} {float(b):g}L{float(c):g} {float(d):g}" for a, b, c, d in edges)
    x, y, w, h = (float(value) for value in shape["box"])
    return f"M{x:g} {y:g}h{w:g}v{h:g}h{-w:g}z"
