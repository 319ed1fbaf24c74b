"""What the tests of the command line share: data, and what an error must look like."""

import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PROGRAM = Path(sys.executable).with_name("trueup")
# Seconds after which a process is taken to hang. No run takes as long, however busy the machine; the limit of a test is
# higher, so that the test can still say what happened.
HANGS_AFTER = 500
# The quickest settings that still use the real sampler.
QUICK = ("--noise", "dawid-skene", "--draws", "100", "--warmup", "50")
# The same for any other noise model, and for the plain answer.
CHAINS = ("--draws", "60", "--warmup", "40")
FEW = ("--draws", "60")


@dataclass(frozen=True)
class Ran:
    """What a run of the program printed and how it ended."""

    code: int
    out: str
    err: str


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a csv file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def crowd(n_items: int = 60, n_labelers: int = 5, skill: float = 0.85, seed: int = 0) -> dict[str, np.ndarray]:
    """Truth, votes (items × labelers) and the predictions of a good and a bad system; classes 0 and 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_items)

    def noisy(share: float, *shape: int) -> np.ndarray:
        return np.where(rng.random((*shape, n_items)) < share, truth, 1 - truth)

    return {
        "truth": truth,
        "votes": noisy(skill, n_labelers).T,
        "good": noisy(0.95),
        "bad": noisy(0.6),
        "score": np.clip(0.5 + 0.3 * (2 * truth - 1) + rng.normal(0, 0.2, n_items), 0, 1).round(4),
    }


def assert_one_sentence(ran: Ran, *, code: int = 2) -> None:
    """An error on purpose: nothing on standard output, one line on standard error, no traceback."""
    assert ran.code == code, ran.err
    assert ran.out == ""
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ran.err
