"""Judges of pairs: win rates, strengths, position bias, and what vetted contests correct."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import trueup as tu
from trueup.answers.preferences import Separation
from trueup.estimators.pairs import MirroredConfusion, strengths_of
from trueup.exceptions import InvalidParameter
from trueup.noise import sample

FEW = {"noise": "mirrored", "n_warmup": 100, "n_draws": 400}


@pytest.fixture(scope="module")
def biased():
    """Judges with a position bias of .15, and what is made of them."""
    sim = tu.simulate.pairs(n_contests=800, n_systems=4, position_bias=0.15, accuracy=0.75, random_state=3)
    return sim, tu.preferences(sim.pairs, **FEW)


def test_nobody_is_sent_to_check_what_nobody_can():
    sentences = [str(Separation("a", "b", 74, None, n)) for n in (640, 420_000)]
    assert "about 640 checked ones" in sentences[0]
    assert "equally often" in sentences[1]
    assert "420" not in sentences[1]


def test_a_frame_of_verdicts_is_taken_as_it_is():
    n, asked = 60, ("q", "judge", "model_a", "model_b", "said")
    cells = [(k // 2, "j", *("xy" if k % 3 else "yx"), ("x", "y", "tie")[k % 5 // 2]) for k in range(n)]
    frame = pd.DataFrame(cells, columns=asked)
    answer = tu.preferences(frame, item="q", winner="said", n_draws=256)
    read = tu.preferences(tu.read_pairs(frame, item="q", winner="said"), n_draws=256)
    assert answer.to_dict() == read.to_dict()
    assert tu.preferences(frame.drop(columns="judge"), item="q", winner="said", n_draws=256).pairs.n_verdicts == n
    with pytest.raises(InvalidParameter, match="no option `item`"):
        tu.preferences(read.pairs, item="q")


@pytest.mark.parametrize("n_judges", [1, 2, 3])
def test_contests_whose_verdicts_cancel_show_the_position_bias(n_judges):
    sim = tu.simulate.pairs(
        n_contests=400, n_systems=2, n_judges=n_judges, accuracy=0.7, position_bias=0.25, orders="both", random_state=0
    )
    answer = tu.preferences(sim.pairs, check_dependence=False, **FEW)
    assert any("they count for the position bias only" in sentence for sentence in answer.warnings)
    few_judges = [sentence for sentence in answer.warnings if "three judges or more (both orders" in sentence]
    assert len(few_judges) == (n_judges < 3)
    assert not any("o item has" in sentence for sentence in answer.warnings)
    chose_first = np.where(sim.pairs.shown == 1, sim.pairs.verdict == 1, sim.pairs.verdict == 0)
    for j, name in enumerate(sim.pairs.judges.tolist()):
        bias = answer.position_bias[name]
        # The judge chose the first place this often, and either side was there once: no truth is needed.
        assert bias.mean == pytest.approx(chose_first[sim.pairs.judge == j].mean() - 0.5, abs=0.01)
        low, high = bias.interval(0.95)
        assert 0.03 < high - low < 0.07  # ± 1.96 × √(.074 / 400) is .053 wide


def test_a_verdict_given_five_times_is_one_witness_of_the_position_bias():
    sim = tu.simulate.pairs(n_contests=200, n_systems=2, n_judges=3, accuracy=0.75, position_bias=0.15, random_state=1)
    columns = {name: np.tile(getattr(sim.pairs, name), 5) for name in ("contest", "judge", "shown", "verdict")}
    once, often = (
        tu.preferences(pairs, check_dependence=False, **FEW) for pairs in (sim.pairs, replace(sim.pairs, **columns))
    )
    for name, bias in once.position_bias.items():
        assert often.position_bias[name].interval(0.95) == pytest.approx(bias.interval(0.95), abs=1e-6)


def test_win_rates_hold_the_truth(biased):
    sim, answer = biased
    inside = []
    for a, b, n in answer.met():
        places = [sim.pairs.systems.tolist().index(name) for name in (a, b)]
        chance = expit(sim.strengths[places[0]] - sim.strengths[places[1]])
        low, high = answer.win_rate(a, b).interval(0.999)
        inside.append(low < chance < high)
        assert answer.win_rate(a, b).mean + answer.win_rate(b, a).mean == pytest.approx(1)
        assert n > 50
    assert all(inside)
    with pytest.raises(InvalidParameter, match="never met"):
        answer.win_rate("system-1", "system-1")
    with pytest.raises(InvalidParameter, match="there is no system 'system-9'"):
        answer.win_rate("system-9", "system-1")


def test_order_of_sides_does_not_matter(biased):
    sim, answer = biased
    names = sim.pairs.systems.tolist()
    renamed = dict(zip(names, reversed(names), strict=True))  # every pair is turned round
    pairs = sim.pairs
    rows = [
        (
            pairs.contests[c][0],
            names_of_judge,
            renamed[pairs.contests[c][2]],
            renamed[pairs.contests[c][1]],
            1 - o,
            1 - v,
        )
        for c, names_of_judge, o, v in zip(
            pairs.contest.tolist(),
            pairs.judges[pairs.judge].tolist(),
            pairs.shown.tolist(),
            pairs.verdict.tolist(),
            strict=True,
        )
    ]
    turned = tu.preferences(tu.Pairs.from_rows(rows), **FEW)
    for name in names:
        assert turned.strength(renamed[name]).mean == pytest.approx(answer.strength(name).mean, abs=0.06)


@pytest.mark.parametrize("ties", ["half", "class"])
def test_ties(ties):
    sim = tu.simulate.pairs(
        n_contests=600, n_systems=2, n_judges=5, ties=0.3, accuracy=0.9, position_bias=0.0, spread=0.5, random_state=2
    )
    answer = tu.preferences(sim.pairs, ties=ties, target="sample", **FEW)
    shares = np.bincount(sim.truth, minlength=3) / 600
    expected = shares[0] + (0.5 * shares[2] if ties == "half" else 0.0)
    assert answer.win_rate("system-1", "system-2").mean == pytest.approx(expected, abs=0.05)
    assert answer.tie_rate("system-1", "system-2").mean == pytest.approx(shares[2], abs=0.07)


def test_vetted_contests_correct_judges_who_err_together():
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.4).astype(int)  # the first wins six of ten
    fooled = rng.random(600) < 0.25  # and on these, all judges take the longer answer of the second
    votes = np.where(fooled, 1, truth)
    rows = [(k, f"judge-{j}", "a", "b", int(rng.integers(2)), int(votes[k])) for k in range(600) for j in range(3)]
    pairs = tu.Pairs.from_rows(rows)
    drawn = rng.choice(600, 120, replace=False)
    vetted = pairs.with_gold({(int(k), "a", "b"): ("a", "b")[truth[k]] for k in drawn}, drawn="random")
    plain, corrected = (tu.preferences(p, check_dependence=False) for p in (pairs, vetted))
    assert corrected.basis == "votes and 120 checked items"
    for answer in (plain, corrected):
        low, high = answer.win_rate("a", "b").interval(0.95)
        assert low < 1 - truth.mean() < high
    assert plain.win_rate("a", "b").mean < 0.5 < low
    assert high - low < 0.14


def test_without_a_noise_model_verdicts_may_err_as_on_real_sets():
    sim = tu.simulate.pairs(n_contests=150, n_systems=3, position_bias=0.15, accuracy=0.75, random_state=4)
    answer, named = (tu.preferences(sim.pairs, **how) for how in ({}, FEW))
    assert (answer.evaluation.noise, named.evaluation.noise) == ("learned from public sets", "mirrored")
    assert answer.ranking == named.ranking
    assert answer.win_rate("system-1", "system-2").std > 2 * named.win_rate("system-1", "system-2").std
    told = answer.to_dict()
    assert {row["system"] for row in told["systems"]} == set(sim.pairs.systems)
    assert len(told["win_rates"]) == 3
    assert set(told["position_bias"]) == set(sim.pairs.judges)
    assert "votes alone" in repr(answer)
    assert list(answer.to_frame()["system"]) == answer.ranking
    assert list(answer.win_rates()["n_contests"]) == [n for _, _, n in answer.met()]


def test_systems_that_never_met_are_told():
    rows = [(k, "j", *two, 0, k % 2) for k in range(40) for two in (("a", "b"), ("c", "d"))]
    answer = tu.preferences(tu.Pairs.from_rows(rows), check_dependence=False, **FEW)
    assert any("2 parts that never met" in sentence for sentence in answer.warnings)
    with pytest.raises(InvalidParameter, match="'a' and 'c' never met"):
        answer.win_rate("a", "c")
    with pytest.raises(InvalidParameter, match="`pairs` must be Pairs or a frame, got list"):
        tu.preferences([])


def test_strengths_are_those_of_a_logistic_regression():
    chances = expit(np.subtract.outer([0.8, 0.1, -0.9], [0.8, 0.1, -0.9]))
    wins = 1e6 * chances * (1 - np.eye(3))
    np.testing.assert_allclose(strengths_of(wins[None])[0], [0.8, 0.1, -0.9], atol=1e-4)
    unbeaten = strengths_of(np.array([[[0.0, 9.0], [0.0, 0.0]]]))
    assert np.isfinite(unbeaten).all()
    assert unbeaten[0, 0] > 1


def contests_won(a, b, n_won, n_lost, first_item):
    """Rows of contests of which five judges say the same, in an order by turns."""
    return [
        (first_item + k, f"judge-{j}", a, b, (j + k) % 2, int(k >= n_won))
        for k in range(n_won + n_lost)
        for j in range(5)
    ]


@pytest.mark.parametrize("n_won", [1, 2])
def test_strengths_and_win_rates_say_the_same_of_a_newcomer(n_won):
    rows = contests_won("a", "b", 60, 60, 0) + contests_won("a", "z", 0, n_won, 500)
    answer = tu.preferences(tu.Pairs.from_rows(rows), check_dependence=False, **FEW)
    stronger = answer.win_rate("z", "a").prob_above(0.5)
    assert 0.75 < stronger < 0.97
    # The newcomer met nobody else, so that only what its one win rate says tells how strong it is.
    assert answer.difference("z", "a").prob_above(0) == pytest.approx(stronger, abs=0.01)
    assert answer.prob_best["z"] < stronger
    assert len(answer.groups) == 1


@pytest.mark.parametrize("target", ["population", "sample"])
@pytest.mark.parametrize("n_ties", [0, 5])
def test_strengths_and_win_rates_of_two_systems_say_the_same(target, n_ties):
    tied = [(100 + k, f"judge-{j}", "a", "b", k % 2, 2) for k in range(n_ties) for j in range(5)]
    pairs = tu.Pairs.from_rows(contests_won("a", "b", 5, 3, 0) + tied)
    answer = tu.preferences(pairs, target=target, check_dependence=False, **FEW)
    rate = answer.win_rate("a", "b").prob_above(0.5)
    assert answer.difference("a", "b").prob_above(0) == rate
    assert (rate > 0.95) == (target == "sample")


def test_strengths_of_many_systems_are_not_drawn_together():
    """Twenty systems whose pairs met twice: half a win on both sides of every pair would take a third of the spread."""
    sim = tu.simulate.pairs(
        n_contests=400, n_systems=20, n_judges=5, accuracy=0.95, position_bias=0.0, spread=1.0, random_state=6
    )
    answer = tu.preferences(sim.pairs, check_dependence=False, **FEW)
    means = [answer.strength(name).mean for name in sim.pairs.systems.tolist()]
    true = sim.strengths - sim.strengths.mean()
    assert np.polyfit(true, means, 1)[0] == pytest.approx(1, abs=0.2)


def test_both_engines_agree_on_judges_of_pairs(monkeypatch):
    pytest.importorskip("numba")
    sim = tu.simulate.pairs(n_contests=40, n_systems=2, n_judges=3, ties=0.2, orders="both", random_state=5)
    labels, model = sim.pairs.labels, MirroredConfusion(*sim.pairs.presentation)
    drawn = []
    for engine, n_draws in (("scipy", 500), ("numba", 4000)):  # the reference takes milliseconds a sweep
        monkeypatch.setenv("TRUEUP_ENGINE", engine)
        drawn.append(sample(labels, model, n_chains=1, n_warmup=100, n_draws=n_draws, random_state=1, warn=False))
    assert np.abs(drawn[0].posterior - drawn[1].posterior).mean() < 0.04
