"""`Monitor`: batches over time, the course of a system and its judges, and alarms that may be looked at at any time."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaincinv

from trueup._base.validation import check_integer, check_level, preview
from trueup._base.wording import some
from trueup.answers.evaluate import evaluate
from trueup.answers.share import share
from trueup.data.frames import make_frame
from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, InvalidParameter, StorageError, silenced_warnings
from trueup.metrics import get_metric
from trueup.monitor.batch import (
    Batch,
    History,
    Panel,
    Stream,
    counts,
    histories,
    instant_of,
    join_batches,
    make_batch,
    moment,
    panel_of,
)
from trueup.monitor.change import (
    Alarm,
    Strata,
    cannot_test_yet,
    find_alarms,
    nearly_an_alarm,
    notes_on,
    strata_of,
)
from trueup.sessions.log import Event, session_from_json, session_to_json
from trueup.storage.joining import StoredLog

if TYPE_CHECKING:
    from trueup.storage import Storage
Row = dict[str, Any]

# Batches are the slices of one answer of the core: how far the crowd is off is common to all of them, each deviates by
# itself beside that, and every checked item corrects all batches, its own the most.
# Estimated together, the newest ones: a look then takes less than a second, and more would hardly know more.
MOST_BATCHES = 24
MOST_ITEMS = 12_000


def estimate_batches(batches: Sequence[Batch], settings: Mapping[str, Any]) -> dict[str, Row]:
    """Mean and interval of the metric in the population of each batch, and what they rest on, by the batch's time."""
    level, joined = settings["level"], join_batches(batches)
    which = np.repeat(np.arange(len(batches)), [batch.n_items for batch in batches])
    asked: dict[str, Any] = {
        "by": dict(enumerate(which.tolist())) if len(batches) > 1 else None,
        "target": "population",
        "level": level,
        "check_dependence": False,
        "random_state": settings["random_state"],
    }
    estimates: Any
    with silenced_warnings():
        if joined.prediction is None:
            answer: Any = share(joined.labels(), of=settings["of"], **asked)
            estimates = answer if len(batches) > 1 else [answer.overall]
        else:
            metric = settings["metric"]
            asked |= {"metrics": [metric], "positive": settings["positive"]}
            answer = evaluate(joined.predictions(), joined.labels(), **asked)
            estimates = answer.by.compared(metric) if len(batches) > 1 else [answer[metric]]
    basis = f"{answer.basis} of {len(batches)} batches" if joined.n_gold and len(batches) > 1 else answer.basis
    rows = {}
    for k, batch in enumerate(batches):
        low, high = estimates[k].interval(level)
        rows[batch.when] = {"mean": float(estimates[k].mean), "low": float(low), "high": float(high), "basis": basis}
    return rows


def blocks_to_estimate(batches: Sequence[Batch], starts: Sequence[int], estimated: Container[str]) -> list[range]:
    """The places of batches to estimate together: the newest of each baseline, and older ones never done."""
    blocks = []
    for start, last in zip(starts, [*starts[1:], len(batches)], strict=True):
        while any(batch.when not in estimated for batch in batches[start:last]):
            n_items = np.cumsum([batch.n_items for batch in batches[start:last]][::-1])
            n_batches = int(np.clip((n_items <= MOST_ITEMS).sum(), 1, MOST_BATCHES))
            first = max(last - n_batches, start)
            blocks.append(range(first, last))
            last = first
    return blocks[::-1]


def share_interval(hits: int, n: int, level: float) -> tuple[float, float]:
    """The interval of Jeffreys for a share, which reaches 0 or 1 where nothing or all was hit.

    Examples
    --------
    >>> [round(end, 3) for end in share_interval(3, 30, 0.95)], share_interval(0, 0, 0.95)
    ([0.029, 0.243], (nan, nan))
    """
    if not n:
        return np.nan, np.nan
    low, high = (float(betaincinv(hits + 0.5, n - hits + 0.5, (1 + side * level) / 2)) for side in (-1, 1))
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)


_JUDGED_BATCHES = 10  # whose checked items a judge's errors are counted on, at least

_DEFAULTS: dict[str, Any] = {
    "metric": "accuracy",
    "of": None,
    "positive": None,
    "classes": None,
    "baseline": 2,
    "false_alarms": 0.05,
    "level": 0.95,
    "random_state": 0,
}


