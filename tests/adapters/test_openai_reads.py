"""`openai_responses` on the wire: how a run is asked about, followed and cancelled; servers of plain sockets."""

import json
from typing import Any

import pytest

from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.models.answers import (
    Absent,
    CancelAnswer,
    Confirmed,
    NotReady,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    Refused,
    Result,
    Taken,
    Unknown,
)
from reattach.models.invocation import Invocation
from reattach.models.outcomes import Failure, FailureCode, RemoteFate
from tests.adapters import responses, wire
from tests.adapters.responses import CREATED, KNOWN, OWN, POLLED, STREAMED, against, body, event, events, response


def probe(reply: bytes, inv: Invocation = KNOWN, **more: Any) -> ProbeAnswer:
    return against(reply, STREAMED, lambda adapter: adapter.probe(inv), **more)


def cancel(reply: bytes, inv: Invocation = KNOWN) -> CancelAnswer:
    return against(reply, STREAMED, lambda adapter: adapter.cancel(inv))


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
