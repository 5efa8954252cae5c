"""The shipped code against every kind of model remote, under everything that may go wrong."""

from reattach.testing import ModelRemote, RemoteMachine
from tests.testing.making import model


class StatusOnly(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("status-only")


class MarkerLast(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("marker-last")


class MarkerList(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("marker-list")


class Deduplicating(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("deduplicating")


class Fenceable(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("fenceable")


class HandleOnly(RemoteMachine):
    def make_remote(self) -> ModelRemote:
        return model("handle-only")


class Unsteady(RemoteMachine):
    """Every rule may be chosen at any time, as for a live server; those with nothing to do do nothing."""

    def make_remote(self) -> ModelRemote:
        remote = model("marker-list")
        remote.unsteady = True
        return remote


TestStatusOnly = StatusOnly.TestCase
TestMarkerLast = MarkerLast.TestCase
TestMarkerList = MarkerList.TestCase
TestDeduplicating = Deduplicating.TestCase
TestFenceable = Fenceable.TestCase
TestHandleOnly = HandleOnly.TestCase
TestUnsteady = Unsteady.TestCase
