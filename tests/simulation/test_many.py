"""Many worlds as one run: sizes, seeds, sums; what is told of those that fail."""

import shlex
from dataclasses import replace

import pytest

from reattach.models.errors import ConfigError
from reattach.runtime.driver import Driver
from reattach.runtime.mutants.catalogue import MUTANTS
from reattach.runtime.simulation import many
from reattach.runtime.simulation.history import ENTRIES_SHOWN, history_of
from reattach.runtime.simulation.host import Host
from reattach.runtime.simulation.many import Plan, check, run_all, run_one
from reattach.runtime.simulation.report import Report, total


def nothing(_: Report) -> None:
    pass


def test_a_world_of_a_plan_is_that_world_alone() -> None:
    plan = Plan(17, 2_500, "lose", ("fenceable",))
    worlds = list(plan.worlds())
    assert [(one.seed, one.calls) for one in worlds] == [(17, 1_000), (18, 1_000), (19, 500)]
    for one in worlds:
        assert list(one.worlds()) == [one]
        assert (one.faults, one.remotes) == ("lose", ("fenceable",))


def test_the_command_names_everything_that_was_chosen() -> None:
    command = Plan(3, 10, "lose=0.2, crash_every_ms", ("fenceable", "marker-list")).command
    assert shlex.split(command) == [
        *("reattach", "simulate", "--seed", "3", "--calls", "10", "--faults", "lose=0.2, crash_every_ms"),
        *("--remote", "fenceable", "--remote", "marker-list"),
    ]


@pytest.mark.parametrize("plan", [Plan(1, 1, "rain"), Plan(1, 1, "none", ("rain",))])
def test_what_is_not_known_is_refused(plan: Plan) -> None:
    with pytest.raises(ConfigError, match="rain"):
        check(plan)


def test_only_the_chosen_remotes_are_called() -> None:
    world = many.world_of(Plan(1, 20, "none", ("fenceable", "handle-only")))
    world.run()
    assert {name.rpartition("-")[0] for name in world.ledger.committed} == {"fenceable", "handle-only"}


def test_the_number_of_processes_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(5, 110, "all")
    # More worlds than are handed out at once.
    monkeypatch.setattr(many, "WORLD_CALLS_MAX", 10)
    told: list[Report] = []
    alone = run_all(plan, 1, told.append)
    assert told == alone
    together = run_all(plan, 2, nothing)
    assert [replace(one, seconds=0) for one in together] == [replace(one, seconds=0) for one in alone]
    assert len({one.steps for one in alone}) > 1


def test_who_stops_the_run_does_not_wait_for_the_worlds_that_have_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "WORLD_CALLS_MAX", 10)
    monkeypatch.setattr(many, "AHEAD", 1_000)
    told = []

    def stop(report: Report) -> None:
        told.append(report)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(Plan(1, 1_000_000), 2, stop)
    assert len(told) == 1


def test_the_sum_of_worlds() -> None:
    reports = run_all(Plan(5, 40, "all"), 1, nothing) + run_all(Plan(6, 30, "all"), 1, nothing)
    whole = total(reports)
    assert (whole.seed, whole.calls) == (5, 70)
    for name in ("crashes", "checkpoints", "steps", "parked", "simulated_ms", "seconds"):
        assert getattr(whole, name) == sum(getattr(one, name) for one in reports), name
    assert sum(whole.ended.values()) == 70
    assert whole.happened["lose"] == sum(one.happened["lose"] for one in reports)
    assert whole.good
    assert whole.calls_per_second == pytest.approx(70 / whole.seconds, rel=0.01)


def test_a_violation_names_its_call_and_its_history_ends_with_the_deed() -> None:
    with MUTANTS["no-quiet-time"].apply():
        report = next(one for one in (run_one(Plan(seed, 200, "all")) for seed in range(20)) if one.violations)
        (call,) = report.broken
        lines = list(history_of(Plan(report.seed, 200, "all"), call))
    assert report.violations[0].startswith(f"accepted twice: {call}")
    assert lines[0] == f"history of {call}:"
    assert "requested" in lines[1]
    assert any("Submit" in line for line in lines)


def test_a_long_history_is_cut_at_its_beginning() -> None:
    plan = Plan(1, 6, "stuck=1")
    cut, *shown = list(history_of(plan, "status-only-0"))[1:]
    assert len(shown) == ENTRIES_SHOWN
    last = int(shown[-1].split()[0])
    assert cut == f"  ({last - ENTRIES_SHOWN} entries before)"
    assert "running" in shown[-1]


def test_a_call_without_a_step_has_no_history() -> None:
    assert list(history_of(Plan(1, 1), "nobody")) == ["history of nobody:", "  (no step of it was made)"]


def test_an_exception_of_the_product_is_kept_with_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    apply, count = Driver.apply, 0

    def fail(*arguments):  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        if count == 40:
            raise ZeroDivisionError("of the test")
        return apply(*arguments)

    monkeypatch.setattr(Driver, "apply", fail)
    report = run_one(Plan(1, 20))
    assert not report.good
    assert report.crash.startswith("Traceback")
    assert "ZeroDivisionError: of the test" in report.crash
    assert (report.exceptions, report.violations, report.stuck) == (1, (), 0)
    assert report.broken


def test_a_call_that_never_ends_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "_fire", lambda *_: None)
    report = run_one(Plan(1, 6, "none", ("status-only",)))
    assert not report.good
    assert report.stuck == len(report.broken) == 6
    assert report.violations == ()
