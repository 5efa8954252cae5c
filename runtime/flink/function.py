"""The ready functions, without orders of people and with them.

requests.key_by(request_key_of, Types.STRING()).process(ReattachFunction(agents))
requests.connect(orders).key_by(request_key_of, order_key_of, Types.STRING()).process(ControlledFunction(agents))
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pyflink.datastream import KeyedCoProcessFunction, KeyedProcessFunction

from reattach.adapters.contract import AgentConfig
from reattach.models.control import Order, parse_order
from reattach.models.errors import InvalidRequest
from reattach.models.identity import request_key
from reattach.models.request import Request
from reattach.runtime.flink.host import Host, Output
from reattach.runtime.flink.inputs import LINE_BYTES_MAX, parsed
from reattach.runtime.flink.keys import key_of

# Lines that cannot be read share a key: they are only passed on to the rejects.
UNREADABLE = key_of("", "")


def request_key_of(value: object) -> str:
    """The key of a request or of a line of input, for `key_by(request_key_of, Types.STRING())`."""
    request = parsed(value)
    return UNREADABLE if isinstance(request, str) else key_of(*request_key(request))


def order_key_of(value: object) -> str:
    """The key of an order or of a line of the control input: that of the call which it is about."""
    if isinstance(value, Order):
        return key_of(value.agent, value.thread)
    if not isinstance(value, str | bytes):
        return UNREADABLE
    try:
        order = parse_order(value, payload_bytes_max=LINE_BYTES_MAX)
    except InvalidRequest:
        return UNREADABLE
    return key_of(order.agent, order.thread)


class ReattachFunction(KeyedProcessFunction):
    """Calls remote agents durably; one line of JSON in, one outcome as JSON text out.

    Side outputs: `host.JOURNAL`, `host.PROGRESS`, `host.NOTICES`, `host.REJECTS`; each must be asked for
    with `get_side_output`, or PyFlink fails the job on its first value. Needs thread mode, which
    `keys.require_thread_mode` checks before a job is started. A function of your own embeds a `Host`
    in the same way:

        class Mine(KeyedProcessFunction):
            def __init__(self, agents):
                self.host = Host(agents)
            def open(self, context):
                self.host.open(context)
            def process_element(self, value, ctx):
                yield from self.host.process(value, ctx)
            def on_timer(self, timestamp, ctx):
                yield from self.host.on_timer(timestamp, ctx)
    """

    def __init__(self, agents: Mapping[str, AgentConfig], **settings: Any) -> None:
        self._host = Host(agents, **settings)

    def open(self, runtime_context: Any) -> None:
        self._host.open(runtime_context)

    def process_element(self, value: str | bytes | Request, ctx: Any) -> Iterator[Output]:
        yield from self._host.process(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Output]:
        yield from self._host.on_timer(timestamp, ctx)


class ControlledFunction(KeyedCoProcessFunction):
    """As `ReattachFunction`, with orders of people as a second input: lines of JSON, see docs/control.md.

    A function of your own calls `Host.control` in its `process_element2` in the same way.
    """

    def __init__(self, agents: Mapping[str, AgentConfig], **settings: Any) -> None:
        self._host = Host(agents, **settings)

    def open(self, runtime_context: Any) -> None:
        self._host.open(runtime_context)

    def process_element1(self, value: str | bytes | Request, ctx: Any) -> Iterator[Output]:
        yield from self._host.process(value, ctx)

    def process_element2(self, value: str | bytes | Order, ctx: Any) -> Iterator[Output]:
        yield from self._host.control(value, ctx)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Output]:
        yield from self._host.on_timer(timestamp, ctx)
