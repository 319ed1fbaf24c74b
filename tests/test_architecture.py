"""The rules of the code as tests: which way imports go, what may be imported where, how long a module is.

A new module or package directly under trueup is one line in LEVELS; a new dependency is one line in ALLOWED_IN.
"""

import ast
import sys
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "trueup"
MOST_LINES = 800
MOST_SOURCE_LINES, MOST_MODULES = 68_150, 236  # to become those of benchmarks/structure.py, 60,000 and 250
MOST_INTEGRATION_LINES = 1_500  # of trueup.integrations, which are counted apart

# The level of each module or package directly under trueup. Imports go to lower levels only.
LEVELS = {
    "exceptions": 0,
    "_base": 1,
    "data": 2,
    "adapters": 3,
    "noise": 3,
    "metrics": 3,
    "posteriors": 3,
    "estimators": 4,
    "rates": 4,
    "core": 5,
    "simulate": 4,
    "answers": 6,
    "training": 6,
    "reliability": 7,
    "labelers": 7,
    "sessions": 7,
    "storage": 8,
    "active": 9,
    "decisions": 9,
    "cleaning": 9,
    "report": 9,
    "detection": 10,
    "monitor": 10,
    "testing": 10,
    "serve": 11,
    "checks": 11,
    "integrations": 11,
    "cli": 12,
    "__main__": 13,
    "__init__": 14,
}
# Edges to the same or a higher level that are allowed all the same: (importer, imported).
EXTRA_EDGES: set[tuple[str, str]] = {
    ("answers", "report"),  # save_html, imported where it is called
    ("decisions", "report"),  # the same
    ("reliability", "report"),  # the same
    ("data", "reliability"),  # labels.agreement(), imported where it is called
}
# Edges to a lower level that are not allowed: a metric and an answer know no votes and no files.
FORBIDDEN_EDGES = {("posteriors", "data"), ("metrics", "data")}

EVERYWHERE = {"numpy", "scipy"}
# What may be imported beyond that, by the start of the path below src/trueup.
ALLOWED_IN = {
    "data/frames.py": {"narwhals"},
    "noise/kernels/compiled": {"numba", "llvmlite"},
    "noise/kernels/loops": {"numba"},
    "noise/torch.py": {"torch"},
    "metrics/compiled": {"numba", "llvmlite"},
    "detection/loops": {"numba"},
    "estimators/published/tars2018/noise_removal.py": {"sklearn"},
    "active/estimators.py": {"sklearn"},
    "training/": {"sklearn"},
    "training/torch/": {"torch"},
    "cleaning/": {"sklearn", "joblib"},
    "testing/strategies.py": {"sklearn"},
    "storage/database/": {"sqlalchemy", "alembic"},
    "report/": {"jinja2"},
    "detection/writing.py": {"jinja2"},
    "serve/": {"jinja2", "fastapi", "starlette", "pydantic", "uvicorn"},
    "integrations/pytest_plugin.py": {"pytest"},
    "cli/": {"typer", "rich"},
    "cli/demo.py": {"sklearn"},
}
# Heavy or optional: no import statement at the top of a module, except in the files that are nothing without them,
# which are again given by the start of the path.
LAZY = {"sklearn", "numba", "pandas", "polars", "pyarrow", "matplotlib", "torch", "pycocotools", "contourpy"} | {
    "sqlalchemy",
    "alembic",
    "psycopg",
}
NOTHING_WITHOUT = (
    "noise/kernels/compiled",
    "noise/torch.py",
    "metrics/compiled",
    "storage/database/",
    "training/torch",
    "training/sklearn.py",
)

# Parts of scipy that take long to load. It loads a part when that is first named: `import scipy` at the top of a file,
# and `scipy.stats.norm` where it is used.
LOADED_IN_USE = {"stats", "optimize", "integrate", "interpolate", "cluster", "ndimage", "signal", "spatial"}

