"""The host's clock: what it shows when the clocks under it misbehave."""

from hypothesis import given
from hypothesis import strategies as st

from reattach.runtime.clock import SteadyClock

MS = 1_000_000
HOUR_MS = 3_600_000


class Clocks:
    """A wall clock and a monotonic one, moved by a test."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000_000
        self.tick = 5_000
        self.clock = SteadyClock(lambda: self.wall * MS, lambda: self.tick * MS)

    def move(self, wall: int, tick: int) -> int:
        self.wall += wall
        self.tick += tick
        return self.clock.now_ms()


def test_it_is_the_wall_clock_as_long_as_that_goes_on() -> None:
    clocks = Clocks()
    assert clocks.move(10, 11) == clocks.wall
    assert clocks.move(HOUR_MS, 5) == clocks.wall, "also after a pause that the monotonic clock did not see"
    assert clocks.clock.wall_ms(clocks.wall + 7) == clocks.wall + 7


def test_a_wall_clock_that_is_set_back_does_not_stop_it() -> None:
    clocks = Clocks()
    before = clocks.move(0, 0)
    assert clocks.move(-HOUR_MS, 250) == before + 250
    assert clocks.move(1_000, 1_000) == before + 1_250
    assert clocks.clock.wall_ms(before + 1_250 + 40) == clocks.wall + 40, "a timer of the wall clock, 40 ms from now"


def test_once_the_wall_clock_is_ahead_again_it_follows() -> None:
    clocks = Clocks()
    clocks.move(-HOUR_MS, 10)
    assert clocks.move(2 * HOUR_MS, 10) == clocks.wall
    assert clocks.clock.wall_ms(clocks.wall) == clocks.wall


@given(st.lists(st.tuples(st.integers(-10_000, 10_000), st.integers(0, 10_000)), max_size=30))
def test_it_never_runs_backwards_and_never_stands_still_for_long(moves: list[tuple[int, int]]) -> None:
    clocks = Clocks()
    last = clocks.move(0, 0)
    for wall, tick in moves:
        now = clocks.move(wall, tick)
        assert now >= last
        assert now >= clocks.wall
        assert now - last >= tick or now == clocks.wall
        assert abs(clocks.clock.wall_ms(now) - clocks.wall) <= 1
        last = now
