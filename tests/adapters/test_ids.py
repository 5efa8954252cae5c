"""Any id is one segment of the path: it names its thread, and reaches nothing else."""

import asyncio
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach.adapters import http
from reattach.adapters.endpoint import Endpoint, escape
from reattach.adapters.thread import ThreadAdapter
from tests.adapters import wire

IDS = [".", "..", "...", "/", "../../admin", "a/b", "a%2Fb", "%2e%2e", "a?b=c", "a#b", "a b", "ünïcödé", "日本", "😀"]
IDS += ["\\..\\", ";x", "a\\b", "@host", "http://evil/", "//evil", "+", "&=", "*", "~", "'\"", "x" * 256, "%", "%%30"]


@given(st.text(min_size=1).filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
def test_an_escaped_id_is_one_segment_and_comes_back(text: str) -> None:
    escaped = escape(text)
    assert unquote(escaped) == text
    assert escaped.isascii() and not set(escaped) & set("/\\?#&; ")
    assert escaped not in (".", "..")


@pytest.mark.parametrize("bad", ["", "\ud800"])
def test_what_has_no_bytes_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="empty|surrogates"):
        escape(bad)


@pytest.mark.parametrize("carrier", ["httptools", "httpx"])
def test_ids_stay_in_their_segment_on_the_wire(carrier: str) -> None:
    async def work(url: str) -> None:
        client = http.open_client(carrier=carrier)
        adapter = ThreadAdapter(client, Endpoint(url + "/base/"), agent="..", marker="last_message_id")
        for one in IDS:
            await adapter.probe(wire.invocation(thread_id=one))
            await adapter.submit(wire.invocation(thread_id=one), lambda handle: None)
        await client.aclose()

    with wire.Server(wire.answers(wire.reply())) as server:
        asyncio.run(work(server.url))
        targets = [request.split(b" ")[1].decode("ascii") for request in server.whole]
        assert len(targets) == 2 * len(IDS)
    for one, probe, submit in zip(IDS, targets[::2], targets[1::2], strict=True):
        prefix = "/base/api/agents/%2E%2E/threads/"
        assert probe.startswith(prefix) and submit == f"{probe}/messages"
        assert unquote(probe.removeprefix(prefix)) == one and "/" not in probe.removeprefix(prefix)
