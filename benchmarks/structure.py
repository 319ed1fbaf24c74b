"""How large is the library beside its budget, and which modules does a call go through?

Run ``python -m benchmarks.structure [--path CALL]``. Without a call the lines of each part stand beside what they may
be. ``--path evaluate``, ``compare``, ``share`` or ``command`` prints the modules on the way of a plain call, from the
public function to the core and back, and how often the way goes from a lower layer up to a higher one.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

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
_LAYERS = ("metrics", "posteriors", "data", "noise", "estimators", "core", "answers", "cli")


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


def _calls() -> dict[str, Callable[[], Any]]:
    import trueup as tu
    from trueup.__main__ import main

    sim = tu.simulate.dawid_skene(n_items=200, n_labelers=5, random_state=0)
    labels = sim.labels.with_gold({item: int(sim.truth[item]) for item in range(20)}, drawn="random")
    other = 1 - sim.predictions[:1]
    systems = {"a": sim.predictions, "b": [*other.tolist(), *sim.predictions[1:].tolist()]}
    folder = Path(tempfile.mkdtemp())
    paths = [folder / "votes.csv", folder / "predictions.csv"]
    tu.write_labels(sim.labels, paths[0])
    lines = [f"{item},{label}" for item, label in enumerate(sim.predictions.tolist())]
    paths[1].write_text("\n".join(["item,prediction", *lines]), encoding="utf-8")
    return {
        "evaluate": lambda: tu.evaluate(sim.predictions, labels),
        "compare": lambda: tu.compare(systems, labels),
        "share": lambda: tu.share(labels, of=1),
        "command": lambda: main(["evaluate", *map(str, paths)]),
    }


def modules_on_the_way(call: Callable[[], Any]) -> list[str]:
    """The modules whose functions a call enters, in order, repeats of the same module in a row left out."""
    seen: list[str] = []

    def trace(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            name = Path(frame.f_code.co_filename).relative_to(SOURCE).with_suffix("").as_posix()
            if not seen or seen[-1] != name:
                seen.append(name)

    for profile in (None, trace):  # the first call imports modules and compiles
        sys.setprofile(profile)
        try:
            call()
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)
    return seen


def print_path(name: str) -> None:
    """The modules of a call, and the ways from a lower layer up to a higher one."""
    call = _calls()[name]
    seen = modules_on_the_way(call)
    layer = {part: k for k, part in enumerate(_LAYERS)}
    layers = [layer[module.split("/")[0]] for module in seen if module.split("/")[0] in layer]
    for module in dict.fromkeys(seen):
        print(module)
    ways_up = sum(after > before for before, after in pairwise(layers))
    print(f"{len(dict.fromkeys(seen))} modules, {ways_up} ways up")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the budget, or the path of a call."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", choices=("evaluate", "compare", "share", "command"))
    options = parser.parse_args(arguments)
    if options.path is None:
        print_budget()
    else:
        print_path(options.path)


if __name__ == "__main__":
    main()
