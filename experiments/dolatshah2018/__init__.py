"""Figures of Dolatshah et al. (2018), "Cleaning Crowdsourced Labels Using Oracles for Statistical Classification"."""
