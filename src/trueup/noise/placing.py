"""Where work goes on whose device has too little memory: on the processor, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TypeVar

from trueup._base.engines import OF_ONE_MACHINE, EngineName, is_worth_compiling, using_engine
from trueup.exceptions import TrueupWarning

_Result = TypeVar("_Result")


class TooLittleMemory(Exception):
    """A device has too little memory for what was asked; its text says how much is needed and how much there is."""


def run_where_memory_suffices(
    run: Callable[[], _Result], n_votes: int, n_passes: int, *, offers: tuple[EngineName, ...] = OF_ONE_MACHINE
) -> _Result:
    """Run with the engine that `run` chooses; again on the processor, with a warning, if a device lacks the memory."""
    try:
        return run()
    except _memory_errors() as problem:
        reason = str(problem) if isinstance(problem, TooLittleMemory) else "it ran out on the way"
    instead = "numba" if "numba" in offers and is_worth_compiling(n_votes * n_passes) else "scipy"
    warnings.warn(
        f"the device has too little memory for {n_votes:,} votes ({reason}), so {instead} works on the processor "
        f"instead; name a larger device (`engine='torch:cuda:1'`), or pass `engine={instead!r}` to choose this",
        TrueupWarning,
        stacklevel=2,
    )
    with using_engine(instead):
        return run()


def _memory_errors() -> tuple[type[Exception], ...]:
    """Torch's own error is there only if torch was loaded, which none of this does."""
    torch = sys.modules.get("torch")
    return (TooLittleMemory,) if torch is None else (TooLittleMemory, torch.cuda.OutOfMemoryError)
