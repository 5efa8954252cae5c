"""Registered adapters in words: what each can promise, from the capabilities that it declares.

One place for the command `reattach adapters` and for docs/protocols.md, so that neither can say more than
the code keeps.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Final, NamedTuple

from reattach.adapters import registry
from reattach.adapters.contract import Variant, variants_of
from reattach.models.errors import ConfigError
from reattach.models.policy import Absence, CancelKind, Capabilities, Deduplication, Evidence, StreamKind

HEADINGS: Final = (
    "protocol", "guarantee", "evidence", "when the POST's answer is lost", "stream", "cancel", "requests", "needs",
)  # fmt: skip

WORDS: Final = ("protocol", "dedup", "evidence", "absence", "stream", "cancel", "requests")

_EVIDENCE: Final = {
    Evidence.MARKER: "an id of ours on the message",
    Evidence.CONTAINER: "a thread of its own for each call",
    Evidence.HANDLE_ONLY: "only the remote's own id",
}
_STREAM: Final = {
    StreamKind.NONE: "none: polled",
    StreamKind.LIVE: "live only: what was missed is gone, the result is not",
    StreamKind.CURSOR: "resumed where it broke",
}
_CANCEL: Final = {
    CancelKind.NONE: "none: a run goes on after its call has ended",
    CancelKind.BEST_EFFORT: "asked for, and a probe tells",
    CancelKind.CONFIRMED: "confirmed by the remote",
}


class Promise(NamedTuple):
    """What may be promised of the number of runs, and what follows a POST that may have been accepted."""

    guarantee: str
    lost_answer: str


_PROMISES: Final[dict[Enum, Promise]] = {
    Deduplication.KEY: Promise(
        "one run, by the remote's own deduplication, within the key's lifetime",
        "sent again under the same key",
    ),
    Absence.BY_FENCE: Promise(
        "one run, proven: a slot that is closed takes no late POST",
        "the slot is closed, then looked into: joined, or sent into the next slot",
    ),
    Absence.AFTER_QUIET: Promise(
        "one run, if the remote shows what it accepted within the admission bound",
        "asked about after the quiet time: joined, or sent again",
    ),
    Absence.NEVER: Promise(
        "at most one run, its POST written ahead: where it cannot be told, people decide",
        "parked as ambiguous, never sent again by itself",
    ),
}


@dataclass(frozen=True, slots=True)
class Described:
    """One way to use one protocol.

    Args:
        module: where its adapter is.
        variant: None when the adapter declares nothing.
        problem: why its package cannot be loaded, "" when it can.
    """

    protocol: str
    module: str = ""
    variant: Variant | None = None
    problem: str = ""

    @property
    def title(self) -> str:
        return self.protocol + (f": {self.variant.name}" if self.variant is not None and self.variant.name else "")

    def words(self) -> tuple[str, ...]:
        """One word for each of `WORDS`, as the capabilities have them."""
        if self.variant is None:
            return self._untold(len(WORDS))
        able = self.variant.capabilities
        return (
            self.title, able.deduplication.value, able.evidence.value, able.absence.value, able.stream.value,
            able.cancel.value, str(requests_of(self.variant)),
        )  # fmt: skip

    def cells(self) -> tuple[str, ...]:
        """One cell for each of `HEADINGS`."""
        if self.variant is None:
            return self._untold(len(HEADINGS))
        able = self.variant.capabilities
        told = promise(able)
        return (
            self.title, told.guarantee, _EVIDENCE[able.evidence], told.lost_answer, _STREAM[able.stream],
            _CANCEL[able.cancel], str(requests_of(self.variant)), "; ".join(needs_of(self.variant)),
        )  # fmt: skip

    def _untold(self, places: int) -> tuple[str, ...]:
        return (self.title, self.problem or "declares nothing without a configuration", *[""] * (places - 2))

    def to_json(self) -> dict[str, Any]:
        variant = self.variant
        if variant is None:
            return {"protocol": self.protocol, "adapter": self.module, "problem": self.problem}
        able = variant.capabilities
        told = promise(able)
        return {
            "protocol": self.protocol,
            "adapter": self.module,
            "variant": variant.name,
            "capabilities": _plain(able),
            "options": dict(variant.options),
            "requests": requests_of(variant),
            "needs": needs_of(variant),
            "guarantee": told.guarantee,
            "evidence": _EVIDENCE[able.evidence],
            "lost_answer": told.lost_answer,
        }


def described() -> Iterator[Described]:
    """Describe every registered adapter, also one whose package is broken."""
    for protocol in registry.known():
        try:
            adapter = registry.find(protocol)
        except ConfigError as error:
            yield Described(protocol, problem=str(error).partition(": ")[2])
            continue
        module = f"{adapter.__module__}:{adapter.__qualname__}"
        variants = variants_of(adapter)
        for variant in variants:
            yield Described(protocol, module, variant)
        if not variants:
            yield Described(protocol, module)


def promise(able: Capabilities) -> Promise:
    """Say what the capabilities allow to be promised."""
    return _PROMISES[able.deduplication if able.deduplication is Deduplication.KEY else able.absence]


def requests_of(variant: Variant) -> int:
    """Count the requests of a call without faults whose run ends before its first poll."""
    return requests(variant.capabilities) + variant.more_requests


def requests(able: Capabilities) -> int:
    """Count those that the capabilities imply.

    A probe where the remote can be asked first, the POST, the stream, the status with the result.
    """
    asks_first = able.deduplication is Deduplication.NONE and able.absence is not Absence.NEVER
    return asks_first + 1 + (able.stream is not StreamKind.NONE) + 1


def needs_of(variant: Variant) -> list[str]:
    """Name the settings that this way of use takes."""
    needs = [f"options.{name}" for name in variant.options]
    if variant.capabilities.retention_ms is None:
        needs.append("policy.retention_ms")
    return needs


def _plain(able: Capabilities) -> Mapping[str, Any]:
    values = {one.name: getattr(able, one.name) for one in fields(able)}
    return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def document() -> str:
    """Draw docs/protocols.md."""
    own = [one for one in described() if one.protocol in registry.built_in()]
    rows = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    rows += ["| " + " | ".join(_cell(place, text) for place, text in enumerate(one.cells())) + " |" for one in own]
    examples = [
        f"### `{one.title}`\n\n```toml\n{_toml(one)}```\n"
        for one in own
        if one.variant is not None and one.variant.options
    ]
    return _PAGE.format(table="\n".join(rows), examples="\n".join(examples))


def _cell(place: int, text: str) -> str:
    if place == 0:
        return f"`{text}`"
    if place == len(HEADINGS) - 1:
        return ", ".join(f"`{one}`" for one in text.split("; ") if one)
    return text


def _toml(one: Described) -> str:
    assert one.variant is not None
    lines = []
    for name, value in one.variant.options.items():
        members = {f"{name}.{key}": inner for key, inner in value.items()} if isinstance(value, dict) else {name: value}
        lines += [f"options.{key} = {json.dumps(inner)}\n" for key, inner in members.items()]
    return "".join(lines)


_PAGE: Final = """\
# Protocols

What each protocol can promise, drawn from the capabilities that its adapter declares (`make diagram`). `reattach
adapters` shows the same for what is installed, adapters of other packages included.

{table}

*Requests* are those of one call without faults whose run ends before it would be polled: a probe where the remote can
be asked before it is sent anything, the POST, the stream, and the status that carries the result. A result with a URL
of its own takes one more, a stream that is switched off (`policy.watch = false`) one less. The rows of `http_job` show
the least that each way takes; a stream and a cancel can be added to any of them.

*Quiet time, admission bound, parked*: see [the lifecycle](lifecycle.md) and [the settings](configuration.md). The
settings of each protocol: [langgraph](langgraph.md), [a2a](a2a.md), [openai_responses](openai_responses.md),
[http_job](http_job.md); those of `thread` stand with [the configuration](configuration.md). Where a POST is *written
ahead*, it waits for [a checkpoint](operations.md#writing-ahead).

## Options

{examples}"""
