"""The stand-in for the Responses API as a process of its own, as its log tells."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.harness import Process, until


class Api:
    """The running stand-in, as its log tells."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / "api.jsonl"
        command = [sys.executable, "-m", "tests.servers.openai_fake", "--port", "0", "--log", str(self.log), *arguments]
        self.server = Process(command, folder / "api.out")
        self.url = until(lambda: self.server.text().partition("listening on ")[2].strip(), "the server")

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def requests(self) -> list[str]:
        """Every request that came, such as `POST /v1/responses`; an id is shown as ID."""
        told = [record["request"] for record in self.records() if "request" in record]
        ids = {record["id"] for record in self.records() if "id" in record}
        return [re.sub("resp_[0-9a-f]{48}", lambda found: "ID" if found[0] in ids else found[0], one) for one in told]

    def accepted(self) -> Counter[str]:
        """How often each call was accepted."""
        told = [record["accepted"].get("reattach_call", "") for record in self.records() if "accepted" in record]
        return Counter(told)

    def ids(self) -> list[str]:
        return [record["id"] for record in self.records() if "accepted" in record]


@contextmanager
def api(folder: Path, *arguments: str) -> Iterator[Api]:
    made = Api(folder, *arguments)
    try:
        yield made
    finally:
        made.server.kill()
