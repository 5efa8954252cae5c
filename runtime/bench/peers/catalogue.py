"""The peers, each as a system that can be measured, in so far as `make peers` could make what it needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from reattach.runtime.bench.systems import System, Work

PROGRAMS: Final = Path(__file__).parent / "programs"
# `make peers` leaves it in an environment that is whole.
STAMP: Final = ".reattach-installed"


@dataclass(frozen=True, slots=True)
class Peer:
    """One of them.

    Args:
        name: as people read it.
        program: a file of `programs`.
        environment: in which it runs.
        also: other environments that have something for it; their paths are its last arguments.
    """

    name: str
    program: str
    environment: str
    also: Sequence[str] = ()

    def missing(self, folder: Path) -> str:
        """What it needs and does not have, "" for nothing.

        Args:
            folder: of the environments.
        """
        if not (PROGRAMS / self.program).is_file():
            return f"{self.program} is only in the source tree"
        lacking = [one for one in (self.environment, *self.also) if not (folder / one / STAMP).is_file()]
        return f"{folder / lacking[0]} is not made; `make peers` makes it, or says what it lacks" if lacking else ""

    def command(self, folder: Path, work: Work) -> list[str]:
        python = folder.absolute() / self.environment / "bin" / "python"
        numbers = [str(work.concurrency), str(work.run_ms)]
        also = [str(folder.absolute() / one) for one in self.also]
        return [str(python), str(PROGRAMS / self.program), str(work.folder), work.url, *numbers, *also]


PEERS: Final[Mapping[str, Peer]] = {
    "dbos-sqlite": Peer("DBOS on SQLite", "dbos_calls.py", "dbos"),
    "dbos-postgres": Peer("DBOS on PostgreSQL", "dbos_calls.py", "dbos", ("postgres",)),
    "restate": Peer("Restate", "restate_calls.py", "restate"),
    "flink-agents": Peer("Flink Agents", "flink_agents_calls.py", "flink_agents"),
}


def systems(folder: Path) -> dict[str, System | str]:
    """The peers by name; in place of one that cannot run, the line that says why.

    Args:
        folder: of the environments.
    """
    found: dict[str, System | str] = {}
    for name, peer in PEERS.items():
        missing = peer.missing(folder)
        found[name] = (
            f"skipped: {peer.name}: {missing}" if missing else System(peer.name, partial(peer.command, folder))
        )
    return found
