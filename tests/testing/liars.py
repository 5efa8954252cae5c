"""Adapters that lie: each is the `thread` adapter with one fault, which its docstring tells."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator

from reattach.adapters import http
from reattach.adapters.contract import Learn
from reattach.adapters.thread import ThreadAdapter
from reattach.adapters.verdict import refused
from reattach.models.answers import (
    Absent,
    Accepted,
    FetchAnswer,
    Gone,
    NotReady,
    NotSent,
    Phase,
    Present,
    ProbeAnswer,
    Progress,
    Result,
    SubmitAnswer,
    Unknown,
    Unresolved,
)
from reattach.models.invocation import Invocation


class Careless(ThreadAdapter):
    """Takes a connection that broke for one over which nothing was sent."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        return NotSent(answer.cause) if isinstance(answer, Unresolved) else answer


class Hopeful(ThreadAdapter):
    """Takes a request that was sent for one that was accepted."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        return Accepted() if isinstance(answer, Unresolved) else answer


class Curt(ThreadAdapter):
    """Takes an error of a gateway for a refusal."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        return refused(answer.cause) if isinstance(answer, Unresolved) else answer


class Stubborn(ThreadAdapter):
    """Sends again when a connection broke."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        return await super().submit(inv, learn) if isinstance(answer, Unresolved) else answer


class Obedient(ThreadAdapter):
    """Goes where a redirect leads."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        answer = await super().submit(inv, learn)
        if not isinstance(answer, Accepted):
            url = self._endpoint.base.split("/api")[0] + "/elsewhere"
            await http.read(self._client, url, {}, 1000)
        return answer


class Denying(ThreadAdapter):
    """Takes a server that is not available for one that does not know the call."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await super().probe(inv)
        return Absent() if isinstance(answer, Unknown) else answer


class Blind(ThreadAdapter):
    """Never finds what was accepted."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        await super().probe(inv)
        return Absent()


class Dreaming(ThreadAdapter):
    """Finds what was never sent."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await super().probe(inv)
        return Present(Phase.RUNNING) if isinstance(answer, Absent) else answer


class Curious(ThreadAdapter):
    """Asks twice."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        await super().probe(inv)
        return await super().probe(inv)


class Fragile(ThreadAdapter):
    """Raises for what is no JSON."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await http.read(self._client, self._url(inv), self._endpoint.headers(), 100_000)
        if isinstance(answer, http.Reply) and answer.status == 200:
            json.loads(answer.body)
        return await super().probe(inv)


class Greedy(ThreadAdapter):
    """Reads whatever comes."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        await http.read(self._client, self._url(inv), self._endpoint.headers(), 2**40)
        return await super().probe(inv)


class Hasty(ThreadAdapter):
    """Says that there is no result where it could not ask."""

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        answer = await super().fetch(inv)
        return NotReady() if isinstance(answer, Unknown) else answer


class Inventive(ThreadAdapter):
    """Has a result where it could not ask."""

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        answer = await super().fetch(inv)
        return Result(b"{}") if isinstance(answer, Unknown) else answer


class Talkative(ThreadAdapter):
    """Tells its token in a cause."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await super().probe(inv)
        return Unknown(str(self._endpoint.headers())) if isinstance(answer, Unknown) else answer


class Logging(ThreadAdapter):
    """Logs its headers."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        logging.getLogger("liar").debug("asking with %s", self._endpoint.headers())
        return await super().probe(inv)


class Careful(ThreadAdapter):
    """Answers with something that is no answer."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        return "absent"  # type: ignore[return-value]


class Nervous(ThreadAdapter):
    """Takes each piece of a stream for an event."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        async with http.open_stream(self._client, self._url(inv, "stream"), self._endpoint.headers()) as response:
            if isinstance(response, http.Unsent | http.Lost):
                return
            while chunk := await response.chunk():
                yield Progress(json.dumps(chunk.decode(errors="replace")).encode())


class Loud(ThreadAdapter):
    """Raises when a stream is none."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        async with http.open_stream(self._client, self._url(inv, "stream"), self._endpoint.headers()) as response:
            if isinstance(response, http.Unsent | http.Lost):
                raise ConnectionError(response.cause)
        yield Progress(b"1")


class Clinging(ThreadAdapter):
    """Keeps a stream open that nobody listens to any more, and opens another."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        context = http.open_stream(self._client, self._url(inv, "stream"), self._endpoint.headers())
        self.kept = [*getattr(self, "kept", []), context]
        response = await context.__aenter__()
        while not isinstance(response, http.Unsent | http.Lost) and await response.chunk():
            yield Progress(b"1")


class Deaf(ThreadAdapter):
    """Does not end when it is cancelled, and says that it had not begun."""

    async def submit(self, inv: Invocation, learn: Learn) -> SubmitAnswer:
        try:
            return await super().submit(inv, learn)
        except asyncio.CancelledError:
            return NotSent("cancelled")


class Mixing(ThreadAdapter):
    """Takes whatever is on a thread for the call that is asked about."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        status = await self._status(inv)
        if isinstance(status, Unknown):
            return status
        return Absent() if status.name == "not_started" else Present(Phase.RUNNING, result=status.result)


class Vanishing(ThreadAdapter):
    """Takes a result that is not there yet for one that is gone."""

    async def fetch(self, inv: Invocation) -> FetchAnswer:
        answer = await super().fetch(inv)
        return Gone() if isinstance(answer, NotReady) else answer


class Rosy(ThreadAdapter):
    """Takes every end for a good one."""

    async def probe(self, inv: Invocation) -> ProbeAnswer:
        answer = await super().probe(inv)
        failed = isinstance(answer, Present) and answer.phase is Phase.FAILED
        return Present(Phase.COMPLETED, result=b"null") if failed else answer


class Mute(ThreadAdapter):
    """Follows a stream and passes nothing on."""

    async def watch(self, inv: Invocation, cursor: str) -> AsyncGenerator[Progress]:
        async for event in super().watch(inv, cursor):
            if event.data == b"":
                yield event
