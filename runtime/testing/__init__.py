"""A harness for authors of adapters: a job on shipped code, against their remote, with everything that goes wrong.

Needs the extra `reattach[testing]`; `reattach.testing` names what is public. See docs/testing.md.
"""
