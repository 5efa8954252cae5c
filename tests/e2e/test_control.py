"""Orders of people to a real Flink job against LangGraph's own server, counted by what its graph really did."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reattach.runtime.proxy.faults import Exchange, Hold, Rule
from reattach.runtime.proxy.proxy import FaultProxy
from reattach.runtime.run.inbox import visible_files
from tests.e2e.harness import World, assert_each_once, world
from tests.servers.job import RealWorld
from tests.servers.running import Running, langgraph

pytestmark = [pytest.mark.flink, pytest.mark.slow]
# A POST that is held back is neither given up before the kill, nor late when it lands, however slow the machine is.
POLICY = {"submit_timeout_ms": 20_000, "admission_ms": 1_000}


class Controlled(RealWorld):
    """A job with a control folder and notices."""

    def __init__(self, folder: Path, server: Running, url: str, **job: Any) -> None:
        table = {"protocol": "langgraph", "url": url}
        options = {"assistant": "agent", "result": "messages.-1.content"}
        folders = {name: str(folder / name) for name in ("control", "notices")}
        super().__init__(
            folder, server, {"agent": {**table, "options": options}}, policy=POLICY, job={**folders, **job}
        )
        self.server_under_test = server

    def say(self, **messages: str) -> None:
        now = time.time_ns() // 1_000_000
        rows = [
            {"invocation_id": name, "agent": "agent", "message": text, "requested_at_ms": now}
            for name, text in messages.items()
        ]
        self.drop("-".join(messages), [json.dumps(row) for row in rows])
        self.expected += list(messages)

    def order(self, *words: str) -> Path:
        """`reattach control`; returns the file that it wrote."""
        arguments = [sys.executable, "-m", "reattach", "control", str(self.config), *words]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.splitlines()[0])

    def notices(self, kind: str) -> list[dict[str, Any]]:
        lines = [line for path in visible_files(self.folder / "notices") for line in path.read_text().splitlines()]
        return [notice for notice in map(json.loads, lines) if notice["kind"] == kind]

    def asked(self, name: str) -> str:
        """Wait for a committed notice that this call waits for an answer; returns the question's id."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self.notices("awaiting_input") if one["invocation_id"] == name]

        return str(self.until(found, f"the question of {name}")[0]["message"])

    def outcome(self, name: str) -> dict[str, Any]:
        rows = self.until(lambda: self.outcomes_of().get(name), f"the outcome of {name}")
        assert len(rows) == 1
        return dict(rows[0])

    def texts(self, kind: str) -> list[str]:
        return [str(one["text"]) for one in self.server_under_test.executions(kind)]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., tuple[Controlled, FaultProxy]]]:
    """A job, LangGraph's server, and a proxy between them."""
    with langgraph(tmp_path / "server") as server, FaultProxy(server.url) as proxy:
        made: list[Controlled] = []

        def build(**job: Any) -> tuple[Controlled, FaultProxy]:
            made.append(Controlled(tmp_path / "w", server, proxy.url, **job))
            return made[-1], proxy

        yield build
        for world in made:
            world.close()


Make = Callable[..., tuple[Controlled, FaultProxy]]


