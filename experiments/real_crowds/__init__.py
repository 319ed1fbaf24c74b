"""What real crowds and judges with known truth say of intervals that rest on votes alone, and of a few vetted items."""
