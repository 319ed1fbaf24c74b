"""The ranking: exact small cases, intervals that hold, spam that is found."""

import numpy as np
import pytest
from ranking_runs import ranking_runs
from scipy.stats import binom

import trueup as tu
from trueup.exceptions import InvalidLabels, InvalidParameter
from trueup.labelers import mutual_information, rank, spam_share
from trueup.labelers import tables as draws


def test_spam_share_is_the_largest_part_that_ignores_the_truth():
    rng = np.random.default_rng(0)
    theta = rng.dirichlet(np.ones(4), size=(20, 3))
    share = spam_share(theta)
    r = theta.min(axis=1) / share[:, None]
    rest = theta - share[:, None, None] * r[:, None, :]
    assert (rest > -1e-12).all()
    # One answer more, and some entry of the rest would be negative.
    assert np.allclose(rest.min(axis=1), 0)
    assert spam_share([[0.7, 0.3], [0.7, 0.3]]) == pytest.approx(1)
    assert spam_share(tu.labelers.symmetric_matrix(0.1, 2)) == pytest.approx(0.2)


def test_quantities_of_a_matrix_are_as_defined():
    """With so many votes that each labeler has one matrix; an abstention is no answer for accuracy and bias."""
    rng = np.random.default_rng(1)
    theta, prior = rng.dirichlet(np.ones(3), size=(5, 3)), np.array([0.2, 0.3, 0.5])
    for matrices in (theta, np.concatenate([theta * 0.6, np.full((5, 3, 1), 0.4)], axis=2)):
        tally = 1e15 * prior[:, None] * matrices[None], 1e15 * prior[None]
        how = {"n_draws": 1, "rows": 1, "spam_prior": 0.1, "rng": rng}
        (found,) = draws.draws_of_tallies(lambda _, tally=tally: [tally], matrices.shape, **how)
        expected = [float(mutual_information(m, prior=prior)) for m in matrices]
        assert found.information[0] == pytest.approx(expected, abs=1e-6)
        assert found.accuracy[0] == pytest.approx(np.einsum("y,tyy->t", prior, theta), abs=1e-6)
        assert found.bias[0] == pytest.approx(np.einsum("y,tya->ta", prior, theta) - prior, abs=1e-6)
        assert found.spam[0] == pytest.approx(spam_share(matrices), abs=1e-6)


def test_evidence_is_the_probability_of_the_answers():
    """A Pólya urn, answer by answer."""
    answers, base = [0, 1, 1, 0, 2, 1], np.array([3.0, 1.0, 1.0])
    urn, log_p = base.copy(), 0.0
    for a in answers:
        log_p += np.log(urn[a] / urn.sum())
        urn[a] += 1
    counts = np.bincount(answers, minlength=3).astype(float)
    assert draws._log_evidence(counts, base) == pytest.approx(log_p)


@pytest.fixture(scope="module")
def crowd():
    """Six labelers; number 4 answers 1 three times in four whatever the truth, number 2 favours class 1."""
    confusion = tu.labelers.symmetric_matrix([0.08, 0.15, 0.2, 0.3, 0.5, 0.2], 2)
    confusion[2] = [[0.6, 0.4], [0.05, 0.95]]
    confusion[4] = [[0.25, 0.75], [0.25, 0.75]]
    return tu.simulate.dawid_skene(n_items=600, n_labelers=6, confusion=confusion, random_state=0)


@pytest.fixture(scope="module")
def ranking(crowd):
    return rank(crowd.labels, noise="dawid-skene", random_state=0)


def test_the_best_is_first_and_the_spammer_last(ranking):
    assert ranking.labelers[0] == 0
    assert ranking.labelers[-1] == 4
    assert ranking[0].rank == (1, 1)
    assert ranking[4].rank == (6, 6)
    assert len(ranking) == 6
    assert [row.votes for row in ranking] == [600] * 6


