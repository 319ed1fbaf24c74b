"""VoteDataset: rows and votes belong together, whatever X is and however batches are fetched."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import sparse
from torch.utils.data import DataLoader

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.training.torch import MMSELoss, NoisyLikelihoodLoss, VoteDataset, Votes

KNOWN = tu.noise.Confusion([[[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]] * 3, prior=[0.5, 0.3, 0.2])
MATRIX = [[0, 1, -1], [1, 1, 1], [-1, -1, -1], [-1, 0, -1], [2, -1, 2]]


@pytest.fixture
def labels():
    with pytest.warns(tu.exceptions.DataWarning, match="1 of 5 items have no votes"):
        return tu.Labels.from_matrix(MATRIX)


def dense(votes, n_labelers=3):
    """Votes as a matrix of items by labelers again."""
    out = np.full((len(votes.answers), n_labelers), -1)
    item, place = np.nonzero(votes.labelers.numpy() >= 0)
    out[item, votes.labelers.numpy()[item, place]] = votes.answers.numpy()[item, place]
    return out.tolist()


def test_votes_come_with_their_rows(labels):
    X = np.arange(10.0).reshape(5, 2)
    data = VoteDataset(X, labels)
    assert len(data) == 4
    assert data.rows.tolist() == [0, 1, 3, 4]  # the item without votes is left out
    assert (data.n_classes, data.n_labelers, data.n_answers) == (3, 3, 3)
    x, votes = data[[0, 1, 2, 3]]
    assert x.tolist() == X[data.rows].tolist()
    assert dense(votes) == [MATRIX[i] for i in data.rows]
    x, votes = data[2]
    assert x.tolist() == [6.0, 7.0]
    assert votes.labelers.shape == (3,)
    assert x.dtype == torch.float32
    assert votes.answers.dtype == votes.labelers.dtype == torch.int64


@pytest.mark.parametrize(
    "make",
    [
        lambda X: X,
        lambda X: X.tolist(),
        torch.from_numpy,
        sparse.csr_array,
        sparse.coo_array,
        lambda X: pytest.importorskip("pandas").DataFrame(X, index=list("edcba")),
    ],
    ids=["array", "list", "tensor", "csr", "coo", "frame"],
)
def test_any_kind_of_rows(labels, make):
    X = np.arange(10.0).reshape(5, 2)
    for unlabelled in ("drop", "prior"):
        data = VoteDataset(make(X), labels, unlabelled=unlabelled)
        batches = [x for x, _ in data.loader(2, shuffle=False)]
        np.testing.assert_array_equal(torch.cat(batches), X[data.rows])
        assert data[0][0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("noise", [None, KNOWN], ids=["votes", "evidence"])
@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_agree(labels, noise, workers):
    data = VoteDataset(np.arange(5.0)[:, None], labels, noise=noise)
    usual = DataLoader(data, batch_size=3, num_workers=workers)
    for (x, target), (x_fast, fast) in zip(usual, data.loader(3, shuffle=False), strict=True):
        torch.testing.assert_close(x, x_fast)
        assert type(target) is type(fast)
        torch.testing.assert_close(target, fast)
    if noise is None:
        assert isinstance(fast, Votes)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_batches_go_to_the_gpu(labels):
    data = VoteDataset(np.arange(5.0)[:, None], labels)
    for x, votes in data.loader(2, shuffle=False, pin_memory=True):
        assert x.is_pinned()
        assert votes.answers.is_pinned()
        there = votes.to("cuda", non_blocking=True)
        assert isinstance(there, Votes)
        assert there.labelers.device.type == "cuda"
        logits = torch.zeros(len(x), 3, device="cuda")
        assert torch.isfinite(NoisyLikelihoodLoss(KNOWN.confusion_).to("cuda")(logits, there))


def test_gold_is_a_vote_of_the_oracle_or_certain_evidence(labels):
    labels = labels.with_gold({0: 2, 2: 0})
    X = np.zeros((5, 1))
    data = VoteDataset(X, labels)
    assert len(data) == 5  # what is known needs no vote
    assert data[0][1].labelers.tolist() == [0, 1, -2]
    assert data[0][1].answers.tolist() == [0, 1, 2]
    assert data[2][1].labelers.tolist() == [-2, -1, -1]
    certain = VoteDataset(X, labels, noise=KNOWN)
    assert certain[0][1].argmax() == 2
    assert torch.isfinite(certain[0][1]).all()
    everything, logits = list(range(5)), torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    noise = certain.noise_
    by_votes = MMSELoss(noise).beliefs(logits, data[everything][1])
    by_evidence = MMSELoss(prior=certain.prior).beliefs(logits, certain[everything][1])
    np.testing.assert_allclose(by_votes, noise.posterior(labels), atol=1e-5)
    np.testing.assert_allclose(by_evidence, noise.posterior(labels), atol=1e-5)


@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "glad", "majority"])
def test_evidence_of_any_noise_model(three_classes, name):
    X, labels, _ = three_classes
    data = VoteDataset(X, labels, noise=name)
    logits = torch.zeros(len(data), 3)
    beliefs = MMSELoss(prior=data.prior).beliefs(logits, data[list(range(len(data)))][1])
    np.testing.assert_allclose(beliefs, data.noise_.posterior(labels)[data.rows], atol=1e-4)
    assert (data.confusion is None) == (name == "glad")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda good: VoteDataset(np.zeros((4, 1)), good), InvalidLabels, "got 4 rows and 5 items"),
        (lambda good: VoteDataset(np.zeros((5, 1)), np.zeros(5)), InvalidLabels, "labels must be Labels"),
        (lambda good: VoteDataset(3.0, good), InvalidParameter, "must have rows"),
        (lambda good: VoteDataset(np.zeros((5, 1)), good, unlabelled="keep"), InvalidParameter, "unlabelled"),
        (lambda good: VoteDataset(np.zeros((5, 1)), good, noise="dawid"), InvalidParameter, "did you mean"),
        (
            lambda good: VoteDataset(np.zeros((2, 1)), tu.Labels.from_matrix([[0, 0], [1, 1]], classes=[0, 1, 2])),
            InvalidLabels,
            "every class needs a vote",
        ),
        (lambda good: VoteDataset(["one text"] * 5, good), InvalidParameter, "X must hold numbers"),
        (lambda good: VoteDataset(np.zeros((5, 1)), good).loader(0), InvalidParameter, "batch_size"),
    ],
)
def test_bad_input_is_said_in_one_sentence(labels, call, error, words):
    with pytest.raises(error) as caught:
        call(labels)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_torch_one_sentence_says_what_to_install():
    code = (
        "import sys, trueup.training\nsys.modules['torch'] = None\n"
        "try:\n    import trueup.training.torch\n"
        "except trueup.exceptions.MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "trueup.training.torch needs torch, which is not installed: pip install 'trueup[torch]'"
    )
