"""How Hypothesis runs here: no time limit per example, since other tests may share the machine."""

from hypothesis import settings

settings.register_profile("models", deadline=None, print_blob=True)
settings.load_profile("models")
