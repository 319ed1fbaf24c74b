"""Raters that err together: subtypes of items, families of judges, a classifier that shares difficulty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from trueup._base.types import Floats, Positions
from trueup._base.validation import (
    RandomState,
    as_generator,
    check_distribution,
    check_integer,
    check_number,
    check_numbers,
    check_prior,
)
from trueup.exceptions import InvalidParameter
from trueup.simulate.simulation import (
    Simulation,
    build_labels,
    check_confusion,
    classifier_matrix,
    diagonal_confusion,
    draw_categories,
    draw_classes,
    draw_pairs,
    draw_values,
)


def dependent(
    *,
    n_items: int = 1000,
    n_labelers: int = 5,
    votes_per_item: int | None = None,
    prior: npt.ArrayLike = (0.5, 0.5),
    subtype_weights: npt.ArrayLike = (0.8, 0.2),
    subtype_accuracy: npt.ArrayLike = (0.9, 0.4),
    subtype_confusion: npt.ArrayLike | None = None,
    strength: float = 50.0,
    families: Sequence[Sequence[int]] = (),
    copying: float | Sequence[float] = 0.7,
    shared_difficulty: float = 0.5,
    classifier_accuracy: float | None = 0.8,
    classifier_confusion: npt.ArrayLike | None = None,
    random_state: RandomState = None,
) -> Simulation:
    r"""Votes whose errors depend on each other, and on the classifier's.

    .. math::

        y_i &\sim \mathrm{Cat}(\pi), \qquad s_i \mid y_i \sim \mathrm{Cat}(w_{y_i}) \\
        \theta^{(t)}_{cs} &\sim \mathrm{Dirichlet}(\alpha\, \bar\theta_{cs}), \qquad
        \phi^{(f)}_{cs} \sim \mathrm{Dirichlet}(\alpha\, \bar\theta_{cs}) \\
        v_{if} &\sim \mathrm{Cat}(\phi^{(f)}_{y_i s_i}) \\
        z_{it} &= v_{if(t)} \text{ with probability } \rho_{f(t)}, \text{ otherwise }
            z_{it} \sim \mathrm{Cat}(\theta^{(t)}_{y_i s_i})

    Three kinds of dependence given the class, each of which can be turned off:

    - *Subtypes*: the items of a class come in kinds, easy ones and hard ones, and all labelers find the same kinds
      hard. One subtype turns it off.
    - *Families*: judges built on one model share a verdict on each item and repeat it with probability ρ.
    - *Shared difficulty*: the classifier, right with probability :math:`a_c` in class *c*, is right with probability
      :math:`a_c + \lambda\kappa_c(\bar A_{cs} - \bar A_c)` in subtype *s*, where :math:`\bar A_{cs}` is the pooled
      accuracy of the labelers there, :math:`\bar A_c` its mean over the class, and :math:`\kappa_c \le 1` is 1 unless
      a probability would leave [0, 1]. So its confusion matrix given the class stays as asked whatever λ is; at λ = 0
      it is independent of the votes given the class, at λ = 1 its accuracy varies as the labelers' does.

    Its parameters: ``prior``, ``subtype`` (of each item, counted within its class), ``subtype_weights`` (n_classes,
    n_subtypes), ``pooled_confusion`` (n_classes, n_subtypes, n_classes), ``subtype_confusion`` (n_labelers,
    n_classes, n_subtypes, n_classes) and ``confusion`` (n_labelers, n_classes, n_classes), both with the copying
    counted in; ``family`` (of each labeler, -1 for none), ``copying`` (of each family), ``shared_difficulty``,
    ``classifier_confusion`` and ``classifier_subtype_confusion`` (n_classes, n_subtypes, n_classes).

    Parameters
    ----------
    votes_per_item : int, optional. Distinct labelers drawn at random for each item; by default all vote.
    prior : array-like of shape (n_classes,)
    subtype_weights : array-like of shape (n_subtypes,) or (n_classes, n_subtypes)
        Shares of the subtypes within a class.
    subtype_accuracy : array-like of shape (n_subtypes,) or (n_classes, n_subtypes)
        Pooled accuracy of the labelers on each subtype, errors going to all other classes alike. Below one half, or
        1 / n_classes, most labelers are wrong together.
    subtype_confusion : array-like of shape (n_classes, n_subtypes, n_classes), optional
        Pooled answer probabilities on each subtype, in place of the accuracy.
    strength : float. α, at least 1: how closely each labeler follows the pooled rows; ``float("inf")`` for exactly.
    families : sequence of sequences of labelers
        Groups of labelers, numbered from 0, that share a verdict, e.g. ``[[0, 1, 2]]``.
    copying : float or one for each family. ρ, the chance that a member repeats the verdict of the family.
    shared_difficulty : float in [0, 1]. λ of the classifier.
    classifier_accuracy : float or None
        In every class, errors going to all other classes alike. None, and no matrix: no predictions.
    classifier_confusion : array-like of shape (n_classes, n_classes), optional
        The classifier's matrix given the class, in place of its accuracy.

    See Also
    --------
    dawid_skene : the same without dependence.

    Examples
    --------
    >>> from trueup.simulate import dependent
    >>> data = dependent(n_items=300, n_labelers=6, families=[[0, 1, 2], [3, 4]], random_state=0)
    >>> data.parameters["family"].tolist()
    [0, 0, 0, 1, 1, -1]
    """
    n = check_integer(n_items, name="n_items", low=1)
    n_labelers = check_integer(n_labelers, name="n_labelers", low=1)
    pi = check_prior(prior)
    n_classes = len(pi)
    weights, pooled = _subtypes(subtype_weights, subtype_accuracy, subtype_confusion, n_classes)
    n_subtypes = weights.shape[1]
    alpha = np.inf if strength == np.inf else check_number(strength, name="strength", low=1.0)
    family = _family_of(families, n_labelers)
    share = check_number(shared_difficulty, name="shared_difficulty", low=0.0, high=1.0)
    classifier = classifier_matrix(classifier_accuracy, classifier_confusion, n_classes)
    by_subtype = None if classifier is None else _with_difficulty(classifier, weights, pooled, share)
    rng = as_generator(random_state)
    if isinstance(copying, tuple):  # a tuple is one for each family here, not a range
        copying = list(copying)
    rho = draw_values(copying, len(families), name="copying", rng=rng)
    own = _around(pooled, n_labelers, alpha, rng)
    shared = _around(pooled, len(families), alpha, rng)

    truth = draw_classes(pi, n, rng)
    subtype = draw_categories(weights, truth, rng)
    kind = truth * n_subtypes + subtype
    n_kinds = n_classes * n_subtypes
    predictions = None if by_subtype is None else draw_categories(by_subtype.reshape(n_kinds, n_classes), kind, rng)
    item, labeler = draw_pairs(n, n_labelers, votes_per_item, rng)
    vote = draw_categories(own.reshape(-1, n_classes), labeler * n_kinds + kind[item], rng)
    if len(families):
        rows = np.arange(len(families)) * n_kinds + kind[:, None]
        verdict = draw_categories(shared.reshape(-1, n_classes), rows, rng)
        member = family[labeler]
        copies = (member >= 0) & (rng.random(len(item)) < rho[member])
        vote[copies] = verdict[item[copies], member[copies]]

    effective = own.copy()
    for f, rate in enumerate(rho):
        effective[family == f] = rate * shared[f] + (1 - rate) * own[family == f]
    return Simulation(
        labels=build_labels(item, labeler, vote, (n, n_labelers, n_classes)),
        truth=truth,
        predictions=predictions,
        parameters={
            "prior": pi,
            "subtype": subtype,
            "subtype_weights": weights,
            "pooled_confusion": pooled,
            "subtype_confusion": effective,
            "confusion": np.einsum("cs,tcsk->tck", weights, effective),
            "family": family,
            "copying": rho,
            "shared_difficulty": share,
            "classifier_confusion": classifier,
            "classifier_subtype_confusion": by_subtype,
        },
    )


def _subtypes(
    weights: npt.ArrayLike, accuracy: npt.ArrayLike, confusion: npt.ArrayLike | None, n_classes: int
) -> tuple[Floats, Floats]:
    """Shares (classes × subtypes) and pooled answer probabilities (classes × subtypes × classes)."""
    shares = check_distribution(check_numbers(weights, name="subtype_weights"), name="subtype_weights")
    if shares.ndim > 2 or (shares.ndim == 2 and len(shares) != n_classes):
        raise InvalidParameter(
            f"subtype_weights must have one row, or one for each of {n_classes} classes, got the shape {shares.shape}"
        )
    shape = (n_classes, shares.shape[-1])
    shares = np.broadcast_to(shares, shape).copy()
    if confusion is not None:
        pooled = check_numbers(confusion, name="subtype_confusion")
        if pooled.shape != (*shape, n_classes):
            raise InvalidParameter(
                f"subtype_confusion must have the shape {(*shape, n_classes)}, classes × subtypes × answers, "
                f"got {pooled.shape}"
            )
        return shares, check_confusion(pooled, (*shape, n_classes), name="subtype_confusion")
    right = check_numbers(accuracy, name="subtype_accuracy")
    if right.shape not in (shape, shape[1:]) or ((right < 0) | (right > 1)).any():
        raise InvalidParameter(
            f"subtype_accuracy must be in [0, 1] and have one value for each of {shape[1]} subtypes "
            f"(or {n_classes} rows of them), got {accuracy!r:.60}"
        )
    per_subtype = np.broadcast_to(right, shape)
    return shares, diagonal_confusion(per_subtype.T, n_classes).transpose(1, 0, 2).copy()


def _around(pooled: Floats, how_many: int, strength: float, rng: np.random.Generator) -> Floats:
    """Dirichlet draws around the pooled rows, one set for each labeler."""
    shape = (how_many, *pooled.shape)
    if strength == np.inf:
        return np.broadcast_to(pooled, shape).copy()
    drawn = rng.standard_gamma(strength * pooled, size=shape)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def _family_of(families: Sequence[Sequence[int]], n_labelers: int) -> Positions:
    family = np.full(n_labelers, -1, dtype=np.int64)
    for f, members in enumerate(families):
        if isinstance(members, int | np.integer) or len(members) == 0:
            raise InvalidParameter(f"families must be groups of labelers such as [[0, 1, 2]], got {families!r:.60}")
        for t in members:
            if check_integer(t, name="a labeler in families", low=0) >= n_labelers:
                raise InvalidParameter(f"families name labeler {t}, but the labelers are 0 to {n_labelers - 1}")
            if family[t] >= 0:
                raise InvalidParameter(f"a labeler must be in one family only, got {t} twice")
            family[t] = f
    return family


def _with_difficulty(classifier: Floats, weights: Floats, pooled: Floats, share: float) -> Floats:
    """The classifier's answer probabilities on each subtype; their mean over subtypes is `classifier`."""
    classes = np.arange(len(classifier))
    right = classifier[classes, classes][:, None]
    accuracy = pooled[classes, :, classes]
    deviation = accuracy - (weights * accuracy).sum(axis=1, keepdims=True)
    room = np.where(deviation > 0, 1 - right, right)
    far = np.abs(deviation) > 1e-12
    kappa = np.where(far, room / np.where(far, np.abs(deviation), 1.0), 1.0).min(axis=1, keepdims=True)
    chance = np.clip(right + share * np.minimum(kappa, 1.0) * deviation, 0.0, 1.0)
    wrong = 1 - right
    scale = np.where(wrong > 0, (1 - chance) / np.where(wrong > 0, wrong, 1.0), 1.0)
    by_subtype = classifier[:, None, :] * scale[..., None]
    by_subtype[classes, :, classes] = chance
    return np.asarray(by_subtype)
