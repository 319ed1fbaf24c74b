"""Votes as a target: who may have voted, whole numbers of any type, empty batches, single items, what is refused."""

import numpy as np
import pytest
import torch

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import (
    CrowdLayer,
    MMSELoss,
    NoisyLikelihoodLoss,
    PartialLabelLoss,
    ProxyLoss,
    VoteDataset,
    Votes,
)

GOOD = np.array([[[0.8, 0.2], [0.2, 0.8]]] * 3)
LOSSES = [MMSELoss, NoisyLikelihoodLoss]
VOTE_LOSSES = {
    "mmse": MMSELoss(GOOD),
    "likelihood": NoisyLikelihoodLoss(GOOD),
    "proxy": ProxyLoss(GOOD),
    "crowd": CrowdLayer(3, 2).loss,
    "joint": lambda f, z: CrowdLayer(3, 2, volume_weight=0.1).loss(f, z, joint=True),
}
BY_VOTES = pytest.mark.parametrize("loss", list(VOTE_LOSSES.values()), ids=list(VOTE_LOSSES))
FLAT, ZEROS = torch.zeros(2, 2), torch.zeros(2, 3, dtype=torch.long)


def test_another_order_of_classes_is_an_error_and_of_labelers_is_not():
    votes = [["n", "n", "y"], ["y", "y", "y"], ["n", "n", "n"], ["y", "n", "y"]] * 5
    labels = tu.Labels.from_matrix(votes, classes=["n", "y"], labelers=["a", "b", "c"])
    noise = tu.noise.DawidSkene().fit(labels)
    turned = tu.Labels.from_matrix(votes, classes=["y", "n"], labelers=["a", "b", "c"])
    for make in (
        lambda: MMSELoss(noise, labels=turned),
        lambda: NoisyLikelihoodLoss(noise, labels=turned),
        lambda: ProxyLoss(noise, labels=turned),
        lambda: CrowdLayer(3, 2, init=noise, labels=turned),
        lambda: VoteDataset(np.zeros((20, 1)), turned, noise=noise),
    ):
        with pytest.raises(tu.exceptions.TrueupError, match="class"):
            make()
    mixed = tu.Labels.from_matrix([row[::-1] for row in votes], classes=["n", "y"], labelers=["c", "b", "a"])
    _, target = VoteDataset(np.zeros((20, 1)), mixed)[:]
    found = MMSELoss(noise, labels=mixed).beliefs(torch.zeros(20, 2), target)
    np.testing.assert_allclose(found, noise.posterior(labels), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32], ids=str)
@BY_VOTES
def test_integers_of_any_length_are_votes(loss, dtype):
    logits = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]])  # as many as labelers: a mask would fit too
    votes = torch.tensor([[0, 0, 1], [1, 1, 0], [1, 0, 0]])
    expected = loss(logits, votes)
    torch.testing.assert_close(loss(logits, votes.to(dtype)), expected)
    pairs = Votes.from_matrix(votes)
    torch.testing.assert_close(loss(logits, Votes(*(part.to(dtype) for part in pairs))), expected)
    weak = PartialLabelLoss(GOOD[0])
    torch.testing.assert_close(weak(logits, votes[:, 0].to(dtype)), weak(logits, votes[:, 0]))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_an_empty_batch_costs_nothing(reduction):
    logits = torch.zeros(0, 2, requires_grad=True)
    votes, evidence = torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 2)
    layer = CrowdLayer(3, 2, volume_weight=0.1)
    found = [
        *(kind(GOOD, reduction=reduction)(logits, target) for kind in LOSSES for target in (votes, evidence)),
        ProxyLoss(GOOD, reduction=reduction)(logits, votes),
        PartialLabelLoss(GOOD[0], reduction=reduction)(logits, votes[:, 0]),
        PartialLabelLoss.from_sets(2, extra=0.3, reduction=reduction)(logits, evidence > 0),
        *(layer.loss(logits, votes, joint=joint, reduction=reduction) for joint in (False, True)),
    ]
    for value in found:
        assert value.shape == ((0,) if reduction == "none" else ())
        assert reduction == "none" or value.item() == 0
        value.sum().backward()
    assert torch.isfinite(layer.weight.grad).all()


@BY_VOTES
def test_gradients_of_single_items_come_from_vmap(loss):
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(4, 2, generator=generator), torch.randn(6, 4, generator=generator)
    votes = torch.randint(0, 2, (6, 3), generator=generator)

    def of_one(w, row, said):
        return loss((row @ w)[None], said[None])

    found = torch.func.vmap(torch.func.grad(of_one), in_dims=(None, 0, 0))(weight, x, votes)
    each = torch.stack([torch.func.grad(of_one)(weight, row, said) for row, said in zip(x, votes, strict=True)])
    torch.testing.assert_close(found, each)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: MMSELoss(GOOD)(FLAT, Votes(ZEROS.float(), ZEROS)), InvalidLabels, "tensor of float32"),
        (lambda: MMSELoss(GOOD)(FLAT, Votes(ZEROS, ZEROS > 0)), InvalidLabels, "tensor of bool"),
        (lambda: MMSELoss(GOOD)(FLAT, Votes([[0]], [[1]])), InvalidLabels, "list"),
        (lambda: MMSELoss(GOOD)(FLAT, Votes(ZEROS, ZEROS[:, :2])), InvalidLabels, "(2, 3) and (2, 2)"),
        (lambda: MMSELoss(GOOD)(FLAT[:1], Votes(ZEROS[0], ZEROS[0])), InvalidLabels, "(batch, width)"),
        (lambda: MMSELoss(GOOD)(FLAT.numpy(), ZEROS), InvalidParameter, "got ndarray"),
        (lambda: MMSELoss(GOOD)(FLAT.tolist(), ZEROS), InvalidParameter, "got list"),
        (lambda: MMSELoss(GOOD)(FLAT.long(), ZEROS), InvalidParameter, "tensor of int64"),
        (lambda: CrowdLayer(3, 2).loss(FLAT, ZEROS.tolist()), InvalidLabels, "got list"),
        (lambda: MMSELoss(GOOD)(FLAT, ZEROS.numpy()), InvalidLabels, "got ndarray"),
        (lambda: NoisyLikelihoodLoss()(FLAT, FLAT.numpy()), InvalidLabels, "got ndarray"),
        (lambda: MMSELoss(GOOD)(FLAT, ZEROS.to(torch.uint8) - 1), InvalidLabels, "got 255"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
