"""Reading back: what was said, thought and called, from the marks of every protocol's automaton."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.options import LIMITS
from toolc.runtime import DecodeError, Event, Matcher, Reader, read_calls, subset, write_call, write_calls
from toolc.runtime.format.bundle import Bundle

from .test_protocols import BOTH, CALLS, EACH, bundle
from .vocabularies import vocab_for

THOUGHT = "Is 1 < 2? <tool_cal I call."


def read(held: Bundle, entry: str, text: str, size: int = 0) -> tuple[Reader, list[Event]]:
    """A reader that was fed pieces of so many bytes (0: all at once), and its events."""
    reader, events, data = Reader(held, entry), [], text.encode()
    for begin in range(0, len(data), size or len(data) or 1):
        events += reader.feed_text(data[begin : begin + size if size else len(data)])
    return reader, events + reader.finish()


def joined(events: list[Event]) -> list[tuple[str, str, int]]:
    """Events with the pieces of one text put together."""
    out: list[tuple[str, str, int]] = []
    for event in events:
        if out and event.kind in ("text", "reasoning", "arguments") and out[-1][::2] == (event.kind, event.number):
            out[-1] = event.kind, out[-1][1] + event.text, event.number
        else:
            out.append((event.kind, event.text, event.number))
    return out


@BOTH
@EACH
def test_calls_and_what_is_around_them(name: str, as_tokens: bool) -> None:
    family, held = FAMILIES[name], bundle(name, as_tokens)
    calls = CALLS if family.many else CALLS[1:2]
    texts = [("required", family.write(calls), calls, "", "")]
    if family.text:
        said = "" if name == "react" else "It is 12 < 13 here."  # its answer is an action: nothing in it is free text
        assert said in family.text
        texts.append(("auto", family.text, [], said, ""))
        if family.before:
            said = "I look it up."
            assert said in family.before
            texts.append(("auto", family.before + family.write(CALLS[:1]), CALLS[:1], said, ""))
    if family.think:
        begin, end = family.think
        texts.append(("required/outside", begin + THOUGHT + end + family.write(CALLS[:1]), CALLS[:1], "", THOUGHT))
        texts.append(("required/inside", THOUGHT + end + family.write(CALLS[:1]), CALLS[:1], "", THOUGHT))
    for entry, text, wanted, said, thought in texts:
        reader, events = read(held, entry, text)
        assert [(call.name, call.arguments) for call in reader.calls] == wanted, (entry, text)
        assert (reader.text, reader.reasoning) == (said, thought), (entry, text)
        for call in reader.calls:
            begin_, end_ = call.span
            part = text.encode()[begin_:end_].decode()
            assert part.startswith(call.name) and part.endswith(call.text)
        for size in (1, 3, 7):
            again, more = read(held, entry, text, size)
            assert joined(more) == joined(events) and again.calls == reader.calls
        order = [event.kind for event in events if event.kind in ("call", "name", "end")]
        assert order == ["call", "name", "end"] * len(wanted)


@BOTH
@EACH
def test_tokens_say_what_text_says(name: str, as_tokens: bool) -> None:
    """Cut at random into tokens of the vocabulary."""
    family, held, rng = FAMILIES[name], bundle(name, as_tokens), random.Random(name)
    text = family.write(CALLS if family.many else CALLS[:1])
    whole, events = read(held, "required", text)
    by_text: dict[bytes, int] = {held.vocab.token(i): i for i in range(held.vocab.size) if held.vocab.token(i)}
    special = {n.encode(): i for n, i in held.meta["delimiters"].items() if i is not None}
    for _ in range(4):
        reader, found, rest = Reader(held, "required"), [], text.encode()
        while rest:
            own = next((n for n in special if rest.startswith(n)), None)
            cut = min((rest.find(n) for n in special if n in rest), default=len(rest))
            longest = [k for k in range(1, min(cut, 12) + 1) if rest[:k] in by_text]
            piece = own or rest[: rng.choice(longest)]
            found += reader.feed(special[own] if own else by_text[piece])
            rest = rest[len(piece) :]
        first, last = reader.tokens_of(whole.calls[-1].span)
        assert 0 < first < last
        found += reader.feed(held.vocab.end_of_turn[0]) + reader.finish()
        assert joined(found) == joined(events) and reader.is_finished
        assert reader.calls == whole.calls


@pytest.mark.parametrize(
    "said", ["<<tool_call", "a <tool_cal", "x <", "<tool_callx", "<t<to<tool_ca", "é<", "no call at all"]
)
def test_text_that_begins_like_a_delimiter(said: str) -> None:
    held, family = bundle("hermes", False), FAMILIES["hermes"]
    for size in (0, 1, 2):
        reader, _ = read(held, "auto", said + " " + family.write(CALLS[:1]), size)
        assert reader.text == said + " " and len(reader.calls) == 1
    reader, _ = read(held, "auto", "<" + family.write(CALLS[:1]))
    assert reader.text == "<" and reader.calls[0].name == "get"


@pytest.mark.parametrize("name", ["hermes", "deepseek_v31"])
def test_tokens_after_pieces_of_text(name: str) -> None:
    """What a piece of text held back stands before the token that comes next."""
    held, family = bundle(name), FAMILIES[name]
    token = {bytes(held.vocab.token(n)): n for n in reversed(range(held.vocab.size))}
    for half in ("<", "a <"):
        reader = Reader(held, "auto")
        events = reader.feed_text(half) + reader.feed(token[b"b"])
        events += reader.feed_text("c " + family.write(CALLS[:1])) + reader.finish()
        assert reader.text.rstrip() == half + "bc" and [call.name for call in reader.calls] == ["get"]
        assert joined(events)[0][1].rstrip() == half + "bc"


def test_events_come_as_soon_as_they_are_settled() -> None:
    held = bundle("hermes")
    reader = Reader(held, "auto")
    assert reader.feed_text("So: ") == [Event("text", "So: ")]
    assert reader.feed_text('<tool_call>\n{"name": "ge') == [Event("call", number=0)]
    assert reader.feed_text("t_") == [Event("name", "get_all", 0)]
    assert reader.feed_text('all", "arguments": {"ta') == [Event("arguments", '{"ta', 0)]
    found = reader.feed_text('gs": []}')
    assert [event.kind for event in found] == ["arguments", "end"]
    assert found[1].call is not None and found[1].call.arguments == {"tags": []}
    assert reader.feed_text("}\n</tool_call>") == [] and reader.finish() == []


def test_a_text_that_stops_early_has_no_call() -> None:
    held = bundle("hermes")
    reader, events = read(held, "required", '<tool_call>\n{"name": "get", "arguments": {"place": "B')
    assert reader.calls == [] and joined(events)[-1] == ("arguments", '{"place": "B', 0)
    with pytest.raises(DecodeError, match="the end of the text"):
        read_calls(held, '<tool_call>\n{"name": "get"', "required")
    with pytest.raises(DecodeError, match="none of the bundle"):
        read_calls(held, '<tool_call>\n{"name": "gut"', "required")
    with pytest.raises(DecodeError, match="no such entry"):
        Reader(held, "nothing")


def test_one_tool_and_a_grammar_without_marks() -> None:
    held = compile_tools([{"name": "go", "parameters": {}}], vocab_for("hermes"), options=Options(protocol="hermes"))
    text = FAMILIES["hermes"].write([("go", {"a": [1, None, "x"]})])
    assert read_calls(held.bundle, text)[0].arguments == {"a": [1, None, "x"]}
    plain = compile_grammar('start: "a" | "(" start ")"\n', vocab_for("hermes")).bundle
    assert read_calls(plain, "((a))") == []


def test_a_protocol_without_names(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tells the tools apart are their arguments: the tool is settled where they end."""
    path = tmp_path_factory.mktemp("own") / "nameless.lark"
    path.write_text('tool{name, arguments}: arguments\ncall{tools}: tools\ncalls{tools}: tools (";" tools)*\n')
    tools = [
        {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "integer"}}, "required": [key],
         "additionalProperties": False}} for name, key in (("a", "x"), ("b", "xy"))
    ]  # fmt: skip
    held = compile_tools(tools, vocab_for("hermes"), options=Options(protocol=path)).bundle
    text = '{"x": 1};{"xy": 2}'
    for size in (0, 1):
        reader, _ = read(held, "required", text, size)
        assert [(call.name, call.arguments) for call in reader.calls] == [("a", {"x": 1}), ("b", {"xy": 2})]
        assert [call.span for call in reader.calls] == [(0, 8), (9, 18)]
    with pytest.raises(DecodeError, match="cannot be chosen from"):
        subset(held, ["a"])


