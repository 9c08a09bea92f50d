"""What a grammar imports: found beside its file, and a part of its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolc.compiler import compile_grammar, source_key
from toolc.compiler.errors import GrammarError
from toolc.compiler.key import grammar_digest
from toolc.runtime.store.key import key_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of grammars that import each other, which is not the current one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    place = tmp_path / "there"
    place.mkdir()
    (place / "main.lark").write_text("%import .words (word)\nstart: word\n")
    (place / "words.lark").write_text('%import .letters (A)\nword: A "!"\n')
    (place / "letters.lark").write_text('A: "a"\n')
    return place


def test_files_are_found_beside_the_file(folder: Path) -> None:
    bundle = compile_grammar(folder / "main.lark", "builtin").bundle
    assert bundle.meta["spec"]["name"] == "main.lark"
    text = (folder / "main.lark").read_text()
    again = compile_grammar(text, "builtin", import_paths=[folder], name="main.lark").bundle
    assert again.digest == bundle.digest
    with pytest.raises(GrammarError, match=r"at main\.lark:1:1\n  a grammar to import was not found"):
        compile_grammar(text, "builtin", name="main.lark")


def test_what_is_imported_is_a_part_of_the_key(folder: Path) -> None:
    text = (folder / "main.lark").read_text()
    bundle = compile_grammar(folder / "main.lark", "builtin").bundle
    key = source_key(text, bundle.vocab, name="main.lark", import_paths=[folder])
    assert key == key_of(bundle.meta)
    (folder / "letters.lark").write_text('A: "b"\n')  # which main.lark imports by way of another
    assert source_key(text, bundle.vocab, name="main.lark", import_paths=[folder]) != key


def test_the_digest_of_a_grammar_without_imports_is_that_of_its_text() -> None:
    assert grammar_digest('start: "a"') == grammar_digest('start: "a"', "other.lark", [Path("anywhere")])
    assert grammar_digest("%import toolc.json (value)\nstart: value") != grammar_digest(
        "%import common.INT\nstart: INT"
    )


def test_a_store_compiles_what_imports_files_beside_it(folder: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from toolc.compiler.cli import cli

    for wanted in ("1 compiled", "1 reused"):
        done = CliRunner().invoke(cli, ["compile", str(folder / "main.lark"), "--store", str(tmp_path / "store")])
        assert done.exit_code == 0 and wanted in done.stdout
