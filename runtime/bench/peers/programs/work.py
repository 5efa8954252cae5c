"""What every peer's program shares: the requests, the three steps of a call, and the outcomes.

These files are run by path in an environment that holds a peer and nothing of ours, so they import each other by their
bare names, and besides them only the standard library, aiohttp and the peer.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True)
class Call:
    """One request: its id is also the name of its thread and of its message, so that it is the same in each life."""

    name: str
    agent: str
    message: Any


def unfinished(folder: Path) -> list[Call]:
    """The requests of a folder that have no outcome yet, in order."""
    done = set()
    for file in (folder / "outcomes").glob("*.jsonl"):
        done |= {json.loads(line)["invocation_id"] for line in file.open()}
    rows = [json.loads(line) for file in sorted((folder / "requests").glob("*.jsonl")) for line in file.open()]
    calls = [Call(row["invocation_id"], row["agent"], row["message"]) for row in rows]
    return [call for call in calls if call.name not in done]


class Outcomes:
    """Where the program's lines go, each as soon as its call has ended."""

    def __init__(self, folder: Path) -> None:
        path = folder / "outcomes" / "part-0.jsonl"
        path.parent.mkdir(exist_ok=True)
        self._file = path.open("a", buffering=1)

    def add(self, name: str, result: Any) -> None:
        self._file.write(outcome(name, result) + "\n")


def outcome(name: str, result: Any) -> str:
    """The line of a call that has just ended."""
    return json.dumps({"invocation_id": name, "result": result, "finished_at_ms": time.time_ns() // 1_000_000})


async def submit(session: "aiohttp.ClientSession", url: str, call: Call) -> None:
    """POST the message. A second one does no harm while the run of the first is going on, and starts another after."""
    body = {"message": call.message, "message_id": call.name}
    async with session.post(f"{_thread(url, call)}/messages", json=body) as answer:
        answer.raise_for_status()


async def result_of(session: "aiohttp.ClientSession", url: str, call: Call, run_ms: int) -> Any:
    """Wait for as long as the run takes, and GET until it is done."""
    while True:
        await asyncio.sleep(run_ms / 1000)
        found = await status_of(session, url, call)
        if found["status"] in ("completed", "failed"):
            return found.get("result")


async def status_of(session: "aiohttp.ClientSession", url: str, call: Call) -> dict[str, Any]:
    async with session.get(_thread(url, call)) as answer:
        answer.raise_for_status()
        found: dict[str, Any] = await answer.json()
        return found


def _thread(url: str, call: Call) -> str:
    return f"{url}/api/agents/{call.agent}/threads/{call.name}"
