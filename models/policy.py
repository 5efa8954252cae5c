"""What a remote can do (`Capabilities`) and what its user wants (`Policy`), checked together.

The safety of a call rests on these numbers, so they are refused at construction when they
contradict each other: a policy that the capabilities cannot keep never reaches a job.
"""

from dataclasses import dataclass, field
from enum import Enum

from reattach.models.errors import ConfigError

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
# What one thread's state may hold, with room to spare below the codec's own limits.
THREAD_BYTES_MAX = 48 * 1024 * 1024
METADATA_BYTES_MAX = 16 * 1024
ITEMS_MAX = 50_000


class Deduplication(Enum):
    """Does the remote refuse a second submit under the same key?"""

    NONE = "none"
    KEY = "key"


class Evidence(Enum):
    """How a probe recognises an invocation when its handle is not known."""

    MARKER = "marker"
    CONTAINER = "container"
    HANDLE_ONLY = "handle_only"


class Absence(Enum):
    """When "I do not know it" may be believed."""

    AFTER_QUIET = "after_quiet"
    BY_FENCE = "by_fence"
    NEVER = "never"


class StreamKind(Enum):
    NONE = "none"
    LIVE = "live"
    CURSOR = "cursor"


class CancelKind(Enum):
    NONE = "none"
    BEST_EFFORT = "best_effort"
    CONFIRMED = "confirmed"


class OnAmbiguous(Enum):
    """What to do when it cannot be proven whether a submit was accepted."""

    PARK = "park"
    FAIL = "fail"
    RESUBMIT = "resubmit"


class SubmitAfter(Enum):
    """What must be durable before the one POST leaves; `AUTO` is a checkpoint where nothing can be asked first."""

    AUTO = "auto"
    PROBE = "probe"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one remote protocol offers, declared by its adapter.

    Args:
        admission_ms: longest time from the end of a request until the remote shows, to a probe,
            a POST that it accepted.
        key_lifetime_ms: how long a deduplication key is honoured; required with `KEY`.
        retention_ms: how long the remote remembers a run; None when the protocol does not say,
            and then `Policy.retention_ms` is required.
    """

    deduplication: Deduplication = Deduplication.NONE
    evidence: Evidence = Evidence.MARKER
    absence: Absence = Absence.AFTER_QUIET
    admission_ms: int = 0
    stream: StreamKind = StreamKind.NONE
    cancel: CancelKind = CancelKind.NONE
    retention_ms: int | None = None
    key_lifetime_ms: int | None = None
    responds: bool = False

    @property
    def blind(self) -> bool:
        """That a call is not known can never be proven, and no key makes a second POST harmless."""
        return self.absence is Absence.NEVER and self.deduplication is Deduplication.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The user's choices for one agent. Every time is in milliseconds.

    Args:
        submit_validity_ms: a POST that has not left this long after it was ordered never leaves.
        submit_timeout_ms: total time limit of the POST itself.
        admission_ms: overrides the adapter's bound for a slower deployment.
        overlap_ms: how long a superseded task may still act after its successor has opened
            (heartbeat timeout plus task cancellation). 0 only where one process is the whole job.
        skew_max_ms: largest difference between the clock of the input and ours.
        deadline_ms: default life of a call, from its `requested_at_ms`.
        drain_max_ms: how long a thread waits for a run whose call has ended locally.
        watch_silence_ms: a stream that brings nothing for so long is followed by a probe; a lively one
            is after ten times as long.
        retention_ms: how long the remote remembers a run, where the adapter cannot know.
        tombstone_ttl_ms: how long a finished call is remembered against re-delivered input.
    """

    submit_validity_ms: int = 5 * SECOND_MS
    submit_timeout_ms: int = 10 * SECOND_MS
    probe_timeout_ms: int = 10 * SECOND_MS
    fetch_timeout_ms: int = 30 * SECOND_MS
    slack_ms: int = 5 * SECOND_MS
    admission_ms: int | None = None
    overlap_ms: int = MINUTE_MS
    skew_max_ms: int = MINUTE_MS
    deadline_ms: int = DAY_MS
    drain_max_ms: int = 10 * MINUTE_MS
    watch: bool = True
    watch_silence_ms: int = MINUTE_MS
    poll_ms: int = SECOND_MS
    poll_max_ms: int = 30 * SECOND_MS
    park_probe_ms: int = MINUTE_MS
    backoff_ms: int = 200
    backoff_max_ms: int = 30 * SECOND_MS
    recovery_spread_ms: int = SECOND_MS
    submit_attempts_max: int = 20
    cancels_max: int = 5
    generations_max: int = 1
    on_ambiguous: OnAmbiguous = OnAmbiguous.PARK
    submit_after: SubmitAfter = SubmitAfter.AUTO
    cancel_on_deadline: bool = False
    retention_ms: int | None = None
    tombstone_ttl_ms: int = DAY_MS
    queue_max: int = 100
    tombstones_max: int = 1_000
    message_bytes_max: int = 256 * 1024
    result_bytes_max: int = 1024 * 1024