def is_answer(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.path.endswith("/runs") and b'"resume"' in exchange.body


def is_cancel(exchange: Exchange) -> bool:
    return exchange.method == "POST" and exchange.path.split("?")[0].endswith("/cancel")


def test_a_running_call_is_cancelled_and_strangers_are_answered(make: Make) -> None:
    """Orders do not keep the job going: it ends by itself."""
    made, proxy = make()
    made.say(slow="slow @120s", quick="quick @100ms")
    made.start()
    made.until(lambda: len(made.texts("message")) == 2, "both runs")
    assert made.outcome("quick")["status"] == "COMPLETED"
    made.order("cancel", "nobody")
    made.order("cancel", "quick")
    (unknown,) = made.until(lambda: made.notices("refused"), "the answer about nobody")
    assert (unknown["invocation_id"], unknown["message"]) == ("nobody", "CancelOrdered: no such call on this thread")
    (late,) = made.until(lambda: made.notices("late"), "the answer about an ended call")
    assert late["invocation_id"] == "quick"
    assert "too late, the call has ended (COMPLETED)" in late["message"]
    made.order("cancel", "slow", "--agent", "agent", "--generation", "1")
    made.finish()
    failure = made.outcome("slow")["failure"]
    assert (failure["code"], failure["remote"]) == ("cancelled", "cancelled")
    assert sorted(made.texts("message")) == ["quick @100ms", "slow @120s"]
    assert len([one for one in proxy.exchanges if is_cancel(one)]) == 1


def answered_once(made: Controlled, proxy: FaultProxy) -> None:
    outcome = made.outcome("talk")
    assert outcome["status"] == "COMPLETED", outcome
    assert outcome["result"].endswith("-> left"), outcome
    assert made.texts("message").count("talk @100ms ?ask") == 1
    assert made.texts("answer") == ["left"]


def until_held(made: Controlled, rule: Rule) -> None:
    made.until(lambda: len(rule.hits) == rule.times, "the POST of the answer")


@pytest.mark.parametrize("lands", [False, True], ids=["never-lands", "lands-after-the-restart"])
def test_killed_after_an_answer_was_read_and_before_its_effect(make: Make, lands: bool) -> None:
    """Rare checkpoints, so that the state forgets the order, and it is read again."""
    made, proxy = make(checkpoint_interval_ms=4_000)
    held = proxy.rule(Hold(), match=is_answer, times=1)
    made.say(talk="talk @100ms ?ask")
    made.start()
    question = made.asked("talk")
    made.order("respond", "talk", "--question", question, "--answer", '"left"')
    until_held(made, held)
    made.kill()
    assert made.texts("answer") == []
    seen = len(proxy.exchanges)
    made.start()
    if lands:
        made.until(lambda: len(proxy.exchanges) > seen, "the first request of the next life")
        held.release()
    made.finish()
    answered_once(made, proxy)
    answers = [one for one in proxy.exchanges if is_answer(one)]
    print([one.statuses for one in answers])
    assert len([one for one in answers if 200 in one.statuses]) == 1
    assert lands == (200 in answers[0].statuses)


def test_the_same_orders_delivered_again_do_nothing_again(make: Make) -> None:
    made, proxy = make(idle_stop=False)
    made.say(talk="talk @100ms ?ask", slow="slow @120s", last="last @100ms")
    made.start()
    question = made.asked("talk")
    files = [
        made.order("respond", "talk", "--question", question, "--answer", '"left"'),
        made.order("cancel", "slow"),
    ]

    def again(name: str) -> None:
        for number, path in enumerate(files):
            aside = path.with_name(f".{name}-{number}")
            shutil.copy(path, aside)
            aside.rename(path.with_name(f"{name}-{number}.jsonl"))

    again("at-once")
    answered_once(made, proxy)
    assert made.outcome("slow")["failure"]["code"] == "cancelled"
    again("later")
    # The answer about the call that has ended tells that the copies have been read.
    made.until(lambda: [one for one in made.notices("late") if one["invocation_id"] == "talk"], "the late answer")
    made.kill()
    made.start()
    again("after-a-restart")
    count = len(made.notices("late"))
    made.until(lambda: len(made.notices("late")) > count, "the answers of the next life")
    made.say(end="end @100ms")
    assert made.outcome("end")["status"] == "COMPLETED"
    answered_once(made, proxy)
    assert len([one for one in proxy.exchanges if is_answer(one)]) == 1
    assert len([one for one in proxy.exchanges if is_cancel(one)]) == 1
    assert made.notices("refused") == []
    assert {one["invocation_id"] for one in made.notices("late")} == {"talk"}


def newest(made: World) -> int:
    """The number of the newest completed checkpoint."""
    return max((int(path.name.removeprefix("chk-")) for path in made.completed()), default=0)


def test_a_job_gets_a_control_folder_later_and_keeps_its_calls(tmp_path: Path) -> None:
    """Its calls go on from the checkpoint of the job that had one input; taken away again, the folder is missed."""
    with world(tmp_path / "w", latency="8s-9s", job={"checkpoint_interval_ms": 200}) as made:
        made.ask(5)
        made.start()
        made.until(lambda: made.kinds()["turn"] == 5, "all calls running")
        seen = newest(made)
        made.until(lambda: newest(made) > seen + 1, "a checkpoint with them")
        made.kill()
        without = made.config.read_text()
        made.config.write_text(without.replace("[job]\n", f"[job]\ncontrol = {json.dumps(str(tmp_path / 'orders'))}\n"))
        job = made.start()
        made.finish()
        assert job.text().startswith("resuming from ")
        assert_each_once(made)
        made.config.write_text(without)
        made.ask(1, "more")
        job = made.start()
        made.until(lambda: job.child.poll() is not None, "the end")
        assert job.child.returncode == 1
        assert "put control, journal, notices or progress back into [job]" in job.text().strip().splitlines()[-1]
