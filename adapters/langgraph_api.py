"""The requests of `langgraph`, one method each: what a server's answer says, and nothing of what it means."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

import httpx
from httpx_sse import ServerSentEvent

from reattach.adapters import http
from reattach.adapters.body import is_json, read_object
from reattach.adapters.contract import Learn
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.langgraph_runs import Run, read_run, read_runs, read_snapshot, run_id_of
from reattach.adapters.sse import follow
from reattach.adapters.verdict import no_status, refused, turned_down
from reattach.models.answers import Accepted, Occupied, Refused, SubmitAnswer, Unknown, Unresolved

REPLY_BYTES_MAX: Final = 1024 * 1024
PAGE: Final = 100
PAGES_MAX: Final = 100
NO_THREAD: Final = refused("HTTP 404: no such thread or assistant")
_FIELDS: Final = "&".join(f"select={name}" for name in ("run_id", "status", "metadata", "created_at"))


class Api:
    """One server, and one assistant of it.

    Args:
        state_bytes_max: longest checkpoint that is read.
    """

    def __init__(self, client: httpx.AsyncClient, endpoint: Endpoint, assistant: str, state_bytes_max: int) -> None:
        self._client = client
        self._endpoint = endpoint
        self._assistant = assistant
        self._state_bytes_max = state_bytes_max

    def _url(self, thread: str, *more: str) -> str:
        return self._endpoint.url("threads", thread, *more)

    def _headers(self) -> dict[str, str]:
        return self._endpoint.fresh(Content_Type="application/json")

    async def make_thread(self, thread: str, if_exists: str) -> SubmitAnswer | None:
        """Make a thread.

        Args:
            if_exists: "raise" for a test-and-set, "do_nothing" for any thread of that id.

        Returns:
            None when it is there, and for "raise" when this very request has made it.
        """
        body = json.dumps({"thread_id": thread, "if_exists": if_exists}).encode()
        url = self._endpoint.url("threads")
        answer = await http.send_once(self._client, url, self._headers(), body, REPLY_BYTES_MAX)
        if not isinstance(answer, http.Reply):
            return no_status(answer)
        if answer.status == 409:
            return Occupied("HTTP 409: the thread of this attempt is there already")
        if not 200 <= answer.status < 300:
            return self._turned_down(answer)
        made = read_object(answer)
        if isinstance(made, Unknown) or made.get("thread_id") != thread:
            return Unresolved(f"HTTP {answer.status}, but not the thread that was to be made")
        return None

    async def start(self, thread: str, parts: Mapping[str, Any], learn: Learn | None = None) -> SubmitAnswer:
        """Start a run, by one POST that the server takes only if nothing else is under way on the thread.

        Args:
            parts: members of the body; `multitask_strategy` may be among them.
            learn: takes the run's id as soon as the head of the answer has arrived.

        Returns:
            `NO_THREAD` for a 404.
        """
        early = ""

        def on_head(status: int, head: Mapping[str, str]) -> None:
            nonlocal early
            named = head.get("content-location", "").rpartition("/")[2]
            early = run_id_of(named, self._endpoint) if status == 200 else ""
            if early and learn is not None:
                learn(early)

        answer = await self.post_run(thread, parts, on_head)
        if not isinstance(answer, http.Reply):
            return no_status(answer)
        if answer.status == 409:
            return Occupied("HTTP 409: a run is on this thread")
        if answer.status == 404:
            return NO_THREAD
        if answer.status != 200:
            return self._turned_down(answer)
        run = read_run(read_object(answer), self._endpoint)
        handle = early or ("" if run is None else run.run_id)
        return Accepted(handle) if handle else Unresolved("HTTP 200, but no run that could be read")

    def _turned_down(self, reply: http.Reply) -> Refused | Unresolved:
        """Judge any other status, with what the server says of it."""
        judged = turned_down(reply)
        said = self.detail(reply)
        if isinstance(judged, Refused) and said:
            return replace(judged, failure=replace(judged.failure, message=f"{judged.failure.message}: {said}"))
        return judged

    def detail(self, reply: http.Reply) -> str:
        """The words of an error, "" for none."""
        value = read_object(reply)
        said = "" if isinstance(value, Unknown) else value.get("detail")
        return self._endpoint.clean(said) if isinstance(said, str) else ""

    async def post_run(self, thread: str, parts: Mapping[str, Any], on_head: http.OnHead | None = None) -> http.Answer:
        fixed = {"assistant_id": self._assistant, "multitask_strategy": "reject", "if_not_exists": "reject"}
        body = json.dumps({**fixed, **parts}).encode()
        url = self._url(thread, "runs")
        return await http.send_once(self._client, url, self._headers(), body, REPLY_BYTES_MAX, on_head=on_head)

    async def runs(self, thread: str) -> list[Run] | Unknown:
        """Read all runs of a thread; none for a thread that the server does not know."""
        runs: list[Run] = []
        for page in range(PAGES_MAX):
            url = self._url(thread, "runs") + f"?limit={PAGE}&offset={page * PAGE}&{_FIELDS}"
            reply = await self._read(url, REPLY_BYTES_MAX)
            if isinstance(reply, Unknown):
                return reply
            if reply.status == 404:
                return _no_thread(reply)
            found = read_runs(reply, self._endpoint) if reply.status == 200 else Unknown(f"HTTP {reply.status}")
            if isinstance(found, Unknown):
                return found
            runs += found
            if len(found) < PAGE:
                return runs
        return Unknown(f"the thread has more than {PAGE * PAGES_MAX} runs", True)

    async def run(self, thread: str, run_id: str) -> Run | Unknown | None:
        """Read one run; None for a 404, which the list of runs has to confirm."""
        reply = await self._read(self._url(thread, "runs", run_id), self._state_bytes_max)
        if isinstance(reply, Unknown):
            return reply
        if reply.status == 404:
            return None
        if reply.status != 200:
            return Unknown(f"HTTP {reply.status}")
        value = read_object(reply)
        if isinstance(value, Unknown):
            return value
        run = read_run(value, self._endpoint)
        return run if run is not None and run.run_id == run_id else Unknown("the answer is about another run")

    async def snapshot(self, thread: str, run_id: str) -> Any:
        """Read the newest checkpoint that a run has written.

        Returns:
            The checkpoint, `MISSING` when there is none, `Unknown`, or the beginning of a reply that is too long.
        """
        body = json.dumps({"limit": 1, "metadata": {"run_id": run_id}}).encode()
        url = self._url(thread, "history")
        answer = await http.send_once(self._client, url, self._headers(), body, self._state_bytes_max)
        if not isinstance(answer, http.Reply):
            return Unknown(answer.cause)
        if answer.status != 200:
            return Unknown(f"HTTP {answer.status} for the history")
        if answer.over and not (is_json(answer) and answer.body.lstrip().startswith(b"[{")):
            return Unknown("the history is too long to be read, and does not begin as one")
        return answer if answer.over else read_snapshot(answer, run_id)

    async def cancel(self, thread: str, run_id: str) -> http.Answer:
        url = self._url(thread, "runs", run_id, "cancel") + "?wait=true&action=interrupt"
        return await http.send_once(self._client, url, self._headers(), b"", REPLY_BYTES_MAX)

    async def events(self, thread: str, run_id: str, modes: list[str], cursor: str) -> AsyncGenerator[ServerSentEvent]:
        """Follow a run's stream after `cursor`, "" for its beginning."""
        asked = "&".join(f"stream_mode={mode}" for mode in modes)
        url = self._url(thread, "runs", run_id, "stream") + f"?cancel_on_disconnect=false&{asked}"
        headers = self._endpoint.headers(Accept="text/event-stream", Cache_Control="no-store")
        headers["Last-Event-ID"] = cursor or "-1"
        async with aclosing(follow(self._client, url, headers)) as stream:
            async for event in stream:
                yield event

    async def _read(self, url: str, bytes_max: int) -> http.Reply | Unknown:
        answer = await http.read(self._client, url, self._headers(), bytes_max)
        return answer if isinstance(answer, http.Reply) else Unknown(answer.cause)


def _no_thread(reply: http.Reply) -> list[Run] | Unknown:
    """A thread that is not there has no runs. A gateway without a route says 404 as well, and knows of no thread."""
    value = read_object(reply)
    if isinstance(value, Unknown):
        return value
    detail = value.get("detail")
    if isinstance(detail, str) and "thread" in detail.lower():
        return []
    return Unknown("HTTP 404, but not the one that says that there is no such thread")
