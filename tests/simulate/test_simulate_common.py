"""What all simulators promise: one seed one data set, aligned shapes, parameters in one form, clear errors."""

from collections.abc import Callable
from typing import Any

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


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("su", {"n_items": 0}, "`n_items` must be an integer of at least 1"),
        ("su", {"prior": (0.5, 0.6)}, "prior must sum to 1"),
        ("su", {"prior": (1.0,)}, "at least two classes"),
        ("su", {"prior": "half"}, "`prior` must hold numbers"),
        ("su", {"prior": three}, "pass `classifier_confusion"),
        ("su", {"operating_point": (0.8, 1.3)}, "operating_point must be"),
        ("su", {"difficulty": "unform"}, "`difficulty` must be one of 'uniform'"),
        ("su", {"difficulty": (0, 1)}, "Beta distribution"),
        ("su", {"difficulty": [0.1, 0.2]}, "1000 values"),
        ("su", {"difficulty": lambda rng, n: np.full(n, 2.0)}, "must lie in"),
        ("su", {"fallibility": (0.5, 0.1)}, "range"),
        ("su", {"fallibility": (0.1, 0.2, 0.3, 0.4, 0.5)}, "pass a list for one value each"),
        ("su", {"fallibility": 1.5}, "fallibility must lie in"),
        ("su", {"participation": 0.0}, "nobody would vote"),
        ("su", {"participation": [0.5]}, "5 values"),
        ("su", {"classifier_confusion": np.eye(3)}, "must have the shape"),
        ("su", {"classifier_confusion": [[0.5, 0.6], [0.5, 0.5]]}, "must sum to 1"),
        ("su", {"random_state": "seed"}, "random_state must be"),
        ("urkullu", {"case": "averag"}, "did you mean 'average'"),
        ("urkullu", {"case": (0.4, 0.3)}, "`mean_tpr` must be"),
        ("urkullu", {"case": (0.7,)}, "case must be a name or"),
        ("urkullu", {"labels_per_item": 0}, "must be positive"),
        ("urkullu", {"labels_per_labeler": 2000}, "`labels_per_labeler` must be"),
        ("urkullu", {"n_classifiers": 0}, "`n_classifiers` must be"),
        ("urkullu", {"max_disturbance": 2}, "`max_disturbance` must be"),
        ("tars", {"means": ((0, 0),)}, "one row for each class"),
        ("tars", {"means": ((0, 0), (1,))}, "rows of one length"),
        ("tars", {"scale": 0}, "scale must be positive"),
        ("tars", {"scale": (1, 2, 3)}, "scale must be a number or fit"),
        ("tars", {"noise_rates": (0.1, 0.2, 0.3)}, "noise_rates must be"),
        ("tars", {"votes_per_item": 2}, "at most `n_labelers=1`"),
        ("dawid_skene", {"n_classes": 1}, "`n_classes` must be"),
        ("dawid_skene", {"prior": three}, "prior must have 2 probabilities"),
        ("dawid_skene", {"votes_per_item": 6}, "votes_per_item must be at most"),
        ("dawid_skene", {"votes_per_item": 0}, "`votes_per_item` must be an integer"),
        ("dawid_skene", {"accuracy": [0.6, 0.7]}, "5 values"),
        ("dawid_skene", {"accuracy": np.full((2, 2), 0.5)}, "labelers × classes"),
        ("dawid_skene", {"accuracy": np.nan}, "finite"),
        ("dawid_skene", {"accuracy_by": "item"}, "`accuracy_by` must be one of"),
        ("dawid_skene", {"off_diagonal": "even"}, "`off_diagonal` must be one of"),
        ("dawid_skene", {"confusion": np.eye(2)[None]}, "must have the shape"),
        ("dawid_skene", {"classifier_accuracy": 1.2}, "`classifier_accuracy` must be"),
        ("dependent", {"subtype_weights": (0.5, 0.6)}, "subtype_weights must sum to 1"),
        ("dependent", {"subtype_weights": np.full((3, 2), 0.5)}, "one for each of 2 classes"),
        ("dependent", {"subtype_accuracy": (0.9,)}, "subtype_accuracy must be"),
        ("dependent", {"subtype_confusion": np.full((2, 2, 3), 1 / 3)}, "subtype_confusion must have the shape"),
        ("dependent", {"strength": 0.5}, "`strength` must be"),
        ("dependent", {"families": [0, 1]}, "groups of labelers"),
        ("dependent", {"families": [[0, 5]]}, "the labelers are 0 to 4"),
        ("dependent", {"families": [[0, 1], [1, 2]]}, "one family only"),
        ("dependent", {"families": [[0, 1]], "copying": [0.5, 0.5]}, "copying must be"),
        ("dependent", {"shared_difficulty": 1.5}, "`shared_difficulty` must be"),
        ("shared_difficulty", {"accuracy": 1.0}, "accuracy must lie between 0 and 1, both excluded"),
        ("shared_difficulty", {"classifier_accuracy": 0.0}, "classifier_accuracy must lie between"),
        ("shared_difficulty", {"slope": -1.0}, "slope must be a number of at least 0"),
        ("shared_difficulty", {"slope": [1.0, 2.0]}, "5 of them, one for each labeler"),
        ("shared_difficulty", {"blind_spot": 1.5}, "`blind_spot` must be"),
        ("shared_difficulty", {"classifier_slope": -0.5}, "`classifier_slope` must be"),
        ("baseline", {"prevalence": -0.1}, "`prevalence` must be"),
    ],
)
def test_bad_parameters_give_one_sentence(name: str, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message) as caught:
        SIMULATORS[name](**bad)
    assert "\n" not in str(caught.value)
