"""What the documents say is what the code does: generated parts, examples, keys and defaults."""

import pkgutil
import posixpath
import re
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reattach import __version__
from reattach.models.lifecycle import Leaf
from reattach.models.outcomes import NoticeKind
from reattach.models.policy import Policy
from reattach.runtime.config import JobConfig
from reattach.runtime.pictures.lifecycle import edges, lifecycle
from reattach.runtime.pictures.windows import SYSTEMS, WINDOWS, windows
from tests.packaging import site
from tests.packaging.generated import README, expected
from tests.packaging.layers import ROOT, packages

DOCUMENTS = sorted([README, ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])

LINK = re.compile(r"\]\(([^)\s:]+)\)")


def text_of(path: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """What a page's headings are called in a link."""
    titles = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", title).strip().lower().replace(" ", "-") for title in titles}


def row_of(key: str) -> list[str]:
    table = (ROOT / "docs" / "configuration.md").read_text()
    found = re.findall(rf"^\| `{key}` \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert len(found) == 1, f"docs/configuration.md has {len(found)} rows for {key}"
    return list(found[0])


@pytest.mark.parametrize("path", expected(), ids=lambda path: path.name)
def test_the_generated_parts_are_up_to_date(path: Path) -> None:
    assert path.read_text() == expected()[path], "run: make diagram"


def test_the_windows_of_a_crash_name_tests_that_exist() -> None:
    for window in WINDOWS:
        assert len(window.endings) == len(SYSTEMS)
        path, name = window.test.split("::")
        assert f"def {name}(" in (ROOT / path).read_text(), window.name


@pytest.mark.parametrize("draw", [lifecycle, windows])
def test_a_picture_is_one_that_can_be_read(draw: Callable[[], str]) -> None:
    """Well formed, its text as text within its frame, in light and dark, and nothing from elsewhere."""
    picture = draw()
    root = ElementTree.fromstring(picture)
    frame = float(root.get("width", "0")), float(root.get("height", "0"))
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert len(texts) > 40
    assert all(0 <= float(one.get("x", "")) < frame[0] and 0 <= float(one.get("y", "")) < frame[1] for one in texts)
    assert "prefers-color-scheme: dark" in picture
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)|@import|<image|<script", picture) == []


def test_the_lifecycle_s_picture_has_every_leaf_and_every_move() -> None:
    picture = lifecycle()
    words = ElementTree.fromstring(picture).itertext()
    assert {leaf.value.partition(".")[2] or leaf.status.name for leaf in Leaf} <= set(words)
    within, between = edges()
    hints = re.findall(r"<title>(\S+) -&gt; ([\w.]+)", picture)
    expected = {(source.value, target.value) for source, target in within}
    assert set(hints) == expected | {(source.name, target.name) for source, target in between}


def test_every_key_is_documented_with_its_default() -> None:
    for job_field in fields(JobConfig):
        row_of(job_field.name)
    for name in ("parallelism", "checkpoint_interval_ms", "concurrency_max"):
        assert row_of(name)[0] == str(JobConfig.__dataclass_fields__[name].default)
    for field in fields(Policy):
        shown = row_of(field.name)[0]
        default = field.default
        if field.name in ("retention_ms", "admission_ms", "overlap_ms"):
            continue
        if isinstance(default, Enum):
            default = f"`{default.value}`"
        elif isinstance(default, bool):
            default = str(default).lower()
        assert shown == str(default), field.name


def test_links_lead_somewhere() -> None:
    broken = []
    for path in DOCUMENTS:
        for target, _, anchor in (found.partition("#") for found in LINK.findall(text_of(path))):
            page = path.parent / target if target else path
            if not page.exists() or (anchor and anchor not in anchors(page)):
                broken.append(f"{path.name}: {target}#{anchor}")
    assert broken == []


def test_a_link_by_reference_has_its_address() -> None:
    for path in DOCUMENTS:
        text = text_of(path)
        named = set(re.findall(r"\]\[([\w-]+)\]", text))
        assert named == set(re.findall(r"^\[([\w-]+)\]: https://\S+$", text, re.MULTILINE)), path.name


def test_every_page_is_in_the_site_s_navigation_and_in_the_readme() -> None:
    # Names only: what MkDocs makes of them is for `make docs`.
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2].partition("\nnot_in_nav")[0]
    named = re.findall(r"[\w]+\.md", nav)
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(named) == sorted(pages | {"index.md", "changelog.md"})


def test_the_names_of_the_api_exist() -> None:
    named = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert len(named) > 20
    for name in named:
        found = pkgutil.resolve_name(name)
        assert found.__doc__, f"{name} has nothing to show"


def test_the_runbook_knows_every_notice_and_names_no_sign_that_is_none() -> None:
    signs = re.findall(r"^\| (.+?) \|", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    named = set(re.findall(r"`([a-z_]+)`", " ".join(signs)))
    notices = {kind.value for kind in NoticeKind}
    counted = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
    assert notices <= named
    assert named <= notices | counted | {"agent_down", "write_ahead_stalled"}


def test_what_the_site_links_outside_of_docs_is_in_it() -> None:
    held = site.additional()
    assert {"index.md", "changelog.md", "files/deploy/index.md", "files/deploy/job.py"} <= held.keys()
    for path in (README, *(ROOT / "docs").glob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        here = posixpath.dirname(site.address(name))
        for target, _, _ in (found.partition("#") for found in LINK.findall(site.rewritten(name, text_of(path)))):
            at = posixpath.normpath(posixpath.join(here, target or "."))
            assert not target or at in held or (ROOT / "docs" / at).exists(), f"{name}: {target}"


def test_no_document_or_source_names_a_place_on_one_machine() -> None:
    found = []
    sources = [path for folder in packages().values() for path in (ROOT / folder).glob("*.py")]
    for path in (*DOCUMENTS, *sources, ROOT / "Makefile", ROOT / "pyproject.toml"):
        if re.search(r"/(work|root|home)/\w", path.read_text()):
            found.append(str(path.relative_to(ROOT)))
    assert found == []


def test_the_changelog_has_a_place_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text
    assert __version__.removesuffix(".dev0") in text
