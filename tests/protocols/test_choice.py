"""The protocol of a model, chosen by its chat template; names of models; marks that are no tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cases.templates import NO_TOOLS, TEMPLATES, Row
from toolc.compiler import compile_tools, source_key
from toolc.compiler.cli import cli
from toolc.compiler.errors import GrammarError, SpecError
from toolc.compiler.grammar.aliases import ALIASES
from toolc.compiler.grammar.protocol import load_protocol, protocol_names
from toolc.compiler.options import Options
from toolc.compiler.protocol_choice import choose
from toolc.compiler.specs import read_spec
from toolc.compiler.templates import rank_protocols
from toolc.compiler.vocab.chat_template import read_chat_template

UNKNOWN = TEMPLATES[0].template.replace("<tool_call>", "<a_call>").replace("</tool_call>", "</a_call>")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def _model(folder: Path, template: str | None, tokens: tuple[str, ...] = ("<tool_call>", "</tool_call>")) -> Path:
    """A model folder with a tokenizer of bytes."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(alphabet)}, []))
    from tokenizers import decoders

    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|im_end|>", *tokens])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    configuration: dict[str, object] = {"eos_token": "<|im_end|>"}
    if template is not None:
        configuration["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(configuration))
    return folder


@pytest.mark.parametrize("row", TEMPLATES, ids=lambda row: row.id)
def test_the_best_protocol_is_the_one_of_the_template(row: Row) -> None:
    best = rank_protocols(row.template).best
    assert best is not None
    assert best.protocol == row.protocol
    assert "reads back a call" in best.why


def test_every_way_to_keep_a_template(tmp_path: Path) -> None:
    folder = _model(tmp_path / "m", "of the configuration")
    found = read_chat_template(folder)
    assert found is not None
    assert (found.text, found.name) == ("of the configuration", "m/tokenizer_config.json")
    assert found.variables == {"eos_token": "<|im_end|>"}
    said = {"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    assert read_chat_template(folder)[0] == "t"  # type: ignore[index]
    (folder / "chat_template.jinja").write_text("j")
    assert read_chat_template(folder)[0] == "j"  # type: ignore[index]
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("u")
    assert read_chat_template(folder)[0] == "u"  # type: ignore[index]
    for source in (folder / "tokenizer.json", "builtin", None, tmp_path):
        assert read_chat_template(source) is None


def test_a_folder_chooses_by_itself(tmp_path: Path) -> None:
    model = _model(tmp_path / "m", TEMPLATES[0].template)
    made = compile_tools(TOOLS, model)
    assert made.bundle.meta["protocol"] == "hermes"
    assert "m/tokenizer_config.json" in made.report["chosen"]
    assert made.report["missing_marks"] == []
    assert source_key(read_spec(TOOLS), model) == made.report["key"]
    named = compile_tools(TOOLS, model, options=Options(protocol="hermes"))
    assert named.report["key"] == made.report["key"]
    assert named.report["chosen"] is None
    for protocol in ("auto", str(model), model):
        assert compile_tools(TOOLS, model, options=Options(protocol=protocol)).report["key"] == made.report["key"]
    schema = compile_tools({"type": "object", "properties": {}}, model)  # a schema has no tools to write
    assert schema.bundle.meta["protocol"] == ""


def test_what_is_not_guessed(tmp_path: Path) -> None:
    model = _model(tmp_path / "m", UNKNOWN)
    for protocol in (None, "auto"):
        with pytest.raises(GrammarError, match="as no protocol of toolc does") as refused:
            compile_tools(TOOLS, model, options=Options(protocol=protocol))
        for word in ("<a_call>", "hermes", "qwen3_coder", "m/tokenizer_config.json"):
            assert word in str(refused.value)
    for template in (NO_TOOLS, "{{ raise_exception('no tools') }}"):
        plain = _model(tmp_path / "p", template)
        made = compile_tools(TOOLS, plain)
        assert made.bundle.meta["protocol"] == "json"
        assert made.report["chosen"]
        with pytest.raises((GrammarError, SpecError), match=r"writes no calls|cannot be rendered"):
            compile_tools(TOOLS, plain, options=Options(protocol="auto"))
    bare = _model(tmp_path / "b", None)
    assert compile_tools(TOOLS, bare).report["chosen"] is None
    for source in (bare, bare / "tokenizer.json", "builtin"):
        with pytest.raises(GrammarError, match="no chat template"):
            choose(source, "auto")
    with pytest.raises(GrammarError, match="chosen by the chat template"):
        load_protocol("auto")


def test_marks_that_are_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model(tmp_path / "m", TEMPLATES[0].template)
    made = compile_tools(TOOLS, model, options=Options(protocol="harmony"))
    assert made.report["missing_marks"] == ["<|constrain|>", "<|message|>", "<|channel|>", "<|call|>"]
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke(cli, ["compile", "tools.json", "--tokenizer", "m", "--protocol", "harmony"])
    assert run.exit_code == 0
    assert "warning: <|constrain|> <|message|> <|channel|> <|call|> of harmony" in run.stderr
    run = CliRunner().invoke(cli, ["compile", "tools.json", "--tokenizer", "m"])
    assert "warning" not in run.stderr
    assert "protocol hermes, by m/tokenizer_config.json" in run.stderr


def test_a_store_of_several_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _model(tmp_path / "hermes", TEMPLATES[0].template)
    _model(tmp_path / "llama", next(row for row in TEMPLATES if row.protocol == "llama3").template)
    _model(tmp_path / "unknown", UNKNOWN)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    monkeypatch.chdir(tmp_path)
    models = [word for name in ("hermes", "llama", "unknown") for word in ("--tokenizer", name)]
    run = CliRunner().invoke(cli, ["compile", "tools.json", *models, "--store", "s", "--jobs", "1", "--json"])
    told = json.loads(run.stdout)
    assert [(row["tokenizer"], row["status"]) for row in told["rows"]] == [
        ("hermes", "compiled"), ("llama", "compiled"), ("unknown", "refused"),
    ]  # fmt: skip
    assert "as no protocol of toolc does" in told["rows"][2]["error"]["message"]
    keys = [
        json.loads(CliRunner().invoke(cli, ["key", "tools.json", "--tokenizer", name, "--json"]).stdout)["key"]
        for name in ("hermes", "llama")
    ]
    assert keys == [row["key"] for row in told["rows"][:2]]
    run = CliRunner().invoke(cli, ["compile", "tools.json", *models, "--store", "s", "--protocol", "auto", "--json"])
    assert run.exit_code == 3


def test_the_ranking_is_shown(tmp_path: Path) -> None:
    model = _model(tmp_path / "m", TEMPLATES[0].template)
    run = CliRunner().invoke(cli, ["protocols", str(model), "--json"])
    ranking = json.loads(run.stdout)["ranking"]
    assert ranking[0]["protocol"] == "hermes"
    assert ranking[0]["fits"]
    assert {row["protocol"] for row in ranking if row["tried"]} >= {"hermes", "qwen3_coder"}
    shown = CliRunner().invoke(cli, ["protocols", str(model)]).stdout
    assert "reads back a call" in shown
    assert "not tried" in shown
    assert CliRunner().invoke(cli, ["protocols", str(tmp_path / "none")]).exit_code == 3


def test_names_of_models() -> None:
    names = protocol_names()
    assert set(ALIASES) <= set(names)
    for protocol, aliases in ALIASES.items():
        for alias in aliases:
            assert alias not in names
            assert load_protocol(alias).name == load_protocol(alias.upper()).name == protocol
    assert load_protocol("GPT-OSS").name == "harmony"
    assert load_protocol("llama_4").name == "pythonic"


@pytest.mark.parametrize(
    ("wrong", "meant"), [("hermess", "hermes"), ("gpt-os", "gpt-oss"), ("qwen3-coda", "qwen3_coder")]
)
def test_misspelt_names(wrong: str, meant: str) -> None:
    with pytest.raises(GrammarError) as refused:
        load_protocol(wrong)
    assert "did you mean" in str(refused.value)
    assert meant in str(refused.value.hint)
    assert "restgpt" not in str(refused.value)
