"""Follows one stream and passes its events on in batches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from reattach.models.answers import Progress
from reattach.models.events import Answered, Ident, Progressed, WatchEnded
from reattach.runtime.calls import ordered_to_stop, unfit

BATCH_S: Final = 0.05
BATCH_ITEMS_MAX: Final = 256
BATCH_BYTES_MAX: Final = 1024 * 1024


async def follow(watch: Callable[[], AsyncIterator[Progress]], ident: Ident, tell: Callable[[Answered], None]) -> None:
    """Tell `Progressed` at most every 50 ms, and `WatchEnded` once, whatever ends the stream.

    A batch that an adapter filled with what cannot be stored is left out.
    """
    loop = asyncio.get_running_loop()
    batch: list[Progress] = []
    size = 0
    timer: asyncio.TimerHandle | None = None
    stream: AsyncIterator[Progress] | None = None

    def flush() -> None:
        nonlocal timer, size
        if timer is not None:
            timer.cancel()
            timer = None
        if batch:
            progressed = Progressed(ident, tuple(batch))
            batch.clear()
            size = 0
            if not unfit(progressed):
                tell(progressed)

    cause = "the stream ended"
    try:
        stream = watch()
        async for item in stream:
            batch.append(item)
            size += len(item.data)
            if len(batch) >= BATCH_ITEMS_MAX or size >= BATCH_BYTES_MAX:
                flush()
            elif timer is None:
                timer = loop.call_later(BATCH_S, flush)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and ordered_to_stop():
            raise
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
