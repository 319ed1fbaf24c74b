"""Expectation–maximisation, for models with a table of answer probabilities and for models with parameters of items.

The votes are in memory, in files, or on a Dask cluster, and a fit sees counts alone: an iteration is one map over
blocks of items and one sum of tables of counts, labelers × answers × states. In memory there is one block, of a scan
one for each file, and on a cluster blocks stay on the workers and tables are summed in a tree. On a GPU the votes are
placed once (`trueup.noise.torch`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trueup._base.arrays import contiguous, like, namespace, to_numpy
from trueup._base.clusters import grouped_by_place, map_at, open_client, places_for, reduce_over, same_value
from trueup._base.engines import OF_ONE_PROCESSOR, EngineName, choose_engine
from trueup._base.types import Codes, Floats
from trueup.data.labels import Labels
from trueup.data.partitions import PartitionReader, VoteBlock
from trueup.data.scanning import LabelScan
from trueup.exceptions import ConvergenceWarning
from trueup.noise import kernels
from trueup.noise.base import NoiseModel, TableModel, check_matrices_fit, class_states, normalise
from trueup.noise.kernels import run_where_memory_suffices

if TYPE_CHECKING:
    from trueup.noise.torch import DevicePasses

Maximise = Callable[[Floats, Floats], tuple[Floats, Floats, float]]
MaximiseItems = Callable[[Floats], tuple[Floats, float]]


class EMResult(NamedTuple):
    """Where the iteration ended."""

    state_counts: Floats
    loss_history: list[float]
    converged: bool


def expectation_maximisation(
    labels: Labels | LabelScan[Labels],
    maximise: Maximise,
    *,
    state_class: Codes,
    max_iter: int,
    tol: float,
    name: str,
    warn: bool = True,
    offers: tuple[EngineName, ...] = OF_ONE_PROCESSOR,
    first: tuple[Floats, Floats] | None = None,
) -> EMResult:
    """Alternate the E-step of the kernels with a model's M-step."""
    check_matrices_fit(labels.n_labelers, len(state_class), labels.n_answers)
    n_votes = max(labels.n_votes, 1)

    def iterate() -> EMResult:
        passes = passes_over(labels, max_iter, offers=offers)
        begun = None if first is None else passes.expect(*first, state_class)
        counts, state_counts = passes.first_counts() if begun is None else (begun.counts, begun.state_counts)
        losses: list[float] = []
        converged = False
        for _ in range(max_iter):
            table, weights, log_prior = maximise(counts, state_counts)
            step = passes.expect(table, weights, state_class)
            counts, state_counts = step.counts, step.state_counts
            losses.append(-(step.log_likelihood + log_prior) / n_votes)
            converged = _has_settled(losses, tol)
            if converged:
                break
        return EMResult(to_numpy(state_counts), losses, converged)

    result = run_where_memory_suffices(iterate, n_votes, max_iter, offers=offers)
    if warn and not result.converged:
        _warn_unsettled(name, result.loss_history, max_iter, tol, stacklevel=5)
    return result


def fit_matrices(
    model: TableModel, labels: Labels | LabelScan[Labels], maximise: Maximise, *, max_iter: int, tol: float
) -> None:
    """EM from the shares of votes for a model whose states are the classes; sets what the contract promises."""
    how: Any = {"max_iter": max_iter, "tol": tol, "name": type(model).__name__, "offers": model.engines}
    result = expectation_maximisation(labels, maximise, state_class=class_states(labels.n_classes), **how)
    model.confusion_, model.pooled_ = contiguous(to_numpy(model.confusion_)), to_numpy(model.pooled_)
    model.prior_, model.n_iter_ = normalise(result.state_counts), len(result.loss_history)
    model.converged_, model.loss_history_ = result.converged, result.loss_history


