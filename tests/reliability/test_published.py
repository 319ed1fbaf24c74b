"""The coefficients as published, to all digits that were printed."""

import numpy as np
import pytest

import trueup as tu

# Krippendorff (2011), "Computing Krippendorff's alpha reliability", part C: 4 observers, 12 units, votes missing.
_NO = -1
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _NO, _NO, _NO],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _NO, 3],
    [_NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _NO],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _NO],
]

# Fleiss (1971), "Measuring nominal scale agreement among many raters", table 1: 30 patients, 6 psychiatrists each.
PATIENTS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""

# Shrout and Fleiss (1979), "Intraclass correlations", table 2: 6 targets, 4 judges.
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

# `cont3x3abstractors` of irrCAC, Gwet (2014), table 2.13.
ABSTRACTORS = [[13, 0, 0], [0, 20, 7], [0, 4, 56]]


@pytest.mark.parametrize(
    ("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorff_has_four_observers(scale, alpha):
    labels = tu.Labels.from_matrix(np.array(OBSERVERS).T, missing=_NO)
    assert tu.agreement(labels, scale=scale)["alpha"].mean == pytest.approx(alpha, abs=5e-4)


def test_gwet_has_the_same_observers():
    # `cac.raw4raters` of the R package irrCAC, whose vignette prints these: the only vote on the last unit is another's
    votes = np.array(OBSERVERS).T
    votes[11] = votes[11, [0, 2, 1, 3]]
    a = tu.agreement(tu.Labels.from_matrix(votes, missing=_NO))
    printed = {
        "percent": 0.81818,
        "ac1": 0.77544,
        "fleiss": 0.76117,
        "conger": 0.76282,
        "alpha": 0.74342,
        "brennan_prediger": 0.77273,
    }
    assert {name: round(a[name].mean, 5) for name in printed} == printed


def test_fleiss_has_psychiatrists():
    counts = np.array([[int(digit) for digit in patient] for patient in PATIENTS.split()])
    assert counts.sum(axis=0).tolist() == [26, 26, 30, 55, 43]
    a = tu.agreement(tu.Labels.from_counts(counts))
    assert (round(a["percent"].mean, 3), round(a["fleiss"].mean, 3)) == (0.556, 0.430)


def test_shrout_and_fleiss_have_six_targets():
    a = tu.agreement(tu.Labels.from_matrix(TARGETS), scale="interval")
    printed = {"icc1": 0.17, "icc_a1": 0.29, "icc_c1": 0.71, "icc1k": 0.44, "icc_ak": 0.62, "icc_ck": 0.91}
    assert {name: round(a[name].mean, 2) for name in printed} == printed


def test_two_abstractors():
    votes = [pair for a, row in enumerate(ABSTRACTORS) for b, n in enumerate(row) for pair in [[a, b]] * n]
    a = tu.agreement(tu.Labels.from_matrix(votes))
    printed = {"cohen": 0.7964094, "scott": 0.7962397}
    assert {name: round(a[name].mean, 7) for name in printed} == printed


def test_kendall_of_ranks_without_ties_is_that_of_the_textbook():
    ranks = [[1, 2, 2], [2, 1, 1], [3, 4, 3], [4, 3, 4]]
    sums = np.sum(ranks, axis=1)
    w = 12 * ((sums - sums.mean()) ** 2).sum() / (3**2 * (4**3 - 4))
    a = tu.agreement(tu.Labels.from_matrix(ranks), scale="ordinal")
    assert a["kendall_w"].mean == pytest.approx(w, abs=1e-12)
