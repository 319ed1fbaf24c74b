"""What lies at the edges of the torch losses: the oracle, impossible votes, masked classes, types, empty batches."""

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.nn import functional

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import (
    CrowdLayer,
    MMSELoss,
    NoiseLayer,
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


# The oracle


@BY_VOTES
def test_a_labeler_who_is_not_known_is_not_the_oracle(loss):
    votes = Votes(torch.tensor([[0, 3]]), torch.tensor([[0, 1]]))
    with pytest.raises(InvalidLabels, match="labelers of votes must lie between -2"):
        loss(torch.zeros(1, 2), votes)
    with pytest.raises(InvalidLabels, match="got -3"):
        loss(torch.zeros(1, 2), Votes(torch.tensor([[0, -3]]), torch.tensor([[0, 1]])))


def test_a_model_of_fewer_labelers_does_not_read_the_votes_of_others():
    full = tu.Labels.from_matrix([[0, 0, 0, 1], [1, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]] * 5)
    noise = tu.noise.DawidSkene().fit(full.select(labelers=full.labelers[:3]))
    _, votes = VoteDataset(np.zeros((20, 1)), full)[:]
    with pytest.raises(InvalidLabels, match="labels="):
        MMSELoss(noise).beliefs(torch.zeros(20, 2), votes)
    found = MMSELoss(noise, labels=full).beliefs(torch.zeros(20, 2), votes)
    np.testing.assert_allclose(found, noise.posterior(full), atol=1e-5)


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


@pytest.mark.parametrize("half", [False, True], ids=["single", "half"])
def test_the_oracle_overrules_a_hundred_who_never_err(half):
    n = 100
    labels = tu.Labels.from_matrix([[0] * n, [1] * n, [0] * n], labelers=range(n)).with_gold({0: 1})
    sure = tu.noise.Confusion(np.eye(2))
    logits = torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]], requires_grad=True)
    _, votes = VoteDataset(np.zeros((3, 1)), labels)[[0, 1, 2]]
    assert votes.labelers[0, -1] == -2
    _, evidence = VoteDataset(np.zeros((3, 1)), labels, noise=sure)[[0, 1, 2]]
    truth = torch.tensor([1, 1, 0])
    expected = torch.eye(2)[truth]
    for target in (votes, evidence):
        loss = MMSELoss(sure, labels=labels)
        loss = loss.half() if half else loss
        torch.testing.assert_close(loss.beliefs(logits, target), expected, rtol=0, atol=1e-6)
        other = NoisyLikelihoodLoss(sure, labels=labels, reduction="sum")
        other = other.half() if half else other
        (slope,) = torch.autograd.grad(other(logits, target), logits)
        (wanted,) = torch.autograd.grad(functional.cross_entropy(logits, truth, reduction="sum"), logits)
        torch.testing.assert_close(slope, wanted, rtol=1e-5, atol=1e-6)
    floor = np.broadcast_to([[1 - 1e-10, 1e-10], [1e-10, 1 - 1e-10]], (1200, 2, 2))
    many = Votes(torch.tensor([[*range(1200), -2]]), torch.tensor([[0] * 1200 + [1]]))
    torch.testing.assert_close(MMSELoss(floor).beliefs(torch.zeros(1, 2), many), torch.tensor([[0.0, 1.0]]))


def test_proxy_takes_the_oracle_at_her_word_against_many_and_in_half_precision():
    votes = Votes(torch.tensor([[*range(100), -2]]), torch.tensor([[0] * 100 + [1]]))
    logits = torch.tensor([[1.0, 0.0]])
    expected = functional.cross_entropy(logits, torch.tensor([1]))
    loss = ProxyLoss(np.broadcast_to(np.eye(2), (100, 2, 2)))
    torch.testing.assert_close(loss(logits, votes), expected, rtol=0, atol=3e-4)
    few = Votes(torch.tensor([[0, -2]]), torch.tensor([[0, 1]]))
    torch.testing.assert_close(ProxyLoss(GOOD).half()(logits, few), expected, rtol=0, atol=2e-3)


# Many votes, impossible ones


