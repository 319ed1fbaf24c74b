"""Kinds of items that mislead: clusters of items beside the classes, whose class is itself unknown."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from trueup._base.types import Booleans, Floats
from trueup._base.validation import RandomState, check_integer
from trueup.data.labels import Labels
from trueup.noise.base import Sampler, normalise
from trueup.noise.dawid_skene import PooledSampler
from trueup.noise.subtypes import StateModel

_EXTRA_DIAGONAL = 3.0  # pseudo-counts of the right answer in the pooled rows of extra clusters


class Clusters(StateModel):
    """One cluster of items for each class, and extra clusters that may belong to any.

    Generative model: item i is in cluster g_i ~ w; the first C clusters are the classes, and each extra one has a class
    of its own, unknown beforehand. A vote of t on i is a with probability θ_t[g_i, a]. Labelers are pooled within a
    cluster: θ_t[g] ~ Dir(s_g m_g), s_g ~ Gamma(2, 1/2), and m_g ~ Dir(1, with 4 at the class of a main cluster, of four
    classes and more 4 √(2.5 C), and 3 at that of an extra one). So an extra cluster may be a hard or a misleading kind
    of any class, labelers err together on its items, and which class it is of enters the uncertainty. All of this is
    drawn together with the truth, in every second chain without extra clusters, so that the draws average over whether
    there are any.

    A fit takes the extra clusters or none of them, as held-out votes tell, and otherwise is that of `Subtypes`, which
    has as many kinds of every class.

    Parameters
    ----------
    n_extra : int, optional
        Extra clusters, by default as many as classes.
    averaged : bool
        Whether every second chain of draws is without extra clusters.
    pooling : float
        Strength of the pull towards a cluster's pooled row in a fit, in votes.
    n_starts, max_iter, tol, random_state
        Of a fit, as in `Subtypes`.

    Attributes
    ----------
    state_prior_, state_class_, state_confusion_, pooled_, confusion_
        As of `Subtypes`.
    """

    alias = "clusters"

    def __init__(
        self,
        *,
        n_extra: int | None = None,
        averaged: bool = True,
        pooling: float = 2.0,
        n_starts: int = 4,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: RandomState = 0,
    ) -> None:
        self.n_extra = n_extra
        self.averaged = averaged
        super().__init__(pooling=pooling, n_starts=n_starts, max_iter=max_iter, tol=tol, random_state=random_state)

    @property
    def allows_dependence(self) -> bool:
        """Whether labelers may err together given the class: not without extra clusters."""
        return self.n_extra != 0

    def _extra_choices(self, n_classes: int) -> tuple[int, ...]:
        n_extra = n_classes if self.n_extra is None else check_integer(self.n_extra, name="n_extra", low=0)
        return (0, n_extra) if n_extra else (0,)

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        """One for each chain; where they are averaged, those of every second one are without extra clusters."""
        size = (n_raters, labels.n_classes, labels.n_answers)
        n_extra = self._extra_choices(labels.n_classes)[-1]
        return [
            ClusterSampler(*size, n_extra=0 if self.averaged and chain % 2 else n_extra) for chain in range(n_chains)
        ]


class ClusterSampler(PooledSampler):
    """Main clusters, one for each class, and extra ones whose class is drawn given the votes.

    An item belongs to an extra cluster with probability ε ~ Beta(extra clusters, classes), which makes the weights of
    all clusters together Dirichlet(1). Exchanges change the roles of clusters too. Without extra clusters this is
    Dawid–Skene with partial pooling.
    """

    def __init__(self, n_raters: int, n_classes: int, n_answers: int, *, n_extra: int) -> None:
        codes = np.concatenate([np.arange(n_classes), np.arange(n_extra) % n_classes]).astype(np.int32)
        super().__init__(n_raters, n_classes, n_answers, state_class=codes)
        self.is_extra = np.arange(self.n_states) >= n_classes
        self._diagonals[1] = _EXTRA_DIAGONAL
        self._shares = (float(max(n_extra, 1)), float(n_classes))
        self.pooled = normalise(self._pooled_prior())

    def _draw_classes(
        self, tables: Floats, state_counts: Floats, forbidden: Booleans, rng: np.random.Generator
    ) -> None:
        """The class of each extra cluster given its tables, the pooled row integrated out."""
        weight = self._log_tables(tables)[1]
        weight[forbidden] = -np.inf
        for g in np.flatnonzero(self.is_extra):
            if self.evidence is not None:  # what is known of its items, and how many the classes then have
                for y in range(self.n_classes):
                    self.state_class[g] = y
                    weight[g, y] += self.evidence[g, y] + self._log_within_classes(state_counts, self.state_class)
            self.state_class[g] = np.argmax(weight[g] + rng.gumbel(size=self.n_classes))

    def _log_allocation(self, state_counts: Floats, is_extra: Booleans) -> float:
        """Log P(how many items are in each cluster), up to a constant, weights integrated out."""
        extra, main = float(state_counts[is_extra].sum()), float(state_counts[~is_extra].sum())
        n_extra, n_main = int(is_extra.sum()), int((~is_extra).sum())
        value = gammaln(self._shares[0] + extra) + gammaln(self._shares[1] + main) - gammaln(n_main + main)
        return float(value - gammaln(n_extra + extra))

    def _draw_weights(self, state_counts: Floats, rng: np.random.Generator) -> None:
        super()._draw_weights(state_counts, rng)
        if self.is_extra.any():
            a, b = self._shares
            extra, main = state_counts[self.is_extra].sum(), state_counts[~self.is_extra].sum()
            share = rng.beta(a + extra, b + main)
            total = np.where(self.is_extra, self.weights[self.is_extra].sum(), self.weights[~self.is_extra].sum())
            self.weights = np.maximum(self.weights / total * np.where(self.is_extra, share, 1 - share), 1e-300)
