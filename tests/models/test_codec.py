"""What is stored comes back, the same bytes for the same value, and nothing that breaks a rule is stored."""

import threading
from dataclasses import replace
from typing import Any

import msgpack  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.models import codec
from reattach.models.answers import Absent, Phase, Present
from reattach.models.codec import (
    BLOB_BYTES_MAX,
    CODECS,
    ENTRY,
    EVENT,
    NOTICE,
    OUTCOME,
    REQUEST,
    SCHEMA_VERSION,
    THREAD,
    Codec,
    decode_event,
    decode_invocation,
    decode_request,
    decode_thread,
    encode_event,
    encode_invocation,
    encode_outcome,
    encode_request,
    encode_thread,
)
from reattach.models.errors import CodecError, Corrupt, TooLarge, TooNew
from reattach.models.events import Ident, ProbeAnswered, Progressed, Requested, TimeReached
from reattach.models.invocation import Invocation, Tenure
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import Failure, FailureCode, Notice, NoticeKind
from reattach.models.record import Kept
from reattach.models.request import Request
from reattach.models.shapes import BYTES_MAX, ITEMS_MAX, TEXT_CHARS_MAX, Shapes
from reattach.models.thread import Drain, Queued, ThreadState
from reattach.runtime.testing import strategies as made

REQUESTED = Request("call-1", "research", b'"hello"', 1_700_000_000_000)
CALL = Invocation(REQUESTED, 1, 1, Leaf.NS_QUIET, 0, 1, 1_700_000_000_000, 1, Tenure("life-1"))
ENDED = replace(CALL, leaf=Leaf.FAILED, wake_at_ms=0, failure=Failure(FailureCode.LOST, "gone"))
IDENT = Ident("life-1", "call-1", 1, 7)

STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    "thread": made.thread_states(),
    "invocation": made.invocations(),
    "request": made.requests(),
    "event": made.thread_events(),
    "effect": made.step_effects(),
    "outcome": made.outcomes(),
    "notice": made.notices(),
    "entry": made.journal_entries(),
}


def test_every_kind_has_a_strategy() -> None:
    assert set(STRATEGIES) == set(CODECS)


@pytest.mark.parametrize("kind", CODECS)
@given(st.data())
def test_what_is_stored_comes_back(kind: str, data: st.DataObject) -> None:
    value = data.draw(STRATEGIES[kind])
    stored = CODECS[kind].encode(value)
    back = CODECS[kind].decode(stored)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)
    assert hash(back) == hash(value)
    assert CODECS[kind].encode(back) == stored


@given(made.invocations())
def test_a_read_record_is_as_good_as_a_made_one(invocation: Invocation) -> None:
    back = decode_invocation(encode_invocation(invocation))
    assert replace(back, steps=back.steps + 1) == replace(invocation, steps=invocation.steps + 1)
    with pytest.raises(AttributeError):
        back.epoch = 9  # type: ignore[misc]
    assert not hasattr(back, "__dict__")


def test_a_blob_names_its_schema_and_kind_first() -> None:
    blob = msgpack.unpackb(encode_thread(ThreadState(active=CALL)))
    assert blob[:2] == [SCHEMA_VERSION, "thread"]
    assert len(blob) == 3


@given(st.integers(0, 2**63 - 1))
def test_whole_numbers_of_a_java_long_are_stored(number: int) -> None:
    state = ThreadState(epoch=number)
    assert decode_thread(encode_thread(state)) == state


