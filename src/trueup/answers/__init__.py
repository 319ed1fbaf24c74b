"""The doors: `evaluate`, `compare` and `auc`, and the answers they give."""
