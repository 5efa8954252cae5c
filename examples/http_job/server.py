"""A small job service of the kind that many houses have: take a job, say how it is going, cancel it.

    POST   /jobs                 {"ref": ..., "input": ...}  ->  202, Location: /jobs/ID
    GET    /jobs?ref=REF         the jobs with that reference
    GET    /jobs/ID              how one is going, and its result
    GET    /jobs/ID/events       server-sent events; goes on after Last-Event-ID
    DELETE /jobs/ID

With an Idempotency-Key it knows a POST again and answers with the job that it made the first time.
Without one, each POST is a job of its own: whoever sends twice has two.

`--log FILE` keeps a line for each request and for each job that was started. `--lose N` hangs up on the
first N POSTs after it has taken them, as a network may.
"""

import argparse
import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


@dataclass
class Job:
    id: str
    ref: str
    input: Any
    ends_s: float
    cancelled: bool = False

    @property
    def state(self) -> str:
        if self.cancelled:
            return "stopped"
        return "finished" if time.monotonic() >= self.ends_s else "working"

    def shown(self) -> dict[str, Any]:
        output = {"echo": self.input} if self.state == "finished" else None
        return {"id": self.id, "ref": self.ref, "state": self.state, "output": output}


@dataclass
class Service:
    """All jobs, in memory.

    Args:
        seconds: how long a job takes.
        lose: POSTs whose answer is still to be lost.
    """

    log: Path | None
    seconds: float
    lose: int
    jobs: dict[str, Job] = field(default_factory=dict)
    keys: dict[str, Job] = field(default_factory=dict)

    def note(self, **record: Any) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(record) + "\n")

    async def submit(self, request: Request) -> Response:
        body = await request.json()
        key = request.headers.get("idempotency-key", "")
        job = self.keys.get(key) if key else None
        if job is None:
            job = Job(f"job-{len(self.jobs) + 1}", body["ref"], body["input"], time.monotonic() + self.seconds)
            self.jobs[job.id] = job
            self.note(started=job.ref, id=job.id)
            if key:
                self.keys[key] = job
        if self.lose > 0:
            self.lose -= 1
            return Lost()
        return JSONResponse(job.shown(), 202, {"Location": f"/jobs/{job.id}"})

    async def find(self, request: Request) -> Response:
        ref = request.query_params.get("ref")
        return JSONResponse({"jobs": [job.shown() for job in self.jobs.values() if job.ref == ref]})

    async def show(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        return JSONResponse({"error": "no_such_job"}, 404) if job is None else JSONResponse(job.shown())

    async def stop(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if job is None or job.state != "working":
            return JSONResponse({"error": "not_working"}, 409)
        job.cancelled = True
        return JSONResponse(job.shown())

    async def follow(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["id"])
        if job is None:
            return JSONResponse({"error": "no_such_job"}, 404)
        after = request.headers.get("last-event-id", "0")
        return StreamingResponse(events(job, int(after)), 200, media_type="text/event-stream")


class Lost(Response):
    """No answer at all: the connection just ends."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope["connection"].abort()


async def events(job: Job, number: int) -> AsyncIterator[bytes]:
    while job.state == "working":
        number += 1
        yield f"id: {number}\nevent: progress\ndata: {json.dumps({'step': number})}\n\n".encode()
        await asyncio.sleep(0.2)
    yield b"event: end\ndata: {}\n\n"


def application(service: Service) -> Any:
    app = Starlette(
        routes=[
            Route("/jobs", service.submit, methods=["POST"]),
            Route("/jobs", service.find),
            Route("/jobs/{id}/events", service.follow),
            Route("/jobs/{id}", service.show),
            Route("/jobs/{id}", service.stop, methods=["DELETE"]),
        ]
    )

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            service.note(request=f"{scope['method']} {scope['path']}")
            # Further in, `send` is wrapped by the framework.
            scope["connection"] = send.__self__.transport
        await app(scope, receive, send)

    return noted


def main() -> None:
    parser = argparse.ArgumentParser(description="A small job service.")
    parser.add_argument("--port", type=int, default=8321, help="0 lets the system choose")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long a job takes")
    parser.add_argument("--log", type=Path, help="append a line for each request and each job that was started")
    parser.add_argument("--lose", type=int, default=0, help="answers to lose, after the job was taken")
    given = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", given.port))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    service = Service(given.log, given.seconds, given.lose)
    uvicorn.Server(uvicorn.Config(application(service), log_level="warning")).run([listener])


if __name__ == "__main__":
    main()