def test_spam_and_bias_are_told_of_those_who_have_them(ranking):
    assert ranking[4].spam_probability > 0.3  # one in ten was expected beforehand
    assert ranking[4].spam.interval(0.95)[1] == 1.0
    assert ranking[4].information.interval(0.95)[0] == 0.0
    for t in (0, 1, 2, 3, 5):
        assert ranking[t].spam_probability < 1e-3
        assert ranking[t].spam.interval(0.95)[1] < 1.0
    assert ranking[2].bias_class == 1
    assert ranking[2].bias.interval(0.95)[0] > 0
    low, high = ranking[0].bias.interval(0.95)
    assert low < 0 < high


def test_order_and_names_of_labelers_do_not_matter(crowd, ranking):
    """The same votes under other names: the same ranking but for the draws."""
    frame = crowd.labels.to_frame()
    names = {0: "d", 1: "b", 2: "e", 3: "a", 4: "c", 5: "f"}
    frame["labeler"] = frame["labeler"].map(names)
    other = rank(tu.Labels.from_frame(frame), noise="dawid-skene", random_state=1)
    assert names[ranking.labelers[0]] == other.labelers[0]
    for t in range(6):
        assert ranking[t].accuracy.mean == pytest.approx(other[names[t]].accuracy.mean, abs=0.01)


def test_gold_decides():
    """With every truth vetted, the posterior is the Dirichlet given the counts, whatever the noise model."""
    data = tu.simulate.dawid_skene(n_items=200, n_labelers=3, accuracy=[0.9, 0.7, 0.6], random_state=3)
    labels = data.labels.with_gold(dict(enumerate(data.truth.tolist())))
    found = rank(labels, noise="majority", n_draws=4000, random_state=0)
    matrix = labels.vote_table()
    for t in range(3):
        own = matrix[1] == t
        right = matrix[2][own] == data.truth[matrix[0][own]]
        assert found[t].accuracy.mean == pytest.approx(right.mean(), abs=0.01)
        assert found[t].accuracy.std == pytest.approx(np.sqrt(right.mean() * (1 - right.mean()) / 200), rel=0.1)


def in_range(held: np.ndarray) -> bool:
    """Whether a 95% interval could have held so often, by the 99.9% range of a binomial.

    Labelers of one data set share its truths, so six of them count for two (measured: the variance of the number in a
    set that hold is 1 to 3.4 times that of independent ones).
    """
    n = len(held) // 3
    low, high = binom.ppf([0.0005, 0.9995], n, 0.95) / n
    return bool(low <= held.mean() <= high)


@pytest.mark.parametrize(("n_sets", "n_items"), [(6, 200), pytest.param(120, 300, marks=pytest.mark.slow)])
def test_intervals_hold_as_often_as_they_say(n_sets, n_items):
    """Six labelers of each data set."""
    runs = ranking_runs(n_sets, n_items=n_items, seed=1 + (n_sets == 120))
    assert {name: in_range(held) for name, held in runs.held.items()} == dict.fromkeys(runs.held, True)
    # Of those who are suspected with probability p, a share of p are spammers.
    spread = np.sqrt((runs.suspected * (1 - runs.suspected)).sum())
    assert abs(runs.spammers.sum() - runs.suspected.sum()) < 4 * spread
    if n_sets == 120:
        assert runs.suspected[runs.spammers].mean() > 10 * runs.suspected[~runs.spammers].mean()


@pytest.mark.parametrize(
    "options",
    [{"sort": "height"}, {"level": 1.5}, {"spam_prior": 0.0}, {"n_draws": 1}, {"noise": "nonsense"}],
    ids=["sort", "level", "spam", "draws", "noise"],
)
def test_bad_requests_are_one_sentence(crowd, options):
    with pytest.raises(InvalidParameter):
        rank(crowd.labels, **options)
    with pytest.raises(InvalidLabels):
        rank([[0, 1]])
