"""Panels and experts that are worth the same (Su 2024, Sections 4.2 and 4.3)."""

from __future__ import annotations

import numpy.typing as npt
from scipy.optimize import brentq

from trueup._validation import check_integer, check_number
from trueup.exceptions import InvalidParameter
from trueup.labelers.channel import Floats, check_prior
from trueup.labelers.information import Information, mutual_information
from trueup.labelers.outcomes import entropy

__all__ = ["equivalent_error", "equivalent_labelers"]


def equivalent_error(
    information: Information | float, prior: npt.ArrayLike | None = None, *, n_labelers: int = 1
) -> float:
    r"""The error of the single labeler who would tell as much: ε′ with I(Z; Y | ε′) = `information`.

    A panel is hard to picture, one labeler of a known error is not. The information of a symmetric labeler falls as his
    error grows from 0 to (C − 1)/C, so there is one such error.

    Parameters
    ----------
    information : Information or float
        What `mutual_information` gives, or bits.
    prior : array of shape (n_classes,), optional
        P(class); taken from `information` where it has one, else uniform over two classes.
    n_labelers : int
        Ask for the error that each of so many labelers may have.

    References
    ----------
    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Sections 4.2 and 4.3 (Figures 7 and 8).

    Examples
    --------
    >>> import trueup as tu
    >>> panel = tu.labelers.mutual_information(error=0.2, n_labelers=5, prior=[0.6, 0.4])
    >>> round(tu.labelers.equivalent_error(panel), 4)
    0.0384
    >>> round(tu.labelers.equivalent_error(0.512, [0.6, 0.4], n_labelers=5), 3)  # each of five may err that often
    0.276
    """
    if prior is None and isinstance(information, Information):
        prior = information.prior
    pi = check_prior(prior)
    n = check_integer(n_labelers, name="n_labelers", low=1)
    most = float(entropy(pi))
    bits = check_number(float(information), name="information", low=0.0)
    if bits > most + 1e-9:
        raise InvalidParameter(
            f"information must be at most {most:.4g} bits, all there is to know of the class, got {bits:.6g}; "
            "check the prior"
        )
    chance = 1 - 1 / len(pi)
    if bits >= most - 1e-12:
        return 0.0
    if bits <= 1e-12:
        return chance
    return float(brentq(lambda e: _bits(e, n, pi) - bits, 0.0, chance, xtol=1e-12))


def equivalent_labelers(
    *, expert_error: float, labeler_error: float, prior: npt.ArrayLike | None = None, max_labelers: int = 100_000
) -> int:
    """How many mediocre labelers tell at least as much as one expert: the least T with I(T, ε) ≥ I(1, ε′).

    Labelers are symmetric and independent given the class. Information only grows with their number, so the number is
    found by doubling and halving, as in the paper.

    Parameters
    ----------
    expert_error, labeler_error : float
        Probabilities of a wrong label; the labeler's is below that of a guess.
    prior : array of shape (n_classes,), optional
        P(class); two even classes by default.
    max_labelers : int
        Where to stop.

    References
    ----------
    Su (2024), "On Truthing Issues in Supervised Classification", JMLR 25, Section 4.3 (Figure 8).

    Examples
    --------
    >>> import trueup as tu
    >>> tu.labelers.equivalent_labelers(expert_error=0.02, labeler_error=0.2, prior=[0.6, 0.4])
    7
    """
    pi = check_prior(prior)
    chance = 1 - 1 / len(pi)
    check_integer(max_labelers, name="max_labelers", low=1)
    expert = check_number(expert_error, name="expert_error", low=0.0, high=1.0)
    labeler = check_number(labeler_error, name="labeler_error", low=0.0, high=1.0)
    if labeler >= chance:
        raise InvalidParameter(
            f"labeler_error must be below {chance:.3g}, the error of a guess, got {labeler:g}; no number of guesses "
            "equals an expert"
        )
    if expert == 0 < labeler:
        raise InvalidParameter(
            "expert_error must be above 0, got 0; no number of labelers who err equals an expert who never does"
        )
    wanted = _bits(expert, 1, pi) * (1 - 1e-12)  # an equal labeler is worth an expert, whatever rounding says
    low, high = 0, 1
    while _bits(labeler, high, pi) < wanted:
        if high >= max_labelers:
            raise InvalidParameter(
                f"more than max_labelers={max_labelers} labelers of error {labeler:g} would be needed to equal an "
                f"expert of error {expert:g}; raise max_labelers"
            )
        low, high = high, min(2 * high, max_labelers)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _bits(labeler, middle, pi) >= wanted else (middle, high)
    return high


def _bits(error: float, n_labelers: int, prior: Floats) -> float:
    return float(mutual_information(error=error, n_labelers=n_labelers, prior=prior))
