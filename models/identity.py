"""Names that must come out the same in every life of the job: pure functions of the input.

A remote thread, a marker and a deduplication key are derived, never drawn: after any crash the
new incarnation computes the same name and so asks about the same run.
"""

import hashlib
import re
import uuid
from functools import lru_cache
from typing import Final

from reattach.models.request import Request

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBERED: Final = re.compile(r"#[0-9]+\Z")
_SPACE: Final = uuid.UUID("5f1c2a54-52a0-5c5e-9a51-0d6c0c8f2b11")


def thread_id_of(request: Request, generation: int, slot: int = 1) -> str:
    """The remote thread of one attempt: the request's own, or one derived for this call alone.

    Args:
        generation: 1-based; each has a thread of its own, unless the input names the thread.
        slot: 1-based number of the attempt, for remotes whose slots can be fenced.
    """
    if request.thread_id:
        return request.thread_id
    return _derived(f"thread\x00{request.agent}\x00{request.invocation_id}\x00{generation}\x00{slot}")


def uuid_of(thread_id: str) -> str:
    """The same thread for remotes whose ids are UUIDs: its own when it is one as they are written, else a derived one.

    No two ids come to the same: one that is a UUID in another spelling is derived from as well.
    """
    return thread_id if _UUID.fullmatch(thread_id) else _derived(f"named\x00{thread_id}")


def marker_of(invocation_id: str, generation: int) -> str:
    """The name that this call's message carries on the remote: one per generation.

    Guarantee: no two calls and generations share one (tests/models/test_identity.py). So an id that ends like the
    name of a later generation has its number told, also in the first.
    """
    if generation == 1 and not _NUMBERED.search(invocation_id):
        return invocation_id
    return f"{invocation_id}#{generation}"


def dedup_key_of(request: Request, generation: int) -> str:
    """A fixed-length key for remotes that deduplicate."""
    return _derived(f"key\x00{request.agent}\x00{request.invocation_id}\x00{generation}")


# A call in flight is named again by every exchange.
@lru_cache(maxsize=16_384)
def _derived(name: str) -> str:
    return str(uuid.uuid5(_SPACE, name))


def request_key(request: Request) -> tuple[str, str]:
    """What the stream is keyed by: (agent, thread). Never depends on the generation."""
    return request.agent, thread_id_of(request, 1)


def digest_of(request: Request) -> bytes:
    """16 bytes that differ when the same id comes with another payload."""
    content = hashlib.sha256()
    for part in (
        request.invocation_id.encode(),
        request.agent.encode(),
        request.thread_id.encode(),
        str(request.deadline_ms).encode(),
        str(request.turn).encode(),
        request.message,
        request.metadata,
    ):
        content.update(len(part).to_bytes(8, "big"))
        content.update(part)
    return content.digest()[:16]
