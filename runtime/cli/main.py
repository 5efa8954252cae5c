"""The command line's entry point."""

from reattach import __version__


def run() -> None:
    print(f"reattach {__version__}")
