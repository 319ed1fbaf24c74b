"""Measurements: how fast (`benchmarks.speed`), and how often intervals hold the truth (`benchmarks.coverage`)."""
