"""Copies of admitted bundles: what happens to the owner's file, and to the folder, while requests wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from toolc.runtime import BundleError
from toolc.runtime.adapters import admitted
from toolc.runtime.adapters.admitted import Admitted, engine_folder
from toolc.runtime.adapters.choice import Shelf
from toolc.runtime.format import vocab
from toolc.runtime.format.bundle import Bundle

from .handmade import bundle


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of bundles."""
    monkeypatch.setenv("TOOLC_ADMITTED", str(tmp_path / "engine"))
    (tmp_path / "owner").mkdir()
    return tmp_path / "owner"


@pytest.mark.parametrize("standalone", [True, False])
def test_a_copy_outlives_its_file(owner: Path, standalone: bool) -> None:
    bundle("words").write(owner / "a.toolc", standalone=standalone)
    if not standalone:
        bundle("words").vocab.write(owner / f"{bundle('words').vocab.digest}.vocab")
    key, taken = Admitted().take(owner / "a.toolc")
    for path in owner.iterdir():
        path.write_bytes(b"")
        path.unlink()
    assert Admitted().open(key).digest == taken.digest == bundle("words").digest


@pytest.mark.parametrize("standalone", [True, False])
def test_a_vocab_is_opened_once_for_all_bundles(owner: Path, standalone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whoever admits and by whoever serves: opening a large one takes longer than all else."""
    words = bundle("words")
    for number in range(3):
        Bundle(words.tables, {**words.meta, "compiler": str(number)}, words.vocab).write(
            owner / f"{number}.toolc", standalone=standalone
        )
    if not standalone:
        words.vocab.write(owner / f"{words.vocab.digest}.vocab")
    monkeypatch.setattr(vocab, "_open", type(vocab._open)())
    front = Admitted()
    first, *others = [front.take(owner / f"{number}.toolc") for number in range(3)]
    assert all(other[1].vocab is first[1].vocab for other in others)
    monkeypatch.setattr(vocab, "_open", type(vocab._open)())  # another process
    back = Admitted()
    opened = [back.open(key) for key, _ in (first, *others)]
    assert opened[0].vocab is opened[1].vocab is opened[2].vocab is not first[1].vocab


def test_equal_files_have_one_copy_and_others_have_others(owner: Path) -> None:
    for name, kind in (("a", "words"), ("b", "words"), ("c", "brackets")):
        bundle(kind).write(owner / f"{name}.toolc", standalone=True)
    copies = Admitted()
    keys = [copies.take(owner / f"{name}.toolc")[0] for name in "abc"]
    assert keys[0] == keys[1] != keys[2]
    assert len(list(copies.folder.glob("*.toolc"))) == 2 and not list(copies.folder.glob(".*"))


@pytest.mark.parametrize("key", ["", "../a", "0" * 31, "G" * 32, "0" * 32])
def test_what_is_no_copy(owner: Path, key: str) -> None:
    with pytest.raises(BundleError, match=r"no hash of a bundle|admitted bundle is gone"):
        Admitted().open(key)


def test_a_copy_that_goes_away_while_it_is_opened(owner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of toolc, which ends one request; any other would end the engine."""
    bundle("words").write(owner / "a.toolc", standalone=True)
    key, _ = Admitted().take(owner / "a.toolc")
    opened = Path.open

    def gone(path: Path, *arguments: Any) -> Any:
        if path.name == f"{key}.toolc":
            path.unlink()
        return opened(path, *arguments)

    monkeypatch.setattr(Path, "open", gone)
    with pytest.raises(BundleError, match="cannot be read"):
        Admitted().open(key)


def test_a_damaged_copy_is_not_trusted(owner: Path) -> None:
    bundle("words").write(owner / "a.toolc", standalone=True)
    key, _ = Admitted().take(owner / "a.toolc")
    path = engine_folder() / f"{key}.toolc"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(BundleError):
        Admitted().open(key)


def test_copies_go_when_nobody_asks_for_them(owner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And come back with the next request."""
    for kind in ("words", "brackets"):
        bundle(kind).write(owner / f"{kind}.toolc", standalone=True)
    shelf = Shelf(str(owner), Admitted())
    first = shelf.choose({"toolc_bundle": "words"})
    assert first is not None and first.key is not None
    old = time.time() - admitted.KEEP_S - 1
    os.utime(engine_folder() / f"{first.key}.toolc", (old, old))
    shelf.choose({"toolc_bundle": "brackets"})
    assert not (engine_folder() / f"{first.key}.toolc").exists()
    again = shelf.choose({"toolc_bundle": "words"})
    assert again is not None and again.key == first.key
    assert Admitted().open(first.key).digest == bundle("words").digest


def test_a_process_keeps_so_many_open(owner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admitted, "OPEN", 1)
    copies = Admitted()
    for kind in ("words", "brackets", "counted"):
        bundle(kind).write(owner / f"{kind}.toolc", standalone=True)
        copies.take(owner / f"{kind}.toolc")
    assert len(copies._open) == 1


def test_the_engines_folder_goes_with_the_process_that_made_it() -> None:
    """Not with a child of it."""
    code = (
        "import os, multiprocessing as m; from toolc.runtime.adapters.admitted import engine_folder;"
        "f = engine_folder(); c = m.get_context('fork').Process(target=engine_folder); c.start(); c.join();"
        "print(f, f.is_dir(), os.environ['TOOLC_ADMITTED'] == str(f))"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TOOLC_ADMITTED"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    folder, there, same = done.stdout.split()
    assert (there, same) == ("True", "True") and not Path(folder).exists()
