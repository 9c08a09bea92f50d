"""What a tokenizer's encoder said is read from a file by the next process, and is what the library says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolc.compiler import compile_schema
from toolc.compiler.vocab import encode as module
from toolc.compiler.vocab.builtin import builtin_path
from toolc.compiler.vocab.encode import Encode

TEXTS = ['{"city": "', "", "größer", '", "days": ', "</tool_call>\n"]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Encode]:
    """An encoder as a new process has it."""
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))
    return lambda: Encode(builtin_path().read_bytes(), "1")


def files(folder: Path) -> list[Path]:
    return sorted((folder / "cache").glob("*.texts"))


def test_kept_texts_need_no_library(fresh: Callable[[], Encode], tmp_path: Path) -> None:
    first = fresh()
    said = first(TEXTS)
    assert said == [first._said(text) for text in TEXTS] and first._tokenizer is not None
    assert not files(tmp_path)
    first.keep()
    second = fresh()
    assert second(TEXTS[::-1]) == said[::-1] and second._tokenizer is None
    assert second(["another", *TEXTS]) == [first._said("another"), *said] and second._tokenizer is not None
    second.keep()
    third = fresh()
    assert third(["another", *TEXTS]) == [first._said("another"), *said] and third._tokenizer is None


def test_a_process_writes_once_and_only_what_is_new(fresh: Callable[[], Encode], tmp_path: Path) -> None:
    first = fresh()
    first(["a"])
    first.keep()
    before = files(tmp_path)[0].read_bytes()
    first(["b"])
    first.keep()
    second = fresh()
    second(["a"])
    second.keep()  # nothing new: it may write yet
    assert files(tmp_path)[0].read_bytes() == before
    second(["c"])
    second.keep()
    assert files(tmp_path)[0].read_bytes() != before


def test_the_least_recently_used_go_first(fresh: Callable[[], Encode], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    for texts in (["a", "b", "c"], ["a", "d"]):
        one = fresh()
        one(texts)
        one.keep()
    assert list(fresh()._kept or ()) == ["c", "a", "d"]


def test_too_many_at_once_are_not_kept(
    fresh: Callable[[], Encode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ADDED", 3)
    one = fresh()
    one(["a", "b", "c", "d"])
    one.keep()
    assert not files(tmp_path)


@pytest.mark.parametrize("harm", ["cut", "edited", "renamed", "gone"])
def test_a_damaged_file_is_made_anew(fresh: Callable[[], Encode], tmp_path: Path, harm: str) -> None:
    one = fresh()
    said = one(TEXTS)
    one.keep()
    (file,) = files(tmp_path)
    data = file.read_bytes()
    if harm == "cut":
        file.write_bytes(data[:-9])
    elif harm == "edited":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif harm == "renamed":
        other = Encode(builtin_path().read_bytes(), "2")
        other(["a"])
        other.keep()
        (theirs,) = {*files(tmp_path)} - {file}
        theirs.rename(file)
    else:
        file.unlink()
    again = fresh()
    assert again._tokenizer is not None and again(TEXTS) == said
    again.keep()
    assert fresh()._tokenizer is None


def test_another_tokenizer_has_another_file(fresh: Callable[[], Encode], tmp_path: Path) -> None:
    one = fresh()
    one(["ab"])
    one.keep()
    entries = json.loads(builtin_path().read_bytes())
    entries["model"]["vocab"]["a"], entries["model"]["vocab"]["b"] = (entries["model"]["vocab"][x] for x in "ba")
    other = Encode(json.dumps(entries).encode(), "1")
    assert other._tokenizer is not None and other(["a"]) == one(["b"])


def test_a_folder_that_cannot_be_written_costs_nothing_else(fresh: Callable[[], Encode], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    one = fresh()
    said = one(TEXTS)
    one.keep()
    assert fresh()(TEXTS) == said


@pytest.mark.parametrize("data", [b"{}", b'{"config": {}, "vocab": []}', b"{\xff"])
def test_other_json_is_no_tokenizer(fresh: Callable[[], Encode], data: bytes) -> None:
    with pytest.raises(ValueError, match="tokenizer"):
        Encode(data, "1")


def test_threads_share_an_encoder(fresh: Callable[[], Encode]) -> None:
    one = fresh()
    expected = [one._said(text) for text in TEXTS]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(20):
                shared = fresh()
                asked = [pool.submit(shared, TEXTS) for _ in range(8)]
                kept = [pool.submit(shared.keep) for _ in range(8)]
                assert [one.result() for one in asked] == [expected] * 8
                assert [one.result() for one in kept] == [None] * 8
    finally:
        sys.setswitchinterval(interval)
    assert fresh()(TEXTS) == expected


def test_a_compile_keeps_what_it_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))
    schema = {"type": "object", "properties": {"a_key": {"type": "integer"}}, "required": ["a_key"]}
    digests = set()
    for library in (True, False):
        module._encode_of.cache_clear()
        digests.add(compile_schema(schema).bundle.digest)
        one = module.encoder("builtin")
        assert one is not None and (one._tokenizer is not None) == library
        assert len(files(tmp_path)) == 1
    module._encode_of.cache_clear()
    assert len(digests) == 1
