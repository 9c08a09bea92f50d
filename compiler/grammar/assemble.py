"""Put one grammar together for a spec: the rules of every arguments schema, and a protocol around them.

Leaves out   the rules of schemas (../schema), protocols (protocol.py), reading the whole (cached_reader.py).
Invariants   names of rules made here start with an underscore, which no rule of a schema does; its text is whole: it
             imports nothing of toolc's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from toolc.runtime.serving.requests import STRUCTURAL_TAG

from ..budget import Budget
from ..errors import BudgetError, RefusedTools, SpecError, ToolcError, UnsatisfiableError, UnsupportedError
from ..ir.nodes import EMPTY, Expr, Mark, Ref, Text, Use, choice, string
from ..ir.printer import rules_text, terminals_text
from ..progress import tell
from ..regex import Regex, concat
from ..schema import LarkWriter, SchemaOptions
from ..schema.cached_rules import Piece, piece_of
from ..schema.channel import Channel
from ..schema.common import Common
from ..schema.encoding import JSON_ENCODING, Encoding
from ..schema.keywords import ARRAYS, UNIONS
from ..schema.parameters import elements_of, parameters_of
from ..schema.references import Document
from ..schema.report import Row, Told, at, keyword_report, told
from ..schema.request_rules import Request
from ..schema.rules import Gaps, rule_name
from ..schema.unwritable import Unwritable
from ..schema.writer import common_of
from ..specs import Spec, ToolSpec
from ..specs.model import quote
from .argument_encoding import arguments_of, marked
from .arguments import channel_of, encoding_of
from .cached_reader import renamed_places, renamed_text
from .embedded import Embedded, lark_grammar, regex_of
from .protocol import Protocol, entries_of, shared_templates
from .specials import text_regex, without
from .structural_tag import StructuralTag, is_structural_tag

_RESPONSE_GAPS = Gaps("_response_w", "_response_c", "_response_k")
Homes: TypeAlias = dict[tuple[int, str], Document]
"""What was looked through for references: by the identity of its root, and its file."""
Known: TypeAlias = dict[str, Piece]
"""Tool → what its arguments were written to, of tools whose references stay in their own schema."""


@dataclass(frozen=True)
class Assembled:
    """A grammar, and what became of the schemas in it.

    Attributes:
        lark: Lark text that people wrote: the protocol, or a grammar.
        rules: all others but those of ``apart``.
        terminals: of these rules, by name.
        apart: rule that these refer to → the piece whose root it is, and where its places begin.
        places: of these rules → where in the spec it comes from.
        restrictions: names of the declared restrictions that hold in it, sorted.
        many_keys: places of objects with too many keys for any order, which stand in declared order.
        told: where places begin, and what became of the keywords of a schema there (schema/report.py).
        entries: where a text may begin, name → rule.
        protocol: name of the protocol; empty for a bare schema or grammar.
        marks: rule → what its text is, for reading calls back.
        arguments: how arguments are written, as the bundle stores it: see argument_encoding.py.
        parameters: tool → [name, types] of each parameter, where arguments are no object of JSON.
        elements: tool → the types of every part (schema/parameters.py), where arrays and objects are written in parts.
        common: rules that no schema changes: any array and any object.
        lost: what no text can have of the schemas.
        turn_ends: tokens with which models of the protocol end a turn.
        begins: the entry, without reasoning, that "start" is; empty without a protocol.
        call_marks: delimiters of calls that are tokens of the protocol's models.
        free: whether it holds a grammar that people wrote, and has no marks that would be needed to read it back.
        texts: custom tools whose input is written as it is.
        answer: what the response is, where it is no value of JSON: a structural tag.
        heads: where pieces of arguments stand in the schema put together from them → where they stand in the spec.
        folders: where what a grammar imports is looked for first.
    """

    lark: str
    rules: dict[str, Expr] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    restrictions: tuple[str, ...] = ()
    many_keys: tuple[str, ...] = ()
    told: tuple[tuple[str, Told], ...] = ()
    entries: dict[str, str] = field(default_factory=dict)
    protocol: str = ""
    marks: dict[str, Mark] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=lambda: {"encoding": "json"})
    parameters: dict[str, list[list[object]]] = field(default_factory=dict)
    elements: dict[str, list[list[object]]] = field(default_factory=dict)
    common: tuple[str, ...] = ()
    apart: dict[str, tuple[Piece, str]] = field(default_factory=dict)
    lost: tuple[Unwritable, ...] = ()
    turn_ends: tuple[str, ...] = ()
    begins: str = ""
    terminals: dict[str, Regex] = field(default_factory=dict)
    call_marks: tuple[str, ...] = ()
    free: bool = False
    answer: str = ""
    texts: frozenset[str] = frozenset()
    heads: dict[str, str] = field(default_factory=dict)
    folders: tuple[str | Path, ...] = ()

    def real(self, place: str) -> str:
        """Where in the spec something stands that the report places in arguments put together from pieces."""
        end = len(place)
        while end > 0 and self.heads:
            if place[:end] in self.heads:
                return self.heads[place[:end]] + place[end:]
            end = place.rfind("/", 0, end)
        return place

    @cached_property
    def text(self) -> str:
        """The whole as Lark text, for people."""
        pieces = "".join(renamed_text(piece, root) for root, (piece, _) in self.apart.items())
        return self.lark + rules_text(self.rules) + terminals_text(self.terminals) + pieces

    @property
    def every_place(self) -> dict[str, str]:
        """Rule of the text → where in the spec it comes from."""
        found = [renamed_places(piece, root, origin) for root, (piece, origin) in self.apart.items()]
        return {rule: place for places in (self.places, *found) for rule, place in places.items()}


def assemble(
    spec: Spec,
    options: SchemaOptions,
    budget: Budget | None = None,
    protocol: Protocol | None = None,
    named: bool = True,
    response: dict[str, Any] | bool | None = None,
    known: Known | None = None,
    as_lark: Callable[[str, str, str], str] = lambda text, syntax, name: text,
) -> Assembled:
    """The grammar of a spec: of calls of its tools, of a structured response, or of the one value of a bare schema.

    Args:
        spec: the tools, or the schema.
        options: how values are laid out.
        budget: limits of the schema stage.
        protocol: how calls and responses are written; needed for tools.
        named: whether each tool gets an entry of its own.
        response: schema of a structured response, which gets entries of its own; None for none.
        known: what was written of the same tools before; grows.
        as_lark: (a grammar, what it is written in, how errors call it) → its Lark text.

    Raises:
        RefusedTools: some tools cannot be compiled.
    """
    refused: dict[int, ToolcError] = {}
    encoding = JSON_ENCODING if protocol is None else encoding_of(protocol)
    around = None if protocol is None else channel_of(protocol)
    common = None
    if protocol is not None and around is None and encoding.name == JSON_ENCODING.name and not protocol.ignores:
        common = common_of(options, encoding, frozenset(protocol.names))
    writer = LarkWriter(options, budget, encoding, common)
    entries: dict[str, str] = {}
    marks: dict[str, Mark] = {}
    how: dict[str, Any] = {"encoding": "json"}
    parameters: dict[str, list[list[object]]] = {}
    elements: dict[str, list[list[object]]] = {}
    pieces: list[tuple[str, Piece, str]] = []
    answering = writer  # writes the response
    begins = ""
    tag: StructuralTag | None = None
    custom: Embedded | None = None
    if protocol is None:
        with _places_in(spec):
            if is_structural_tag(spec.schema):
                tag = StructuralTag(spec.schema, spec.name, spec.schema_pointer, writer, options, budget, as_lark)
                rules: dict[str, Expr] = {"start": Ref(tag.root_rule)}
                marks = {tag.root_rule: Mark("text")}
            else:
                rule = writer.add(spec.schema, base=spec.name, pointer=spec.schema_pointer)
                rules = {"start": Ref(rule)}
    else:
        spec = _with_answer(spec, protocol, response is not None or spec.schema is not None, options, refused, budget)
        writer.reserve(protocol.names)
        how = arguments_of(protocol)
        if writer.line is not None:
            how["indent"] = len(writer.line.indent)
        custom, rule_of = _custom_tools(spec, protocol, refused, budget)
        homes: Homes = {}
        if common is not None:
            taken = {"start", *protocol.names, *common.rules}
            known = {} if known is None else known
            pieces = _pieces(spec, options, budget, encoding, common, taken, refused, known, rule_of)
            writer.reserve(rule for rule, _, _ in pieces)
        for number, tool in enumerate(spec.tools):
            if tool.name in rule_of or (common is not None and not _refers_out(tool)):
                continue
            tell("schema", number + 1, len(spec.tools), tool.name)
            with _refusing(refused, number, budget):
                closed = _is_closed(tool, options)
                channel = around and replace(around, closed=around.closed or closed)
                rule_of[tool.name] = _arguments(writer, spec, tool, channel, homes, closed)
                if channel is not None and channel.kind != "keywords":
                    parameters[tool.name] = parameters_of(writer.normaliser, writer.root, channel.closed)
                if how["encoding"] == "elements":
                    assert channel is not None
                    said = channel.says_kind(channel.slot)
                    elements[tool.name] = elements_of(writer.normaliser, writer.root, channel.closed, said)
        if refused:
            raise RefusedTools(refused)
        rule_of = {tool.name: rule_of[tool.name] for tool in spec.tools}
        answer = ""
        if response is not None or spec.schema is not None:
            if encoding.name != JSON_ENCODING.name:  # arguments are written otherwise, responses are JSON everywhere
                answering = LarkWriter(options, budget, gaps=_RESPONSE_GAPS)
                answering.reserve([*protocol.names, *writer.definitions[0], *writer.terminals])
            wanted, base = (spec.schema, spec.name) if response is None else (response, "response")
            pointer = spec.schema_pointer if response is None else ""
            with _places_in(spec) if response is None else nullcontext():
                if is_structural_tag(wanted):
                    tag = StructuralTag(wanted, base, pointer, answering, options, budget, as_lark)
                    answer = tag.root_rule
                else:
                    answer = answering.add(wanted, base=base, pointer=pointer, name="response")
        action = next((name for name in rule_of if name in protocol.strings("RESERVED")), "")
        every = [name for name in rule_of if named or name == action or spec.begins == f"tool:{name}"]
        with _places_in(spec):
            texts = {tool.name for tool in spec.tools if writes_text(tool, protocol)}
            how_around = every, answer, spec.begins, tag is not None, action
            rules, entries, marks, begins = _around(protocol, rule_of, texts, *how_around)
        if not writer.gap:
            rules["_w"] = EMPTY
    apart = {rule: (piece, origin) for rule, piece, origin in pieces if piece.root in piece.rules}
    others = [] if answering is writer else [answering]
    others += [] if tag is None else tag.writers
    restrictions = writer.restrictions.union(*(piece.restrictions for _, piece, _ in pieces))
    many_keys = [at(origin, place) for _, piece, origin in pieces for place in piece.many_keys]
    many_keys += writer.many_keys
    report, narrowed = writer.met
    for other in others:
        restrictions |= other.restrictions
        many_keys += other.many_keys
        report, narrowed = report + other.met[0], narrowed | other.met[1]
    all_told = _all_told(pieces, restrictions, keyword_report(report, narrowed, restrictions), tuple(report))
    if answering.encoding.blanks:
        restrictions.add("blanks")
    rules |= writer.gap_rules()
    terminals = writer.gap_terminals() | writer.terminals
    lost = [one._replace(place=at(origin, one.place)) for _, piece, origin in pieces for one in piece.lost]
    lost += writer.lost()
    writer.normaliser.close()
    for other in others:
        lost += other.lost()
        other.normaliser.close()
    if answering is not writer:
        terminals |= answering.gap_terminals() | answering.terminals
    if common is not None:
        shared, terminals = _with_common(common, pieces, terminals)
        rules |= shared
    rules |= writer.definitions[0]
    if answering is not writer:
        rules |= answering.gap_rules() | answering.definitions[0]
    places = writer.places | answering.places
    lark = "" if protocol is None else marked(protocol)
    for embedded in ([] if tag is None else [tag.embedded]) + ([] if custom is None else [custom]):
        rules |= embedded.rules
        terminals |= embedded.terminals
        places |= embedded.places
        lark += embedded.needs(set(re.findall(r"(?m)^(?:%declare )?(_?\w+)", lark)))
    if writer.line or answering.line or any(other.line for other in others):
        lark += shared_templates({"_indented"}, ())
    return Assembled(
        lark=lark,
        rules=rules,
        places=places,
        restrictions=tuple(sorted(restrictions)),
        many_keys=tuple(dict.fromkeys(many_keys)),
        told=all_told,
        entries=entries,
        protocol=protocol.name if entries and protocol is not None else "",
        marks=marks,
        arguments=how,
        parameters=parameters,
        elements=elements,
        common=tuple(dict.fromkeys([*(name for _, piece, _ in pieces for name in piece.any), *writer.common])),
        apart=apart,
        lost=tuple(dict.fromkeys(lost)),
        turn_ends=protocol.turn_ends if entries and protocol is not None else (),
        begins=begins,
        terminals=terminals,
        call_marks=protocol.marks if spec.tools and protocol is not None else (),
        free=tag is not None and tag.free and protocol is None,
        answer="" if tag is None else STRUCTURAL_TAG,
        texts=frozenset()
        if protocol is None
        else frozenset(tool.name for tool in spec.tools if writes_text(tool, protocol)),
        heads=_heads(spec),
    )


def _heads(spec: Spec) -> dict[str, str]:
    """See `Assembled.heads`."""
    found: dict[str, str] = {}
    for tool in spec.tools:
        name = _name_of(spec, tool)
        found |= {f"{name}#{tool.pointer}{at}": f"{name}#{home}" for at, home in tool.places.items()}
    return found


def _pieces(
    spec: Spec, options: SchemaOptions, budget: Budget | None, encoding: Encoding, common: Common, taken: set[str],
    refused: dict[int, ToolcError], known: Known, rule_of: dict[str, str],
) -> list[tuple[str, Piece, str]]:  # fmt: skip
    """The arguments of every tool whose references stay in its own schema: what the piece's root is called in the
    whole, the piece, where its places begin.

    Tools that refer into one document are left to one writer, which works out once what they share.

    Args:
        taken: names that are in use.
        refused: receives the errors of tools, by their numbers.
        known: pieces of tools that were written before.
        rule_of: tool → rule, of tools whose rules are there; grows.
    """
    found = []
    taken |= {name.lower().partition("__")[0] for name in taken}  # names inside of a piece begin with that of its root
    origins = [f"{_name_of(spec, tool)}#{tool.pointer}" for tool in spec.tools]
    if options.ruled_out:  # places in pieces begin with #, and equal pieces are one, whose places are those of a tool
        inside = {f"#{place[len(one) :]}" for place in options.ruled_out for one in origins if place.startswith(one)}
        options = replace(options, ruled_out=frozenset(inside | ({ARRAYS, UNIONS} & options.ruled_out)))
    for number, (tool, origin) in enumerate(zip(spec.tools, origins, strict=True)):
        if tool.name in rule_of or _refers_out(tool):
            continue
        if tool.name not in known:
            tell("schema", number + 1, len(spec.tools), tool.name)
        closed = _is_closed(tool, options)
        with _refusing(refused, number, budget), _places_in(spec, tool):
            if tool.name not in known:
                known[tool.name] = piece_of(tool.schema, options, encoding, common, tool.name, budget, closed)
            piece = known[tool.name]
        if refused:
            continue  # the others are only looked at for further errors
        root = piece.root
        if root in piece.rules:
            stem = root = rule_name(tool.name)
            number = 1
            while root in taken:
                number += 1
                root = f"{stem}_{number}"
            taken.add(root)
        rule_of[tool.name] = root
        found.append((root, piece, origin))
    return found


def _refers_out(tool: ToolSpec) -> bool:
    """Whether the references of a tool's arguments lead into a document around their schema."""
    return tool.document is not None and tool.document is not tool.schema


