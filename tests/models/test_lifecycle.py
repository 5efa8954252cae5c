"""The words of the lifecycle hang together."""

import pytest

from reattach.models.invocation import Invocation, Tenure, check_invocation
from reattach.models.lifecycle import Leaf, Status
from reattach.models.outcomes import RemoteFate
from reattach.models.request import Request
from reattach.models.thread import Drain, ThreadState, Tombstone, check_thread
from tests.models.test_codec import BROKEN, CALL, ENDED, UNFIT


def test_ranks_never_fall_and_the_ends_stand_level() -> None:
    assert [status.rank for status in Status] == [0, 1, 2, 3, 3]
    assert [status for status in Status if status.terminal] == [Status.COMPLETED, Status.FAILED]


@pytest.mark.parametrize("leaf", Leaf)
def test_a_leaf_names_its_status(leaf: Leaf) -> None:
    assert leaf.status is Status[leaf.value.partition(".")[0].upper()]
    assert leaf.terminal == ("." not in leaf.value) == leaf.status.terminal
    assert Leaf(leaf.value) is leaf


def test_every_status_has_a_leaf() -> None:
    assert {leaf.status for leaf in Leaf} == set(Status)
    assert len({leaf.value for leaf in Leaf}) == len(Leaf) == 20


def test_what_can_still_act_on_a_thread() -> None:
    assert {fate for fate in RemoteFate if not fate.settled} == {RemoteFate.RUNNING, RemoteFate.UNKNOWN}


def test_an_invocation_has_the_status_of_its_leaf_and_the_id_of_its_request() -> None:
    assert (CALL.status, CALL.id) == (Status.NOT_STARTED, "call-1")


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_invariants_are_named(broken: Invocation) -> None:
    assert check_invocation(broken) != ""


def test_kept_invariants() -> None:
    assert check_invocation(CALL) == check_invocation(ENDED) == ""


@pytest.mark.parametrize("unfit", UNFIT[:3])
def test_broken_invariants_of_threads_are_named(unfit: ThreadState) -> None:
    assert check_thread(unfit) != ""


@pytest.mark.parametrize(
    ("state", "mode", "wake_at_ms"),
    [
        (ThreadState(), "free", 0),
        (ThreadState(active=CALL), "busy", 1),
        (ThreadState(drain=Drain(ENDED, 7, 9)), "draining", 7),
        (ThreadState(tombstones=(Tombstone("a", 1, b"", Status.FAILED, None, 5),)), "free", 5),
        (ThreadState(active=CALL, tombstones=(Tombstone("a", 1, b"", Status.FAILED, None, 5),)), "busy", 1),
    ],
)
def test_a_thread_wakes_for_whoever_is_first(state: ThreadState, mode: str, wake_at_ms: int) -> None:
    assert check_thread(state) == ""
    assert (state.mode, state.wake_at_ms) == (mode, wake_at_ms)


def test_a_request_is_not_changed_by_being_held() -> None:
    request = Request("call-1", "research", b"1", 1)
    assert Invocation(request, 1, 1, Leaf.NS_QUIET, 0, 1, 1, 1, Tenure()).request is request
