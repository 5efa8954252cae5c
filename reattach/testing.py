"""The harness for authors of adapters: needs `reattach[testing]`. See docs/testing.md and docs/conformance.md."""

from reattach.runtime.conformance.suite import AdapterConformance
from reattach.runtime.conformance.target import CONFORMANCE_POLICY, Target, count_lines
from reattach.runtime.proxy import faults
from reattach.runtime.proxy.proxy import FaultProxy
from reattach.runtime.testing import strategies
from reattach.runtime.testing.live import LiveRemote
from reattach.runtime.testing.machine import RemoteMachine
from reattach.runtime.testing.model import UNIT_POLICY, ModelRemote
from reattach.runtime.testing.profiles import LIVE, load_profile
from reattach.runtime.testing.remote import RemoteUnderTest
from reattach.runtime.testing.story import PropertyBroken

__all__ = [
    "CONFORMANCE_POLICY",
    "LIVE",
    "UNIT_POLICY",
    "AdapterConformance",
    "FaultProxy",
    "LiveRemote",
    "ModelRemote",
    "PropertyBroken",
    "RemoteMachine",
    "RemoteUnderTest",
    "Target",
    "count_lines",
    "faults",
    "load_profile",
    "strategies",
]
