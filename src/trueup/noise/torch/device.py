"""Which device the engine runs on, and whether it has the memory."""

from __future__ import annotations

from typing import Any

import torch

from trueup._base.engines import named_device
from trueup._base.types import Floats
from trueup.exceptions import InvalidParameter
from trueup.noise.base import DecidedVotes
from trueup.noise.placing import TooLittleMemory

_BYTES_A_VOTE = 120  # three indices and some twelve numbers while a sum is made


def device_in_use() -> torch.device:
    """The device that the call in progress named, such as "cuda:0" or "cpu"; without one a GPU where there is one."""
    name = named_device()
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise _no_such_device(name) from None
    if device.type == "cpu":
        return device
    if device.type != "cuda" or (device.index or 0) >= torch.cuda.device_count():
        raise _no_such_device(name)
    return device


def _no_such_device(name: str) -> InvalidParameter:
    there = ["cpu", *[f"cuda:{k}" for k in range(torch.cuda.device_count())]]
    return InvalidParameter(
        f"`engine` must name a device that is here, {', '.join(f'torch:{one}' for one in there)}, got "
        f"{f'torch:{name}'!r}; leave it out to let the engine choose",
        parameter="engine",
    )


def free_bytes(device: torch.device) -> float:
    """What can still be allocated on a device; all of it on the processor, which the operating system looks after."""
    if device.type != "cuda":
        return float("inf")
    free, _ = torch.cuda.mem_get_info(device)
    return float(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def check_memory(n_bytes: float, device: torch.device) -> None:
    """Refuse before anything is copied what a device has no memory for."""
    free = free_bytes(device)
    if n_bytes > free:
        raise TooLittleMemory(f"about {n_bytes / 1e9:.2g} GB are needed on {device} and {free / 1e9:.2g} GB are free")


def place_all(votes: DecidedVotes, posterior: Floats) -> tuple[DecidedVotes, Any]:
    """Votes as flat arrays, and a table of their items, on the device in use."""
    device = device_in_use()
    check_memory(_BYTES_A_VOTE * len(votes.item) + 6 * posterior.nbytes, device)

    def place(array: Any) -> torch.Tensor:
        return torch.as_tensor(array).to(device)

    return votes.placed(place), place(posterior)
