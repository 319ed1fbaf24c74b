"""Judging systems by judges: rates, slices, clusters, drift, ratings, preferences, panels and biases.

Run ``python -m benchmarks.judges [section ...] [--runs N] [--quick] [--processes 1] [--folder DIR] [--json out.json]``;
without names all sections are run. Every run is seeded, and kept in a folder as it ends, so that an interrupted
measurement goes on where it stopped; runs of other code are not taken up, and quick ones not kept. ``±`` is one
standard error.

Sections: rate (how often a system passes, against PPI++), slices (twelve of them with 60 vetted items in all), clusters
(ten outputs a prompt), drift (false alarms and delays of a monitor), ratings (the ordinal model, also on real ones),
preferences (judges of pairs with a position bias), panel (what families of judges are worth), bias (do judges favour
what is long?). Another section is one line in `FIGURES`.
"""

from __future__ import annotations

from functools import partial

from benchmarks._judges_clusters import CLUSTERS_FIGURE
from benchmarks._judges_drift import DRIFT_FIGURE
from benchmarks._judges_panels import BIAS_FIGURE, PANEL_FIGURE
from benchmarks._judges_preferences import PREFERENCES_FIGURE
from benchmarks._judges_rate import RATE_FIGURE
from benchmarks._judges_ratings import RATINGS_FIGURE
from benchmarks._judges_slices import SLICES_FIGURE
from benchmarks._runs import Figure, run_figures

FIGURES: dict[str, Figure] = {
    "rate": RATE_FIGURE,
    "slices": SLICES_FIGURE,
    "clusters": CLUSTERS_FIGURE,
    "drift": DRIFT_FIGURE,
    "ratings": RATINGS_FIGURE,
    "preferences": PREFERENCES_FIGURE,
    "panel": PANEL_FIGURE,
    "bias": BIAS_FIGURE,
}
main = partial(run_figures, "judges", __doc__, FIGURES)


if __name__ == "__main__":
    main()
