"""The contract of noise models as checks that anyone can run on a new one; CONTRIBUTING.md has an example.

Each check takes a function that makes a fresh model.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from trueup.data.labels import Labels
from trueup.exceptions import InvalidLabels, NotFitted, silenced_warnings
from trueup.noise.base import NoiseModel
from trueup.noise.sampling import sample

MakeModel = Callable[[], NoiseModel]


def example_labels(
    *, n_items: int = 120, n_labelers: int = 7, n_classes: int = 3, seed: int = 0
) -> tuple[Labels, npt.NDArray[np.int64]]:
    """Votes of labelers of differing skill, about four on each item, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_labelers)) < rng.uniform(0.6, 0.95, n_labelers)
    votes = np.where(right, truth[:, None], rng.integers(n_classes, size=(n_items, n_labelers)))
    votes[rng.random((n_items, n_labelers)) < 0.4] = -1
    votes[:, 0] = np.where((votes < 0).all(axis=1), truth, votes[:, 0])
    names = [f"labeler-{t}" for t in range(n_labelers)]
    return Labels.from_matrix(votes, labelers=names, classes=list(range(n_classes))), truth


def refusal(call: Callable[[], object], kind: type[Exception], due: str = "") -> str:
    """What is said where something is refused, as it must be."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(due or f"a {kind.__name__} was due")


def _fit(make: MakeModel, labels: Labels) -> NoiseModel:
    with silenced_warnings():
        return make().fit(labels)


def _assert_same(make: MakeModel, a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> None:
    """Equal but for rounding; a model that draws starts or splits may differ by their chance."""
    allowed = 0.02 if "random_state" in make().parameters() else 1e-3
    assert np.abs(a - b).mean() < allowed, f"mean difference {np.abs(a - b).mean():.2g}"
    assert (a.argmax(axis=1) == b.argmax(axis=1)).mean() > 0.97


def check_shapes(make: MakeModel) -> None:
    """Fit returns self and sets what it promises; outputs have the promised shapes."""
    labels, truth = example_labels()
    model = make()
    with silenced_warnings():
        assert model.fit(labels) is model
    assert model.prior_.shape == (3,)
    assert np.isclose(model.prior_.sum(), 1)
    assert isinstance(model.n_iter_, int)
    assert isinstance(model.converged_, bool)
    assert all(np.isfinite(model.loss_history_))
    posterior = model.posterior(labels)
    assert posterior.shape == (labels.n_items, 3)
    assert np.allclose(posterior.sum(axis=1), 1)
    assert (posterior >= 0).all()
    assert model.log_likelihood(labels).shape == (labels.n_items, 3)
    assert (posterior.argmax(axis=1) == truth).mean() > 0.8, "a model must beat chance by far on easy votes"


def check_not_fitted(make: MakeModel) -> None:
    """Asking before fitting is an error, and so is a fit on other classes."""
    labels, _ = example_labels()
    two_classes, _ = example_labels(n_classes=2)
    refusal(lambda: make().posterior(labels), NotFitted, "posterior before fit must raise NotFitted")
    fitted = _fit(make, labels)
    refusal(lambda: fitted.posterior(two_classes), InvalidLabels, "labels with other classes must raise InvalidLabels")


def check_gold(make: MakeModel) -> None:
    """Gold for fitting is certain and changes the fit; gold kept aside is not looked at."""
    labels, truth = example_labels()
    wrong = {i: int((truth[i] + 1) % 3) for i in range(60)}
    plain = _fit(make, labels)
    with_gold = labels.with_gold(wrong)
    model = _fit(make, with_gold)
    posterior = model.posterior(with_gold)
    assert all(posterior[i, y] == 1 for i, y in wrong.items())
    assert not np.allclose(model.posterior(labels)[60:], plain.posterior(labels)[60:]) or model.n_iter_ == 0
    held = labels.with_gold(wrong, role="check")
    assert np.array_equal(_fit(make, held).posterior(held), plain.posterior(labels))


def check_unseen(make: MakeModel) -> None:
    """A labeler never seen before is handled, and an item without votes gets the prior."""
    labels, _ = example_labels()
    model = _fit(make, labels)
    renamed = replace(labels, labelers=np.array([f"new-{t}" for t in range(7)], dtype=object))
    posterior = model.posterior(renamed)
    assert np.isfinite(posterior).all()
    agree = (posterior.argmax(axis=1) == model.posterior(labels).argmax(axis=1)).mean()
    assert agree > 0.7, "pooled labelers must still agree with the votes mostly"
    silent = replace(labels, votes=labels.votes * 0)
    silent.votes.eliminate_zeros()
    assert np.allclose(model.posterior(silent), model.prior_, atol=1e-6)


def check_order(make: MakeModel) -> None:
    """The order of items does not matter, nor do the names of labelers."""
    labels, _ = example_labels()
    frame = {"item": [], "labeler": [], "label": []}  # type: dict[str, list[object]]
    item, labeler, answer, _ = labels.vote_table()
    for k in np.random.default_rng(1).permutation(len(item)):
        frame["item"].append(int(item[k]))
        frame["labeler"].append(f"{9 - labeler[k]}")
        frame["label"].append(int(answer[k]))
    other = Labels.from_frame(frame, classes=[0, 1, 2])
    _assert_same(make, _fit(make, labels).posterior(labels), _fit(make, other).posterior(other))


def check_class_names(make: MakeModel) -> None:
    """Renaming (and thereby reordering) classes permutes the answer and changes nothing else."""
    if make().needs_order:
        return
    labels, _ = example_labels()
    item, labeler, answer, _ = labels.vote_table()
    names = np.array(["zebra", "ant", "mouse"], dtype=object)
    other = Labels.from_frame({"item": item, "labeler": labeler, "label": names[answer]})
    assert other.classes.tolist() == ["ant", "mouse", "zebra"]
    a = _fit(make, labels).posterior(labels)
    b = _fit(make, other).posterior(other)[:, [2, 0, 1]]
    _assert_same(make, a, b)


def check_repeatable(make: MakeModel) -> None:
    """Fitting twice gives the same, and a fitted model survives pickling."""
    labels, _ = example_labels()
    first = _fit(make, labels)
    assert np.array_equal(first.posterior(labels), _fit(make, labels).posterior(labels))
    again = pickle.loads(pickle.dumps(first))
    assert np.array_equal(first.posterior(labels), again.posterior(labels))


def check_abstentions(make: MakeModel) -> None:
    """Abstentions as an answer are accepted; repeated votes count more than one."""
    labels, truth = example_labels()
    item, labeler, answer, _ = labels.vote_table()
    said = np.array(["a", "b", "c"], dtype=object)[answer]
    said[::7] = "unsure"
    with_abstentions = Labels.from_frame(
        {"item": item, "labeler": labeler, "label": said}, abstain="unsure", abstain_policy="answer"
    )
    posterior = _fit(make, with_abstentions).posterior(with_abstentions)
    assert posterior.shape == (labels.n_items, 3)
    assert (posterior.argmax(axis=1) == truth).mean() > 0.7
    twice = replace(labels, votes=labels.votes * 2)
    model = _fit(make, labels)
    surer = model.posterior(twice).max(axis=1).mean() >= model.posterior(labels).max(axis=1).mean() - 1e-9
    assert surer, "two equal votes must not make a model less sure than one"


def check_vote_prediction(make: MakeModel) -> None:
    """Predicted votes are probabilities."""
    labels, _ = example_labels()
    item, labeler, _, _ = labels.vote_table()
    probability = _fit(make, labels).predict_votes(labels, item.astype(np.int64), labeler.astype(np.int64))
    assert probability.shape == (len(item), 3)
    assert np.allclose(probability.sum(axis=1), 1)


def check_clone(make: MakeModel) -> None:
    """A clone has the parameters and not the fit; the model it was made from stays fitted."""
    labels, _ = example_labels()
    model = _fit(make, labels)
    before = model.posterior(labels)
    twin = model.clone()
    assert type(twin) is type(model)
    assert repr(twin) == repr(model)
    assert model.is_fitted
    assert not twin.is_fitted
    assert np.array_equal(_fit(lambda: twin, labels).posterior(labels), before)
    assert np.array_equal(model.posterior(labels), before)


def check_samplers(make: MakeModel) -> None:
    """A model that can be drawn has a sampler for each chain, and its draws find the truth of easy votes."""
    labels, truth = example_labels()
    model = make()
    if not model.can_be_drawn:
        return
    samplers = model.samplers(labels, labels.n_labelers, 2)
    assert len(samplers) == 2
    assert samplers[0] is not samplers[1]
    draws = sample(labels, model, n_chains=2, n_warmup=60, n_draws=60, random_state=0, warn=False)
    assert np.allclose(draws.prior.sum(axis=1), 1)
    assert (draws.posterior.argmax(axis=1) == truth).mean() > 0.8, "draws must beat chance by far on easy votes"


NOISE_CHECKS: tuple[Callable[[MakeModel], None], ...] = (
    check_shapes,
    check_not_fitted,
    check_gold,
    check_unseen,
    check_order,
    check_class_names,
    check_repeatable,
    check_abstentions,
    check_vote_prediction,
    check_clone,
    check_samplers,
)
