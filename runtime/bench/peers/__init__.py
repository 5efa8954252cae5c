"""Other systems at the same work: their programs, what their environments need, and how they are started.

`programs/` is no package: its files are run by path, each in the environment of its peer, and import nothing of ours.
"""
