"""ProxyLoss and PartialLabelLoss: unbiased by enumeration, proper, and the floor."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

import trueup as tu
from trueup.estimators import inverse_weights
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import PartialLabelLoss, ProxyLoss


def diagonal(rate, n_classes=3):
    return np.full((n_classes, n_classes), (1 - rate) / (n_classes - 1)) + np.eye(n_classes) * (
        rate - (1 - rate) / (n_classes - 1)
    )


def expected_loss(loss, logits, matrices, truth):
    """The mean over all votes of all labelers on one item of class `truth`."""
    total = 0.0
    for votes in product(range(matrices.shape[2]), repeat=len(matrices)):
        chance = np.prod([matrices[r, truth, a] for r, a in enumerate(votes)])
        total += chance * loss(logits, torch.tensor([votes])).item()
    return total


@pytest.mark.parametrize("n_answers", [3, 4], ids=["classes", "abstention"])
@pytest.mark.parametrize("truth", [0, 1, 2])
def test_proxy_is_unbiased(truth, n_answers):
    rng = np.random.default_rng(0)
    matrices = 0.5 * np.eye(3, n_answers) + 0.5 * rng.dirichlet(np.ones(n_answers), size=(3, 3))
    logits = torch.tensor(rng.normal(size=(1, 3)))
    loss = ProxyLoss(matrices, prior=[0.5, 0.3, 0.2]).double()
    right = nn.CrossEntropyLoss()(logits, torch.tensor([truth])).item()
    assert expected_loss(loss, logits, matrices, truth) == pytest.approx(right, abs=1e-5)


def test_proxy_counts_labelers_by_what_they_say():
    # One vote each: the virtual label is the weighted mean of those of single votes.
    matrices = np.array([diagonal(0.9), diagonal(0.6), np.full((3, 3), 1 / 3)])
    single = [inverse_weights(m) for m in matrices[:2]]
    alpha = [1 / (w**2).sum() for w in single]
    virtual = (alpha[0] * single[0][1] + alpha[1] * single[1][2]) / sum(alpha)
    logits = torch.tensor([[0.3, -0.2, 1.0]], dtype=torch.float64)
    found = ProxyLoss(matrices)(logits, torch.tensor([[1, 2, 0]])).item()  # the third guesses and does not count
    assert found == pytest.approx(-(virtual * torch.log_softmax(logits, 1).numpy()[0]).sum(), rel=1e-5)
    assert alpha[0] > 3 * alpha[1]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["proxy", "weak", "sets"])
def test_gradients_are_those_of_finite_differences(kind, reduction):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(8, 3, generator=generator, dtype=torch.float64).requires_grad_()
    if kind == "proxy":
        loss = ProxyLoss(np.array([diagonal(0.7), diagonal(0.8)]), reduction=reduction)
        target = torch.randint(-1, 3, (8, 2), generator=generator)
    elif kind == "weak":
        loss = PartialLabelLoss(np.array([[0.7, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.7]]), reduction=reduction)
        target = torch.randint(-1, 3, (8,), generator=generator)
    else:
        loss = PartialLabelLoss.from_sets(3, extra=0.3, reduction=reduction)
        target = torch.rand(8, 3, generator=generator) < 0.5
    loss = loss.double()
    assert torch.autograd.gradcheck(lambda f: loss(f, target), (logits,))
    if reduction != "none":
        loss.floor = True
        assert torch.autograd.gradcheck(lambda f: loss(f, target), (logits,))
        assert loss(logits, target) >= 0


MIXING = np.array([[0.5, 0.0, 0.1], [0.0, 0.4, 0.1], [0.1, 0.1, 0.5], [0.4, 0.5, 0.3]])


@pytest.mark.parametrize("prior", [None, [0.5, 0.3, 0.2]], ids=["pseudo-inverse", "least-variance"])
def test_weak_labels_are_unbiased_and_proper(prior):
    loss = PartialLabelLoss(MIXING, prior=prior).double()
    np.testing.assert_allclose(loss.virtual[:4].T.numpy() @ MIXING, np.eye(3), atol=1e-6)
    logits = torch.tensor([[0.5, -1.0, 0.2]], dtype=torch.float64)
    seen = torch.cat([loss(logits, torch.tensor([z]))[None] for z in range(4)]).numpy()
    np.testing.assert_allclose(seen @ MIXING, -torch.log_softmax(logits, 1).numpy()[0], atol=1e-5)
    # Proper: the mean loss over weak labels is least at the true probabilities.
    truth = np.array([0.2, 0.5, 0.3])
    chances = torch.tensor(MIXING @ truth)

    def risk(q):
        return sum(p * loss(torch.log(q)[None], torch.tensor([z])) for z, p in enumerate(chances))

    free = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    search = torch.optim.LBFGS([free], max_iter=100, line_search_fn="strong_wolfe", tolerance_grad=1e-10)

    def closure():
        search.zero_grad()
        value = risk(torch.softmax(free, 0))
        value.backward()
        return value

    search.step(closure)
    np.testing.assert_allclose(torch.softmax(free, 0).detach().numpy(), truth, atol=1e-4)


def test_the_weighted_inverse_has_the_least_variance_and_sums_to_one():
    prior = np.array([0.5, 0.3, 0.2])
    frequencies = MIXING @ prior
    spread = []
    for weights in (None, prior):
        virtual = PartialLabelLoss(MIXING, prior=weights).virtual[:4].numpy()
        spread.append((frequencies * (virtual**2).sum(axis=1)).sum())
    np.testing.assert_allclose(virtual.sum(axis=1), 1, atol=1e-5)
    assert spread[1] < spread[0]


@pytest.mark.parametrize("hit", [1.0, 0.8])
def test_candidate_sets_are_unbiased(hit):
    extra = np.array([0.2, 0.3, 0.1])
    loss = PartialLabelLoss.from_sets(3, extra=extra, hit=hit).double()
    logits = torch.tensor([[0.5, -1.0, 0.2]], dtype=torch.float64)
    for truth in range(3):
        inside = np.where(np.arange(3) == truth, hit, extra)
        total = 0.0
        for members in product([False, True], repeat=3):
            chance = np.prod(np.where(members, inside, 1 - inside))
            virtual = loss.virtual_labels(torch.tensor([members]))
            assert virtual.sum().item() == pytest.approx(1)  # so the loss is convex in the logits
            total += chance * loss(logits, torch.tensor([members])).item()
        assert total == pytest.approx(-torch.log_softmax(logits, 1)[0, truth].item(), abs=1e-5)


def test_weak_labels_without_a_label_are_left_out():
    loss, logits = PartialLabelLoss(MIXING), torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(loss(logits, torch.tensor([1, -1, -1])), loss(logits[:1], torch.tensor([1])))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ProxyLoss(np.full((2, 3, 3), 1 / 3)), InvalidParameter, "can be inverted"),
        (lambda: ProxyLoss(np.eye(3)[None])(torch.zeros(2, 3), torch.zeros(2, 3)), InvalidLabels, "evidence"),
        (lambda: ProxyLoss(np.eye(3)[None], floor=True, reduction="none"), InvalidParameter, "floor"),
        (lambda: ProxyLoss(tu.noise.GLAD()), InvalidParameter, "GLAD"),
        (lambda: PartialLabelLoss(np.eye(3)[:2]), InvalidParameter, "(n_weak, n_classes)"),
        (lambda: PartialLabelLoss(np.full((3, 2), 1 / 3)), InvalidParameter, "tell the classes apart"),
        (lambda: PartialLabelLoss(np.eye(3) * 0.5), InvalidParameter, "sum to 1"),
        (lambda: PartialLabelLoss(np.eye(3))(torch.zeros(2, 3), torch.zeros(2, 3).bool()), InvalidLabels, "from_sets"),
        (lambda: PartialLabelLoss(np.eye(3))(torch.zeros(2, 3), torch.tensor([0, 3])), InvalidLabels, "and 2"),
        (lambda: PartialLabelLoss(np.eye(3))(torch.zeros(2, 3), torch.tensor([0])), InvalidLabels, "same items"),
        (
            lambda: PartialLabelLoss.from_sets(3, extra=0.1)(torch.zeros(2, 3), torch.zeros(2).long()),
            InvalidLabels,
            "boolean tensor of shape (batch, 3)",
        ),
        (lambda: PartialLabelLoss.from_sets(3, extra=1.0), InvalidParameter, "say nothing"),
        (lambda: PartialLabelLoss.from_sets(3, extra=1.2), InvalidParameter, "extra must hold probabilities"),
        (lambda: PartialLabelLoss(np.eye(2))(torch.zeros(2, 2), [0, 1]), InvalidLabels, "got list"),
        (lambda: PartialLabelLoss.from_sets(2, extra=0.1)(torch.zeros(2, 2), [[True]]), InvalidLabels, "got list"),
        (lambda: PartialLabelLoss("x"), InvalidParameter, "mixing must be numbers, got 'x'"),
        (lambda: PartialLabelLoss.from_sets(3, extra=[0.1, 0.2]), InvalidParameter, "extra must be a number or 3"),
        (lambda: PartialLabelLoss.from_sets(3, extra="x"), InvalidParameter, "extra must be a number or 3"),
        (lambda: PartialLabelLoss.from_sets(3, extra=0.5, hit=0.2), InvalidParameter, "likelier"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
