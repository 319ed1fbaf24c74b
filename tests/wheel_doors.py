"""One call of every door with nothing installed but what the core needs; run by the Python of a bare installation.

    python wheel_doors.py FOLDER     the folder that trueup must have been installed to

It prints the doors that it went through.
"""


def main(folder: str) -> list[str]:
    """Go through every door; the names of what was called."""
    import importlib.util
    from pathlib import Path

    import numpy as np
    from sklearn.linear_model import LogisticRegression

    import trueup as tu

    assert Path(tu.__file__).is_relative_to(folder), f"{tu.__file__} is not the wheel's"
    extras = [name for name in ("numba", "matplotlib", "polars", "pandas", "torch") if importlib.util.find_spec(name)]
    assert not extras, f"{extras} are no part of the core"
    doors = []

    def passed(name: str, works: bool) -> None:
        assert works, name
        doors.append(name)

    quick = {"noise": "dawid-skene", "n_draws": 100, "n_warmup": 50, "random_state": 0}
    sim = tu.simulate.dawid_skene(n_items=120, n_labelers=5, random_state=0)
    truth = np.asarray(sim.truth)
    rng = np.random.default_rng(0)
    good, bad = (np.where(rng.random(120) < accuracy, truth, 1 - truth) for accuracy in (0.9, 0.7))
    scores = rng.normal(size=120) + 2.0 * truth

    evaluation = tu.evaluate(good, sim.labels, metrics=["accuracy"], **quick)
    passed("evaluate", 0.7 < evaluation["accuracy"].mean < 1)
    passed("compare", tu.compare({"good": good, "bad": bad}, sim.labels, **quick).ranking == ["good", "bad"])
    passed("auc", 0.7 < tu.auc(scores, sim.labels, **quick).mean < 1)

    test = tu.ActiveTest(good, sim.labels, noise="dawid-skene", random_state=0)
    test.tell({item: int(truth[item]) for item in test.ask(5)})
    passed("ActiveTest", 0.7 < test.estimate().mean < 1)

    X = scores[:, None]
    advisor = tu.CleaningAdvisor(LogisticRegression(), X, sim.labels, random_state=0)
    advisor.tell({item: int(truth[item]) for item in advisor.ask(1)})
    passed("CleaningAdvisor", advisor.n_cleaned == 1)
    classifier = tu.training.NoisyLabelClassifier(LogisticRegression()).fit(X, sim.labels)
    passed("NoisyLabelClassifier", classifier.score(X, truth) > 0.7)

    passed(
        "labelers.rank",
        len(tu.labelers.rank(sim.labels, noise="dawid-skene", n_draws=50, random_state=0).labelers) == 5,
    )
    passed("plan", tu.plan(budget=100, vote_price=0.1, labeler_accuracy=0.8, error=0.1).n_items > 0)

    votes = Path("votes.csv")
    tu.write_labels(sim.labels, votes)
    passed("read_labels", tu.read_labels(votes).n_votes == sim.labels.n_votes)
    # Of one labeler: a page on several draws the skill of each, which takes a minute without compiled kernels.
    alone = sim.labels.select(labelers=sim.labels.labelers[:1].tolist())
    tu.evaluate(good, alone, metrics=["accuracy"], **quick).save_html("report.html")
    passed("report", "accuracy" in Path("report.html").read_text(encoding="utf-8"))
    return doors


if __name__ == "__main__":
    import sys

    sys.stdout.write("\n".join(main(sys.argv[1])) + "\n")
