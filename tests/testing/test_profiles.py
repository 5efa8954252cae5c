"""The profiles: which one is in force, and that the one of CI is the same on every run."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from reattach.models.errors import ConfigError
from reattach.runtime.simulation.remotes import MARKER_LIST
from reattach.testing import ModelRemote, PropertyBroken, RemoteMachine, load_profile
from tests.testing.making import model


@pytest.fixture(autouse=True)
def in_force_again() -> Iterator[None]:
    before = settings.get_current_profile_name()
    yield
    settings.load_profile(before)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "dev"),
        ({"CI": "true"}, "ci"),
        ({"CI": ""}, "dev"),
        ({"REATTACH_PROFILE": "deep"}, "deep"),
        ({"REATTACH_PROFILE": "dev", "CI": "1"}, "dev"),
    ],
)
def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str) -> None:
    for name in ("CI", "REATTACH_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert load_profile() == expected
    assert settings.get_current_profile_name() == f"reattach-{expected}"


def test_a_name_decides_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_PROFILE", "deep")
    assert load_profile("ci") == "ci"
    assert settings.default is not None
    assert (settings.default.derandomize, settings.default.print_blob) == (True, True)


def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_PROFILE", "nightly")
    with pytest.raises(ConfigError, match=r"nightly: no such profile \(known: dev, ci, deep\)"):
        load_profile()


@pytest.mark.parametrize(("name", "shorter"), [("dev", False), ("ci", True), ("deep", True)])
def test_which_profiles_make_a_failure_shorter(name: str, shorter: bool) -> None:
    load_profile(name)
    assert settings.default is not None
    assert (Phase.shrink in settings.default.phases) is shorter
    assert {Phase.explicit, Phase.reuse, Phase.generate} <= set(settings.default.phases)


def test_under_dev_a_search_ends_with_the_first_failure() -> None:
    load_profile("dev")
    made: list[ModelRemote] = []

    class Late(RemoteMachine):
        def make_remote(self) -> ModelRemote:
            made.append(ModelRemote(MARKER_LIST, shows_within_ms=40))
            return made[-1]

    assert settings.default is not None
    with pytest.raises(PropertyBroken, match="accepted twice"):
        run_state_machine_as_test(Late, settings=settings(settings.default, derandomize=True, database=None))
    # The last one is the replay that is shown; nothing else runs after a failure.
    twice = [any(n > 1 for n in Counter(run.marker for run in each.runs).values()) for each in made]
    assert twice.index(True) >= len(twice) - 2


def test_under_ci_two_runs_are_one_run() -> None:
    load_profile("ci")
    stories: list[list[str]] = [[], []]

    def run(into: list[str]) -> None:
        class Told(RemoteMachine):
            def make_remote(self) -> ModelRemote:
                return model("fenceable")

            def teardown(self) -> None:
                super().teardown()
                into.append(self.job.story.text())

        run_state_machine_as_test(Told, settings=settings(settings.default, max_examples=15))

    for into in stories:
        run(into)
    assert len(stories[0]) >= 15
    assert stories[0] == stories[1]
