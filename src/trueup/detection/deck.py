"""Cards for a vetter: random candidates, empty places and random tiles; and what their answers say."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np
import scipy

from trueup._base.types import Booleans, Floats, Positions
from trueup._base.validation import check_integer, preview
from trueup.data.labels import Labels
from trueup.detection.missed import MissedObjects, Tiles, make_tiles, missed_objects
from trueup.detection.pool import NOTHING, REAL, Pool, image_size
from trueup.detection.reading import load_json
from trueup.detection.shapes import Images
from trueup.exceptions import InvalidFile, InvalidParameter

CardKind = Literal["candidate", "planted", "tile", "hidden"]
# A bad outline is of an object; another class or a duplicate is not one.
ANSWERS = {"yes": REAL, "outline": REAL, "no": NOTHING, "class": NOTHING, "duplicate": NOTHING, "skip": None}
FORMAT = 2
DRAWN = ("n_candidates", "n_tiles", "n_planted", "n_hidden", "split", "seed")  # parameters of `make_deck`
_TRIES = 300  # to find an empty place
_TRUSTED = 0.2  # share of planted places taken for objects from which on the answers are doubted
_OVERLOOKED = 0.05  # the share of hidden objects that is surely overlooked, from which on the answers are doubted


@dataclass(frozen=True, eq=False)
class Card:
    """One question."""

    kind: CardKind  # a hidden one is a tile in which one object has no outline although it has one in the pool
    item: str  # the name of the candidate or tile; empty for a place where nothing is
    image: int  # position of its image
    box: Floats
    category: str = ""  # the class that is asked for; empty for tiles
    candidate: int = -1  # position in the pool: of what is asked for, or of the hidden object; -1 for the others

    @property
    def is_tile(self) -> bool:
        """Whether it asks for objects without an outline."""
        return self.kind in ("tile", "hidden")


@dataclass(frozen=True, eq=False)
class Deck:
    """Cards in the order in which they are shown.

    Attributes
    ----------
    drawn : dict. How they were drawn, and the fingerprint of the pool; the page and its answers have it.
    n_tiles : int. All tiles of all images, of which some were drawn.
    """

    pool: Pool = field(repr=False)
    cards: tuple[Card, ...] = field(repr=False)
    drawn: dict[str, Any]
    n_tiles: int

    def __len__(self) -> int:
        return len(self.cards)

    @property
    def numbered(self) -> dict[str, Card]:
        """The cards by their number, from "1" on, as answers name them."""
        return {str(k + 1): card for k, card in enumerate(self.cards)}


def make_deck(
    pool: Pool,
    *,
    n_candidates: int = 60,
    n_tiles: int = 20,
    n_planted: int | None = None,
    n_hidden: int | None = None,
    split: int = 2,
    seed: int = 0,
) -> Deck:
    """Cards for a vetter.

    Parameters
    ----------
    n_candidates : int. Candidates drawn at random, each with the same chance; all of them where there are fewer.
    n_tiles : int. Tiles drawn at random, in which the vetter looks for objects without an outline.
    n_planted : int, optional
        Places where nobody drew anything, shown as candidates; by default one for ten candidates.
    n_hidden : int, optional
        Further tiles from which the outline of an object that nobody doubts is taken; by default one for five tiles.
        Fewer where there is no such object in a tile that was not drawn.
    split : int. Each image has split × split tiles.
    """
    if not len(pool):
        raise InvalidParameter("there is no candidate to vet, got an empty pool")
    n_candidates = min(check_integer(n_candidates, name="n_candidates", low=1), len(pool))
    n_tiles = check_integer(n_tiles, name="n_tiles", low=0)
    n_planted = check_integer(-(-n_candidates // 10) if n_planted is None else n_planted, name="n_planted", low=0)
    n_hidden = check_integer(-(-n_tiles // 5) if n_hidden is None else n_hidden, name="n_hidden", low=0)
    seed = check_integer(seed, name="seed", low=0)
    rng = np.random.default_rng([seed, 27])
    chosen = rng.choice(len(pool), n_candidates, replace=False)
    cards = [*(candidate_card(pool, k) for k in chosen.tolist()), *_empty_places(pool, n_planted, rng)]
    shown = [cards[k] for k in rng.permutation(len(cards))]
    sizes = np.array([image_size(pool, k) for k in range(pool.images.n)]).reshape(-1, 2)
    tiles = make_tiles(Images(pool.images.ids, sizes, pool.images.files), split)
    n_tiles = min(n_tiles, len(tiles))
    drawn_tiles = tiles.draw(n_tiles, rng) if n_tiles else np.zeros(0, dtype=np.int64)
    searched = [Card("tile", tiles.names[k], int(tiles.image[k]), tiles.boxes[k]) for k in drawn_tiles.tolist()]
    searched += _hidden_objects(pool, tiles, drawn_tiles, n_hidden, rng)
    # In an order of chance, so that the first ones stand for all where a vetter stops early.
    shown += [searched[k] for k in rng.permutation(len(searched))]
    drawn = dict(zip(DRAWN, (n_candidates, n_tiles, n_planted, n_hidden, split, seed), strict=True))
    return Deck(pool, tuple(shown), {"pool": fingerprint(pool), **drawn}, len(tiles))


def candidate_card(pool: Pool, k: int) -> Card:
    """The question whether a candidate is an object."""
    return Card("candidate", pool.items[k], int(pool.image[k]), pool.boxes[k], pool.categories[pool.category[k]], k)


def _empty_places(pool: Pool, n: int, rng: np.random.Generator) -> list[Card]:
    """Boxes of the sizes of candidates where no candidate is; fewer where images are full."""
    places: list[Card] = []
    for _ in range(n):
        for _ in range(_TRIES):
            like, image = int(rng.integers(len(pool))), int(rng.integers(pool.images.n))
            sides, size = pool.boxes[like, 2:], np.array(image_size(pool, image))
            if (sides >= size).any():
                continue
            box = np.r_[rng.uniform(0, size - sides), sides]
            others = pool.boxes[pool.image == image]
            low, high = others[:, :2], others[:, :2] + others[:, 2:]
            if not ((high > box[:2]) & (low < box[:2] + box[2:])).all(axis=1).any():
                places.append(Card("planted", "", image, box, pool.categories[pool.category[like]]))
                break
    return places


def _hidden_objects(pool: Pool, tiles: Tiles, drawn: Positions, n: int, rng: np.random.Generator) -> list[Card]:
    """Tiles that were not drawn, each without the outline of an object that nobody doubts; as many as there are."""
    n_found = sum(is_found.astype(np.int64) for is_found in _found_by(pool))
    n_drew = (pool.votes == 1).sum(axis=0)
    sure = (n_drew > 0) & (n_drew + n_found > 1) & ~(pool.votes == 0).any(axis=0)
    cards: list[Card] = []
    used: set[int] = set()
    for k in rng.permutation(np.flatnonzero(sure)).tolist():
        if len(cards) == n:
            break
        centre = pool.boxes[k, :2] + pool.boxes[k, 2:] / 2
        others = pool.boxes[(pool.image == pool.image[k]) & (np.arange(len(pool)) != k)]
        own = np.flatnonzero((tiles.image == pool.image[k]) & contains(tiles.boxes, centre))
        # What lies below another outline as well would seem to have one.
        if len(own) and own[0] not in {*drawn, *used} and not contains(others, centre).any():
            used.add(int(own[0]))
            cards.append(Card("hidden", tiles.names[own[0]], int(pool.image[k]), tiles.boxes[own[0]], candidate=k))
    return cards


def _found_by(pool: Pool) -> list[Booleans]:
    """Of each system, which candidates it found."""
    return [np.bincount(found.candidate, minlength=len(pool)) > 0 for found in pool.found.values()]


def contains(boxes: Floats, point: Floats) -> Booleans:
    """Which boxes have a point inside them; shape (n_boxes,)."""
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    return np.asarray(((low <= point) & (point < high)).all(axis=1))


def fingerprint(pool: Pool) -> str:
    """A word that differs between pools of which other cards would be drawn."""
    images = [str(name) for name in pool.images.ids.tolist()]
    found_by = _found_by(pool)
    digest = hashlib.sha256(json.dumps([pool.items, list(pool.categories), images, len(found_by)]).encode())
    digest.update(np.round(pool.boxes, 3).tobytes())
    digest.update(pool.category.astype(np.int64).tobytes())
    digest.update(np.nan_to_num(pool.images.sizes, nan=-1.0).astype(float).tobytes())
    for row in [*sorted(votes.tobytes() for votes in pool.votes), *sorted(found.tobytes() for found in found_by)]:
        digest.update(row)
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Vetted:
    """The answers of a vetter.

    Attributes
    ----------
    labels : Labels. Of the pool, with what was vetted as gold that was drawn at random.
    missed : MissedObjects or None. From the tiles, if any was searched.
    n_planted, n_accepted : int. Places where nothing is that were answered, and those taken for objects.
    answers : mapping from answer to int. How often each was given about candidates.
    n_hidden, n_noticed : int
        Tiles without the outline of an object that were searched, and those in which it was noticed. Where only a
        number was answered, any number but 0 counts as noticed.
    n_left_out : int. Tiles without an answer that came before searched ones, or of which nobody could tell.
    """

    labels: Labels = field(repr=False)
    missed: MissedObjects | None
    n_planted: int
    n_accepted: int
    answers: Mapping[str, int]
    n_hidden: int = 0
    n_noticed: int = 0
    n_left_out: int = 0

    @property
    def false_acceptance(self) -> tuple[float, float]:
        """The 95% interval of the share of empty places that the vetter takes for objects (Jeffreys)."""
        return _jeffreys(self.n_accepted, self.n_planted)

    @property
    def oversight(self) -> tuple[float, float]:
        """The 95% interval of the share of objects without an outline that the vetter overlooks (Jeffreys)."""
        return _jeffreys(self.n_hidden - self.n_noticed, self.n_hidden)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why the answers may be doubted."""
        notes = []
        if self.n_planted and self.n_accepted / self.n_planted > _TRUSTED:
            least, most = self.false_acceptance
            notes.append(
                f"the vetter took {self.n_accepted} of {self.n_planted} empty places for objects (between "
                f"{100 * least:.0f}% and {100 * most:.0f}% of such places): what they accepted may not be there"
            )
        if self.answers.get("skip", 0):
            notes.append(
                f"{self.answers['skip']} cards were skipped and are left out: the others stand for all candidates "
                "only if the skipped ones are like them"
            )
        low, high = self.oversight
        if low > _OVERLOOKED:
            notes.append(
                f"the vetter did not notice {self.n_hidden - self.n_noticed} of {self.n_hidden} objects whose "
                f"outline was hidden (between {100 * low:.0f}% and {100 * high:.0f}% of such objects): either all "
                "annotators err together there, or more is missed than the tiles say and recall is too high"
            )
        if self.n_left_out:
            notes.append(
                f"{self.n_left_out} tiles were left out among those that were searched: the others stand for all "
                "tiles only if these are like them"
            )
        return tuple(notes)


