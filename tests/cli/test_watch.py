"""`reattach watch`: a journal that grows, Flink's REST interface, a terminal and none; the commands of docs/see.md."""

import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reattach.models.answers import Absent, Phase
from reattach.models.events import ProbeAnswered, Restored
from reattach.runtime.cli import watch
from reattach.runtime.cli.main import main
from tests.fsm.making import BLIND, terms
from tests.packaging.layers import ROOT
from tests.replay.making import Host, lines_of

PAGE = (ROOT / "docs" / "see.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (reattach watch .+)$", PAGE, re.MULTILINE)
ID = "2c227682fddac42ebd88f137e9083964"
Between = Callable[..., None]


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    """Sets what happens between two looks, one after the other; then somebody presses Ctrl-C."""

    def set_to(*happens: Callable[[], object]) -> None:
        left = list(happens)

        def wait(_seconds: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr(watch, "wait", wait)

    return set_to


@pytest.fixture
def parked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A journal with a parked call, order-17, in the folder that the page names."""
    host = Host(terms(BLIND))
    host.ask("order-17")
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "part-0.journal").write_bytes(lines_of(host.entries))
    monkeypatch.chdir(tmp_path)
    return host


def done() -> bytes:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(Restored())
    host.probe(Phase.COMPLETED, b'"done"')
    return lines_of(host.entries)


class Flink:
    """A REST interface with one job, as far as it is asked."""

    def __init__(self) -> None:
        self.state = "RUNNING"
        self.jobs = [ID]
        self.down = False
        self.values = {"live_submitted_parked": 1, "live_running_watching": 3, "outcomes_completed": 5}
        flink = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(flink.answer(self.path)).encode()
                self.send_response(500 if flink.down else 200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True, args=(0.01,)).start()

    def answer(self, path: str) -> Any:
        path, _, query = path.partition("?")
        if path == "/jobs/overview":
            return {"jobs": [{"jid": job, "name": "calls", "state": self.state} for job in self.jobs]}
        if path.endswith("/checkpoints"):
            return {"counts": {"completed": 2}}
        if path.endswith("/exceptions"):
            return {}
        if path.endswith("/subtasks/metrics"):
            names = [f"calls.reattach.{one}" for one in self.values]
            if query:
                names = query.removeprefix("agg=sum&get=").split(",")
            return [{"id": one, "sum": float(self.values.get(one.rpartition(".")[2], 0))} for one in names]
        return {"state": self.state, "vertices": [{"id": "v", "status": self.state}]}


@pytest.fixture
def flink() -> Iterator[Flink]:
    made = Flink()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_page_runs(
    command: str, parked: Host, flink: Flink, between: Between, capsys: pytest.CaptureFixture[str]
) -> None:
    between()
    words = [word.replace("http://127.0.0.1:8081", flink.url) for word in shlex.split(command)[1:]]
    assert main(words) == (0 if "--once" in words else 130)
    out, err = capsys.readouterr()
    assert err in ("", "stopped\n")
    assert "submitted.parked" in out
    assert ("order-17" in out) == ("--rest" not in words)
    assert "\x1b" not in out
    if "--json" in words:
        assert json.loads(out)["counts"] == {"submitted.parked": 1}


def test_what_is_parked_comes_with_the_orders(parked: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "journal", "--once", "--config", "my job.toml"]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("  order-17  submitted.parked for ")]
    assert "not restored from this job's own" in line
    for order in ("cancel", "resubmit", "abandon"):
        assert f"    reattach control 'my job.toml' {order} order-17 --agent agent --thread t --generation 1\n" in out


def test_a_journal_that_grows(parked: Host, between: Between, capsys: pytest.CaptureFixture[str]) -> None:
    """A new file, then one that has grown, then nothing: a line for each change, and none where nothing changed."""
    running = Host()
    running.now_ms += 20_000
    running.ask("call-2")
    running.on(ProbeAnswered(running.ident, Absent("")))

    def grow() -> None:
        with Path("journal/part-0.journal").open("ab") as file:
            file.write(lines_of(running.entries))

    between(lambda: Path("journal/part-1.journal").write_bytes(done()), grow, lambda: None)
    assert main(["watch", "journal"]) == 130
    lines = [line for line in capsys.readouterr().out.splitlines() if " UTC: " in line]
    told = [line.partition(" UTC: ")[2].partition(" · oldest")[0] for line in lines]
    assert [re.sub(r" · [\d.]+ outcomes/s", "", one) for one in told] == [
        "submitted.parked 1",
        "submitted.parked 1 · completed 1",
        "submitted.sending 1 · submitted.parked 1 · completed 1",
    ]
    assert "outcomes/s" in told[1]
    assert all("oldest: order-17, for " in line for line in lines)


def test_a_call_that_waits_no_longer_is_not_asked_about(
    parked: Host, between: Between, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(parked.entries)
    from reattach.models.events import AbandonOrdered

    parked.on(AbandonOrdered("order-17", 1))
    more = lines_of(parked.entries[before:])
    between(lambda: Path("journal/part-1.journal").write_bytes(more))
    assert main(["watch", "journal", "--json"]) == 130
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert [one["invocation_id"] for one in first["people"]] == ["order-17"]
    assert {option["order"] for option in first["people"][0]["options"]} >= {"cancel", "abandon"}
    assert (second["people"], second["oldest"], second["counts"]) == ([], [], {"failed": 1})


def test_on_a_terminal(
    parked: Host, between: Between, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("LINES", "60")
    between(lambda: Path("journal/part-1.journal").write_bytes(done()))
    assert main(["watch", "journal"]) == 130
    out = capsys.readouterr().out
    assert "\x1b[?25l" in out and out.rindex("\x1b[?25h") > out.rindex("\x1b[?25l"), "the cursor is back"
    assert "Waits for people" in out and "\x1b[33msubmitted.parked" in out and "COMPLETED 1" in out


def test_a_job_ends_and_its_interface_fails(flink: Flink, between: Between, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        flink.down = True

    def end() -> None:
        flink.down, flink.state, flink.values["outcomes_completed"] = False, "CANCELED", 9

    between(fail, end)
    assert main(["watch", "--rest", flink.url, "--json"]) == 0
    first, failed, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["counts"] == {"submitted.parked": 1, "running.watching": 3, "completed": 5}
    assert first["outcomes_per_s"] is None
    assert failed["counts"] == first["counts"] and failed["notes"] == ["Flink's REST interface does not answer"]
    assert last["state"] == "CANCELED" and last["counts"]["completed"] == 9
    assert last["outcomes_per_s"] > 0


def test_bad_input_gets_one_line(
    tmp_path: Path, flink: Flink, between: Between, capsys: pytest.CaptureFixture[str]
) -> None:
    other, folder = tmp_path / "notes.txt", tmp_path / "folder"
    other.write_bytes(b"hello\n")
    folder.mkdir()
    between()

    def said(*arguments: str) -> str:
        assert main(["watch", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
        return err

    assert said() == said(str(folder), "--rest", flink.url) == "error: name a JOURNAL or --rest URL, one of the two\n"
    assert said(str(folder), "--job", ID) == "error: --job belongs to --rest\n"
    assert said(str(other)).startswith(
        f"error: {other}, line 1 (offset 0): no journal entry: not base64; name what a job"
    )
    assert said(str(folder), "--once").startswith("error: no entry yet: a job writes its journal with its completed")
    assert re.fullmatch(
        r"error: --rest http://127.0.0.1:9: no answer of .*refused.*\n", said("--rest", "http://127.0.0.1:9")
    )
    assert said("--rest", "nowhere").startswith(
        "error: --rest nowhere: no answer of Flink's REST interface (unknown url"
    )
    assert "no job x there; there are: " + ID in said("--rest", flink.url, "--job", "x")
    flink.jobs = [ID, "other"]
    assert "several jobs run there; name one with --job: " in said("--rest", flink.url)
    flink.state = "FINISHED"
    assert "no job that runs there" in said("--rest", flink.url)
    assert main(["watch", str(folder)]) == 130
    assert "no entry yet" in capsys.readouterr().out, "a job that has just begun is waited for"
