"""What is stored of a figure: the text that its command printed, and beside it the same as data.

``benchmarks/results/<name>.json`` has the command, the versions, the processor, the seeds, the repetitions, a hash of
each module that was used, and every table of the text as head and rows. Outputs that were stored before modules were
recorded have the rest.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import trueup

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^=== (.+?) ===$|^═{20,}$")
RULE = re.compile(r"^[-─]{8,}$")
COLUMNS = re.compile(r" {2,}")
REPETITIONS = re.compile(
    r"\b(\d[\d,]*) (runs|repetitions|data sets|sets|sessions|splits|seeds|draws of the votes|networks)\b"
)
SEEDS = re.compile(r"\bseeds (\d+) to (\d+)\b")


@dataclass(frozen=True)
class Table:
    """A table of a stored text; a row with empty cells has fewer."""

    section: str  # the heading that it stands under, "" for none
    title: str  # the line before its head, if it is one of words
    head: list[str]
    rows: list[list[str]]

    def cell(self, row: str, column: str) -> str:
        """The cell of the first row that begins with `row`, or has what follows "…"; columns by head or number."""
        texts = ["  ".join(cells) for cells in self.rows]
        within = row.removeprefix("…") if row.startswith("…") else None
        fits = [text.startswith(row) if within is None else within in text for text in texts]
        if not any(fits):
            raise KeyError(f"no row is {row!r}; there are {[cells[0] for cells in self.rows]}")
        place = int(column) if column.isdigit() else self.head.index(column) - len(self.head)
        return self.rows[fits.index(True)][place]


@dataclass(frozen=True)
class Result:
    """A stored figure as data; what was not recorded is None."""

    command: str  # as a user types it
    versions: dict[str, str]  # of Python and of the packages that numbers depend on
    processor: str
    seeds: list[int] | None = None  # the least and the largest that was used, and how many
    repetitions: list[str] = field(default_factory=list)
    modules: dict[str, str] | None = None  # the project's own, with a hash of the code of each
    tables: list[Table] = field(default_factory=list)

    @classmethod
    def of_text(cls, text: str, record: Mapping[str, Any] | None = None) -> Result:
        """From a stored text, whose first two lines are its header, and what was recorded while it was measured."""
        first, second, body = text.split("\n", 2)
        *packages, python, machine = second.split(", ")
        versions = dict(part.rsplit(" ", 1) for part in (*packages, python))
        record = record or {}
        return cls(
            command=first.removeprefix("$ "),
            versions=versions,
            processor=str(record.get("processor", machine)),
            seeds=record.get("seeds") or seeds_in(body),
            repetitions=repetitions_in(body),
            modules=record.get("modules"),
            tables=tables_in(body),
        )

    @classmethod
    def read(cls, path: Path) -> Result:
        """From its file."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**stored, "tables": [Table(**table) for table in stored["tables"]]})

    def write(self, path: Path) -> None:
        """To its file, a row a line."""
        plain = asdict(self)
        tables = plain.pop("tables")
        head = json.dumps(plain, ensure_ascii=False, indent=1).removesuffix("\n}")
        bodies = []
        for table in tables:
            rows = ",\n".join(f"   {_json(row)}" for row in table.pop("rows"))
            bodies.append(f'  {_json(table).removesuffix("}")}, "rows": [\n{rows}]}}')
        path.write_text(f'{head},\n "tables": [\n' + ",\n".join(bodies) + "]}\n", encoding="utf-8")

    @property
    def is_of_this_version(self) -> bool:
        """Whether trueup has the version that it was measured with."""
        return self.versions["trueup"] == trueup.__version__

    @property
    def changed_modules(self) -> list[str] | None:
        """Those that it was measured with whose code has changed since, the library's first; None: not recorded."""
        if self.modules is None:
            return None
        changed = [name for name, code in hashes_of(self.modules).items() if code != self.modules[name]]
        return sorted(changed, key=lambda name: not name.startswith("trueup"))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def tables_in(text: str) -> list[Table]:
    """All tables of a text: a head, a rule, and rows up to a blank line."""
    tables, lines, section = [], text.splitlines(), ""
    for at, line in enumerate(lines):
        if heading := SECTION.match(line):
            section = (heading[1] or "".join(lines[at + 1 : at + 2])).strip()
        if not RULE.match(line) or at == 0 or not lines[at - 1].strip():
            continue
        before = lines[at - 2].strip() if at > 1 else ""
        rows = []
        for row in lines[at + 1 :]:
            if not row.strip() or SECTION.match(row):
                break
            rows.append(COLUMNS.split(row.strip()))
        title = "" if SECTION.match(before) else before
        tables.append(Table(section, title, COLUMNS.split(lines[at - 1].strip()), rows))
    return tables


def repetitions_in(text: str) -> list[str]:
    """How often things were repeated, as the text and columns of runs say it, each once."""
    told = [f"{number} {things}" for number, things in REPETITIONS.findall(text)]
    for table in tables_in(text):
        if "runs" in table.head:
            at = table.head.index("runs") - len(table.head)
            told += [f"{row[at]} runs" for row in table.rows if len(row) >= -at and row[at].replace(",", "").isdigit()]
    return list(dict.fromkeys(told))


def seeds_in(text: str) -> list[int] | None:
    """The least and the largest seed, and how many, where the text says so: what other processes draw is not seen."""
    told = [(int(first), int(last)) for first, last in SEEDS.findall(text)]
    if not told:
        return None
    return [min(first for first, _ in told), max(last for _, last in told), sum(b - a + 1 for a, b in set(told))]


def hashes_of(modules: Iterable[str]) -> dict[str, str]:
    """A hash of the code of each module of this project; that of one that is gone is ""."""
    return {name: _hash_of(name) for name in sorted(modules)}


@cache
def _hash_of(module: str) -> str:
    path = file_of(module)
    code = "" if path is None else code_in(path.read_text(encoding="utf-8"))
    return hashlib.sha256(code.encode()).hexdigest()[:8] if path else ""


def code_in(source: str) -> str:
    """The lines of a module that do something: without docstrings, lines of comments and empty ones."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                for at in range(first.lineno - 1, first.end_lineno or first.lineno):
                    lines[at] = ""
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))


def file_of(module: str) -> Path | None:
    """Where a module of the project lies."""
    for folder in (ROOT / "src", ROOT):
        base = folder.joinpath(*module.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                return path
    return None


def processor() -> str:
    """The processor in words: kind, model where the system tells it, number of cores."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"^model name\s*: (.+)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        model = names[0] if names else model
    words = [platform.machine(), *([model] if model and model != platform.machine() else []), f"{os.cpu_count()} cores"]
    return ", ".join(words)
