"""Benchmarks: the same work for this engine, for the floor under it, and for what people would write instead."""
