"""The job of `reattach run` for a cluster: `flink run -d -py job.py /absolute/path/to/job.toml`.

The file is the one of `reattach run`. From its `[job]` table the folders, the parallelism and the interval
between checkpoints are taken; all else is the cluster's own (deploy/config.yaml). Nothing stops the job when
its work is done: `flink stop` or `flink cancel` does.

    flink run -d -s file:///…/chk-17 -py job.py job.toml           begins where a checkpoint or savepoint ended
    flink run -d -s file:///…/chk-17 -py job.py job.toml --lineage ... and it is the latest one of the last run

Agents that write ahead want `--lineage` at the very first start as well, when there was no run before.
"""

import argparse
import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment

from reattach.models.errors import ConfigError
from reattach.runtime.config import load_config
from reattach.runtime.flink.cluster import check_cluster, cluster_settings
from reattach.runtime.flink.job import build


def main() -> None:
    parser = argparse.ArgumentParser(description="Submit a reattach job to a Flink cluster.")
    parser.add_argument("config", type=Path, help="job.toml; its folders must be reachable from every machine")
    parser.add_argument("--lineage", action="store_true", help="it resumes from the last run's latest checkpoint")
    given = parser.parse_args()
    try:
        config = load_config(given.config)
        configuration = Configuration()
        for key, value in cluster_settings(config).items():
            configuration.set_string(key, value)
        environment = StreamExecutionEnvironment.get_execution_environment(configuration)
        for warning in check_cluster(environment, config.agents):
            print(f"reattach: warning: {warning}", file=sys.stderr, flush=True)
    except ConfigError as error:
        sys.exit(f"reattach: {error}")
    build(environment, config, lineage=given.lineage)
    environment.execute(config.job.name)


if __name__ == "__main__":
    main()
