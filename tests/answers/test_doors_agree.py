"""Every door gives scikit-learn's number where all truth is known, whatever the order of the classes and the metric."""

import json

import numpy as np
import pytest
from sklearn import metrics as sklearn_metrics
from sklearn.linear_model import LogisticRegression

import trueup as tu
from trueup.cli import main
from trueup.exceptions import InvalidParameter
from trueup.metrics import list_metrics, list_score_metrics

CLASSES = ["yes", "no"]  # not in alphabetical order: the positive class is the last one, "no"
N_ITEMS = 80
FAST = {"noise": "dawid-skene", "n_draws": 40, "n_warmup": 20, "check_dependence": False}
POSITIVES = [None, "yes"]  # the last one, "no", where none is named
OF_COUNTS = list_metrics("counts")
OF_SCORES = list_score_metrics()


class Case:
    """Votes, truth, and a system with features, probabilities and classes; all truth is known."""

    def __init__(self):
        rng = np.random.default_rng(4)
        code = (rng.random(N_ITEMS) < 0.3).astype(int)
        names = np.array(CLASSES, dtype=object)
        self.truth = names[code]
        self.items = [f"item {k}" for k in range(N_ITEMS)]
        self.votes = names[np.where(rng.random((N_ITEMS, 3)) < 0.75, code[:, None], 1 - code[:, None])]
        labels = tu.Labels.from_matrix(self.votes, items=self.items, classes=CLASSES)
        self.labels = labels.with_gold(dict(zip(self.items, self.truth, strict=True)))
        self.X = (code + rng.normal(size=N_ITEMS))[:, None]
        self.model = LogisticRegression().fit(self.X, self.truth)
        self.of_no = self.model.predict_proba(self.X)[:, self.model.classes_.tolist().index("no")]
        self.predictions = names[(self.of_no > 0.5).astype(int)]
        self.probabilities = np.stack([1 - self.of_no, self.of_no], axis=1)
        self.other = names[np.where(rng.random(N_ITEMS) < 0.7, code, 1 - code)]


@pytest.fixture(scope="module")
def case():
    return Case()


def by_class(truth, predictions, name):
    """A metric of each class, in the order of CLASSES; specificity is the recall of the complement."""
    options = {"labels": CLASSES, "average": None, "zero_division": np.nan}
    if name in ("specificity", "false_alarm_rate"):
        tn, fp = sklearn_metrics.multilabel_confusion_matrix(truth, predictions, labels=CLASSES)[:, 0].T
        return fp / (tn + fp) if name == "false_alarm_rate" else tn / (tn + fp)
    if name == "prevalence":
        return np.array([(truth == c).mean() for c in CLASSES])
    if name.startswith("f"):
        return sklearn_metrics.fbeta_score(truth, predictions, beta=float(name[1:]), **options)
    return getattr(sklearn_metrics, f"{name}_score")(truth, predictions, **options)


def averaged(truth, predictions, how, name):
    if how == "macro":
        return by_class(truth, predictions, name).mean()
    if how == "weighted":
        return by_class(truth, predictions, name) @ [(truth == c).mean() for c in CLASSES]
    accuracy = sklearn_metrics.accuracy_score(truth, predictions)  # of two classes each error is one of each class
    return 1 - accuracy if name == "false_alarm_rate" else accuracy


def of_counts(truth, predictions, name, positive):
    """The number of scikit-learn for a metric of counts."""
    whole = {
        "accuracy": sklearn_metrics.accuracy_score,
        "error_rate": sklearn_metrics.zero_one_loss,
        "balanced_accuracy": sklearn_metrics.balanced_accuracy_score,
        "mcc": sklearn_metrics.matthews_corrcoef,
        "kappa": sklearn_metrics.cohen_kappa_score,
        "quadratic_kappa": lambda y, p: sklearn_metrics.cohen_kappa_score(y, p, weights="quadratic"),
        "mae": sklearn_metrics.zero_one_loss,  # two classes are one step apart
    }
    truth, predictions = truth.astype(str), predictions.astype(str)
    if name in whole:
        return whole[name](truth, predictions)
    how, _, plain = name.partition("_")
    if how in ("macro", "micro", "weighted"):
        return averaged(truth, predictions, how, plain)
    return by_class(truth, predictions, name)[CLASSES.index(positive or CLASSES[-1])]


