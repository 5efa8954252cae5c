"""What the answers of a LangGraph server prove, and what they do not."""

import asyncio
import json
import tracemalloc
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters.langgraph import STATE_BYTES_MAX, LangGraphAdapter
from reattach.models import answers
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    Fenced,
    Gone,
    NotReady,
    NotSent,
    Occupied,
    Phase,
    Present,
    Refused,
    Result,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.codec import encode_event
from reattach.models.events import FenceAnswered, FetchAnswered, Ident, ProbeAnswered, SubmitAnswered
from reattach.models.identity import thread_id_of, uuid_of
from tests.adapters import graphs, wire
from tests.adapters.graphs import PER_CALL, RUN, SHARED, a_run, against, body, ignore, on, snapshot

OWN = wire.invocation()
NAMED = wire.invocation(thread_id="t-1")
KNOWN = wire.invocation(handle=RUN)
THREAD = thread_id_of(OWN.request, 1, 1)
MADE = body({"thread_id": THREAD})
LATER = "01a2298c-ffff-711a-b6f9-e7ba6e0d034e"
NO_THREAD = body({"detail": f"Thread with ID {THREAD} not found"}, "404 Not Found")
BUSY = body({"detail": "Thread is already running a task."}, "409 Conflict")
FENCE = body({**a_run("pending", fence="call-1"), "kwargs": {}})
IDENT = Ident("life-1", "call-1", 1, 1)


def probe(*replies: Any, inv: Any = OWN, options: dict[str, Any] | None = None) -> Any:
    made = [one if isinstance(one, bytes) else body(one) for one in replies]
    return against(made, lambda adapter: adapter.probe(inv), options)[0]


def test_a_call_is_found_by_its_marker_and_the_oldest_counts() -> None:
    runs = [
        a_run("running", LATER, "2026-01-01T00:00:09+00:00", call="call-1"),
        a_run("success", call="call-1"),
        a_run("running", "other", call="call-2"),
        a_run("pending", "fence", "2036-01-01T00:00:00+00:00", fence="call-1"),
    ]
    assert probe(runs, snapshot({"a": 1})) == Present(Phase.COMPLETED, RUN, b'{"a":1}')
    assert probe([a_run("success", call="call-2")]) == Absent(None)
    assert probe([]) == Absent(None)
    assert probe(NO_THREAD) == Absent(None)


@pytest.mark.parametrize(
    ("status", "phase"),
    [("pending", Phase.RUNNING), ("running", Phase.RUNNING), ("error", Phase.FAILED), ("timeout", Phase.FAILED),
     ("interrupted", Phase.CANCELLED)],
)  # fmt: skip
def test_each_status_has_its_meaning(status: str, phase: Phase) -> None:
    for inv in (OWN, KNOWN):
        first = a_run(status, call="call-1") if inv is KNOWN else [a_run(status, call="call-1")]
        found = probe(first, snapshot(tasks=[{"error": "ValueError('x')"}]), inv=inv)
        assert found.phase is phase and found.handle == RUN
        if status == "error":
            assert found.failure.message == "ValueError('x')"


def test_a_status_never_seen_before_is_unknown() -> None:
    assert isinstance(probe(a_run("paused", call="call-1"), inv=KNOWN), Unknown)
    # The list alone proves that it was accepted.
    assert probe([a_run("paused", call="call-1")]) == Present(Phase.RUNNING, RUN)


def test_the_result_may_be_a_part_of_the_state() -> None:
    state = snapshot({"messages": [{"content": "a"}, {"content": "b"}]})
    last = {**PER_CALL, "result": "messages.-1.content"}
    assert probe([a_run(call="call-1")], state, options=last) == Present(Phase.COMPLETED, RUN, b'"b"')
    missing = probe(a_run(call="call-1"), state, inv=KNOWN, options={**PER_CALL, "result": "answer"})
    assert missing == Unknown("there is no result at 'values.answer'")


def test_a_step_that_is_left_to_do_is_a_question() -> None:
    asked = snapshot({}, ["ask"], [{"interrupts": [{"id": "i", "value": "which?"}]}])
    waiting = Present(Phase.AWAITING_INPUT, RUN, question_id=RUN, question=b'[{"id":"i","value":"which?"}]')
    assert probe([a_run(call="call-1")], asked) == waiting
    assert probe(a_run(call="call-1"), asked, [a_run(call="call-1")], asked, inv=KNOWN) == waiting


