"""The parameters of a tool and the types of each: what is needed to read back values that are not JSON as a whole.

Leaves out   how they are written (writer.py), how they are read (runtime/arguments.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .shapes import Objects

if TYPE_CHECKING:
    from .writer import LarkWriter


def parameters_of(writer: LarkWriter) -> list[list[object]]:
    """[name, JSON types but string] of every declared parameter of the schema that was added last, in order.

    "number" stands for integers too.
    """
    found: dict[str, set[str]] = {}
    shapes = writer.normaliser.shapes(writer.root) if writer.root is not None else {}
    for shape in shapes.get("object", ()):
        for name, value in shape.named if isinstance(shape, Objects) else ():
            if value is not None and writer.normaliser.alive(value):
                kinds = {kind for kind, union in writer.normaliser.shapes(value).items() if union}
                found.setdefault(name, set()).update(kinds - {"string"})
    return [[name, sorted(kinds)] for name, kinds in found.items()]