GENERATORS = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "SFC64"}


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name."""

    module: str
    line: int
    lazy: bool  # inside a function
    for_types: bool  # under `if TYPE_CHECKING`
    relative: bool = False
    names: tuple[str, ...] = ()  # what is imported from it


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """E.g. noise/_numba.py; the ids of the tests and the keys of the rules."""
    return path.relative_to(SOURCE).as_posix()


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def unit_of(name: str) -> str:
    """The module or package directly under trueup that a file belongs to."""
    return name.split("/")[0].removesuffix(".py")


MODULES = {module_of(path): path for path in source_files()}


def is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


@cache
def imports_of(tree: ast.AST) -> list[Import]:
    """All imports of a module; names imported from a package are resolved to its modules where they are modules."""
    return imports_below(tree, lazy=False, for_types=False)


def imports_below(tree: ast.AST, *, lazy: bool, for_types: bool) -> list[Import]:
    """All imports below a node of the syntax tree."""
    found: list[Import] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, lazy, for_types) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names = {f"{base}.{alias.name}" for alias in node.names}
            modules = {name for name in names if name in MODULES} or {base}
            if any(name not in MODULES for name in names) and base != "trueup":
                modules.add(base)
            found += [
                Import(name, node.lineno, lazy, for_types, node.level > 0, tuple(alias.name for alias in node.names))
                for name in sorted(modules)
            ]
        elif isinstance(node, ast.If) and is_type_checking(node.test):
            body = ast.Module(body=node.body, type_ignores=[])
            rest = ast.Module(body=node.orelse, type_ignores=[])
            found += imports_below(body, lazy=lazy, for_types=True) + imports_below(
                rest, lazy=lazy, for_types=for_types
            )
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            found += imports_below(node, lazy=lazy or inside, for_types=for_types)
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def own_unit(module: str) -> str | None:
    """The unit of trueup that a module name lies in, or None if it is not trueup's."""
    parts = module.split(".")
    if parts[0] != "trueup":
        return None
    return parts[1] if len(parts) > 1 else "__init__"


def edge_problem(importer: str, imported: str) -> str | None:
    """What is wrong with one unit importing another, or None."""
    if importer == imported or (importer, imported) in EXTRA_EDGES:
        return None
    if imported not in LEVELS:
        return f"trueup.{imported} is in no level"
    if (importer, imported) in FORBIDDEN_EDGES:
        return f"{importer} must not know {imported}"
    mine, theirs = LEVELS[importer], LEVELS[imported]
    if theirs < mine:
        return None
    return f"{importer} (level {mine}) must not import {imported} (level {theirs})"


def direction_problems(name: str, tree: ast.AST) -> list[str]:
    found = []
    for item in imports_of(tree):
        imported = own_unit(item.module)
        if imported is None:
            continue
        problem = edge_problem(unit_of(name), imported)
        if problem:
            found.append(f"{name}:{item.line}: {problem}")
    return found


def private_problems(name: str, tree: ast.AST) -> list[str]:
    """A file whose name starts with an underscore belongs to its package alone."""
    found = []
    for item in imports_of(tree):
        parts = item.module.split(".")
        if parts[0] == "trueup" and len(parts) > 2 and parts[2].startswith("_") and parts[1] != unit_of(name):
            found.append(f"{name}:{item.line}: {item.module} is private to trueup.{parts[1]}")
    return found


def dependency_problems(name: str, tree: ast.AST) -> list[str]:
    allowed = EVERYWHERE.union(*(packages for start, packages in ALLOWED_IN.items() if name.startswith(start)))
    found = []
    for item in imports_of(tree):
        package = item.module.split(".")[0]
        if item.for_types or package == "trueup" or package in sys.stdlib_module_names:
            continue
        if package not in allowed:
            found.append(f"{name}:{item.line}: {package} is not allowed here; see ALLOWED_IN, or _optional.require")
        elif package in LAZY and not item.lazy and not name.startswith(NOTHING_WITHOUT):
            found.append(f"{name}:{item.line}: {package} must be imported inside the function that needs it")
    return found


def scipy_problems(name: str, tree: ast.AST) -> list[str]:
    """Parts of scipy that take long to load are loaded where they are used."""
    problems = []
    for item in imports_of(tree):
        package, _, part = item.module.partition(".")
        parts = {part.split(".")[0]} if part else set(item.names)
        if package == "scipy" and not item.lazy and not item.for_types and parts & LOADED_IN_USE:
            problems.append(f"{name}:{item.line}: import scipy, and name {item.module} where it is used")
    return problems


