"""Conformance checks for parts that are added to trueup, inside or outside of it."""
