"""An account as lines for people, and as data for machines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from rich.text import Text

from reattach.runtime.replay.knowledge import Fate
from reattach.runtime.run.inbox import one_line
from reattach.runtime.view.account import Account
from reattach.runtime.view.lanes import Step
from reattach.runtime.view.posts import Post
from reattach.runtime.view.saying import clock, cut, moment, span
from reattach.runtime.view.terminal import STYLES, step_data

# What a job may be late with a wake-up, and with a checkpoint that commits its journal, before it is worth a word.
LATE_MS: Final = 60_000
_LATE: Final = "the job is not running, or no checkpoint has completed since, with which newer entries appear here"
_FATES: Final = {
    Fate.YES: "accepted",
    Fate.NO: "not accepted, and never will be",
    Fate.DOUBT: "not known whether the remote accepted it",
    None: "not known here: entries before it are missing, or this release comes to another state",
}


def lines(account: Account, steps_max: int) -> Iterator[Text]:
    """The account.

    Args:
        steps_max: of the latest steps show so many; 0 for all.
    """
    yield from _head(account)
    yield from _section("What happened", _happened(account, steps_max))
    yield from _section("What it waits for", _waits(account))
    yield from _section("What was sent", _posts(account.posts))
    if account.unknown:
        yield from _section("Not known", [account.unknown])
        return
    yield from _section("What the guarantee rests on here", account.rests_on)
    yield from _section("What may be done", _options(account))


def _head(account: Account) -> Iterator[Text]:
    agent, thread, name = (one_line(part, 200) for part in account.call)
    latest = account.steps[-1]
    yield Text.assemble((name, "bold"), f"  agent {agent}, thread {thread}, generation {latest.generation}")
    state = Text.assemble("  ", (latest.after.value, f"bold {STYLES[latest.after.status]}"))
    state.append(f" since {moment(account.since_ms)}")
    if not latest.after.terminal:
        state.append(f", for {span(account.now_ms - account.since_ms)}")
    yield state
    ago = account.now_ms - account.known_until_ms
    yield Text(f"  the journal ends at {moment(account.known_until_ms)}, {span(ago)} ago", "dim")


def _section(title: str, texts: Iterable[str | Text]) -> Iterator[Text]:
    yield Text()
    yield Text(title, "bold")
    for text in texts:
        yield text if isinstance(text, Text) else Text(f"  {text}")


def _happened(account: Account, steps_max: int) -> Iterator[Text]:
    steps = account.steps[-steps_max:] if steps_max else account.steps
    if len(steps) < len(account.steps):
        yield Text(f"  ({len(account.steps) - len(steps)} steps before; --steps 0 shows all)", "dim")
    day = ""
    for step in steps:
        if moment(step.at_ms)[:10] != day:
            day = moment(step.at_ms)[:10]
            yield Text(f"  {day}", "dim")
        if step.begins_life or step.gap:
            yield Text(f"  {_life(step)}", "bold" if step.restored or step.gap else "dim")
        yield _step(step)


def _life(step: Step) -> str:
    opened = f"life {one_line(step.incarnation, 9)[:8]} of the host, opened at {clock(step.opened_ms)}"
    note = f": {step.note}" if step.note else ""
    missing = "entries are missing here; " if step.gap else ""
    return f"-- {missing}{opened}{note}"


def _step(step: Step) -> Text:
    text = Text(f"  {clock(step.at_ms)} {step.number:>4}  ", "dim")
    body = Text(step.says, "dim" if step.undone else "")
    if step.does:
        body.append(f"; {step.does}")
    if step.before is not step.after:
        body.append(" -> ").append(step.after.value, STYLES[step.after.status])
    if step.undone:
        body.append(" (undone)")
    return text.append_text(body)


def _waits(account: Account) -> Iterator[str]:
    yield account.waits_for
    yield from account.details
    ended = account.leaf.terminal
    if account.status_since_ms and not ended:
        yield f"{account.leaf.status.name} since {moment(account.status_since_ms)}"
    if account.wake_at_ms:
        yield f"{'its thread' if ended else 'it'} goes on by itself at {moment(account.wake_at_ms)} at the latest"
        late_ms = account.now_ms - account.wake_at_ms
        if late_ms > LATE_MS:
            yield f"that was {span(late_ms)} ago: {_LATE}"
    if account.deadline_ms and not ended:
        over = "; that has passed" if account.deadline_ms <= account.now_ms else ""
        yield f"its deadline is {moment(account.deadline_ms)}{over}"


def _posts(posts: Sequence[Post]) -> Iterator[str]:
    if not posts:
        yield "no POST"
    for post in posts:
        run = f"generation {post.generation}" + (f", slot {post.slot}" if post.slot > 1 else "")
        if post.number:
            life = f"by life {one_line(post.incarnation, 9)[:8]}"
            yield f"{run}: a POST, ordered at {moment(post.at_ms)} (entry {post.number}, {life})"
        else:
            yield f"{run}: no POST of it is in this journal"
        shown = f"entry {post.evidence_number}: {cut(post.evidence)}" if post.evidence else "nothing has come since"
        yield f"  {_FATES[post.fate]}; {shown}"


def _options(account: Account) -> Iterator[Text]:
    if account.leaf.terminal:
        yield Text("  nothing: it has ended, and what comes is counted and dropped")
        return
    yield Text("  wait: it goes on by itself as told above")
    for option in account.options:
        yield Text(f"  {option.meaning}:")
        yield Text(f"    {option.command}", "bold")


def as_data(account: Account) -> dict[str, Any]:
    """The account for machines; times that are not known are 0."""
    agent, thread, name = account.call
    return {
        "agent": agent,
        "thread_id": thread,
        "invocation_id": name,
        "generation": account.steps[-1].generation,
        "status": account.leaf.status.name,
        "leaf": account.leaf.value,
        "since_ms": account.since_ms,
        "status_since_ms": account.status_since_ms,
        "requested_at_ms": account.requested_at_ms,
        "deadline_ms": account.deadline_ms,
        "wake_at_ms": account.wake_at_ms,
        "known_until_ms": account.known_until_ms,
        "handle": account.handle,
        "unknown": account.unknown,
        "waits_for": account.waits_for,
        "details": list(account.details),
        "posts": [
            {**asdict(post), "fate": "unknown" if post.fate is None else post.fate.value} for post in account.posts
        ],
        "rests_on": list(account.rests_on),
        "options": [asdict(option) for option in account.options],
        "steps": [step_data(step) for step in account.steps],
    }