def test_evidence_of_many_votes_is_not_flattened():
    rng = np.random.default_rng(0)
    votes = (rng.random((4, 1500)) < np.array([0.45, 0.55, 0.45, 0.55])[:, None]).astype(int)
    labels = tu.Labels.from_matrix(votes)
    noise = tu.noise.Confusion([[0.55, 0.45], [0.45, 0.55]])
    data = VoteDataset(np.zeros((4, 1)), labels, noise=noise)
    _, evidence = data[[0, 1, 2, 3]]
    assert evidence.amax(dim=1).tolist() == [0.0] * 4
    logs = noise.log_likelihood(labels)
    assert logs.max() < -1000
    found = MMSELoss(prior=data.prior).beliefs(torch.zeros(4, 2), evidence)
    np.testing.assert_allclose(found, noise.posterior(labels), atol=1e-5)
    assert found.max(dim=1).values.min() > 0.9


@pytest.mark.parametrize("level", [0.0, -2e4, 2e4])
def test_only_differences_of_evidence_count(level):
    logits = torch.tensor([[0.3, -0.7, 1.0]], requires_grad=True)
    evidence = torch.tensor([[-1.0, -3.0, -torch.inf]], dtype=torch.float64)
    p = torch.softmax(logits.detach(), 1)
    said = torch.exp(evidence).float()
    likelihood = NoisyLikelihoodLoss()(logits, evidence + level)
    torch.testing.assert_close(likelihood + level, -torch.log((p * said).sum()), rtol=0, atol=3e-3)
    (slope,) = torch.autograd.grad(likelihood, logits)
    torch.testing.assert_close(slope, p - p * said / (p * said).sum(), rtol=1e-5, atol=1e-6)
    expected = -(said / said.sum() * torch.log(p)).sum()
    torch.testing.assert_close(MMSELoss()(logits, evidence + level), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_evidence_that_leaves_no_class_is_an_error(kind, bad):
    with pytest.raises(InvalidLabels, match="a class that is possible"):
        kind()(torch.zeros(2, 2), torch.tensor([[0.0, 1.0], [bad, bad]]))


@pytest.mark.parametrize("gap", [10.0, 30.0, 60.0])
@pytest.mark.parametrize("kind", LOSSES)
def test_perfect_labelers_give_cross_entropy_however_wrong_the_network_is(kind, gap):
    truth = torch.tensor([1, 0])
    logits = torch.tensor([[gap, 0.0], [gap, 0.0]], requires_grad=True)
    expected = functional.cross_entropy(logits, truth)
    found = kind([np.eye(2)])(logits, truth)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    slopes = [torch.autograd.grad(value, logits)[0] for value in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-6, atol=1e-6)
    oracle = kind(GOOD)(logits, Votes(torch.tensor([[-2], [-2]]), truth[:, None]))
    torch.testing.assert_close(oracle, expected, rtol=1e-6, atol=1e-6)


# Masked classes


@pytest.mark.parametrize("joint", [False, True], ids=["single", "joint"])
def test_a_masked_class_is_out_of_the_likelihood(joint):
    matrix = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    logits = torch.tensor([[0.0, 1.0, -torch.inf]], requires_grad=True)
    p = np.array([1, np.e]) / (1 + np.e)
    expected = -np.log(p @ [0.1, 0.8])
    layer = CrowdLayer(1, 3, init=[matrix], trace_weight=0.0)
    target = torch.tensor([[1]])
    for value in (NoisyLikelihoodLoss([matrix])(logits, target), layer.loss(logits, target, joint=joint)):
        assert value.item() == pytest.approx(expected, abs=1e-5)
        (slope,) = torch.autograd.grad(value, logits, retain_graph=True)
        r = p * [0.1, 0.8] / (p @ [0.1, 0.8])
        np.testing.assert_allclose(slope, [[*(p - r), 0.0]], atol=1e-5)
    value.backward()
    assert torch.isfinite(layer.weight.grad).all()
    wide = CrowdLayer(1, 3, volume_weight=0.1)
    wide.loss(logits, target, joint=joint).backward()
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("make", [MMSELoss, ProxyLoss], ids=["mmse", "proxy"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_masked_class_nobody_believes_in_costs_nothing(make, reduction):
    logits = torch.tensor([[0.0, 1.0, -torch.inf]], requires_grad=True)
    truth = torch.tensor([1])
    expected = functional.cross_entropy(logits, truth, reduction=reduction)
    found = make([np.eye(3)], reduction=reduction)(logits, truth)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    slopes = [torch.autograd.grad(value.sum(), logits)[0] for value in (found, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-5)


# Types of integers, state, empty batches, vmap


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


def test_the_state_has_the_same_keys_whatever_the_prior():
    uniform, other = MMSELoss(GOOD), MMSELoss(GOOD, prior=[0.3, 0.7])
    uniform.load_state_dict(other.state_dict())
    logits, votes = torch.tensor([[1.0, 0.0]]), torch.tensor([[0, 1, -1]])
    assert uniform(logits, votes) == other(logits, votes)
    other.load_state_dict(MMSELoss(GOOD, prior=[0.5, 0.5]).state_dict())
    torch.testing.assert_close(other(logits, votes), MMSELoss(GOOD)(logits, votes))


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


@pytest.mark.parametrize("kind", LOSSES)
def test_vmap_takes_evidence(kind):
    logits, evidence = torch.zeros(5, 2), torch.arange(10.0).view(5, 2)
    found = torch.func.vmap(lambda f, e: kind()(f[None], e[None]))(logits, evidence)
    torch.testing.assert_close(found, kind(reduction="none")(logits, evidence))


def test_an_index_of_any_kind_gives_one_item():
    labels = tu.Labels.from_matrix([[0, 1], [1, 1], [0, 0]])
    X = np.arange(6.0).reshape(3, 2)
    for rows in (X, sparse.csr_matrix(X)):
        data = VoteDataset(rows, labels)
        for index in (1, np.int64(1), torch.tensor(1), np.array(1)):
            x, votes = data[index]
            assert x.tolist() == [2.0, 3.0]
            assert votes.answers.tolist() == [1, 1]
        assert data[torch.tensor([2, 0])][0].tolist() == [[4.0, 5.0], [0.0, 1.0]]


# Errors


FLAT, ZEROS = torch.zeros(2, 2), torch.zeros(2, 3, dtype=torch.long)
LABELS = tu.Labels.from_matrix([[0, 1], [1, 1]])


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
        (lambda: NoiseLayer(2)(FLAT.numpy()), InvalidParameter, "got ndarray"),
        (lambda: CrowdLayer(3, 2).loss(FLAT, ZEROS.tolist()), InvalidLabels, "got list"),
        (lambda: MMSELoss(GOOD)(FLAT, ZEROS.numpy()), InvalidLabels, "got ndarray"),
        (lambda: NoisyLikelihoodLoss()(FLAT, FLAT.numpy()), InvalidLabels, "got ndarray"),
        (lambda: MMSELoss(GOOD)(FLAT, ZEROS.to(torch.uint8) - 1), InvalidLabels, "got 255"),
        (lambda: PartialLabelLoss(np.eye(2))(FLAT, [0, 1]), InvalidLabels, "got list"),
        (lambda: PartialLabelLoss.from_sets(2, extra=0.1)(FLAT, [[True, False]]), InvalidLabels, "got list"),
        (lambda: PartialLabelLoss("x"), InvalidParameter, "mixing must be numbers, got 'x'"),
        (lambda: PartialLabelLoss.from_sets(3, extra=[0.1, 0.2]), InvalidParameter, "extra must be a number or 3"),
        (lambda: PartialLabelLoss.from_sets(3, extra="x"), InvalidParameter, "extra must be a number or 3"),
        (lambda: PartialLabelLoss.from_sets(3, extra=0.5, hit=0.2), InvalidParameter, "likelier"),
        (lambda: VoteDataset(["one text", "another"], LABELS), InvalidParameter, "X must hold numbers"),
        (lambda: MMSELoss(GOOD, labels="x"), InvalidLabels, "labels must be Labels, got str"),
        (lambda: CrowdLayer(3, 2, init=GOOD, labels="x"), InvalidLabels, "labels must be Labels, got str"),
        (lambda: NoiseLayer(2, init=[[2.0, 3.0], [1.0, 1.0]]), InvalidParameter, "sum to 1"),
        (lambda: NoiseLayer(2, init=[[-1.0, np.nan], [1.0, 1.0]]), InvalidParameter, "probabilities"),
        (lambda: NoiseLayer(2, init=[["a", "b"], ["c", "d"]]), InvalidParameter, "init must be numbers"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
