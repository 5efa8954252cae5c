"""A wire between a TaskManager and its JobManager that can be cut; neither process knows of it.

Both listen at `HERE`, and the wire at an address of its own, at the same ports: what comes there is passed on to
`HERE`. A process behind the wire is told to call itself by the wire's address, and to look for the other one there.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Final

HERE: Final = "127.0.0.1"
_CHUNK: Final = 65_536


class How(Enum):
    """What the two ends see when it is cut."""

    #: Nothing: what they send stays under way, as if each packet were lost, and arrives when the wire is mended.
    SILENT = "silent"
    #: Their connections end, and new ones do not come about.
    BROKEN = "broken"


class Wire:
    """Passes TCP connections on.

    Args:
        address: of the loopback interface, and not `HERE`.
        ports: of both processes.
    """

    def __init__(self, address: str, ports: Iterable[int]) -> None:
        self.address = address
        self._flows = threading.Event()
        self._flows.set()
        self._broken = False
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listeners = [socket.create_server((address, port)) for port in ports]
        for one in self._listeners:
            self._start(self._accept, one)

    def cut(self, how: How) -> None:
        if how is How.SILENT:
            self._flows.clear()
        else:
            with self._lock:
                self._broken = True
            self._end_connections()

    def mend(self) -> None:
        self._broken = False
        self._flows.set()

    def close(self) -> None:
        with self._lock:
            self._broken = True
        self._flows.set()
        for one in self._listeners:
            # Closing alone would not wake the thread that waits for a connection.
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._end_connections()
        while self._threads:
            self._threads.pop().join()

    def _start(self, what: Callable[..., None], *arguments: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=what, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                self._flows.wait()
                self._start(self._carry, near)

    def _carry(self, near: socket.socket) -> None:
        """One connection, to its end."""
        with near, contextlib.suppress(OSError), socket.create_connection((HERE, near.getsockname()[1])) as far:
            with self._lock:
                if self._broken:
                    return
                self._connections |= {near, far}
            back = self._start(self._pump, far, near)
            self._pump(near, far)
            back.join()
            with self._lock:
                self._connections -= {near, far}

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(data)
        self._flows.wait()
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _end_connections(self) -> None:
        with self._lock:
            for one in self._connections:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def wire(address: str, ports: Iterable[int]) -> Iterator[Wire]:
    made = Wire(address, ports)
    try:
        yield made
    finally:
        made.close()
