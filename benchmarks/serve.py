"""What the storage of sessions and the vetting app withstand, and what they may not do to an estimate.

Run ``python -m benchmarks.serve [section ...] [--quick] [--json out.json]``; without names all sections are run.
Sections: kills (processes and the server of the database killed at random while experts answer), sessions (20 experts
at once: do the intervals hold at every look and at the stop), load (many
experts: the wait for the next card), memory (of the server, and how soon it begins), fuzz (requests that make no
sense). Attempts to get in are tests (tests/serve/test_intrusions.py).
"""

from __future__ import annotations

from functools import partial

from benchmarks._sections import run_sections
from benchmarks._serve_app import fuzz, load, memory
from benchmarks._serve_kills import kills
from benchmarks._serve_sessions import sessions

main = partial(
    run_sections, "serve", __doc__, {"kills": kills, "sessions": sessions, "load": load, "memory": memory, "fuzz": fuzz}
)


if __name__ == "__main__":
    main()
