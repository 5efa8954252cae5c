"""Rules of the network and of the remote: when a request arrives, what becomes of its answer."""

from collections.abc import Callable
from typing import Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from reattach.models.answers import Phase, Progress
from reattach.models.effects import Submit, Watch
from reattach.models.events import Progressed
from reattach.runtime.testing.bench import Bench, pick, places, when, when_model
from reattach.runtime.testing.course import answered, checkpoint, due, go_on, under_way
from reattach.runtime.testing.wire import Exchange, Wire, handle_in

REPEATS_MAX: Final = 4
FATES: Final[dict[str, tuple[Callable[[Exchange], bool], Callable[[Wire, Exchange], None]]]] = {
    "the answer is lost": (answered, Wire.lose),
    "the request is lost": (under_way, Wire.lose),
    "the connection breaks": (under_way, Wire.cut),
    "the connection is refused": (due, Wire.not_sent),
    "the remote is too busy": (under_way, Wire.refuse),
}


class WireRules(Bench):
    """Each order in its pieces, for every life that has sent one."""

    @when(lambda m: m._unsent())
    @rule(which=places())
    def a_send_leaves(self, which: int) -> None:
        x = pick(self._unsent(), which)
        if x is not None:
            self.job.wire.leave(x)

    @when(lambda m: m._outward())
    @rule(which=places())
    def a_request_reaches_the_remote(self, which: int) -> None:
        """Also one whose sender is gone, as long as it may be under way."""
        x = pick(self._outward(), which)
        if x is not None:
            self.job.wire.reach(x)
            self.job.check()

    @when(lambda m: m._answered())
    @rule(which=places())
    def an_answer_arrives(self, which: int) -> None:
        x = pick(self._answered(), which)
        if x is not None:
            self.job.wire.answer(x)

    @when(lambda m: m._outward(owned=True))
    @rule(which=places())
    def a_request_is_lost(self, which: int) -> None:
        """It never reaches the remote, and its sender cannot know."""
        x = pick(self._outward(owned=True), which)
        if x is not None:
            self.job.wire.lose(x)

    @when(lambda m: m._answered())
    @rule(which=places())
    def an_answer_is_lost(self, which: int) -> None:
        """The remote has acted, and the sender cannot know."""
        x = pick(self._answered(), which)
        if x is not None:
            self.job.wire.lose(x)

    @when(lambda m: m._outward(owned=True))
    @rule(which=places())
    def a_connection_breaks(self, which: int) -> None:
        """The sender is told so, and the request arrives later, or never."""
        x = pick(self._outward(owned=True), which)
        if x is not None:
            self.job.wire.cut(x)

    @when(lambda m: m._unsent())
    @rule(which=places())
    def a_connection_is_refused(self, which: int) -> None:
        x = pick(self._unsent(), which)
        if x is not None:
            self.job.wire.not_sent(x)

    @when(lambda m: m._posts())
    @rule(which=places())
    def the_remote_is_too_busy(self, which: int) -> None:
        """It turns a POST down, in a way that may be tried again."""
        x = pick(self._posts(), which)
        if x is not None:
            self.job.wire.refuse(x)

    @when(lambda m: m.job.lines)
    @rule(fate=st.sampled_from(tuple(FATES)), moves=st.integers(0, 3), then_checkpoint=st.booleans())
    def a_send_meets_its_fate(self, fate: str, moves: int, then_checkpoint: bool) -> None:
        """The job goes on up to its next POST or response, and that one goes wrong."""
        milestone, act = FATES[fate]
        go_on(self.job, until=milestone)
        x = next((x for x in self.job.wire.exchanges if x.life is self.job.host and milestone(x)), None)
        if x is not None:
            act(self.job.wire, x)
            go_on(self.job, moves)
            if then_checkpoint:
                checkpoint(self.job)

    @when(lambda m: m._named())
    @rule(which=places())
    def a_handle_arrives_first(self, which: int) -> None:
        """The name of the run is known before the rest of the answer is."""
        x = pick(self._named(), which)
        if x is not None:
            self.job.wire.handle_first(x)

    @when(lambda m: m.job.wire.heard and m.repeats < REPEATS_MAX)
    @rule(which=places())
    def an_answer_arrives_again(self, which: int) -> None:
        """A second time, or after a restore at somebody who never asked."""
        wire = self.job.wire
        if wire.heard and self.repeats < REPEATS_MAX:
            self.repeats += 1
            wire.hear_again(self.job.host, which % len(wire.heard))

    @when(lambda m: m._streams())
    @rule(which=places())
    def a_stream_brings_something(self, which: int) -> None:
        x = pick(self._streams(), which)
        if x is not None and x.life is not None:
            x.life.inbox.append((x.key, Progressed(x.effect.ident, (Progress(b'"on my way"'),))))

    @when_model(lambda m: m.model.alive())
    @rule(
        which=places(),
        how=st.sampled_from(("completes", "completes", "fails", "fails for good", "asks", "asks")),
        moves=st.integers(0, 8),
    )
    def a_run_goes_on(self, which: int, how: str, moves: int) -> None:
        """It completes, fails, or asks a question, where the remote has questions."""
        number = self.model.alive()[which % len(self.model.alive())]
        if how == "asks" and not self.remote.terms.capabilities.responds:
            how = "completes"
        phase = {"completes": Phase.COMPLETED, "asks": Phase.AWAITING_INPUT}.get(how, Phase.FAILED)
        self.model.end(number, phase, for_good=how == "fails for good")
        self.job.tell(f"the remote: {self.model.runs[number].marker} {how}")
        go_on(self.job, moves)

    @when_model(lambda m: m.model.hidden())
    @rule(which=places())
    def a_run_is_shown(self, which: int) -> None:
        """Earlier than its bound; at its bound it is shown by itself."""
        number = self.model.hidden()[which % len(self.model.hidden())]
        self.model.show(number)
        self.job.tell(f"the remote shows {self.model.runs[number].marker}")

    @when_model(lambda m: m.model.old())
    @rule(which=places())
    def a_run_is_forgotten(self, which: int) -> None:
        """One that has ended, and is older than the remote's memory."""
        number = self.model.old()[which % len(self.model.old())]
        self.model.forget(number)
        self.job.tell(f"the remote forgets {self.model.runs[number].marker}")

    @precondition(lambda m: m.remote.whims)
    @rule(which=places())
    def the_server_has_a_whim(self, which: int) -> None:
        """Whatever the author of the remote has offered."""
        name = pick(sorted(self.remote.whims), which)
        if name is not None:
            self.job.tell(f"the server: {name}")
            self.remote.whims[name]()

    def _unsent(self) -> list[Exchange]:
        return [x for x in self.job.wire.exchanges if x.leaves_by_ms]

    def _outward(self, owned: bool = False) -> list[Exchange]:
        return [
            x
            for x in self.job.wire.exchanges
            if not x.leaves_by_ms and x.facts is None and (x.life is not None or not owned)
        ]

    def _answered(self) -> list[Exchange]:
        return [x for x in self.job.wire.exchanges if x.facts is not None]

    def _posts(self) -> list[Exchange]:
        return [x for x in self._outward(owned=True) if isinstance(x.effect, Submit) and x.step == 0]

    def _named(self) -> list[Exchange]:
        return [x for x in self._answered() if handle_in(x)]

    def _streams(self) -> list[Exchange]:
        return [x for x in self._outward(owned=True) if isinstance(x.effect, Watch)]
