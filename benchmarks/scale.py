"""How far one machine goes, and a cluster of dask.

Run ``python -m benchmarks.scale [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: crowdkit (Dawid and Skene's model beside crowd-kit; TRUEUP_PEERS names a Python that has it), files (10⁸
votes from parquet: memory, and bytes a second beside a plain scan), cluster (two worker processes against one), kills
(workers killed in the middle of a fit). Files are written to the temporary folder, about 3 bytes a vote.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks._scale_cluster import cluster, kills
from benchmarks._scale_machine import crowdkit, files
from benchmarks._sections import run_sections

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the sections."""
    run_sections(
        "python -m benchmarks.scale",
        "How far one machine goes, and a cluster.",
        {
            "crowdkit": crowdkit,
            "files": files,
            "cluster": cluster,
            "kills": kills,
        },
        arguments,
    )


if __name__ == "__main__":
    main()
