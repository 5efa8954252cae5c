"""The configuration file of `reattach run`: TOML in, checked records out.

Everything that can be known without a network is checked here, so that a wrong file stops before a
job starts: keys, types, ranges, paths that contain each other, the policy against what the agent's
protocol can keep, and the environment variables that hold tokens. Each error is one line that names
the key as it stands in the file.

Relative paths are relative to the file. Tokens stay in the environment; no record holds one.
"""

import difflib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, Final

from reattach.adapters.contract import AgentConfig, Limits
from reattach.adapters.http import open_client
from reattach.adapters.registry import create
from reattach.models.errors import ConfigError
from reattach.models.policy import Policy, Terms

PARALLELISM_MAX: Final = 64
CONCURRENCY_MAX: Final = 10_000
BACKLOG_MAX: Final = 1_000_000
INTERVAL_MS_MAX: Final = 3_600_000
OPTIONAL: Final = ("control", "journal", "notices", "progress")
HASHMAP, ROCKSDB = "hashmap", "rocksdb"
CONFIG_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """The `[job]` table.

    Args:
        name: shown by Flink; 1 to 100 printable characters.
        requests: watched folder of JSON Lines files.
        control: watched folder of JSON Lines files with orders, None for none.
        outcomes: folder of committed outcome files.
        checkpoints: folder of Flink's checkpoints, the job's memory between two runs.
        rejects: file of malformed lines.
        journal, notices, progress: folders for those outputs, None for none.
        logs: folder of Flink's and the workers' logs.
        parallelism: subtasks, all in one process.
        state_backend: where Flink keeps state: on the heap, or in RocksDB with incremental checkpoints.
        concurrency_max: remote requests in flight at once, per subtask.
        backlog_max: requests to remotes that may wait for their turn, per subtask, before input has to.
        idle_stop: stop when every request has its outcome; else run until told to stop.
    """

    requests: Path
    outcomes: Path
    checkpoints: Path
    rejects: Path
    logs: Path
    control: Path | None = None
    journal: Path | None = None
    notices: Path | None = None
    progress: Path | None = None
    name: str = "reattach"
    parallelism: int = 1
    state_backend: str = HASHMAP
    checkpoint_interval_ms: int = 1_000
    concurrency_max: int = 256
    backlog_max: int = 10_000
    idle_stop: bool = True


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A whole file.

    Args:
        source: where it was read from, for messages.
        terms: by agent, the policy together with the capabilities that it was checked against.
    """

    source: Path
    job: JobConfig
    agents: Mapping[str, AgentConfig]
    terms: Mapping[str, Terms]


def load_config(path: Path) -> RunConfig:
    """Read and check a configuration file.

    Raises:
        ConfigError: one line that begins with the file's name and names the key.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or type(error).__name__}") from None
    if len(data) > CONFIG_BYTES_MAX:
        raise ConfigError(f"{path}: {len(data)} bytes, the limit is {CONFIG_BYTES_MAX}")
    try:
        tables = tomllib.loads(data.decode())
    except ValueError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    try:
        return _checked(path, tables)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _checked(path: Path, tables: Mapping[str, Any]) -> RunConfig:
    _known("", tables, ("job", "agents"))
    job = _job(path.absolute().parent, _table("job", tables.get("job")))
    named = _table("agents", tables.get("agents"))
    if not named:
        raise ConfigError("agents: name at least one, as in [agents.writer]")
    agents = {name: _agent(name, _table(f"agents.{name}", table)) for name, table in named.items()}
    return RunConfig(path, job, agents, check_agents(agents))


def check_agents(agents: Mapping[str, AgentConfig]) -> dict[str, Terms]:
    """Build each agent's adapter once, without a network, and check its policy against it.

    Returns:
        The terms by agent.

    Raises:
        ConfigError: names the key, as `agents.NAME.…`.
    """
    client, terms = open_client(), {}
    for name, agent in agents.items():
        adapter = create(agent, client)
        try:
            terms[name] = Terms(adapter.capabilities, agent.policy)
        except ConfigError as error:
            raise ConfigError(f"agents.{name}.policy.{error}") from None
    return terms


def _job(base: Path, table: Mapping[str, Any]) -> JobConfig:
    _known("job", table, [field.name for field in fields(JobConfig)])
    requests, outcomes, checkpoints = (_path(base, table, name) for name in ("requests", "outcomes", "checkpoints"))
    job = JobConfig(
        requests=requests,
        outcomes=outcomes,
        checkpoints=checkpoints,
        rejects=_path(base, table, "rejects", outcomes.with_name(outcomes.name + ".rejects.txt")),
        **{name: _path(base, table, name) for name in OPTIONAL if name in table},
        logs=_path(base, table, "logs", checkpoints / "logs"),
        name=_text("job.name", table.get("name", "reattach"), 100),
        parallelism=_number("job.parallelism", table.get("parallelism", 1), 1, PARALLELISM_MAX),
        checkpoint_interval_ms=_number(
            "job.checkpoint_interval_ms", table.get("checkpoint_interval_ms", 1_000), 50, INTERVAL_MS_MAX
        ),
        state_backend=_word("job.state_backend", table.get("state_backend", HASHMAP), (HASHMAP, ROCKSDB)),
        concurrency_max=_number("job.concurrency_max", table.get("concurrency_max", 256), 1, CONCURRENCY_MAX),
        backlog_max=_number("job.backlog_max", table.get("backlog_max", 10_000), 1, BACKLOG_MAX),
        idle_stop=_flag("job.idle_stop", table.get("idle_stop", True)),
    )
    _apart(job)
    return job


