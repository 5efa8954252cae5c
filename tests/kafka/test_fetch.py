"""`make kafka`: everything pinned, taken once, compared, and one line when the repository is out of reach."""

import hashlib
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.kafka import fetch
from tests.kafka.fetch import Jar, NotFetched, pinned
from tests.packaging.layers import ROOT, imports
from tests.packaging.test_servers import make

DATA = b"a jar"
JAR = Jar("broker", "org.example", "thing", "1.0", hashlib.sha256(DATA).hexdigest())
FETCH = "tests/kafka/fetch.py"


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A repository of Maven's layout that holds `JAR`, on loopback."""
    path = tmp_path / "repository" / "org/example/thing/1.0/thing-1.0.jar"
    path.parent.mkdir(parents=True)
    path.write_bytes(DATA)
    handler = partial(Quiet, directory=str(tmp_path / "repository"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: object = "-", size: object = "-") -> None:
        pass


def test_every_jar_is_pinned_once() -> None:
    jars = pinned()
    assert len({jar.path for jar in jars}) == len(jars)
    assert all(re.fullmatch(r"[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert [jar.artifact for jar in jars if jar.folder == "connector"] == ["flink-sql-connector-kafka"]
    assert {jar.folder for jar in jars} == {"connector", "broker"}


def test_the_documents_name_the_connector_that_is_pinned() -> None:
    (connector,) = (jar for jar in pinned() if jar.folder == "connector")
    for path in (ROOT / "docs" / "kafka.md", ROOT / "deploy" / "kafka" / "README.md"):
        assert f"{connector.group}:{connector.artifact}:{connector.version}" in path.read_text(), path.name


def test_a_jar_is_taken_once(tmp_path: Path, repository: str) -> None:
    fetch.fetch(JAR, tmp_path, repository)
    assert (tmp_path / JAR.path).read_bytes() == DATA
    fetch.fetch(JAR, tmp_path, "http://127.0.0.1:1")
    (tmp_path / JAR.path).write_bytes(b"half a j")
    fetch.fetch(JAR, tmp_path, repository)
    assert (tmp_path / JAR.path).read_bytes() == DATA


def test_another_jar_under_the_same_name_is_refused(tmp_path: Path, repository: str) -> None:
    other = Jar("broker", "org.example", "thing", "1.0", "0" * 64)
    with pytest.raises(NotFetched, match=r"thing-1\.0\.jar from .* pinned is 000"):
        fetch.fetch(other, tmp_path, repository)
    assert not (tmp_path / JAR.path).exists()


def test_what_is_fetched_is_not_fetched_again() -> None:
    made = make("kafka", "--dry-run")
    assert made.returncode == 0, made.stderr
    assert FETCH not in made.stdout


def test_a_repository_out_of_reach_is_told_in_one_line(tmp_path: Path) -> None:
    failed = make(f"KAFKA_JARS={tmp_path}", "kafka", MAVEN_REPOSITORY="http://127.0.0.1:1")
    assert failed.returncode == 2
    told = [line for line in failed.stderr.splitlines() if "***" not in line]
    assert len(told) == 1
    assert re.match(r"make: connector/.*\.jar cannot be fetched from http://127.* \(is it in reach\?\): ", told[0])
    assert not (tmp_path / ".reattach-fetched").exists()


def test_other_tests_need_no_kafka() -> None:
    """Who has no way to Maven runs every other folder."""
    assert FETCH not in make("test-only", "--dry-run", "--always-make").stdout
    for path in (ROOT / "tests").rglob("*.py"):
        if path.parent.name != "kafka":
            assert not [name for _, name in imports(path) if name.startswith("tests.kafka")], path
