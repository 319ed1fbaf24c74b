"""What a report says of itself: how to get its numbers again, which class and which items they are about."""

import re

import numpy as np
import pytest

import trueup as tu
from trueup.report import build_report, render_html, render_markdown
from trueup.report.compared import positive_of
from trueup.report.sentences import is_unnamed, setting, signed, title_for

FILES = {"votes": {"file": "v.csv", "sha256": "ab12"}, "predictions": [{"file": "p.csv", "sha256": "cd34"}]}
FORMS = pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])


@pytest.fixture(scope="module")
def named_classes():
    """Two systems on classes with names; the positive class is not the default one."""
    sim = tu.simulate.dawid_skene(n_items=150, n_labelers=5, random_state=3)
    names, truth = np.array(["ham", "spam"]), np.asarray(sim.truth)
    item, labeler, answer, _ = sim.labels.vote_table()
    labels = tu.Labels.from_frame({"item": item, "labeler": labeler, "label": names[answer]})
    rng = np.random.default_rng(3)
    systems = {}
    for name, rates in (("new", (0.95, 0.8)), ("old", (0.7, 0.9))):
        right = rng.random(150) < np.array(rates)[truth]
        systems[name] = names[np.where(right, truth, 1 - truth)]
    return labels, systems


@pytest.fixture(scope="module")
def recalls(named_classes):
    labels, systems = named_classes
    return {
        (target, positive): tu.compare(
            systems, labels, metric="recall", positive=positive, target=target, noise="dawid-skene", n_draws=200
        )
        for target in ("sample", "population")
        for positive in ("ham", "spam")
    }


@pytest.fixture(scope="module")
def plain_report(named_classes):
    """Of one system that nobody has named, with "ham" as the positive class."""
    labels, systems = named_classes
    evaluation = tu.evaluate(systems["new"], labels, method="mmse", noise="dawid-skene", positive="ham")
    return build_report({"model": evaluation})


def run(snippet, **given):
    """The names that a snippet leaves behind; what it prints is thrown away."""
    names = given | {"print": lambda *_: None}
    exec(compile(snippet, "snippet", "exec"), names)
    return names


# ---------------------------------------------------------------- the same numbers again


@FORMS
def test_a_command_is_shown_in_place_of_python(two_systems, render):
    command = "trueup evaluate 'my votes.csv' p.csv --gold g.csv --positive ham --draws 500"
    data = build_report(two_systems.evaluations, settings={**FILES, "command": command})
    assert data["reproduction"]["command"] == command
    assert data["reproduction"]["snippet"] is None
    page = render(data).replace("&#39;", "'")
    assert command in page
    assert page.count("trueup evaluate") == 1, "once, not among the settings too"
    assert "import trueup" not in page


def test_the_snippet_gives_the_numbers_of_one_evaluation(named_classes):
    labels, systems = named_classes
    evaluation = tu.evaluate(
        systems["new"], labels, method="mmse", noise="dawid-skene", level=0.9, positive="ham", random_state=7
    )
    data = build_report(evaluation, settings={"votes": "votes.csv"})
    snippet = data["reproduction"]["snippet"]
    again = run(snippet, labels=labels, predictions=systems["new"])["evaluation"]
    assert again.metrics == evaluation.metrics
    assert again.level == 0.9
    assert all(again[name].mean == evaluation[name].mean for name in again.metrics)
    assert "read_labels" not in snippet, "how a file was read is not known"


def test_the_snippet_gives_the_numbers_of_all_systems_and_the_comparison(named_classes, recalls):
    labels, systems = named_classes
    evaluations = {
        name: tu.evaluate(system, labels, method="mmse", noise="dawid-skene", metrics=["recall"], positive="ham")
        for name, system in systems.items()
    }
    data = build_report(evaluations, comparison=recalls["sample", "ham"])
    # An answer does not keep the number of draws; the page says that it has to be given as before.
    snippet = data["reproduction"]["snippet"]
    assert "n_draws" not in snippet
    before, call, after = snippet.partition("tu.compare(\n    systems,\n    labels,\n")
    snippet = f"{before}{call}    n_draws=200,\n{after}"
    found = run(snippet, labels=labels, systems=systems)
    for name, evaluation in evaluations.items():
        assert found["evaluations"][name]["recall"].mean == evaluation["recall"].mean
    assert np.array_equal(found["comparison"].draws, recalls["sample", "ham"].draws)


