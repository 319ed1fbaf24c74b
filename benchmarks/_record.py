"""Run a command of this project and write down what it used: modules, seeds, processor.

Run ``python -m benchmarks._record RECORD.json -m module argument …`` or ``… script.py argument …``. The command runs
as it would by itself. What processes that it starts load is not seen, but they are started to do more of the same.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._results import ROOT, file_of, hashes_of, processor


def used_modules() -> list[str]:
    """The modules of this project that are loaded, without those that only keep the record."""
    own = {"benchmarks._record", "benchmarks._results", "benchmarks"}
    names = {name for name, module in sys.modules.items() if _lies_here(getattr(module, "__file__", None))}
    return sorted(name for name in names - own - {"__main__"} if file_of(name))


def _lies_here(path: str | None) -> bool:
    return path is not None and Path(path).is_relative_to(ROOT) and ".venv" not in path


def main(arguments: Sequence[str]) -> int:
    """Run the command; the status is its own."""
    record, *command = arguments
    seeds: set[int] = set()
    make = np.random.default_rng

    def make_and_note(seed: Any = None) -> np.random.Generator:
        first = seed[0] if isinstance(seed, list | tuple) and seed else seed
        names = sys._getframe(1).f_globals
        is_ours = names.get("__name__") == "__main__" or _lies_here(names.get("__file__"))
        if isinstance(first, int | np.integer) and is_ours:  # others draw when they are imported
            seeds.add(int(first))
        return make(seed)

    np.random.default_rng = make_and_note
    is_module = command[0] == "-m"
    target = command[1] if is_module else command[0]
    sys.argv = command[1:] if is_module else command
    status = 0
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    modules = used_modules()
    if is_module:  # it was loaded as __main__
        modules = sorted({*modules, target if file_of(f"{target}.__main__") is None else f"{target}.__main__"})
    told = {
        "processor": processor(),
        "seeds": [min(seeds), max(seeds), len(seeds)] if seeds else None,
        "modules": hashes_of(modules),
    }
    Path(record).write_text(json.dumps(told), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
