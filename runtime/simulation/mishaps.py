"""Whether a fault strikes, decided by chance and counted by name."""

from collections import Counter
from dataclasses import fields

from reattach.runtime.simulation.chance import Chance
from reattach.runtime.simulation.faults import NONE, Faults


class Mishaps:
    """The faults of one world, all of which end at the same moment.

    Args:
        happened: how often each fault has struck, and what came of some of them.
    """

    def __init__(self, faults: Faults, chance: Chance) -> None:
        self.chance = chance
        self.happened: Counter[str] = Counter()
        self._set(faults)

    def strikes(self, name: str) -> bool:
        """Whether the fault of this name strikes now; what is off draws nothing."""
        probability = self._odds.get(name)
        if probability is None or not self.chance.happens(probability):
            return False
        self.happened[name] += 1
        return True

    def note(self, what: str) -> None:
        """Count something that came of a fault."""
        self.happened[what] += 1

    def calm(self) -> None:
        """From now on nothing goes wrong any more."""
        self._set(NONE)

    def _set(self, faults: Faults) -> None:
        self.faults = faults
        named = ((each.name, getattr(faults, each.name)) for each in fields(Faults))
        self._odds = {name: value for name, value in named if value and not name.endswith("_ms")}
