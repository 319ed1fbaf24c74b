"""Tiles in the vetting app: a session that asks how many objects have no outline, in the random order of a deck."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Self

import numpy as np

from trueup._base.types import Positions
from trueup._base.validation import check_integer, check_level, preview
from trueup._base.writing import write_text_safely
from trueup.data.labels import Labels
from trueup.detection.deck import DRAWN, Deck, Vetted, same_deck, take_answers
from trueup.detection.missed import MissedObjects, missed_objects
from trueup.detection.pool import Pool
from trueup.detection.reading import load_json
from trueup.exceptions import InvalidFile, InvalidParameter, StorageError
from trueup.posteriors import Estimate
from trueup.sessions.log import Names
from trueup.sessions.progress import UNKNOWN, Progress, count_answers, fold
from trueup.sessions.session import Batch, Session
from trueup.storage import Storage, open_storage
from trueup.storage.joining import StoredLog, of_votes

COUNTS = tuple(range(31))  # the answers to a card; where there are more objects, tiles must be smaller
METRIC = "missed objects"
FORMAT = 1


@dataclass(frozen=True)
class TilesToSearch:
    """The tiles of a deck as the app needs them, without the pool.

    Attributes
    ----------
    drawn : dict. As `Deck.drawn` has it.
    n_tiles : int. All tiles of all images.
    pictures : dict from number to str. The file of each card, in the order in which they are shown.
    hidden : tuple of str
        The numbers of the tiles from which an outline was taken, which measure the vetter and count nothing.
    """

    drawn: Mapping[str, Any]
    n_tiles: int
    pictures: Mapping[str, str]
    hidden: tuple[str, ...]

    @classmethod
    def of(cls, deck: Deck, pictures: Mapping[str, str]) -> Self:
        """Of a deck, with a picture for each tile."""
        hidden = tuple(number for number, card in deck.numbered.items() if card.kind == "hidden")
        return cls(deck.drawn, deck.n_tiles, dict(pictures), hidden)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """From the file that `save_for_app` wrote."""
        content = load_json(path)
        parts = {"drawn": Mapping, "n_tiles": int, "pictures": Mapping, "hidden": list}
        if not isinstance(content, Mapping) or content.get("format") != FORMAT or not set(parts) <= set(content):
            raise InvalidFile(f"{path} must be the tiles of a pool, got something else; write it with 'detect vet'")
        drawn, n_tiles, pictures, hidden = (content[name] for name in parts)
        is_whole = (
            all(isinstance(content[name], kind) for name, kind in parts.items())
            and {"pool", *DRAWN} <= set(drawn)
            and all(isinstance(name, str) for name in pictures.values())
            and set(hidden) <= set(pictures)
            and 0 < len(pictures) - len(hidden) <= n_tiles
        )
        if not is_whole:
            raise InvalidFile(
                f"{path} must have tiles and their pictures, got damaged ones; write it with 'detect vet'"
            )
        return cls(dict(drawn), n_tiles, dict(pictures), tuple(hidden))

    def write(self, path: str | PathLike[str]) -> None:
        """To a file."""
        content = {"format": FORMAT, **vars(self)}
        write_text_safely(path, json.dumps(content, indent=1) + "\n")


class TileSearch(Session):
    """How many objects did nobody draw? A session about tiles that were drawn at random.

    Parameters
    ----------
    tiles : TilesToSearch. What `save_for_app` wrote: ``TilesToSearch.read("app/tiles.json")``.
    level : float. Of the interval.
    random_state : int. Of the draws of the number.
    storage : str or Storage, optional. Where the log is kept; see `trueup.storage`.
    name : str, optional. Of the session in the storage.
    """

    def __init__(
        self,
        tiles: TilesToSearch,
        *,
        level: float = 0.95,
        random_state: int = 0,
        storage: str | Storage | None = None,
        name: str | None = None,
    ) -> None:
        self.level = check_level(level)
        self.seed = check_integer(random_state, name="random_state", low=0)
        self.tiles = tiles
        numbers = list(tiles.pictures)
        # To the pool, nothing is missed.
        labels = Labels.from_matrix(
            np.zeros((len(numbers), 1), dtype=int), items=numbers, classes=COUNTS, labelers=["pool"]
        )
        labels = labels.with_items({"item": numbers, "image": list(tiles.pictures.values())})
        self._begin(labels, "drawn order", tiles.drawn)
        self._is_hidden = np.isin(np.array(numbers), tiles.hidden)
        if storage is not None or name is not None:
            StoredLog(storage, name).join(self, "tile search", {"tiles": of_votes(labels)}, stopping=())

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any], options: Mapping[str, Any], *data: Any, **changed: Any) -> Self:
        """A session as it was first made; the options, how the tiles were drawn, are in the tiles."""
        kept = {name: settings[name] for name in ("level", "random_state")}
        return cls(*data, **{**kept, **changed})

    def _choose(self, n: int) -> Batch:
        left = np.flatnonzero(self._available)[:n]
        chance = (len(self._is_hidden) - len(self.tiles.hidden)) / self.tiles.n_tiles
        chances = [None if self._is_hidden[at] else chance for at in left.tolist()]
        reason = "It is the next one of the order that was drawn."
        return self._batch(left.tolist(), np.zeros(len(left)), [reason] * len(left), chances)

    @property
    def missed(self) -> MissedObjects | None:
        """How many objects nobody drew; None before a tile was searched."""
        answers, _ = _counted(self.progress)
        counts = answers[~self._is_hidden & (answers >= 0) & (answers < len(COUNTS))]
        return missed_objects(counts, self.tiles.n_tiles, random_state=self.seed) if len(counts) else None

    @property
    def estimate(self) -> Estimate | None:
        """Of the number of missed objects."""
        return None if self.missed is None else self.missed.total

    @property
    def n_searched(self) -> int:
        """Tiles with an answer, those without an outline among them."""
        return self.progress.n_tells

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the answers may be doubted."""
        answers, n_left_out = _counted(self.progress)
        hidden = answers[self._is_hidden & (answers >= 0)]
        n_more = int((answers == len(COUNTS)).sum())
        notes = Vetted(self._labels, None, 0, 0, {}, len(hidden), int((hidden > 0).sum()), n_left_out).warnings
        return (*notes, _too_many(n_more)) if n_more else notes

    @property
    def finished(self) -> str | None:
        """Why the session can stop, in one sentence; None while it should go on."""
        if self._available.any() or self.progress.waiting.any():
            return None
        return f"All {len(self.tiles.pictures)} tiles are searched."

    def _history(self, every: int) -> tuple[list[dict[str, float]], str]:
        rows = [then._row(then.estimate) for then in self._after_answers(every, first=1) if then.estimate is not None]
        return rows, METRIC

    def _settings(self) -> dict[str, Any]:
        return {"level": self.level, "random_state": self.seed}


