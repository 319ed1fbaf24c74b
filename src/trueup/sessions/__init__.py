"""What sessions with an expert share: the log of events, batches, and saving."""
