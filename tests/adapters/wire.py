"""A server of plain sockets that fails where it is told to, and counts the requests it has had in whole.

Each fault is a function over one connection; its docstring says which window it opens. `whole` is
what the tests judge by: a request that is in it may have been acted on.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from reattach.models.invocation import Invocation, Tenure
from reattach.models.lifecycle import Leaf
from reattach.models.request import Request


@dataclass
class Server:
    """A context manager; `behave` runs once per connection in a thread of its own."""

    behave: Callable[["Server", socket.socket], None]
    receive_buffer: int = 0
    whole: list[bytes] = field(default_factory=list)
    connections: int = 0
    received: int = 0
    done: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Server":
        self._listener = socket.socket()
        if self.receive_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(64)
        self._threads: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._run, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.behave(self, connection)

    def request(self, connection: socket.socket) -> bytes:
        """Read one whole request and count it; b"" when the client has gone."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += (chunk := connection.recv(65536))
            if not chunk:
                return b""
        head, _, body = data.partition(b"\r\n\r\n")
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            body += (chunk := connection.recv(1 << 20))
            if not chunk:
                return b""
        self.whole.append(head + b"\r\n\r\n" + body)
        return self.whole[-1]


def reply(body: bytes = b"{}", status: str = "200 OK", kind: str = "application/json", *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def answers(*replies: bytes) -> Callable[[Server, socket.socket], None]:
    """Answer request by request; the last reply again and again."""

    def behave(server: Server, connection: socket.socket) -> None:
        number = 0
        while server.request(connection):
            connection.sendall(replies[min(number, len(replies) - 1)])
            number += 1

    return behave


def hangs_up_after_the_request(server: Server, connection: socket.socket) -> None:
    """The server has everything, may act on it, and closes politely without a word."""
    server.request(connection)


def resets_after_the_request(server: Server, connection: socket.socket) -> None:
    """The server has everything and dies: the kernel answers for it."""
    server.request(connection)
    reset(connection)


def resets_after_ten_bytes(server: Server, connection: socket.socket) -> None:
    """The server has next to nothing: to the client this looks like the two faults above."""
    connection.recv(10)
    reset(connection)


def hangs_up_at_once(server: Server, connection: socket.socket) -> None:
    """A connection was there, so something may have been sent into it."""


def is_silent(server: Server, connection: socket.socket) -> None:
    """The server has everything and does not answer."""
    server.request(connection)
    server.done.wait(30)


def cuts_the_body(server: Server, connection: socket.socket) -> None:
    """The status arrived; the body did not."""
    server.request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")


def stalls_in_the_body(server: Server, connection: socket.socket) -> None:
    """The status arrived; the body never ends."""
    server.request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    server.done.wait(30)


def cuts_the_head(server: Server, connection: socket.socket) -> None:
    """Half a status line is no status."""
    server.request(connection)
    connection.sendall(b"HTTP/1.1 20")


def speaks_no_http(server: Server, connection: socket.socket) -> None:
    """Something else listens on this port."""
    server.request(connection)
    connection.sendall(b"\x00\xffSSH-2.0-hello\r\n\r\n")


def sends_a_huge_head(server: Server, connection: socket.socket) -> None:
    """A header that does not fit."""
    server.request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 3_000_000 + b"\r\n\r\n")


def sends_without_end(server: Server, connection: socket.socket) -> None:
    """A body that goes on as long as somebody reads."""
    server.request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
    with contextlib.suppress(OSError):
        while not server.done.is_set():
            connection.sendall(b" " * 65536)


def dies_on_reuse(server: Server, connection: socket.socket) -> None:
    """The first request is answered; the second meets a server that reads it and hangs up."""
    server.request(connection)
    connection.sendall(reply())
    server.request(connection)


def closes_idle(server: Server, connection: socket.socket) -> None:
    """The connection is closed as soon as it is idle: the next request may meet the closing."""
    server.request(connection)
    connection.sendall(reply())


def reads_late(after_s: float) -> Callable[[Server, socket.socket], None]:
    """Nothing is read for a while; then all that still comes. Shows what leaves after a cancellation."""

    def behave(server: Server, connection: socket.socket) -> None:
        time.sleep(after_s)
        connection.settimeout(2)
        with contextlib.suppress(OSError):
            while chunk := connection.recv(1 << 20):
                server.received += len(chunk)
        server.done.set()

    return behave


def invocation(
    invocation_id: str = "call-1",
    *,
    thread_id: str = "",
    turn: int = 0,
    generation: int = 1,
    message: bytes = b'"hi"',
    handle: str = "",
) -> Invocation:
    """A call as `probe` and `submit` are told of it."""
    request = Request(invocation_id, "demo", message, 1, thread_id=thread_id, turn=turn)
    return Invocation(request, generation, 1, Leaf.NS_PROBING, 1, 1, 1, 1, Tenure(), handle=handle)
