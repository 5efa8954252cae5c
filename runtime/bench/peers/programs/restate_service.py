"""The service behind Restate's server: each call is a handler of two durable steps.

python restate_service.py PORT URL RUN_MS
"""

import sys
from typing import Any

import aiohttp
import restate
import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from work import Call, result_of, submit

STREAMS_MAX = 2**31 - 1

PORT, URL, RUN_MS = sys.argv[1], sys.argv[2], int(sys.argv[3])
sessions: list[aiohttp.ClientSession] = []
calls = restate.Service("calls")


@calls.handler()
async def ask(ctx: restate.Context, asked: dict[str, Any]) -> Any:
    call = Call(**asked)

    async def send() -> None:
        await submit(sessions[0], URL, call)

    async def wait() -> Any:
        return await result_of(sessions[0], URL, call, RUN_MS)

    await ctx.run_typed("send", send)
    return await ctx.run_typed("wait", wait)


async def work() -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    # What the SDK's own example sets: Restate multiplexes, and must not be turned away.
    config.h2_max_concurrent_streams = config.keep_alive_max_requests = STREAMS_MAX
    # How many calls go on at once is the client's business.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        sessions.append(session)
        await serve(restate.app([calls]), config)


if __name__ == "__main__":
    uvloop.run(work())