def writes_text(tool: ToolSpec, protocol: Protocol) -> bool:
    """Whether a protocol writes the input of a custom tool as it is, and not as a string of an object."""
    return tool.custom is not None and protocol.has(text_template("tool"))


def text_template(template: str) -> str:
    """The template of a call whose arguments are a text, beside one whose arguments are values."""
    return f"text_{template}"


def _custom_tools(
    spec: Spec, protocol: Protocol, refused: dict[int, ToolcError], budget: Budget | None
) -> tuple[Embedded, dict[str, str]]:
    """The inputs of custom tools that are written as they are: their rules, and tool → rule.

    Where a protocol has no place for a text, the input is a string, of which no Lark grammar says what it is.
    """
    embedded, rule_of = Embedded("_custom"), dict[str, str]()
    kept_out = Text(protocol.strings("STOP"))
    for number, tool in enumerate(spec.tools):
        if tool.custom is None:
            continue
        place = f"{_name_of(spec, tool)}#{tool.custom.pointer}"
        with _refusing(refused, number, budget):
            regex = regex_of(tool.custom.definition, place, "ecma") if tool.custom.syntax == "regex" else None
            if not writes_text(tool, protocol):
                if tool.custom.syntax == "lark":
                    raise UnsupportedError(
                        f"the protocol {protocol.name} writes the input of a custom tool as a string, which follows no "
                        "Lark grammar",
                        place=place,
                        hint="write a regex, or compile for a protocol whose calls have a place for text: harmony",
                    )
                continue
            if tool.custom.syntax == "lark":
                found = lark_grammar(tool.custom.definition, place, budget or Budget(seconds=None))
                body: Expr = embedded.grammar(found, place)
            elif regex is not None:
                body = embedded.terminal(concat(without(kept_out), regex))
            else:
                body = embedded.terminal(text_regex(kept_out))
            rule_of[tool.name] = rule = f"_input_{number}"
            embedded.rules[rule], embedded.places[rule] = body, place
    return embedded, rule_of


