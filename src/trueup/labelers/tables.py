"""What is known of all labelers, from votes in memory or in files."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from trueup._base.types import Floats
from trueup.data.labels import Labels
from trueup.data.partitions import VoteBlock
from trueup.data.scanning import LabelScan
from trueup.labelers.consistency import agreement_with_self, consistency_of, self_consistency
from trueup.labelers.skill_draws import LabelerDraws, Tally, draws_of_tallies
from trueup.noise.base import NoiseModel
from trueup.noise.passes import scan_over
from trueup.noise.swept import sweep_scan
from trueup.posteriors import Estimate

_CELLS = 2_000_000  # of matrices that are drawn at once


@dataclass(frozen=True, eq=False)
class LabelerTable:
    """What is known of all labelers.

    Attributes
    ----------
    draws : LabelerDraws
    votes : array of shape (n_labelers,)
        Number of votes, each counted that was given.
    consistency : mapping from labeler to Estimate
        Of those who gave several verdicts on an item.
    """

    draws: LabelerDraws
    votes: Floats
    consistency: Mapping[Hashable, Estimate]

    @classmethod
    def of(cls, labels: Labels, draws: LabelerDraws) -> LabelerTable:
        """From votes in memory."""
        return cls(draws, labels.votes_per_labeler.astype(float), self_consistency(labels))


def read_labelers(
    scan: LabelScan[Labels], model: NoiseModel, n_draws: int, spam_prior: float, rng: np.random.Generator
) -> LabelerTable:
    """From votes in files, in passes over them."""
    sizes = (scan.n_labelers, scan.n_classes, scan.n_answers)
    swept = sweep_scan(scan, model, n_draws=n_draws, rng=rng)
    (draws,) = draws_of_tallies(
        lambda block: [Tally(swept.counts[block], swept.class_counts[block])],
        sizes,
        n_draws=len(swept.counts),
        rows=max(1, _CELLS // max(int(np.prod(sizes)), 1)),
        spam_prior=spam_prior,
        rng=rng,
    )
    votes, agreed, n_items = scan_over(scan, np.add, block_numbers, scan.n_answers)
    return LabelerTable(draws, votes, consistency_of(scan.labelers, agreed, n_items))


def block_numbers(block: VoteBlock, n_answers: int, n_threads: int) -> Floats:
    """Of each labeler the number of votes, how far they agree with themselves, and on how many items, in one block."""
    labeler = block.indices // n_answers
    times = block.data if len(block.data) else np.ones(len(labeler))
    n_labelers = block.n_columns // n_answers
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    with_self = agreement_with_self(item, labeler, times, np.ones(n_labelers, dtype=np.bool_))
    return np.stack([np.bincount(labeler, times, n_labelers), *with_self])