def kernel_problems(name: str, tree: ast.AST) -> list[str]:
    """Files that are nothing without an extra may only be imported where they are used."""
    heavy = tuple("trueup." + start.removesuffix(".py").replace("/", ".") for start in NOTHING_WITHOUT)
    if name.startswith(NOTHING_WITHOUT):
        return []
    return [
        f"{name}:{item.line}: {item.module} must be imported inside the function that needs it"
        for item in imports_of(tree)
        if item.module.startswith(heavy) and not item.lazy and not item.for_types
    ]


def habit_problems(name: str, tree: ast.AST) -> list[str]:
    """Relative imports, prints, global random state, and orders that differ from machine to machine."""
    found = [f"{name}:{item.line}: relative import" for item in imports_of(tree) if item.relative]
    for item in imports_of(tree):
        if item.module == "random":
            found.append(f"{name}:{item.line}: the random module; use numpy's Generator")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            found.append(f"{name}:{node.lineno}: print")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "argsort"
            and not any("stable" in ast.unparse(keyword) for keyword in node.keywords)
        ):
            found.append(f"{name}:{node.lineno}: argsort orders ties as the processor likes; pass kind='stable'")
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            found += [f"{name}:{node.lineno}: numpy.random.{a.name}" for a in node.names if a.name not in GENERATORS]
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "random"
            and isinstance(node.value.value, ast.Name)
            and node.value.value.id in ("np", "numpy")
            and node.attr not in GENERATORS
        ):
            found.append(f"{name}:{node.lineno}: np.random.{node.attr} is global state; use as_generator")
    return found


