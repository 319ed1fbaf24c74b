"""Words that were given up do not come back: each has a plainer one beside it in CONTRIBUTING.md, "Words"."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "src").rglob("*.html")),
    *sorted((ROOT / "src").rglob("*.j2")),
    *sorted((ROOT / "src").rglob("*.toml")),
    *(path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "figures"),
    ROOT / "README.md",
]
IDENTIFIERS = (
    *("Readings", "real_map", "draw_not_told", "chances_told", "told_in_a_sentence", "faults_told"),
    *("notes_on_strangers", "spoken_for", "n_witnessed", "as_one_witness", "hear_outputs", "in_our_words", "speaking"),
    *("voices", "Deal", "Face", "Turns", "Told", "Kept", "lasting", "thinning"),
    *("Landscape", "N_LEAPS", "SETTLING", "remarks", "caveats", "told_gold"),
)
PHRASES = (
    *("front hall", "front door", "which rests on votes, as real crowds err", "a sentence for each oddity"),
    "of which the same is said",
)


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in SOURCES}


@cache
def identifiers() -> dict[str, set[Path]]:
    """The names that stand in each module."""
    found: dict[str, set[Path]] = {}
    for path, text in texts().items():
        if path.suffix == ".py":
            for node in ast.walk(ast.parse(text)):
                for name in (getattr(node, field, None) for field in ("id", "attr", "name", "arg")):
                    if isinstance(name, str):
                        found.setdefault(name, set()).add(path)
    return found


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_that_was_given_up_does_not_come_back(name):
    assert not identifiers().get(name)


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_that_was_given_up_does_not_come_back(phrase):
    found = [path for path, text in texts().items() if phrase in " ".join(text.split())]
    assert not found
