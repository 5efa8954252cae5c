"""How the agent server misbehaves: rules, and dice that fall the same way for the same seed.

A die is a hash of (seed, fault, message or thread, how often it came): the order in which requests
arrive changes nothing.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from reattach.models.errors import ConfigError

STREAMS = ("live", "none", "cut", "endless", "long_line")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What goes wrong. Probabilities from 0 to 1; by default nothing does.

    Args:
        match: POST faults only hit message ids that contain this.
        times: a POST fault hits the same message at most this often; 0 for no limit.
        drop_before: close the connection of a POST without accepting it.
        refuse: answer `refuse_status` without accepting, with `Retry-After: retry_after_s` if >= 0.
        error_before: answer 500 without accepting.
        error_after: accept, then answer 500.
        lose_answer: accept, then close the connection.
        late: admit a POST only `late_ms` after it came, even when its sender is gone.
        late_answer: answer such a POST at once, before it shows in the status.
        answer_ms: hold back a POST's answer, after accepting it.
        fail_run: the run fails.
        stuck_run: the run never ends.
        reads_down_first: answer 503 to the first so many status requests of each thread.
        reads_down_ms: answer 503 to every status request for so long after the rules were set.
        read_error: answer 503 to a status request.
        read_drop: close the connection of a status request.
        read_ms: hold back a status answer, computed when the request came.
        knows_again: a message id that a thread has had starts nothing there, as with a service that deduplicates.
        stream: live, none (404), cut (dropped after one event), endless (no end event, ever),
            long_line (a line that does not end).
    """

    seed: int = 0
    match: str = ""
    times: int = 1
    drop_before: float = 0.0
    refuse: float = 0.0
    refuse_status: int = 429
    retry_after_s: int = 1
    error_before: float = 0.0
    error_after: float = 0.0
    lose_answer: float = 0.0
    late: float = 0.0
    late_ms: int = 0
    late_answer: bool = False
    answer_ms: int = 0
    fail_run: float = 0.0
    stuck_run: float = 0.0
    reads_down_first: int = 0
    reads_down_ms: int = 0
    read_error: float = 0.0
    read_drop: float = 0.0
    read_ms: int = 0
    knows_again: bool = False
    stream: str = "live"

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Rules":
        """Check decoded rules.

        Raises:
            ConfigError: names the rule that is wrong.
        """
        kinds = {one.name: one.type for one in fields(cls)}
        for name, given in value.items():
            kind = kinds.get(name)
            if kind is None:
                raise ConfigError(f"{name}: no such rule (known: {', '.join(sorted(kinds))})")
            if kind is float:
                good = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
            elif kind is int:
                good = isinstance(given, int) and not isinstance(given, bool)
            else:
                good = isinstance(given, kind)  # type: ignore[arg-type]
            if not good:
                wanted = "a probability from 0 to 1" if kind is float else f"a {getattr(kind, '__name__', kind)}"
                raise ConfigError(f"{name} = {given!r}: must be {wanted}")
        rules = cls(**value)
        if rules.stream not in STREAMS:
            raise ConfigError(f"stream = {rules.stream!r}: must be one of {', '.join(STREAMS)}")
        return rules


class Dice:
    """Decides which requests a rule hits."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._thrown: Counter[tuple[str, str]] = Counter()
        self._hits: Counter[tuple[str, str]] = Counter()

    def post(self, fault: str, message_id: str) -> bool:
        """Say whether a POST fault hits this message now."""
        chance: float = getattr(self.rules, fault)
        if chance <= 0 or self.rules.match not in message_id:
            return False
        key = fault, message_id
        if self.rules.times and self._hits[key] >= self.rules.times:
            return False
        hit = self._throw(key) < chance
        self._hits[key] += hit
        return hit

    def read(self, fault: str, thread: str) -> bool:
        chance: float = getattr(self.rules, fault)
        return chance > 0 and self._throw((fault, thread)) < chance

    def first_reads(self, thread: str) -> bool:
        """Say whether this is one of the first reads of a thread, which find the server down."""
        if not self.rules.reads_down_first:
            return False
        self._thrown["reads", thread] += 1
        return self._thrown["reads", thread] <= self.rules.reads_down_first

    def _throw(self, key: tuple[str, str]) -> float:
        self._thrown[key] += 1
        return fraction(f"{self.rules.seed}/{key[0]}/{key[1]}/{self._thrown[key]}")


def fraction(name: str) -> float:
    """Map a name to a number from 0 up to 1."""
    return (
        int.from_bytes(hashlib.blake2b(name.encode("utf-8", "backslashreplace"), digest_size=7).digest(), "big") / 2**56
    )


@dataclass(frozen=True, slots=True)
class Latency:
    """How long a run takes: evenly spread over [least_ms, most_ms], by its message's name."""

    least_ms: int
    most_ms: int

    @classmethod
    def parse(cls, text: str) -> "Latency":
        """Read "2s-6s", "250ms" or "0.5s-2s".

        Raises:
            ConfigError: it is something else.
        """
        try:
            spans = [_span_ms(part) for part in text.split("-")]
            if not 1 <= len(spans) <= 2 or spans[0] > spans[-1]:
                raise ValueError
        except ValueError:
            raise ConfigError(f"latency = {text!r}: must be like '250ms' or '2s-6s'") from None
        return cls(spans[0], spans[-1])

    def of(self, seed: int, name: str) -> int:
        return self.least_ms + round((self.most_ms - self.least_ms) * fraction(f"{seed}/latency/{name}"))


def _span_ms(text: str) -> int:
    text = text.strip()
    value = float(text[:-2]) if text.endswith("ms") else float(text.removesuffix("s")) * 1000
    if not 0 <= value <= 86_400_000 or not text.endswith("s"):
        raise ValueError
    return round(value)
