"""Check a chat template against a protocol: a known call, rendered by the template, has to be read back as that call.

An engine reads calls by the parser that it was started with; masks write them as a protocol says. Where the model's
chat template writes another form, the model was trained on that one, and one of the two is named wrongly.

Leaves out   which protocol a parser reads (toolc.runtime.serving.parser_table), templates of people
             (the engine's own rendering).
Invariants   a template is run in Jinja's sandbox, since it comes from a checkpoint; nothing of it is kept. Only jinja2
             is needed, and only here. What is read is the text behind the prompt, up to the end of the turn.
Source       transformers 5.23, utils/chat_template_utils.py: how templates are run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolc.runtime.errors import DecodeError
from toolc.runtime.serving.parser_table import TOOL_PARSERS, protocols_of

from .errors import SpecError, ToolcError
from .options import Options
from .specs.model import quote

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle

    from .grammar.protocol import Protocol

ARGUMENTS: dict[str, Any] = {"place": "Basel", "days": 3, "exact": True}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "current_weather",
        "description": "Tell the weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "where"},
                "days": {"type": "integer", "description": "for how long"},
                "exact": {"type": "boolean", "description": "or by and large"},
            },
            "required": ["place", "days", "exact"],
            "additionalProperties": False,
        },
    },
}
"""The known call and its tool: types that all formats can write."""
_IDS = ("call00001", "functions.current_weather:0")  # Mistral asks for nine characters, Kimi writes the id itself
_GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
_SHOWN = 300


def check_parser(
    template: str,
    protocol: str | Path | None,
    parser: str,
    engine: str = "vllm",
    *,
    name: str = "the chat template",
    variables: Mapping[str, Any] | None = None,
) -> str:
    """Check that a chat template writes calls as a protocol does which an engine's parser reads.

    Args:
        template: Jinja text.
        protocol: its name or a .lark file; None for those that the parser reads.
        parser: name of ``--tool-call-parser``.
        engine: "vllm" or "sglang".
        name: how errors call the template.
        variables: what the engine gives to templates beside the conversation, as ``bos_token`` and ``eos_token``.

    Returns:
        The protocol: that which was given, or the first of the parser's whose calls the template writes.

    Raises:
        RequestError: no such parser, or none of a protocol that toolc has.
        SpecError: parser, protocol and template do not go together; the error names all three.
        ToolcError: jinja2 is not installed.
    """
    known = TOOL_PARSERS.get(engine, {}).get(parser)
    if protocol is None or known is None or (not known.protocols and _is_name(protocol)):
        known_protocols = protocols_of(parser, engine)
    else:
        known_protocols = known.protocols
    if protocol is not None and _is_name(protocol) and str(protocol) not in known_protocols:
        raise SpecError(
            f"the parser {parser} of {engine} does not read the protocol {protocol}",
            place=name,
            found=str(protocol),
            expected=" or ".join(known_protocols),
            hint=f"name the protocol {known_protocols[0]}, or the parser of {protocol}",
        )
    candidates = known_protocols if protocol is None else (protocol,)
    texts = _renderings(template, name, variables or {})
    for one in candidates:
        held = _bundle(one)
        if any(_reads(held, text) for text in texts):
            return str(one)
    raise SpecError(
        f"the chat template writes calls in another form than the protocol {' or '.join(map(str, candidates))}, "
        f"which the parser {parser} of {engine} reads",
        place=name,
        found=quote(texts[0], _SHOWN) if texts and texts[0] else "no call at all",
        expected=quote(_example(_bundle(candidates[0])), _SHOWN),
        hint="name the parser and the protocol of this model, or give the engine a template of the parser's form",
    )


def _is_name(protocol: str | Path) -> bool:
    """Whether a protocol is one that toolc brings along, by its name."""
    from .grammar.protocol import protocol_names

    return str(protocol) in protocol_names()


def _renderings(template: str, name: str, variables: Mapping[str, Any]) -> list[str]:
    """What the template writes for the known call, for every way of giving it arguments and an id."""
    compiled = _compiled(template, name)
    from jinja2.exceptions import TemplateError

    faults_of_templates = TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError
    found: dict[str, None] = {}
    faults: list[str] = []
    user = {"role": "user", "content": "What is the weather in Basel?"}
    for arguments in (ARGUMENTS, json.dumps(ARGUMENTS)):
        for id_ in _IDS:
            function = {"name": "current_weather", "arguments": arguments}
            call = {"id": id_, "type": "function", "function": function}
            answer = {"role": "assistant", "content": "", "tool_calls": [call]}
            try:
                prompt = _render(compiled, [user], True, variables)
                whole = _render(compiled, [user, answer], False, variables)
            except faults_of_templates as error:
                faults.append(f"{type(error).__name__}: {error}")
                continue
            found |= dict.fromkeys(whole[begin:] for begin in _begins(prompt, whole))
    if not found:
        raise SpecError("the chat template cannot be rendered with a call", place=name, found=faults[0][:_SHOWN])
    return list(found)


def _begins(prompt: str, whole: str) -> list[int]:
    """Where in a conversation the answer may begin: behind the prompt, or if that opens reasoning which the answer of a
    conversation has not, where the last mark begins that both begin alike with."""
    pairs = enumerate(zip(prompt, whole, strict=False))
    alike = next((i for i, (one, two) in pairs if one != two), min(len(prompt), len(whole)))
    if alike == len(prompt):
        return [alike]
    return [alike, *(found for mark in "<[{" if (found := whole.rfind(mark, max(alike - 40, 0), alike)) >= 0)]


def _compiled(template: str, name: str) -> Any:
    """The template, compiled as transformers compiles it."""
    try:
        import jinja2
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ToolcError("chat templates need jinja2, which is not installed", hint="pip install jinja2") from None

    def raise_exception(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None,
               sort_keys: bool = False) -> str:  # fmt: skip
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime(2026, 1, 1).strftime(form)
    marked = _GENERATION.sub(lambda tag: f"{{%{tag[1]} {'endif' if tag[2] else 'if true'} {tag[3]}%}}", template)
    try:
        return environment.from_string(marked)
    except jinja2.exceptions.TemplateError as error:
        line = getattr(error, "lineno", None)
        place = name if line is None else f"{name}:{line}"
        raise SpecError("this is no template of Jinja", place=place, found=str(error)[:_SHOWN]) from None


def _render(template: Any, messages: list[Any], prompt: bool, variables: Mapping[str, Any]) -> str:
    known = {"bos_token": "", "eos_token": "", "unk_token": "", "pad_token": ""} | dict(variables)
    return str(template.render(messages=messages, tools=[TOOL], add_generation_prompt=prompt, **known))


def _bundle(protocol: str | Path) -> Bundle:
    """The tool of the known call, compiled for bytes and what the protocol ends turns with."""
    from .grammar.protocol import load_protocol
    from .pipeline import compile_tools

    vocab = _vocab(load_protocol(protocol))
    return compile_tools([TOOL], vocab, options=Options(protocol=protocol, named=False)).bundle


def _vocab(protocol: Protocol) -> Any:
    """Every byte as a token, and the ends of turn: delimiters are text, which is read as their tokens are."""
    from .lift.vocab import build_vocab
    from .vocab.table import TokenTable

    ends = protocol.turn_ends or ("<|end_of_turn|>",)
    return build_vocab(
        TokenTable(
            tokens=tuple(bytes((byte,)) for byte in range(256)) + (b"",) * len(ends),
            special={end: 256 + i for i, end in enumerate(ends)},
            end_of_turn=tuple(256 + i for i in range(len(ends))),
            source="bytes",
            end_of_turn_origin="the protocol",
        )
    )


def _reads(held: Bundle, text: str) -> bool:
    """Whether a text, perhaps with an end of turn and what stands behind it, is read as the known call."""
    from toolc.runtime.calls.whole_text import read_calls

    names = [held.vocab.shown(token) for token in held.vocab.end_of_turn]
    cuts = {len(text), len(text.rstrip()), *(text.find(end) for end in names if end in text)}
    cuts |= {text.find(end) + len(end) for end in names if end in text}
    for entry in ("required", "auto/outside", "auto/inside", "required/inside", "auto"):
        if entry not in held.entry:
            continue
        for cut in sorted(cuts):
            for begin in {0, len(text[:cut]) - len(text[:cut].lstrip())}:
                try:
                    calls = read_calls(held, text[begin:cut], entry)
                except DecodeError:
                    continue
                if [(call.name, call.arguments) for call in calls] == [("current_weather", ARGUMENTS)]:
                    return True
    return False


def _example(held: Bundle) -> str:
    """The known call as the protocol writes it."""
    from toolc.runtime import Reader, write_calls

    written = write_calls(Reader(held, "required"), [("current_weather", ARGUMENTS)])
    assert written is not None
    return written.text.decode()
