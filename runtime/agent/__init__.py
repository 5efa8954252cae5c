"""A demo agent server for the reference protocol, and the log from which everything is counted.

It is what a remote agent looks like from outside: it takes a message, works on it for a while, and
keeps the result. It can be told to misbehave in every way that a network or a server may. Its log is
the only witness that tests and demos believe: one line per POST, turn, end, read and stream, written
before the answer leaves, so that neither side's death loses one.

Run it with `python -m reattach.runtime.agent`. Nothing here is imported by a job.
"""