def _jeffreys(count: int, n: int) -> tuple[float, float]:
    posterior = scipy.stats.beta(count + 0.5, n - count + 0.5)
    return float(posterior.ppf(0.025)), float(posterior.ppf(0.975))


def read_answers(path: str | PathLike[str], pool: Pool, *, random_state: int = 0) -> Vetted:
    """The answers of a vetter to the cards of a page; see `save_cards`.

    Parameters
    ----------
    path : path. The file of answers that the page saves.
    pool : Pool. The same that the cards were made of.
    random_state : int. Of the draws of the number of missed objects.
    """
    content = load_json(path)
    if not isinstance(content, Mapping) or content.get("format") != FORMAT or not {"deck", "answers"} <= set(content):
        raise InvalidFile(f"{path} must be answers that a page of cards has saved, got something else; save them again")
    deck = same_deck(content["deck"], pool, file=str(path))
    return take_answers(deck, dict(content["answers"]), file=str(path), random_state=random_state)


def same_deck(drawn: Any, pool: Pool, *, file: str) -> Deck:
    """The deck that was drawn so, of the pool that it was drawn of."""
    if not isinstance(drawn, Mapping) or not {"pool", *DRAWN} <= set(drawn):
        raise InvalidFile(f"{file} must say how the cards were drawn, got something else; make the cards again")
    if drawn["pool"] != fingerprint(pool):
        raise InvalidFile(
            f"{file} has answers about cards of another pool, of which {drawn['n_candidates']} candidates were drawn; "
            "match with the same files of annotators and systems and the same settings as for the cards, or make the "
            "cards again if another version of trueup made them"
        )
    return make_deck(pool, **{name: drawn[name] for name in DRAWN})


