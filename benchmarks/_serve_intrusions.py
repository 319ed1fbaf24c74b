"""All attempts to get into the vetting app, listed one by one with what came of each."""

from __future__ import annotations

from benchmarks._coverage_tally import Section, as_text
from benchmarks._serve_intruders import INTRUDERS
from benchmarks._serve_site import Intrusion, open_site
from benchmarks._serve_tricks import TRICKS

__all__ = ["INTRUSIONS", "intrusions"]

INTRUSIONS: list[Intrusion] = [*INTRUDERS, *TRICKS]


def intrusions(quick: bool) -> Section:
    """Every attempt against a server on the network of the machine."""
    with open_site() as site:
        outcomes = {one.name: one.run(site) for one in INTRUSIONS}
    rows = [[name, "no" if one.kept_out else "YES", one.told] for name, one in outcomes.items()]
    n_in = sum(not one.kept_out for one in outcomes.values())
    text = as_text(["attempt", "got in", "answers"], rows, left=(0, 1, 2))
    numbers = {name: {"got_in": not one.kept_out, "told": one.told} for name, one in outcomes.items()}
    return Section(f"{text}\n\n{n_in} of {len(outcomes)} attempts got in.", numbers)
