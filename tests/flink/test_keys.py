"""What PyFlink's public API does not offer, on a running job with two subtasks."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reattach.models.errors import ConfigError
from reattach.runtime.flink import keys
from tests.e2e.harness import Process, World, world

pytestmark = pytest.mark.flink
KEYS = [*(f"key {number}" for number in range(60)), '["a","b"]', "clé 😀", "ключ"]


def notes(path: Path, kind: str, pid: int) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if row["kind"] == kind and row["pid"] == pid]


def pids(path: Path) -> set[int]:
    return {json.loads(line)["pid"] for line in path.read_text().splitlines()} if path.exists() else set()


def start(made: World, path: Path, *more: str) -> int:
    """Start the job in a new process; give back its id once both subtasks have opened."""
    known = pids(path)
    arguments = [sys.executable, "-m", "tests.flink.switching", str(made.config), str(path), *more]
    made.job = Process(arguments, made.folder / "switching.out")
    opened: list[int] = made.until(
        lambda: [pid for pid in pids(path) - known if len(notes(path, "open", pid)) == 2], "both subtasks"
    )
    return opened[0]


def test_keys_are_switched_listed_and_woken_also_after_sigkill(tmp_path: Path) -> None:
    with world(tmp_path / "w") as made:
        path = tmp_path / "notes"
        first = start(made, path)
        assert made.job is not None
        assert "set python.execution-mode: thread" in made.job.text(), "process mode is refused before a job starts"
        opened = notes(path, "open", first)
        assert len({row["key"] for row in opened}) == 2, "a key of its own for each subtask"
        assert sorted(row["place"][2] for row in opened) == [0, 1]
        made.drop("keys", KEYS)
        for kind in ("visited", "fired"):
            made.until(lambda kind=kind: len(notes(path, kind, first)) == len(KEYS), kind)  # type: ignore[misc]
            rows = notes(path, kind, first)
            assert all(row["stored"] == row["key"] for row in rows), kind
            assert {row["key"] for row in rows} == set(KEYS)
        assert notes(path, "restored", first) == []
        before = set(made.completed())
        made.until(lambda: len(set(made.completed()) - before) >= 2, "a checkpoint")
        made.kill()
        newest = made.completed()[-1]
        second = start(made, path, str(newest))
        for kind in ("restored", "fired"):
            made.until(lambda kind=kind: len(notes(path, kind, second)) == len(KEYS), kind)  # type: ignore[misc]
            assert {row["key"]: row["stored"] for row in notes(path, kind, second)} == {key: key for key in KEYS}
        made.kill()


def test_what_another_flink_lacks_is_named_with_what_to_do() -> None:
    with (
        pytest.raises(ConfigError, match=r"no attribute 'nothing'; .*install apache-flink~=2\.3\.0"),
        keys._reaching_in(),
    ):
        object().nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_context_of_process_mode_and_a_stream_without_keys_are_refused() -> None:
    class Thread:
        def get_keyed_state_backend(self) -> None:
            return None

    with pytest.raises(ConfigError, match="set python.execution-mode: thread"):
        keys.KeyedBackend(object())
    with pytest.raises(ConfigError, match="key_by"):
        keys.KeyedBackend(Thread())
