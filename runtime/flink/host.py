"""The Flink host: keyed state, durable timers and the pump, around the shared driver.

*How a call moves.* A request arrives on its key: the driver applies it to the thread's stored bytes,
the bytes are written back, the orders that follow go to the executor. The executor's facts come back
through the *pump*: one chain of processing-time timers per subtask that takes what has arrived,
switches the current key to each fact's own, applies it, and writes the outputs. Under the pump lies
a net: every key with a wake-up also has a durable timer of its own at or before that time, so a
fact that never comes cannot strand a call.

*What a crash leaves.* State and timers of the last completed checkpoint. `open` first ends the loop
of the previous incarnation (thread mode never calls `close`), then lists the restored keys; each is
taken over (`Restored`) in its own slot of `recovery_spread_ms`, by the pump, which hangs on the first
element or timer that comes: a checkpoint taken with calls in flight contains a timer of the pump.

The host decides nothing about a call. It keeps the order that safety rests on: store, then send.
"""

import heapq
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.state import ValueStateDescriptor

from reattach.adapters.contract import AgentConfig
from reattach.fsm.backoff import scatter
from reattach.models.codec import encode_entry
from reattach.models.effects import Hold
from reattach.models.errors import ConfigError, InvalidRequest
from reattach.models.events import Requested, Restored, ThreadEvent, TimeReached
from reattach.models.policy import SubmitAfter
from reattach.models.request import Request, parse_request
from reattach.runtime import incarnations, records
from reattach.runtime.config import check_agents
from reattach.runtime.driver import Applied, Driver
from reattach.runtime.executor import Executor
from reattach.runtime.flink.keys import KeyedBackend, parts_of

STATE: Final = "reattach"
JOURNAL: Final = OutputTag("reattach-journal", Types.PICKLED_BYTE_ARRAY())
PROGRESS: Final = OutputTag("reattach-progress", Types.STRING())
NOTICES: Final = OutputTag("reattach-notices", Types.STRING())
REJECTS: Final = OutputTag("reattach-rejects", Types.STRING())

PUMP_MS: Final = 3
PUMP_SLOW_MS: Final = 20
FACTS_PER_PUMP: Final = 1_000
RECOVERIES_PER_PUMP: Final = 500

Output = Any


