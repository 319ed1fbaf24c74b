"""The papers' tables and figures, one folder for each paper; they use the public API only."""
