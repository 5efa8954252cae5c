"""Run the command line: `python -m reattach`."""

from reattach.runtime.cli.main import entry

if __name__ == "__main__":
    entry()