@BOTH
@EACH
def test_reader_refuses_what_matchers_refuse(name: str, as_tokens: bool) -> None:
    """Along random walks a reader takes exactly the tokens of the mask, where it is not to pass over blanks."""
    held, rng = bundle(name, as_tokens), random.Random(name)
    for entry in list(held.entry)[:4]:
        matcher, taken = Matcher(held, entry), list[int]()
        for _ in range(12):
            allowed = matcher.allowed_tokens()
            others = np.setdiff1d(np.arange(held.vocab.size), allowed).tolist()
            token = rng.choice(allowed.tolist())
            for other in (token, *rng.sample(others, min(3, len(others)))):
                reader = Reader(held, entry)
                for before in taken:
                    reader.feed(before)
                if other == token:
                    reader.feed(token)
                    continue
                reader.be_exact()
                with pytest.raises(DecodeError):
                    reader.feed(other)
            matcher.advance(token)
            taken.append(token)
            if matcher.is_finished:
                break


@pytest.mark.parametrize("name", ["hermes", "kimi_k2", "mistral_v11"])
def test_tool_errors_of_a_model_that_slips(name: str) -> None:
    """A sample of benchmarks/tool_errors.py: no error of any type with the bundle, some without."""
    from benchmarks.tool_errors import TYPES, measure

    masked, free, calls = measure(name, 25, 0.05)
    assert calls > 10 and masked["unfinished"] < 10
    assert [masked[one] for one in TYPES] == [0, 0, 0]
    assert sum(free[one] for one in TYPES) > 3


