"""Ten outputs of each prompt, which pass together: the rate of the population, and two systems prompt by prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import trueup as tu
from benchmarks._answers import coverage_table, draw_gold, for_population, row_of, width_over
from benchmarks._runs import Case, Figure, Row
from trueup.answers.evaluate import evaluate_again

N_PROMPTS = 100
OUTPUTS = 10  # of each prompt, half of them of either system
CORRELATION = 0.3  # of two outputs of one prompt
RATE = 0.7
GAP = 0.05  # between the systems
N_JUDGES = 5
ACCURACY = 0.9
GOLD = 100
CLUSTERED, PLAIN = "cluster=", "plain"


def run_clusters(case: Case) -> list[Row]:
    """The population's rates: prompts are drawn, and outputs given prompts."""
    rng = np.random.default_rng([case.seed, 20])
    spread = 1 / CORRELATION - 1
    of_prompt = rng.beta(RATE * spread, (1 - RATE) * spread, N_PROMPTS)
    prompt = np.repeat(np.arange(N_PROMPTS), OUTPUTS)
    system = np.tile(np.arange(OUTPUTS) % 2, N_PROMPTS)
    rates = {"a": RATE, "b": RATE - GAP}
    # The second system loses the same share of what the first one passes, whatever the prompt.
    kept = np.where(system == 0, 1.0, rates["b"] / rates["a"])
    truth = (rng.random(len(prompt)) < of_prompt[prompt] * kept).astype(np.int64)
    verdicts = np.where(rng.random((len(prompt), N_JUDGES)) < ACCURACY, truth[:, None], 1 - truth[:, None])
    labels = tu.Labels.from_matrix(verdicts, classes=[0, 1])
    items = {"item": labels.items.tolist(), "prompt": prompt.tolist(), "system": np.take(["a", "b"], system).tolist()}
    labels = labels.with_items(items)
    vetted, _ = draw_gold(labels, truth, GOLD, rng)
    shares = tu.share(labels, of=1, by="system", cluster="prompt", check_dependence=False, random_state=case.seed)
    again = replace(shares, evaluation=evaluate_again(shares.evaluation, vetted))
    rows = []
    for basis, clustered in (("votes", shares), ("gold", again)):
        for answer, part in ((CLUSTERED, clustered), (PLAIN, for_population(clustered))):
            rows.append(row_of(answer, (rates["a"] + rates["b"]) / 2, part.overall, basis=basis, what="rate"))
            rows.append(row_of(answer, GAP, part.difference("a", "b"), basis=basis, what="difference"))
    return rows


def summarise_clusters(rows: Sequence[Row]) -> str:
    names = {"votes": "votes alone", "gold": f"{GOLD} vetted"}
    groups = [
        (f"{what}, {names[basis]}", {"what": what, "basis": basis})
        for what in ("rate", "difference")
        for basis in ("votes", "gold")
    ]
    text = coverage_table(rows, groups, (CLUSTERED, PLAIN), ratios={"× plain": width_over(PLAIN)})
    return (
        f"{N_PROMPTS} prompts with {OUTPUTS} outputs each, whose truths correlate at {CORRELATION} within a prompt; "
        f"{N_JUDGES} judges of {ACCURACY:.0%}. The rate of the\npopulation of prompts, and the difference of two "
        f"systems that answer the same prompts.\n\n{text}\n\n"
        "Target: with clusters 93–97%, where the plain interval of the rate holds less than 85%."
    )


CLUSTERS_FIGURE = Figure(("clusters",), run_clusters, summarise_clusters, n_runs=400, n_quick=1, first_seed=20_000)
