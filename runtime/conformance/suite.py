"""A pytest class that asks an adapter and a live server whether the adapter tells the truth.

A subclass names its `target`; everything else is here. Each test is one promise of the contract
(`reattach.adapters.contract`), checked through a fault proxy against what the server has really done. See
docs/conformance.md.
"""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import pytest

from reattach.models.answers import Phase
from reattach.models.errors import ConfigError
from reattach.runtime.conformance.control import CancelChecks, FenceChecks, QuestionChecks
from reattach.runtime.conformance.course import CourseChecks
from reattach.runtime.conformance.hostile import HostileChecks
from reattach.runtime.conformance.reads import ReadChecks
from reattach.runtime.conformance.rig import Rig, rigged
from reattach.runtime.conformance.said import Call
from reattach.runtime.conformance.streams import StreamChecks
from reattach.runtime.conformance.submit import SubmitChecks
from reattach.runtime.conformance.target import Target, running
from reattach.runtime.conformance.truth import LEAST_S


# pytest takes the tests of the last base first.
class AdapterConformance(
    HostileChecks, QuestionChecks, FenceChecks, CancelChecks, StreamChecks, ReadChecks, SubmitChecks, CourseChecks
):
    """Subclass it under a name that pytest collects, and set `target`, or override `serve`.

    Attributes:
        target: the server, its adapter, and what only their author knows.
    """

    target: ClassVar[Target]

    @classmethod
    def serve(cls, folder: Path) -> AbstractContextManager[Target]:  # noqa: ARG003
        """Start the server for all tests of the class, and give the target with its URL.

        Args:
            folder: an empty one, for the server's files.

        Raises:
            ConfigError: the class names no target.
        """
        if not isinstance(getattr(cls, "target", None), Target):
            raise ConfigError(f"{cls.__name__}.target: set a Target, or override serve()")
        return running(cls.target)

    @pytest.fixture(scope="class")
    @classmethod
    def rig(cls, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
        """The adapter, the proxy and the server."""
        with request.cls.serve(tmp_path_factory.mktemp("conformance")) as target, rigged(target) as rig:
            yield rig

    @pytest.fixture(scope="class")
    @classmethod
    def ended(cls, rig: Rig) -> Call:
        """A call that has completed."""
        call = rig.call()
        rig.submit(call)
        rig.until_shown(call, Phase.COMPLETED)
        return call

    @pytest.fixture(autouse=True)
    def credential(self, rig: Rig, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
        """After each test: the credential is in nothing that was said or logged in it."""
        caplog.set_level(logging.DEBUG)
        rig.said.clear()
        yield
        check_secret(rig, caplog)

    def test_at_the_end_no_call_was_executed_more_often_than_was_said(self, rig: Rig) -> None:
        """What lands late shows here, so this stands last."""
        rig.soon(lambda: False, max(LEAST_S, rig.admission_s))
        for call in rig.calls:
            found = rig.executions(call)
            if found > 1:
                rig.fail(f"{call.id} was executed {found} times; {call.why}")
            if call.expected is not None and found != call.expected:
                rig.fail(f"{call.id} was executed {found} times instead of {call.expected}; {call.why}")


def check_secret(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """Fail where the credential is in what the adapter has said or somebody has logged."""
    if not rig.secret:
        return
    for one in rig.said:
        if rig.secret in one:
            pytest.fail(f"the adapter told the credential: {one.replace(rig.secret, '***')}", pytrace=False)
    loud = {one.name for one in caplog.records if rig.secret in one.getMessage() or rig.secret in repr(one.args)}
    if loud:
        pytest.fail(f"the credential was logged by {', '.join(sorted(loud))}", pytrace=False)
