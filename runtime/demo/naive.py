"""Run the naive job under the very runner of `reattach run`: `python -m reattach.runtime.demo.naive CONFIG`."""

import sys
from pathlib import Path

from rich.console import Console

from reattach.runtime.config import load_config
from reattach.runtime.run.runner import Ending, Runner
from reattach.runtime.run.screen import screen_for


def main(path: Path) -> int:
    """Run the job of a configuration file to its end; returns 0 when every request has an outcome."""
    from reattach.runtime.flink.naive import submit

    with screen_for(Console()) as screen:
        return 0 if Runner(load_config(path), screen, submit=submit).run() is Ending.DONE else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
