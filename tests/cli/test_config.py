"""A wrong configuration is one line that names the key as it stands in the file."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from reattach.models.errors import ConfigError
from reattach.models.policy import OnAmbiguous
from reattach.runtime.config import load_config

JOB = 'requests = "in"\noutcomes = "out"\ncheckpoints = "state"\n'
AGENT = 'protocol = "thread"\nurl = "http://127.0.0.1:1"\npolicy.retention_ms = 1000\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def parts(job: str = JOB, agent: str = AGENT) -> str:
    return f"[job]\n{job}[agents.a]\n{agent}"


def test_a_small_file_gets_sensible_defaults(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, parts()))
    job = config.job
    assert job.requests == tmp_path / "in"
    assert job.rejects == tmp_path / "out.rejects.txt"
    assert job.logs == tmp_path / "state" / "logs"
    assert (job.journal, job.notices, job.progress) == (None, None, None)
    assert (job.name, job.parallelism, job.checkpoint_interval_ms, job.idle_stop) == ("reattach", 1, 1_000, True)
    assert config.agents["a"].protocol == "thread"
    # One process is the whole job, so nothing of an earlier life can act beside the new one.
    assert config.terms["a"].policy.overlap_ms == 0


def test_every_key_is_read(tmp_path: Path) -> None:
    job = JOB + (
        'rejects = "bad"\njournal = "j"\nnotices = "n"\nprogress = "p"\nlogs = "l"\nname = "x"\nparallelism = 2\n'
        "checkpoint_interval_ms = 500\nconcurrency_max = 7\nidle_stop = false\n"
    )
    agent = (
        'protocol = "thread"\nurl = "https://h/base"\noptions.marker = "last_message_id"\n'
        'policy = { retention_ms = 5, overlap_ms = 9, watch = false, on_ambiguous = "fail" }\n'
    )
    config = load_config(write(tmp_path, parts(job, agent)))
    assert config.job.journal == tmp_path / "j"
    assert config.job.notices == tmp_path / "n"
    assert config.job.progress == tmp_path / "p"
    assert config.job.rejects == tmp_path / "bad"
    assert config.job.logs == tmp_path / "l"
    assert (config.job.name, config.job.parallelism, config.job.concurrency_max) == ("x", 2, 7)
    assert (config.job.checkpoint_interval_ms, config.job.idle_stop) == (500, False)
    policy = config.agents["a"].policy
    assert (policy.retention_ms, policy.overlap_ms, policy.watch) == (5, 9, False)
    assert policy.on_ambiguous is OnAmbiguous.FAIL
    assert config.agents["a"].options == {"marker": "last_message_id"}


WRONG: Mapping[str, tuple[str, str]] = {
    "no job": ("[agents.a]\n" + AGENT, "job: required, write a table [job]"),
    "no agents": ("[job]\n" + JOB, "agents: required"),
    "empty agents": ("[job]\n" + JOB + "[agents]\n", "agents: name at least one"),
    "unknown table": (parts() + "[jobs]\n", "jobs: no such key; did you mean job?"),
    "unknown job key": (parts(JOB + "checkpoint_intervall_ms = 5\n"), "did you mean checkpoint_interval_ms?"),
    "far-off key": (parts(JOB + "zzz = 1\n"), "job.zzz: no such key; known: backlog_max, checkpoint_interval_ms,"),
    "missing folder": (parts('requests = "in"\noutcomes = "out"\n'), "job.checkpoints: required"),
    "wrong type": (parts(JOB + 'parallelism = "two"\n'), "job.parallelism = 'two': must be a whole number from 1 to"),
    "flag as number": (parts(JOB + "parallelism = true\n"), "job.parallelism = True: must be a whole number"),
    "out of range": (parts(JOB + "checkpoint_interval_ms = 1\n"), "job.checkpoint_interval_ms = 1: must be"),
    "unknown word": (
        parts(JOB + 'state_backend = "disk"\n'),
        "job.state_backend = 'disk': must be one of hashmap, rocksdb",
    ),
    "list as word": (parts(JOB + "state_backend = [1]\n"), "job.state_backend = [1]: must be one of"),
    "number as flag": (parts(JOB + "idle_stop = 1\n"), "job.idle_stop = 1: must be true or false"),
    "not a table": (parts("", AGENT).replace("[job]\n", "job = 3\n"), "job = 3: must be a table, write [job]"),
    "same folder": (parts(JOB.replace('"out"', '"in"')), "must not be job."),
    "outcomes in requests": (parts(JOB.replace('"out"', '"in/out"')), "job.outcomes: "),
    "rejects in requests": (parts(JOB + 'rejects = "in/bad"\n'), "job.rejects: "),
    "unknown agent key": (parts(agent=AGENT + 'token = "x"\n'), "agents.a.token: no such key; did you mean token_env?"),
    "no protocol": (parts(agent='url = "http://h"\n'), "agents.a.protocol: required"),
    "unknown protocol": (parts(agent=AGENT.replace("thread", "thred")), "agents.a.protocol: no protocol 'thred'"),
    "bad url": (parts(agent=AGENT.replace("http://127.0.0.1:1", "ftp://h")), "agents.a.url: "),
    "no token": (parts(agent=AGENT + 'token_env = "REATTACH_TEST_ABSENT"\n'), "agents.a.token_env"),
    "unknown option": (parts(agent=AGENT + "options.markr = 1\n"), "agents.a.options.markr: no such option"),
    "unknown policy key": (parts(agent=AGENT + "policy.poll = 1\n"), "agents.a.policy.poll: no such key"),
    "policy type": (parts(agent=AGENT + 'policy.poll_ms = "1s"\n'), "agents.a.policy.poll_ms = '1s': must be"),
    "policy zero": (parts(agent=AGENT + "policy.poll_ms = 0\n"), "agents.a.policy.poll_ms = 0: must lie"),
    "policy choice": (
        parts(agent=AGENT + 'policy.on_ambiguous = "retry"\n'),
        "agents.a.policy.on_ambiguous = 'retry': must be one of 'park', 'fail', 'resubmit'",
    ),
    "no retention": (parts(agent='protocol = "thread"\nurl = "http://h"\n'), "agents.a.policy.retention_ms: "),
    "broken promise": (parts(agent=AGENT + "policy.watch_silence_ms = 5\n"), "agents.a.policy.watch_silence_ms: "),
    "not TOML": ("[job\n", "not TOML: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_one_line_that_names_the_key(tmp_path: Path, case: str) -> None:
    text, expected = WRONG[case]
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert expected in message
    assert "\n" not in message


def test_a_file_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(tmp_path / "bytes.toml")


def test_a_token_stays_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REATTACH_TEST_TOKEN", "s3cret-value")
    config = load_config(write(tmp_path, parts(agent=AGENT + 'token_env = "REATTACH_TEST_TOKEN"\n')))
    assert "s3cret" not in repr(config)
    assert config.agents["a"].token_env == "REATTACH_TEST_TOKEN"


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    with pytest.raises(ConfigError, match="job.requests: .* is not a folder"):
        load_config(write(tmp_path, parts()))
