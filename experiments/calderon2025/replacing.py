"""The test on the paper's sets: winning rates and advantage probabilities of every LLM, and their bootstrap errors."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np

import trueup as tu
from benchmarks._data import data_folder
from experiments._command import Answer
from experiments.su2024.report import table
from trueup.answers.replacement import EPSILONS, Humans, Scale, compare_people

__all__ = ["SETS", "Setting", "load", "run_set"]


@dataclass(frozen=True)
class Setting:
    """How the paper tests on a set: who its people are, and whether votes are ratings."""

    humans: Humans
    scale: Scale = "nominal"


SETS = {
    "wax": Setting("crowd"),
    "lgbteen": Setting("experts"),
    "mtbench": Setting("experts"),
    "framing": Setting("skilled"),
    "cebab-aspects": Setting("crowd"),
    "summeval": Setting("experts", "interval"),
    "10k-prompts": Setting("skilled", "interval"),
    "cebab-stars": Setting("crowd", "interval"),
    "lesion": Setting("skilled", "interval"),
}
N_RESAMPLED = 200


def load(name: str) -> tuple[tu.Labels, list[Any], list[Any]]:
    """The votes of a set, its LLMs and its people.

    In the paper a person who did not answer and an LLM that ignores a question never agree; the files have one class
    for both, which is two again here.
    """
    folder = data_folder() / f"alttest-{name}"
    if not folder.is_dir():
        raise FileNotFoundError(f"the data folder must have alttest-{name}, got none")
    with gzip.open(folder / "labelers.csv.gz", "rt", encoding="utf-8", newline="") as file:
        kinds = {row["labeler"]: row["kind"] for row in csv.DictReader(file)}
    with gzip.open(folder / "labels.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["label"] == "ignore" and kinds[row["labeler"]] == "llm":
            row["label"] = "ignore (LLM)"
    labels = tu.Labels.from_frame({key: [row[key] for row in rows] for key in ("item", "labeler", "label")})
    judges, people = ([who for who, kind in kinds.items() if kind == asked] for asked in ("llm", "human"))
    return labels, judges, people


def run_set(name: str, *, quick: bool = False) -> Answer:
    """The paper's two numbers of every LLM, and the probability that it errs less than the mean person."""
    setting = SETS[name]
    labels, judges, people = load(name)
    judges = judges[:1] if quick else judges
    answer = tu.may_replace(labels, judges=judges, humans=people, epsilon=setting.humans, scale=setting.scale)
    codes = np.full((labels.n_labelers, labels.n_items), -1)
    item, labeler, vote, _ = labels.vote_table()
    codes[labeler, item] = vote
    values = None if setting.scale == "nominal" else np.array([float(c) for c in labels.classes])
    rows, ours = [], {}
    for judge, found in answer.items():
        of_judge, of_people = codes[labels.labeler_codes([judge])[0]], codes[labels.labeler_codes(people)]
        spread = _bootstrap(of_judge, of_people, people, values, EPSILONS[setting.humans], 20 if quick else N_RESAMPLED)
        ours[f"{judge}: ω"], ours[f"{judge}: ρ"] = found.winning_rate, found.advantage.mean
        passed = "yes" if found.passed else "no"
        rows.append([judge, passed, found.winning_rate, spread[0], found.advantage.mean, spread[1], found.prob_better])
    head = ["LLM", "passed", "ω", "its bootstrap SE", "ρ", "its bootstrap SE", "P(errs less than the mean person)"]
    text = (
        f"ε = {answer.epsilon:g}, {answer.scale}, {len(people)} people, {labels.n_items:,} items\n{table(head, rows)}"
    )
    return text, ours


def _bootstrap(judge: Any, humans: Any, names: Any, values: Any, epsilon: float, n_resampled: int) -> Any:
    """Standard errors of ω and ρ over items drawn anew."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n_resampled):
        at = rng.integers(len(judge), size=len(judge))
        rows, _, _ = compare_people(judge[at], humans[:, at], names, values, epsilon, 0.05)
        found.append([np.mean([row.won for row in rows]), np.mean([row.judge_as_good for row in rows])])
    return [float(spread) for spread in np.std(found, axis=0)]
