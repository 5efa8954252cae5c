"""A job that runs a query over outcomes: `python -m tests.flink.tables FOLDER QUERY`.

Reads `outcomes.jsonl` in the folder, and prints one row of the answer a line, as JSON.
"""

import json
import os
import sys
from pathlib import Path

from pyflink.common import Configuration, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

from reattach.runtime.flink.gateway import start_jvm
from reattach.runtime.flink.table import outcome_rows


def main(folder: str, query: str) -> None:
    _, write = os.pipe()
    start_jvm(Path(folder) / "logs", name="tables", held=write)
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112 - its real name
    configuration = Configuration()
    configuration.set_string("python.execution-mode", "thread")
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("rest.port", "0")
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    environment.set_parallelism(1)
    lines = (Path(folder) / "outcomes.jsonl").read_text().splitlines()
    tables = StreamTableEnvironment.create(environment)
    tables.create_temporary_view("outcomes", outcome_rows(environment.from_collection(lines, Types.STRING())))
    with tables.sql_query(query).execute().collect() as rows:
        for row in rows:
            print("row", json.dumps(list(row)))


if __name__ == "__main__":
    main(*sys.argv[1:])
