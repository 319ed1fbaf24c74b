"""Inspect: the metric in a real task with mock models, answers from its logs, scores written back, the command."""

import json
import math
from pathlib import Path

import pytest

import trueup as tu
from trueup.cli import main
from trueup.exceptions import InvalidLabels, InvalidParameter, MissingExtra
from trueup.integrations import inspect

N = 40
WRONG = range(0, N, 4)  # samples whose answer is wrong in truth
real = pytest.mark.integrations("inspect_ai")


def grade(sample, grader):
    """What a grader says: lenient ones let every second wrong answer pass, and each errs on a few of its own."""
    lets_pass = sample in WRONG and sample % 8 == 0
    errs = sample % 13 == grader
    return "C" if (sample not in WRONG or lets_pass) != errs else "I"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Logs of two models and three graders, one plain and one packed; ``corrected`` is a metric."""
    if not inspect.is_installed("inspect_ai"):
        pytest.skip("needs inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import accuracy, model_graded_qa
    from inspect_ai.solver import generate

    def model(name, texts):
        outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
        for output in outputs:
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else they are counted online
        return get_model(f"mockllm/{name}", custom_outputs=outputs)

    def gold(sample):
        return {"gold": "I" if sample in WRONG else "C"} if sample < N // 2 else {}

    found = []
    for name, form in (("alpha", "json"), ("beta", "eval")):
        graders = [model(f"grader{g}", [f"GRADE: {grade(sample, g)}" for sample in range(N)]) for g in range(3)]
        task = Task(
            name="panel",
            dataset=MemoryDataset([Sample(id=k, input=f"q{k}", target="a", metadata=gold(k)) for k in range(N)]),
            solver=generate(),
            scorer=[model_graded_qa(model=grader) for grader in graders],
            metrics=[accuracy(), inspect.corrected(drawn="random")],
        )
        folder = str(tmp_path_factory.mktemp(name))
        tested = model(name, ["x"] * N)
        log = run(task, model=tested, log_dir=folder, log_format=form, display="none", max_samples=1)[0]
        assert log.status == "success", log.error
        found.append(log.location)
    return found


@real
def test_the_metric_corrects_a_lenient_grader(logs):
    from inspect_ai.log import read_eval_log

    for log in logs:
        scores = read_eval_log(log).results.scores
        assert [score.name for score in scores] == ["model_graded_qa", "model_graded_qa1", "model_graded_qa2"]
        for score in scores:
            values = {name: metric.value for name, metric in score.metrics.items()}
            assert values["checked"] == N / 2
            assert values["low"] <= 1 - len(WRONG) / N <= values["high"]
            assert values["low"] < values["mean"] < values["accuracy"]  # graders let wrong answers pass


@real
def test_the_metric_is_found_by_its_name_when_a_log_is_scored_again(logs):
    from inspect_ai.log import read_eval_log

    names = {metric.name for metric in read_eval_log(logs[0]).eval.metrics}
    assert "trueup/corrected" in names
    from inspect_ai.scorer._metric import metric_create

    assert callable(metric_create("trueup/corrected", drawn="random"))


@real
@pytest.mark.parametrize(
    ("values", "gold", "mean"),
    [
        ([], {}, math.nan),
        (["C"] * 6, dict.fromkeys(range(6), "I"), 0.0),
        ([0.0, 0.25, 0.5, 1.0] * 3, {k: (0.0, 0.25, 0.5, 1.0)[k % 4] for k in range(12)}, 0.4375),
        ([math.nan, "C", "C"], {0: "I", 1: "C", 2: "C"}, 1.0),  # a score that nobody could read is none
    ],
    ids=["none", "all-wrong", "partial", "unscored"],
)
def test_where_all_is_checked_the_mean_is_that_of_the_checks(values, gold, mean):
    from inspect_ai.scorer import SampleScore, Score

    scores = [
        SampleScore(score=Score(value=value), sample_id=k, sample_metadata={"gold": gold[k]} if k in gold else None)
        for k, value in enumerate(values)
    ]
    answer = inspect.corrected(drawn="random")(scores)
    assert answer["mean"] == pytest.approx(mean, nan_ok=True)
    assert answer["low"] == pytest.approx(answer["high"], nan_ok=True)


@real
def test_logs_of_several_models_are_one_table_of_votes(logs):
    labels = inspect.read_logs(*logs, gold="gold", drawn="random")
    assert (labels.n_items, labels.n_labelers, labels.n_votes) == (2 * N, 3, 6 * N)
    assert set(labels.item_column("system").tolist()) == {"mockllm/alpha", "mockllm/beta"}
    assert labels.gold == {
        (f"mockllm/{name}", k, 1): "I" if k in WRONG else "C" for name in ("alpha", "beta") for k in range(N // 2)
    }
    assert len(labels.drawn_gold) == N


@real
def test_logs_become_answers_in_one_line(logs):
    reading = {"gold": "gold", "drawn": "random"}
    shares = inspect.share(*logs, reading=reading)
    assert set(shares) == {"mockllm/alpha", "mockllm/beta"}
    assert shares.basis == f"votes and {N} checked items"
    low, high = shares.overall.interval(0.95)
    assert low < 1 - len(WRONG) / N < high
    compared = inspect.compare(*logs, reading=reading)
    assert abs(compared.difference("mockllm/alpha", "mockllm/beta").mean) < 0.1  # they were graded alike
    assert 0 < inspect.agreement(*logs)["alpha"].mean < 1


@real
def test_two_logs_of_one_model_are_two_systems(logs, tmp_path):
    again = tmp_path / "again.json"
    again.write_bytes(Path(logs[0]).read_bytes())
    systems = set(inspect.read_logs(logs[0], again).item_column("system").tolist())
    assert len(systems) == 2
    assert "mockllm/alpha (again)" in systems


@real
@pytest.mark.parametrize("name", ["copy.json", "copy.eval"])
def test_scores_are_written_to_a_copy(logs, tmp_path, name):
    from inspect_ai.log import read_eval_log

    before = [Path(log).read_bytes() for log in logs]
    for log in logs:
        copy = read_eval_log(str(inspect.write_scores(log, tmp_path / name)))
        assert [score.name for score in copy.results.scores][-1] == "trueup"
        scores = {sample.id: sample.scores for sample in copy.samples}
        assert all(len(of_sample) == 4 for of_sample in scores.values())
        assert scores[4]["trueup"].value == "I"  # as all graders say
        assert scores[1]["trueup"].metadata["by"] == "trueup-dawid-skene"
        assert 0.5 < scores[4]["trueup"].metadata["confidence"] <= 1
    assert [Path(log).read_bytes() for log in logs] == before


@real
def test_the_command_says_the_same(logs, tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        main(["inspect", *logs, "--gold-key", "gold", "--gold-drawn", "random", "--json"])
    assert left.value.code == 0
    body = json.loads(capsys.readouterr().out)
    shares = inspect.share(*logs, reading={"gold": "gold", "drawn": "random"})
    assert body["overall"]["mean"] == pytest.approx(shares.overall.mean)
    assert body["agreement"]["sentence"]
    with pytest.raises(SystemExit) as left:
        main(["inspect", logs[0], "--scores", str(tmp_path / "copy.eval")])
    assert left.value.code == 0
    assert (tmp_path / "copy.eval").stat().st_size


# Without the package ------------------------------------------------------------------------------------------------


def plain_log(path, model="m", **about):
    scores = [{"a": {"value": "C"}, "b": {"value": "CI"[k % 2]}} for k in range(8)]
    samples = [{"id": k, "epoch": 1, "scores": scores[k], "metadata": {"topic": k % 2}} for k in range(8)]
    log = {"version": 2, "status": "success", "eval": {"model": model}, "plan": {}, "samples": samples, **about}
    path.write_text(json.dumps(log), encoding="utf-8")
    return path


def test_logs_are_read_without_the_package(tmp_path):
    shares = inspect.share(plain_log(tmp_path / "a.json"), plain_log(tmp_path / "b.json", "n"), n_draws=100)
    assert set(shares) == {"m", "n"}


def test_what_makes_no_sense_is_one_sentence(tmp_path, monkeypatch):
    log = plain_log(tmp_path / "a.json")
    with pytest.raises(InvalidParameter, match="a log is needed, got none"):
        inspect.read_logs()
    with pytest.raises(InvalidParameter, match=r"no sample has the key 'right'.*'topic'"):
        inspect.read_logs(log, gold="right")
    with pytest.raises(InvalidLabels, match=r"two models are needed, got \['m'\]"):
        inspect.compare(log, n_draws=100)
    with pytest.raises(tu.exceptions.TrueupError, match="nowhere"):
        inspect.share(tmp_path / "nowhere.json")
    monkeypatch.setattr("trueup._base.optional.is_installed", lambda module: False)
    with pytest.raises(MissingExtra, match=r"needs inspect_ai, .* installed: pip install 'trueup\[inspect-ai\]'"):
        inspect.write_scores(log, tmp_path / "copy.json")