def read_searched(storage: str | Storage, pool: Pool, *, name: str | None = None, random_state: int = 0) -> Vetted:
    """The answers of the vetters of the app about tiles.

    Parameters
    ----------
    storage : str or Storage. Where the session is kept, e.g. ``"sqlite:///tiles.vetting.db"``.
    pool : Pool. The same that the tiles were drawn of.
    name : str, optional. Of the session, where there are several about tiles.
    random_state : int. Of the draws of the number of missed objects.

    Returns
    -------
    Vetted
        Whose `missed` is for `evaluate` and `compare`; its labels are those of the pool.
    """
    opened = open_storage(storage, create=False)
    try:
        searches = [record for record in opened.sessions() if record.kind == "tile search"]
        searches = [record for record in searches if name in (None, record.name)]
        if len(searches) != 1:
            got = preview([record.name for record in searches]) if searches else "none"
            raise StorageError(f"{opened.url} must hold one session about tiles, got {got}; name it with `name`")
        record, events = searches[0], opened.events(searches[0].name)
    finally:
        if opened is not storage:
            opened.close()
    where = f"session {record.name!r} in {opened.url}"
    deck = same_deck(record.options, pool, file=where)
    numbers = [number for number, card in deck.numbered.items() if card.is_tile]
    counts, n_left_out = _counted(fold(events, Names(numbers, list(COUNTS))))
    n_more = int((counts == len(COUNTS)).sum())
    if n_more:
        raise InvalidParameter(f"{where}: {_too_many(n_more)}")
    answers = {number: count for number, count in zip(numbers, counts.tolist(), strict=True) if count >= 0}
    if not answers:
        raise InvalidParameter(f"{where} must have tiles that were searched, got no answer that counts; search some")
    vetted = take_answers(deck, answers, file=where, random_state=random_state)
    return replace(vetted, n_left_out=n_left_out)


def _counted(progress: Progress) -> tuple[Positions, int]:
    """The answer that counts of each card, -1 for none, and the number of cards that nobody could answer."""
    counted = count_answers(progress)
    return np.where(progress.draw > 0, counted.progress.truth, UNKNOWN), int(counted.undecided.sum())


def _too_many(n: int) -> str:
    return (
        f"a tile must have at most {COUNTS[-1]} objects without an outline, got {n} with more; cut images into smaller "
        "tiles (`split`), or correct the answer"
    )
