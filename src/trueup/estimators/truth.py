"""p(truth | votes, systems, gold): the one place that sees votes, systems and gold together.

Every door ends here. Where the caller names no noise model, `TruthEngine` has the answers: from votes alone under three
assumptions, and from vetted items that were drawn at random. Where one is named, `truths_given_outputs` draws under it
alone. Systems are inside the states of the labelers, so they may err with them, and all are judged on the same draws,
so what they share cancels in their differences. Where the noise is known, what the systems say are features of a
log-linear prior of each item's class, and for the classes of one system the posterior is exact
(`estimators.exact_binary`, `exact_multiclass`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from trueup._base.types import Booleans, Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.aligned import AlignedPredictions
from trueup.data.labels import Labels
from trueup.estimators.assumptions import DEFAULT_ASSUMPTION, Assumption
from trueup.estimators.kinds import as_outputs, first_of_equals
from trueup.estimators.metric_scope import gold_in_denominator
from trueup.estimators.readings import Readings, read_truth
from trueup.estimators.real_map import RealMap, shipped_map
from trueup.estimators.rectified import rectified_truths
from trueup.estimators.system_features import Used, system_prior
from trueup.estimators.truth_draws import TruthDraws, known_classes_alone, mixed_draws, not_mixed
from trueup.metrics import Metric
from trueup.noise import NoiseModel, SoftTruth, Stack, resolve
from trueup.noise.item_prior import LogLinearPrior
from trueup.noise.sampling import sample
from trueup.noise.system_outputs import ROW_MASS, SystemOutputs

_MOST_LABELS = 400_000_000  # drawn in all; one byte each
_DRAWS_A_COEFFICIENT = 8  # truths drawn for each draw of the coefficients where these cost a pass over the items
_MANY_ITEMS = 20_000
_SWEEPS_A_DRAW = 3  # of a chain for each truth that is kept: neighbours are much alike


def draw_truths(
    labels: Labels,
    noise: str | NoiseModel,
    *,
    outputs: SystemOutputs | None = None,
    item_prior: LogLinearPrior | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, systems, features of the items).

    Parameters
    ----------
    labels : Labels
    noise : str or NoiseModel
        A model that is drawn together with the truth, by name or not fitted (see `trueup.noise.sample`); or a known or
        fitted one, which is taken as it is.
    outputs : SystemOutputs, optional
        What systems say of the items, for a model that is drawn.
    item_prior : LogLinearPrior, optional
        What else tells the class of an item; its coefficients are drawn too. Without it the class shares of the noise
        model are all that is known.
    n_draws : int
        Fewer are made where there are very many items.
    **sampling
        For `trueup.noise.sample`: n_chains, n_warmup.
    """
    check_integer(n_draws, name="n_draws", low=10)
    rng = as_generator(random_state)
    noise = resolve(noise)
    if not is_drawn(noise):
        return _known(labels, noise, item_prior, n_draws, rng, progress)
    n_chains = int(sampling.pop("n_chains", 4))
    draws = sample(
        labels,
        noise,
        outputs=outputs,
        item_prior=item_prior,
        n_chains=n_chains,
        n_warmup=sampling.pop("n_warmup", 500),
        n_draws=max(4, _SWEEPS_A_DRAW * -(-n_draws // n_chains)),
        random_state=rng,
        progress=progress,
        warn=False,
        **sampling,
    )
    return TruthDraws(
        small_codes(draws.truths, labels.n_classes),
        draws.posterior,
        {"r_hat": draws.rhat, "effective_draws": draws.ess},
        draws.converged,
        () if draws.converged else (not_mixed(draws.rhat, draws.ess),),
    )


def _known(
    labels: Labels,
    noise: NoiseModel,
    item_prior: LogLinearPrior | None,
    n_draws: int,
    rng: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> TruthDraws:
    """The noise is known or taken as known, so draws are independent: no chain."""
    n_draws = max(10, min(n_draws, _MOST_LABELS // max(labels.n_items, 1)))
    log_likelihood = known_classes_alone(noise.log_likelihood(labels), labels)
    truths = np.empty((n_draws, labels.n_items), dtype=np.int8 if labels.n_classes <= 127 else np.int16)
    if item_prior is None:
        with np.errstate(divide="ignore"):  # a class may have no prior weight
            posterior = np.asarray(softmax(log_likelihood + np.log(noise.prior_), axis=1))
        _draw_into(truths, posterior, rng)
        return TruthDraws(truths, posterior)
    lattice = np.eye(labels.n_classes)
    if isinstance(noise, SoftTruth):
        # A system knows how ambiguous an item is, as labelers do: what it says tells the state, not only the class.
        lattice = noise.lattice_
        item_prior = item_prior.over_states(lattice)
        with np.errstate(divide="ignore"):  # a gold item is in one state
            log_likelihood = np.log(noise.state_posterior(labels))
    each = _DRAWS_A_COEFFICIENT if labels.n_items >= _MANY_ITEMS else 1
    drawn = item_prior.draws_given_votes(log_likelihood, -(-n_draws // each), rng)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    mean = np.zeros((labels.n_items, labels.n_classes))
    for k, coefficients in enumerate(drawn.coefficients):
        joint = likelihood * np.maximum(item_prior.probabilities(coefficients), 1e-300)
        joint = (joint / joint.sum(axis=1, keepdims=True)) @ lattice
        mean += joint
        _draw_into(truths[k * each : (k + 1) * each], joint, rng)
        if progress is not None:
            progress((k + 1) / len(drawn.coefficients))
    notes: tuple[str, ...] = ()
    if drawn.effective < 100:
        notes = (
            f"The votes say so little that draws are worth {drawn.effective:.0f} independent ones: take the intervals "
            "as rough, get more votes, or vet some items.",
        )
    return TruthDraws(
        truths, mean / len(drawn.coefficients), {"effective_draws": min(drawn.effective, n_draws)}, not notes, notes
    )


def _draw_into(truths: Codes, posterior: Floats, rng: np.random.Generator) -> None:
    """Fill rows with draws from the same probabilities."""
    upto = np.cumsum(posterior[:, :-1], axis=1).astype(np.float32)
    uniform = np.empty(len(posterior), dtype=np.float32)
    for row in truths:
        rng.random(out=uniform, dtype=np.float32)
        np.greater_equal(uniform, upto[:, 0], out=row, casting="unsafe")
        for y in range(1, upto.shape[1]):
            row += uniform >= upto[:, y]


def small_codes(truths: npt.NDArray[np.int16], n_classes: int) -> Codes:
    """Drawn classes in one byte each, where these are enough."""
    return truths.astype(np.int8) if n_classes <= 127 else truths


def settle_noise(noise: NoiseModel, labels: Labels, *, draw: bool) -> NoiseModel:
    """The model as an engine takes it; what was passed is never changed.

    Parameters
    ----------
    noise : NoiseModel
        As a user named or made it.
    labels : Labels
    draw : bool
        Whether the engine draws the parameters of a model together with the truth, where the model can be drawn.

    Returns
    -------
    NoiseModel
        A known model as it is; one that will be drawn not fitted, even if it came fitted, since its matrices are no
        more known than those of a name; any other fitted to the votes.
    """
    if draw and noise.can_be_drawn:
        return noise.clone()
    model = noise.clone().fit(labels)
    if draw and isinstance(model, Stack) and model.best_.can_be_drawn:
        return model.best_.clone()
    return model


def is_drawn(model: NoiseModel) -> bool:
    """Whether a settled model is drawn together with the truth."""
    return model.can_be_drawn and not model.is_fitted


def truths_given_outputs(
    labels: Labels,
    noise: NoiseModel,
    outputs: AlignedPredictions,
    *,
    used: Used,
    in_votes: Booleans | None = None,
    n_draws: int = 2000,
    random_state: RandomState = None,
    progress: Callable[[float], None] | None = None,
    **sampling: Any,
) -> TruthDraws:
    """Draw the truth of all items from p(truth | votes, what the systems say).

    Parameters
    ----------
    labels : Labels
    noise : NoiseModel
        As `settle_noise` gives it.
    outputs : AlignedPredictions
    used : {"classes", "scores", "probabilities"}
        Which of the outputs the metric looks at.
    in_votes : boolean array of shape (n_systems,), optional
        Systems that are labelers whose very votes are in the labels: these are in the evidence already.
    n_draws, random_state, progress, **sampling
        As for `draw_truths`.
    """
    what: dict[str, Any] = {}
    if is_drawn(noise):
        what["outputs"] = as_outputs(outputs, used, in_votes)
    elif in_votes is None or not in_votes.all():
        others = outputs if in_votes is None else outputs.of_systems(~in_votes)
        what["item_prior"] = system_prior(others, labels.n_classes, used=used)
    return draw_truths(labels, noise, **what, n_draws=n_draws, random_state=random_state, progress=progress, **sampling)


Basis = Literal["gold", "votes"]
ENOUGH_GOLD = 20  # vetted items drawn at random, in the metric's own denominator, from which an answer rests on them


def drawn_gold(labels: Labels) -> Codes:
    """The class of each vetted item that was drawn at random, -1 for all others; also of gold kept aside."""
    known = np.where(labels.gold_codes >= 0, labels.gold_codes, labels.held_codes)
    return np.where(np.isnan(labels.gold_chance), -1, known).astype(np.int32)


def gold_share(n_seen: int) -> float:
    """The share of an answer that vetted items have which a metric looks at: all of it from `ENOUGH_GOLD` on."""
    return min(1.0, n_seen / ENOUGH_GOLD)


@dataclass(frozen=True, eq=False)
class TruthEngine:
    """The truth of all items, however a metric needs it; drawn when first asked for and kept.

    Attributes
    ----------
    labels : Labels
    outputs : AlignedPredictions
        What all systems say of the items.
    positive : int
        Code of the positive class.
    in_votes : boolean array of shape (n_systems,), optional
        Systems that are labelers whose votes are in the labels.
    real_map : RealMap
    n_draws : int
        Of each answer.
    seed : int
    progress : callable, optional
    sampling : mapping
        Options of the chains.
    groups : integer array of shape (n_items,), optional
        Slices of the items that are asked about, -1 for none.
    weights : array of shape (n_items,), optional
        What each item counts for in what is asked.
    group_mass : float
        What is expected of them beforehand, in items; see `SystemOutputs`.
    candidates : sequence of NoiseModel
        More models of independent errors, for what is asked; see `estimators.kinds.draw_kinds`.
    alone : NoiseModel, optional
        A model that was named: votes are read by it alone, whatever is assumed.
    """

    labels: Labels = field(repr=False)
    outputs: AlignedPredictions = field(repr=False)
    positive: int
    in_votes: Booleans | None = None
    real_map: RealMap = field(default_factory=shipped_map)
    n_draws: int = 2000
    seed: int = 0
    progress: Callable[[float], None] | None = field(default=None, repr=False)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    groups: Codes | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    group_mass: float = ROW_MASS
    candidates: Sequence[NoiseModel] = ()
    alone: NoiseModel | None = None

    @cached_property
    def drawn_gold(self) -> Codes:
        """The class of each vetted item that was drawn at random, -1 for all others; also of gold kept aside."""
        return drawn_gold(self.labels)

    @cached_property
    def model_labels(self) -> Labels:
        """The labels as models see them: what is to correct them is not told to them."""
        told = np.where(self.drawn_gold >= 0, -1, self.labels.gold_codes).astype(np.int32)
        return replace(self.labels, gold_codes=told)

    @cached_property
    def _readings(self) -> dict[Used, Readings]:
        return {}

    @cached_property
    def _rectified(self) -> dict[tuple[str, str, int], TruthDraws]:
        return {}

    def readings(self, used: Used) -> Readings:
        """What the votes say, for metrics that look at classes, scores or probabilities."""
        if used not in self._readings:
            self._readings[used] = read_truth(
                self.model_labels,
                self.outputs.prepared_for(used, positive=self.positive),
                used=used,
                real_map=self.real_map,
                in_votes=self.in_votes,
                n_truths=self.n_draws,
                seed=self.seed,
                progress=self.progress,
                groups=self.groups,
                group_mass=self.group_mass,
                candidates=self.candidates,
                **self.sampling,
            )
        return self._readings[used]

    @cached_property
    def _alone(self) -> dict[Used, TruthDraws]:
        return {}

    def _drawn_alone(self, used: Used, model: NoiseModel) -> TruthDraws:
        """Draws under the model that was named; slices may tell the class, as they do for all models."""
        if used not in self._alone:
            settled = settle_noise(model, self.model_labels, draw=True)
            outputs = as_outputs(self.outputs.prepared_for(used, positive=self.positive), used, self.in_votes)
            self._alone[used] = draw_truths(
                self.model_labels,
                settled,
                outputs=outputs if self.groups is None else outputs.with_groups(self.groups, self.group_mass),
                random_state=np.random.default_rng(self.seed),
                progress=self.progress,
                **{"n_draws": self.n_draws, **self.sampling},
            )
        return self._alone[used]

    def centre(self, used: Used) -> Floats:
        """P(class) of each item from votes: what gold then corrects."""
        return self.readings(used).centre if self.alone is None else self._drawn_alone(used, self.alone).posterior

    def with_labels(self, labels: Labels) -> TruthEngine:
        """The engine for the same votes with other gold; models that are told the same are not drawn again."""
        engine = replace(self, labels=labels)
        if np.array_equal(engine.model_labels.gold_codes, self.model_labels.gold_codes):
            engine._readings.update(self._readings)
            engine._alone.update(self._alone)
        return engine

    def basis(self, metric: Metric) -> Basis:
        """What the headline of a metric rests on."""
        return "gold" if gold_share(self.gold_seen(metric)) == 1 else "votes"

    def gold_seen(self, metric: Metric) -> int:
        """Vetted items drawn at random that a metric looks at."""
        if not (self.drawn_gold >= 0).any():
            return 0
        outputs = self.outputs.prepared_for(metric.looks_at, positive=self.positive)
        return gold_in_denominator(metric, outputs, self.drawn_gold, self.positive)

    def headline(self, metric: Metric, assumption: Assumption | None) -> TruthDraws:
        """Draws for the headline of a metric: gold first, then the votes under an assumption.

        Below what is enough, vetted items have their share of the draws, so that one more never changes much.
        """
        share = gold_share(self.gold_seen(metric))
        if share == 1:
            return self.rectified(metric)
        votes = self.assuming(metric, assumption)
        return votes if share == 0 else self._mixed(metric, votes, share)

    def _mixed(self, metric: Metric, votes: TruthDraws, share: float) -> TruthDraws:
        corrected = self.rectified(metric)
        truths = mixed_draws(votes.truths, corrected.truths, share, np.random.default_rng([self.seed, 18]))
        posterior = share * corrected.posterior + (1 - share) * votes.posterior
        return replace(votes, truths=truths, posterior=posterior)

    def assuming(self, metric: Metric, assumption: Assumption | None) -> TruthDraws:
        """Draws from votes alone under an assumption, or under the model that was named.

        What was drawn and vetted is known, and corrects nothing else.
        """
        if self.alone is not None:
            draws = self._drawn_alone(metric.looks_at, self.alone)
        else:
            draws = self.readings(metric.looks_at).assuming(assumption or DEFAULT_ASSUMPTION)
        known = self.drawn_gold >= 0
        if not known.any():
            return draws
        truths = draws.truths.copy()
        truths[:, known] = self.drawn_gold[known]
        return replace(draws, truths=truths)

    def rectified(self, metric: Metric) -> TruthDraws:
        """Draws from the models corrected by the vetted items that were drawn at random."""
        key = (metric.name, metric.needs, id(metric.function))  # functions may share a name
        if key not in self._rectified:
            outputs = self.outputs.prepared_for(metric.looks_at, positive=self.positive)
            truths = rectified_truths(
                self.centre(metric.looks_at),
                outputs.of_systems(first_of_equals(outputs.outputs(metric.looks_at))),
                metric,
                gold=self.drawn_gold,
                chance=self.labels.gold_chance,
                positive=self.positive,
                n_draws=min(self.n_draws, max(200, _MOST_LABELS // max(self.labels.n_items, 1))),
                rng=np.random.default_rng([self.seed, 17]),
                groups=self.groups,
                weights=self.weights,
            )
            chosen = self.model_labels.gold_codes >= 0
            truths[:, chosen] = self.model_labels.gold_codes[chosen]
            posterior = np.stack([(truths == y).mean(axis=0) for y in range(self.labels.n_classes)], axis=1)
            self._rectified[key] = TruthDraws(truths, posterior, {"vetted": float((self.drawn_gold >= 0).sum())})
        return self._rectified[key]
