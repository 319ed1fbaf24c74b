"""Which models data of a size are read by, and how long their chains are."""

from __future__ import annotations

import numpy as np
import pytest

import trueup as tu
from trueup.estimators import kinds
from trueup.estimators.kinds import DIFFICULTY, INDEPENDENT, KINDS, models_for
from trueup.noise.system_outputs import SystemOutputs


def votes_of(n_classes: int, *, n_labelers: int = 5, n_items: int = 40) -> tu.Labels:
    codes = np.random.default_rng(n_classes).integers(n_classes, size=(n_items, n_labelers))
    return tu.Labels.from_matrix(codes, classes=list(range(n_classes)))


@pytest.mark.parametrize(
    ("n_classes", "n_models", "extra_clusters"), [(2, 3, None), (3, 4, None), (21, 4, None), (22, 2, None), (76, 2, 1)]
)
def test_models_with_too_many_states_are_left_out(n_classes: int, n_models: int, extra_clusters: int | None) -> None:
    models = models_for(votes_of(n_classes))
    assert len(models) == n_models
    assert (DIFFICULTY in models) == (n_classes * 7 <= 150)
    clusters = models[KINDS]
    assert isinstance(clusters, tu.noise.Clusters)
    assert clusters.n_extra == extra_clusters


def test_many_labelers_are_known_by_what_labelers_are_like() -> None:
    assert isinstance(models_for(votes_of(2, n_labelers=15))[INDEPENDENT], tu.noise.DawidSkene)
    pooled = models_for(votes_of(2, n_labelers=16))[INDEPENDENT]
    assert isinstance(pooled, tu.noise.Clusters)
    assert pooled.n_extra == 0


def test_many_votes_have_fewer_points_of_difficulty() -> None:
    few, many = (models_for(votes_of(2, n_items=n))[DIFFICULTY] for n in (3000, 3001))
    assert isinstance(few, tu.noise.SharedDifficulty)
    assert isinstance(many, tu.noise.SharedDifficulty)
    assert few.most_states(2) == 22
    assert many.most_states(2) == 14


def test_chains_that_have_not_mixed_are_drawn_again_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a caller does not say how long they are to be, and votes are few."""
    labels = tu.simulate.baseline(n_items=60, n_labelers=3, random_state=0).labels
    outputs = SystemOutputs(np.empty((0, 60), dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    sweeps = []
    true_sample = kinds.sample

    def noted(*args, **options):
        sweeps.append((options["n_warmup"], options["n_draws"]))
        return true_sample(*args, **options)

    monkeypatch.setattr(kinds, "sample", noted)
    monkeypatch.setattr(kinds, "_SWEEPS", (20, 40))
    monkeypatch.setattr(kinds, "have_mixed", lambda rhat, effective: False)

    def draw(**options):
        sweeps.clear()
        kinds.draw_kinds(labels, outputs, np.empty((0, 60), dtype=np.int64), rng=np.random.default_rng(0), **options)
        return sweeps

    assert draw()[:2] == [(20, 40), (60, 120)]
    assert set(draw(n_draws=30)) == {(20, 30)}
    monkeypatch.setattr(kinds, "_MOST_EXTENDED", 0)
    assert set(draw()) == {(20, 40)}
