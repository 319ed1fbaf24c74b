"""What features and labels together say of the truth, for every item of a state."""

from __future__ import annotations

from copy import copy

import numpy as np

from trueup.cleaning._fast_surrogate import _few, _numbers
from trueup.cleaning.flips import Array, true_class_probabilities
from trueup.cleaning.oracle_free import noise_aware_probabilities
from trueup.cleaning.problem import CleaningState, take_rows
from trueup.cleaning.validation import UnbiasedScorer

__all__ = ["believed_scorer", "believed_truths"]


def believed_truths(state: CleaningState) -> Array:
    """P(truth = c | features, label) of every item; shape (n_items, n_classes).

    A noise-aware logistic regression on all labels, of both parts, on standardised features (their first principal
    components if there are many; those of the last step for a pipeline). From the votes alone where features are no
    numbers. Rows of items without a label are the prior.
    """
    problem = state.problem
    labelled = np.flatnonzero(state.codes >= 0)
    codes, matrices = state.codes[labelled], problem.matrices[state.group[labelled]]
    found = np.tile(problem.prior, (problem.n_items, 1))
    X = take_rows(problem.X, labelled)
    if type(state.model).__name__ == "Pipeline" and len(state.model.steps) > 1:
        X = state.model[:-1].transform(X)
    try:
        rows = _numbers(X)
    except (TypeError, ValueError):
        found[labelled] = true_class_probabilities(codes, matrices, problem.prior)
        return found
    found[labelled] = noise_aware_probabilities(_few(rows, rows[:1])[0], codes, matrices)
    return found


def believed_scorer(state: CleaningState, believed: Array) -> UnbiasedScorer:
    """The metric on the validation part against what is believed of the truth there.

    The unbiased weights of a label with error rates a and b are as large as 1 / (1 − a − b); those of a belief lie
    between 0 and 1. So changes of the metric are far less noisy, at the price of a bias where the belief is wrong.
    """
    scorer = copy(state.scorer)
    scorer.weights, scorer.n_used = believed[state.validation], scorer.n_items
    return scorer