@pytest.mark.parametrize("number", [-1, -(2**63), 2**63, 2**64, 2**200])
def test_other_whole_numbers_are_not(number: int) -> None:
    with pytest.raises(CodecError, match=r"ThreadState\.epoch: not in the range"):
        encode_thread(ThreadState(epoch=number))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (ThreadState(epoch=True), r"ThreadState\.epoch: int expected, got bool"),
        (ThreadState(epoch=1.0), r"ThreadState\.epoch: int expected, got float"),  # type: ignore[arg-type]
        (ThreadState(incarnation=None), r"ThreadState\.incarnation: str expected, got NoneType"),  # type: ignore[arg-type]
        (ThreadState(incarnation=b"x"), r"ThreadState\.incarnation: str expected, got bytes"),  # type: ignore[arg-type]
        (ThreadState(queue=[]), r"tuple\[Queued, \.\.\.\]: got list"),  # type: ignore[arg-type]
        (ThreadState(after=(1,)), r"str\.value: str expected, got int"),  # type: ignore[arg-type]
        (ThreadState(queue=(Queued(REQUESTED, 1),)), r"Queued\.cancelled: bool expected, got int"),  # type: ignore[arg-type]
        (ThreadState(active=REQUESTED), "Invocation with 26 fields expected, got Request"),  # type: ignore[arg-type]
        (ThreadState(active=replace(CALL, leaf="running.watching")), "Leaf: got str"),  # type: ignore[arg-type]
        (ThreadState(active=replace(CALL, spent_ms=(1, 2))), r"tuple\[int, int, int\] with 3 fields .* tuple of 2"),  # type: ignore[arg-type]
        (ThreadState(active=replace(CALL, spent_ms=(1, 2, True))), r"\[2\]: int expected, got bool"),
        (None, "ThreadState with 8 fields expected, got NoneType"),
    ],
)
def test_a_field_of_another_type_is_not_stored(value: Any, complaint: str) -> None:
    with pytest.raises(CodecError, match=complaint):
        encode_thread(value)


def test_an_unknown_event_is_not_stored() -> None:
    with pytest.raises(CodecError, match="got Absent"):
        encode_event(Absent())  # type: ignore[arg-type]


def test_a_str_that_only_python_can_hold_is_stored() -> None:
    event = ProbeAnswered(IDENT, Present(phase=Phase.RUNNING, handle="half \ud83d of a pair"))
    assert decode_event(encode_event(event)) == event


BROKEN = [
    replace(CALL, wake_at_ms=0),
    replace(ENDED, wake_at_ms=5),
    replace(ENDED, failure=None),
    replace(CALL, failure=ENDED.failure),
    replace(CALL, generation=0),
    replace(CALL, slot=0),
    replace(CALL, after=("",) * 9),
    replace(CALL, leaf=Leaf.RU_RESPONDING_QUIET),
    replace(CALL, leaf=Leaf.RU_WATCHING, tenure=Tenure("life-1", permit=True)),
]
UNFIT = [
    ThreadState(active=ENDED),
    ThreadState(drain=Drain(CALL, 1, 1)),
    ThreadState(active=CALL, drain=Drain(ENDED, 1, 1)),
    ThreadState(active=BROKEN[0]),
    ThreadState(drain=Drain(BROKEN[1], 1, 1)),
]


def _unchecked(kind: str, value: Any) -> bytes:
    """Encode what breaks an invariant, as a damaged or foreign writer would."""
    hint = {"invocation": Invocation, "thread": ThreadState}[kind]
    split = Shapes(decoding=False, checks={}).function(hint)
    data: bytes = msgpack.packb([SCHEMA_VERSION, kind, split(value)])
    return data


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_invocations_are_neither_stored_nor_read(broken: Invocation) -> None:
    with pytest.raises(CodecError, match="Invocation: ") as stored:
        encode_invocation(broken)
    assert not isinstance(stored.value, Corrupt)
    with pytest.raises(Corrupt, match="Invocation: "):
        decode_invocation(_unchecked("invocation", broken))


@pytest.mark.parametrize("unfit", UNFIT)
def test_broken_threads_are_neither_stored_nor_read(unfit: ThreadState) -> None:
    with pytest.raises(CodecError, match="ThreadState: |Invocation: ") as stored:
        encode_thread(unfit)
    assert not isinstance(stored.value, Corrupt)
    with pytest.raises(Corrupt, match="ThreadState: |Invocation: "):
        decode_thread(_unchecked("thread", unfit))


