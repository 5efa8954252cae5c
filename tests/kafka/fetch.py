"""Fetch the jars of `jars.txt` into a folder, once: `python tests/kafka/fetch.py FOLDER`.

Each jar is compared with its sha256 before it is put in place, so what is there is whole. Needs the
standard library only. The environment variable MAVEN_REPOSITORY names another repository than Maven Central.
"""

import hashlib
import http.client
import os
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PINS: Final = Path(__file__).with_name("jars.txt")
CENTRAL: Final = "https://repo1.maven.org/maven2"
TIMEOUT_S: Final = 60.0
JAR_BYTES_MAX: Final = 64 * 1024 * 1024
TRIES: Final = 3


class NotFetched(Exception):
    """A jar cannot be had; the text says which, from where, and why."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned jar.

    Args:
        folder: `connector` for what a job needs, `broker` for what the tests need.
    """

    folder: str
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.artifact}-{self.version}.jar"

    @property
    def address(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.artifact}-{self.version}.jar"


def pinned(path: Path = PINS) -> list[Jar]:
    """Read the pins."""
    jars = []
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            folder, coordinates, sha256 = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(folder, group, artifact, version, sha256))
    return jars


def fetch(jar: Jar, folder: Path, repository: str) -> None:
    """Put one jar in place, unless it is there.

    Raises:
        NotFetched: the repository is out of reach, or has another file under this name.
    """
    target = folder / jar.path
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == jar.sha256:
        return
    for tries in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(f"{repository}/{jar.address}", timeout=TIMEOUT_S) as answer:
                data = answer.read(JAR_BYTES_MAX)
            break
        except (OSError, http.client.HTTPException) as error:
            if tries == TRIES:
                raise NotFetched(f"{jar.path} cannot be fetched from {repository} (is it in reach?): {error}") from None
    if (found := hashlib.sha256(data).hexdigest()) != jar.sha256:
        raise NotFetched(f"{jar.path} from {repository} has sha256 {found}, pinned is {jar.sha256}")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(data)
    part.replace(target)


def main(folder: Path) -> None:
    repository = os.environ.get("MAVEN_REPOSITORY", CENTRAL).rstrip("/")
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(fetch, jar, folder, repository) for jar in pinned()]:
            try:
                done.result()
            except NotFetched as error:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"make: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
