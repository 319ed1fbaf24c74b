"""Influence by brute force, and what every strategy promises."""

from dataclasses import replace

import numpy as np
import pytest

import trueup as tu
from trueup.active.influence import (
    Pool,
    State,
    expected_change,
    expected_counts,
    influence,
    paper_change,
    positive_slopes,
)
from trueup.active.strategies import get_strategy
from trueup.exceptions import InvalidParameter
from trueup.metrics import get_metric

N = 24
COUNTS = ["accuracy", "error", "precision", "recall", "f1", "f2", "specificity", "balanced_accuracy", "mcc", "kappa"]
SCORES = ["precision@5", "recall@5", "average_precision", "auc", "ndcg", "ndcg@7", "partial_auc@0.3"]
TABLES = ["log_loss", "brier", "auc_ovr"]


def metric_of(name, n_classes=2):
    return get_metric(name, range(n_classes))


def some_state(name, seed=0, *, n=N, n_classes=2, n_systems=1, tied=False, categories=None, n_vetted=4):
    """A pool of random outputs and probabilities, some items vetted and some not available."""
    rng = np.random.default_rng(seed)
    labels = tu.Labels.from_matrix(rng.integers(0, n_classes, (n, 1)), classes=list(range(n_classes)))
    systems = {}
    for k in range(n_systems):
        said = rng.dirichlet(np.ones(n_classes), n)
        if tied:
            said = np.round(said * 3 + 1)
            said /= said.sum(axis=1, keepdims=True)
        systems[f"system {k}"] = tu.Predictions.from_probabilities(said, classes=list(range(n_classes)))
    aligned = tu.Predictions.stack(systems).align(labels)
    if aligned.scores is None:
        aligned = replace(aligned, scores=aligned.probabilities[:, :, -1].copy(), positive=n_classes - 1)
    p = rng.dirichlet(np.ones(n_classes), n)
    vetted = np.zeros(n, dtype=bool)
    vetted[rng.permutation(n)[:n_vetted]] = True
    p[vetted] = np.eye(n_classes)[rng.integers(0, n_classes, n_vetted)]
    available = ~vetted & (rng.random(n) < 0.9)
    metric = metric_of(name, n_classes) if isinstance(name, str) else name
    pool = Pool(labels, aligned, metric, n_classes - 1, p, p.argmax(axis=1), categories)
    return State(pool, p, vetted, available)


def plug_in(pool, p, system=0):
    """The metric of expected counts, or of a list in which every item stands once for each class, weighted."""
    metric = pool.metric
    if metric.looks_at == "classes":
        return float(metric(expected_counts(p, pool.aligned.codes[system])))
    n, n_classes = p.shape
    truth, weights = np.repeat(np.arange(n_classes), n)[None], p.T.reshape(1, -1)
    outputs = pool.aligned.scores if metric.needs == "scores" else pool.aligned.probabilities
    outputs = np.concatenate([outputs[system]] * n_classes)
    return metric.of_outputs(truth, outputs, positive=pool.positive, weights=weights).item()


def slopes_by_force(value, p, step=1e-5):
    """What moving each item a little towards each class does, for each unit of the way; shape (n_items, n_classes)."""
    found = np.empty(p.shape)
    for j in range(len(p)):
        for c in range(p.shape[1]):
            # Forwards, since a certain item can go nowhere else; twice, so that the error is of second order.
            near, far = p.copy(), p.copy()
            near[j] += step * (np.eye(p.shape[1])[c] - p[j])
            far[j] += 2 * step * (np.eye(p.shape[1])[c] - p[j])
            found[j, c] = (4 * value(near) - value(far) - 3 * value(p)) / (2 * step)
    return found


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", COUNTS)
def test_influence_on_count_metrics_by_force(name, n_classes):
    state = some_state(name, n_classes=n_classes)
    found = influence(state.pool, state.probabilities)
    assert found.value == pytest.approx(plug_in(state.pool, state.probabilities))
    forced = slopes_by_force(lambda p: plug_in(state.pool, p), state.probabilities)
    assert found.effects == pytest.approx(forced, abs=1e-5)


