"""Run the agent server: `python -m reattach.runtime.agent --port 0 --log FILE --latency 2s-6s`."""

import argparse
import asyncio
import json
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reattach.models.errors import ConfigError
from reattach.runtime.agent.faults import Latency, Rules

BACKLOG = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the server is started with.

    Args:
        port: 0 lets the system choose.
        sync: force every log record to the disk.
    """

    log: Path
    host: str = "127.0.0.1"
    port: int = 0
    latency: Latency = field(default_factory=lambda: Latency(2_000, 6_000))
    rules: Rules = field(default_factory=Rules)
    progress_ms: int = 1_000
    sync: bool = False


def serve(settings: Settings, *, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        ready: called with the base URL as soon as connections are taken.

    Raises:
        ConfigError: the port is taken, or the extra `agent` is not installed.
    """
    try:
        import uvicorn

        from reattach.runtime.agent.server import Application
        from reattach.runtime.agent.state import Agent
    except ImportError as error:
        raise ConfigError(
            f"the agent server needs the extra 'agent': pip install 'reattach[agent]' ({error})"
        ) from None
    _allow_connections()
    listener = _listen(settings.host, settings.port)

    async def run() -> None:
        agent = Agent(settings.log, latency=settings.latency, rules=settings.rules, sync=settings.sync)
        agent.start()
        config = uvicorn.Config(
            Application(agent, settings.log, progress_ms=settings.progress_ms),
            lifespan="off",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
        )
        ready(f"http://{settings.host}:{listener.getsockname()[1]}")
        try:
            await uvicorn.Server(config).serve(sockets=[listener])
        finally:
            agent.close()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"port = {port}: cannot listen on {host}: {error.strerror}") from None
    listener.listen(BACKLOG)
    return listener


def _allow_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (65_536 if hard == resource.RLIM_INFINITY else hard, hard))


def parse_rules(text: str) -> Rules:
    """Read rules given as a JSON object, or as the name of a file that holds one.

    Raises:
        ConfigError: neither, or a rule is wrong.
    """
    try:
        value = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"rules: cannot read {text}: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"rules: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError("rules: must be a JSON object")
    return Rules.parse(value)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="reattach agent", description="A demo agent server that can misbehave.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 lets the system choose")
    parser.add_argument("--log", type=Path, required=True, help="the durable log; replayed first when it exists")
    parser.add_argument("--latency", default="2s-6s", help="how long a run takes, such as 250ms or 2s-6s")
    parser.add_argument("--rules", default="{}", help="faults: a JSON object or a file that holds one")
    parser.add_argument("--progress-ms", type=int, default=1_000, help="time between progress events")
    parser.add_argument("--sync", action="store_true", help="force every log record to the disk")
    given = parser.parse_args(arguments)
    try:
        settings = Settings(
            log=given.log,
            host=given.host,
            port=given.port,
            latency=Latency.parse(given.latency),
            rules=parse_rules(given.rules),
            progress_ms=given.progress_ms,
            sync=given.sync,
        )
        serve(settings, ready=lambda url: print(f"listening on {url}", flush=True))
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
