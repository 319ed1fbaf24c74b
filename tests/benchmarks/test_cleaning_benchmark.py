"""The cleaning benchmark runs from end to end, and its agreement can fail."""

import json

from sklearn.linear_model import RidgeClassifier

from benchmarks import cleaning


def test_fast_against_full():
    rows = cleaning.compared("ridge", 60, 2, 1, RidgeClassifier())
    assert [row[3:5] for row in rows] == [["1 of 1", "100.0 (100)"]] * 2


def test_decisions_are_printed(capsys, tmp_path):
    out = tmp_path / "out.json"
    cleaning.main(["decisions", "--quick", "--json", str(out)])
    assert "seconds" in capsys.readouterr().out
    (table,) = json.loads(out.read_text(encoding="utf-8"))["decisions"]
    assert len(table["rows"]) == 2
    assert all(float(row[-1]) > 0 for row in table["rows"])
