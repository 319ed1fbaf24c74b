"""A session on made-up data: reviews whose mood a crowd and a system have guessed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from trueup._base.validation import RandomState, as_generator
from trueup.data.labels import Labels

_THINGS = ("the kettle", "this lamp", "the train ticket app", "my new headphones", "the hotel room", "the bread knife")
MOODS = {
    "bad": (
        "I sent {thing} back after two days.",
        "{thing} broke, and nobody answered my letters.",
        "I would not buy {thing} again.",
    ),
    "fine": (
        "{thing} does what it says, no more.",
        "{thing} arrived on time. It is as in the picture.",
        "I have not much to say about {thing}.",
    ),
    "good": (
        "{thing} made my mornings better.",
        "I have told all my friends about {thing}.",
        "{thing} is worth every penny, even after a year.",
    ),
}
_MORE = ("It came in a brown box.", "My neighbour has the same one.", "I used it in the rain, too.", "Thank you.")
_PEOPLE = ("wren", "finch", "robin", "swift", "heron")


_REMOVE = """
import pathlib, shutil, sys, time
sys.stdin.read()
for _ in range(100):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not pathlib.Path(sys.argv[1]).exists():
        break
    time.sleep(0.2)
"""


@contextmanager
def passing_folder() -> Iterator[str]:
    """A folder that is gone afterwards, also where this process is killed: another one waits for its end."""
    folder = tempfile.mkdtemp(prefix="trueup-demo-")
    remover = [sys.executable, "-I", "-c", _REMOVE, folder]
    with subprocess.Popen(remover, stdin=subprocess.PIPE, start_new_session=True):
        yield folder


def demo_data(n_items: int = 300, *, random_state: RandomState = 0) -> tuple[dict[str, str], Labels]:
    """Predictions and votes for made-up reviews, with their text."""
    rng = as_generator(random_state)
    moods = list(MOODS)
    truth = rng.integers(len(moods), size=n_items)
    items = [f"review-{k:03d}" for k in range(1, n_items + 1)]

    def guesses(accuracy: float) -> list[str]:
        is_right = rng.random(n_items) < accuracy
        other = (truth + rng.integers(1, len(moods), size=n_items)) % len(moods)
        return [moods[k] for k in np.where(is_right, truth, other)]

    votes: dict[str, list[str]] = {"item": [], "labeler": [], "label": []}
    for person, accuracy in zip(_PEOPLE, (0.85, 0.8, 0.75, 0.7, 0.6), strict=True):
        chosen = rng.random(n_items) < 0.6
        for item, guess, is_voted in zip(items, guesses(accuracy), chosen | (person == _PEOPLE[0]), strict=True):
            if is_voted:
                votes["item"].append(item)
                votes["labeler"].append(person)
                votes["label"].append(guess)
    texts = [_review(moods[k], rng) for k in truth]
    labels = Labels.from_frame(votes, classes=moods).with_items({"item": items, "review": texts})
    return dict(zip(items, guesses(0.8), strict=True)), labels


def _review(mood: str, rng: np.random.Generator) -> str:
    thing = _THINGS[int(rng.integers(len(_THINGS)))]
    sentences = [MOODS[mood][int(rng.integers(3))].format(thing=thing), _MORE[int(rng.integers(len(_MORE)))]]
    text = " ".join(sentences)
    return text[0].upper() + text[1:]
