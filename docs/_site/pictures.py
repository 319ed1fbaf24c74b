"""Draw the pictures of docs/pictures: ``python docs/_site/pictures.py [name …]``.

Every number in them is computed here with trueup itself, on the data of the page that shows the picture.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import trueup as tu

sys.path.insert(0, str(Path(__file__).parent))
from svg import Chart, Interval, Line, flow, rows

FOLDER = Path(__file__).parents[1] / "pictures"


def first() -> str:
    """The first example of the home page: three intervals and the true accuracy."""
    data = tu.simulate.dependent(n_items=300, n_labelers=5, families=[[0, 1, 2]], random_state=3)
    sample = tu.labelers.draw_sample(data.labels, 60, random_state=1)
    answers = {item: int(data.truth[item]) for item in sample.items.tolist()}
    checked = data.labels.with_gold(answers, drawn=sample.drawn)
    answered = (
        ("orange", "majority as truth", tu.evaluate(data.predictions, data.labels, method="majority")),
        ("blue", "trueup, votes alone", tu.evaluate(data.predictions, data.labels)),
        (
            "blue",
            "trueup, 60 items checked",
            tu.evaluate(data.predictions, checked),
        ),
    )
    ends = [(name, *ev["accuracy"].interval(0.95), colour) for colour, name, ev in answered]
    intervals = [Interval(name, low, high, data.accuracy, colour=colour) for name, low, high, colour in ends]
    told = "; ".join(f"{row.name} {row.low:.2f} to {row.high:.2f}" for row in intervals)
    return rows(
        f"95% intervals of a classifier's accuracy: {told}. The true accuracy is {data.accuracy:.2f}.",
        f"accuracy; the line is the true one, {data.accuracy:.2f}",
        intervals,
        (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    )


def judges() -> str:
    """The pass rates on the page of judges, from the code of that page."""
    page: dict[str, Any] = {}
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (FOLDER.parent / "judges.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        while "rates" not in page:
            exec(blocks.pop(0), page)
    intervals = []
    for name in page["systems"]:
        here = page["of"] == name
        low, high = page["rates"][name].interval(0.95)
        true = np.mean([page["truth"][item] == "pass" for item in page["labels"].items[here]])
        intervals.append(Interval(name, low, high, float(true), float(np.mean(page["majority"][here] == "pass"))))
    told = "; ".join(f"{row.words}, majority {row.majority:.2f}" for row in intervals)
    return rows(
        f"True pass rates of three systems with 95% intervals from verdicts and 40 checks: {told}.",
        "share of outputs that pass; line: the truth, ring: majority of judges",
        intervals,
        (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    )


def rates() -> str:
    """True error against apparent error for labels that are 5% wrong."""
    apparent = np.linspace(0.05, 0.3, 26)
    value = [tu.rates.true_error(apparent=float(a), mislabeling=0.05, n=10**6).raw for a in apparent]
    bounds = [tu.rates.error_bounds(apparent=float(a), mislabeling=0.05, dependence="any") for a in apparent]
    low, high = zip(*bounds, strict=True)
    return Chart(
        "True error against apparent error for labels that are 5% wrong: a line for independent errors, inside a band "
        "five points wide on either side of the apparent error for errors that may come together.",
        "apparent error: labels and classifier disagree",
        "true error",
        (0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
        (0, 0.1, 0.2, 0.3, 0.4),
        (
            Line("orange", "possible if errors may come together", apparent, low=low, high=high),
            Line("blue", "if labels and classifier err independently", apparent, value),
        ),
    ).draw()


def votes() -> str:
    """What each further vote on an item adds, in bits."""
    number = range(1, 10)
    lines = [
        Line(
            colour,
            f"labelers who err on {error:.0%}",
            number,
            tu.labelers.marginal_value(error=error, max_votes=9).gains,
        )
        for colour, error in (("blue", 0.1), ("orange", 0.2), ("green", 0.3))
    ]
    return Chart(
        "Bits that the first to the ninth vote on an item add: the first adds most; good labelers leave little to add.",
        "vote on an item",
        "bits it adds",
        (1, 2, 3, 4, 5, 6, 7, 8, 9),
        (0, 0.2, 0.4, 0.6),
        lines,
    ).draw()


def active() -> str:
    """How wide the interval is after so many answers: chosen items with votes, and random items alone."""
    number, widths = [20, 50, 100, 200], {"vetted-only": [], "rectified": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = (rng.random(600) < 0.4).astype(int)
        said = np.where(rng.random((600, 4)) < [0.85, 0.8, 0.75, 0.9], truth[:, None], 1 - truth[:, None])
        labels = tu.Labels.from_matrix(said[:, :3], classes=[0, 1])
        for estimator, strategy in (("vetted-only", "random"), ("rectified", "propensity")):
            test = tu.ActiveTest(said[:, 3], labels, strategy=strategy, estimator=estimator, random_state=seed)
            ends = []
            for n in number:
                test.tell({item: int(truth[item]) for item in test.ask(n - test.n_vetted)})
                ends.append(np.ptp(test.estimate().interval(0.95)))
            widths[estimator].append(ends)
    mean = {name: np.mean(values, axis=0) for name, values in widths.items()}
    return Chart(
        "Width of the 95% interval of an accuracy after 20, 50, 100 and 200 checked items, mean of six simulations. "
        f"Random items alone: {_list(mean['vetted-only'])}. ActiveTest: {_list(mean['rectified'])}.",
        "checked items",
        "width of the interval",
        (20, 50, 100, 150, 200),
        (0, 0.1, 0.2, 0.3, 0.4),
        (
            Line("orange", "random items, answers alone", number, mean["vetted-only"]),
            Line("blue", "ActiveTest: items drawn by propensity, votes corrected", number, mean["rectified"]),
        ),
    ).draw()


def _list(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def cleaning() -> str:
    """Accuracy on test items as training labels are cleaned, mean of eight simulations."""
    number, lines = list(range(0, 61, 5)), []
    noise = tu.noise.Confusion([[0.6, 0.4], [0.1, 0.9]])
    for colour, name, strategy in (("orange", "labels drawn at random", "random"), ("blue", "CleaningAdvisor", "emi")):
        curves = []
        for seed in range(8):
            sim = tu.simulate.tars(n_items=900, means=[[0, 0], [3, 0]], noise_rates=(0.4, 0.1), random_state=seed)
            labels = sim.labels.select(items=range(600))
            advisor = tu.CleaningAdvisor(
                LogisticRegression(), sim.features[:600], labels, noise=noise, strategy=strategy, random_state=0
            )
            scores = [advisor.model_.score(sim.features[600:], sim.truth[600:])]
            for _ in number[1:]:
                advisor.tell({item: int(sim.truth[item]) for item in advisor.ask(5)})
                scores.append(advisor.model_.score(sim.features[600:], sim.truth[600:]))
            curves.append(scores)
        lines.append(Line(colour, name, number, np.mean(curves, axis=0)))
    return Chart(
        "Accuracy on test items after 0 to 60 cleaned labels of 600, mean of eight simulations: labels that the "
        "advisor chooses help several times as much as labels drawn at random.",
        "cleaned labels",
        "accuracy on test items",
        (0, 10, 20, 30, 40, 50, 60),
        (0.75, 0.8, 0.85, 0.9, 0.95),
        lines,
    ).draw()


def drift() -> str:
    """Agreement of a system with most judges, day by day, and the days of the alarms."""
    rng = np.random.default_rng(3)
    watch, agreed = tu.Monitor(), []
    for day in range(1, 29):
        truth = rng.integers(2, size=200)
        is_right = rng.random((200, 6)) < [0.9] * 5 + [0.85 if day <= 14 else 0.7]
        said = np.where(is_right, truth[:, None], 1 - truth[:, None])
        labels = tu.Labels.from_matrix(said[:, :5], labelers=["ada", "bo", "cy", "dan", "eve"])
        checked = rng.choice(200, 10, replace=False)
        gold = {int(k): int(truth[k]) for k in checked}
        watch.add(labels.with_gold(gold, drawn="random"), said[:, 5], when=f"2026-11-{day:02}")
        agreed.append(float((said[:, 5] == (said[:, :5].sum(axis=1) > 2)).mean()))
    days = {alarm.kind: int(alarm.when[-2:]) for alarm in reversed(watch.alarms)}
    return Chart(
        "Share of 200 items a day on which the system and most judges agree: about 0.84 for two weeks, then 0.68. An "
        f"alarm that something changed comes on {days['something']}, that it is the system on {days['the system']}.",
        "day",
        "agreement with most judges",
        (1, 7, 14, 21, 28),
        (0.6, 0.7, 0.8, 0.9),
        (Line("blue", "system and most judges agree", range(1, 29), agreed),),
        marks=(("something changed", days["something"]), ("the system", days["the system"])),
    ).draw()


def votes_to_estimate() -> str:
    """How votes become an estimate."""
    return flow(
        "Votes say how likely each class of an item is. Together with predictions and checked items this gives the "
        "probabilities of the truth; a metric of the truth is an estimate.",
        (
            (20, 20, 110, "votes"),
            (165, 20, 130, "what they say"),
            (20, 80, 275, "predictions, scores"),
            (20, 140, 275, "checked items"),
            (345, 80, 110, "P(truth)"),
            (485, 80, 130, "metric: Estimate"),
        ),
        ((130, 38, 164, 38), (295, 38, 344, 88), (295, 98, 344, 98), (295, 158, 344, 108), (455, 98, 484, 98)),
    )


PICTURES: dict[str, Callable[[], str]] = {
    "first": first,
    "judges": judges,
    "rates": rates,
    "votes": votes,
    "active": active,
    "cleaning": cleaning,
    "drift": drift,
    "flow": votes_to_estimate,
}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")
