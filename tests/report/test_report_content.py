"""What a report is about: which class is positive, which items were judged, who the labelers are."""

import re

import numpy as np
import pytest

import trueup as tu
from trueup.report import build_report, render_html, render_markdown

FORMS = pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])


@FORMS
def test_the_page_says_which_class_is_positive(plain_report, render):
    assert "Precision, recall and F1 are about the positive class “ham”." in render(plain_report)


def test_scores_and_curves_are_about_the_positive_class(two_classes):
    assert two_classes.data["about"]["positive"] == ["Recall and AUC are about the positive class “1”."]
    assert "<b>ROC</b> of the class “1”" in render_html(two_classes.data)


@pytest.fixture(scope="module")
def evaluation_with_texts(named_classes):
    labels, systems = named_classes
    items = labels.items.tolist()
    about = {"item": items, "topic": [f"topic{i % 3}" for i in items], "prompt": [f"secret {i}" for i in items]}
    return tu.evaluate(systems["new"], labels.with_items(about), method="mmse", noise="dawid-skene")


@pytest.mark.parametrize("with_text", [False, True])
def test_texts_about_items_are_shown_only_if_asked_for(evaluation_with_texts, with_text):
    data = build_report(evaluation_with_texts, with_text=with_text)
    assert data["about"]["item_columns"] == ["topic", "prompt"]
    for render in (render_html, render_markdown):
        page = render(data)
        assert "Known of the items: topic and prompt." in page
        assert "topic: topic" in page
        assert ("secret" in page) == with_text


@pytest.fixture(scope="module")
def checked():
    sim = tu.simulate.dawid_skene(n_items=120, n_labelers=5, random_state=4)
    gold = {item: sim.truth[k] for k, item in enumerate(sim.labels.items.tolist()) if k % 3 == 0}
    labels = sim.labels.with_gold(gold, drawn="random")
    system = np.where(np.arange(120) % 5, sim.truth, 1 - sim.truth)
    return tu.evaluate(system, labels, metrics=["accuracy", "recall"], n_draws=100, check_dependence=False)


def test_the_first_lines_say_the_range_the_checks_the_majority_and_what_next(checked):
    data = build_report(checked)["systems"][0]
    low, high = checked["accuracy"].interval(0.95)
    assert data["answer"]["value"] == f"{low:.2f} and {high:.2f}"
    about_checks, about_majority = data["answer"]["sentences"]
    assert (data["n_checked"], re.findall(r"\d+", about_checks)) == (40, ["40"])
    assert f"{data['metrics'][0]['dirty']:.2f}" in about_majority
    assert [int(n) for n in data["vettings"]] == [50, 100], "more than are checked already"
    half = {int(n): width / 2 for n, width in data["vettings"].items()}
    more, step = re.findall(r"(\d+) more for about ±([\d.]+)", data["next_step"])[0]
    assert (int(more), float(step)) == (10, pytest.approx(half[50], abs=0.006))
    page = render_html(build_report(checked))
    order = [page.index(words) for words in (data["answer"]["value"], about_checks, about_majority, data["next_step"])]
    assert order == sorted(order)


@FORMS
def test_how_many_checks_bring_which_width_is_on_the_page(all_models, render):
    page = render(all_models.data)
    for system in all_models.data["systems"]:
        assert re.findall(r": (\d+) for about", system["next_step"]) == ["20"]
        assert system["next_step"] in page


@pytest.mark.parametrize(
    ("call", "basis"),
    [
        ({"method": "majority"}, "votes alone, by the method majority"),
        ({"method": "ideal"}, "the truth"),
        ({"noise": "dawid-skene", "n_draws": 60, "n_warmup": 30}, "votes alone, by the noise model dawid-skene"),
    ],
    ids=["a method", "the truth", "a model"],
)
def test_what_was_named_is_what_an_answer_rests_on(named_classes, call, basis):
    labels, systems = named_classes
    more = {"truth": systems["old"]} if call.get("method") == "ideal" else {}
    evaluation = tu.evaluate(systems["new"], labels, check_dependence=False, **call, **more)
    assert evaluation.answer_in_words() == basis
    assert evaluation.next_step() is None


def test_a_page_on_120_classes_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    truth = rng.integers(120, size=150)
    votes = np.where(rng.random((150, 3)) < 0.8, truth[:, None], rng.integers(120, size=(150, 3)))
    labels = tu.Labels.from_matrix(votes, classes=list(range(120)))
    evaluation = tu.evaluate(truth, labels, noise="majority", method="majority", metrics=["accuracy"])
    evaluation.save_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(page) < 100_000, "a matrix of 14,400 cells is not drawn"
    assert "120" in page
