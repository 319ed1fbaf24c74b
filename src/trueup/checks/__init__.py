"""The checks of a new noise model; they live in `trueup.testing.noise`."""

from trueup.testing.noise import NOISE_CHECKS, example_labels

__all__ = ["NOISE_CHECKS", "example_labels"]
