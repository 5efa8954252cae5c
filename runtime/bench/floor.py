"""The floor: the same requests from plain asyncio with the fastest client, and nothing that survives a crash.

    python -m reattach.runtime.bench.floor FOLDER URL CONCURRENCY RUN_MS

It reads `FOLDER/requests`, skips what has an outcome, and appends to `FOLDER/outcomes` as calls end.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reattach.models.identity import marker_of, thread_id_of
from reattach.models.request import Request, parse_request

if TYPE_CHECKING:
    import aiohttp


async def call(session: "aiohttp.ClientSession", url: str, request: Request, run_ms: int) -> Any:
    """GET, POST, wait for as long as the run takes, and GET until it is done."""
    thread = f"{url}/api/agents/{request.agent}/threads/{thread_id_of(request, 1)}"
    async with session.get(thread) as answer:
        await answer.json()
    body = {"message": json.loads(request.message), "message_id": marker_of(request.invocation_id, 1)}
    async with session.post(f"{thread}/messages", json=body) as answer:
        await answer.read()
    while True:
        await asyncio.sleep(run_ms / 1000)
        async with session.get(thread) as answer:
            status = await answer.json()
        if status["status"] in ("completed", "failed"):
            return status.get("result")


async def work(folder: Path, url: str, concurrency: int, run_ms: int) -> None:
    # Of the extra `fast`.
    import aiohttp

    outcomes = folder / "outcomes" / "part-0.jsonl"
    outcomes.parent.mkdir(exist_ok=True)
    done = {json.loads(line)["invocation_id"] for line in outcomes.open()} if outcomes.exists() else set()
    lines = [line for file in sorted((folder / "requests").glob("*.jsonl")) for line in file.read_bytes().splitlines()]
    requests = [parse_request(line, message_bytes_max=1 << 20) for line in lines]
    waiting = [one for one in reversed(requests) if one.invocation_id not in done]
    connector = aiohttp.TCPConnector(limit=concurrency)
    with outcomes.open("a", buffering=1) as file:
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                while waiting:
                    request = waiting.pop()
                    result = await call(session, url, request, run_ms)
                    now_ms = time.time_ns() // 1_000_000
                    row = {"invocation_id": request.invocation_id, "result": result, "finished_at_ms": now_ms}
                    file.write(json.dumps(row) + "\n")

            await asyncio.gather(*(worker() for _ in range(concurrency)))


def main() -> None:
    folder, url, concurrency, run_ms = sys.argv[1:]
    try:
        import uvloop as loops
    except ImportError:
        import asyncio as loops  # type: ignore[no-redef]
    loops.run(work(Path(folder), url, int(concurrency), int(run_ms)))


if __name__ == "__main__":
    main()