def _with_answer(
    spec: Spec, protocol: Protocol, responds: bool, options: SchemaOptions, refused: dict[int, ToolcError],
    budget: Budget | None,
) -> Spec:  # fmt: skip
    """The spec in which a tool with the name of the protocol's own action is this action: arguments meet both schemas.

    Args:
        responds: whether the text of a response is that action already.
        refused: receives the errors of tools that cannot be it, by their numbers.
    """
    reserved = protocol.strings("RESERVED")
    if not any(tool.name in reserved for tool in spec.tools):
        return spec
    answers = [json.loads(text) for text in protocol.strings("ANSWER")]
    tools = list(spec.tools)
    for number, tool in enumerate(tools):
        if tool.name not in reserved:
            continue
        with _refusing(refused, number, budget):
            other = SpecError(
                f"the protocol {protocol.name} has an action of its own that is called {quote(tool.name)}",
                place=f"{_name_of(spec, tool)}#{tool.pointer}",
                found="a tool of this name, which is not that action",
                expected="another name",
                hint="leave the tool out, as the response is that action"
                if responds
                else "rename the tool, or choose another protocol",
            )
            if responds or not answers or tool.custom is not None or not isinstance(tool.schema, dict):
                raise other
            parts = tool.schema.get("allOf", [])
            if not isinstance(parts, list):
                continue  # refused with its place when it is written
            schema = {**tool.schema, "allOf": [*parts, {"anyOf": answers}]}
            document = schema if tool.document is tool.schema else tool.document
            merged = replace(tool, schema=schema, document=document)
            try:
                home = _home(spec, merged, {})
                LarkWriter(options, budget).add(schema, document=home, pointer=tool.pointer, arguments=True)
            except UnsatisfiableError:
                raise other from None
            tools[number] = merged
    return replace(spec, tools=tuple(tools))


