"""The machine that authors of adapters subclass."""

import sys

from reattach.runtime.testing.course import settle
from reattach.runtime.testing.rules_input import InputRules
from reattach.runtime.testing.rules_job import JobRules
from reattach.runtime.testing.rules_wire import WireRules


class RemoteMachine(InputRules, JobRules, WireRules):
    """A job on the code that ships, against one remote, while anything may go wrong.

    Subclass it, let `make_remote` return a `ModelRemote` or a `LiveRemote`, and give its `TestCase`
    to pytest:

        class MyMachine(RemoteMachine):
            def make_remote(self):
                return ModelRemote(MARKER_LIST)

        TestMyRemote = MyMachine.TestCase

    Rules are what may happen; see `InputRules`, `JobRules` and `WireRules`. After each of them the
    properties of docs/testing.md are checked. In the end nothing goes wrong any more, and every call
    must come to its end or wait for people.
    """

    def teardown(self) -> None:
        """Check liveness, unless the example has failed or was given up already."""
        try:
            if sys.exc_info()[0] is None:
                settle(self.job)
        finally:
            self.remote.close()
