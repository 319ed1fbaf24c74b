"""The client of a Dask cluster that a user brings: where blocks of data are put, passes over them, and waiting.

A task costs the scheduler some milliseconds, and so does every message to it. So a pass over blocks has one task for
several neighbours on one worker, and one message for all tasks of a level.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import groupby, pairwise
from math import ceil
from typing import Any

import numpy as np

from trueup._base.optional import require
from trueup.exceptions import ClusterLost, InvalidParameter

_LONGEST_WITHOUT_WORKERS = 300.0  # seconds
_LOOK_EVERY = 10.0  # seconds
_BRANCHES = 8  # blocks, or results of others, that one task takes
_MOST_BESIDE = 4_000_000  # bytes, over all tasks, that are sent with each task and not by a task of their own


def open_client() -> Any:
    """The open client, for a call that named dask; an error that says what to do where there is none."""
    client = current_client()
    if client is None:
        raise InvalidParameter(
            "`engine='dask'` needs a cluster, got no open client; open one with dask.distributed.Client(…)",
        )
    return client


def current_client() -> Any | None:
    """The `dask.distributed.Client` that is open in this process, or None; dask is not loaded for it."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.get_client()
    except ValueError:  # there is none
        return None


def wait_for(client: Any, future: Any) -> Any:
    """The result of a future, however long it takes while the cluster has workers."""

    def say_failure() -> None:
        if future.status == "error":  # the task's own failure, which may be that it ran out of time
            future.result()

    return _tried_again(client, lambda: future.result(timeout=_LOOK_EVERY), say_failure)


def _tried_again(client: Any, attempt: Callable[[], Any], say_failure: Callable[[], None] = lambda: None) -> Any:
    since = None  # when the workers were last seen to be gone
    while True:
        try:
            return attempt()
        except TimeoutError:
            say_failure()
        try:
            has_workers = bool(client.ncores())
        except OSError:  # the scheduler does not answer
            has_workers = False
        now = time.monotonic()
        since = None if has_workers else now if since is None else since
        if since is not None and now - since >= _LONGEST_WITHOUT_WORKERS:
            raise ClusterLost(
                f"a cluster must have workers, got none for {_LONGEST_WITHOUT_WORKERS:.0f} seconds at {client!r}; "
                "start some and call again"
            )


def places_for(client: Any, sizes: Sequence[float]) -> list[str | None]:
    """A worker for each of several blocks: neighbours together, and as much for each thread of the cluster."""
    threads = client.ncores()
    if not threads:
        return [None] * len(sizes)
    shares = np.cumsum(list(threads.values())) / sum(threads.values())
    widths = np.maximum(sizes, 1)
    ends = np.cumsum(widths)
    addresses = list(threads)
    return [addresses[k] for k in np.searchsorted(shares, (ends - widths / 2) / ends[-1]).tolist()]


def map_at(
    client: Any, places: Sequence[str | None], function: Callable[..., Any], *several: Sequence[Any]
) -> list[Any]:
    """The futures of ``function(*one of each)``, computed at these places or, once a place is lost, anywhere."""
    futures: list[Any] = []
    for place, run in _runs(places):
        pinned = {} if place is None else {"workers": [place], "allow_other_workers": True}
        futures += client.map(function, *(list(values[run]) for values in several), pure=False, **pinned)
    return futures


def places_of(client: Any, blocks: Sequence[Any]) -> list[str | None]:
    """The worker that holds each block, the first of several; None for one that could not be computed."""
    distributed = require("distributed", purpose="a cluster")
    _tried_again(client, lambda: distributed.wait(blocks, timeout=_LOOK_EVERY))
    holders = client.who_has(blocks)
    return [min(holders.get(block.key, ()), default=None) for block in blocks]


def grouped_by_place(client: Any, blocks: Sequence[Any]) -> list[list[Any]]:
    """Neighbours that are on one worker together, at most eight, and enough groups for the worker's threads."""
    threads = client.ncores()
    groups = []
    for place, run in _runs(places_of(client, blocks)):
        together = list(blocks[run])
        n_groups = min(len(together), max(ceil(len(together) / _BRANCHES), threads.get(place, 1)))
        edges = np.linspace(0, len(together), n_groups + 1).astype(int).tolist()
        groups += [together[low:high] for low, high in pairwise(edges)]
    return groups


def _runs(places: Sequence[str | None]) -> Iterator[tuple[str | None, slice]]:
    """Places with the neighbours that share them."""
    start = 0
    for place, same in groupby(places):
        end = start + len(list(same))
        yield place, slice(start, end)
        start = end


def reduce_over(
    client: Any,
    groups: Sequence[Sequence[Any]],
    join: Callable[[Any, Any], Any],
    work: Callable[..., Any],
    *shared: Any,
) -> Any:
    """What ``work(block, *shared)`` makes of every block, joined in pairs in the order of the blocks, in a tree."""
    name = work.__name__
    n_bytes = len(require("distributed.protocol.pickle", purpose="a cluster").dumps(shared))
    # As a list: older versions of dask take a tuple that begins with a function for a task.
    sent = (
        list(shared) if n_bytes * len(groups) <= _MOST_BESIDE else client.submit(same_value, list(shared), pure=False)
    )
    repeated = ([each] * len(groups) for each in (sent, work, join))
    parts = client.map(_work_on_group, groups, *repeated, key=name, pure=False)
    while len(parts) > 1:
        branches = [parts[k : k + _BRANCHES] for k in range(0, len(parts), _BRANCHES)]
        parts = client.map(reduce, [join] * len(branches), branches, key=f"{name}-joined", pure=False)
    return wait_for(client, parts[0])


def same_value(value: Any) -> Any:
    """What it is given, as the result of a task that can be computed again."""
    return value


def _work_on_group(
    blocks: Sequence[Any], shared: Sequence[Any], work: Callable[..., Any], join: Callable[[Any, Any], Any]
) -> Any:
    return reduce(join, (work(block, *shared) for block in blocks))
