"""Input preparation: what a user passed to a public function, checked, aligned and decided once for all of them."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from trueup._base.types import Booleans, Codes, Floats, Target
from trueup._base.validation import check_choice, check_level, preview, seed_of
from trueup.core.parts import labels_of_sample, sample_items
from trueup.core.truth import TruthModel
from trueup.data.aligned import AlignedPredictions, OutputKind
from trueup.data.encoding import Vocabulary, is_null, vocabulary_from
from trueup.data.labels import Labels
from trueup.data.predictions import Predictions, are_in_votes, as_predictions
from trueup.data.scanning import LabelScan
from trueup.data.slices import Slicing, clusters_of, slices_of, weights_of
from trueup.estimators.problem import Solution
from trueup.estimators.system_values import Population, population_for, system_values
from trueup.estimators.truth import TruthDraws, solution_of
from trueup.exceptions import InvalidLabels, InvalidParameter, InvalidPredictions, silenced_warnings
from trueup.metrics import Metric, MetricLike, as_metrics
from trueup.noise import NoiseModel, resolve

DEFAULT_TARGET: Target = "sample"
FUNCTION_DRAWS = 400  # drawn truths that a function of labels, which takes its time, is evaluated on


@dataclass(frozen=True)
class Settings:
    """Every keyword argument of a call, as it was passed."""

    entry_point: str  # the name of the function or class
    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of_call(cls, entry_point: Callable[..., Any], values: Mapping[str, Any]) -> Settings:
        """From the local variables of a function at its start, that is its parameters."""
        parameters = inspect.signature(entry_point).parameters.values()
        keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "progress"]
        arguments = {p.name: _kept(values[p.name]) for p in keywords}
        for options in (p.name for p in parameters if p.kind is p.VAR_KEYWORD):
            arguments |= {name: _kept(value) for name, value in values[options].items()}
        return cls(entry_point.__name__, arguments, {p.name: p.default for p in keywords})

    def changed(self) -> dict[str, Any]:
        """The arguments that differ from the defaults."""
        return {
            name: value
            for name, value in self.arguments.items()
            if name not in self.defaults or not _same(value, self.defaults[name])
        }

    def with_seed(self, seed: int) -> Settings:
        """With the seed behind the `random_state` that was passed."""
        return Settings(self.entry_point, {**self.arguments, "random_state": seed}, self.defaults)


def _kept(value: Any) -> Any:
    """A copy of what the caller may change later."""
    return copy.copy(value) if isinstance(value, list | dict | set | np.ndarray) else value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


class SampleOfScan(NamedTuple):
    """What is known of the items that stand for all of a scan."""

    base: Floats  # (n_items, n_classes): P(class | votes)
    times: Floats  # (n_items,): how many items each stands for


@dataclass(frozen=True, eq=False)
class Task:
    """What every public function starts from."""

    labels: Labels = field(repr=False)
    outputs: AlignedPredictions = field(repr=False)  # what the systems say of the items, in the order of the labels
    metrics: Mapping[str, Metric]  # by the name under which they are shown
    positive: int  # code of the positive class
    noise: NoiseModel | None  # not fitted, unless it is known; None for a method that uses none
    level: float
    seed: int  # gives the same numbers again
    settings: Settings  # the call itself
    notes: tuple[str, ...] = ()  # what was left out on the way
    truth: Codes | None = field(default=None, repr=False)  # the true classes, where the caller has them
    slices: Slicing | None = field(default=None, repr=False)  # groups of items that are asked about one by one
    population: Population | None = field(default=None, repr=False)  # what the items are a sample of, if that is asked
    sample: SampleOfScan | None = field(default=None, repr=False)  # where the votes are in files

    @cached_property
    def in_votes(self) -> Booleans:
        """Which systems are labelers whose very votes are in the labels, shape (n_systems,)."""
        return are_in_votes(self.outputs, self.labels)

    @cached_property
    def labelers(self) -> Codes:
        """The place among the labelers of each system whose very votes are in the labels, -1 for others."""
        names = self.outputs.systems.tolist()
        return np.array(
            [
                self.labels.labeler_codes([name])[0] if is_in else -1
                for name, is_in in zip(names, self.in_votes, strict=True)
            ],
            dtype=np.int64,
        )

    @property
    def target(self) -> Target:
        """Whether the numbers are those of these items or of the population they come from."""
        return "sample" if self.population is None else "population"

    @property
    def metric(self) -> Metric:
        """The first or only metric."""
        return next(iter(self.metrics.values()))

    @property
    def codes(self) -> Codes:
        """The predicted class of each item of the first or only system, -1 for none."""
        return np.asarray(self.outputs.outputs("classes")[0])

    def metric_named(self, name: str) -> Metric:
        """A metric of the call, or any other by its name."""
        if name in self.metrics:
            return self.metrics[name]
        return as_metrics([name], self.labels.classes.tolist(), self.labels.classes.tolist()[self.positive])[name]

    def outputs_for(self, metric: Metric) -> AlignedPredictions:
        """The outputs as a metric wants them; an error where a system does not give them."""
        return self.outputs_with(metric.looks_at, needed_by=metric.name)

    def outputs_with(self, kind: OutputKind, *, needed_by: str) -> AlignedPredictions:
        """The outputs with scores of the positive class, or with probabilities; an error where there are none."""
        prepared = self.outputs.prepared_for(kind, positive=self.positive)
        prepared.outputs(kind, needed_by=needed_by)
        return prepared


def of_other_systems(outputs: AlignedPredictions, systems: Vocabulary, **tables: Any) -> AlignedPredictions:
    """What other systems say of the same items, of which nothing was left out."""
    none = np.zeros(len(systems), dtype=np.int64)
    return replace(outputs, systems=systems, missing=none, unknown_items=none, unknown_classes=none, **tables)


# Keywords of public functions that mean the same in all, and what they are where a function has none of the name.
_ASKED: dict[str, Any] = {
    **dict.fromkeys(("positive", "truth", "by", "cluster", "weights")),
    **dict.fromkeys(("missing", "unknown", "unknown_class"), "error"),
    "level": 0.95,
    "random_state": 0,
    "items": "own",
}


def prepare(
    outputs: Any,
    labels: Labels | LabelScan[Labels],
    *,
    settings: Settings,
    metrics: MetricLike | Sequence[MetricLike] | Mapping[str, MetricLike],
    noise: str | NoiseModel | None,
    target: Target = DEFAULT_TARGET,
    least_systems: int = 1,
    most_systems: int | None = None,
    one_metric: bool = False,
    needs_classes: bool = False,
    of_scans: Collection[str] = (),
    **decided: Any,
) -> Task:
    """Check what was passed, bring it into the order of the labels, and decide what was left open.

    All else is as in the call, unless it is `decided` here; see `_ASKED`, and `trueup.evaluate` for what it means.
    Votes that are scanned are taken where `of_scans` names the keywords that go with them.
    """
    asked = _ASKED | {name: settings.arguments[name] for name in _ASKED if name in settings.defaults} | decided
    level, positive, by = asked["level"], asked["positive"], asked["by"]
    is_scan = isinstance(labels, LabelScan) and bool(of_scans)
    if not is_scan and not isinstance(labels, Labels):
        raise InvalidLabels(
            f"`labels` must be Labels, got {type(labels).__name__}; make them with Labels.from_frame or from_matrix, "
            "and pass the predictions first",
        )
    if is_scan:
        _check_keywords_of_scan(settings, of_scans)
    check_choice(target, ("sample", "population"), name="target")
    check_level(level)
    seed = seed_of(asked["random_state"])
    model = None if noise is None else resolve(noise)
    positive_class = positive if positive is not None or is_scan else _class_of_scores(outputs)
    positive_code = labels.n_classes - 1 if positive_class is None else labels.class_code(positive_class)
    chosen = as_metrics(metrics, labels.classes.tolist(), labels.classes.tolist()[positive_code])
    if one_metric and len(chosen) > 1:
        raise InvalidParameter(
            f"{settings.entry_point} takes one `metric`, got {len(chosen)}: {preview(list(chosen))}; name one of them",
            parameter="metric",
        )
    settings = settings.with_seed(seed)
    if isinstance(labels, LabelScan):
        systems = outputs if least_systems > 1 else {"classifier": outputs}
        return _prepare_scan(systems, labels, settings, asked, chosen, positive_code, target)
    kinds: set[OutputKind] = {metric.looks_at for metric in chosen.values()}
    kinds |= {"classes"} if needs_classes else set()
    predictions = as_predictions(
        outputs, labels, of_scores="classes" not in kinds, positive=positive, least=least_systems
    )
    aligned = predictions.align(labels, **{name: asked[name] for name in ("missing", "unknown", "unknown_class")})
    truth = None if asked["truth"] is None else _truth_codes(asked["truth"], labels, aligned)
    if most_systems is not None and aligned.n_systems > most_systems:
        raise InvalidPredictions(
            f"{settings.entry_point} takes one system, got {aligned.n_systems}; pick one with predictions['name'], or "
            "use compare"
        )
    rule = asked["items"] or ("own" if predictions.are_labelers else "common")
    check_choice(rule, ("common", "own"), name="items")
    slices = None if by is None else slices_of(labels, by)
    notes = [
        *([] if slices is None else slices.notes()),
        *(aligned.notes_on_scores() if "scores" in kinds else []),
        *aligned.unmatched_item_notes(),
    ]
    population = population_for(
        target,
        clusters=None if asked["cluster"] is None else clusters_of(labels, asked["cluster"]),
        weights=None if asked["weights"] is None else weights_of(labels, asked["weights"]),
    )
    task = Task(
        labels, aligned, chosen, positive_code, model, level, seed, settings, tuple(notes), truth, slices, population
    )
    if needs_classes:
        task.outputs_with("classes", needed_by=settings.entry_point)
    for metric in chosen.values():
        task.outputs_for(metric)
    return task if least_systems == 1 else _on_common_items(task, rule)


def _truth_codes(truth: Any, labels: Labels, outputs: AlignedPredictions) -> Codes:
    """The true classes as codes, of every item that has a prediction."""
    try:
        codes = np.asarray(as_predictions(truth, labels).align(labels, missing="ignore").outputs("classes")[0])
    except InvalidPredictions as error:
        raise InvalidParameter(f"`truth` cannot be read as classes of the items: {error}") from error
    unknown = (codes < 0) & outputs.has_output("classes").any(axis=0)
    if unknown.any():
        raise InvalidParameter(
            f"`truth` must name the class of every item with a prediction, got none for {int(unknown.sum())} items: "
            f"{preview(labels.items[unknown])}; name them, or leave their predictions out",
        )
    return codes


def check_asked_of_all(*, alone: bool, **asked: Any) -> None:
    """Stop slices, clusters and weights where a noise model or method is named."""
    named = [name for name, value in asked.items() if value is not None]
    if named and alone:
        raise InvalidParameter(
            f"`{named[0]}` goes with the answers of all models, got a `noise` or `method` beside it; leave that out",
            parameter=named[0],
        )


def settle_target(target: Target | None, *, cluster: Any, weights: Any) -> Target:
    """These items by default, and the population where clusters or weights say what it is."""
    if cluster is None and weights is None:
        return DEFAULT_TARGET if target is None else target
    if target == "sample":
        raise InvalidParameter(
            "`cluster` and `weights` say what the items stand for, got them with `target='sample'`, which is about "
            "these items alone; leave that out",
            parameter="target",
        )
    return "population"


def _class_of_scores(outputs: Any) -> Hashable | None:
    """The class that scores were made for, where the caller named it."""
    systems = outputs.values() if isinstance(outputs, Mapping) else [outputs]
    parts = (part for system in systems if isinstance(system, Predictions) for part in system.parts)
    named = {part.positive for part in parts} - {None}
    return named.pop() if len(named) == 1 else None


def _on_common_items(task: Task, rule: str) -> Task:
    """All systems judged on the items that all have, or each on its own; and what was left out, in words."""
    there = task.outputs_for(task.metric).has_output(task.metric.looks_at)
    shared = np.asarray(there.all(axis=0))
    if shared.all():
        return task
    note = items_in_words(int(shared.sum()), int(there.any(axis=0).sum()), rule)
    outputs = task.outputs if rule == "own" else task.outputs.on_items(shared)
    return replace(task, outputs=outputs, notes=(*task.notes, note))


def items_in_words(n_common: int, n_any: int, rule: str) -> str:
    """What is left out where not all systems predict all items; an error where nothing is left."""
    if rule == "own":
        return "The systems are judged on different items, each on its own: ranks may reflect that."
    if not n_common:
        raise InvalidPredictions(
            "the systems have no item in common, got predictions for different items; predict the same items, or pass "
            '`items="own"`'
        )
    return (
        f"{n_any - n_common:,} items lack the prediction of some system and were left out; "
        f'{n_common:,} are judged. Pass `items="own"` to judge each system on all of its items.'
    )


def solution_on(truth: TruthDraws, task: Task, rng: np.random.Generator) -> Solution:
    """The posterior of the confusion counts of the first or only system, on draws of the truth."""
    n_classes = task.labels.n_classes
    return solution_of(truth, task.codes, n_classes, rng=rng, population=task.population)


def values_given(core: TruthModel, task: Task, metric: Metric) -> Floats:
    """The metric of every system on draws of a core, shape (n_draws, n_systems)."""
    if not core.is_divided:
        return values_on(core.truth, task, metric, np.random.default_rng(task.seed))
    rng = np.random.default_rng([task.seed, 4])
    values = values_on(core.of_systems([]).truth, task, metric, np.random.default_rng(task.seed))
    copies: dict[bytes, int] = {}
    for k in range(len(core.codes)):
        alone = replace(task, outputs=task.outputs.of_systems(slice(k, k + 1)))
        outputs = (alone.outputs.codes, alone.outputs.scores, alone.outputs.probabilities)
        first = copies.setdefault(b"|".join(b"" if part is None else part.tobytes() for part in outputs), k)
        if first < k:
            values[:, k] = values[:, first]
            continue
        own = np.sort(values_on(core.of_system(k).draw(), alone, metric, np.random.default_rng(task.seed))[:, 0])
        order = np.lexsort((rng.random(len(values)), values[:, k]))
        values[order, k] = own[(np.arange(len(values)) * len(own)) // len(values)]
    return values


def values_on(truth: TruthDraws, task: Task, metric: Metric, rng: np.random.Generator) -> Floats:
    """The metric of every system on every draw, shape (n_draws, n_systems)."""
    # A function of labels takes its time, so it sees some of the draws.
    step = max(1, truth.n_draws // FUNCTION_DRAWS) if metric.needs == "labels" else 1
    truths, outputs = truth.truths[::step], task.outputs_for(metric)
    population = truth.population(task.population)
    weights = truth.fixed_weights if population is None else None
    return system_values(
        truths,
        outputs if truth.items is None else outputs.at_items(truth.items),
        metric,
        classes=task.labels.classes,
        positive=task.positive,
        random_state=rng,
        population=population,
        weights=None if weights is None else weights[: len(truths)],
    )


def _check_keywords_of_scan(settings: Settings, offers: Collection[str]) -> None:
    others = [name for name in settings.changed() if name not in offers]
    if others:
        raise InvalidParameter(
            f"{settings.entry_point} of votes that are scanned takes {', '.join(offers)}, got `{others[0]}`; leave it "
            "out, or read all votes into memory with scan.read()",
            parameter=others[0],
        )


def _prepare_scan(
    systems: Any,
    scan: LabelScan[Labels],
    settings: Settings,
    asked: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    positive: int,
    target: Target,
) -> Task:
    """The task for votes in files: about some of the items, which stand for all."""
    if not isinstance(systems, Mapping) or (settings.entry_point == "compare" and len(systems) < 2):
        raise InvalidPredictions(
            "systems for a scan must be a mapping from name to a column of its files or to a mapping from item to "
            f"class, of two systems or more, got {type(systems).__name__}; pass {{name: column}}"
        )
    check_choice(asked["items"] or "common", ("common", "own"), name="items")
    check_choice(asked["missing"], ("error", "ignore"), name="missing")
    of_others = next((name for name, metric in metrics.items() if metric.needs != "counts"), None)
    if of_others is not None:
        raise InvalidParameter(
            f"`metrics` of votes that are scanned must be of the confusion counts, got {of_others!r}, which needs "
            f"{metrics[of_others].needs}; leave it out, or read all votes into memory with scan.read()"
        )
    sources = list(systems.values())
    wrong = next((source for source in sources if not isinstance(source, str | Mapping)), None)
    if wrong is not None:
        raise InvalidPredictions(
            "predictions for a scan must be the name of a column of its files or a mapping from item to class, got "
            f"{type(wrong).__name__}; pass one of these"
        )
    is_common = asked["items"] != "own"
    rated = scan.with_systems(sources, may_miss=asked["missing"] == "ignore", common=is_common)
    with silenced_warnings():
        sample, times, sums = sample_items(rated)
    check_choice(asked["unknown"], ("error", "ignore"), name="unknown")
    for source, n_known in zip(sources, sums.n_named.tolist(), strict=True):
        n_all = n_known if isinstance(source, str) else sum(not is_null(name) for name in source.values())
        if n_all > n_known and asked["unknown"] == "error":
            raise InvalidPredictions(
                f"predictions must be of items of the scan, got {n_all - n_known:,.0f} of {n_all:,.0f} for items that "
                "are in none of its files; leave them out, or pass `unknown='ignore'`"
            )
    none = np.zeros(len(systems), dtype=np.int64)
    outputs = AlignedPredictions(
        vocabulary_from(list(systems)), sample.codes, None, None, positive, none, none, none, scan.n_classes
    )
    n_judged = int(sums.n_named.max(initial=0))
    return Task(
        labels_of_sample(rated, sample),
        outputs,
        metrics,
        positive,
        None,
        asked["level"],
        settings.arguments["random_state"],
        settings,
        (items_in_words(n_judged, scan.n_items, "common"),) if is_common and n_judged < scan.n_items else (),
        population=population_for(target),
        sample=SampleOfScan(sample.base, times),
    )
