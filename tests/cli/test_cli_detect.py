"""trueup detect, through its entry point."""

import json

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


def test_match_says_the_same_as_python(run_main, files, data):
    ran = run_main("detect", "match", *annotators(files), "--iou", "0.4", "--json")
    parsed = json.loads(ran.out)
    pool = detection.match(None, data.objects, iou=0.4)
    assert parsed["candidates"] == len(pool)
    assert parsed["annotators"]["an2"]["drawn"] == int((pool.votes[1] == 1).sum())
    assert len(parsed["files"]["annotators"]) == 3


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
    parsed = json.loads(ran.out)
    pool = detection.match(data.found, data.objects)
    answer = detection.evaluate(
        pool, "system 2", metrics=["recall"], noise="dawid-skene", n_draws=100, n_warmup=50, random_state=0
    )
    assert parsed["metrics"]["recall"]["mean"] == pytest.approx(answer["recall"].mean, abs=0.02)
    assert parsed["metrics"]["recall: cell"]["mean"] == parsed["metrics"]["recall"]["mean"]
    assert parsed["pool"]["candidates"] == len(pool)


def test_compare(run_main, files):
    ran = run_main(
        *("detect", "compare", files / "sys1.json", files / "sys2.json", *annotators(files), "-m", "ap50", *QUICK),
        *("--report", files / "report.md"),
    )
    assert ran.code == 0, ran.err
    assert "Which of “sys1” and “sys2” is better is open: the difference in AP50" in ran.out
    assert "## Objects" in (files / "report.md").read_text()


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
    assert "30 candidates are checked" in ran.out
    assert "0 objects that nobody drew were seen in 6 of 48 tiles" in ran.out
    assert "empty places" in ran.err
    assert "of the pool" not in ran.err


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
        "a report as pdf": (("evaluate", *good, "--report", files / "r.pdf"), "--report must end in"),
        "yolo without names": (("match", "--annotators", files / "yolo"), "(--class)"),
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
