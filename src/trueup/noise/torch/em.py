"""The passes of expectation–maximisation on a device: votes are copied there once, tables and counts stay there."""

from __future__ import annotations

from typing import Any

import torch
from scipy import sparse
from torch import Tensor

from trueup._base.arrays import like, to_numpy
from trueup._base.types import Codes
from trueup.noise.base import normalise
from trueup.noise.kernels import FLOOR, Expectation, starts_of_items
from trueup.noise.torch.device import check_memory, device_in_use
from trueup.noise.torch.fused import FusedPass, pass_for
from trueup.noise.torch.votes import BLOCK, DeviceVotes


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
    votes: DeviceVotes, gold: Tensor | None, log_table: Tensor, log_starts: Tensor
) -> tuple[Tensor, Tensor]:
    """P(state | votes) of each item, and the logarithm of the probability of what is said of it.

    Row 0 of `log_starts` is of items whose class is not known, row 1 + c of those known to be in class c.
    """
    joint = votes.sum_rows(log_table)
    joint += log_starts[0] if gold is None else log_starts[1 + gold.long()]
    per_item = torch.logsumexp(joint, dim=1)
    return torch.exp_(joint.sub_(per_item[:, None])), per_item


def bytes_for_steps(matrix: sparse.csr_array, n_states: int) -> float:
    """What a step needs on a device: the votes, some tables of items and labelers, and the rows of a block of votes."""
    n_items, n_columns = matrix.shape
    tables = 8 * n_states * (4 * n_items + 6 * n_columns)
    return float(DeviceVotes.bytes_for(matrix) + tables + min(BLOCK, matrix.nnz) * (24 + 24 * n_states))
