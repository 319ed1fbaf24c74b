"""What the losses lead to: agreement with the classifiers of scikit-learn's kind, and consistency on simulated data."""

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from trueup.training import NoisyLabelClassifier, NoisyLogisticRegression
from trueup.training.torch import MMSELoss, NoisyLikelihoodLoss, PartialLabelLoss, ProxyLoss, VoteDataset


def minimise(network, loss, *, parameters=(), steps=20):
    """L-BFGS in double precision."""
    search = torch.optim.LBFGS(
        [*network.parameters(), *parameters],
        max_iter=50,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
    )

    def closure():
        search.zero_grad()
        value = loss()
        value.backward()
        return value

    for _ in range(steps):
        before = loss().item()
        search.step(closure)
        if before - loss().item() < 1e-13:
            break
    return network


def linear(n_features, n_classes):
    network = nn.Linear(n_features, n_classes).double()
    for parameter in network.parameters():
        nn.init.zeros_(parameter)
    return network


def chances(network, X):
    return torch.softmax(network(X), 1).detach().numpy()


def whole(X, labels):
    """All rows and votes in double precision."""
    data = VoteDataset(X, labels, dtype=torch.float64)
    return data[list(range(len(data)))]


@pytest.mark.parametrize("data", ["crowd", "three_classes"])
def test_mmse_is_that_of_the_classifier(data, request):
    X, labels = request.getfixturevalue(data)[:2]
    inside = LogisticRegression(C=np.inf, tol=1e-10, max_iter=2000)
    reference = NoisyLabelClassifier(inside, strategy="mmse", min_weight=0.0).fit(X, labels)
    x, votes = whole(X, labels)
    loss = MMSELoss(reference.noise_).double()
    network = linear(X.shape[1], labels.n_classes)
    minimise(network, lambda: loss(network(x), votes))
    np.testing.assert_allclose(chances(network, x), reference.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("data", ["crowd", "three_classes"])
def test_the_likelihood_is_that_of_the_classifier(data, request):
    X, labels = request.getfixturevalue(data)[:2]
    reference = NoisyLogisticRegression(method="ml", tol=1e-9).fit(X, labels)
    x, votes = whole(X, labels)
    loss = NoisyLikelihoodLoss(reference.noise_).double()
    network = linear(X.shape[1], labels.n_classes)
    minimise(network, lambda: loss(network(x), votes))
    np.testing.assert_allclose(chances(network, x), reference.predict_proba(X), atol=1e-3)
    # Evidence is the same thing said otherwise.
    by_evidence = VoteDataset(X, labels, noise=reference.noise_, dtype=torch.float64)
    everything = list(range(labels.n_items))
    other = NoisyLikelihoodLoss()(network(x), by_evidence[everything][1])
    best = reference.noise_.log_likelihood(labels).max(axis=1).mean()  # evidence is relative to the best class
    assert other.item() - best == pytest.approx(loss(network(x), votes).item(), rel=1e-5)


# Labelers who say 1 too often; a majority of them is wrong about most 0s.
BIASED = np.array([[[0.4, 0.6], [0.05, 0.95]], [[0.45, 0.55], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]]])
# P(class 1 | cell); away from 0 and 1, where unbiased losses of a few items may have no minimum.
CHANCES = np.array([0.3, 0.45, 0.55, 0.7])


def cells(n, seed):
    """Items in four cells with known P(class | cell), and three votes on each."""
    rng = np.random.default_rng(seed)
    cell = rng.integers(4, size=n)
    truth = (rng.random(n) < CHANCES[cell]).astype(int)
    votes = np.stack([(rng.random(n) < BIASED[r, truth, 1]).astype(int) for r in range(3)], axis=1)
    return torch.tensor(cell), truth, torch.tensor(votes), rng


def learned(cell, loss):
    """P(class 1 | cell) of a network that is free in each cell."""
    network = nn.Embedding(4, 2).double()
    nn.init.zeros_(network.weight)
    minimise(network, lambda: loss(network(cell)))
    return torch.softmax(network.weight, 1)[:, 1].detach().numpy()


def flattened():
    """E[P(class 1 | votes) | cell] by enumeration: what the MMSE risk leads to."""
    prior = np.array([1 - CHANCES.mean(), CHANCES.mean()])
    mean = np.zeros(2)
    for votes in product([0, 1], repeat=3):
        said = np.prod([BIASED[r, :, a] for r, a in enumerate(votes)], axis=0)
        mean += said * (prior * said)[1] / (prior * said).sum()
    return (1 - CHANCES) * mean[0] + CHANCES * mean[1]


def losses(votes, truth, rng):
    """Each loss of a batch of logits, and what it should lead to."""
    prior = [1 - CHANCES.mean(), CHANCES.mean()]
    sets = np.stack([truth == 0, truth == 1], axis=1) | (rng.random((len(truth), 2)) < 0.5)
    mixing = np.array([[0.6, 0.1], [0.2, 0.3], [0.2, 0.6]])
    weak = torch.tensor((rng.random(len(truth))[:, None] > np.cumsum(mixing, axis=0).T[truth]).sum(axis=1))
    mmse, likelihood = MMSELoss(BIASED, prior=prior).double(), NoisyLikelihoodLoss(BIASED).double()
    proxy, partial = ProxyLoss(BIASED).double(), PartialLabelLoss(mixing).double()
    candidates = PartialLabelLoss.from_sets(2, extra=0.5).double()
    return {
        "mmse": (lambda f: mmse(f, votes), flattened()),
        "likelihood": (lambda f: likelihood(f, votes), CHANCES),
        "proxy": (lambda f: proxy(f, votes), CHANCES),
        "weak": (lambda f: partial(f, weak), CHANCES),
        "sets": (lambda f: candidates(f, torch.tensor(sets)), CHANCES),
    }


@pytest.mark.parametrize("name", ["mmse", "likelihood", "proxy", "weak", "sets"])
def test_more_data_lead_to_the_right_probabilities(name):
    errors = []
    for n in (1000, 40_000):
        cell, truth, votes, rng = cells(n, seed=1)
        loss, goal = losses(votes, truth, rng)[name]
        errors.append(np.abs(learned(cell, loss) - goal).max())
    assert errors[1] < errors[0]
    assert errors[1] < 0.03  # 10 000 items a cell: a standard error of about 0.01 for the noisiest
    # Cross-entropy with the majority of these labelers stays wrong.
    majority = (votes.sum(dim=1) > 1).long()
    found = learned(cell, lambda f: nn.functional.cross_entropy(f, majority))
    assert np.abs(found - CHANCES).max() > 0.2
