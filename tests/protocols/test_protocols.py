"""Every protocol: what it accepts and refuses, with its delimiters as tokens and as text."""

from __future__ import annotations

import functools
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
from lark import Lark

from tests.cases.protocols import FAMILIES, is_valid, mutations
from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.errors import GrammarError, SpecError, VocabError
from toolc.compiler.grammar.protocol import FOLDER, load_protocol, parse_protocol, protocol_names
from toolc.runtime import Matcher, read_calls
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow
from .table import PAGE, example, page
from .vocabularies import vocab_for

TOOLS = [
    {"name": "get", "input_schema": {"type": "object", "properties": {
        "place": {"type": "string", "maxLength": 40}, "days": {"type": "integer", "minimum": 1, "maximum": 9},
    }, "required": ["place"], "additionalProperties": False}},
    {"name": "get_all", "input_schema": {"type": "object", "properties": {"tags": {
        "type": "array", "items": {"enum": ["a", "b {c}", "[d]"]}, "maxItems": 3}}, "additionalProperties": False}},
    {"name": "stop.now-1", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}},
]  # fmt: skip
SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}
CALLS = [
    ("get", {"place": "Zürich </tool_cal> ``` [", "days": 3}),
    ("get_all", {"tags": ["b {c}", "[d]"]}),
    ("stop.now-1", {}),
]
BOTH = pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
EACH = pytest.mark.parametrize("name", sorted(FAMILIES))


@functools.cache
def bundle(name: str, as_tokens: bool = True, whitespace: str | int = "spaced") -> Bundle:
    return compile_tools(
        TOOLS, vocab_for(name, as_tokens), options=Options(protocol=name, whitespace=whitespace)
    ).bundle


def accepts(held: Bundle, text: str, entry: str) -> bool:
    return bool(check(held, text.encode(), entry)["accepted"])


def test_every_file_has_a_family() -> None:
    assert protocol_names() == sorted([*FAMILIES, "restgpt"])  # that one writes operations of APIs: test_requests.py


@EACH
def test_file_is_lark_and_names_its_source(name: str) -> None:
    text = (FOLDER / f"{name}.lark").read_text()
    assert "// Source: " in text or name == "json"
    assert len(text.splitlines()) <= 40
    again = ', "a"' if "again" in load_protocol(name).rules["tool"] else ""
    Lark(
        text + f'start: call{{tool{{"a", x{again}}}}}\nx: "{{}}"\n' if "tools_first" not in text
        else text + 'start: call{tool{"a", x}, tool_first{"a", x}}\nx: "{}"\n',
        import_paths=[str(FOLDER)],
    )  # fmt: skip


@EACH
def test_ends_of_turn_that_a_protocol_names(name: str) -> None:
    named = load_protocol(name).turn_ends
    assert (set(FAMILIES[name].ends) <= set(named)) is bool(named)
    assert bool(named) is (name not in ("json", "react", "toolkengpt"))
    compiled = compile_tools(TOOLS[2:], vocab_for(name), options=Options(protocol=name, named=False))
    assert compiled.report["ends"] == list(FAMILIES[name].ends) and compiled.report["missing_ends"] == []


def test_an_end_of_turn_that_the_files_do_not_name_is_told() -> None:
    compiled = compile_tools(TOOLS, vocab_for("hermes"), options=Options(protocol="glm45", named=False))
    assert compiled.report["missing_ends"] == []  # the tokenizer has none of them
    compiled = compile_tools(TOOLS, vocab_for("llama3", ends=("<|eom_id|>",)), options=Options(protocol="llama3"))
    assert compiled.report["ends"] == ["<|eom_id|>"] and compiled.report["missing_ends"] == ["<|eot_id|>"]
    assert set(compiled.bundle.vocab.end_of_turn) == set(compiled.bundle.tables.end_of_turn_tokens.tolist())


@EACH
def test_whole_text_is_lark(name: str) -> None:
    Lark(compile_tools(TOOLS, vocab_for(name), options=Options(protocol=name)).grammar_text)


@BOTH
@EACH
def test_calls(name: str, as_tokens: bool) -> None:
    family, held = FAMILIES[name], bundle(name, as_tokens)
    for call in CALLS:
        for compact in (False, True):
            text = family.write([call], compact)
            some = bundle(name, as_tokens, "flexible") if compact else held
            for entry in ("start", "auto", "auto/one", "required", "required/one", f"tool:{call[0]}"):
                if entry in held.entry:
                    assert accepts(some, text, entry), (entry, check(some, text.encode(), entry))
        for entry in ("none", *(f"tool:{other}" for other, _ in CALLS if other != call[0])):
            assert entry not in held.entry or not accepts(held, family.write([call]), entry), entry
    several = family.write(CALLS)
    assert accepts(held, several, "required") is family.many
    assert not accepts(held, several, "required/one")
    if family.text:
        assert accepts(held, several, "auto") is family.many
        assert not accepts(held, several, "auto/one")


