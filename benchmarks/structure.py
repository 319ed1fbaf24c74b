"""How large is the library? Modules and lines of each package under src/trueup, and bytes of both distributions.

Usage: python -m benchmarks.structure
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trueup"


def sizes(path: Path) -> Counter[str]:
    """Lines of one file: all, of docstrings, and blank or of imports."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    documented: set[int] = set()
    imported: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    blank = {k for k, line in enumerate(lines, 1) if not line.strip()} - documented
    rest = len(lines) - len(documented) - len(blank) - len(imported - documented)
    return Counter(modules=1, lines=len(lines), code=rest, docstrings=len(documented))


def distributions() -> dict[str, int]:
    """Bytes of the wheel and of the source distribution."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "hatchling", "build", "--directory", folder]
        subprocess.run(call, cwd=ROOT, check=True, capture_output=True)
        kinds = {"wheel": "*.whl", "source distribution": "*.tar.gz"}
        return {kind: next(Path(folder).glob(pattern)).stat().st_size for kind, pattern in kinds.items()}


def main() -> None:
    packages: dict[str, Counter[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        packages[package] = packages.get(package, Counter()) + sizes(path)
    packages["all"] = sum(packages.values(), Counter())
    columns = ("modules", "lines", "code", "docstrings")
    print(f"{'package':<12}" + "".join(f"{name:>12}" for name in columns))
    for package, counts in packages.items():
        print(f"{package:<12}" + "".join(f"{counts[name]:>12,}" for name in columns))
    for kind, size in distributions().items():
        print(f"{kind}: {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