class Monitor:
    """Watch a system and its judges over time: batches of votes, now and then with checked items.

    Two kinds of alarm may be looked at after every batch, for ever, and are still false with a chance of at most
    `false_alarms`, all of them together: "something" changed, from votes alone, which is quick; and "the system" or
    "the judge" changed, from checked items that were drawn at random within their batches.

    The state is a log: in memory, in a file by `to_json`, or in a storage that several processes share. Parameters that
    are left out are as in the stored monitor, or else as below.

    Parameters
    ----------
    metric : str, optional
        What the course of the system shows, "accuracy" by default; one of hard classes. Alarms do not rest on it.
    of : class, optional
        In place of predictions: the share of items of this class is followed, such as "pass" of the outputs of a
        system that are judged.
    positive : class, optional. The positive class, for the metric.
    classes : sequence, optional. All classes; by default those of the first batch.
    baseline : int, optional
        Batches before the first test, 2 by default; a window that is tested has at least as many before it.
    false_alarms : float, optional. The chance that any alarm is ever raised although nothing changed, 0.05 by default.
    level : float, optional. Probability of the intervals of the course, 0.95 by default.
    random_state : int, optional. Seed of the draws behind the course; 0 by default.
    storage : str or Storage, optional. Where the log is kept, such as ``"sqlite:///watch.db"``; see `trueup.storage`.
    name : str. Of the monitor in the storage.
    """

    def __init__(
        self,
        *,
        metric: str | None = None,
        of: Hashable | None = None,
        positive: Hashable | None = None,
        classes: Sequence[Hashable] | None = None,
        baseline: int | None = None,
        false_alarms: float | None = None,
        level: float | None = None,
        random_state: int | None = None,
        storage: str | Storage | None = None,
        name: str = "monitor",
    ) -> None:
        named = None if classes is None else list(classes)
        # In the order of the defaults.
        asked = (metric, of, positive, named, baseline, false_alarms, level, random_state)
        given = {key: value for key, value in zip(_DEFAULTS, asked, strict=True) if value is not None}
        if metric is not None and of is not None:
            raise InvalidParameter(
                f"`metric` is for batches with predictions and `of` for those without, got {metric!r} and "
                f"{of!r}; pass one of them",
                parameter="of",
            )
        self.settings = _checked({**_DEFAULTS, **given})
        self._log = None if storage is None else StoredLog(storage, name)
        self._events: list[Event] = []
        self._batches: list[Batch] = []
        self._panels: list[Panel] = []
        self._counted: list[dict[Stream, tuple[int, int]]] = []
        self._strata: list[dict[Stream, Strata]] = []
        self._estimates: dict[str, Row] = {}
        self._n_old_estimates = 0  # by version 0.2, which took each batch by itself
        self._starts: list[int] = [0]  # the batches that baselines begin with; the last one is the present baseline
        self._alarms: list[Alarm] | None = None
        if self._log is not None:
            self.settings = _joined(self._log, self.settings, given)
        self.refresh()

    @property
    def _first(self) -> int:
        """The batch that the present baseline begins with."""
        return self._starts[-1]

    @property
    def _recent(self) -> list[Batch]:
        """The batches since the baseline began."""
        return self._batches[self._first :]

    def add(self, labels: Labels, predictions: Any = None, *, when: Any) -> None:
        """Add a batch.

        Parameters
        ----------
        labels : Labels
            The votes on its items, with checked items if there are any; those drawn at random
            (``with_gold(…, drawn="random")``) count for alarms about the system and the judges, others do not. Of
            those that were drawn with different chances some are set aside, so that all have the smallest of these.
        predictions : as for `trueup.evaluate`, optional. The outputs of the system; every batch has them, or none.
        when : str, int, date or datetime
            When the batch is of, later than all before: ``"2026-11-15"``, or with a time; a week ``"2026-W47"``, a
            quarter ``"2026-Q4"``, a month ``"2026-11"``; or a number, ``12`` or ``"week 12"``.
        """
        time = instant_of(when)

        def events() -> list[Event]:
            self._check_time(time)
            has_system = None if not self._batches else self._batches[0].prediction is not None
            classes = self._batches[0].classes if self._batches else self.settings["classes"]
            batch = make_batch(labels, predictions, time, classes, has_system=has_system)
            if has_system is None:
                self._check_question(batch)
            same = next((earlier.when for earlier in self._batches if batch.has_votes_of(earlier)), None)
            if same is not None and batch.is_rich:
                raise InvalidLabels(
                    f"a batch is added once, got for {time} what was added for {same}, vote for vote; pass the votes "
                    f"of {time}",
                    parameter="labels",
                )
            return [Event("batch", time, text=batch.to_json(), key=f"batch {time}")]

        self._write(events)

    def restart(self, why: str | None = None) -> None:
        """Begin a new baseline with the next batch, after a change that was meant or mended; alarms begin anew.

        The chance of a false alarm is `false_alarms` for each baseline.

        Parameters
        ----------
        why : str, optional. Kept in the log.
        """

        def events() -> list[Event]:
            if not self._recent:
                raise InvalidParameter("there is no batch since the last start, got nothing to begin anew; add one")
            last = self._batches[-1].when
            return [Event("restart", last, text=why, key=f"restart {last}")]

        self._write(events)

    def refresh(self) -> None:
        """Read what other processes added; `add` and `restart` begin with it."""
        if self._log is not None:
            self._take(self._log.read(len(self._events)))

    def _write(self, make_events: Callable[[], list[Event]]) -> None:
        """Add what follows from the log as it is; it is worked out again where others were quicker."""
        while True:
            self.refresh()
            new = make_events()
            kept = new if self._log is None or not new else self._log.append(new, len(self._events))
            if kept is not None:
                self._take(kept)
                return

    def _take(self, events: Sequence[Event]) -> None:
        """Bring the state up to date with new events of the log."""
        for event in events:
            if event.kind == "batch" and event.text is not None:
                earlier = self._recent[-1].smallest_chance if self._recent else 1.0
                batch = replace(Batch.from_json(str(event.item), event.text), earlier_chance=earlier)
                self._batches.append(batch)
                panel = panel_of(self._recent[0])
                self._panels.append(panel)
                self._counted.append(counts(batch, panel, self.settings["of"]))
                self._strata.append(strata_of(batch, panel, self.settings["of"]))
            elif event.kind == "estimate" and event.text is not None:
                rows = json.loads(event.text).get("batches", {})  # none by version 0.2, of one batch by itself
                rows = {when: {key: np.nan if v is None else v for key, v in row.items()} for when, row in rows.items()}
                self._estimates |= rows
                self._n_old_estimates += not rows
            elif event.kind == "restart":
                self._starts.append(len(self._batches))
        self._events += events
        self._alarms = self._alarms if not events else None

    def _check_time(self, time: str) -> None:
        """A batch is later than all before."""
        if not self._batches:
            return
        last = self._batches[-1].when
        wrong = ""
        if moment(time)[0] != moment(last)[0]:
            wrong = f"the batches of a monitor have labels of one kind, got {time} after {last}; name it as that one"
        elif any(moment(batch.when) == moment(time) for batch in self._batches):
            wrong = f"a batch is added once, got one of {time} again; leave it out, or give it a later `when`"
        elif moment(time) < moment(last):
            wrong = f"batches are added in the order of time, got one of {time} after that of {last}; add them in order"
        if wrong:
            raise InvalidParameter(wrong, parameter="when")

    def _check_question(self, batch: Batch) -> None:
        """The first batch settles whether there is a system beside the judges."""
        of = self.settings["of"]
        if batch.prediction is not None and of is not None:
            raise InvalidParameter(
                f"`of` is for batches without predictions, got both; leave out `of={of!r}` or the predictions",
            )
        if batch.prediction is None and of not in batch.classes:
            got = "neither" if of is None else repr(of)
            raise InvalidParameter(
                f"a monitor needs predictions, or the class `of` whose share it follows, got {got}; pass predictions, "
                f"or `of={batch.classes[-1]!r}`",
                parameter="of",
            )
        if batch.prediction is not None:
            positive = self.settings["positive"]
            if positive not in (None, *batch.classes):
                raise InvalidParameter(
                    f"`positive` must be one of the classes {preview(batch.classes, most=10)}, got {positive!r}; "
                    "name one of them",
                )
            _check_metric(self.settings["metric"], batch.classes, positive)

    @property
    def alarm(self) -> Alarm | None:
        """The alarm that says most, or None: about the system, else a judge, else something."""
        return self.alarms[0] if self.alarms else None

    @property
    def _limits(self) -> dict[str, Any]:
        """What alarms are raised by."""
        return {name: self.settings[name] for name in ("false_alarms", "baseline")}

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms since the baseline began."""
        if self._alarms is None:
            times = [batch.when for batch in self._recent]
            self._alarms = find_alarms(self.watched, self._strata[self._first :], times, **self._limits)
        return tuple(self._alarms)

    @property
    def watched(self) -> dict[Stream, History]:
        """What is counted in every batch, since the baseline began."""
        return histories(self._counted[self._first :], panel_of(self._recent[0]) if self._recent else None)

    @property
    def status(self) -> tuple[str, ...]:
        """The headline: the sentences of all alarms, or that there is none, or that nothing can be tested yet."""
        if self.alarms:
            return tuple(alarm.sentence for alarm in self.alarms)
        missing = cannot_test_yet(self.watched, len(self._recent), **self._limits)
        if missing:
            return (f"Cannot test yet: {missing}.",)
        nearly = nearly_an_alarm(self.watched, **self._limits)
        if nearly:
            return (f"No alarm yet: {nearly}.",)
        return ("No alarm: what is watched differs from before by no more than chance explains.",)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: who is new or absent, how batches differ, which estimates changed."""
        limit = self.settings["baseline"]
        notes = [*notes_on(self._recent, self.watched, baseline=limit, has_alarm=bool(self.alarms))]
        if self._n_old_estimates:
            old = some(self._n_old_estimates, "estimate")
            notes.append(f"{old} by version 0.2, of each batch by itself, gave way to those of batches together.")
        return tuple(notes)

    @property
    def times(self) -> tuple[str, ...]:
        """When the batches are of."""
        return tuple(batch.when for batch in self._batches)

    @property
    def metric(self) -> str:
        """The name of what the course shows."""
        of = self.settings["of"]
        return str(self.settings["metric"]) if of is None else f"share of {of}"

    def estimate(self, *, progress: Callable[[float], None] | None = None) -> None:
        """Estimate the metric where batches were added, and keep that in the log.

        The newest batches of a baseline (up to 24, or 12,000 items) are estimated together, so that checked items of
        one correct the others too; older ones keep their last estimate.

        Parameters
        ----------
        progress : callable, optional. Called with the share that is done.
        """
        todo = blocks_to_estimate(self._batches, self._starts, self._estimates)
        for k, block in enumerate(todo):
            batches = self._batches[block.start : block.stop]
            rows = estimate_batches(batches, self.settings)
            plain = {when: {key: None if v != v else v for key, v in row.items()} for when, row in rows.items()}
            last, text = batches[-1].when, json.dumps({"batches": plain})
            event = Event("estimate", last, text=text, key=f"estimate {last} {block.start}")
            # Another process may have been quicker.
            self._write(lambda event=event: [] if any(event.key == e.key for e in self._events) else [event])  # type: ignore[misc]
            if progress is not None:
                progress((k + 1) / len(todo))

    def course_rows(self) -> list[Row]:
        """The rows of `course`; a batch without an estimate has none."""
        rows = []
        for batch, counted in zip(self._batches, self._counted, strict=True):
            hits, n = next((cells for stream, cells in counted.items() if stream.subject == "agreement"), (0, 0))
            about = self._estimates.get(batch.when, {"mean": np.nan, "low": np.nan, "high": np.nan, "basis": None})
            agreement = {"agreement": hits / n if n else np.nan, "n": batch.n_items, "n_gold": batch.n_gold}
            rows.append({"when": batch.when, "metric": self.metric, **about, **agreement})
        return rows

    @property
    def course(self) -> Any:
        """A frame with a row a batch: when, metric, mean, low, high, basis, agreement, n, n_gold.

        Mean and interval are what `trueup.evaluate` (or `trueup.share`) says of the population that the batch came
        from, batches being slices of one answer: checked items of one correct the others too, so an estimate changes
        as later batches come (see `estimate`). `agreement` is the share of items on which the system agrees with most
        judges (or most judges name the class), as the alarms see it.
        """
        self.estimate()
        return _frame(self.course_rows())

    @property
    def _window(self) -> int:
        """Batches that a judge's errors are counted on."""
        return max(int(self.settings["baseline"]), _JUDGED_BATCHES)

    def judge_rows(self) -> list[Row]:
        """The rows of `judges`."""
        rows = []
        for last, batch in enumerate(self._batches):
            majority = batch.majority(self._panels[last])
            recent = self._counted[max(0, last + 1 - self._window) : last + 1]
            for judge in batch.judges:
                counted = [of_batch.get(Stream("judge on gold", (judge,)), (0, 0)) for of_batch in recent]
                wrong, n = (sum(cells) for cells in zip(*counted, strict=True))
                low, high = share_interval(wrong, n, self.settings["level"])
                answers = batch.answers_of[judge]
                both = (answers >= 0) & (majority >= 0)
                rows.append(
                    {
                        "when": batch.when,
                        "judge": judge,
                        "error": wrong / n if n else np.nan,
                        "low": low,
                        "high": high,
                        "n_gold": n,
                        "disagreement": float((answers != majority)[both].mean()) if both.any() else np.nan,
                        "n": int((answers >= 0).sum()),
                    }
                )
        return rows

    @property
    def judges(self) -> Any:
        """A frame with a row a batch and judge: when, judge, error, low, high, n_gold, disagreement, n.

        `error` is the share of errors on the checked items, drawn at random, of the last `baseline` batches, or of ten
        if these are fewer; where chances differ within a batch, on those that are as if drawn with equal ones (`n_gold`
        of them, see `notes`). `disagreement` is how often the judge names another class than most judges in this batch,
        as the alarms see it.
        """
        return _frame(self.judge_rows())

    def report(self) -> dict[str, Any]:
        """All that a page about the monitor shows, as a dict that JSON can hold; see `trueup.report.save_report`."""
        from trueup.report.saving import course_report

        return course_report(
            rows=self.course_rows(),
            judges=self.judge_rows(),
            alarms=[vars(alarm) for alarm in self.alarms],
            status=self.status,
            notes=self.notes,
            settings=self.settings,
            window=self._window,
            metric=self.metric,
            began=self._recent[0].when if self._recent else None,
        )

    def save_html(self, path: str | PathLike[str]) -> Path:
        """Write a page with the course, the judges and the alarms; by its suffix HTML, Markdown or JSON."""
        from trueup.report import save_report

        self.estimate()
        return save_report(self.report(), path)

    def to_json(self) -> str:
        """Settings and log as JSON text."""
        return session_to_json(self.settings, {}, self._events)

    @classmethod
    def from_json(
        cls, text: str | bytes, *, storage: str | Storage | None = None, name: str = "monitor", **settings: Any
    ) -> Monitor:
        """The monitor of `to_json`, in memory or put into a storage.

        Parameters
        ----------
        storage, name
            As of the monitor.
        **settings
            What it must have been made with.
        """
        stored, _, events = session_from_json(text)
        if stored.keys() != _DEFAULTS.keys():
            raise InvalidParameter("this is no monitor, got settings of another session; pass what to_json gave")
        _check_given(stored, {key: value for key, value in settings.items() if value is not None}, "this monitor")
        made_with = {key: value for key, value in stored.items() if key != "metric" or stored["of"] is None}
        watch = cls(**made_with, storage=storage, name=name)
        if events and watch._events:
            raise InvalidParameter(
                f"a log is read into a new monitor, got {len(watch._events)} events in it; pass another `name`",
                parameter="name",
            )
        watch._write(lambda: events)
        return watch

    def __repr__(self) -> str:
        return f"Monitor({len(self._batches)} batches, {'no alarm' if self.alarm is None else self.alarm.kind})"


