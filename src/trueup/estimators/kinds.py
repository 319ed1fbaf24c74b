"""How labelers and systems may err: independently, by a shared difficulty, or by kinds of items; each drawn.

The three kinds of model are drawn from the same votes and outputs. Which of them predicts votes that it was not told
decides what the shared answer rests on (`shared_shares`): a gate, since weights in proportion to evidence stay split
between models that contain each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from trueup._base.duration import LongWork
from trueup._base.types import Booleans, Codes, Floats, Positions
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.data.votes import one_vote_each, with_rater
from trueup.estimators.exact_multiclass import draw_categories
from trueup.estimators.system_features import Used
from trueup.noise import Clusters, DawidSkene, NoiseModel, SharedDifficulty, SoftTruth, kernels
from trueup.noise.sampling import PosteriorDraws, sample
from trueup.noise.system_outputs import SystemOutputs

INDEPENDENT, DIFFICULTY, KINDS, SOFT = "independent", "difficulty", "kinds", "soft"
_EQUALLY_EASY = "independent, equally easy"
_GATE = 0.04  # standard deviations of an item by which a model of dependence must predict better than independence
_CLOSED = {INDEPENDENT: 0.95, DIFFICULTY: 0.05}  # shares of the draws where none does
_OPEN = {DIFFICULTY: 0.5, KINDS: 0.5}
_CHAINS = 4
_FEW_LABELERS = 15  # up to which labelers are learned each by themselves
_SWEEPS = (500, 1000)  # of warm-up and of draws
_FEWER_SWEEPS = (300, 600)
_FEWEST_SWEEPS = (150, 300)  # where nothing is compiled
_LEAST_SWEEPS = 200  # that are drawn, of fewer truths than usual
_SWEEPS_PER_TRUTH = 2  # so many at most, and fewer by default
_EXTENDED = 3  # times as many of chains that have not mixed
_MOST_EXTENDED = 15_000  # answers up to which these are drawn
_WORST_RHAT = 1.1
FEWEST_DRAWS = 100  # that an answer can rest on
_MANY_VOTES = 15_000  # from here on fewer sweeps and fewer points of difficulty
_FEW_POINTS = 7
_MOST_STATES = 150  # a model with more is left out
_BINS = 8  # of scores
_FEW_BINS = 5
_FEW_ITEMS = 200
_LEVELS = 3  # of how sure a system is of the class it names
_SAME = 0.98  # agreement from which on systems are the same one
_DRAWS_COUNTED = 500  # of the truth, for a covariance
_MOST_SOFT = 3  # different systems up to which ambiguous items are modelled


@dataclass(frozen=True, eq=False)
class KindDraws:
    """What one kind of model says.

    Attributes
    ----------
    truths : integer array of shape (n_draws, n_items)
        Without rows where there is a posterior alone.
    posterior : array of shape (n_items, n_classes)
    scores : array of shape (n_items,)
        Log-densities of what it was not told.
    rhat, effective : float
        How well chains agree, and how many independent draws they are worth.
    """

    truths: Codes = field(repr=False)
    posterior: Floats = field(repr=False)
    scores: Floats = field(repr=False)
    rhat: float = 1.0
    effective: float = np.inf


@dataclass(frozen=True, eq=False)
class Kinds:
    """All kinds, on the same items.

    Attributes
    ----------
    draws : mapping from str to KindDraws
    shares : mapping from str to float
        What each counts for in the shared answer.
    evidence : float
        How much better the best model of dependence predicts than independent errors do: the mean gain of an item, in
        standard deviations.
    independent : NoiseModel, optional
        The candidate under which votes are likeliest, where it is ahead of the usual model of independent errors.
    """

    draws: Mapping[str, KindDraws]
    shares: Mapping[str, float]
    evidence: float
    independent: NoiseModel | None = None

    @property
    def centre(self) -> Floats:
        """P(class) of each item, all kinds averaged."""
        return np.asarray(np.mean([one.posterior for one in self.draws.values()], axis=0))

    def means(self, features: Floats) -> Floats:
        """What each kind expects of the means of features, shape (n_kinds, n_features)."""
        return np.stack([means_of(features, one.posterior) for one in self.draws.values()])

    def spread(self, features: Floats) -> Floats:
        """The standard deviation of the means of features, within the kinds and between them; shape (n_features,)."""
        return self.spread_of(partial(means_of_truths, features=features), partial(means_of, features))

    def spread_of(self, given_truths: Callable[[Codes], Floats], given_posterior: Callable[[Floats], Floats]) -> Floats:
        """The standard deviation of what is worked out from drawn truths, and from P(class), along the last axis."""
        within = [given_truths(one.truths).var(axis=0) for one in self.draws.values() if len(one.truths)]
        between = np.var([given_posterior(one.posterior) for one in self.draws.values()], axis=0)
        return np.asarray(np.sqrt(np.mean(within, axis=0) + between))

    def mixed(self, shares: Mapping[str, float], n_draws: int, rng: np.random.Generator) -> Codes:
        """Truths of several kinds in the given shares, in random order."""
        parts = []
        for name, share in shares.items():
            one, wanted = self.draws[name], max(1, round(share * n_draws))
            if len(one.truths):
                parts.append(one.truths[_evenly(len(one.truths), wanted, rng)])
            else:
                parts.append(draw_categories(one.posterior, wanted, rng))
        joined = np.concatenate(parts)
        return joined[rng.permutation(len(joined))]

    def posterior(self, shares: Mapping[str, float]) -> Floats:
        """P(class) of each item under the kinds in the given shares."""
        total = sum(shares.values())
        return np.asarray(sum(share / total * self.draws[name].posterior for name, share in shares.items()))


def draw_kinds(
    labels: Labels,
    outputs: SystemOutputs,
    representatives: Codes,
    *,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None = None,
    candidates: Sequence[NoiseModel] = (),
    n_chains: int = _CHAINS,
    n_warmup: int | None = None,
    n_draws: int | None = None,
    n_truths: int | None = None,
) -> Kinds:
    """Draw the truth under every kind of model.

    Parameters
    ----------
    labels : Labels
        Gold in it is taken for known.
    outputs : SystemOutputs
    representatives : integer array of shape (n, n_items)
        The classes that different systems name, for the model of ambiguous items; see `different_systems`.
    candidates : sequence of NoiseModel
        More models of independent errors; that under which votes are likeliest which it was not told is taken.
    n_warmup, n_draws : int, optional
        Sweeps of each chain.
    n_truths : int, optional
        How many truths are wanted of all chains; where these are few, chains are shorter by default.
    """
    given = {f"{INDEPENDENT} {k}": model for k, model in enumerate(candidates)}
    models = {**models_for(labels), **given}
    n_answers = labels.n_witnessed + outputs.codes.size
    default = _sweeps_for(n_answers, n_truths)
    is_extended = n_warmup is None and n_draws is None and n_answers <= _MOST_EXTENDED
    warmup, kept = n_warmup if n_warmup is not None else default[0], n_draws if n_draws is not None else default[1]
    n_steps = len(models)
    what, hint = f"drawing the truth of {labels.n_items:,} items", "pass progress= to watch it"
    tell = LongWork(what, hint) if progress is None else progress

    def report(step: int, share: float) -> None:
        tell((step + share) / n_steps)

    draws: dict[str, KindDraws] = {}
    draw = partial(sample, labels, outputs=outputs, one_witness=True, n_chains=n_chains, random_state=rng, warn=False)
    for step, (name, model) in enumerate(models.items()):
        drawn = draw(model, n_warmup=warmup, n_draws=kept, progress=partial(report, step))
        if is_extended and not have_mixed(drawn.rhat, drawn.ess):
            drawn = draw(model, n_warmup=_EXTENDED * warmup, n_draws=_EXTENDED * kept, progress=lambda _: None)
        draws[name] = _kept(drawn, labels.n_classes)
    independent = None
    for name in [name for name in draws if name not in (INDEPENDENT, DIFFICULTY, KINDS)]:
        candidate = draws.pop(name)
        if candidate.scores.mean() > draws[INDEPENDENT].scores.mean():
            draws[INDEPENDENT], independent = candidate, given.get(name, independent)
    if len(representatives) <= _MOST_SOFT:
        draws[SOFT] = _soft(one_vote_each(labels, rng.spawn(1)[0]), representatives)
    evidence = evidence_of(draws)
    return Kinds(draws, shared_shares(draws, evidence), evidence, independent)


def have_mixed(rhat: float, effective: float, fewest: float = FEWEST_DRAWS) -> bool:
    """Whether chains agree, and are worth enough independent draws."""
    return bool(rhat <= _WORST_RHAT and effective >= fewest)


def models_for(labels: Labels) -> dict[str, NoiseModel]:
    """The kinds of model that data of this size are read by, and another model of independent errors for many classes.

    That one is the model of difficulty where all items are equally easy: what difficulty predicts better is then due to
    difficulty, and not to how it spreads errors over the classes.
    """
    factor = SharedDifficulty(n_points=_FEW_POINTS if labels.n_witnessed > _MANY_VOTES else None)
    clusters = Clusters(averaged=False)
    if clusters.most_states(labels.n_classes) > _MOST_STATES:
        clusters = Clusters(n_extra=1, averaged=False)
    # Many labelers with few votes each are known by what labelers are like; of a few, nothing can be learned of others.
    alone: NoiseModel = DawidSkene() if labels.n_labelers <= _FEW_LABELERS else Clusters(n_extra=0)
    if factor.most_states(labels.n_classes) > _MOST_STATES:
        return {INDEPENDENT: alone, KINDS: clusters}
    easy = {_EQUALLY_EASY: SharedDifficulty(n_points=1)} if labels.n_classes > 2 else {}
    return {INDEPENDENT: alone, DIFFICULTY: factor, KINDS: clusters, **easy}


def _sweeps_for(n_answers: int, n_truths: int | None) -> tuple[int, int]:
    """Of warm-up and of draws of each chain, for so many answers of labelers and systems."""
    warmup, kept = _FEWER_SWEEPS if n_answers > _MANY_VOTES else _SWEEPS
    if kernels.engine_for_chains() == "scipy":
        warmup, kept = _FEWEST_SWEEPS
    if n_truths is not None:
        kept = min(kept, max(_LEAST_SWEEPS, _SWEEPS_PER_TRUTH * n_truths))
    return warmup, kept


def evidence_of(draws: Mapping[str, KindDraws]) -> float:
    """The mean gain of the best model of dependence over independent errors, in standard deviations of an item."""
    gains = [draws[name].scores - draws[INDEPENDENT].scores for name in (DIFFICULTY, KINDS) if name in draws]
    return max([0.0, *[float(gain.mean() / gain.std()) for gain in gains if gain.std() > 0]])


def shared_shares(draws: Mapping[str, KindDraws], evidence: float) -> dict[str, float]:
    """What each kind counts for in the shared answer."""
    shares = {name: share for name, share in (_OPEN if evidence > _GATE else _CLOSED).items() if name in draws}
    return shares or {INDEPENDENT: 1.0}


def mixing_of(kinds: Kinds, names: Iterable[str]) -> tuple[float, float]:
    """The worst R-hat and the least effective number of draws of the kinds that an answer rests on."""
    own = [kinds.draws[name] for name in names]
    return max(one.rhat for one in own), min(one.effective for one in own)


def as_outputs(outputs: AlignedPredictions, used: Used, in_votes: Booleans | None = None) -> SystemOutputs:
    """What the systems say as answers: classes, bins of scores, or classes with how sure a system is.

    Systems that say much the same share the weight of a witness, so that a copy, or twenty versions of one model, add
    nothing. Labelers whose votes are in the labels are left out.
    """
    chosen = np.arange(outputs.n_systems) if in_votes is None else np.flatnonzero(~in_votes)
    part = outputs.of_systems(chosen)
    if used == "classes":
        table = part.outputs("classes").astype(np.int64)
        return SystemOutputs.of_classes(table, part.n_classes, witness_weights(table))
    binned = [_bins(row) if used == "scores" else _sure_classes(row, part.n_classes) for row in part.outputs(used)]
    table = np.array([codes for codes, _ in binned], dtype=np.int64).reshape(len(binned), outputs.n_items)
    sizes = np.array([size for _, size in binned], dtype=np.int64)
    levels = np.arange(sizes.sum()) // _LEVELS % part.n_classes
    return SystemOutputs(table, sizes, witness_weights(table), said_class=levels if used == "probabilities" else None)


def witness_weights(table: Positions, times: Floats | None = None) -> Floats:
    """What each system counts for: one over the systems that say the same, those that half do counted half.

    By Cohen's kappa of each pair, on the items that both have an answer to. Of two classes, a system and its opposite
    say the same too. Each column stands for so many items as `times` says, by default for one.
    """
    n_systems = len(table)
    if n_systems < 2:
        return np.ones(n_systems)
    same = np.zeros((n_systems, n_systems))
    chance = np.zeros_like(same)
    answered = (table >= 0).astype(float)
    heavy = answered.T if times is None else answered.T * times[:, None]
    both = answered @ heavy
    for answer in range(int(table.max(initial=0)) + 1):
        said = (table == answer).astype(float)
        same += said @ (said.T if times is None else said.T * times[:, None])
        # How often the row's system says so, on the items that the column's has an answer to as well.
        share = np.divide(said @ heavy, both, out=np.zeros_like(same), where=both > 0)
        chance += share * share.T
    agreement = np.divide(same, both, out=np.zeros_like(same), where=both > 0)
    kappa = np.divide(agreement - chance, 1 - chance, out=np.zeros_like(same), where=chance < 1)
    kappa = np.where(agreement >= 1.0, 1.0, np.clip(kappa, 0.0, 1.0))
    if table.max(initial=0) <= 1:
        # With the answers of one system turned around, agreement and that by chance are one less what they are.
        turned = np.divide(chance - agreement, chance, out=np.zeros_like(same), where=(chance > 0) & (both > 0))
        kappa = np.maximum(kappa, np.clip(turned, 0.0, 1.0))
    np.fill_diagonal(kappa, 1.0)
    return np.asarray(1 / kappa.sum(axis=1))


def different_systems(codes: Codes) -> Codes:
    """The classes of one system of each group that says almost the same, where any of them says something."""
    kept: list[int] = []
    for place, row in enumerate(codes):
        if all(_agreement(row, codes[other]) < _SAME for other in kept):
            kept.append(place)
        if len(kept) > _MOST_SOFT:
            break
    return codes[kept].astype(np.int32)


def first_of_equals(table: npt.NDArray[Any]) -> Positions:
    """The places of systems that are no copies of earlier ones: a copy has nothing to correct."""
    seen: dict[bytes, int] = {}
    for place, row in enumerate(table):
        seen.setdefault(np.ascontiguousarray(row).tobytes(), place)
    return np.array(list(seen.values()), dtype=np.int64)


def _agreement(codes: Codes, others: Codes) -> float:
    """The share of equal answers among the items that either of two has an answer to."""
    either = (codes >= 0) | (others >= 0)
    return float((codes == others)[either].mean()) if either.any() else 1.0


def _soft(labels: Labels, representatives: Codes) -> KindDraws:
    """The model of ambiguous items: its posterior, each of the different systems as one more labeler in turn."""
    sets = [with_rater(labels, codes) for codes in representatives] or [labels]
    posterior = np.mean([SoftTruth().fit(one).posterior(one) for one in sets], axis=0)
    return KindDraws(np.empty((0, labels.n_items), dtype=np.int8), posterior, np.zeros(labels.n_items))


def _kept(drawn: PosteriorDraws, n_classes: int) -> KindDraws:
    truths = drawn.truths.astype(np.int8) if n_classes <= 127 else drawn.truths
    return KindDraws(truths, drawn.posterior, drawn.scores, drawn.rhat, drawn.ess)


def means_of(features: Floats, posterior: Floats) -> Floats:
    """What is expected of the means of features, shape (n_features,)."""
    return np.asarray(np.einsum("fnc,nc->f", features, posterior) / max(len(posterior), 1))


def means_of_truths(truths: Codes, features: Floats) -> Floats:
    """The means of features under some of the drawn truths; shape (n_draws, n_features)."""
    n_items = truths.shape[1]
    at = np.arange(n_items)
    return np.array([features[:, at, truth].sum(axis=1) / n_items for truth in some_truths(truths)])


def some_truths(truths: Codes) -> Codes:
    """Some of the drawn truths, evenly spaced: enough for a covariance."""
    return truths[:: max(1, len(truths) // _DRAWS_COUNTED)]


def _evenly(n: int, wanted: int, rng: np.random.Generator) -> Positions:
    """So many of n positions, evenly spaced where there are enough, else by chance."""
    if wanted <= n:
        return np.linspace(0, n - 1, wanted).astype(np.int64)
    return rng.integers(n, size=wanted)


def _bins(scores: Floats) -> tuple[Positions, int]:
    """Scores in bins of equal numbers of items, -1 for none; and how many bins."""
    given = np.flatnonzero(~np.isnan(scores))
    codes = np.full(len(scores), -1, dtype=np.int64)
    n_bins = _BINS if len(given) >= _FEW_ITEMS else _FEW_BINS
    share = (scipy.stats.rankdata(scores[given], method="average") - 0.5) / max(len(given), 1)
    codes[given] = np.minimum((share * n_bins).astype(np.int64), n_bins - 1)
    return codes, n_bins


def _sure_classes(probabilities: Floats, n_classes: int) -> tuple[Positions, int]:
    """The likeliest class with a level of how sure the system is of it; -1 for none."""
    given = np.flatnonzero(~np.isnan(probabilities[:, 0]))
    codes = np.full(len(probabilities), -1, dtype=np.int64)
    best = probabilities[given].argmax(axis=1)
    top = probabilities[given].max(axis=1)
    level = np.minimum((scipy.stats.rankdata(top) - 0.5) / max(len(given), 1) * _LEVELS, _LEVELS - 1).astype(np.int64)
    codes[given] = best * _LEVELS + level
    return codes, n_classes * _LEVELS