@BOTH
@EACH
def test_text(name: str, as_tokens: bool) -> None:
    family, held = FAMILIES[name], bundle(name, as_tokens)
    if not family.text:
        assert not {"auto", "none"} & set(held.entry)
        return
    call = family.write(CALLS[:1])
    for entry in ("start", "auto", "auto/one", "none"):
        assert accepts(held, family.text, entry)
    for entry in ("required", "required/one", "tool:get"):
        assert not accepts(held, family.text, entry)
        assert not accepts(held, family.before + call, entry) or not family.before
        assert not accepts(held, call + "x", entry)
    if family.before:
        for entry in ("auto", "auto/one"):
            assert accepts(held, family.before + call, entry)
        assert not accepts(held, family.before + call, "none")
    assert not accepts(held, call[:-4], "auto")


@EACH
def test_text_may_not_end_in_half_a_delimiter(name: str) -> None:
    family, held = FAMILIES[name], bundle(name, False)
    delimiter = family.begin.strip() or re.split(r"[\n{]", family.item)[0]
    if (
        not family.text
        or name
        in (
            "llama3",
            "harmony",
            "cohere",
            "kimi_k3",
            "pythonic",
            "llama3_builtin",
            "react",
            "inkling",
            "muse",
            "functionary_v31",
            "functionary_v32",
            "minicpm5",
            "plamo3",
            "xlam",
        )
        or not delimiter
    ):
        return
    first = re.match(r"\]<\]minimax\[>\[|<?(｜(?:DSML|GCML)｜)|<[^>]*>|\[[A-Z_]*\]", delimiter)
    assert first is not None
    stop = first[1] or first[0]
    for length in range(1, len(stop)):
        assert not accepts(held, "Look: " + stop[:length], "auto")
        assert accepts(held, "Look: " + stop[:length] + " no.", "auto")
    assert not accepts(held, "Look: " + stop + " no.", "auto")


@BOTH
@EACH
def test_reasoning(name: str, as_tokens: bool) -> None:
    family, held = FAMILIES[name], bundle(name, as_tokens)
    inside = [entry for entry in held.entry if entry.endswith("/inside")]
    assert bool(inside) is bool(family.think)
    if family.think is None:
        return
    begin, end = family.think
    call = family.write(CALLS[:1])
    thought = "Is 1 < 2? I call it."
    for entry in ("required", "required/one", "tool:get", "auto", "auto/one", "start"):
        outer = "start" if entry == "start" else f"{entry}/outside"
        assert accepts(held, call, outer)
        assert accepts(held, begin + thought + end + call, outer), check(
            held, (begin + thought + end + call).encode(), outer
        )
        if entry != "start":
            assert accepts(held, thought + end + call, f"{entry}/inside")
            assert not accepts(held, thought, f"{entry}/inside")
            assert not accepts(held, begin + thought + end + call, entry)
    assert accepts(held, thought + end + family.text, "none/inside")
    assert not accepts(held, thought + end + call, "none/inside")


@EACH
def test_delimiters_are_tokens_where_the_tokenizer_has_them(name: str) -> None:
    family = FAMILIES[name]
    held, plain = bundle(name, True), bundle(name, False)
    assert {d for d, token in held.meta["delimiters"].items() if token is not None} <= {*family.tokens, *family.ends}
    assert {d for d, token in plain.meta["delimiters"].items() if token is not None} <= set(family.ends)
    text = family.write(CALLS[:1])
    if any(token in text for token in family.tokens):
        spelled = Matcher(held, "required").advance_bytes(text.encode())
        assert spelled < len(text.encode())
    special = set(held.vocab.special.values())
    matcher = Matcher(held, "required/one")
    for piece in re.split("(" + "|".join(map(re.escape, family.tokens or ["\0"])) + ")", text.split("Z")[0]):
        if piece in held.vocab.special:
            matcher.advance(held.vocab.special[piece])
        else:
            assert matcher.advance_bytes(piece.encode()) == len(piece)
    closers = {held.vocab.special[token] for token in family.closers}
    assert special & set(np.flatnonzero(allowed(matcher)).tolist()) == closers  # inside a string


