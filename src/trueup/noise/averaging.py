"""Fits that are means over draws, for models without a closed M-step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from trueup.data.labels import Labels
from trueup.noise import kernels
from trueup.noise.base import Sampler, vote_shares

_NO_GOLD_COUNTS = np.empty((0, 0))  # states here have their classes for good


def likeliest_classes(labels: Labels) -> npt.NDArray[np.int64]:
    """The class that most votes name, or that is known: where a chain may start."""
    chosen = np.where(labels.gold_codes >= 0, labels.gold_codes, vote_shares(labels).argmax(axis=1))
    return np.asarray(chosen, dtype=np.int64)


def kept_sweeps(
    labels: Labels,
    sampler: Sampler,
    states: npt.NDArray[np.int64],
    rng: np.random.Generator,
    *,
    n_warmup: int,
    n_draws: int,
) -> Iterator[kernels.Sweep]:
    """Run one chain from some states; gives what each sweep past the warm-up drew. Parameters are in the sampler."""
    counts, state_counts = kernels.count_states(labels.votes, states.astype(np.int16), sampler.n_states)
    engine = kernels.engine_for_chains()
    for sweep in range(n_warmup + n_draws):
        sampler.draw(counts, state_counts, _NO_GOLD_COUNTS, rng)
        step = kernels.gibbs_step(
            labels.votes,
            sampler.table,
            sampler.weights,
            rng.random(labels.n_items),
            gold=labels.gold_codes,
            state_class=sampler.state_class,
            engine=engine,
        )
        counts, state_counts = step.counts, step.state_counts
        if sweep >= n_warmup:
            yield step
