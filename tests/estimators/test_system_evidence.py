"""P(class) with what systems say as further evidence."""

import numpy as np
import pytest

import trueup as tu
from trueup.data.votes import with_rater
from trueup.estimators.system_evidence import fitted_posterior, with_systems
from trueup.noise.system_outputs import SystemOutputs


@pytest.fixture(scope="module")
def crowd():
    return tu.simulate.dawid_skene(n_items=3000, n_labelers=6, votes_per_item=3, random_state=0)


def systems_of(codes, power):
    return SystemOutputs.of_classes(np.asarray(codes, dtype=np.int64), 2, np.asarray(power, dtype=float))


def test_one_system_is_one_more_labeler(crowd):
    codes = np.asarray(crowd.predictions)
    more = with_rater(crowd.labels, codes.astype(np.int32))
    joint = tu.noise.DawidSkene().fit(more).posterior(more)
    alone = tu.noise.DawidSkene().fit(crowd.labels).posterior(crowd.labels)
    found = fitted_posterior(crowd.labels, systems_of([codes], [1.0]))
    assert np.abs(found - joint).mean() < 0.03
    assert np.abs(found - joint).mean() < 0.5 * np.abs(alone - joint).mean()


def test_copies_that_share_a_weight_are_one_system(crowd):
    codes = np.asarray(crowd.predictions)
    posterior = tu.noise.DawidSkene().fit(crowd.labels).posterior(crowd.labels)
    once = with_systems(posterior, systems_of([codes], [1.0]))
    np.testing.assert_allclose(with_systems(posterior, systems_of([codes] * 4, [0.25] * 4)), once, atol=1e-9)
    assert with_systems(posterior, SystemOutputs.none(3000)) is posterior


def test_rows_stand_for_several_items(crowd):
    codes = np.asarray(crowd.predictions)[:500]
    posterior = tu.noise.DawidSkene().fit(crowd.labels).posterior(crowd.labels)[:500]
    times = np.where(codes == 1, 3, 1)
    each = np.repeat(np.arange(500), times)
    by_items = with_systems(posterior[each], systems_of([codes[each]], [1.0]))
    by_rows = with_systems(posterior, systems_of([codes], [1.0]), times.astype(float))
    np.testing.assert_allclose(by_rows[each], by_items, atol=1e-6)


def test_what_is_known_stays_known(crowd):
    posterior = tu.noise.DawidSkene().fit(crowd.labels).posterior(crowd.labels)
    posterior[:5] = [1.0, 0.0]
    found = with_systems(posterior, systems_of([np.ones(3000)], [1.0]))
    np.testing.assert_array_equal(found[:5], posterior[:5])
