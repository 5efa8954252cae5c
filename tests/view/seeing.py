"""The call of docs/see.md, and what `reattach explain` says of it.

Its remote can be asked only by a name that it gives in the answer to the POST. The answer came, the job crashed,
and the checkpoint that was restored holds the call as it was before.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from reattach.models.answers import Accepted
from reattach.models.events import CheckpointCompleted, Ident, Requested, Restored, SubmitAnswered, ThreadEvent
from reattach.models.identity import request_key
from reattach.models.journal import JournalEntry
from reattach.models.policy import Absence, CancelKind, Capabilities, Evidence, Policy, Terms
from reattach.models.request import Request
from reattach.runtime.driver import Driver
from reattach.runtime.replay.reading import read
from reattach.runtime.view import words
from reattach.runtime.view.account import account_of
from tests.replay.making import Host, lines_of
from tests.view.making import BEGAN

NAME, AGENT = "order-17", "writer"
REQUEST = Request(NAME, AGENT, b'"Summarise order 17"', BEGAN - 4_000)
KEY = request_key(REQUEST)
TERMS = Terms(
    Capabilities(
        evidence=Evidence.HANDLE_ONLY, absence=Absence.NEVER, cancel=CancelKind.CONFIRMED, retention_ms=30 * 86_400_000
    ),
    Policy(overlap_ms=0),
)
LIVES = (("6f2ac91be0d4", BEGAN), ("c01d7e55a3b8", BEGAN + 41_000))


def folder_of(path: Path, config: str) -> Path:
    """A folder with what the commands of the page name: a journal of this call and another one, and the job's file."""
    journal = write(path / "journal")
    other = Host()
    other.ask("order-18")
    (journal / "part-1.journal").write_bytes(lines_of(replace(one, thread_id="t-4") for one in other.entries))
    (path / "job.toml").write_text(config)
    return path


def entries() -> list[JournalEntry]:
    """What the job has written down."""
    made: list[JournalEntry] = []

    def on(driver: Driver, stored: bytes | None, event: ThreadEvent, after_ms: int) -> bytes | None:
        applied = driver.apply(KEY, stored, event, BEGAN + after_ms)
        made.extend(applied.journal)
        return applied.stored

    first, second = (Driver({AGENT: TERMS}, incarnation=name, opened_ms=at, lineage=True) for name, at in LIVES)
    held = on(first, None, Requested(REQUEST), 210)
    who = Ident(LIVES[0][0], NAME, 1, 1)
    sent = on(first, held, CheckpointCompleted(who), 2_480)
    on(first, sent, SubmitAnswered(Ident(LIVES[0][0], NAME, 1, 2), Accepted("run-93")), 2_950)
    on(second, held, Restored(), 41_350)
    return made


def write(folder: Path) -> Path:
    """Put the journal into a folder, as a job does."""
    folder.mkdir()
    (folder / "part-0.journal").write_bytes(lines_of(entries()))
    return folder


def example() -> str:
    """What is said of it 12 minutes later, as the page shows it."""
    with tempfile.TemporaryDirectory() as made:
        journal = read([*write(Path(made) / "journal").glob("*.journal")])
    account = account_of((*KEY, NAME), journal, now_ms=BEGAN + 12 * 60_000, config="job.toml")
    return "".join(f"    {line.plain}".rstrip() + "\n" for line in words.lines(account, 0))
