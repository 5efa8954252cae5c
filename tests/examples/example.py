"""An example's own server as a process of its own, and the agents of its configuration, pointed at it."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from reattach.models.policy import Policy
from reattach.runtime.config import load_config
from tests.e2e.harness import Process, until


class Example:
    """See the module's text.

    Args:
        folder: for the server's log and output.
        example: the example's folder.
        python: the interpreter that runs its server.
        policy: of its agents, in place of their own.
    """

    def __init__(self, folder: Path, example: Path, python: str, policy: Policy, arguments: tuple[str, ...]) -> None:
        self.log = folder / "server.jsonl"
        command = [python, str(example / "server.py"), "--port", "0", "--log", str(self.log), *arguments]
        self.server = Process(command, folder / "server.out")
        said = until(lambda: self.server.text().partition("listening on ")[2].strip(), "the server")
        self.url = said.split()[0]
        read = load_config(example / "job.toml").agents
        self.agents = {name: replace(agent, url=self.url, policy=policy) for name, agent in read.items()}

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def requests(self) -> list[str]:
        return [record["request"] for record in self.records() if "request" in record]

    def started(self) -> Counter[str]:
        return Counter(record["started"] for record in self.records() if "started" in record)


@contextmanager
def served(folder: Path, example: Path, python: str, policy: Policy, *arguments: str) -> Iterator[Example]:
    made = Example(folder, example, python, policy, arguments)
    try:
        yield made
    finally:
        made.server.kill()
