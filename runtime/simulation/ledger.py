"""The account of what the outside world saw, and the properties that it must keep.

The ledger sits beside the remote and the sink, not in the host: it counts what was really accepted
and really said, whatever the host believes.
"""

from collections import Counter
from collections.abc import Callable

from reattach.models.identity import marker_of
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Outcome, RemoteFate
from reattach.runtime.simulation.remotes import result_of


class Broken(Exception):
    """A property does not hold. The message says which, of which call, and when.

    Args:
        name: the call.
    """

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class Ledger:
    """What happened, for each call.

    Args:
        now: the world's clock.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.accepted: Counter[str] = Counter()
        self.committed: dict[str, Outcome] = {}
        self.released: set[str] = set()
        self.resubmitted: set[str] = set()
        self.repeated = 0

    def release(self, name: str) -> None:
        """A notice has told people that a thread goes on although this call's run may still act."""
        self.released.add(name)

    def resubmit(self, name: str) -> None:
        """A person wants another generation, whatever may still run on the thread."""
        self.resubmitted.add(name)

    def accept(self, marker: str, beside: list[str]) -> None:
        """The remote has started a turn, beside others or alone."""
        self.accepted[marker] += 1
        if self.accepted[marker] > 1:
            self.fail(name_of(marker), f"accepted twice: {marker}")
        overlaps = [other for other in beside if name_of(other) not in self.released]
        if overlaps and name_of(marker) not in self.resubmitted:
            self.fail(name_of(marker), f"turns overlap: {marker} was accepted while {', '.join(overlaps)} ran")
        said = self.committed.get(name_of(marker))
        none = said is not None and said.failure is not None and said.failure.remote is RemoteFate.NONE
        if said is not None and none and marker_of(said.invocation_id, said.generation) == marker:
            self.fail(name_of(marker), f"false fate: {marker} was accepted after its outcome said that it was not")

    def emit(self, outcome: Outcome) -> None:
        """A host has said how a call ended; a sink that is not transactional shows it at once."""
        name = outcome.invocation_id
        if outcome.result is None:
            return
        if outcome.result != result_of(marker_of(name, outcome.generation)):
            self.fail(name, f"wrong turn: {name} was given {outcome.result!r}")

    def commit(self, outcome: Outcome, went_back: bool) -> None:
        """A checkpoint has made an outcome final.

        Args:
            went_back: the job was restored from before a commit, so a call may end again.
        """
        name = outcome.invocation_id
        if name in self.committed:
            if not went_back:
                self.fail(name, f"two outcomes: {name} was committed twice")
            self.repeated += 1
        failure = outcome.failure
        none = failure is not None and failure.remote is RemoteFate.NONE
        if none and self.accepted[marker_of(name, outcome.generation)]:
            self.fail(name, f"false fate: {name} was accepted, the outcome says it was not")
        self.committed[name] = outcome

    def ended(self) -> Counter[str]:
        """How the calls ended, by status and code."""
        return Counter(
            "COMPLETED" if o.status is Status.COMPLETED else f"FAILED {o.failure.code.value}" if o.failure else "FAILED"
            for o in self.committed.values()
        )

    def fail(self, name: str, text: str) -> None:
        """Raises: Broken, always."""
        raise Broken(name, f"{text} (at {self._now()} ms)")


def name_of(marker: str) -> str:
    """The call that a marker belongs to."""
    return marker.partition("#")[0]
