"""Write the rules of one schema apart from all others; it is kept by content, and put beside those of other tools.

Leaves out   writing (writer.py), putting those of tools together (../grammar/assemble.py).
Invariants   a piece depends on the schema, the options, the encoding, its hint and the names it keeps off, and on
             nothing that was written before; places begin with ``#``, which stands for where the schema stands. Its own
             names are of no matter outside. What is kept is bounded by its size; the least recently used goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolc.runtime.calls.json_text import packed

from ..budget import Budget
from ..ir.nodes import Expr, size_of
from ..regex import Regex, size
from .common import Common
from .encoding import Encoding
from .report import Row, Told, keyword_report, told
from .rules import SchemaOptions
from .unwritable import Unwritable
from .writer import LarkWriter

_MOST_KEPT = (
    4 << 20
)  # bytes of schemas, nodes of rules and terminals; what is made of them takes some thirty times as much

_NODE = 8
"""What a node of a rule counts."""

Made = TypeVar("Made")


@dataclass(eq=False)
class Piece:
    """The rules of one schema.

    Attributes:
        root: the rule of its values.
        order: all its rules, those of ``common`` among them, as they were met.
        rules: of its own, by name.
        terminals: all that it uses, name → expression.
        common: what it shares with other schemas.
        places: rule → place.
        keywords: (place, keyword, status) for every keyword.
        narrowed: (place, keyword) → restrictions that may narrow it.
        restrictions: names of the declared restrictions that hold in it.
        many_keys: places of objects with too many keys for any order.
        any: its rules of any array and any object.
        lost: what no text can have.
    """

    root: str
    order: tuple[str, ...]
    rules: dict[str, Expr]
    terminals: dict[str, Regex]
    common: Common
    places: dict[str, str]
    keywords: tuple[tuple[str, str, str], ...]
    narrowed: dict[tuple[str, str], tuple[str, ...]]
    restrictions: frozenset[str]
    any: tuple[str, ...]
    lost: tuple[Unwritable, ...] = ()
    many_keys: tuple[str, ...] = ()
    _made: dict[Callable[..., Any], tuple[Any, Any]] = field(default_factory=dict)

    @property
    def own_terminals(self) -> dict[str, Regex]:
        """Those of its terminals that it does not share."""
        return {name: regex for name, regex in self.terminals.items() if regex not in self.common.terminals}

    def rows(self, used: frozenset[str]) -> tuple[Row, ...]:
        """The keyword report, where these restrictions hold."""
        return self.made(_rows, used)

    def told(self, used: frozenset[str]) -> Told:
        """The same, summed up."""
        return self.made(_told, used)

    def made(self, make: Callable[[Piece, Any], Made], given: Any = None) -> Made:
        """What a function makes of the piece and a further value, which is mostly the same: kept beside it."""
        known = self._made.get(make)
        if known is None or known[0] != given:
            known = self._made[make] = given, make(self, given)
        found: Made = known[1]
        return found


def _rows(piece: Piece, used: frozenset[str]) -> tuple[Row, ...]:
    return keyword_report(piece.keywords, piece.narrowed, used)


def _told(piece: Piece, used: frozenset[str]) -> Told:
    return told(_rows(piece, used), piece.keywords)  # the rows of most pieces are of no further use


_kept: OrderedDict[tuple[Any, ...], tuple[Piece, int]] = OrderedDict()
_size_kept = 0


def piece_of(
    schema: Any, options: SchemaOptions, encoding: Encoding, common: Common, hint: str, budget: Budget | None,
    closed: bool = False,
) -> Piece:  # fmt: skip
    """The piece of the schema of a tool's arguments, whose references stay inside of it.

    Args:
        schema: JSON, in which references are resolved.
        common: of the same options and encoding.
        hint: what to call its rule.
        closed: as of `LarkWriter.add`.
    """
    global _size_kept
    said = packed(schema)
    key = said, options, encoding, common, hint, closed
    known = _kept.get(key)
    if known is not None:
        _kept.move_to_end(key)
        return known[0]
    writer = LarkWriter(options, budget, encoding, common)
    root = writer.add(schema, name=hint, arguments=True, closed=closed)
    piece = piece_written(writer, root)
    weight = len(said) + _NODE * sum(map(size_of, piece.rules.values())) + sum(map(size, piece.terminals.values()))
    _kept[key] = piece, weight
    _size_kept += weight
    while _size_kept > _MOST_KEPT and len(_kept) > 1:
        _size_kept -= _kept.popitem(last=False)[1][1]
    return piece


def forget() -> None:
    """Keep no pieces."""
    global _size_kept
    _kept.clear()
    _size_kept = 0


def piece_written(writer: LarkWriter, root: str) -> Piece:
    """What a writer wrote, as a piece; it writes nothing more."""
    common = writer.common_rules
    assert common is not None
    rules, _ = writer.definitions
    own = {name: body for name, body in rules.items() if name not in common.rules}
    met, narrowed = writer.met
    lost, many_keys = writer.lost(), tuple(writer.many_keys)
    writer.normaliser.close()
    return Piece(
        root,
        tuple(rules),
        own,
        writer.terminals,
        common,
        writer.places,
        tuple(met),
        narrowed,
        frozenset(writer.restrictions),
        writer.common,
        lost,
        many_keys,
    )
