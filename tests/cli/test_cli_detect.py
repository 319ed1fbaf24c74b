"""trueup detect, through its entry point."""

import json

import numpy as np
import pytest
from cli_helpers import QUICK, assert_one_sentence, write_csv

from trueup import detection

SIZE = 640


def coco_rows(shapes):
    rows = []
    for k in range(len(shapes)):
        box = shapes.boxes[k].tolist()
        row = {"id": k + 1, "image_id": int(shapes.image[k]) + 1, "category_id": 1, "bbox": box, "iscrowd": 0}
        rows.append(row if shapes.scores is None else {**row, "score": float(shapes.scores[k])})
    return rows


def coco_truth(shapes):
    return {
        "images": [
            {"id": k + 1, "width": SIZE, "height": SIZE, "file_name": f"p{k}.png"} for k in range(shapes.images.n)
        ],
        "categories": [{"id": 1, "name": "cell"}],
        "annotations": coco_rows(shapes),
    }


@pytest.fixture(scope="module")
def data():
    return detection.simulate_boxes(n_images=12, n_annotators=3, n_systems=2, random_state=0)


@pytest.fixture
def files(data, tmp_path):
    """Three annotators and two systems as COCO's files."""
    for name in data.objects.sources:
        path = tmp_path / f"{name.replace('notator ', '')}.json"
        path.write_text(json.dumps(coco_truth(data.objects.of_source(name))))
    for name in data.found.sources:
        path = tmp_path / f"{name.replace('tem ', '')}.json"
        path.write_text(json.dumps(coco_rows(data.found.of_source(name))))
    return tmp_path


def annotators(files):
    return ("--annotators", *(files / f"an{k}.json" for k in (1, 2, 3)))


def test_match(run_main, files):
    ran = run_main(
        *("detect", "match", files / "sys1.json", *annotators(files)),
        *("--votes", files / "votes.csv", "--coco", files / "all.json"),
    )
    assert ran.code == 0, ran.err
    for words in ("candidates of 1 class in 12 images", "looked and did not draw", "an3", "sys1"):
        assert words in ran.out
    assert (files / "votes.csv").read_text().startswith("item,labeler,label")
    assert json.loads((files / "all.json").read_text())["annotations"]


def test_match_says_the_same_as_python(run_main, files, data):
    ran = run_main("detect", "match", *annotators(files), "--iou", "0.4", "--json")
    told = json.loads(ran.out)
    pool = detection.match(None, data.objects, iou=0.4)
    assert told["candidates"] == len(pool)
    assert told["annotators"]["an2"]["drawn"] == int((pool.votes[1] == 1).sum())
    assert len(told["files"]["annotators"]) == 3


def test_evaluate(run_main, files):
    ran = run_main(
        *("detect", "evaluate", files / "sys1.json", *annotators(files), "-m", "precision", "-m", "ap50", "--cuts"),
        *("--report", files / "report.html", "--coco", files / "all.json", *QUICK),
    )
    assert ran.code == 0, ran.err
    for words in ("sys1: ", "precision", "ap50", "where shapes are one thing from"):
        assert words in ran.out
    assert "ap50 is of the pool" in ran.err
    assert "pass --answers or --searched to count them" in ran.err
    chances = [row["probability"] for row in json.loads((files / "all.json").read_text())["annotations"]]
    assert min(chances) >= 0.5
    assert len(set(chances)) > 4  # those of draws, not shares of three votes
    page = (files / "report.html").read_text()
    assert "probably wrong" in page
    assert page.count("<svg") > 5


def test_json_is_what_python_says(run_main, files, data):
    ran = run_main(
        *("detect", "evaluate", files / "sys1.json", files / "sys2.json", *annotators(files), "--json"),
        *("-m", "recall", "--only-system", "sys2", "--by-class", *QUICK),
    )
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    pool = detection.match(data.found, data.objects)
    answer = detection.evaluate(
        pool, "system 2", metrics=["recall"], noise="dawid-skene", n_draws=100, n_warmup=50, random_state=0
    )
    assert told["metrics"]["recall"]["mean"] == pytest.approx(answer["recall"].mean, abs=0.02)
    assert told["metrics"]["recall: cell"]["mean"] == told["metrics"]["recall"]["mean"]
    assert told["pool"]["candidates"] == len(pool)


