"""The options of an `openai_responses` agent, and the body of its POST."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.endpoint import BEARER
from reattach.adapters.options import Table, shown
from reattach.models.identity import dedup_key_of, marker_of
from reattach.models.invocation import Invocation

INSTRUCTIONS_CHARS_MAX: Final = 64 * 1024
METADATA_KEY: Final = "reattach_call"
METADATA_BYTES_MAX: Final = 512
# Azure takes its keys in a header of their own.
TOKEN_HEADERS: Final = (BEARER, "api-key")
# What the adapter's promises rest on.
OWN: Final = ("model", "input", "instructions", "background", "store", "stream", "metadata")


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options.

    Args:
        fixed: JSON of the members that every body begins with, without the closing brace.
        stream: responses are created with a stream, so that it can be resumed.
        token_header: the header of the token.
    """

    fixed: bytes
    stream: bool
    token_header: str = BEARER


def read_options(where: str, values: Mapping[str, Any]) -> Options:
    """Check an agent's options.

    Args:
        where: how they are named in the file, such as `agents.NAME.options`.

    Raises:
        ConfigError: names the key that is wrong and what to write.
    """
    table = Table(where, values)
    table.known(("model", "instructions", "extra", "stream", "token_header"))
    model = table.text("model", "")
    if not model:
        raise table.wrong("model", "required, the name of a model, such as 'gpt-5'")
    body: dict[str, Any] = {"model": model}
    instructions = values.get("instructions", "")
    if not isinstance(instructions, str) or len(instructions) > INSTRUCTIONS_CHARS_MAX:
        raise table.wrong("instructions", f"must be a string of at most {INSTRUCTIONS_CHARS_MAX} characters")
    if instructions:
        body["instructions"] = instructions
    extra = table.sub("extra")
    for key in extra.values:
        if key in OWN:
            raise extra.wrong(shown(key), "is set by the adapter, and cannot be set here")
    stream = table.flag("stream") if "stream" in values else True
    body |= {**extra.values, "background": True, "store": True, "stream": stream}
    try:
        fixed = json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise table.wrong("extra", "must hold what JSON can hold: no dates, no infinities") from None
    return Options(fixed.removesuffix(b"}"), stream, table.choice("token_header", TOKEN_HEADERS))


def marker_text(inv: Invocation) -> str:
    """The call's name in the response's metadata, for people and for comparison; never searched for."""
    marker = marker_of(inv.id, inv.generation)
    # The limit is said in characters; in bytes it holds however those are counted.
    return marker if len(marker.encode()) <= METADATA_BYTES_MAX else dedup_key_of(inv.request, inv.generation)


def body_of(options: Options, inv: Invocation) -> bytes:
    """Write the body of the POST: a text is sent as one, a list as items, an object as one item, else its JSON as text.

    The message is spliced in as it is: it is canonical JSON, however deep.
    """
    message = inv.request.message
    if message[:1] == b"{":
        message = b"[%b]" % message
    elif message[:1] not in (b'"', b"["):
        # A number, true, false or null: nothing to escape.
        message = b'"%b"' % message
    metadata = json.dumps({METADATA_KEY: marker_text(inv)}).encode()
    return b'%b, "metadata": %b, "input": %b}' % (options.fixed, metadata, message)
