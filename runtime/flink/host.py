"""The Flink host: keyed state, durable timers and the pump, around the shared driver.

*How a call moves.* A request arrives on its key: the driver applies it to the thread's stored bytes,
the bytes are written back, the orders that follow go to the executor. The executor's facts come back
through the *pump*: one chain of processing-time timers per subtask that takes what has arrived,
switches the current key to each fact's own, applies it, and writes the outputs. Under the pump lies
a net: every key with a wake-up also has a durable timer of its own at or before that time, so a
fact that never comes cannot strand a call.

*What a crash leaves.* State and timers of the last completed checkpoint. `open` first ends the loop
of the previous incarnation (thread mode never calls `close`), then lists the restored keys and sets
the pump going; each key is taken over (`Restored`) in its own slot of `recovery_spread_ms`, or before
anything else that comes for it.

*The pump's key.* The pump's timers hang on a key of their own that belongs to no thread, so that a
timer says by its key alone whose it is.

The host decides nothing about a call. It keeps the order that safety rests on: store, then send.
"""

import heapq
import time
import uuid
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyflink.common import Types
from pyflink.datastream import OutputTag
from pyflink.datastream.state import ValueStateDescriptor

from reattach.adapters.contract import AgentConfig
from reattach.fsm.backoff import scatter
from reattach.models.codec import encode_entry
from reattach.models.control import Order
from reattach.models.errors import ConfigError, InvalidRequest, ReattachError
from reattach.models.events import Ordered, Requested, Restored, ThreadEvent, TimeReached
from reattach.models.identity import request_key
from reattach.models.request import Request
from reattach.runtime import incarnations, records
from reattach.runtime.clock import SteadyClock
from reattach.runtime.config import check_agents
from reattach.runtime.driver import Applied, Driver
from reattach.runtime.executor import Executor
from reattach.runtime.flink.alarms import Alarms
from reattach.runtime.flink.inputs import read_request
from reattach.runtime.flink.jobmanager import FlinkJobManager
from reattach.runtime.flink.keys import KeyedBackend, key_of, parts_of
from reattach.runtime.flink.metrics import Metrics
from reattach.runtime.orders import read_order

STATE: Final = "reattach"
JOURNAL: Final = OutputTag("reattach-journal", Types.PICKLED_BYTE_ARRAY())
PROGRESS: Final = OutputTag("reattach-progress", Types.STRING())
NOTICES: Final = OutputTag("reattach-notices", Types.STRING())
REJECTS: Final = OutputTag("reattach-rejects", Types.STRING())

PUMP_KEY: Final = "reattach pump "
# When much comes in, when little has, and when nothing has for a while: a round costs as much as some steps.
PUMP_MS: Final = 3
PUMP_FAST_MS: Final = 1
PUMP_FAST_ROUNDS: Final = 3
PUMP_SLOW_MS: Final = 20
FEW_FACTS: Final = 4
FACTS_PER_PUMP: Final = 1_000
RECOVERIES_PER_PUMP: Final = 500
# Timers beyond it (the ends of tombstones) are many and seldom replaced: not worth remembering.
REMEMBERED_MS: Final = 10 * 60_000

Output = Any


class StoodStill(ReattachError):
    """This incarnation may have been replaced without knowing it."""


class LoopEnded(ReattachError):
    """The thread that sends and hears for this incarnation is gone."""


