"""The wire of A2A: what is sent over JSON-RPC and over REST, and what an answer is before anybody judges it.

    1.0 JSON-RPC   POST {url} SendMessage, GetTask, ListTasks, CancelTask, SubscribeToTask
    1.0 REST       POST {url}/message:send, GET {url}/tasks/ID, GET {url}/tasks, POST {url}/tasks/ID:cancel,
                   GET {url}/tasks/ID:subscribe
    0.3 JSON-RPC   POST {url} message/send, tasks/get, tasks/cancel

An answer is a JSON object, a `Fault` (the protocol's own error, by its JSON-RPC code also over REST) or
`Unknown`. Nothing here says what any of them means for a call.

Source: A2A specification 1.0, sections 9 and 11; 0.3.0, section 7.
"""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

import httpx

from reattach.adapters import http
from reattach.adapters.a2a_card import Interface
from reattach.adapters.body import event_json, read_object
from reattach.adapters.endpoint import Endpoint, escape
from reattach.adapters.http import Lost, Reply, Unsent
from reattach.adapters.sse import follow
from reattach.models.answers import Unknown

NOT_FOUND: Final = -32001
NOT_CANCELABLE: Final = -32002
UNSUPPORTED: Final = -32004
VERSION: Final = -32009
NO_METHOD: Final = -32601
INVALID: Final = -32602
# Errors that an agent answers before it does anything with a message. The internal one is not among them.
REFUSED: Final = frozenset({-32700, -32600, NO_METHOD, INVALID, NOT_FOUND, UNSUPPORTED, -32005, -32008, VERSION})
_RESERVED: Final = range(-32768, -31999)
_REASONS: Final = {
    "TASK_NOT_FOUND": NOT_FOUND,
    "TASK_NOT_CANCELABLE": NOT_CANCELABLE,
    "UNSUPPORTED_OPERATION": UNSUPPORTED,
    "CONTENT_TYPE_NOT_SUPPORTED": -32005,
    "EXTENSION_SUPPORT_REQUIRED": -32008,
    "VERSION_NOT_SUPPORTED": VERSION,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": NO_METHOD,
    "INVALID_PARAMS": INVALID,
}
_METHODS: Final = {
    "send": ("SendMessage", "message/send"),
    "get": ("GetTask", "tasks/get"),
    "cancel": ("CancelTask", "tasks/cancel"),
    "list": ("ListTasks", ""),
    "subscribe": ("SubscribeToTask", ""),
}
# The start of an answer, up to the object that it carries.
_ENVELOPE: Final = re.compile(
    rb'\s*\{\s*(?:"(?:id|jsonrpc)"\s*:\s*(?:"[^"\\]*"|[0-9]+|null)\s*,\s*)*"result"\s*:\s*(?=\{)'
)
_TASK: Final = re.compile(rb'\s*\{\s*"task"\s*:\s*(?=\{)')


@dataclass(frozen=True, slots=True)
class Fault:
    """An error by the protocol's own rules.

    Args:
        text: one printable line without a credential.
    """

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """An object that was answered.

    Args:
        cut: the beginning of an answer that was too long to be read; `value` holds the members before the cut.
    """

    value: dict[str, Any]
    cut: bytes | None = None


Answer = Told | Fault | Unknown


def message_of(marker: str, context: str, task_id: str, content: bytes, metadata: bytes, *, old: bool) -> bytes:
    """Write a message: JSON bytes.

    Args:
        task_id: of the task whose question it answers, "" for a new one.
        content: JSON bytes; a string becomes a text part, anything else a data part.
        metadata: JSON bytes of an object, left out when it is empty.
    """
    text = content.startswith(b'"')
    if not old:
        role, part = b"ROLE_USER", b'{"text":%b}' % content if text else b'{"data":%b}' % content
    else:
        # Data was an object in 0.3.
        data = content if content.startswith(b"{") else b'{"value":%b}' % content
        role, part = b"user", b'{"kind":"text","text":%b}' % content if text else b'{"kind":"data","data":%b}' % data
    more = b',"kind":"message"' if old else b""
    if task_id:
        more += b',"taskId":%b' % json.dumps(task_id).encode()
    if metadata != b"{}":
        more += b',"metadata":%b' % metadata
    names = json.dumps(marker).encode(), json.dumps(context).encode()
    return b'{"messageId":%b,"contextId":%b,"role":"%b","parts":[%b]%b}' % (*names, role, part, more)


