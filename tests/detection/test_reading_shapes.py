"""Boxes from files, and back."""

import io
import json

import numpy as np
import pytest

from trueup.detection import match, read_boxes, read_coco, read_voc, read_yolo, write_coco
from trueup.detection.reading import read_annotations, read_detections, with_seen
from trueup.exceptions import TrueupError

TABLE = "image,labeler,class,x1,y1,x2,y2\na.png,ann,cat,0,0,10,10\na.png,bob,cat,1,0,11,10\nb.png,bob,dog,5,5,9,9\n"
VOC = """<annotation><size><width>100</width><height>80</height></size>
<object><name>cat</name><bndbox><xmin>0</xmin><ymin>0</ymin><xmax>10</xmax><ymax>20</ymax></bndbox></object>
</annotation>"""


def written(folder, content, name="file.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_table_of_boxes():
    shapes = read_boxes(io.StringIO(TABLE))
    assert shapes.sources == ("ann", "bob")
    assert shapes.categories == ("cat", "dog")
    assert shapes.boxes.tolist() == [[0, 0, 10, 10], [1, 0, 10, 10], [5, 5, 4, 4]]
    assert shapes.seen is not None
    assert shapes.seen.all()
    assert match(None, shapes).votes.tolist() == [[1, 0], [1, 1]]
    with_scores = read_boxes(io.StringIO("image,system,x,y,w,h,score\na,s,0,0,5,5,0.5\n"))
    assert (with_scores.scores.tolist(), with_scores.seen) == ([0.5], None)


def test_yolo(tmp_path):
    written(tmp_path, "0 0.5 0.5 0.2 0.4 0.9\n", "a.txt")
    written(tmp_path, "", "b.txt")
    shapes = read_yolo(tmp_path, categories=["cat"], sizes={"a": (100, 50), "b": (10, 10)})
    np.testing.assert_allclose(shapes.boxes, [[40, 15, 20, 20]])
    assert shapes.images.ids.tolist() == ["a", "b"]
    assert shapes.scores.tolist() == [0.9]


def test_voc(tmp_path):
    written(tmp_path, VOC, "a.xml")
    shapes = read_voc({"ann": tmp_path})
    assert (shapes.sources, shapes.categories, shapes.boxes.tolist()) == (("ann",), ("cat",), [[0, 0, 10, 20]])


def test_candidates_are_written_and_read_again(tmp_path):
    pool = match(None, read_boxes(io.StringIO(TABLE)))
    labels = pool.labels.with_gold({pool.items[1]: "object"})
    assert write_coco(pool, tmp_path / "all.json", labels=labels) == 2
    rows = json.loads((tmp_path / "all.json").read_text())["annotations"]
    assert [row["probability"] for row in rows] == [1.0, 1.0]
    assert [row["vetted"] for row in rows] == [False, True]
    assert rows[1]["drawn_by"] == ["bob"]
    assert rows[1]["not_drawn_by"] == ["ann"]
    assert read_coco(tmp_path / "all.json").boxes.tolist() == pool.boxes.tolist()


def test_what_is_no_json_is_told(tmp_path):
    with pytest.raises(TrueupError, match="is no JSON"):
        read_coco(written(tmp_path, "{"))


def test_a_short_name_of_several_images_is_refused(tmp_path):
    images = written(tmp_path, "image,x,y,w,h\ntrain/1.jpg,0,0,5,5\nval/1.jpg,0,0,5,5\nval/2.jpg,0,0,5,5\n", "ann.csv")
    objects = read_annotations({"ann": images})
    for name, sentence in (
        ("1", r"got '1', which may be \['train/1.jpg', 'val/1.jpg'\]"),
        ("2", None),
        ("val/1.jpg", None),
    ):
        found = written(tmp_path, f"image,x,y,w,h,score\n{name},0,0,5,5,0.5\n", "found.csv")
        if sentence is None:
            image = read_detections({"system": found}, objects).image[0]
            assert name in objects.images.ids[image]
            assert with_seen(objects, [("ann", one) for one in objects.images.ids] + [("ann", name)]).seen.all()
            continue
        with pytest.raises(TrueupError, match=sentence):
            read_detections({"system": found}, objects)
        with pytest.raises(TrueupError, match=sentence):
            with_seen(objects, [("ann", name)])
