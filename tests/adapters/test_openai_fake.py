"""`openai_responses` against the stand-in for the API, a process of its own that counts what it has accepted."""

import json
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.models.answers import (
    Absent,
    Accepted,
    Confirmed,
    NotReady,
    Phase,
    Present,
    Progress,
    Refused,
    Result,
    SubmitAnswer,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation
from tests.adapters import responses, wire
from tests.adapters.openai_api import Api, api
from tests.adapters.responses import POLLED, STREAMED
from tests.e2e.harness import until


def said(text: str, handle: str = "") -> Invocation:
    return wire.invocation(message=json.dumps(text).encode(), handle=handle)


def submitted(made: Api, text: str, given: dict[str, Any] = STREAMED, **more: Any) -> tuple[SubmitAnswer, list[str]]:
    return responses.submit(made.url, given, said(text), **more)


def watch(made: Api, handle: str, cursor: str = "", most: int = 10_000) -> list[Progress]:
    """One stream, left after `most` events."""

    async def work(adapter: OpenAIResponsesAdapter) -> list[Progress]:
        seen: list[Progress] = []
        async with aclosing(adapter.watch(said("", handle), cursor)) as stream:
            async for item in stream:
                seen.append(item)
                if len(seen) == most:
                    break
        return seen

    return responses.on(made.url, STREAMED, work)


class TestAdapter:
    def test_a_run_from_its_first_event_to_its_result(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, learned = submitted(made, "hello world @300ms")
            (handle,) = made.ids()
            assert answer == Accepted(handle) and learned == [handle]
            known = said("", handle)
            events = [json.loads(item.data) for item in watch(made, handle)]
            fetched = responses.on(made.url, STREAMED, lambda adapter: adapter.fetch(known))
        assert [one["sequence_number"] for one in events] == list(range(len(events)))
        assert events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed"
        assert "".join(one.get("delta", "") for one in events) == "hello world @300ms"
        assert isinstance(fetched, Result)
        result = json.loads(fetched.value)
        assert result["output_text"] == "hello world @300ms" and result["id"] == handle
        assert made.accepted() == Counter({"call-1": 1})

    def test_a_run_without_a_stream(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, learned = submitted(made, "hello @60000ms", POLLED)
            (handle,) = made.ids()
            assert answer == Accepted(handle) and learned == [handle]
            # Created without a stream, it has none: the API says 400, and the watch is over.
            assert watch(made, handle) == []
            assert made.requests()[-1] == "GET /v1/responses/ID?stream=true"

    @pytest.mark.parametrize("given", [STREAMED, POLLED], ids=["streamed", "polled"])
    def test_a_lost_answer_is_unresolved_and_one_run_is_there(self, tmp_path: Path, given: dict[str, Any]) -> None:
        with api(tmp_path) as made:
            answer, learned = submitted(made, "hello @lose", given)
            assert isinstance(answer, Unresolved) and learned == []
            known = responses.on(made.url, given, lambda adapter: adapter.probe(said("hello")))
            assert isinstance(known, Unknown) and known.final
            assert made.accepted() == Counter({"call-1": 1}) and made.requests() == ["POST /v1/responses"]

    def test_a_stream_that_breaks_before_the_first_event_resolves_nothing(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, learned = submitted(made, "hello @no-event")
            assert isinstance(answer, Unresolved) and learned == []
            assert made.accepted() == Counter({"call-1": 1}) and made.requests() == ["POST /v1/responses"]

    def test_a_stream_that_breaks_after_the_first_event_has_named_the_run(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, learned = submitted(made, "hello @one-event")
            (handle,) = made.ids()
            assert answer == Accepted(handle) and learned == [handle]
            assert watch(made, handle)[-1].cursor == str(len(watch(made, handle)) - 1)

    def test_a_stream_that_breaks_again_and_again_loses_and_doubles_nothing(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, _ = submitted(made, "hello world @cut @200ms")
            assert isinstance(answer, Accepted)
            seen: list[Progress] = []
            while not seen or json.loads(seen[-1].data)["type"] != "response.completed":
                part = watch(made, answer.handle, seen[-1].cursor if seen else "")
                assert 1 <= len(part) <= 3
                seen += part
            streams = [one for one in made.requests() if "stream=true" in one]
        numbers = [json.loads(item.data)["sequence_number"] for item in seen]
        assert numbers == list(range(len(numbers))) and len(numbers) > 10
        assert len(streams) == -(-len(numbers) // 3)

    @pytest.mark.parametrize("most", [1, 2, 5, 9])
    def test_a_watcher_that_goes_away_resumes_where_it_was(self, tmp_path: Path, most: int) -> None:
        with api(tmp_path) as made:
            answer, _ = submitted(made, "hello world @100ms")
            assert isinstance(answer, Accepted)
            first = watch(made, answer.handle, most=most)
            rest = watch(made, answer.handle, first[-1].cursor)
        numbers = [json.loads(item.data)["sequence_number"] for item in first + rest]
        assert len(first) == most and numbers == list(range(len(numbers)))
        assert json.loads(rest[-1].data)["type"] == "response.completed"

    def test_a_run_that_goes_on(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, _ = submitted(made, "hello @60000ms")
            assert isinstance(answer, Accepted)
            known = said("", answer.handle)
            running = Present(Phase.RUNNING, answer.handle)
            assert responses.on(made.url, STREAMED, lambda adapter: adapter.probe(known)) == running
            assert responses.on(made.url, STREAMED, lambda adapter: adapter.fetch(known)) == NotReady()

    def test_cancelled_once_and_again(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, _ = submitted(made, "hello @60000ms")
            assert isinstance(answer, Accepted)
            known = said("", answer.handle)
            for _ in range(2):
                assert responses.on(made.url, STREAMED, lambda adapter: adapter.cancel(known)) == Confirmed()
            cancelled = Present(Phase.CANCELLED, answer.handle)
            assert responses.on(made.url, STREAMED, lambda adapter: adapter.probe(known)) == cancelled
            assert watch(made, answer.handle)[-1].cursor == "4"
            never = said("", "resp_never")
            assert isinstance(responses.on(made.url, STREAMED, lambda adapter: adapter.cancel(never)), Unknown)

    @pytest.mark.parametrize(("word", "says"), [("@fail", "server_error: The"), ("@incomplete", "incomplete: max_out")])
    def test_a_run_that_fails(self, tmp_path: Path, word: str, says: str) -> None:
        with api(tmp_path) as made:
            answer, _ = submitted(made, f"hello {word} @0ms")
            assert isinstance(answer, Accepted)
            assert json.loads(watch(made, answer.handle)[-1].data)["type"] in ("response.failed", "response.incomplete")
            known = said("", answer.handle)
            failed = responses.on(made.url, STREAMED, lambda adapter: adapter.probe(known))
        assert isinstance(failed, Present) and failed.phase is Phase.FAILED and failed.failure is not None
        assert failed.failure.message.startswith(says)

    def test_a_run_that_was_forgotten_is_absent(self, tmp_path: Path) -> None:
        with api(tmp_path, "--retention-ms", "0") as made:
            answer, _ = submitted(made, "hello @0ms")
            assert isinstance(answer, Accepted)
            watch(made, answer.handle)
            for handle in (answer.handle, "resp_never"):
                known = said("", handle)
                assert responses.on(made.url, STREAMED, lambda one, inv=known: one.probe(inv)) == Absent(None)  # type: ignore[misc]
            assert watch(made, answer.handle) == []

    def test_credentials(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with api(tmp_path, "--token", "right-token") as made:
            monkeypatch.setenv("REATTACH_TEST_TOKEN", "wrong-token")
            answer, learned = submitted(made, "hello", token_env="REATTACH_TEST_TOKEN")
            assert isinstance(answer, Refused) and learned == [] and "invalid_api_key" in answer.failure.message
            assert isinstance(submitted(made, "hello")[0], Refused)
            known = said("", "resp_never")
            assert isinstance(responses.on(made.url, STREAMED, lambda adapter: adapter.probe(known)), Unknown)
            assert made.accepted() == Counter()
            monkeypatch.setenv("REATTACH_TEST_TOKEN", "right-token")
            assert isinstance(submitted(made, "hello", token_env="REATTACH_TEST_TOKEN")[0], Accepted)

    def test_what_the_api_turns_down(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer, learned = responses.submit(made.url, {"model": "m", "extra": {"x": 1}}, wire.invocation("x" * 256))
            assert isinstance(answer, Accepted) and learned
            missing, _ = responses.submit(made.url + "/nowhere", STREAMED)
            assert isinstance(missing, Refused)


class TestStandIn:
    """The stand-in protects nobody, and is as strict as the API: what is counted above could have failed."""

    BODY: ClassVar = {
        "model": "m",
        "input": "hello",
        "background": True,
        "stream": False,
        "metadata": {"reattach_call": "c"},
    }

    def test_a_second_post_starts_a_second_run(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            for _ in range(2):
                httpx.post(f"{made.url}/responses", json=self.BODY, headers={"Idempotency-Key": "k"}).raise_for_status()
            assert made.accepted() == Counter({"c": 2}) and len(set(made.ids())) == 2

    def test_there_is_no_list(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            answer = httpx.get(f"{made.url}/responses")
            assert answer.status_code == 404 and set(answer.json()["error"]) == {"message", "type", "param", "code"}

    def test_what_is_not_in_the_background_cannot_be_resumed_or_cancelled(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            body = {**self.BODY, "background": False, "stream": True}
            answer = httpx.post(f"{made.url}/responses", json=body)
            assert "response.completed" in answer.text and "response.queued" not in answer.text
            url = f"{made.url}/responses/{made.ids()[0]}"
            assert httpx.get(url).json()["status"] == "completed"
            assert httpx.get(url, params={"stream": "true"}).status_code == 404
            assert httpx.post(f"{url}/cancel").status_code == 400

    def test_what_is_not_in_the_background_dies_with_its_connection(self, tmp_path: Path) -> None:
        with api(tmp_path) as made:
            body = {**self.BODY, "background": False, "stream": True, "input": "hello @60000ms"}
            with httpx.stream("POST", f"{made.url}/responses", json=body) as answer:
                assert next(answer.iter_lines()) == "event: response.created"
            until(lambda: {"died": made.ids()[0]} in made.records(), "the end of the run")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"model": None},
            {"input": {"role": "user"}},
            {"store": False},
            {"metadata": {"k" * 65: "v"}},
            {"metadata": {"k": "v" * 513}},
            {"metadata": {"k": 1}},
            {"metadata": {str(number): "v" for number in range(17)}},
        ],
    )
    def test_what_is_wrong_is_turned_down(self, tmp_path: Path, wrong: dict[str, Any]) -> None:
        with api(tmp_path) as made:
            assert httpx.post(f"{made.url}/responses", json={**self.BODY, **wrong}).status_code == 400
            assert made.accepted() == Counter()
