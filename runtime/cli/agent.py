"""`reattach agent`."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    log: Annotated[Path, typer.Option(help="The server's durable log; replayed first when it exists.", metavar="FILE")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 lets the system choose.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    latency: Annotated[str, typer.Option(help="How long a run takes, such as 250ms or 2s-6s.")] = "2s-6s",
    rules: Annotated[str, typer.Option(help="Faults: a JSON object, or a file of one.", metavar="JSON")] = "{}",
    progress_ms: Annotated[int, typer.Option(min=1, help="Time between two progress events.")] = 1_000,
    sync: Annotated[bool, typer.Option("--sync", help="Force every log record to the disk.")] = False,
) -> int:
    """Run the demo agent server: it keeps what it accepts, and misbehaves on demand.

    Example: `reattach agent --log agent.log --port 8900 --latency 2s-6s --rules '{"lose_answer": 0.1}'`
    """
    from reattach.runtime.agent.__main__ import Settings, parse_rules, serve
    from reattach.runtime.agent.faults import Latency

    settings = Settings(
        log=log,
        host=host,
        port=port,
        latency=Latency.parse(latency),
        rules=parse_rules(rules),
        progress_ms=progress_ms,
        sync=sync,
    )
    serve(settings, ready=lambda url: typer.echo(f"listening on {url}"))
    return 0
