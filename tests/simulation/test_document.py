"""docs/simulation.md says what the code does."""

import re

from reattach.runtime.cli import simulate
from reattach.runtime.simulation.many import WORLD_CALLS_MAX, Plan, run_one
from reattach.runtime.simulation.report import total
from tests.packaging.layers import ROOT

PAGE = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_exit_codes_are_those_of_the_command() -> None:
    codes = {name: getattr(simulate, name.upper()) for name in ("safety", "liveness", "crash")}
    assert {name: f"| {code} | {name}: " in PAGE for name, code in codes.items()} == dict.fromkeys(codes, True)
    for name, code in codes.items():
        assert f"{code} {name} (" in (simulate.command.__doc__ or "")


def test_every_figure_of_the_json_is_named() -> None:
    plan = Plan(1, 1)
    figures = simulate._as_json(plan, total([run_one(plan)]), 1.0, 1)
    named = " ".join(re.findall(r"`([^`]*calls_per_second|faults, remotes[^`]*)`", PAGE)).replace("\n", " ")
    assert set(re.split(r"[,\s]+", named)) == set(figures)


def test_the_size_of_a_world_is_the_stated_one() -> None:
    assert f"worlds of at most {WORLD_CALLS_MAX:,}" in PAGE
