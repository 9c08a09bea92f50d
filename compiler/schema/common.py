"""What the schemas of one encoding write alike: any JSON, any string, any array, any object.

Leaves out   writing it (writer.py).
Invariants   a rule has one body, whichever of them is needed first; none depends on a schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..ir.nodes import Expr
from ..regex import Regex

Kind = Literal["any", "str", "arr", "obj"]
KINDS: tuple[Kind, ...] = ("any", "str", "arr", "obj")


@dataclass(frozen=True)
class Closure:
    """One of the rules and all that it needs.

    Attributes:
        rules, terminals: names of rules and expressions of terminals, in the order in which they are met.
        by_body: body → rule, of those that may be shared.
        restrictions: the declared restrictions that it makes use of.
    """

    rules: tuple[str, ...]
    terminals: tuple[Regex, ...]
    by_body: dict[Expr, str]
    restrictions: frozenset[str]


@dataclass(frozen=True, eq=False)
class Common:
    """The rules, known by identity.

    Attributes:
        rules: name → body.
        terminals: expression → name.
        names: kind → rule.
        closures: kind → all that it needs.
    """

    rules: dict[str, Expr] = field(default_factory=dict)
    terminals: dict[Regex, str] = field(default_factory=dict)
    names: dict[Kind, str] = field(default_factory=dict)
    closures: dict[Kind, Closure] = field(default_factory=dict)
