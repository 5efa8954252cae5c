"""Names under which a job shows how many calls are in each state: for who counts them, and for who reads."""

from typing import Final

from reattach.models.lifecycle import Leaf

GROUP: Final = "reattach"
LEVEL: Final = "live_"


def level_of(leaf: Leaf) -> str:
    """The metric, below the group, that counts the calls in one state."""
    return _NAMES[leaf]


_NAMES: Final = {leaf: LEVEL + str(leaf.value).replace(".", "_") for leaf in Leaf}
