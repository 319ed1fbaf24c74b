"""Drift: batches over time, the course of a system and its judges, and alarms with a bounded rate of false ones."""

from trueup.monitor.alarms import Alarm
from trueup.monitor.batch import Batch
from trueup.monitor.change import Change, find_change
from trueup.monitor.monitor import Monitor
from trueup.monitor.streams import History, Stream

__all__ = ["Alarm", "Batch", "Change", "History", "Monitor", "Stream", "find_change"]
