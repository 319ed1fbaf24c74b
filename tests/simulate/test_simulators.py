"""Simulators: the moments of their models, and dependence exactly where asked for."""

import itertools

import numpy as np
import pytest
from scipy import stats

from trueup.simulate import URKULLU_CASES, Simulation, dawid_skene, dependent, shared_difficulty, su, tars, urkullu
from trueup.simulate.papers import _bernoulli_positions, _draw_participation


def near(count: float, n: int, p: float) -> bool:
    """Whether a count is within five standard deviations of Binomial(n, p)."""
    return abs(count - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1e-9


def vote_array(data: Simulation) -> np.ndarray:
    item, labeler, vote, _ = data.labels.vote_table()
    votes = np.full((data.labels.n_items, data.labels.n_labelers), -1)
    votes[item, labeler] = vote
    return votes


def error_correlations(data: Simulation) -> np.ndarray:
    """Within class 0, of the errors of all raters, the classifier last."""
    of_class = data.truth == 0
    assert data.predictions is not None
    answers = np.column_stack([vote_array(data), data.predictions])
    return np.corrcoef((answers[of_class] != 0).T)


def test_dawid_skene_votes_follow_the_matrices() -> None:
    data = dawid_skene(
        n_items=60_000,
        n_classes=3,
        n_labelers=4,
        votes_per_item=3,
        prior=(0.5, 0.3, 0.2),
        accuracy_by="class",
        off_diagonal="random",
        random_state=0,
    )
    matrices, votes = data.parameters["confusion"], vote_array(data)
    np.testing.assert_allclose(matrices.sum(axis=-1), 1)
    diagonal = np.diagonal(matrices, axis1=1, axis2=2)
    assert ((diagonal >= 0.55) & (diagonal <= 0.95)).all()
    assert len(np.unique(diagonal)) == 12
    assert data.predictions is not None
    for c in range(3):
        assert near((data.truth == c).sum(), 60_000, data.parameters["prior"][c])
        predicted = data.predictions[data.truth == c]
        assert near((predicted == c).sum(), len(predicted), 0.8)
        assert near((predicted == (c + 1) % 3).sum(), len(predicted), 0.1)
        for t in range(4):
            mine = votes[data.truth == c, t]
            mine = mine[mine >= 0]
            for k in range(3):
                assert near((mine == k).sum(), len(mine), matrices[t, c, k])


def test_dawid_skene_labelers_are_a_random_subset_of_each_item() -> None:
    n = 60_000
    data = dawid_skene(n_items=n, n_labelers=5, votes_per_item=3, random_state=1)
    assert (data.labels.votes_per_item == 3).all()
    there = vote_array(data) >= 0
    code = there @ (1 << np.arange(5))
    for three in itertools.combinations(range(5), 3):
        assert near((code == sum(1 << t for t in three)).sum(), n, 1 / 10)


def test_dawid_skene_errors_are_independent_given_the_class() -> None:
    data = dawid_skene(n_items=60_000, random_state=2)
    between = error_correlations(data)[np.triu_indices(6, 1)]
    assert np.abs(between).max() < 5 / np.sqrt((data.truth == 0).sum())


def test_dependent_votes_follow_the_matrices() -> None:
    data = dependent(
        n_items=100_000,
        n_labelers=4,
        prior=(0.3, 0.3, 0.4),
        subtype_weights=[[0.7, 0.3], [0.5, 0.5], [1.0, 0.0]],
        subtype_accuracy=[[0.9, 0.4], [0.8, 0.6], [0.7, 0.7]],
        strength=20,
        families=[[0, 2]],
        copying=0.6,
        random_state=0,
    )
    parameters, votes = data.parameters, vote_array(data)
    np.testing.assert_allclose(parameters["pooled_confusion"][1, 1], [0.2, 0.6, 0.2])
    assert not (parameters["subtype"][data.truth == 2]).any()
    assert data.predictions is not None
    for c, s in itertools.product(range(3), range(2)):
        here = (data.truth == c) & (parameters["subtype"] == s)
        assert near(here.sum(), int((data.truth == c).sum()), parameters["subtype_weights"][c, s])
        for k in range(3):
            p = parameters["classifier_subtype_confusion"][c, s, k]
            assert near((data.predictions[here] == k).sum(), int(here.sum()), p)
            for t in range(4):
                assert near((votes[here, t] == k).sum(), int(here.sum()), parameters["subtype_confusion"][t, c, s, k])
    for c, t in itertools.product(range(3), range(4)):
        mine = votes[data.truth == c, t]
        assert near((mine == c).sum(), len(mine), parameters["confusion"][t, c, c])


def test_dependent_subtypes_correlate_all_raters() -> None:
    correlation = error_correlations(dependent(n_items=40_000, shared_difficulty=1.0, random_state=1))
    assert correlation[np.triu_indices(6, 1)].min() > 0.1


def test_dependent_families_correlate_their_members_only() -> None:
    data = dependent(
        n_items=40_000,
        subtype_weights=[1.0],
        subtype_accuracy=[0.8],
        strength=float("inf"),
        families=[[0, 1], [2, 3]],
        copying=(0.9, 0.5),
        random_state=3,
    )
    correlation = error_correlations(data)
    limit = 5 / np.sqrt((data.truth == 0).sum())
    # Members who copy with probability ρ and share all rates have error correlation ρ².
    assert correlation[0, 1] == pytest.approx(0.81, abs=limit)
    assert correlation[2, 3] == pytest.approx(0.25, abs=limit)
    others = [correlation[a, b] for a, b in itertools.combinations(range(6), 2) if (a, b) not in {(0, 1), (2, 3)}]
    assert np.abs(others).max() < limit


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.8, 0.95, 1.0])
def test_shared_difficulty_keeps_the_classifier_as_asked(share: float, accuracy: float) -> None:
    parameters = dependent(
        n_items=10,
        prior=(0.3, 0.3, 0.4),
        subtype_weights=(0.6, 0.3, 0.1),
        subtype_accuracy=(0.95, 0.6, 0.2),
        shared_difficulty=share,
        classifier_accuracy=accuracy,
    ).parameters
    by_subtype = parameters["classifier_subtype_confusion"]
    assert ((by_subtype >= 0) & (by_subtype <= 1)).all()
    np.testing.assert_allclose(by_subtype.sum(axis=-1), 1)
    mean = np.einsum("cs,csk->ck", parameters["subtype_weights"], by_subtype)
    np.testing.assert_allclose(mean, parameters["classifier_confusion"], atol=1e-12)