def of_scores(truth, of_no, name, positive):
    """The number of scikit-learn for a metric of scores; it has no lists of k items and no calibration error."""
    is_no = truth == "no"
    positives, scores = (is_no, of_no) if (positive or "no") == "no" else (~is_no, 1 - of_no)
    best = np.argsort(-scores, kind="stable")[:10]
    both = np.stack([1 - of_no, of_no], axis=1)
    values = {
        "auc": lambda: sklearn_metrics.roc_auc_score(positives, scores),
        "partial_auc@0.1": lambda: sklearn_metrics.roc_auc_score(positives, scores, max_fpr=0.1),
        "average_precision": lambda: sklearn_metrics.average_precision_score(positives, scores),
        "ndcg": lambda: sklearn_metrics.ndcg_score([positives.astype(float)], [scores]),
        "ndcg@10": lambda: sklearn_metrics.ndcg_score([positives.astype(float)], [scores], k=10),
        "log_loss": lambda: sklearn_metrics.log_loss(is_no, of_no),
        "brier": lambda: sklearn_metrics.brier_score_loss(is_no, of_no),
        "precision@10": lambda: positives[best].mean(),
        "recall@10": lambda: positives[best].sum() / positives.sum(),
        "calibration_error": lambda: float(tu.metrics.calibration_error(is_no[None].astype(int), both)[0]),
    }
    values["auc_ovr"] = values["auc_ovo"] = values["auc"]
    return values[name]()


def by_evaluate(case, names, positive, predictions):
    answer = tu.evaluate(predictions, case.labels, metrics=names, positive=positive, **FAST)
    return {name: answer[name].mean for name in names}


def by_report(case, names, positive, predictions):
    answer = tu.evaluate(predictions, case.labels, metrics=names, positive=positive, **FAST)
    return {row["name"]: row["mean"] for row in tu.report.build_report(answer)["systems"][0]["metrics"]}


def by_compare(case, names, positive, predictions):
    systems = {"a": predictions, "b": case.probabilities[::-1] if np.ndim(predictions) == 2 else case.other}
    known = tu.noise.Confusion([[0.75, 0.25], [0.25, 0.75]])
    options = {"positive": positive, "target": "sample", "noise": known, "n_draws": 20, "check_dependence": False}
    with pytest.raises(InvalidParameter, match="neither good nor bad"):
        tu.compare(systems, case.labels, metric="prevalence", **options)
    ranked = [name for name in names if name != "prevalence"]
    return {name: tu.compare(systems, case.labels, metric=name, **options)["a"].mean for name in ranked}


def by_active_test(case, names, positive, predictions):
    options = {"positive": positive, "noise": "dawid-skene"}
    return {name: tu.ActiveTest(predictions, case.labels, metric=name, **options).estimate().mean for name in names}


def by_scorer(case, names, positive, predictions):
    rows = np.arange(N_ITEMS)
    scorers = {name: tu.scorer(name, case.labels, positive=positive, n_draws=20) for name in names}
    return {name: scorer.estimate(case.model, case.X, rows).mean for name, scorer in scorers.items()}


DOORS = {
    "evaluate": by_evaluate,
    "report": by_report,
    "compare": by_compare,
    "ActiveTest": by_active_test,
    "scorer": by_scorer,
}


def assert_same(values, expected, *, tolerance=1e-9):
    assert values
    assert set(expected) - set(values) <= {"prevalence"}  # by which nothing is ranked
    wrong = {name: (values[name], expected[name]) for name in values if abs(values[name] - expected[name]) > tolerance}
    assert not wrong, f"(ours, scikit-learn's): {wrong}"


@pytest.mark.parametrize("positive", POSITIVES, ids=str)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_metrics_of_counts(case, door, positive):
    expected = {name: of_counts(case.truth, case.predictions, name, positive) for name in OF_COUNTS}
    assert_same(door(case, OF_COUNTS, positive, case.predictions), expected)


