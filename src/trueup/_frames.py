"""The only module that knows data frames: columns in (through narwhals), columns out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import numpy.typing as npt

from trueup._optional import is_installed
from trueup._validation import did_you_mean
from trueup.exceptions import InvalidLabels, MissingExtra

__all__ = ["column_blocks", "make_frame"]

_BLOCK = 250_000
_BACKENDS = ("pandas", "polars", "pyarrow")


def column_blocks(frame: Any, name: str, *, role: str) -> Iterator[npt.NDArray[Any] | list[Any]]:
    """A column of a frame or of a dict of columns, in blocks; integers stay arrays, the rest become Python values.

    `role` says what the column is for, and is used in the error when it is missing.
    """
    if isinstance(frame, Mapping):
        _check_present(name, list(frame), role)
        values = frame[name]
        if not hasattr(values, "__len__") or isinstance(values, str):
            raise InvalidLabels(
                f"column {name!r} must be a sequence, got {type(values).__name__}; pass a list or array"
            )
        yield from _sequence_blocks(values)
        return
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InvalidLabels(
            f"a frame (pandas, polars, pyarrow) or a dict of columns is needed, got {type(frame).__name__}; "
            "use Labels.from_matrix for arrays and read_labels for files"
        ) from error
    _check_present(name, table.columns, role)
    column = table[name]
    whole = column.dtype.is_integer() and column.null_count() == 0
    for start in range(0, len(column), _BLOCK):
        block = column[start : start + _BLOCK]
        yield block.to_numpy() if whole else block.to_list()


def _sequence_blocks(values: Any) -> Iterator[npt.NDArray[Any] | list[Any]]:
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        if isinstance(block, np.ndarray) and block.dtype.kind in "iu":
            yield block
        else:
            yield block.tolist() if hasattr(block, "tolist") else list(block)


def _check_present(name: str, columns: list[str], role: str) -> None:
    if name not in columns:
        raise InvalidLabels(
            f"there is no column {name!r} for the {role}, got columns {', '.join(map(repr, columns))}; "
            f"name it with {role}=…{did_you_mean(name, columns)}"
        )


def make_frame(columns: Mapping[str, Any], *, backend: str | None = None) -> Any:
    """A frame of the named backend, or of the first installed of pandas, polars and pyarrow."""
    for name in _BACKENDS if backend is None else (backend,):
        if is_installed(name):
            plain = {k: v.tolist() if isinstance(v, np.ndarray) else list(v) for k, v in columns.items()}
            return nw.from_dict(plain, backend=name).to_native()  # type: ignore[arg-type]
    wanted = backend or "pandas, polars or pyarrow"
    raise MissingExtra(f"to_frame() needs {wanted}, which is not installed: pip install 'trueup[polars]'")
