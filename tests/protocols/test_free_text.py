"""What servers take for a call is no free text, and no separator obliges another call.

Rows are by hand, from what the parsers of vLLM 0.33 and SGLang 0.5.23 look for in a turn and from chat templates; none
of it is made by the tests' own writer.
"""

from __future__ import annotations

import functools

import pytest

from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.errors import GrammarError
from toolc.runtime import Matcher, read_calls
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow
from .test_protocols import allowed
from .vocabularies import vocab_for

TOOLS = [
    {"name": "f", "parameters": {"type": "object", "properties": {"i": {"type": "integer"}}}},
    {"name": "g", "parameters": {"type": "object", "properties": {}}},
]
BOTH = pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])


@functools.cache
def bundle(protocol: str, as_tokens: bool) -> Bundle:
    return compile_tools(TOOLS, vocab_for(protocol, as_tokens), options=Options(protocol=protocol)).bundle


def accepts(held: Bundle, text: str, entry: str) -> bool:
    return masks_allow(held, text.encode(), entry)


# ---- after the last call

_QWEN = "<tool_call>\n<function=g>\n</function>\n</tool_call>"
_HERMES = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
_R1 = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜>"
AFTER = [  # protocol, a call, what may come after it, what may not
    ("qwen3_coder", _QWEN, ["", "\n", "\n\n"], ["\n\n\n", " ", "\nx"]),
    ("hermes", _HERMES, ["", "\n", "\n\n"], ["\n\n\n"]),
    ("mimo", "<tool_call><function=g></function></tool_call>", ["", "\n"], ["\n\n"]),
    ("glm45", "<tool_call>g\n</tool_call>", ["", "\n"], ["\n\n"]),
    ("llama3", '{"name": "g", "parameters": {}}', ["", "\n"], [";", "\n\n", "; "]),
    ("llama4_json", '{"name": "g", "parameters": {}}', ["", "\n"], [";", "\n\n", " "]),
    ("deepseek_v3", f"<｜tool▁calls▁begin｜>{_R1}", ["<｜tool▁calls▁end｜>", "\n<｜tool▁calls▁end｜>"], ["", "\n"]),
    ("minimax_m2", '<minimax:tool_call>\n<invoke name="g">\n</invoke>\n', ["</minimax:tool_call>"], ["\n"]),
    ("olmo3", "<function_calls>g()", ["</function_calls>", "\n</function_calls>"], ["\n"]),
]


@BOTH
@pytest.mark.parametrize("protocol, call, may, may_not", AFTER, ids=[row[0] for row in AFTER])
def test_after_the_last_call(protocol: str, call: str, may: list[str], may_not: list[str], as_tokens: bool) -> None:
    held = bundle(protocol, as_tokens)
    for entry in ("auto", "auto/one", "required", "required/one", "tool:g"):
        for after in may:
            assert accepts(held, call + after, entry), (entry, after)
            assert [(one.name, one.arguments) for one in read_calls(held, call + after, entry)] == [("g", {})]
        for after in may_not:
            said = protocol == "hermes" and entry.startswith("auto")  # where text may follow calls
            assert accepts(held, call + after, entry) is said, (entry, after)
    assert not accepts(held, call + may[-1], "tool:f")


@BOTH
@pytest.mark.parametrize("protocol", ["qwen3_coder", "hermes", "mimo", "glm45"])
def test_another_call_after_a_new_line(protocol: str, as_tokens: bool) -> None:
    held, call = bundle(protocol, as_tokens), {row[0]: row[1] for row in AFTER}[protocol]
    for between in ("", "\n"):
        for entry in ("auto", "required"):
            assert accepts(held, f"{call}{between}{call}\n", entry)
            assert len(read_calls(held, f"{call}{between}{call}\n", entry)) == 2
        assert not accepts(held, f"{call}{between}{call}\n", "required/one")


# ---- instead of a call

