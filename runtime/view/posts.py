"""What of a call was sent to the remote, whether the remote accepted it, and which fact shows it.

The facts are weighed by `replay.knowledge`, which the supposed crashes of `reattach replay` rest on as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reattach.models.identity import marker_of
from reattach.models.journal import JournalEntry
from reattach.runtime.replay.knowledge import Fate, Name, Run
from reattach.runtime.replay.past import Moment, past_of
from reattach.runtime.replay.reading import Call
from reattach.runtime.view.lanes import POSTS
from reattach.runtime.view.saying import fact


@dataclass(frozen=True, slots=True)
class Post:
    """One POST of a call.

    Args:
        number: the entry that ordered it; 0 where no entry of this journal did, and the remote has the run.
        generation, slot: which run it is to start.
        fate: None where the state at that time cannot be rebuilt.
        evidence: the fact that shows its fate, in words, and the number of its entry; "" and 0 where none has come.
    """

    number: int
    at_ms: int
    incarnation: str
    generation: int
    slot: int = 1
    fate: Fate | None = None
    evidence: str = ""
    evidence_number: int = 0


def posts_of(call: Call, calls: Mapping[Call, Sequence[JournalEntry]]) -> list[Post]:
    """List a call's POSTs, the oldest first.

    Args:
        calls: the entries of all calls on its thread.
    """
    entries = [entry for each in calls.values() for entry in each]
    moments = past_of(entries).moments
    first = next(at for at, entry in enumerate(entries) if entry is calls[call][0])
    weighing = _Weighing(call[2])
    for number, entry in enumerate(calls[call], 1):
        weighing.take(number, entry, moments.get(first + number - 1))
    return weighing.posts


class _Weighing:
    """Goes through a call's entries, and notes which of them has changed what is known of a POST."""

    def __init__(self, invocation_id: str) -> None:
        self.posts: list[Post] = []
        self._id = invocation_id
        self._latest: dict[Name, int] = {}
        self._open: int | None = None

    def take(self, number: int, entry: JournalEntry, moment: Moment | None) -> None:
        if self._open is not None and not self.posts[self._open].evidence:
            # Whatever comes first behind a POST is what became of waiting for its answer.
            self._tell(self._open, number, entry)
        if moment is not None:
            for name, run in _own(moment, self._id, entry.generation).items():
                self._weigh(name, run, number, entry)
        if not POSTS.isdisjoint(entry.effects):
            self._post(number, entry, moment)

    def _weigh(self, name: Name, run: Run, number: int, entry: JournalEntry) -> None:
        at = self._latest.get(name)
        if at is None:
            if run.fate is Fate.YES:
                generation = run.record.generation
                self._add(name, Post(0, entry.at_ms, "", generation, name[1], run.fate, fact(entry), number))
            return
        if self.posts[at].fate is not run.fate and POSTS.isdisjoint(entry.effects):
            self.posts[at] = replace(self.posts[at], fate=run.fate)
            self._tell(at, number, entry)

    def _post(self, number: int, entry: JournalEntry, moment: Moment | None) -> None:
        record = None if moment is None or moment.record.id != self._id else moment.record
        slot = 1 if record is None else record.slot
        name = marker_of(self._id, entry.generation), slot
        run = None if moment is None else _own(moment, self._id, entry.generation).get(name)
        post = Post(number, entry.at_ms, entry.incarnation, entry.generation, slot, None if run is None else run.fate)
        earlier = self._latest.get(name)
        if earlier is not None and run is not None:
            post = self._again(post, earlier, run, entry)
        self._add(name, post)
        self._open = len(self.posts) - 1

    def _again(self, post: Post, earlier: int, run: Run, entry: JournalEntry) -> Post:
        shown = self.posts[earlier]
        if run.fate is Fate.YES:
            # The run is known to be there already: what showed it then shows it still.
            return replace(post, evidence=shown.evidence, evidence_number=shown.evidence_number)
        if shown.fate not in (None, run.before):
            # The fact that lets this POST go has settled the one before.
            self.posts[earlier] = replace(shown, fate=run.before)
            self._tell(earlier, post.number, entry)
        return post

    def _add(self, name: Name, post: Post) -> None:
        self._latest[name] = len(self.posts)
        self.posts.append(post)

    def _tell(self, at: int, number: int, entry: JournalEntry) -> None:
        self.posts[at] = replace(self.posts[at], evidence=fact(entry), evidence_number=number)


def _own(moment: Moment, invocation_id: str, generation: int) -> dict[Name, Run]:
    markers = {marker_of(invocation_id, one) for one in range(1, generation + 1)}
    return {(run.marker, run.record.slot): run for run in moment.runs if run.marker in markers}
