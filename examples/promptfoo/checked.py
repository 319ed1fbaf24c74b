"""The assertion that promptfooconfig.yaml names: what a person said of an answer, from checked.csv."""

from trueup.integrations.promptfoo import get_assert

__all__ = ["get_assert"]