_BARE = '<invoke name="f">\n<parameter name="i">x</parameter>\n</invoke>'
CALLS_TO_SERVERS = [  # protocol, a text that a server reads as a call
    ("hermes", 'Hi. <tool_call>{"name": "nosuch", "arguments": {}}</tool_call>'),
    ("qwen3_coder", "Hi\n<function=f>\n<parameter=i>\nabc\n</parameter>\n</function>\n"),
    ("qwen3_coder", "<function=nosuch></function>"),
    ("qwen3_coder", "Hi <parameter=i>"),
    ("mimo", "Hi\n<function=f><parameter=i>abc</parameter></function>"),
    ("llama3", 'Sure. {"name": "nosuch", "parameters": {}}'),
    ("llama4_json", 'Sure. {"name": "nosuch", "parameters": {}}'),
    ("llama4_json", 'Sure {x} {"name": "f", "parameters": {}}'),
    ("llama3", 'Sure. {"name": "f", "arguments": {"i": 1}} Done.'),
    ("llama3", 'Sure.\n{\n  "type": "function",\n  "name" : "f",\n  "id": [1],\n  "parameters": {}\n}'),
    ("llama3", 'Sure. {"parameters": {"i": "x"}, "name": "f"}'),
    ("llama3", '  {"name": "nosuch", "parameters": {}}'),
    ("llama3", "[1] <|python_tag|>x"),
    ("llama3_builtin", 'Sure. {"name": "nosuch", "parameters": {}}'),
    ("llama3_builtin", '{"name": "nosuch", "parameters": {}}'),
    ("llama3_builtin", "Hi <|python_tag|>nosuch.call()"),
    ("pythonic", "[nosuch(i=1)]"),
    ("pythonic", "Hi [f(i='x'), g()] Done."),
    ("pythonic", "Hi [g()]"),
    ("olmo3", "f(i='x')"),
    ("olmo3", "\n g()\nf(i=1)"),
    ("olmo3", "Hi <function_calls>nosuch()</function_calls>"),
    ("glm45", "Hi <tool_call>nosuch\n</tool_call>"),
    ("glm47", "Hi <tool_call>nosuch</tool_call>"),
    ("granite", 'Hi <|tool_call|>[{"name": "nosuch", "arguments": {}}]'),
    ("granite", 'Hi <tool_call>[{"name": "nosuch", "arguments": {}}]'),
    ("phi4_mini", 'Hi functools[{"name": "nosuch", "arguments": {}}]'),
    ("mistral", 'Hi [TOOL_CALLS] [{"name": "nosuch", "arguments": {}}]'),
    ("mistral_v11", "Hi [TOOL_CALLS]nosuch[ARGS]{}"),
    ("mistral_v11", "Hi [TOOL_CALLS]nosuch{}"),
    ("deepseek_v3", f"Hi <｜tool▁calls▁begin｜>{_R1.replace('>g', '>nosuch')}<｜tool▁calls▁end｜>"),
    ("deepseek_v31", "Hi <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>nosuch<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
    ("deepseek_v32", 'Hi <｜DSML｜invoke name="nosuch">'),
    ("deepseek_v4", 'Hi <｜DSML｜invoke name="nosuch">'),
    ("deepseek_v4", "Hi <｜DSML｜tool>"),
    ("deepseek_v41", 'Hi <｜DSML｜ invoke name="nosuch">'),
    ("kimi_k2", "Hi <|tool_calls_section_begin|><|tool_call_begin|>functions.nosuch:0<|tool_call_argument_begin|>{}"),
    ("kimi_k3", "<|open|>response<|sep|>Hi <|open|>tools<|sep|><|close|>response<|sep|>"),
    ("minimax_m2", f"Hi {_BARE}"),
    ("minimax_m2", "Hi <invoke name=f>"),
    ("minimax_m2", f"Hi <minimax:tool_call>\n{_BARE}\n</minimax:tool_call>"),
    ("minimax_m3", 'Hi ]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="nosuch">'),
    ("gemma4", "Hi <|tool_call>call:nosuch{}<tool_call|>"),
    ("functiongemma", "Hi <start_function_call>call:nosuch{}<end_function_call>"),
    ("lfm2", "Hi <|tool_call_start|>[nosuch()]<|tool_call_end|>"),
    ("cohere", 'Hi <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "nosuch", "parameters": {}}]<|END_ACTION|>'),
    ("cohere_cmd5", 'Hi <cofl:tool_calls><cofl:tool_call id="0" name="nosuch"></cofl:tool_call></cofl:tool_calls>'),
    ("step3", "Hi <｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"),
    ("harmony", "<|channel|>final<|message|>Hi <|channel|>commentary to=functions.nosuch<|message|>{}"),
]


EACH_CALL = pytest.mark.parametrize(
    "protocol, text", CALLS_TO_SERVERS, ids=[f"{p}-{n}" for n, (p, _) in enumerate(CALLS_TO_SERVERS)]
)


@BOTH
@EACH_CALL
def test_what_servers_take_for_a_call_is_no_text(protocol: str, text: str, as_tokens: bool) -> None:
    held = bundle(protocol, as_tokens)
    for entry in ("auto", "auto/one", "none"):
        assert not accepts(held, text, entry), entry


@EACH_CALL
def test_nor_is_it_in_tokens_that_only_spell_a_delimiter(protocol: str, text: str) -> None:
    held = bundle(protocol, True)
    matcher = Matcher(held, "auto")
    if matcher.advance_bytes(text.encode()) == len(text.encode()):  # it may stand before calls
        assert not set(held.vocab.end_of_turn) & set(allowed(matcher).nonzero()[0].tolist())


PROSE = [
    ("llama4_json", 'A person: [{"age": 3, "name": "Ann"}], and {x'),
    ("llama3", 'A person: [{"name": "Ann", "age": 3}], and {"parameters": [{"name": "id"}]} of an API. {'),
    ("llama3", 'The "name" is set, and "parameters": {"a": 1} too'),
    ("llama3_builtin", 'A person: {"name": "Ann"}'),
    ("pythonic", "Use [int(x) for x in xs], a [link](https://x.org), [1, 2] or f(x=1)"),
    ("olmo3", "Call f(x=1) or g(): f(x) <function>"),
    ("qwen3_coder", "1 < 2 and <function f> or </function> and <"),
    ("hermes", "1 < 2, <tool>, <tool_cal"),
    ("minimax_m2", "<invoke> or <invoke x=1> or <"),
]


@pytest.mark.parametrize("protocol, text", PROSE, ids=[f"{p}-{n}" for n, (p, _) in enumerate(PROSE)])
def test_prose_is_text(protocol: str, text: str) -> None:
    held = bundle(protocol, True)
    if text[-1] in "<l" and protocol != "hermes":
        assert not accepts(held, text, "auto")  # half of a delimiter that is text
        text += " x"
    for entry in ("auto", "none"):
        assert accepts(held, text, entry), entry


REASONING = [
    ("hermes", "<tool_call>"), ("qwen3_coder", "<tool_call>"), ("glm45", "<tool_call>"), ("glm47", "<tool_call>"),
    ("granite", "<tool_call>"), ("granite", "<|tool_call|>"), ("kimi_k2", "<|tool_calls_section_begin|>"),
    ("minimax_m2", "<minimax:tool_call>"), ("gemma4", "<|tool_call>"), ("mistral_v11", "[TOOL_CALLS]"),
    ("dots", "<dots_function_call>"), ("ernie45", "<tool_call>"), ("gigachat35", "<｜GCML｜tool_calls>"),
    ("hunyuan_a13b", "<tool_calls>"), ("hy_v3", "<tool_calls>"), ("hy_v4", "<tool_calls>"), ("minicpm5", "<function"),
    ("internlm", "<|action_start|>"), ("iquest_q1", "<iquest_tool_call>"), ("seed_oss", "<seed:tool_call>"),
    ("longcat", "<longcat_tool_call>"), ("k2_horizon", "<ifm|tool_calls>"), ("apertus", "<|tools_prefix|>"),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize("protocol, opening", REASONING, ids=[f"{p}-{o}" for p, o in REASONING])
def test_no_call_begins_in_reasoning(protocol: str, opening: str, as_tokens: bool) -> None:
    """Servers take that for its end."""
    end = {
        "gemma4": "<channel|>",
        "mistral_v11": "[/THINK]",
        "seed_oss": "</seed:think>",
        "longcat": "</longcat_think>",
        "k2_horizon": "</ifm|think>",
        "apertus": "<|inner_suffix|>",
    }.get(protocol, "</think>")
    held = bundle(protocol, as_tokens)
    assert accepts(held, f"I may call f.{end}Hi", "auto/inside")
    assert not accepts(held, f"I write {opening} and{end}Hi", "auto/inside")


# ---- the templates of free text


def test_regular_expressions_are_kept_out() -> None:
    text = '%import .protocol (_prose)\nFIRST: "[" | /[a-z]+\\(/\nSTOP: /<[a-z]+>/ | "{{"\nstart: _prose{FIRST, STOP}\n'
    held = compile_grammar(text, vocab_for("hermes")).bundle
    for said in ("", "a", "a <b", "a {b", "12(", " -[", "A("):
        assert accepts(held, said, "start"), said
    for said in ("[", "  [x", "ab(c", " ab(", "a <b> c", "<bc>", "a {{", "a {"):
        assert not accepts(held, said, "start"), said


@pytest.mark.parametrize("listed", ["/a*/", '"a" | /b?/', "/a/ | /(b|c*)/"])
def test_what_matches_no_text_cannot_be_kept_out(listed: str) -> None:
    with pytest.raises(GrammarError, match="match some text"):
        compile_grammar(f"%import .protocol (_text)\nSTOP: {listed}\nstart: _text{{STOP}}\n", vocab_for("hermes"))
