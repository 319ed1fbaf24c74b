"""Draw docs/why.svg: what a dirty key says of a classifier, what trueup says, and what is true.

Run ``python docs/_site/why_figure.py``. Every number in it is measured here, on simulated test sets with a known truth.
The picture has its own ground and follows the colour scheme of the reader's system, so it can be read on any page.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import trueup as tu

OUT = Path(__file__).parents[1] / "why.svg"
N_SETS = 40
WIDTH, LEFT, RIGHT, TOP, STEP = 640, 30, 24, 96, 14
LOW, HIGH = 0.55, 1.0

STYLE = """
  .ground { fill: #ffffff; stroke: #d0d7de; }
  text { fill: #1f2328; font: 15px system-ui, sans-serif; }
  .small { font-size: 13px; }
  .grid { stroke: #d8dee4; }
  .key { stroke: #b35900; }
  .ours { stroke: #0969da; }
  .true { fill: #1f2328; }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #1b1f24; stroke: #444c56; }
    text { fill: #e6edf3; }
    .grid { stroke: #30363d; }
    .key { stroke: #f0a04b; }
    .ours { stroke: #6cb6ff; }
    .true { fill: #e6edf3; }
  }
"""


@dataclass(frozen=True)
class Row:
    """One test set: the true accuracy, and two 95% intervals."""

    true: float
    key: tuple[float, float]
    ours: tuple[float, float]

    def holds(self, which: str) -> bool:
        """Is the true accuracy inside?"""
        low, high = getattr(self, which)
        return bool(low <= self.true <= high)


def measure(seed: int) -> Row:
    """500 items, three labelers who are right on 65% to 85% of them, a classifier that is right on about 80%."""
    data = tu.simulate.baseline(random_state=seed)
    key = data.labels.answer_counts.argmax(axis=1)
    agreed = int((data.predictions == key).sum())
    ev = tu.evaluate(
        data.predictions,
        data.labels,
        noise="dawid-skene",
        metrics=["accuracy"],
        check_dependence=False,
        random_state=seed,
    )
    wilson = tu.posteriors.wilson(agreed, data.labels.n_items)
    return Row(data.accuracy, (float(wilson[0]), float(wilson[1])), ev["accuracy"].interval(0.95))


def place(value: float) -> float:
    """The horizontal position of an accuracy."""
    return LEFT + (WIDTH - LEFT - RIGHT) * (value - LOW) / (HIGH - LOW)


def draw(rows: list[Row]) -> str:
    """The picture as SVG."""
    bottom = TOP + STEP * len(rows)
    held = {which: sum(row.holds(which) for row in rows) for which in ("key", "ours")}
    told = (
        f"95% intervals of a classifier's accuracy on {len(rows)} simulated test sets. With the majority vote as the "
        f"answer key they hold the true accuracy in {held['key']} sets, with trueup in {held['ours']}."
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 52}" role="img" aria-label="{told}">',
        f"<title>{escape(told)}</title><style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{bottom + 51}" rx="8"/>',
        *_legend(held, len(rows)),
    ]
    for tick in range(round(100 * LOW), round(100 * HIGH) + 1, 5):
        x = place(tick / 100)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>')
        parts.append(f'<text class="small" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{tick / 100:.2f}</text>')
    parts.append(f'<text class="small" x="{WIDTH / 2}" y="{bottom + 38}" text-anchor="middle">accuracy</text>')
    for k, row in enumerate(rows):
        parts += _row(row, TOP + STEP * k + 2)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _legend(held: dict[str, int], n: int) -> list[str]:
    lines = (
        ("key", f"majority vote as the key: holds the truth {held['key']} times of {n}"),
        ("ours", f"trueup, from the same votes: holds it {held['ours']} times of {n}"),
    )
    parts = []
    for k, (which, words) in enumerate(lines):
        y = 24 + 22 * k
        parts.append(f'<line class="{which}" stroke-width="4" x1="{LEFT}" x2="{LEFT + 28}" y1="{y - 5}" y2="{y - 5}"/>')
        parts.append(f'<text x="{LEFT + 38}" y="{y}">{words}</text>')
    parts.append(
        f'<circle class="true" cx="{LEFT + 14}" cy="63" r="4"/><text x="{LEFT + 38}" y="68">true accuracy</text>'
    )
    return parts


def _row(row: Row, y: float) -> list[str]:
    words = "; ".join(
        f"{which} {low:.3f} to {high:.3f}" for which, (low, high) in (("key", row.key), ("trueup", row.ours))
    )
    parts = [f"<g><title>true {row.true:.3f}; {words}</title>"]
    for which, (low, high), shift in (("key", row.key, 0), ("ours", row.ours, 4)):
        parts.append(
            f'<line class="{which}" stroke-width="3" x1="{place(low):.1f}" x2="{place(high):.1f}" '
            f'y1="{y + shift}" y2="{y + shift}"/>'
        )
    return [*parts, f'<circle class="true" cx="{place(row.true):.1f}" cy="{y + 2}" r="3"/></g>']


if __name__ == "__main__":
    OUT.write_text(draw([measure(seed) for seed in range(N_SETS)]), encoding="utf-8")