@pytest.mark.parametrize("name", ["accuracy", "error", "precision", "precision@5", "brier", "log_loss"])
def test_influence_on_what_is_linear_is_exactly_the_forced_change(name):
    state = some_state(name, seed=1)
    p, pool = state.probabilities, state.pool
    top = np.argsort(-pool.aligned.scores[0])[:5]

    def value(table):  # the k of a weighted list is a share of its rows, so the weighted list will not do
        return table[top, 1].mean() if name == "precision@5" else plug_in(pool, table)

    found = influence(pool, p)
    assert found.value == pytest.approx(value(p))
    for j in range(N):
        for c in range(2):
            forced = p.copy()
            forced[j] = np.eye(2)[c]
            assert found.effects[j, c] == pytest.approx(value(forced) - value(p), abs=1e-7)


def ratio_value(name, pool, system=0):
    """The quotient of expected sums that the formulas of these metrics are derivatives of, by loops over pairs."""
    s = pool.aligned.scores[system]

    def average_precision(p):
        return expected_sum(p) / p.sum()

    def expected_sum(p):
        total = 0.0
        for k in range(len(p)):
            above = [i for i in range(len(p)) if s[i] >= s[k]]
            total += p[k] * (1 + sum(p[i] for i in above if i != k)) / len(above)
        return total

    def auc(p):
        pairs = [(i, j) for i in range(len(p)) for j in range(len(p)) if i != j]
        wins = {(i, j): (s[i] > s[j]) + 0.5 * (s[i] == s[j]) for i, j in pairs}
        return sum(p[i] * (1 - p[j]) * wins[i, j] for i, j in pairs) / sum(p[i] * (1 - p[j]) for i, j in pairs)

    def recall_at_5(p):
        return p[np.argsort(-s)[:5]].sum() / p.sum()

    def ndcg(p, k=None):
        discounts = 1 / np.log2(np.arange(len(p)) + 2) * (np.arange(len(p)) < (k or len(p)))
        best = np.interp(p.sum(), np.arange(len(p) + 1), np.append(0, np.cumsum(discounts)))
        return p[np.argsort(-s)] @ discounts / best

    value = {
        "average_precision": average_precision,
        "auc": auc,
        "recall@5": recall_at_5,
        "ndcg": ndcg,
        "ndcg@7": lambda p: ndcg(p, 7),
    }[name]
    return lambda table: value(table[:, pool.positive])


@pytest.mark.parametrize(
    ("name", "tied"),
    [(name, False) for name in ("average_precision", "auc", "recall@5", "ndcg", "ndcg@7")]
    + [("average_precision", True), ("auc", True)],
)
def test_influence_on_rankings_by_force(name, tied):
    state = some_state(name, seed=2, n=12, tied=tied, n_vetted=2)
    found = influence(state.pool, state.probabilities)
    value = ratio_value(name, state.pool)
    assert found.value == pytest.approx(value(state.probabilities))
    assert found.effects == pytest.approx(slopes_by_force(value, state.probabilities), abs=1e-6)


