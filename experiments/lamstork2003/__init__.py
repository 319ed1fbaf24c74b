"""Lam and Stork (2003), "Evaluating classifiers by means of test data with noisy labels", IJCAI."""
