"""MLflow: an answer becomes a run's numbers, report and tags; assessments of traces become labels."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trueup._base.optional import require
from trueup._base.validation import did_you_mean
from trueup.adapters import Collector
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.preferences import Preferences
from trueup.answers.share import Shares
from trueup.data.labels import Labels
from trueup.data.reading import write_labels
from trueup.exceptions import InvalidParameter
from trueup.posteriors import Estimate
from trueup.reliability.agreement import Agreement

if TYPE_CHECKING:
    from trueup.data.gold import Draw

_NOT_IN_NAMES = re.compile(r"[^\w\-. :/]")  # of metrics in MLflow
_MOST_TRACES = 100_000


def log(
    answer: Evaluation | Comparison | Shares | Preferences | Agreement,
    *,
    prefix: str = "trueup",
    files: Mapping[str, str | PathLike[str]] | None = None,
    run_id: str | None = None,
) -> str:
    """Log an answer to MLflow; returns the id of the run.

    Each number becomes the metrics ``….mean``, ``….low`` and ``….high``; the report becomes an artifact; tags are what
    the answer rests on, the level, the seed, and the SHA-256 of the votes with their gold, and of the `files`.

    Parameters
    ----------
    answer : of `evaluate`, `compare`, `share`, `mean_score`, `preferences` or `agreement`.
    prefix : str. What the names of metrics and tags and the folder of the report begin with.
    files : mapping from role to path, optional. Files that the answer was made from.
    run_id : str, optional. The run; by default the active one, which is started where there is none.
    """
    mlflow = require("mlflow", purpose="`log`")
    numbers = _numbers(_estimates(answer), answer.level)
    labels = answer.evaluation.labels if isinstance(answer, Shares | Preferences) else answer.labels
    tags = {"level": f"{answer.level:g}", "votes.sha256": _hash_of(labels)}
    if not isinstance(answer, Agreement):
        tags["basis"] = answer.basis
        tags["seed"] = str((answer.evaluation if isinstance(answer, Shares | Preferences) else answer).seed)
    for role, path in (files or {}).items():
        with Path(path).open("rb") as stream:
            tags[f"{role}.file.sha256"] = hashlib.file_digest(stream, "sha256").hexdigest()
    run = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
    client = mlflow.MlflowClient()
    for name, value in numbers.items():
        client.log_metric(run, f"{prefix}.{name}", value)
    for name, text in tags.items():
        client.set_tag(run, f"{prefix}.{name}", text)
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        answer.save_html(report)
        client.log_artifact(run, str(report), prefix)
    return str(run)


def _estimates(answer: Evaluation | Comparison | Shares | Preferences | Agreement) -> dict[str, Estimate]:
    """The numbers of an answer by name."""
    if isinstance(answer, Evaluation | Agreement):
        return dict(answer.items())
    compared = answer if isinstance(answer, Comparison) else answer.comparison
    found = {f"{compared.metric}.{system}": compared[system] for system in compared} if len(compared) > 1 else {}
    return {answer.name: answer.overall, **found} if isinstance(answer, Shares) else found


def _numbers(estimates: Mapping[str, Estimate], level: float) -> dict[str, float]:
    """Mean and ends under names that MLflow takes; a number that has no value is left out."""
    numbers: dict[str, float] = {}
    for name, estimate in estimates.items():
        low, high = estimate.interval(level)
        plain = _NOT_IN_NAMES.sub("", name)
        while f"{plain}.mean" in numbers:
            plain += "_"
        ends = {"mean": estimate.mean, "low": low, "high": high}
        numbers |= {f"{plain}.{end}": float(value) for end, value in ends.items() if math.isfinite(value)}
    return numbers


def _hash_of(labels: Labels) -> str:
    """The SHA-256 of the votes and the gold."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "votes.csv"
        write_labels(labels, path)
        votes = path.read_bytes()
    gold = json.dumps(sorted([str(item), str(truth)] for item, truth in labels.gold.items()))
    return hashlib.sha256(votes + gold.encode()).hexdigest()


def labels_from_traces(
    traces: Iterable[Any] | None = None,
    *,
    question: str | None = None,
    drawn: Draw | None = None,
    keep_names: bool = False,
    **search: Any,
) -> Labels:
    """Assessments of traces as labels: those of judges and programs are votes, those of people gold.

    Where people differ, more than half of them must agree. Tags of a trace, its run, model and experiment are columns
    of its item. Truth values are the classes "true" and "false".

    Parameters
    ----------
    traces : iterable of Trace, optional. By default what ``mlflow.search_traces(**search)`` finds.
    question : str, optional. The name of the assessments; needed where there are several.
    drawn : {"chosen", "random"}, optional. How the traces that people assessed were drawn; by default "chosen".
    keep_names : bool. As in `trueup.read_export`.
    **search : as of ``mlflow.search_traces``, e.g. experiment_ids, filter_string, max_results.
    """
    if traces is None:
        mlflow = require("mlflow", purpose="`labels_from_traces`")
        wanted = {"max_results": _MOST_TRACES, "include_spans": False, **search, "return_type": "list"}
        traces = mlflow.search_traces(**wanted)
    elif search:
        raise InvalidParameter(f"`traces` are given, got {', '.join(search)} to search by; leave one out")
    collector = Collector(question=question, keep_names=keep_names)
    for trace in traces:
        collector.describe(trace.info.trace_id, _about(trace.info))
        for assessment in trace.info.assessments:
            _take(assessment, trace.info.trace_id, collector)
    export = collector.finish("mlflow", "the traces")
    if question is not None and question not in export.questions:
        hint = did_you_mean(question, export.questions) or f"; there are {', '.join(export.questions) or 'none'}"
        raise InvalidParameter(f"no trace has the assessment {question!r}{hint}", parameter="question")
    export = export if question is None else export.of(question)
    labels = export.labels()
    return labels if drawn is None or not export.gold else labels.with_gold(dict(export.gold), drawn=drawn)


def _about(info: Any) -> dict[str, Any]:
    """The columns of a trace."""
    metadata = {"run": "mlflow.sourceRun", "model": "mlflow.modelId"}
    columns = {name: info.trace_metadata.get(key) for name, key in metadata.items()}
    columns["experiment"] = info.experiment_id
    own = {name: value for name, value in info.tags.items() if not name.startswith("mlflow.")}
    return {name: value for name, value in {**columns, **own}.items() if value is not None}


def _take(assessment: Any, trace: str, collector: Collector) -> None:
    """One assessment: a vote, an abstention or a truth; expectations and what was replaced are neither."""
    if assessment.feedback is None or assessment.valid is False:
        collector.drop("expectations, issues and replaced assessments")
        return
    value, source = assessment.feedback.value, assessment.source
    if source.source_type == "HUMAN":
        if value is None:
            collector.miss("assessments of people without a value")
        else:
            collector.map("assessments of people read as gold")
            collector.truth(assessment.name, trace, value)
    elif value is None or isinstance(value, dict):
        collector.abstain(assessment.name, trace, str(source.source_id), "assessments without a value")
    else:
        collector.vote(assessment.name, trace, str(source.source_id), value)