def fit_posterior(
    model: NoiseModel, labels: Labels, maximise: MaximiseItems, posterior: Floats, *, max_iter: int, tol: float
) -> None:
    """EM from a first guess for a model with parameters of items, which `maximise` fits and scores."""
    xp = namespace(posterior)
    given = np.flatnonzero(labels.gold_codes >= 0)
    items, codes = like(posterior, given), like(posterior, labels.gold_codes[given].astype(np.int64))
    losses: list[float] = []
    converged = False
    while not converged and len(losses) < max_iter:
        joint, log_prior = maximise(posterior)
        top = xp.amax(joint, axis=1)
        likelihood = xp.exp(joint - top[:, None])
        total = likelihood.sum(axis=1)
        posterior = likelihood / total[:, None]
        evidence = top + xp.log(total)
        posterior[items] = 0.0
        posterior[items, codes] = 1.0
        evidence[items] = joint[items, codes]
        losses.append(-(float(evidence.sum()) + log_prior) / max(labels.n_votes, 1))
        converged = _has_settled(losses, tol)
    if not converged:
        _warn_unsettled(type(model).__name__, losses, max_iter, tol, stacklevel=4)
    model.n_iter_, model.converged_, model.loss_history_ = len(losses), converged, losses


def _has_settled(losses: list[float], tol: float) -> bool:
    return len(losses) > 1 and abs(losses[-2] - losses[-1]) < tol


def _warn_unsettled(name: str, losses: list[float], max_iter: int, tol: float, *, stacklevel: int) -> None:
    """Say that a fit stopped early, unless all iterations were asked for."""
    if tol <= 0:
        return
    sentence = f"{name} ran for one iteration only; raise `max_iter`"
    if len(losses) > 1:
        sentence = (
            f"{name} did not settle in {max_iter} iterations (last change {abs(losses[-2] - losses[-1]):.2g} a vote, "
            f"tol {tol:g}); raise `max_iter` or `tol`"
        )
    warnings.warn(sentence, ConvergenceWarning, stacklevel=stacklevel)


Counts = tuple[Floats, Floats]  # of votes (labelers·answers, states), and of items (states,)
_FEWEST_ROWS = 20_000  # items of a block that is worth sending to a worker


def passes_over(
    labels: Labels | LabelScan[Labels], n_passes: int, *, offers: tuple[EngineName, ...]
) -> BlockPasses | DevicePasses:
    """The passes of a fit by the engine that is named, or that suits the votes, among those that the fit offers."""
    sizes = labels.n_classes, labels.n_answers
    if isinstance(labels, LabelScan):
        encoded = labels.encoded
        engine = choose_engine(work=labels.n_votes * n_passes) if encoded.client is None else None
        return BlockPasses(encoded.client, encoded.blocks, *sizes, engine)
    engine = choose_engine(offers=offers, work=labels.votes.nnz * n_passes)
    if engine == "dask":
        client = open_client()
        blocks = list(blocks_in_memory(labels, 2 * sum(client.ncores().values())))
        places = places_for(client, [block.n_items for block in blocks])
        return BlockPasses(client, map_at(client, places, same_value, blocks), *sizes)
    if engine == "torch":
        from trueup.noise.torch import DevicePasses

        return DevicePasses(labels.votes, labels.gold_codes, *sizes)
    return BlockPasses(None, [_KeptBlock.of(labels)], *sizes, engine)


def sum_over_blocks(labels: Labels | LabelScan[Labels], work: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """The sums over all blocks of items of the arrays that ``work(block, *arguments)`` gives."""
    if isinstance(labels, LabelScan):
        return scan_over(labels, _add_arrays, work, *arguments)  # type: ignore[no-any-return]
    return work(VoteBlock.of(labels), *arguments)  # type: ignore[no-any-return]


def _add_arrays(first: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, other, strict=True))


def scan_over(scan: LabelScan[Labels], join: Callable[..., Any], work: Callable[..., Any], *arguments: Any) -> Any:
    """The results of ``work(block, *arguments)`` of all blocks, joined in pairs where the blocks are."""
    client, blocks = scan.encoded.client, scan.encoded.blocks
    groups = blocks if client is None else grouped_by_place(client, list(blocks))
    return _over_blocks(client, groups, join, work, *arguments)


def _over_blocks(client: Any, groups: Any, join: Callable[..., Any], work: Callable[..., Any], *arguments: Any) -> Any:
    """The same of blocks that are here, or of groups of blocks on a cluster."""
    if client is None:
        return reduce(join, (work(block, *arguments) for block in groups))
    return reduce_over(client, groups, join, work, *arguments)


