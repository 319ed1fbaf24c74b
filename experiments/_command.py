"""What the commands of all experiments share: run, print beside the paper, judge."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.su2024.report import checks, comparison

__all__ = ["run_and_judge"]

Answer = tuple[str, dict[str, float]]


def run_and_judge(
    names: Sequence[str], run: Callable[[str], Answer], *, folder: Path, quick: bool, json_file: Path | None
) -> int:
    """Print each table or figure beside what expected.json of the folder says of it.

    What lacks its data is skipped with a sentence. The status is 1 if a number disagrees and expected.json does not say
    why; a quick run is not judged.
    """
    measured: dict[str, dict[str, float]] = {}
    wrong: list[str] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        started = time.monotonic()
        try:
            text, measured[name] = run(name)
        except FileNotFoundError as error:
            print(f"\n{'═' * 100}\n{name} was skipped: {error}", flush=True)
            continue
        took = time.monotonic() - started
        told = comparison(name, measured[name], folder)
        print(f"\n{'═' * 100}\n{name}  ({took:.0f} s)\n\n{text}\n\n{told}", flush=True)
        wrong += [f"{name}: {c.label}" for c in checks(name, measured[name], folder) if not (c.ok or c.differs)]
        if json_file:
            json_file.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    if wrong:
        print("\nOutside the tolerance:", *wrong, sep="\n  ")
    return 1 if wrong and not quick else 0
