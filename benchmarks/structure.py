"""How large is the library beside its budget? ``python -m benchmarks.structure`` prints the lines of each part."""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trueup"
# Lines that parts of the source may have; a package that is not named here has none of its own.
BUDGET = {
    "noise, estimators": 9_500,
    "cli": 4_500,
    "data, answers": 8_500,
    "serve, storage, sessions, active": 9_500,
    "detection, adapters, cleaning, training, labelers": 15_500,
    "metrics, posteriors, report, monitor, testing, simulate, rates, _base": 10_500,
}
MOST_SOURCE_LINES, MOST_MODULES = 60_000, 250
MOST_TEST_LINES, MOST_BENCHMARK_LINES = 36_000, 9_000
MOST_NUMBERS = 350  # numeric constants of modules


def lines_of(folder: Path) -> dict[str, int]:
    """Lines of each package or module directly below a folder."""
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).parts[0].removesuffix(".py")
        found[name] = found.get(name, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return found


def n_numbers(folder: Path) -> int:
    """Numeric constants at the top level of modules."""
    found = 0
    for path in folder.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            value = value.operand if isinstance(value, ast.UnaryOp) else value
            found += isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return found


def wheel_bytes() -> int:
    """Size of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
        subprocess.run(call, cwd=ROOT, check=True, capture_output=True)
        return next(Path(folder).glob("*.whl")).stat().st_size


def print_budget() -> None:
    """The table of parts, what they have and what they may have."""
    parts = lines_of(SOURCE)
    rows: list[tuple[str, float, float | None]] = []
    for names, most in BUDGET.items():
        rows.append((names, sum(parts.pop(name, 0) for name in names.split(", ")), most))
    rows += [(name, lines, None) for name, lines in sorted(parts.items(), key=lambda part: -part[1])]
    rows += [
        ("all of the source", sum(lines_of(SOURCE).values()), MOST_SOURCE_LINES),
        ("modules", len(list(SOURCE.rglob("*.py"))), MOST_MODULES),
        ("numeric constants of modules", n_numbers(SOURCE), MOST_NUMBERS),
        ("tests", sum(lines_of(ROOT / "tests").values()), MOST_TEST_LINES),
        ("benchmarks", sum(lines_of(ROOT / "benchmarks").values()), MOST_BENCHMARK_LINES),
        ("wheel, MB", wheel_bytes() / 1e6, 1.0),
    ]
    print(f"{'part':<70}{'there':>10}{'at most':>10}\n" + "-" * 90)
    for name, there, may in rows:
        shown = f"{there:,.2f}" if name.startswith("wheel") else f"{there:,.0f}"
        print(f"{name:<70}{shown:>10}{'' if may is None else format(may, ',.0f'):>10}")


if __name__ == "__main__":
    print_budget()
