"""The conformance kit finds adapters that lie: each is the shipped one with one fault, and one check names it."""

import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reattach.adapters.http_job import HttpJobAdapter
from reattach.adapters.thread import ThreadAdapter
from reattach.models.answers import (
    Phase,
)
from reattach.models.errors import ConfigError
from reattach.runtime.conformance.rig import Rig, rigged
from reattach.runtime.conformance.suite import check_secret
from reattach.testing import AdapterConformance, Target
from tests.conformance.test_http_job import job_service
from tests.conformance.test_thread import thread_server
from tests.testing.liars import (
    Blind,
    Careful,
    Careless,
    Clinging,
    Curious,
    Curt,
    Deaf,
    Denying,
    Dreaming,
    Fragile,
    Greedy,
    Hasty,
    Hopeful,
    Inventive,
    Logging,
    Loud,
    Mixing,
    Mute,
    Nervous,
    Obedient,
    Rosy,
    Stubborn,
    Talkative,
    Vanishing,
)
from tests.testing.liars_jobs import Forgetful, Keyless, Late, Polite, Presumptuous, Skipping

Check = Callable[[AdapterConformance, Rig], None]


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with thread_server(tmp_path_factory.mktemp("threads")) as target:
        yield replace(target, patience_s=3.0)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with job_service(tmp_path_factory.mktemp("jobs"), "keyed") as target:
        yield replace(target, patience_s=3.0)


class Kit(AdapterConformance):
    """Not collected; its checks are called one by one."""

    __test__ = False


def found(target: Target, liar: type[Any], check: Check) -> str:
    """What the kit says of an adapter in one of its checks."""
    with rigged(replace(target, adapter=liar)) as rig, pytest.raises(pytest.fail.Exception) as failed:
        check(Kit(), rig)
    return str(failed.value)


def on_submit(name: str) -> Check:
    return lambda kit, rig: kit.test_a_submit_says_no_more_than_is_true_when_it_is(rig, name)


def on_probe(name: str) -> Check:
    return lambda kit, rig: kit.test_a_probe_of_what_runs_is_in_doubt_or_right(rig, name, completed(rig))


def completed(rig: Rig) -> Any:
    call = rig.call()
    rig.submit(call)
    rig.until_shown(call, Phase.COMPLETED)
    return call


THREADS: list[tuple[type[Any], Check, str]] = [
    (Careless, on_submit("answer lost by FIN"), "says NotSent, but its request arrived"),
    (Careless, on_submit("cut by RST before anything was forwarded"), "says NotSent, but its request arrived"),
    (Hopeful, on_submit("cut by FIN before anything was forwarded"), "claims an accepted run, but .* started 0"),
    (Curt, on_submit("504 after the server took it"), "claims that nothing was accepted, but .* started 1"),
    (
        Curt,
        lambda kit, rig: kit.test_a_request_that_lands_after_its_sender_gave_up_is_found(rig, "held back"),
        "the request may still land, and the adapter says Refused",
    ),
    (Stubborn, on_submit("cut by FIN when all was forwarded"), "sent 2 requests that may not be repeated"),
    (Obedient, on_submit("302 to elsewhere"), "followed a redirect"),
    (Denying, on_probe("503 in the server's stead"), "the server has this run, and the probe says Absent"),
    (
        Denying,
        lambda kit, rig: kit.test_a_probe_of_what_was_never_sent_is_in_doubt_or_right(rig, "no HTTP"),
        "no answer of the server has arrived, and the probe says Absent",
    ),
    (Blind, on_submit("answer lost by RST"), "has started it, but after the admission bound the probe says Absent"),
    (Dreaming, on_submit("502 in the server's stead"), "the probe shows a run, but the server has started none"),
    (
        Dreaming,
        lambda kit, rig: kit.test_a_call_runs_once_from_its_probe_to_its_result(rig),
        "nothing was submitted, .* the probe says Present",
    ),
    (
        Curious,
        lambda kit, rig: kit.test_a_call_takes_as_many_requests_as_are_promised(rig),
        r"is to take \[4\] requests, and took 6",
    ),
    (Fragile, on_probe("half of a JSON value"), "the adapter's probe raised\n.*JSONDecodeError"),
    (
        Greedy,
        lambda kit, rig: kit.test_an_answer_without_end_takes_little_memory(rig, "100 MB", completed(rig)),
        "more than 33,554,432 bytes were held at once: .*'probe'",
    ),
    (
        Hasty,
        lambda kit, rig: kit.test_a_fetch_is_in_doubt_or_right(rig, "no UTF-8", completed(rig)),
        "the server has the result, and the fetch says NotReady",
    ),
    (
        Inventive,
        lambda kit, rig: kit.test_a_fetch_is_in_doubt_or_right(rig, "answer lost by FIN", completed(rig)),
        "the result is .*, and the fetch says Result",
    ),
    (
        Careful,
        lambda kit, rig: kit.test_a_call_runs_once_from_its_probe_to_its_result(rig),
        "gave something that is no answer to it",
    ),
    (
        Nervous,
        lambda kit, rig: kit.test_how_a_stream_is_cut_into_pieces_changes_nothing(rig),
        "the same stream .* brought other events",
    ),
    (
        Loud,
        lambda kit, rig: kit.test_a_stream_that_breaks_ends_quietly(rig, "answer lost by FIN", completed(rig)),
        "the adapter's watch raised\n",
    ),
    (
        Clinging,
        lambda kit, rig: kit.test_a_stream_that_stalls_can_be_left_at_once(rig),
        "its connection is still open",
    ),
    (
        Deaf,
        lambda kit, rig: kit.test_a_submit_without_an_answer_ends_at_its_time_limit_and_claims_nothing(rig),
        "no byte of an answer has arrived, and the adapter says NotSent",
    ),
    (
        Dreaming,
        lambda kit, rig: kit.test_a_run_that_nobody_knows_is_absent_or_in_doubt(rig),
        "does not exist, and the probe says Present",
    ),
    (
        Mixing,
        lambda kit, rig: kit.test_another_call_on_the_same_thread_is_never_taken_for_this_one(rig),
        "was submitted, and the probe for .* says Present",
    ),
    (
        Vanishing,
        lambda kit, rig: kit.test_a_result_is_not_there_before_its_run_has_ended(rig),
        "the run goes on, and the fetch says Gone",
    ),
    (
        Rosy,
        lambda kit, rig: kit.test_a_run_that_fails_is_shown_as_failed(rig),
        "the run has failed, and the probe says Present",
    ),
    (
        Mute,
        lambda kit, rig: kit.test_a_stream_ends_with_its_run(rig),
        "brought no event",
    ),
]
JOBS: list[tuple[type[Any], Check, str]] = [
    (
        Forgetful,
        lambda kit, rig: kit.test_a_resumed_stream_goes_on_where_it_broke(rig),
        "brought events twice",
    ),
    (
        Skipping,
        lambda kit, rig: kit.test_a_resumed_stream_goes_on_where_it_broke(rig),
        "lost or changed events",
    ),
    (
        Presumptuous,
        lambda kit, rig: kit.test_a_cancel_is_confirmed_only_when_the_run_has_ended(rig),
        "the server has had no cancel, and the adapter says Confirmed",
    ),
    (
        Polite,
        lambda kit, rig: kit.test_a_cancel_does_what_is_declared(rig),
        r"says Confirmed\(\)\n.*\n?.*and then a probe says Present\(phase=<Phase.RUNNING",
    ),
    (
        Keyless,
        lambda kit, rig: kit.test_a_doubled_request_starts_one_run_where_the_remote_deduplicates(rig),
        "claims an accepted run, but the server has started 2",
    ),
    (
        Late,
        lambda kit, rig: kit.test_the_runs_name_is_learned_as_early_as_the_target_says(rig, lambda name, value: None),
        "was cut behind its head, and the run's name was not learned",
    ),
]


