"""Reading: what is damaged is told by file, line and offset, and never hides what is whole."""

import base64
from pathlib import Path

import msgpack  # type: ignore[import-untyped]
import pytest

from reattach.models import events as e
from reattach.models.answers import Phase
from reattach.models.codec import decode_entry, encode_entry, encode_request
from reattach.models.journal import JournalEntry
from reattach.runtime.replay import reading
from reattach.runtime.replay.reading import files_of, read
from reattach.runtime.replay.report import replay
from tests.fsm.making import request
from tests.replay.making import Host, lines_of


@pytest.fixture
def entries() -> list[JournalEntry]:
    host = Host()
    host.submit()
    host.open(host.stored)
    host.on(e.Restored())
    host.probe(Phase.COMPLETED, b'"done"')
    return host.entries


def written(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    return path


FUTURE = base64.b64encode(msgpack.packb((99, "entry", ())))
FOREIGN = base64.b64encode(encode_request(request()))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"level":"info"}\n', "no journal entry: not base64"),
        (b"\xff\xfe\x00\n", "no journal entry: not base64"),
        (b"aGVsbG8=\n", "no journal entry: "),
        (FOREIGN + b"\n", "no journal entry: holds 'request', 'entry' expected"),
        (FUTURE + b"\n", "no journal entry: written with schema 99, this release reads up to 2: upgrade"),
        (FUTURE[:7], "truncated: the last line is not complete"),
    ],
)
def test_what_comes_before_a_bad_line_is_replayed(
    tmp_path: Path, entries: list[JournalEntry], line: bytes, message: str
) -> None:
    good = lines_of(entries[:3])
    file = written(tmp_path, "part-0.journal", good + line + (lines_of(entries[3:]) if line.endswith(b"\n") else b""))
    report = replay(read([file]))
    assert (report.checked, report.code) == (3, 2)
    (damage,) = report.damages
    assert str(damage).startswith(f"{file}, line 4 (offset {len(good)}): {message}")
    assert "\n" not in str(damage)


def test_every_cut_of_a_file_is_replayed_up_to_the_cut(tmp_path: Path, entries: list[JournalEntry]) -> None:
    whole = lines_of(entries)
    for cut in range(0, len(whole), 41):
        report = replay(read([written(tmp_path, "part-0.journal", whole[:cut])]))
        complete = whole[:cut].count(b"\n")
        assert report.divergences == []
        assert complete <= report.checked <= complete + 1
        assert report.code == (0 if report.checked and not report.damages else 2)


def test_one_changed_byte_never_passes_for_another_history(tmp_path: Path, entries: list[JournalEntry]) -> None:
    """It is damage, a divergence, a gap, or a byte that no state depends on; never a traceback."""
    whole = lines_of(entries)
    for at in range(0, len(whole), 23):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        report = replay(read([written(tmp_path, "part-0.journal", changed)]))
        assert report.checked <= len(entries)


def test_a_bad_file_leaves_the_others_whole(tmp_path: Path, entries: list[JournalEntry]) -> None:
    written(tmp_path, "part-a-0.journal", b"nonsense\n")
    written(tmp_path, "part-b-0.journal", lines_of(entries))
    files, _ = files_of([tmp_path])
    report = replay(read(files))
    assert (report.checked, len(report.damages)) == (len(entries), 1)


def test_a_line_that_is_too_long_is_not_read_whole(
    tmp_path: Path, entries: list[JournalEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINE_BYTES_MAX", 5_000)
    file = written(tmp_path, "part-0.journal", lines_of(entries[:1]) + b"A" * 9_000)
    (damage,) = read([file]).damages
    assert damage.message == "a line of more than 5000 bytes is no journal entry"


def test_more_entries_than_fit_are_told(
    tmp_path: Path, entries: list[JournalEntry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ENTRIES_MAX", 2)
    journal = read([written(tmp_path, "part-0.journal", lines_of(entries))])
    assert journal.entries == 2
    assert "more than 2 entries" in journal.damages[0].message


def test_blank_lines_and_windows_line_ends_are_nothing(tmp_path: Path, entries: list[JournalEntry]) -> None:
    data = lines_of(entries).replace(b"\n", b"\r\n\r\n")
    assert replay(read([written(tmp_path, "part-0.journal", data)])).code == 0


def test_part_files_in_any_order_and_given_twice(tmp_path: Path, entries: list[JournalEntry]) -> None:
    """`cat part-*` puts part 10 before part 9, and a new life's name may come before an old one's."""
    for number, entry in enumerate(entries):
        written(tmp_path, f"part-{number + 8}.journal", lines_of([entry]))
    files, damages = files_of([tmp_path, tmp_path / "part-9.journal"])
    assert damages == []
    assert [file.name for file in files[:3]] == ["part-8.journal", "part-9.journal", "part-10.journal"]
    backwards = read(files[::-1])
    report = replay(backwards)
    assert (report.code, report.checked) == (0, len(entries))
    assert [decode_entry(held.data) for held in next(iter(backwards.calls.values()))] == entries


def test_entries_that_are_there_twice_count_once(tmp_path: Path, entries: list[JournalEntry]) -> None:
    first = written(tmp_path, "part-0.journal", lines_of(entries))
    copy = written(tmp_path, "copy.journal", lines_of(entries[2:]))
    journal = read([first, copy])
    assert journal.repeated == len(entries) - 2
    assert replay(journal).checked == len(entries)


def test_a_folder_shows_what_is_committed(tmp_path: Path, entries: list[JournalEntry]) -> None:
    folder = tmp_path / "journal"
    written(folder, ".part-0.inprogress.journal", b"half")
    written(folder, "notes.txt", b"x")
    files, (damage,) = files_of([folder])
    assert files == []
    assert damage.message == f"{folder}: holds no *.journal file"
    inside = written(folder / "2026-11", "part-0.journal", lines_of(entries))
    assert files_of([folder]) == ([inside], [])


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (damage,) = read([tmp_path / "gone.journal"]).damages
    assert damage.message.endswith("gone.journal: cannot be read: No such file or directory")


def test_one_call_only(tmp_path: Path, entries: list[JournalEntry]) -> None:
    file = written(tmp_path, "part-0.journal", lines_of(entries))
    assert read([file], invocation="call-1").entries == len(entries)
    assert read([file], invocation="call-2").calls == {}


def test_a_journal_without_entries_proves_nothing(tmp_path: Path) -> None:
    assert replay(read([written(tmp_path, "part-0.journal", b"")])).code == 2


def test_an_entry_is_small(entries: list[JournalEntry]) -> None:
    """Only the first entry of a life carries a record and terms."""
    sizes = [len(encode_entry(entry)) for entry in entries if entry.basis is None]
    assert max(sizes) < 300
    assert max(len(encode_entry(entry)) for entry in entries) < 1_000
