"""The inner loops of the noise models: the reference in scipy, and the same compiled."""
