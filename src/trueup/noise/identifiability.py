"""When votes alone cannot tell how good the labelers are."""

from __future__ import annotations

import warnings

import numpy as np

from trueup.exceptions import IdentifiabilityWarning
from trueup.labels import Labels

__all__ = ["identifiability_problem", "warn_if_unidentifiable"]


def identifiability_problem(labels: Labels, *, extra_raters: int = 0) -> str | None:
    """One sentence if the labelers' rates cannot be known from these votes, else None.

    Agreement of two raters is one number, and their two error rates are two unknowns; only from three raters on an
    item on do agreements determine rates [1]_. Gold items, known rates or an informative prior help too, and only the
    first can be seen in the labels. Repeated votes of one (pooled) labeler count as raters of an item, and so does a
    classifier that is evaluated (`extra_raters`).

    References
    ----------
    .. [1] Kruskal (1977); Dawid and Skene (1979), Section 2.
    """
    if np.isin(np.arange(labels.n_classes), labels.gold_codes).all():
        return None
    most = int(labels.votes_per_item.max(initial=0)) + extra_raters
    if most >= 3:
        triples = int((labels.votes_per_item + extra_raters >= 3).sum())
        needed = 5 * labels.n_classes
        if triples >= needed:
            return None
        raters = "three raters or more, the prediction counted" if extra_raters else "three votes or more"
        return (
            f"only {triples} of {labels.n_items} items have {raters}, and {needed} are needed, so the labelers' error "
            "rates rest mostly on the prior; collect more votes on the same items, add gold with labels.with_gold, or "
            "pass known rates with trueup.noise.Confusion"
        )
    votes = most - extra_raters
    beside = " beside the prediction" if extra_raters else ""
    return (
        f"no item has more than {votes} vote{'' if votes == 1 else 's'}{beside}, and from fewer than three raters the "
        "error rates cannot be known: what comes out is the prior's opinion; add gold for every class with "
        "labels.with_gold, pass known rates with trueup.noise.Confusion, or collect a third vote"
    )


def warn_if_unidentifiable(labels: Labels, *, what: str) -> None:
    """Warn with `identifiability_problem`'s sentence, if there is one."""
    problem = identifiability_problem(labels)
    if problem:
        warnings.warn(f"{what}: {problem}", IdentifiabilityWarning, stacklevel=3)
