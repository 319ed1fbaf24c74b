"""What the storage of sessions and the vetting app withstand.

Run ``python -m benchmarks.serve [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: kills (processes and the database's server killed at random while experts answer).
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks._sections import run_sections
from benchmarks._serve_kills import kills

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sections."""
    run_sections(
        "python -m benchmarks.serve", "What the storage and the vetting app withstand.", {"kills": kills}, arguments
    )


if __name__ == "__main__":
    main()
