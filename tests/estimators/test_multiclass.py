"""More than two classes, and many systems: sampling and the published algorithm."""

import itertools
from itertools import islice

import numpy as np
import pytest
from scipy.special import gammaln

from trueup import noise, simulate
from trueup.estimators import Problem, bayes, class_posterior, ideal, mmse
from trueup.estimators.given_noise import draw_sweeps
from trueup.estimators.truth import draw_truths
from trueup.metrics import confusion_counts, get_metric

SU_CONFUSION = np.array(
    [[0.75, 0.08, 0.10, 0.07], [0.10, 0.65, 0.12, 0.13], [0.04, 0.06, 0.80, 0.10], [0.10, 0.05, 0.05, 0.80]]
)
METRICS = [get_metric(name, range(4)) for name in ("accuracy", "macro_f1", "recall:2", "precision:1", "kappa")]


def su_problem(n, *, difficulty=0.0, seed=0, fallibility=(0.0, 0.4), confusion=SU_CONFUSION):
    """The example of Section 5.3."""
    data = simulate.su(
        n_items=n,
        prior=(0.2, 0.3, 0.1, 0.4),
        classifier_confusion=confusion,
        difficulty=difficulty,
        fallibility=fallibility,
        random_state=seed,
    )
    p = data.parameters
    model = noise.Difficulty(difficulty=p["difficulty"], fallibility=p["fallibility"], prior=p["prior"])
    return Problem(data.predictions, model.log_likelihood(data.labels), p["prior"]), data.truth


@pytest.mark.parametrize("pseudo_count", [0.5, 1.0])
def test_gibbs_equals_enumeration(pseudo_count):
    rng = np.random.default_rng(0)
    problem = Problem([0, 0, 1, 2, 2], rng.normal(size=(5, 3)), [0.5, 0.3, 0.2], [-1, 0, -1, -1, -1])
    chances = class_posterior(problem)
    want, total = np.zeros((3, 3)), 0.0
    for truth in itertools.product(range(3), repeat=5):
        counts = confusion_counts(np.array(truth), problem.predictions, 3)
        # The Dirichlet-multinomial of each row, up to a constant.
        log_rows = gammaln(counts + pseudo_count).sum(axis=1) - gammaln((counts + pseudo_count).sum(axis=1))
        mass = np.prod(chances[np.arange(5), truth]) * np.exp(log_rows.sum())
        want += mass * counts
        total += mass
    sweeps = draw_sweeps(chances, problem.predictions, pseudo_count, np.random.default_rng(1))
    mean = np.mean([counts.mean(axis=0) for counts, _ in islice(sweeps, 100, 2000)], axis=0)
    np.testing.assert_allclose(mean, want / total, atol=0.06)
    assert mean[0, 0] >= 1


def test_draws_of_known_noise_follow_the_posterior_and_gold():
    sim = simulate.dawid_skene(n_items=50, n_labelers=3, n_classes=3, random_state=4)
    labels = sim.labels.with_gold({sim.labels.items[7]: sim.labels.classes[2]})
    known = noise.Confusion(sim.parameters["confusion"], prior=sim.parameters["prior"])
    draws = draw_truths(labels, known, n_draws=4000, random_state=0)
    shares = np.stack([(draws.truths == y).mean(axis=0) for y in range(3)], axis=1)
    np.testing.assert_allclose(shares, known.posterior(labels), atol=4.5 * 0.5 / np.sqrt(4000))
    assert (draws.truths[:, 7] == 2).all()


def test_example_of_section_5_3():
    problem, truth = su_problem(2000, seed=0)
    want = ideal(problem, truth=truth).counts
    published = mmse(problem, n_draws=2000, random_state=0)
    exact = mmse(problem, algorithm="exact", n_draws=2000, random_state=0)
    assert published.converged
    assert published.n_iter <= 10
    np.testing.assert_allclose(published.confusion, exact.confusion, atol=2e-3)
    assert published.counts.estimate(METRICS[0]).mean == pytest.approx(want.estimate(METRICS[0]).mean, abs=0.01)
    assert np.abs(published.counts.mean_counts - want.mean_counts).max() < 20


@pytest.mark.slow
def test_coverage_of_four_classes():
    """Calibrated on average over the prior; a good classifier and weak votes alone are pulled to chance."""
    hits = []
    for seed in range(60):
        confusion = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=4)
        problem, truth = su_problem(300, difficulty="uniform", seed=100 + seed, confusion=confusion)
        counts = bayes(problem, random_state=seed).counts
        want = ideal(problem, truth=truth).counts
        ends = np.array([counts.estimate(metric).interval() for metric in METRICS])
        value = np.array([want.estimate(metric).mean for metric in METRICS])
        hits.append((ends[:, 0] - 1e-9 <= value) & (value <= ends[:, 1] + 1e-9))
    assert (np.mean(hits, axis=0) > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)).all()
