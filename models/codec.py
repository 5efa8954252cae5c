"""What is stored, as bytes: msgpack with a schema version, strict limits, and no code in it.

A blob is the msgpack array `[schema, kind, body]`. `schema` is the first element in every release,
past and to come, so that any release can say of any blob whether it may read it. `kind` names what
the body is (`"thread"`, `"event"`, ...); the body's form follows from the type hints of the records
(`reattach.models.shapes`). Only nil, booleans, integers, strings, byte strings and arrays occur.
Equal values give equal bytes.

Versions. Within a schema the fields of every record are frozen: committed golden blobs pin them
(tests/models/golden). Whoever changes one raises `SCHEMA_VERSION` and writes the step from the schema
before, which this release then still reads; what is older is refused, and so is what is newer. A later
release may also add fields at the end of a record of a thread's state, if an earlier one may go on
without them: this release keeps what it does not know there, and stores it again (`Kept`). Anywhere
else a record with more fields than this release knows is refused, since to drop them would lose
what a newer release relied on.

Hostile bytes. msgpack allocates an array when it reads the length, so a few bytes could ask for
gigabytes. Each blob is therefore walked once without building anything; only when every element
that is announced is really there, it is built, into tuples. What that allocates is bounded by the
blob's own length (35 bytes of Python objects for one byte, at the very worst). Decoding any
bytes gives a value that keeps its invariants, or `Corrupt`, `TooNew` or `TooLarge`.

It does not know files or frames (the journal's), nor which records belong together.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NoReturn, TypeVar

import msgpack  # type: ignore[import-untyped]

from reattach.models.effects import Effect
from reattach.models.errors import Corrupt, TooLarge, TooNew
from reattach.models.events import ThreadEvent
from reattach.models.invocation import Invocation, check_invocation
from reattach.models.journal import JournalEntry
from reattach.models.outcomes import Notice, Outcome
from reattach.models.request import Request
from reattach.models.shapes import Shapes
from reattach.models.thread import ThreadState, check_thread

SCHEMA_VERSION: Final = 2
BLOB_BYTES_MAX: Final = 64 * 1024 * 1024
_SPARE_BYTES_MAX: Final = 64 * 1024
# By the schema before this one: what turns a body of a kind, which may be anything still, into one of this schema.
# Since 2, records of a thread's state keep what a later release adds to them.
_STEPS: Final[Mapping[int, Callable[[str, Any], Any]]] = {1: lambda _kind, body: body}

T = TypeVar("T")

_CHECKS: Final[Mapping[type, Callable[[Any], str]]] = {
    Invocation: check_invocation,
    ThreadState: check_thread,
}
_ENCODING: Final = Shapes(decoding=False, checks=_CHECKS)
_DECODING: Final = Shapes(decoding=True, checks=_CHECKS)


class Codec(Generic[T]):
    """Bytes and back for one kind of value.

    Args:
        kind: the name that its blobs carry.
        hint: the value's type, a record or a union of records.
    """

    __slots__ = ("_join", "_split", "kind")

    def __init__(self, kind: str, hint: Any) -> None:
        self.kind: Final = kind
        self._split = _ENCODING.function(hint)
        self._join = _DECODING.function(hint)

    def encode(self, value: T) -> bytes:
        """Give the bytes to store.

        Returns:
            At most `BLOB_BYTES_MAX` bytes, the same ones for equal values.

        Raises:
            TooLarge: a text, a tuple or the whole is over its limit.
            CodecError: a field is not of its declared type, or the value breaks an invariant.
        """
        return _pack((SCHEMA_VERSION, self.kind, self._split(value)))

    def decode(self, data: bytes) -> T:
        """Read what `encode` wrote.

        Args:
            data: any bytes at all; more than `BLOB_BYTES_MAX` are refused unread.

        Raises:
            Corrupt: these bytes are not such a value.
            TooNew: a newer release wrote them.
            TooLarge: a text, a tuple or the whole is over its limit.

        Guarantee: nothing else is raised, whatever the bytes (tests/models/test_hostile.py).
        """
        blob = _unpack(data)
        if type(blob) is tuple and len(blob) == 3:
            schema, kind, body = blob
            if type(schema) is int and kind == self.kind:
                if schema in _STEPS:
                    schema, body = schema + 1, _STEPS[schema](kind, body)
                if schema == SCHEMA_VERSION:
                    value: T = self._join(body)
                    return value
        _refuse(blob, self.kind)


def _refuse(blob: object, wanted: str) -> NoReturn:
    if type(blob) is not tuple or not blob or type(blob[0]) is not int:
        raise Corrupt("no blob of this library: it does not begin with a schema version")
    schema = blob[0]
    if schema > SCHEMA_VERSION:
        raise TooNew(
            f"written with schema {schema}, this release reads up to {SCHEMA_VERSION}: "
            "upgrade reattach to the release that wrote it, or a later one"
        )
    if schema < min(_STEPS):
        raise Corrupt(
            f"written with schema {schema}, this release reads {min(_STEPS)} to {SCHEMA_VERSION}: "
            "restore it with a release in between first"
        )
    if len(blob) != 3 or type(blob[1]) is not str:
        raise Corrupt(f"schema version, kind and body expected, got {len(blob)} elements")
    raise Corrupt(f"holds {blob[1][:40]!a}, {wanted!a} expected")


# Packers and unpackers are kept, since making one costs as much as using it. They are taken from
# the list for one use, so that threads never share one; after an error they are not put back.
_packers: Final[list[msgpack.Packer]] = []
_walkers: Final[list[msgpack.Unpacker]] = []


def _pack(blob: tuple[int, str, Any]) -> bytes:
    try:
        packer = _packers.pop()
    except IndexError:
        packer = msgpack.Packer(buf_size=_SPARE_BYTES_MAX)
    try:
        data: bytes = packer.pack(blob)
    except UnicodeEncodeError:
        # JSON may hold half a surrogate pair, and so may a remote's handle: no reason to lose a call.
        data = msgpack.Packer(unicode_errors="surrogatepass").pack(blob)
    except (ValueError, MemoryError) as error:
        raise TooLarge(f"cannot be stored: {type(error).__name__}") from None
    if len(data) <= _SPARE_BYTES_MAX:
        _packers.append(packer)
    elif len(data) > BLOB_BYTES_MAX:
        raise TooLarge(f"{len(data)} bytes to store, the limit is {BLOB_BYTES_MAX}")
    return data


def _unpack(data: bytes) -> object:
    size = len(data)
    if size > BLOB_BYTES_MAX:
        raise TooLarge(f"{size} bytes to read, the limit is {BLOB_BYTES_MAX}")
    try:
        walker = _walkers.pop()
    except IndexError:
        walker = msgpack.Unpacker(max_buffer_size=BLOB_BYTES_MAX, read_size=4096)
    try:
        walker.feed(data)
        walker.skip()
        blob: object = msgpack.unpackb(
            data,
            use_list=False,
            # No value here is a float, so that is what a timestamp becomes.
            timestamp=1,
            max_map_len=0,
            object_hook=_foreign,
            ext_hook=_foreign,
            unicode_errors="surrogatepass",
        )
    except (msgpack.UnpackException, ValueError) as error:
        raise Corrupt(f"not complete, valid msgpack: {type(error).__name__}") from None
    except MemoryError:
        raise TooLarge(f"{size} bytes to read, more than the memory can take") from None
    if size <= _SPARE_BYTES_MAX:
        _walkers.append(walker)
    return blob


def _foreign(*_: object) -> NoReturn:
    raise ValueError("maps and extensions do not occur")


THREAD: Final = Codec[ThreadState]("thread", ThreadState)
INVOCATION: Final = Codec[Invocation]("invocation", Invocation)
REQUEST: Final = Codec[Request]("request", Request)
EVENT: Final = Codec[ThreadEvent]("event", ThreadEvent)
EFFECT: Final = Codec[Effect]("effect", Effect)
OUTCOME: Final = Codec[Outcome]("outcome", Outcome)
NOTICE: Final = Codec[Notice]("notice", Notice)
ENTRY: Final = Codec[JournalEntry]("entry", JournalEntry)

CODECS: Final[Mapping[str, Codec[Any]]] = {
    codec.kind: codec for codec in (THREAD, INVOCATION, REQUEST, EVENT, EFFECT, OUTCOME, NOTICE, ENTRY)
}

encode_thread, decode_thread = THREAD.encode, THREAD.decode
encode_invocation, decode_invocation = INVOCATION.encode, INVOCATION.decode
encode_request, decode_request = REQUEST.encode, REQUEST.decode
encode_event, decode_event = EVENT.encode, EVENT.decode
encode_effect, decode_effect = EFFECT.encode, EFFECT.decode
encode_outcome, decode_outcome = OUTCOME.encode, OUTCOME.decode
encode_notice, decode_notice = NOTICE.encode, NOTICE.decode
encode_entry, decode_entry = ENTRY.encode, ENTRY.decode
