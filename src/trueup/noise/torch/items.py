"""The items of a chain of the sampler on a device: their states are drawn there, parameters on the processor.

What goes back and forth in a sweep is a table of the labelers and its counts; the votes, the states of the items and
their chances stay on the device. Draws have the law of those of the other engines, and random numbers of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from torch import Tensor

from trueup._base.types import Codes, Floats, Positions
from trueup.noise.kernels import FLOOR, starts_of_items
from trueup.noise.torch.device import check_memory, device_in_use
from trueup.noise.torch.em import bytes_for_steps, place_gold, posterior_of
from trueup.noise.torch.fused import pass_for
from trueup.noise.torch.votes import DeviceVotes


class DeviceItems:
    """The items of a chain on a device: their states, and the summed chances of their classes.

    Parameters
    ----------
    votes : sparse array of shape (n_items, n_raters * n_answers)
    gold : integer array of shape (n_items,)
        The known class of each item or -1.
    outputs : sparse array of shape (n_items, columns of all systems)
        Which answers systems gave, if there are any.
    states : integer array of shape (n_items,)
        To start from.
    n_states, n_classes : int
    seed : int
    """

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
