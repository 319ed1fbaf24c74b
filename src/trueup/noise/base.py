"""What every noise model promises.

A noise model turns votes into log p(votes of an item | class). It never sees predictions.

The contract
------------
- ``fit(labels)`` returns self and sets ``classes_``, ``labelers_``, ``prior_``, ``n_iter_``, ``converged_`` and
  ``loss_history_`` (negative log-likelihood per vote; the log-posterior where a prior is used).
- ``log_likelihood(labels)`` and ``posterior(labels)`` have shape (n_items, n_classes). They work on other labels than
  those fitted on: a labeler never seen before gets the pooled matrix.
- Gold items have their truth fixed, in ``fit`` and in ``posterior``. Gold kept aside (role "check") is not looked at.
- A model is stateless but for the fitted attributes, and fitting twice gives the same.
- A model whose parameters can be drawn together with the truth says so by overriding ``samplers``.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax

from trueup._base.arrays import contiguous, group_sums, namespace
from trueup._base.engines import OF_ONE_PROCESSOR, EngineName
from trueup._base.types import Codes, Floats, Positions
from trueup._base.validation import preview
from trueup.data.encoding import Vocabulary
from trueup.data.labels import Labels
from trueup.data.scanning import LabelScan
from trueup.exceptions import IdentifiabilityWarning, InvalidLabels, InvalidParameter, NotFitted
from trueup.noise import kernels


class Sampler(ABC):
    """The parameters of a model in one chain, and how `draw` draws them given the states of all items.

    A state is a class, whose name may change while the chain runs.
    """

    table: Floats  # (n_raters * n_answers, n_states): P(answer | rater, state)
    weights: Floats  # (n_states,): P(state)
    state_class: Codes  # (n_states,)
    # (n_classes, n_states): how much more a system is expected to say a class in a state than its share lets expect.
    closeness: Floats | None = None
    sweeps_a_draw: ClassVar[int] = 1  # more where neighbours are much alike

    def __init__(self, n_raters: int, n_classes: int, n_answers: int) -> None:
        self.n_raters, self.n_classes, self.n_answers = n_raters, n_classes, n_answers
        self.state_class = class_states(n_classes)

    @abstractmethod
    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        """Draw the parameters given the states.

        Parameters
        ----------
        counts : array of shape (n_raters * n_answers, n_states). How often raters gave answers to items of each state.
        state_counts : array of shape (n_states,)
        gold : array of shape (n_states, n_classes)
            How many items of each known class are in each state; a state that holds one has that class.
        """

    def state(self, problem: Any = None) -> Any:
        """What the loops of a chain change, a tuple of `kernels.loops`; `problem` is as the loops take it."""
        from trueup.noise.kernels.loops import OwnSampler

        return OwnSampler(self, self.state_class.astype(np.int64))

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.state_class)


class LoopSampler(Sampler):
    """A sampler whose draws are a loop of `kernels.loops`, chosen by the type of its `state`."""

    def draw(self, counts: Floats, state_counts: Floats, gold: Floats, rng: np.random.Generator) -> None:
        from trueup.noise.kernels import loops

        now, no_outputs = self.state(), np.empty((0, self.n_states))
        self.table, self.weights = np.empty(counts.shape), np.empty(len(state_counts))
        totals = (np.ascontiguousarray(counts), state_counts, gold, no_outputs)
        systems = (np.empty((0, 0), np.int64), np.zeros(1, np.int64), np.empty(0), no_outputs)
        loops.draw_parameters(now, totals, self.table, self.weights, systems, no_outputs.copy(), True, rng)
        self.state_class = now.labels.astype(np.int32)


class NoiseModel(ABC):
    """Base of all noise models; the module's docstring is the contract."""

    alias: ClassVar[str]
    needs_order: ClassVar[bool] = False  # whether the order of the classes means something
    engines: ClassVar[tuple[EngineName, ...]] = ("scipy",)  # that it can be fitted with

    classes_: Vocabulary
    labelers_: Vocabulary
    answers_: Vocabulary
    prior_: Floats
    n_iter_: int
    converged_: bool
    loss_history_: list[float]

    @abstractmethod
    def fit(self, labels: Labels) -> Self:
        """Learn the model from votes."""

    @abstractmethod
    def _log_likelihood(self, labels: Labels) -> Floats:
        """Log p(votes | class) of fitted or known labelers; `labels` were checked."""

    def log_likelihood(self, labels: Labels) -> Floats:
        """Log p(votes of an item | class), up to a constant for each item; shape (n_items, n_classes)."""
        self._check(labels)
        return self._log_likelihood(labels)

    def posterior(self, labels: Labels) -> Floats:
        """P(class | votes) of each item, shape (n_items, n_classes); gold items are certain."""
        log_likelihood = self.log_likelihood(labels)
        with np.errstate(divide="ignore"):  # a class may have no prior weight
            joint = log_likelihood + np.log(self.prior_)
        return with_gold(np.exp(log_softmax(joint, axis=1)), labels)

    @abstractmethod
    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        """P(answer) of labelers to items, given the votes on those items in `labels`; shape (n, n_answers)."""

    def samplers(self, labels: Labels, n_raters: int, n_chains: int) -> Sequence[Sampler]:
        """What draws the parameters of `n_raters` labelers together with the truth, one sampler for each chain."""
        raise InvalidParameter(
            f"`noise` must be a model that can be drawn together with the truth, got {type(self).__name__}; fit it and "
            "take it as known, or use DawidSkene or OneCoin",
        )

    @property
    def can_be_drawn(self) -> bool:
        """Whether the model has samplers, so that its uncertainty can be drawn together with the truth."""
        return type(self).samplers is not NoiseModel.samplers

    @property
    def allows_dependence(self) -> bool:
        """Whether labelers may err together given the class."""
        return False

    @property
    def is_known(self) -> bool:
        """Whether the model's parameters were given, so that there is nothing to learn from votes."""
        return False

    @property
    def is_fitted(self) -> bool:
        """Whether the model can be asked about votes: it was fitted, or is known."""
        return self.is_known or hasattr(self, "prior_")

    def parameters(self) -> dict[str, Any]:
        """The parameters the model was made with."""
        return {k: v for k, v in vars(self).items() if not k.endswith("_") and not k.startswith("_")}

    def clone(self) -> Self:
        """A model with the same parameters that is not fitted; this one stays as it is."""
        twin = copy(self)
        if not self.is_known:  # what is known is known before any fit
            for name in [name for name in vars(twin) if name.endswith("_")]:
                delattr(twin, name)
        return twin

    def __repr__(self) -> str:
        # Only what differs from the defaults, as scikit-learn does; arrays by their shape.
        def shown(value: Any) -> str:
            size = np.size(value) if isinstance(value, list | tuple | np.ndarray) else 0
            is_long = isinstance(value, np.ndarray) or size > 8
            return f"<array of shape {np.shape(value)}>" if is_long else repr(value)

        defaults = {k: p.default for k, p in inspect.signature(type(self)).parameters.items()}
        given = {k: shown(v) for k, v in self.parameters().items()}
        changed = [f"{k}={v}" for k, v in given.items() if v != shown(defaults.get(k))]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check(self, labels: Labels) -> None:
        if not hasattr(self, "prior_"):
            raise NotFitted(f"{type(self).__name__} is not fitted; call fit(labels) first")
        if not np.array_equal(self.classes_, labels.classes):
            raise InvalidLabels(
                f"the labels must have the classes the model knows, {preview(self.classes_, most=6)}, "
                f"got {preview(labels.classes, most=6)}; read them with the same `classes=…`"
            )
        if not np.array_equal(self.answers_, labels.answers):
            raise InvalidLabels(
                f"the labels must have the answers the model knows, {preview(self.answers_, most=8)}, "
                f"got {preview(labels.answers, most=8)}; read them with the same `abstain` and `abstain_policy`"
            )

    def _remember(self, labels: Labels | LabelScan[Labels]) -> None:
        self.classes_, self.labelers_, self.answers_ = labels.classes, labels.labelers, labels.answers


