"""`http_job` on the wire: what is sent, and what each answer is taken for; against a server of plain sockets."""

import json
import threading
from typing import Any

import pytest

from reattach.adapters import http
from reattach.adapters.http_job import HttpJobAdapter
from reattach.models.answers import (
    Absent,
    Accepted,
    CancelAnswer,
    Confirmed,
    FetchAnswer,
    Gone,
    NotReady,
    NotSent,
    Occupied,
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
from reattach.models.identity import dedup_key_of, thread_id_of
from reattach.models.invocation import Invocation
from reattach.models.outcomes import FailureCode, RemoteFate
from tests.adapters import jobs, wire
from tests.adapters.jobs import BY_HANDLE, BY_ID, BY_LIST, BY_THREAD, OWN, SHARED, WITH_KEY, against, body, options

KNOWN = wire.invocation(handle="j-7")


def probe(reply: bytes | list[bytes], given: dict[str, Any] = BY_ID, inv: Invocation = OWN) -> ProbeAnswer:
    return against(reply, given, lambda adapter: adapter.probe(inv))


def fetch(reply: bytes, given: dict[str, Any], inv: Invocation = OWN) -> FetchAnswer:
    return against(reply, given, lambda adapter: adapter.fetch(inv))


def cancel(reply: bytes, given: dict[str, Any], inv: Invocation = OWN) -> CancelAnswer:
    return against(reply, given, lambda adapter: adapter.cancel(inv))


def submit(reply: bytes, given: dict[str, Any] = BY_ID, inv: Invocation = OWN) -> tuple[SubmitAnswer, list[str]]:
    learned: list[str] = []
    return against(reply, given, lambda adapter: adapter.submit(inv, lambda handle: learned.append(handle))), learned


class TestSubmit:
    def test_what_is_sent(self) -> None:
        inv = wire.invocation('c "7"/ü', thread_id="t", generation=2, message=b'{"q":["\xc3\xbc"]}')
        given = options(
            BY_ID,
            submit="/in/{thread}/jobs/{marker}?k={key}",
            methods={"submit": "PUT"},
            body={"in": "{message}", "m": ["{metadata}", 1.5, True, "{x"], "ref": "r-{marker}-{thread}", "k": "{key}"},
            idempotency={"lifetime_ms": 5, "header": "X-Once"},
        )  # fmt: skip
        with wire.Server(wire.answers(body("{}"))) as server:
            jobs.on(server.url + "/base", given, lambda adapter: adapter.submit(inv, lambda handle: None))
            head, _, sent = server.whole[0].partition(b"\r\n\r\n")
        key = dedup_key_of(inv.request, 2)
        lines = head.decode().split("\r\n")
        assert lines[0] == f"PUT /base/in/t/jobs/c%20%227%22%2F%C3%BC%232?k={key} HTTP/1.1"
        assert f"x-once: {key}" in head.decode().lower()
        assert json.loads(sent) == {
            "in": {"q": ["ü"]},
            "m": [{}, 1.5, True, "{x"],
            "ref": 'r-c "7"/ü#2-t',
            "k": key,
        }

    def test_each_generation_has_a_key_of_its_own(self) -> None:
        with wire.Server(wire.answers(body('{"id": 1}'))) as server:

            async def work(adapter: HttpJobAdapter) -> None:
                for generation in (1, 1, 2):
                    await adapter.submit(wire.invocation(generation=generation), lambda handle: None)

            jobs.on(server.url, WITH_KEY, work)
            keys = [
                next(line for line in one.lower().split(b"\r\n") if line.startswith(b"idempotency-key: "))
                for one in server.whole
            ]
        assert keys[0] == keys[1] != keys[2]

    @pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "204 No Content"])
    def test_every_2xx_is_an_acceptance(self, status: str) -> None:
        assert submit(wire.reply(b"", status, "text/plain"))[0] == Accepted()

    def test_the_handle_is_read_from_the_body(self) -> None:
        given = options(BY_ID, paths={"handle": "job.ids.1"})
        assert submit(body('{"job": {"ids": ["a", 1234567890123456789]}}'), given)[0] == Accepted("1234567890123456789")

    @pytest.mark.parametrize(
        ("header", "value", "handle"),
        [
            ("Location", "/jobs/a%20b/", "a b"),
            ("Content-Location", "https://h:1/x/jobs/42?y=/z#/q", "42"),
            ("X-Job-Id", "jobs/42", "jobs/42"),
            ("Location", "/%ff", ""),
            ("Location", "http://[", ""),
            ("Location", "", ""),
        ],
    )
    def test_the_handle_of_a_header(self, header: str, value: str, handle: str) -> None:
        reply = body("{}", "202 Accepted", f"{header}: {value}")
        answer, learned = submit(reply, options(BY_HANDLE, handle_header=header))
        if handle:
            assert (answer, learned) == (Accepted(handle), [handle])
        else:
            assert isinstance(answer, Unresolved) and learned == []

    def test_a_header_is_told_before_the_body_and_survives_its_loss(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The head arrives, the rest does not: the job is known nevertheless, and known at once."""
        monkeypatch.setattr(http, "BODY_S", 30.0)
        told = threading.Event()
        told_before_the_end: list[bool] = []
        learned: list[str] = []

        def behave(server: wire.Server, connection: Any) -> None:
            server.request(connection)
            connection.sendall(b"HTTP/1.1 202 Accepted\r\nX-Job: j-1\r\nContent-Length: 100\r\n\r\n{")
            told_before_the_end.append(told.wait(10))

        def learn(handle: str) -> None:
            learned.append(handle)
            told.set()

        given = options(BY_HANDLE, handle_header="X-Job")
        with wire.Server(behave) as server:
            answer = jobs.on(server.url, given, lambda adapter: adapter.submit(OWN, learn))
        assert (answer, learned, told_before_the_end) == (Accepted("j-1"), ["j-1"], [True])

    def test_a_refusal_with_a_location_teaches_nothing(self) -> None:
        reply = body("{}", "404 Not Found", "Location: /jobs/1")
        answer, learned = submit(reply, options(BY_HANDLE, handle_header="Location"))
        assert isinstance(answer, Refused) and learned == []

    @pytest.mark.parametrize("said", ["", "{}", '{"id": null}', '{"id": ""}', '{"id": true}', '{"id": ["a"]}', "[1]"])
    def test_without_a_handle_where_nothing_else_can_be_asked_it_is_unresolved(self, said: str) -> None:
        assert isinstance(submit(body(said), BY_HANDLE)[0], Unresolved)
        assert submit(body(said), BY_LIST)[0] == Accepted()

    def test_an_answer_about_another_job_is_no_acceptance(self) -> None:
        given = options(BY_ID, paths={"marker": "ref"})
        assert isinstance(submit(body('{"id": 1, "ref": "call-2"}'), given)[0], Occupied)
        assert submit(body('{"id": 1, "ref": "call-1"}'), given)[0] == Accepted("1")
        assert submit(body('{"id": 1}'), given)[0] == Accepted("1")

    def test_a_header_of_another_job_is_not_learned(self) -> None:
        given = options(BY_LIST, handle_header="Location")
        other = body('{"ref": "call-2"}', "200 OK", "Location: /jobs/9")
        answer, learned = submit(other, given)
        assert isinstance(answer, Occupied) and learned == []
        assert submit(body('{"ref": "call-1"}', "200 OK", "Location: /jobs/9"), given)[0] == Accepted("9")

    @pytest.mark.parametrize(
        ("conflict", "expected"),
        [("occupied", Occupied), ("refused", Refused), ("accepted", Accepted)],
    )
    def test_what_a_409_means_is_configured(self, conflict: str, expected: type) -> None:
        answer = submit(body('{"id": 3}', "409 Conflict"), options(BY_ID, conflict=conflict))[0]
        assert isinstance(answer, expected)
        if isinstance(answer, Accepted):
            assert answer.handle == "3"

    @pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 415, 422, 307, 308])
    def test_a_definite_no(self, code: int) -> None:
        answer = submit(body("{}", f"{code} No"))[0]
        assert isinstance(answer, Refused) and answer.failure.code is FailureCode.REJECTED
        assert answer.failure.remote is RemoteFate.NONE and not answer.failure.retryable

    @pytest.mark.parametrize("code", [408, 418, 429, 500, 502, 503, 504, 301, 302, 303])
    def test_all_else_is_unresolved(self, code: int) -> None:
        assert isinstance(submit(body('{"id": 1}', f"{code} Hm"))[0], Unresolved)

    def test_429_with_retry_after_is_refused_for_now(self) -> None:
        answer = submit(body("{}", "429 Slow", "Retry-After: 3"))[0]
        assert isinstance(answer, Refused) and answer.failure.retryable and answer.retry_after_ms == 3_000

    def test_nothing_listens(self) -> None:
        answer = jobs.on("http://127.0.0.1:9", BY_ID, lambda adapter: adapter.submit(OWN, lambda handle: None))
        assert isinstance(answer, NotSent)

    @pytest.mark.parametrize("fault", [wire.hangs_up_after_the_request, wire.resets_after_ten_bytes])
    def test_a_lost_answer_is_unresolved(self, fault: Any) -> None:
        with wire.Server(fault) as server:
            answer = jobs.on(server.url, BY_ID, lambda adapter: adapter.submit(OWN, lambda handle: None))
        assert isinstance(answer, Unresolved)


class TestProbe:
    def test_what_is_asked(self) -> None:
        with wire.Server(wire.answers(body('{"status": "queued"}'))) as server:
            for given in (BY_ID, BY_THREAD, BY_HANDLE):
                jobs.on(server.url, given, lambda adapter: adapter.probe(KNOWN))
            targets = [one.split(b" ")[1].decode() for one in server.whole]
            assert all(one.startswith(b"GET ") and b"cache-control: no-cache" in one.lower() for one in server.whole)
        assert targets == ["/jobs/call-1", f"/threads/{thread_id_of(OWN.request, 1)}", "/jobs/j-7"]

    @pytest.mark.parametrize(
        ("job", "expected"),
        [
            ('{"status": "queued"}', Present(Phase.RUNNING)),
            ('{"status": "working", "id": 7}', Present(Phase.RUNNING, "7")),
            ('{"status": "done", "result": {"a": [1]}}', Present(Phase.COMPLETED, result=b'{"a":[1]}')),
            ('{"status": "done", "result": null}', Present(Phase.COMPLETED, result=b"null")),
            ('{"status": "gone"}', Absent(None)),
        ],
    )
    def test_words_mean_what_the_map_says(self, job: str, expected: ProbeAnswer) -> None:
        assert probe(body(job)) == expected

    @pytest.mark.parametrize("word", ['"exploded"', '"DONE"', "null", "[]", "1", "1e99", "true", '""'])
    def test_a_word_never_seen_before_is_never_guessed(self, word: str) -> None:
        answer = probe(body(f'{{"status": {word}, "result": 1}}'))
        assert isinstance(answer, Unknown) and "status_map" in answer.cause and not answer.final

    def test_flags_and_numbers_are_words_too(self) -> None:
        given = options(
            BY_ID, paths={"status": "finished"}, status_map={"true": "completed", "false": "running", "3": "failed"}
        )
        assert probe(body('{"finished": true, "result": 1}'), given) == Present(Phase.COMPLETED, result=b"1")
        assert probe(body('{"finished": false}'), given) == Present(Phase.RUNNING)
        assert "FAILED" in str(probe(body('{"finished": 3}'), given))

    def test_a_failure_says_why(self) -> None:
        for error in ('{"message": "disk\\nfull"}', '"disk\\nfull"'):
            answer = probe(body(f'{{"status": "bad", "error": {error}}}'))
            assert isinstance(answer, Present) and answer.failure is not None
            assert answer.failure.message == "disk full" and answer.failure.remote is RemoteFate.ENDED

    def test_cancelled_and_waiting_for_input(self) -> None:
        words = {"stopped": "cancelled", "asks": "awaiting_input", "done": "completed"}
        given = options(BY_ID, status_map=words, paths={"question": "ask.text", "question_id": "ask.id"})
        assert probe(body('{"status": "stopped"}'), given) == Present(Phase.CANCELLED)
        asked = probe(body('{"status": "asks", "ask": {"id": 9, "text": "why?"}}'), given)
        assert asked == Present(Phase.AWAITING_INPUT, question_id="9", question=b'"why?"')
        assert probe(body('{"status": "asks"}'), given) == Present(Phase.AWAITING_INPUT, question_id="input")

    def test_a_completed_job_without_its_result_is_asked_again(self) -> None:
        """A path that is wrong must not turn every result into nothing."""
        answer = probe(body('{"status": "done", "output": 1}'))
        assert isinstance(answer, Unknown) and "no result at 'result'" in answer.cause

    def test_the_whole_answer_may_be_the_result(self) -> None:
        given = options(BY_ID, paths={"result": ""})
        assert probe(body('{"status":"done"}'), given) == Present(Phase.COMPLETED, result=b'{"status":"done"}')

    def test_a_404_of_the_service_is_an_absence_and_a_gateways_is_not(self) -> None:
        assert probe(body('{"detail": "no such job"}', "404 Not Found")) == Absent(None)
        assert isinstance(probe(wire.reply(b"<h1>404", "404 Not Found", "text/html")), Unknown)
        assert isinstance(probe(body("{}", "410 Gone")), Unknown)
        assert probe(body("{}", "410 Gone"), options(BY_ID, absent={"http": [410]})) == Absent(None)

    def test_an_absence_can_be_told_from_a_wrong_url(self) -> None:
        given = options(BY_ID, absent={"path": "error.code", "value": "job_unknown"})
        assert probe(body('{"error": {"code": "job_unknown"}}', "404 Not Found"), given) == Absent(None)
        assert isinstance(probe(body('{"detail": "Not Found"}', "404 Not Found"), given), Unknown)

    @pytest.mark.parametrize("code", [300, 302, 401, 403, 429, 500, 503])
    def test_other_status_codes_prove_nothing(self, code: int) -> None:
        assert probe(body('{"status": "gone"}', f"{code} Hm")) == Unknown(f"HTTP {code}")

    def test_a_cached_answer_is_no_absence(self) -> None:
        assert isinstance(probe(body("{}", "404 Not Found", "Age: 3")), Unknown)

    def test_another_jobs_answer_is_not_ours(self) -> None:
        given = options(BY_ID, paths={"marker": "ref"})
        for ref in ('"call-2"', "null", '["call-1"]'):
            answer = probe(body(f'{{"status": "done", "result": 1, "ref": {ref}}}'), given)
            assert answer == Unknown("the answer is about another job")
        assert isinstance(probe(body('{"status": "done", "result": 1, "ref": "call-1"}'), given), Present)
        other = probe(body('{"status": "done", "result": 1, "id": "j-8"}'), BY_HANDLE, KNOWN)
        assert other == Unknown("the answer is about another job")

    def test_a_handle_alone_cannot_be_asked_without_one(self) -> None:
        assert probe(body("{}"), BY_HANDLE) == Unknown("only a handle can be asked about, and none is known", True)
        assert probe(body('{"status": "queued"}'), BY_HANDLE, KNOWN) == Present(Phase.RUNNING)
        assert probe(body("{}", "404 Not Found"), BY_HANDLE, KNOWN) == Absent(None)

    def test_a_shared_thread_whose_calls_cannot_be_told_apart_is_left_alone(self) -> None:
        answer = probe(body('{"status": "done", "result": 1}'), BY_THREAD, SHARED)
        assert isinstance(answer, Unknown) and answer.final
        with wire.Server(wire.answers(body("{}"))) as server:
            sent = jobs.on(server.url, BY_THREAD, lambda adapter: adapter.submit(SHARED, lambda handle: None))
            assert isinstance(sent, Refused) and server.whole == []
        assert probe(body('{"status": "queued"}'), BY_ID, SHARED) == Present(Phase.RUNNING)


ROW = '{"id": "j-1", "ref": "call-1", "status": "done", "result": 1}'
OTHER = '{"id": "j-2", "ref": "call-2", "status": "done", "result": 2}'
LISTED: dict[str, Any] = {
    **{name: value for name, value in BY_LIST.items() if name != "status"},
    "status_map": {"working": "running", "done": "completed"},
}


class TestList:
    def test_found_with_its_status_in_the_list(self) -> None:
        answer = probe(body(f'{{"items": [{ROW}]}}'), LISTED)
        assert answer == Present(Phase.COMPLETED, "j-1", b"1")

    def test_found_and_then_asked_by_its_handle(self) -> None:
        with wire.Server(
            wire.answers(body(f'{{"items": [{ROW}]}}'), body('{"status": "done", "result": 5, "ref": "call-1"}'))
        ) as server:
            answer = jobs.on(server.url, BY_LIST, lambda adapter: adapter.probe(OWN))
            targets = [one.split(b" ")[1] for one in server.whole]
        assert answer == Present(Phase.COMPLETED, "j-1", b"5")
        assert targets == [b"/jobs?ref=call-1", b"/jobs/j-1"]

    @pytest.mark.parametrize("then", [body("{}", "500 Hm"), body('{"status": "odd"}'), body("{}", "404 Not Found")])
    def test_what_is_listed_was_accepted_whatever_its_status_says_now(self, then: bytes) -> None:
        assert probe([body(f'{{"items": [{ROW}]}}'), then], BY_LIST) == Present(Phase.RUNNING, "j-1")

    def test_a_known_handle_needs_no_list(self) -> None:
        answer = probe(body('{"status": "done", "result": 5, "ref": "call-1"}'), BY_LIST, KNOWN)
        assert answer == Present(Phase.COMPLETED, result=b"5")

    def test_an_empty_list_is_an_absence(self) -> None:
        assert probe(body('{"items": []}'), LISTED) == Absent(None)

    def test_a_list_at_the_top(self) -> None:
        given = options(LISTED, paths={"marker": "ref", "items": ""})
        assert probe(body(f"[{ROW}]"), given) == Present(Phase.COMPLETED, "j-1", b"1")
        assert probe(body("[]"), given) == Absent(None)

    def test_a_list_that_is_not_filtered_may_be_cut(self) -> None:
        """The service ignores the query: what is not on this page may be on the next."""
        answer = probe(body(f'{{"items": [{OTHER}]}}'), LISTED)
        assert isinstance(answer, Unknown) and "does not filter" in answer.cause
        assert probe(body(f'{{"items": [{OTHER}, {ROW}]}}'), LISTED) == Present(Phase.COMPLETED, "j-1", b"1")
        assert probe(body(f'{{"items": [{OTHER}]}}'), options(LISTED, list="/jobs", list_whole=True)) == Absent(None)

    @pytest.mark.parametrize("oldest_first", [False, True])
    def test_of_two_with_one_id_the_older_is_the_calls(self, oldest_first: bool) -> None:
        newer = ROW.replace("j-1", "j-9")
        rows = [ROW, newer] if oldest_first else [newer, ROW]
        answer = probe(body(f'{{"items": [{",".join(rows)}]}}'), options(LISTED, list_oldest_first=oldest_first))
        assert isinstance(answer, Present) and answer.handle == "j-1"

    def test_pages_are_read_to_the_end(self) -> None:
        given = options(
            LISTED, list="/jobs", list_next="/jobs?after={page}", paths={"marker": "ref", "next": "meta.next"}
        )
        first, last = (
            body(f'{{"items": [{OTHER}], "meta": {{"next": "p/2"}}}}'),
            body(f'{{"items": [{ROW}], "meta": {{}}}}'),
        )
        with wire.Server(wire.answers(first, last)) as server:
            answer = jobs.on(server.url, given, lambda adapter: adapter.probe(OWN))
            targets = [one.split(b" ")[1] for one in server.whole]
        assert answer == Present(Phase.COMPLETED, "j-1", b"1")
        assert targets == [b"/jobs", b"/jobs?after=p%2F2"]
        for end in ("{}", '{"next": null}', '{"next": ""}', '{"next": false}'):
            assert probe([first, body(f'{{"items": [], "meta": {end}}}')], given) == Absent(None)
        for broken in (
            body("{}", "500 Hm"),
            body("{"),
            body('{"items": 3}'),
            body('{"items": [], "meta": {"next": []}}'),
        ):
            assert isinstance(probe([first, broken], given), Unknown)
        endless = probe(first, given)
        assert isinstance(endless, Unknown) and "more than 50 pages" in endless.cause

    def test_without_a_handle_in_the_list_the_status_cannot_be_asked(self) -> None:
        answer = probe(body('{"items": [{"ref": "call-1"}]}'), BY_LIST)
        assert answer == Unknown("the list shows the job without its handle")

    def test_odd_items_are_not_ours(self) -> None:
        assert isinstance(probe(body('{"items": [1, null, [], {"ref": {}}]}'), LISTED), Unknown)

    def test_the_key_is_an_id_of_ours_too(self) -> None:
        given = options(LISTED, list="/jobs?k={key}", body={"in": "{message}", "ref": "{key}"})
        row = ROW.replace("call-1", dedup_key_of(OWN.request, 1))
        assert probe(body(f'{{"items": [{row}]}}'), given) == Present(Phase.COMPLETED, "j-1", b"1")


class TestFetch:
    RESULT = options(BY_ID, result="/jobs/{handle}/result", paths={"result": "out"})

    def test_from_the_status(self) -> None:
        assert fetch(body('{"status": "done", "result": [1]}'), BY_ID) == Result(b"[1]")
        assert fetch(body('{"status": "queued"}'), BY_ID) == NotReady()
        assert isinstance(fetch(body('{"status": "done"}'), BY_ID), Unknown)

    def test_from_a_url_of_its_own(self) -> None:
        assert probe(body('{"status": "done", "id": "j-7"}'), self.RESULT) == Present(Phase.COMPLETED, "j-7")
        assert fetch(body('{"out": {"a": 1}}'), self.RESULT, KNOWN) == Result(b'{"a":1}')
        assert isinstance(fetch(body('{"oot": {"a": 1}}'), self.RESULT, KNOWN), Unknown)
        for code in (202, 404, 409, 425):
            assert fetch(body("{}", f"{code} Hm"), self.RESULT, KNOWN) == NotReady()
        assert isinstance(fetch(body("{}", "410 Gone"), self.RESULT, KNOWN), Gone)
        assert fetch(body("{}", "500 Hm"), self.RESULT, KNOWN) == Unknown("HTTP 500")
        assert fetch(body("{}"), self.RESULT) == Unknown("the job's handle is not known")

    def test_a_result_over_the_limit_is_known_to_be_one(self) -> None:
        long = '"' + "1" * 300_000 + '"'
        for given, text in ((self.RESULT, f'{{"out": {long}}}'), (BY_ID, f'{{"status": "done", "result": {long}}}')):
            with wire.Server(wire.answers(body(text))) as server:
                answer = jobs.on(server.url, given, lambda adapter: adapter.fetch(KNOWN), result_bytes_max=1_000)
            assert isinstance(answer, Result) and len(answer.value) > 1_000


class TestCancel:
    CANCEL = options(BY_ID, cancel="/jobs/{handle}/cancel")

    def test_not_configured(self) -> None:
        answer = cancel(body("{}"), BY_ID)
        assert isinstance(answer, Unknown) and answer.final

    @pytest.mark.parametrize("method", ["POST", "DELETE", "PUT", "PATCH"])
    def test_what_is_sent(self, method: str) -> None:
        given = options(self.CANCEL, methods={"cancel": method})
        with wire.Server(wire.answers(body("{}"))) as server:
            assert jobs.on(server.url, given, lambda adapter: adapter.cancel(KNOWN)) == Taken()
            assert server.whole[0].startswith(f"{method} /jobs/j-7/cancel HTTP".encode())

    def test_what_the_answers_mean(self) -> None:
        assert cancel(body("{}", "202 Accepted"), self.CANCEL, KNOWN) == Taken()
        assert cancel(body("{}"), options(self.CANCEL, cancel_confirms=True), KNOWN) == Confirmed()
        for code in (404, 409, 410):
            assert cancel(body("{}", f"{code} Hm"), self.CANCEL, KNOWN) == Taken()
        for code in (302, 401, 500, 503):
            assert cancel(body("{}", f"{code} Hm"), self.CANCEL, KNOWN) == Unknown(f"HTTP {code}")
        assert cancel(body("{}"), self.CANCEL) == Unknown("the job's handle is not known")
        with wire.Server(wire.hangs_up_after_the_request) as server:
            assert isinstance(jobs.on(server.url, self.CANCEL, lambda adapter: adapter.cancel(KNOWN)), Unknown)


STREAM = (
    b"id: 1\ndata: 1\n\nevent: log\nid: 2\ndata: not json\n\nid: \xc3\xbc\ndata: {}\n\n"
    b"event: end\ndata: x\n\ndata: 9\n\n"
)


class TestWatch:
    def watched(
        self, given: dict[str, Any], cursor: str = "", inv: Invocation = OWN
    ) -> tuple[list[Progress], list[bytes]]:
        with wire.Server(wire.answers(wire.reply(STREAM, "200 OK", "text/event-stream"))) as server:

            async def work(adapter: Any) -> list[Progress]:
                return [item async for item in adapter.watch(inv, cursor)]

            return jobs.on(server.url, given, work), server.whole

    def test_live(self) -> None:
        items, sent = self.watched(options(BY_ID, stream="/jobs/{marker}/events"), "7")
        assert items == [Progress(b"1"), Progress(b'"not json"'), Progress(b"{}")]
        assert b"last-event-id" not in sent[0].lower()

    def test_resumed(self) -> None:
        items, sent = self.watched(options(BY_ID, stream="/jobs/{marker}/events", stream_resumes=True), "7")
        assert [item.cursor for item in items] == ["1", "2", ""]
        assert b"last-event-id: 7\r\n" in sent[0].lower()

    def test_the_name_of_the_last_event_is_configured(self) -> None:
        items, _ = self.watched(options(BY_ID, stream="/jobs/{marker}/events", stream_end="log"))
        assert items == [Progress(b"1")]
        items, _ = self.watched(options(BY_ID, stream="/jobs/{marker}/events", stream_end=""))
        assert len(items) == 5

    def test_without_a_stream_or_a_handle_nothing_is_asked(self) -> None:
        assert self.watched(BY_ID) == ([], [])
        assert self.watched(options(BY_ID, stream="/jobs/{handle}/events")) == ([], [])


def test_what_it_lacks() -> None:
    async def work(adapter: Any) -> tuple[Any, Any]:
        return await adapter.fence(OWN), await adapter.respond(OWN)

    fenced, responded = jobs.on("http://127.0.0.1:9", BY_ID, work)
    assert isinstance(fenced, Unknown) and fenced.final and isinstance(responded, Refused)
