"""A vetting session in memory: its files read, its test set up, names typed by people understood."""

from __future__ import annotations

import functools
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from trueup._base.cells import plain_cell
from trueup.cli._files import by_name, class_named, read_systems, read_votes, source_of
from trueup.cli._options import InputFile, PredictionOptions, VoteOptions, option, parse_pairs
from trueup.cli._places import KnownFile, Place, SessionFile
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.active import ActiveTest
    from trueup.data.labels import Labels


_BESIDE = ("gold", "items")  # files of `VoteOptions`


_option = functools.partial(option, panel="How to test (fixed when the session begins, but for the last three)")
_STRATEGY = "Which items are asked for, propensity by default; one of STRATEGIES."
_ESTIMATOR = "What is made of the answers, rectified by default; one of ESTIMATORS."
_NOISE = "What the votes say before anyone looked; one of NOISE_MODELS."
_CATEGORIES = "A category for each item (columns: item, category); the metric is their mean."


@dataclass(frozen=True)
class SessionOptions:
    """The settings of a session; None where nothing was said."""

    metric: Annotated[str | None, _option("--metric", "What is measured; accuracy by default.", metavar="NAME")] = None
    strategy: Annotated[str | None, _option("--strategy", _STRATEGY, metavar="NAME", chosen_from="STRATEGIES")] = None
    estimator: Annotated[str | None, _option("--estimator", _ESTIMATOR, metavar="NAME", chosen_from="ESTIMATORS")] = (
        None
    )
    noise: Annotated[str | None, _option("--noise", _NOISE, metavar="NAME", chosen_from="NOISE_MODELS")] = None
    categories: Annotated[str | None, _option("--categories", _CATEGORIES, metavar="FILE"), InputFile()] = None
    target: Annotated[str | None, _option("--target", "sample (the default) or population.", metavar="WHAT")] = None
    level: Annotated[
        float | None, _option("--level", "Probability of the intervals; 0.95 by default.", metavar="P")
    ] = None
    option: Annotated[
        list[str] | None, _option("--option", "An option of the strategy, e.g. floor=0.5.", metavar="NAME=VALUE")
    ] = None
    seed: Annotated[int | None, _option("--seed", "Seed of all chance; 0 by default.", metavar="N")] = None
    budget: Annotated[int | None, _option("--budget", "Answers that can be paid for.", metavar="N")] = None
    half_width: Annotated[float | None, _option("--half-width", "Stop once the interval is ± this.", metavar="W")] = (
        None
    )
    prob_better: Annotated[
        float | None,
        _option("--prob-better", "Stop once the better of two systems is so surely better.", metavar="P"),
    ] = None


