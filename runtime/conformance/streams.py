"""Checks of the conformance kit: streams, which are for people and screens, and must end quietly whatever happens."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pytest

from reattach.models.answers import Progress
from reattach.models.policy import StreamKind
from reattach.runtime.conformance.faults import (
    CUT_BODIES,
    IN_ITS_STEAD,
    LONG,
    NO_ANSWER,
    NONSENSE,
    NOT_FOUND,
    REDIRECTS,
)
from reattach.runtime.conformance.rig import ENDED, Rig
from reattach.runtime.conformance.said import Call
from reattach.runtime.proxy.faults import Answer, Exchange, Fault, Split, Stall

EVENT_STREAM: Final = "text/event-stream"
ON_STREAM: Final[Mapping[str, Fault]] = {
    **NO_ANSWER,
    **CUT_BODIES,
    **IN_ITS_STEAD,
    **NONSENSE,
    **NOT_FOUND,
    **REDIRECTS,
    **LONG,
}
# A longer stream is split at every byte of its beginning only.
SPLITS_MAX: Final = 300
PROMPT_S: Final = 5.0


class StreamChecks:
    """Where the adapter declares a stream."""

    def test_a_stream_ends_with_its_run(self, rig: Rig) -> None:
        call = _running(rig)
        events = rig.watch(call)
        if not events:
            rig.fail("the stream of a run of 1 or 2 s brought no event")
        if rig.able.stream is StreamKind.CURSOR and not all(one.cursor for one in events):
            rig.fail(f"the stream is resumed by cursors, and events came without one: {events}")
        rig.until_shown(call, *ENDED)
        rig.watch(call)

    def test_a_resumed_stream_goes_on_where_it_broke(self, rig: Rig) -> None:
        if rig.able.stream is not StreamKind.CURSOR:
            pytest.skip("the adapter declares no stream that can be resumed")
        call = _running(rig)
        whole, broken = rig.run(_both(rig, call))
        if rig.target.cursor_exact and broken != whole:
            rig.fail(
                "a stream that was left after each event and resumed brought something else", *_differ(whole, broken)
            )
        cursors = [one.cursor for one in broken]
        if len(set(cursors)) != len(cursors):
            rig.fail(f"a resumed stream brought events twice: {cursors}")
        shorter = min(len(whole), len(broken))
        if broken[:shorter] != whole[:shorter]:
            rig.fail("a stream that was resumed lost or changed events", *_differ(whole, broken))

    def test_how_a_stream_is_cut_into_pieces_changes_nothing(self, rig: Rig) -> None:
        call = _running(rig)
        before = len(rig.proxy.exchanges)
        whole = rig.watch(call)
        told = next((one for one in rig.proxy.exchanges[before:] if _is_stream(one)), None)
        if told is None:
            rig.fail("the stream was no answer of server-sent events", str(rig.proxy.exchanges[before:]))
        body = bytes(told.answer)
        headers = {name: value for name, value in told.answer_headers.items() if name == "content-type"}

        def again(pieces: tuple[int, ...]) -> list[Progress]:
            with rig.fault(Answer(200, headers, body, pieces=pieces), match=lambda one: _same(one, told), times=0):
                return rig.watch(call)

        ways = [(), tuple(range(1, len(body))), *((at,) for at in range(1, min(len(body), SPLITS_MAX)))]
        for pieces in ways:
            if (found := again(pieces)) != whole:
                cut = (
                    "in one piece" if not pieces else f"cut at byte {pieces[0]}" if len(pieces) == 1 else "byte by byte"
                )
                rig.fail(f"the same stream {cut} brought other events", *_differ(whole, found))

    def test_a_live_stream_byte_by_byte_brings_whole_events(self, rig: Rig) -> None:
        call = _running(rig)
        with rig.fault(Split(1), times=0):
            events = rig.watch(call)
        if not events:
            rig.fail("the stream, sent byte by byte, brought no event")

    def test_a_stream_that_stalls_can_be_left_at_once(self, rig: Rig) -> None:
        call = _running(rig)
        with rig.fault(Stall(1), times=0) as rule:
            seen = rig.run(_leave(rig, call))
            gone = rig.soon(lambda: all(one.client_gone or one.over for one in rule.hits), PROMPT_S)
        if not seen:
            rig.fail("the first event passed, and the stream stalled behind it; the adapter has not yielded it")
        if not gone:
            rig.fail("the stream was left, and its connection is still open")

    @pytest.mark.parametrize("name", ON_STREAM)
    def test_a_stream_that_breaks_ends_quietly(self, rig: Rig, name: str, ended: Call) -> None:
        if rig.able.stream is StreamKind.NONE:
            pytest.skip("the adapter declares no stream")
        with rig.fault(ON_STREAM[name], times=0):
            rig.watch(ended)


def _running(rig: Rig) -> Call:
    if rig.able.stream is StreamKind.NONE:
        pytest.skip("the adapter declares no stream")
    call = rig.call("slow")
    rig.submit(call)
    rig.until(lambda: rig.executions(call), f"{call.id} is executed")
    if not call.inv.handle:
        rig.until_shown(call)
    return call


async def _both(rig: Rig, call: Call) -> tuple[list[Progress], list[Progress]]:
    """The stream as it is, and beside it the same one left after each event and resumed behind it."""

    async def in_pieces() -> list[Progress]:
        found: list[Progress] = []
        cursor = ""
        while piece := await rig.following(call, cursor, most=1 + len(found) % 2):
            found += piece
            cursor = piece[-1].cursor
        return found

    whole, broken = await asyncio.gather(rig.following(call), in_pieces())
    return whole, broken


async def _leave(rig: Rig, call: Call) -> bool:
    """Cancel a watch that waits; says whether an event had come. A watch that cannot be cancelled fails the test."""
    came = asyncio.Event()

    async def watching() -> None:
        async for _ in rig.adapter.watch(call.inv, ""):
            came.set()

    task = asyncio.ensure_future(watching())
    try:
        await asyncio.wait_for(came.wait(), PROMPT_S)
    except TimeoutError:
        pass
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=PROMPT_S)
    if not done:
        rig.fail(f"the stream stalled, and its watch did not end within {PROMPT_S} s of its cancellation")
    if not task.cancelled() and task.exception() is not None:
        rig.fail(f"the stream stalled and was left, and its watch raised {task.exception()!r}")
    return came.is_set()


def _is_stream(exchange: Exchange) -> bool:
    return exchange.answer_headers.get("content-type", "").startswith(EVENT_STREAM)


def _same(one: Exchange, other: Exchange) -> bool:
    """Requests for the same stream, wherever they resume it; an id in a body may be new each time."""
    return (one.method, one.path) == (other.method, other.path) and len(one.body) == len(other.body)


def _differ(whole: list[Progress], found: list[Progress]) -> list[Any]:
    return [f"  as it is: {whole}", f"  otherwise: {found}"]