@pytest.mark.parametrize("prior", [(0.4, 0.6), (0.2, 0.3, 0.5)])
def test_shared_difficulty_keeps_the_accuracies_asked_for(prior: tuple[float, ...]) -> None:
    n = 60_000
    data = shared_difficulty(
        n_items=n, prior=prior, accuracy=[0.6, 0.75, 0.9], n_labelers=3, slope=[0.5, 1.5, 3.0], random_state=0
    )
    assert data.predictions is not None
    votes = vote_array(data)
    for t, accuracy in enumerate((0.6, 0.75, 0.9)):
        assert near((votes[:, t] == data.truth).sum(), n, accuracy)
    assert near((data.predictions == data.truth).sum(), n, 0.8)
    for c, share in enumerate(prior):
        here = data.truth == c
        assert near(here.sum(), n, share)
        following = (c + 1) % len(prior)
        expected = data.parameters["confusion"][2, c, following]
        assert near((votes[here, 2] == following).sum(), here.sum(), expected)


@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.2, 0.3, 0.5)])
def test_a_blind_spot_looks_like_another_class_to_everyone(prior: tuple[float, ...]) -> None:
    n = 60_000
    data = shared_difficulty(n_items=n, prior=prior, accuracy=0.9, slope=0.0, blind_spot=0.1, random_state=3)
    apparent, votes = data.parameters["apparent_class"], vote_array(data)
    blind = apparent != data.truth
    assert data.predictions is not None
    assert near(blind.sum(), n, 0.1)
    for answers in (*votes.T, data.predictions):
        level = 0.9 if answers is not data.predictions else 0.8
        assert near((answers[blind] == apparent[blind]).sum(), int(blind.sum()), level)
    matrix = data.parameters["confusion"][0]
    for c in range(len(prior)):
        here = data.truth == c
        assert near((votes[here, 0] == c).sum(), int(here.sum()), matrix[c, c])


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
