"""OneCoin and DawidSkene against plain numpy, against simulated truth and against the publication."""

import numpy as np
import pytest

import trueup as tu
from trueup import Labels, noise, simulate
from trueup.exceptions import ConvergenceWarning, DataWarning, InvalidParameter

FLOOR = 1e-10


def tiny_votes(n_items=16, n_labelers=4, n_classes=3, seed=1):
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_labelers)) < 0.7
    votes = np.where(right, truth[:, None], rng.integers(n_classes, size=(n_items, n_labelers)))
    votes[0, 1] = votes[5, 2] = -1
    return votes


def plain_em(votes, n_classes, n_iter, m_step):
    """EM over dense arrays; `m_step` maps soft counts (labelers, truth, answer) to matrices."""
    said = (votes[:, :, None] == np.arange(n_classes)).astype(float)
    posterior = said.sum(axis=1) / said.sum(axis=(1, 2))[:, None]
    losses = []
    for _ in range(n_iter):
        theta = m_step(np.einsum("iy,ita->tya", posterior, said))
        prior = posterior.mean(axis=0)
        joint = prior * np.exp(np.einsum("ita,tya->iy", said, np.log(np.maximum(theta, FLOOR))))
        losses.append(-np.log(joint.sum(axis=1)).sum() / (votes >= 0).sum())
        posterior = joint / joint.sum(axis=1, keepdims=True)
    return theta, posterior, losses


def maximum_likelihood(counts):
    return counts / counts.sum(axis=2, keepdims=True)


def test_dawid_skene_is_plain_em():
    votes = tiny_votes()
    labels = Labels.from_matrix(votes, classes=[0, 1, 2])
    model = noise.DawidSkene(pooling=0, max_iter=25, tol=0).fit(labels)
    theta, posterior, losses = plain_em(votes, 3, 25, maximum_likelihood)
    np.testing.assert_allclose(model.confusion_, theta, atol=1e-8)
    np.testing.assert_allclose(model.prior_, posterior.mean(axis=0), atol=1e-8)
    np.testing.assert_allclose(model.loss_history_, losses, rtol=1e-9)
    assert model.n_iter_ == 25


def test_one_coin_is_plain_em_with_a_beta_prior():
    votes = tiny_votes(seed=2)
    labels = Labels.from_matrix(votes, classes=[0, 1, 2])

    def m_step(counts):
        right = np.einsum("tyy->t", counts)
        p = (right + 2) / (counts.sum(axis=(1, 2)) + 3)
        theta = np.repeat(np.repeat(((1 - p) / 2)[:, None, None], 3, axis=1), 3, axis=2)
        theta[:, range(3), range(3)] = p[:, None]
        return theta

    model = noise.OneCoin(max_iter=20, tol=0).fit(labels)
    theta, posterior, losses = plain_em(votes, 3, 20, m_step)
    np.testing.assert_allclose(model.confusion_, theta, atol=1e-9)
    np.testing.assert_allclose(model.prior_, posterior.mean(axis=0), atol=1e-9)
    p = model.accuracy_
    log_prior = (2 * np.log(p) + np.log1p(-p)).sum()
    assert model.loss_history_[-1] == pytest.approx(losses[-1] - log_prior / labels.n_votes, rel=1e-9)


@pytest.mark.parametrize("engine", ["scipy", "numba"])
@pytest.mark.parametrize("seed", range(3))
def test_loss_never_rises(seed, engine, monkeypatch):
    if engine == "numba":
        pytest.importorskip("numba")
    monkeypatch.setenv("TRUEUP_ENGINE", engine)
    data = simulate.dawid_skene(n_items=200, n_classes=3, n_labelers=8, votes_per_item=4, random_state=seed)
    gold = data.labels.with_gold({i: int(data.truth[i]) for i in range(20)})
    for model in (noise.DawidSkene(pooling=0, max_iter=60, tol=0), noise.OneCoin(max_iter=60, tol=0)):
        for labels in (data.labels, gold):
            assert np.diff(model.fit(labels).loss_history_).max() <= 1e-10


def test_learned_pooling_is_strong_for_equal_labelers_and_weak_for_different_ones():
    equal = simulate.dawid_skene(n_items=600, n_labelers=10, accuracy=0.8, random_state=0)
    different = simulate.dawid_skene(n_items=600, n_labelers=10, accuracy=(0.5, 1.0), random_state=0)
    strength = [
        noise.DawidSkene(pooling="auto", max_iter=300, tol=0).fit(d.labels).pooling_.min() for d in (equal, different)
    ]
    assert strength[0] > 5 * strength[1]


def test_gold_turns_a_contrary_crowd_around():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    labels = Labels.from_matrix(np.where(rng.random((300, 5)) < 0.2, truth[:, None], 1 - truth[:, None]))
    gold = labels.with_gold({i: int(truth[i]) for i in range(150)})
    for model in (noise.DawidSkene(), noise.OneCoin()):
        found = model.fit(gold).posterior(gold)[150:].argmax(axis=1)
        assert (found == truth[150:]).mean() > 0.9


def test_an_iteration_that_stops_early_says_so():
    labels = simulate.dawid_skene(n_items=200, random_state=0).labels
    with pytest.warns(ConvergenceWarning, match="raise `max_iter`"):
        assert not noise.DawidSkene(max_iter=2).fit(labels).converged_
    with pytest.warns(ConvergenceWarning, match="raise `max_iter`"):
        noise.OneCoin(max_iter=1).fit(labels)


@pytest.mark.parametrize("pooling", [-1.0, "atuo", np.nan])
def test_pooling_is_checked(pooling):
    labels = simulate.dawid_skene(n_items=30, random_state=0).labels
    with pytest.raises(InvalidParameter, match="pooling"):
        noise.DawidSkene(pooling=pooling).fit(labels)


@pytest.mark.data
def test_dawid_and_skene_s_own_data(data_folder):
    with pytest.warns(DataWarning, match="repeat"):
        labels = tu.read_labels(data_folder / "crowd-anesthesia" / "labels.csv.gz")
    assert (labels.n_items, labels.n_labelers, labels.n_votes) == (45, 5, 315)
    model = noise.DawidSkene(pooling=0, max_iter=2000, tol=1e-9).fit(labels)
    np.testing.assert_allclose(model.prior_, [0.40, 0.42, 0.11, 0.07], atol=0.01)
    # All votes on patient 1 name class 1.
    posterior = model.posterior(labels)
    assert posterior[0, 0] > 0.99
