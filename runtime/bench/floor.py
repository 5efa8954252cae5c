"""The floor: the same requests from plain asyncio, and nothing that survives a crash.

    python -m reattach.runtime.bench.floor CLIENT FOLDER URL CONCURRENCY RUN_MS

CLIENT is `aiohttp`, what people take who want it fast, or `reattach`, what a job's adapters use. It reads
`FOLDER/requests`, skips what has an outcome, and appends to `FOLDER/outcomes` as calls end.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from reattach.adapters import http
from reattach.models.identity import marker_of, thread_id_of
from reattach.models.request import Request, parse_request

BYTES_MAX: Final = 1 << 20
# Gives the body of the answer: to a GET of a URL, to a POST of these bytes.
Ask = Callable[[str, bytes | None], Awaitable[bytes]]


@asynccontextmanager
async def with_aiohttp(concurrency: int) -> AsyncIterator[Ask]:
    # Of the extra `bench`.
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def ask(url: str, body: bytes | None) -> bytes:
            kind = {"Content-Type": "application/json"}
            request = session.get(url) if body is None else session.post(url, data=body, headers=kind)
            async with request as answer:
                return await answer.read()

        yield ask


@asynccontextmanager
async def with_ours(concurrency: int) -> AsyncIterator[Ask]:
    async with http.open_client(connections_max=concurrency) as client:

        async def ask(url: str, body: bytes | None) -> bytes:
            if body is None:
                answer = await http.read(client, url, {}, BYTES_MAX)
            else:
                answer = await http.send_once(client, url, {"Content-Type": "application/json"}, body, BYTES_MAX)
            assert isinstance(answer, http.Reply), answer
            return answer.body

        yield ask


async def call(ask: Ask, url: str, request: Request, run_ms: int) -> Any:
    """GET, POST, wait for as long as the run takes, and GET until it is done."""
    thread = f"{url}/api/agents/{request.agent}/threads/{thread_id_of(request, 1)}"
    json.loads(await ask(thread, None))
    body = {"message": json.loads(request.message), "message_id": marker_of(request.invocation_id, 1)}
    await ask(f"{thread}/messages", json.dumps(body).encode())
    while True:
        await asyncio.sleep(run_ms / 1000)
        status = json.loads(await ask(thread, None))
        if status["status"] in ("completed", "failed"):
            return status.get("result")


async def work(client: str, folder: Path, url: str, concurrency: int, run_ms: int) -> None:
    outcomes = folder / "outcomes" / "part-0.jsonl"
    outcomes.parent.mkdir(exist_ok=True)
    done = {json.loads(line)["invocation_id"] for line in outcomes.open()} if outcomes.exists() else set()
    lines = [line for file in sorted((folder / "requests").glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    requests = [parse_request(line, message_bytes_max=1 << 20) for line in lines]
    waiting = [one for one in reversed(requests) if one.invocation_id not in done]
    carrying = with_aiohttp if client == "aiohttp" else with_ours
    with outcomes.open("a", buffering=1) as file:
        async with carrying(concurrency) as ask:

            async def worker() -> None:
                while waiting:
                    request = waiting.pop()
                    result = await call(ask, url, request, run_ms)
                    now_ms = time.time_ns() // 1_000_000
                    row = {"invocation_id": request.invocation_id, "result": result, "finished_at_ms": now_ms}
                    file.write(json.dumps(row) + "\n")

            await asyncio.gather(*(worker() for _ in range(concurrency)))


def main() -> None:
    client, folder, url, concurrency, run_ms = sys.argv[1:]
    try:
        import uvloop as loops
    except ImportError:
        import asyncio as loops  # type: ignore[no-redef]
    loops.run(work(client, Path(folder), url, int(concurrency), int(run_ms)))


if __name__ == "__main__":
    main()
