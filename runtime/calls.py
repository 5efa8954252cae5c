"""One order, one answer: an adapter's method under its time limit, with nothing escaping."""

import asyncio
from collections.abc import Callable
from typing import Any

from reattach.adapters.contract import Adapter
from reattach.models import answers, events
from reattach.models.effects import Cancel, Fence, Fetch, Probe, RemoteEffect, Respond, Submit
from reattach.models.events import Answered
from reattach.models.invocation import Invocation
from reattach.models.policy import Policy

Tell = Callable[[Answered], None]


def answer_without_sending(effect: RemoteEffect, cause: str) -> Answered:
    """The answer to a send whose time was over before it could leave."""
    if isinstance(effect, Submit):
        return events.SubmitAnswered(effect.ident, answers.NotSent(cause))
    assert isinstance(effect, Respond)
    return events.RespondAnswered(effect.ident, answers.NotSent(cause))


async def perform(adapter: Adapter, effect: RemoteEffect, inv: Invocation, policy: Policy, tell: Tell) -> Answered:
    """Carry out one request.

    Returns:
        Exactly one answer: the adapter's, or `Unknown`/`Unresolved` when it ran out of time or broke.
    """
    match effect:
        case Submit(ident):
            work = adapter.submit(inv, lambda handle: tell(events.HandleLearned(ident, handle)))
            return events.SubmitAnswered(ident, await _bounded(work, policy.submit_timeout_ms, answers.Unresolved))
        case Respond(ident):
            sent = await _bounded(adapter.respond(inv), policy.submit_timeout_ms, answers.Unresolved)
            return events.RespondAnswered(ident, sent)
        case Probe(ident):
            found = await _bounded(adapter.probe(inv), policy.probe_timeout_ms, answers.Unknown)
            return events.ProbeAnswered(ident, found)
        case Fetch(ident):
            fetched = await _bounded(adapter.fetch(inv), policy.fetch_timeout_ms, answers.Unknown)
            return events.FetchAnswered(ident, fetched)
        case Fence(ident):
            fenced = await _bounded(adapter.fence(inv), policy.submit_timeout_ms, answers.Unknown)
            return events.FenceAnswered(ident, fenced)
        case Cancel(ident):
            ended = await _bounded(adapter.cancel(inv), policy.submit_timeout_ms, answers.Unknown)
            return events.CancelAnswered(ident, ended)
    raise AssertionError(f"not a request: {effect}")


async def _bounded(work: Any, limit_ms: int, unknown: Callable[[str], Any]) -> Any:
    try:
        async with asyncio.timeout(limit_ms / 1000):
            return await work
    except TimeoutError:
        return unknown(f"no answer within {limit_ms} ms")
    except Exception as error:
        # An adapter's bug must not lose the answer, and its text may hold what must not be told.
        return unknown(f"the adapter failed ({type(error).__name__})")
