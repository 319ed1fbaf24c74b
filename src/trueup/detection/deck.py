"""Cards for a vetter: random candidates, places where nothing is, and random tiles; and what their answers say.

The cards do not tell which is which. A page with cards holds only how they were drawn, so that answers can be read by
whoever has the same pool. Places where nobody drew anything are planted among the candidates: how many of these are
taken for objects says how far the answers can be trusted.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np
import scipy

from trueup._base.types import Floats
from trueup._base.validation import check_integer, preview
from trueup.data.labels import Labels
from trueup.detection.drawing import image_size
from trueup.detection.missed import MissedObjects, Tiles, make_tiles, missed_objects
from trueup.detection.pool import NOTHING, REAL, Pool
from trueup.detection.reading_coco import load_json
from trueup.detection.shapes import Images
from trueup.exceptions import InvalidFile, InvalidParameter, Sentence, quoted

CardKind = Literal["candidate", "planted", "tile"]
ANSWERS = {
    "yes": REAL,
    "outline": REAL,
    "no": NOTHING,
    "class": NOTHING,
    "duplicate": NOTHING,
    "skip": None,
}
"""What each answer about a candidate means: a bad outline is of an object; another class or a duplicate is not one."""
FORMAT = 1
_TRIES = 300  # to find an empty place
_TRUSTED = 0.2  # share of planted places taken for objects from which on the answers are doubted


@dataclass(frozen=True, eq=False)
class Card:
    """One question.

    Attributes
    ----------
    kind : {"candidate", "planted", "tile"}
    item : str
        The name of the candidate or tile; empty for a place where nothing is.
    image : int
        Position of its image.
    box : array of shape (4,)
    category : str
        The class that is asked for; empty for tiles.
    candidate : int
        Position in the pool, -1 for what is no candidate.
    """

    kind: CardKind
    item: str
    image: int
    box: Floats
    category: str = ""
    candidate: int = -1


@dataclass(frozen=True, eq=False)
class Deck:
    """Cards in the order in which they are shown.

    Attributes
    ----------
    pool : Pool
    cards : tuple of Card
    drawn : dict
        How they were drawn, and of what; goes into the page and comes back with the answers.
    n_tiles : int
        All tiles of all images, of which some were drawn.
    """

    pool: Pool = field(repr=False)
    cards: tuple[Card, ...] = field(repr=False)
    drawn: dict[str, Any]
    n_tiles: int

    def __len__(self) -> int:
        return len(self.cards)


def make_deck(
    pool: Pool,
    *,
    n_candidates: int = 60,
    n_tiles: int = 20,
    n_planted: int | None = None,
    split: int = 2,
    seed: int = 0,
) -> Deck:
    """Cards for a vetter.

    Parameters
    ----------
    pool : Pool
    n_candidates : int
        Candidates drawn at random, each with the same chance; all of them where there are fewer.
    n_tiles : int
        Tiles drawn at random, in which the vetter looks for objects without an outline.
    n_planted : int, optional
        Places where nobody drew anything, shown as candidates; by default one for ten candidates.
    split : int
        Each image has split × split tiles.
    seed : int

    Examples
    --------
    >>> from trueup import detection
    >>> drawn = detection.simulate_boxes(n_images=10, random_state=0)
    >>> deck = detection.make_deck(detection.match(drawn.found, drawn.objects), n_candidates=20, n_tiles=5)
    >>> len(deck), sum(card.kind == "planted" for card in deck.cards)
    (27, 2)
    """
    if not len(pool):
        raise InvalidParameter("there is no candidate to vet, got an empty pool")
    n_candidates = min(check_integer(n_candidates, name="n_candidates", low=1), len(pool))
    n_tiles = check_integer(n_tiles, name="n_tiles", low=0)
    n_planted = -(-n_candidates // 10) if n_planted is None else check_integer(n_planted, name="n_planted", low=0)
    seed = check_integer(seed, name="seed", low=0)
    rng = np.random.default_rng([seed, 27])
    chosen = rng.choice(len(pool), n_candidates, replace=False)
    cards = [
        Card("candidate", pool.items[k], int(pool.image[k]), pool.boxes[k], pool.categories[pool.category[k]], int(k))
        for k in chosen.tolist()
    ]
    cards += _empty_places(pool, n_planted, rng)
    shown = [cards[k] for k in rng.permutation(len(cards))]
    tiles = _tiles_of(pool, split)
    n_tiles = min(n_tiles, len(tiles))
    if n_tiles:
        drawn_tiles = tiles.draw(n_tiles, rng).tolist()
        shown += [Card("tile", tiles.names[k], int(tiles.image[k]), tiles.boxes[k]) for k in drawn_tiles]
    drawn = {
        "pool": fingerprint(pool),
        "n_candidates": n_candidates,
        "n_tiles": n_tiles,
        "n_planted": n_planted,
        "split": split,
        "seed": seed,
    }
    return Deck(pool, tuple(shown), drawn, len(tiles))


def _tiles_of(pool: Pool, split: int) -> Tiles:
    sizes = np.array([image_size(pool, k) for k in range(pool.images.n)]).reshape(-1, 2)
    return make_tiles(Images(pool.images.ids, sizes, pool.images.files), split)


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


def fingerprint(pool: Pool) -> str:
    """A word that tells pools apart."""
    digest = hashlib.sha256(json.dumps([pool.items, list(pool.categories)]).encode())
    digest.update(np.round(pool.boxes, 3).tobytes())
    digest.update(pool.category.astype(np.int64).tobytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class Vetted:
    """What a vetter said.

    Attributes
    ----------
    labels : Labels
        Of the pool, with what was vetted as gold that was drawn at random.
    missed : MissedObjects or None
        From the tiles, if any was searched.
    n_planted, n_accepted : int
        Places where nothing is that were answered, and those taken for objects.
    answers : mapping from answer to int
        How often each was given about candidates.
    """

    labels: Labels = field(repr=False)
    missed: MissedObjects | None
    n_planted: int
    n_accepted: int
    answers: Mapping[str, int]

    @property
    def false_acceptance(self) -> tuple[float, float]:
        """The 95% interval of the share of empty places that the vetter takes for objects (Jeffreys)."""
        posterior = scipy.stats.beta(self.n_accepted + 0.5, self.n_planted - self.n_accepted + 0.5)
        return float(posterior.ppf(0.025)), float(posterior.ppf(0.975))

    @property
    def warnings(self) -> tuple[Sentence, ...]:
        """Why the answers may be doubted."""
        said = []
        if self.n_planted and self.n_accepted / self.n_planted > _TRUSTED:
            low, high = self.false_acceptance
            said.append(
                Sentence(
                    f"the vetter took {self.n_accepted} of {self.n_planted} empty places for objects (between "
                    f"{100 * low:.0f}% and {100 * high:.0f}% of such places): what they accepted may not be there"
                )
            )
        if self.answers.get("skip", 0):
            said.append(
                Sentence(
                    f"{self.answers['skip']} cards were skipped and are left out: the others stand for all candidates "
                    "only if the skipped ones are like them"
                )
            )
        return tuple(said)


def read_answers(path: str | PathLike[str], pool: Pool, *, random_state: int = 0) -> Vetted:
    """What a vetter said on the cards of a page; see `save_cards`.

    Parameters
    ----------
    path : path
        The file of answers that the page saves.
    pool : Pool
        The same that the cards were made of.
    random_state : int
        Of the draws of the number of missed objects.
    """
    content = load_json(path)
    if not isinstance(content, Mapping) or content.get("format") != FORMAT or not {"deck", "answers"} <= set(content):
        raise InvalidFile(f"{path} must be answers that a page of cards has saved, got something else; save them again")
    drawn, answers = dict(content["deck"]), dict(content["answers"])
    if drawn.get("pool") != fingerprint(pool):
        raise InvalidFile(
            f"{path} has answers about another pool of {drawn.get('n_candidates')} drawn candidates; match with the "
            "same files and settings as for the cards"
        )
    how = {name: drawn[name] for name in ("n_candidates", "n_tiles", "n_planted", "split", "seed")}
    return take_answers(make_deck(pool, **how), answers, file=str(path), random_state=random_state)


def take_answers(deck: Deck, answers: Mapping[str, Any], *, file: str = "the answers", random_state: int = 0) -> Vetted:
    """What answers by the number of their card, from "1" on, say.

    Parameters
    ----------
    deck : Deck
    answers : mapping from number to answer
        About candidates one of `ANSWERS`, about tiles a list of points: each an object without an outline. Points
        beside the tile do not count: they are in another one.
    file : str
        What errors call them.
    random_state : int
    """
    numbers = {str(k + 1): card for k, card in enumerate(deck.cards)}
    strange = [key for key in answers if key not in numbers]
    wrong = [key for key, answer in answers.items() if key in numbers and not _is_answer(numbers[key].kind, answer)]
    if strange or wrong:
        what = f"{len(strange)} answers about cards that there are not" if strange else f"{len(wrong)} unknown answers"
        shown = quoted(strange[0]) if strange else f"{quoted(answers[wrong[0]])} on card {wrong[0]}"
        raise InvalidFile(
            f"{file} must have an answer of {preview(list(ANSWERS), most=10)} for a candidate and a list of points for "
            f"a tile, got {what} (the first is {shown})"
        )
    truths: dict[str, str] = {}
    counts: list[int] = []
    told: Counter[str] = Counter()
    n_planted = n_accepted = 0
    for key, answer in answers.items():
        card = numbers[key]
        if card.kind == "tile":
            counts.append(sum(_is_inside(point, card.box) for point in answer))
            continue
        truth = ANSWERS[answer]
        if card.kind == "planted":
            n_planted += truth is not None
            n_accepted += truth == REAL
        else:
            told[answer] += 1
            if truth is not None:
                truths[card.item] = truth
    labels = deck.pool.labels.with_gold(truths, drawn="random") if truths else deck.pool.labels
    missed = missed_objects(counts, deck.n_tiles, random_state=random_state) if counts else None
    return Vetted(labels, missed, int(n_planted), int(n_accepted), dict(told))


def _is_inside(point: list[float], box: Floats) -> bool:
    x, y, width, height = (float(value) for value in box)
    return bool(x <= point[0] < x + width and y <= point[1] < y + height)


def _is_answer(kind: CardKind, answer: Any) -> bool:
    if kind != "tile":
        return isinstance(answer, str) and answer in ANSWERS
    return isinstance(answer, list) and all(
        isinstance(point, list) and len(point) == 2 and all(isinstance(one, int | float) for one in point)
        for point in answer
    )
