"""Draws with the items on a device have the law of the other engines, and what else a chain leaves is right."""

import numpy as np
import pytest
from scipy.stats import ks_2samp
from torch_devices import DEVICES

import trueup as tu
from trueup.exceptions import InvalidParameter
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.system_outputs import SystemOutputs

N_ITEMS = 60
OTHERS, SLOW = ("one-coin", "ordinal"), pytest.mark.slow  # a sweep takes milliseconds


@pytest.fixture(scope="module")
def crowd():
    """Few votes, so that the law of the draws is wide, and a classifier that errs."""
    sim = tu.simulate.dawid_skene(n_items=N_ITEMS, n_classes=2, n_labelers=5, votes_per_item=3, random_state=2)
    codes = np.where(np.arange(N_ITEMS) % 4 == 0, 1 - sim.truth, sim.truth).astype(np.int64)
    gold = {sim.labels.items[i]: sim.labels.classes[sim.truth[i]] for i in range(6)}
    return sim.labels.with_gold(gold), codes


def drawn(labels, model, engine, seed, n_draws=200, **more):
    return tu.noise.sample(
        labels, model, engine=engine, n_chains=2, n_warmup=30, n_draws=n_draws, random_state=seed, warn=False, **more
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("model", ["dawid-skene", *(pytest.param(name, marks=SLOW) for name in OTHERS)])
def test_draws_have_the_law_of_the_processor(crowd, model, device):
    labels, codes = crowd
    n_draws, apart = (2000, 25) if model in OTHERS else (600, 15)
    outputs = SystemOutputs(codes[None], np.array([2]), np.ones(1))
    placed, plain = (drawn(labels, model, engine, 1, n_draws, outputs=outputs) for engine in (f"torch:{device}", None))
    np.testing.assert_allclose(placed.posterior, plain.posterior, atol=0.15)
    for name in ("prior", "log_likelihood"):
        mine, theirs = (np.asarray(getattr(d, name)).reshape(2 * n_draws, -1)[::apart, 0] for d in (placed, plain))
        assert ks_2samp(mine, theirs).pvalue > 1e-4
    right = [(d.truths == codes).mean(axis=1)[::5] for d in (placed, plain)]
    assert ks_2samp(*right).pvalue > 1e-4


@pytest.mark.parametrize("device", DEVICES)
def test_what_a_chain_leaves_fits_together(crowd, device):
    labels, codes = crowd
    draws = drawn(labels, "dawid-skene", f"torch:{device}", 3, raters=codes)
    known = labels.gold_codes >= 0
    assert (draws.truths[:, known] == labels.gold_codes[known]).all()
    np.testing.assert_allclose(draws.posterior.sum(axis=1), 1.0)
    np.testing.assert_allclose(draws.posterior[known].max(axis=1), 1.0)
    np.testing.assert_allclose(draws.posterior[:, 1], draws.truths.mean(axis=0), atol=0.15)
    kept = draws.rater_counts[draws.truth_draws, 0]
    matrix = [[(truth == y) & (codes == a) for a in (0, 1)] for truth in draws.truths for y in (0, 1)]
    np.testing.assert_array_equal(kept.reshape(-1, 2), np.sum(matrix, axis=-1))
    again = drawn(labels, "dawid-skene", f"torch:{device}", 3, raters=codes)
    np.testing.assert_array_equal(again.truths, draws.truths)


def test_a_prior_of_items_is_left_to_the_processor(crowd):
    labels, codes = crowd
    prior = LogLinearPrior(np.eye(2)[codes][:, :, None], [1.0])
    with pytest.raises(InvalidParameter, match=r"`engine` of noise\.sample must be .*, got 'torch'"):
        tu.noise.sample(labels, item_prior=prior, engine="torch")
