"""The options of `langgraph`, and what they let the adapter promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.body import Path
from reattach.adapters.endpoint import BEARER
from reattach.adapters.options import Table
from reattach.models.errors import ConfigError, InvalidRequest
from reattach.models.policy import Absence, CancelKind, Capabilities, Evidence, StreamKind
from reattach.models.request import canonical_json

# A POST is in the list of runs as soon as it has been read; the bound leaves room for a busy server.
ADMISSION_MS: Final = 2_000
PER_CALL: Final = "per_call"
SHARED: Final = "shared"
STREAM_MODES: Final = ("updates", "values", "custom", "messages", "messages-tuple", "tasks", "checkpoints", "debug")
DURABILITIES: Final = ("sync", "async", "exit")
# The first is what HTTP knows, the second what LangSmith deployments ask for.
TOKEN_HEADERS: Final = (BEARER, "X-Api-Key")
NAMES: Final = (
    "assistant", "threads", "fence", "result", "stream_modes", "durability", "config", "context", "token_header",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one agent.

    Args:
        assistant: id of an assistant, or name of a graph.
        per_call: each call has a thread of its own, and no thread is named by the input.
        fence: slots are closed by a run that starts in ten years; needs `per_call`.
        result: where the result stands in the values of the state, () for all of them.
        extra: members that every run is created with: `config`, `context`, `durability`, `stream_mode`.
        token_header: the header of the token.
    """

    assistant: str
    per_call: bool
    fence: bool
    result: Path
    extra: Mapping[str, Any]
    token_header: str

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            evidence=Evidence.MARKER,
            absence=Absence.BY_FENCE if self.fence else Absence.AFTER_QUIET,
            admission_ms=ADMISSION_MS,
            stream=StreamKind.CURSOR,
            cancel=CancelKind.CONFIRMED,
            responds=True,
        )


def read_options(where: str, given: Mapping[str, Any]) -> Options:
    """Check the options.

    Args:
        where: how their table is named in the file.

    Raises:
        ConfigError: one line that names the key and what to write.
    """
    table = Table(where, given)
    table.known(NAMES)
    assistant = table.text("assistant", "")
    if not assistant:
        raise table.wrong("assistant", "required: the id of an assistant, or the name of a graph, such as 'agent'")
    per_call = table.choice("threads", (PER_CALL, SHARED)) == PER_CALL
    if not per_call and "fence" in given:
        raise table.wrong("fence", "only threads of one call can be closed: leave it out, or set threads = 'per_call'")
    extra: dict[str, Any] = {
        "durability": table.choice("durability", DURABILITIES),
        "stream_mode": _modes(table),
        **{name: _table(table, name) for name in ("config", "context") if name in given},
    }
    return Options(
        assistant=assistant,
        per_call=per_call,
        fence=per_call and ("fence" not in given or table.flag("fence")),
        result=table.path("result", "") or (),
        extra=extra,
        token_header=table.choice("token_header", TOKEN_HEADERS),
    )


def _modes(table: Table) -> list[str]:
    modes = table.values.get("stream_modes", ["updates", "custom"])
    if not isinstance(modes, list) or not modes or not all(mode in STREAM_MODES for mode in modes):
        raise table.wrong("stream_modes", f"must be a list of some of {', '.join(map(repr, STREAM_MODES))}")
    return modes


def _table(table: Table, name: str) -> Mapping[str, Any]:
    values = table.sub(name).values
    try:
        canonical_json(values)
    except InvalidRequest as error:
        raise ConfigError(f"{table.where}.{name}: must hold JSON values only: {error}") from None
    return values
