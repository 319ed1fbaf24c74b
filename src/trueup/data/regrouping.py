"""Votes written anew so that every item is in one file: once, into a folder that the next scan finds."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from trueup._base.optional import require
from trueup.data.files import open_table
from trueup.data.frames import Cells
from trueup.data.partitions import PartitionReader, item_keys, mixed_keys
from trueup.exceptions import InvalidFile, InvalidLabels

_SOURCES = "sources.json"  # what the folder was made from; written last
_MOST_FILES = 512


def regrouped_files(files: Sequence[str], reader: PartitionReader[Any], folder: str) -> tuple[str, ...]:
    """The files of the folder; it is made if it is not there, and must be of the same files if it is."""
    target, sources = Path(folder), _fingerprint(files, reader)
    if target.exists():
        marker = target / _SOURCES
        if not marker.is_file() or json.loads(marker.read_text(encoding="utf-8")) != sources:
            raise InvalidFile(
                f"the folder {folder!r} must hold these votes regrouped or not be there, got one of other votes; "
                "delete it, or pass another `regroup`"
            )
        return _listed(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _write(files, reader, partial)
        (partial / _SOURCES).write_text(json.dumps(sources), encoding="utf-8")
        partial.rename(target)  # all or nothing
    except BaseException:
        rmtree(partial, ignore_errors=True)
        raise
    return _listed(target)


def _listed(folder: Path) -> tuple[str, ...]:
    return tuple(str(path) for path in sorted(folder.glob("*.parquet")))


def _fingerprint(files: Sequence[str], reader: PartitionReader[Any]) -> dict[str, Any]:
    """The names, sizes and times of the files, and the columns."""
    digest = blake2b(digest_size=16)
    for path in files:
        found = Path(path).stat()
        digest.update(f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    options = reader.options
    return {"files": digest.hexdigest(), "columns": [options.item, options.labeler, options.label, options.run]}


def _write(files: Sequence[str], reader: PartitionReader[Any], folder: Path) -> None:
    """Send the rows of every file to the file of their item; no more than one file is in memory."""
    arrow = require("pyarrow", purpose="`regroup`")
    parquet = require("pyarrow.parquet", purpose="`regroup`")
    n_files = min(len(files), _MOST_FILES)
    writers: dict[int, Any] = {}
    try:
        for path in files:
            rows, keys = _rows_of(path, reader)
            try:
                table = arrow.table(rows)
            except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
                raise InvalidLabels(
                    f"in {path!r}, names must be text or numbers to be regrouped, got {error!s:.80}; write them alike"
                ) from error
            goal = mixed_keys(keys) % np.uint64(n_files)
            for number in np.unique(goal).tolist():
                part = table.take(np.flatnonzero(goal == number))
                if number not in writers:
                    writers[number] = parquet.ParquetWriter(folder / f"part-{number:05d}.parquet", part.schema)
                writers[number].write_table(part)
    finally:
        for writer in writers.values():
            writer.close()


def _rows_of(path: str, reader: PartitionReader[Any]) -> tuple[dict[str, list[Any]], Any]:
    """The votes of a file by name, and the key of each row's item."""
    options = reader.options
    with open_table(path, file_format=options.file_format) as table:
        roles = (options.item, options.labeler, options.label, options.run)
        others = {name: Cells() for name in table.columns if name not in roles}
        columns = reader.columns_of(table, list(others.items()))
    special = [None, *columns.missing, *columns.abstain]
    labels = [*columns.names.tolist(), *special[::-1]]  # a code of -1 is the last, -2 the one before it
    rows = {
        options.item: columns.items[columns.item].tolist(),
        options.labeler: columns.labelers[columns.labeler].tolist(),
        options.label: [labels[code] for code in columns.label.tolist()],
    }
    if options.run is not None:
        assert columns.run is not None
        rows[options.run] = columns.run.tolist()
    rows |= {name: cells.values for name, cells in others.items()}
    return rows, item_keys(columns.items)[columns.item]