class Host:
    """Drives calls from inside a KeyedProcessFunction whose stream is keyed by `request_key`.

    Call `open` from the function's `open`, and yield from `process` and `on_timer` in its
    `process_element` and `on_timer`, and from `control` where a second input has people's orders. What
    they yield is an outcome as JSON text, or a pair of a side output's tag and a value. Timers of the
    function's own are possible: `on_timer` ignores them. So is keyed state of its own, but not between
    two outputs of one call: the current key is then whichever thread the output comes from.

    Args:
        agents: by name.
        concurrency_max, streams_max, backlog_max: see `Executor`.
        journal: yield journal entries.
        lineage: this job is only ever started from the latest checkpoint of its last run. For agents that write
            ahead: a call that such a checkpoint does not show as held was never sent, however old its request.
        rest_url: base URL of the JobManager's REST interface, for agents that write ahead; "" for what the worker's
            configuration says.
    """

    def __init__(
        self,
        agents: Mapping[str, AgentConfig],
        *,
        concurrency_max: int = 256,
        streams_max: int = 1024,
        backlog_max: int = 10_000,
        journal: bool = True,
        lineage: bool = False,
        rest_url: str = "",
    ) -> None:
        self._rest_url = rest_url
        self._lineage = lineage
        self._agents = dict(agents)
        self._limits = {name: agent.policy.message_bytes_max for name, agent in agents.items()}
        self._concurrency_max = concurrency_max
        self._streams_max = streams_max
        self._backlog_max = backlog_max
        self._journal = journal

    def open(self, context: Any) -> None:
        """Begin an incarnation: end the previous one's sends, then look at what was restored.

        Raises:
            ConfigError: process mode, an unknown PyFlink, or an adapter's own complaint.
            StillSending: the previous one cannot be ended; the next attempt may succeed.
        """
        self._backend = KeyedBackend(context)
        self._state = context.get_state(ValueStateDescriptor(STATE, Types.PICKLED_BYTE_ARRAY()))
        terms = check_agents(self._agents)
        self._writes_ahead = any(one.writes_ahead for one in terms.values())
        self._executor = incarnations.take_over(self._backend.place(), self._make_executor)
        # A job that is cancelled drops this object, and nobody would end the loop.
        weakref.finalize(self, self._executor.abandon)
        self._clock = SteadyClock()
        self._metrics = Metrics(self._backend.metric_group(), self._backend.histogram)
        opened_ms = self._clock.now_ms()
        self._driver = Driver(
            terms,
            incarnation=uuid.uuid4().hex,
            opened_ms=opened_ms,
            lineage=self._lineage,
            journal=self._journal,
        )
        self._timers: dict[str, int] = {}
        self._pump_key = self._backend.own_key(PUMP_KEY)
        self._pump_at = 0
        self._pump_ms = PUMP_MS
        self._alarms = Alarms(self._executor)
        self._foreign = set(self._backend.keys(STATE))
        self._recoveries = [(opened_ms + self._slot_ms(key), key) for key in self._foreign]
        heapq.heapify(self._recoveries)
        self._arm("")

    def process(self, value: str | bytes | Request, context: Any) -> Iterator[Output]:
        """Take one request: a line of JSON, or one that is parsed already.

        Pauses while as many orders wait as `backlog_max` allows, which Flink shows as backpressure.

        Raises:
            ConfigError: the stream is not keyed by `request_key_of`.
        """
        self._check_fit()
        self._executor.wait_for_room()
        mine = context.get_current_key()
        request = read_request(value, self._agents)
        if isinstance(request, Request):
            if key_of(*request_key(request)) != mine:
                raise ConfigError(
                    "the stream has other keys than reattach's: use key_by(request_key_of, Types.STRING())"
                )
            yield from self._take(mine, Requested(request))
        else:
            self._metrics.rejected()
            yield REJECTS, records.reject_json(value, request)
        self._arm(mine)

    def control(self, value: str | bytes | Order, context: Any) -> Iterator[Output]:
        """Take one order of a person: a line of JSON, or one that is parsed already; from a second, connected stream.

        Raises:
            ConfigError: the stream is not keyed by `order_key_of`.
        """
        self._check_fit()
        mine = context.get_current_key()
        try:
            order = read_order(value, self._limits)
        except InvalidRequest as error:
            self._metrics.rejected()
            yield REJECTS, records.reject_json(value, str(error))
        else:
            if key_of(order.agent, order.thread) != mine:
                raise ConfigError("the orders have other keys than reattach's: use order_key_of as their key selector")
            yield from self._take(mine, order.event)
        self._arm(mine)

    def on_timer(self, timestamp: int, context: Any) -> Iterator[Output]:
        """Serve the pump, or the key whose timer this is."""
        self._check_fit()
        mine = context.get_current_key()
        if mine == self._pump_key:
            if self._pump_at and timestamp >= self._pump_at:
                yield from self._pump()
        # The pump of an earlier incarnation may have had another key.
        elif not mine.startswith(PUMP_KEY) and self._timers.get(mine, timestamp) <= timestamp:
            self._timers.pop(mine, None)
            # A restored key waits for its slot.
            if mine not in self._foreign:
                yield from self._apply(mine, TimeReached())
        self._arm(mine)

    def _check_fit(self) -> None:
        """Refuse to go on as an incarnation that may have been replaced, or cannot send any more.

        Raises:
            StoodStill, LoopEnded: the task is to start anew.
        """
        if self._executor.ended:
            raise LoopEnded("the loop that carries requests out has ended, and the task starts anew: see its log")
        if not self._executor.awake:
            raise StoodStill(
                "this process stood still for longer than half of overlap_ms, and another task may have taken its "
                "place: it starts anew"
            )

    def close(self) -> None:
        """End this incarnation's sends. Flink's thread mode does not call it; users may."""
        self._executor.close()

    def _make_executor(self) -> Executor:
        return Executor(
            self._agents,
            concurrency_max=self._concurrency_max,
            streams_max=self._streams_max,
            backlog_max=self._backlog_max,
            job_manager=self._job_manager() if self._writes_ahead else None,
        )

    def _job_manager(self) -> FlinkJobManager:
        url = self._rest_url or self._backend.rest_url()
        if not url:
            raise ConfigError(
                "submit_after = 'checkpoint': this worker's configuration does not say where the JobManager's REST "
                "interface is; set rest.address and rest.port, or give Host(rest_url=...)"
            )
        return FlinkJobManager(url, self._backend.task())

    def _slot_ms(self, key: str) -> int:
        """How long after the opening a restored key is taken over."""
        name = parts_of(key)[0]
        if name not in self._agents:
            raise ConfigError(
                f"agents.{name}: the restored state holds calls of this agent, which is not configured any more; "
                "put it back until they have ended"
            )
        return scatter(key, self._agents[name].policy.recovery_spread_ms)

    def _pump(self) -> Iterator[Output]:
        self._metrics.pumped(time.time_ns() // 1_000_000 - self._pump_at)
        self._pump_at = 0
        facts = self._executor.drain(FACTS_PER_PUMP)
        for key, fact, at_s in facts:
            self._metrics.answered(time.monotonic() - at_s)
            self._backend.switch_to(key)
            yield from self._apply(key, fact)
        now, recovered = self._clock.now_ms(), 0
        due = RECOVERIES_PER_PUMP if self._executor.room else 0
        while self._recoveries and self._recoveries[0][0] <= now and recovered < due:
            _, key = heapq.heappop(self._recoveries)
            if key in self._foreign:
                recovered += 1
                self._backend.switch_to(key)
                yield from self._apply(key, Restored())
        if len(facts) + recovered > FEW_FACTS:
            self._pump_ms = PUMP_MS
        elif facts or recovered:
            # What follows from it is often there at once.
            self._pump_ms = PUMP_FAST_MS - PUMP_FAST_ROUNDS
        else:
            self._pump_ms = min(PUMP_SLOW_MS, self._pump_ms + 1)
        for line in self._alarms.raised():
            yield NOTICES, line

    def _arm(self, mine: str) -> None:
        """Keep the pump going while anything may still come, and make `mine` the current key again."""
        if not self._pump_at and (self._executor.busy or self._recoveries):
            # The wall clock's time, even where ours goes on ahead of it: the pump must not wait for it.
            self._pump_at = time.time_ns() // 1_000_000 + max(PUMP_FAST_MS, self._pump_ms)
            self._backend.switch_to(self._pump_key)
            self._backend.timers.register_processing_time_timer(self._pump_at)
            if mine:
                self._backend.switch_to(mine)
        elif mine == self._pump_key:
            self._backend.switch_to(mine)
        if not self._pump_at or self._metrics.due(self._clock.now_ms()):
            # Without a pump to come this is the last time for a while.
            self._metrics.hand_over(self._clock.now_ms(), self._levels())

    def _levels(self) -> dict[str, int]:
        return {
            "in_flight": self._executor.in_flight,
            "backlog": self._executor.backlog,
            "facts_waiting": self._executor.pending,
            "agents_down": len(self._executor.down),
            "recoveries_waiting": len(self._foreign),
        }

    def _take(self, key: str, event: ThreadEvent) -> Iterator[Output]:
        """Apply what came in for the current key, which may wait to be taken over still."""
        if key in self._foreign:
            yield from self._apply(key, Restored())
        yield from self._apply(key, event)

    def _apply(self, key: str, event: ThreadEvent) -> Iterator[Output]:
        """Apply one fact to the current key's thread: store, set the timer, order, and yield outputs."""
        parts = parts_of(key)
        # Nobody else writes this state, and a look at it is a call into Java.
        stored = self._driver.remembered(parts) or self._state.value()
        self._foreign.discard(key)
        # An order for a call that nobody knows is answered; facts and timers of a forgotten one are not.
        if stored is None and not isinstance(event, Requested | Ordered):
            return
        applied = self._driver.apply(parts, stored, event, self._clock.now_ms())
        if applied.changed:
            if applied.stored is None:
                self._state.clear()
            else:
                self._state.update(applied.stored)
        self._set_timer(key, applied.wake_at_ms)
        self._metrics.applied(key, applied)
        for effect, invocation in applied.orders:
            self._executor.order(key, effect, invocation)
        yield from self._outputs(applied)

    def _set_timer(self, key: str, wake_at_ms: int) -> None:
        if not wake_at_ms:
            return
        at_ms = self._clock.wall_ms(wake_at_ms)
        known = self._timers.get(key)
        # An earlier timer is enough: when it fires, the next one is set.
        if known is not None and known <= at_ms:
            return
        if wake_at_ms <= self._clock.now_ms() + REMEMBERED_MS:
            self._timers[key] = at_ms
        self._backend.timers.register_processing_time_timer(at_ms)

    def _outputs(self, applied: Applied) -> Iterator[Output]:
        for outcome in applied.outcomes:
            yield records.outcome_json(outcome)
        for entry in applied.journal:
            yield JOURNAL, encode_entry(entry)
        for report in applied.reports:
            yield PROGRESS, records.report_json(report)
        for notice in applied.notices:
            yield NOTICES, records.notice_json(notice)
