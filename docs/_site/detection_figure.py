"""Draw docs/guide/detection-pool.svg and detection-card.svg: shapes become candidates, and what a vetter sees of one.

Run ``python docs/_site/detection_figure.py``. The shapes are simulated.
"""

from __future__ import annotations

from pathlib import Path

from trueup import detection
from trueup.detection.writing import candidate_crop, thumbnail
from trueup.report.figures import crop_figure

FOLDER = Path(__file__).parents[1] / "guide"
IMAGE = 3
COLOURS = ("#00798c", "#edae49", "#66a182")


def example() -> detection.Pool:
    """The pool of the guide's first example."""
    data = detection.simulate_boxes(n_images=30, n_annotators=3, n_systems=2, random_state=1)
    return detection.match(data.found, data.objects)


def pool_picture(pool: detection.Pool) -> str:
    """Left what three annotators drew in one image, right the candidates, and how many of the three drew each."""
    assert pool.matching is not None
    drawn = pool.matching.objects
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1320 690" role="img" font-family="sans-serif">',
        "<title>Boxes that three annotators drew in one image, and the candidates that they make</title>",
        '<rect width="1320" height="690" fill="#ffffff"/>',
        '<text x="10" y="30" font-size="26">drawn by three annotators</text>',
        '<text x="680" y="30" font-size="26">candidates, and how many drew each</text>',
        '<g fill="none" stroke="#ced4da"><rect x="10" y="45" width="630" height="635"/>'
        '<rect x="680" y="45" width="630" height="635"/></g><g fill="none" stroke-width="3">',
    ]
    for k in range(len(drawn)):
        if drawn.image[k] == IMAGE:
            x, y, w, h = drawn.boxes[k]
            place = f'x="{10 + x:.0f}" y="{45 + y:.0f}" width="{w:.0f}" height="{h:.0f}"'
            parts.append(f'<rect {place} stroke="{COLOURS[drawn.source[k]]}"/>')
    parts.append("</g>")
    for k in range(len(pool)):
        if pool.image[k] == IMAGE:
            x, y, w, h = pool.boxes[k]
            n = int((pool.votes[:, k] == 1).sum())
            place = f'x="{680 + x:.0f}" y="{45 + y:.0f}" width="{w:.0f}" height="{h:.0f}"'
            parts.append(f'<rect {place} fill="#d1495b" fill-opacity="{0.05 + 0.15 * n:.2f}" stroke="#d1495b"/>')
            parts.append(f'<text x="{686 + x:.0f}" y="{68 + y:.0f}" font-size="22">{n}</text>')
    return "\n".join([*parts, "</svg>", ""])


def card_picture(pool: detection.Pool) -> str:
    """The crop and the thumbnail of one candidate."""
    k = int((pool.image == IMAGE).argmax())
    crop = crop_figure(candidate_crop(pool, k), width=300, label="a crop with the outline of a candidate")
    small = crop_figure(thumbnail(pool, IMAGE, pool.boxes[k]), width=140, label="its place in the image")
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 310" role="img">',
            "<title>A card: a crop with the outline of one candidate, and its place in the image</title>",
            '<rect width="480" height="310" fill="#ffffff"/>',
            crop.replace("<svg ", '<svg x="5" y="5" ', 1),
            small.replace("<svg ", '<svg x="325" y="5" ', 1),
            "</svg>",
            "",
        ]
    )


def pictures() -> dict[str, str]:
    """Both, by the names of their files."""
    pool = example()
    return {"detection-pool.svg": pool_picture(pool), "detection-card.svg": card_picture(pool)}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (FOLDER / name).write_text(picture, encoding="utf-8")