def test_an_answer_that_was_taken_is_the_run_that_counts() -> None:
    """The handle that is known is the question's: the list shows that somebody answered it."""
    asked = snapshot({}, ["ask"], [{"interrupts": [{"id": "i", "value": "which?"}]}])
    runs = [a_run("running", LATER, "2026-01-01T00:00:09+00:00", call="call-1", response="r-1"), a_run(call="call-1")]
    assert probe(a_run(call="call-1"), asked, runs, inv=KNOWN) == Present(Phase.RUNNING, LATER)


def test_a_run_that_asked_again_at_once_has_no_checkpoint_of_its_own() -> None:
    runs = [a_run("success", LATER, "2026-01-01T00:00:09+00:00", call="call-1", response="r-1"), a_run(call="call-1")]
    asked = snapshot({}, ["ask"], [{"interrupts": [{"id": "j", "value": "and then?"}]}])
    found = probe(runs[0], [], runs, [], asked, inv=wire.invocation(handle=LATER))
    assert found == Present(
        Phase.AWAITING_INPUT, LATER, question_id=LATER, question=b'[{"id":"j","value":"and then?"}]'
    )


def test_a_run_or_a_checkpoint_of_another_is_not_the_calls() -> None:
    assert isinstance(probe(a_run("success", call="call-2"), snapshot(1), inv=KNOWN), Unknown)
    # One without a marker may have been adopted by an operator.
    assert probe(a_run("running"), inv=KNOWN) == Present(Phase.RUNNING, RUN)
    later = [{**snapshot("LATER")[0], "metadata": {"run_id": LATER}}]
    assert isinstance(probe(a_run("success", call="call-1"), later, inv=KNOWN), Unknown)
    own = [{**snapshot("mine")[0], "metadata": {"run_id": RUN}}]
    assert probe(a_run("success", call="call-1"), own, inv=KNOWN) == Present(Phase.COMPLETED, RUN, b'"mine"')


def test_the_reason_of_a_failure_is_read_again_when_it_could_not_be_read() -> None:
    replies = [a_run("error", call="call-1"), wire.reply(b"", "500 Oops")]
    assert isinstance(probe(*replies, inv=KNOWN), Unknown)


def test_a_server_that_has_lost_the_fence_proves_no_absence() -> None:
    fenced = replace(OWN, tenure=replace(OWN.tenure, fenced=True))
    assert isinstance(probe([], inv=fenced), Unknown)
    assert isinstance(probe(NO_THREAD, inv=fenced), Unknown)
    assert probe([a_run("pending", fence="call-1")], inv=fenced) == Absent(None)


def test_what_the_server_says_of_a_refusal_is_passed_on() -> None:
    said = body({"detail": "Invalid assistant: 'nobody'"}, "422 Unprocessable Entity")
    answer, _ = against([MADE, said], lambda adapter: adapter.submit(OWN, ignore))
    assert isinstance(answer, Refused) and answer.failure.message == "HTTP 422: Invalid assistant: 'nobody'"
    assert fence(said)[0] == Unknown("HTTP 422 to the fence: Invalid assistant: 'nobody'")


def test_a_run_whose_checkpoints_are_gone_is_told_as_such() -> None:
    replies = [body(a_run(call="call-1")), body([]), body([a_run(call="call-1")]), body([])]
    assert against(replies, lambda adapter: adapter.fetch(KNOWN))[0] == Gone(
        "the server shows no checkpoint of the run any more"
    )


def test_a_gateway_without_a_route_knows_of_no_thread() -> None:
    for said in (body({"detail": "Not Found"}, "404 Not Found"), body({}, "404 Not Found"),
                 wire.reply(b"<html>", "404 Not Found", "text/html")):  # fmt: skip
        assert isinstance(probe(said), Unknown)
        # Of a run it says the same as the server, which is why the list is asked.
        assert isinstance(probe(said, said, inv=KNOWN), Unknown)
    assert probe(body({"detail": "Not Found"}, "404 Not Found"), [], inv=KNOWN) == Absent(None)


