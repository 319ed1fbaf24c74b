"""Files that cannot be right: one sentence each, with counts, and nothing is dropped in silence."""

import copy
import json

import numpy as np
import pytest

from trueup.detection import read_annotations, read_boxes, read_coco, read_detections, read_results
from trueup.detection.reading import read_sizes
from trueup.exceptions import DataWarning, TrueupError

BOX = [5, 5, 15, 20]
INSTANCES = {
    "images": [{"id": k, "width": 100, "height": 80} for k in (1, 2)],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    "annotations": [{"id": k, "image_id": 1 + k % 2, "category_id": 1, "bbox": BOX, "area": 300} for k in range(6)],
}
RESULTS = [{"image_id": 1 + k % 2, "category_id": 1, "bbox": BOX, "score": 0.1 * k} for k in range(6)]


def saved(path, content):
    path.write_text(json.dumps(content))
    return path


def changed(where, position, **fields):
    content = copy.deepcopy(INSTANCES)
    content[where][position] = {**content[where][position], **fields}
    return content


def with_masks(segmentation):
    content = copy.deepcopy(INSTANCES)
    for row in content["annotations"]:
        row["segmentation"] = segmentation
    return content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (changed("annotations", 2, bbox=[200, 5, 9, 9]), "of 6 annotations there are 1 with a box outside its image"),
        (changed("annotations", 2, bbox=[5, 5, 0, 9]), "1 with a box without width or height"),
        (changed("annotations", 2, bbox=[5, 5, -4, 9]), "1 with a box without width or height"),
        (changed("annotations", 2, bbox=[float("nan"), 5, 4, 9]), "1 with a box with numbers missing"),
        (changed("annotations", 2, bbox=[5, 4, 9]), "there are 1 with neither a box of four numbers nor a mask .* 3"),
        (changed("annotations", 2, bbox="abcd"), "1 with neither a box of four numbers nor a mask"),
        (changed("annotations", 2, image_id=9), "1 with an image that is not in the set"),
        (changed("annotations", 2, image_id=[1]), "1 with an image that is not in the set"),
        (changed("annotations", 2, category_id={}), "1 with a class that is not in the set"),
        (changed("annotations", 2, id=1), "1 with an id that another one has"),
        (changed("annotations", 2, id=[1]), "1 with an id that is no name"),
        (changed("annotations", 2, area="large"), "1 with an area that is no number from 0 on"),
        (changed("annotations", 2, area=-1), "1 with an area that is no number from 0 on"),
        (changed("annotations", 2, iscrowd="no"), "1 with a crowd flag but 0 or 1"),
        (changed("images", 1, id=1), "images must have ids of their own, got 1"),
        (changed("images", 1, id=None), "images must have an id, a number or text, got 1 of 2"),
        (changed("images", 1, width="wide"), "must be numbers above 0, got 1 of 2 images"),
        (changed("images", 1, height=-3), "must be numbers above 0, got 1 of 2 images"),
        (changed("categories", 1, id=1), "categories must have ids of their own, got 1"),
        (changed("categories", 1, id=[1]), "categories must have an id, a number or text, got 1 of 2"),
        ({**INSTANCES, "annotations": [3, *INSTANCES["annotations"]]}, "annotations must be records, got 1 of 7"),
        ({**INSTANCES, "annotations": None}, "annotations must be a list of records, got NoneType"),
        ({**INSTANCES, "images": []}, "must have images, got none"),
        ({**INSTANCES, "images": ["a.png"]}, "images must be records, got 1 of 1"),
        ({**INSTANCES, "categories": {}}, "categories must be a list of records, got dict"),
        ([], "must hold images, annotations and categories"),
    ],
)
def test_instances(tmp_path, content, sentence):
    with pytest.raises(TrueupError, match=sentence):
        read_coco(saved(tmp_path / "ann.json", content))


@pytest.mark.parametrize(
    ("segmentation", "sentence"),
    [
        ([[5, 5, 20, 5]], "6 with a polygon of 2 points"),
        ([[5, 5, 20, 5, 9, 9, 3]], "6 with a polygon with half a point"),
        ([[5, 5, 20, 5, "a", 9]], "6 with a polygon with points that are no numbers"),
        ([[5, 5, 1e12, 5, 1e12, 1e12]], "6 with a polygon that reaches far out of its image"),
        ("cat", "6 with a segmentation that is neither polygons nor run lengths"),
        ({"size": [10, 10], "counts": [100]}, "6 with run lengths of 10 × 10 in an image of 100 × 80"),
        ({"size": [80, 100], "counts": [100]}, "6 with run lengths that add up to 100, not to 8000 pixels"),
        ({"size": [80, 100], "counts": [-10, 8010]}, "6 with run lengths that are no whole numbers from 0 on"),
        ({"size": [80, 100], "counts": "zz~~"}, "6 with compressed run lengths that cannot be read"),
        ({"size": [80, 100], "counts": "äö"}, "6 with compressed run lengths that cannot be read"),
        ({"size": [80, 100], "counts": "112e1"}, "6 with run lengths that add up to 58, not to 8000 pixels"),
        ({"size": [80, 100]}, "6 with run lengths without counts"),
        ({"size": "large", "counts": [1]}, "6 with run lengths without a size"),
    ],
)
def test_masks(tmp_path, segmentation, sentence):
    pytest.importorskip("pycocotools", reason="needs trueup[coco]")
    with pytest.raises(TrueupError, match=sentence):
        read_coco(saved(tmp_path / "ann.json", with_masks(segmentation)))


