"""How long the harness searches: three Hypothesis profiles, chosen by name or by the environment."""

import os
from typing import Final

from hypothesis import HealthCheck, Phase, settings

from reattach.models.errors import ConfigError

VARIABLE: Final = "REATTACH_PROFILE"
# A failure is shown as it was found: making it shorter can take minutes.
_AS_FOUND: Final = (Phase.explicit, Phase.reuse, Phase.generate)
# Shared machines are slow at odd moments: a deadline per example would fail for that alone.
_COMMON: Final = settings(
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
)
PROFILES: Final = {
    "dev": settings(_COMMON, max_examples=100, stateful_step_count=40, phases=_AS_FOUND),
    "ci": settings(_COMMON, max_examples=100, stateful_step_count=50, derandomize=True, database=None),
    "deep": settings(_COMMON, max_examples=5_000, stateful_step_count=100),
}
# For a live server: time is real, and an example that failed need not fail again while it is made shorter.
LIVE: Final = settings(
    _COMMON, max_examples=5, stateful_step_count=30, phases=[Phase.explicit, Phase.generate], database=None
)


def load_profile(name: str | None = None) -> str:
    """Make one of the profiles the one in force.

    Args:
        name: `dev` is fast and shows a failure as it was found, `ci` is the same on every run, `deep` is
            for nights; these two make a failure shorter. Without a name the variable `REATTACH_PROFILE`
            decides; without that it is `ci` where `CI` is set, else `dev`.

    Returns:
        The name of the profile that is in force now.

    Raises:
        ConfigError: no such profile.
    """
    chosen = name or os.environ.get(VARIABLE) or ("ci" if os.environ.get("CI") else "dev")
    if chosen not in PROFILES:
        raise ConfigError(f"{chosen}: no such profile (known: {', '.join(PROFILES)})")
    for each, profile in PROFILES.items():
        settings.register_profile(f"reattach-{each}", profile)
    settings.load_profile(f"reattach-{chosen}")
    return chosen
