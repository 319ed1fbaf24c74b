"""Do labelers err together? The check, and what a panel is worth if they do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from trueup._base.types import Codes, Floats
from trueup._base.validation import RandomState, as_generator, check_integer
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter, Sentence
from trueup.noise import kernels
from trueup.noise.base import NoiseModel, TableModel, as_table, class_states, normalise
from trueup.noise.subtypes import StateModel, Subtypes


@dataclass(frozen=True)
class IndependenceCheck:
    """How often votes on one item are wrong together, against what the model expects.

    Attributes
    ----------
    ratio : float
        Observed joint errors over expected ones; 1 where labelers err independently given what the model knows.
    p_value : float
        The share of data sets made by the model itself with a ratio at least as large.
    sentence : Sentence
        The finding in plain words.
    """

    ratio: float
    p_value: float
    sentence: Sentence

    @property
    def dependent(self) -> bool:
        """Whether independence is out of the question: the ratio is above 1.05 and p is below 0.01."""
        return self.p_value < 0.01 and self.ratio > 1.05

    def advice(self, model: NoiseModel) -> Sentence:
        """What dependence means for an answer that rests on a noise model, and what to do; empty without any."""
        if not self.dependent:
            return Sentence("")
        if model.allows_dependence:
            return Sentence(
                "The noise model in use allows for that, as far as votes can tell: vet some items to be sure."
            )
        return Sentence(
            'Intervals that assume independence are too narrow: use ⟨noise="clusters"⟩, which does not, and vet some '
            "items."
        )


@dataclass(frozen=True)
class EffectiveLabelers:
    """How many independent labelers the votes on an item are worth.

    Attributes
    ----------
    votes_per_item : float
        Votes on an average item.
    effective : float
        Independent votes that would leave the same variance of the share of wrong votes.
    correlation : float
        Mean correlation of the errors of two votes on one item.
    sentence : str
    """

    votes_per_item: float
    effective: float
    correlation: float
    sentence: str


def check_independence(
    labels: Labels, model: NoiseModel, *, n_replicates: int = 200, random_state: RandomState = 0
) -> IndependenceCheck:
    """Compare joint errors of votes on the same item with what a fitted model expects.

    The number of pairs of wrong votes, averaged over the posterior of the truth, is divided by its expectation under
    the model's error rates. Since the same votes decide what is taken for the truth, that ratio is not 1 even for
    independent labelers; so data sets with the same design are drawn from the model, each is given the same treatment,
    and the observed ratio is held against theirs (a posterior-predictive check [1]_).

    The model is not fitted anew to the drawn data sets, which makes the check conservative: on 20 sets of independent
    votes the least p was 0.25 where 0.05 would be usual. It rarely accuses wrongly and misses weak dependence.

    With `Subtypes` the check says whether the subtypes account for the dependence.

    References
    ----------
    .. [1] Gelman, Meng and Stern (1996), "Posterior predictive assessment of model fitness via realized
       discrepancies", Statistica Sinica.
    """
    check_integer(n_replicates, name="n_replicates", low=20)
    if (labels.votes_per_item < 2).all():
        return IndependenceCheck(1.0, 1.0, Sentence("No item has two votes, so nothing can be said about dependence."))
    states = _States.of(model, labels)
    rng = as_generator(random_state)
    observed = states.ratio(labels.votes)
    replicates = np.array([states.ratio(states.simulate(rng)) for _ in range(n_replicates)])
    usual = float(replicates.mean())
    ratio = observed / usual if usual > 0 else 1.0  # a model in which nobody errs has no errors to compare
    p_value = (1 + int((replicates >= observed).sum())) / (1 + n_replicates)
    return IndependenceCheck(ratio, p_value, _sentence(ratio, p_value, isinstance(model, StateModel)))


def _sentence(ratio: float, p_value: float, has_subtypes: bool) -> Sentence:
    if p_value >= 0.01 or ratio <= 1.05:
        given = " given the subtypes" if has_subtypes else ""
        return Sentence(
            f"No sign that labelers err together{given}: joint errors are {ratio:.2f} times the expected "
            f"(p = {p_value:.3g})."
        )
    rest = ", and the subtypes do not account for it" if has_subtypes else ""
    return Sentence(
        f"Labelers err together: two votes on an item are both wrong {ratio:.2f} times as often as independent "
        f"labelers would be (p = {p_value:.3g}){rest}."
    )


def effective_labelers(
    labels: Labels, model: NoiseModel | None = None, *, random_state: RandomState = 0
) -> EffectiveLabelers:
    """How many independent labelers the panel is worth; nine LLM judges can be worth two.

    With errors e of the votes on an item and ρ their mean correlation given the class, n votes are worth
    n / (1 + (n − 1) ρ) independent ones (Kish's design effect). ρ comes from the subtypes of a fitted `Subtypes` model,
    which is fitted here if no model is given; with another model it is what its joint errors exceed the expected ones
    by (see `check_independence`).
    """
    if model is None:
        model = Subtypes().fit(labels)
    states = _States.of(model, labels)
    variance, covariance = states.class_moments()
    if not isinstance(model, StateModel):
        rng = as_generator(random_state)
        usual = float(np.mean([states.ratio(states.simulate(rng)) for _ in range(50)]))
        observed, expected, scale = states.joint_errors(labels.votes)
        covariance, variance = observed - usual * expected, scale
    rho = float(np.clip(covariance / max(variance, 1e-12), 0.0, 1.0))
    n = labels.n_votes / max(int((labels.votes_per_item > 0).sum()), 1)
    worth = n / (1 + max(n - 1, 0.0) * rho)
    return EffectiveLabelers(
        n,
        worth,
        rho,
        f"The {n:.1f} votes on an average item are worth {worth:.1f} independent ones "
        f"(errors of two votes correlate at {rho:.2f}).",
    )


@dataclass(frozen=True)
class _States:
    """A model as states with weights and answer probabilities, and the design of the votes."""

    labels: Labels
    weights: Floats  # (states,)
    of_class: Codes  # (states,)
    matrices: Floats  # (labelers, states, answers)

    @classmethod
    def of(cls, model: NoiseModel, labels: Labels) -> _States:
        if isinstance(model, StateModel):
            model.log_likelihood(labels)  # checks that the model is fitted and fits the labels
            of_class = model.state_class_.argmax(axis=1).astype(np.int32)
            return cls(labels, model.state_prior_, of_class, model.state_confusion_for(labels))
        if isinstance(model, TableModel):
            model.log_likelihood(labels)  # checks that the model is fitted and fits the labels
            return cls(labels, model.prior_, class_states(labels.n_classes), model.confusion_for(labels))
        raise InvalidParameter(
            f"a model with a confusion matrix for each labeler is needed, got {type(model).__name__}; "
            "use DawidSkene, OneCoin or Subtypes"
        )

    @property
    def error_rates(self) -> Floats:
        """P(a vote names another class | labeler, state); an abstention is no error."""
        n_classes = self.labels.n_classes
        right = self.matrices[:, np.arange(len(self.of_class)), self.of_class]
        return np.asarray(self.matrices[:, :, :n_classes].sum(axis=2) - right)

    def simulate(self, rng: np.random.Generator) -> sparse.csr_array:
        """Votes of the same labelers on the same items, drawn from the model."""
        labels = self.labels
        state = rng.choice(len(self.weights), size=labels.n_items, p=normalise(self.weights))
        for y in np.unique(labels.gold_codes[labels.gold_codes >= 0]):  # where the truth is known, it is kept
            known = np.flatnonzero(labels.gold_codes == y)
            state[known] = rng.choice(len(self.weights), len(known), p=normalise(self.weights * (self.of_class == y)))
        item, labeler, _, times = labels.vote_table()
        item, labeler = np.repeat(item, times), np.repeat(labeler, times)
        cumulative = self.matrices.cumsum(axis=2)[labeler, state[item]]
        answer = np.minimum((cumulative < rng.random(len(item))[:, None]).sum(axis=1), labels.n_answers - 1)
        votes = sparse.csr_array(
            sparse.coo_array(
                (np.ones(len(item)), (item, labeler * labels.n_answers + answer)), shape=labels.votes.shape
            )
        )
        votes.sum_duplicates()
        return votes

    def joint_errors(self, votes: sparse.csr_array) -> tuple[float, float, float]:
        """Pairs of wrong votes observed and expected, and the pairs' product of standard deviations.

        All are sums over items, averaged over the posterior of the state given `votes`.
        """
        labels, n_answers, n_classes = self.labels, self.labels.n_answers, self.labels.n_classes
        table = as_table(self.matrices)
        posterior = kernels.posterior(votes, table, self.weights, gold=labels.gold_codes, state_class=self.of_class)
        answer_of = sparse.csr_array(np.tile(np.eye(n_answers), (labels.n_labelers, 1)))
        said = np.asarray((votes @ answer_of).toarray())[:, :n_classes]
        wrong = said.sum(axis=1, keepdims=True) - said[:, self.of_class]
        labeler_of = sparse.csr_array(np.repeat(np.eye(labels.n_labelers), n_answers, axis=0))
        took_part = sparse.csr_array(votes @ labeler_of)
        rate = self.error_rates
        spread = np.sqrt(np.maximum(rate * (1 - rate), 0.0))

        def pairs(values: Floats) -> Floats:
            return np.asarray(((took_part @ values) ** 2 - took_part @ values**2) / 2)

        observed = posterior * wrong * (wrong - 1) / 2
        return (
            float(observed.sum()),
            float((posterior * pairs(rate)).sum()),
            float((posterior * pairs(spread)).sum()),
        )

    def ratio(self, votes: sparse.csr_array) -> float:
        observed, expected, _ = self.joint_errors(votes)
        return observed / max(expected, 1e-12)

    def class_moments(self) -> tuple[float, float]:
        """Mean over pairs of votes of the product of standard deviations and of the covariance given the class."""
        labels = self.labels
        took_part = labels.votes_per_labeler / max(labels.n_votes, 1)
        variance = covariance = 0.0
        for y in range(labels.n_classes):
            of_y = self.of_class == y
            if not of_y.any():  # of a handful of items a class may get none
                continue
            weight, rate = self.weights[of_y], self.error_rates[:, of_y]
            share = normalise(weight)
            mean = rate @ share
            spread = took_part @ np.sqrt(np.maximum(mean * (1 - mean), 0.0))
            shared = took_part @ (rate - mean[:, None])  # the panel's mean error in a subtype, less that of the class
            variance += float(weight.sum() * spread**2)
            covariance += float(weight.sum() * (share @ shared**2))
        return variance, covariance


def rhat(chains: npt.ArrayLike) -> float:
    """Rank-normalised split R-hat of draws of shape (n_chains, n_draws); 1 where chains agree, NaN if all are equal."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float("nan")
    folded = np.abs(draws - np.median(draws))
    return max(_rhat(_normal_scores(draws)), _rhat(_normal_scores(folded)))


def effective_draws(chains: npt.ArrayLike) -> float:
    """Effective sample size of the mean (bulk) of draws of shape (n_chains, n_draws)."""
    draws = _split(np.asarray(chains, dtype=float))
    if np.ptp(draws) == 0:
        return float(draws.size)
    scores = _normal_scores(draws)
    n_chains, n = scores.shape
    centred = scores - scores.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.abs(np.fft.rfft(centred, size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=1)[:, :n] / n
    within = covariance[:, 0].mean() * n / (n - 1)
    pooled = within * (n - 1) / n + (scores.mean(axis=1).var(ddof=1) if n_chains > 1 else 0.0)
    rho = 1 - (within - covariance.mean(axis=0)) / pooled
    # Geyer: sums of neighbouring pairs are positive and fall; stop where they do not.
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    stop = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    tau = -1 + 2 * np.minimum.accumulate(pairs[: max(stop, 1)]).sum()
    total = n_chains * n
    return float(min(total / max(tau, 1 / np.log10(total)), total * np.log10(total)))


def _split(draws: Floats) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Floats) -> Floats:
    ranks = stats.rankdata(draws, method="average").reshape(draws.shape)
    return np.asarray(stats.norm.ppf((ranks - 0.375) / (draws.size + 0.25)))


def _rhat(draws: Floats) -> float:
    n = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = n * draws.mean(axis=1).var(ddof=1)
    return float(np.sqrt((within * (n - 1) / n + between / n) / within)) if within > 0 else float("inf")