@pytest.mark.parametrize(
    "said", ["{}", '"x"', "[1]", '[{"status": "success"}]', '[{"run_id": "a b", "status": "success"}]',
             '[{"run_id": "r", "status": 1}]', '[{"run_id": "r", "status": "success", "metadata": "x"}]'],
)  # fmt: skip
def test_a_list_with_something_odd_in_it_is_no_absence(said: str) -> None:
    assert isinstance(probe(wire.reply(said.encode())), Unknown)


def test_all_pages_are_read() -> None:
    page = [a_run("success", f"r-{number}", call=f"other-{number}") for number in range(100)]
    found, asked = against([body(page), body([a_run("running", call="call-1")])], lambda one: one.probe(OWN))
    assert found == Present(Phase.RUNNING, RUN)
    assert ["offset=0" in asked[0], "offset=100" in asked[1], len(asked)] == [True, True, 2]
    endless = probe(page)
    assert isinstance(endless, Unknown) and endless.final


def test_only_the_one_that_makes_the_thread_may_send() -> None:
    learned: list[str] = []
    replies = [MADE, body(a_run("pending"), "200 OK", f"Content-Location: /threads/{THREAD}/runs/{RUN}")]
    answer, asked = against(replies, lambda adapter: adapter.submit(OWN, lambda handle: learned.append(handle)))
    assert answer == Accepted(RUN) and learned == [RUN]
    assert asked == ["POST /threads", f"POST /threads/{THREAD}/runs"]
    there = body({"detail": "already exists"}, "409 Conflict")
    answer, asked = against([there], lambda adapter: adapter.submit(OWN, lambda handle: learned.append(handle)))
    assert isinstance(answer, Occupied) and asked == ["POST /threads"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (body({"thread_id": "another"}), Unresolved),
        (wire.reply(b"<html>welcome</html>", "200 OK", "text/html"), Unresolved),
        (body({}, "503 Service Unavailable"), Unresolved),
        (body({}, "403 Forbidden"), Refused),
        (body({}, "307 Temporary Redirect", "Location: http://127.0.0.1:1/"), Refused),
    ],
)
def test_without_a_thread_that_was_made_nothing_is_sent(reply: bytes, kind: type) -> None:
    answer, asked = against([reply], lambda adapter: adapter.submit(OWN, ignore))
    assert isinstance(answer, kind) and asked == ["POST /threads"]


def test_a_lost_answer_is_unresolved_and_a_closed_port_is_not_sent() -> None:
    with wire.Server(wire.hangs_up_after_the_request) as server:
        url = server.url
        answer = on(url, lambda adapter: adapter.submit(OWN, ignore))
    assert isinstance(answer, Unresolved) and len(server.whole) == 1
    assert isinstance(on(url, lambda adapter: adapter.submit(OWN, ignore)), NotSent)


def test_the_thread_of_a_conversation_is_made_when_it_is_not_there() -> None:
    missing = body({"detail": "Thread or assistant not found."}, "404 Not Found")
    thread = uuid_of("t-1")
    replies = [missing, body({"thread_id": thread}), body(a_run("pending"))]
    answer, asked = against(replies, lambda adapter: adapter.submit(NAMED, ignore), SHARED)
    assert answer == Accepted(RUN)
    assert asked == [f"POST /threads/{thread}/runs", "POST /threads", f"POST /threads/{thread}/runs"]
    answer, _ = against([missing, body({"thread_id": thread}), missing], lambda one: one.submit(NAMED, ignore), SHARED)
    assert isinstance(answer, Refused)
    answer, _ = against([BUSY], lambda adapter: adapter.submit(NAMED, ignore), SHARED)
    assert isinstance(answer, Occupied)


def test_a_named_thread_is_refused_where_each_call_has_its_own() -> None:
    assert on("http://127.0.0.1:9", lambda adapter: adapter.probe(NAMED)).final  # type: ignore[union-attr]
    assert isinstance(on("http://127.0.0.1:9", lambda adapter: adapter.submit(NAMED, ignore)), Refused)


def fence(*replies: bytes) -> Any:
    return against(list(replies), lambda adapter: adapter.fence(OWN))


