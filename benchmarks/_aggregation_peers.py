"""Other libraries' answers to who is right, for `benchmarks.aggregation`.

This file is run by the interpreter that TRUEUP_PEERS names, where crowd-kit and cleanlab are installed and trueup need
not be: ``python _aggregation_peers.py FOLDER``. The folder holds ``votes.npz`` (item, labeler and label of each vote,
as codes) and ``settings.json``; the truth is not there. For each peer one line is added to ``done.jsonl`` and, if it
succeeded, an array ``<number>.npy`` is written: the share of the answer that goes to each class, items × classes.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PEERS", "winners"]

_TIE = 1e-9
_MEMORY = 10 * 2**30  # bytes of address space; crowd-kit's MMSR makes a dense matrix over all pairs of labelers


def winners(scores: np.ndarray) -> np.ndarray:
    """The class with the highest score has all of an item's answer, and ties share it; shape (items, classes)."""
    top = scores >= scores.max(axis=1, keepdims=True) - _TIE
    return top / top.sum(axis=1, keepdims=True)


class Votes:
    """The votes in the forms the peers take."""

    def __init__(self, item: np.ndarray, labeler: np.ndarray, label: np.ndarray, shape: tuple[int, int, int]) -> None:
        self.item, self.labeler, self.label = item, labeler, label
        self.n_items, self.n_labelers, self.n_classes = shape
        self.counts = np.zeros((self.n_items, self.n_classes))
        np.add.at(self.counts, (item, label), 1)

    def frame(self) -> Any:
        """One row a vote, as crowd-kit takes them."""
        import pandas as pd

        return pd.DataFrame({"task": self.item, "worker": self.labeler, "label": self.label})

    def matrix(self) -> np.ndarray:
        """Items × labelers, as cleanlab takes them; of a labeler's repeated votes on an item the last stays."""
        matrix = np.full((self.n_items, self.n_labelers), np.nan)
        matrix[self.item, self.labeler] = self.label
        return matrix[:, ~np.isnan(matrix).all(axis=0)]


def _crowdkit(name: str, *, seeded: bool = False) -> Callable[[Votes, int], np.ndarray]:
    """A crowd-kit model with its default settings."""

    def answer(votes: Votes, seed: int) -> np.ndarray:
        from crowdkit import aggregation

        model = getattr(aggregation, name)(**({"random_state": seed} if seeded else {})).fit(votes.frame())
        table = model.predict_score(votes.frame()) if name == "MMSR" else model.probas_
        scores = table.reindex(index=range(votes.n_items), columns=range(votes.n_classes)).to_numpy(dtype=float)
        return winners(np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf))

    return answer


def _cleanlab_majority(votes: Votes, seed: int) -> np.ndarray:
    from cleanlab.multiannotator import get_majority_vote_label

    return _one_hot(get_majority_vote_label(votes.matrix(), verbose=False), votes)


def _cleanlab_consensus(predictions: Callable[[Votes], np.ndarray]) -> Callable[[Votes, int], np.ndarray]:
    """CROWDLAB, cleanlab's consensus. It wants class probabilities from a classifier, but here are no features."""

    def answer(votes: Votes, seed: int) -> np.ndarray:
        from cleanlab.multiannotator import get_label_quality_multiannotator

        found = get_label_quality_multiannotator(
            votes.matrix(),
            predictions(votes),
            return_detailed_quality=False,
            return_annotator_stats=False,
            verbose=False,
        )
        return _one_hot(found["label_quality"]["consensus_label"].to_numpy(), votes)

    return answer


def _shares_without_item(votes: Votes) -> np.ndarray:
    """Smoothed shares of the classes among the votes on all other items: out of sample, and nearly constant."""
    others = votes.counts.sum(axis=0) - votes.counts + 1.0
    return others / others.sum(axis=1, keepdims=True)


def _shares_without_vote(votes: Votes) -> np.ndarray:
    """Smoothed shares of the classes among an item's votes without one of them, averaged over the one left out."""
    n = np.maximum(votes.counts.sum(axis=1, keepdims=True), 1)
    left = votes.counts * (n - 1) / n + 0.5
    return left / left.sum(axis=1, keepdims=True)


def _one_hot(codes: np.ndarray, votes: Votes) -> np.ndarray:
    return np.eye(votes.n_classes)[np.asarray(codes, dtype=int)]


# Name -> (answer, whether it depends on a seed, and is then averaged over several).
PEERS: dict[str, tuple[Callable[[Votes, int], np.ndarray], bool]] = {
    "crowd-kit MajorityVote": (_crowdkit("MajorityVote"), False),
    "crowd-kit OneCoinDawidSkene": (_crowdkit("OneCoinDawidSkene"), False),
    "crowd-kit DawidSkene": (_crowdkit("DawidSkene"), False),
    "crowd-kit GLAD": (_crowdkit("GLAD"), False),
    "crowd-kit MACE": (_crowdkit("MACE", seeded=True), True),
    "crowd-kit MMSR": (_crowdkit("MMSR", seeded=True), False),
    "cleanlab majority vote": (_cleanlab_majority, True),
    "cleanlab consensus (other items)": (_cleanlab_consensus(_shares_without_item), True),
    "cleanlab consensus (other votes)": (_cleanlab_consensus(_shares_without_vote), True),
}


class TooLong(Exception):
    """A peer was stopped."""


def _stop(*_: object) -> None:
    raise TooLong


def _run(folder: Path) -> None:
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    with np.load(folder / "votes.npz") as stored:
        votes = Votes(stored["item"], stored["labeler"], stored["label"], tuple(stored["shape"].tolist()))
    limit, seeds = int(settings["limit"]), range(int(settings["seeds"]))
    for library in ("crowdkit.aggregation", "cleanlab.multiannotator"):
        with suppress(ImportError):  # those that need it will say so
            import_module(library)  # so that no peer's time has it
    signal.signal(signal.SIGALRM, _stop)
    for number, (name, (answer, random)) in enumerate(PEERS.items()):
        print(f"  {name}", file=sys.stderr, flush=True)
        started, error, runs = time.perf_counter(), None, []
        try:
            for seed in seeds if random else (0,):
                signal.alarm(limit)
                np.random.seed(seed)  # noqa: NPY002  (cleanlab breaks the last ties with the global generator)
                runs.append(answer(votes, seed))
        except TooLong:
            error = f"took more than {limit} s"
        except Exception as problem:  # whatever a peer does, the others are measured
            error = f"{type(problem).__name__}: {problem!s:.120}"
        finally:
            signal.alarm(0)
        seconds = (time.perf_counter() - started) / max(len(runs), 1)
        if error is None:
            np.save(folder / f"{number}.npy", np.mean(runs, axis=0))
        with (folder / "done.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"number": number, "seconds": seconds, "error": error}) + "\n")


def main() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")  # peers' deprecation warnings say nothing about their answers
    _run(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
