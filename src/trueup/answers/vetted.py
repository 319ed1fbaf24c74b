"""The same question once more after some items were vetted: what was drawn from the votes is not drawn again."""

from __future__ import annotations

from dataclasses import replace

from trueup.answers.compare import measure
from trueup.answers.comparison import Comparison
from trueup.answers.evaluation import Evaluation
from trueup.answers.reading import evaluation_by
from trueup.data.labels import Labels
from trueup.estimators.assumptions import Assumption
from trueup.estimators.truth import TruthEngine
from trueup.exceptions import InvalidParameter


def evaluate_again(evaluation: Evaluation, labels: Labels) -> Evaluation:
    """The evaluation with other gold.

    Whether labelers err independently is not checked again, since the votes are the same.

    Parameters
    ----------
    evaluation : Evaluation
        Without a named noise model or method.
    labels : Labels
        The same votes; gold added with ``with_gold(…, drawn="random")`` is told to no model, so that none is drawn
        again.
    """
    engine, assumption = _parts_of(evaluation, labels)
    again = evaluation_by(engine, replace(evaluation.task, labels=labels), assumption, check_dependence=False)
    return replace(again, independence=evaluation.independence)


def compare_again(comparison: Comparison, labels: Labels) -> Comparison:
    """The comparison with other gold; see `evaluate_again`."""
    engine, assumption = _parts_of(comparison, labels)
    task = replace(comparison.task, labels=labels)
    return measure(
        task, assumption=assumption, n_draws=engine.n_draws, check_dependence=False, sampling={}, engine=engine
    )


def _parts_of(answer: Evaluation | Comparison, labels: Labels) -> tuple[TruthEngine, Assumption]:
    if answer.engine is None or answer.assumption is None:
        raise InvalidParameter(
            "an answer of a noise model or method that is named cannot be given again, got one; call the door again"
        )
    before = answer.task.labels
    same = labels.votes.shape == before.votes.shape and labels.items.tolist() == before.items.tolist()
    if not same or abs(labels.votes - before.votes).nnz:
        raise InvalidParameter(
            "⟨labels⟩ must have the same votes as before, got others; call the door again", parameter="labels"
        )
    return answer.engine.with_labels(labels), answer.assumption
