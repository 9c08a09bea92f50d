"""One Lark text for a spec: the rules of every arguments schema, and a protocol around them.

Leaves out   the rules of schemas (../schema), protocols (protocol.py), reading Lark text (reader.py).
Invariants   names of rules made here start with an underscore, which no rule of a schema does; the text is whole: it
             imports nothing of toolc's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..budget import Budget
from ..errors import ToolcError
from ..schema import LarkWriter, SchemaOptions
from ..schema.report import Row
from ..specs import Spec, ToolSpec
from ..specs.model import quote
from .protocol import Protocol, entries_of


@dataclass(frozen=True)
class Assembled:
    """A grammar as text, and what became of the schemas in it.

    Attributes:
        text: Lark text, for reader.py and for people.
        places: rule → where in the spec it comes from.
        restrictions: names of the declared restrictions that hold in it, sorted.
        keywords: (place, keyword, status) for every keyword of every schema.
        report: the same, with the declared restrictions that narrow each (schema/report.py).
        entries: where a text may begin, name → rule.
        protocol: name of the protocol; empty for a bare schema or grammar.
    """

    text: str
    places: dict[str, str] = field(default_factory=dict)
    restrictions: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str, str], ...] = ()
    report: tuple[Row, ...] = ()
    entries: dict[str, str] = field(default_factory=dict)
    protocol: str = ""


def assemble(
    spec: Spec,
    options: SchemaOptions,
    budget: Budget | None = None,
    protocol: Protocol | None = None,
    named: bool = True,
) -> Assembled:
    """The grammar of a spec: of calls of its tools, or of the one value of a bare schema.

    Args:
        spec: the tools, or the schema.
        options: how values are laid out.
        budget: limits of the schema stage.
        protocol: how calls are written; needed for tools.
        named: whether each tool gets an entry of its own.
    """
    writer = LarkWriter(options, budget)
    entries: dict[str, str] = {}
    if spec.kind == "schema":
        gap = "_w " if writer.gap else ""
        with _places_in(spec):
            rule = writer.add(spec.schema, base=spec.name)
        head = f"start: {gap}{rule} {gap}".rstrip() + "\n"
    else:
        assert protocol is not None
        writer.reserve(protocol.names)
        rule_of = {tool.name: _arguments(writer, spec, tool) for tool in spec.tools}
        head, entries = _around(protocol, rule_of, list(rule_of) if named else [])
        if not writer.gap:
            head += "_w:\n"
    restrictions = set(writer.restrictions)
    if options.whitespace != "flexible":
        restrictions.add("blanks")
    return Assembled(
        head + writer.text(),
        dict(writer.places),
        tuple(sorted(restrictions)),
        tuple(writer.keywords),
        writer.report(),
        entries,
        protocol.name if entries and protocol is not None else "",
    )


def _around(protocol: Protocol, rule_of: dict[str, str], named: list[str]) -> tuple[str, dict[str, str]]:
    """The protocol, its entries and one alternative for every tool: Lark text, and entry → rule."""
    templates: dict[str, str] = {}

    def alternatives(template: str, tool: str | None) -> str:
        if tool is not None:
            return f"{template}{{{literal(tool)}, {rule_of[tool]}}}"
        return templates.setdefault(template, "_tools" + template[4:])

    entries, rules = entries_of(protocol, named, alternatives)
    for template, rule in templates.items():
        rules[rule] = "\n    | ".join(f"{template}{{{literal(tool)}, {name}}}" for tool, name in rule_of.items())
    return protocol.text + "".join(f"{rule}: {body}\n" for rule, body in rules.items()), entries


def _arguments(writer: LarkWriter, spec: Spec, tool: ToolSpec) -> str:
    """The rule of a tool's arguments."""
    with _places_in(spec, tool):
        if tool.document is tool.schema:
            return writer.add(tool.schema, pointer=tool.pointer, base=spec.name, name=tool.name)
        return writer.add(tool.schema, document=tool.document, pointer=tool.pointer, base=spec.name, name=tool.name)


@contextmanager
def _places_in(spec: Spec, tool: ToolSpec | None = None) -> Iterator[None]:
    """Errors name the place in the spec, also where the arguments schema was put together from pieces."""
    try:
        yield
    except ToolcError as error:
        place = error.place or "#"
        if place.startswith("#"):  # the schema that allows nothing is one and the same everywhere
            place = f"{spec.name}#{tool.pointer if tool else ''}{place[1:]}"
        if tool is not None and place.startswith(head := f"{spec.name}#{tool.pointer}/"):
            place = f"{spec.name}#{tool.place(place[len(head) - 1 :])}"
        error.place = place
        raise


def literal(text: str) -> str:
    """A Lark string."""
    return quote(text, limit=len(text) * 2 + 2)


def keyword_counts(keywords: tuple[tuple[str, str, str], ...]) -> list[list[Any]]:
    """[keyword, status, how often], sorted: what a bundle stores."""
    counts: dict[tuple[str, str], int] = {}
    for _, keyword, status in keywords:
        counts[keyword, status] = counts.get((keyword, status), 0) + 1
    return [[keyword, status, count] for (keyword, status), count in sorted(counts.items())]
