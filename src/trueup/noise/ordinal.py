"""Ratings: classes in an order, and labelers whose errors are mostly between neighbours."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import expit

from trueup._base.types import Booleans, Floats, Positions
from trueup._base.validation import RandomState, as_generator, preview
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.noise import kernels
from trueup.noise.averaging import kept_sweeps, likeliest_classes
from trueup.noise.base import Sampler, TableModel, from_table, warn_if_unidentifiable
from trueup.noise.hamiltonian import MOST_NUMBERS, StepScale

_GAP = (np.log(1.5), 0.7)  # mean and scale of the normal law of the logarithm of a gap, in units of the errors
_LAPSE = (-3.0, 1.0)  # mean and scale of the normal law of the mean log-odds of a lapse
_SPREADS = (1.0, 0.5, 0.5, 1.0)  # scales of the half-normal laws of how much raters differ, in the order of `_OWN`
_OWN = ("bias", "discrimination", "stretch", "lapse")  # what raters differ in
_FLOOR = 1e-12  # of a probability
_TUNED_SWEEPS = 150  # in which lengths of steps are learned
_ACCEPTED = 0.35  # the share of steps they are learned for
_FIT_SWEEPS = (300, 400)
_SCALE = 2.4  # steps in standard deviations of one number
_FALL = 1.0  # how fast a system is expected to say a class less the further it is from the truth, in log for each step
_HYPER = np.array([*_GAP, *_LAPSE, *_SPREADS])


@dataclass(frozen=True, eq=False)
class RatingParameters:
    """The parameters of `Ordinal`, in one draw.

    Attributes
    ----------
    gaps : array of shape (2 n_classes - 2,)
        Log distances from the place of the first class to the first threshold, from there to the place of the second
        class, and so on.
    bias, discrimination, lapse : array of shape (n_raters,)
        How far a rater's thresholds are below those of all; the logarithm of how sharp the rater is; the log-odds of
        a rating that ignores the item.
    stretch : array of shape (n_raters, n_classes - 2)
        Log factors of the distances between a rater's thresholds.
    lapse_mean : float
    spreads : array of shape (4,)
        Log standard deviations of bias, discrimination, stretch and lapse between raters.
    """

    gaps: Floats
    bias: Floats
    discrimination: Floats
    stretch: Floats
    lapse: Floats
    lapse_mean: float
    spreads: Floats

    @property
    def n_raters(self) -> int:
        """Number of raters."""
        return len(self.bias)

    def matrices(self) -> Floats:
        """P(rating | class) of each rater, shape (n_raters, n_classes, n_classes), in the order of the classes."""
        points = np.concatenate([[0.0], np.cumsum(np.exp(self.gaps))])
        places, thresholds = points[::2], points[1::2]
        own = thresholds[:1] + np.concatenate(
            [np.zeros((self.n_raters, 1)), np.cumsum(np.diff(thresholds) * np.exp(self.stretch), axis=1)], axis=1
        )
        own += (thresholds.mean() - own.mean(axis=1) - self.bias)[:, None]
        upto = expit(np.exp(self.discrimination)[:, None, None] * (own[:, None, :] - places[:, None]))
        n_classes = len(places)
        rated = np.empty((self.n_raters, n_classes, n_classes))
        rated[:, :, 0] = upto[:, :, 0]
        np.subtract(upto[:, :, 1:], upto[:, :, :-1], out=rated[:, :, 1:-1])
        rated[:, :, -1] = 1 - upto[:, :, -1]
        lapse = expit(self.lapse)[:, None, None]
        return np.maximum((1 - lapse) * rated + lapse / n_classes, _FLOOR)


def draw_parameters(n_raters: int, n_classes: int, rng: np.random.Generator) -> RatingParameters:
    """Parameters of raters from the prior of `Ordinal`."""
    spreads = np.abs(rng.standard_normal(4)) * _SPREADS
    lapse_mean = float(_LAPSE[0] + _LAPSE[1] * rng.standard_normal())
    return RatingParameters(
        gaps=_GAP[0] + _GAP[1] * rng.standard_normal(2 * n_classes - 2),
        bias=spreads[0] * rng.standard_normal(n_raters),
        discrimination=spreads[1] * rng.standard_normal(n_raters),
        stretch=spreads[2] * rng.standard_normal((n_raters, n_classes - 2)),
        lapse=lapse_mean + spreads[3] * rng.standard_normal(n_raters),
        lapse_mean=lapse_mean,
        spreads=np.log(np.maximum(spreads, 1e-6)),
    )


class Ordinal(TableModel):
    """Ratings: a rater sees the place of the true class with an error, and rates by thresholds of their own.

    Generative model: y_i ~ π; classes have places x_1 < … < x_K with thresholds c_1 < … < c_{K-1} between them. With
    probability λ_t a rating of t ignores the item and is any class; else it is at most k with probability
    expit(s_t (c_tk − x_y)), the graded response of item response theory [1]_. Thresholds c_t are those of all moved
    down by the bias b_t, the distances between them stretched by factors of t; s_t is how sharp t is. So errors go to
    neighbours before others. Raters differ in bias, sharpness, stretch and lapses by as much as the votes tell:
    normal laws, whose scales are drawn too. Drawn together with the truth by Metropolis steps on the counts of
    ratings, whose cost does not depend on the number of items; where raters are few and numba is there, by Hamiltonian
    steps with the truth summed over as well. A fit is the mean of such draws.

    Parameters
    ----------
    order : sequence of classes, optional
        From the lowest to the highest; by default the order of ``labels.classes``, which is that of numbers.
    random_state : int, Generator or None
        Of a fit; the default gives the same each time.

    Attributes
    ----------
    confusion_ : array of shape (n_labelers, n_classes, n_answers)
    pooled_ : array of shape (n_classes, n_answers)
    bias_ : array of shape (n_labelers,)
        By how many steps of the scale a labeler rates above the truth, on average.
    discrimination_ : array of shape (n_labelers,)
        How sharp each labeler is; one of average sharpness has about 1.

    References
    ----------
    .. [1] Samejima (1969), "Estimation of latent ability using a response pattern of graded scores", Psychometrika
       Monograph 17.

    Examples
    --------
    >>> import trueup as tu
    >>> ratings = tu.simulate.ratings(n_items=200, random_state=0).labels
    >>> model = tu.noise.Ordinal().fit(ratings)
    >>> model.bias_.shape, model.confusion_.shape
    ((5,), (5, 5, 5))
    """

    alias = "ordinal"
    needs_order = True

    def __init__(self, *, order: Sequence[Hashable] | None = None, random_state: RandomState = 0) -> None:
        self.order = order
        self.random_state = random_state

    def fit(self, labels: Labels) -> Self:
        """The mean of the matrices over draws."""
        warn_if_unidentifiable(labels, what=type(self).__name__)
        self._remember(labels)
        rng = as_generator(self.random_state)
        size = (labels.n_labelers, labels.n_classes, labels.n_answers)
        ranks = self._ranks(labels)
        warmup, n_draws = _FIT_SWEEPS
        compiled = kernels.engine_for_chains() == "numba"
        sampler = OrdinalSampler(*size, ranks=ranks, compiled=compiled)
        table, prior = np.zeros((labels.n_labelers * labels.n_answers, labels.n_classes)), np.zeros(labels.n_classes)
        sharpness = np.zeros(labels.n_labelers)
        losses: list[float] = []
        first = likeliest_classes(labels)
        for step in kept_sweeps(labels, sampler, first, rng, n_warmup=warmup, n_draws=n_draws):
            table, prior = table + sampler.table / n_draws, prior + sampler.weights / n_draws
            sharpness += np.exp(sampler.parameters.discrimination) / n_draws
            losses.append(-step.log_likelihood / max(labels.n_votes, 1))
        self.prior_, self.confusion_ = prior, from_table(table, labels.n_answers)
        self.pooled_ = self.confusion_.mean(axis=0)
        self.discrimination_ = sharpness
        decided = self.confusion_[:, :, : labels.n_classes]
        rated = decided @ ranks / np.maximum(decided.sum(axis=2), _FLOOR)
        self.bias_ = (rated - ranks) @ prior
        self.n_iter_, self.converged_, self.loss_history_ = n_draws, True, losses
        return self

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> list[Sampler]:
        """One for each chain, all alike."""
        size = (n_raters, labels.n_classes, labels.n_answers)
        return [OrdinalSampler(*size, ranks=self._ranks(labels)) for _ in range(n_chains)]

    def _ranks(self, labels: Labels) -> Positions:
        """The rank of each class, 0 the lowest."""
        if self.order is None:
            return np.arange(labels.n_classes)
        place = {name: rank for rank, name in enumerate(self.order)}
        names = labels.classes.tolist()
        if len(place) != len(list(self.order)) or set(place) != set(names):
            raise InvalidParameter(
                f"⟨order⟩ must name each of the classes once, {preview(names, most=10)}, got "
                f"{preview(list(self.order), most=10)}; name them from the lowest to the highest",
                parameter="order",
            )
        return np.array([place[name] for name in names])


class OrdinalStart(NamedTuple):
    """What a compiled chain of ratings starts from, and where it stands; see `compiled_ordinal.run_chain`."""

    state_class: Positions
    classes: Positions
    gaps: Floats
    own: Floats
    laws: Floats
    steps: Floats
    gap_steps: Floats
    n_sweeps: Positions
    learned: list[StepScale]  # one, as soon as the number of parameters is known
    n_answers: int

    def run(self, votes: Any, systems: Any, gold: Any, item_prior: Floats, states: Any, *rest: Any) -> None:
        """Run the sweeps; see `compiled_gibbs.run_chain`."""
        from trueup.noise.kernels import compiled_ordinal

        *moved, n_sweeps, learned, n_answers = self
        if not learned:
            n_classes, n_rows = len(self.classes), int(systems[1][-1]) - len(systems[2])
            n_free = self.gaps.size + self.own.size + n_classes - 1 + n_rows * n_classes
            learned.append(StepScale.start(n_free if n_free <= MOST_NUMBERS else 0))
        where = (tuple(learned[0]), n_sweeps, _HYPER, _TUNED_SWEEPS, n_answers)
        compiled_ordinal.run_chain(votes, systems, gold, item_prior, states, *moved, *where, *rest)


class OrdinalSampler(Sampler):
    """Thresholds and what raters differ in move by Metropolis steps on the counts; the prior of the classes is drawn.

    Parameters
    ----------
    n_raters, n_classes, n_answers : int
    ranks : integer array of shape (n_classes,), optional
        The rank of each class, 0 the lowest.
    compiled : bool
        Whether `draw` moves in compiled code; the rest is the reference for it.

    Attributes
    ----------
    parameters : RatingParameters
    """

    def __init__(
        self,
        n_raters: int,
        n_classes: int,
        n_answers: int,
        *,
        ranks: Positions | None = None,
        compiled: bool = False,
    ) -> None:
        super().__init__(n_raters, n_classes, n_answers)
        self._ranks = np.arange(n_classes) if ranks is None else ranks
        self._classes = np.argsort(self._ranks, kind="stable")
        self.closeness = np.exp(-_FALL * np.abs(self._ranks[:, None] - self._ranks))
        self.parameters = RatingParameters(
            gaps=np.full(2 * n_classes - 2, _GAP[0]),
            bias=np.zeros(n_raters),
            discrimination=np.zeros(n_raters),
            stretch=np.zeros((n_raters, n_classes - 2)),
            lapse=np.full(n_raters, _LAPSE[0]),
            lapse_mean=_LAPSE[0],
            spreads=np.log(np.array(_SPREADS) / 2),
        )
        self._steps = {name: np.full(n_raters, np.log(0.5)) for name in _OWN}
        self._gap_steps = np.full(2 * n_classes - 2, np.log(0.3))
        self._n_sweeps = 0
        self._compiled = compiled

    def compiled_start(self) -> OrdinalStart:
        """Where the chain stands now."""
        now = self.parameters
        return OrdinalStart(
            self.state_class.astype(np.int64),
            self._classes,
            now.gaps.copy(),
            np.column_stack([now.bias, now.discrimination, now.stretch, now.lapse]),
            np.concatenate([[now.lapse_mean], now.spreads]),
            np.array([self._steps[name] for name in _OWN]),
            self._gap_steps.copy(),
            np.array([self._n_sweeps]),
            [],
            self.n_answers,
        )

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """What raters differ in, places and thresholds, their laws, rates of abstention and class shares."""
        by_rater = counts.reshape(self.n_raters, self.n_answers, self.n_classes)
        decided = by_rater[:, : self.n_classes].transpose(0, 2, 1)[:, self._classes][:, :, self._classes]
        if self._compiled:
            self._move_compiled(np.ascontiguousarray(decided), rng)
        else:
            values = _log_likelihood(self.parameters, decided)
            for name in _OWN:
                values = self._move_raters(name, decided, values, rng)
            self._move_gaps(decided, values, rng)
            self._move_together(rng)
            self._draw_laws(rng)
        self._n_sweeps += 1
        matrices = self.parameters.matrices()[:, self._ranks][:, :, self._ranks]
        table = matrices.transpose(0, 2, 1)
        if self.n_answers > self.n_classes:
            total = by_rater[:, : self.n_classes].sum(axis=(1, 2))
            rates = rng.standard_gamma(np.column_stack([total, by_rater[:, self.n_classes :].sum(axis=2)]) + 1.0)
            rates /= rates.sum(axis=1, keepdims=True)
            others = np.repeat(rates[:, 1:, None], self.n_classes, axis=2)
            table = np.concatenate([table * rates[:, :1, None], others], axis=1)
        self.table = np.ascontiguousarray(table).reshape(counts.shape)
        self.weights = rng.dirichlet(1.0 + state_counts)

    def _move_compiled(self, counts: Floats, rng: np.random.Generator) -> None:
        """All that moves, in compiled code."""
        from trueup.noise.kernels import compiled_ordinal

        start = self.compiled_start()
        moved = (start.gaps, start.own, start.laws, start.steps, start.gap_steps)
        compiled_ordinal.move(counts, *moved, _HYPER, self._rate, False, rng)
        self.parameters = RatingParameters(
            gaps=start.gaps,
            bias=start.own[:, 0],
            discrimination=start.own[:, 1],
            stretch=start.own[:, 2:-1],
            lapse=start.own[:, -1],
            lapse_mean=float(start.laws[0]),
            spreads=start.laws[1:],
        )
        self._steps, self._gap_steps = dict(zip(_OWN, start.steps, strict=True)), start.gap_steps

    @property
    def _rate(self) -> float:
        """How fast lengths of steps are learned, early in a chain only."""
        return 1.0 / np.sqrt(1.0 + self._n_sweeps / 4) if self._n_sweeps < _TUNED_SWEEPS else 0.0

    def _move_raters(self, name: str, counts: Floats, values: Floats, rng: np.random.Generator) -> Floats:
        """One step of each rater in one respect; gives the log-likelihood of each rater's votes then."""
        now = getattr(self.parameters, name)
        if not now.size:
            return values
        length = np.exp(self._steps[name]).reshape(-1, *[1] * (now.ndim - 1))
        moved = now + length * rng.standard_normal(now.shape)
        centre = self.parameters.lapse_mean if name == "lapse" else 0.0
        spread = np.exp(self.parameters.spreads[_OWN.index(name)])
        proposal = replace(self.parameters, **{name: moved})
        proposed = _log_likelihood(proposal, counts)
        prior = ((now - centre) ** 2 - (moved - centre) ** 2) / (2 * spread**2)
        change = proposed - values + prior.reshape(self.n_raters, -1).sum(axis=1)
        accepted = np.log(rng.random(self.n_raters)) < change
        keep = accepted.reshape(length.shape)
        self.parameters = replace(self.parameters, **{name: np.where(keep, moved, now)})
        self._steps[name] = self._tuned(self._steps[name], accepted)
        return np.where(accepted, proposed, values)

    def _move_gaps(self, counts: Floats, values: Floats, rng: np.random.Generator) -> None:
        """One step of each gap in turn."""
        accepted = np.zeros(len(self._gap_steps), dtype=bool)
        for k, length in enumerate(np.exp(self._gap_steps)):
            gaps = self.parameters.gaps.copy()
            gaps[k] += length * rng.standard_normal()
            proposal = replace(self.parameters, gaps=gaps)
            proposed = _log_likelihood(proposal, counts)
            change = float((proposed - values).sum() + _log_gaps(gaps) - _log_gaps(self.parameters.gaps))
            if np.log(rng.random()) < change:
                self.parameters, values, accepted[k] = proposal, proposed, True
        self._gap_steps = self._tuned(self._gap_steps, accepted)

    def _move_together(self, rng: np.random.Generator) -> None:
        """Steps along which no rating becomes likelier: thresholds and biases up, or the whole scale wider.

        Single steps hardly move along these where there are many raters.
        """
        now, n = self.parameters, self.n_raters
        bias_scale, sharp_scale = np.exp(now.spreads[:2])
        step = _SCALE * rng.standard_normal() * bias_scale / np.sqrt(n)
        distances = np.exp(now.gaps) + step * np.where(np.arange(len(now.gaps)) % 2 == 0, 1.0, -1.0)
        if (distances > 0).all():
            gaps = np.log(distances)
            # The prior is of logarithms, and the step is one of distances: hence the Jacobian.
            change = _log_gaps(gaps) - _log_gaps(now.gaps) - float((gaps - now.gaps).sum())
            bias = now.bias + step
            change += float((now.bias**2 - bias**2).sum()) / (2 * bias_scale**2)
            if np.log(rng.random()) < change:
                now = replace(now, gaps=gaps, bias=bias)
        step = _SCALE * rng.standard_normal() / np.sqrt(len(now.gaps) / _GAP[1] ** 2 + n / sharp_scale**2)
        wider = replace(
            now, gaps=now.gaps + step, bias=now.bias * np.exp(step), discrimination=now.discrimination - step
        )
        change = _log_gaps(wider.gaps) - _log_gaps(now.gaps) + n * step
        change += float((now.bias**2 - wider.bias**2).sum()) / (2 * bias_scale**2)
        change += float((now.discrimination**2 - wider.discrimination**2).sum()) / (2 * sharp_scale**2)
        self.parameters = wider if np.log(rng.random()) < change else now

    def _draw_laws(self, rng: np.random.Generator) -> None:
        """How much raters differ, and how often they lapse on average, given what each does."""
        now = self.parameters
        scale = np.exp(now.spreads[_OWN.index("lapse")])
        precision = _LAPSE[1] ** -2 + self.n_raters / scale**2
        centre = (_LAPSE[0] / _LAPSE[1] ** 2 + now.lapse.sum() / scale**2) / precision
        now = replace(now, lapse_mean=float(centre + rng.standard_normal() / np.sqrt(precision)))
        spreads = now.spreads.copy()
        for k, name in enumerate(_OWN):
            away = getattr(now, name) - (now.lapse_mean if name == "lapse" else 0.0)

            def log_density(spread: float, away: Floats = away, scale: float = _SPREADS[k]) -> float:
                return float(
                    (1 - away.size) * spread
                    - (away**2).sum() / (2 * np.exp(2 * spread))
                    - np.exp(2 * spread) / (2 * scale**2)
                )

            spreads[k] = _metropolis(log_density, spreads[k], _SCALE / np.sqrt(2 + 2 * away.size), rng)
        self.parameters = replace(now, spreads=spreads)

    def _tuned(self, steps: Floats, accepted: Booleans) -> Floats:
        """Log lengths of steps, those that were too long or too short corrected."""
        return np.asarray(np.minimum(steps + self._rate * (accepted - _ACCEPTED), np.log(3.0)))


def _metropolis(log_density: Callable[[float], float], now: float, length: float, rng: np.random.Generator) -> float:
    """One step of a number."""
    moved = now + length * rng.standard_normal()
    return moved if np.log(rng.random()) < log_density(moved) - log_density(now) else now


def _log_likelihood(parameters: RatingParameters, counts: Floats) -> Floats:
    """Log-likelihood of the votes of each rater, shape (n_raters,); counts are (n_raters, classes, ratings)."""
    return np.asarray(np.einsum("tyk,tyk->t", counts, np.log(parameters.matrices())))


def _log_gaps(gaps: Floats) -> float:
    """Log prior of the logarithms of gaps, up to a constant."""
    return -float(((gaps - _GAP[0]) ** 2).sum()) / (2 * _GAP[1] ** 2)
