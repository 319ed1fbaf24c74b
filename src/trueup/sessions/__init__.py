"""Sessions that ask an expert, one item after another: the log, what follows from it, saving and replaying."""