class Wire:
    """Requests to one interface."""

    def __init__(self, client: httpx.AsyncClient, endpoint: Endpoint, interface: Interface) -> None:
        self._client = client
        self._endpoint = endpoint
        self._at = interface

    async def get(self, task_id: str, history: int, bytes_max: int) -> Answer:
        """Ask for one task, with the latest messages of its history."""
        if self._at.rest:
            url = self._rest(f"/tasks/{escape(task_id)}?historyLength={history}")
            return self._read(await http.read(self._client, url, self._headers(), bytes_max))
        return await self._call("get", {"id": task_id, "historyLength": history}, bytes_max)

    async def list(self, context: str, history: int, size: int, page: str, bytes_max: int) -> Answer:
        """Ask for a page of the tasks of a context."""
        params: dict[str, Any] = {"contextId": context, "historyLength": history, "pageSize": size}
        if page:
            params["pageToken"] = page
        if self._at.rest:
            url = self._rest(f"/tasks?{urlencode(params)}")
            reply = await http.read(self._client, url, self._headers(), bytes_max)
            # No such route: what JSON-RPC has a code for.
            if isinstance(reply, Reply) and reply.status in (405, 501):
                return Fault(NO_METHOD, f"HTTP {reply.status}")
            return self._read(reply)
        return await self._call("list", params, bytes_max)

    async def cancel(self, task_id: str, bytes_max: int) -> Answer:
        if self._at.rest:
            url = self._rest(f"/tasks/{escape(task_id)}:cancel")
            return self._read(await http.send_once(self._client, url, self._headers(), b"{}", bytes_max))
        return await self._call("cancel", {"id": task_id}, bytes_max)

    async def send(self, message: bytes, bytes_max: int) -> http.Answer:
        """Send a message, once, asking for the answer at once.

        Args:
            message: JSON bytes of it.
        """
        configuration = b'{"blocking":false}' if self._at.old else b'{"returnImmediately":true}'
        params = b'{"message":%b,"configuration":%b}' % (message, configuration)
        if self._at.tenant and not self._at.rest:
            params = b'{"tenant":%b,%b' % (json.dumps(self._at.tenant).encode(), params[1:])
        url = self._rest("/message:send") if self._at.rest else self._at.url
        content = params if self._at.rest else self._envelope("send", params)
        return await http.send_once(self._client, url, self._headers(), content, bytes_max)

    async def subscribe(self, task_id: str) -> AsyncGenerator[dict[str, Any]]:
        """Follow a task's events until their stream ends; 1.0 only."""
        headers = {**self._headers("text/event-stream"), "Cache-Control": "no-store"}
        if self._at.rest:
            stream = follow(self._client, self._rest(f"/tasks/{escape(task_id)}:subscribe"), headers)
        else:
            params = self._params({"id": task_id})
            content = self._envelope("subscribe", params)
            stream = follow(self._client, self._at.url, headers, content=content)
        async with aclosing(stream):
            async for event in stream:
                value = json.loads(event_json(event.data))
                if not self._at.rest and isinstance(value, dict):
                    value = value.get("result")
                if not isinstance(value, dict) or "error" in value:
                    return
                yield value

    def answer(self, reply: Reply, *, sent: bool = False) -> Answer:
        """Read what was answered.

        Args:
            sent: it is the answer to a message, which wraps a task once more.
        """
        cut = None
        if reply.over and 200 <= reply.status < 300:
            cut = reply.body
            reply = replace(reply, body=self._opened(reply.body, sent))
        value = read_object(reply)
        if isinstance(value, Unknown):
            return value
        if cut is not None:
            return Told({"task": value} if sent and not self._at.old else value, cut)
        fault = self._fault(value.get("error"), reply.status)
        if fault is not None:
            return fault
        if not 200 <= reply.status < 300:
            return Unknown(f"HTTP {reply.status}")
        if self._at.rest:
            return Told(value)
        result = value.get("result")
        return Told(result) if isinstance(result, dict) else Unknown("the answer holds no result")

    async def _call(self, name: str, params: dict[str, Any], bytes_max: int) -> Answer:
        content = self._envelope(name, self._params(params))
        # A read is a POST here, so its body may take as long as that of any other read.
        return self._read(
            await http.send_once(self._client, self._at.url, self._headers(), content, bytes_max, patient=True)
        )

    def _read(self, answer: http.Answer) -> Answer:
        return Unknown(answer.cause) if isinstance(answer, Unsent | Lost) else self.answer(answer)

    def _params(self, params: dict[str, Any]) -> bytes:
        return json.dumps({"tenant": self._at.tenant, **params} if self._at.tenant else params).encode()

    def _envelope(self, name: str, params: bytes) -> bytes:
        method = _METHODS[name][self._at.old].encode()
        return b'{"jsonrpc":"2.0","id":1,"method":"%b","params":%b}' % (method, params)

    def _rest(self, path: str) -> str:
        tenant = f"/{escape(self._at.tenant)}" if self._at.tenant else ""
        return self._at.url.rstrip("/") + tenant + path

    def _headers(self, accept: str = "application/json") -> dict[str, str]:
        headers = self._endpoint.fresh(Content_Type="application/json", Accept=accept)
        # Without it an agent takes what it is sent for 0.3.
        return headers if self._at.old else {**headers, "A2A-Version": "1.0"}

    def _opened(self, body: bytes, sent: bool) -> bytes:
        """The object within the beginning of an answer, without what is wrapped around it."""
        for shell in ([] if self._at.rest else [_ENVELOPE]) + ([_TASK] if sent and not self._at.old else []):
            match = shell.match(body)
            body = body[match.end() :] if match else b""
        return body

    def _fault(self, error: Any, status: int) -> Fault | None:
        if not isinstance(error, dict):
            return None
        code: Any = error.get("code")
        if self._at.rest:
            details = error.get("details")
            known = [one for one in details if isinstance(one, dict)] if isinstance(details, list) else []
            reasons = [one["reason"] for one in known if isinstance(one.get("reason"), str)]
            code = next((_REASONS[reason] for reason in reasons if reason in _REASONS), None)
        if isinstance(code, bool) or not isinstance(code, int):
            return None
        if not 200 <= status < 300 and code not in _RESERVED:
            # A proxy's own error has codes too, and its status says more.
            return None
        said = error.get("message")
        return Fault(code, self._endpoint.clean(said if isinstance(said, str) else "", 160) or "an error without words")
