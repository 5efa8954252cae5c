"""The options of an agent as its configuration gives them: read one by one, each error with its key.

`runtime.config` does the same for the keys of its own; what stands in `options` is for the adapter
alone to know.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reattach.adapters.body import Path, parse_path
from reattach.models.errors import ConfigError

TEXT_CHARS_MAX: Final = 256
# What HTTP and this library set themselves.
HOP: Final = frozenset(
    {
        "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "cookie",
        "expect", "host", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the file.

    Args:
        where: how it is named there, such as `agents.NAME.options`.
    """

    where: str
    values: Mapping[str, Any]

    def wrong(self, key: str, why: str) -> ConfigError:
        """Make the error that names one of its keys."""
        return ConfigError(f"{self.where}.{key}: {why}")

    def known(self, keys: Iterable[str]) -> None:
        names = sorted(keys)
        for key in self.values:
            if key not in names:
                raise self.wrong(shown(key), f"no such option (known: {', '.join(names)})")

    def sub(self, key: str) -> "Table":
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, f"must be a table, write [{self.where}.{key}]")
        return Table(f"{self.where}.{key}", value)

    def path(self, key: str, default: str | None) -> Path | None:
        dotted = self.values.get(key, default)
        if dotted is None:
            return None
        try:
            if isinstance(dotted, str) and not set(dotted) & set("[]"):
                return parse_path(dotted)
        except ValueError:
            pass
        raise self.wrong(
            key, "must be a path in the answer, such as 'job.id' or 'jobs.0.id' (-1 for the last, no brackets)"
        )

    def text(self, key: str, default: str) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value.isprintable() or len(value) > TEXT_CHARS_MAX:
            raise self.wrong(key, f"must be a string of at most {TEXT_CHARS_MAX} printable characters")
        return value

    def header(self, key: str, default: str) -> str:
        name = self.text(key, default)
        if name and (not re.fullmatch(r"[A-Za-z0-9-]{1,64}", name) or name.lower() in HOP):
            raise self.wrong(key, "must be the name of a header that is not one of HTTP's own, such as 'X-Job-Id'")
        return name

    def number(self, key: str, most: int) -> int:
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self.wrong(key, f"required, a whole number from 1 to {most}")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self.values.get(key, choices[0])
        if value not in choices:
            raise self.wrong(key, f"must be one of {', '.join(map(repr, choices))}")
        return str(value)

    def codes(self, key: str, default: tuple[int, ...]) -> frozenset[int]:
        value = self.values.get(key, default)
        if isinstance(value, list | tuple) and all(isinstance(one, int) and 400 <= one < 500 for one in value):
            return frozenset(value)
        raise self.wrong(key, "must be a list of HTTP status codes from 400 to 499, such as [404, 410]")


def shown(key: str) -> str:
    return key if key.isprintable() and len(key) <= 40 else repr(key[:40])