class TableModel(NoiseModel):
    """A model whose labelers each have a confusion matrix."""

    engines = OF_ONE_PROCESSOR

    confusion_: Floats  # (n_labelers, n_classes, n_answers): P(answer | truth) of each labeler; rows are the truth
    pooled_: Floats  # (n_classes, n_answers): the matrix of an average labeler, used for labelers never seen before

    def confusion_for(self, labels: Labels) -> Floats:
        """The matrices of the labelers of `labels`, in their order."""
        return rows_for(labels.labelers, self.labelers_, self.confusion_, self.pooled_)

    def _table_for(self, labels: Labels) -> Floats:
        """What the votes of the labelers of `labels` count by, as the kernels take it."""
        return as_table(self.confusion_for(labels))

    def posterior(self, labels: Labels) -> Floats:
        self._check(labels)
        gold, states = labels.gold_codes, class_states(labels.n_classes)
        return kernels.posterior(labels.votes, self._table_for(labels), self.prior_, gold=gold, state_class=states)

    def predict_votes(self, labels: Labels, item: Positions, labeler: Positions) -> Floats:
        return np.asarray(np.einsum("nc,nca->na", self.posterior(labels)[item], self.confusion_for(labels)[labeler]))

    def _log_likelihood(self, labels: Labels) -> Floats:
        return kernels.log_likelihood(labels.votes, self._table_for(labels))


