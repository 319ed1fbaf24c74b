"""MMSELoss and NoisyLikelihoodLoss: gradients, special cases, every form a target may have, precision, compilation."""

import numpy as np
import pytest
import torch
from torch.nn import functional

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import MMSELoss, NoisyLikelihoodLoss, VoteDataset, Votes

GOOD = np.array([[[0.8, 0.2], [0.2, 0.8]]] * 3)

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")),
]
LOSSES = [MMSELoss, NoisyLikelihoodLoss]


def drawn(*, n_items=12, n_labelers=5, n_classes=3, n_answers=3, seed=0):
    """Matrices, a prior, logits in double precision and votes with gaps; the second item has no vote at all."""
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.ones(n_answers), size=(n_labelers, n_classes))
    prior = rng.dirichlet(np.full(n_classes, 5.0))
    votes = rng.integers(n_answers, size=(n_items, n_labelers))
    votes[rng.random(votes.shape) < 0.4] = -1
    votes[1] = -1
    logits = torch.tensor(rng.normal(size=(n_items, n_classes)) * 2, requires_grad=True)
    return matrices, prior, logits, torch.tensor(votes)


def likelihoods(matrices, votes):
    """P(votes | class) by loops."""
    out = np.ones((len(votes), matrices.shape[1]))
    for i, row in enumerate(votes.tolist()):
        for labeler, answer in enumerate(row):
            if answer >= 0:
                out[i] *= matrices[labeler, :, answer]
    return out


def made(kind, matrices, prior=None, **options):
    return kind(matrices, prior=prior, **options) if kind is MMSELoss else kind(matrices, **options)


def test_values_are_those_of_the_formulas():
    matrices, prior, logits, votes = drawn(n_answers=4)
    chances = torch.softmax(logits, 1).detach().numpy()
    said = likelihoods(matrices, votes)
    posterior = prior * said / (prior * said).sum(axis=1, keepdims=True)
    mmse = MMSELoss(matrices, prior=prior, reduction="none")(logits, votes).detach().numpy()
    np.testing.assert_allclose(mmse, -(posterior * np.log(chances)).sum(axis=1), rtol=1e-6)
    likelihood = NoisyLikelihoodLoss(matrices, reduction="none")(logits, votes).detach().numpy()
    np.testing.assert_allclose(likelihood, -np.log((chances * said).sum(axis=1)), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("form", ["votes", "matrix", "evidence"])
def test_gradients_are_those_of_finite_differences(kind, reduction, form):
    matrices, prior, logits, votes = drawn()
    loss = made(kind, matrices, prior, reduction=reduction).double()
    target = {
        "votes": Votes.from_matrix(votes),
        "matrix": votes,
        "evidence": torch.tensor(np.log(likelihoods(matrices, votes))),
    }[form]
    assert torch.autograd.gradcheck(lambda f: loss(f, target), (logits,))
    assert torch.autograd.gradgradcheck(lambda f: loss(f, target), (logits,))


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("device", DEVICES)
def test_every_form_of_the_target_gives_the_same(kind, device):
    matrices, prior, logits, votes = drawn()
    logits = logits.detach().float().to(device)
    loss = made(kind, matrices, prior).to(device)
    evidence = torch.tensor(np.log(likelihoods(matrices, votes)), dtype=torch.float32)
    narrow = Votes.from_matrix(votes)
    mixed = Votes(torch.arange(5).expand(12, 5), votes)  # a labeler may be named who did not vote
    found = [loss(logits, target.to(device)).item() for target in (votes, narrow, mixed, evidence)]
    np.testing.assert_allclose(found, found[0], rtol=1e-5)
    order = torch.argsort(torch.rand(narrow.answers.shape, generator=torch.Generator().manual_seed(0)), dim=1)
    shuffled = Votes(narrow.labelers.gather(1, order), narrow.answers.gather(1, order))
    np.testing.assert_allclose(loss(logits, shuffled.to(device)).item(), found[0], rtol=1e-5)


@pytest.mark.parametrize("kind", LOSSES)
def test_reductions_agree(kind):
    matrices, prior, logits, votes = drawn()
    each, total, mean = (made(kind, matrices, prior, reduction=r)(logits, votes) for r in ("none", "sum", "mean"))
    assert each.shape == (12,)
    torch.testing.assert_close(each.sum(), total)
    torch.testing.assert_close(each.mean(), mean)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e4])
