"""What all rules of the machine stand on."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition
from hypothesis.strategies import SearchStrategy

from reattach.runtime.simulation.remotes import Remote
from reattach.runtime.testing.job import Job
from reattach.runtime.testing.model import ModelRemote
from reattach.runtime.testing.remote import RemoteUnderTest

T = TypeVar("T")
Rule = Callable[..., Any]


class Bench(RuleBasedStateMachine):
    """A machine with a job and a remote.

    Attributes:
        remote: what `make_remote` has made for this example.
        job: the job under test.
    """

    def __init__(self) -> None:
        super().__init__()
        self.remote = _checked(self.make_remote())
        self.job = Job(self.remote)
        self.outages = self.repeats = 0

    def make_remote(self) -> RemoteUnderTest:
        """Make the remote of one example; subclasses say which."""
        raise NotImplementedError("a subclass of RemoteMachine needs make_remote(), which returns a remote")

    @property
    def model(self) -> ModelRemote:
        assert isinstance(self.remote, ModelRemote)
        return self.remote


def _checked(made: object) -> RemoteUnderTest:
    """Take what `make_remote` returned, or say what is wrong with it."""
    if isinstance(made, RemoteUnderTest):
        return made
    if isinstance(made, Remote):
        raise TypeError("make_remote returned a Remote: wrap it, ModelRemote(remote)")
    returned = "None" if made is None else f"{made!r:.60} ({type(made).__name__})"
    raise TypeError(f"make_remote returned {returned}: return a ModelRemote, a LiveRemote or another RemoteUnderTest")


def when(condition: Callable[[Any], object]) -> Callable[[Rule], Rule]:
    """Choose a rule only where it can do something.

    Where answers depend on real time, what is possible may differ between two runs of one example,
    so there every rule may be chosen, and one that finds nothing to do does nothing.
    """
    return precondition(lambda machine: machine.remote.unsteady or bool(condition(machine)))


def when_steady(condition: Callable[[Any], object]) -> Callable[[Rule], Rule]:
    """Choose a rule only where time is virtual, where it can do something."""
    return precondition(lambda machine: not machine.remote.unsteady and bool(condition(machine)))


def when_model(condition: Callable[[Any], object]) -> Callable[[Rule], Rule]:
    """Choose a rule only for a model remote, where it can do something."""
    return precondition(lambda machine: isinstance(machine.remote, ModelRemote) and bool(condition(machine)))


def places() -> SearchStrategy[int]:
    """Which one of several is meant."""
    return st.integers(0, 7)


def pick(among: Sequence[T], place: int) -> T | None:
    """One of several, by its place; None of none."""
    return among[place % len(among)] if among else None