def _with_common(
    common: Common, pieces: list[tuple[str, Piece, str]], terminals: dict[str, Regex]
) -> tuple[dict[str, Expr], dict[str, Regex]]:
    """Rules that pieces have in common, in the order of first use; their terminals, then others."""
    needed = dict.fromkeys(name for _, piece, _ in pieces for name in piece.order if name in common.rules)
    regexes = {name: regex for _, piece, _ in pieces for name, regex in piece.terminals.items()}
    shared = {name: regex for name, regex in regexes.items() if common.terminals.get(regex) == name}
    return {name: common.rules[name] for name in needed}, shared | terminals


def _all_told(
    pieces: list[tuple[str, Piece, str]], restrictions: set[str], rows: tuple[Row, ...],
    keywords: tuple[tuple[str, str, str], ...],
) -> tuple[tuple[str, Told], ...]:  # fmt: skip
    """The report of all pieces, and after them of what stands in the frame."""
    used = frozenset(restrictions)
    if not rows and all(origin for _, _, origin in pieces):  # no two speak of one place
        return tuple([(origin, piece.told(used)) for _, piece, origin in pieces])
    said: dict[tuple[str, str], Row] = {}
    met: list[tuple[str, str, str]] = []
    for _, piece, origin in pieces:
        for inner, keyword, status, names in piece.rows(used):
            place = at(origin, inner)
            if (place, keyword) not in said or status == "dropped":
                said[place, keyword] = place, keyword, status, names
        met += [(at(origin, place), keyword, status) for place, keyword, status in piece.keywords]
    for row in rows:
        said.setdefault(row[:2], row)
    return (("", told(said.values(), [*met, *keywords])),)


