"""What votes cannot tell, and whether labelers err together."""

import numpy as np
import pytest
from scipy import stats

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


def test_gold_for_every_class_is_enough(two):
    some = {y: int(np.flatnonzero(two.truth == y)[0]) for y in (0, 1)}
    one_class = two.labels.with_gold({some[0]: 0})
    assert "no item has more than 2 votes" in noise.identifiability_problem(one_class)
    both = two.labels.with_gold({some[0]: 0, some[1]: 1})
    assert noise.identifiability_problem(both) is None
    noise.DawidSkene(max_iter=500).fit(both)
    kept_aside = two.labels.with_gold({some[0]: 0, some[1]: 1}, role="check")
    assert noise.identifiability_problem(kept_aside) is not None


def test_a_classifier_is_a_rater_too(two):
    assert noise.identifiability_problem(two.labels, extra_raters=1) is None
    one = two.labels.select(labelers=[0])
    assert "more than 1 vote," in noise.identifiability_problem(one)
    assert noise.identifiability_problem(one, extra_raters=1) is not None


def independent_votes(seed):
    """Few or many labelers, dense or sparse votes, two to four classes."""
    rng = np.random.default_rng(seed)
    n_classes, n_labelers = int(rng.choice([2, 3, 4])), int(rng.choice([3, 5, 10, 40]))
    return simulate.dawid_skene(
        n_items=int(rng.choice([200, 400])),
        n_labelers=n_labelers,
        votes_per_item={3: None, 5: None, 10: 4, 40: 5}[n_labelers],
        n_classes=n_classes,
        prior=np.full(n_classes, 1 / n_classes),
        accuracy=(0.6, 0.95),
        random_state=seed,
    ).labels


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_independent_labelers_are_accused_as_often_as_the_limit_says():
    checks = []
    for seed in range(60):
        labels = independent_votes(seed)
        model = noise.DawidSkene().fit(labels)
        checks.append(noise.check_independence(labels, model, n_replicates=60, random_state=seed))
    p_values = np.array([check.p_value for check in checks])
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean([check.dependent for check in checks]) <= 0.1
    assert np.mean([check.ratio for check in checks]) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("world", "least"),
    [
        ({"subtype_weights": [1.0], "subtype_accuracy": [0.8], "families": [[0, 1, 2]], "copying": 0.6}, 0.6),
        ({"subtype_weights": [0.8, 0.2], "subtype_accuracy": [0.9, 0.4]}, 0.4),
    ],
    ids=["family", "kinds"],
)
def test_three_hundred_items_of_five_labelers_show_dependence(world, least):
    n_noticed = 0
    for seed in range(20):
        labels = simulate.dependent(n_items=300, n_labelers=5, random_state=seed, **world).labels
        n_noticed += noise.check_independence(labels, noise.DawidSkene().fit(labels), n_replicates=100).dependent
    assert n_noticed >= least * 20


def test_the_power_is_that_of_errors_which_correlate():
    """Few votes see nothing, many see all; and what is told is what happens to such data."""
    three = simulate.dawid_skene(n_items=150, n_labelers=3, accuracy=(0.8, 0.9), random_state=0).labels
    ten = simulate.dawid_skene(n_items=1000, n_labelers=10, random_state=0).labels
    weak = noise.check_independence(three, noise.DawidSkene().fit(three))
    strong = noise.check_independence(ten, noise.DawidSkene().fit(ten), n_replicates=200)
    assert weak.power < 0.3
    assert strong.power > 0.9
    assert f"errors that correlate at 0.1 would be noticed in {weak.power:.0%} of cases" in weak.sentence


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
    assert "leave `noise` out" in check.advice(noise.DawidSkene())
    assert check.advice(noise.GLAD()) not in ("", check.advice(noise.DawidSkene()))


def test_the_check_needs_pairs_and_matrices():
    single = Labels.from_matrix([[0, -1], [-1, 1], [1, -1]])
    check = noise.check_independence(single, noise.Confusion(np.full((2, 2), 0.5)))
    assert (check.ratio, check.p_value) == (1.0, 1.0)
    assert "No item has votes of two labelers" in check.sentence
    labels = simulate.dawid_skene(n_items=50, random_state=0).labels
    with pytest.raises(InvalidParameter, match="confusion matrix for each labeler is needed, got GLAD"):
        noise.check_independence(labels, noise.GLAD(tol=1e-3).fit(labels))
    with pytest.raises(InvalidParameter, match="n_replicates"):
        noise.check_independence(labels, noise.OneCoin().fit(labels), n_replicates=3)


def repeated(labels, times):
    item, labeler, answer, _ = labels.vote_table()
    columns = {"item": item, "labeler": labeler, "label": answer}
    return Labels.from_frame({name: np.tile(column, times) for name, column in columns.items()})


@pytest.mark.filterwarnings("ignore::trueup.exceptions.TrueupWarning")
def test_votes_that_are_repeated_are_one_witness():
    labels = simulate.dawid_skene(n_items=200, n_labelers=5, random_state=0).labels
    five_times = repeated(labels, 5)
    assert not noise.check_independence(five_times, noise.DawidSkene().fit(five_times)).dependent
    alone = repeated(labels.select(labelers=[0]), 5)
    check = noise.check_independence(alone, noise.Confusion(np.array([[0.8, 0.2], [0.2, 0.8]])))
    assert "No item has votes of two labelers" in check.sentence


def test_votes_of_an_anonymous_crowd_are_of_different_people():
    rng = np.random.default_rng(0)
    chance = np.where(rng.integers(2, size=500) == 1, 0.75, 0.2)
    as_one = rng.beta(4 * chance, 4 * (1 - chance))  # all find the same items hard
    dependent = []
    for share in (chance, as_one):
        votes = rng.binomial(7, share)
        labels = Labels.from_counts(np.column_stack([7 - votes, votes]))
        dependent.append(noise.check_independence(labels, noise.DawidSkene().fit(labels)).dependent)
    assert dependent == [False, True]


def test_many_classes_are_checked_in_reasonable_time():
    data = simulate.dawid_skene(
        n_items=500, n_labelers=6, n_classes=30, prior=np.full(30, 1 / 30), accuracy=(0.6, 0.9), random_state=0
    )
    check = noise.check_independence(data.labels, noise.OneCoin().fit(data.labels), n_replicates=40)
    assert check.p_value > 0.02
    shared = data.labels.vote_table()[2].reshape(500, 6)
    shared[::4, 1:] = shared[::4, :1]
    labels = Labels.from_matrix(shared)
    assert noise.check_independence(labels, noise.OneCoin().fit(labels), n_replicates=40).dependent


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
    found = noise.effective_labelers(Labels.from_matrix(votes, classes=[0, 1]))
    assert "worth" in found.sentence
    assert "nan" not in found.sentence
