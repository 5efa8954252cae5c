"""Keeps one job going: starts it from its latest checkpoint, watches it, and ends it when it is done.

What the job does is Flink's and the host's business. The runner sees folders and Flink's REST
interface, and decides three things: whether the job is still healthy, whether every request has its
outcome, and what to say. All its own memory can be read again from the folders, so it may die at any
moment; the JVM dies with it, and the next start goes on from the latest checkpoint.
"""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final, Protocol

from reattach.models.errors import ReattachError
from reattach.runtime.config import RunConfig
from reattach.runtime.run import checkpoints
from reattach.runtime.run.inbox import Inbox, Orders
from reattach.runtime.run.outbox import Outbox
from reattach.runtime.run.rest import Health, Rest, free_port

LOOK_S: Final = 0.25
HEALTH_S: Final = 1.0
END_S: Final = 20.0
SETTLE_S: Final = 10.0
STUCK_S: Final = 30.0
PORTS_MAX: Final = 5
# Restarting cannot help against these, and Flink would go on restarting.
HOPELESS: Final = ("No module named", "ImportError", "ConfigError", "cannot import name", "TooNew:", "Corrupt:")


class JobFailed(ReattachError):
    """The job cannot go on; the message says why and what to do."""


class Ending(Enum):
    """How a run came to its end."""

    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What there is to show.

    Args:
        wanted, missing: calls that were asked for, and those of them without outcome.
        live: calls in the job by status, as of about a second ago.
        by_status: outcomes by status.
    """

    phase: str
    wanted: int = 0
    missing: int = 0
    rejected: int = 0
    live: dict[str, int] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    checkpoints: int = 0
    failure: str = ""


class Screen(Protocol):
    """Where a run shows what it does."""

    def say(self, line: str) -> None: ...

    def update(self, snapshot: Snapshot) -> None: ...


class Submit(Protocol):
    """Builds a job and starts it; returns PyFlink's JobClient."""

    def __call__(self, config: RunConfig, *, resume_from: Path | None, rest_port: int, lineage: bool) -> Any: ...


