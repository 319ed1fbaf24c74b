"""The passes of expectation–maximisation on a device.

What goes back and forth in a sweep is a table of the labelers and its counts; the votes, the states of the items and
their chances stay on the device. Draws have the law of those of the other engines, and random numbers of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from trueup._base.arrays import like, to_numpy
from trueup._base.types import Codes, Floats, Positions
from trueup.noise.base import normalise
from trueup.noise.kernels import FLOOR, Expectation, starts_of_items
from trueup.noise.torch.device import check_memory, device_in_use
from trueup.noise.torch.fused import FusedPass, pass_for
from trueup.noise.torch.votes import BLOCK, DeviceVotes

# ------------------ The items of a chain of the sampler on a device: their states are drawn there, parameters on the


class DeviceItems:
    """The items of a chain on a device: their states, and the summed chances of their classes."""

    def __init__(
        self,
        votes: sparse.csr_array,
        gold: Codes,
        outputs: sparse.csr_array,
        states: Codes,
        *,
        n_states: int,
        n_classes: int,
        seed: int,
    ) -> None:
        device, n_items = device_in_use(), len(gold)
        check_memory(bytes_for_steps(votes, n_states) + 8 * n_items * n_classes, device)
        self._device, self._n_states = device, n_states
        self._votes, self._gold = DeviceVotes(votes, device), place_gold(gold, device)
        self._known = self._placed(np.flatnonzero(gold >= 0))
        self._outputs = DeviceVotes(outputs, device) if outputs.shape[1] else None
        self._random = torch.Generator(device=device).manual_seed(seed)
        self._states = self._placed(states.astype(np.int64))
        self._said: Tensor | None = None
        self._fused = pass_for(self._votes, n_states, self._gold)
        self._counts = self._votes.count_states(self._states, n_states)
        self._posterior = torch.empty(0, device=device)
        self._chances = torch.zeros((n_items, n_classes), dtype=torch.float64, device=device)

    def count(self) -> tuple[Floats, Floats]:
        """The votes (columns, states) and the items (states,) that are in each state."""
        in_states = torch.bincount(self._states, minlength=self._n_states)
        return self._counts.cpu().numpy(), in_states.double().cpu().numpy()

    def states_of_known(self) -> Positions:
        """The states of the items whose class is known."""
        return np.asarray(self._states[self._known].cpu().numpy())

    def count_outputs(self) -> Floats:
        """How often systems gave each answer in each state, shape (columns, n_states)."""
        assert self._outputs is not None
        return np.asarray(self._outputs.count_states(self._states, self._n_states).cpu().numpy())

    def add_output_likelihood(self, log_rows: Floats) -> None:
        """Set what systems say of each item, from the logarithms of their rows (columns, states)."""
        assert self._outputs is not None
        self._said = self._outputs.sum_rows(self._placed(log_rows))

    def draw(self, table: Floats, weights: Floats, state_class: Codes) -> float:
        """Draw the state of each item given the parameters; returns the log-likelihood."""
        log_starts = self._placed(starts_of_items(weights, state_class)).log()
        log_table = self._placed(table).clamp_min(FLOOR).log()
        uniforms = torch.rand(len(self._states), generator=self._random, dtype=torch.float64, device=self._device)
        if self._fused is not None:
            drawn = self._fused(log_table, log_starts, uniforms=uniforms, beside=self._said)
            self._states, self._counts, self._posterior = drawn.states, drawn.counts, drawn.posterior.double()
            return float(drawn.log_likelihood)
        self._posterior, per_item = posterior_of(self._votes, self._gold, log_table, log_starts, self._said)
        self._states = states_at(self._posterior, uniforms)
        self._counts = self._votes.count_states(self._states, self._n_states)
        return float(per_item.sum())

    def add_chances(self, state_class: Codes) -> None:
        """Add the chances of the classes under the last draw to the sums."""
        belongs = torch.nn.functional.one_hot(self._placed(state_class.astype(np.int64)), self._chances.shape[1])
        self._chances += self._posterior @ belongs.double()

    def truth(self, state_class: Codes) -> npt.NDArray[np.int16]:
        """The class of each item as it was drawn."""
        return np.asarray(self._placed(state_class.astype(np.int16))[self._states].cpu().numpy())

    def chances(self) -> Floats:
        """The sum over the draws of the chances of the classes."""
        return np.asarray(self._chances.cpu().numpy())

    def _placed(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.as_tensor(array).to(self._device)


def states_at(posterior: Tensor, uniforms: Tensor) -> Tensor:
    """The state of each item at a uniform number, by inversion of its chances."""
    # The last state with any probability serves when rounding leaves a remainder.
    last = posterior.shape[1] - 1 - (posterior.flip(1) > 0).int().argmax(dim=1)
    return torch.minimum((posterior.cumsum(dim=1) <= uniforms[:, None]).sum(dim=1), last)


class DevicePasses:
    """Votes that are placed on a device once; tables and counts come and go as tensors there."""

    def __init__(self, matrix: sparse.csr_array, gold: Codes, n_classes: int, n_answers: int) -> None:
        device = device_in_use()
        check_memory(bytes_for_steps(matrix, n_classes), device)
        self._votes, self._gold = DeviceVotes(matrix, device), place_gold(gold, device)
        self._sizes = n_classes, n_answers
        self._fused_for: dict[int, FusedPass | None] = {}

    def first_counts(self, smoothing: float = 0.0) -> tuple[Any, Any]:
        """Counts if the truth is the shares of an item's votes."""
        n_classes, n_answers = self._sizes
        answer = torch.arange(self._votes.n_columns, device=self._votes.device) % n_answers
        names = torch.nn.functional.one_hot(answer, n_answers)[:, :n_classes].double()
        shares = normalise(self._votes.sum_rows(names) + smoothing)
        if self._gold is not None:
            known = torch.nonzero(self._gold >= 0)[:, 0]
            shares[known] = torch.nn.functional.one_hot(self._gold[known].long(), n_classes).double()
        return self._votes.count(shares), shares.sum(axis=0)

    def expect(self, table: Any, weights: Any, state_class: Codes) -> Expectation:
        """The E-step."""
        log_table = torch.as_tensor(table).to(self._votes.device).clamp_min(FLOOR).log()
        if self._gold is None:  # then nothing needs to go back and forth
            log_starts = torch.as_tensor(weights).to(self._votes.device).log()[None]
        else:
            log_starts = like(log_table, starts_of_items(to_numpy(weights), state_class)).log()
        fused = self._fused(len(state_class))
        if fused is not None:
            step = fused(log_table, log_starts)
            return Expectation(step.counts, step.state_counts, float(step.log_likelihood), None)
        posterior, per_item = posterior_of(self._votes, self._gold, log_table, log_starts)
        return Expectation(self._votes.count(posterior), posterior.sum(dim=0), float(per_item.sum()), None)

    def _fused(self, n_states: int) -> FusedPass | None:
        if n_states not in self._fused_for:
            self._fused_for[n_states] = pass_for(self._votes, n_states, self._gold)
        return self._fused_for[n_states]


