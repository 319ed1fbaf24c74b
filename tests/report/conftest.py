"""Evaluations that the tests of the report share; each is made once."""

import warnings
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import trueup as tu
from trueup.labelers import rank
from trueup.noise import effective_labelers
from trueup.report import build_report

FAST = {"noise": "dawid-skene", "n_draws": 200, "n_warmup": 100}
HOSTILE_CLASSES = ["<script>alert(1)</script>", "=cmd('calc')!A1"]
HOSTILE_LABELERS = [
    "quote\"and'",
    "line\nbreak",
    "<img src=x onerror=alert(1)>",
    "x" * 300,
    "| a | [b](javascript:c) `d`",
]


def case(evaluations, comparison=None, **options):
    data = build_report(evaluations, comparison=comparison, **options)
    return SimpleNamespace(evaluations=evaluations, comparison=comparison, data=data)


def kept(function):
    """A function that answers the same question once, and gives each asker the warnings of the answer."""

    @cache
    def answer(*question):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            *given, named = question
            return function(*given, **dict(named)), caught

    def asked(*given, **named):
        found, caught = answer(*given, tuple(named.items()))
        for warning in caught:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return found

    return asked


# Of labels, models and numbers alone, by which object they are: the tests of a report judge the same few panels.
PANELS_JUDGED_ONCE = {
    name: kept(function) for name, function in (("effective_labelers", effective_labelers), ("rank", rank))
}


@pytest.fixture(scope="module", autouse=True)
def same_panels_are_judged_once() -> Iterator[None]:
    """The same labels have the same answer, which is most of the time that a report takes."""
    with pytest.MonkeyPatch.context() as patch:
        for name, function in PANELS_JUDGED_ONCE.items():
            patch.setattr(f"trueup.report.summary.{name}", function)
        yield


@pytest.fixture(scope="session")
def two_classes():
    """One system with scores."""
    sim = tu.simulate.dawid_skene(n_items=250, n_labelers=5, accuracy=[0.9, 0.85, 0.8, 0.75, 0.6], random_state=0)
    scores = np.random.default_rng(0).normal(size=250) + 2 * np.asarray(sim.truth)
    system = tu.Predictions.from_scores(scores, items=sim.labels.items, threshold=1.0)
    evaluation = tu.evaluate(system, sim.labels, metrics=["accuracy", "recall", "auc"], **FAST)
    return case(evaluation, settings={"votes": "votes.csv", "sha256": {"votes.csv": "ab12"}})


@pytest.fixture(scope="session")
def two_systems():
    """Seven classes, two systems and their comparison."""
    sim = tu.simulate.dawid_skene(n_items=210, n_labelers=6, n_classes=7, random_state=1)
    truth = np.asarray(sim.truth)
    rng = np.random.default_rng(1)
    good, bad = (np.where(rng.random(210) < p, truth, rng.integers(0, 7, 210)) for p in (0.9, 0.6))
    evaluations = {"good": tu.evaluate(good, sim.labels, **FAST), "bad": tu.evaluate(bad, sim.labels, **FAST)}
    compared = tu.compare({"good": good, "bad": bad}, sim.labels, noise="dawid-skene", n_draws=300)
    return case(evaluations, compared, title="Good and bad")


@pytest.fixture(scope="session")
def hostile():
    """Names that a page must not take for its own code."""
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=5, random_state=2)
    item, labeler, answer, _ = sim.labels.vote_table()
    names, who = np.array(HOSTILE_CLASSES, dtype=object), np.array(HOSTILE_LABELERS, dtype=object)
    items = np.array([f"</svg><b>{k}" for k in range(60)], dtype=object)
    labels = tu.Labels.from_frame({"item": items[item], "labeler": who[labeler], "label": names[answer]})
    truth = np.asarray(sim.truth)
    systems = {
        name: {items[k]: names[truth[k] if k % step else 1 - truth[k]] for k in range(60)}
        for name, step in (("</title><script>alert(2)</script>", 7), ("y" * 120, 3))
    }
    evaluations = {name: tu.evaluate(system, labels, **FAST) for name, system in systems.items()}
    compared = tu.compare(systems, labels, noise="dawid-skene", n_draws=300)
    settings = {"votes": "<b>```.csv", '"><x': "y\nz", "nothing": None, "list": ["<i>", 1.5]}
    settings["command"] = "trueup compare '<b>```.csv' --report '</code></pre><script>'"
    return case(evaluations, compared, title="<script>alert(3)</script>", settings=settings)


