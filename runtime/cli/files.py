"""Files that a command writes at its end: refused at its beginning, when nothing is lost yet."""

from pathlib import Path

from reattach.models.errors import ConfigError


def check_writable(option: str, file: Path | None) -> None:
    """Open a file for appending, so that what stands in it is kept until there is something better.

    Raises:
        ConfigError: it cannot be written; the message begins with the option.
    """
    if file is None:
        return
    try:
        file.open("ab").close()
    except OSError as error:
        raise ConfigError(f"{option}: {file}: cannot be written: {error.strerror}") from None


def write_text(option: str, file: Path, text: str) -> None:
    """Write the file whole.

    Raises:
        ConfigError: as `check_writable` does.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{option}: {file}: cannot be written: {error.strerror}") from None