def partitions_over(
    scan: LabelScan[Labels], join: Callable[..., Any], work: Callable[..., Any], *arguments: Any
) -> Any:
    """What ``work(labels, *arguments)`` makes of the votes of every file, joined in pairs; here, or on a cluster."""
    encoded = scan.encoded
    if encoded.client is None:
        return reduce(join, (work(part, *arguments) for part in scan.partitions()))
    shared = encoded.client.submit(same_value, (scan.reader, arguments), pure=False)
    return reduce_over(encoded.client, [[path] for path in encoded.files], join, _work_on_file, work, shared)


def _work_on_file(path: str, work: Callable[..., Any], shared: tuple[PartitionReader[Any], tuple[Any, ...]]) -> Any:
    reader, arguments = shared
    return work(reader.read(path), *arguments)


class _KeptBlock(VoteBlock):
    """A block in memory, whose matrix is kept between the passes of a fit."""

    matrix = cached_property(VoteBlock.matrix.fget)  # type: ignore[attr-defined]


class BlockPasses:
    """Votes in memory, of a scan one file after another, or blocks on the workers of a client, which sum them there."""

    def __init__(
        self, client: Any, blocks: Iterable[Any], n_classes: int, n_answers: int, engine: EngineName | None = None
    ) -> None:
        self._client, self._sizes, self._engine = client, (n_classes, n_answers), engine
        self._blocks = blocks if client is None else grouped_by_place(client, list(blocks))

    def first_counts(self, smoothing: float = 0.0) -> Counts:
        """Counts if the truth is the shares of an item's votes."""
        how = (*self._sizes, smoothing)
        counts: Counts = _over_blocks(self._client, self._blocks, _add_arrays, first_counts_of, *how)
        return counts

    def expect(self, table: Floats, weights: Floats, state_class: Codes) -> kernels.Expectation:
        """The E-step."""
        has_threads = self._client is None  # on a cluster the workers are the threads
        how = (table, weights, state_class, self._engine, has_threads)
        step: kernels.Expectation = _over_blocks(self._client, self._blocks, _add, expectation_of, *how)
        return step


def first_counts_of(block: VoteBlock, n_classes: int, n_answers: int, smoothing: float) -> Counts:
    """Of a block, the counts if the truth is the shares of an item's votes."""
    item = np.repeat(np.arange(block.n_items), np.diff(block.indptr))
    cell = item * n_answers + block.indices % n_answers
    weights = block.data if len(block.data) else None
    votes = np.bincount(cell, weights, block.n_items * n_answers).reshape(-1, n_answers)[:, :n_classes]
    shares = normalise(votes.astype(float) + smoothing)
    given = np.flatnonzero(block.gold >= 0)
    shares[given] = np.eye(n_classes)[block.gold[given]]
    return np.asarray(block.matrix.T @ shares), shares.sum(axis=0)


def expectation_of(
    block: VoteBlock, table: Floats, weights: Floats, state_class: Codes, engine: EngineName | None, has_threads: bool
) -> kernels.Expectation:
    """Of a block, the E-step; by the engine that suits it where none is given."""
    engine = choose_engine(work=len(block.indices)) if engine is None else engine
    given: Any = {"gold": block.gold_codes, "state_class": state_class, "engine": engine, "has_threads": has_threads}
    return kernels.em_step(block, table, weights, **given)


def _add(a: kernels.Expectation, b: kernels.Expectation) -> kernels.Expectation:
    return kernels.Expectation(
        a.counts + b.counts, a.state_counts + b.state_counts, a.log_likelihood + b.log_likelihood
    )


def blocks_in_memory(labels: Labels, n_blocks: int) -> Iterator[VoteBlock]:
    """The votes of labels in memory, cut into blocks of about equal numbers of items."""
    whole = VoteBlock.of(labels)
    n_blocks = max(1, min(n_blocks, labels.n_items // _FEWEST_ROWS))
    edges = np.linspace(0, labels.n_items, n_blocks + 1).astype(np.int64).tolist()
    return (whole.rows(low, high) for low, high in pairwise(edges))
