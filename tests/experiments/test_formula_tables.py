"""Each paper's table of formulas is that of the code: what it names exists, and docstrings name the same equations.

The README of each experiment has a table of where the paper's formulas are, ``| paper | what | function |``. A row that
names an equation is held against the function's docstring, and an equation that a public docstring names is held
against the table.
"""

import ast
import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
HEADER = "| paper | what | function |"
# How a docstring calls the paper of each folder.
PAPERS = {
    "calderon2025": r"\bCalderon\b",
    "dolatshah2018": r"\bDolatshah\b|\bTARS\b",
    "lamstork2003": r"\bLam and Stork\b",
    "nguyen2018": r"\bNguyen\b",
    "su2024": r"\bSu\b(?! et al)",
    "urkullu2019": r"\bUrkullu\b",
}
NUMBERS = r"\d+(?:(?:\s*[–-]\s*|\s+to\s+|\s+and\s+|,\s*)\d+)*"
EQUATION = re.compile(rf"\b[Ee](?:qs?\.|quations?)\s+({NUMBERS})")


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    paper: str
    reference: str  # as the README writes it, e.g. "eqs. 11–16"
    function: str


@dataclass(frozen=True)
class Mention:
    """The equations of one paper that one docstring names."""

    where: str  # the full name of a module, class, function or method
    paper: str
    equations: frozenset[int]


def numbers_in(text: str) -> set[int]:
    """All equations of a reference, e.g. those from 11 to 16 of "eqs. 11–16"."""
    found: set[int] = set()
    for match in EQUATION.finditer(text):
        for part in re.split(r"\s+and\s+|,\s*", match[1]):
            ends = [int(number) for number in re.findall(r"\d+", part)]
            found |= set(range(ends[0], ends[-1] + 1))
    return found


@cache
def rows_of(folder: str) -> tuple[Row, ...]:
    text = (ROOT / "experiments" / folder / "README.md").read_text(encoding="utf-8")
    _, _, table = text.partition(f"{HEADER}\n")
    rows = []
    for line in table.splitlines()[1:]:
        if not line.startswith("|"):
            break
        reference, _, function = (cell.strip() for cell in line.strip("|").split("|"))
        rows.append(Row(folder, reference, function.strip("`")))
    return tuple(rows)


def all_rows() -> list[Row]:
    return [row for folder in PAPERS for row in rows_of(folder)]


def docstrings() -> dict[str, str]:
    """Docstrings of modules that name equations, and of their public classes, functions and methods, by full name."""
    found: dict[str, str] = {}

    def collect(node: ast.Module | ast.ClassDef | ast.FunctionDef, name: str) -> None:
        found[name] = ast.get_docstring(node) or ""
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and not child.name.startswith("_"):
                collect(child, f"{name}.{child.name}")

    for path in sorted((SOURCE / "trueup").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        if EQUATION.search(text):
            collect(ast.parse(text), module)
    return found


def paper_at(text: str, place: int, module: str) -> str | None:
    """The paper an equation belongs to: the one named last before it, else first after it, else by the module."""
    names = sorted((m.start(), paper) for paper, name in PAPERS.items() for m in re.finditer(name, text))
    before = [paper for start, paper in names if start < place]
    if before or names:
        return before[-1] if before else names[0][1]
    return next((paper for paper, name in PAPERS.items() if re.search(name, module)), None)


@cache
def mentions() -> tuple[Mention, ...]:
    texts, found = docstrings(), {}
    for where, text in texts.items():
        module = next(name for name in (where, *parents(where)) if is_module(name))
        for match in EQUATION.finditer(text):
            paper = paper_at(text, match.start(), texts[module])
            assert paper, f"{where} names {match[0]!r}: say in its docstring of which paper"
            found.setdefault((where, paper), set()).update(numbers_in(match[0]))
    return tuple(Mention(where, paper, frozenset(equations)) for (where, paper), equations in found.items())


def parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:k]) for k in range(len(parts) - 1, 0, -1)]


def is_module(name: str) -> bool:
    paths = [root.joinpath(*name.split(".")) for root in (SOURCE, ROOT)]  # the latter for experiments
    return any(path.with_suffix(".py").is_file() or (path / "__init__.py").is_file() for path in paths)


@cache
def defined_as(function: str) -> str | None:
    """Where a function that packages pass on is defined; None if there is no such function."""
    for module in parents(function):
        if is_module(module):
            value = importlib.import_module(module)
            for name in function.removeprefix(f"{module}.").split("."):
                value = getattr(value, name, None)
            return None if value is None else f"{value.__module__}.{value.__qualname__}"
    return None


def test_every_paper_has_a_table():
    # A folder that is not of a paper, with its year, has no formulas of others.
    folders = {path.parent.name for path in (ROOT / "experiments").glob("*[0-9]/README.md")}
    assert folders == set(PAPERS)
    for folder in folders:
        assert len(rows_of(folder)) >= 5, folder


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: f"{row.paper}-{row.reference}-{row.function}")
def test_a_row_names_a_function_that_says_so(row):
    where = defined_as(row.function)
    assert where, f"there is no {row.function}"
    said = set()
    for mention in mentions():
        if mention.paper == row.paper and (where == mention.where or mention.where in parents(where)):
            said |= mention.equations
    missing = numbers_in(row.reference) - said
    assert not missing, f"the docstring of {where} must name equations {sorted(missing)} of the paper"


@pytest.mark.parametrize("mention", mentions(), ids=lambda mention: f"{mention.paper}-{mention.where}")
def test_an_equation_of_a_docstring_is_in_the_table(mention):
    listed = set()
    for row in rows_of(mention.paper):
        where = defined_as(row.function) or ""
        if where == mention.where or mention.where in parents(where) or where in parents(mention.where):
            listed |= numbers_in(row.reference)
    missing = mention.equations - listed
    assert not missing, (
        f"experiments/{mention.paper}/README.md must have {mention.where} for equations {sorted(missing)}"
    )


def test_references_are_read():
    assert numbers_in("eqs. 11–16, 19 and 20") == {*range(11, 17), 19, 20}
    assert numbers_in("Equation 12 is wrong, equations 10 to 12") == {10, 11, 12}
    assert numbers_in("Section 4") == set()
