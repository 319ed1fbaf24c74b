"""Optional dependencies: found quietly, missed with one clear sentence."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from types import ModuleType

from trueup.exceptions import MissingExtra

_EXTRA_OF = {
    "numba": "fast",
    "matplotlib": "plot",
    "polars": "polars",
    "torch": "torch",
    "pycocotools": "coco",
    "sqlalchemy": "storage",
    "alembic": "storage",
    "psycopg": "postgres",
    "zstandard": "inspect",
    "inspect_ai": "inspect-ai",
    "mlflow": "mlflow",
    "mcp": "mcp",
    "fastapi": "serve",
    "uvicorn": "serve",
    "pydantic": "serve",
    "dask": "dask",
    "distributed": "dask",
}


@cache
def is_installed(module: str) -> bool:
    """Whether `module` can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def install_command(module: str) -> str:
    """What to type to get an optional package."""
    package = module.split(".")[0]
    extra = _EXTRA_OF.get(package)
    return f"pip install 'trueup[{extra}]'" if extra else f"pip install {package}"


def require(module: str, *, purpose: str) -> ModuleType:
    """Import an optional module, or say which extra brings it."""
    package = module.split(".")[0]
    if not is_installed(package):
        raise MissingExtra(f"{purpose} needs {package}, which is not installed: {install_command(package)}")
    return importlib.import_module(module)
