"""The command line of a benchmark that is made of sections."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks._coverage_tally import say
from benchmarks._results import tables_in
from trueup.exceptions import TrueupWarning

Sections = Mapping[str, Callable[[bool], str]]


def run_sections(
    module: str,
    about: str,
    sections: Sections,
    arguments: Sequence[str] | None = None,
    *,
    parents: Sequence[argparse.ArgumentParser] = (),
) -> None:
    """Print the sections that are named, or all; each is a function from whether the run is quick to a text.

    A section that lacks its data is skipped with a sentence. ``--json`` writes the tables of the texts.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}", description=about.splitlines()[0], parents=parents
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(sections)}; by default all")
    parser.add_argument("--quick", action="store_true", help="few runs, short chains, small sets: minutes for all")
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.sections) - set(sections))
    if unknown:
        parser.error(f"unknown sections {', '.join(unknown)}; there are {', '.join(sections)}")
    tables = {}
    for name in options.sections or sections:
        say(f"{name} …")
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrueupWarning)  # what they warn of is what is measured here
                text = sections[name](options.quick)
        except FileNotFoundError as error:
            print(f"\n=== {name} ===\nskipped: {error}", flush=True)
            continue
        print(f"\n=== {name} ({time.perf_counter() - started:.0f} s) ===\n{text}", flush=True)
        tables[name] = [asdict(table) for table in tables_in(text)]
        if options.json:
            options.json.write_text(json.dumps(tables, indent=1, ensure_ascii=False), encoding="utf-8")


def apart(function: Callable[..., Any], *arguments: Any, **environment: str) -> Any:
    """What a function of a module gives for plain arguments in a process of its own, whose memory is only its own."""
    module = Path(inspect.getfile(function)).stem
    code = (
        f"import json, sys, warnings; from benchmarks import {module}; warnings.simplefilter('ignore'); "
        f"print(json.dumps({module}.{function.__name__}(*json.loads(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", code, json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return json.loads(done.stdout.splitlines()[-1])