def allowed(matcher: Matcher) -> np.ndarray:
    mask = np.zeros(matcher.bundle.vocab.words, np.uint32)
    matcher.fill(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[: matcher.bundle.vocab.size]


@BOTH
@EACH
def test_mutations(name: str, as_tokens: bool) -> None:
    family, held = FAMILIES[name], bundle(name, as_tokens)
    rng = random.Random(name)
    refused = 0
    for call in CALLS:
        for text in mutations(family, call, rng):
            if not is_valid(family.read(text, SCHEMAS), SCHEMAS):
                assert not accepts(held, text, "required"), text
                refused += 1
    assert refused > 40


VARIANTS = {
    "mistral": [(r'\s*,\s*"id"\s*:\s*"[A-Za-z0-9]{9}"', "")],
    "mistral_v11": [(r"\[CALL_ID\][A-Za-z0-9]{9}", "")],
    "llama3": [(r"^<\|python_tag\|>", ""), (r'"type"\s*:\s*"function"\s*,\s*', "")],
    "pythonic": [(r"<\|python_(start|end)\|>", "")],
    "granite": [("^<tool_call>", "<|tool_call|>")],
    "phi4_mini": [(r"(?s)^functools(.*)$", r"<|tool_call|>\1<|/tool_call|>")],
    "step3": [("<｜tool_call_begin｜>\nfunction", "<｜tool_call_begin｜>function")],
    "kimi_k3": [
        (r"^(<\|open\|>response<\|sep\|>)?<\|close\|>response<\|sep\|>", ""),
        (r"<\|close\|>message<\|sep\|>$", ""),
    ],
    "harmony": [
        (r"^ to=functions\.([\w.-]+)<\|channel\|>commentary", r"<|channel|>commentary to=functions.\1"),
        (r"( json| ?<\|constrain\|>json)?<\|message\|>", " <|constrain|>json<|message|>"),
    ],
}
"""What the plain reading does not know, and how it knows it."""


def decode_at_random(name: str, as_tokens: bool, count: int) -> int:
    """Tokens drawn at random within the mask, in required mode, are read back as valid calls by the other reading.

    Returns how many of ``count`` texts ended within 400 tokens.
    """
    family, held = FAMILIES[name], bundle(name, as_tokens)
    names = {token: text for text, token in held.vocab.special.items()}
    rng = random.Random(name)
    finished = 0
    entry = "required/one" if name == "toolkengpt" else "required"  # between its calls there is text without end
    for _ in range(count):
        matcher, out = Matcher(held, entry), []
        while not matcher.is_finished and len(out) < 400:
            choices = np.flatnonzero(allowed(matcher)).tolist()
            token = rng.choice(choices)
            matcher.advance(token)
            out.append(b"" if matcher.is_finished else held.vocab.token(token) or names[token].encode())
        if not matcher.is_finished:
            continue
        text = b"".join(out).decode()
        called = [(call.name, call.arguments) for call in read_calls(held, text, "required")]
        for pattern, plain in VARIANTS.get(name, ()):
            text = re.sub(pattern, plain, text)
        assert is_valid(family.read(text, SCHEMAS), SCHEMAS), text
        assert called == family.read(text, SCHEMAS), text
        finished += 1
    return finished


@BOTH
@EACH
def test_random_decoding_gives_calls(name: str, as_tokens: bool) -> None:
    assert decode_at_random(name, as_tokens, 8) > 0


def test_delimiters_in_any_grammar() -> None:
    stop = 'STOP: "<tool_call>" | "{"\n%import .protocol (_tag, _text, _last_text)\n'
    text = stop + 'start: _text{STOP} _tag{"<tool_call>"} "{" _last_text{STOP} "}"\n'
    held = compile_grammar(text, vocab_for("hermes")).bundle
    assert held.meta["delimiters"]["<tool_call>"] == held.vocab.special["<tool_call>"]
    assert accepts(held, "abc<tool_call>{x}", "start") and not accepts(held, "a{bc<tool_call>{x}", "start")
    own = compile_grammar('_tag{x}: "[" x "]"\nstart: _tag{"a"}\n', vocab_for("hermes")).bundle
    assert accepts(own, "[a]", "start")  # a template of the same name that is not toolc's
    for broken, words in (
        ("start: _tag{X}\nX: /a+/\n%import .protocol (_tag)\n", "one string"),
        ('start: _text{y} "b"\ny: "a"\n%import .protocol (_text)\n', "a terminal that lists strings"),
    ):
        with pytest.raises(GrammarError, match=words):
            compile_grammar(broken, vocab_for("hermes"))


def test_own_protocol_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("own") / "mine.lark"
    path.write_text(
        '%import .protocol (_token)\ntool{name, arguments}: name ":" arguments\n'
        'call{tools}: _token{"<tool_call>"} tools\ncalls{tools}: call{tools} ("," call{tools})*\n'
    )
    held = compile_tools(TOOLS, vocab_for("hermes"), options=Options(protocol=path)).bundle
    assert accepts(held, "<tool_call>stop.now-1:{},<tool_call>get_all:{}", "start")
    assert held.meta["protocol"] == "mine" and str(path) not in str(held.meta)
    with pytest.raises(VocabError, match="needs the token <tool_call>"):
        compile_tools(TOOLS, vocab_for("hermes", False), options=Options(protocol=path))


_INDENTED = r"""tool{name, arguments}: _member{name, "arguments", arguments}
call{tools}: "<" _list{_object{tools}} ">"
_w: /\n(?:  )*/?
_c: "," (" " | /\n(?:  )*/)
%import .protocol (_object, _member, _list)
"""


def test_gaps_of_a_protocol(tmp_path: Path) -> None:
    """They hold where the compile asks for none, and before and after the call nothing is."""
    (tmp_path / "mine.lark").write_text(_INDENTED)
    call = {"name": "get_all", "arguments": {"a": [1, {"b": {}}]}}
    texts = [json.dumps([call]), json.dumps([call], indent=2), json.dumps([call], indent=4)]
    others = [json.dumps([call], separators=(",", ":")), json.dumps([call], indent=1), json.dumps([call], indent="\t")]
    for whitespace, good in (("spaced", texts), ("compact", others[:1]), ("flexible", texts + others)):
        options = Options(protocol=tmp_path / "mine.lark", whitespace=whitespace)
        held = compile_tools([{"name": "get_all", "parameters": {"type": "object"}}], options=options).bundle
        assert [text for text in texts + others if masks_allow(held, f"<{text}>".encode(), "start")] == good, whitespace
        around = [f"<{good[0]}>" + after for after in " \n"] + [before + f"<{good[0]}>" for before in " \n"]
        assert not any(masks_allow(held, text.encode(), "start") for text in around)


@pytest.mark.parametrize(
    "gap",
    ['_w: "x"?', "_w: _blank", '_c: " "', '_c: "," ","', '_k: "," " "', '_c: ("," | " ")', "_w: /[^x]/", "_w: /\\s/"],
)
def test_gaps_that_are_none(gap: str) -> None:
    with pytest.raises(GrammarError, match="something else than a gap between tokens of JSON"):
        parse_protocol(f"tool{{name, arguments}}: name arguments\n{gap}\ncall{{tools}}: tools\n", "x")


def test_errors(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(GrammarError, match="no such protocol"):
        load_protocol("hermse")
    with pytest.raises(GrammarError, match="does not define call"):
        parse_protocol("tool{name, arguments}: name arguments\n", "x")
    with pytest.raises(GrammarError, match="has no template"):
        parse_protocol("tool{name, arguments}: name arguments\ncall{tools, tools_b}: tools\n", "x")
    with pytest.raises(SpecError, match="has no tools"):
        compile_tools({"type": "object"}, vocab_for("json"), options=Options(protocol="json", response=True))
    with pytest.raises(VocabError, match="ends a turn"):
        compile_tools(TOOLS, "builtin", options=Options(protocol="harmony"))


def test_names_in_schemas_do_not_clash_with_a_protocol() -> None:
    words = [
        "text",
        "call",
        "tool",
        "tools",
        "name",
        "arguments",
        "stop",
        "lead",
        "ws",
        "think_end",
        "named",
        "key",
        "start",
    ]
    properties = {word: {"type": "string", "pattern": f"^{word}+$"} for word in words}
    tool = {"name": "text", "input_schema": {"type": "object", "properties": properties, "additionalProperties": False}}
    held = compile_tools([tool], vocab_for("hermes"), options=Options(protocol="hermes")).bundle
    call = FAMILIES["hermes"].write([("text", {word: word for word in words})])
    assert accepts(held, call, "required")


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "python -m tests.protocols.table writes it anew"


@EACH
def test_example_of_the_page(name: str) -> None:
    """What docs/protocols.md shows is accepted."""
    place = {"place": {"type": "string"}, "days": {"type": "integer"}}
    tools = [
        {"name": "current_weather", "input_schema": {"type": "object", "properties": place, "required": ["place"]}},
        {"name": "list_stations", "input_schema": {"type": "object", "properties": {}}},
    ]
    held = compile_tools(tools, vocab_for(name), options=Options(protocol=name, named=False)).bundle
    assert f"\n~~~text\n{example(name)}\n~~~\n" in PAGE.read_text()
    assert accepts(held, example(name), "required")


def test_delimiters_that_are_text_are_told_where_a_grammar_is_refused(tmp_path: Path) -> None:
    """The built-in tokenizer has none of Mistral's tokens, and here reasoning goes on over an end of it."""
    path = tmp_path / "mine.lark"
    text = (FOLDER / "mistral_v11.lark").read_text()
    path.write_text(text.replace('"[/THINK]" | "</think>" | "[TOOL_CALLS]"\n', '"[/THINK]"\n'))
    assert path.read_text() != text
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {}}}}]
    with pytest.raises(GrammarError, match="opens with a byte") as caught:
        compile_tools(tools, options=Options(protocol=path))
    hint = caught.value.hint or ""
    assert "[TOOL_CALLS]" in hint and "choose the tokenizer of the model" in hint
