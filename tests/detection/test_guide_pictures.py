"""The pictures of the guide are what their script draws."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pictures_of_the_guide_are_drawn_by_their_script():
    spec = importlib.util.spec_from_file_location("detection_figure", DOCS / "_site" / "detection_figure.py")
    figure = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figure)
    for name, picture in figure.pictures().items():
        assert (DOCS / "guide" / name).read_text(encoding="utf-8") == picture
        assert len(picture) < 10_000