@pytest.fixture(scope="session")
def comparison_alone(two_systems):
    return case({}, two_systems.comparison)


@pytest.fixture(scope="session")
def over_time():
    """A monitor with an alarm, a judge whose name is code, and a batch without an estimate."""
    rng = np.random.default_rng(5)
    watch = tu.Monitor(baseline=3)
    for k in range(6):
        truth = rng.integers(2, size=100)
        said = truth[:, None] ^ (rng.random((100, 4)) > [0.9, 0.9, 0.9, 0.9 if k < 5 else 0.2])
        labels = tu.Labels.from_matrix(said[:, :3], labelers=["ann", "<script>alert(1)</script>", "x" * 80])
        gold = {j: int(truth[j]) for j in range(10)}
        watch.add(labels.with_gold(gold, drawn="random"), said[:, 3], when=f"2026-11-10T1{k}:30")
    data = watch.report()
    for row in data["course"][1:]:
        row.update(mean=0.8, low=0.7, high=0.9, basis="gold")
    return SimpleNamespace(data=data)


@pytest.fixture(scope="session")
def rates():
    """Shares of three groups, one of which has a name that is code."""
    sim = tu.simulate.dawid_skene(n_items=150, n_labelers=4, random_state=5)
    checked = {item: sim.truth[item] for item in range(0, 150, 5)}
    groups = {"item": list(range(150)), "system": ["alpha", "<script>alert(1)</script>", "x" * 80] * 50}
    labels = sim.labels.with_items(groups).with_gold(checked, drawn="random")
    answer = tu.share(labels, of=1, by="system", n_draws=200, check_dependence=False)
    return SimpleNamespace(answer=answer, data=answer.report(title="Rates"))


@pytest.fixture(scope="session")
def contests():
    """Preferences among three systems that are close."""
    pairs = tu.simulate.pairs(n_contests=120, n_systems=3, random_state=1).pairs
    answer = tu.preferences(pairs, n_draws=400, check_dependence=False)
    return SimpleNamespace(answer=answer, data=answer.report())


@pytest.fixture(scope="session")
def all_models():
    """Two systems for which no noise model was named, on votes alone."""
    sim = tu.simulate.dawid_skene(n_items=120, n_labelers=5, random_state=4)
    truth = np.asarray(sim.truth)
    systems = {"good": np.where(np.arange(120) % 12, truth, 1 - truth), "bad": np.where(np.arange(120) % 3, truth, 0)}
    few = {"check_dependence": False}
    metrics = ["accuracy", "recall"]
    evaluations = {
        name: tu.evaluate(one, sim.labels, metrics=metrics, n_draws=60, **few) for name, one in systems.items()
    }
    return case(evaluations, tu.compare(systems, sim.labels, n_draws=200, **few))


@pytest.fixture(params=["two_classes", "two_systems", "hostile", "comparison_alone", "all_models", "rates", "contests"])
def any_report(request):
    return request.getfixturevalue(request.param).data


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def recalls(named_classes):
    labels, systems = named_classes
    return {
        (target, positive): tu.compare(
            systems, labels, metric="recall", positive=positive, target=target, noise="dawid-skene", n_draws=200
        )
        for target in ("sample", "population")
        for positive in ("ham", "spam")
    }


@pytest.fixture(scope="session")
def plain_report(named_classes):
    """Of one system that nobody has named, with "ham" as the positive class."""
    labels, systems = named_classes
    evaluation = tu.evaluate(systems["new"], labels, method="mmse", noise="dawid-skene", positive="ham")
    return build_report({"model": evaluation})
