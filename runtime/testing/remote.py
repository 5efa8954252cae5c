"""What the harness must know of a remote, whether it is a model or a live server."""

from collections.abc import Callable, Container, Iterable, Mapping
from types import MappingProxyType

from reattach.models.effects import RemoteEffect
from reattach.models.events import Answered
from reattach.models.invocation import Invocation
from reattach.models.policy import Absence, Evidence, Terms
from reattach.models.request import Request

Facts = tuple[Answered, ...]


class RemoteUnderTest:
    """One remote, for the length of one example.

    Attributes:
        terms: what the remote declares, and the policy under which it is called.
        unsteady: what it answers depends on real time, so that an example need not repeat itself.
        prefix: begins the name of every call, for servers that remember earlier examples.
        secrets: texts that must never appear in what a job stores or says.
        whims: what it can be told to do by the machine, by name.
        patience_ms: nobody waits longer than this for something to happen.
    """

    terms: Terms
    unsteady: bool = False
    prefix: str = ""
    secrets: tuple[str, ...] = ()
    whims: Mapping[str, Callable[[], object]] = MappingProxyType({})
    patience_ms: int = 2**60

    @property
    def shares_threads(self) -> bool:
        """Requests may name a thread: its turns can be told apart, or are refused by the library."""
        able = self.terms.capabilities
        return able.evidence is not Evidence.HANDLE_ONLY and able.absence is not Absence.BY_FENCE

    def carry(self, effect: RemoteEffect, inv: Invocation, *, step: int, by_ms: int) -> Facts | None:
        """Let a request reach the remote now, and answer it.

        Args:
            step: 0, or how often this order was carried before without an end.
            by_ms: what this request starts is shown by then at the latest.

        Returns:
            The facts that the sender is to be told, in order. None when the exchange is not over:
            the sender goes on with another request, or a stream with nothing new is still open.
        """
        raise NotImplementedError

    def accepted(self, marker: str) -> int:
        """Count the runs that the remote has started for this marker, on the remote's side."""
        raise NotImplementedError

    def owns(self, result: bytes, request: Request, generation: int) -> bool:
        """Whether this result is one of this very call."""
        return True

    def handle_of(self, marker: str) -> str:
        """What an operator would find as the name of this call's run; "" for nothing."""
        return ""

    def remembers(self, marker: str) -> bool | None:
        """Whether a probe finds this run now; None when that cannot be said from outside."""
        return None

    def streams_on(self, inv: Invocation) -> bool:
        """The stream of this call has nothing new and is open."""
        return False

    def told(self, inv: Invocation) -> None:
        """The sender of this call's POST has its answer, or knows that it will have none."""

    def wrongs(self, released: Container[str]) -> Iterable[tuple[str, str]]:
        """What the remote has seen that must never be: names of properties, each with a text.

        Args:
            released: calls whose runs may go on beside others, as people were told.
        """
        return ()

    def pass_time(self, from_ms: int, to_ms: int) -> None:
        """Time passes: at least so much of it, for the remote too."""

    def finish(self) -> None:
        """Let the runs that there are come to their end, where that can be ordered."""

    def calm(self) -> None:
        """From now on nothing goes wrong any more, and every run comes to its end."""

    def close(self) -> None:
        """The example is over."""
