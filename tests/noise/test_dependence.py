"""What votes cannot tell, and whether labelers err together."""

import numpy as np
import pytest

from trueup import Labels, noise, simulate
from trueup.exceptions import IdentifiabilityWarning, InvalidParameter

# ---------------------------------------------------------------------- identifiability


@pytest.fixture(scope="module")
def two():
    return simulate.dawid_skene(n_items=100, n_labelers=2, random_state=0)


@pytest.mark.parametrize("make", [noise.DawidSkene, noise.OneCoin, noise.GLAD, noise.Difficulty])
def test_two_labelers_are_not_enough(two, make):
    with pytest.warns(IdentifiabilityWarning, match="no item has more than 2 votes.*labels.with_gold") as caught:
        make(tol=1e-3).fit(two.labels)
    assert str(caught[0].message).startswith(make.__name__)
    assert len(caught) == 1


def test_subtypes_warns_once(two):
    with pytest.warns(IdentifiabilityWarning, match="Subtypes: no item has more than 2 votes") as caught:
        noise.Subtypes().fit(two.labels)
    assert len(caught) == 1


def test_gold_for_every_class_is_enough(two):
    some = {y: int(np.flatnonzero(two.truth == y)[0]) for y in (0, 1)}
    one_class = two.labels.with_gold({some[0]: 0})
    assert "no item has more than 2 votes" in noise.identifiability_problem(one_class)
    both = two.labels.with_gold({some[0]: 0, some[1]: 1})
    assert noise.identifiability_problem(both) is None
    noise.DawidSkene(max_iter=500).fit(both)
    kept_aside = two.labels.with_gold({some[0]: 0, some[1]: 1}, role="check")
    assert noise.identifiability_problem(kept_aside) is not None


def test_an_anonymous_crowd_of_three_is_enough():
    counts = np.random.default_rng(0).multinomial(3, [0.7, 0.3], size=50)
    assert noise.identifiability_problem(Labels.from_counts(counts)) is None
    noise.DawidSkene(max_iter=500).fit(Labels.from_counts(counts))
    pairs = np.random.default_rng(0).multinomial(2, [0.7, 0.3], size=50)
    assert "more than 2 votes" in noise.identifiability_problem(Labels.from_counts(pairs))


def test_few_triples_are_said():
    votes = np.full((100, 3), -1)
    votes[:, :2] = np.random.default_rng(0).integers(2, size=(100, 2))
    votes[:4, 2] = 1
    assert "only 4 of 100 items have three votes" in noise.identifiability_problem(Labels.from_matrix(votes))


def test_a_classifier_is_a_rater_too(two):
    assert noise.identifiability_problem(two.labels, extra_raters=1) is None
    one = two.labels.select(labelers=[0])
    assert "more than 1 vote," in noise.identifiability_problem(one)
    assert noise.identifiability_problem(one, extra_raters=1) is not None


# ---------------------------------------------------------------------- the check of independence


def test_independent_labelers_are_not_accused():
    p_values, ratios = [], []
    for seed in range(20):
        labels = simulate.dawid_skene(n_items=200, n_labelers=5, random_state=seed).labels
        check = noise.check_independence(labels, noise.DawidSkene().fit(labels), n_replicates=40, random_state=seed)
        p_values.append(check.p_value)
        ratios.append(check.ratio)
        assert not check.dependent
    assert sum(p < 0.05 for p in p_values) <= 3
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.1)


def test_gold_does_not_spoil_the_check():
    """Data sets made by the model must have the known truths where the data have them."""
    data = simulate.dawid_skene(n_items=300, n_labelers=5, random_state=1)
    labels = data.labels.with_gold({i: int(data.truth[i]) for i in range(150)})
    check = noise.check_independence(labels, noise.DawidSkene().fit(labels), n_replicates=60)
    assert check.ratio == pytest.approx(1.0, abs=0.25)
    assert 0.02 < check.p_value < 0.98


DEPENDENT = {
    "subtypes": {"subtype_weights": (0.6, 0.4), "subtype_accuracy": (0.95, 0.55)},
    "family": {"families": [[0, 1, 2, 3]], "copying": 0.9},
}