def take_answers(deck: Deck, answers: Mapping[str, Any], *, file: str = "the answers", random_state: int = 0) -> Vetted:
    """The result of answers, which are named by the number of their card, from "1" on.

    Parameters
    ----------
    answers : mapping from number to answer
        About candidates one of `ANSWERS`, about tiles a list of points, each an object without an outline, or their
        number. Points beside the tile do not count: they are in another one.
    file : str. Their name in errors.
    """
    numbers = deck.numbered
    strange = [repr(key) for key in answers if key not in numbers]
    wrong = [f"{a!r} on card {key}" for key, a in answers.items() if key in numbers and not _is_answer(numbers[key], a)]
    if strange or wrong:
        what = f"{len(strange)} answers about cards that there are not" if strange else f"{len(wrong)} unknown answers"
        shown = (strange or wrong)[0]
        raise InvalidFile(
            f"{file} must have an answer of {preview(list(ANSWERS), most=10)} for a candidate and a list of points or "
            f"a number for a tile, got {what} (the first is {shown})"
        )
    truths: dict[str, str] = {}
    counts: list[int] = []
    n_answers: Counter[str] = Counter()
    n_planted = n_accepted = n_hidden = n_noticed = 0
    for key, answer in answers.items():
        card = numbers[key]
        if card.kind == "tile":
            counts.append(_n_inside(answer, card.box))
            continue
        if card.kind == "hidden":
            n_hidden += 1
            n_noticed += _n_inside(answer, deck.pool.boxes[card.candidate]) > 0
            continue
        truth = ANSWERS[answer]
        if card.kind == "planted":
            n_planted += truth is not None
            n_accepted += truth == REAL
        else:
            n_answers[answer] += 1
            if truth is not None:
                truths[card.item] = truth
    labels = deck.pool.labels.with_gold(truths, drawn="random") if truths else deck.pool.labels
    missed = missed_objects(counts, deck.n_tiles, random_state=random_state) if counts else None
    searched = np.flatnonzero([key in answers for key, card in numbers.items() if card.is_tile])
    gaps = int(searched[-1]) + 1 - len(searched) if len(searched) else 0  # before the last one that has an answer
    return Vetted(labels, missed, int(n_planted), int(n_accepted), dict(n_answers), n_hidden, n_noticed, gaps)


def _n_inside(answer: list[list[float]] | int, box: Floats) -> int:
    """The number of objects that an answer has in a box; a given number is believed."""
    if isinstance(answer, int):
        return answer
    return sum(bool(contains(box[None], np.asarray(point, dtype=float))[0]) for point in answer)


def _is_answer(card: Card, answer: Any) -> bool:
    if not card.is_tile:
        return isinstance(answer, str) and answer in ANSWERS
    if isinstance(answer, int):
        return not isinstance(answer, bool) and answer >= 0
    return isinstance(answer, list) and all(
        isinstance(point, list)
        and len(point) == 2
        and all(isinstance(value, int | float) and math.isfinite(value) for value in point)
        for point in answer
    )
