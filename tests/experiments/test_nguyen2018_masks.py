"""Boxes for masks: estimates while masks are vetted, which objects are asked, masks drawn into boxes, the figures."""

from dataclasses import replace

import numpy as np
import pytest
from mask_scenes import ellipse, shapes

from experiments.nguyen2018 import segmentation_figures as figures
from experiments.nguyen2018.by_threshold import by_threshold
from experiments.nguyen2018.segmentation import Segmentation, make_segmentation, replace_masks
from experiments.nguyen2018.segmentation_walks import STRATEGIES, segmentation_walk
from trueup.detection import Shapes, coco_scores

SIDE, N_IMAGES = 64, 10
SCENE = {"side": SIDE, "n_images": N_IMAGES, "kinds": ["leaf", "twig"]}


@pytest.fixture(scope="module")
def scene() -> tuple[dict[str, Shapes], Shapes]:
    """Slanted ellipses, found by a system that is off by little and one that is off by more."""
    rng = np.random.default_rng(4)
    things = [
        (
            k,
            str(rng.choice(["leaf", "twig"])),
            (*rng.uniform(15, 49, 2), *rng.uniform(6, 12, 2), rng.uniform(-0.8, 0.8)),
        )
        for k in range(N_IMAGES)
        for _ in range(5)
    ]
    objects = shapes(
        [ellipse(SIDE, *what) for _, _, what in things],
        [k for k, _, _ in things],
        [n for _, n, _ in things],
        **SCENE,
    )
    systems = {}
    for name, blur in (("fine", 1.0), ("coarse", 2.2)):
        kept = [one for one in things if rng.random() < 0.9]
        kept += [one for one in kept if rng.random() < 0.3]  # found twice
        moved = [np.array(what) + np.array([*rng.normal(scale=blur, size=4), 0]) for _, _, what in kept]
        systems[name] = shapes(
            [ellipse(SIDE, *what) for what in moved],
            [k for k, _, _ in kept],
            [n for _, n, _ in kept],
            rng.random(len(kept)).tolist(),
            **SCENE,
        )
    return systems, objects


@pytest.fixture(scope="module")
def data(scene) -> Segmentation:
    return make_segmentation(*scene)


def test_the_truth_is_cocos_average_precision(scene, data):
    systems, objects = scene
    for place, name in enumerate(systems):
        assert data.true[place].mean() == pytest.approx(coco_scores(systems[name], objects).ap())


def test_all_estimators_are_right_when_all_is_vetted(data):
    everything = np.ones(len(data.objects), dtype=bool)
    rng = np.random.default_rng(0)
    for place, system in enumerate(data.systems.values()):
        assert data.naive(system, everything) == pytest.approx(data.true[place])
        assert data.vetted_only(system, everything) == pytest.approx(data.true[place])
    assert data.learned("fill", everything, rng) == pytest.approx(data.true)
    assert data.learned("stretched", everything, rng) == pytest.approx(data.true)
    assert by_threshold(data, everything, rng) == pytest.approx(data.true)


def test_learned_is_nearer_than_naive_and_the_masks_are_not_looked_at_before(data):
    walk = segmentation_walk(data, "random", seed=1, shares=(0.0, 0.4))
    assert walk.class_errors("learned")[1] < walk.class_errors("naive")[1] / 2
    spoilt = replace_masks(data, replace(data.objects, masks=data.objects.masks[::-1]))
    nothing = np.zeros(len(data.objects), dtype=bool)
    rng = np.random.default_rng
    np.testing.assert_array_equal(spoilt.learned("fill", nothing, rng(0)), data.learned("fill", nothing, rng(0)))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_walk_is_repeatable_and_ends_at_the_truth(data, strategy):
    walk = segmentation_walk(data, strategy, seed=2, shares=(0.5, 1.0))
    again = segmentation_walk(data, strategy, seed=2, shares=(0.5, 1.0))
    for name, said in walk.said.items():
        np.testing.assert_array_equal(said, again.said[name])
        assert walk.errors(name)[-1] == pytest.approx(0, abs=1e-12)
        assert walk.gaps(name, 0, 1)[0][-1] == pytest.approx(walk.gaps(name, 0, 1)[1])
    assert ("vetted-only" in walk.said) == (strategy == "random image")


# ---------------------------------------------------------------------- figures


@pytest.mark.data
@pytest.mark.parametrize(("which", "ap"), [("coco-val2014-100", [0.3195]), ("seg-traffic51", [0.7324, 0.2581])])
def test_real_sets_have_their_average_precision(which, ap, data_folder):
    data = figures.MAKERS[which](0)
    assert data.true.mean(axis=1) == pytest.approx(ap, abs=1e-4)
