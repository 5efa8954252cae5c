"""DBOS: each call a workflow of two steps, whose records are in SQLite or in a PostgreSQL of its own.

    python dbos_calls.py FOLDER URL CONCURRENCY RUN_MS [POSTGRES]

POSTGRES is the environment that has PostgreSQL; SQLite takes its place where none is given. A workflow's id is the
call's, so starting it again attaches to it or reads its result. After a kill DBOS goes on by itself with what was under
way, from the last step that was recorded.
"""

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any

import aiohttp
import uvloop
from dbos import DBOS, SetWorkflowID
from postgres import postgres
from work import Call, Outcomes, result_of, submit, unfinished

FOLDER, URL, CONCURRENCY, RUN_MS = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
# One for all, as it is meant to be used; it has to be opened inside the loop.
sessions: list[aiohttp.ClientSession] = []


@DBOS.step()
async def send(call: Call) -> None:
    await submit(sessions[0], URL, call)


@DBOS.step()
async def wait(call: Call) -> Any:
    return await result_of(sessions[0], URL, call, RUN_MS)


@DBOS.workflow()
async def ask(call: Call) -> Any:
    await send(call)
    return await wait(call)


async def work(database: str) -> None:
    outcomes, waiting = Outcomes(FOLDER), unfinished(FOLDER)[::-1]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONCURRENCY)) as session:
        sessions.append(session)
        DBOS(config={"name": "calls", "application_version": "1", "system_database_url": database})
        # In here, so that recovered workflows run in this loop as well.
        DBOS.launch()

        async def worker() -> None:
            while waiting:
                call = waiting.pop()
                with SetWorkflowID(call.name):
                    handle = await DBOS.start_workflow_async(ask, call)
                outcomes.add(call.name, await handle.get_result())

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
        DBOS.destroy()


def sqlite(folder: Path) -> str:
    """A database for DBOS, in the mode that writes quickest and as safely; SQLite keeps it in the file."""
    path = folder / "dbos.sqlite"
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL")
    return f"sqlite:///{path}"


if __name__ == "__main__":
    if sys.argv[5:]:
        with postgres(FOLDER, Path(sys.argv[5])) as address:
            uvloop.run(work(address))
    else:
        uvloop.run(work(sqlite(FOLDER)))