def rows_for(names: Vocabulary, given: Vocabulary, values: Floats, default: Floats | float) -> Floats:
    """The values of labelers or items by name, from those of the `known` ones; `default` for all others."""
    if np.array_equal(given, names):
        return values
    position = {name: i for i, name in enumerate(given.tolist())}
    positions = np.array([position.get(name, -1) for name in names.tolist()], dtype=np.int64)
    return np.where((positions >= 0).reshape(-1, *[1] * (values.ndim - 1)), values[positions], default)


_MOST_CELLS = 300_000_000  # of all labelers' matrices together: some copies of them are held at once


def check_matrices_fit(n_labelers: int, n_states: int, n_answers: int) -> None:
    """Refuse matrices that no machine would hold, before it is out of memory."""
    cells = n_labelers * n_states * n_answers
    if cells > _MOST_CELLS:
        raise InvalidLabels(
            f"the matrices of {n_labelers:,} labelers and {n_states:,} classes would have {cells:,} cells, more than "
            f"{_MOST_CELLS:,}; take `noise='glad'`, which learns how often each labeler is right and not what is taken "
            "for what, or join classes"
        )


def as_table(confusion: Floats) -> Floats:
    """Matrices (labelers, states, answers) as the table (labelers·answers, states) that the kernels take."""
    n_labelers, n_states, n_answers = confusion.shape
    return contiguous(confusion.swapaxes(1, 2)).reshape(n_labelers * n_answers, n_states)


def from_table(table: Floats, n_answers: int) -> Floats:
    """The inverse of `as_table`."""
    return contiguous(seen_as_matrices(table, n_answers))


def seen_as_matrices(table: Floats, n_answers: int) -> Floats:
    """The same without a copy. What is worked out from it keeps the order of the table, which is the quicker one."""
    return table.reshape(-1, n_answers, table.shape[1]).swapaxes(1, 2)


class DecidedVotes:
    """The votes that name a class, as flat arrays, for models whose labelers err in all ways alike."""

    def __init__(self, labels: Labels) -> None:
        item, labeler, answer, counts = labels.vote_table()
        decided = answer < labels.n_classes
        # The type that indexing and bincount take without a copy; they are called many times.
        self.item, self.labeler = item[decided].astype(np.intp), labeler[decided].astype(np.intp)
        self.cell = self.item * labels.n_classes + answer[decided]
        self.counts: Floats | float = 1.0 if (counts == 1).all() else counts[decided].astype(float)
        self.n_items, self.n_classes = labels.n_items, labels.n_classes

    def log_likelihood(self, log_wrong: Floats, gain: Floats) -> Floats:
        """Log p(votes | class), shape (n_items, n_classes).

        Of each vote, the log-probability that it names the class if another is true, and what is gained where it is.
        """
        votes_for = group_sums(self.cell, self.counts * gain, self.n_items * self.n_classes)
        wrong = group_sums(self.item, self.counts * log_wrong, self.n_items)
        joint: Floats = votes_for.reshape(self.n_items, self.n_classes) + wrong[:, None]
        return joint

    def placed(self, place: Callable[[Any], Any]) -> DecidedVotes:
        """The same votes as arrays that `place` makes of these, on a device."""
        twin = copy(self)
        twin.item, twin.labeler, twin.cell = place(self.item), place(self.labeler), place(self.cell)
        twin.counts = self.counts if isinstance(self.counts, float) else place(self.counts)
        return twin


