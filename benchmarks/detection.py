"""Detectors judged by noisy annotations: do the numbers agree with COCO's, and do the intervals hold?

Run ``python -m benchmarks.detection [section ...] [--quick] [--json out.json]``; without names all sections are run.
The sets are found through TRUEUP_DATA. Sections: hard (certain truth, against pycocotools), experts (each of ten
pathologists graded by the nine others, votes alone), vetted (the same with 60 vetted candidates and 20 searched tiles),
missed (the number of cells that all experts missed), speed (5,000 images; TRUEUP_PEERS names a Python that
has hotcoco and pycocotools).
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks._detection_experts import experts, missed, vetted
from benchmarks._detection_hard import hard
from benchmarks._detection_speed import speed
from benchmarks._sections import run_sections

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sections."""
    run_sections(
        "python -m benchmarks.detection",
        "Detectors judged by noisy annotations.",
        {"hard": hard, "experts": experts, "vetted": vetted, "missed": missed, "speed": speed},
        arguments,
    )


if __name__ == "__main__":
    main()
