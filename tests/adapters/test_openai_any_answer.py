"""Whatever a Responses API answers: a value that can be stored, one POST, and no guess."""

import asyncio
import json
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters.openai_responses import OpenAIResponsesAdapter
from reattach.adapters.openai_responses_options import METADATA_KEY
from reattach.models import answers
from reattach.models.answers import Absent, Accepted, Phase, Present, Unknown
from reattach.models.codec import encode_event
from reattach.models.events import FetchAnswered, Ident, ProbeAnswered, SubmitAnswered
from tests.adapters import responses
from tests.adapters.responses import KNOWN, OWN, POLLED, STREAMED

IDENT = Ident("life-1", "call-1", 1, 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["completed"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["status", "id", "error", "message", "content", "text", "x"]), inner)
    ),
    max_leaves=12,
)
WORDS = ["queued", "in_progress", "completed", "failed", "incomplete", "cancelled", "odd"]
OUTPUT = st.lists(st.fixed_dictionaries({}, optional={"type": JSON, "content": st.lists(JSON, max_size=2) | JSON}))
RESPONSE = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["resp_7", "resp_8"]) | JSON,
        "status": st.sampled_from(WORDS) | JSON,
        "output": OUTPUT | JSON,
        "error": JSON,
        "incomplete_details": JSON,
        "metadata": st.sampled_from([{METADATA_KEY: "call-1"}, {METADATA_KEY: "call-2"}]) | JSON,
    },
)
EVENT = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["response.created", "response.completed", "error"]) | JSON,
        "sequence_number": st.integers(0, 9) | JSON,
        "response": RESPONSE,
        "code": JSON,
    },
)
FRAMES = st.lists(st.binary(max_size=20) | EVENT.map(lambda one: f"data: {json.dumps(one)}\n\n".encode())).map(b"".join)
BYTES = st.binary(max_size=40) | (JSON | RESPONSE).map(lambda value: json.dumps(value).encode()) | FRAMES
KINDS = ["application/json", "application/problem+json", "text/plain", "text/event-stream"]
HEADERS = st.fixed_dictionaries(
    {"Content-Type": st.sampled_from(KINDS)},
    optional={
        "Retry-After": st.sampled_from(["1", "-1", "x", "9" * 30]),
        "Age": st.sampled_from(["0", "1", "x"]),
        "Content-Encoding": st.sampled_from(["identity", "gzip", "x"]),
    },
)
CODES = st.sampled_from([200, 201, 202, 204, 301, 308, 400, 404, 409, 410, 422, 429, 500, 503]) | st.integers(200, 599)
REPLIES = st.lists(st.tuples(CODES, HEADERS, BYTES), min_size=1, max_size=4)


@given(st.sampled_from([STREAMED, POLLED]), REPLIES, st.sampled_from([OWN, KNOWN]), st.sampled_from(["", "3", "x"]))
def test_whatever_an_api_answers_comes_back_as_a_value_that_can_be_stored(
    given_: dict[str, Any], replies: list[tuple[int, dict[str, str], bytes]], inv: Any, cursor: str
) -> None:
    served: list[str] = []

    def serve(request: httpx.Request) -> httpx.Response:
        code, headers, content = replies[len(served) % len(replies)]
        served.append(f"{request.method} {request.url.path}")
        return httpx.Response(code, headers=headers, stream=httpx.ByteStream(content))

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(serve)) as client:
            adapter = OpenAIResponsesAdapter.configure(responses.config(given_), client)
            learned: list[str] = []
            probe = await adapter.probe(inv)
            fetch = await adapter.fetch(inv)
            submit = await adapter.submit(inv, lambda handle: learned.append(handle))
            cancel = await adapter.cancel(inv)
            items = [item async for item in adapter.watch(inv, cursor)]
        encode_event(ProbeAnswered(IDENT, probe))
        encode_event(FetchAnswered(IDENT, fetch))
        encode_event(SubmitAnswered(IDENT, submit))
        assert isinstance(cancel, answers.CancelAnswer)
        assert all(isinstance(item, answers.Progress) for item in items)
        assert learned == ([submit.handle] if isinstance(submit, Accepted) else [])
        assert served.count("POST /v1/responses") == 1

    asyncio.run(work())


@given(CODES, HEADERS, BYTES)
def test_an_absence_or_a_presence_is_only_what_the_api_calls_one(
    code: int, headers: dict[str, str], content: bytes
) -> None:
    async def work() -> answers.ProbeAnswer:
        transport = httpx.MockTransport(
            lambda request: httpx.Response(code, headers=headers, stream=httpx.ByteStream(content))
        )
        async with httpx.AsyncClient(transport=transport) as client:
            return await OpenAIResponsesAdapter.configure(responses.config(STREAMED), client).probe(KNOWN)

    answer = asyncio.run(work())
    if not isinstance(answer, Unknown):
        assert "json" in headers["Content-Type"] and headers.get("Age", "0") == "0"
    if isinstance(answer, Absent):
        assert code == 404 and isinstance(json.loads(content)["error"], dict)
    if isinstance(answer, Present):
        told = json.loads(content)
        assert 200 <= code < 300 and told["id"] == "resp_7" and told["status"] in WORDS and answer.phase in Phase
        assert not isinstance(told.get("metadata"), dict) or told["metadata"].get(METADATA_KEY, "call-1") == "call-1"
