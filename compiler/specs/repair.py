"""Read a spec as its author must have meant it, where it says something that cannot be meant: only on request.

    enum or const beside "type": "array", of values that are no arrays   is that of the items
    required: "true" of a parameter, a body                              is true
    required: true (or "true") of a property                             names it in the object's own required
    a keyword that is null                                               is left out
    \\A at the beginning of a pattern, \\Z or \\z at its end                are ^ and $
    {id} in a path without a path parameter                              a path parameter, text    (openapi.py)
    equal names of tools, equal operationIds                             are numbered              (model.py)

Leaves out   everything else that is refused: it has no one meaning.
Invariants   every repair is noted with its place; a spec without these faults is read as it stands.
"""

from __future__ import annotations

import re
from typing import Any

from .model import SCHEMA_KEYS, Repair, escape

_DATA = frozenset({"enum", "default", "example", "examples", "const"})
_NEVER_NULL = SCHEMA_KEYS - {"const", "default", "examples", "title", "description", "$comment", "nullable"}
_END = re.compile(r"(?<!\\)((?:\\\\)*)\\[Zz]\Z")
_MAPS = frozenset(
    "properties patternProperties $defs definitions schemas parameters requestBodies dependentSchemas paths "
    "headers responses content".split()
)


def repaired(document: Any, repairs: list[Repair]) -> Any:
    """A copy of a document without the faults that a schema, a parameter or a body can have by itself."""
    return _mended(document, "", False, repairs)


def _mended(value: Any, at: str, names: bool, repairs: list[Repair]) -> Any:
    """``names``: the keys of ``value`` are names that the document's author chose, not keywords."""
    if isinstance(value, list):
        return [_mended(one, f"{at}/{n}", False, repairs) for n, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, one in value.items():
        data = not names and (key in _DATA or key.startswith("x-"))
        below = not names and key in _MAPS and isinstance(one, dict) and not (key == "parameters" and _is_schema(one))
        out[key] = one if data else _mended(one, f"{at}/{escape(key)}", below, repairs)
    if not names:
        _mend_nulls(out, at, repairs)
        _mend_anchors(out, at, repairs)
        _mend_list(out, at, repairs)
        _mend_required(out, at, repairs)
    return out


def _is_schema(value: dict[str, Any]) -> bool:
    """Whether the parameters of a tool stand here, and no map of an API's parameters by their names."""
    return not isinstance(value.get("type", ""), dict) and ("type" in value or "properties" in value)


def _mend_nulls(schema: dict[str, Any], at: str, repairs: list[Repair]) -> None:
    """Keywords that are null, as programs write those that they have not."""
    for key in [key for key, one in schema.items() if one is None and key in _NEVER_NULL]:
        del schema[key]
        repairs.append(Repair(f"{at}/{key}", f"{key} is null, which says nothing"))


def _mend_anchors(schema: dict[str, Any], at: str, repairs: list[Repair]) -> None:
    """Anchors of Python, Ruby and Perl, which ECMA-262 has not, around a whole pattern."""
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return
    found = _END.sub(r"\1$", re.sub(r"^\\A", "^", pattern))
    if found != pattern:
        schema["pattern"] = found
        repairs.append(Repair(f"{at}/pattern", r"\A, \Z and \z around a pattern are ^ and $"))


def _mend_list(schema: dict[str, Any], at: str, repairs: list[Repair]) -> None:
    """The values of an array's ``enum`` or ``const`` are those of its items."""
    for key in ("enum", "const"):
        found = schema.get(key)
        values = found if key == "enum" else [found]
        items = schema.get("items", {})
        if schema.get("type") != "array" or key not in schema or not isinstance(values, list) or not values:
            continue
        if any(isinstance(one, list) for one in values) or not isinstance(items, dict) or key in items:
            continue
        del schema[key]
        schema["items"] = {"allOf": [items], key: found} if "$ref" in items else {**items, key: found}
        repairs.append(Repair(f"{at}/{key}", f"the {key} of an array is that of its items"))


def _mend_required(value: dict[str, Any], at: str, repairs: list[Repair]) -> None:
    """Whether something is required is said by true or false, and of a property by the object."""
    said = _truth(value.get("required"))
    if isinstance(value.get("required"), str) and said is not None and ("in" in value or "content" in value):
        value["required"] = said
        repairs.append(Repair(f"{at}/required", f"text is {str(said).lower()}"))
    members = value.get("properties")
    listed = value.get("required", [])
    if not isinstance(members, dict) or not (isinstance(listed, list) or _truth(listed) is not None):
        return
    for name, member in list(members.items()):
        said = _truth(member.get("required")) if isinstance(member, dict) else None
        if said is None:
            continue
        members[name] = {key: one for key, one in member.items() if key != "required"}
        if said and isinstance(listed, list):
            listed = value["required"] = [*listed, *([] if name in listed else [name])]
        repairs.append(
            Repair(f"{at}/properties/{escape(name)}/required", "required of a property is said by the object")
        )


def _truth(value: Any) -> bool | None:
    """What a boolean or the text of one says; None for others."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None