def test_compare(run_main, files):
    ran = run_main(
        *("detect", "compare", files / "sys1.json", files / "sys2.json", *annotators(files), "-m", "ap50", *QUICK),
        *("--report", files / "report.md"),
    )
    assert ran.code == 0, ran.err
    assert "is the best of 2 by ap50" in ran.out
    assert "## Objects" in (files / "report.md").read_text()


def test_tiles_that_were_searched_in_the_app_come_back(run_main, files):
    pytest.importorskip("sqlalchemy", reason="needs trueup[storage]")
    ran = run_main(
        *("detect", "vet", files / "sys1.json", *annotators(files), "-n", "5", "--tiles", "10", "--hidden", "3"),
        *("--for-app", files / "app"),
    )
    assert ran.code == 0, ran.err
    assert f"trueup serve {files / 'app' / 'tiles.json'}" in ran.out
    url = f"sqlite:///{files}/tiles.db"
    tiles = detection.TilesToSearch.read(files / "app" / "tiles.json")
    search = detection.TileSearch(tiles, storage=url, name="tiles")
    search.tell({number: 0 if number in tiles.hidden else 1 for number in search.ask(13)}, who="ann")
    asked = ("detect", "evaluate", files / "sys1.json", *annotators(files), "-m", "recall", *QUICK)
    ran = run_main(*asked, "--searched", url)
    assert ran.code == 0, ran.err
    assert "10 objects that nobody drew in 10 of 48 tiles" in ran.out
    assert "0 of 3 objects whose outline was hidden were noticed" in ran.out
    assert "did not notice 3 of 3 objects" in ran.err
    assert "of the pool" not in ran.err
    told = json.loads(run_main(*asked, "--searched", url, "--searched-name", "tiles", "--json").out)
    assert (told["missed"]["searched"], told["hidden"]) == (10, {"shown": 3, "noticed": 0})
    for wrong, sentence in [
        (("--searched", url, "--searched-name", "other"), "--searched-name"),
        (("--searched-name", "tiles"), "no --searched"),
        (("--searched", f"sqlite:///{files}/none.db"), "none.db"),
        (("--searched", url, "--iou", "0.4"), "another pool"),
    ]:
        ran = run_main(*asked, *wrong)
        assert_one_sentence(ran)
        assert sentence in ran.err


def test_cards_go_out_and_answers_come_back(run_main, files):
    out = files / "cards.html"
    ran = run_main(
        *("detect", "vet", files / "sys1.json", *annotators(files), "--out", out, "-n", "30", "--tiles", "6"),
        *("--planted", "4", "--hidden", "0", "--seed", "2", "--for-app", files / "app"),
    )
    assert ran.code == 0, ran.err
    assert "30 of" in ran.out
    assert "4 empty places, 6 of 48 tiles, and 0 with an outline hidden" in ran.out
    assert "trueup serve" in ran.out
    app = files / "app"
    session = ("vet", "start", files / "session.json", app / "votes.csv", app / "predictions.csv")
    ran = run_main(*session, "--items", app / "items.csv", "--gold", app / "gold.csv", "--noise", "dawid-skene")
    assert ran.code == 0, ran.err
    page = out.read_text()
    deck = json.loads(page.partition('id="deck">')[2].partition("</script>")[0])
    answers = {str(k): "yes" if k % 3 else "no" for k in range(1, 35)} | {str(k): [] for k in range(35, 41)}
    (files / "answers.json").write_text(json.dumps({"format": 2, "deck": deck, "answers": answers}))
    ran = run_main(
        *("detect", "evaluate", files / "sys1.json", *annotators(files), "-m", "recall", *QUICK),
        *("--answers", files / "answers.json"),
    )
    assert ran.code == 0, ran.err
    assert "30 candidates are vetted" in ran.out
    assert "0 objects that nobody drew in 6 of 48 tiles" in ran.out
    assert "empty places" in ran.err
    assert "of the pool" not in ran.err


