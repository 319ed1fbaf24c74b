"""Whose accuracy changed: right where it is clear, and rarely wrong."""

import numpy as np
import pytest
from batches import draw
from scipy.stats import beta, binom, norm

from trueup.monitor.batch import make_batch, panel_of
from trueup.monitor.change import Strata, find_attribution, log_evidence, strata_of

BEFORE = Strata(5000, 1000, 250, 50, 248, 7)


def test_evidence_is_what_was_foretold_over_what_suits_it_least():
    """By brute force: integrate the mixtures, and search the rates since the change on a grid."""
    after = Strata(740, 260, 74, 26, 73, 2)
    rates = np.linspace(0.0005, 0.9995, 1000)
    foretold = 0.0
    for hits, n, rate in ((73, 74, BEFORE.rates[0]), (2, 26, BEFORE.rates[1])):
        laws = [beta(rate * strength, (1 - rate) * strength) for strength in (30, 3)]
        grid = np.concatenate([law.ppf(np.linspace(0.00005, 0.99995, 10_000)) for law in laws])
        foretold += np.log(np.mean(grid**hits * (1 - grid) ** (n - hits)))
    agree, other = np.meshgrid(rates, rates, indexing="ij")
    spread = BEFORE.variance + (BEFORE.rates[0] - BEFORE.rates[1]) ** 2 * 0.74 * 0.26 / 1000
    away = (0.74 * agree + 0.26 * other - BEFORE.accuracy) / np.sqrt(spread)
    from_before = norm.logpdf(away, scale=np.sqrt(5)) - norm.logpdf(away)  # off by two standard errors, as a mixture
    likelihood = 73 * np.log(agree) + np.log(1 - agree) + 2 * np.log(other) + 24 * np.log(1 - other)
    assert log_evidence(BEFORE, after) == pytest.approx(foretold + (from_before - likelihood).min(), abs=0.05)


def test_the_evidence_has_a_mean_of_at_most_one_without_a_change():
    """Over all outcomes since, and draws of those before: judges fell, and the accuracy is what it was."""
    agree, other = 0.95, (0.85 - 0.74 * 0.95) / 0.26
    n_agree, n_other = 30, 10
    outcomes = [(k, m) for k in range(n_agree + 1) for m in range(n_other + 1)]
    chances = [binom.pmf(k, n_agree, agree) * binom.pmf(m, n_other, other) for k, m in outcomes]
    likely = [(outcome, chance) for outcome, chance in zip(outcomes, chances, strict=True) if chance > 1e-4]
    rng = np.random.default_rng(4)
    means = []
    for _ in range(20):
        before = Strata(5000, 1000, 250, 50, rng.binomial(250, 0.99), rng.binomial(50, (0.85 - 0.99 * 5 / 6) * 6))
        evidence = [log_evidence(before, Strata(740, 260, n_agree, n_other, *outcome)) for outcome, _ in likely]
        means.append(np.sum([chance * np.exp(one) for (_, chance), one in zip(likely, evidence, strict=True)]))
    assert 0.001 < np.mean(means) <= 1


def strata(rng, n_batches, share, agree, other):
    """Batches of 200 items with 10 vetted ones."""
    batches = []
    for _ in range(n_batches):
        n = rng.binomial(200, share)
        vetted = rng.hypergeometric(n, 200 - n, 10)
        batches.append(
            Strata(n, 200 - n, vetted, 10 - vetted, rng.binomial(vetted, agree), rng.binomial(10 - vetted, other))
        )
    return batches


@pytest.mark.parametrize(("other", "least", "most"), [(0.08, 0.85, 1.0), (0.47, 0.0, 0.08)])
def test_a_fall_of_the_system_is_told_from_one_of_the_judges(other, least, most):
    """Agreement falls from .83 to .74 in both; only in the first the system is less often right."""
    rng = np.random.default_rng(5)
    named = 0
    for _ in range(40):
        batches = strata(rng, 30, 0.83, 0.995, 0.14) + strata(rng, 40, 0.738, 0.985, other)
        named += find_attribution(batches, first=30, look=32, wrong=0.05, n_accuracies=2) is not None
    assert least <= named / 40 <= most


def test_of_two_judges_the_one_that_fell_is_named_and_not_the_other():
    """By 30 points. Without the items on which they tie, the other one was named about as often."""
    rng = np.random.default_rng(10)
    named = []
    for _ in range(15):
        batches = [
            make_batch(*draw(rng, judges=(0.9 if place < 25 else 0.6, 0.9)), "2026-01-01", None, has_system=None)
            for place in range(45)
        ]
        tables = [strata_of(batch, panel_of(batch), None) for batch in batches]
        named += [
            stream.judges
            for stream in tables[0]
            if find_attribution([table[stream] for table in tables], first=25, look=25, wrong=0.05, n_accuracies=4.0)
        ]
    assert named.count(("judge 0",)) >= 14
    assert len(named) - named.count(("judge 0",)) <= 1


def test_a_name_is_given_exactly_where_the_evidence_is_due():
    """Evidence of n/α to 1, at the first look that has it."""
    rng = np.random.default_rng(8)
    batches = strata(rng, 30, 0.83, 0.995, 0.14) + strata(rng, 60, 0.738, 0.985, 0.08)
    whole = find_attribution(batches, first=30, look=32, wrong=0.05, n_accuracies=2)
    before = sum(batches[:30], Strata())
    looks = {k: log_evidence(before, sum(batches[30 : k + 1], Strata())) for k in range(32, 90)}
    due = next(k for k, evidence in looks.items() if evidence >= np.log(2 / 0.05))
    assert whole.look == due
    assert whole.chance == pytest.approx(np.exp(-looks[due]) * 2)
    assert whole.chance <= 0.05
