"""Does the engine keep its word? Coverage, widths, ranks, copies, calibration of samplers, time.

Run ``python -m benchmarks.engine [section ...] [--runs N] [--quick] [--processes 1] [--folder DIR] [--json out.json]``;
without names all sections are run. Every run is seeded, and kept in a folder as it ends, so that an interrupted
measurement goes on where it stopped; runs of other code are not taken up, and quick ones not kept. ``±`` is one
standard error.

Sections: independent, dependent, classes (votes alone), gold (vetted items, against PPI++), pairs, auc, copies (several
systems), sbc and sbc-item-prior (simulation-based calibration of the samplers), large (models drawn on some of many
items), speed.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks._engine_classes import CLASSES_FIGURE
from benchmarks._engine_compare import AUC_FIGURE, COPIES_FIGURE, PAIRS_FIGURE
from benchmarks._engine_coverage import DEPENDENT_FIGURE, GOLD_FIGURE, INDEPENDENT_FIGURE
from benchmarks._engine_large import LARGE_FIGURE
from benchmarks._engine_runs import Figure, run_figures
from benchmarks._engine_sbc import SBC_FIGURE, SBC_ITEM_PRIOR_FIGURE
from benchmarks._engine_speed import SPEED_FIGURE

FIGURES: dict[str, Figure] = {
    "independent": INDEPENDENT_FIGURE,
    "dependent": DEPENDENT_FIGURE,
    "classes": CLASSES_FIGURE,
    "gold": GOLD_FIGURE,
    "pairs": PAIRS_FIGURE,
    "auc": AUC_FIGURE,
    "copies": COPIES_FIGURE,
    "sbc": SBC_FIGURE,
    "sbc-item-prior": SBC_ITEM_PRIOR_FIGURE,
    "large": LARGE_FIGURE,
    "speed": SPEED_FIGURE,
}
ONE_AT_A_TIME = frozenset({"speed"})  # what else runs would be measured too


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sections."""
    about = __doc__.splitlines()[0]
    run_figures("python -m benchmarks.engine", about, FIGURES, arguments, one_at_a_time=ONE_AT_A_TIME)


if __name__ == "__main__":
    main()
