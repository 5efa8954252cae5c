"""One order, one answer: an adapter's method under its time limit, with nothing escaping.

Adapters are other people's code. Whatever one does (raises, hangs, returns what the contract does
not know, or what cannot be stored), the order is answered, by `Unknown` or `Unresolved` at worst, and
the job that stores the answer does not fail for it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from reattach.adapters.contract import Adapter
from reattach.models import answers, events
from reattach.models.codec import encode_event
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit
from reattach.models.errors import CodecError
from reattach.models.events import Answered
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy

Tell = Callable[[Answered], None]


async def perform(adapter: Adapter, effect: RemoteEffect, inv: Invocation, policy: Policy, tell: Tell) -> Answered:
    """Carry out one request.

    Args:
        tell: takes what is known before the answer.

    Returns:
        Exactly one answer: the adapter's, or `Unknown`/`Unresolved` when it ran out of time or broke.
    """
    ident = effect.ident

    def learn(handle: str) -> None:
        learned = events.HandleLearned(ident, handle)
        if not unfit(learned):
            tell(learned)

    work: Callable[[], Awaitable[Any]]
    kind: Callable[[events.Ident, Any], Answered]
    match effect:
        case Submit():
            work, limit_ms, kind = lambda: adapter.submit(inv, learn), policy.submit_timeout_ms, events.SubmitAnswered
        case Respond():
            work, limit_ms, kind = lambda: adapter.respond(inv), policy.submit_timeout_ms, events.RespondAnswered
        case Probe():
            work, limit_ms, kind = lambda: adapter.probe(inv), policy.probe_timeout_ms, events.ProbeAnswered
        case Fetch():
            work, limit_ms, kind = lambda: adapter.fetch(inv), policy.fetch_timeout_ms, events.FetchAnswered
        case Fence():
            work, limit_ms, kind = lambda: adapter.fence(inv), policy.submit_timeout_ms, events.FenceAnswered
        case Cancel():
            work, limit_ms, kind = lambda: adapter.cancel(inv), policy.submit_timeout_ms, events.CancelAnswered
        case _:
            raise AssertionError(f"not a request: {effect}")
    doubt: Callable[[str], Any] = answers.Unresolved if isinstance(effect, Submit | Respond) else answers.Unknown
    answer: Answered = kind(ident, await _bounded(work, limit_ms, doubt))
    fault = unfit(answer)
    return kind(ident, doubt(f"the adapter's answer is not one ({fault})")) if fault else answer


def unfit(event: Answered) -> str:
    """Say why a fact with an adapter's values in it cannot be stored; "" when it can."""
    try:
        encode_event(event)
    except CodecError as error:
        return type(error).__name__
    return ""


def ordered_to_stop() -> bool:
    """The running task was cancelled from outside, and did not come upon a cancellation of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _bounded(work: Callable[[], Awaitable[Any]], limit_ms: int, doubt: Callable[[str], Any]) -> Any:
    try:
        async with asyncio.timeout(limit_ms / 1000):
            return await work()
    except TimeoutError:
        return doubt(f"no answer within {limit_ms} ms")
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and ordered_to_stop():
            raise
        # An adapter's bug must not lose the answer, and its text may hold what must not be told.
        return doubt(f"the adapter failed ({type(error).__name__})")
