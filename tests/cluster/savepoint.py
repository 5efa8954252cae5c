"""Write the savepoint that this release leaves to the next: `python -m tests.cluster.savepoint`.

Run it once for each release, before anything that is stored changes, and commit what it wrote: the savepoint of a
stopped job whose calls stand everywhere a call can wait, with the files that such a job leaves behind (requests,
outcomes, what its remote remembers). tests/e2e/test_upgrade.py goes on from each of them. It refuses to touch a folder
that exists: what a release has stored is never made to fit the code.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import reattach
from reattach.runtime.agent.log import read_log
from tests.cluster.cluster import cluster
from tests.cluster.jobs import ClusterJob, job

ROOT: Final = Path(__file__).parents[1] / "e2e" / "savepoints"
LONG_MS: Final = 10 * 365 * 86_400_000
# Restored years later: no clock may have run out meanwhile.
POLICY: Final = {"retention_ms": LONG_MS, "tombstone_ttl_ms": LONG_MS, "deadline_ms": LONG_MS}
OPTIONS: Final = {"marker": "last_message_id"}
# Long enough for a POST to be under way while the job is stopped; but each first POST waits as long.
TIMEOUT: Final = {"submit_timeout_ms": 30_000}
SLOW: Final = {"answer_ms": 600_000, "times": 0}
EACH: Final = 5


def fill(made: ClusterJob) -> None:
    """Bring calls to where they can wait: ended, failed, running, queued behind one, being sent, not sent."""
    made.ask(EACH, "done")
    made.until(lambda: seen(made, "end") == EACH, "the runs that end")
    made.control("rules", {"fail_run": 1.0})
    made.ask(EACH, "failed")
    made.until(lambda: len(made.outcomes_of()) == 2 * EACH, "the outcomes of those that have ended")
    made.control("rules", {"stuck_run": 1.0})
    made.ask(EACH, "running")
    for turn in (1, 2, 3):
        made.ask(1, f"turn-{turn}", thread_id="talk", turn=turn)
    joined = seen(made, "stream") + EACH + 1
    made.until(lambda: seen(made, "stream") >= joined, "streams of the runs that go on")
    made.control("rules", {"stuck_run": 1.0, "answer_ms": 600_000})
    made.ask(EACH, "sent")
    sent = 4 * EACH + 1
    made.until(lambda: seen(made, "turn") == sent, "POSTs that are not answered")
    made.control("rules", {"read_error": 1.0})
    made.ask(EACH, "unsent")
    made.until(lambda: seen(made, "unavailable") >= EACH, "questions that are not answered")


def seen(made: ClusterJob, what: str) -> int:
    return sum(what in (record["kind"], record.get("status")) for record in read_log(made.log))


def keep(made: ClusterJob, savepoint: Path, folder: Path) -> None:
    """Copy what the next release gets."""
    shutil.copytree(savepoint, folder / "savepoint")
    shutil.copytree(made.requests, folder / "requests")
    (folder / "outcomes").mkdir()
    rows: list[dict[str, Any]] = [row for each in made.outcomes_of().values() for row in each]
    (folder / "outcomes" / "part-old.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    remembered = [record for record in read_log(made.log) if record["kind"] in ("turn", "end")]
    (folder / "agent.jsonl").write_text("".join(json.dumps(record) + "\n" for record in remembered))


def write(root: Path) -> Path:
    """Make `root/<version>`.

    Raises:
        FileExistsError: this release has its savepoint already.
    """
    folder = root / reattach.__version__
    if folder.exists():
        raise FileExistsError(folder)
    with tempfile.TemporaryDirectory(prefix="reattach-savepoint-") as name:
        work = Path(name)
        with cluster(work / "cluster") as made:
            made.have_workers(2)
            with job(work / "job", made, latency="100ms", policy={**POLICY, **TIMEOUT}, options=OPTIONS) as asked:
                asked.submit()
                fill(asked)
                # The outcomes of the last checkpoint are committed by the next one, and not by a later release.
                before = made.completed(asked.id)
                asked.until(lambda: made.completed(asked.id) >= before + 2, "two more checkpoints")
                keep(asked, made.stop_with_savepoint(asked.id, work / "savepoints"), folder)
    return folder


if __name__ == "__main__":
    try:
        print(f"wrote {write(ROOT)}")
    except FileExistsError as error:
        sys.exit(f"{error} exists: the savepoint of a release is never written again")
