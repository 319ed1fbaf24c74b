"""What an answer rests on and assumes, in words: the same on the command line and in reports."""

from __future__ import annotations

from collections.abc import Mapping

from trueup._base.wording import number
from trueup.answers.metric_estimates import MetricEstimates
from trueup.answers.paired import PairedEstimates
from trueup.estimators.assumptions import Assumption

WHAT_IS_ASSUMED: Mapping[Assumption, str] = {
    "independent": "each labeler errs on their own",
    "shared": "items may be hard or misleading for all, as far as votes tell",
    "real": "labelers err together as in real crowds, also where votes do not tell",
}
_IN_SHORT: Mapping[Assumption, str] = {
    "independent": "as if each labeler erred on their own",
    "shared": "with such shared errors as votes tell of",
    "real": "as real crowds err",
}
_TOLD = (20, 100)  # vettings


def basis_words(answer: MetricEstimates | PairedEstimates, metric: str | None = None, *, alone: bool = False) -> str:
    """What a number rests on, to follow "rests on".

    Parameters
    ----------
    answer : Evaluation or Comparison
    metric : str, optional
        Of an evaluation; by default its first.
    alone : bool
        Whether to say of votes that there is nothing else.
    """
    votes = "votes alone" if alone else "votes"
    basis = answer.basis_of(metric) if isinstance(answer, MetricEstimates) and metric is not None else answer.basis
    if answer.assumption is None and basis != "gold":
        if isinstance(answer, MetricEstimates) and answer.method != "bayes":
            return "the truth" if answer.method == "ideal" else f"{votes}, by the method {answer.method}"
        return f"{votes}, with the noise model {answer.noise}"
    if basis == "gold" or answer.assumption is None:
        return f"{answer.n_drawn:,} vetted items drawn at random"
    return f"{votes}, {_IN_SHORT[answer.assumption]}"


def basis_sentence(evaluation: MetricEstimates) -> str:
    """What the metrics of an evaluation rest on: the first of them, and those that rest on something else."""
    by_basis: dict[str, list[str]] = {}
    for name in evaluation.metrics:
        by_basis.setdefault(basis_words(evaluation, name), []).append(name)
    (first, names), *others = by_basis.items()
    if not others:
        return f"{'This rests' if len(names) == 1 else 'All of this rests'} on {first}."
    return "; ".join(f"{_rest(names)} on {basis}" for basis, names in by_basis.items()) + "."


def _rest(names: list[str]) -> str:
    if len(names) == 1:
        return f"{names[0]} rests"
    return f"{', '.join(names[:-1])} and {names[-1]} rest"


def vetting_words(evaluation: MetricEstimates) -> str | None:
    """How wide the interval of the accuracy would be after more vettings; None where nothing can be said.

    Two numbers of items at most: the first beyond those that are vetted already, and a larger one.
    """
    if not evaluation.has_assumptions and not evaluation.n_drawn:
        return None
    widths, already = evaluation.vettings, evaluation.n_drawn
    if not widths:
        return None
    first = min(widths)
    later = [n for n in widths if n > first]
    second = max([n for n in later if n <= max(_TOLD[1], 2 * first)], default=None)
    in_all = " in all" if already else ""
    words = (
        f"{first} vetted items drawn at random{in_all} would bring the accuracy to a width of about "
        f"{number(widths[first], 2)}"
    )
    return words if second is None else f"{words}, {second} to {number(widths[second], 2)}"
