"""What counts of a tokenizer's files is read again where they have changed, and only there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from toolc.compiler.vocab import files
from toolc.compiler.vocab.files import read_content


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Paths in the order of their reading."""
    monkeypatch.setattr(files, "_kept", type(files._kept)())
    found: list[Path] = []
    plain = Path.read_bytes

    def read(path: Path) -> bytes:
        found.append(path)
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    return found


def _settled(path: Path, data: bytes) -> None:
    """Write a file as if some time ago."""
    path.write_bytes(data)
    os.utime(path, ns=(0, 10**18))


def test_a_file_that_is_as_it_was_is_read_once(
    tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    _settled(path, b"{}")
    monkeypatch.setattr(time, "time", lambda: 2.0**40)  # long after
    assert read_content(path) == read_content(path)
    assert reads == [path]


def test_a_file_that_was_written_just_now_is_read_each_time(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "tokenizer.json"
    for data in (b"{}", b"[]"):
        path.write_bytes(data)
        assert read_content(path).data == data
    read_content(path)
    assert reads == [path, path, path]


def test_a_changed_file_is_read_again(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 2.0**40)
    path, other = tmp_path / "tokenizer.json", tmp_path / "other.json"
    _settled(path, b"{}")
    first = read_content(path)
    _settled(other, b"[]")
    os.replace(other, path)  # of equal size and time
    assert read_content(path).data == b"[]"
    assert read_content(path).digest != first.digest


def test_few_files_are_kept(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 2.0**40)
    for n in range(files.KEPT + 3):
        path = tmp_path / f"{n}.json"
        _settled(path, b"{}")
        read_content(path)
    assert len(files._kept) == files.KEPT
