"""Describe channels: how the arguments of a call stand beside each other where they are not one object.

    parameters   each between marks of its own; a string as it is, any other value as JSON, or arrays and objects part
                 by part (elements.py)
    keywords     name=value, as in Python
    positional   values alone, in the declared order
    request      the request line of an API operation (request_rules.py)

Leaves out   writing the arguments (argument_rules.py), the marks around a parameter (../grammar).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ir.nodes import EMPTY, Expr
from .encoding import Quote
from .open_parts import Parts
from .request_rules import PERCENT, Request
from .spelling import RAW

KINDS = ("parameters", "keywords", "positional", "request")


@dataclass(frozen=True)
class Slot:
    """The templates of one part, a parameter or an item: of what kind of value is it?

    Attributes:
        other: of a value that is no string; text: of a string; array, object: where these are written part by part.
        keyed: whether they take a key.
    """

    other: str
    text: str
    array: str = ""
    object: str = ""
    keyed: bool = True

    def of(self, kind: str) -> str:
        """The template of a kind of value that is no string."""
        return {"array": self.array, "object": self.object}.get(kind) or self.other


@dataclass(frozen=True)
class Channel:
    """How arguments are written.

    Attributes:
        kind: one of KINDS.
        slot: the templates of a parameter. They take key and value, and perhaps type; where those of a string and of
            another value are the same, a text does not say what it is.
        inner: those of a member of an object that is written part by part; item: those of an item of an array.
        parts: how all of these begin and end, where what may be anything is written part by part, too (open_parts.py).
        typed: whether the templates take the name of the JSON type.
        comma: between two arguments.
        closed: whether only declared parameters may be written.
        keep_out: strings that a raw value never contains.
        request: of the operation, for ``request``.
        constants: how null, true and false are spelled, of a whole parameter; where there are none as in JSON.
        read: other spellings of these that are read, but not written.
    """

    kind: str
    slot: Slot = Slot("", "")
    inner: Slot | None = None
    item: Slot | None = None
    parts: Parts = ()
    typed: bool = False
    comma: Expr = EMPTY
    closed: bool = False
    keep_out: tuple[str, ...] = ()
    request: Request | None = None
    constants: Mapping[bool | None, tuple[str, ...]] = field(default_factory=dict)
    read: Mapping[bool | None, tuple[str, ...]] = field(default_factory=dict)

    @property
    def raw(self) -> Quote:
        """How a string is written as it is."""
        return PERCENT if self.kind == "request" else Quote(EMPTY, RAW, self.keep_out)

    def says_kind(self, slot: Slot) -> bool:
        """Whether a text says what kind of value a part is."""
        return self.typed or slot.text != slot.other

    def spellings(self, value: bool | None) -> tuple[str, ...]:
        """How null, true or false may be written as a whole parameter."""
        return self.constants.get(value) or ({None: "null", True: "true", False: "false"}[value],)
