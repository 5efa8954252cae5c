"""`openai_responses` on the wire: what is sent, what each answer is taken for; against servers of plain sockets."""

import asyncio
import json
import socket
import threading
from typing import Any

import pytest

from reattach.adapters.openai_responses import FIRST_EVENTS_MAX, OpenAIResponsesAdapter
from reattach.models.answers import (
    Absent,
    Accepted,
    CancelAnswer,
    Confirmed,
    NotReady,
    NotSent,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    Refused,
    Result,
    SubmitAnswer,
    Taken,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from tests.adapters import responses, wire
from tests.adapters.responses import CREATED, KNOWN, OWN, POLLED, STREAMED, against, body, event, events, response

TAKEN = (Accepted("resp_7"), ["resp_7"])


def submit_to(reply: bytes, given: dict[str, Any] = STREAMED, inv: Invocation = OWN) -> tuple[SubmitAnswer, list[str]]:
    return responses.submit_to(reply, given, inv)


def probe(reply: bytes, inv: Invocation = KNOWN, **more: Any) -> ProbeAnswer:
    return against(reply, STREAMED, lambda adapter: adapter.probe(inv), **more)


def cancel(reply: bytes, inv: Invocation = KNOWN) -> CancelAnswer:
    return against(reply, STREAMED, lambda adapter: adapter.cancel(inv))


class TestSubmit:
    def test_what_is_sent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REATTACH_TEST_TOKEN", "s3cret")
        for given, reply in ((STREAMED, events(CREATED)), (POLLED, body(response()))):
            with wire.Server(wire.answers(reply)) as server:
                responses.submit(server.url + "/v1", given, token_env="REATTACH_TEST_TOKEN")
                head, _, sent = server.whole[0].partition(b"\r\n\r\n")
            lines = head.decode().lower().split("\r\n")
            assert lines[0] == "post /v1/responses http/1.1"
            assert "authorization: bearer s3cret" in lines and "content-type: application/json" in lines
            assert any(line.startswith("accept: text/event-stream") for line in lines) is (given is STREAMED)
            assert not any(line.startswith("idempotency-key") for line in lines)
            assert json.loads(sent) == {
                "model": "m-1",
                "background": True,
                "store": True,
                "stream": given is STREAMED,
                "metadata": {"reattach_call": "call-1"},
                "input": "hi",
            }

    def test_a_token_may_have_a_header_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REATTACH_TEST_TOKEN", "s3cret")
        with wire.Server(wire.answers(events(CREATED))) as server:
            responses.submit(server.url, {**STREAMED, "token_header": "api-key"}, token_env="REATTACH_TEST_TOKEN")
            head = server.whole[0].lower()
        assert b"\r\napi-key: s3cret\r\n" in head and b"authorization" not in head

    def test_the_first_event_accepts(self) -> None:
        assert submit_to(events(CREATED, event("response.queued", 1, response=response()))) == TAKEN

    def test_other_events_may_come_first(self) -> None:
        odd = [": ping\n\n", "data: \n\n", "event: keepalive\ndata: 1\n\n", "data: [1]\n\n", "data: {broken\n\n"]
        more = [{"type": "trace", "response": {"id": "resp_other"}}, event("response.created", 0, response="resp_x")]
        assert submit_to(events(*odd, *more, event("response.in_progress", 1, response=response()))) == TAKEN

    def test_the_name_of_an_event_may_stand_in_its_frame_alone(self) -> None:
        frame = 'event: response.created\ndata: {"response": {"id": "resp_7"}}\n\n'
        assert submit_to(events(frame)) == TAKEN

    def test_it_learns_while_the_stream_goes_on_and_hangs_up(self) -> None:
        """The answer never ends: only an adapter that leaves at the first event comes back."""
        gone = threading.Event()

        def behave(server: wire.Server, connection: socket.socket) -> None:
            server.request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            connection.sendall(f"data: {json.dumps(CREATED)}\n\n".encode())
            connection.settimeout(20)
            try:
                if connection.recv(1) == b"":
                    gone.set()
            except ConnectionError:
                gone.set()

        with wire.Server(behave) as server:
            assert responses.submit(server.url, STREAMED) == TAKEN
            assert gone.wait(20) and server.connections == 1

    def test_a_body_accepts_with_and_without_a_stream(self) -> None:
        for given in (STREAMED, POLLED):
            for status in ("200 OK", "201 Created", "202 Accepted"):
                assert submit_to(body(response(), status), given) == TAKEN
        assert submit_to(events(CREATED), POLLED) == TAKEN

    def test_the_beginning_of_an_answer_that_was_cut_may_name_the_response(self) -> None:
        for cut, named in ((b'{"id": "resp_7", "obj', True), (b'{"object": "response", "id": "resp_', False)):

            def behave(server: wire.Server, connection: socket.socket, cut: bytes = cut) -> None:
                server.request(connection)
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
                connection.sendall(head + cut)

            with wire.Server(behave) as server:
                answer, learned = responses.submit(server.url, POLLED)
            assert (answer, learned) == TAKEN if named else isinstance(answer, Unresolved) and learned == []

    def test_a_long_answer_is_read_as_far_as_the_id(self) -> None:
        assert submit_to(body(response(instructions="x" * 500_000)), POLLED) == TAKEN

    def test_what_is_repeated_of_the_options_makes_a_first_event_no_longer_than_is_allowed(self) -> None:
        tools = ["\u754c" * 400_000]
        reply = events(event("response.created", 0, response={"tools": tools, **response()}))
        assert len(reply) > 2_000_000
        assert submit_to(reply, {"model": "m", "extra": {"tools": tools}}) == TAKEN
        assert isinstance(submit_to(reply)[0], Unresolved)

    @pytest.mark.parametrize(
        ("told", "cause"),
        [
            ([], "ended before it named"),
            ([event("response.created", 0, response={})], "no id"),
            ([event("response.created", 0, response={"id": 5})], "no id"),
            ([event("response.created", 0, response={"id": "a\nb"})], "no id"),
            ([{"type": "error", "code": "server_error", "message": "m"}], r"with an error \(server_error\)"),
            ([{"type": "error", "message": "m"}, CREATED], "with an error$"),
            ([event("response.queued", 0)] * FIRST_EVENTS_MAX + [CREATED], f"none of the first {FIRST_EVENTS_MAX}"),
            (["data: " + "x" * 700_000 + "\n\n", CREATED], "an event is over"),
        ],
    )
    def test_a_stream_that_does_not_name_it_resolves_nothing(self, told: list[Any], cause: str) -> None:
        answer, learned = submit_to(events(*told))
        assert isinstance(answer, Unresolved) and learned == []
        with pytest.raises(AssertionError, match=cause):
            raise AssertionError(answer.cause)

    @pytest.mark.parametrize(
        "fault",
        [
            wire.hangs_up_after_the_request,
            wire.resets_after_the_request,
            wire.resets_after_ten_bytes,
            wire.hangs_up_at_once,
            wire.cuts_the_body,
            wire.cuts_the_head,
            wire.speaks_no_http,
            wire.sends_a_huge_head,
        ],
    )
    @pytest.mark.parametrize("carrier", ["aiohttp", "httpx"])
    def test_a_lost_answer_is_unresolved_and_nothing_is_sent_again(self, fault: Any, carrier: str) -> None:
        for given in (STREAMED, POLLED):
            with wire.Server(fault) as server:
                answer, learned = responses.submit(server.url, given, carrier=carrier)
            assert isinstance(answer, Unresolved) and learned == []
            assert len(server.whole) <= 1 and server.connections == 1

    @pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 422, 307, 308])
    def test_a_definite_no(self, code: int) -> None:
        error = {"error": {"message": "secret words", "type": "t", "param": None, "code": "context_length_exceeded"}}
        answer, learned = submit_to(body(error, f"{code} No"))
        assert isinstance(answer, Refused) and learned == []
        failure = answer.failure
        assert (failure.code, failure.remote, failure.retryable) == (FailureCode.REJECTED, RemoteFate.NONE, False)
        assert f"HTTP {code}" in failure.message and failure.message.endswith("(context_length_exceeded)")
        assert "secret words" not in failure.message

    @pytest.mark.parametrize("code", [408, 409, 425, 429, 499, 500, 502, 503, 504, 529, 300, 301, 302, 303])
    def test_all_else_is_unresolved(self, code: int) -> None:
        answer, learned = submit_to(body({"error": {"code": "x"}}, f"{code} Hm"))
        assert isinstance(answer, Unresolved) and str(code) in answer.cause and learned == []

    def test_429_with_retry_after_is_refused_for_now(self) -> None:
        error = {"error": {"message": "m", "code": "rate_limit_exceeded"}}
        answer, _ = submit_to(body(error, "429 Slow", "Retry-After: 3"))
        assert isinstance(answer, Refused) and answer.failure.retryable and answer.retry_after_ms == 3_000
        assert "rate_limit_exceeded" in answer.failure.message

    def test_an_error_is_one_also_where_it_is_called_a_stream(self) -> None:
        reply = wire.reply(f"data: {json.dumps(CREATED)}\n\n".encode(), "500 Oops", "text/event-stream")
        answer, learned = submit_to(reply)
        assert isinstance(answer, Unresolved) and learned == []

    def test_an_answer_about_another_call_is_none(self) -> None:
        """A gateway that answers from a cache: to follow that run would give its result to the wrong call."""
        other = response(metadata={"reattach_call": "call-2"})
        for reply in (body(other), events(event("response.created", 0, response=other))):
            answer, learned = submit_to(reply)
            assert isinstance(answer, Unresolved) and "another" in answer.cause and learned == []
        for kept in ({"reattach_call": "call-1"}, {}, None):
            assert submit_to(body(response(metadata=kept))) == TAKEN

    def test_nothing_listens(self) -> None:
        answer, learned = responses.submit("http://127.0.0.1:9", STREAMED)
        assert isinstance(answer, NotSent) and learned == []

    def test_a_sender_that_is_stopped_sends_no_more(self) -> None:
        """The executor's time limit cancels a POST whose answer does not come."""

        async def work(adapter: OpenAIResponsesAdapter) -> str:
            sending = asyncio.ensure_future(adapter.submit(OWN, lambda handle: None))
            while not server.whole:
                await asyncio.sleep(0.005)
            sending.cancel()
            try:
                await sending
            except asyncio.CancelledError:
                return "stopped"
            return "answered"

        with wire.Server(wire.is_silent) as server:
            assert responses.on(server.url, STREAMED, work) == "stopped"
            assert len(server.whole) == 1 and server.connections == 1


