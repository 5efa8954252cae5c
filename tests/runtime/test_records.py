"""How outputs look outside."""

import json

from reattach.models.answers import Progress
from reattach.models.effects import Report
from reattach.models.lifecycle import Status
from reattach.models.outcomes import Failure, FailureCode, Notice, NoticeKind, Outcome, RemoteFate
from reattach.runtime.records import notice_json, outcome_json, reject_json, report_json
from tests.fsm.making import request


def an_outcome(status: Status, result: bytes | None, failure: Failure | None) -> Outcome:
    return Outcome("c", "a", "t", 1, status, result, failure, "run-1", 1, 3, (10, 20, 30), 99)


def test_a_result_is_json_again() -> None:
    row = json.loads(outcome_json(an_outcome(Status.COMPLETED, b'{"x":[1,"\xc3\xa9"]}', None)))
    assert row["status"] == "COMPLETED"
    assert row["result"] == {"x": [1, "é"]}
    assert row["failure"] is None
    assert row["spent_ms"] == {"NOT_STARTED": 10, "SUBMITTED": 20, "RUNNING": 30}


def test_a_failure_says_what_is_known() -> None:
    failure = Failure(FailureCode.LOST, "gone", RemoteFate.UNKNOWN, True)
    row = json.loads(outcome_json(an_outcome(Status.FAILED, None, failure)))
    assert row["failure"] == {"code": "lost", "message": "gone", "remote": "unknown", "retryable": True}
    assert row["result"] is None


def test_one_record_is_one_line() -> None:
    text = outcome_json(an_outcome(Status.COMPLETED, b'"a\\nb"', None))
    assert "\n" not in text


def test_progress_and_notices() -> None:
    assert json.loads(report_json(Report("c", 1, (Progress(b"1"), Progress(b"2")))))["events"] == [1, 2]
    notice = json.loads(notice_json(Notice(NoticeKind.PARKED, "c", 1, "why", b'{"q":1}')))
    assert (notice["kind"], notice["detail"]) == ("parked", {"q": 1})
    assert json.loads(notice_json(Notice(NoticeKind.LATE, "c", 1, "why")))["detail"] is None


def test_rejects_keep_the_line_within_a_limit() -> None:
    assert json.loads(reject_json("x" * 5_000, "why"))["line"] == "x" * 1_000
    assert json.loads(reject_json(b"\xff{", "why")) == {"reason": "why", "line": "\ufffd{", "chars": 2}
    assert json.loads(reject_json(request(), "why"))["line"] == "call-1"
