"""What the documents say is what the code does: generated parts, examples, keys and defaults."""

import re
from dataclasses import fields
from enum import Enum
from pathlib import Path

import pytest

from reattach import __version__
from reattach.models.policy import Policy
from reattach.models.request import parse_request
from reattach.runtime.config import JobConfig, load_config
from tests.packaging.generated import README, expected
from tests.packaging.layers import ROOT, packages

DOCUMENTS = sorted([README, ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)


def row_of(key: str) -> list[str]:
    table = (ROOT / "docs" / "configuration.md").read_text()
    found = re.findall(rf"^\| `{key}` \| (.*?) \| (.*?) \|$", table, re.MULTILINE)
    assert len(found) == 1, f"docs/configuration.md has {len(found)} rows for {key}"
    return list(found[0])


@pytest.mark.parametrize("path", expected(), ids=lambda path: path.name)
def test_the_generated_parts_are_up_to_date(path: Path) -> None:
    assert path.read_text() == expected()[path], "run: make diagram"


def test_the_examples_of_the_readme_work(tmp_path: Path) -> None:
    (config,) = blocks("toml")
    (tmp_path / "job.toml").write_text(config)
    agents = load_config(tmp_path / "job.toml").agents
    (line,) = blocks("json")
    assert parse_request(line.strip(), message_bytes_max=1_000).agent in agents
    (code,) = blocks("python")
    compile(code, "README.md", "exec")


def test_the_settle_time_of_the_readme_is_the_default_one(tmp_path: Path) -> None:
    (config,) = blocks("toml")
    (tmp_path / "job.toml").write_text(config)
    settle_s = load_config(tmp_path / "job.toml").terms["writer"].settle_ms // 1_000
    assert f"{settle_s} seconds with the defaults" in README.read_text()


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
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


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
