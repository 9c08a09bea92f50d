"""Read the tags that an OpenAPI ``discriminator`` gives to the branches of a union.

Leaves out   whether the branches agree, and what they are narrowed to (discriminator.py).
Invariants   a branch is named by its ``$ref`` alone. Its tags are the keys of ``mapping`` that lead to it, and the last
             step of its pointer, unless ``mapping`` gives that name to another one.
Source       OpenAPI 3.1.1, 4.8.25.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from .operands import Constant
from .values import freeze

TAGS = "$tags"
"""Where a node holds what its discriminator says, beside its keywords."""


@dataclass(frozen=True)
class Tags:
    """The tags of the branches of one union.

    Attributes:
        name: of the property.
        oneOf, anyOf: for each branch its tags; none: it has no name.
    """

    name: str
    oneOf: tuple[tuple[Constant, ...], ...] = ()
    anyOf: tuple[tuple[Constant, ...], ...] = ()


def tags_of(schema: dict[str, Any]) -> Tags | None:
    """The tags that the discriminator of a schema gives to its branches; None if it gives none."""
    found = schema.get("discriminator")
    name = found.get("propertyName") if isinstance(found, dict) else None
    if not isinstance(name, str):
        return None
    given = found["mapping"] if isinstance(found, dict) and "mapping" in found else None
    mapping = {tag: unquote(to) for tag, to in given.items() if isinstance(to, str)} if isinstance(given, dict) else {}
    tags = {key: _tags(schema[key], mapping) for key in ("oneOf", "anyOf") if isinstance(schema.get(key), list)}
    return Tags(name, **tags) if any(map(any, tags.values())) else None


def _tags(branches: list[Any], mapping: dict[str, str]) -> tuple[tuple[Constant, ...], ...]:
    found: list[tuple[Constant, ...]] = []
    for branch in branches:
        ref = branch.get("$ref") if isinstance(branch, dict) else None
        if not isinstance(ref, str):
            found.append(())
            continue
        ref = unquote(ref)
        short = ref.rpartition("/")[2].replace("~1", "/").replace("~0", "~") if "#/" in ref else ""
        tags = [tag for tag, to in mapping.items() if to in (ref, short)]
        if short and short not in mapping:
            tags.append(short)
        found.append(tuple([Constant(freeze(tag), tag) for tag in tags]))
    return tuple(found)
