"""`dawid_skene`, `dependent` and `shared_difficulty`: the right moments, and dependence exactly where asked for."""

import itertools

import numpy as np
import pytest

from trueup.simulate import Simulation, dawid_skene, dependent, shared_difficulty


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
