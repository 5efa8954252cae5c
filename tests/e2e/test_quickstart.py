"""docs/quickstart.md from its beginning to its end: the remote, the job, the kill, and what there is then.

Only the ports are other ones, so that nobody else's server is met, and what is installed already is not installed.
"""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reattach.models.request import parse_request
from reattach.runtime.config import load_config
from tests.packaging.layers import ROOT
from tests.packaging.pages import Block, blocks_of

PAGE = ROOT / "docs" / "quickstart.md"
CALLS = 5
PATIENCE_S = 300


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    # The server is the only one of the page's processes that does not end by itself.
    if (tmp_path / "server.pid").exists():
        os.kill(int((tmp_path / "server.pid").read_text()), 15)


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What a reader's shell does with a command, in an environment where the packages are."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    out = folder / "out"
    with out.open("w") as file:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
            stdout=file, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S, check=False, start_new_session=True,
        )  # fmt: skip
    done.stdout = out.read_text()
    return done


def perform(block: Block, folder: Path, port: int) -> str:
    """Do what a block of the page says, and return what is shown."""
    text = block.text.replace("8900", str(port))
    if block.language == "toml":
        (folder / "job.toml").write_text(text)
    elif block.language == "json":
        assert parse_request(text.strip(), message_bytes_max=1_000).agent in load_config(folder / "job.toml").agents
    elif text.startswith("pip install"):
        assert text == "pip install 'reattach[flink,agent]'"
    elif text.endswith("&"):
        # A shell reports what it has put into the background; here the number is needed, to end it.
        started = run(f"{text} echo $! > server.pid; until grep -q listening server.out; do sleep 0.05; done", folder)
        assert started.returncode == 0, started.stdout
    else:
        done = run(text, folder)
        # GNU's timeout kills itself with the same signal, and the shell may have made way for it.
        expected = (137, -9) if text.startswith("timeout -s KILL") else (0,)
        assert done.returncode in expected, done.stdout
        return done.stdout
    return ""


@pytest.mark.flink
@pytest.mark.slow
def test_the_page_works_from_its_beginning_to_its_end(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    shown = {}
    for block in blocks_of(PAGE):
        if block.text.endswith("&"):
            block = Block(block.path, block.language, block.text.removesuffix("&") + "> server.out 2>&1 &")
        shown[block.text.split("\n")[0]] = perform(block, folder, port)
    *outcomes, turns = shown["cat outcomes/part-*.jsonl"].splitlines()
    assert int(turns) == CALLS
    assert sorted(json.loads(outcome)["invocation_id"] for outcome in outcomes) == [f"order-{n}" for n in range(17, 22)]
    assert {json.loads(outcome)["status"] for outcome in outcomes} == {"COMPLETED"}
    (told,) = [text for command, text in shown.items() if command.startswith("reattach explain")]
    assert "completed" in told and "order-17" in told
    assert f"Five outcomes, and {CALLS}:" in PAGE.read_text()


def test_the_settle_time_of_the_page_is_the_default_one(tmp_path: Path) -> None:
    (config,) = [block.text for block in blocks_of(PAGE) if block.language == "toml"]
    plain = re.sub(r"^(submit|admission)\w+ = .*\n", "", config, flags=re.MULTILINE)
    assert plain.count("_ms = ") == 1
    (tmp_path / "job.toml").write_text(plain)
    settle_s = load_config(tmp_path / "job.toml").terms["writer"].settle_ms // 1_000
    assert f"{settle_s} seconds with the defaults" in config
