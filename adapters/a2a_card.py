"""Where an A2A agent takes requests: its options, and what its agent card says.

A card is foreign text that names URLs, and requests to a URL carry the agent's credentials. So an
interface counts only at the scheme, host and port of the configured `url`; for any other the configuration
itself has to name it (`options.endpoint`).

A card that offers A2A 0.3 alone is not spoken to unless the options say so: 0.3 cannot be asked for
a task whose id is not known, so what may be promised of a call would change without a word.
"""

import asyncio
import re
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import httpx

from reattach.adapters import http
from reattach.adapters.body import read_object
from reattach.adapters.contract import AgentConfig
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.options import Table
from reattach.models.answers import Unknown
from reattach.models.errors import ConfigError

CARD: Final = "/.well-known/agent-card.json"
CARD_BYTES_MAX: Final = 256 * 1024
CARD_KEPT_S: Final = 300.0
_KNOWN: Final = frozenset({"version", "binding", "endpoint", "card", "lists"})
_PORTS: Final = {"http": 80, "https": 443}
_BINDINGS: Final = {"JSONRPC": "jsonrpc", "HTTP+JSON": "rest"}
_OLD_ONLY: Final = (
    "the agent card offers A2A 0.3 only, which cannot be asked about a lost answer: "
    "set options.version = '0.3' to take that"
)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an agent, checked.

    Args:
        version: "auto" (any 1.x of the card), "1.0" or "0.3".
        binding: "auto" (the card's first), "jsonrpc" or "rest".
        endpoint: URL of the interface; "" for the card's.
        card: path of the card below the agent's `url`.
        lists: the agent has ListTasks.
    """

    version: str = "auto"
    binding: str = "auto"
    endpoint: str = ""
    card: str = CARD
    lists: bool = True

    @property
    def old(self) -> bool:
        return self.version == "0.3"


@dataclass(frozen=True, slots=True)
class Interface:
    """Where and how requests are sent.

    Args:
        tenant: goes with each request, "" for none.
    """

    url: str
    rest: bool = False
    old: bool = False
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The card and the options do not fit together, which waiting does not change."""

    cause: str


def read_options(config: AgentConfig) -> Options:
    """Check `agents.NAME.options`.

    Raises:
        ConfigError: names the key that is wrong and what to write.
    """
    table = Table(f"agents.{config.name}.options", config.options)
    table.known(_KNOWN)
    options = Options(
        version=table.choice("version", ("auto", "1.0", "0.3")),
        binding=table.choice("binding", ("auto", "jsonrpc", "rest")),
        endpoint=_endpoint(table, config),
        card=table.text("card", CARD),
        lists=table.flag("lists") if "lists" in config.options else True,
    )
    if options.old and options.binding == "rest":
        raise table.wrong("binding", "A2A 0.3 is spoken over JSON-RPC only, write 'jsonrpc' or leave it out")
    if options.old and "lists" in config.options:
        raise table.wrong("lists", "A2A 0.3 has no lists, leave it out")
    if options.endpoint and "card" in config.options:
        raise table.wrong("card", "no card is read where the endpoint is set, leave one of them out")
    if not options.card.startswith("/") or re.search(r"[^!-~]|#", options.card):
        raise table.wrong("card", f"must be a path below the agent's url, such as '{CARD}'")
    return options


def _endpoint(table: Table, config: AgentConfig) -> str:
    url = table.text("endpoint", "")
    if url:
        try:
            return Endpoint.configure(config.name, url, "").base
        except ConfigError as error:
            raise table.wrong("endpoint", str(error).partition(": ")[2]) from None
    return ""


def configured(options: Options) -> Interface | None:
    """The interface that the options name, None where the card has to be read for it."""
    if not options.endpoint:
        return None
    return Interface(options.endpoint, options.binding == "rest", options.old)


def choose(card: dict[str, Any], options: Options, base: str) -> Interface | Misfit:
    """Take the first interface of a card that the options allow and that is where the card is.

    Args:
        base: the agent's `url`.
    """
    offered = list(_offered(card))
    fitting = [one for one, version in offered if _fits(one, version, options)]
    near = [one for one in fitting if _near(one.url, base)]
    if near:
        return near[0]
    if fitting:
        return Misfit("the agent card names another host or port: set options.endpoint to the interface's URL")
    if not options.old and offered and all(one.old for one, _ in offered):
        return Misfit(_OLD_ONLY)
    wanted = "0.3" if options.old else "1.0" if options.version == "1.0" else "1.x"
    over = "JSON-RPC" if options.old or options.binding == "jsonrpc" else "REST" if options.binding == "rest" else ""
    return Misfit(f"the agent card offers no interface of A2A {wanted}" + (f" over {over}" if over else ""))


def _fits(one: Interface, version: str, options: Options) -> bool:
    if options.old or one.old:
        return options.old and one.old and not one.rest
    exact = options.version == "auto" or version == options.version
    return exact and options.binding in ("auto", "rest" if one.rest else "jsonrpc")


def _offered(card: dict[str, Any]) -> list[tuple[Interface, str]]:
    """Every interface that could be spoken to with its version: those of a card of 1.x, then those of 0.3."""
    found = []
    for one in _items(card.get("supportedInterfaces")):
        url, binding, version, tenant = (
            one.get(key, "") for key in ("url", "protocolBinding", "protocolVersion", "tenant")
        )
        if all(isinstance(text, str) for text in (url, binding, version, tenant)) and binding in _BINDINGS:
            old = version == "0.3" or version.startswith("0.3.")
            known = old or version == "1" or version.startswith("1.")
            # Paths are put behind it, which is no place for a query.
            if known and "?" not in url:
                found.append((Interface(url, _BINDINGS[binding] == "rest", old, tenant), version))
    main = {"url": card.get("url"), "transport": card.get("preferredTransport", "JSONRPC")}
    for one in [main, *_items(card.get("additionalInterfaces"))]:
        if isinstance(url := one.get("url"), str) and one.get("transport") == "JSONRPC":
            found.append((Interface(url, old=True), "0.3"))
    return found


def _items(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _near(url: str, base: str) -> bool:
    """The URL is where the configured one is, so that it may be sent the same credentials."""
    if re.search(r"[^!-~]|[\\#]", url):
        return False
    try:
        one, other = urlsplit(url), urlsplit(base)
        return "@" not in one.netloc and _origin(one) == _origin(other)
    except ValueError:
        return False


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


class Cards:
    """Where an agent is spoken to: configured, or as its card says, which is kept for a while.

    Args:
        limit_s: how long the card may take.
    """

    def __init__(self, client: httpx.AsyncClient, endpoint: Endpoint, options: Options, limit_s: float) -> None:
        self._client = client
        self._endpoint = endpoint
        self._options = options
        self._limit_s = limit_s
        self._interface = configured(options)
        self._stale_at = float("inf") if self._interface is not None else 0.0
        self._reading = asyncio.Lock()

    async def where(self) -> Interface | Misfit | Unknown:
        """Find the interface; the card is read once for all who wait for it, and in less time than a request has.

        What waits for the card has sent nothing yet, and must be able to say so.
        """
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._found()
        except TimeoutError:
            return Unknown(f"the agent card cannot be read: no answer within {self._limit_s:g} s")

    async def _found(self) -> Interface | Misfit | Unknown:
        async with self._reading:
            if self._interface is not None and time.monotonic() < self._stale_at:
                return self._interface
            found = await self._read_card()
            if isinstance(found, Interface):
                self._interface = found
                self._stale_at = time.monotonic() + CARD_KEPT_S
            return found

    async def _read_card(self) -> Interface | Misfit | Unknown:
        headers = self._endpoint.headers(Accept="application/json")
        url = self._endpoint.base + self._options.card
        reply = await http.read(self._client, url, headers, CARD_BYTES_MAX)
        if not isinstance(reply, http.Reply):
            return Unknown(f"the agent card cannot be read: {reply.cause}")
        if reply.status != 200 or reply.over:
            why = f"it is over {CARD_BYTES_MAX} bytes" if reply.over else f"HTTP {reply.status}"
            return Unknown(f"the agent card cannot be read: {why}")
        card = read_object(reply)
        if isinstance(card, Unknown):
            return Unknown(f"the agent card cannot be read: {card.cause}")
        return choose(card, self._options, self._endpoint.base)
