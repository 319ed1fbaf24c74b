"""A lattice on the simplex of class probabilities, and the Pólya distribution on it."""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, psi

from trueup.noise.base import normalise

__all__ = ["learn_shape", "polya_weights", "simplex_lattice"]

Floats = npt.NDArray[np.float64]

_MOST_STATES = 60
_MOST_PAIRS = 465  # of classes, each with itself too, where an item can be only half and half
_FINEST = 11  # for two classes twelve states, which fill vectors of the processor
_SHAPES = (1e-6, 1e3)


@lru_cache(maxsize=32)
def simplex_lattice(n_classes: int) -> Floats:
    """All class probabilities that are multiples of 1/m, shape (n_states, n_classes); the corners are among them.

    m is 11, or less where that would be more than 60 states, but 2 up to 30 classes. With more classes than that only
    the corners are left.

    Examples
    --------
    >>> simplex_lattice(2).shape, simplex_lattice(3).shape, simplex_lattice(10).shape
    ((12, 2), (55, 3), (55, 10))
    >>> simplex_lattice(30).shape, simplex_lattice(31).shape
    ((465, 30), (31, 31))
    """
    finest = _FINEST
    while finest > 1 and comb(finest + n_classes - 1, finest) > (_MOST_STATES if finest > 2 else _MOST_PAIRS):
        finest -= 1
    states = np.zeros((1, 0), dtype=np.int64)
    for _ in range(n_classes - 1):  # each class takes up to what the ones before it have left
        left = finest - states.sum(axis=1)
        taken = np.concatenate([np.arange(most + 1) for most in left])
        states = np.column_stack([np.repeat(states, left + 1, axis=0), taken])
    states = np.column_stack([states, finest - states.sum(axis=1)])
    lattice = states[::-1] / finest  # the first state is the first class
    lattice.flags.writeable = False  # it is shared by all who ask
    return lattice


def polya_weights(lattice: Floats, shape: Floats) -> Floats:
    r"""The Dirichlet–multinomial (Pólya) distribution on a lattice.

    .. math:: w_g \propto \prod_y \frac{\Gamma(k_{gy} + \alpha_y)}{k_{gy}!\,\Gamma(\alpha_y)}, \qquad k_g = m \rho_g

    It is a Dirichlet distribution made discrete: uniform for a shape of ones, all at the corners as the shape goes to
    zero, and its mean is the normalised shape.

    Parameters
    ----------
    lattice : array of shape (n_states, n_classes)
    shape : array of shape (n_classes,)

    Examples
    --------
    >>> polya_weights(simplex_lattice(2), np.array([1.0, 1.0])).round(3)[:3]
    array([0.083, 0.083, 0.083])
    """
    counts = _counts(lattice)
    log_weights = (gammaln(counts + shape) - gammaln(counts + 1)).sum(axis=1)
    return normalise(np.exp(log_weights - log_weights.max()))


def learn_shape(lattice: Floats, state_counts: Floats, shape: Floats) -> Floats:
    """One step of Minka's fixed point for the shape, given how many items are in each state; never less likely.

    Parameters
    ----------
    lattice : array of shape (n_states, n_classes)
    state_counts : array of shape (n_states,)
    shape : array of shape (n_classes,)

    Examples
    --------
    >>> lattice, shape = simplex_lattice(2), np.array([1.0, 3.0])
    >>> learn_shape(lattice, polya_weights(lattice, shape), shape).round(6)  # what is right stays
    array([1., 3.])
    """
    counts = _counts(lattice)
    rise = state_counts @ (psi(counts + shape) - psi(shape))
    total = shape.sum()
    fall = state_counts.sum() * (psi(counts[0].sum() + total) - psi(total))
    return np.asarray(np.clip(shape * rise / max(float(fall), 1e-12), *_SHAPES))


def _counts(lattice: Floats) -> Floats:
    """Multiples of 1/m as the integers they are; the least step is 1/m."""
    return np.asarray(np.round(lattice / lattice[lattice > 0].min()))
