"""What a host tells of itself: a remote that is down and comes back, checkpoints that nobody tells about."""

import json
from typing import Any

from reattach.runtime.flink.alarms import UNHEARD_S, Alarms


class Told:
    """Of an executor, what alarms look at."""

    unheard_s = 0.0

    def __init__(self) -> None:
        self.down: dict[str, str] = {}


def raised(alarms: Alarms) -> list[tuple[str, str]]:
    lines = [json.loads(line) for line in alarms.raised()]
    assert all(line["invocation_id"] == "" for line in lines)
    return [(line["kind"], line["message"]) for line in lines]


def test_a_breaker_is_told_once_with_its_cause_and_once_more_when_it_has_closed() -> None:
    told: Any = Told()
    alarms = Alarms(told)
    assert raised(alarms) == []
    told.down = {"writer": "ConnectError: Connection refused", "reader": "status 503"}
    (reader, why), (writer, other) = raised(alarms)
    assert reader == writer == "agent_down"
    assert why.startswith("reader: ") and "status 503" in why
    assert other.startswith("writer: ") and "Connection refused" in other
    assert raised(alarms) == []
    told.down = {"writer": "status 500"}
    ((kind, message),) = raised(alarms)
    assert kind == "agent_up" and message.startswith("reader: ")
    told.down = {"writer": "status 500", "reader": "no answer in time"}
    ((kind, message),) = raised(alarms)
    assert kind == "agent_down" and "no answer in time" in message


def test_silence_of_the_jobmanager_is_told_again_and_again() -> None:
    told: Any = Told()
    alarms = Alarms(told)
    for unheard_s, kinds in [
        (UNHEARD_S - 1, []),
        (UNHEARD_S, ["write_ahead_stalled"]),
        (UNHEARD_S + 1, []),
        (2 * UNHEARD_S + 1, ["write_ahead_stalled"]),
        (0.0, []),
        (UNHEARD_S, ["write_ahead_stalled"]),
    ]:
        told.unheard_s = unheard_s
        assert [kind for kind, _ in raised(alarms)] == kinds
