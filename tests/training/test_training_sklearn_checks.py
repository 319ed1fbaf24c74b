"""Scikit-learn's own checks of estimators, on a plain y."""

import warnings
from unittest import SkipTest

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import estimator_checks_generator

from trueup.training import NoisyGaussianNB, NoisyLabelClassifier, NoisyLogisticRegression, NoisyMultinomialNB

ESTIMATORS = {
    "mmse": NoisyLabelClassifier(GaussianNB()),
    "gaussian": NoisyGaussianNB(),
    "multinomial": NoisyMultinomialNB(),
}
SLOW = {
    "unbiased": NoisyLabelClassifier(LogisticRegression(), strategy="unbiased"),
    "replication": NoisyLabelClassifier(LogisticRegression(), strategy="replication"),
    "voting": NoisyLabelClassifier(GaussianNB(), strategy="voting"),
    "alternation": NoisyLabelClassifier(GaussianNB(), strategy="alternation", n_rounds=1, n_folds=2),
    "mmse-logistic": NoisyLabelClassifier(LogisticRegression()),
    "logistic": NoisyLogisticRegression(),
    "logistic-mmse": NoisyLogisticRegression(method="mmse"),
}


@pytest.mark.parametrize("name", [*ESTIMATORS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_sklearn_finds_nothing_wrong(name):
    problems, n_checks = [], 0
    for estimator, check in estimator_checks_generator((ESTIMATORS | SLOW)[name]):
        n_checks += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of tiny data sets; the checks look at warnings that matter themselves
                check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            problems.append(f"{check.func.__name__}: {error}")
    assert n_checks > 40
    assert not problems, "\n".join(problems)
