"""Processes that share work, and end with the command that began them, however that ends."""

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any


@contextmanager
def pool_of(jobs: int, prepare: Callable[..., None] | None = None, *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """Have so many worker processes.

    Whoever leaves with an exception, Ctrl-C among them, does not wait for what is not done: the workers end at once.

    Args:
        prepare: called first in each worker, with `arguments`.
    """
    # Fresh interpreters: a fork would take along a tracing, a fault, whatever was put into this process.
    fresh = get_context("spawn")
    # Nothing is ever sent. Only this process holds the writing end, so it closes when this process is killed, too.
    reader, writer = fresh.Pipe(duplex=False)
    with reader, writer:
        pool = ProcessPoolExecutor(
            jobs, mp_context=fresh, initializer=_begin, initargs=(reader, prepare or _nothing, arguments)
        )
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def _begin(reader: Connection, prepare: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    # Ctrl-C reaches the whole group; what to do then is the parent's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(reader,), daemon=True).start()
    prepare(*arguments)


def _nothing() -> None:
    """Prepare nothing."""


def _end_with(reader: Connection) -> None:
    try:
        reader.recv_bytes()
    except EOFError:
        os._exit(1)