class Host:
    """Drives calls from inside a KeyedProcessFunction whose stream is keyed by `request_key`.

    Call `open` from the function's `open`, and yield from `process` and `on_timer` in its
    `process_element` and `on_timer`. What they yield is an outcome as JSON text, or a pair of a side
    output's tag and a value. Timers of the function's own are possible: `on_timer` ignores them.

    Args:
        agents: by name.
        concurrency_max, streams_max: see `Executor`.
        journal: yield journal entries.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        *,
        concurrency_max: int = 256,
        streams_max: int = 1024,
        journal: bool = True,
    ) -> None:
        for agent in agents.values():
            if agent.policy.submit_after is SubmitAfter.CHECKPOINT:
                raise ConfigError(
                    f"agents.{agent.name}.policy.submit_after: the Flink host cannot write ahead yet; use 'probe'"
                )
        self._agents = dict(agents)
        self._concurrency_max = concurrency_max
        self._streams_max = streams_max
        self._journal = journal

    def open(self, context: Any) -> None:
        """Begin an incarnation: end the previous one's sends, then look at what was restored.

        Raises:
            ConfigError: process mode, an unknown PyFlink, or an adapter's own complaint.
        """
        self._backend = KeyedBackend(context)
        self._state = context.get_state(ValueStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))
        self._executor = incarnations.take_over(_place(context), self._make_executor)
        self._now_ms = 0
        opened_ms = self._now()
        self._driver = Driver(
            check_agents(self._agents),
            incarnation=uuid.uuid4().hex,
            opened_ms=opened_ms,
            journal=self._journal,
        )
        self._timers: dict[str, int] = {}
        self._pump_at = 0
        self._pump_ms = PUMP_MS
        self._foreign: set[str] = set()
        self._recoveries: list[tuple[int, str]] = []
        for key in self._backend.keys(STATE):
            self._foreign.add(key)
            spread_ms = self._restored_agent(key).policy.recovery_spread_ms
            self._recoveries.append((opened_ms + scatter(key, spread_ms), key))
        heapq.heapify(self._recoveries)

    def process(self, value: str | bytes | Request, context: Any) -> Iterator[Output]:
        """Take one request: a line of JSON, or one that is parsed already."""
        request = value if isinstance(value, Request) else self._parse(value)
        if isinstance(request, Request) and not self._driver.knows(request.agent):
            request = f"agent: no agent named {request.agent!r} is configured (known: {', '.join(self._agents)})"
        if not isinstance(request, Request):
            yield REJECTS, records.reject_json(value, request)
            return
        yield from self._apply(context.get_current_key(), Requested(request), context)
        self._arm(context)

    def on_timer(self, timestamp: int, context: Any) -> Iterator[Output]:
        """Serve the pump, and the key whose timer this is."""
        mine = context.get_current_key()
        known = self._timers.get(mine)
        if known is None or known <= timestamp:
            self._timers.pop(mine, None)
            # A restored key waits for its slot; the pump, armed below, comes to it.
            if mine not in self._foreign:
                yield from self._apply(mine, TimeReached(), context)
        if self._pump_at and timestamp >= self._pump_at:
            self._pump_at = 0
            yield from self._pump(context)
            self._backend.switch_to(mine)
        self._arm(context)

    def close(self) -> None:
        """End this incarnation's sends. Flink's thread mode does not call it; users may."""
        self._executor.close()

    def _make_executor(self) -> Executor:
        return Executor(self._agents, concurrency_max=self._concurrency_max, streams_max=self._streams_max)

    def _now(self) -> int:
        self._now_ms = max(self._now_ms, time.time_ns() // 1_000_000)
        return self._now_ms

    def _restored_agent(self, key: str) -> AgentConfig:
        name = parts_of(key)[0]
        if name not in self._agents:
            raise ConfigError(
                f"agents.{name}: the restored state holds calls of this agent, which is not configured any more; "
                "put it back until they have ended"
            )
        return self._agents[name]

    def _parse(self, line: str | bytes) -> Request | str:
        try:
            most = max(agent.policy.message_bytes_max for agent in self._agents.values())
            request = parse_request(line, message_bytes_max=most)
            agent = self._agents.get(request.agent)
            if agent is not None and len(request.message) > agent.policy.message_bytes_max:
                return f"message: {len(request.message)} bytes, the limit is {agent.policy.message_bytes_max}"
        except InvalidRequest as error:
            return str(error)
        return request

    def _pump(self, context: Any) -> Iterator[Output]:
        facts = self._executor.drain(FACTS_PER_PUMP)
        for key, fact in facts:
            self._backend.switch_to(key)
            yield from self._apply(key, fact, context)
        now, recovered = self._now(), 0
        while self._recoveries and self._recoveries[0][0] <= now and recovered < RECOVERIES_PER_PUMP:
            _, key = heapq.heappop(self._recoveries)
            if key in self._foreign:
                recovered += 1
                self._backend.switch_to(key)
                yield from self._apply(key, Restored(), context)
        self._pump_ms = PUMP_MS if facts or recovered else min(PUMP_SLOW_MS, self._pump_ms + 1)

    def _arm(self, context: Any) -> None:
        """Keep the pump going while anything may still come."""
        if not self._pump_at and (self._executor.busy or self._recoveries):
            self._pump_at = self._now() + self._pump_ms
            context.timer_service().register_processing_time_timer(self._pump_at)

    def _apply(self, key: str, event: ThreadEvent, context: Any) -> Iterator[Output]:
        """Apply one fact to the current key's thread: store, set the timer, order, and yield outputs."""
        stored = self._state.value()
        if stored is None and not isinstance(event, Requested):
            self._foreign.discard(key)
            return
        applied = self._driver.apply(parts_of(key), stored, event, self._now())
        self._foreign.discard(key)
        if applied.changed:
            if applied.stored is None:
                self._state.clear()
            else:
                self._state.update(applied.stored)
        self._set_timer(key, applied.wake_at_ms, context)
        for effect, invocation in applied.orders:
            assert not isinstance(effect, Hold), "refused when the host was made"
            self._executor.order(key, effect, invocation)
        yield from self._outputs(applied)

    def _set_timer(self, key: str, wake_at_ms: int, context: Any) -> None:
        if not wake_at_ms:
            return
        known = self._timers.get(key)
        # An earlier timer is enough: when it fires, the next one is set.
        if known is None or wake_at_ms < known:
            self._timers[key] = wake_at_ms
            context.timer_service().register_processing_time_timer(wake_at_ms)

    def _outputs(self, applied: Applied) -> Iterator[Output]:
        for outcome in applied.outcomes:
            yield records.outcome_json(outcome)
        for entry in applied.journal:
            yield JOURNAL, encode_entry(entry)
        for report in applied.reports:
            yield PROGRESS, records.report_json(report)
        for notice in applied.notices:
            yield NOTICES, records.notice_json(notice)


def _place(context: Any) -> tuple[str, str, int]:
    java = context._runtime_context
    return (
        str(java.getJobInfo().getJobId().toString()),
        str(java.getOperatorUniqueID()),
        int(java.getTaskInfo().getIndexOfThisSubtask()),
    )