def _around(
    protocol: Protocol,
    rule_of: dict[str, str],
    texts: set[str],
    named: list[str],
    answer: str,
    begins: str,
    whole: bool,
    action: str,
) -> tuple[dict[str, Expr], dict[str, str], dict[str, Mark], str]:
    """The entries of a protocol and one alternative for every tool: rules, entry → rule, marks, what begins.

    Args:
        texts: the tools whose arguments are a text.
        answer: the rule of the response; empty for none.
        whole: whether it says the whole text, with what a protocol would write around a response.
        action: the tool that is the protocol's own action; empty for none.
    """
    number_of = {tool: number for number, tool in enumerate(rule_of)}
    tool_of = list(rule_of)
    templates: dict[str, str] = {}
    used: dict[tuple[str, int], None] = {}

    def alternatives(template: str, tool: str | None) -> str:
        if tool is not None:
            used.setdefault((template, number_of[tool]))
            return _alternative(template, number_of[tool])
        return templates.setdefault(template, "_tools" + template[4:])

    entries, rules, begins = entries_of(
        protocol, named, alternatives if rule_of else None, "_the_response" if answer else "", begins, whole, action
    )
    for template, rule in templates.items():
        used.update(dict.fromkeys((template, number) for number in number_of.values()))
        rules[rule] = choice(*[Ref(_alternative(template, number)) for number in number_of.values()])
    marks = {rule: Mark("reasoning") for rule in ("think", "thought") if protocol.has(rule)}
    if answer:
        rules["_the_response"], marks["_the_response"] = Ref(answer), Mark("text")
    for template, number in used:
        rule = _alternative(template, number)
        again = (string(tool_of[number]),) if "again" in protocol.rules[template] else ()
        how = text_template(template) if tool_of[number] in texts else template
        rules[rule] = Use(how, (Ref(f"_name_{number}"), Ref(f"_arguments_{number}"), *again))
        marks[rule] = Mark("tool", number)
    for tool, number in number_of.items():
        rules[f"_name_{number}"], marks[f"_name_{number}"] = string(tool), Mark("name")
        rules[f"_arguments_{number}"], marks[f"_arguments_{number}"] = Ref(rule_of[tool]), Mark("arguments")
    return rules, entries, marks, begins


