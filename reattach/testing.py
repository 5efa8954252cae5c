"""The harness for authors of adapters: needs `reattach[testing]`. See docs/testing.md."""

from reattach.runtime.testing import strategies
from reattach.runtime.testing.live import LiveRemote
from reattach.runtime.testing.machine import RemoteMachine
from reattach.runtime.testing.model import UNIT_POLICY, ModelRemote
from reattach.runtime.testing.profiles import LIVE, load_profile
from reattach.runtime.testing.remote import RemoteUnderTest
from reattach.runtime.testing.story import PropertyBroken

__all__ = [
    "LIVE",
    "UNIT_POLICY",
    "LiveRemote",
    "ModelRemote",
    "PropertyBroken",
    "RemoteMachine",
    "RemoteUnderTest",
    "load_profile",
    "strategies",
]
