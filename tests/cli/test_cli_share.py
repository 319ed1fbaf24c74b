"""trueup share, through its entry point."""

import json

import pytest
from cli_helpers import CHAINS, FEW, assert_one_sentence, write_csv

import trueup as tu


def test_a_rate_for_each_system(run_main, votes_csv, items_csv):
    ran = run_main("share", votes_csv, "--of", "yes", "--by", "system", "--items", items_csv, "--json", *FEW)
    assert ran.code == 0, ran.err
    parsed = json.loads(ran.out)
    rates = {group["group"]: group for group in parsed["groups"]}
    labels = tu.read_labels(votes_csv).with_items(tu.read_items(items_csv))
    expected = tu.share(labels, of="yes", by="system", n_draws=60)
    assert set(rates) == {"alpha", "beta"}
    assert rates["alpha"]["n_items"] == 30
    assert rates["alpha"]["mean"] == pytest.approx(expected["alpha"].mean)
    assert parsed["overall"]["mean"] == pytest.approx(expected.overall.mean)
    assert parsed["basis"] == "votes alone"


def test_the_mean_of_ratings(run_main, tmp_path):
    sim = tu.simulate.ratings(n_items=40, n_labelers=3, random_state=0)
    tu.write_labels(sim.labels, tmp_path / "ratings.csv")
    how = ("mean-score", tmp_path / "ratings.csv", "--noise", "ordinal", *CHAINS)
    ran = run_main(*how, "--json", "--fail-below", "mean=0.5")
    assert ran.code == 0, ran.err
    parsed = json.loads(ran.out)
    expected = tu.mean_score(tu.read_labels(tmp_path / "ratings.csv"), noise="ordinal", n_warmup=40, n_draws=60)
    assert (parsed["what"], parsed["overall"]["mean"]) == ("mean score", pytest.approx(expected.overall.mean))
    assert "got one on 'accuracy'; write mean=0.9" in run_main(*how, "--fail-below", "accuracy=0.5").err
    assert_one_sentence(run_main(*how, "--at-least", "3"))
    halved = run_main(*how, "--json", *(f"--values={k}={k / 2}" for k in sim.labels.classes))
    assert json.loads(halved.out)["overall"]["mean"] == pytest.approx(expected.overall.mean / 2)
    earlier = run_main("share", *how[1:], "--mean", "--json")
    assert json.loads(earlier.out)["overall"] == parsed["overall"]


@pytest.mark.parametrize("command", [("share", "--of", "yes"), ("mean-score", "--values", "yes=5", "--values", "no=1")])
def test_a_page_for_each_form(run_main, votes_csv, items_csv, tmp_path, command):
    name, *asked = command
    for suffix in ("html", "md", "json"):
        page = tmp_path / f"page.{suffix}"
        how = ("--by", "system", "--items", items_csv, "--report", page, *FEW)
        ran = run_main(name, votes_csv, *asked, *how)
        assert ran.code == 0, ran.err
        assert str(page) in ran.err
    told = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert {group["group"] for group in told["groups"]} == {"alpha", "beta"}
    assert told["reproduction"]["command"].startswith(f"trueup {name}")
    assert run_main(name, votes_csv, *asked, "--report", tmp_path / "page.pdf").code == 2


def test_check_and_share_recommend_the_same_and_checked_items_end_it(run_main, dependent_csv, tmp_path):
    labels = tu.read_labels(dependent_csv)
    items, of = labels.items.tolist(), str(labels.classes[0])
    gold = write_csv(tmp_path / "gold.csv", ("item", "label"), [(item, of) for item in items[:40]])
    for more in ((), ("--gold", gold, "--gold-drawn", "random")):
        checked = json.loads(run_main("check", dependent_csv, "--json", *more).out)["independence"]
        assert checked["dependent"]
        shared = json.loads(run_main("share", dependent_csv, "--of", of, "--json", "--draws", "60", *more).out)
        (said,) = (one for one in shared["warnings"] if one.startswith(checked["sentence"]))
        assert said == f"{checked['sentence']} {checked['advice']}"
        assert ("40 were drawn" in said) == bool(more)
        assert ("draw_sample" in said or "plan draw" in said) == (not more)
