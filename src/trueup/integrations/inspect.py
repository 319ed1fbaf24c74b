"""Inspect: a metric that corrects graded scores by checked samples, answers from finished logs, scores written back.

Logs are read by trueup's own adapter, so that only `corrected` and `write_scores` need inspect_ai.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from importlib import import_module
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trueup._base.optional import is_installed, require
from trueup._base.validation import check_number, preview
from trueup.adapters import Export, read_export, read_labels, write_tasks
from trueup.answers.share import Shares, mean_score
from trueup.answers.share import share as share_of_labels
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.noise import fit
from trueup.reliability import agreement as agreement_of_labels

if TYPE_CHECKING:
    from trueup.answers.comparison import Comparison
    from trueup.data.gold import Draw
    from trueup.reliability.agreement import Agreement

Log = str | PathLike[str]
_KEY = ("system", "sample", "epoch")  # what an answer is called by over several logs
_MOST_SCORES = 20  # different ones; more are put into as many bins


def corrected(*, gold: str = "gold", drawn: Draw = "chosen", level: float = 0.95) -> Callable[[list[Any]], Any]:
    """Metric for ``@scorer(metrics=[…])``: the mean score corrected by samples that a person checked, with an interval.

    The results are ``mean``, ``low``, ``high`` and ``checked``, the number of checked samples.

    Parameters
    ----------
    gold : str. The key of the metadata that holds the right score, such as "C"; a sample without it is unchecked.
    drawn : {"chosen", "random"}. How the checked samples were drawn; only a random sample tells of the others.
    level : float. Of the interval.
    """
    to_float = require("inspect_ai.scorer", purpose="the metric `corrected`").value_to_float()
    check_number(level, name="level", low=0.0, high=1.0, strict=True)

    def metric(scores: list[Any]) -> dict[str, float]:
        said = [to_float(one.score.value) for one in scores]
        right = [(one.sample_metadata or {}).get(gold) for one in scores]
        truths = {k: to_float(value) for k, value in enumerate(right) if value not in (None, "")}
        votes = {k: value for k, value in enumerate(said) if math.isfinite(value)}
        if not votes:
            return dict.fromkeys(("mean", "low", "high"), math.nan) | {"checked": 0.0}
        rows = {"item": list(votes), "labeler": ["grader"] * len(votes), "label": list(votes.values())}
        classes = sorted({0.0, 1.0, *votes.values(), *truths.values()})
        labels = Labels.from_frame(rows, classes=classes)
        truths = {item: truth for item, truth in truths.items() if item in votes}
        labels = labels.with_gold(truths, drawn=drawn) if truths else labels
        if labels.n_classes > _MOST_SCORES:
            labels = labels.binned(_MOST_SCORES)
        answer = mean_score(labels, level=level).overall
        low, high = answer.interval(level)
        return {"mean": float(answer.mean), "low": float(low), "high": float(high), "checked": float(len(truths))}

    return metric


if is_installed("inspect_ai"):  # a metric must be registered before a task names it
    corrected = import_module("inspect_ai.scorer").metric(name="corrected")(corrected)


def read_logs(*logs: Log, question: str | None = None, gold: str | None = None, drawn: Draw | None = None) -> Labels:
    """The scores of finished logs as votes of their graders on the answers of the models.

    An answer is an item, named by ``system`` (its model; with the name of the log where two logs are of one model),
    ``sample`` and ``epoch``, which are columns of the items beside the metadata.

    Parameters
    ----------
    *logs : paths of .json and .eval files.
    question : str, optional. Which of several kinds of scores, as in `trueup.read_export`.
    gold : str, optional. The key of the metadata that holds the right score; edited scores are gold in any case.
    drawn : {"chosen", "random"}, optional. How the checked samples were drawn; by default "chosen".
    """
    if not logs:
        raise InvalidParameter("a log is needed, got none; name the files of one or more", parameter="logs")
    votes: dict[str, list[Any]] = {name: [] for name in (*_KEY, "labeler", "label")}
    items: dict[str, dict[tuple[Any, ...], Any]] = {}
    truths: dict[tuple[Any, ...], Hashable] = {}
    exports = [read_export(log, file_format="inspect", question=question) for log in logs]
    models = [export.items["system"][0] if export.items["item"] else None for export in exports]
    for log, export, model in zip(logs, exports, models, strict=True):
        system = str(model) if models.count(model) == 1 else f"{model} ({Path(log).stem})"
        names = _take_items(export, system, items)
        for item, labeler, label in zip(*(export.votes[name] for name in ("item", "labeler", "label")), strict=True):
            for column, value in zip(votes, (*names[item], labeler, label), strict=True):
                votes[column].append(value)
        truths |= {names[item]: truth for item, truth in export.gold.items()}
    if gold is not None:
        if gold not in items:
            raise InvalidParameter(
                f"no sample has the key {gold!r} in its metadata, got {preview(list(items))}; name one of these",
                parameter="gold",
            )
        truths |= {name: truth for name, truth in items.pop(gold).items() if truth is not None}
    labels = read_labels(votes, item=list(_KEY), abstain=[None])
    labels = labels.with_gold(truths, drawn=drawn) if truths else labels
    known = {name: [column.get(item) for item in labels.items.tolist()] for name, column in items.items()}
    return labels.with_items({"item": labels.items.tolist(), **known}) if known else labels


def _take_items(export: Export, system: str, items: dict[str, dict[tuple[Any, ...], Any]]) -> dict[Any, Any]:
    """Add the columns of the items of a log; returns the names over all logs of its items."""
    samples = zip(export.items["item"], export.items["sample"], export.items["epoch"], strict=True)
    names = {item: (system, sample, epoch) for item, sample, epoch in samples}
    for column, values in export.items.items():
        if column not in ("item", *_KEY):
            values_by_name = zip(names.values(), values, strict=True)
            items.setdefault(column, {}).update({name: value for name, value in values_by_name if value is not None})
    return names


def share(
    *logs: Log, of: Hashable = "C", by: str = "system", reading: dict[str, Any] | None = None, **how: Any
) -> Shares:
    """How often each model is right in truth: `trueup.share` of the grade `of`, with answers to a sample as a cluster.

    Parameters
    ----------
    *logs : paths. As in `read_logs`.
    of, by : the grade, and the column of the groups.
    reading : dict, optional. What `read_logs` takes: question, gold, drawn.
    **how : as in `trueup.share`.
    """
    labels = read_logs(*logs, **(reading or {}))
    return share_of_labels(labels, of=of, by=by, **{"cluster": "sample", **how})


def compare(*logs: Log, **how: Any) -> Comparison:
    """Which model is right more often, and how sure that is: the models of `share` side by side; takes the same."""
    shares = share(*logs, **how)
    if len(shares) < 2:
        raise InvalidLabels(f"two models are needed, got {preview(list(shares))}; name the logs of both")
    return shares.comparison


def agreement(*logs: Log, reading: dict[str, Any] | None = None, **how: Any) -> Agreement:
    """How far the graders agree: `trueup.agreement` of the logs; `reading` as in `share`."""
    return agreement_of_labels(read_logs(*logs, **(reading or {})), **how)


def write_scores(log: Log, out: Log, *, question: str | None = None, noise: str = "dawid-skene") -> Path:
    """Write a copy of a log with a score more: what its graders say together, by a noise model, and how surely.

    Parameters
    ----------
    log, out : path. The log, and its copy; .json or .eval.
    question : str, optional. Which of several kinds of scores.
    noise : str. The noise model, as in `trueup.noise.fit`.
    """
    scoring = require("inspect_ai.scorer", purpose="writing scores into a log")
    inspect, logs = import_module("inspect_ai"), import_module("inspect_ai.log")
    export = read_export(log, file_format="inspect", question=question)
    labels = export.labels()
    with TemporaryDirectory() as folder:
        rows = Path(folder) / "scores.jsonl"
        posterior = fit(labels, noise).posterior(labels)
        write_tasks(labels, rows, file_format="inspect", posterior=posterior, agent=f"trueup-{noise}", like=export)

        def trueup() -> Any:
            return scoring.precomputed_scores(str(rows))

        scorer = scoring.scorer(metrics=[scoring.accuracy(), scoring.stderr()], name="trueup")(trueup)
        scored = inspect.score(logs.read_eval_log(str(log)), scorer(), action="append", display="none")
    logs.write_eval_log(scored, str(out))
    return Path(out)
