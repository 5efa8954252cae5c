"""The options of `http_job`, read key by key; `http_job_checks` holds them against each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from reattach.adapters.body import Path
from reattach.adapters.endpoint import one_line
from reattach.adapters.http_job_templates import IDS, BodyTemplate, UrlTemplate
from reattach.adapters.options import Table, shown
from reattach.models.answers import Phase
from reattach.models.policy import DAY_MS, Capabilities

ERROR_CHARS_MAX: Final = 300
LIFETIME_MS_MAX: Final = 10 * 365 * DAY_MS
ABSENT: Final = "absent"
WORDS: Final = (*(phase.value for phase in Phase), ABSENT)

URLS: Final[Mapping[str, tuple[str, ...]]] = {
    "submit": IDS,
    "status": (*IDS, "handle"),
    "list": IDS,
    "list_next": (*IDS, "page"),
    "result": (*IDS, "handle"),
    "cancel": (*IDS, "handle"),
    "stream": (*IDS, "handle"),
}
METHODS: Final = {"submit": ("POST", "PUT"), "cancel": ("POST", "DELETE", "PUT", "PATCH")}
PATHS: Final[Mapping[str, str | None]] = {
    "handle": "id",
    "status": "status",
    "result": "result",
    "error": "error",
    "marker": None,
    "question": None,
    "question_id": None,
    "items": "items",
    "next": None,
}
_MEMBERS: Final = ("handle", "status", "marker", "next")
OTHERS: Final = (
    "methods", "body", "paths", "status_map", "absent", "idempotency", "handle_header", "conflict",
    "cancel_confirms", "stream_resumes", "stream_end", "list_whole", "list_oldest_first",
)  # fmt: skip
_BODY: Final = {"message": "{message}", "message_id": "{marker}", "metadata": "{metadata}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one agent.

    Args:
        urls: by name; after the checks `submit` is there for certain, and `status` or `list`.
        status_map: the service's words, each to a phase or `absent`.
        absent_http: status codes of an answer to `status` that say "no such job".
        absent_path, absent_value: what such an answer must hold besides; None for nothing.
        key_header: header of the deduplication key, "" for none.
        key_lifetime_ms: how long the service knows a key or id again; None when it does not deduplicate.
        handle_header: header of the submit's answer that names the job, "" for none.
        conflict: what a 409 to a submit means: occupied, accepted or refused.
        stream_end: name of the event that ends a stream, "" for none.
        list_oldest_first: the order of the list, for a service that shows an id twice.
        sent: which ids of ours a submit carries; set by the checks, as are the capabilities.
    """

    urls: Mapping[str, UrlTemplate]
    submit_method: str
    cancel_method: str
    body: BodyTemplate
    paths: Mapping[str, Path]
    status_map: Mapping[str, str]
    absent_http: frozenset[int]
    absent_path: Path | None
    absent_value: str
    key_header: str
    key_lifetime_ms: int | None
    handle_header: str
    conflict: str
    stream_end: str
    list_oldest_first: bool
    sent: frozenset[str] = frozenset()
    capabilities: Capabilities = field(default_factory=Capabilities)

    @property
    def by_handle(self) -> bool:
        """The status of a job is asked by the service's own name for it."""
        return "status" in self.urls and "handle" in self.urls["status"].names


def parse_options(table: Table) -> Options:
    """Read every key by itself.

    Raises:
        ConfigError: one line that names the key.
    """
    table.known((*URLS, *OTHERS))
    methods, absent, key = table.sub("methods"), table.sub("absent"), table.sub("idempotency")
    methods.known(METHODS)
    absent.known(("http", "path", "value"))
    key.known(("header", "lifetime_ms"))
    absent_path, absent_value = _absence(absent)
    deduplicates = "idempotency" in table.values
    return Options(
        urls={name: _url(table, name) for name in URLS if name in table.values},
        submit_method=methods.choice("submit", METHODS["submit"]),
        cancel_method=methods.choice("cancel", METHODS["cancel"]),
        body=_body(table),
        paths=_paths(table.sub("paths")),
        status_map=_words(table.sub("status_map")),
        absent_http=absent.codes("http", (404,)),
        absent_path=absent_path,
        absent_value=absent_value,
        key_header=key.header("header", "Idempotency-Key") if deduplicates else "",
        key_lifetime_ms=key.number("lifetime_ms", LIFETIME_MS_MAX) if deduplicates else None,
        handle_header=table.header("handle_header", ""),
        conflict=table.choice("conflict", ("occupied", "accepted", "refused")),
        stream_end=table.text("stream_end", "end"),
        list_oldest_first=table.flag("list_oldest_first"),
    )


def _url(table: Table, key: str) -> UrlTemplate:
    try:
        return UrlTemplate.parse(table.values[key], URLS[key])
    except ValueError as error:
        raise table.wrong(key, one_line(str(error), ERROR_CHARS_MAX)) from None


def _body(table: Table) -> BodyTemplate:
    try:
        return BodyTemplate.parse(table.values.get("body", _BODY))
    except ValueError as error:
        raise table.wrong("body", one_line(str(error), ERROR_CHARS_MAX)) from None


def _paths(table: Table) -> dict[str, Path]:
    table.known(PATHS)
    paths = {name: table.path(name, default) for name, default in PATHS.items()}
    for name in _MEMBERS:
        if paths[name] == ():
            raise table.wrong(name, "must name a member of the answer")
    return {name: path for name, path in paths.items() if path is not None}


def _words(table: Table) -> Mapping[str, str]:
    for word, meaning in table.values.items():
        if meaning not in WORDS:
            raise table.wrong(shown(word), f"must be one of {', '.join(map(repr, WORDS))}")
    return dict(table.values)


def _absence(table: Table) -> tuple[Path | None, str]:
    path = table.path("path", None)
    if (path is None) != ("value" not in table.values):
        raise table.wrong("path" if path is None else "value", "required: path and value belong together")
    return path, table.text("value", "")