def test_systems_with_other_settings_have_their_own_calls(named_classes):
    labels, systems = named_classes
    evaluations = {
        "new": tu.evaluate(systems["new"], labels, method="mmse", noise="dawid-skene"),
        "old": tu.evaluate(systems["old"], labels, method="majority", level=0.8, random_state=None),
    }
    found = run(build_report(evaluations)["reproduction"]["snippet"], labels=labels, systems=systems)["evaluations"]
    assert [found[name].method for name in ("new", "old")] == ["mmse", "majority"]
    assert found["old"].level == 0.8
    assert found["new"]["accuracy"].mean == evaluations["new"]["accuracy"].mean


def test_what_is_not_kept_is_not_made_up(named_classes, recalls):
    labels, systems = named_classes

    def hits(truth, said):
        return float((truth == said).mean())

    model = tu.noise.DawidSkene().fit(labels)
    evaluation = tu.evaluate(
        systems["new"], labels, metrics=["accuracy", hits], method="mmse", noise=model, random_state=None
    )
    how = build_report(evaluation)["reproduction"]
    assert "metrics=['accuracy', hits],  # your function hits" in how["snippet"]
    assert "noise=noise,  # the model that was handed over" in how["snippet"]
    assert "random_state=None," in how["snippet"]
    assert "n_draws" in how["words"]
    alone = build_report({}, comparison=recalls["sample", "ham"])["reproduction"]
    assert "random_state=" not in alone["snippet"]
    assert alone["seed_words"].startswith("as in the call")
    assert "random_state=5," in build_report({}, comparison=recalls["sample", "ham"], seed=5)["reproduction"]["snippet"]


@FORMS
def test_files_are_shown_in_words(two_systems, render):
    page = render(build_report(two_systems.evaluations, settings=FILES))
    assert "v.csv (sha256 ab12)" in page
    assert "p.csv (sha256 cd34)" in page
    assert "{'file'" not in page.replace("&#39;", "'")


def test_settings_in_words():
    assert setting([{"file": "a.csv", "sha256": None}, {"file": "b.csv", "sha256": "12"}]) == "a.csv, b.csv (sha256 12)"
    assert setting({"a.csv": "ab", "n": [1, 2]}) == "a.csv: ab; n: 1, 2"
    assert (setting(None), setting([]), setting(0.5)) == ("–", "–", "0.5")


# ---------------------------------------------------------------- the positive class


@FORMS
def test_the_page_says_which_class_is_positive(plain_report, render):
    assert "Precision, recall and F1 are about the positive class, “ham”." in render(plain_report)


def test_no_positive_class_where_none_matters(named_classes, two_systems):
    labels, systems = named_classes
    evaluation = tu.evaluate(
        systems["new"], labels, metrics=["accuracy", "recall:ham", "macro_f1"], method="mmse", noise="dawid-skene"
    )
    assert build_report(evaluation)["about"]["positive"] == []
    assert two_systems.data["about"]["positive"] == [], "seven classes"


def test_scores_and_curves_are_about_the_positive_class(two_classes):
    assert two_classes.data["about"]["positive"] == ["Recall and AUC are about the positive class, “1”."]
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
        "Recall of “new” is about the positive class, “ham”.",
        "Recall of “old” is about the positive class, “spam”.",
    ]


@pytest.mark.parametrize("target", ["sample", "population"])
@pytest.mark.parametrize("positive", ["ham", "spam"])
def test_the_items_to_vet_are_about_the_comparisons_positive_class(recalls, target, positive):
    comparison = recalls[target, positive]
    assert comparison.labels.classes[positive_of(comparison, {})] == positive
    data = build_report({}, comparison=comparison)
    assert data["about"]["positive"] == [f"Recall is about the positive class, “{positive}”."]
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


# ---------------------------------------------------------------- curves, items, labelers, titles


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
    assert re.search(r"[+−]0\.\d\d(<small>| )towards “[01]”", page)


def test_signs():
    assert (signed(0.071), signed(-0.5), signed(0.0), signed(0.001), signed(None)) == (
        "+0.07",
        "−0.50",
        "0.00",
        "0.00",
        "–",
    )


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