def place_gold(gold: Codes, device: torch.device) -> Tensor | None:
    """The known classes of the items on a device, -1 for none; None if no class is known."""
    return torch.as_tensor(gold.astype("int16")).to(device) if (gold >= 0).any() else None


def posterior_of(
    votes: DeviceVotes, gold: Tensor | None, log_table: Tensor, log_starts: Tensor, beside: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """P(state | votes) of each item, and the logarithm of the probability of what is said of it.

    Row 0 of `log_starts` is of items whose class is not known, row 1 + c of those known to be in class c. `beside`,
    shape (n_items, n_states), is what else is known of each item.
    """
    joint = votes.sum_rows(log_table)
    joint += log_starts[0] if gold is None else log_starts[1 + gold.long()]
    if beside is not None:
        joint += beside
    per_item = torch.logsumexp(joint, dim=1)
    return torch.exp_(joint.sub_(per_item[:, None])), per_item


def bytes_for_steps(matrix: sparse.csr_array, n_states: int) -> float:
    """What a step needs on a device: the votes, some tables of items and labelers, and the rows of a block of votes."""
    n_items, n_columns = matrix.shape
    tables = 8 * n_states * (4 * n_items + 6 * n_columns)
    return float(DeviceVotes.bytes_for(matrix) + tables + min(BLOCK, matrix.nnz) * (24 + 24 * n_states))
