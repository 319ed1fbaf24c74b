"""MLflow on a local store: answers become metrics, artifacts and tags; assessments become labels and gold."""

import hashlib
from pathlib import Path

import pytest

import trueup as tu
from trueup.exceptions import InvalidParameter, MissingExtra
from trueup.integrations import mlflow as integration

real = pytest.mark.integrations("mlflow")


@pytest.fixture(scope="module")
def labels():
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    systems = ["old 'one'", "new=1"] * 30
    checked = dict(zip(sim.labels.items[:20].tolist(), sim.truth[:20].tolist(), strict=True))
    return sim.labels.with_items({"item": sim.labels.items.tolist(), "system": systems}).with_gold(
        checked, drawn="random"
    )


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """The package with a store of its own."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_experiment("answers")
    yield mlflow
    mlflow.end_run()


@real
def test_an_answer_is_the_numbers_report_and_tags_of_a_run(mlflow, labels, tmp_path):
    votes = tmp_path / "votes.csv"
    tu.write_labels(labels, votes)
    shares = tu.share(labels, of=1, by="system", n_draws=200)
    run = mlflow.get_run(integration.log(shares, files={"votes": votes}))
    low, high = shares["new=1"].interval(0.95)
    numbers = run.data.metrics
    assert numbers["trueup.share of 1.new1.mean"] == pytest.approx(shares["new=1"].mean)
    assert numbers["trueup.share of 1.new1.low"] == pytest.approx(low)
    assert numbers["trueup.share of 1.new1.high"] == pytest.approx(high)
    assert {"trueup.share of 1.old one.mean", "trueup.share of 1.mean"} <= numbers.keys()
    assert run.data.tags["trueup.basis"] == "votes and 20 checked items"
    assert run.data.tags["trueup.level"] == "0.95"
    assert run.data.tags["trueup.votes.file.sha256"] == hashlib.sha256(votes.read_bytes()).hexdigest()
    assert len(run.data.tags["trueup.votes.sha256"]) == 64
    report = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="trueup/report.html")
    assert "<html" in Path(report).read_text(encoding="utf-8")


@real
def test_every_kind_of_answer_goes_into_the_active_run(mlflow, labels):
    sim = tu.simulate.dawid_skene(n_items=60, n_labelers=4, random_state=0)
    systems = {"a": sim.truth.tolist(), "b": [0] * 60}
    rows = [("gpt", f"p{k}", "a", "b", "ab"[k % 3 == 0]) for k in range(30)]
    columns = dict(zip(("judge", "item", "first", "second", "winner"), map(list, zip(*rows, strict=True)), strict=True))
    answers = [
        tu.evaluate(systems["b"], labels, n_draws=200),
        tu.compare(systems, labels, n_draws=200),
        tu.preferences(tu.read_pairs(columns), n_draws=200),
        tu.agreement(labels),
    ]
    with mlflow.start_run() as run:
        for k, answer in enumerate(answers):
            assert integration.log(answer, prefix=f"answer{k}") == run.info.run_id
    numbers = mlflow.get_run(run.info.run_id).data.metrics
    assert {"answer0.accuracy.low", "answer1.accuracy.b.high", "answer3.alpha.mean"} <= numbers.keys()
    assert any(name.startswith("answer2.") and name.endswith(".a.mean") for name in numbers)
    other = tu.evaluate(systems["b"], labels.with_gold({labels.items[-1]: 1}), n_draws=200)
    tags = mlflow.get_run(integration.log(other)).data.tags
    assert tags["trueup.votes.sha256"] != mlflow.get_run(run.info.run_id).data.tags["answer0.votes.sha256"]


@real
def test_assessments_become_votes_of_judges_and_gold_of_people(mlflow):
    from mlflow.entities import AssessmentSource

    def say(trace, who, kind, value, name="correct", **more):
        source = AssessmentSource(source_type=kind, source_id=who)
        return mlflow.log_feedback(trace_id=trace, name=name, value=value, source=source, **more)

    @mlflow.trace
    def answer(question):
        mlflow.update_current_trace(tags={"system": "new" if question % 2 else "old"})
        return "x"

    traces = []
    for k in range(6):
        answer(k)
        traces.append(mlflow.get_last_active_trace_id())
        mlflow.flush_trace_async_logging()
        for judge in ("gpt", "claude"):
            say(traces[-1], judge, "LLM_JUDGE", k % 3 > 0)
    say(traces[0], "ann@example.org", "HUMAN", True)
    say(traces[1], "ann@example.org", "HUMAN", False)
    say(traces[1], "bob@example.org", "HUMAN", False)
    say(traces[1], "cid@example.org", "HUMAN", True)
    say(traces[2], "rule", "CODE", None, error=ValueError("unreadable"))
    say(traces[2], "gpt", "LLM_JUDGE", 4, name="tone")

    labels = integration.labels_from_traces(question="correct")
    assert sorted(labels.labelers.tolist()) == ["claude", "gpt", "rule"]
    assert (labels.n_items, labels.n_votes, sorted(labels.classes.tolist())) == (6, 12, ["false", "true"])
    assert labels.gold == {traces[0]: "true", traces[1]: "false"}
    assert not labels.drawn_gold
    assert set(labels.item_column("system").tolist()) == {"old", "new"}
    assert len(integration.labels_from_traces(question="correct", drawn="random").drawn_gold) == 2
    found = mlflow.search_traces(return_type="list", include_spans=False)
    assert integration.labels_from_traces(found, question="correct").gold == labels.gold
    assert set(tu.share(labels, of="true", by="system", n_draws=100)) == {"old", "new"}
    with pytest.raises(InvalidParameter, match=r"2 questions.*choose one"):
        integration.labels_from_traces()
    with pytest.raises(InvalidParameter, match=r"no trace has the assessment 'corect'.*did you mean 'correct'"):
        integration.labels_from_traces(question="corect")


@real
def test_an_assessment_that_was_replaced_is_no_vote(mlflow):
    from mlflow.entities import AssessmentSource

    with mlflow.start_span("one"):
        pass
    trace = mlflow.get_last_active_trace_id()
    mlflow.flush_trace_async_logging()
    source = AssessmentSource(source_type="LLM_JUDGE", source_id="gpt")
    for name in ("a", "b"):
        mlflow.log_feedback(trace_id=trace, name="ok", value=name == "a", source=source)
    first = mlflow.get_trace(trace).info.assessments[0]
    mlflow.override_feedback(trace_id=trace, assessment_id=first.assessment_id, value="true", source=source)
    with pytest.warns(tu.exceptions.DataWarning, match="repeat a labeler's vote"):
        assert integration.labels_from_traces(question="ok").n_votes == 2


class _Trace:
    """What the function reads of a trace; the tests above hold it to the package."""

    def __init__(self):
        self.info = self
        self.trace_id, self.experiment_id, self.tags, self.trace_metadata, self.assessments = "t1", "0", {}, {}, []


def test_what_makes_no_sense_is_one_sentence(labels, monkeypatch):
    with pytest.raises(InvalidParameter, match="`traces` are given, got max_results"):
        integration.labels_from_traces([_Trace()], max_results=3)
    with pytest.raises(tu.exceptions.TrueupError, match="the traces"):
        integration.labels_from_traces([_Trace()])
    monkeypatch.setattr("trueup._base.optional.is_installed", lambda module: False)
    with pytest.raises(MissingExtra, match=r"`log` needs mlflow, .*: pip install 'trueup\[mlflow\]'"):
        integration.log(tu.agreement(labels))
