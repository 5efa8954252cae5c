"""Restate: a server of its own, a service with the handler of a call, and a client that invokes it for each.

    python restate_calls.py FOLDER URL CONCURRENCY RUN_MS

The idempotency key of an invocation is the call's id, which makes a second request an order to attach to it or to read
its result. After a kill the server goes on by itself with what was under way, from the last step that was recorded.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from ports import HOST, kept
from work import Call, Outcomes, unfinished

FOLDER, URL, CONCURRENCY, RUN_MS = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
# The program itself, and not the Node.js script that would start it.
SERVERS = "node_modules/@restatedev/restate-server-*/bin/restate-server"
START_S, LOOK_S = 60.0, 0.05


@contextlib.contextmanager
def running(ports: dict[str, int]) -> Iterator[None]:
    """The server and the service, as children."""
    settings = {
        "RESTATE_BASE_DIR": str(FOLDER / "restate"), "RESTATE_NODE_NAME": "node", "RESTATE_BIND_IP": HOST,
        "RESTATE_LISTEN_MODE": "tcp", "RESTATE_BIND_PORT": str(ports["node"]), "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_INGRESS__BIND_PORT": str(ports["ingress"]), "RESTATE_ADMIN__BIND_PORT": str(ports["admin"]),
    }  # fmt: skip
    program = next(Path(sys.prefix).glob(SERVERS))
    with (FOLDER / "restate.log").open("ab") as log:
        server = subprocess.Popen([program, "--no-logo"], stdout=log, stderr=log, env={**os.environ, **settings})
    service_file = Path(__file__).with_name("restate_service.py")
    service = subprocess.Popen([sys.executable, service_file, str(ports["service"]), URL, RUN_MS])
    try:
        yield
    finally:
        # It keeps nothing, and would wait for connections that the server holds open.
        service.kill()
        server.terminate()
        server.wait()


async def register(session: aiohttp.ClientSession, ports: dict[str, int]) -> None:
    """Tell the server of the service, as soon as both answer."""
    body = {"uri": f"http://{HOST}:{ports['service']}"}
    async with asyncio.timeout(START_S):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.post(f"http://{HOST}:{ports['admin']}/deployments", json=body) as answer:
                    if answer.ok:
                        return
            await asyncio.sleep(LOOK_S)


async def ask(session: aiohttp.ClientSession, ingress: str, call: Call) -> Any:
    """Invoke the handler, or attach to what an earlier life has invoked."""
    headers = {"idempotency-key": call.name}
    async with session.post(f"{ingress}/calls/ask", json=asdict(call), headers=headers) as answer:
        answer.raise_for_status()
        return await answer.json()


async def work(ports: dict[str, int]) -> None:
    outcomes, waiting = Outcomes(FOLDER), unfinished(FOLDER)[::-1]
    ingress = f"http://{HOST}:{ports['ingress']}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:
        await register(session, ports)

        async def worker() -> None:
            while waiting:
                call = waiting.pop()
                outcomes.add(call.name, await ask(session, ingress, call))

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


if __name__ == "__main__":
    ports = kept(FOLDER / "ports.json", "node", "ingress", "admin", "service")
    with running(ports):
        uvloop.run(work(ports))
