"""A job whose metrics are read over Flink's REST: `python -m tests.flink.metering CONFIG CALLS`, prints them as JSON.

It ends when so many calls have completed, by its own metrics.
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from reattach.runtime.config import load_config
from reattach.runtime.flink.gateway import start_jvm
from reattach.runtime.flink.job import submit
from reattach.runtime.flink.metrics import CATALOGUE
from reattach.runtime.levels import GROUP
from reattach.runtime.run.rest import free_port

PATIENCE_S = 120.0


def main(config_path: str, calls: str) -> None:
    config = load_config(Path(config_path))
    _, write = os.pipe()
    start_jvm(config.job.logs, name="metering", held=write)
    port = free_port()
    client = submit(config, resume_from=None, rest_port=port, lineage=True)
    base = f"http://127.0.0.1:{port}/jobs/{client.get_job_id()}"
    limit = time.monotonic() + PATIENCE_S
    while (found := read(base)).get("outcomes_completed") != int(calls):
        assert time.monotonic() < limit, found
        time.sleep(0.2)
    # What the last pump had to say is there within its own period.
    while (found := read(base)).get("in_flight") != 0 or found.get("call_ms", 0) == 0:
        assert time.monotonic() < limit, found
        time.sleep(0.2)
    print("METRICS " + json.dumps(found))
    client.cancel().result()


def read(base: str) -> dict[str, float]:
    """Each metric of the catalogue; of a histogram the number of its values."""
    found: dict[str, float] = {}
    for vertex in get(base)["vertices"]:
        path = f"{base}/vertices/{vertex['id']}/metrics"
        ids = {one["id"].rpartition(f".{GROUP}.")[2]: one["id"] for one in get(path) if f".{GROUP}." in one["id"]}
        for name, kind, _ in CATALOGUE:
            identity = ids.get(f"{name}_max" if kind == "histogram" else name)
            if identity is not None:
                (value,) = get(f"{path}?get={identity}")
                found[name] = float(value["value"])
    return found


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


if __name__ == "__main__":
    main(*sys.argv[1:])
