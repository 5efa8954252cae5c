"""`reattach run`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from reattach.runtime.config import load_config
from reattach.runtime.run.checkpoints import check_checkpoint
from reattach.runtime.run.runner import Ending, Runner
from reattach.runtime.run.screen import screen_for

STOPPED = 130

EXAMPLE = """\b
Example of a configuration:

    [job]
    requests = "requests"          # watched folder of *.jsonl; move files in, complete
    outcomes = "outcomes"
    checkpoints = "checkpoints"

    [agents.writer]
    protocol = "thread"
    url = "https://agents.example.com"
    token_env = "WRITER_TOKEN"
    policy.retention_ms = 604_800_000   # how long the remote remembers a run

A request is one line of JSON:

    {"invocation_id": "order-17", "agent": "writer", "message": "...", "requested_at_ms": 1764400000000}
"""


def command(
    config: Annotated[
        Path, typer.Argument(help="TOML file that names the job's folders and the agents.", metavar="CONFIG")
    ],
    resume_from: Annotated[
        Path | None,
        typer.Option("--from", help="Resume from this checkpoint (a chk-… folder), not the latest.", metavar="FOLDER"),
    ] = None,
) -> int:
    """Run a job until every request has its outcome; started again, it resumes from its last checkpoint."""
    console = Console()
    loaded = load_config(config)
    with screen_for(console) as screen:
        runner = Runner(loaded, screen, resume_from=None if resume_from is None else check_checkpoint(resume_from))
        ending = runner.run()
    end = runner.snapshot("")
    done = end.wanted - end.missing
    counts = ", ".join(f"{count} {name}" for name, count in sorted(end.by_status.items())) or "none"
    console.print(f"{done} of {end.wanted} requests have their outcome ({counts})", markup=False, highlight=False)
    for code, count in runner.outbox.failures.most_common():
        console.print(f"  failed: {count} {code}", markup=False, highlight=False)
    if end.rejected:
        console.print(
            f"{end.rejected} lines were rejected: see {loaded.job.rejects}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    if ending is Ending.STOPPED:
        console.print(f"stopped; to resume: reattach run {config}", markup=False, highlight=False, soft_wrap=True)
        return STOPPED
    return 0


command.__doc__ = f"{command.__doc__}\n\n{EXAMPLE}"
