"""`reattach control`."""

import hashlib
import json
import os
import time
import uuid
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from reattach.models.errors import ConfigError, InvalidRequest
from reattach.models.request import canonical_json
from reattach.runtime.config import RunConfig, load_config
from reattach.runtime.orders import read_order

RESPONSE_ID_CHARS: Final = 32


class Order(Enum):
    """What may be ordered."""

    CANCEL = "cancel"
    ADOPT = "adopt"
    RESUBMIT = "resubmit"
    ABANDON = "abandon"
    RESPOND = "respond"


def command(
    config: Annotated[Path, typer.Argument(help="The job's TOML file, with `control` in [job].", metavar="CONFIG")],
    order: Annotated[Order, typer.Argument(help="What to do.")],
    invocation: Annotated[str, typer.Argument(help="The call's invocation_id.", metavar="INVOCATION")],
    agent: Annotated[
        str | None, typer.Option(help="Its agent; may be left out when only one is configured.", metavar="NAME")
    ] = None,
    thread: Annotated[
        str | None, typer.Option(help="Its thread_id, when its request named one.", metavar="THREAD")
    ] = None,
    generation: Annotated[int, typer.Option(min=1, help="The generation that the order is about.")] = 1,
    handle: Annotated[str | None, typer.Option(help="adopt: the remote's name of the run.")] = None,
    question: Annotated[
        str | None, typer.Option(help="respond: the question's id, the message of its notice.", metavar="ID")
    ] = None,
    answer: Annotated[
        str | None, typer.Option(help="respond: any JSON, or @FILE that holds it.", metavar="JSON|@FILE")
    ] = None,
    response_id: Annotated[
        str | None,
        typer.Option(help="respond: one for each answer; without: a digest of question and answer.", metavar="ID"),
    ] = None,
) -> int:
    """Give an order about one call to a job: one line in a new file of its control folder.

    The job reads it while it runs, or when it is started again. What became of it is told by the notices and the
    outcomes. The same order again changes nothing.

    cancel: end the call and its run. respond: answer the question that the run waits with. Of a parked call:
    adopt: this is its run; resubmit: start it anew, although it may have run; abandon: fail it.

    Example: `reattach control job.toml respond order-17 --agent writer --question q-1 --answer '{"approve": true}'`
    """
    loaded = load_config(config)
    options = {"handle": handle, "question": question, "answer": answer, "response_id": response_id}
    _fits(order, options)
    row: dict[str, Any] = {
        "order": order.value,
        "agent": agent or _only_agent(loaded),
        "invocation_id": invocation,
        "generation": generation,
    }
    if thread is not None:
        row["thread_id"] = thread
    if order is Order.ADOPT:
        row["handle"] = handle
    elif order is Order.RESUBMIT:
        row["ordered_at_ms"] = time.time_ns() // 1_000_000
    elif order is Order.RESPOND:
        assert answer is not None and question is not None
        payload = _payload(answer)
        row |= {"response_id": response_id or _digest(question, payload), "question_id": question, "payload": payload}
    line = json.dumps(row, ensure_ascii=False)
    limits = {name: one.policy.message_bytes_max for name, one in loaded.agents.items()}
    try:
        read_order(line, limits)
    except InvalidRequest as error:
        raise ConfigError(str(error)) from None
    path = _write(_folder(loaded), order.value, line)
    typer.echo(f"{path}\n{line}")
    return 0


_OPTIONS: Final = {Order.ADOPT: {"handle"}, Order.RESPOND: {"question", "answer"}}
_OPTIONAL: Final = {Order.RESPOND: {"response_id"}}


def _fits(order: Order, options: dict[str, str | None]) -> None:
    """Refuse an option of another order, and an order without its own."""
    given = {name for name, value in options.items() if value is not None}
    needed = _OPTIONS.get(order, set())
    for name in sorted(needed - given):
        raise typer.BadParameter(f"{order.value} needs --{name}")
    for name in sorted(given - needed - _OPTIONAL.get(order, set())):
        raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning with {order.value}")


def _only_agent(loaded: RunConfig) -> str:
    names = list(loaded.agents)
    if len(names) > 1:
        raise typer.BadParameter(f"--agent is needed, since there are several: {', '.join(sorted(names))}")
    return names[0]


def _folder(loaded: RunConfig) -> Path:
    folder = loaded.job.control
    if folder is None:
        raise ConfigError(
            f'{loaded.source}: job.control: not set, so the job reads no orders; write control = "control"'
        )
    return folder


def _payload(answer: str) -> Any:
    text = answer
    if answer.startswith("@"):
        try:
            text = Path(answer[1:]).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"--answer {answer}: cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--answer: not JSON: {error}; a text needs its quotes: '\"yes\"'") from None


def _digest(question: str, payload: Any) -> str:
    try:
        return hashlib.sha256(canonical_json([question, payload])).hexdigest()[:RESPONSE_ID_CHARS]
    except InvalidRequest as error:
        raise ConfigError(f"--answer: {error}") from None


def _write(folder: Path, order: str, line: str) -> Path:
    """Write aside and move in: the job reads a file once, when it sees it."""
    name = f"{time.time_ns()}-{order}-{uuid.uuid4().hex[:8]}.jsonl"
    aside, path = folder / f".{name}", folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with aside.open("x", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    except OSError as error:
        raise ConfigError(f"job.control: {folder}: cannot be written: {error.strerror}") from None
    return path
