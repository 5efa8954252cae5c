"""One adapter between the kit and a live server: calls its methods as a job does, and counts what is true.

The adapter speaks to the fault proxy; what the server has really done is asked of the target.
"""

import asyncio
import os
import time
import traceback
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn, TypeVar

import pytest

from reattach.adapters import registry
from reattach.adapters.contract import Adapter, AgentConfig
from reattach.adapters.http import open_client
from reattach.fsm.env import Env
from reattach.fsm.step import begin
from reattach.models.answers import Accepted, Phase, Present, Progress
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit
from reattach.models.events import Answered, HandleLearned, Ident
from reattach.models.invocation import Response
from reattach.models.lifecycle import Leaf
from reattach.models.policy import Capabilities, Policy, Terms
from reattach.models.request import Request, canonical_json
from reattach.runtime.calls import perform
from reattach.runtime.conformance.faults import ELSEWHERE
from reattach.runtime.conformance.said import Call, Said, Witness
from reattach.runtime.conformance.target import Kind, Target
from reattach.runtime.proxy.faults import Exchange, Fault, Match, Rule
from reattach.runtime.proxy.proxy import FaultProxy

AGENT: Final = "conformance"
POLL_S: Final = 0.01
SETTLE_S: Final = 2.0
UNFIT: Final = "the adapter's answer is not one"
ENDED: Final = (Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED)
T = TypeVar("T")


