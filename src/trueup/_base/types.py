"""The names of arrays and choices that every package speaks of."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]  # positions of classes, -1 for none
Positions = npt.NDArray[np.int64]  # positions of items, labelers or draws
Booleans = npt.NDArray[np.bool_]
Target = Literal["sample", "population"]