def closed(*tools: tuple[str, dict[str, object]]) -> list[dict[str, object]]:
    """Tools with these properties and no others, none of them required."""
    return [
        {"name": name, "parameters": {"type": "object", "properties": properties, "additionalProperties": False}}
        for name, properties in tools
    ]


LAST = {
    "string": ({"type": "string"}, '"a"', "a"),
    "null": ({"type": ["integer", "null"]}, "None", None),
    "true": ({"type": "boolean"}, "True", True),
    "enum": ({"enum": ["a", "b"]}, "'b'", "b"),
    "list": ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
    "number": ({"type": "integer"}, "3", 3),
}


@pytest.mark.parametrize("case", LAST)
@pytest.mark.parametrize("name", ["pythonic", "lfm2", "olmo3", "llama3_builtin", "toolkengpt"])
def test_the_last_argument_where_none_is_required(name: str, case: str) -> None:
    """The state behind it was that behind no arguments at all, so its last symbol was taken for one around them."""
    schema, literal, value = LAST[case]
    tools, family = closed(("f", {"s": schema})), FAMILIES[name]
    options = Options(protocol=name, whitespace="flexible" if name == "pythonic" else "spaced")
    held = compile_tools(tools, vocab_for(name), options=options).bundle
    text = family.write([("f", {})])
    for blank in ("", " ") if name == "pythonic" else ("",):
        said = f"f{'.call' if name == 'llama3_builtin' else ''}("
        assert said in text
        inside = {"None": "null", "True": "true", "'b'": '"b"'}.get(literal, literal)
        argument = inside if name == "toolkengpt" else f"s={literal}"
        whole = text.replace(said, f"{said}{blank}{argument}{blank}")
        for size in (0, 1):
            reader, _ = read(held, "required", whole, size)
            assert [(call.name, call.arguments, call.text) for call in reader.calls] == [("f", {"s": value}, argument)]
        written = write_call(Reader(held, "required"), "f", {"s": value})
        assert written is not None and not written.text.count(b"\\")
    assert [call.arguments for call in read_calls(held, text, "required")] == [{}]


def test_whose_call_it_is_where_the_turn_ends(tmp_path: Path) -> None:
    """A call that another could go on from was lost without a word."""
    path = tmp_path / "bare.lark"
    path.write_text('tool{name, arguments}: name | name "=" arguments\ncall{tools}: tools\n')
    held = compile_tools(closed(("f", {}), ("f.g", {})), vocab_for("hermes"), options=Options(protocol=path)).bundle
    for text, wanted in (("f.g", "f.g"), ("f={}", "f")):
        assert [call.name for call in read_calls(held, text, "required")] == [wanted]
    with pytest.raises(DecodeError, match="whose call this is"):
        read_calls(held, "f", "required")


