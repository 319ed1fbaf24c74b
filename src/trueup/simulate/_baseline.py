"""The setting of today's practice: few labelers, none of them very good."""

from __future__ import annotations

from trueup._validation import RandomState, check_number
from trueup.simulate._dawid_skene import dawid_skene
from trueup.simulate._draws import Values
from trueup.simulate.simulation import Simulation

__all__ = ["baseline"]


def baseline(
    *,
    n_items: int = 500,
    n_labelers: int = 3,
    accuracy: Values = (0.65, 0.85),
    prevalence: float = 0.3,
    classifier_accuracy: float = 0.8,
    random_state: RandomState = None,
) -> Simulation:
    """The data that a majority vote is used on today: two classes, three mediocre labelers who all vote.

    A Dawid–Skene model (see `dawid_skene`) where each labeler has one accuracy for both classes, drawn uniformly
    from a range, and so has the classifier.

    Parameters
    ----------
    n_items, n_labelers : int
    accuracy : number, (low, high) tuple or array
        Of the labelers: the same for all, uniform on a range, or one each.
    prevalence : float
        P(class 1).
    classifier_accuracy : float
    random_state : int, Generator or None

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from trueup.simulate import baseline
    >>> baseline(random_state=0)
    Simulation(Labels(500 items, 3 labelers, 2 classes, 1,500 votes), truth, predictions)
    """
    share = check_number(prevalence, name="prevalence", low=0.0, high=1.0)
    return dawid_skene(
        n_items=n_items,
        n_labelers=n_labelers,
        prior=(1 - share, share),
        accuracy=accuracy,
        classifier_accuracy=classifier_accuracy,
        random_state=random_state,
    )