def test_compressed_masks_are_read_as_the_peer_reads_them():
    coco = pytest.importorskip("pycocotools.mask", reason="needs trueup[coco]")
    from trueup.detection.shapes import unpacked_runs

    rng = np.random.default_rng(0)
    for share in rng.random(40):
        pixels = (rng.random(rng.integers(1, 90, 2)) < share).astype(np.uint8)
        flat = np.r_[0, pixels.ravel(order="F")]
        starts = np.r_[0, np.flatnonzero(np.diff(flat)), pixels.size]
        packed = coco.encode(np.asfortranarray(pixels))["counts"]
        assert unpacked_runs(packed) == unpacked_runs(packed.decode()) == np.diff(starts).tolist()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{**RESULTS[0], "score": 2}], "of 1 detections there are 1 with a score outside 0 to 1"),
        ([{**RESULTS[0], "score": "high"}], "1 with no score"),
        ([{**row, "image_id": 100} for row in RESULTS], "of 6 detections there are 6 with an image that is not"),
        ([*RESULTS, None], "detections must be records, got 1 of 7"),
        ([{**RESULTS[0], "category_id": []}], "1 with a class that is not in the set"),
        ({}, "must hold a list of detections"),
    ],
)
def test_results(tmp_path, rows, sentence):
    objects = read_coco(saved(tmp_path / "ann.json", INSTANCES))
    with pytest.raises(TrueupError, match=sentence):
        read_results(saved(tmp_path / "det.json", rows), objects)


def test_masks_beside_boxes_are_told_and_all_can_be_boxes(tmp_path):
    pytest.importorskip("pycocotools", reason="needs trueup[coco]")
    polygon = [[5, 5, 20, 5, 20, 25]]
    some = saved(tmp_path / "some.json", changed("annotations", 2, segmentation=polygon))
    with pytest.warns(DataWarning, match="1 of 6 annotations have masks and the others have none"):
        assert read_coco(some).masks is None
    masks, boxes = saved(tmp_path / "masks.json", with_masks(polygon)), saved(tmp_path / "boxes.json", INSTANCES)
    with pytest.raises(TrueupError, match="compare all by boxes"):
        read_annotations({"ann": masks, "bob": boxes})
    together = read_annotations({"ann": masks, "bob": boxes}, shape="box")
    assert (len(together), together.masks) == (12, None)
    no_box = {key: value for key, value in with_masks(polygon)["annotations"][0].items() if key != "bbox"}
    mixed = {**INSTANCES, "annotations": [no_box, *INSTANCES["annotations"][1:]]}
    with pytest.raises(TrueupError, match="1 with a mask and no box, where others have no mask"):
        read_coco(saved(tmp_path / "mixed.json", mixed))


TABLE = "image,labeler,class,x,y,w,h\n" + "".join(f"p{k}.png,ann,cat,{5 + k},5,15,20\n" for k in range(4))
FOUND = "image,class,x,y,w,h,score\n" + "".join(f"p{k}.png,cat,{5 + k},5,15,20,0.5\n" for k in range(4))
SIZES = "image,width,height\n" + "".join(f"p{k}.png,100,80\n" for k in range(4))


def written(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("image,", "picture,", "no column 'image' for the image, got columns 'picture'"),
        ("p0.png", "", "of 4 boxes there are 1 with no image"),
        ("ann,cat", "ann,", "1 with no class"),
        ("ann,", ",", "1 with no annotator or system"),
        (",5,5,", ",left,5,", "the column x must be numbers, got 1 of 4 rows without .*row 0.*left"),
        (",5,5,", ",,5,", "1 with a box with numbers missing"),
        (",15,20", ",-15,20", "1 with a box without width or height"),
        (",x,", ",left,", "has no columns of boxes"),
    ],
)
def test_tables(tmp_path, old, new, sentence):
    with pytest.raises(TrueupError, match=sentence):
        read_boxes(written(tmp_path / "ann.csv", TABLE.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (",5,5,", ",500,5,", "of 4 detections there are 1 with a box outside its image"),
        ("0.5", "high", "the column score must be numbers, got 1 of 4 rows without .*high"),
        ("0.5", "", "1 with no score"),
        ("p0.png", "q.png", "1 of 4 detections are in images that the annotations do not have"),
    ],
)
def test_tables_of_detections(tmp_path, old, new, sentence):
    sizes = read_sizes(written(tmp_path / "sizes.csv", SIZES))
    objects = read_annotations({"ann": written(tmp_path / "ann.csv", TABLE)}, sizes=sizes)
    path = written(tmp_path / "det.csv", FOUND.replace(old, new, 1))
    with pytest.raises(TrueupError, match=sentence):
        read_detections({"detector": path}, objects)
