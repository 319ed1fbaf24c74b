"""Images with tags: simulated scores, and strips of real handwritten digits; both with the tag noise of NUS-WIDE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count

import numpy as np
import numpy.typing as npt

import trueup as tu
from trueup.active.influence import precision_at_k_slopes

__all__ = [
    "TAG_IF_ABSENT",
    "TAG_IF_PRESENT",
    "K",
    "Tagging",
    "close_pair",
    "noisy_tags",
    "pooled",
    "simulated",
    "strips",
]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

K = 48
TAG_IF_PRESENT, TAG_IF_ABSENT = 0.38, 0.01  # NUS-WIDE (Izadinia et al. 2015): chance of a tag if it fits, and if not
N_TAGS, N_IMAGES = 81, 5000
N_STRIPS, N_TRAINING, PLACES = 3000, 300, 4
# True gaps at which half of the pairs, drawn at random and counted alone, misrank the systems about 15 times in 100.
CLOSE = {"simulated": (0.006, 0.0085), "strips": (0.006, 0.012)}


@dataclass(frozen=True, eq=False)
class Tagging:
    """Pairs of an image and a tag: those among the first 48 of the tag by one system at least.

    Precision@48 looks at nothing else, so vetting other pairs would be a waste (as in the paper).

    Attributes
    ----------
    truth, noisy : integer arrays of shape (n_pairs,)
        Whether the tag fits; whether somebody gave it.
    tags : integer array of shape (n_pairs,)
    scores : mapping from system to an array of shape (n_pairs,)
    """

    truth: Codes
    noisy: Codes
    tags: Codes
    scores: dict[str, Array]

    @property
    def n_pairs(self) -> int:
        """Number of pairs that can be vetted."""
        return len(self.truth)

    @property
    def labels(self) -> tu.Labels:
        """The noisy tags as the votes of one labeler."""
        return tu.Labels.from_matrix(self.noisy[:, None], classes=[0, 1])

    @cached_property
    def slopes(self) -> dict[str, Array]:
        """What each pair counts for in the precision@48 of its tag, by system."""
        found = {name: np.zeros(self.n_pairs) for name in self.scores}
        for tag in range(int(self.tags.max()) + 1):
            at = np.flatnonzero(self.tags == tag)
            for name, values in self.scores.items():
                found[name][at] = precision_at_k_slopes(values[at], k=K)
        return found

    def precision(self, positive: npt.ArrayLike, system: str) -> Array:
        """Precision@48 of each tag if `positive` is the truth of the pairs, or its probability; shape (n_tags,).

        This is equation 8 of the paper: the expectation of a sum needs no draws.
        """
        counted = np.asarray(positive, dtype=float) * self.slopes[system]
        return np.bincount(self.tags, weights=counted)

    @property
    def gap(self) -> float:
        """True precision@48 of system a less that of b, mean over tags."""
        a, b = (float(self.precision(self.truth, system).mean()) for system in ("a", "b"))
        return a - b


def noisy_tags(truth: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Tags that people gave: most that fit are missing."""
    return np.asarray(rng.random(truth.shape) < np.where(truth, TAG_IF_PRESENT, TAG_IF_ABSENT))


def pooled(
    truth: npt.NDArray[np.bool_], scores: Mapping[str, Array], rng: np.random.Generator, *, k: int = K
) -> Tagging:
    """The first k pairs of each tag by each system, from arrays of shape (n_images, n_tags)."""
    inside = np.zeros(truth.shape, dtype=bool)
    for values in scores.values():
        np.put_along_axis(inside, np.argpartition(-values, k - 1, axis=0)[:k], True, axis=0)
    noisy = noisy_tags(truth, rng)
    image, tag = np.nonzero(inside)
    return Tagging(
        truth[image, tag].astype(np.int64),
        noisy[image, tag].astype(np.int64),
        tag.astype(np.int64),
        {name: values[image, tag] for name, values in scores.items()},
    )


def simulated(
    seed: int | tuple[int, ...], *, gap: float = 0.0, n_images: int = N_IMAGES, n_tags: int = N_TAGS
) -> Tagging:
    """Tags from common to rare, and normal scores that are higher where the tag fits.

    With a `gap` there are two systems, a and b; most of their errors are the same ones, and a separates the classes
    by `gap` more. The sizes are set so that the mean precision@48 is about the paper's 0.20.
    """
    rng = np.random.default_rng(_seeds(2018, seed))
    share = np.exp(rng.uniform(np.log(0.003), np.log(0.1), n_tags))
    separation = rng.uniform(0.3, 1.6, n_tags)
    truth = rng.random((n_images, n_tags)) < share
    common = rng.standard_normal(truth.shape)
    scores = {}
    for name, better in (("a", gap), ("b", 0.0)):
        own = rng.standard_normal(truth.shape)
        scores[name] = truth * (separation + better) + np.sqrt(0.7) * common + np.sqrt(0.3) * own
        if not gap:
            break
    return pooled(truth, scores, rng)


def _seeds(first: int, seed: int | tuple[int, ...]) -> list[int]:
    return [first, *((seed,) if isinstance(seed, int) else seed)]


@cache
def _digits() -> tuple[Array, Codes]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return np.asarray(found.data / 16.0), np.asarray(found.target, dtype=np.int64)


def _drawn_strips(images: Codes, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Strips of four digits side by side, and their 30 tags: each digit anywhere, in the left half, in the right."""
    pixels, digit = _digits()
    chosen = rng.choice(images, size=(n, PLACES))
    holds = digit[chosen][:, :, None] == np.arange(10)
    left, right = holds[:, : PLACES // 2].any(axis=1), holds[:, PLACES // 2 :].any(axis=1)
    return pixels[chosen].reshape(n, -1), np.concatenate([left | right, left, right], axis=1)


def strips(seed: int | tuple[int, ...], *, second: float = 0.0, n_strips: int = N_STRIPS) -> Tagging:
    """Real handwriting: strips of four digits of scikit-learn's set, tagged with the digits they hold.

    One logistic regression for each tag is trained on other people's digits and *noisy* tags, with the
    regularisation C = 0.01. A second system, b, is trained on a share `second` of these strips.
    """
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(_seeds(8, seed))
    order = rng.permutation(len(_digits()[1]))
    half = len(order) // 2
    seen, given = _drawn_strips(order[:half], N_TRAINING, rng)
    x, truth = _drawn_strips(order[half:], n_strips, rng)
    tags = noisy_tags(given, rng)
    scores = {}
    for name, n in (("a", N_TRAINING), ("b", int(second * N_TRAINING))):
        if not n:
            continue
        columns = [LogisticRegression(C=0.01).fit(seen[:n], tag[:n]).decision_function(x) for tag in tags.T]
        scores[name] = np.stack(columns, axis=1)
    return pooled(truth, scores, rng)


@cache
def close_pair(which: str, seed: int) -> Tagging:
    """Two systems with a small true gap: the first data set of a sequence in which it lies within the limits."""
    makes: dict[str, Callable[[tuple[int, int]], Tagging]] = {
        "simulated": lambda seeds: simulated(seeds, gap=0.025),
        "strips": lambda seeds: strips(seeds, second=0.9),
    }
    low, high = CLOSE[which]
    return next(found for k in count() if low <= (found := makes[which]((seed, k))).gap <= high)
