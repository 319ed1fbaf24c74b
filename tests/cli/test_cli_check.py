"""trueup check, through its entry point."""

import json

from cli_helpers import write_csv


def test_json_counts_everything(run_main, tmp_path):
    rows = [("a", "u", "x"), ("a", "u", "x"), ("a", "v", "y"), ("b", "u", "NA"), ("b", "v", "?"), ("b", "w", "y")]
    votes = write_csv(tmp_path / "v.csv", ("item", "labeler", "label"), rows)
    systems = write_csv(tmp_path / "p.csv", ("item", "prediction"), [("a", "x"), ("c", "z"), ("b", "y")])
    args = ("--no-vote", "NA", "--abstain", "?", "--unknown", "ignore", "--unknown-class", "ignore", "--json")
    ran = run_main("check", votes, systems, *args)
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    counts = {key: found["votes"][key] for key in ("votes", "items", "labelers", "repeated_votes", "missing")}
    assert counts == {"votes": 4, "items": 2, "labelers": 3, "repeated_votes": 1, "missing": 1}
    assert found["votes"]["abstentions"] == 1
    assert found["systems"][0]["unknown_items"] == 1
    assert found["systems"][0]["classes_nobody_voted_for"] == ["z"]
    assert found["problems"] == []


def test_files_that_do_not_fit_are_told_in_full_and_refused(run_main, votes_csv, tmp_path):
    rows = [(f"i{i}", "perhaps" if i == 3 else "yes") for i in range(50)] + [("stranger", "no")]
    path = write_csv(tmp_path / "p.csv", ("item", "prediction"), rows)
    ran = run_main("check", votes_csv, path, "--json", "--no-dependence")
    assert ran.code == 2
    problems = json.loads(ran.out)["problems"]
    assert len(problems) == 3
    for text in ("'i50'", "'stranger'", "'perhaps'"):
        assert any(text in sentence for sentence in problems)
    assert "--missing ignore" in ran.err
    ran = run_main("check", votes_csv, path, "--missing", "ignore", "--unknown", "ignore", "--no-dependence")
    assert ran.code == 2
    assert len(ran.err.strip().splitlines()) == 1