def test_extreme_logits_and_impossible_votes_stay_finite(kind, scale):
    certain = np.broadcast_to(np.eye(3), (6, 3, 3))
    votes = torch.tensor([[0, 1, 2, 0, 1, 2], [0, 0, 0, 0, 0, 0], [-1] * 6, [2, 2, 2, 2, 2, 1]])  # contradictions too
    logits = torch.tensor([[1.0, 0.0, -1.0]] * 4, requires_grad=True)
    value = kind(certain)(logits * scale, votes)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("device", DEVICES)
def test_autocast_is_close_to_single_precision(kind, device):
    matrices, prior, _, votes = drawn(n_items=200)
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(8, 3, generator=generator).to(device)
    x = torch.randn(200, 8, generator=generator).to(device)
    loss, votes = made(kind, matrices, prior).to(device), votes.to(device)
    plain = loss(x @ weight, votes)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = x @ weight
        assert logits.dtype == torch.bfloat16
        found = loss(logits, votes)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("form", ["votes", "evidence"])
def test_it_compiles_in_one_graph(kind, form):
    matrices, prior, logits, votes = drawn()
    logits = logits.detach().float().requires_grad_()
    loss = made(kind, matrices, prior)
    target = Votes.from_matrix(votes) if form == "votes" else torch.randn(12, 3)
    expected = loss(logits, target)
    (slope,) = torch.autograd.grad(expected, logits)
    torch._dynamo.reset()
    found = torch.compile(loss, backend="aot_eager", fullgraph=True)(logits, target)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, logits)[0], slope)


MATRICES = np.full((2, 3, 3), 1 / 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 4), torch.zeros(2, 2).long()), InvalidParameter, "(batch, 3)"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3, 4), torch.zeros(2, 2).long()), InvalidParameter, "(batch, 3)"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.zeros(2, 5).long()), InvalidLabels, "(batch, 2)"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.zeros(3, 2).long()), InvalidLabels, "same items"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.zeros(2).long()), InvalidLabels, "(batch, 2)"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.zeros(2, 2)), InvalidLabels, "evidence must have"),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), [[0, 1], [1, 1]]), InvalidLabels, "got list"),
        (
            lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.full((2, 2), 3)),
            InvalidLabels,
            "between -1 (none) and 2",
        ),
        (lambda: MMSELoss(MATRICES)(torch.zeros(2, 3), torch.full((2, 2), -2)), InvalidLabels, "got -2"),
        (
            lambda: MMSELoss(MATRICES)(torch.zeros(1, 3), Votes(torch.tensor([[7]]), torch.tensor([[0]]))),
            InvalidLabels,
            "labelers of votes",
        ),
        (lambda: NoisyLikelihoodLoss()(torch.zeros(2, 3), torch.zeros(2, 2).long()), InvalidParameter, "noise model"),
        (lambda: MMSELoss(MATRICES, reduction="average"), InvalidParameter, "reduction"),
        (lambda: MMSELoss(MATRICES, prior=[0.5, 0.5]), InvalidParameter, "prior must have 3"),
        (lambda: MMSELoss(MATRICES + 0.1), InvalidParameter, "sum to 1"),
        (lambda: MMSELoss(tu.noise.GLAD()), InvalidParameter, "VoteDataset"),
        (lambda: MMSELoss(tu.noise.Majority()), InvalidParameter, "VoteDataset"),
        (lambda: MMSELoss(tu.noise.DawidSkene()), InvalidParameter, "fit"),
        (lambda: MMSELoss(tu.noise.Confusion(MATRICES[0])), InvalidParameter, "labels="),
        (lambda: Votes.from_matrix(torch.zeros(2, 3)), InvalidLabels, "integer tensor"),
        (lambda: MMSELoss(GOOD, labels="x"), InvalidLabels, "labels must be Labels, got str"),
    ],
)
def test_bad_input_is_said_in_one_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


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
