"""The site of `make docs`: pages that are not in docs/, and links that leave it. MkDocs calls what is named `on_`.

README.md is the first page, CHANGELOG.md the last one. A link to another file of the repository leads to a copy of it
in the site, one to a folder to a list of its files. So nothing of the site needs a host for the repository.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(\]\()([^)\s:#]+)(#[^)\s]*)?(\))")


def address(path: str) -> str:
    """Where a file or folder of the repository is in the site, as MkDocs names sources."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}/index.md" if (ROOT / path).is_dir() else f"files/{path}"


def source(uri: str) -> str:
    """The file of the repository that a page of the site is made of."""
    for path, at in ELSEWHERE.items():
        if uri == at:
            return path
    return uri.removeprefix("files/") if uri.startswith("files/") else f"docs/{uri}"


def targets(path: str, text: str) -> Iterator[str]:
    """Files and folders of the repository that a page links."""
    for found in LINK.finditer(text):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        if (ROOT / target).exists():
            yield target


def rewritten(path: str, text: str) -> str:
    """A page with its links as they are in the site; what leads nowhere stays, for MkDocs to complain about."""
    here = posixpath.dirname(address(path))

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
        if not (ROOT / target).exists():
            return found[0]
        return f"{found[1]}{posixpath.relpath(address(target), here or '.')}{found[3] or ''}{found[4]}"

    return LINK.sub(link, text)


def listing(folder: str) -> str:
    """A page for a folder."""
    names = sorted(
        one.relative_to(ROOT).as_posix()
        for one in (ROOT / folder).rglob("*")
        if one.is_file() and "__pycache__" not in one.parts
    )
    return f"# {folder}\n\n" + "".join(f"* [{name}]({posixpath.relpath(name, folder)})\n" for name in names)


def additional() -> dict[str, str | bytes]:
    """What the site has beside docs/: sources, each with its content."""
    found: dict[str, str | bytes] = {}
    waiting = [*ELSEWHERE, *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]
    while waiting:
        path = waiting.pop()
        if address(path) in found:
            continue
        folder = (ROOT / path).is_dir()
        page = folder or path.endswith(".md")
        text = listing(path) if folder else (ROOT / path).read_text(encoding="utf-8") if page else ""
        if not path.startswith("docs/"):
            # Content that is a page is rewritten when it is rendered, like those of docs/.
            found[address(path)] = text if page else (ROOT / path).read_bytes()
        waiting += [
            target for target in targets(f"{path}/" if folder else path, text) if not target.startswith("docs/")
        ]
    return found


def on_files(files: Any, *, config: Any) -> Any:
    """Add what is not in docs/."""
    from mkdocs.structure.files import File

    for uri, content in additional().items():
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Let links lead to where their targets are in the site."""
    uri = page.file.src_uri
    path = source(uri)
    if (ROOT / path).is_file():
        return rewritten(path, markdown)
    # A folder's list is relative to the folder already.
    return rewritten(path.removesuffix("index.md") + "index.md", markdown)
