"""`make browser`: pinned, made once, left alone where there is a browser, one line when nothing can be fetched."""

import io
import os
import platform
import re
import tarfile
from pathlib import Path

import pytest

from tests.packaging.test_servers import make
from tests.view import fetch
from tests.view.browsing import executable
from tests.view.fetch import PACKAGE, SHA256, NotFetched


def test_everything_is_pinned() -> None:
    lines = [line for line in fetch.PINS.read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    assert re.fullmatch(r"@[\w/-]+@\d+\.\d+\.\d+", PACKAGE)
    assert [len(sha256) for sha256 in SHA256.values()] == [64, 64]


def test_what_is_made_is_not_made_again_and_another_browser_is_used_as_it_is(tmp_path: Path) -> None:
    assert "fetch" not in make("browser", "--dry-run").stdout
    assert "tests/view/fetch.py" in make("browser", "--dry-run", f"BROWSER={tmp_path}", "CHROMIUM=").stdout
    assert "fetch" not in make("browser", "--dry-run", f"BROWSER={tmp_path}", "CHROMIUM=/usr/bin/chromium").stdout


def test_an_index_out_of_reach_is_told_in_one_line(tmp_path: Path) -> None:
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    plain = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
    target = tmp_path / "browser"
    failed = make("browser", f"BROWSER={target}", "CHROMIUM=", **nowhere, **plain)
    assert failed.returncode == 2
    (told,) = [line for line in failed.stderr.splitlines() if "***" not in line]
    assert told.startswith(
        "make: browser.txt cannot be fetched (is its registry in reach? CHROMIUM=... names another): "
    )
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_another_package_under_the_same_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pack(what: str, *command: object) -> str:
        if what == PACKAGE:
            with tarfile.open(tmp_path / "work" / "package.tgz", "w:gz") as archive:
                entry = tarfile.TarInfo("package/bin/chromium.br")
                entry.size = 4
                archive.addfile(entry, io.BytesIO(b"evil"))
        return ""

    monkeypatch.setattr(fetch, "run", pack)
    (tmp_path / "work").mkdir()
    with pytest.raises(NotFetched, match=r"chromium\.br of @.* has sha256 [0-9a-f]{64}, pinned is"):
        fetch.fetch(tmp_path / "browser", tmp_path / "work")
    assert not (tmp_path / "browser" / "chromium").exists()


def test_elsewhere_a_browser_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    with pytest.raises(SystemExit, match=r"^make: no browser is packed for this system; .* make CHROMIUM=\.\.\.$"):
        fetch.main(tmp_path / "browser")


def test_a_browser_that_is_not_there_says_what_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROWSER", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    with pytest.raises(AssertionError, match="run `make browser`"):
        executable()
    monkeypatch.setenv("CHROMIUM", "/opt/chrome")
    assert executable() == (Path("/opt/chrome"), {})
