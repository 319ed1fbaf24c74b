"""What all simulators promise: one seed one data set, aligned shapes, parameters in one form, clear errors."""

from collections.abc import Callable

import numpy as np
import pytest

from trueup import simulate
from trueup.data.labels import Labels
from trueup.exceptions import InvalidParameter
from trueup.simulate import Simulation

SIMULATORS: dict[str, Callable[..., Simulation]] = {
    "su": simulate.su,
    "urkullu": simulate.urkullu,
    "tars": simulate.tars,
    "dawid_skene": simulate.dawid_skene,
    "dependent": simulate.dependent,
    "shared_difficulty": simulate.shared_difficulty,
    "baseline": simulate.baseline,
}

three = (0.2, 0.3, 0.5)


@pytest.fixture(params=SIMULATORS)
def simulator(request: pytest.FixtureRequest) -> Callable[..., Simulation]:
    return SIMULATORS[request.param]


def flat(data: Simulation) -> list[np.ndarray]:
    arrays = [data.labels.votes.toarray(), data.truth, data.predictions, data.scores, data.features]
    arrays += [value for value in data.parameters.values() if isinstance(value, np.ndarray)]
    return [np.asarray(a) for a in arrays if a is not None]


def test_one_seed_is_one_data_set_and_a_generator_goes_on(simulator: Callable[..., Simulation]) -> None:
    one, two, other = (simulator(n_items=200, random_state=seed) for seed in (7, 7, 2))
    assert all(np.array_equal(a, b) for a, b in zip(flat(one), flat(two), strict=True))
    assert not np.array_equal(one.truth, other.truth)
    assert one.labels.votes.shape != other.labels.votes.shape or (one.labels.votes != other.labels.votes).nnz
    assert ", truth, " in repr(one)
    rng = np.random.default_rng(3)
    first, second = (simulator(n_items=200, random_state=rng).truth for _ in range(2))
    assert not np.array_equal(first, second)


def test_shapes_and_names(simulator: Callable[..., Simulation]) -> None:
    data = simulator(n_items=123, random_state=0)
    labels = data.labels
    assert labels.n_items == len(data.truth) == 123
    assert labels.items.tolist() == list(range(123))
    assert labels.labelers.tolist() == list(range(labels.n_labelers))
    assert labels.classes.tolist() == list(range(labels.n_classes))
    assert labels.votes.has_canonical_format
    assert labels.n_pairs == labels.n_votes
    assert data.predictions is not None or data.scores is not None
    if data.predictions is not None:
        assert data.predictions.shape == (123,)
        assert data.accuracy == np.mean(data.predictions == data.truth)
    if data.scores is not None:
        assert data.scores.ndim == 2
        assert data.scores.shape[1] == 123
    prior = data.parameters["prior"]
    assert prior.shape == (labels.n_classes,)
    for name, shape in {
        "confusion": (labels.n_labelers, labels.n_classes, labels.n_classes),
        "classifier_confusion": (labels.n_classes, labels.n_classes),
    }.items():
        if name in data.parameters:
            assert data.parameters[name].shape == shape
            np.testing.assert_allclose(data.parameters[name].sum(axis=-1), 1)


def test_labels_equal_those_of_the_public_constructor() -> None:
    data = simulate.dawid_skene(n_items=50, n_classes=3, random_state=0)
    item, labeler, answer, _ = data.labels.vote_table()
    public = Labels.from_frame({"item": item, "labeler": labeler, "label": answer}, classes=[0, 1, 2])
    for name in ("items", "labelers", "classes", "answers", "gold_codes", "held_codes", "abstentions"):
        mine, other = getattr(data.labels, name), getattr(public, name)
        assert np.array_equal(mine, other)
        assert mine.dtype == other.dtype
    assert (data.labels.votes != public.votes).nnz == 0
    assert data.labels.with_gold({3: 1}).select(items=[3]).gold == {3: 1}


WRONG = {
    "su": {
        "n_items": [0],
        "prior": [(0.5, 0.6), (1.0,), "half", three],
        "operating_point": [(0.8, 1.3)],
        "difficulty": ["unform", (0, 1), [0.1, 0.2], lambda rng, n: np.full(n, 2.0)],
        "fallibility": [(0.5, 0.1), (0.1, 0.2, 0.3, 0.4, 0.5), 1.5],
        "participation": [0.0, [0.5]],
        "classifier_confusion": [np.eye(3), [[0.5, 0.6], [0.5, 0.5]]],
        "random_state": ["seed"],
    },
    "urkullu": {
        "case": ["averag", (0.4, 0.3), (0.7,)],
        "labels_per_item": [0],
        "labels_per_labeler": [2000],
        "n_classifiers": [0],
        "max_disturbance": [2],
    },
    "tars": {
        "means": [((0, 0),), ((0, 0), (1,))],
        "scale": [0, (1, 2, 3)],
        "noise_rates": [(0.1, 0.2, 0.3)],
        "votes_per_item": [2],
    },
    "dawid_skene": {
        "n_classes": [1],
        "prior": [three],
        "votes_per_item": [6, 0],
        "accuracy": [[0.6, 0.7], np.full((2, 2), 0.5), np.nan],
        "accuracy_by": ["item"],
        "off_diagonal": ["even"],
        "confusion": [np.eye(2)[None]],
        "classifier_accuracy": [1.2],
    },
    "dependent": {
        "subtype_weights": [(0.5, 0.6), np.full((3, 2), 0.5)],
        "subtype_accuracy": [(0.9,)],
        "subtype_confusion": [np.full((2, 2, 3), 1 / 3)],
        "strength": [0.5],
        "families": [[0, 1], [[0, 5]], [[0, 1], [1, 2]]],
        "copying": [[0.5]],
        "shared_difficulty": [1.5],
    },
    "shared_difficulty": {
        "accuracy": [1.0],
        "classifier_accuracy": [0.0],
        "slope": [-1.0, [1.0, 2.0]],
        "blind_spot": [1.5],
        "classifier_slope": [-0.5],
    },
    "baseline": {"prevalence": [-0.1]},
}


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, parameter) for name, wrong in WRONG.items() for parameter in wrong]
)
def test_bad_parameters_give_one_sentence(name: str, parameter: str) -> None:
    for value in WRONG[name][parameter]:
        with pytest.raises(InvalidParameter) as caught:
            SIMULATORS[name](**{parameter: value})
        assert "\n" not in str(caught.value)