@pytest.mark.parametrize("schema", [SCHEMA_VERSION + 1, 2**40])
def test_a_newer_schema_says_to_upgrade(schema: int) -> None:
    for blob in ([schema, "thread", []], [schema], [schema, "thread", [], "more"]):
        with pytest.raises(TooNew, match=rf"schema {schema}, this release reads up to {SCHEMA_VERSION}: upgrade"):
            decode_thread(msgpack.packb(blob))


def test_an_older_schema_says_what_to_do() -> None:
    with pytest.raises(Corrupt, match=rf"reads {SCHEMA_VERSION - 1} to {SCHEMA_VERSION}: .* release in between"):
        decode_thread(msgpack.packb([SCHEMA_VERSION - 2, "thread", []]))


def test_fields_of_a_later_release_are_kept_and_stored_again() -> None:
    more = [None, 7, "later", [True, b"x", []]]
    call = replace(CALL, request=REQUESTED)
    state = ThreadState(active=call, queue=(Queued(REQUESTED),))
    schema, kind, body = msgpack.unpackb(encode_thread(state))
    body += more
    for longer in (body[0], body[0][0], body[2][0], body[2][0][0]):
        longer += more
    data = msgpack.packb([schema, kind, body])
    back = decode_thread(data)
    assert encode_thread(back) == data
    assert back.kept == back.queue[0].kept == (None, 7, "later", (True, b"x", ()))
    assert back.active is not None and back.active.kept == back.active.request.kept == back.kept


@pytest.mark.parametrize("more", [-1, 2**63, 1.5, [[-1]]])
def test_what_no_release_stores_is_not_kept(more: Any) -> None:
    schema, kind, body = msgpack.unpackb(encode_thread(ThreadState()))
    with pytest.raises(Corrupt, match="ThreadState: a field beyond the 8 known ones is not plain"):
        decode_thread(msgpack.packb([schema, kind, [*body, more]]))
    with pytest.raises(CodecError, match="not plain"):
        encode_thread(ThreadState(kept=Kept((Leaf.FAILED,))))


def test_records_with_fewer_fields_and_others_with_more_are_refused() -> None:
    schema, kind, body = msgpack.unpackb(encode_thread(ThreadState()))
    with pytest.raises(Corrupt, match="8 fields expected, got tuple of 7"):
        decode_thread(msgpack.packb([schema, kind, body[:-1]]))
    schema, kind, body = msgpack.unpackb(NOTICE.encode(Notice(NoticeKind.PARKED, "call-1", 1, "waits")))
    with pytest.raises(Corrupt, match=f"{len(body)} fields expected, got tuple of {len(body) + 1}"):
        NOTICE.decode(msgpack.packb([schema, kind, [*body, 1]]))


@pytest.mark.parametrize("kind", CODECS)
def test_every_kind_refuses_every_other(kind: str) -> None:
    request = encode_request(REQUESTED)
    if kind == "request":
        assert CODECS[kind].decode(request) == REQUESTED
    else:
        with pytest.raises(Corrupt, match=f"holds 'request', '{kind}' expected"):
            CODECS[kind].decode(request)


def test_limits_of_texts_bytes_and_tuples() -> None:
    longest = ThreadState(incarnation="x" * TEXT_CHARS_MAX)
    assert decode_thread(encode_thread(longest)) == longest
    with pytest.raises(TooLarge, match="of str in one record"):
        encode_thread(replace(longest, incarnation="x" * (TEXT_CHARS_MAX + 1)))
    with pytest.raises(TooLarge, match="of bytes in one record"):
        encode_request(replace(REQUESTED, message=bytes(BYTES_MAX)))
    many = ThreadState(after=("",) * ITEMS_MAX)
    assert decode_thread(encode_thread(many)) == many
    with pytest.raises(TooLarge, match=f"{ITEMS_MAX + 1} items"):
        encode_thread(replace(many, after=("",) * (ITEMS_MAX + 1)))


