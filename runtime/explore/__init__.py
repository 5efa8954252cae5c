"""Exhaustive search of the shipped core against model remotes."""
