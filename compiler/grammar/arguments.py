"""How a protocol writes arguments: the second parameter of its template ``tool`` says it.

    arguments    one object: of JSON, or where the protocol defines ``quote``, of bare keys and strings between quotes
    parameters   each by the template ``parameter{key, value}`` or ``{key, value, type}``, and those that are strings
                 by ``text_parameter`` where there is one; KEEP_OUT lists what a raw value never contains. Where the
                 protocol defines ``item{value}`` too, arrays and objects are written part by part, by these and by
                 array_parameter, object_parameter, text_item, array_item, object_item where there are such
    keywords     Python's ``name=value``, comma between
    positional   values of JSON in the declared order, comma between
    request      the request line of an operation of an API

``TRUE``, ``FALSE`` and ``NULL`` list how these constants are spelled, in ``parameters`` as a whole parameter;
``AS_IT_IS`` lists the new line, in ``keywords`` whose strings may hold it without a backslash.
``READ_TRUE``, ``READ_FALSE`` and ``READ_NULL`` how they are read, too, where the masks allow JSON's spelling alone.

Leaves out   the texts themselves (../schema).
"""

from __future__ import annotations

import re
from dataclasses import replace

from toolc.runtime.format.meta import MOST_INDENT

from ..errors import GrammarError
from ..ir.nodes import Expr, Ref
from ..schema.channel import Channel, Slot
from ..schema.encoding import JSON_ENCODING, PYTHON, PYTHON_OF_LINES, Encoding, bare_encoding
from .argument_encoding import INNER, STRING_COPY, open_parts_of
from .cached_reader import read_protocol
from .protocol import STRING, Protocol

_INDENTED = re.compile(rf"\\n\(\?:( {{1,{MOST_INDENT}}})\)")
"""In the ``_w`` of a protocol: what its family indents by."""


def encoding_of(protocol: Protocol) -> Encoding:
    """How the values of a protocol's arguments are written.

    Raises:
        GrammarError: a spelling that is only read is not as long as JSON's, which stands for it in the tables.
    """
    for name, usual in (("READ_NULL", "null"), ("READ_TRUE", "true"), ("READ_FALSE", "false")):
        for text in protocol.strings(name):
            if len(text.encode()) != len(usual):
                raise GrammarError(
                    f"{name} of the protocol {protocol.name} cannot be read so",
                    place=f"{protocol.name}.lark",
                    found=repr(text),
                    expected=f"a spelling of {len(usual)} bytes, as {usual} has",
                )
    constants = protocol.strings("NULL"), protocol.strings("TRUE"), protocol.strings("FALSE")
    if protocol.arguments == "keywords":
        python = PYTHON_OF_LINES if "\n" in protocol.strings("AS_IT_IS") else PYTHON
        return replace(python.spelled(*constants), gaps=_gaps(protocol))
    if protocol.has("quote"):
        return bare_encoding(Ref("quote"), protocol.strings("KEEP_OUT")).spelled(*constants)
    json = replace(JSON_ENCODING, gaps=_gaps(protocol))
    if protocol.arguments in ("positional", "request"):
        return replace(json, indent="")  # a call is one line
    indented = _INDENTED.search(dict(protocol.gaps).get("_w", ""))
    return replace(json, indent=indented[1]) if indented else json


def _gaps(protocol: Protocol) -> tuple[tuple[str, Expr], ...]:
    """What stands between tokens where the family writes it in a way of its own."""
    return tuple([(name, read_protocol(f"{name}: {body}\n", protocol.name).body(name)) for name, body in protocol.gaps])


def channel_of(protocol: Protocol) -> Channel | None:
    """How the arguments stand beside each other; None: they are one object."""
    kind = protocol.arguments
    if kind == "arguments":
        return None
    if kind != "parameters":
        return Channel(kind, comma=Ref("_c"), closed=kind != "keywords")
    shape = protocol.rules.get("parameter")
    if shape not in (("key", "value"), ("key", "value", "type")):
        raise GrammarError(
            f"the protocol {protocol.name} does not define parameter",
            place=f"{protocol.name}.lark",
            expected="parameter{key, value}: one parameter of a call",
            hint="see docs/protocols.md",
        )
    slot = _slot(protocol, "parameter", shape)
    if len(shape) == 3 and slot.text == slot.other:
        slot = replace(slot, text=STRING_COPY)
    inner = item = None
    if protocol.has("item"):
        item = replace(_slot(protocol, "item", tuple(one for one in shape if one != "key")), keyed=False)
        inner = Slot(INNER + slot.other, INNER + slot.text, INNER + slot.array, INNER + slot.object)
    names = {None: "NULL", True: "TRUE", False: "FALSE"}
    bodies = [STRING.sub("", protocol.body(one)) for one in {slot.other, slot.text} - {STRING_COPY}]
    twice = any(len(re.findall(r"\bkey\b", body)) > 1 for body in bodies)
    return Channel(
        kind,
        slot,
        inner,
        item,
        open_parts_of(protocol),
        typed=len(shape) == 3,
        closed=twice,  # that two undeclared names are equal is not regular
        keep_out=protocol.strings("KEEP_OUT"),
        constants={value: protocol.strings(name) for value, name in names.items()},
        read={value: protocol.strings(f"READ_{name}") for value, name in names.items()},
    )


def _slot(protocol: Protocol, name: str, shape: tuple[str, ...]) -> Slot:
    """The templates of one part: those that the protocol defines, else that of any value."""
    found = {}
    for kind in ("text", "array", "object"):
        template = f"{kind}_{name}" if protocol.has(f"{kind}_{name}") else name
        found[kind] = template
        if protocol.rules[template] != shape:
            raise GrammarError(
                f"{template} of the protocol {protocol.name} takes other parameters than expected",
                place=f"{protocol.name}.lark",
                expected=f"{template}{{{', '.join(shape)}}}",
            )
    return Slot(name, found["text"], found["array"], found["object"])
