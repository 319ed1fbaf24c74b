"""The client of a cluster that a user brings, and how long its answers are waited for."""

from __future__ import annotations

import sys
import time
from typing import Any

from trueup.exceptions import ClusterLost, InvalidParameter

_LONGEST_WITHOUT_WORKERS = 300.0  # seconds
_LOOK_EVERY = 10.0  # seconds


def open_client() -> Any:
    """The open client, for a call that named dask; an error that says what to do where there is none."""
    client = current_client()
    if client is None:
        raise InvalidParameter(
            "⟨engine='dask'⟩ needs a cluster, got no open client; open one with dask.distributed.Client(…)",
            parameter="engine",
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
    """The result of a future, however long it takes while the cluster has workers.

    A scheduler holds tasks back until there is a worker, for ever if none comes. One that has had none for five minutes
    is given up.
    """
    without_since = None
    while True:
        try:
            return future.result(timeout=_LOOK_EVERY)
        except TimeoutError:
            if future.done():  # the task itself says so
                raise
        now = time.monotonic()
        without_since = None if _has_workers(client) else now if without_since is None else without_since
        if without_since is not None and now - without_since >= _LONGEST_WITHOUT_WORKERS:
            raise ClusterLost(
                f"a cluster must have workers, got none for {_LONGEST_WITHOUT_WORKERS:.0f} seconds at {client!r}; "
                "start some and call again"
            )


def _has_workers(client: Any) -> bool:
    try:
        return bool(client.ncores())
    except OSError:  # the scheduler does not answer
        return False