def test_a_fence_is_placed_found_or_in_doubt() -> None:
    assert fence(FENCE) == (Fenced(), [f"POST /threads/{THREAD}/runs"])
    assert fence(NO_THREAD, MADE, FENCE)[0] == Fenced()
    found = [a_run("pending", fence="call-1"), a_run(call="call-1")]
    assert fence(BUSY, body(found))[0] == Fenced()
    assert isinstance(fence(BUSY, body([a_run("running", call="call-1")]))[0], Occupied)
    # One that was cancelled keeps nobody out.
    assert isinstance(fence(BUSY, body([a_run("interrupted", fence="call-1"), a_run("running")]))[0], Occupied)
    assert isinstance(fence(BUSY, wire.reply(b"", "502 Bad Gateway"))[0], Unknown)


@pytest.mark.parametrize(
    "reply",
    [body({}), body(a_run("pending")), body(a_run("running", fence="call-1")), body(a_run("pending", fence="other")),
     wire.reply(b"ok", "200 OK", "text/html"), body({}, "201 Created"), body({}, "500 Oops")],
)  # fmt: skip
def test_whatever_else_is_answered_closes_nothing(reply: bytes) -> None:
    assert isinstance(fence(reply)[0], Unknown)


def test_without_the_fence_nothing_is_closed() -> None:
    for options in (SHARED, {**PER_CALL, "fence": False}):
        assert on("http://127.0.0.1:9", lambda adapter: adapter.fence(OWN), options).final  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("reply", "answer"),
    [(body({}), Confirmed()), (body({}, "202 Accepted"), Taken()), (body({}, "404 Not Found"), Taken()),
     (body({}, "500 Oops"), Unknown("HTTP 500"))],
)  # fmt: skip
def test_a_cancel(reply: bytes, answer: Any) -> None:
    assert against([reply], lambda adapter: adapter.cancel(KNOWN))[0] == answer
    running = body([a_run("running", call="call-1")])
    assert against([running, reply], lambda adapter: adapter.cancel(OWN))[0] == answer


def test_the_result_is_fetched_or_not_ready() -> None:
    replies = [body(a_run(call="call-1")), body(snapshot(1))]
    assert against(replies, lambda adapter: adapter.fetch(KNOWN))[0] == Result(b"1")
    assert against([body(a_run("running"))], lambda adapter: adapter.fetch(KNOWN))[0] == NotReady()


def test_a_state_that_is_too_long_is_a_result_that_is_too_long() -> None:
    long = wire.reply(b'[{"values":"' + b"x" * (STATE_BYTES_MAX + 2 * 1024 * 1024 + 10))
    found = against([body(a_run()), long], lambda adapter: adapter.probe(KNOWN))[0]
    assert isinstance(found, Present) and found.phase is Phase.COMPLETED
    assert found.result is not None and len(found.result) > 1024 * 1024


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_an_endless_answer_is_left_at_the_limit(carrier: str) -> None:
    with wire.Server(wire.sends_without_end) as server:
        tracemalloc.start()
        try:
            answer = on(server.url, lambda adapter: adapter.probe(OWN), carrier=carrier)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(answer, Unknown) and "over" in answer.cause
    assert peak < 16 * 1024 * 1024


BODIES = {"deep": b"[" * 200_000, "not UTF-8": b'["\xff"]', "NaN": b"[NaN]", "cut": b"[{", "empty": b""}


@pytest.mark.parametrize("said", BODIES.values(), ids=list(BODIES))
@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_an_answer_that_makes_no_sense_is_unknown(said: bytes, status: str) -> None:
    assert isinstance(probe(wire.reply(said, status)), Unknown)
    assert isinstance(probe(a_run(call="call-1"), wire.reply(said, status), inv=KNOWN), Unknown)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(code: int) -> None:
    with wire.Server(wire.answers(body([]))) as other:
        away = body({}, f"{code} Away", f"Location: {other.url}/threads")

        async def work(adapter: LangGraphAdapter) -> tuple[Any, ...]:
            asked = [await adapter.probe(OWN), await adapter.fence(OWN), await adapter.cancel(KNOWN)]
            return (*asked, await adapter.submit(OWN, ignore), [item async for item in adapter.watch(KNOWN, "")])

        *unknown, submit, items = against([away], work)[0]
        assert other.connections == 0
    assert all(isinstance(one, Unknown) for one in unknown) and items == []
    assert isinstance(submit, Refused if code in (307, 308) else Unresolved)


