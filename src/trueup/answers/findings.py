"""What a user must hear before trusting an evaluation."""

from __future__ import annotations

import warnings

import numpy as np

from trueup._base.types import Codes
from trueup.data.labels import Labels
from trueup.estimators import Solution
from trueup.exceptions import Sentence, TrueupWarning
from trueup.noise import DawidSkene, IndependenceCheck, check_independence, identifiability_problem

__all__ = ["about_votes", "collect", "copies"]

_CHECKED_VOTES = 300_000  # the check of independence looks at this many votes at most


def collect(
    labels: Labels,
    codes: Codes,
    solution: Solution,
    *,
    learned: bool,
    drawn: bool,
    check_dependence: bool,
) -> tuple[tuple[str, ...], IndependenceCheck | None]:
    """Sentences, the gravest first, and the independence check if it was made."""
    found, independence = about_votes(labels, learned=learned, drawn=drawn, check_dependence=check_dependence)
    at = len(found) - (independence is not None and independence.dependent)
    found[at:at] = solution.notes
    found += copies(labels, codes)
    found += _degenerate(labels, solution)
    return tuple(map(Sentence, found)), independence


def about_votes(
    labels: Labels, *, learned: bool, drawn: bool, check_dependence: bool
) -> tuple[list[str], IndependenceCheck | None]:
    """What the votes alone give reason to say, and the independence check if it was made."""
    found: list[str] = []
    independence = None
    if learned:
        # Where the noise is drawn with the rest, the classifier is a rater that helps to identify it.
        problem = identifiability_problem(labels, extra_raters=1 if drawn else 0)
        if problem:
            found.append(problem.marked[0].upper() + problem.marked[1:] + ".")
        elif labels.n_votes < 2 * labels.n_items:
            found.append(
                f"There are {labels.n_votes / labels.n_items:.1f} votes an item on average: error rates are learned "
                "from few overlaps, and intervals are wide for a reason."
            )
    if check_dependence and learned and (labels.votes_per_item > 1).any():
        independence = _dependence(labels)
        if independence.dependent:
            found.append(independence.sentence)
    return list(map(Sentence, found)), independence


def _dependence(labels: Labels) -> IndependenceCheck:
    if labels.n_votes > _CHECKED_VOTES:
        share = _CHECKED_VOTES / labels.n_votes
        chosen = np.random.default_rng(0).random(labels.n_items) < share
        labels = labels.select(items=labels.items[chosen])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrueupWarning)  # said elsewhere in the findings
        model = DawidSkene().fit(labels)
    return check_independence(labels, model, n_replicates=100)


def copies(labels: Labels, codes: Codes, *, name: str = "The classifier") -> list[str]:
    """Labelers whose votes equal the predictions almost always, on enough items to be no accident."""
    item, labeler, answer, _ = labels.vote_table()
    seen = codes[item] >= 0
    voted = np.bincount(labeler[seen], minlength=labels.n_labelers)
    same = np.bincount(labeler[seen], answer[seen] == codes[item[seen]], labels.n_labelers)
    agreement = same / np.maximum(voted, 1)
    usual = float(same.sum() / max(voted.sum(), 1))
    # A labeler is suspicious where errors differ too little: a third of the usual disagreement, and almost none.
    suspects = np.flatnonzero((voted >= 50) & (agreement > 0.985) & (1 - agreement < (1 - usual) / 3))
    if labels.n_labelers < 2 or not len(suspects):
        return []
    names = ", ".join(repr(name) for name in labels.labelers[suspects[:3]].tolist())
    copied = (
        f"{name} looks like a copy of labeler {names}: they agree on {agreement[suspects[0]]:.1%} of the items "
        "both judged; leave that labeler out (⟨labels.without_labeler⟩), or the classifier grades itself."
    )
    return [Sentence(copied)]


def _degenerate(labels: Labels, solution: Solution) -> list[str]:
    expected = solution.counts.mean_counts.sum(axis=1)
    share = expected / max(float(expected.sum()), 1e-12)
    rare = np.flatnonzero(share < min(0.01, 5 / max(labels.n_items, 1)))
    if not len(rare):
        return []
    names = ", ".join(repr(name) for name in labels.classes[rare[:3]].tolist())
    return [f"Class {names} hardly occurs (expected share {share[rare[0]]:.2%}): its recall rests on almost nothing."]