def test_limits_hold_when_reading_too() -> None:
    def blob(**changes: Any) -> bytes:
        names = ("active", "drain", "queue", "tombstones", "epoch", "incarnation", "sends_end_ms", "after")
        fields = dict(zip(names, (None, None, [], [], 0, "", 0, [""]), strict=True)) | changes
        data: bytes = msgpack.packb([SCHEMA_VERSION, "thread", list(fields.values())])
        return data

    assert decode_thread(blob()) == ThreadState()
    with pytest.raises(TooLarge, match="of str in one record"):
        decode_thread(blob(incarnation="x" * (TEXT_CHARS_MAX + 1)))
    with pytest.raises(TooLarge, match="of str in one record"):
        decode_thread(blob(after=["x" * (TEXT_CHARS_MAX + 1)]))
    with pytest.raises(TooLarge, match="items"):
        decode_thread(blob(after=[""] * (ITEMS_MAX + 1)))


def test_limit_of_the_whole() -> None:
    half = replace(REQUESTED, message=bytes(BLOB_BYTES_MAX // 2))
    with pytest.raises(TooLarge, match="bytes to store"):
        encode_thread(ThreadState(queue=(Queued(half), Queued(half))))
    with pytest.raises(TooLarge, match="bytes to read"):
        decode_thread(bytes(BLOB_BYTES_MAX + 1))


def test_large_blobs_come_back_and_keep_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    spare_packers: list[object] = []
    spare_walkers: list[object] = []
    monkeypatch.setattr(codec, "_packers", spare_packers)
    monkeypatch.setattr(codec, "_walkers", spare_walkers)
    big = replace(REQUESTED, message=bytes(1_000_000))
    assert decode_request(encode_request(big)) == big
    assert spare_packers == spare_walkers == []
    for _ in range(3):
        assert decode_request(encode_request(REQUESTED)) == REQUESTED
        assert len(spare_packers) == len(spare_walkers) == 1


def test_memory_that_runs_out_is_an_error_of_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def pack(self, _: object) -> bytes:
            raise MemoryError

    def full(*_: object, **__: object) -> object:
        raise MemoryError

    monkeypatch.setattr(codec, "_packers", [Full()])
    with pytest.raises(TooLarge, match="MemoryError"):
        encode_request(REQUESTED)
    stored = encode_request(REQUESTED)
    monkeypatch.setattr(msgpack, "unpackb", full)
    with pytest.raises(TooLarge, match="memory"):
        decode_request(stored)


def test_an_error_leaves_the_codec_as_good_as_before() -> None:
    good = encode_request(REQUESTED)
    for cut in range(len(good)):
        with pytest.raises(Corrupt):
            decode_request(good[:cut])
        assert decode_request(good) == REQUESTED
        with pytest.raises(Corrupt):
            decode_request(good + good[: cut + 1])
        assert decode_request(good) == REQUESTED


def test_threads_do_not_share_a_packer() -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        state = ThreadState(active=replace(CALL, request=replace(REQUESTED, invocation_id=f"call-{number}" * number)))
        for _ in range(500):
            if decode_thread(encode_thread(state)) != state:
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_values_of_any_kind_are_read_by_their_own_codec() -> None:
    notice = Notice(NoticeKind.PARKED, "call-1", 1, "waits")
    assert NOTICE.decode(NOTICE.encode(notice)) == notice
    event = Requested(REQUESTED)
    assert EVENT.decode(encode_event(event)) == event
    assert decode_event(encode_event(TimeReached())) == TimeReached()
    assert decode_event(encode_event(Progressed(IDENT, ()))) == Progressed(IDENT, ())
    assert [c.kind for c in (THREAD, REQUEST, OUTCOME, ENTRY)] == ["thread", "request", "outcome", "entry"]


def test_an_outcome_of_the_wrong_class_is_not_stored() -> None:
    with pytest.raises(CodecError, match="Outcome with 12 fields expected, got Notice"):
        encode_outcome(Notice(NoticeKind.LATE, "call-1", 1, ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("hint", [float, dict[str, int], list[int], object, "str"])
def test_a_hint_without_a_stored_form_fails_at_import(hint: Any) -> None:
    with pytest.raises(TypeError, match="no stored form"):
        Codec("thing", hint)
