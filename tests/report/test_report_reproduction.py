"""How to get the numbers of a report again: the command, or the calls in Python."""

import numpy as np
import pytest

import trueup as tu
from trueup.report import build_report, render_html, render_markdown

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


FEW = {"noise": "dawid-skene", "n_draws": 60, "n_warmup": 30}
CALLS = {
    "defaults but the method": {"method": "mmse"},
    "a level, a class, a seed": {"method": "mmse", "level": 0.9, "positive": "ham", "random_state": 7},
    "options of the sampler": {**FEW, "n_chains": 2, "check_dependence": False},
    "one metric by a name": {**FEW, "metrics": "macro_f1"},
    "the population": {**FEW, "target": "population", "metrics": ["recall", "f0.5"]},
    "items without predictions": {"method": "majority", "missing": "ignore"},
    "options of a method": {"method": "mmse", "algorithm": "sampling", "n_draws": 300, "metrics": ("accuracy",)},
    "a seed that was drawn": {**FEW, "random_state": None},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_the_snippet_gives_the_numbers_of_one_evaluation(named_classes, call):
    labels, systems = named_classes
    some = {item: systems["new"][k] for k, item in enumerate(labels.items.tolist()) if k or "missing" not in call}
    evaluation = tu.evaluate(some, labels, **call)
    snippet = build_report(evaluation, settings={"votes": "votes.csv"})["reproduction"]["snippet"]
    again = run(snippet, labels=labels, predictions=some)["evaluation"]
    assert again.settings.arguments.keys() == evaluation.settings.arguments.keys()
    assert {name: again[name].mean for name in again.metrics} == {
        name: evaluation[name].mean for name in evaluation.metrics
    }
    assert again.level == evaluation.level
    assert "read_labels" not in snippet, "how a file was read is not known"
    assert all(f"    {name}=" in snippet for name in call), snippet


@pytest.mark.parametrize(
    "call",
    [
        {"metric": "recall", "positive": "ham"},
        {"target": "population", "items": "own", "unknown": "error", "level": 0.8},
        {"noise": "dawid-skene", "n_chains": 2, "n_warmup": 40, "random_state": 5, "check_dependence": False},
    ],
    ids=["metric", "target", "sampler"],
)
def test_the_snippet_gives_the_numbers_of_all_systems_and_the_comparison(named_classes, call):
    labels, systems = named_classes
    evaluations = {
        name: tu.evaluate(system, labels, method="mmse", noise="dawid-skene", metrics=["recall"], positive="ham")
        for name, system in systems.items()
    }
    comparison = tu.compare(systems, labels, n_draws=200, **call)
    snippet = build_report(evaluations, comparison=comparison)["reproduction"]["snippet"]
    again = run(snippet, labels=labels, systems=systems)
    for name, evaluation in evaluations.items():
        assert again["evaluations"][name]["recall"].mean == evaluation["recall"].mean
    assert np.array_equal(again["comparison"].draws, comparison.draws)


def test_objects_have_to_be_handed_over_again(named_classes):
    labels, systems = named_classes

    def hits(truth, said):
        return float((truth == said).mean())

    model = tu.noise.DawidSkene().fit(labels)
    call = {"metrics": {"accuracy": "accuracy", "rate of hits": hits}, "method": "mmse", "noise": model}
    evaluation = tu.evaluate(systems["new"], labels, **call)
    how = build_report(evaluation)["reproduction"]
    assert "metrics={'accuracy': 'accuracy', 'rate of hits': hits},  # handed over again: hits" in how["snippet"]
    assert "noise=noise,  # handed over again: noise, DawidSkene" in how["snippet"]
    assert "has to be handed over again" in how["words"]
    again = run(how["snippet"], labels=labels, predictions=systems["new"], hits=hits, noise=model)["evaluation"]
    assert again["rate of hits"].mean == evaluation["rate of hits"].mean


def test_the_seed_is_that_of_the_answer(named_classes, recalls):
    labels, systems = named_classes
    evaluation = tu.evaluate(systems["new"], labels, method="mmse", noise="dawid-skene", random_state=None)
    how = build_report(evaluation)["reproduction"]
    assert how["seed"] == evaluation.seed
    assert f"random_state={evaluation.seed}," in how["snippet"]
    assert build_report({}, comparison=recalls["sample", "ham"])["reproduction"]["seed"] == 0
