"""The public functions `evaluate`, `compare`, `share` and others, and the answers they return."""
