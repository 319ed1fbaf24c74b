"""Three answers from votes alone, nested in what they assume: independent errors, shared ones, and as real crowds do.

*Independent*: every labeler errs on their own. *Shared*: items may be hard or misleading for all, as far as votes can
tell (`estimators.kinds`). *Real*: all kinds of model averaged, with a floor for what no vote shows, widened by what was
learned from real sets with truth (`estimators.real_map`); the widening moves the truth itself (`estimators.tilt`), so
every metric and every difference follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import check_integer
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each, with_rater
from trueup.estimators.assumptions import ASSUMPTIONS, MANY_CLASSES, Assumption
from trueup.estimators.exact_multiclass import draw_categories
from trueup.estimators.kinds import (
    FEWEST_DRAWS,
    INDEPENDENT,
    KindDraws,
    Kinds,
    as_outputs,
    different_systems,
    draw_kinds,
    have_mixed,
    means_of,
    means_of_truths,
    mixing_of,
)
from trueup.estimators.real_map import RealMap
from trueup.estimators.system_evidence import fitted_posterior
from trueup.estimators.system_features import Used
from trueup.estimators.tilt import (
    Directions,
    deviations_under_tilts,
    independent_directions,
    normal_moves,
    representative_rows,
    tilted_truths,
)
from trueup.estimators.truth_draws import TruthDraws, not_mixed
from trueup.noise import GLAD, NoiseModel
from trueup.noise.system_outputs import ROW_MASS

MOST_VOTES = 40_000  # above, models are drawn on some of the items
_SOME_VOTES = 20_000  # on these
FEW_SWEEPS = {"n_warmup": 200, "n_draws": 400}
_LEAST_ITEMS = 500
MOST_SYSTEMS = 40  # that have directions of their own
_MOST_SLICES = 30  # of all systems together, that are moved apart from the whole
_MOST_SHARES = 12  # classes up to which their shares are moved
_MOST_LABELS = 20_000_000  # drawn in all, but for the least number of draws
_FEWEST_FOR_SPREAD = 40  # draws that a standard deviation can rest on
_LEAST_DRAWS = 200
_SOME_ROWS = 250  # items that show how far tilts get
_SCALINGS = 3  # of what is asked of tilts, until all systems together move as far as each alone
_MOST_SCALED = 1.5  # each time
_ENDS = (0.025, 0.975)
_INNER_VARIANCE = 0.913  # of a standard normal value that is drawn in to these
_NOTHING = 1e-9  # of a variance, beside the usual one


@dataclass(frozen=True, eq=False)
class Readings:
    """p(truth | votes, systems) under each assumption, drawn when first asked for.

    Attributes
    ----------
    kinds : Kinds
        On `some` of the items.
    some : boolean array of shape (n_items,)
        The items that the models were drawn on; all of them but in large data.
    part : array of shape (n_features, n_some, n_classes)
        The features of these items, whose means are the same metrics on them.
    base : array of shape (n_features,)
        What is expected of these means by such a fit as gave `posterior`, to the votes on these items.
    posterior : array of shape (n_items, n_classes)
        P(class) of every item under independent errors, from all votes and systems.
    features : array of shape (n_features, n_items, n_classes)
        Those whose means are the metrics of the systems, then the shares of the classes.
    known : integer array of shape (n_items,)
        The class of vetted items that the models were told, -1 for none.
    n_contrasts : int
        So many of the last features say how slices differ from the whole.
    """

    kinds: Kinds
    some: Booleans = field(repr=False)
    part: Floats = field(repr=False)
    base: Floats = field(repr=False)
    posterior: Floats = field(repr=False)
    features: Floats = field(repr=False)
    known: Codes = field(repr=False)
    real_map: RealMap
    n_draws: int
    seed: int
    n_contrasts: int = 0

    @property
    def n_systems(self) -> int:
        """Systems with a direction of their own."""
        return len(self.features) - self.n_contrasts - n_moved_shares(self.features.shape[2])

    @cached_property
    def _cache(self) -> dict[Assumption, TruthDraws]:
        return {}

    def assuming(self, assumption: Assumption) -> TruthDraws:
        """Draws of the truth under an assumption."""
        if assumption not in self._cache:
            rng = np.random.default_rng([self.seed, ASSUMPTIONS.index(assumption)])
            self._cache[assumption] = self._real(rng) if assumption == "real" else self._of_models(assumption, rng)
        return self._cache[assumption]

    @property
    def row_times(self) -> Floats:
        """How many items each row stands for."""
        return np.ones(len(self.posterior))

    @property
    def drawn_shares(self) -> Floats:
        """The share of the items that each feature looks at that the models were drawn on; shape (n_features,).

        Of a system that said something of a few items all of these may have been drawn.
        """
        drawn, there = ((np.ptp(features, axis=2) > 0) for features in (self.part, self.features))
        return np.asarray(drawn.sum(axis=1) / np.maximum(there @ self.row_times, 1.0))

    @property
    def unknown_share(self) -> float:
        """The share of the items whose class the models were not told."""
        return float((self.known < 0).mean())

    @property
    def centre(self) -> Floats:
        """P(class) of each item with all kinds of model averaged: what gold then corrects."""
        if self.some.all():
            return self.kinds.centre
        return self.posterior

    def _of_models(self, assumption: Assumption, rng: np.random.Generator) -> TruthDraws:
        shares = {INDEPENDENT: 1.0} if assumption == "independent" else self.kinds.shares
        if self.some.all():
            truths, posterior = self.kinds.mixed(shares, self.n_draws, rng), self.kinds.posterior(shares)
            return self._with_mixing(truths, posterior, shares, FEWEST_DRAWS, not_mixed)
        parts = [self._of_kind(name, share / sum(shares.values()), rng) for name, share in shares.items()]
        truths = np.concatenate(parts)
        truths = truths[rng.permutation(len(truths))]
        return self._with_mixing(truths, self.posterior, shares, FEWEST_DRAWS, not_mixed)

    def _with_mixing(
        self, truths: Codes, posterior: Floats, names: Iterable[str], fewest: float, say: Callable[[float, float], str]
    ) -> TruthDraws:
        """Draws, with how well the chains behind them agree and what to say of those that do not."""
        rhat, effective = mixing_of(self.kinds, names)
        diagnostics = {"r_hat": rhat, "effective_draws": effective, "evidence": self.kinds.evidence}
        converged = have_mixed(rhat, effective, fewest)
        return TruthDraws(truths, posterior, diagnostics, converged, () if converged else (say(rhat, effective),))

    def _of_kind(self, name: str, share: float, rng: np.random.Generator) -> Codes:
        """A share of the draws, under one kind: the means that its draws have on some of the items, carried to all."""
        means, independent = (self._means_beyond_chance(one) for one in (name, INDEPENDENT))
        inner = _inner(independent)
        usual, chance = inner.mean(axis=0), inner.var(axis=0)
        # Draws that lie off a fit by less than they differ are off by chance, which must not be carried to all items.
        gap = usual - self.base
        offset = gap * gap**2 / np.maximum(gap**2 + chance, 1e-300)
        # If errors are independent, parameters are known as well as all votes tell; how kinds differ, as some do.
        narrowed = np.sqrt(self.drawn_shares) if name == INDEPENDENT else 1.0
        moves = rng.permutation(offset + (means - usual) * narrowed)
        directions = independent_directions(self.features, _covariance_with_mean(moves))
        return self._tilted(directions, self._along(directions, moves), max(1, round(share * self._n_tilted)), rng)

    def _means_beyond_chance(self, name: str) -> Floats:
        """The means of the features under draws of a kind, less far apart than these by the chance of each item.

        The truth of each item is drawn afterwards, and its chance must not count twice.
        """
        drawn = self.kinds.draws[name]
        means = means_of_truths(drawn.truths, self.part)
        return without_part(means, drawing_covariance(drawn.posterior, self.part))

    def _real(self, rng: np.random.Generator) -> TruthDraws:
        # The truth of each item is drawn afterwards, and its chance must not count twice.
        models = self.kinds.spread(self.part) ** 2 - np.diag(drawing_covariance(self.kinds.centre, self.part))
        spread = np.sqrt(np.maximum(models, 0.0))
        alike = blind_correlations(self.features, self.row_times)
        covariance = self.real_map.covariance(spread, alike, self.unknown_share)
        last = len(covariance) - self.n_contrasts
        part = np.where(np.arange(len(covariance)) < last, 1.0, np.sqrt(self.real_map.slice_share))
        covariance *= np.outer(part, part)
        directions = self._directions(covariance, rng)
        moves = None
        if not self.some.all():
            gap = self.kinds.means(self.part).mean(axis=0) - self.base
            moves = normal_moves(directions, self._n_tilted, rng) + self._along(directions, gap)
        return self._as_centred(self._tilted(directions, moves, self._n_tilted, rng))

    def of_all_kinds(self) -> TruthDraws:
        """Draws of which each kind has the same share: what all are off by beyond what models know is not in them."""
        rng = np.random.default_rng([self.seed, len(ASSUMPTIONS)])
        if self.some.all():
            return self._as_centred(
                self.kinds.mixed(dict.fromkeys(self.kinds.draws, 1 / len(self.kinds.draws)), self.n_draws, rng)
            )
        drawn = [name for name, one in self.kinds.draws.items() if len(one.truths)]
        return self._as_centred(np.concatenate([self._of_kind(name, 1 / len(drawn), rng) for name in drawn]))

    def _as_centred(self, truths: Codes) -> TruthDraws:
        """Draws about the centre: all kinds are behind it that were drawn."""
        drawn = [name for name, one in self.kinds.draws.items() if len(one.truths)]
        return self._with_mixing(truths, self.centre, drawn, _FEWEST_FOR_SPREAD, _spread_of_chains)

    def _directions(self, covariance: Floats, rng: np.random.Generator) -> Directions:
        """Directions along which each system moves as far, all in all, as it would by itself.

        The more systems, the fewer truths are as far off about one of them and not about the others, and draws that
        ask for such are drawn in: so more is asked for.
        """
        yields = self._is_share
        directions = independent_directions(self.features, covariance, yields)
        n_systems, n_shares = self.n_systems, n_moved_shares(self.features.shape[2])
        if n_systems < 2:
            return directions
        some, times = representative_rows(np.ptp(self.features, axis=2), self.row_times, _SOME_ROWS)
        posterior, features = self.centre[some], self.features[:, some]
        alone = []
        for k in range(n_systems):
            own = [k, *range(n_systems, n_systems + n_shares)]
            of_system = independent_directions(features[own], covariance[np.ix_(own, own)], yields[own])
            alone.append(deviations_under_tilts(posterior, features[[k]], of_system, times, rng))
        for _ in range(_SCALINGS):
            of_all = directions.at_items(some)
            together = deviations_under_tilts(posterior, features[:n_systems], of_all, times, rng)
            missing = np.sqrt(np.sum(np.square(alone)) / max(float(np.sum(together**2)), 1e-300))
            directions = replace(directions, scales=directions.scales * np.clip(missing, 1.0, _MOST_SCALED))
        return directions

    @property
    def _is_share(self) -> Booleans:
        """Which of the features are shares of classes: these give way to the metrics of systems."""
        place = np.arange(len(self.features)) - self.n_systems
        return (place >= 0) & (place < n_moved_shares(self.features.shape[2]))

    def _along(self, directions: Directions, moves: Floats) -> Floats:
        """Moves of the means of the features (along the last axis) as moves of the means of the directions."""
        n_columns = self.posterior.size
        flat = self.features.reshape(len(self.features), n_columns)
        heavy = flat * np.repeat(self.row_times, self.features.shape[2])
        own = directions.features.reshape(directions.n, n_columns)
        return np.asarray(moves @ np.linalg.lstsq(heavy @ flat.T, heavy @ own.T, rcond=None)[0])

    @property
    def _n_tilted(self) -> int:
        """Draws where all are moved by tilts: as many as there is room for."""
        return self._n_within(_MOST_LABELS // max(len(self.posterior), 1))

    def _n_within(self, most: int) -> int:
        """As many draws as were asked for, `most` where these are fewer, but no fewer than an interval can rest on."""
        return int(np.clip(most, min(_LEAST_DRAWS, self.n_draws), self.n_draws))

    def _tilted(self, directions: Directions, moves: Floats | None, n_draws: int, rng: np.random.Generator) -> Codes:
        truths = tilted_truths(self.centre, directions, n_draws, rng, moves=moves)
        truths[:, self.known >= 0] = self.known[self.known >= 0]
        return truths


def read_truth(
    labels: Labels,
    outputs: AlignedPredictions,
    *,
    used: Used,
    real_map: RealMap,
    in_votes: Booleans | None = None,
    n_truths: int = 2000,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
    groups: Codes | None = None,
    group_mass: float = ROW_MASS,
    candidates: Sequence[NoiseModel] = (),
    **sampling: Any,
) -> Readings:
    """Draw the kinds of models for votes and systems.

    Parameters
    ----------
    labels : Labels
        Gold in it is taken for known; leave out what is to correct the models.
    outputs : AlignedPredictions
        As the metric wants them.
    used : {"classes", "scores", "probabilities"}
        Which of the outputs the metric looks at.
    real_map : RealMap
    in_votes : boolean array of shape (n_systems,), optional
        Systems that are labelers whose very votes are in the labels: these are in the evidence already.
    n_truths : int
        Draws of each answer.
    groups : integer array of shape (n_items,), optional
        Slices of the items, -1 for none.
    group_mass : float
        What is expected of the share of each class in the slices beforehand, in items; see `SystemOutputs`.
    candidates : sequence of NoiseModel
        More models of independent errors; see `draw_kinds`.
    **sampling
        Of the chains: n_chains, n_warmup, n_draws.
    """
    check_integer(n_truths, name="n_draws", low=10)
    rng = np.random.default_rng(seed)
    systems = as_outputs(outputs, used, in_votes)
    systems = systems if groups is None else systems.with_groups(groups, group_mass)
    others = outputs if in_votes is None else outputs.of_systems(~in_votes)
    no_classes = np.empty((0, labels.n_items), dtype=np.int32)
    representatives = different_systems(no_classes if others.codes is None else others.codes)
    some = np.ones(labels.n_items, dtype=bool)
    of_part = None
    sampling = {"n_truths": n_truths, **sampling, "candidates": candidates}
    if labels.n_classes > MANY_CLASSES:
        raters = one_vote_each(labels, rng)
        raters = with_rater(raters, representatives[0]) if len(representatives) else raters
        posterior = GLAD().fit(raters).posterior(raters)
        kinds = _posterior_alone(posterior, min(n_truths, 200), rng)
    elif labels.n_witnessed <= MOST_VOTES:
        kinds = draw_kinds(labels, systems, representatives, rng=rng, progress=progress, **sampling)
        posterior = kinds.draws[INDEPENDENT].posterior
    else:
        some = _some_items(labels, np.asarray(outputs.has_output(used).any(axis=0)), rng)
        chosen, of_chosen = labels.select(items=labels.items[some]), replace(systems, codes=systems.codes[:, some])
        sampling = {**FEW_SWEEPS, **sampling}
        kinds = draw_kinds(chosen, of_chosen, representatives[:, some], rng=rng, progress=progress, **sampling)
        votes = one_vote_each(labels, rng)
        posterior = fitted_posterior(votes, systems, kinds.independent)
        of_part = fitted_posterior(votes.select(items=labels.items[some]), of_chosen, kinds.independent)
    n_moved = min(outputs.n_systems, MOST_SYSTEMS)
    sliced = groups if groups is not None and _can_move(groups, n_moved) else None
    features = direction_features(outputs, labels.n_classes, used, posterior, sliced)
    part = features
    if not some.all():
        at_some = None if sliced is None else sliced[some]
        part = direction_features(outputs.at_items(some), labels.n_classes, used, posterior[some], at_some)
    n_contrasts = 0 if sliced is None else n_moved * int(sliced.max() + 1)
    return Readings(
        kinds,
        some,
        part,
        means_of(part, posterior if of_part is None else of_part),
        posterior,
        features,
        labels.gold_codes,
        real_map,
        n_truths,
        seed,
        n_contrasts,
    )


def direction_features(
    outputs: AlignedPredictions, n_classes: int, used: Used, posterior: Floats, groups: Codes | None = None
) -> Floats:
    """Features whose means over the items are what the systems are judged by, then the shares of the classes.

    The mean of a system's feature is its accuracy, its AUC but for a constant, or the mean probability that it gives to
    the truth. Where there are slices, what these means are in each, less what they are in all, comes last: of the
    first system in all slices, then of the next.
    """
    rows = []
    for row in outputs.outputs(used)[:MOST_SYSTEMS]:
        if used == "classes":
            feature = np.asarray(row[:, None] == np.arange(n_classes), dtype=float)
            given = row >= 0
        elif used == "scores":
            positive = outputs.positive
            assert positive is not None
            given = ~np.isnan(row)
            feature = np.zeros((len(row), n_classes))
            # Scores that are equal have one rank, whatever the order of the items.
            order = scipy.stats.rankdata(row[given])
            share = float(np.clip(posterior[given, positive].mean(), 0.02, 0.98)) if given.any() else 0.5
            feature[given, positive] = ((order - 0.5) / max(len(order), 1) - 0.5) / (share * (1 - share))
        else:
            given = ~np.isnan(row[:, 0])
            feature = np.where(given[:, None], np.nan_to_num(row), 0.0)
        rows.append(feature / max(float(given.mean()), 1e-12))
    features = np.array(rows).reshape(len(rows), len(posterior), n_classes)
    parts = [features]
    shares = np.eye(n_moved_shares(n_classes), n_classes)
    parts.append(np.broadcast_to(shares[:, None, :], (len(shares), len(posterior), n_classes)))
    if groups is not None:
        is_member = groups[None, :] == np.arange(groups.max() + 1)[:, None]
        contrasts = is_member / np.maximum(is_member.mean(axis=1, keepdims=True), 1e-12) - 1.0
        parts += [contrasts[:, :, None] * feature for feature in features]
    return np.concatenate(parts)


def n_moved_shares(n_classes: int) -> int:
    """How many shares of classes are moved: of many classes, none."""
    return n_classes if n_classes <= _MOST_SHARES else 0


def _can_move(groups: Codes, n_systems: int) -> bool:
    """Whether each slice can have a direction of its own: many would be a matrix too large to solve for each draw."""
    return int(groups.max(initial=-1) + 1) * n_systems <= _MOST_SLICES


def n_some_items(n_items: int, n_witnessed: int) -> int:
    """How many items models are drawn on where there are many votes."""
    mean = n_witnessed / n_items
    return int(min(n_items, max(_LEAST_ITEMS, _SOME_VOTES / max(mean, 1e-9))))


def _some_items(labels: Labels, has_output: Booleans, rng: np.random.Generator) -> Booleans:
    """Items with some thousand votes, by chance; those that systems say something of before others."""
    n = n_some_items(labels.n_items, labels.n_witnessed)
    order = rng.permutation(labels.n_items)
    order = np.concatenate([order[has_output[order]], order[~has_output[order]]])
    some = np.zeros(labels.n_items, dtype=bool)
    some[order[:n]] = True
    return some


def _posterior_alone(posterior: Floats, n_draws: int, rng: np.random.Generator) -> Kinds:
    """One kind, whose parameters are taken as known."""
    truths = draw_categories(posterior, n_draws, rng)
    draws: Mapping[str, KindDraws] = {INDEPENDENT: KindDraws(truths, posterior, np.zeros(len(posterior)))}
    return Kinds(draws, {INDEPENDENT: 1.0}, 0.0)


def without_part(values: Floats, part: Floats) -> Floats:
    """Values whose covariance is less by that of a part which is independent of the rest; shape (n, n_features).

    A few draws in a thousand may take the classes for one another. They move no end of an interval, but would rule a
    covariance; so it is that of the values between the ends.
    """
    inner = _inner(values)
    middle, covariance = inner.mean(axis=0), np.atleast_2d(np.cov(inner.T, bias=True)) / _INNER_VARIANCE
    sizes, vectors = np.linalg.eigh(covariance)
    kept = sizes > _NOTHING * max(float(sizes.max(initial=0.0)), 1e-300)
    scales, vectors = np.sqrt(sizes[kept]), vectors[:, kept]
    rest = np.eye(len(scales)) - (vectors.T @ part @ vectors) / np.outer(scales, scales)
    shares, onto = np.linalg.eigh(rest)
    smaller = (onto * np.sqrt(np.clip(shares, 0.0, 1.0))) @ onto.T
    return np.asarray(middle + (((values - middle) @ vectors / scales) @ smaller * scales) @ vectors.T)


def _inner(values: Floats) -> Floats:
    """Values of which those in the tails are drawn in to where these begin."""
    return np.clip(values, *np.quantile(values, _ENDS, axis=0))


def _covariance_with_mean(moves: Floats) -> Floats:
    """The covariance of moves but for their tails, with as much again along their mean: a direction leads there."""
    inner = _inner(moves)
    covariance, mean = np.atleast_2d(np.cov(inner.T, bias=True)), inner.mean(axis=0)
    size = float(mean @ mean)
    if size <= 0:
        return covariance
    return np.asarray(covariance + np.outer(mean, mean) / size * max(float(np.trace(covariance)), _NOTHING))


def drawing_covariance(posterior: Floats, features: Floats, times: Floats | None = None) -> Floats:
    """Of the means of features, from drawing each item's class on its own; shape (n_features, n_features).

    Each row stands for so many items as `times` says, by default for one.
    """
    times = np.ones(len(posterior)) if times is None else times
    means = np.einsum("fnc,nc->fn", features, posterior)
    flat = features.reshape(len(features), -1)
    masses = (posterior * times[:, None]).ravel()
    return np.asarray(((flat * masses) @ flat.T - (means * times) @ means.T) / times.sum() ** 2)


def blind_correlations(features: Floats, times: Floats | None = None) -> Floats:
    """How much the means of features have in common if nothing is known: of a truth of which each class is as likely.

    Of two systems it falls with the share of items that they class differently; systems that are opposites, or a
    system that names one class and the share of that class, are one and the same.
    """
    _, n_items, n_classes = features.shape
    covariance = drawing_covariance(np.full((n_items, n_classes), 1 / n_classes), features, times)
    scales = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.mean(scales) ** 2)
    possible = vectors[:, values > _NOTHING]
    onto = possible @ possible.T  # shares add up to one, slices to the whole: no truth moves them otherwise
    return np.asarray(onto @ (covariance / np.outer(scales, scales)) @ onto)


def _spread_of_chains(rhat: float, effective: float) -> str:
    return (
        f"The votes admit several readings of the truth, and chains have not mixed (R-hat {rhat:.2f}, {effective:.0f} "
        "effective draws): how far they lie apart is in the interval, which is rough; vet some items drawn at random."
    )