@pytest.mark.parametrize("name", [*COUNTS, *SCORES, *TABLES, "calibration_error", "auc_ovo"])
def test_effects_are_zero_on_average_and_on_vetted_items(name):
    state = some_state(name, seed=5)
    found = influence(state.pool, state.probabilities)
    p = state.probabilities
    assert np.isfinite(found.effects).all()
    assert (p * found.effects).sum(axis=1) == pytest.approx(np.zeros(N), abs=1e-12)
    assert found.expected_change(p)[state.vetted] == pytest.approx(0, abs=1e-12)
    assert found.variance(p)[state.vetted] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("floor", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("name", ["propensity", "separate"])
def test_no_chance_is_below_the_floor(name, floor):
    state = some_state("precision@5", seed=9, n_systems=2)
    chances = get_strategy(name, floor=floor).propensities(state)
    least = chances[state.available].min()
    # Items below the top five matter for nothing: only the even tenth of the floor reaches them.
    assert least == pytest.approx(0.1 * floor / state.available.sum())
    assert get_strategy(name, floor=floor).propensities(some_state("accuracy", seed=9, n_systems=2)).max() < 1


def test_propensity_minimises_the_variance_of_an_inverse_propensity_sum():
    state = some_state("accuracy", seed=10, n=200)
    deviations = np.sqrt(influence(state.pool, state.probabilities).variance(state.probabilities))[state.available]

    def variance(chances):
        return (deviations**2 / chances).sum()

    found = [variance(get_strategy("propensity", floor=f).propensities(state)[state.available]) for f in (1e-9, 0.5, 1)]
    best = deviations.sum() ** 2  # Cauchy and Schwarz
    assert found[0] == pytest.approx(best, rel=1e-4)
    assert found[0] < found[1] < found[2]


def test_stratified_draws_categories_evenly():
    categories = np.array([0] * 20 + [1] * 3 + [2])
    state = replace(some_state("accuracy", categories=categories), available=np.arange(N) != 23)
    chances = get_strategy("stratified").propensities(state)
    assert np.bincount(categories, chances) == pytest.approx([0.5, 0.5, 0.0])
    assert chances[20:23] == pytest.approx(0.5 / 3)
    without = replace(state, pool=replace(state.pool, categories=None))
    assert get_strategy("stratified").propensities(without) == pytest.approx(get_strategy("random").propensities(state))


def test_meec_is_the_formula_of_each_metric():
    p = some_state("accuracy", seed=11).probabilities[:, 1]

    def expected_of_average_precision(scores):
        slopes = positive_slopes(metric_of("average_precision"), p, scores, n_positives=9)[1]
        return expected_change(p, slopes)

    for name, expected in (
        ("accuracy", lambda scores: 2 / N * p * (1 - p)),
        ("precision@5", lambda scores: 2 / 5 * p * (1 - p) * (scores >= np.sort(scores)[-5])),
        ("average_precision", expected_of_average_precision),
    ):
        state = some_state(name, seed=11)
        everything = replace(state, available=np.ones(N, dtype=bool))
        options = {"n_positives": 9} if name == "average_precision" else {}
        found = get_strategy("meec", **options).scores(everything)
        assert found == pytest.approx(expected(state.pool.aligned.scores[0]), abs=1e-9), name


def test_meec_paper_is_equations_11_and_12():
    state = some_state("average_precision", seed=12)
    p, scores = state.probabilities[:, 1], state.pool.aligned.scores[0]
    found = get_strategy("meec-paper", n_positives=9.0).scores(state)
    assert found == pytest.approx(np.where(state.available, paper_change(p, scores, state.vetted, n_positives=9.0), 0))
    state = some_state("precision@5", seed=12)
    assert get_strategy("meec-paper").scores(state) == pytest.approx(get_strategy("meec").scores(state))
    with pytest.raises(InvalidParameter, match="meec-paper"):
        get_strategy("meec-paper").scores(some_state("accuracy"))


def test_most_confident_mistake_goes_down_the_list_of_negatives():
    state = some_state("average_precision", seed=14)
    scores = get_strategy("most-confident-mistake").scores(state)
    negative = (state.probabilities[:, 1] < 0.5) & state.available
    expected = sorted(np.flatnonzero(negative), key=lambda j: -state.pool.aligned.scores[0, j])
    assert np.argsort(-scores)[: negative.sum()].tolist() == expected
    assert scores[negative].min() > scores[state.available & ~negative].max()


def test_separate_looks_where_two_systems_differ():
    state = some_state("accuracy", seed=17, n_systems=3)
    same = state.pool.aligned.codes[0] == state.pool.aligned.codes[2]
    chances = get_strategy("separate", systems=("system 0", "system 2"), floor=0.2).propensities(state)
    differ = ~same & state.available & (state.probabilities.min(axis=1) > 0)
    even = 0.1 * 0.2 / state.available.sum()
    assert chances[same & state.available] == pytest.approx(even, rel=1e-6)
    assert (chances[differ] > even).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: get_strategy("rondom"), "did you mean 'random'"),
        (lambda: get_strategy("meec", floor=0.5), "takes the options n_positives, got 'floor'"),
        (lambda: get_strategy("propensity", floor=0), "above 0"),
        (lambda: get_strategy("propensity", floor=1.5), "`floor` must be a number"),
        (lambda: get_strategy(get_strategy("random"), floor=1), "options already"),
        (lambda: get_strategy("random").why(some_state("accuracy"), N), "position"),
        (lambda: get_strategy("separate").propensities(some_state("accuracy")), "two systems"),
        (
            lambda: get_strategy("separate", systems=("a", "b")).scores(some_state("accuracy", n_systems=2)),
            "names of two systems",
        ),
        (lambda: get_strategy("meec", n_positives=[1, 2]).scores(some_state("average_precision")), "n_positives"),
        (lambda: get_strategy("meec").scores(some_state("precision@99")), "at most the number of items"),
        (
            lambda: get_strategy("random").propensities(
                replace(some_state("accuracy"), available=np.zeros(N, dtype=bool))
            ),
            "no item is left",
        ),
        (lambda: influence(some_state("accuracy").pool, np.ones((N, 3))), "probabilities must have the shape"),
        (lambda: influence(some_state("accuracy").pool, np.ones((N, 2)), system=1), "position below 1"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()