def _apart(job: JobConfig) -> None:
    """Refuse folders that would feed on each other."""
    folders = {"requests": job.requests, "outcomes": job.outcomes, "checkpoints": job.checkpoints}
    folders |= {name: folder for name in OPTIONAL if (folder := getattr(job, name)) is not None}
    for name, folder in folders.items():
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"job.{name}: {folder} is not a folder")
        for other, parent in folders.items():
            if name != other and (folder == parent or parent in folder.parents):
                raise ConfigError(f"job.{name}: {folder} must not be job.{other} or lie within it")
    for name, path in (("rejects", job.rejects), ("logs", job.logs)):
        for watched in ("requests", "control"):
            folder = folders.get(watched)
            if folder is not None and (path == folder or folder in path.parents):
                raise ConfigError(f"job.{name}: {path} must not lie within job.{watched}")


def _agent(name: str, table: Mapping[str, Any]) -> AgentConfig:
    where = f"agents.{name}"
    if not name.isprintable() or not 1 <= len(name) <= 256:
        raise ConfigError(f"{where}: a name has 1 to 256 printable characters")
    _known(where, table, ("protocol", "url", "token_env", "options", "policy", "limits"))
    return AgentConfig(
        name=name,
        protocol=_text(f"{where}.protocol", table.get("protocol"), 100),
        url=_text(f"{where}.url", table.get("url"), 2048),
        token_env=_text(f"{where}.token_env", table["token_env"], 256) if "token_env" in table else "",
        options=_table(f"{where}.options", table.get("options", {})),
        policy=_policy(f"{where}.policy", _table(f"{where}.policy", table.get("policy", {}))),
        limits=_limits(f"{where}.limits", _table(f"{where}.limits", table.get("limits", {}))),
    )


def _limits(where: str, table: Mapping[str, Any]) -> Limits:
    _known(where, table, [field.name for field in fields(Limits)])
    try:
        return Limits(**table)
    except ConfigError as error:
        raise ConfigError(f"{where}.{error}") from None


def _policy(where: str, table: Mapping[str, Any]) -> Policy:
    kinds = {field.name: field.type for field in fields(Policy)}
    _known(where, table, kinds)
    given: dict[str, Any] = {}
    for key, value in table.items():
        kind: Any = kinds[key]
        if kind is bool:
            given[key] = _flag(f"{where}.{key}", value)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            given[key] = _choice(f"{where}.{key}", value, kind)
        else:
            given[key] = _number(f"{where}.{key}", value, 0, 2**53)
    # `reattach run` keeps the whole job in one process and lets no second one start before that has
    # died, so nothing of a superseded task can act beside its successor.
    given.setdefault("overlap_ms", 0)
    return Policy(**given)


def _known(where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    names = list(known)
    for key in table:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(names))}"
            raise ConfigError(f"{where}.{key}: no such key; {hint}".removeprefix("."))


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        raise ConfigError(f"{where}: required, write a table [{where}]")
    if not isinstance(value, dict):
        raise ConfigError(f"{where} = {value!r}: must be a table, write [{where}]")
    return value


def _path(base: Path, table: Mapping[str, Any], name: str, default: Path | None = None) -> Path:
    if name not in table and default is not None:
        return default
    text = _text(f"job.{name}", table.get(name), 4096)
    return Path(base, Path(text).expanduser()).resolve()


def _text(where: str, value: Any, chars_max: int) -> str:
    if value is None:
        raise ConfigError(f"{where}: required")
    if not isinstance(value, str) or not 1 <= len(value) <= chars_max or not value.isprintable():
        raise ConfigError(f"{where} = {value!r}: must be a string of 1 to {chars_max} printable characters")
    return value


def _number(where: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{where} = {value!r}: must be a whole number from {least} to {most}")
    return value


def _flag(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{where} = {value!r}: must be true or false")
    return value


def _word(where: str, value: Any, known: Collection[str]) -> str:
    if value not in known or not isinstance(value, str):
        raise ConfigError(f"{where} = {value!r}: must be one of {', '.join(known)}")
    return value


def _choice(where: str, value: Any, kind: type[Enum]) -> Enum:
    for member in kind:
        if member.value == value:
            return member
    raise ConfigError(f"{where} = {value!r}: must be one of {', '.join(repr(member.value) for member in kind)}")
