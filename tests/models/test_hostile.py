"""Any bytes at all: a value that keeps its invariants, or one of the codec's errors; and little memory."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reattach.models import errors
from reattach.models.codec import CODECS, SCHEMA_VERSION, THREAD
from reattach.models.errors import Corrupt, TooLarge, TooNew
from reattach.models.thread import Queued, ThreadState
from tests.models.test_codec import CALL, REQUESTED, STRATEGIES

CORPUS = Path(__file__).parent / "corpus" / "hostile.txt"

# What Python needs for the smallest things that a byte can announce; see the module's text of the codec.
PER_BYTE_MAX = 36
# The walker's own stack and buffer, and the error.
FIXED_MAX = 128 * 1024


def corpus() -> Iterator[tuple[str, str, bytes]]:
    for line in CORPUS.read_text().splitlines():
        if line and not line.startswith("#"):
            error, name, *groups = line.split()
            yield error, name, b"".join(map(_group, _joined(groups)))


def _joined(groups: list[str]) -> list[str]:
    """Hex may be cut anywhere for reading, but a repeated group stands alone or ends in its last bytes."""
    joined = [""]
    for group in groups:
        if "*" in group or "*" in joined[-1]:
            joined.append(group)
        else:
            joined[-1] += group
    return joined


def _group(group: str) -> bytes:
    digits, _, times = group.partition("*")
    return bytes.fromhex(digits) * int(times or 1)


CASES = list(corpus())


def attempt(data: bytes) -> None:
    """Decode as every kind; whatever is read must be storable, whatever is not must be refused properly."""
    for codec in CODECS.values():
        try:
            value = codec.decode(data)
        except (Corrupt, TooNew, TooLarge) as error:
            assert str(error)
            assert len(str(error)) < 400
        else:
            assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize(("error", "data"), [pytest.param(e, d, id=n) for e, n, d in CASES])
def test_corpus(error: str, data: bytes) -> None:
    with pytest.raises(getattr(errors, error)) as raised:
        THREAD.decode(data)
    assert type(raised.value).__name__ == error
    attempt(data)


@pytest.mark.parametrize("data", [pytest.param(d, id=n) for _, n, d in CASES if n.startswith(("ext_in", "body_map"))])
def test_maps_and_extensions_are_refused_before_they_are_anyones_field(data: bytes) -> None:
    with pytest.raises(Corrupt, match="not complete, valid msgpack"):
        THREAD.decode(data)


@pytest.mark.parametrize("kind", CODECS)
@pytest.mark.parametrize("words", ["x" * 100_000, b"x" * 100_000, ["x"] * 1_000, 2**60])
@given(data=st.data())
@settings(max_examples=3)
def test_errors_are_short_whatever_they_complain_about(kind: str, words: Any, data: st.DataObject) -> None:
    known = CODECS[kind].encode(data.draw(STRATEGIES[kind]))
    blob = msgpack.unpackb(known, unicode_errors="surrogatepass")
    attempt(msgpack.packb([SCHEMA_VERSION, words, []]))
    attempt(msgpack.packb([SCHEMA_VERSION, kind, words]))
    attempt(msgpack.packb([SCHEMA_VERSION, kind, [words, []]]))
    for index in range(len(blob[2])):
        body = [*blob[2][:index], words, *blob[2][index + 1 :]]
        attempt(msgpack.packb([SCHEMA_VERSION, kind, body], unicode_errors="surrogatepass"))


def test_corpus_names_are_unique() -> None:
    names = [name for _, name, _ in CASES]
    assert len(names) == len(set(names))


@given(st.binary(max_size=400))
@settings(max_examples=500)
def test_random_bytes(data: bytes) -> None:
    attempt(data)


def _anything() -> st.SearchStrategy[Any]:
    scalars = (
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=9)
        | st.binary(max_size=9) | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=9))
        | st.builds(msgpack.Timestamp, st.integers(-(2**40), 2**40))
    )  # fmt: skip
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=12,
    )


@given(st.sampled_from(sorted(CODECS)), _anything())
@settings(max_examples=500)
def test_any_msgpack_as_a_body(kind: str, body: Any) -> None:
    attempt(msgpack.packb([SCHEMA_VERSION, kind, body]))


@given(st.data())
@settings(max_examples=500)
def test_valid_blobs_with_one_field_exchanged(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(CODECS)))
    blob = msgpack.unpackb(CODECS[kind].encode(data.draw(STRATEGIES[kind])), unicode_errors="surrogatepass")
    at = blob
    while True:
        index = data.draw(st.integers(0, len(at) - 1))
        if not isinstance(at[index], list) or not at[index] or data.draw(st.booleans()):
            break
        at = at[index]
    at[index] = data.draw(_anything())
    attempt(msgpack.packb(blob, unicode_errors="surrogatepass"))


@given(st.data())
@settings(max_examples=500)
def test_valid_blobs_with_bytes_exchanged(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(CODECS)))
    blob = bytearray(CODECS[kind].encode(data.draw(STRATEGIES[kind])))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(blob)))
        end = data.draw(st.integers(start, min(len(blob), start + 4)))
        blob[start:end] = data.draw(st.binary(max_size=6) | st.sampled_from([b"\xdd\xff\xff\xff\xff", b"\x91" * 600]))
    attempt(bytes(blob))


@pytest.mark.parametrize("kind", CODECS)
@given(st.data())
@settings(max_examples=10)
def test_truncated_at_every_byte(kind: str, data: st.DataObject) -> None:
    blob = CODECS[kind].encode(data.draw(STRATEGIES[kind]))
    for cut in range(len(blob)):
        with pytest.raises(Corrupt, match="not complete"):
            CODECS[kind].decode(blob[:cut])


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0x90, 0xC0, 0xC1, 0xC3, 0xCB, 0xD6, 0xDB, 0xDD, 0xDF, 0xFF])
def test_every_byte_of_a_blob_replaced(byte: int) -> None:
    blob = THREAD.encode(ThreadState(active=CALL, queue=(Queued(REQUESTED),)))
    for index in range(len(blob)):
        attempt(blob[:index] + bytes([byte]) + blob[index + 1 :])


def peak_of(data: bytes) -> int:
    tracemalloc.start()
    try:
        attempt_one(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def attempt_one(data: bytes) -> None:
    with suppress(Corrupt, TooNew, TooLarge):
        THREAD.decode(data)


@pytest.mark.parametrize("data", [pytest.param(d, id=n) for _, n, d in CASES])
def test_corpus_allocates_no_more_than_its_length_allows(data: bytes) -> None:
    assert peak_of(data) <= PER_BYTE_MAX * len(data) + FIXED_MAX


PREFIXES = [b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9", b"\xdc", b"\xde", b"\xda", b"\xc5", b"\xc8"]


@given(st.lists(st.tuples(st.sampled_from(PREFIXES), st.binary(min_size=4, max_size=4)), max_size=600), st.binary())
@example([(b"\xdd", b"\x00\x00\x08\x00")] * 600, b"\x01" * 3000)
@settings(max_examples=200)
def test_length_prefixes_allocate_no_more_than_their_length_allows(
    parts: list[tuple[bytes, bytes]], end: bytes
) -> None:
    data = b"".join(prefix + length for prefix, length in parts) + end
    assert peak_of(data) <= PER_BYTE_MAX * len(data) + FIXED_MAX
