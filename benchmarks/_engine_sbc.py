"""Simulation-based calibration of every sampler (Talts et al. 2018).

Parameters are drawn from the prior as the docstring of the model prints it, votes from the parameters; the rank of the
truth among draws given the votes is uniform if the sampler draws from the posterior. The quantities do not depend on
how classes are named, or the prior pins the names down. Ranks of equals are drawn by lot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from scipy.stats import chisquare, norm

import trueup as tu
from benchmarks._coverage_tally import Section, as_text
from benchmarks._engine_runs import Case, Figure, Row
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.mirrored import MirroredConfusion
from trueup.noise.ordinal import draw_parameters

__all__ = ["MODELS", "SBC_FIGURE", "SBC_ITEM_PRIOR_FIGURE", "draw_data", "ranks_of"]

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

N_ITEMS, N_LABELERS, N_CLASSES = 12, 4, 2
N_DRAWS = 99  # so that there are 100 ranks
THINNING = 10
N_WARMUP = 200
N_BINS = 20
ITEM_PRIOR_SCALE = 1.0
WITH_ITEM_PRIOR = " with item prior"


@dataclass(frozen=True, eq=False)
class States:
    """What items are in: the class of each state, how likely it is, and the rows of all labelers in it."""

    state_class: Codes
    weights: Floats
    rows: Floats  # labelers, states, answers


def dawid_skene(rng: np.random.Generator) -> States:
    """Rows ~ Dir(1, with 3 at the class)."""
    pseudo_counts = _pseudo_counts(np.arange(N_CLASSES), 3.0)
    rows = _dirichlet(np.broadcast_to(pseudo_counts, (N_LABELERS, *pseudo_counts.shape)), rng)
    return States(np.arange(N_CLASSES), rng.dirichlet(np.ones(N_CLASSES)), rows)


def one_coin(rng: np.random.Generator) -> States:
    """Accuracies ~ Beta(2, 1), errors even."""
    accuracy = rng.beta(2.0, 1.0, N_LABELERS)[:, None, None]
    rows = np.where(np.eye(N_CLASSES, dtype=bool), accuracy, (1 - accuracy) / (N_CLASSES - 1))
    return States(np.arange(N_CLASSES), rng.dirichlet(np.ones(N_CLASSES)), rows)


def subtypes(rng: np.random.Generator) -> States:
    """Two states of each class: m ~ Dir(1, with 3 at the class), rows ~ Dir(2 m)."""
    state_class = np.tile(np.arange(N_CLASSES), 2)
    pooled = _dirichlet(_pseudo_counts(state_class, 3.0), rng)
    return _pooled_states(state_class, pooled, np.full(len(state_class), 2.0), rng)


def clusters(rng: np.random.Generator) -> States:
    """Main clusters m ~ Dir(1, with 4), extra ones of any class m ~ Dir(1, with 3), rows ~ Dir(s m), s ~ Γ(2, 1/2)."""
    state_class = np.concatenate([np.arange(N_CLASSES), rng.integers(N_CLASSES, size=N_CLASSES)])
    diagonal = np.repeat([4.0, 3.0], N_CLASSES)
    pooled = _dirichlet(_pseudo_counts(state_class, diagonal), rng)
    return _pooled_states(state_class, pooled, rng.gamma(2.0, 2.0, len(state_class)), rng)


def clusters_without_extra(rng: np.random.Generator) -> States:
    """Main clusters alone: Dawid–Skene with rows that are pooled."""
    state_class = np.arange(N_CLASSES)
    pooled = _dirichlet(_pseudo_counts(state_class, 4.0), rng)
    return _pooled_states(state_class, pooled, rng.gamma(2.0, 2.0, N_CLASSES), rng)


def shared_difficulty(rng: np.random.Generator) -> States:
    """Classes times points of ease; P(right) = expit(b + g d), with the laws of b and g that the model names."""
    points = np.linspace(-2.5, 2.5, 11)
    density = np.exp(-0.5 * points**2)
    means = rng.normal(1.5, 1.0, N_CLASSES)
    levels = rng.normal(means, 0.7, (N_LABELERS, N_CLASSES))
    slopes = np.exp(rng.normal(np.log(abs(rng.normal())), 0.3, N_LABELERS))
    right = expit(levels[:, :, None] + slopes[:, None, None] * points)  # labelers, classes, points
    wrong = rng.dirichlet(np.ones(N_CLASSES - 1), (N_LABELERS, N_CLASSES))
    rows = np.empty((N_LABELERS, N_CLASSES, len(points), N_CLASSES))
    for c in range(N_CLASSES):
        others = np.delete(np.arange(N_CLASSES), c)
        rows[:, c, :, c] = right[:, c]
        rows[:, c][:, :, others] = (1 - right[:, c])[:, :, None] * wrong[:, c, None, :]
    shares = rng.dirichlet(np.ones(N_CLASSES))
    weights = (shares[:, None] * density / density.sum()).ravel()
    codes = np.repeat(np.arange(N_CLASSES), len(points))
    return States(codes, weights, rows.reshape(N_LABELERS, -1, N_CLASSES))


def ordinal(rng: np.random.Generator) -> States:
    """Places, thresholds, biases, sharpness and lapses as the model draws them."""
    rows = draw_parameters(N_LABELERS, N_CLASSES, rng).matrices()
    return States(np.arange(N_CLASSES), rng.dirichlet(np.ones(N_CLASSES)), rows)


# Of the judges of pairs, the first is heard in either order, the second in one, the third in both orders at once.
JUDGE, PRESENTATION = np.array([0, 0, 1, 2]), np.array([0, 1, 0, 2])


def mirrored(rng: np.random.Generator) -> States:
    """Rows ~ Dir(1, with 3 at the class), mirrored where the order is; a judge of both orders is their own mirror."""
    rows = _dirichlet(np.broadcast_to(_pseudo_counts(np.arange(N_CLASSES), 3.0), (3, N_CLASSES, N_CLASSES)), rng)
    rows[2, 1] = rows[2, 0, ::-1]
    rows = rows[JUDGE]
    rows[PRESENTATION == 1] = rows[PRESENTATION == 1][:, ::-1, ::-1]
    return States(np.arange(N_CLASSES), rng.dirichlet(np.ones(N_CLASSES)), rows)


MODELS: dict[str, tuple[Callable[[np.random.Generator], States], Callable[[], Any]]] = {
    "dawid-skene": (dawid_skene, tu.noise.DawidSkene),
    "one-coin": (one_coin, tu.noise.OneCoin),
    "subtypes": (subtypes, lambda: tu.noise.Subtypes(n_subtypes=2)),
    "clusters": (clusters, tu.noise.Clusters),
    "clusters, none extra": (clusters_without_extra, lambda: tu.noise.Clusters(n_extra=0)),
    "shared-difficulty": (shared_difficulty, lambda: tu.noise.resolve("shared-difficulty")),
    "ordinal": (ordinal, tu.noise.Ordinal),
    "mirrored": (mirrored, lambda: MirroredConfusion(JUDGE, PRESENTATION)),
}
QUANTITIES = ("pairs of one class", "pairs of one class and one vote of labeler 1", "items that labeler 1 gets right")
# Bins and mean of each quantity of each sampler, with and without item prior: both figures are one test.
N_TESTS = 2 * len(QUANTITIES) * len(MODELS) * 2


def draw_data(states: States, item_prior: LogLinearPrior | None, rng: np.random.Generator) -> tuple[tu.Labels, Codes]:
    """Votes of all labelers on all items, and the truth."""
    if item_prior is None:
        state = rng.choice(len(states.weights), N_ITEMS, p=states.weights)
    else:
        coefficients = rng.normal(0.0, ITEM_PRIOR_SCALE, item_prior.n_features)
        chances = item_prior.probabilities(coefficients)
        truth = np.array([rng.choice(N_CLASSES, p=row) for row in chances])
        state = np.array([_state_of_class(states, int(c), rng) for c in truth])
    votes = np.array([[rng.choice(N_CLASSES, p=row[s]) for row in states.rows] for s in state])
    labels = tu.Labels.from_matrix(votes, classes=list(range(N_CLASSES)))
    return labels, states.state_class[state]


def _state_of_class(states: States, c: int, rng: np.random.Generator) -> int:
    """A state of a class, by the weights of the states among those of its class."""
    of_class = np.flatnonzero(states.state_class == c)
    return int(rng.choice(of_class, p=states.weights[of_class] / states.weights[of_class].sum()))


def quantities_of(truths: Codes, votes: Codes) -> Floats:
    """What is ranked, for each of some truths; shape (n_truths, n_quantities)."""
    first = votes[:, 0]
    alike, sorted_alike = np.zeros(len(truths)), np.zeros(len(truths))
    for c in range(N_CLASSES):
        alike += _pairs((truths == c).sum(axis=1))
        for answer in range(N_CLASSES):
            sorted_alike += _pairs(((truths == c) & (first == answer)).sum(axis=1))
    return np.stack([alike, sorted_alike, (truths == first).sum(axis=1)], axis=1)


def _pairs(n: Codes) -> Floats:
    return np.asarray(n * (n - 1) / 2)


def ranks_of(true: Floats, drawn: Floats, rng: np.random.Generator) -> Codes:
    """How many draws lie below the truth, equals by lot."""
    below, equal = (drawn < true).sum(axis=0), (drawn == true).sum(axis=0)
    return np.asarray(below + rng.integers(0, equal + 1))


def run_sbc(case: Case) -> list[Row]:
    model = case.world.removesuffix(WITH_ITEM_PRIOR)
    draw_prior, make_model = MODELS[model]
    rng = np.random.default_rng([case.seed, sorted(MODELS).index(model), int(model != case.world)])
    item_prior = None
    if model != case.world:
        features = np.zeros((N_ITEMS, N_CLASSES, 2))
        features[:, 1, 0] = 1.0
        features[:, 1, 1] = rng.standard_normal(N_ITEMS)
        item_prior = LogLinearPrior(features, np.full(2, ITEM_PRIOR_SCALE))
    labels, truth = draw_data(draw_prior(rng), item_prior, rng)
    draws = tu.noise.sample(
        labels,
        make_model(),
        item_prior=item_prior,
        n_chains=1,
        n_warmup=N_WARMUP,
        n_draws=N_DRAWS * THINNING,
        random_state=rng,
        warn=False,
    )
    spaced = np.linspace(0, len(draws.truths) - 1, N_DRAWS).astype(int)
    votes = np.array(labels.votes.toarray().reshape(N_ITEMS, N_LABELERS, -1).argmax(axis=2))
    true = quantities_of(truth[None], votes)[0]
    ranks = ranks_of(true, quantities_of(draws.truths[spaced].astype(np.int64), votes), rng)
    return [{"quantity": name, "rank": int(rank)} for name, rank in zip(QUANTITIES, ranks, strict=True)]


def summarise_sbc(rows: Sequence[Row]) -> Section:
    lines, numbers = [], {}
    groups: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        groups.setdefault((row["world"], row["quantity"]), []).append(row["rank"])
    limit = 0.05 / N_TESTS
    for (world, quantity), ranks in groups.items():
        observed = np.bincount(np.array(ranks) * N_BINS // (N_DRAWS + 1), minlength=N_BINS)
        p_bins = float(chisquare(observed).pvalue)
        places = (np.array(ranks) + 0.5) / (N_DRAWS + 1)
        mean, spread = float(places.mean()), float(places.std() * np.sqrt(12))
        p_mean = float(2 * norm.sf(abs(mean - 0.5) * np.sqrt(12 * len(ranks))))
        verdict = "uniform" if min(p_bins, p_mean) >= limit else "NOT UNIFORM"
        cells = [f"{p_bins:.4f}", f"{mean:.3f}", f"{p_mean:.4f}", f"{spread:.3f}", str(len(ranks)), verdict]
        lines.append([world, quantity, *cells])
        numbers[f"{world}, {quantity}"] = {
            "p_bins": p_bins,
            "p_mean": p_mean,
            "mean": mean,
            "spread": spread,
            "n": len(ranks),
        }
    smallest = min(p for own in numbers.values() for p in (own["p_bins"], own["p_mean"]))
    n_uniform = sum(cells[-1] == "uniform" for cells in lines)
    head = ["sampler", "quantity", "p of bins", "mean rank", "p of mean", "spread × √12", "runs", f"at {limit:.5f}"]
    return Section(
        f"Ranks of the truth among {N_DRAWS} draws, every {THINNING}th of a chain; {N_ITEMS} items, {N_LABELERS} "
        f"labelers who all vote, {N_CLASSES} classes.\nχ² of {N_BINS} bins, and a test of the mean; uniform ranks "
        f"have mean 0.5 and spread 1; the limit is 0.05 over {N_TESTS} tests\n\n{as_text(head, lines, left=(0, 1))}\n\n"
        f"{n_uniform} of {len(lines)} rows are uniform; the smallest p is {smallest:.4f}",
        numbers,
    )


def _pseudo_counts(state_class: Codes, diagonal: npt.ArrayLike) -> Floats:
    """1 for each answer, and the diagonal at the class of each state."""
    counts = np.ones((len(state_class), N_CLASSES))
    counts[np.arange(len(state_class)), state_class] = diagonal
    return counts


def _dirichlet(pseudo_counts: Floats, rng: np.random.Generator) -> Floats:
    drawn = np.maximum(rng.standard_gamma(pseudo_counts), 1e-300)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def _pooled_states(state_class: Codes, pooled: Floats, strength: Floats, rng: np.random.Generator) -> States:
    shape = (N_LABELERS, *pooled.shape)
    rows = _dirichlet(np.broadcast_to(strength[:, None] * pooled, shape), rng)
    return States(state_class, rng.dirichlet(np.ones(len(state_class))), rows)


def _figure(worlds: Sequence[str], first_seed: int) -> Figure:
    return Figure(tuple(worlds), run_sbc, summarise_sbc, n_runs=1000, n_quick=5, first_seed=first_seed)


SBC_FIGURE = _figure(tuple(MODELS), 167_000)
SBC_ITEM_PRIOR_FIGURE = _figure([f"{model}{WITH_ITEM_PRIOR}" for model in MODELS], 168_000)
