"""Names and numbers as words: what every form of the report shares."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from trueup._validation import check_level

__all__ = [
    "chance",
    "decimals",
    "is_unnamed",
    "listed",
    "metric_label",
    "number",
    "percent",
    "plain",
    "quoted",
    "setting",
    "shorten",
    "signed",
    "span",
    "text",
]

# Characters that no page can hold (controls, lone surrogates) or that turn the text around (bidirectional overrides).
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_SHORT_NAMES = {"f1": "F1", "auc": "AUC", "mcc": "MCC", "ndcg": "NDCG", "auc_ovr": "AUC (one against rest)"}
_SHORT_NAMES |= {"auc_ovo": "AUC (one against one)", "pr": "PR", "brier": "Brier score", "log_loss": "log loss"}

_DEFAULT_SYSTEMS = ("model", "system")  # Predictions call a system so, and build_report


def text(value: Any) -> str:
    """Any name as text that a page can hold."""
    return _UNFIT.sub("\ufffd", str(value))


def plain(value: Any) -> str:
    """A name on one line."""
    return " ".join(text(value).split())


def shorten(value: Any, most: int = 60) -> str:
    """A name on one line and not too long, the middle left out since names often differ at their end."""
    words = plain(value)
    if len(words) <= most:
        return words
    tail = (most - 1) // 3
    return f"{words[: most - 1 - tail].rstrip()}…{words[-tail:].lstrip()}"


def quoted(value: Any, most: int = 60) -> str:
    """A name in a sentence."""
    return f"“{shorten(value, most)}”"


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def is_unnamed(names: Sequence[str]) -> bool:
    """Whether there is one system only, and nobody gave it a name."""
    return len(names) == 1 and names[0] in _DEFAULT_SYSTEMS


def setting(value: Any) -> str:
    """A setting in words: a file with its checksum, a list of them, or whatever was given."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        known = {key: v for key, v in value.items() if v is not None}
        if "file" in known:
            rest = "; ".join(f"{key} {setting(v)}" for key, v in known.items() if key != "file")
            return f"{setting(known['file'])} ({rest})" if rest else setting(known["file"])
        return "; ".join(f"{plain(key)}: {setting(v)}" for key, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(setting(v) for v in value) or "–"
    return text(value)


def metric_label(name: Any) -> str:
    """A metric's name for people: ``recall:cat`` is "recall of cat"."""
    key, _, of = plain(name).partition(":")
    label = _SHORT_NAMES.get(key) or re.sub(r"\bf1\b", "F1", key.replace("_", " "))
    return f"{label} of {of}" if of else label


def decimals(low: float | None, high: float | None) -> int:
    """Decimals that tell the ends of an interval apart, and not many more."""
    if low is None or high is None or not math.isfinite(high - low) or high <= low:
        return 3
    return min(max(math.ceil(-math.log10((high - low) / 2)), 2), 4)


def number(value: float | None, places: int = 3) -> str:
    """A number, or a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    shown = f"{value:,.{places}f}"
    return shown.replace("-", "−") if float(shown.replace(",", "")) != 0 else f"{0:.{places}f}"


def signed(value: float | None, places: int = 2) -> str:
    """A number with its sign, so that none is taken for the end of an interval."""
    shown = number(value, places)
    return f"+{shown}" if value is not None and shown.strip("0.,") and shown[0].isdigit() else shown


def span(low: float | None, high: float | None, places: int | None = None, joint: str = " to ") -> str:
    """Both ends of an interval."""
    if low is None or high is None:
        return "–"
    shown = decimals(low, high) if places is None else places
    return f"{number(low, shown)}{joint}{number(high, shown)}"


def percent(level: float) -> str:
    """A level such as 0.95 as "95%"."""
    return f"{check_level(level) * 100:.12g}%"


def chance(probability: float | None) -> str:
    """A probability in percent that never claims certainty."""
    if probability is None or math.isnan(probability):
        return "–"
    if probability >= 0.9995:
        return "over 99.9%"
    if probability < 0.0005:
        return "under 0.1%"
    return f"{probability:.1%}" if not 0.1 < probability < 0.9 else f"{probability:.0%}"
