"""NoiseLayer and CrowdLayer: gradients, special cases, and what regularisation recovers."""

import numpy as np
import pytest
import torch
from torch import nn

from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import CrowdLayer, NoiseLayer, Votes

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")),
]


def drawn(*, n_answers=3, n_labelers=4, seed=0):
    rng = np.random.default_rng(seed)
    matrices = rng.dirichlet(np.full(n_answers, 3.0), size=(n_labelers, 3))
    votes = rng.integers(-1, n_answers, size=(10, n_labelers))
    votes[1] = -1
    return matrices, torch.tensor(rng.normal(size=(10, 3))), torch.tensor(votes)


def test_noise_layer_mixes_by_its_matrix():
    matrices, logits, _ = drawn(n_answers=4)
    layer = NoiseLayer(3, 4, init=matrices[0])
    expected = torch.softmax(logits, 1) @ torch.tensor(matrices[0])
    torch.testing.assert_close(layer(logits.float()).exp(), expected.float(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer.matrix, torch.tensor(matrices[0]).float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("n_answers", [3, 4])
def test_gradients_are_those_of_finite_differences(joint, n_answers):
    matrices, logits, votes = drawn(n_answers=n_answers)
    layer = CrowdLayer(4, 3, n_answers, init=matrices, trace_weight=0.3, volume_weight=0.2).double()
    weight, logits = layer.weight.detach().clone().requires_grad_(), logits.requires_grad_()

    def value(f, w, reduction):
        return torch.func.functional_call(_Loss(layer), {"layer.weight": w}, (f, votes, joint, reduction))

    for reduction in ("mean", "sum", "none"):
        assert torch.autograd.gradcheck(lambda f, w, how=reduction: value(f, w, how), (logits, weight))
    for module in (layer, NoiseLayer(3, n_answers, trace_weight=0.2).double()):
        start = module.weight.detach().clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda f, w, of=module: torch.func.functional_call(of, {"weight": w}, (f,)), (logits, start)
        )


class _Loss(nn.Module):
    """`CrowdLayer.loss` as a module, so that its parameters can be replaced."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, logits, votes, joint, reduction):
        return self.layer.loss(logits, votes, joint=joint, reduction=reduction)


@pytest.mark.parametrize("device", DEVICES)
def test_crowd_layer_by_loops(device):
    matrices, logits, votes = drawn(n_answers=4)
    layer = CrowdLayer(4, 3, 4, init=matrices, trace_weight=0.0).to(device)
    chances = torch.softmax(logits, 1).numpy()
    said = np.einsum("iy,rya->ira", chances, matrices)
    each, joint = np.zeros(10), np.zeros(10)
    for i, row in enumerate(votes.tolist()):
        product = chances[i].copy()
        for labeler, answer in enumerate(row):
            if answer >= 0:
                each[i] -= np.log(said[i, labeler, answer])
                product *= matrices[labeler, :, answer]
        joint[i] = -np.log(product.sum())
    scores = logits.float().to(device)
    np.testing.assert_allclose(layer(scores).exp().detach().cpu(), said, rtol=1e-4)
    for target in (votes.to(device), Votes.from_matrix(votes).to(device)):
        for expected, how in ((each, False), (joint, True)):
            found = layer.loss(scores, target, joint=how, reduction="none").detach().cpu().numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
            assert layer.loss(scores, target, joint=how).item() == pytest.approx(expected.mean(), rel=1e-4)
            assert layer.loss(scores, target, joint=how, reduction="sum").item() == pytest.approx(
                expected.sum(), rel=1e-4
            )


def test_the_penalty_is_the_mean_trace():
    matrices, logits, votes = drawn(n_answers=4)
    plain, punished = (CrowdLayer(4, 3, 4, init=matrices, trace_weight=w) for w in (0.0, 0.5))
    trace = np.trace(matrices, axis1=1, axis2=2).mean()
    assert punished.penalty().item() == pytest.approx(0.5 * trace, rel=1e-5)
    for joint in (False, True):
        values = [layer.loss(logits.float(), votes, joint=joint).item() for layer in (plain, punished)]
        assert values[1] - values[0] == pytest.approx(0.5 * trace, rel=1e-4)
        values = [layer.loss(logits.float(), votes, joint=joint, reduction="sum").item() for layer in (plain, punished)]
        assert values[1] - values[0] == pytest.approx(10 * 0.5 * trace, rel=1e-4)
    assert (
        NoiseLayer(3, init=matrices[0][:, :3] / matrices[0][:, :3].sum(1, keepdims=True), trace_weight=2.0).penalty()
        > 0
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_volume_is_that_of_the_predictions(reduction):
    matrices, logits, votes = drawn()
    plain, wide = (CrowdLayer(4, 3, init=matrices, volume_weight=v).double() for v in (0.0, 0.7))
    difference = plain.loss(logits, votes, reduction=reduction) - wide.loss(logits, votes, reduction=reduction)
    chances = torch.softmax(logits, 1).numpy()
    expected = 0.7 * np.linalg.slogdet(chances.T @ chances / 10 + 0.01 * np.eye(3))[1]
    times = {"mean": 1, "sum": 10, "none": 0}[reduction]
    torch.testing.assert_close(difference, torch.full_like(difference, times * expected))


def test_the_oracle_teaches_the_network_and_the_labelers():
    layer = CrowdLayer(1, 2, init=0.7, trace_weight=0.0)
    logits = torch.zeros(1, 2, requires_grad=True)
    votes = Votes(torch.tensor([[0, -2]]), torch.tensor([[0, 1]]))  # the labeler says 0, the oracle 1
    layer.loss(logits, votes, joint=True).backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[0.5, -0.5]]), rtol=1e-4, atol=1e-4)
    slope = layer.weight.grad[0]  # (answers, classes): only what the labeler does with a 1 is learned
    assert slope[0, 1] < 0 < slope[1, 1]
    assert slope[:, 0].abs().max() < 1e-4


@pytest.mark.parametrize("device", DEVICES)
def test_autocast_and_compilation(device):
    matrices, logits, votes = drawn()
    layer = CrowdLayer(4, 3, init=matrices, volume_weight=0.2).to(device)
    noise = NoiseLayer(3, init=matrices[0]).to(device)
    scores, target = logits.float().to(device), Votes.from_matrix(votes).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        half = [layer.loss(scores.bfloat16(), target), layer(scores.bfloat16()), noise(scores.bfloat16())]
    full = [layer.loss(scores, target), layer(scores), noise(scores)]
    for found, expected in zip(half, full, strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)
    for call, arguments in ((layer.loss, (scores, target)), (layer, (scores,)), (noise, (scores,))):
        torch._dynamo.reset()
        torch.testing.assert_close(
            torch.compile(call, backend="aot_eager", fullgraph=True)(*arguments), call(*arguments)
        )


def trained(loss, parameters, *, steps=200, rate=0.1):
    optimiser = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()


@pytest.fixture(scope="module")
def cells():
    """Items of three kinds, each of one class, with a vote or two of four labelers who are right 7 times in 10."""
    rng = np.random.default_rng(0)
    matrices = np.array([np.full((3, 3), 0.15) + np.eye(3) * 0.55] * 4)
    truth = rng.integers(3, size=1200)
    votes = np.array([[rng.choice(3, p=matrices[r, y]) for r in range(4)] for y in truth])
    votes[rng.random(votes.shape) < 0.6] = -1
    # What the truth would tell of them: the matrices of these very votes.
    counts = np.array(
        [[[np.sum((votes[:, r] == a) & (truth == y)) for a in range(3)] for y in range(3)] for r in range(4)]
    )
    return truth, torch.tensor(votes), counts / counts.sum(axis=2, keepdims=True)


def test_the_trace_recovers_matrices_from_a_start_that_trusts_too_much(cells):
    # The likelihood of single votes leaves open whether the network or the labelers doubt: p(y|x) A is all that shows.
    truth, votes, matrices = cells
    x, target = torch.tensor(truth), Votes.from_matrix(votes)
    errors, sure = [], []
    for weight in (0.0, 0.1):
        network, layer = nn.Embedding(3, 3), CrowdLayer(4, 3, init=0.95, trace_weight=weight)
        nn.init.zeros_(network.weight)
        parameters = [*network.parameters(), *layer.parameters()]
        trained(lambda net=network, crowd=layer: crowd.loss(net(x), target), parameters)
        errors.append(np.abs(layer.matrices.detach().numpy() - matrices).mean())
        sure.append(torch.softmax(network.weight, 1).diagonal().mean().item())
    assert errors[1] < 0.03 < 0.06 < errors[0]
    assert sure[1] > 0.95 > 0.85 > sure[0]


def test_the_noise_layer_takes_the_noise_from_the_network(cells):
    truth, votes, matrices = cells
    given = votes[:, 0] >= 0
    x, noisy = torch.tensor(truth)[given], votes[given, 0]
    network, layer = nn.Embedding(3, 3), NoiseLayer(3, trace_weight=0.1)
    nn.init.zeros_(network.weight)
    trained(
        lambda: nn.functional.nll_loss(layer(network(x)), noisy) + layer.penalty(),
        [*network.parameters(), *layer.parameters()],
    )
    np.testing.assert_allclose(layer.matrix.detach(), matrices[0], atol=0.03)
    assert torch.softmax(network.weight, 1).diagonal().min() > 0.95


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: CrowdLayer(0, 3), InvalidParameter, "n_labelers"),
        (lambda: CrowdLayer(2, 3, 2), InvalidParameter, "n_answers"),
        (lambda: CrowdLayer(2, 3, init=0.2), InvalidParameter, "`init` must be a number"),
        (lambda: CrowdLayer(2, 3, init=np.full((4, 3, 3), 1 / 3)), InvalidParameter, "(2, 3, 3)"),
        (lambda: CrowdLayer(2, 3, trace_weight=-1.0), InvalidParameter, "trace_weight"),
        (lambda: CrowdLayer(2, 3).loss(torch.zeros(2, 3), torch.zeros(2, 3)), InvalidLabels, "got a tensor of float32"),
        (lambda: CrowdLayer(2, 3).loss(torch.zeros(2, 3), torch.zeros(3, 2).long()), InvalidLabels, "same items"),
        (lambda: CrowdLayer(2, 3)(torch.zeros(2, 4)), InvalidParameter, "(batch, 3)"),
        (lambda: NoiseLayer(3, dropout=1.5), InvalidParameter, "dropout"),
        (lambda: NoiseLayer(3, init=np.eye(2)), InvalidParameter, "(3, 3)"),
        (lambda: NoiseLayer(3, init=1.0), InvalidParameter, "init"),
        (lambda: NoiseLayer(2)(torch.zeros(2, 2).numpy()), InvalidParameter, "got ndarray"),
        (
            lambda: CrowdLayer(3, 2, init=np.full((3, 2, 2), 0.5), labels="x"),
            InvalidLabels,
            "labels must be Labels, got str",
        ),
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
