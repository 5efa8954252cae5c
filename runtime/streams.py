"""Follows one stream and passes its events on in batches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from reattach.models.answers import Progress
from reattach.models.events import Answered, Ident, Progressed, WatchEnded

BATCH_S: Final = 0.05
BATCH_ITEMS_MAX: Final = 256


async def follow(stream: AsyncIterator[Progress], ident: Ident, tell: Callable[[Answered], None]) -> None:
    """Tell `Progressed` at most every 50 ms, and `WatchEnded` once, whatever ends the stream."""
    loop = asyncio.get_running_loop()
    batch: list[Progress] = []
    timer: asyncio.TimerHandle | None = None

    def flush() -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
            timer = None
        if batch:
            tell(Progressed(ident, tuple(batch)))
            batch.clear()

    cause = "the stream ended"
    try:
        async for item in stream:
            batch.append(item)
            if len(batch) >= BATCH_ITEMS_MAX:
                flush()
            elif timer is None:
                timer = loop.call_later(BATCH_S, flush)
    except Exception as error:
        cause = f"the stream broke ({type(error).__name__})"
    finally:
        if timer is not None:
            timer.cancel()
            timer = None
        close = getattr(stream, "aclose", None)
        if close is not None:
            with contextlib.suppress(Exception):
                await close()
    flush()
    tell(WatchEnded(ident, cause))
