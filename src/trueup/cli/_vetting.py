"""A vetting session in memory: its files read, its test set up, names typed by people understood."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup._base.cells import plain_cell
from trueup.cli._files import by_name, read_both, source_of
from trueup.cli._options import PredictionOptions, VoteOptions, given, opt, parse_pairs
from trueup.cli._places import KnownFile, Place, SessionFile
from trueup.exceptions import InvalidFile, InvalidParameter

if TYPE_CHECKING:
    from trueup.active import ActiveTest
    from trueup.data.labels import Labels

_BESIDE = ("gold", "items")  # files of `VoteOptions`


@dataclass(frozen=True)
class SessionOptions:
    """How to test (fixed when the session begins, but for the last three)."""

    metric: str | None = opt(None, "What is measured; accuracy by default.", "NAME")
    strategy: str | None = opt(
        None, "Which items are asked for, propensity by default; one of STRATEGIES.", "NAME", chosen="STRATEGIES"
    )
    estimator: str | None = opt(
        None, "What is made of the answers, rectified by default; one of ESTIMATORS.", "NAME", chosen="ESTIMATORS"
    )
    noise: str | None = opt(
        None, "What the votes say before anyone looked; one of NOISE_MODELS.", "NAME", chosen="NOISE_MODELS"
    )
    categories: str | None = opt(
        None, "A category for each item (columns: item, category); the metric is their mean.", "FILE", reads=True
    )
    target: str | None = opt(None, "sample (the default) or population.", "WHAT")
    level: float | None = opt(None, "Probability of the intervals; 0.95 by default.", "P")
    option: list[str] | None = opt(None, "An option of the strategy, e.g. floor=0.5.", "NAME=VALUE")
    seed: int | None = opt(None, "Seed of all chance; 0 by default.", "N")
    budget: int | None = opt(None, "Answers that can be paid for.", "N")
    half_width: float | None = opt(None, "Stop once the interval is ± this.", "W")
    prob_better: float | None = opt(None, "Stop once the better of two systems is so surely better.", "P")

    @property
    def named(self) -> dict[str, Any]:
        """What was given, as `ActiveTest` names it; categories and options of the strategy apart."""
        named = {name: value for name, value in vars(self).items() if name not in ("categories", "option", "seed")}
        return given(**named, random_state=self.seed)


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
            empty = f"an export of {tool} that nobody answered; check the tasks"
        else:
            how: dict[str, Any] = {"drawn": "chosen", "missing": [None], "labels": self.labels}
            answers = read_gold(source_of(source), item=item, label=truth, **how)
            empty = f"an empty column {truth!r}; fill it in and save the file"
        if not answers:
            raise InvalidFile(f"{source!r} has no answers, got {empty}")
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
    labels, systems, positive = read_both(votes, predictions, how, how_predicted)
    _check_names(labels)
    test = ActiveTest(systems, labels, **all_settings(settings, labels, how, positive), **place.made_with)
    reading = {"votes": asdict(how), "predictions": asdict(how_predicted)}
    file = SessionFile(files, reading, json.loads(test.to_json()))
    return Vetting(place, file, labels, list(systems.systems.tolist()), test)


def all_settings(
    settings: SessionOptions, labels: Labels, how: VoteOptions, positive: Hashable | None
) -> dict[str, Any]:
    """The settings of a new session, as `ActiveTest` takes them."""
    named = settings.named | given(positive=positive)
    if settings.categories is not None:
        from trueup.data.gold import read_gold

        source = source_of(settings.categories)
        categories = read_gold(source, item=how.item, label="category", drawn="chosen", labels=labels)
        # As text, and kept in the session file itself.
        named["categories"] = {name: str(category) for name, category in categories.items()}
    return {**named, **parse_pairs(settings.option or [], option="--option")}


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
    files: Sequence[str] = (),
) -> Vetting:
    """A session as it was left; its files must be as they were.

    What is given again, files and settings, must be as it was first, but for the rules of stopping.
    """
    from trueup.active import ActiveTest

    file = place.load()
    paths = {role: str(known.find(place)) for role, known in file.files.items()}
    roles = [role for role in paths if role.startswith("predictions")]
    again = [KnownFile.of(Path(path), place).sha256 for path in files]
    known = [file.files[role].sha256 for role in ("votes", *roles)]
    if again not in ([], known[:1], known):
        raise InvalidParameter(
            f"the files of a session are fixed when it begins, got others for {place}; leave them out, or "
            "name a new session"
        )
    try:
        stored = VoteOptions(**file.reading["votes"]), PredictionOptions(**file.reading["predictions"])
    except (KeyError, TypeError) as error:
        raise InvalidFile(f"{place} is damaged, got no way to read its files; begin a new one") from error
    for now, before in zip((how, how_predicted), stored, strict=True):
        if now is not None and now not in (type(now)(), before):
            raise InvalidParameter(
                f"how files are read is fixed when a session begins, got other options for {place}; begin a new session"
            )
    beside: dict[str, Any] = {role: paths[role] for role in _BESIDE if role in paths}
    read_as = replace(stored[0], **beside)
    labels, systems, _ = read_both(paths["votes"], [paths[role] for role in roles], read_as, stored[1])
    changed = {} if settings is None else _changed(place, settings, file.test.get("settings", {}))
    try:
        test = ActiveTest.from_json(json.dumps(file.test), systems, labels, **changed, **place.made_with)
    except (TypeError, KeyError) as error:
        raise InvalidFile(f"{place} is damaged, got {error!s:.80}; begin a new session") from error
    reasons = {item: why for item, why in file.reasons if isinstance(item, Hashable)}
    return Vetting(place, file, labels, list(systems.systems.tolist()), test, reasons)


def _changed(place: Place, settings: SessionOptions, was: Mapping[str, Any]) -> dict[str, Any]:
    """The rules of stopping that are new; an error where another setting differs."""
    from trueup.active.session import STOPPING

    named = settings.named
    fixed = [name for name, value in named.items() if name not in STOPPING and was.get(name) != value]
    fixed += [name for name in ("categories", "option") if getattr(settings, name)]
    if fixed:
        flag = "--seed" if fixed[0] == "random_state" else "--" + fixed[0].replace("_", "-")
        raise InvalidParameter(f"{flag} is fixed when a session begins, got another for {place}; begin a new session")
    return {name: value for name, value in named.items() if name in STOPPING}