def _alternative(template: str, number: int) -> str:
    """The rule of a tool's call as a template of the protocol writes it."""
    return f"_{template}_{number}"


def _is_closed(tool: ToolSpec, options: SchemaOptions) -> bool:
    """Whether a tool takes no arguments but those that its schema names."""
    return options.closed and tool.strict is not False


def _arguments(
    writer: LarkWriter, spec: Spec, tool: ToolSpec, channel: Channel | None, homes: Homes, closed: bool
) -> str:
    """The rule of a tool's arguments."""
    with _places_in(spec, tool):
        base, home = _name_of(spec, tool), _home(spec, tool, homes)
        if channel is None:
            return writer.add(
                tool.schema,
                document=home,
                pointer=tool.pointer,
                base=base,
                name=tool.name,
                arguments=True,
                closed=closed,
            )
        if tool.request is not None:
            channel = replace(channel, request=Request(*tool.request))
        return writer.add_arguments(
            tool.schema, channel, document=home, pointer=tool.pointer, base=base, name=tool.name
        )


def _home(spec: Spec, tool: ToolSpec, homes: Homes) -> Document | None:
    """What holds the references of a tool's arguments; None where that is their own schema.

    Args:
        homes: those of the tools before: operations of one document share it, so that it is looked through once.
    """
    if not _refers_out(tool):
        return None
    key = id(tool.document), _name_of(spec, tool)
    if key not in homes:
        homes[key] = Document.of(tool.document, key[1])
    return homes[key]


