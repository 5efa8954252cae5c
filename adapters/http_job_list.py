"""Finding a job in a service's list by an id of ours.

Presence is one item that carries the id. Absence is the whole list without it, so whatever may have cut
the list is `Unknown`: a page that cannot be read, too many pages, a filter that was not applied.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from reattach.adapters.body import LIST_BYTES_MAX, MISSING, find, read_value
from reattach.adapters.endpoint import Endpoint
from reattach.adapters.http import Reply
from reattach.adapters.http_job_checks import OWN
from reattach.adapters.http_job_options import Options
from reattach.adapters.words import handle_of, word_of
from reattach.models.answers import Absent, Unknown

PAGES_MAX: Final = 50

Read = Callable[[str, str], Awaitable[Reply | Unknown]]


async def search(read: Read, options: Options, mine: frozenset[str], endpoint: Endpoint) -> Any:
    """Look through the whole list; of several jobs with one of these ids the oldest is the call's.

    Args:
        read: fetches the URL of an option by its name, for a page by its name.

    Returns:
        The job as it is listed, `Absent`, or `Unknown`.
    """
    found: Any = MISSING
    name, page, strangers = "list", "", False
    for _ in range(PAGES_MAX):
        answer = await read(name, page)
        read_page = answer if isinstance(answer, Unknown) else _page(answer, options, endpoint)
        if isinstance(read_page, Unknown):
            return read_page
        jobs, page = read_page
        for job in jobs:
            if word_of(find(job, options.paths["marker"])) not in mine:
                strangers = True
            elif found is MISSING or not options.list_oldest_first:
                found = job
        if not page:
            break
        name = "list_next"
    else:
        return Unknown(f"the list has more than {PAGES_MAX} pages")
    if found is not MISSING:
        return found
    if strangers and "list_next" not in options.urls and options.urls["list"].names & OWN:
        return Unknown("the list holds other jobs: the service does not filter it, so it may be cut")
    return Absent(None)


def _page(reply: Reply, options: Options, endpoint: Endpoint) -> tuple[list[Any], str] | Unknown:
    """Read one page: its jobs, and the name of the next one, "" for none."""
    if not 200 <= reply.status < 300:
        return Unknown(f"HTTP {reply.status} for the list")
    if reply.over:
        return Unknown(f"the list is over {LIST_BYTES_MAX} bytes")
    value = read_value(reply)
    if isinstance(value, Unknown):
        return value
    jobs = find(value, options.paths["items"])
    if not isinstance(jobs, list):
        return Unknown("the answer holds no list of jobs")
    following = MISSING if "list_next" not in options.urls else find(value, options.paths["next"])
    if following is MISSING or following is None or following is False or following == "":
        return jobs, ""
    page = handle_of(following, endpoint)
    return (jobs, page) if page else Unknown("the next page's name makes no sense")