def test_nothing_follows_the_end_of_turn() -> None:
    held = bundle("json")
    reader = Reader(held, "required")
    reader.feed_text('{"name": "get_all", "arguments": {}}')
    end = held.vocab.end_of_turn[0]
    reader.feed(end)
    assert reader.calls and reader.is_finished and reader.feed(end) == []
    with pytest.raises(DecodeError):
        reader.feed(5)


@pytest.mark.parametrize("name", ["json", "qwen3_coder", "gemma4", "pythonic", "llama3_builtin"])
def test_what_is_nested_deeply_is_read(name: str) -> None:
    """Of the largest soft depth that there may be; Python reads no literals of more than 200 brackets."""
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {}}, "required": ["a"]}}
    options = Options(protocol=name, soft_depth=LIMITS["soft_depth"][1])
    held = compile_tools([tool], vocab_for(name), options=options).bundle
    depth = options.soft_depth - 12
    text = FAMILIES[name].write([("f", {"a": []})]).replace("[]", "[" * depth + "]" * depth)
    (call,) = read_calls(held, text, "required")
    assert str(call.arguments["a"]).count("[") == depth


WITHOUT = [
    {"name": name, "parameters": {"type": "object", "properties": properties, "additionalProperties": False}}
    for name, properties in (("ping", {}), ("opt", {"s": {"type": "string"}}))
]
LISTS: list[list[tuple[str, dict[str, str]]]] = [
    [("ping", {})],
    [("opt", {})],
    [("opt", {"s": "x"})],
    [("ping", {}), ("ping", {})],
    [("opt", {}), ("opt", {"s": "x"})],
    [("opt", {"s": "x"}), ("ping", {})],
]


@BOTH
@EACH
def test_a_call_ends_as_soon_as_it_can_be_nothing_else(name: str, as_tokens: bool) -> None:
    """One without arguments ended when the next call began, or text, or with the turn."""
    family = FAMILIES[name]
    held = compile_tools(WITHOUT, vocab_for(name, as_tokens), options=Options(protocol=name, named=False)).bundle
    special = {n.encode(): i for n, i in held.meta["delimiters"].items() if i is not None}
    token = {held.vocab.token(n): n for n in reversed(range(held.vocab.size))}
    for calls in LISTS:
        if len(calls) > 1 and not family.many:
            continue
        text = family.write(calls)
        pieces = (
            re.split(b"(" + b"|".join(map(re.escape, special)) + b")", text.encode()) if special else [text.encode()]
        )
        ids = [
            i for part in pieces for i in ([special[part]] if part in special else [token[bytes((b,))] for b in part])
        ]
        for fed in (iter(text), iter(ids)):
            reader, kinds = Reader(held, "required"), list[str]()
            for one in fed:
                events = reader.feed_text(one) if isinstance(one, str) else reader.feed(one)
                kinds += [event.kind for event in events if event.kind in ("call", "name", "end")]
            assert kinds == ["call", "name", "end"] * len(calls), (text, kinds)  # before the turn ends
            assert [(call.name, call.arguments) for call in reader.calls] == calls
            assert reader.finish() == []
        written = write_calls(Reader(held, "required"), calls)
        assert written is not None and len(written.reader.calls) == len(calls), text
        for call in calls[:1]:  # not before it is told which call it is, and that no arguments follow
            reader = Reader(held, "required")
            reader.feed_text(family.write([call]).partition(call[0])[0] + call[0][:-1])
            assert not reader.calls
    if family.text and "auto" in held.entry and name in ("hermes", "qwen3_coder", "lfm2", "toolkengpt", "gemma4"):
        reader = Reader(held, "auto")
        reader.feed_text(family.write([("ping", {})]))
        assert [call.name for call in reader.calls] == ["ping"]