def _checked(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, or an error."""
    check_integer(settings["baseline"], name="baseline", low=2)
    check_level(settings["false_alarms"], name="false_alarms")
    check_level(settings["level"])
    check_integer(settings["random_state"], name="random_state", low=0)
    if ":" not in str(settings["metric"]):  # else it names a class, and the first batch has them
        _check_metric(settings["metric"], settings["classes"] or (0, 1), None)
    return settings


def _check_metric(name: str, classes: Sequence[Hashable], positive: Hashable | None) -> None:
    """Stop a metric that is not one of hard classes."""
    metric = get_metric(name, classes, positive)
    if metric.looks_at != "classes":
        raise InvalidParameter(
            f"`metric` must be one of hard classes, got {name!r}, which needs {metric.looks_at}; take e.g. "
            "`metric='accuracy'`",
        )


def _joined(log: StoredLog, settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The settings of the stored monitor, which the first process makes; others may not say otherwise."""
    record = log.storage.create(log.name, "monitor", settings)
    where = f"{log.name!r} in {log.storage.url}"
    if record.kind != "monitor":
        raise StorageError(
            f"{where} must be a monitor, got a session of the kind {record.kind!r}; pass another `name`",
            parameter="name",
        )
    _check_given(record.settings, given, f"the monitor {where}")
    return dict(record.settings)


def _check_given(settings: Mapping[str, Any], given: Mapping[str, Any], where: str) -> None:
    """Stop parameters that differ from those of a stored monitor."""
    for key, value in given.items():
        if settings[key] != value:
            raise StorageError(
                f"`{key}` of {where} is fixed when it begins, which was {settings[key]!r:.60}, got {value!r:.60}; "
                "leave it out, or begin another monitor",
            )


def _frame(rows: list[Row]) -> Any:
    """A frame with the rows."""
    names = list(rows[0]) if rows else []
    return make_frame({name: [row[name] for row in rows] for name in names})