class Runner:
    """One run of one configured job.

    Args:
        resume_from: a checkpoint to start from instead of the latest one.
        submit: builds and starts the job; None for `reattach.runtime.flink.job.submit`.
    """

    def __init__(
        self,
        config: RunConfig,
        screen: Screen,
        *,
        resume_from: Path | None = None,
        submit: Submit | None = None,
    ) -> None:
        self._submit = submit
        self._config = config
        self._screen = screen
        self._resume_from = resume_from
        limits = {name: agent.policy.message_bytes_max for name, agent in config.agents.items()}
        self.inbox = Inbox(config.job.requests, config.job.rejects, limits)
        control = config.job.control
        self._orders = [] if control is None else [Orders(control, config.job.rejects, limits)]
        self.outbox = Outbox(config.job.outcomes)
        self._interrupted = False
        self._health = Health()
        self._live: dict[str, int] = {}
        self._changed: set[Path] = set()
        self._moved_s = time.monotonic()
        self._warned = False

    def run(self) -> Ending:
        """Run the job to its end.

        Returns:
            `DONE` when every request has its outcome, `STOPPED` after SIGINT or SIGTERM.

        Raises:
            ConfigError: a folder is in use, or Flink is not installed.
            JobFailed: the job failed for good, or its JVM died.
        """
        job = self._config.job
        for folder in (job.requests, job.outcomes, job.checkpoints, job.control):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        lock = checkpoints.Lock(job.checkpoints, say=self._screen.say)
        try:
            self._look()
            if job.idle_stop and self.outbox.missing == 0:
                return Ending.DONE
            with self._signals():
                return self._launch(lock)
        finally:
            lock.release()

    def snapshot(self, phase: str) -> Snapshot:
        return Snapshot(
            phase,
            len(self.inbox.calls),
            self.outbox.missing,
            sum(watched.rejected for watched in (self.inbox, *self._orders)),
            dict(self._live),
            dict(self.outbox.by_status),
            self._health.checkpoints,
            self._health.failure,
        )

    def _launch(self, lock: checkpoints.Lock) -> Ending:
        from reattach.runtime.flink import gateway

        job = self._config.job
        resume_from = self._resume_from or checkpoints.latest(job.checkpoints)
        checkpoints.prune(job.checkpoints, resume_from)
        shutil.rmtree(job.checkpoints / checkpoints.TEMPORARY, ignore_errors=True)
        self._screen.say(f"resuming from {resume_from}" if resume_from else "starting without a checkpoint")
        if resume_from is None and self.outbox.calls:
            self._screen.say(
                f"warning: there are outcomes in {job.outcomes} and no checkpoint of the job that wrote them: "
                "every call is asked about anew, and finished ones are written a second time"
            )
        jvm = gateway.start_jvm(job.logs, name=job.name, held=lock.fileno())
        try:
            from reattach.runtime.flink import job as flink_job

            client, rest = self._start(self._submit or flink_job.submit, resume_from)
            return self._watch(client, rest, jvm)
        except JobFailed:
            raise
        except Exception as error:
            if jvm.poll() is not None:
                raise JobFailed(self._died(jvm)) from error
            raise
        finally:
            _end(jvm)

    def _start(self, submit: Callable[..., Any], resume_from: Path | None) -> tuple[Any, Rest]:
        from reattach.runtime.flink import gateway

        which = f" from {resume_from} (--from names another)" if resume_from else ""
        tries = 0
        while True:
            port = free_port()
            tries += 1
            try:
                with gateway.in_one_line(f"Flink did not start the job{which}"):
                    client = submit(
                        self._config, resume_from=resume_from, rest_port=port, lineage=self._lineage(resume_from)
                    )
                return client, Rest(port, str(client.get_job_id()))
            except gateway.GatewayError as error:
                if "Cannot map checkpoint" in str(error):
                    raise JobFailed(
                        f"{resume_from} holds the state of an input or output that is not configured any more: "
                        "put control, journal, notices or progress back into [job]"
                    ) from error
                # Somebody else may take the port between our look and Flink's.
                if tries == PORTS_MAX or "BindException" not in str(error):
                    raise

    def _lineage(self, resume_from: Path | None) -> bool:
        """Nothing happened after the state that the job starts from: it is the latest, or there was no job before."""
        return self._resume_from is None and (resume_from is not None or not self.outbox.calls)

    def _watch(self, client: Any, rest: Rest, jvm: "subprocess.Popen[bytes]") -> Ending:
        asked_s = 0.0
        while True:
            if jvm.poll() is not None:
                raise JobFailed(self._died(jvm))
            self._look()
            if time.monotonic() - asked_s >= HEALTH_S:
                self.ask(rest)
                self._warn_if_stuck()
                asked_s = time.monotonic()
            self._screen.update(self.snapshot(self._phase()))
            if self._config.job.idle_stop and self.outbox.missing == 0:
                self._settle()
                self._cancel(client)
                return Ending.DONE
            if self._interrupted:
                self._cancel(client)
                return Ending.STOPPED
            time.sleep(LOOK_S)

    def _look(self) -> None:
        self.outbox.expect(self.inbox.scan())
        if self.outbox.scan():
            self._moved_s = time.monotonic()
        for orders in self._orders:
            orders.look()
        changed = {path for watched in (self.inbox, *self._orders) for path in watched.changed} - self._changed
        for path in sorted(changed):
            self._screen.say(
                f"warning: {path} changed after it was read; Flink reads a file once, add a new one instead"
            )
        self._changed |= changed

    def ask(self, rest: Rest) -> None:
        """Ask how the job is.

        Raises:
            JobFailed: it cannot go on.
        """
        health = rest.health()
        if not health.state:
            return
        self._health = health
        self._live = rest.live()
        if health.state == "FAILED":
            raise JobFailed(f"the job failed: {health.failure or 'no cause on record'}; logs: {self._config.job.logs}")
        if health.state in ("CANCELED", "FINISHED", "SUSPENDED"):
            raise JobFailed(f"the job was ended from outside ({health.state}); start again to resume it")
        if any(sign in health.failure for sign in HOPELESS):
            raise JobFailed(f"the job cannot start: {health.failure}; logs: {self._config.job.logs}")

    def _warn_if_stuck(self) -> None:
        """Say so when calls are waited for that the job does not know: it would wait for ever."""
        if not self._live or any(self._live.values()) or not self._health.running or not self.outbox.missing:
            self._moved_s = time.monotonic()
        elif not self._warned and time.monotonic() - self._moved_s > STUCK_S:
            self._warned = True
            self._screen.say(
                f"warning: {self.outbox.missing} requests have no outcome, and the job knows no call that is going on: "
                "was a request file changed after it was placed, or an outcome file removed?"
            )

    def _phase(self) -> str:
        if self._health.state == "RESTARTING":
            return "restarting"
        return "running" if self._health.running else "starting"

    def _settle(self) -> None:
        """Let the last checkpoint reach the other sinks: each commits in its own time."""
        job = self._config.job
        if job.journal is None and job.notices is None and job.progress is None:
            return
        folder = job.checkpoints
        seen = checkpoints.latest(folder)
        until = time.monotonic() + SETTLE_S
        while checkpoints.latest(folder) == seen and time.monotonic() < until:
            time.sleep(LOOK_S)
        time.sleep(LOOK_S)

    def _cancel(self, client: Any) -> None:
        """Cancel the job; its checkpoints stay."""
        with contextlib.suppress(Exception):
            client.cancel().result()

    def _died(self, jvm: "subprocess.Popen[bytes]") -> str:
        code = jvm.returncode
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"the Flink process {how}; start again to resume; logs: {self._config.job.logs}"

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn the first SIGINT or SIGTERM into an orderly end, a second one into an immediate one."""

        def interrupt(_number: int, _frame: object) -> None:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True

        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _end(jvm: "subprocess.Popen[bytes]") -> None:
    """End the JVM and wait for it, since it holds the lock."""
    jvm.terminate()
    try:
        jvm.wait(END_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
