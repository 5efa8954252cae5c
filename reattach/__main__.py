"""Run the command line: `python -m reattach`."""

from reattach.runtime.cli.main import run

if __name__ == "__main__":
    run()
