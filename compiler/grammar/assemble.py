"""One Lark text for a spec: the rules of every arguments schema, and a call around them.

The one shape of a call is ``{"name": …, "arguments": {…}}``, the name first.

Leaves out   the rules of schemas (../schema), reading Lark text (reader.py).
Invariants   names of rules made here start with an underscore, which no rule of a schema does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..budget import Budget
from ..errors import ToolcError
from ..schema import LarkWriter, SchemaOptions
from ..specs import Spec, ToolSpec
from ..specs.model import quote


@dataclass(frozen=True)
class Assembled:
    """A grammar as text, and what became of the schemas in it.

    Attributes:
        text: Lark text, for reader.py and for people.
        places: rule → where in the spec it comes from.
        restrictions: names of the declared restrictions that hold in it, sorted.
        keywords: (place, keyword, status) for every keyword of every schema.
    """

    text: str
    places: dict[str, str] = field(default_factory=dict)
    restrictions: tuple[str, ...] = ()
    keywords: tuple[tuple[str, str, str], ...] = ()


def assemble(spec: Spec, options: SchemaOptions, budget: Budget | None = None) -> Assembled:
    """The grammar of a spec: of a call of one of its tools, or of the one value of a bare schema."""
    writer = LarkWriter(options, budget)
    gap = "_w " if writer.gap else ""
    if spec.kind == "schema":
        with _places_in(spec):
            rule = writer.add(spec.schema, base=spec.name)
        head = f"start: {gap}{rule} {gap}".rstrip() + "\n"
    else:
        alternatives = [f"{literal(quoted(tool.name))} _args {_arguments(writer, spec, tool)}" for tool in spec.tools]
        head = (
            f"start: {gap}_call {gap}".rstrip()
            + f'\n_call: "{{" {gap}{literal(quoted("name"))} _k _tool {gap}"}}"\n'
            + "_tool: "
            + "\n     | ".join(alternatives)
            + f"\n_args: _c {literal(quoted('arguments'))} _k\n"
        )
    restrictions = set(writer.restrictions)
    if options.whitespace != "flexible":
        restrictions.add("blanks")
    return Assembled(head + writer.text(), dict(writer.places), tuple(sorted(restrictions)), tuple(writer.keywords))


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


def quoted(text: str) -> str:
    """A name as JSON spells it; names hold nothing that needs an escape."""
    return f'"{text}"'


def literal(text: str) -> str:
    """A Lark string."""
    return quote(text, limit=len(text) * 2 + 2)


def keyword_counts(keywords: tuple[tuple[str, str, str], ...]) -> list[list[Any]]:
    """[keyword, status, how often], sorted: what a bundle stores."""
    counts: dict[tuple[str, str], int] = {}
    for _, keyword, status in keywords:
        counts[keyword, status] = counts.get((keyword, status), 0) + 1
    return [[keyword, status, count] for (keyword, status), count in sorted(counts.items())]
