"""Another name of `trueup.testing`: the conformance checks of noise models."""

from trueup.testing.noise import NOISE_CHECKS, example_labels

__all__ = ["NOISE_CHECKS", "example_labels"]
