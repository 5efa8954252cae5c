"""How much of one remote's attention may be taken: a rate, and a breaker for when it is down.

Pure bookkeeping over a clock that is handed in (monotonic seconds): no loop, no thread, no I/O.

*The rate* is a token bucket that holds a tenth of a second's tokens at most, so ten thousand restored
calls do not begin with a burst. An order takes one token before it begins; what it asks for beyond its
first request is taken afterwards, and may leave the bucket in debt.

*The breaker* counts orders that found the remote down, one after the other, whatever they asked for.
An order that got through sets the count to zero. At `failures` it opens, and every order is turned
away. After `open_s` one read may try (a trial); when nothing has tried for as long again, a send may.
While a trial is out, everybody else is turned away. A trial that fails makes all wait `open_s` again;
any order that gets through, trial or not, closes the breaker.

Reads go first because a send that fails may leave a call in doubt, and a read cannot. Sends may
try at all because otherwise calls that have nothing to ask would wait for ever.
"""

from enum import Enum
from typing import Final

BURST_S: Final = 0.1
# Tokens are fractions that were added up.
_ALMOST_ONE: Final = 1 - 1e-9


class Kind(Enum):
    """What an order is to a breaker."""

    READ = "read"
    SEND = "send"
    STREAM = "stream"


class Bucket:
    """Lets so many requests through per second.

    Args:
        per_second: 0 for any number.
    """

    def __init__(self, per_second: int) -> None:
        self._rate = per_second
        self._most = max(1.0, per_second * BURST_S)
        self._tokens = self._most
        self._at_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """How long until a request may begin; 0.0 for now."""
        if not self._rate:
            return 0.0
        if self._at_s is not None:
            self._tokens = min(self._most, self._tokens + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        return 0.0 if self._tokens >= _ALMOST_ONE else (1 - self._tokens) / self._rate

    def take(self) -> None:
        """A request begins, whether there is a token for it or not."""
        self._tokens -= 1


class Breaker:
    """See the module's text.

    Args:
        failures: so many in a row open it; 0 for never.
        open_s: how long nobody may try.
    """

    def __init__(self, failures: int, open_s: float) -> None:
        self._most = failures
        self._open_s = open_s
        self._failures = 0
        self._until_s: float | None = None
        self._trial = 0
        self._trials = 0

    @property
    def closed(self) -> bool:
        return self._until_s is None

    def admits(self, kind: Kind, now_s: float) -> bool:
        """Say whether an order may begin now."""
        if self._until_s is None:
            return True
        # A stream says nothing about the remote until it brings something, so it is no trial.
        if self._trial or kind is Kind.STREAM:
            return False
        return now_s >= self._until_s + (self._open_s if kind is Kind.SEND else 0.0)

    def begin(self) -> int:
        """An order that was admitted begins.

        Returns:
            What `end` wants to know: the trial's number, 0 for an order that is none.
        """
        if self._until_s is None:
            return 0
        self._trials += 1
        self._trial = self._trials
        return self._trial

    def end(self, trial: int, failed: bool | None, now_s: float) -> None:
        """An order has ended.

        Args:
            failed: None when it says nothing about the remote.
        """
        tried = trial != 0 and trial == self._trial
        if tried:
            self._trial = 0
        if failed is None:
            return
        if not failed:
            self._failures = self._trial = 0
            self._until_s = None
        elif self._until_s is None:
            self._failures += 1
            if 0 < self._most <= self._failures:
                self._until_s = now_s + self._open_s
        elif tried:
            self._until_s = now_s + self._open_s
