"""The blocks of docs/guide/runners.md, and the files that they take."""

import csv
import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "runners.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = dict(part.split("\n", 1) for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:])


def block(section: str, language: str) -> str:
    """The one block of a section in a language."""
    (found,) = [code for name, code in FENCE.findall(SECTIONS[section]) if name == language]
    return found


def commands(section: str) -> list[str]:
    """The commands of a section."""
    return [line.removeprefix("$ ") for line in block(section, "console").splitlines()]


def write_verdicts(folder: Path, n_prompts: int = 60) -> dict[str, str]:
    """``verdicts.csv``, three judges on the outputs of two systems; returns the truth."""
    rng = np.random.default_rng(2)
    truth = {}
    with (folder / "verdicts.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["item", "prompt", "system", "labeler", "label"])
        for prompt in range(n_prompts):
            for system, rate in (("new", 0.9), ("old", 0.5)):
                item = f"{system}{prompt}"
                truth[item] = "pass" if rng.random() < rate else "fail"
                for judge in ("a", "b", "c"):
                    right = rng.random() < 0.8
                    said = truth[item] if right else {"pass": "fail", "fail": "pass"}[truth[item]]
                    table.writerow([item, f"p{prompt}", system, judge, said])
    return truth


def fill_in(path: Path, truth: dict[str, str]) -> int:
    """What a person does with a table of items; returns how many."""
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, "label": truth[row["item"]]} for row in rows)
    return len(rows)


def write_checked(folder: Path, truth: dict[str, str]) -> None:
    """``checked.csv``, 60 items that were drawn at random."""
    chosen = np.random.default_rng(3).permutation(list(truth))[:60]
    rows = "".join(f"{item},{truth[item]}\n" for item in chosen)
    (folder / "checked.csv").write_text(f"item,label\n{rows}", encoding="utf-8")
