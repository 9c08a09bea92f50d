"""What is a control token, what ends a turn and who says so; and what is refused.

Leaves out   the bytes of real vocabularies: see test_round_trip.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler.errors import VocabError
from toolc.compiler.vocab import WELL_KNOWN_ENDS, TokenTable, load_tokens
from toolc.compiler.vocab.hf_json import byte_alphabet

META_DECODER = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]}
VOCAB = {"a": 0, "b": 1, "ab": 2, "Ġa": 3, "<unused0>": 4, "[UNUSED]": 5, "</s>": 6, "Ċ": 7, "Ã©": 9}


def hf(added: list[tuple[int, str, bool]] = (), **changes: Any) -> dict[str, Any]:
    """A small byte-level tokenizer.json. Id 8 is a gap."""
    document = {
        "added_tokens": [{"id": token, "content": content, "special": special} for token, content, special in added],
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": VOCAB, "merges": ["a b"]},
    }
    model = changes.pop("model", {})
    document.update(changes)
    document["model"] = {**document["model"], **model}
    return document


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., TokenTable]:
    """Write files into a model folder and load it."""

    def load(tokenizer: Any, eos: Any = (), **files: Any) -> TokenTable:
        folder = tmp_path / "model"
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        for name, content in files.items():
            (folder / f"{name}.json").write_text(json.dumps(content))
        return load_tokens(folder, eos)

    return load


def test_bytes_gaps_and_unused(load: Callable[..., TokenTable]) -> None:
    table = load(hf())
    assert table.tokens == (b"a", b"b", b"ab", b" a", b"", b"", b"</s>", b"\n", b"", "é".encode())
    assert table.special == {} and table.end_of_turn == () and table.end_of_turn_origin == ""
    assert table.source == "model"


def test_byte_alphabet_is_a_bijection() -> None:
    chars = byte_alphabet()
    assert len(set(chars)) == 256 and chars[0x20] == "Ġ" and chars[0x0A] == "Ċ" and chars[0x41] == "A"


ADDED = [  # content, special flag, control?
    ("<tool_call>", False, True),
    ("[INST]", False, True),
    ("<｜tool▁sep｜>", False, True),
    ("a|b", False, True),
    ("    ", False, False),
    ("\n\n", False, False),
    ("plain", False, False),
    ("don't!", False, False),
    ("plain", True, True),
    ("  ", True, True),
]


@pytest.mark.parametrize("content, special, control", ADDED, ids=[f"{c!r}-{s}" for c, s, _ in ADDED])
def test_rule_for_added_tokens(load: Callable[..., TokenTable], content: str, special: bool, control: bool) -> None:
    table = load(hf([(10, content, special)]))
    assert table.tokens[10] == (b"" if control else content.encode())
    assert table.special == ({content: 10} if control else {})


def test_reserved_added_tokens_are_listed_and_silent(load: Callable[..., TokenTable]) -> None:
    table = load(hf([(12, "<|reserved_special_token_5|>", True)]))
    assert table.special == {"<|reserved_special_token_5|>": 12} and table.tokens[10:] == (b"", b"", b"")


TURN, END = (10, "<|turn|>", True), (11, "<|im_end|>", True)
ORIGINS = [
    ("nothing", [TURN], {}, (), ""),
    ("well known", [TURN, END], {}, (11,), "well-known name <|im_end|>"),
    ("first of several", [(10, "</s>", True), END], {}, (11,), "well-known name <|im_end|>"),
    ("generation", [TURN, END], {"generation_config": {"eos_token_id": 10}}, (10,), "generation_config.json"),
    ("list", [TURN, END], {"generation_config": {"eos_token_id": [11, 10, 11]}}, (10, 11), "generation_config.json"),
    ("tokenizer", [TURN, END], {"tokenizer_config": {"eos_token": "<|turn|>"}}, (10,), "tokenizer_config.json"),
    (
        "as an object",
        [TURN, END],
        {"tokenizer_config": {"eos_token": {"content": "<|turn|>"}}, "generation_config": {"eos_token_id": None}},
        (10,),
        "tokenizer_config.json",
    ),
    ("map", [TURN, END], {"special_tokens_map": {"eos_token": "<|turn|>"}}, (10,), "special_tokens_map.json"),
    (
        "two files",
        [TURN, END],
        {"tokenizer_config": {"eos_token": "<|im_end|>"}, "generation_config": {"eos_token_id": 10}},
        (10, 11),
        "generation_config.json, tokenizer_config.json",
    ),
    (
        "model",
        [TURN, END],
        {"config": {"eos_token_id": [10], "text_config": {"eos_token_id": 11}}},
        (10, 11),
        "config.json",
    ),
    (
        "all files agree",
        [TURN, END],
        {
            "tokenizer_config": {"eos_token": "<|turn|>"},
            "generation_config": {"eos_token_id": [10]},
            "config": {"eos_token_id": 10},
            "special_tokens_map": {"eos_token": "<|turn|>"},
        },
        (10,),
        "generation_config.json, config.json, tokenizer_config.json, special_tokens_map.json",
    ),
    (
        "text in the model's file",
        [TURN, END],
        {"config": {"eos_token_id": 2}, "tokenizer_config": {"eos_token": "<|turn|>"}},
        (10,),
        "tokenizer_config.json",
    ),
    (
        "no such id in the model's file",
        [TURN, END],
        {"config": {"eos_token_id": 99}, "generation_config": {"eos_token_id": 10}},
        (10,),
        "generation_config.json",
    ),
    (
        "only text in the model's file",
        [TURN, END],
        {"config": {"eos_token_id": 2}},
        (11,),
        "well-known name <|im_end|>",
    ),
    (
        "a name of no token",
        [TURN, END],
        {"tokenizer_config": {"eos_token": "</eos>"}, "generation_config": {"eos_token_id": 10}},
        (10,),
        "generation_config.json",
    ),
    (
        "neither a name nor an id",
        [TURN, END],
        {"config": {"eos_token_id": {"a": 10}, "text_config": 7}, "generation_config": {"eos_token_id": [True, 10]}},
        (11,),
        "well-known name <|im_end|>",
    ),
    ("plain entry of the vocabulary", [], {"tokenizer_config": {"eos_token": "</s>"}}, (6,), "tokenizer_config.json"),
]


@pytest.mark.parametrize("added, files, ends, origin", [row[1:] for row in ORIGINS], ids=[row[0] for row in ORIGINS])
def test_end_of_turn(
    load: Callable[..., TokenTable], added: Any, files: Any, ends: tuple[int, ...], origin: str
) -> None:
    table = load(hf(added), **files)
    assert (table.end_of_turn, table.end_of_turn_origin) == (ends, origin)
    assert all(table.tokens[token] == b"" and token in table.special.values() for token in ends)


def test_eos_overrides(load: Callable[..., TokenTable]) -> None:
    files = {"generation_config": {"eos_token_id": 10}}
    for eos in ["<|im_end|>", 11, "11", ["<|im_end|>"], [11]]:
        table = load(hf([TURN, END]), eos, **files)
        assert (table.end_of_turn, table.end_of_turn_origin) == ((11,), "--eos")
    assert load(hf([TURN, END]), ["<|turn|>", 11], **files).end_of_turn == (10, 11)


def test_well_known_ends_are_distinct() -> None:
    assert len(set(WELL_KNOWN_ENDS)) == len(WELL_KNOWN_ENDS)


def test_side_files_add_tokens(load: Callable[..., TokenTable]) -> None:
    decoder = {
        "6": {"content": "</s>", "special": True},  # an entry of the vocabulary becomes control
        "8": {"content": "<pad>", "special": True},  # fills the gap
        "0": {"content": "<other>", "special": True},  # contradicts the tokenizer file, which wins
        "12": {"content": "  ", "special": False},
    }
    table = load(hf(), tokenizer_config={"added_tokens_decoder": decoder}, added_tokens={"<|x|>": 11})
    assert table.special == {"</s>": 6, "<pad>": 8, "<|x|>": 11}
    assert table.tokens[0] == b"a" and table.tokens[6] == b"" and table.tokens[12] == b"  " and table.size == 13


SIDE_FILES = [
    ("tokenizer_config", {"added_tokens_decoder": {"²": {"content": "q"}}}, r"'q', id '\xb2'"),
    ("tokenizer_config", {"added_tokens_decoder": {"9" * 5000: {"content": "q"}}}, "'q', id '999"),
    ("tokenizer_config", {"added_tokens_decoder": {"99999": {"content": "\ud800"}}}, r"'\ud800', id '99999'"),
    ("tokenizer_config", {"added_tokens_decoder": {"12": "q"}}, "None, id '12'"),
    ("added_tokens", {"q": 12.5}, "'q', id 12.5"),
    ("added_tokens", {"\ud800": 12}, r"'\ud800', id 12"),
]


@pytest.mark.parametrize("name, content, text", SIDE_FILES)
def test_side_files_with_what_is_no_token(load: Callable[..., TokenTable], name: str, content: Any, text: str) -> None:
    with pytest.raises(VocabError) as caught:
        load(hf([END]), **{name: content})
    assert str(caught.value.place).startswith(f"{name}.json#") and text in str(caught.value)


def test_ranks_take_special_tokens_from_config_or_caller(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"  # Llama 3's own name for such a file
    path.write_bytes(b"".join(base64.b64encode(c) + b" %d\n" % n for n, c in enumerate([b"a", b"b", b"\xff"])))
    table = load_tokens(path, [5])
    assert table.tokens == (b"a", b"b", b"\xff", b"", b"", b"") and table.end_of_turn == (5,)
    config = {"added_tokens_decoder": {"4": {"content": "<|eot_id|>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    table = load_tokens(tmp_path)
    assert table.special == {"<|eot_id|>": 4} and table.end_of_turn == (4,)


REFUSED = [  # id, document, part of the place, part of the text
    ("wordpiece", hf(model={"type": "WordPiece"}), "tokenizer.json#/model/type", "WordPiece"),
    ("wordlevel", hf(model={"type": "WordLevel"}), "tokenizer.json#/model/type", "WordLevel"),
    ("suffix", hf(model={"end_of_word_suffix": "</w>"}), "#/model/end_of_word_suffix", "</w>"),
    ("prefix", hf(model={"continuing_subword_prefix": "##"}), "#/model/continuing_subword_prefix", "##"),
    ("no decoder", hf(decoder=None), "tokenizer.json#/decoder", "nothing"),
    ("odd decoder", hf(decoder={"type": "CTC"}), "#/decoder", "CTC"),
    ("nested", hf(decoder={"type": "Sequence", "decoders": [{"type": "BPEDecoder"}]}), "#/decoder/decoders/0", "BPE"),
    (
        "regex",
        hf(decoder={"type": "Replace", "pattern": {"Regex": "▁+"}, "content": " "}),
        "#/decoder",
        "fixed string",
    ),
    ("vocab", hf(model={"vocab": [1]}), "#/model/vocab", "list"),
    ("no model", {"model": None}, "#/model", "nothing"),
    ("added", hf(added_tokens=[{"id": 1}]), "#/added_tokens", "content"),
    ("added content", hf([(11, 5, True)]), "#/added_tokens", "content 5, id 11"),
    ("added surrogate", hf([(11, "<\ud800>", True)]), "#/added_tokens", r"content '<\ud800>'"),
    ("added id", hf(added_tokens=[{"id": 2.5, "content": "<x>"}]), "#/added_tokens", "id 2.5, expected a text and"),
    ("added id as text", hf(added_tokens=[{"id": "11", "content": "<x>"}]), "#/added_tokens", "id '11'"),
    ("id as text", hf(model={"vocab": {"a": "x"}}), "#/model/vocab", "'a', id 'x', expected texts and whole"),
    ("half an id", hf(model={"vocab": {"a": 2.5}}), "#/model/vocab", "'a', id 2.5"),
    ("piece", hf(model={"type": "Unigram", "vocab": [["a", 0], [True, 0]]}), "#/model/vocab", "True, id 1"),
    ("huge id", hf([(1 << 30, "<x>", True)]), "#/added_tokens", "1073741824"),
    ("other json", {"hello": 1}, "tokenizer.json", "hello"),
]


@pytest.mark.parametrize("document, place, text", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(load: Callable[..., TokenTable], document: Any, place: str, text: str) -> None:
    with pytest.raises(VocabError) as caught:
        load(document)
    assert place in str(caught.value.place) and text in str(caught.value)


def test_eos_refusals(load: Callable[..., TokenTable], tmp_path: Path) -> None:
    with pytest.raises(VocabError, match=r"near: <\|im_end\|>"):
        load(hf([END]), "<|im_ned|>")
    with pytest.raises(VocabError, match="expected 0 to 11"):
        load(hf([END]), 99)
    with pytest.raises(VocabError, match="stands for text"):
        load(hf([END]), "Ċ")
    with pytest.raises(VocabError, match="eos_token_id"):
        load(hf([END]), generation_config={"eos_token_id": 99})
    for value in ("</eos>", "Ċ"):
        with pytest.raises(VocabError, match="#/eos_token"):
            load(hf([END]), generation_config={}, tokenizer_config={"eos_token": value})
    with pytest.raises(VocabError, match="stands for text"):
        load(hf([END]), generation_config={"eos_token_id": 11}, tokenizer_config={"eos_token": "Ċ"})
    for path in (tmp_path / "nothing", tmp_path / "empty.json"):
        with pytest.raises(VocabError) as caught:
            load_tokens(path)
        assert caught.value.found == repr(str(path))


FILES = [
    ("lfs", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ("noise", b"\x89PNG\r\n", "not a tokenizer file"),
    ("empty", b"", "not a tokenizer file"),
    ("json", b"{", "not JSON"),
    ("ranks", b"YQ== 0\nYg=! 1\n", "ranks:2"),
    ("twice", b"YQ== 0\nYg== 0\n", "one rank"),
    ("cut", bytes([10, 9, 10, 3]) + b"abc", "truncated"),
]


@pytest.mark.parametrize("name, data, text", FILES, ids=[row[0] for row in FILES])
def test_damaged_files(tmp_path: Path, name: str, data: bytes, text: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(VocabError, match=text):
        load_tokens(tmp_path / name)


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(VocabError, match="no tokenizer"):
        load_tokens(tmp_path)
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(VocabError, match="save_pretrained"):
        load_tokens(tmp_path)


def test_strip_before_fuse_and_byte_names(load: Callable[..., TokenTable]) -> None:
    steps = [*META_DECODER["decoders"], {"type": "Strip", "content": "_", "start": 1, "stop": 2}]
    vocab = {"__a__": 0, "▁a": 1, "<0x41>": 2, "_": 3, "b_": 4}
    table = load(hf(decoder={"type": "Sequence", "decoders": steps}, model={"vocab": vocab}))
    assert table.tokens == (b"_a", b" a", b"<0x41>", b"", b"b")  # no ByteFallback: its name is its text
    steps.append({"type": "ByteFallback"})
    table = load(hf(decoder={"type": "Sequence", "decoders": steps}, model={"vocab": vocab}))
    assert table.tokens[2] == b"A"


def test_hub_offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(VocabError, match="cannot be reached"):
        load_tokens("toolc-tests/no-such-model")


def test_hub_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def fetch(repo: str, name: str, revision: str | None = None) -> str:
        asked.append((repo, name, revision))
        if name == "tokenizer.json":
            (tmp_path / name).write_text(json.dumps(hf([TURN, END])))
        elif name == "generation_config.json":
            (tmp_path / name).write_text('{"eos_token_id": 10}')
        else:
            raise hub.errors.EntryNotFoundError("no such file")
        return str(tmp_path / name)

    monkeypatch.setattr(hub, "hf_hub_download", fetch)
    table = load_tokens("org/name@main")
    assert table.source == "org/name@main" and table.end_of_turn == (10,)
    assert asked[0] == ("org/name", "tokenizer.json", "main")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("GatedRepoError", "accept it on https://huggingface.co/meta-llama/Llama-3 and log in with `hf auth login`"),
        ("RepositoryNotFoundError", "the Hugging Face hub has no such model, or it is private"),
        ("RevisionNotFoundError", "this model has no such revision"),
    ],
)
def test_what_the_hub_refuses(error: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gated model said only that the hub refused."""
    hub = pytest.importorskip("huggingface_hub")
    httpx = pytest.importorskip("httpx")

    def fetch(repo: str, name: str, revision: str | None = None) -> str:
        response = httpx.Response(403, request=httpx.Request("GET", "https://huggingface.co"))
        raise getattr(hub.errors, error)("401 Client Error", response=response)

    monkeypatch.setattr(hub, "hf_hub_download", fetch)
    with pytest.raises(VocabError) as caught:
        load_tokens("meta-llama/Llama-3@x")
    assert words in str(caught.value)
