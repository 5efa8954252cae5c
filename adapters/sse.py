"""Server-sent events with bounded memory: httpx-sse decodes, this module counts bytes before it.

The decoder keeps a line until its end and an event until its blank line, so a remote that never
sends one would fill the memory. Here the stream ends as soon as that much is pending.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Final

import httpx
from httpx_sse import EventSource, ServerSentEvent

from reattach.adapters import http
from reattach.adapters.wire import Arrived

EVENT_BYTES_MAX: Final = 256 * 1024
_BLANK: Final = (b"\n\n", b"\r\n\r\n", b"\r\r")
_SEAM: Final = 3


class EventTooLong(Exception):
    """A line or an event of a stream is over its limit."""


class _Counted(httpx.AsyncByteStream):
    """Pass chunks on while the bytes since the last blank line stay within the limit."""

    def __init__(self, arrived: Arrived, event_bytes_max: int) -> None:
        self._arrived = arrived
        self._most = event_bytes_max

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pending = 0
        seam = b""
        while chunk := await self._arrived.chunk():
            window = seam + chunk
            end = max(window.rfind(blank) + len(blank) if blank in window else -1 for blank in _BLANK)
            pending = len(window) - end if end >= 0 else pending + len(chunk)
            if pending > self._most:
                raise EventTooLong
            seam = window[-_SEAM:]
            yield chunk


def is_event_stream(arrived: Arrived) -> bool:
    kind: str = arrived.headers.get("content-type", "")
    return arrived.status == 200 and kind.partition(";")[0].strip().lower() == "text/event-stream"


async def events(arrived: Arrived, event_bytes_max: int = EVENT_BYTES_MAX) -> AsyncGenerator[ServerSentEvent]:
    """Yield the events of an open stream until it ends, breaks, or holds too much.

    Args:
        arrived: as given by `http.open_stream`.
        event_bytes_max: bytes of one event, and so of one line; a few network chunks more may be
            held for a moment.
    """
    # A fresh head, so that no charset or encoding that the remote names is ever looked up.
    counted = httpx.Response(
        200, headers={"Content-Type": "text/event-stream"}, stream=_Counted(arrived, event_bytes_max)
    )
    async for event in EventSource(counted).aiter_sse():
        yield event


async def follow(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], *, content: bytes | None = None
) -> AsyncGenerator[ServerSentEvent]:
    """Open a stream and yield its events until it is over, whatever ends it; nothing if it is no stream of events.

    How a stream ended says nothing of the run, so it is not told: a probe tells what became of that.

    Args:
        content: as `http.open_stream` takes it.
    """
    async with http.open_stream(client, url, headers, content=content) as arrived:
        if not isinstance(arrived, Arrived) or not is_event_stream(arrived):
            return
        try:
            async with aclosing(events(arrived)) as stream:
                async for event in stream:
                    yield event
        except Exception:
            return
