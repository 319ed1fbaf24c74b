"""Drift: batches over time, the course of a system and its judges, and alarms with a bounded rate of false ones."""

from trueup.monitor.change import Alarm, Change, find_change
from trueup.monitor.monitor import Monitor

__all__ = ["Alarm", "Change", "Monitor", "find_change"]