@dataclass
class Vetting:
    """An open session."""

    place: Place  # where it is kept
    file: SessionFile  # what it rests on, as it was read
    labels: Labels
    systems: list[Hashable]  # the names of the systems under test
    test: ActiveTest
    reasons: dict[Hashable, str] = field(default_factory=dict)  # of a file whose log does not have them

    def save(self) -> None:
        """Keep the session where it is kept."""
        waiting = [[item, why] for item, why in self.waiting()]
        self.place.save(replace(self.file, test=json.loads(self.test.to_json()), reasons=waiting))

    def ask(self, n: int) -> list[tuple[Hashable, str]]:
        """New items to vet, and why."""
        return [(one.item, one.why) for one in self.test.ask(n).details]

    def tell(
        self, answers: Mapping[Hashable, Hashable], *, who: str | None, correct: bool, blind: bool | None = None
    ) -> int:
        """Take answers; returns how many are new."""
        before = self.test.n_vetted
        self.test.tell(answers, who=who, correct=correct, blind=blind)
        return self.test.n_vetted - before

    def outside(self, texts: Sequence[str]) -> dict[Hashable, Hashable]:
        """Answers that these items are none of the classes."""
        from trueup.active import NONE_OF_THESE

        return dict.fromkeys([self.item(text) for text in texts], NONE_OF_THESE)

    def waiting(self) -> list[tuple[Hashable, str]]:
        """The items that wait for an answer, and why they were asked."""
        asked = {event.item: event.why for event in self.test.log if event.kind == "ask" and event.why is not None}
        return [(item, asked.get(item) or self.reasons.get(item, "")) for item in self.test.waiting]

    def item(self, text: str) -> Hashable:
        """The item that a text means."""
        known = by_name(self.labels.items.tolist())
        if text not in known:
            raise InvalidParameter(f"there is no item {text!r} in the votes, got it; use the names that 'vet ask' gave")
        return known[text]

    def typed(self, texts: Iterable[str]) -> dict[Hashable, Hashable]:
        """Answers written ITEM=CLASS, where both names may hold equals signs themselves."""
        items, classes = by_name(self.labels.items.tolist()), by_name(self.labels.classes.tolist())
        found: dict[Hashable, Hashable] = {}
        for text in texts:
            cuts = [k for k, sign in enumerate(text) if sign == "="]
            meant = [k for k in cuts if text[:k] in items and _class_meant(text[k + 1 :], classes) is not None]
            if len(meant) != 1:
                raise InvalidParameter(_what_is_wrong(text, cuts, len(meant), items, list(classes)))
            item, truth = items[text[: meant[0]]], _class_meant(text[meant[0] + 1 :], classes)
            if found.setdefault(item, truth) != truth:
                raise InvalidParameter(f"an item has one truth, got two for {str(item)!r}; give one of them")
        return found

    def read(self, source: str, *, item: str, truth: str, question: str | None = None) -> dict[Hashable, Hashable]:
        """Answers from a file, or from the export of a tool; rows without one are left out."""
        from trueup.adapters import export_format, read_export
        from trueup.data.gold import read_gold

        tool = export_format(source_of(source), item=item)
        answers: Mapping[Hashable, Hashable]
        if tool is not None:
            answers = read_export(source, file_format=tool, question=question).vetted()
        else:
            answers = read_gold(
                source_of(source), item=item, label=truth, drawn="chosen", missing=[None], labels=self.labels
            )
        if not answers and tool is not None:
            raise InvalidFile(f"{source!r} has no answers, got an export of {tool} that nobody answered; vet the tasks")
        if not answers:
            raise InvalidFile(f"{source!r} has no answers, got an empty column {truth!r}; fill it in and save the file")
        items, classes = by_name(self.labels.items.tolist()), by_name(self.labels.classes.tolist())
        found = {}
        for name, answer in answers.items():
            meant = _class_meant(str(answer), classes)
            found[plain_cell(name, items)] = answer if meant is None else meant
        return found


def _class_meant(text: str, classes: Mapping[str, Hashable]) -> Hashable | None:
    """The class that a text means: as it is, without blanks around it, or in other case if that is clear.

    A spreadsheet makes TRUE of true.
    """
    for written in (text, text.strip(), plain_cell(text, classes)):
        if written in classes:
            return classes[written]
    alike = [name for name in classes if name.casefold() == text.strip().casefold()]
    return classes[alike[0]] if len(alike) == 1 else None


def _what_is_wrong(text: str, cuts: Sequence[int], n_meant: int, items: Mapping[str, Any], classes: list[str]) -> str:
    from trueup._base.validation import preview

    if not cuts:
        return f"answers must be written ITEM=CLASS, got {text!r}; put the item before the class"
    if n_meant:
        return f"{text!r} can be read in several ways, got {n_meant} of them; give the answers with --from FILE"
    named = next((text[:k] for k in reversed(cuts) if text[:k] in items), None)
    if named is None:
        return f"there is no item {text[: cuts[0]]!r} in the votes, got {text!r}; use the names that 'vet ask' gave"
    return (
        f"the truth of {named!r} must be one of the classes {preview(classes, most=10)}, got "
        f"{text[len(named) + 1 :]!r}; use one of them"
    )


def begin(
    place: Place,
    votes: str,
    predictions: Sequence[str],
    settings: SessionOptions,
    how: VoteOptions,
    how_predicted: PredictionOptions,
) -> Vetting:
    """A new session on these files."""
    from trueup.active import ActiveTest

    roles = {"votes": votes} | {role: path for role in _BESIDE if (path := getattr(how, role)) is not None}
    roles |= {f"predictions {k + 1}": path for k, path in enumerate(predictions)}
    files = {role: KnownFile.of(Path(path), place) for role, path in roles.items()}
    reading = {"votes": asdict(how), "predictions": asdict(how_predicted)}
    labels = read_votes(votes, how)
    systems = read_systems(list(predictions), labels, how_predicted, how)
    _check_names(labels)
    test = ActiveTest(systems, labels, **all_settings(settings, labels, how, how_predicted), **place.made_with)
    file = SessionFile(files, reading, json.loads(test.to_json()))
    return Vetting(place, file, labels, list(systems.systems.tolist()), test)


def all_settings(
    settings: SessionOptions, labels: Labels, how: VoteOptions, how_predicted: PredictionOptions
) -> dict[str, Any]:
    """What was said of a new session, as `ActiveTest` takes it."""
    given = _given(settings)
    if settings.categories is not None:
        given["categories"] = _categories(settings.categories, labels, how.item)
    if how_predicted.positive is not None:
        given["positive"] = class_named(labels, how_predicted.positive)
    return {**given, **parse_pairs(settings.option or [], option="--option")}