@pytest.mark.parametrize("positive", POSITIVES, ids=str)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_metrics_of_scores(case, door, positive):
    expected = {name: of_scores(case.truth, case.of_no, name, positive) for name in OF_SCORES}
    assert_same(door(case, OF_SCORES, positive, case.probabilities), expected)


@pytest.mark.parametrize("positive", POSITIVES, ids=str)
def test_cleaning_advisor(case, positive):
    validation, one_left = case.items[::2], case.items[1]  # something must be left to clean
    gold = {item: name for item, name in zip(case.items, case.truth, strict=True) if item != one_left}
    labels = tu.Labels.from_matrix(case.votes, items=case.items, classes=CLASSES).with_gold(gold)
    values, expected = {}, {}
    for name in OF_COUNTS:
        options = {"metric": name, "positive": positive, "validation": validation}
        advisor = tu.CleaningAdvisor(LogisticRegression(), case.X, labels, **options)
        predictions = np.asarray(advisor.model_.predict(case.X[::2]), dtype=object)
        values[name] = advisor.score_.mode  # a normal distribution around the value, cut to the bounds
        expected[name] = of_counts(case.truth[::2], predictions, name, positive)
    assert_same(values, expected, tolerance=1e-5)


@pytest.fixture
def files(case, tmp_path):
    """The same data as files: votes, truth, predictions with probabilities, and two systems."""

    def write(name, header, rows):
        lines = [",".join(map(str, row)) for row in (header, *rows)]
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(tmp_path / name)

    votes = [(item, f"w{t}", v) for item, row in zip(case.items, case.votes, strict=True) for t, v in enumerate(row)]
    system = list(zip(case.items, case.predictions, case.of_no, strict=True))
    both = [("a", i, p) for i, p, _ in system] + [("b", i, p) for i, p in zip(case.items, case.other, strict=True)]
    return {
        "votes": write("votes.csv", ("item", "labeler", "label"), votes),
        "truth": write("truth.csv", ("item", "label"), zip(case.items, case.truth, strict=True)),
        "classes": write("classes.csv", ("item", "prediction"), [(i, p) for i, p, _ in system]),
        "scores": write("scores.csv", ("item", "score"), [(i, s) for i, _, s in system]),
        "systems": write("systems.csv", ("system", "item", "prediction"), both),
    }


def by_command_line(capsys, *arguments):
    capsys.readouterr()
    with pytest.raises(SystemExit) as leaving:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert leaving.value.code == 0, err
    return json.loads(out)


SAID = ("--class", "yes", "--class", "no", "--noise", "dawid-skene", "--draws", 40, "--warmup", 20, "--json")


@pytest.mark.parametrize("positive", POSITIVES, ids=str)
def test_command_line(case, files, capsys, positive):
    chosen = ["--gold", files["truth"], *(["--positive", positive] if positive else []), *SAID]
    asked = [part for name in OF_COUNTS for part in ("--metric", name)]
    answer = by_command_line(capsys, "evaluate", files["votes"], files["classes"], *asked, *chosen)
    values = {name: estimate["mean"] for name, estimate in answer["metrics"].items()}
    assert_same(values, {name: of_counts(case.truth, case.predictions, name, positive) for name in OF_COUNTS})
    for name in ("precision", "recall", "mcc"):
        asked = ["--metric", name, "--target", "sample"]
        answer = by_command_line(capsys, "compare", files["votes"], files["systems"], *asked, *chosen)
        (value,) = (row["mean"] for row in answer["systems"] if row["system"] == "a")
        assert_same({name: value}, {name: of_counts(case.truth, case.predictions, name, positive)})


@pytest.mark.parametrize("positive", POSITIVES, ids=str)
def test_command_line_of_scores(case, files, capsys, positive):
    of_positive = "no" if positive is None else positive
    chosen = ["--gold", files["truth"], *(["--positive", positive] if positive else []), *SAID]
    answer = by_command_line(capsys, "auc", files["votes"], files["scores"], *chosen)
    # A score speaks for the positive class, and the file has those of "no".
    expected = of_scores(case.truth, case.of_no, "auc", "no")
    assert_same({"auc": answer["results"][0]["mean"]}, {"auc": expected if of_positive == "no" else 1 - expected})
