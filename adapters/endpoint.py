"""Where a remote is and who asks: a base URL from the configuration and the token that goes with it.

A request can name a segment of a path, never a URL. The token comes from the environment by name and
is in no error, `repr` or cause.
"""

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from reattach.models.errors import ConfigError

TOKEN_CHARS_MAX: Final = 8192
CAUSE_CHARS_MAX: Final = 200
BEARER: Final = "Authorization"


class Endpoint:
    """A base URL from the configuration and the token that goes with it.

    The token is in no `repr`, and `clean` takes it out of what a remote says.
    """

    __slots__ = ("_headers", "_token", "base")

    def __init__(self, base: str, token: str = "", token_header: str = BEARER) -> None:
        self.base = base.rstrip("/")
        self._token = token
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "reattach"}
        if token:
            self._headers[token_header] = f"Bearer {token}" if token_header == BEARER else token

    def __repr__(self) -> str:
        return f"Endpoint({self.base!r})"

    @classmethod
    def configure(
        cls,
        name: str,
        url: str,
        token_env: str,
        environment: Mapping[str, str] | None = None,
        *,
        token_header: str = BEARER,
    ) -> "Endpoint":
        """Check an agent's `url` and look its token up.

        Args:
            token_header: where the token is sent; in any other than `Authorization` it stands alone.

        Raises:
            ConfigError: names the key and, for a token, the variable; never a value that may be secret.
        """
        where = f"agents.{name}"
        try:
            parts = urlsplit(url)
            sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            sound = False
        if not sound or re.search(r"[^!-~]", url) or parts.netloc.endswith(":"):
            raise ConfigError(f"{where}.url: must be an absolute http or https URL, such as 'https://host/base'")
        if parts.username is not None or parts.password is not None:
            raise ConfigError(f"{where}.url: must not hold credentials; name a variable in token_env instead")
        if parts.query or parts.fragment or "?" in url or "#" in url:
            raise ConfigError(f"{where}.url: must not have a query or a fragment")
        token = _token(where, token_env, os.environ if environment is None else environment)
        return cls(url, token, token_header)

    def url(self, *segments: str) -> str:
        """Join path segments to the base; no id can leave its own segment.

        Raises:
            ValueError: a segment is empty or not Unicode text.
        """
        return "/".join((self.base, *map(escape, segments)))

    def headers(self, **more: str) -> dict[str, str]:
        return {**self._headers, **{name.replace("_", "-"): value for name, value in more.items()}}

    def fresh(self, **more: str) -> dict[str, str]:
        """Headers of a request that must reach the remote: a stored "no such run" would permit a second POST."""
        return self.headers(**{"Accept": "application/json", "Cache_Control": "no-cache, no-store", **more})

    def clean(self, text: str, chars_max: int = CAUSE_CHARS_MAX) -> str:
        """Make one printable line without the token of what a remote has said."""
        if self._token:
            # All of it, before it is cut: the cut may fall into the token.
            text = text.replace(self._token, "***")
        return one_line(text, chars_max)


def _token(where: str, variable: str, environment: Mapping[str, str]) -> str:
    if not variable:
        return ""
    token = environment.get(variable, "")
    if not token and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", variable):
        # Who writes the token itself here must not find it in an error.
        raise ConfigError(f"{where}.token_env: no environment variable of this name; name one, such as AGENT_TOKEN")
    if not token:
        raise ConfigError(f"{where}.token_env: the environment variable {variable} is not set")
    if len(token) > TOKEN_CHARS_MAX or re.search(r"[^!-~]", token):
        raise ConfigError(f"{where}.token_env: the value of {variable} is not a token (printable ASCII, no spaces)")
    return token


def escape(segment: str) -> str:
    """Percent-encode an id as one path segment, dots alone included.

    Guarantee: whatever the id, it stays one segment (tests/adapters/test_ids.py).
    """
    if not segment:
        raise ValueError("an empty id has no place in a path")
    if segment in (".", ".."):
        # Unreserved, so `quote` leaves them, and every URL library would resolve them.
        return segment.replace(".", "%2E")
    return quote(segment, safe="")


def one_line(text: str, chars_max: int = CAUSE_CHARS_MAX) -> str:
    """Shorten foreign text to one printable line."""
    short = text[: chars_max + 1]
    line = "".join(c if c.isprintable() else " " for c in short)
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"
