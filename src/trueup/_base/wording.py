"""Numbers, intervals, shares and probabilities as text: one rounding for tables, reports and the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence

_NONE = "–"  # where there is no number
_MOST = 7  # decimals ever shown
_ARITHMETIC = 1e-9  # what arithmetic leaves of a zero


def some(n: int, what: str) -> str:
    """A number with its noun."""
    return f"{n:,} {what}{'' if n == 1 else 'es' if what.endswith(('s', 'x')) else 's'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names in a sentence, of which the first `most` stand there."""
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def decimals(low: float | None, high: float | None, *, least: int = 3) -> int:
    """Decimals that tell the ends of an interval apart, and not many more."""
    if low is None or high is None or not 0 < high - low < math.inf:
        return max(least, 3)
    apart = math.ceil(-math.log10((high - low) / 2))
    return max(least, min(apart, 4))  # more would not help to distinguish two ends


def number(value: float | None, places: int = 3) -> str:
    """A number; a dash where there is none, and more decimals where rounding would claim certainty."""
    if value is None or not math.isfinite(value):
        return _NONE
    return _written(value, _honest(places, value))


def signed(value: float | None, places: int = 2) -> str:
    """A number with its sign, so that none is taken for the end of an interval."""
    written = number(value, places)
    return f"+{written}" if value is not None and value > 0 and written.strip("0.,") else written


def interval(
    low: float | None, high: float | None, places: int | None = None, *, least: int = 3, joint: str = " to "
) -> str:
    """Both ends of an interval, with decimals enough that they are not shown as one, or as certain."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return _NONE
    places = decimals(low, high, least=least) if places is None else places
    # An upper end that is shown as 1 claims nothing; a lower one would, and near 0 an end tells a difference from none.
    shown = _honest(places, low, *([high] if round(high, places) == 0 else []))
    if shown > max(places, 3) + 2:  # so near to 0 or 1 nobody takes one for the other
        shown = places
    return f"{_written(low, shown)}{joint}{_written(high, shown)}"


def text_bar(
    low: float, high: float, *, bounds: tuple[float, float], mark: float | None = None, width: int = 40
) -> str:
    """An interval as a bar of text, with a mark such as the bound of a gate."""
    least, most = bounds
    if not (math.isfinite(least) and math.isfinite(most)):
        ends = [low, high, *([] if mark is None else [mark])]
        room = 0.25 * (max(ends) - min(ends)) or 1.0
        least, most = min(ends) - room, max(ends) + room

    def place(value: float) -> int:
        return min(width - 1, max(0, int((value - least) / (most - least) * width)))

    cells = ["·"] * width
    cells[place(low) : place(high) + 1] = "━" * (place(high) + 1 - place(low))
    if mark is not None:
        cells[place(mark)] = "┃"
    return f"{least:.3g} {''.join(cells)} {most:.3g}"


def percent(share: float | None, places: int = 0) -> str:
    """A share; neither all nor nothing unless it is so."""
    if share is None or math.isnan(share):
        return _NONE
    least = 10.0 ** -(places + 2)
    if 0 < share < least / 2:
        return f"under {least:.{places}%}"
    if 1 - least / 2 <= share < 1:
        return f"over {1 - least:.{places}%}"
    return f"{share:.{places}%}"


def chance(probability: float | None) -> str:
    """A probability from draws, which never claims certainty."""
    if probability is None or math.isnan(probability):
        return _NONE
    if probability >= 0.9995:
        return "over 99.9%"
    if probability < 0.0005:
        return "under 0.1%"
    return f"{probability:.1%}" if not 0.1 < probability < 0.9 else f"{probability:.0%}"


def level_words(level: float) -> str:
    """The probability of an interval, never rounded to 100%."""
    return f"{level * 100:.12g}%"


def _honest(least: int, *values: float) -> int:
    """Decimals that do not show as 0 or 1 what is neither; with fewer than two a number is a count, which may round."""
    if least < 2:
        return least

    def is_rounded_off(value: float, places: int) -> bool:
        return min(abs(value), abs(1 - value)) > _ARITHMETIC and round(value, places) in (0.0, 1.0)

    return next((k for k in range(least, _MOST) if not any(is_rounded_off(v, k) for v in values)), max(least, _MOST))


def _written(value: float, places: int) -> str:
    written = f"{value:,.{places}f}"
    return written.replace("-", "−") if written.strip("-0.,") else f"{0:.{places}f}"
