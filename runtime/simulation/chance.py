"""The one source of chance of a simulated world: everything that is drawn comes from its seed."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """A stream of draws; two streams of one seed are equal, on every machine and in every process."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 (a simulation must be repeatable, not secret)

    def happens(self, probability: float) -> bool:
        """Whether something of this probability happens; what is off draws nothing."""
        return probability > 0 and self._random.random() < probability

    def between(self, least: int, most: int) -> int:
        """A whole number of `[least, most]`."""
        return least if most <= least else least + int(self._random.random() * (most - least + 1))

    def around(self, mean: int) -> int:
        """A waiting time of this mean, at least 1, as between things that happen independently."""
        return max(1, round(self._random.expovariate(1 / mean)))

    def pick(self, among: Sequence[T]) -> T:
        return among[self.between(0, len(among) - 1)]
