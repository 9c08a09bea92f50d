"""Check a chat template against protocols: known calls, rendered by the template, have to be read back as those calls.

An engine reads calls by the parser that it was started with; masks write them as a protocol says. Where the model's
chat template writes another form, the model was trained on that one, and one of the two is named wrongly.

Leaves out   which protocol a parser reads (toolc.runtime.serving.parser_table), where a template lies
             (vocab/chat_template.py), what a compile makes of the ranking (protocol_choice.py), templates of people
             (the engine's own rendering).
Invariants   a template is run in Jinja's sandbox, since it comes from a checkpoint; nothing of it is kept. Only jinja2
             is needed, and only here. What is read is the text behind the prompt, up to the end of the turn.
Source       transformers 5.23, utils/chat_template_utils.py: how templates are run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolc.runtime.errors import DecodeError
from toolc.runtime.serving.parser_table import TOOL_PARSERS, protocols_of

from .errors import SetupError, SpecError
from .options import Options
from .specs.model import quote

if TYPE_CHECKING:
    from toolc.runtime.format.bundle import Bundle

    from .grammar.protocol import Protocol

ARGUMENTS: dict[str, Any] = {"days": 3, "exact": True, "place": "Basel"}
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "current_weather",
        "description": "Tell the weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {
                "days": {"type": "integer", "description": "for how long"},
                "exact": {"type": "boolean", "description": "or by and large"},
                "place": {"type": "string", "description": "where"},
            },
            "required": ["days", "exact", "place"],
            "additionalProperties": False,
        },
    },
}
"""The known call and its tool: types that all formats can write, keys in the order of the alphabet, in which some
templates write them."""
_STATIONS: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "list_stations",
        "description": "List all stations.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
    },
}
_TOOLS = [TOOL, _STATIONS]
_IDS = ("call0000{}", "functions.{name}:{}")  # Mistral asks for nine characters, Kimi writes the id itself

Calls = list[tuple[str, dict[str, Any]]]


class Probe(NamedTuple):
    """Calls that a template is rendered with.

    Attributes:
        name: what is special about them.
        calls: names and arguments.
        content: what the answer says before the calls.
        reasoning: what the model thought before.
        tools: that there are, as the list of a request.
    """

    name: str
    calls: Calls
    content: str = ""
    reasoning: str = ""
    tools: Sequence[dict[str, Any]] = _TOOLS


KNOWN = Probe("a call", [("current_weather", ARGUMENTS)])
PROBES = (
    KNOWN,
    Probe("no arguments", [("list_stations", {})]),
    Probe("two calls", [("current_weather", ARGUMENTS), ("current_weather", ARGUMENTS | {"place": "Bern"})]),
    Probe("text before", [("current_weather", ARGUMENTS)], "I look that up."),
    Probe("a text of two lines", [("current_weather", ARGUMENTS | {"place": 'Basel "Nord",\n<west> of Bâle'})]),
)
"""The first has to be read back; the others tell apart protocols that read the first."""


class Fit(NamedTuple):
    """How a protocol goes with a chat template.

    Attributes:
        protocol: its name.
        reads: names of the probes that the protocol reads back as the template writes them.
        writes: of these, the ones that toolc writes in the same way.
        missing: marks of its calls that are no tokens of the tokenizer.
        ends: whether an end of turn of the protocol stands in the template.
        tried: whether the renderings were read; they are not where another protocol fits, and none of this one's marks
            is in the text.
    """

    protocol: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    missing: tuple[str, ...]
    ends: bool = False
    tried: bool = True

    @property
    def fits(self) -> bool:
        """Whether the known call is read back."""
        return KNOWN.name in self.reads

    @property
    def why(self) -> str:
        """The same in words."""
        marks = f"; not tokens here: {' '.join(self.missing)}" if self.missing else ""
        if not self.tried:
            return "none of its marks is in the text"
        if not self.fits:
            return "does not read the call"
        alike = "all of them" if self.writes == self.reads else ", ".join(self.writes) or "none"
        return f"reads back {', '.join(self.reads)}; writes {alike} as the template does{marks}"


class Ranking(NamedTuple):
    """The protocols, the one that fits best first, and what the template writes for the known call."""

    fits: tuple[Fit, ...]
    text: str

    @property
    def best(self) -> Fit | None:
        """The first one, if it fits."""
        return self.fits[0] if self.fits and self.fits[0].fits else None


_GENERATION = re.compile(r"\{%(-?)\s*(end)?generation\s*(-?)%\}")
_SHOWN = 300
_ENTRIES = ("required", "auto/outside", "auto/inside", "required/inside", "auto")


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
        SetupError: jinja2 is not installed.
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
    from .grammar.protocol import load_protocol

    candidates = known_protocols if protocol is None else (protocol,)
    texts = renderings(template, name, variables or {})
    for one in candidates:
        held = _bundle(one)
        marks = load_protocol(one).marks
        if any(read_as(held, marks, text, KNOWN.calls) for text in texts):
            return str(one)
    raise SpecError(
        f"the chat template writes calls in another form than the protocol {' or '.join(map(str, candidates))}, "
        f"which the parser {parser} of {engine} reads",
        place=name,
        found=quote(texts[0], _SHOWN) if texts and texts[0] else "no call at all",
        expected=quote(_example(_bundle(candidates[0]), KNOWN.calls), _SHOWN),
        hint="name the parser and the protocol of this model, or give the engine a template of the parser's form",
    )


def _is_name(protocol: str | Path) -> bool:
    """Whether a protocol is one that toolc brings along, by its name."""
    from .grammar.protocol import protocol_names

    return str(protocol) in protocol_names()


def rank_protocols(
    template: str,
    *,
    name: str = "the chat template",
    variables: Mapping[str, Any] | None = None,
    special: Sequence[str] | None = None,
) -> Ranking:
    """Rank the protocols of model families by what they read back of the calls that a chat template writes, then by
    what they write alike, by the end of turn, and by how many parsers of engines read them.

    Args:
        template: Jinja text.
        name: how errors call the template.
        variables: what is given to the template beside the conversation.
        special: the tokens of the tokenizer, by text; None where the tokenizer is not known.

    Raises:
        SpecError: the template cannot be rendered with a call.
        SetupError: jinja2 is not installed.
    """
    from .grammar.protocol import load_protocol, protocol_names

    known = renderings(template, name, variables or {})
    text = next((one for one in known if KNOWN.calls[0][0] in one), "")
    texts = {KNOWN.name: known}
    for probe in PROBES[1:]:
        try:
            texts[probe.name] = renderings(template, name, variables or {}, probe)
        except SpecError:
            texts[probe.name] = []  # as of two calls, where the family has one a turn
    every = [load_protocol(one) for one in protocol_names()]
    loaded = [one for one in every if one.turn_ends]  # the others are ways of prompting, and no family's
    found: list[Fit] = []
    marked = [protocol for protocol in loaded if any(mark in text for mark in protocol.marks)]
    for group in (marked, [protocol for protocol in loaded if protocol not in marked]):
        done = not text or any(fit.fits for fit in found)
        for protocol in group:
            missing = () if special is None else tuple(mark for mark in protocol.marks if mark not in special)
            if done:
                found.append(Fit(protocol.name, (), (), missing, tried=False))
                continue
            held = _bundle(protocol.name)
            reads: list[Probe] = []
            for one in PROBES if any(read_as(held, protocol.marks, text, KNOWN.calls) for text in known) else ():
                if any(read_as(held, protocol.marks, text, one.calls) for text in texts[one.name]):
                    reads.append(one)
            writes = [one.name for one in reads if any(_example(held, one.calls) in text for text in texts[one.name])]
            ends = any(end in one for end in protocol.turn_ends for one in (template, text))
            found.append(Fit(protocol.name, tuple(one.name for one in reads), tuple(writes), missing, ends))
    readers = Counter(
        one for parsers in TOOL_PARSERS.values() for parser in parsers.values() for one in parser.protocols
    )

    def order(fit: Fit) -> tuple[int | bool, ...]:
        return -len(fit.reads), -len(fit.writes), not fit.ends, -readers[fit.protocol], not fit.tried

    found.sort(key=order)
    return Ranking(tuple(found), text)


def renderings(template: str, name: str, variables: Mapping[str, Any], probe: Probe = KNOWN) -> list[str]:
    """What the template writes for calls, for every way of giving it arguments and an id."""
    compiled = _compiled(template, name)
    from jinja2.exceptions import TemplateError

    faults_of_templates = (
        TemplateError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    )
    found: dict[str, None] = {}
    faults: list[str] = []
    user = {"role": "user", "content": "What is the weather in Basel?"}
    for as_text in (False, True):
        for id_ in _IDS:
            calls = [
                {
                    "id": id_.format(number, name=tool),
                    "type": "function",
                    "function": {"name": tool, "arguments": json.dumps(arguments) if as_text else arguments},
                }
                for number, (tool, arguments) in enumerate(probe.calls)
            ]
            answer = {"role": "assistant", "content": probe.content, "tool_calls": calls}
            if probe.reasoning:
                answer |= {"reasoning_content": probe.reasoning, "reasoning": probe.reasoning}
            try:
                prompt = _render(compiled, [user], True, variables, probe.tools)
                whole = _render(compiled, [user, answer], False, variables, probe.tools)
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


@lru_cache(maxsize=16)
def _compiled(template: str, name: str) -> Any:
    """The template, compiled as transformers compiles it."""
    try:
        import jinja2
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise SetupError("chat templates need jinja2, which is not installed", hint="pip install jinja2") from None

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


def _render(
    template: Any, messages: list[Any], prompt: bool, variables: Mapping[str, Any], tools: Sequence[dict[str, Any]]
) -> str:
    known = {"bos_token": "", "eos_token": "", "unk_token": "", "pad_token": ""} | dict(variables)
    return str(template.render(messages=messages, tools=list(tools), add_generation_prompt=prompt, **known))


@cache
def _bundle(protocol: str | Path) -> Bundle:
    """The tools of the known calls."""
    return bundle_of(protocol, _TOOLS)


def bundle_of(protocol: str | Path, tools: Sequence[dict[str, Any]]) -> Bundle:
    """Tools, compiled for bytes and what the protocol ends turns with."""
    from .grammar.protocol import load_protocol
    from .pipeline import compile_tools

    vocab = _vocab(load_protocol(protocol))
    return compile_tools(list(tools), vocab, options=Options(protocol=protocol, named=False)).bundle


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


def read_as(held: Bundle, marks: Sequence[str], text: str, expected: Calls) -> tuple[str, str] | None:
    """The entry and the part of a text that is read as these calls; None if there is none.

    An end of turn, and what stands behind it or behind the last mark, may be left out; so may blanks before a mark, and
    what stands before the first: in some templates, that belongs to the prompt.
    """
    from toolc.runtime import Reader

    from .vocab.load import WELL_KNOWN_ENDS

    names = {held.vocab.shown(token) for token in held.vocab.end_of_turn}.union(WELL_KNOWN_ENDS)
    whole = [text, *(text[: text.find(end) + more] for end in sorted(names) if end in text for more in (0, len(end)))]
    if any(mark in text for mark in marks):
        whole.append(text[: max(text.rfind(mark) + len(mark) for mark in marks if mark in text)])
        before_marks = re.compile(rf"\s+(?={'|'.join(map(re.escape, marks))})")
        whole += [before_marks.sub("", one) for one in whole]
    cuts = dict.fromkeys(one for cut in whole for one in (cut, cut.rstrip()))
    for cut in cuts:
        found = [cut.find(mark) for mark in marks if mark in cut]
        begins = {0, len(cut) - len(cut.lstrip()), *([min(found)] if found else [])}
        for entry in _ENTRIES if cut else ():
            for begin in sorted(begins) if entry in held.entry else ():
                reader = Reader(held, entry)
                try:
                    reader.feed_text(cut[begin:])
                    reader.finish()
                except DecodeError:
                    continue
                if reader.is_whole and [(call.name, call.arguments) for call in reader.calls] == expected:
                    return entry, cut[begin:]
    return None


def _example(held: Bundle, calls: Calls) -> str:
    """Calls as the protocol writes them; a text that no template writes where it cannot."""
    from toolc.runtime import Reader, write_calls

    written = write_calls(Reader(held, "required"), calls)
    return "\0" if written is None else written.text.decode()