@pytest.mark.parametrize("n_gold", [0, 300])
@pytest.mark.parametrize("kind", DEPENDENT)
def test_dependent_labelers_are_found(kind, n_gold):
    data = simulate.dependent(n_items=800, n_labelers=6, random_state=0, **DEPENDENT[kind])
    labels = data.labels.with_gold({i: int(data.truth[i]) for i in range(n_gold)})
    check = noise.check_independence(labels, noise.DawidSkene().fit(labels), n_replicates=120)
    assert check.dependent
    assert check.ratio > 1.2
    assert check.sentence.startswith("Labelers err together")
    assert 'use noise="clusters"' in check.advice(noise.DawidSkene())
    assert "allows for that" in check.advice(noise.Clusters())


def test_subtypes_account_for_shared_difficulty():
    data = simulate.dependent(n_items=800, n_labelers=6, random_state=0, **DEPENDENT["subtypes"])
    model = noise.Subtypes(n_subtypes=2).fit(data.labels)
    check = noise.check_independence(data.labels, model, n_replicates=120)
    assert not check.dependent
    assert "given the subtypes" in check.sentence


def test_the_check_needs_pairs_and_matrices():
    single = Labels.from_matrix([[0, -1], [-1, 1], [1, -1]])
    check = noise.check_independence(single, noise.Confusion(np.full((2, 2), 0.5)))
    assert (check.ratio, check.p_value) == (1.0, 1.0)
    assert "No item has two votes" in check.sentence
    labels = simulate.dawid_skene(n_items=50, random_state=0).labels
    with pytest.raises(InvalidParameter, match="confusion matrix for each labeler is needed, got GLAD"):
        noise.check_independence(labels, noise.GLAD(tol=1e-3).fit(labels))
    with pytest.raises(InvalidParameter, match="n_replicates"):
        noise.check_independence(labels, noise.OneCoin().fit(labels), n_replicates=3)


def test_items_without_votes_do_not_hide_the_pairs():
    data = simulate.dependent(n_items=400, n_labelers=6, random_state=0, **DEPENDENT["family"])
    item, labeler, answer, _ = data.labels.vote_table()
    votes = np.full((4000, 6), -1)
    votes[item, labeler] = answer
    with pytest.warns(UserWarning, match="no votes"):
        padded = Labels.from_matrix(votes)
    model = noise.DawidSkene().fit(data.labels)
    assert noise.check_independence(padded, model, n_replicates=120).dependent


# ---------------------------------------------------------------------- effective labelers


@pytest.mark.parametrize("given", [False, True])
def test_independent_votes_are_worth_their_number(given):
    labels = simulate.dawid_skene(n_items=600, n_labelers=7, accuracy=(0.7, 0.9), random_state=0).labels
    found = noise.effective_labelers(labels, noise.DawidSkene().fit(labels) if given else None)
    assert found.votes_per_item == 7.0
    assert found.effective > 6.0
    assert found.correlation < 0.03


def test_copies_are_worth_little():
    data = simulate.dependent(
        n_items=600,
        n_labelers=9,
        subtype_weights=[1.0],
        subtype_accuracy=[0.75],
        families=[[0, 1, 2], [3, 4, 5], [6, 7, 8]],
        copying=0.95,
        random_state=0,
    )
    found = noise.effective_labelers(data.labels)
    # Three families of copies are worth three labelers or so.
    assert 1.5 < found.effective < 4.5
    assert found.effective == pytest.approx(9 / (1 + 8 * found.correlation))
    assert f"worth {found.effective:.1f} independent ones" in found.sentence


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
@pytest.mark.parametrize("votes", [[[1, 0, 1]], [[0, 0, 0], [0, 1, 0]]], ids=["one item", "two items"])
def test_a_handful_of_items_gets_an_answer(votes):
    """Subtypes may leave a class without any."""
    found = noise.effective_labelers(Labels.from_matrix(votes, classes=[0, 1]))
    assert "worth" in found.sentence
    assert "nan" not in found.sentence
