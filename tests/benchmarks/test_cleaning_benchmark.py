"""The cleaning benchmark runs from end to end, and its agreement can fail."""

import json

from sklearn.linear_model import RidgeClassifier

from benchmarks import cleaning


def test_fast_against_full():
    rows, numbers = cleaning.compared("ridge", 60, 2, 1, RidgeClassifier())
    assert [row[3] for row in rows] == ["1 of 1", "1 of 1"]
    assert numbers["common"] == {"True": [1.0], "False": [1.0]}
    assert numbers["ratio"][0] > 0


def test_decisions_are_printed(capsys, tmp_path):
    out = tmp_path / "out.json"
    cleaning.main(["decisions", "--quick", "--json", str(out)])
    assert "seconds" in capsys.readouterr().out
    assert all(value > 0 for value in json.loads(out.read_text(encoding="utf-8"))["decisions"].values())