def test_the_end_of_a_call_does_not_come_before_arguments_that_may() -> None:
    held = compile_tools(WITHOUT, vocab_for("qwen3_coder"), options=Options(protocol="qwen3_coder")).bundle
    reader = Reader(held, "required")
    assert [event.kind for event in reader.feed_text("<tool_call>\n<function=opt>\n<")] == ["call", "name"]
    assert [event.kind for event in reader.feed_text("/f")] == ["end"]
    reader = Reader(held, "required")
    assert "end" not in [event.kind for event in reader.feed_text("<tool_call>\n<function=opt>\n<p")]


@pytest.mark.parametrize("name", ["harmony", "hermes", "llama3", "json", "pythonic", "restgpt"])
def test_the_end_of_turn_is_read_as_a_token_and_as_its_text(name: str) -> None:
    if name == "restgpt":
        paths = {"/a": {"get": {"operationId": "f", "responses": {}}}}
        document = {"openapi": "3.0.3", "info": {"title": "x", "version": "1"}, "paths": paths}
        held = compile_tools(document, vocab_for("hermes"), options=Options(protocol=name)).bundle
        text, wanted = "GET /a", ["f"]
    else:
        held, text, wanted = bundle(name), FAMILIES[name].write(CALLS[:1]), ["get"]
    end = held.vocab.end_of_turn[0]
    shown = held.vocab.shown(end)
    assert [call.name for call in read_calls(held, text, "required")] == wanted
    for said in (text + shown, text + shown * 2):
        assert [call.name for call in read_calls(held, said, "required")] == wanted
        assert check(held, said.encode(), "required") == {"accepted": True, "bytes": len(said.encode())}
        for size in (1, 3):
            reader, _ = read(held, "required", said, size)
            assert reader.is_finished and [call.name for call in reader.calls] == wanted
    reader = Reader(held, "required")
    reader.feed_text(text)
    reader.feed(end)
    assert reader.is_finished and reader.calls
    for worse in (shown, text[:-1] + shown, text + shown + "x", shown + text):
        with pytest.raises(DecodeError):
            read_calls(held, worse, "required")


def test_what_is_spelled_like_the_end_of_turn_and_is_none() -> None:
    """Ordinary tokens may write it in a string, and in text that goes on."""
    held, family = bundle("hermes"), FAMILIES["hermes"]
    call = ("get", {"place": "<|im_end|>"})
    assert [(one.name, one.arguments) for one in read_calls(held, family.write([call]) + "<|im_end|>")] == [call]
    for size in (0, 1, 4):
        reader, _ = read(held, "auto", "It writes <|im_end|> last. <|im_e", size)
        assert reader.text == "It writes <|im_end|> last. <|im_e"
        reader, _ = read(held, "auto", "It is 12.<|im_end|>", size)
        assert reader.text == "It is 12." and reader.is_finished


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "get",\n "arguments": {"place": "é", "days": 10}}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "get"'),
        ("hermes", '<tool_call>\n{"name": "gut"'),
        ("hermes", '<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>'),
        ("qwen3_coder", "<tool_call>\n<function=get>\n<parameter=days>\n3 \n"),
        ("pythonic", "[get(place='ü', dayz=1)]"),
        ("harmony", "<|channel|>commentary to=functions.get<|message|><|end|>"),
        ("json", ""),
    ],
)
def test_errors_are_those_of_check(name: str, text: str) -> None:
    held = bundle(name)
    found = check(held, text.encode(), "required")
    assert not found["accepted"]
    for given in (text, text.encode()):
        with pytest.raises(DecodeError) as error:
            read_calls(held, given, "required")
        place = f"line {found['line']}, column {found['column']} (byte {found['offset']:,})"
        assert str(error.value.place).endswith(place)
        assert (error.value.found, error.value.expected) == (found["found"], " or ".join(found["expected"]))


def test_an_error_in_tokens_names_the_place_in_their_text() -> None:
    held = bundle("hermes")
    token = {held.vocab.token(n): n for n in reversed(range(held.vocab.size))}
    ids = [held.meta["delimiters"]["<tool_call>"], *(token[bytes((byte,))] for byte in b'\n{"name": "gut')]
    with pytest.raises(DecodeError) as error:
        read_calls(held, ids, "required")
    assert (error.value.found, error.value.expected) == ("'u'", 'et" or et_all"')
    assert str(error.value.place).endswith("line 2, column 12 (byte 23)")