def _name_of(spec: Spec, tool: ToolSpec | None) -> str:
    """How errors call the document of a tool: its own, where the spec was joined of several."""
    return spec.name if tool is None else tool.file or spec.name


@contextmanager
def _refusing(refused: dict[int, ToolcError], number: int, budget: Budget | None) -> Iterator[None]:
    """An error inside is one of the tool of this number, and goes to ``refused``.

    That the time is over is no error of a tool; it ends the search for further ones.
    """
    try:
        yield
    except ToolcError as error:
        if isinstance(error, BudgetError) and budget is not None and budget.is_late:
            if refused:
                raise RefusedTools(refused) from None
            raise
        refused[number] = error


@contextmanager
def _places_in(spec: Spec, tool: ToolSpec | None = None) -> Iterator[None]:
    """Errors name the place in the spec, also where the arguments schema was put together from pieces."""
    name = _name_of(spec, tool)
    try:
        yield
    except ToolcError as error:
        place = error.place or "#"
        if place.startswith("#"):  # the schema that allows nothing is one and the same everywhere
            place = f"{name}#{tool.pointer if tool else ''}{place[1:]}"
        where = f"{name}#{tool.pointer if tool else ''}/"
        if error.found is not None and " at #/" in error.found:
            error.found = error.found.replace(" at #/", f" at {where}")
        if tool is not None and place.startswith(head := f"{name}#{tool.pointer}/"):
            place = f"{name}#{tool.place(place[len(head) - 1 :])}"
            homes = sorted(tool.places.items(), key=lambda item: -len(item[0]))
            for at, home in homes:
                error.found = error.found and error.found.replace(f"{name}#{tool.pointer}{at}/", f"{name}#{home}/")
        error.place = place
        raise