def symmetric_votes(posterior: Floats, right: Floats, n_answers: int) -> Floats:
    """P(answer) of votes that are right with probability `right` and else uniform; abstentions say nothing."""
    n_classes = posterior.shape[1]
    wrong = ((1 - right) / (n_classes - 1))[:, None]
    return np.pad(posterior * right[:, None] + (1 - posterior) * wrong, ((0, 0), (0, n_answers - n_classes)))


def class_states(n_classes: int) -> Codes:
    """The class of each state where states are the classes."""
    return np.arange(n_classes, dtype=np.int32)


def normalise(counts: Floats) -> Floats:
    """Counts to probabilities along the last axis; uniform where there are none."""
    total = counts.sum(axis=-1, keepdims=True)
    if not total.all():  # rare, and twice the work
        where = namespace(counts).where
        counts = where(total > 0, counts, 1.0)
        total = where(total > 0, total, counts.shape[-1])
    shares: Floats = counts / total
    return shares


def log_density(rows: Floats, pseudo_counts: Floats) -> float:
    """Log-density of rows under Dirichlet priors with these counts beyond one, but for what does not move with rows."""
    xp = namespace(rows)
    return float((pseudo_counts * xp.log(xp.clip(rows, 1e-300, None))).sum())


def vote_shares(labels: Labels, smoothing: float = 0.0) -> Floats:
    """The share of an item's votes for each class, uniform for an item without votes; gold items are certain."""
    counts = labels.answer_counts[:, : labels.n_classes] + smoothing
    return with_gold(normalise(counts), labels)


def with_gold(posterior: Floats, labels: Labels, *, others: float = 0.0, own: float = 1.0) -> Floats:
    """`posterior` with certainty at the gold items; of log-likelihoods with -inf for `others` and 0 for their `own`."""
    given = np.flatnonzero(labels.gold_codes >= 0)
    if len(given):
        posterior = posterior.copy()
        posterior[given] = others
        posterior[given, labels.gold_codes[given]] = own
    return posterior


def identifiability_problem(labels: Labels | LabelScan[Labels], *, extra_raters: int = 0) -> str | None:
    """One sentence if the labelers' rates cannot be known from these votes, else None.

    Agreement of two raters is one number, and their two error rates are two unknowns; only from three raters on an
    item on do agreements determine rates (Kruskal 1977; Dawid and Skene 1979, Section 2), without gold. Repeated
    votes of a labeler count as raters of an item, and so does a classifier that is evaluated (`extra_raters`).
    """
    if np.isin(np.arange(labels.n_classes), labels.gold_codes).all():
        return None
    histogram = labels.vote_histogram
    if len(histogram) - 1 + extra_raters >= 3:
        triples = int(histogram[max(3 - extra_raters, 0) :].sum())
        needed = 5 * labels.n_classes
        if triples >= needed:
            return None
        raters = "three raters or more, the prediction counted" if extra_raters else "three votes or more"
        return (
            f"only {triples} of {labels.n_items} items have {raters}, and {needed} are needed, so the labelers' error "
            "rates rest mostly on the prior; collect more votes on the same items, add gold (`labels.with_gold`), or "
            "pass known rates (`trueup.noise.Confusion`)"
        )
    votes = len(histogram) - 1
    beside = " beside the prediction" if extra_raters else ""
    return (
        f"no item has more than {votes} vote{'' if votes == 1 else 's'}{beside}, and fewer than three do not show how "
        "often a labeler errs: the answer rests on how labelers usually do; add gold for every class "
        "(`labels.with_gold`), pass known rates (`trueup.noise.Confusion`), or collect a third vote"
    )


def warn_if_unidentifiable(labels: Labels | LabelScan[Labels], *, what: str) -> None:
    """Warn with `identifiability_problem`'s sentence, if there is one."""
    problem = identifiability_problem(labels)
    if problem:
        warnings.warn(f"{what}: {problem}", IdentifiabilityWarning, stacklevel=3)
