"""Formulas for arrays of numpy and of torch alike, so that a model is written once and runs on either.

numpy and torch share most names (`sum` with `axis` and `keepdims`, `log`, `einsum`, `where`, `bincount`); these helpers
are for where they do not. None of them loads torch.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from trueup._base.types import Floats


def namespace(array: Any) -> Any:
    """The library an array is of: numpy or torch."""
    return np if isinstance(array, np.ndarray | np.generic) else sys.modules["torch"]  # which has made the array


def special_functions(array: Any) -> Any:
    """scipy.special or torch.special, whichever takes the array; both have psi, gammaln and expit."""
    xp = namespace(array)
    return special if xp is np else xp.special


def like(array: Any, values: npt.ArrayLike) -> Any:
    """`values` as an array of the same library, and on the same device, as `array`; their type is kept."""
    if namespace(array) is np:
        return np.asarray(values)
    return namespace(array).as_tensor(values, device=array.device)


def contiguous(array: Any) -> Floats:
    """The array, of its library, with rows one after the other in memory."""
    rows: Floats = np.ascontiguousarray(array) if namespace(array) is np else array.contiguous()
    return rows


def to_numpy(array: Any) -> Floats:
    """The array in numpy, copied from the device where it is on one."""
    return np.asarray(array if namespace(array) is np else array.cpu().numpy())


def group_sums(group: Any, values: Any, n_groups: int) -> Any:
    """The sum of the values of each group, shape (n_groups,), in double precision."""
    xp = namespace(group)
    return like(group, 0.0) + xp.bincount(group, values, n_groups)  # of no values, numpy counts in whole numbers
