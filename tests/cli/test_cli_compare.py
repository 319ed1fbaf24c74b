"""trueup compare, through its entry point."""

import json

import pytest
from cli_helpers import QUICK, crowd, write_csv

import trueup as tu


@pytest.fixture
def two_files(tmp_path):
    found = []
    for name in ("good", "bad"):
        rows = [(f"i{i}", ("no", "yes")[p]) for i, p in enumerate(crowd()[name])]
        found.append(write_csv(tmp_path / f"{name}.v1.csv", ("item", "prediction"), rows))
    return found


def test_a_file_for_each_system_gives_the_same(run_main, votes_csv, systems_csv, two_files):
    def numbers(*files):
        ran = run_main("compare", votes_csv, *files, "--json", *QUICK)
        assert ran.code == 0, ran.err
        return {one["system"]: one["mean"] for one in json.loads(ran.out)["systems"]}

    assert numbers(*reversed(two_files)) == numbers(systems_csv)


def test_json_holds_the_numbers_of_the_library(run_main, votes_csv, systems_csv):
    got = json.loads(run_main("compare", votes_csv, systems_csv, "--json", "--seed", 2, *QUICK).out)
    labels = tu.read_labels(votes_csv)
    systems = tu.read_predictions(systems_csv, labels=labels, system="system")
    expected = tu.compare(systems, labels, noise="dawid-skene", n_draws=100, n_warmup=50, random_state=2)
    assert got["systems"] == expected.to_dict()["systems"]
    assert got["pairs"][0]["prob_a_better"] == expected.prob_better("good", "bad")
    assert got["groups"] == [list(group) for group in expected.groups]


def test_the_report_of_a_comparison_has_its_numbers_and_no_others(run_main, votes_csv, uneven_csv, tmp_path):
    report = tmp_path / "r.json"
    ran = run_main("compare", votes_csv, uneven_csv, "--report", report, "--json", *QUICK)
    assert ran.code == 0, ran.err
    said, page = json.loads(ran.out), json.loads(report.read_text(encoding="utf-8"))
    assert said["items_predicted"] == page["reproduction"]["settings"]["items_predicted"] == {"good": 30, "bad": 60}
    assert page["systems"] == []
    for of_page, one in zip(page["comparison"]["systems"], said["systems"], strict=True):
        assert one.items() <= of_page.items()
    assert page["dependence"]["ratio"] is not None  # the check was made, and the page says so
