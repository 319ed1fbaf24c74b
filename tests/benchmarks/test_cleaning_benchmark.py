"""The cleaning benchmark runs from end to end, and its agreement can fail."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from benchmarks import cleaning
from trueup.cleaning import EMI


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


def test_agreement_counts_what_is_in_common():
    def ranked(score):
        zeros = np.zeros(len(score))
        flags = np.ones(len(score), dtype=bool)
        return EMI(np.arange(len(score)), np.array(score), zeros, zeros, np.array(score), flags, 0.5, "exact")

    scores = np.arange(100.0)
    moved = np.roll(scores, 10)
    assert cleaning.agreement(ranked(scores), ranked(scores)) == (True, 1.0)
    same, share = cleaning.agreement(ranked(scores), ranked(moved))
    assert not same
    assert share == pytest.approx(0.8)