_MAY_BE_ZERO = frozenset({"overlap_ms", "skew_max_ms", "admission_ms", "recovery_spread_ms", "slack_ms"})
_NUMBER_MAX = 10 * 365 * DAY_MS


@dataclass(frozen=True, slots=True)
class Terms:
    """A policy and the capabilities it was checked against: what a step may rely on.

    Attributes:
        admission_ms: the bound in force.
        settle_ms: a POST ordered at t is visible to a probe by `t + settle_ms`, or never.
        memory_ms: how long after a request's own time an absence may be believed or a key used.
        writes_ahead: a POST is held until a checkpoint contains it.

    Raises:
        ConfigError: the policy asks for what the remote cannot give; the message names the key.
    """

    capabilities: Capabilities
    policy: Policy
    # Derived once, since every step asks for them.
    admission_ms: int = field(init=False, repr=False, compare=False)
    settle_ms: int = field(init=False, repr=False, compare=False)
    memory_ms: int = field(init=False, repr=False, compare=False)
    writes_ahead: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        policy, able = self.policy, self.capabilities
        _check_numbers(policy)
        _check_promises(able, policy)
        admission_ms = able.admission_ms if policy.admission_ms is None else policy.admission_ms
        spans = (policy.tombstone_ttl_ms, able.retention_ms, policy.retention_ms, able.key_lifetime_ms)
        object.__setattr__(self, "admission_ms", admission_ms)
        object.__setattr__(self, "settle_ms", policy.submit_validity_ms + policy.submit_timeout_ms + admission_ms)
        object.__setattr__(self, "memory_ms", min(span for span in spans if span is not None))
        ahead = policy.submit_after is SubmitAfter.CHECKPOINT or (
            policy.submit_after is SubmitAfter.AUTO and able.blind
        )
        object.__setattr__(self, "writes_ahead", ahead)


def _check_numbers(policy: Policy) -> None:
    for name in Policy.__slots__:
        value = getattr(policy, name)
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        least = 0 if name in _MAY_BE_ZERO else 1
        if not least <= value <= _NUMBER_MAX:
            raise ConfigError(f"{name} = {value}: must lie between {least} and {_NUMBER_MAX}")


def _check_promises(capabilities: Capabilities, policy: Policy) -> None:
    if capabilities.deduplication is Deduplication.KEY and capabilities.key_lifetime_ms is None:
        raise ConfigError("key_lifetime_ms: deduplication by key needs the key's lifetime")
    if capabilities.retention_ms is None and policy.retention_ms is None:
        raise ConfigError(
            "retention_ms: this protocol does not say how long the remote remembers a run; "
            "set retention_ms to what your deployment keeps"
        )
    if capabilities.blind and policy.submit_after is SubmitAfter.PROBE:
        raise ConfigError(
            "submit_after: this remote can never prove that it does not know a call; set submit_after = 'checkpoint'"
        )
    if policy.queue_max * (policy.message_bytes_max + METADATA_BYTES_MAX) > THREAD_BYTES_MAX:
        raise ConfigError(
            f"queue_max: {policy.queue_max} waiting turns of message_bytes_max = {policy.message_bytes_max} do not fit "
            f"into one thread's state of {THREAD_BYTES_MAX} bytes; lower one of them"
        )
    for name in ("queue_max", "tombstones_max"):
        if getattr(policy, name) > ITEMS_MAX:
            raise ConfigError(f"{name} = {getattr(policy, name)}: at most {ITEMS_MAX}")
    if policy.watch_silence_ms < policy.poll_ms:
        raise ConfigError("watch_silence_ms: must not be shorter than poll_ms")
