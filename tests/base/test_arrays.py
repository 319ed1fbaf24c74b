"""The same formulas for arrays of numpy and of torch."""

import sys

import numpy as np
import pytest

from trueup._base.arrays import contiguous, group_sums, like, namespace, special_functions, to_numpy


def test_numpy_stays_numpy():
    values = np.arange(6.0).reshape(2, 3)
    assert namespace(values) is np
    assert namespace(np.float64(1.0)) is np
    assert like(values, [1, 2]).dtype.kind == "i"
    assert contiguous(values.T).flags.c_contiguous
    assert to_numpy(values) is values
    assert group_sums(np.array([], dtype=np.int64), np.array([]), 2).tolist() == [0.0, 0.0]
    assert group_sums(np.array([], dtype=np.int64), np.array([]), 2).dtype == np.float64


def test_torch_stays_torch():
    torch = pytest.importorskip("torch", reason="pip install 'trueup[torch]'")
    values = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    assert namespace(values) is torch is sys.modules["torch"]
    assert like(values, np.eye(2)).dtype == torch.float64
    assert contiguous(values.T).is_contiguous()
    assert to_numpy(values).tolist() == [[0, 1, 2], [3, 4, 5]]
    group = torch.tensor([0, 2, 2])
    assert group_sums(group, values[0], 4).tolist() == [0.0, 0.0, 3.0, 0.0]
    for name in ("psi", "gammaln", "expit"):
        np.testing.assert_allclose(
            to_numpy(getattr(special_functions(values), name)(values + 1)),
            getattr(special_functions(np.ones(1)), name)(to_numpy(values) + 1),
        )
