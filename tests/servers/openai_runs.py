"""The responses of the stand-in for the OpenAI Responses API, and how they run."""

import asyncio
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Final

PIECES: Final = 6
ENDED: Final = ("completed", "failed", "incomplete", "cancelled")


@dataclass
class Run:
    """One response and all events that it has had."""

    response: dict[str, Any]
    stream: bool
    words: frozenset[str]
    text: str
    duration_s: float
    events: list[bytes] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ended_at: float = 0.0
    task: asyncio.Task[None] | None = None

    def emit(self, name: str, **members: Any) -> None:
        event = {"type": name, "sequence_number": len(self.events), **members}
        self.events.append(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())
        self.changed.set()
        self.changed = asyncio.Event()

    def move(self, status: str) -> None:
        """Change the status and tell it."""
        self.response["status"] = status
        if status in ENDED:
            self.ended_at = time.monotonic()
        if status == "cancelled":
            # The API has no event for it: the stream just ends (assumed).
            self.changed.set()
            return
        self.emit(f"response.{status}", response=self.response)

    async def go_on(self) -> None:
        """The work of the model, in pieces over the duration."""
        self.move("in_progress")
        pause_s = self.duration_s / PIECES
        if "call" in self.words:
            await asyncio.sleep(self.duration_s)
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look_up", "arguments": "{}"}
            self.emit("response.output_item.added", output_index=0, item=item)
            self.response["output"].append(item)
            self.emit("response.output_item.done", output_index=0, item=item)
        else:
            await self._write(pause_s)
        if "fail" in self.words:
            self.response["error"] = {"code": "server_error", "message": "The model produced no answer."}
            self.move("failed")
        elif "incomplete" in self.words:
            self.response["incomplete_details"] = {"reason": "max_output_tokens"}
            self.move("incomplete")
        else:
            self.response["usage"] = {"input_tokens": len(self.text), "output_tokens": PIECES, "total_tokens": 0}
            self.move("completed")

    async def _write(self, pause_s: float) -> None:
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
        item["status"] = "in_progress"
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        self.emit("response.output_item.added", output_index=0, item=item)
        self.emit("response.content_part.added", part=part, **place)
        step = -(-len(self.text) // PIECES) or 1
        for start in range(0, PIECES * step, step):
            await asyncio.sleep(pause_s)
            if piece := self.text[start : start + step]:
                part["text"] += piece
                self.emit("response.output_text.delta", delta=piece, logprobs=[], **place)
        self.emit("response.output_text.done", text=part["text"], logprobs=[], **place)
        self.emit("response.content_part.done", part=part, **place)
        item |= {"status": "completed", "content": [part]}
        self.emit("response.output_item.done", output_index=0, item=item)
        self.response["output"].append(item)


def started(body: dict[str, Any], duration_s: float) -> Run:
    """Begin a response; a time in its text overrides the duration."""
    text = body["input"] if isinstance(body["input"], str) else json.dumps(body["input"])
    took = re.search(r"@(\d+)ms", text)
    response = {
        "id": f"resp_{secrets.token_hex(24)}", "object": "response", "created_at": int(time.time()),
        "status": "queued", "background": body.get("background") is True, "error": None,
        "incomplete_details": None, "instructions": body.get("instructions"), "model": body["model"],
        "output": [], "parallel_tool_calls": True, "store": body.get("store", True),
        "tools": body.get("tools", []), "usage": None, "metadata": body.get("metadata") or {},
    }  # fmt: skip
    words = frozenset(re.findall(r"@([a-z-]+)", text))
    run = Run(response, body.get("stream") is True, words, text, int(took[1]) / 1000 if took else duration_s)
    run.emit("response.created", response=response)
    if response["background"]:
        run.move("queued")
    run.task = asyncio.create_task(run.go_on())
    return run
