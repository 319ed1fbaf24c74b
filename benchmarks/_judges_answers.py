"""Answers about judges that several figures ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup.answers.prepare import solution_on
from trueup.answers.share import Shares
from trueup.estimators.system_values import Population


def for_population(shares: Shares) -> Shares:
    """The same draws of the truth for a population of which items are drawn one by one."""
    evaluation = shares.evaluation
    task = replace(evaluation.task, population=Population())
    truth = evaluation.draws_for(task.metric)
    solution = solution_on(truth, task, np.random.default_rng(task.seed))
    return replace(shares, evaluation=replace(evaluation, task=task, solution=solution))