class TestProbe:
    def test_without_an_id_nobody_can_be_asked(self) -> None:
        with wire.Server(wire.answers(body(response()))) as server:
            for work in (lambda adapter: adapter.probe(OWN), lambda adapter: adapter.cancel(OWN)):
                answer = responses.on(server.url, STREAMED, work)
                assert isinstance(answer, Unknown) and answer.final
            assert isinstance(responses.on(server.url, STREAMED, lambda adapter: adapter.fetch(OWN)), Unknown)
            assert server.connections == 0

    def test_what_is_sent(self) -> None:
        with wire.Server(wire.answers(body(response()))) as server:
            responses.on(server.url + "/v1", STREAMED, lambda adapter: adapter.probe(KNOWN))
            assert server.whole[0].startswith(b"GET /v1/responses/resp_7 HTTP/1.1\r\n")
            assert b"cache-control: no-cache, no-store" in server.whole[0].lower()

    @pytest.mark.parametrize(
        ("status", "phase"),
        [("queued", Phase.RUNNING), ("in_progress", Phase.RUNNING), ("cancelled", Phase.CANCELLED)],
    )
    def test_a_status_without_more(self, status: str, phase: Phase) -> None:
        assert probe(body(response(status))) == Present(phase, "resp_7")

    def test_completed_brings_the_result(self) -> None:
        parts = [{"type": "output_text", "text": "Hal", "annotations": []}, {"type": "refusal", "refusal": "no"}]
        message = {"type": "message", "role": "assistant", "content": [*parts, {"type": "output_text", "text": "lo ü"}]}
        output = [{"type": "reasoning", "summary": []}, message, {"type": "message", "content": "odd"}, 5]
        told = response("completed", output=output, usage={"total_tokens": 3}, model="m-1", instructions="x", tools=[])
        answer = probe(body(told))
        assert isinstance(answer, Present) and answer.phase is Phase.COMPLETED and answer.result is not None
        assert json.loads(answer.result) == {
            "id": "resp_7",
            "model": "m-1",
            "output_text": "Hallo ü",
            "output": output,
            "usage": {"total_tokens": 3},
        }
        fetched = against(body(told), STREAMED, lambda adapter: adapter.fetch(KNOWN))
        assert fetched == Result(answer.result)

    def test_a_function_call_is_part_of_a_completed_output(self) -> None:
        call = {"type": "function_call", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
        answer = probe(body(response("completed", output=[call])))
        assert isinstance(answer, Present) and answer.result is not None
        assert json.loads(answer.result)["output"] == [call] and json.loads(answer.result)["output_text"] == ""

    @pytest.mark.parametrize(
        ("members", "says"),
        [
            ({"error": {"code": "server_error", "message": "it\nbroke"}}, "server_error: it broke"),
            ({"error": {"message": "m" * 3_000}}, "m" * 999 + "…"),
            ({"error": {"code": "a b", "message": "why"}}, "why"),
            ({"error": None}, "the response failed"),
            ({"error": "text"}, "the response failed"),
        ],
    )
    def test_a_failure_says_why(self, members: dict[str, Any], says: str) -> None:
        failure = Failure(FailureCode.REMOTE_FAILED, says, RemoteFate.ENDED, False)
        assert probe(body(response("failed", **members))) == Present(Phase.FAILED, "resp_7", failure=failure)

    @pytest.mark.parametrize(
        ("details", "reason"),
        [
            ({"reason": "max_output_tokens"}, "max_output_tokens"),
            ({"reason": "content_filter"}, "content_filter"),
            (None, "no reason given"),
            ({"reason": 5}, "no reason given"),
        ],
    )
    def test_an_incomplete_response_is_a_failure_that_names_the_reason(self, details: Any, reason: str) -> None:
        told = response("incomplete", incomplete_details=details, output=[{"type": "message"}])
        answer = probe(body(told))
        assert isinstance(answer, Present) and answer.phase is Phase.FAILED and answer.failure is not None
        assert answer.failure.message.startswith(f"incomplete: {reason};") and "by its id" in answer.failure.message
        assert answer.failure.remote is RemoteFate.ENDED
        assert isinstance(against(body(told), STREAMED, lambda adapter: adapter.fetch(KNOWN)), NotReady)

    def test_the_api_s_own_404_is_an_absence(self) -> None:
        error = {"message": "Response with id 'resp_7' not found.", "type": "invalid_request_error", "code": None}
        assert probe(body({"error": error}, "404 Not Found")) == Absent(None)

    @pytest.mark.parametrize("value", [{"detail": "Not Found"}, {}, [], {"error": "no"}, "text", None])
    def test_another_404_is_none(self, value: Any) -> None:
        """A gateway without a route says 404 too."""
        assert isinstance(probe(body(value, "404 Not Found")), Unknown)

    @pytest.mark.parametrize("code", [400, 401, 403, 409, 410, 429, 500, 502, 503, 301, 302])
    def test_another_status_is_unknown(self, code: int) -> None:
        answer = probe(body(response("completed"), f"{code} Hm"))
        assert isinstance(answer, Unknown) and str(code) in answer.cause and not answer.final

    def test_an_answer_about_another_response_is_unknown(self) -> None:
        for other in (
            {**response("completed"), "id": "resp_8"},
            {"status": "completed", "output": []},
            response("completed", metadata={"reattach_call": "call-2"}),
        ):
            answer = probe(body(other))
            assert isinstance(answer, Unknown) and "another response" in answer.cause
            assert cancel(body(other)) == Taken()
        assert isinstance(probe(body(response("cancelled", metadata={"reattach_call": "call-1"}))), Present)

    def test_a_result_that_is_too_large_is_told_as_it_is(self) -> None:
        """More than may be stored, and no more than that: the host says `result_too_large`."""
        reply = body(response("completed", model="x" * 400_000))
        answer = probe(reply, result_bytes_max=1_000)
        assert isinstance(answer, Present) and answer.phase is Phase.COMPLETED and answer.result is not None
        assert 1_000 < len(answer.result) < 100_000

    def test_completed_without_an_output_is_unknown(self) -> None:
        told = response("completed")
        del told["output"]
        for output in ({}, {"output": None}, {"output": "text"}):
            assert isinstance(probe(body({**told, **output})), Unknown)


class TestWatch:
    def test_what_is_asked(self) -> None:
        for cursor, query in (("", ""), ("41", "&starting_after=41"), ("-1", ""), ("x", ""), ("²", ""), ("9" * 17, "")):
            with wire.Server(wire.answers(events())) as server:

                async def work(adapter: OpenAIResponsesAdapter, cursor: str = cursor) -> list[Progress]:
                    return [item async for item in adapter.watch(KNOWN, cursor)]

                assert responses.on(server.url + "/v1", STREAMED, work) == []
                assert server.whole[0].split(b" ")[1].decode() == f"/v1/responses/resp_7?stream=true{query}"

    def test_events_are_passed_on_with_their_cursor(self) -> None:
        told = [event("response.output_text.delta", 4, delta="a"), event("response.output_text.delta", 5, delta="ü")]
        assert responses.watched(events(*told)) == [(told[0], "4"), (told[1], "5")]

    @pytest.mark.parametrize("word", ["completed", "failed", "incomplete", "cancelled"])
    def test_the_last_event_ends_it(self, word: str) -> None:
        last = event(f"response.{word}", 9, response=response(word))
        assert responses.watched(events(last, event("response.created", 10))) == [(last, "9")]

    def test_a_clone_s_mark_of_the_end(self) -> None:
        one = event("response.output_text.delta", 4)
        assert responses.watched(events(one, "data: [DONE]\n\n", one)) == [(one, "4")]

    def test_what_has_been_seen_is_not_told_again(self) -> None:
        told = [event("response.output_text.delta", number) for number in (0, 3, 4, 4, 5, 2, 6)]
        assert [cursor for _, cursor in responses.watched(events(*told), "3")] == ["4", "5", "6"]

    def test_what_has_no_number_resumes_where_the_last_one_did(self) -> None:
        odd = [{"type": "error", "message": "m"}, event("x", -1), event("x", True), event("x", 2**60)]
        assert [cursor for _, cursor in responses.watched(events(*odd))] == ["", "", "", ""]
        assert [cursor for _, cursor in responses.watched(events(*odd), "7")] == ["7", "7", "7", "7"]
        assert responses.watched(events("data: {x\n\n")) == [("{x", "")]

    @pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Oops", "302 Found"])
    def test_what_cannot_be_resumed_ends_quietly(self, status: str) -> None:
        assert responses.watched(body({"error": {}}, status)) == []
        assert responses.watched(body(response())) == []

    def test_nothing_is_asked_without_an_id_or_a_stream(self) -> None:
        with wire.Server(wire.answers(events(CREATED))) as server:
            for given, inv in ((STREAMED, OWN), (POLLED, KNOWN)):

                async def work(adapter: OpenAIResponsesAdapter, inv: Invocation = inv) -> list[Progress]:
                    return [item async for item in adapter.watch(inv, "")]

                assert responses.on(server.url, given, work) == []
            assert server.connections == 0


class TestCancel:
    def test_what_is_sent(self) -> None:
        with wire.Server(wire.answers(body(response("cancelled")))) as server:
            responses.on(server.url + "/v1", STREAMED, lambda adapter: adapter.cancel(KNOWN))
            assert server.whole[0].startswith(b"POST /v1/responses/resp_7/cancel HTTP/1.1\r\n")

    @pytest.mark.parametrize("status", ["cancelled", "completed", "failed", "incomplete"])
    def test_a_run_that_has_ended_is_confirmed(self, status: str) -> None:
        assert cancel(body(response(status))) == Confirmed()

    @pytest.mark.parametrize("status", ["queued", "in_progress", "cancelling", "", None, {}])
    def test_one_that_goes_on_is_for_a_probe_to_tell(self, status: Any) -> None:
        assert cancel(body(response(status))) == Taken()

    def test_a_2xx_without_sense_confirms_nothing(self) -> None:
        assert cancel(wire.reply(b"", "200 OK")) == Taken()
        assert cancel(wire.reply(b'{"id": "resp_7", "status": "cancelled"}', "200 OK", "text/html")) == Taken()

    @pytest.mark.parametrize("code", [400, 409])
    def test_what_has_ended_cannot_be_cancelled(self, code: int) -> None:
        assert cancel(body({"error": {}}, f"{code} No")) == Taken()

    @pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503, 302])
    def test_all_else_is_unknown(self, code: int) -> None:
        assert isinstance(cancel(body(response("cancelled"), f"{code} Hm")), Unknown)

    def test_nothing_listens(self) -> None:
        assert isinstance(responses.on("http://127.0.0.1:9", STREAMED, lambda adapter: adapter.cancel(KNOWN)), Unknown)


def test_what_the_protocol_lacks() -> None:
    async def work(adapter: OpenAIResponsesAdapter) -> tuple[Any, Any]:
        return await adapter.fence(KNOWN), await adapter.respond(KNOWN)

    fence, respond = responses.on("http://127.0.0.1:9", STREAMED, work)
    assert isinstance(fence, Unknown) and fence.final and isinstance(respond, Refused)