def _check_names(labels: Labels) -> None:
    """A session is JSON, which has text and numbers only."""
    for what, names in (("item", labels.items.tolist()), ("class", labels.classes.tolist())):
        odd = next((name for name in names if not isinstance(name, str | int | float)), None)
        if odd is not None:
            raise InvalidFile(
                f"every {what} of a session must be text or a number, got {odd!r:.60}; write the names as text"
            )


def resume(
    place: Place,
    settings: SessionOptions | None = None,
    how: VoteOptions | None = None,
    how_predicted: PredictionOptions | None = None,
    *,
    votes: str | None = None,
    predictions: Sequence[str] | None = None,
) -> Vetting:
    """A session as it was left; its files must be as they were.

    What is said again about files and settings must be what was said first, but for the rules of stopping.
    """
    from trueup.active import ActiveTest

    file = place.load()
    paths_now = {role: known.find(place) for role, known in file.files.items()}
    _check_same_files(place, file, votes, list(predictions or []))
    try:
        stored = VoteOptions(**file.reading["votes"]), PredictionOptions(**file.reading["predictions"])
    except (KeyError, TypeError) as error:
        raise InvalidFile(f"{place} is damaged, got no way to read its files; begin a new one") from error
    for said, was in zip((how, how_predicted), stored, strict=True):
        if said is not None and said not in (type(said)(), was):
            raise InvalidParameter(
                f"how files are read is fixed when a session begins, got other options for {place}; begin a new session"
            )
    beside: dict[str, Any] = {role: str(paths_now[role]) for role in _BESIDE if role in paths_now}
    read_as = replace(stored[0], **beside)
    labels = read_votes(str(paths_now["votes"]), read_as)
    paths = [str(paths_now[role]) for role in file.files if role.startswith("predictions")]
    systems = read_systems(paths, labels, stored[1], read_as)
    changed = {} if settings is None else _changed(place, settings, file.test.get("settings", {}))
    try:
        test = ActiveTest.from_json(json.dumps(file.test), systems, labels, **changed, **place.made_with)
    except (TypeError, KeyError) as error:
        raise InvalidFile(f"{place} is damaged, got {error!s:.80}; begin a new session") from error
    reasons = {item: why for item, why in file.reasons if isinstance(item, Hashable)}
    return Vetting(place, file, labels, list(systems.systems.tolist()), test, reasons)


def _check_same_files(place: Place, file: SessionFile, votes: str | None, predictions: Sequence[str]) -> None:
    """Files that are named again must be those of the session."""
    known = [one.sha256 for role, one in file.files.items() if role.startswith("predictions")]
    named = [KnownFile.of(Path(path), place).sha256 for path in predictions]
    same = not named or named == known
    if votes is not None:
        same = same and KnownFile.of(Path(votes), place).sha256 == file.files["votes"].sha256
    if not same:
        raise InvalidParameter(
            f"the files of a session are fixed when it begins, got others for {place}; leave them out, or "
            "name a new session"
        )


def _given(settings: SessionOptions) -> dict[str, Any]:
    """What was said, as `ActiveTest` names it; categories and options of the strategy apart."""
    named = {name: value for name, value in asdict(settings).items() if name not in ("categories", "option", "seed")}
    given = {name: value for name, value in named.items() if value is not None}
    return given if settings.seed is None else {**given, "random_state": settings.seed}


def _changed(place: Place, settings: SessionOptions, was: Mapping[str, Any]) -> dict[str, Any]:
    from trueup.active.session import STOPPING

    given = _given(settings)
    fixed = [name for name, value in given.items() if name not in STOPPING and was.get(name) != value]
    fixed += [name for name in ("categories", "option") if getattr(settings, name)]
    if fixed:
        flag = "--seed" if fixed[0] == "random_state" else "--" + fixed[0].replace("_", "-")
        raise InvalidParameter(f"{flag} is fixed when a session begins, got another for {place}; begin a new session")
    return {name: value for name, value in given.items() if name in STOPPING}


def _categories(path: str, labels: Labels, item: str) -> dict[Hashable, Hashable]:
    """The category of each item, as text; kept in the session file itself."""
    from trueup.data.gold import read_gold

    categories = read_gold(source_of(path), item=item, label="category", drawn="chosen", labels=labels)
    return {name: str(category) for name, category in categories.items()}
