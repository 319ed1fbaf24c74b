"""How to get the numbers of a report again: the command, or the calls in Python."""

import numpy as np
import pytest

import trueup as tu
from trueup.report import build_report, render_html, render_markdown
from trueup.report.sentences import setting

FILES = {"votes": {"file": "v.csv", "sha256": "ab12"}, "predictions": [{"file": "p.csv", "sha256": "cd34"}]}
FORMS = pytest.mark.parametrize("render", [render_html, render_markdown], ids=["html", "markdown"])


def run(snippet, **given):
    """The names that a snippet leaves behind; what it prints is thrown away."""
    names = given | {"print": lambda *_: None}
    exec(compile(snippet, "snippet", "exec"), names)
    return names


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