def ids(row: tuple[type[Any], Check, str]) -> str:
    return row[0].__name__


@pytest.mark.parametrize("row", THREADS, ids=ids)
def test_a_lie_of_a_thread_adapter_is_found(threads: Target, row: tuple[type[Any], Check, str]) -> None:
    liar, check, text = row
    assert_said(found(threads, liar, check), text)


@pytest.mark.parametrize("row", JOBS, ids=ids)
def test_a_lie_of_a_job_adapter_is_found(jobs: Target, row: tuple[type[Any], Check, str]) -> None:
    liar, check, text = row
    assert_said(found(jobs, liar, check), text)


def assert_said(said: str, text: str) -> None:
    assert re.search(text, said, re.DOTALL), said


@pytest.mark.parametrize("row", [*THREADS, *JOBS], ids=ids)
def test_the_same_check_passes_for_the_shipped_adapter(
    threads: Target, jobs: Target, row: tuple[type[Any], Check, str]
) -> None:
    target, adapter = (threads, ThreadAdapter) if row in THREADS else (jobs, HttpJobAdapter)
    with rigged(replace(target, adapter=adapter)) as rig:
        row[1](Kit(), rig)


@pytest.mark.parametrize(("liar", "text"), [(Talkative, "told the credential"), (Logging, "was logged by liar")])
def test_a_credential_that_is_told_is_found(
    threads: Target, caplog: pytest.LogCaptureFixture, liar: type[Any], text: str
) -> None:
    caplog.set_level(logging.DEBUG)
    with rigged(replace(threads, adapter=liar)) as rig:
        kit = Kit()
        kit.test_the_credential_is_told_to_nobody_who_should_not_know_it(rig, completed(rig))
        with pytest.raises(pytest.fail.Exception, match=text) as failed:
            check_secret(rig, caplog)
        assert rig.secret not in str(failed.value)


def test_what_is_executed_again_later_is_found_at_the_end(threads: Target) -> None:
    with rigged(threads) as rig:
        call = completed(rig)
        call.expected, call.why = 0, "a fault: the adapter said so"
        with pytest.raises(pytest.fail.Exception, match="was executed 1 times instead of 0; a fault"):
            Kit().test_at_the_end_no_call_was_executed_more_often_than_was_said(rig)
        twice = replace(rig.target, executions=lambda call_id: 2)
        rig.target = twice
        with pytest.raises(pytest.fail.Exception, match="was executed 2 times"):
            Kit().test_at_the_end_no_call_was_executed_more_often_than_was_said(rig)


def test_a_200_that_a_gateway_gave_is_found(threads: Target) -> None:
    strict = replace(threads, believes_2xx=False)
    with rigged(strict) as rig, pytest.raises(pytest.fail.Exception, match="the server knows nothing of the request"):
        Kit().test_a_200_that_the_server_never_gave_accepts_nothing(rig, "a lone surrogate")


def test_a_target_that_names_the_wrong_requests_is_told_so(threads: Target) -> None:
    blind = replace(threads, submits=lambda one: False)
    with rigged(blind) as rig, pytest.raises(pytest.fail.Exception, match="Target.submits"):
        on_submit("answer lost by FIN")(Kit(), rig)


def test_a_target_needs_a_server(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="url: must be the plain http URL"):
        Target(protocol="thread", executions=lambda call_id: 0)
    with pytest.raises(ConfigError, match="Kit.target: set a Target"):
        Kit.serve(tmp_path)
