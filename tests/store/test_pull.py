"""What push, pull, list and prune leave behind, and what they say where something is not as it should be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("cryptography", reason="keys are made with the package cryptography")

from toolc.compiler.cli import cli
from toolc.runtime import Bundle, open_store

from .handmade import key, keyed

VOCAB = f"{keyed().vocab.digest}.vocab"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with no cache and a store ``s`` of two bundles."""
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for number in (0, 1):
        open_store("s").put(keyed(number, "a_spec_whose_name_is_rather_long.json"))
    return tmp_path


def toolc(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def test_pull_writes_all_and_keeps_nothing_else() -> None:
    done = toolc("pull", "s", key(), key(1), key(), "-o", "new/d")
    assert done.exit_code == 0, done.output
    assert done.stdout.split() == [str(Path("new/d") / f"{one}.toolc") for one in (key(), key(1))]
    assert {path.name for path in Path("new/d").iterdir()} == {VOCAB, f"{key()}.toolc", f"{key(1)}.toolc"}
    for number in (0, 1):
        assert Bundle.open(f"new/d/{key(number)}.toolc").vocab.digest == keyed().vocab.digest
    assert toolc("pull", "s", key(), "-o", "alone", "--standalone").exit_code == 0
    assert [path.name for path in Path("alone").iterdir()] == [f"{key()}.toolc"]


@pytest.mark.parametrize("there", [False, True])
def test_a_pull_that_fails_leaves_nothing(there: bool) -> None:
    """Neither the bundles before the one that is not there, nor the folders that were made for them."""
    if there:
        Path("new").mkdir()
        Path("new/other").write_text("kept")
    for wrong, code in (("0" * 32, 5), ("no key", 2)):
        done = toolc("pull", "s", key(), wrong, "-o", "new/d", "--json")
        assert done.exit_code == code and "pulled" not in done.stdout
        assert wrong in done.stdout + done.stderr
        assert sorted(map(str, Path().rglob("new/**/*"))) == (["new/other"] if there else [])
        assert Path("new").exists() == there


@pytest.mark.parametrize("output", ["file", "file/below", "d" * 300, "/proc/x"])
def test_a_pull_to_where_nothing_can_be_written(output: str) -> None:
    if output.startswith("/proc") and not sys.platform.startswith("linux"):
        pytest.skip("Linux has a folder that not even root can write to")
    Path("file").write_text("kept")
    done = toolc("pull", "s", key(), "-o", output, "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == 5 and said["error"] == "BundleError" and said["place"] == output and said["found"]
    assert Path("file").read_text() == "kept"


def test_a_pull_over_a_folder_of_that_name() -> None:
    Path(f"d/{key(1)}.toolc").mkdir(parents=True)
    done = toolc("pull", "s", key(), key(1), "-o", "d")
    assert done.exit_code == 5 and f"{key(1)}.toolc" in done.stderr
    assert [path.name for path in Path("d").iterdir()] == [f"{key(1)}.toolc"]


def test_a_damaged_vocab_in_the_output_is_replaced_and_a_sound_one_is_kept() -> None:
    assert toolc("pull", "s", key(), "-o", "d").exit_code == 0
    vocab = Path("d") / VOCAB
    sound = vocab.stat().st_ino
    assert toolc("pull", "s", key(1), "-o", "d").exit_code == 0 and vocab.stat().st_ino == sound
    good = vocab.read_bytes()
    for harm in (b"", good[:-1], good[:-1] + bytes([good[-1] ^ 1]), (Path("s") / f"{key()}.toolc").read_bytes()):
        vocab.write_bytes(harm)
        assert toolc("pull", "s", key(), "-o", "d").exit_code == 0
        assert vocab.read_bytes() == good and Bundle.open(f"d/{key()}.toolc").digest


@pytest.mark.parametrize("words", [("prune", "--max-bytes", "1"), ("list",), ("pull", "0" * 32)])
def test_a_mistyped_store(words: tuple[str, ...], here: Path) -> None:
    before = sorted(here.rglob("*"))
    done = toolc(words[0], "nostore", *words[1:], "--json")
    said = json.loads(done.stdout)
    assert done.exit_code == 5 and said["message"] == "there is no store here" and said["place"] == "nostore"
    assert sorted(here.rglob("*")) == before


def test_a_store_that_is_named_wrongly_gets_nothing(here: Path) -> None:
    keyed().write("w.toolc")
    keyed().vocab.write(VOCAB)
    before = sorted(here.rglob("*"))
    for store in ("", "file://stores/foo", "file://relative"):
        done = toolc("push", store, "w.toolc")
        assert done.exit_code == 5 and "StoreError" in done.stderr, store
    assert sorted(here.rglob("*")) == before and not Path("/foo").exists()
    assert toolc("push", f"file://{here}/a%20b", "w.toolc").exit_code == 0 and Path("a b", VOCAB).is_file()


def test_push_says_what_it_replaced() -> None:
    keyed().write("w.toolc")
    keyed().vocab.write(VOCAB)
    assert "(was there)" in toolc("push", "s", "w.toolc").stdout
    stored = Path("s") / f"{key()}.toolc"
    stored.write_bytes(stored.read_bytes()[:-40])
    assert "(replaced the one that was there)" in toolc("push", "s", "w.toolc").stdout
    assert Bundle.open(stored).digest == keyed().digest
    stored.write_bytes(stored.read_bytes()[:-40])
    (row,) = json.loads(toolc("push", "s", "w.toolc", "--json").stdout)["pushed"]
    assert (row["new"], row["replaced"]) == (False, True)


@pytest.mark.parametrize("columns", ["80", "30"])
def test_a_list_that_goes_into_a_pipe_is_not_cut(columns: str) -> None:
    command = [sys.executable, "-m", "toolc.compiler.cli", "list", "s"]
    environment = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["key", "used", "(UTC)", "size", "spec", "tokenizer", "signed", "by"] and len(rows) == 3
    for row in rows[:2]:
        assert "a_spec_whose_name_is_rather_long.json" in row and "bytes" in row and "…" not in row
