"""A small part of the experiment of Urkullu et al. (2019), and that it can be interrupted."""

import numpy as np
import pytest

import trueup as tu
from experiments.urkullu2019 import __main__ as command
from experiments.urkullu2019 import store
from experiments.urkullu2019.report import checks, expected
from experiments.urkullu2019.results import Results
from experiments.urkullu2019.runs import centred_ranks, expected_auc, majority_for_each, one_run, swap_error
from experiments.urkullu2019.settings import REFERENCE, VIEWS, Design
from experiments.urkullu2019.verdicts import verdicts
from trueup.estimators.published.urkullu2019 import deterministic

TINY = Design(cases=("average", "good"), levels=(5, 15), n_items=150, n_classifiers=8)


def made_up(swap_errors: dict[str, float], *, supervised: float = 0.09, n_runs: int = 40) -> Results:
    """Runs of the full design in which each view has one mean everywhere, with a deviation of 0.01."""
    rng = np.random.default_rng(0)
    design = Design()
    means = np.array([swap_errors[view] for view in VIEWS])
    errors = means + 0.01 * rng.standard_normal((n_runs, *design.shape))
    reference = supervised + 0.001 * rng.standard_normal(n_runs)
    return Results(design, errors, reference, reference)


def test_expected_auc_is_the_sum_over_pairs():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 6, (4, 25)).astype(float)  # with ties
    positive = rng.random(25)
    above = (scores[:, :, None] > scores[:, None]) + 0.5 * (scores[:, :, None] == scores[:, None])
    pair = positive[:, None] * (1 - positive)
    np.fill_diagonal(pair, 0.0)
    brute = (above * pair).sum(axis=(1, 2)) / pair.sum()
    assert expected_auc(centred_ranks(scores), positive) == pytest.approx(brute, abs=1e-12)


def test_majority_is_that_of_the_library_but_for_ties():
    data = tu.simulate.urkullu(n_items=400, n_classifiers=6, labels_per_item=4, random_state=0)
    truths = majority_for_each(data.labels, 6, np.random.default_rng(0))
    counts = data.labels.answer_counts
    clear = counts[:, 0] != counts[:, 1]
    assert (truths[:, clear] == (counts[clear, 1] > counts[clear, 0])).all()
    assert 0.4 < truths[:, ~clear].mean() < 0.6
    assert (truths[0] != truths[1]).any()
    untied = data.labels.select(items=data.labels.items[clear])
    same = majority_for_each(untied, 6, np.random.default_rng(1))
    scores = data.scores[:, clear]
    assert expected_auc(centred_ranks(scores), same) == pytest.approx(deterministic(untied, scores).values, abs=1e-12)


def test_swap_error_counts_wrong_pairs_and_half_of_ties():
    assert swap_error([1, 2, 3], [10, 20, 30]) == 0
    assert swap_error([3, 2, 1], [10, 20, 30]) == 1
    assert swap_error([1, 3, 2], [10, 20, 30]) == pytest.approx(1 / 3)
    assert swap_error([1, 1, 2], [10, 20, 30]) == pytest.approx(1 / 6)


def test_supervised_reference_is_near_the_papers():
    swap_errors = [one_run(REFERENCE, run).supervised for run in range(40)]
    # The standard error of a quartile of 40 runs is 0.0021, the paper's own 0.0013.
    assert np.quantile(swap_errors, [0.25, 0.5, 0.75]) == pytest.approx([0.0806, 0.0873, 0.0930], abs=0.008)


def test_resumed_runs_are_those_of_one_go(tmp_path, monkeypatch):
    whole = store.complete(TINY, 3, tmp_path / "whole.npz")
    assert whole.missing == []
    made = []

    def interrupted(design: Design, run: int) -> object:
        if len(made) == 2:
            raise KeyboardInterrupt
        made.append(run)
        return one_run(design, run)

    with monkeypatch.context() as patch:
        patch.setattr(store, "one_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.complete(TINY, 3, tmp_path / "part.npz")
    kept = store.load(tmp_path / "part.npz", TINY, 3)
    assert kept.missing == [2]
    monkeypatch.setattr(store, "one_run", lambda design, run: made.append(run) or one_run(design, run))
    resumed = store.complete(TINY, 3, tmp_path / "part.npz")
    assert made == [0, 1, 2]
    np.testing.assert_array_equal(resumed.swap_errors, whole.swap_errors)
    np.testing.assert_array_equal(resumed.supervised, whole.supervised)


def test_everything_expected_is_measured():
    results = made_up(dict.fromkeys(VIEWS, 0.1))
    for name, (_, ours) in command.sections(results):
        entry = expected()[name]
        assert set(entry["values"]) | set(entry.get("limits", {})) <= set(ours)
        assert len(checks(name, ours)) == len(entry["values"]) + len(entry.get("limits", {}))
        assert entry["where"]
        assert entry["tolerance_is"]
    assert set(expected()["verdicts"]["limits"]) == set(verdicts(results)[1])
