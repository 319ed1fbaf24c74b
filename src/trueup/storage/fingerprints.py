"""Whether data are still those that a session began with."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from scipy import sparse

from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels


def fingerprint(*parts: Any) -> str:
    """The SHA-256 of arrays, sparse matrices, data frames, names and numbers; alike on every machine.

    Examples
    --------
    >>> import numpy as np
    >>> fingerprint(np.arange(3), ["a", "b"]) == fingerprint(np.arange(3, dtype=np.int32), ["a", "b"])
    True
    >>> fingerprint(np.arange(3)) == fingerprint(np.arange(3.0))
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, part: Any) -> None:
    if part is None or isinstance(part, str):
        digest.update(f"{type(part).__name__} {part!r};".encode())
        return
    if sparse.issparse(part):
        matrix: Any = part
        table = matrix.tocsr(copy=True)
        table.sum_duplicates()
        _add(digest, np.asarray(table.shape))
        for array in (table.indptr, table.indices, table.data):
            _add(digest, array)
        return
    array = np.asarray(part)
    if array.dtype.kind in "iub":
        array = array.astype("<i8")  # platforms differ in their default
    elif array.dtype.kind == "f":
        array = array.astype("<f8") + 0.0  # without negative zeros
    else:
        names = "\0".join(map(repr, array.ravel().tolist()))
        digest.update(f"names {array.shape};{names};".encode(errors="surrogatepass"))
        return
    digest.update(f"{array.dtype.kind} {array.shape};".encode())
    digest.update(np.ascontiguousarray(array).tobytes())


def of_votes(labels: Labels) -> str:
    """Of items, labelers, classes, votes and gold."""
    names = labels.items.tolist(), labels.labelers.tolist(), labels.classes.tolist()
    return fingerprint(*map(_objects, names), *labels.vote_table(), labels.gold_codes)


def of_predictions(aligned: AlignedPredictions) -> str:
    """Of what systems say of the items of the votes."""
    names = _objects(aligned.systems.tolist())
    return fingerprint(names, aligned.codes, aligned.scores, aligned.probabilities)


def _objects(names: list[Any]) -> Any:
    """Names one by one: an array of its own choice would make text of numbers, and tables of tuples."""
    column = np.empty(len(names), dtype=object)
    column[:] = names
    return column