def test_tables_yolo_and_voc(run_main, data, tmp_path):
    objects, found = data.objects, data.found
    names = [f"p{k}" for k in range(objects.images.n)]
    rows = [
        (names[objects.image[k]], objects.sources[objects.source[k]], "cell", *objects.boxes[k].round(3))
        for k in range(len(objects))
    ]
    table = write_csv(tmp_path / "drawn.csv", ("image", "who", "class", "x", "y", "w", "h"), rows)
    sizes = write_csv(tmp_path / "sizes.csv", ("image", "width", "height"), [(name, SIZE, SIZE) for name in names])
    yolo = tmp_path / "yolo"
    yolo.mkdir()
    one = found.of_source("system 1")
    for k, name in enumerate(names):
        lines = [
            f"0 {(x + w / 2) / SIZE} {(y + h / 2) / SIZE} {w / SIZE} {h / SIZE} {score}"
            for (x, y, w, h), score in zip(one.boxes[one.image == k], one.scores[one.image == k], strict=True)
        ]
        (yolo / f"{name}.txt").write_text("\n".join(lines))
    voc = tmp_path / "voc"
    voc.mkdir()
    ann = objects.of_source("annotator 1")
    for k, name in enumerate(names):
        things = "".join(
            f"<object><name>cell</name><bndbox><xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax>"
            "</bndbox></object>"
            for x, y, w, h in ann.boxes[ann.image == k]
        )
        size = f"<size><width>{SIZE}</width><height>{SIZE}</height></size>"
        (voc / f"{name}.xml").write_text(f"<annotation>{size}{things}</annotation>")
    common = ("--class", "cell", "--json")
    ran = run_main("detect", "match", yolo, "--annotators", table, "--labeler", "who", "--sizes", sizes, *common)
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert set(told["annotators"]) == {"annotator 1", "annotator 2", "annotator 3"}
    assert told["systems"]["yolo"]["detections"] == len(one)
    assert told["candidates"] == len(detection.match(one, objects))
    ran = run_main("detect", "match", yolo, "--annotators", f"ann={voc}", *common)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["annotators"]["ann"]["drawn"] == len(ann)


def test_who_saw_what(run_main, files, data):
    images = range(1, data.objects.images.n + 1)
    rows = [(name, image) for name in ("an1", "an2", "an3") for image in images]
    everything = write_csv(files / "seen.csv", ("labeler", "image"), rows)
    seen_all = json.loads(run_main("detect", "match", *annotators(files), "--seen", everything, "--json").out)
    plain = json.loads(run_main("detect", "match", *annotators(files), "--json").out)
    unknown = json.loads(run_main("detect", "match", *annotators(files), "--seen", "none", "--json").out)
    assert seen_all["annotators"] == plain["annotators"]
    assert {row["not_drawn"] for row in unknown["annotators"].values()} == {0}
    strangers = write_csv(files / "strangers.csv", ("labeler", "image"), [("eve", 1)])
    ran = run_main("detect", "match", *annotators(files), "--seen", strangers)
    assert_one_sentence(ran)
    assert "1 rows with others (the first is 'eve')" in ran.err
    few = write_csv(files / "few.csv", ("labeler", "image"), rows[:3])
    ran = run_main("detect", "match", *annotators(files), "--seen", few)
    assert_one_sentence(ran)
    assert "shapes in images that their annotator did not see" in ran.err


BAD_ROWS = {
    "outside the image": ({"bbox": [900, 0, 5, 5]}, "1 with a box outside its image"),
    "no width": ({"bbox": [0, 0, 0, 5]}, "1 with a box without width or height"),
    "a negative height": ({"bbox": [0, 0, 5, -5]}, "1 with a box without width or height"),
    "no number": ({"bbox": [0, 0, float("nan"), 5]}, "1 with a box with numbers missing"),
    "another image": ({"image_id": 99}, "1 with an image that is not in the set"),
    "another class": ({"category_id": 9}, "1 with a class that is not in the set"),
    "an id twice": ({"id": 2}, "1 with an id that another one has"),
}


