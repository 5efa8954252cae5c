"""What a fault proxy may do with a request, and what it keeps of each one that it has seen.

A fault is a value; its docstring says which window it opens.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

BODY_KEPT_MAX: Final = 1024 * 1024


class Where(Enum):
    """How far an exchange comes before it is cut."""

    BEFORE = "before anything was forwarded"
    REQUEST = "within the body of the request"
    SENT = "when the whole request was forwarded"
    ANSWERED = "when the server had answered, before a byte of that was passed on"
    HEAD = "within the head of the answer"
    BODY = "within the body of the answer"


@dataclass(frozen=True, slots=True)
class Cut:
    """Both connections end in the middle of an exchange.

    Args:
        at: bytes of the request's or the answer's body that still pass; below 0 counts from the end of a request.
        events: for `Where.BODY`: whole server-sent events that still pass, instead of bytes; 0 for none.
        reset: end the client's connection with RST, else with FIN.
    """

    where: Where
    at: int = 0
    events: int = 0
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """The client's connection ends, and the request lands when the rule is released: a zombie."""

    reset: bool = False


@dataclass(frozen=True, slots=True)
class Silence:
    """The whole request is forwarded, and no byte of the answer is passed on until the rule is released."""


@dataclass(frozen=True, slots=True)
class Twice:
    """The request is forwarded and its answer thrown away; it is forwarded again, and that answer passes."""


@dataclass(frozen=True, slots=True)
class Stall:
    """So many server-sent events of the answer pass, then nothing until the rule is released."""

    events: int


@dataclass(frozen=True, slots=True)
class Split:
    """The answer's body comes in pieces of so many bytes, each sent by itself."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """The proxy answers in the server's stead, as a gateway does.

    Args:
        forward: the server is given the request first, and its own answer is thrown away.
        repeat: how often the body is sent; 0 for without end.
        pieces: where the body is cut into pieces that are sent each by itself.
        raw: bytes that are sent as they are, instead of an HTTP answer.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    forward: bool = False
    repeat: int = 1
    pieces: tuple[int, ...] = ()
    raw: bytes = b""


Fault = Cut | Hold | Silence | Twice | Stall | Split | Answer


@dataclass(eq=False, slots=True)
class Exchange:
    """One request that the proxy has read, and what became of it.

    Args:
        target: path and query, as sent.
        headers: of the request, names in lower case.
        forwarded: how often the whole request was given to the server.
        reached: a part of the request, or all of it, was given to the server.
        statuses: what the server answered, once for each time that it did.
        answer_headers, answer: the server's last answer, of its body the first `BODY_KEPT_MAX` bytes.
        client_gone: the client closed its connection before it had the whole answer.
        over: nothing will happen any more.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    fault: Fault | None = None
    forwarded: int = 0
    reached: bool = False
    statuses: list[int] = field(default_factory=list)
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    answer: bytearray = field(default_factory=bytearray)
    client_gone: bool = False
    over: bool = False

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def __str__(self) -> str:
        sent = "not forwarded" if not self.reached else "forwarded in part" if not self.forwarded else "forwarded"
        return f"{self.method} {self.target} ({sent}, {', '.join(map(str, self.statuses)) or 'no answer'})"


Match = Callable[[Exchange], bool]


@dataclass(eq=False, slots=True)
class Rule:
    """A fault, and which requests it meets.

    Args:
        skip: matching requests that pass first.
        times: how many it meets after those; 0 for no end.
        hits: those that it has met.
    """

    fault: Fault
    match: Match
    skip: int = 0
    times: int = 1
    hits: list[Exchange] = field(default_factory=list)
    seen: int = 0
    loop: asyncio.AbstractEventLoop | None = None
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def takes(self, exchange: Exchange) -> bool:
        """Count a request, and say whether this rule meets it."""
        if not self.match(exchange):
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.times and len(self.hits) >= self.times):
            return False
        self.hits.append(exchange)
        return True

    def release(self) -> None:
        """Let what is held back go on; from any thread."""
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.released.set)


def anything(_: Exchange) -> bool:
    return True


def writes(exchange: Exchange) -> bool:
    """Whether the request may change something, by its method."""
    return exchange.method not in ("GET", "HEAD", "OPTIONS")
