"""Which engine works the numbers out, and why: the one place that decides.

scipy is the reference and always there. numba runs the same loops compiled where there is enough to do. torch runs them
on a GPU and dask on a cluster, both only where a caller names them or brings a client. The order of what counts: the
``engine=`` of a call, then the environment variable ``TRUEUP_ENGINE``, then what is installed and worth it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, TypeVar, get_args

from trueup._base.clusters import current_client
from trueup._base.optional import install_command, is_installed, require
from trueup._base.validation import check_choice
from trueup.exceptions import InvalidParameter

EngineName = Literal["scipy", "numba", "torch", "dask"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
OF_ONE_PROCESSOR: tuple[EngineName, ...] = ("scipy", "numba")
OF_ONE_MACHINE: tuple[EngineName, ...] = (*OF_ONE_PROCESSOR, "torch")
VARIABLE = "TRUEUP_ENGINE"
WORTH_COMPILING = 20_000  # votes × passes from which compiled code repays loading numba

_MODULE_OF = {"scipy": "scipy", "numba": "numba", "torch": "torch", "dask": "distributed"}
_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")
_named: ContextVar[str | None] = ContextVar("trueup_engine", default=None)  # with the device, where one was named


@contextmanager
def using_engine(engine: str | None) -> Iterator[None]:
    """Let all that is worked out within the block use the engine a caller named; None leaves the choice as it was."""
    if engine is not None:
        _checked_name(engine)
    token = _named.set(_named.get() if engine is None else engine)
    try:
        yield
    finally:
        _named.reset(token)


def for_threads(work: Callable[[_Argument], _Result]) -> Callable[[_Argument], _Result]:
    """`work` for other threads, which then use the engine that is named in this one."""
    engine = _named.get()

    def work_there(argument: _Argument) -> _Result:
        with using_engine(engine):
            return work(argument)

    return work_there


def named_engine() -> EngineName | None:
    """The engine that the call in progress named, if it named one."""
    named = _named.get()
    return None if named is None else _checked_name(named)


def named_device() -> str | None:
    """The device that the call in progress or `TRUEUP_ENGINE` named behind the engine, as in "torch:cuda:0"."""
    _, _, device = (_named.get() or os.environ.get(VARIABLE) or "").partition(":")
    return device or None


def choose_engine(
    engine: str | None = None,
    *,
    offers: Collection[EngineName] = OF_ONE_PROCESSOR,
    work: float = 0,
    worth: float = WORTH_COMPILING,
    on_client: bool = False,
    purpose: str = "this call",
) -> EngineName:
    """The engine for a piece of work."""
    if engine is not None:
        name = _checked_name(engine)
        if name not in offers:
            listed = ", ".join(repr(offer) for offer in offers)
            raise InvalidParameter(f"`engine` of {purpose} must be one of {listed}, got {engine!r}; leave it out")
        require(_MODULE_OF[name], purpose=f"`engine={name!r}`")
        return name
    for choice in (named_engine(), _from_environment()):
        if choice is not None and choice in offers:
            require(_MODULE_OF[choice], purpose=f"the engine {choice!r}")
            return choice
    if on_client and current_client() is not None:
        return "dask"
    return "numba" if "numba" in offers and is_worth_compiling(work, worth) else "scipy"


def check_engine(engine: str | None, *, is_scan: bool, purpose: str) -> None:
    """Stop an engine that a public function does not offer for votes in memory, or for those of a scan."""
    if engine is not None:
        choose_engine(engine, offers=(*OF_ONE_PROCESSOR, "dask") if is_scan else OF_ONE_MACHINE, purpose=purpose)


def is_worth_compiling(work: float, worth: float = WORTH_COMPILING) -> bool:
    """Whether compiled code is there and repays loading numba."""
    return work >= worth and is_installed("numba")


def _checked_name(engine: object, *, name: str = "engine") -> EngineName:
    """The name of the engine, without the device that may stand behind torch."""
    alone = "torch" if isinstance(engine, str) and engine.startswith("torch:") else engine
    return check_choice(alone, ENGINES, name=name)


def _from_environment() -> EngineName | None:
    choice = os.environ.get(VARIABLE)
    return _checked_name(choice, name=f"the environment variable {VARIABLE}") if choice else None


@cache
def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Engine:
    """One way to work the numbers out."""

    name: EngineName
    is_installed: bool
    version: str | None
    device: str | None  # where it runs: cores, a GPU, or a cluster
    is_default: bool  # whether a call that names no engine may use it, here and now
    reason: str  # why it is or is not used, or how to install it


@dataclass(frozen=True)
class Engines:
    """All engines as this process finds them; made by `trueup.engines`."""

    rows: tuple[Engine, ...]

    def __iter__(self) -> Iterator[Engine]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Engine:
        return self.rows[ENGINES.index(_checked_name(name))]

    def to_dict(self) -> dict[str, list[Any]]:
        """As columns, for any library of data frames."""
        return {field.name: [getattr(row, field.name) for row in self.rows] for field in fields(Engine)}

    def __repr__(self) -> str:
        lines = [("engine", "version", "runs on", "default", "why")]
        for row in self.rows:
            default = "yes" if row.is_default else "no"
            lines.append((row.name, row.version or "—", row.device or "—", default, row.reason))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def engines() -> Engines:
    """Which engines there are, which one a call uses by default, and why.

    A call that names none with ``engine=`` uses scipy for little data, and compiled code where numba is installed and
    there is enough to do. torch is used where it is named, dask where it is named or, for votes that are scanned, where
    a client is open. The environment variable ``TRUEUP_ENGINE`` names an engine for all calls that offer it.

    Examples
    --------
    >>> import trueup as tu
    >>> tu.engines()["scipy"].is_default
    True
    """
    return Engines(tuple(_described(name) for name in ENGINES))


def _described(name: EngineName) -> Engine:
    module, choice = _MODULE_OF[name], _from_environment()
    if not is_installed(module):
        return Engine(name, False, None, None, False, f"not installed: {install_command(module)}")
    device, is_default, reason = _standing(name)
    if choice == name:
        is_default, reason = True, f"{VARIABLE}={choice}"
    elif choice in OF_ONE_PROCESSOR and name in OF_ONE_PROCESSOR:
        is_default, reason = False, f"{VARIABLE}={choice} names another"
    return Engine(name, True, version(module), device, is_default, reason)


def _standing(name: EngineName) -> tuple[str | None, bool, str]:
    """Where an engine runs, whether a call that names none may use it, and why."""
    if name == "scipy":
        below = f" for fits below {WORTH_COMPILING:,} votes × passes"
        when = below if is_installed("numba") else ", since numba is not installed"
        return "1 core", True, f"the reference; by default{when}"
    if name == "numba":
        reason = f"by default for drawing, and for fits from {WORTH_COMPILING:,} votes × passes on"
        return f"{n_cores()} core{'' if n_cores() == 1 else 's'}", True, reason
    if name == "torch":
        torch = require("torch", purpose="trueup.engines()")
        if torch.cuda.is_available():
            return f"cuda ({torch.cuda.get_device_name()})", False, 'where engine="torch" is named'
        return "cpu", False, 'where engine="torch" is named; it finds no GPU here'
    client = current_client()
    if client is None:
        return None, False, 'where engine="dask" is named and a dask.distributed.Client is open; none is'
    workers = len(client.ncores())
    where = f"{workers} worker{'' if workers == 1 else 's'} of {client.scheduler.address}"
    return where, True, 'for votes that are scanned, and where engine="dask" is named'
