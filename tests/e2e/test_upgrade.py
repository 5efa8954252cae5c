"""A savepoint of an earlier release goes on: see tests/cluster/savepoint.py, which wrote them."""

import json
import shutil
import time
from pathlib import Path

import pytest

from reattach.runtime.agent.log import read_log
from tests.cluster.savepoint import OPTIONS, POLICY, ROOT
from tests.e2e.harness import World, world

pytestmark = [pytest.mark.flink, pytest.mark.slow]
GOES_ON_MS = 3_000


def leave_behind(release: Path, folder: Path) -> None:
    """Put the files of the stopped job where the new one looks for them.

    The remote has all its runs still; those that had not ended end some seconds after the new job has begun.
    """
    shutil.copytree(release, folder)
    records = [json.loads(line) for line in (folder / "agent.jsonl").read_text().splitlines()]
    for record in records:
        if record.get("fate") == "stuck":
            record |= {"fate": "completed", "due_ms": int(time.time() * 1000) + GOES_ON_MS}
    (folder / "agent.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def asked(made: World) -> list[str]:
    lines = [line for path in sorted(made.requests.iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line)["invocation_id"] for line in lines]


@pytest.mark.parametrize("release", sorted(ROOT.iterdir()), ids=lambda path: path.name)
def test_every_call_of_an_earlier_release_goes_on_where_it_stood(tmp_path: Path, release: Path) -> None:
    """Also where its input comes again, which is what happens to files in another folder."""
    leave_behind(release, tmp_path / "w")
    job = {"notices": str(tmp_path / "w" / "notices")}
    sent = {record["id"] for record in read_log(tmp_path / "w" / "agent.jsonl") if record["kind"] == "turn"}
    with world(tmp_path / "w", latency="100ms", policy=POLICY, options=OPTIONS, job=job) as made:
        made.expected = asked(made)
        made.start("--from", str(tmp_path / "w" / "savepoint"))
        made.finish()
        seen, outcomes = made.seen(), made.outcomes_of()
        assert {name: call.turns for name, call in seen.by_id.items() if call.turns != 1} == {}
        assert {name: call.posts for name, call in seen.by_id.items() if call.posts} == dict.fromkeys(
            set(made.expected) - sent, 1
        )
        assert set(outcomes) == set(made.expected)
        assert {name: rows for name, rows in outcomes.items() if len(rows) != 1} == {}
        assert {name for name, (row,) in outcomes.items() if row["status"] != "COMPLETED"} == {
            name for name in made.expected if name.startswith("failed")
        }
        assert {row["result"]["echo"]["from"] for (row,) in outcomes.values() if row["result"]} == {
            name for name in made.expected if not name.startswith("failed")
        }