@pytest.mark.parametrize(("change", "words"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_bad_annotations(run_main, files, data, change, words):
    truth = coco_truth(data.objects.of_source("annotator 1"))
    truth["annotations"][0] |= change
    (files / "bad.json").write_text(json.dumps(truth))
    ran = run_main("detect", "match", "--annotators", files / "bad.json", files / "an2.json")
    assert_one_sentence(ran)
    assert words in ran.err


BAD_RESULTS = {
    "no score": ({"score": None}, "1 with no score"),
    "a score above 1": ({"score": 1.5}, "1 with a score outside 0 to 1"),
    "another image": ({"image_id": 99}, "1 with an image that is not in the set"),
    "another class": ({"category_id": 9}, "1 with a class that is not in the set"),
    "no box": ({"bbox": [0, 0, 3]}, "1 with neither a box of four numbers nor a mask"),
}


@pytest.mark.parametrize(("change", "words"), BAD_RESULTS.values(), ids=BAD_RESULTS.keys())
def test_bad_detections(run_main, files, data, change, words):
    rows = coco_rows(data.found.of_source("system 1"))
    rows[0] |= change
    (files / "bad.json").write_text(json.dumps(rows))
    ran = run_main("detect", "evaluate", files / "bad.json", *annotators(files))
    assert_one_sentence(ran)
    assert words in ran.err


BAD_MASKS = {
    "two points": ([[1, 1, 5, 5]], "1 with a polygon of 2 points"),
    "another size": ({"size": [5, 5], "counts": [25]}, f"run lengths of 5 × 5 in an image of {SIZE} × {SIZE}"),
    "too short": ({"size": [SIZE, SIZE], "counts": [25]}, "run lengths that add up to 25"),
}


@pytest.mark.parametrize(("mask", "words"), BAD_MASKS.values(), ids=BAD_MASKS.keys())
def test_bad_masks(run_main, files, data, mask, words):
    pytest.importorskip("pycocotools", reason="needs trueup[coco]")
    truth = coco_truth(data.objects.of_source("annotator 1"))
    truth["annotations"] = [{**truth["annotations"][0], "segmentation": mask}]
    (files / "bad.json").write_text(json.dumps(truth))
    ran = run_main("detect", "match", "--annotators", files / "bad.json")
    assert_one_sentence(ran)
    assert words in ran.err


def test_detections_of_other_images(run_main, files, data):
    one = data.found.of_source("system 1")
    rows = [(f"other{one.image[k]}.png", *one.boxes[k], one.scores[k]) for k in range(len(one))]
    table = write_csv(files / "others.csv", ("image", "x", "y", "w", "h", "score"), rows)
    ran = run_main("detect", "evaluate", table, *annotators(files))
    assert_one_sentence(ran)
    assert f"{len(one)} of {len(one)} detections are in images that the annotations do not have" in ran.err
    half = [(f"p{one.image[k]}.png" if k % 2 else "x", "cell", *one.boxes[k], one.scores[k]) for k in range(len(one))]
    table = write_csv(files / "half.csv", ("image", "class", "x", "y", "w", "h", "score"), half)
    ran = run_main("detect", "match", table, *annotators(files), "--unknown", "drop", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["systems"]["half"]["detections"] == len(one) // 2
    assert "were left out" in ran.err


def bad_calls(files):
    good = (files / "sys1.json", *annotators(files))
    return {
        "no annotators": (("evaluate", files / "sys1.json"), "--annotators must name what people drew"),
        "no such file": (("match", "--annotators", files / "none.json"), "does not exist"),
        "the same twice": (("match", "--annotators", files / "an1.json", files / "an1.json"), "'an1' twice"),
        "results as annotations": (("match", "--annotators", files / "sys1.json"), "must hold images, annotations"),
        "annotations as results": (("match", files / "an1.json", *annotators(files)), "got annotations; name results"),
        "another suffix": (("match", "--annotators", files / "notes.txt"), "must be COCO's .json, a table"),
        "an overlap of two": (("match", *good, "--iou", "2"), "--iou"),
        "masks of boxes": (("match", *good, "--shape", "mask"), "--shape mask needs masks"),
        "another shape": (("match", *good, "--shape", "star"), "--shape"),
        "another metric": (("evaluate", *good, "-m", "map"), "must be one of precision"),
        "another system": (("evaluate", *good, "--only-system", "x"), "there is no system 'x', got sys1"),
        "one system": (("compare", *good), "needs two systems, got sys1"),
        "no place for cards": (("vet", *good), "neither --out nor --for-app"),
        "cards as text": (("vet", *good, "--out", files / "cards.txt"), "must end in .html"),
        "no photographs": (("vet", *good, "--out", files / "c.html", "--images", files), "got none for"),
        "other answers": (("evaluate", *good, "--answers", files / "an1.json"), "answers that a page of cards"),
        "drawn without gold": (("evaluate", *good, "--gold-drawn", "random"), "no --gold"),
        "a report as pdf": (("evaluate", *good, "--report", files / "r.pdf"), "a report must end in"),
        "yolo without names": (("match", "--annotators", files / "yolo"), "name them in order (--class)"),
        "an empty folder": (("match", "--annotators", files / "empty"), "has neither .txt files of YOLO"),
        "no scores": (("match", files / "plain.csv", *annotators(files)), "none has a score"),
        "bad sizes": (("match", *good, "--sizes", files / "plain.csv"), "must have the columns image, width"),
    }


@pytest.mark.parametrize("name", bad_calls(__import__("pathlib").Path()).keys())
def test_bad_calls_get_one_sentence(run_main, files, name):
    (files / "notes.txt").write_text("")
    (files / "empty").mkdir()
    (files / "yolo").mkdir()
    (files / "yolo" / "p0.txt").write_text("0 .5 .5 .1 .1\n")
    write_csv(files / "plain.csv", ("image", "x", "y", "w", "h"), [("p0", 1, 1, 5, 5)])
    words, sentence = bad_calls(files)[name]
    ran = run_main("detect", *words)
    assert_one_sentence(ran)
    assert sentence in ran.err


def test_vetted_candidates_as_a_table(run_main, files, data):
    pool = detection.match(data.found.of_source("system 1"), data.objects)
    ids = {item: f"{int(item.split('/')[0]) + 1}/{item.split('/')[1]}" for item in pool.items}  # files count from 1
    chosen = np.random.default_rng(0).choice(pool.items, 30, replace=False)
    gold = write_csv(files / "gold.csv", ("item", "label"), [(ids[item], "object") for item in chosen])
    ran = run_main(
        *("detect", "evaluate", files / "sys1.json", *annotators(files), "-m", "precision", *QUICK),
        *("--gold", gold, "--gold-drawn", "random"),
    )
    assert ran.code == 0, ran.err
    assert "30 candidates are vetted" in ran.out


def test_the_column_of_the_image_can_be_named(run_main, tmp_path):
    rows = [(f"p{k}.png", who, "cell", 5 + k, 5, 15, 20) for k in range(3) for who in ("ann", "bob")]
    drawn = write_csv(tmp_path / "drawn.csv", ("picture", "labeler", "class", "x", "y", "w", "h"), rows)
    ran = run_main("detect", "match", "--annotators", drawn)
    assert_one_sentence(ran)
    assert "no column 'image' for the image" in ran.err
    assert "name it with --image" in ran.err
    ran = run_main("detect", "match", "--annotators", drawn, "--image", "picture")
    assert ran.code == 0, ran.err
    assert "3 candidates of 1 class in 3 images" in ran.out


def test_vetted_names_that_a_spreadsheet_would_run_come_back(run_main, tmp_path):
    rows = [(f"-p{k}", who, 5 + k, 5, 15, 20) for k in range(8) for who in ("ann", "bob")]
    drawn = write_csv(
        tmp_path / "drawn.csv", ("image", "labeler", "x", "y", "w", "h"), [("-a", "ann", 1, 1, 9, 9), *rows]
    )
    found = write_csv(
        tmp_path / "det.csv", ("image", "x", "y", "w", "h", "score"), [(*row[:1], *row[2:], 0.9) for row in rows[::2]]
    )
    files = (found, "--annotators", drawn)
    assert run_main("detect", "vet", *files, "--for-app", tmp_path / "app", "--planted", "0").code == 0
    names = [line.split(",")[0] for line in (tmp_path / "app" / "votes.csv").read_text().splitlines()[1:]]
    assert all(name.startswith("'-") for name in names)
    gold = write_csv(tmp_path / "gold.csv", ("item", "label"), [(name, "object") for name in dict.fromkeys(names)])
    ran = run_main("detect", "match", *files, "--gold", gold, "--coco", tmp_path / "all.json")
    assert ran.code == 0, ran.err
    assert len(json.loads((tmp_path / "all.json").read_text())["annotations"]) == 9
