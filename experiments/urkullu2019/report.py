"""What is expected, what we measured, and whether the two agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from experiments.su2024 import report
from experiments.su2024.report import table

__all__ = ["FOLDER", "Answer", "checks", "comparison", "expected", "table"]

FOLDER = Path(__file__).parent
Answer = tuple[str, dict[str, float]]

expected = partial(report.expected, FOLDER)
checks = partial(report.checks, folder=FOLDER)
comparison = partial(report.comparison, folder=FOLDER)