def exports_of(tree: ast.Module) -> list[str] | None:
    """The names in ``__all__``, or None if the module has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def test_every_module_has_a_level():
    homeless = {unit_of(name_of(path)) for path in source_files()} - LEVELS.keys()
    assert not homeless, f"add a line to LEVELS for {sorted(homeless)}"


@pytest.mark.parametrize(
    "rule",
    [direction_problems, private_problems, dependency_problems, scipy_problems, kernel_problems, habit_problems],
    ids=lambda rule: rule.__name__.removesuffix("_problems"),
)
def test_rules_of_imports_and_habits(rule):
    problems = [problem for path in source_files() for problem in rule(name_of(path), parsed(path))]
    assert not problems, "\n".join(problems)


def test_modules_do_not_import_in_a_circle():
    # Imports for types and imports inside functions count; the one edge that may climb does not.
    graph = {
        module: {
            item.module
            for item in imports_of(parsed(path))
            if (own_unit(module), own_unit(item.module)) not in EXTRA_EDGES
        }
        & MODULES.keys() - {module}
        for module, path in MODULES.items()
    }
    order = list(TopologicalSorter(graph).static_order())  # raises CycleError and names the circle
    assert set(order) == set(graph)


def test_modules_are_short():
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    long = {name: size for name, size in sizes.items() if size > MOST_LINES}
    assert not long, f"split the modules of more than {MOST_LINES} lines: {long}"


def test_the_library_does_not_grow():
    """What is over the budget of benchmarks/structure.py is cut; until then nothing is added to it."""
    sizes = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    apart = {name: sizes.pop(name) for name in list(sizes) if unit_of(name) == "integrations"}
    assert sum(apart.values()) <= MOST_INTEGRATION_LINES
    assert sum(sizes.values()) <= MOST_SOURCE_LINES
    assert len(sizes) <= MOST_MODULES


def test_modules_say_what_they_are():
    silent = [name_of(path) for path in source_files() if not ast.get_docstring(parsed(path))]
    assert not silent, f"modules without a docstring: {silent}"


def test_public_methods_say_what_they_do():
    """In words of their own, or in those of the method that they override."""
    nodes = [node for path in source_files() for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    classes = {node.name: node for node in nodes}

    def is_told(node: ast.ClassDef, name: str) -> bool:
        own = [method for method in node.body if isinstance(method, ast.FunctionDef) and method.name == name]
        bases = {part.id for base in node.bases for part in ast.walk(base) if isinstance(part, ast.Name)}
        parents = [classes[base] for base in bases & classes.keys() - {node.name}]
        return any(map(ast.get_docstring, own)) or "Protocol" in bases or any(is_told(one, name) for one in parents)

    told_elsewhere = {"DatabaseStorage"}  # `Storage`, which it keeps to, says what its methods do
    public = [node for node in nodes if node.name[0] != "_" and node.name not in told_elsewhere]
    methods = [(node, part.name) for node in public for part in node.body if isinstance(part, ast.FunctionDef)]
    shown = [(node, name) for node, name in methods if not name.startswith(("_", "test_"))]
    silent = [f"{node.name}.{name}" for node, name in shown if not is_told(node, name)]
    assert not silent, f"methods without a docstring: {silent}"


def test_packages_say_what_they_offer():
    """A package that hands names on lists them; in a module all names without an underscore are public."""
    faces = [path for path in source_files() if path.stem == "__init__" and len(parsed(path).body) > 1]
    silent = [name_of(path) for path in faces if exports_of(parsed(path)) is None]
    assert not silent, f"packages without __all__: {silent}"


# The checks themselves, on sources with one fault each.


def first(problems: list[str]) -> str:
    return problems[0] if problems else ""


@pytest.mark.parametrize(
    ("rule", "name", "source", "finding"),
    [
        (direction_problems, "noise/new.py", "from trueup.metrics import accuracy", "must not import metrics"),
        (direction_problems, "noise/new.py", "def f():\n    import trueup.posteriors", "must not import posteriors"),
        (direction_problems, "metrics/new.py", "from trueup.data.labels import Labels", "must not know data"),
        (direction_problems, "data/labels.py", "from trueup.noise import DawidSkene", "must not import noise"),
        (direction_problems, "data/labels.py", "from trueup import answers", "must not import"),
        (direction_problems, "noise/new.py", "from trueup.surprise import x", "in no level"),
        (private_problems, "estimators/new.py", "from trueup.noise._secret import em_step", "private to"),
        (private_problems, "estimators/new.py", "from trueup.cli import _console", "private to"),
        (dependency_problems, "data/labels.py", "import narwhals as nw", "not allowed"),
        (dependency_problems, "posteriors/new.py", "def f():\n    import matplotlib.pyplot", "not allowed"),
        (dependency_problems, "training/losses.py", "from sklearn.base import clone", "inside the function"),
        (kernel_problems, "noise/new.py", "from trueup.noise.kernels import compiled", "inside the function"),
        (habit_problems, "noise/new.py", "from . import base", "relative import"),
        (habit_problems, "noise/new.py", "print(1)", "print"),
        (habit_problems, "noise/new.py", "import numpy as np\nnp.random.seed(0)", "np.random.seed"),
        (habit_problems, "noise/new.py", "from numpy.random import rand", "numpy.random.rand"),
        (habit_problems, "noise/new.py", "import random", "random module"),
        (habit_problems, "noise/new.py", "order = np.argsort(-scores)[:5]", "kind='stable'"),
        (habit_problems, "noise/new.py", "order = scores.argsort(axis=1)", "kind='stable'"),
    ],
)
def test_a_fault_is_found(rule, name, source, finding):
    assert finding in first(rule(name, ast.parse(source)))


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    [
        (direction_problems, "estimators/new.py", "from trueup.metrics import accuracy"),
        (direction_problems, "noise/new.py", "from trueup.data.labels import Labels"),
        (private_problems, "noise/new.py", "from trueup.noise import _secret"),
        (dependency_problems, "training/losses.py", "def f():\n    from sklearn.base import clone"),
        (dependency_problems, "posteriors/new.py", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        (kernel_problems, "noise/new.py", "def f():\n    from trueup.noise.kernels import compiled"),
        (habit_problems, "noise/new.py", "import numpy as np\nrng = np.random.default_rng(0)"),
        (habit_problems, "noise/new.py", 'order = np.argsort(-scores, kind="stable")'),
    ],
)
def test_what_is_allowed_is_not_found(rule, name, source):
    assert not rule(name, ast.parse(source))
