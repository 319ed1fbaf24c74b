"""Measurements: how often intervals hold the truth and how fast they come (`benchmarks.core`), and all others."""
