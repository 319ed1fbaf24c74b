"""Every noise model keeps the contract of trueup.noise.base."""

import pytest

from trueup import noise
from trueup.testing.noise import NOISE_CHECKS

MODELS = {
    "majority": lambda: noise.Majority(),
    "one-coin": lambda: noise.OneCoin(),
    "dawid-skene": lambda: noise.DawidSkene(),
    "dawid-skene-ml": lambda: noise.DawidSkene(pooling=0, max_iter=300),
    "glad": lambda: noise.GLAD(),
    "difficulty": lambda: noise.Difficulty(),
    "dawid-skene-auto": lambda: noise.DawidSkene(pooling="auto"),
    "stack": lambda: noise.Stack([noise.OneCoin(), noise.DawidSkene(), noise.GLAD()]),
    "auto": lambda: noise.Stack(),
    "soft-truth": lambda: noise.SoftTruth(),
}


@pytest.mark.parametrize("check", NOISE_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_contract(name, check):
    check(MODELS[name])
