"""Deliberate faults of the shipped code, and the proof that the explorer finds each of them."""
