"""Decisions that go on until they are safe: conditions as sums over items, bets on drawn checks, and the session."""

from trueup.decisions.decision import Decision, Needed, decide

__all__ = ["Decision", "Needed", "decide"]