def test_ours_are_the_marks_whatever_the_request_says() -> None:
    inv = wire.invocation()
    request = inv.request.__class__("call-1", "demo", b'{"a":1}', 1, metadata=b'{"reattach_fence":"x","who":"me"}')
    inv = inv.__class__(request, 1, 1, inv.leaf, 1, 1, 1, 1, inv.tenure)
    with wire.Server(wire.answers(MADE, body(a_run("pending")))) as server:
        on(server.url, lambda adapter: adapter.submit(inv, ignore))
    sent = json.loads(server.whole[1].partition(b"\r\n\r\n")[2])
    assert sent["metadata"] == {"reattach_call": "call-1", "who": "me"}
    assert (sent["input"], sent["multitask_strategy"], sent["if_not_exists"]) == ({"a": 1}, "reject", "reject")


def test_a_token_goes_into_its_header_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_KEY", "lsv2-secret")
    echo = body([a_run("error", call="call-1")])
    tasks = body(snapshot(tasks=[{"error": "bad key lsv2-secret"}]))
    for header, value in (("Authorization", b"bearer lsv2-secret"), ("X-Api-Key", b"lsv2-secret")):
        with wire.Server(wire.answers(echo, tasks)) as server:
            options = {**PER_CALL, "token_header": header}
            found = on(server.url, lambda adapter: adapter.probe(OWN), options, token_env="LANGSMITH_KEY")
        assert b"\r\n%b: %b\r\n" % (header.lower().encode(), value) in server.whole[0].lower()
        assert isinstance(found, Present) and found.failure is not None and found.failure.message == "bad key ***"
    options = {**PER_CALL, "token_header": "X-Api-Key"}
    made = body(
        {**a_run("pending"), "run_id": "lsv2-secret"}, "200 OK", "Content-Location: /threads/t/runs/lsv2-secret"
    )
    with wire.Server(wire.answers(MADE, made)) as server:
        learned: list[str] = []
        answer = on(
            server.url,
            lambda one: one.submit(OWN, lambda handle: learned.append(handle)),
            options,
            token_env="LANGSMITH_KEY",
        )
    assert isinstance(answer, Unresolved) and learned == []


REPLY = st.tuples(
    st.sampled_from([200, 201, 202, 307, 400, 404, 409, 422, 429, 500, 503]),
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [
                [], [a_run(call="call-1")], a_run("pending", fence="call-1"), a_run(call="call-1"), snapshot({}),
                snapshot({}, ["x"]), {"thread_id": THREAD}, {"detail": "no thread"}, [{}], {}, None, [[]],
                [{"values": 1, "next": None}], [{"next": [], "tasks": [{"interrupts": 1}]}],
            ]
        ).map(lambda value: json.dumps(value).encode()),
    ),
    st.sampled_from(["application/json", "text/html", "text/event-stream"]),
)  # fmt: skip


@given(st.lists(REPLY, min_size=1, max_size=5), st.sampled_from([OWN, KNOWN]), st.sampled_from([PER_CALL, SHARED]))
def test_whatever_a_server_answers_comes_back_as_a_value_that_can_be_stored(
    replies: list[tuple[int, bytes, str]], inv: Any, options: dict[str, Any]
) -> None:
    served = 0

    def serve(request: httpx.Request) -> httpx.Response:
        nonlocal served
        code, content, kind = replies[served % len(replies)]
        served += 1
        return httpx.Response(code, headers={"Content-Type": kind}, content=content)

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
            adapter = LangGraphAdapter.configure(graphs.config(options), client)
            encode_event(ProbeAnswered(IDENT, await adapter.probe(inv)))
            encode_event(FetchAnswered(IDENT, await adapter.fetch(inv)))
            encode_event(SubmitAnswered(IDENT, await adapter.submit(inv, ignore)))
            encode_event(FenceAnswered(IDENT, await adapter.fence(inv)))
            assert isinstance(await adapter.cancel(inv), answers.CancelAnswer)
            assert all(isinstance(one, answers.Progress) for one in [item async for item in adapter.watch(inv, "")])

    asyncio.run(work())
