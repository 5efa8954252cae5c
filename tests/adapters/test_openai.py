"""`openai_responses` on the wire: what is sent, what each answer is taken for; against servers of plain sockets."""

import asyncio
import json
import socket
import threading
from typing import Any

import pytest

from reattach.adapters.openai_responses import FIRST_EVENTS_MAX, OpenAIResponsesAdapter
from reattach.models.answers import (
    Accepted,
    NotSent,
    Refused,
    SubmitAnswer,
    Unresolved,
)
from reattach.models.invocation import Invocation
from reattach.models.outcomes import FailureCode, RemoteFate
from tests.adapters import responses, wire
from tests.adapters.responses import CREATED, OWN, POLLED, STREAMED, body, event, events, response

TAKEN = (Accepted("resp_7"), ["resp_7"])


def submit_to(reply: bytes, given: dict[str, Any] = STREAMED, inv: Invocation = OWN) -> tuple[SubmitAnswer, list[str]]:
    return responses.submit_to(reply, given, inv)


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
    @pytest.mark.parametrize("carrier", ["httptools", "httpx"])
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

    @pytest.mark.parametrize("code", [408, 409, 425, 499, 500, 502, 503, 504, 529, 300, 301, 302, 303])
    def test_all_else_is_unresolved(self, code: int) -> None:
        answer, learned = submit_to(body({"error": {"code": "x"}}, f"{code} Hm"))
        assert isinstance(answer, Unresolved) and str(code) in answer.cause and learned == []

    def test_429_is_a_refusal_in_the_words_of_the_api_only(self) -> None:
        answer, _ = submit_to(body({"error": {"message": "m", "code": "insufficient_quota"}}, "429 Slow"))
        assert isinstance(answer, Refused) and answer.failure.retryable
        assert answer.failure.message.endswith("(insufficient_quota)")
        assert isinstance(submit_to(body({"detail": "slow down"}, "429 Slow"))[0], Unresolved)
        unresolved, _ = submit_to(body({"error": {"code": "server_error"}}, "500 Oops"))
        assert isinstance(unresolved, Unresolved) and unresolved.cause.endswith("(server_error)")

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
