"""What a report is about: which class is positive, which items were judged, who the labelers are."""

import re

import numpy as np
import pytest

import trueup as tu
from trueup.report import build_report, render_html, render_markdown
from trueup.report.sentences import is_unnamed, title_for
from trueup.report.summary import positive_of

FORMS = pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])


@FORMS
def test_the_page_says_which_class_is_positive(plain_report, render):
    assert "Precision, recall and F1 are about the positive class “ham”." in render(plain_report)


def test_no_positive_class_where_none_matters(named_classes, two_systems):
    labels, systems = named_classes
    evaluation = tu.evaluate(
        systems["new"], labels, metrics=["accuracy", "recall:ham", "macro_f1"], method="mmse", noise="dawid-skene"
    )
    assert build_report(evaluation)["about"]["positive"] == []
    assert two_systems.data["about"]["positive"] == [], "seven classes"


def test_scores_and_curves_are_about_the_positive_class(two_classes):
    assert two_classes.data["about"]["positive"] == ["Recall and AUC are about the positive class “1”."]
    assert "<b>ROC</b> of the class “1”" in render_html(two_classes.data)


def test_systems_with_other_positive_classes_are_named(named_classes):
    labels, systems = named_classes
    evaluations = {
        name: tu.evaluate(
            systems[name], labels, metrics=["recall"], method="mmse", noise="dawid-skene", positive=positive
        )
        for name, positive in (("new", "ham"), ("old", "spam"))
    }
    assert build_report(evaluations)["about"]["positive"] == [
        "Recall of “new” is about the positive class “ham”.",
        "Recall of “old” is about the positive class “spam”.",
    ]


@pytest.mark.parametrize("target", ["sample", "population"])
@pytest.mark.parametrize("positive", ["ham", "spam"])
def test_the_items_to_vet_are_about_the_comparisons_positive_class(recalls, target, positive):
    comparison = recalls[target, positive]
    assert comparison.labels.classes[positive_of(comparison)] == positive
    data = build_report({}, comparison=comparison)
    assert data["about"]["positive"] == [f"Recall is about the positive class “{positive}”."]
    other = recalls[target, "spam" if positive == "ham" else "ham"]
    moves = [row["moves"] for row in data["vet_next"]["rows"]]
    assert moves != [row["moves"] for row in build_report({}, comparison=other)["vet_next"]["rows"]]
    # By hand: a truth of the positive class more changes recall by (right - recall) / number of positives.
    code = comparison.labels.classes.tolist().index(positive)
    truth = comparison.truth.posterior[:, code]
    slope = 0.0
    for sign, system in zip((1, -1), comparison.ranking[:2], strict=True):
        right = comparison.codes[comparison.systems.tolist().index(system)] == code
        recall = (truth * right).sum() / truth.sum()
        slope = slope + sign * (right - recall) / truth.sum()
    worth = np.abs(slope) * np.sqrt(truth * (1 - truth))
    assert np.allclose(moves, np.sort(worth)[::-1][: len(moves)], rtol=0.01)


@FORMS
def test_no_second_area_beside_the_auc(two_classes, render):
    page = render(two_classes.data)
    assert "area" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    if render is render_html:
        assert "leaves out how uncertain these are" in page


def test_the_items_judged_are_counted(named_classes, plain_report):
    labels, systems = named_classes
    half = {item: systems["new"][item] for item in range(60)}
    data = build_report(tu.evaluate(half, labels, missing="ignore", method="mmse", noise="dawid-skene"))
    for render in (render_html, render_markdown):
        assert "Judged on 60 of 150 items, those with a prediction." in render(data)
        assert "Judged on" not in render(plain_report)
    compared = tu.compare({"a": half, "b": systems["old"]}, labels, noise="dawid-skene", n_draws=100)
    data = build_report({}, comparison=compared)
    assert all("Judged on 60 of 150 items" in render(data) for render in (render_html, render_markdown))


def test_labelers_are_those_of_the_command(named_classes):
    labels, systems = named_classes
    evaluation = tu.evaluate(systems["new"], labels, method="mmse", noise="dawid-skene", random_state=4)
    rows = build_report(evaluation)["labelers"]["rows"]
    expected = tu.labelers.rank(labels, random_state=4)  # as `trueup labelers --seed 4` calls it
    assert [row["labeler"] for row in rows] == [str(row.labeler) for row in expected]
    assert [row["accuracy"]["mean"] for row in rows] == [row.accuracy.mean for row in expected]
    assert [tuple(row["rank"]) for row in rows] == [tuple(row.rank) for row in expected]


@FORMS
def test_a_bias_is_no_range(two_classes, render):
    page = render(two_classes.data)
    assert not re.search(r"\d to 1[ <|]", re.sub(r"\d\.\d+ to \d\.\d+", "", page))
    assert re.search(r"[+−]0\.\d\d(<small>| .)towards “[01]”", page)


def test_titles():
    assert title_for(["a", "b"], compared=True) == "Which system is better?"
    assert title_for(["a", "b"], compared=False) == "How good are these 2 systems really?"
    assert title_for(["a"], compared=False) == "How good is “a” really?"
    assert {title_for([name], compared=False) for name in ("model", "system")} == {"How good is it really?"}
    assert not is_unnamed(["model", "b"])


@FORMS
def test_a_system_without_a_name_is_not_called_model(plain_report, render):
    page = render(plain_report)
    assert "How good is it really?" in page
    assert "“model”" not in page


def test_systems_share_an_axis(two_systems):
    page = render_html(build_report(two_systems.evaluations))
    pictures = [
        re.search(rf'<svg[^>]*aria-label="Metrics of {name}.*?</svg>', page, re.DOTALL) for name in ("good", "bad")
    ]
    ticks = [re.findall(r'class="tick"[^>]*x="([^"]+)"[^>]*>([^<]+)<', picture[0]) for picture in pictures]
    ticks = [t or re.findall(r"<text[^>]*>([\d.]+)</text>", p[0]) for t, p in zip(ticks, pictures, strict=True)]
    assert ticks[0]
    assert ticks[0] == ticks[1]


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


def test_what_an_answer_rests_on_follows_its_first_line(all_models, two_systems):
    first = all_models.data["systems"][0]
    assert first["n_checked"] == 0
    assert "alone" in first["answer"]["sentences"][0]
    named = two_systems.data["systems"][0]
    assert "dawid-skene" in named["answer"]["sentences"][0]
    assert named["next_step"] is None, "a model that is named says nothing of checks"


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


def test_what_next_is_about_the_metric_that_is_shown_first(checked):
    recall = tu.evaluate(checked.predictions, checked.labels, metrics=["recall"], n_draws=100, check_dependence=False)
    assert "recall" in recall.next_step()
    low, high = recall["recall"].interval(0.95)
    least = min(float(half) for half in re.findall(r"±([\d.]+)", recall.next_step()))
    assert 0 < least < (high - low) / 2


def test_advice_names_the_metric_of_scores_that_is_shown(two_classes):
    labels, scores = two_classes.evaluations.labels, two_classes.evaluations.scores
    system = tu.Predictions.from_scores(scores, items=labels.items, threshold=1.0)
    data = build_report(tu.evaluate(system, labels, metrics=["auc"], n_draws=60, check_dependence=False))
    assert data["vet_next"]["about"].startswith("AUC")
    assert "auc" in data["systems"][0]["next_step"]


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
