"""What is read of a text: calls of tools, the events that tell of them while it streams, and what is settled of one.

Leaves out   reading (reader.py), writing (writer.py), values of arguments (arguments.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .branches import branches_of

if TYPE_CHECKING:
    from .typed import Declared


@dataclass(frozen=True)
class Call:
    """One call of a tool.

    Attributes:
        name: of the tool.
        arguments: its arguments.
        text: the text of the arguments.
        span: bytes [begin, end) of the whole text, from the name to the end of the arguments; see `Reader.tokens_of`.
            Empty where there is no text around the call.
        mode: how the arguments are written (`meta["arguments"]["encoding"]`).
        id: of the call, where an endpoint gave it one.
        declared: the function or class of the tool, where the bundle was compiled from it in this process.
        custom: whether the tool is a custom one, whose only argument is the text ``input``.
        unions: what discriminators say of its arguments, as the bundle has it: see branches.py.
    """

    name: str
    arguments: Mapping[str, Any]
    text: str = ""
    span: tuple[int, int] = (0, 0)
    mode: str = "json"
    id: str = ""
    declared: Any = field(default=None, repr=False, compare=False)
    custom: bool = False
    unions: Sequence[Mapping[str, Any]] = field(default=(), repr=False, compare=False)

    @property
    def branches(self) -> dict[str, str]:
        """JSON pointer of a value in the arguments → the branch of its union that the discriminator names."""
        return branches_of(self.unions, self.arguments) if self.unions else {}

    @property
    def input(self) -> str | None:
        """The text of a call of a custom tool; None of others."""
        return str(self.arguments["input"]) if self.custom else None

    def typed(self, declared: Declared | None = None) -> Any:
        """The arguments as the types that a function declares: a dict of them, or an object of a class, as a model.

        Args:
            declared: the function or class; by default the one that the tool was made of.

        Raises:
            DecodeError: there is none, or a value is none of its type.
        """
        from .typed import typed

        return typed(self, declared)

    @property
    def json(self) -> str:
        """The arguments as JSON, as they were written where that is JSON."""
        if self.text and self.mode == "json":
            return self.text
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Event:
    """Something that was settled.

    Attributes:
        kind: "text" or "reasoning": ``text`` is said or thought next. "call": a call begins. "name": its tool is
            settled. "arguments": ``text`` of the arguments follows. "end": the call is whole.
        text: see kind; the name, for "name".
        number: of the call, from 0; -1 where there is none.
        call: the call, for "end".
    """

    kind: Literal["text", "reasoning", "call", "name", "arguments", "end"]
    text: str = ""
    number: int = -1
    call: Call | None = None


class Unfinished(NamedTuple):
    """What is settled of a call that is being read; texts as bytes [begin, end) of the whole text.

    Attributes:
        number: of the call.
        name: as much as was read of it, in protocols that write one.
        arguments: their text; (0, 0) before they begin.
        parts: how many are whole.
        key: of the part that is being read.
        part: the text of that part; None outside of one.
    """

    number: int
    name: tuple[int, int]
    arguments: tuple[int, int]
    parts: int
    key: str | None
    part: tuple[int, int] | None
