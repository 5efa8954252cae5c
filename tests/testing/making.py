"""Machines for every kind of model remote, and ways to run one."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from reattach.models.policy import CancelKind, StreamKind
from reattach.runtime.simulation.remotes import REMOTES, Remote
from reattach.testing import ModelRemote, RemoteMachine, RemoteUnderTest

# A search stops at the first failure, and does not make it shorter. It is the same on every run of the same modules:
# hypothesis also draws constants that it finds in the code, so what else is loaded shifts the examples, and there are
# many more of them than are needed on an average day.
EXAMPLES = 10_000
SEARCH = settings(
    deadline=None,
    max_examples=EXAMPLES,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def able(remote: Remote) -> Remote:
    """The same remote with streams, questions and a cancel."""
    capabilities = replace(remote.capabilities, responds=True, cancel=CancelKind.CONFIRMED, stream=StreamKind.LIVE)
    return replace(remote, capabilities=capabilities)


ABLE = {remote.name: able(remote) for remote in REMOTES}


def machine(make: Callable[[], RemoteUnderTest]) -> type[RemoteMachine]:
    """A machine against what `make` makes."""

    class Machine(RemoteMachine):
        def make_remote(self) -> RemoteUnderTest:
            return make()

    return Machine


def search(make: Callable[[], RemoteUnderTest], examples: int = EXAMPLES) -> None:
    """Let a machine search."""
    run_state_machine_as_test(machine(make), settings=settings(SEARCH, max_examples=examples))


def model(name: str) -> ModelRemote:
    return ModelRemote(ABLE[name])
