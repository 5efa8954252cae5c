"""deploy/grafana.json: a Grafana dashboard over Prometheus, drawn from the catalogue of metrics (`make diagram`)."""

import json
from typing import Any, Final

from reattach.runtime.flink.metrics import CATALOGUE
from reattach.runtime.levels import GROUP

PREFIX: Final = f"flink_taskmanager_job_task_operator_{GROUP}_"
_KINDS: Final = {name: kind for name, kind, _ in CATALOGUE}
_JOB: Final = '{job_name=~"$job"}'
_QUANTILES: Final = ("0.5", "0.99")


def document() -> str:
    """Draw the file."""
    starting = [name for name in _KINDS if name.startswith("live_")]
    rows: list[tuple[str, str, list[str]]] = [
        ("Calls by state", "short", starting),
        ("Outcomes per second", "ops", [name for name in _KINDS if name.startswith("outcomes_")]),
        ("Failures per second, by code", "ops", [name for name in _KINDS if name.startswith("failures_")]),
        ("Requests ordered per second", "ops", ["probes", "submits", "watches", "fetches", "cancels", "fences"]),
        ("Notices per second", "ops", [name for name in _KINDS if name.startswith("notices_")]),
        ("Waiting", "short",
         ["in_flight", "backlog", "facts_waiting", "recoveries_waiting", "turns_waiting", "agents_down"]),
        ("Time of a call", "ms", ["call_ms", "not_started_ms", "submitted_ms", "running_ms"]),
        ("Latency of the host", "ms", ["answer_wait_ms", "pump_lag_ms"]),
        ("Facts per second, and those without effect", "ops",
         ["steps", "rejects", *(name for name in _KINDS if name.startswith("ignored_"))]),
    ]  # fmt: skip
    panels = [_parked(), *(_panel(number, *row) for number, row in enumerate(rows, 1))]
    page = {
        "title": "reattach",
        "uid": "reattach",
        "schemaVersion": 39,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "10s",
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}, _variable()]},
        "panels": panels,
    }
    return json.dumps(page, indent=1) + "\n"


def _expressions(name: str) -> list[tuple[str, str]]:
    """What to ask Prometheus for, and how to name it."""
    kind = _KINDS[name]
    if kind == "histogram":
        return [
            (f'max({PREFIX}{name}{{job_name=~"$job",quantile="{quantile}"}})', f"{name} p{float(quantile) * 100:g}")
            for quantile in _QUANTILES
        ]
    whole = f"{PREFIX}{name}{_JOB}"
    return [(f"sum({whole})" if kind == "level" else f"sum(rate({whole}[1m]))", name)]


def _panel(number: int, title: str, unit: str, names: list[str]) -> dict[str, Any]:
    asked = [pair for name in names for pair in _expressions(name)]
    return {
        "id": number + 1,
        "title": title,
        "type": "timeseries",
        "datasource": _SOURCE,
        "gridPos": {"h": 8, "w": 12, "x": 12 * ((number - 1) % 2), "y": 4 + 8 * ((number - 1) // 2)},
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": f"Q{place}", "expr": expression, "legendFormat": legend}
            for place, (expression, legend) in enumerate(asked)
        ],
    }


def _parked() -> dict[str, Any]:
    ((expression, legend),) = _expressions("live_submitted_parked")
    return {
        "id": 1,
        "title": "Calls that wait for a person",
        "type": "stat",
        "datasource": _SOURCE,
        "gridPos": {"h": 4, "w": 24, "x": 0, "y": 0},
        "fieldConfig": {
            "defaults": {"thresholds": {"mode": "absolute", "steps": [{"color": "green", "value": None},
                                                                     {"color": "red", "value": 1}]}},
            "overrides": [],
        },
        "targets": [{"refId": "A", "expr": expression, "legendFormat": legend}],
    }  # fmt: skip


def _variable() -> dict[str, Any]:
    return {
        "name": "job",
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values({PREFIX}steps, job_name)",
        "includeAll": True,
        "multi": True,
        "refresh": 2,
    }


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