@dataclass(eq=False)
class Rig:
    """Everything that the checks of one class stand on.

    Args:
        target: with the server's whole URL.
        secret: the credential, "" for none.
    """

    target: Target
    secret: str
    proxy: FaultProxy
    said: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        target = self.target
        self._runner = asyncio.Runner()
        self._prefix = f"conformance-{uuid.uuid4().hex[:8]}"
        options = {
            name: value.replace("{url}", self.proxy.url) if isinstance(value, str) else value
            for name, value in target.options.items()
        }
        config = AgentConfig(AGENT, target.protocol, self.proxy.url, target.token_env, options, target.policy)
        self._client = self.run(_opened(target.carrier))
        kind = target.adapter or registry.find(target.protocol)
        self.adapter: Adapter = kind.configure(config, self._client)
        self._witness = Witness(self.adapter)
        self.terms = Terms(self.able, target.policy)
        self.admission_s = self.terms.admission_ms / 1000

    @property
    def able(self) -> Capabilities:
        return self.adapter.capabilities

    def close(self) -> None:
        self.run(self._client.aclose())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def call(self, kind: Kind = "quick", *, thread_id: str = "", turn: int = 0, sent: bool = True) -> Call:
        """Make a call of its own; skips the test where the server has no such kind.

        Args:
            sent: it may be submitted; False leaves it out of what is counted at the end.
        """
        call_id = f"{self._prefix}-{kind}-{len(self.calls) + 1}"
        message = self.target.message(call_id, kind)
        if message is None:
            pytest.skip(f"the target has no {kind} messages")
        now_ms = time.time_ns() // 1_000_000
        request = Request(call_id, AGENT, canonical_json(message), now_ms, thread_id=thread_id, turn=turn)
        inv = begin(request, Env(now_ms, now_ms, self._prefix, self.terms))
        made = Call(call_id, replace(inv, leaf=Leaf.NS_PROBING), None if sent else 0, "it was never submitted")
        self.calls.append(made)
        return made

    def executions(self, call: Call) -> int:
        return self.target.executions(call.id)

    # What a job orders.

    def submit(self, call: Call, policy: Policy | None = None) -> Said:
        said = self._ask(Submit(self._ident(call), 2**53), call, policy)
        call.inv = replace(call.inv, leaf=Leaf.RU_PROBING, attempts=call.inv.attempts + 1)
        self._name(call, said)
        return said

    def probe(self, call: Call) -> Said:
        said = self._ask(Probe(self._ident(call)), call)
        self._name(call, said)
        return said

    def fetch(self, call: Call) -> Said:
        return self._ask(Fetch(self._ident(call)), call)

    def cancel(self, call: Call) -> Said:
        return self._ask(Cancel(self._ident(call)), call)

    def fence(self, call: Call) -> Said:
        return self._ask(Fence(self._ident(call)), call)

    def respond(self, call: Call, question_id: str) -> Said:
        payload = canonical_json(self.target.answer(call.id))
        call.inv = replace(call.inv, response=Response(f"{call.id}-answer", question_id, payload))
        return self._ask(Respond(self._ident(call), 2**53), call)

    def watch(self, call: Call, cursor: str = "", most: int = 2**31) -> list[Progress]:
        """Follow the stream to its end, or leave it after so many events."""
        return self.run(self.following(call, cursor, most))

    async def following(self, call: Call, cursor: str = "", most: int = 2**31) -> list[Progress]:
        found: list[Progress] = []
        before = len(self.proxy.exchanges)
        try:
            async with asyncio.timeout(self.target.patience_s), aclosing(self._stream(call, cursor)) as stream:
                async for item in stream:
                    found.append(item)
                    self.said.append(repr(item))
                    if len(found) >= most:
                        break
        except TimeoutError:
            self.fail(f"the stream neither ended nor was left within {self.target.patience_s} s", f"events: {found}")
        except Exception:
            self.said.append(traceback.format_exc())
            self.fail("the adapter's watch raised", traceback.format_exc())
        self._stayed(self.proxy.exchanges[before:])
        return found

    def _stream(self, call: Call, cursor: str) -> Any:
        return self.adapter.watch(replace(call.inv, leaf=Leaf.RU_WATCHING, cursor=cursor), cursor)

    # What is waited for.

    def until(self, what: Callable[[], T], why: str, patience_s: float | None = None) -> T:
        """Wait for something that must come, and give it; a failure says what did not."""
        found = self.soon(what, self.target.patience_s if patience_s is None else patience_s)
        if not found:
            self.fail(f"did not happen in time: {why}", f"last: {found!r}")
        return found

    @staticmethod
    def soon(what: Callable[[], T], patience_s: float) -> T:
        """Wait for something that may come, and give what there is then."""
        limit = time.monotonic() + patience_s
        while not (found := what()) and time.monotonic() < limit:
            time.sleep(POLL_S)
        return found

    def until_shown(self, call: Call, *phases: Phase) -> Present:
        """Probe until the call is shown in one of these phases; in any without."""
        last: list[Said] = []

        def shown() -> Present | None:
            last[:] = [self.probe(call)]
            answer = last[0].answer
            return answer if isinstance(answer, Present) and (not phases or answer.phase in phases) else None

        names = " or ".join(phase.value for phase in phases) or "known"
        found = self.soon(shown, self.target.patience_s)
        if found is None:
            self.fail(f"a probe never showed the call as {names}", f"the last one said {last[0]}")
        return found

    # What goes wrong.

    @contextmanager
    def fault(self, fault: Fault, *, match: Match | None = None, skip: int = 0, times: int = 1) -> Iterator[Rule]:
        """Set a fault for a while."""
        rule = self.proxy.rule(fault, match=match or (lambda _: True), skip=skip, times=times)
        try:
            yield rule
        finally:
            self.proxy.drop(rule)
            self._settle(rule)

    def fail(self, what: str, *more: str) -> NoReturn:
        self.said.extend((what, *more))
        pytest.fail("\n".join((what, *more)).replace(self.secret or "\0", "***"), pytrace=False)

    def _settle(self, rule: Rule) -> None:
        """Let the client see which of its connections have ended, so that it does not send the next request there."""
        for exchange in rule.hits:
            self.proxy.wait(exchange, SETTLE_S)
        for _ in range(3):
            self.run(asyncio.sleep(0))

    def _stayed(self, requests: Sequence[Exchange]) -> None:
        """No redirect was followed: it would take the credential along."""
        if any(one.path == ELSEWHERE for one in requests):
            self.fail("the adapter followed a redirect", "; ".join(map(str, requests)))

    def _ident(self, call: Call) -> Ident:
        return Ident(self._prefix, call.id, call.inv.generation, call.inv.epoch)

    def _ask(self, effect: RemoteEffect, call: Call, policy: Policy | None = None) -> Said:
        told: list[Answered] = []
        before = len(self.proxy.exchanges)
        self._witness.raised.clear()
        work = perform(self._witness, effect, call.inv, policy or self.target.policy, told.append)  # type: ignore[arg-type]
        answer: Any = self.run(work)
        learned = tuple(one.handle for one in told if isinstance(one, HandleLearned))
        said = Said(answer.answer, learned, tuple(self.proxy.exchanges[before:]))
        self.said.append(str(said))
        self._stayed(said.requests)
        name = type(effect).__name__.lower()
        if self._witness.raised:
            self.said.extend(self._witness.raised)
            self.fail(f"the adapter's {name} raised", *self._witness.raised, f"  requests: {said.requests}")
        if getattr(said.answer, "cause", "").startswith(UNFIT):
            self.fail(f"the adapter's {name} gave something that is no answer to it", str(said))
        return said

    @staticmethod
    def _name(call: Call, said: Said) -> None:
        handle = said.learned[0] if said.learned else ""
        if isinstance(said.answer, Accepted | Present):
            handle = said.answer.handle or handle
        if handle and not call.inv.handle:
            call.inv = replace(call.inv, handle=handle)


async def _opened(carrier: str) -> Any:
    return open_client(connections_max=16, carrier=carrier)


@contextmanager
def rigged(target: Target) -> Iterator[Rig]:
    """Set everything up against a server that runs."""
    made_up = target.token_env and target.token_env not in os.environ
    if made_up:
        os.environ[target.token_env] = f"t0ken-{uuid.uuid4().hex}"
    secret = os.environ[target.token_env] if target.token_env else ""
    try:
        with FaultProxy(target.url, target.submits) as proxy:
            rig = Rig(target, secret, proxy)
            try:
                yield rig
            finally:
                proxy.clear()
                rig.close()
    finally:
        if made_up:
            del os.environ[target.token_env]
