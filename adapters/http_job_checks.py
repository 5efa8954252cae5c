"""Are the options of `http_job` sound together, and what can the remote do with them?

What is contradictory is refused here, because each contradiction would show itself as a second run, a
lost one, or a call that never ends: a status that asks by an id which no submit sends, a list that may
be cut, a status map without an end.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reattach.adapters.http_job_options import ABSENT, Options, parse_options
from reattach.adapters.http_job_templates import IDS
from reattach.adapters.options import Table
from reattach.models.answers import Phase
from reattach.models.policy import Absence, CancelKind, Capabilities, Deduplication, Evidence, StreamKind

# A job service shows what it took at once; the bound leaves room for a busy one.
ADMISSION_MS: Final = 2_000
OWN: Final = frozenset({"key", "marker"})
"""The ids that belong to one message; a thread may hold several."""
_WHICH: Final = "must say which job: {handle}, {marker}, {key} or {thread}"
LONELY: Final = (
    ("list_next", "list"), ("list_whole", "list"), ("list_oldest_first", "list"), ("cancel_confirms", "cancel"),
    ("stream_resumes", "stream"), ("stream_end", "stream"),
)  # fmt: skip


def read_options(where: str, values: Mapping[str, Any]) -> Options:
    """Read and check the options of one agent.

    Args:
        where: what the keys are below, such as `agents.NAME.options`.

    Raises:
        ConfigError: one line that names the key.
    """
    table = Table(where, values)
    read = parse_options(table)
    if "submit" not in read.urls:
        raise table.wrong("submit", "required, such as '/jobs'")
    key = {"key"} if read.key_header else set()
    read = replace(read, sent=frozenset(read.urls["submit"].names | (read.body.names & set(IDS)) | key))
    _check_words(table, read)
    _check_status(table, read)
    if "list" in read.urls:
        _check_list(table, read)
    _check_meanings(table, read)
    _check_uses(table, read)
    return replace(read, capabilities=_able(table, read))


def _check_words(table: Table, read: Options) -> None:
    if Phase.COMPLETED.value not in read.status_map.values():
        raise table.wrong("status_map", "required, and one of its words must mean 'completed'")
    if Phase.AWAITING_INPUT.value not in read.status_map.values():
        for name in ("question", "question_id"):
            if name in read.paths:
                raise table.wrong(f"paths.{name}", "means nothing: no word of status_map means 'awaiting_input'")


def _check_status(table: Table, read: Options) -> None:
    if "status" not in read.urls:
        if "list" not in read.urls:
            raise table.wrong("status", "required, such as '/jobs/{handle}' (or 'list', whose items hold the status)")
        return
    names = read.urls["status"].names
    if not names:
        raise table.wrong("status", _WHICH)
    if "list" in read.urls and not read.by_handle:
        raise table.wrong("list", "not needed: 'status' finds the job by an id of ours")
    for name in sorted(names - read.sent - {"handle"}):
        raise table.wrong("status", f"asks by {{{name}}}, which neither 'submit' nor 'body' sends")


def _check_list(table: Table, read: Options) -> None:
    listed = read.urls["list"].names
    if "marker" not in read.paths:
        raise table.wrong("paths.marker", "required with 'list': where an item holds the {marker} or {key}")
    if not read.sent & OWN:
        raise table.wrong("list", "finds jobs by an id that neither 'submit' nor 'body' sends: {marker} or {key}")
    for option in ("list", "list_next"):
        names = read.urls[option].names if option in read.urls else frozenset[str]()
        for name in sorted(names - read.sent - {"page"}):
            raise table.wrong(option, f"filters by {{{name}}}, which neither 'submit' nor 'body' sends")
    if "list_next" in read.urls and ("next" not in read.paths or "page" not in read.urls["list_next"].names):
        raise table.wrong("list_next", "needs {page} in it, and paths.next for where an answer names the next page")
    if not (listed & OWN or "list_next" in read.urls or table.flag("list_whole")):
        raise table.wrong(
            "list",
            "may be cut, and then proves no absence: filter by {marker}, or set 'list_next', "
            "or 'list_whole = true' where the service never cuts it",
        )


def _check_meanings(table: Table, read: Options) -> None:
    if read.key_lifetime_ms is not None and not read.sent & OWN:
        raise table.wrong("idempotency.header", "'' means that the service knows an id again: send {key} or {marker}")
    if read.conflict == "accepted" and not read.sent & OWN:
        raise table.wrong("conflict", "'accepted' needs an id that only this call sends: {key} or {marker}")
    if "marker" in read.paths and not read.sent & OWN:
        raise table.wrong("paths.marker", "can be compared with nothing: the submit sends neither {marker} nor {key}")
    if ABSENT in read.status_map.values() and "status" not in read.urls:
        raise table.wrong("status_map", "a job that is listed cannot be 'absent'")


def _check_uses(table: Table, read: Options) -> None:
    for name in ("result", "cancel", "stream"):
        if name not in read.urls:
            continue
        names = read.urls[name].names
        if not names:
            raise table.wrong(name, _WHICH)
        for one in sorted(names - read.sent - {"handle"}):
            raise table.wrong(name, f"asks by {{{one}}}, which neither 'submit' nor 'body' sends")
        if names == {"thread"} and _evidence(read) is not Evidence.CONTAINER:
            raise table.wrong(name, "a thread may hold several jobs: say which one by {handle}, {marker} or {key}")
    for option, url in LONELY:
        if option in table.values and url not in read.urls:
            raise table.wrong(option, f"means nothing without '{url}'")
    if "cancel" in table.sub("methods").values and "cancel" not in read.urls:
        raise table.wrong("methods.cancel", "means nothing without 'cancel'")


def _evidence(read: Options) -> Evidence:
    if "list" in read.urls:
        return Evidence.MARKER
    if read.by_handle:
        return Evidence.HANDLE_ONLY
    return Evidence.MARKER if read.urls["status"].names & OWN else Evidence.CONTAINER


def _able(table: Table, read: Options) -> Capabilities:
    evidence = _evidence(read)
    stream, cancel = StreamKind.NONE, CancelKind.NONE
    if "stream" in read.urls:
        stream = StreamKind.CURSOR if table.flag("stream_resumes") else StreamKind.LIVE
    if "cancel" in read.urls:
        cancel = CancelKind.CONFIRMED if table.flag("cancel_confirms") else CancelKind.BEST_EFFORT
    return Capabilities(
        deduplication=Deduplication.NONE if read.key_lifetime_ms is None else Deduplication.KEY,
        evidence=evidence,
        absence=Absence.NEVER if evidence is Evidence.HANDLE_ONLY else Absence.AFTER_QUIET,
        admission_ms=ADMISSION_MS,
        stream=stream,
        cancel=cancel,
        key_lifetime_ms=read.key_lifetime_ms,
    )
