"""Ends of turn: every token that a model's files name ends a text, wherever a text may end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cases.protocols import FAMILIES
from tests.protocols.allowed import read_text
from toolc.compiler import Options, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.key import source_key
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.specs import read_spec
from toolc.runtime import Matcher

from .test_protocols import TOOLS, allowed

CALL = FAMILIES["hermes"].write([("stop.now-1", {})])


def model(folder: Path, tokenizer: Path, **files: object) -> Path:
    """The folder of a model: a tokenizer and small files beside it."""
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").symlink_to(tokenizer.resolve())
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_two_files_that_name_different_ends(shared: Path, tmp_path: Path) -> None:
    qwen = shared / "tokenizers" / "qwen3.json"
    both = model(
        tmp_path / "both",
        qwen,
        generation_config={"eos_token_id": 151643},
        tokenizer_config={"eos_token": "<|im_end|>"},
    )
    compiled = compile_tools(TOOLS, both, options=Options(protocol="hermes"))
    assert compiled.report["ends"] == ["<|endoftext|>", "<|im_end|>"] and compiled.report["missing_ends"] == []
    for entry, text in (("auto", ""), ("none", "Hi."), ("auto", "Hi.\n" + CALL), ("required", CALL)):
        matcher = Matcher(compiled.bundle, entry)
        assert read_text(matcher, text.encode()) == len(text.encode())
        assert {151643, 151645} <= set(allowed(matcher).nonzero()[0].tolist())


def test_an_end_that_is_missing_is_told(shared: Path, tmp_path: Path) -> None:
    qwen = shared / "tokenizers" / "qwen3.json"
    one = model(tmp_path / "one", qwen, generation_config={"eos_token_id": 151643})
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(TOOLS))
    arguments = ["compile", str(spec), "--tokenizer", str(one), "--protocol", "hermes", "-o", str(tmp_path / "a.toolc")]
    said = CliRunner().invoke(cli, arguments)
    assert said.exit_code == 0 and "<|im_end|> ends a turn in hermes, but not in the files" in said.stderr
    assert "end of turn" in said.stdout and "<|endoftext|>" in said.stdout
    said = CliRunner().invoke(cli, [*arguments, "--eos", "<|im_end|>", "--json"])
    assert said.stderr == "" and json.loads(said.stdout)["ends"] == ["<|im_end|>"]
    store = ["compile", str(spec), "--store", str(tmp_path / "store"), *arguments[2:6], "--json"]
    assert json.loads(CliRunner().invoke(cli, store).stdout)["missing_ends"] == {str(one): ["<|im_end|>"]}


def test_the_key_of_a_store_tells_ends_apart(shared: Path, tmp_path: Path) -> None:
    qwen = shared / "tokenizers" / "qwen3.json"
    spec, options = read_spec(TOOLS), Options(protocol="hermes")
    ends = [[], [151643], [151643, 151645], [151645]]
    keys = [source_key(spec, model(tmp_path / f"{n}" / "model", qwen, config={"eos_token_id": e}), options)
            for n, e in enumerate(ends)]  # fmt: skip
    assert len(set(keys)) == 3 and keys[0] == keys[3]  # by its well-known name
    folder = tmp_path / "0" / "model"
    (folder / "config.json").write_text('{"eos_token_id": 151643}')
    assert source_key(spec, folder, options) != keys[0]
    assert load_vocab(folder).end_of_turn == [151643]


@pytest.mark.parametrize("eos", [["<|endoftext|>"], [151643], ["151643"]])
def test_who_names_an_end_is_not_added_to(shared: Path, tmp_path: Path, eos: list[str | int]) -> None:
    qwen = shared / "tokenizers" / "qwen3.json"
    folder = model(tmp_path / "a", qwen, generation_config={"eos_token_id": 151645})
    assert load_vocab(folder, eos).end_of_turn == [151643]
