"""Su's, Urkullu's and TARS's simulators against the moments of their models."""

import numpy as np
import pytest
from scipy import stats

from trueup.simulate import URKULLU_CASES, su, tars, urkullu
from trueup.simulate.papers import _bernoulli_positions, _draw_participation


def near(count: float, n: int, p: float) -> bool:
    """Whether a count is within five standard deviations of Binomial(n, p)."""
    return abs(count - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9


def test_su_errors_follow_the_bilinear_law() -> None:
    prior, n = (0.2, 0.3, 0.5), 60_000
    data = su(
        n_items=n,
        n_labelers=3,
        prior=prior,
        classifier_confusion=[[0.7, 0.2, 0.1], [0.1, 0.9, 0.0], [0.3, 0.3, 0.4]],
        difficulty=0.3,
        fallibility=[0.0, 0.2, 1.0],
        participation=1.0,
        random_state=0,
    )
    item, labeler, vote, _ = data.labels.vote_table()
    assert data.labels.n_votes == 3 * n
    for t, phi in enumerate((0.0, 0.2, 1.0)):
        rate = (0.3 - 0.3 * phi + phi) * 2 / 3
        shift = (vote[labeler == t] - data.truth[item[labeler == t]]) % 3
        assert near((shift > 0).sum(), n, rate)
        assert near((shift == 1).sum(), n, rate / 2)
    for c in range(3):
        of_class = data.truth == c
        assert near(of_class.sum(), n, prior[c])
        assert data.predictions is not None
        for k in range(3):
            p = data.parameters["classifier_confusion"][c, k]
            assert near((data.predictions[of_class] == k).sum(), int(of_class.sum()), p)


def test_su_main_example() -> None:
    data = su(
        n_items=20_000,
        prior=(0.8, 0.2),
        difficulty=(1, 5),
        fallibility=(0, 0.4),
        operating_point=(0.8, 0.3),
        random_state=1,
    )
    assert data.predictions is not None
    positive = data.truth == 1
    assert near(data.predictions[positive].sum(), int(positive.sum()), 0.8)
    assert near(data.predictions[~positive].sum(), int((~positive).sum()), 0.3)
    delta, phi = data.parameters["difficulty"], data.parameters["fallibility"]
    assert delta.mean() == pytest.approx(1 / 6, abs=0.01)
    assert ((phi >= 0) & (phi <= 0.4)).all()
    assert data.labels.votes_per_item.min() >= 1
    item, labeler, vote, _ = data.labels.vote_table()
    expected = (delta[item] - delta[item] * phi[labeler] + phi[labeler]) / 2
    assert (vote != data.truth[item]).mean() == pytest.approx(expected.mean(), abs=0.01)


def test_su_participation_has_the_law_of_redrawing() -> None:
    eta, n = np.array([0.3, 0.0, 0.6, 0.05]), 200_000
    votes = _draw_participation(eta, n, np.random.default_rng(0))
    pattern = votes @ (1 << np.arange(4))
    somebody = 1 - np.prod(1 - eta)
    assert not (pattern == 0).any()
    for code in range(1, 16):
        bits = (code >> np.arange(4)) & 1
        assert near((pattern == code).sum(), n, np.prod(np.where(bits, eta, 1 - eta)) / somebody)


@pytest.mark.parametrize("case", URKULLU_CASES)
def test_urkullu_labelers(case: str) -> None:
    data = urkullu(labels_per_item=45, labels_per_labeler=3, case=case, n_classifiers=1, random_state=0)
    mean_tpr, mean_fpr = URKULLU_CASES[case]
    tpr, fpr = data.parameters["tpr"], data.parameters["fpr"]
    assert len(tpr) == data.labels.n_labelers == 15_000
    assert tpr.mean() == pytest.approx(mean_tpr, abs=0.005)
    assert fpr.mean() == pytest.approx(mean_fpr, abs=0.005)
    assert ((tpr >= 0.5) & (fpr <= 0.5)).all()
    assert data.labels.votes_per_item.mean() == pytest.approx(45, abs=1)
    item, labeler, vote, _ = data.labels.vote_table()
    p = data.parameters["probability"][item]
    chance = p * tpr[labeler] + (1 - p) * fpr[labeler]
    assert abs((vote - chance).sum()) <= 5 * np.sqrt((chance * (1 - chance)).sum())
    assert np.cov(vote, chance)[0, 1] == pytest.approx(chance.var(), rel=0.25)


def test_urkullu_average_case_has_the_regions_of_figure_8() -> None:
    data = urkullu(labels_per_item=45, labels_per_labeler=3, n_classifiers=1, random_state=1)
    third_t = np.minimum((data.parameters["tpr"] - 0.5) * 6, 2.999).astype(int)
    third_f = np.minimum((0.5 - data.parameters["fpr"]) * 6, 2.999).astype(int)
    share = np.bincount(third_t * 3 + third_f, minlength=9).reshape(3, 3) / 15_000
    figure = [[0.166, 0.196, 0.045], [0.196, 0.232, 0.053], [0.045, 0.053, 0.012]]
    np.testing.assert_allclose(share, figure, atol=0.015)


@pytest.mark.parametrize("chance", [0.001, 0.2, 0.97, 1.0])
def test_bernoulli_positions(chance: float) -> None:
    n = 50_000
    where = _bernoulli_positions(n, chance, np.random.default_rng(0))
    assert near(len(where), n, chance)
    assert (np.diff(where) > 0).all()
    assert where.min() >= 0
    assert where.max() < n
    assert near((where < n // 2).sum(), n // 2, chance)


def test_tars_as_printed() -> None:
    n = 100_000
    data = tars(n_items=n, n_labelers=3, noise_rates=(0.2, 0.1), random_state=0)
    assert data.features is not None
    assert data.scores is not None
    assert near(data.accuracy * n, n, float(stats.norm.cdf(0.5)))
    for c, rate in ((0, 0.2), (1, 0.1)):
        of_class = data.truth == c
        np.testing.assert_allclose(data.features[of_class].mean(axis=0), [c, 0], atol=0.03)
        np.testing.assert_allclose(np.cov(data.features[of_class].T), np.eye(2), atol=0.03)
        item, _, vote, _ = data.labels.vote_table()
        mine = vote[of_class[item]]
        assert near((mine != c).sum(), len(mine), rate)
    np.testing.assert_allclose(data.scores[0], 1 / (1 + np.exp(0.5 - data.features[:, 0])), rtol=1e-9)


def test_tars_workers_and_many_classes() -> None:
    matrices = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3))
    data = tars(
        n_items=40_000,
        n_labelers=4,
        votes_per_item=2,
        prior=(0.5, 0.3, 0.2),
        means=[[0.0], [2.0], [5.0]],
        scale=[[1.0], [0.5], [2.0]],
        confusion=matrices,
        random_state=0,
    )
    assert data.scores is None
    assert (data.labels.votes_per_item == 2).all()
    item, labeler, vote, _ = data.labels.vote_table()
    for t in range(4):
        for c in range(3):
            mine = vote[(labeler == t) & (data.truth[item] == c)]
            for k in range(3):
                assert near((mine == k).sum(), len(mine), matrices[t, c, k])
    posterior = data.parameters["posterior"]
    np.testing.assert_allclose(posterior.mean(axis=0), [0.5, 0.3, 0.2], atol=0.01)
    assert posterior.max(axis=1).mean() == pytest.approx(data.accuracy, abs=0.01)
