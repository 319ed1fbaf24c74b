"""Votes, predictions and gold: read, checked, encoded and aligned."""
