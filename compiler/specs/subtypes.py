"""Read a parent schema of an OpenAPI document as the union of its subtypes: only on request.

    Pet: {discriminator: {propertyName: kind}, …}      any $ref to Pet is one of Cat and Dog, each with its own tag
    Cat: {allOf: [{$ref: Pet}, …]}                      here Pet is what it was: the part that Cat and Dog share

A validator cannot find the subtypes, as they refer to the parent and not the parent to them. A document has them all.

Leaves out   narrowing the union by its tags (../schema/discriminator.py).
Invariants   subtypes are the schemas of the document whose ``allOf`` refers to the parent, theirs in turn, and those
             that its ``mapping`` names, in the order of the document; the parent itself is one where ``mapping`` names
             it, and where it is a subtype of another parent.
Source       OpenAPI 3.1.1, 4.8.25; 2.0, Schema Object, Composition and Inheritance.
"""

from __future__ import annotations

from typing import Any

from .model import Repair, escape

ITSELF = "definitions"
"""Key of a union that holds the parent by its name, so that its tag is this name."""


def with_subtypes(document: dict[str, Any], told: list[Repair]) -> dict[str, Any]:
    """A document in which parents are unions.

    Args:
        told: receives each parent and what it stands for.
    """
    parts = document.get("components")
    home = "/components/schemas" if "openapi" in document else "/definitions"
    schemas = (parts.get("schemas") if isinstance(parts, dict) else None) if "openapi" in document else document.get(
        "definitions"
    )  # fmt: skip
    if not isinstance(schemas, dict):
        return document
    above = {name: _parents(schema, home, schemas) for name, schema in schemas.items()}
    below: dict[str, list[str]] = {}
    for name, parents in above.items():
        for parent in parents:
            below.setdefault(parent, []).append(name)
    said = {name: found for name, schema in schemas.items() if (found := _discriminator(schema)) is not None}
    mappings = {
        name: {tag: to for tag, ref in one["mapping"].items() if (to := _named(ref, home, schemas))}
        for name, one in said.items()
    }
    listed: dict[str, list[str]] = {}
    for name, mapping in mappings.items():
        members = {*_descendants(name, below), *mapping.values()}
        if members - {name}:
            listed[name] = [one for one in schemas if one in members]
    tagged = {one for name, some in listed.items() for one in some if one != name}  # those that have a tag of their own
    unions: dict[str, Any] = {}
    for name, some in listed.items():
        if name in tagged and name not in some:
            some = [one for one in schemas if one == name or one in some]
        refs = {one: _ref(home, one, inside=one in listed) for one in some}
        unions[name] = {
            "anyOf": [{"$ref": ref} for ref in refs.values()],
            "discriminator": {
                "propertyName": said[name]["propertyName"],
                "mapping": {tag: refs[to] for tag, to in mappings[name].items()},
            },
        }
        told.append(Repair(f"{home}/{escape(name)}", f"stands for its subtypes {', '.join(some)}"))
    if not unions:
        return document
    moved = {_ref(home, name): _ref(home, name, inside=True) for name in unions}
    document = _led(document, moved)
    schemas = document["components"]["schemas"] if "openapi" in document else document["definitions"]
    made = {}
    for name, schema in schemas.items():
        own = _within(schema, moved) if any(one in unions for one in above[name]) else schema
        if name in unions:
            own = {key: value for key, value in own.items() if key != "discriminator"}
            own = {**unions[name], ITSELF: {name: own}}
        made[name] = own
    if "openapi" in document:
        return {**document, "components": {**document["components"], "schemas": made}}
    return {**document, "definitions": made}


def _discriminator(schema: Any) -> dict[str, Any] | None:
    """What the discriminator of a parent says, in the form of OpenAPI 3; None of what is no parent."""
    if not isinstance(schema, dict) or "oneOf" in schema or "anyOf" in schema:
        return None
    found = schema.get("discriminator")
    if isinstance(found, str):
        return {"propertyName": found, "mapping": {}}
    if not isinstance(found, dict) or not isinstance(found.get("propertyName"), str):
        return None
    mapping = found.get("mapping")
    return {"propertyName": found["propertyName"], "mapping": mapping if isinstance(mapping, dict) else {}}


def _ref(home: str, name: str, inside: bool = False) -> str:
    step = escape(name)
    return f"#{home}/{step}/{ITSELF}/{step}" if inside else f"#{home}/{step}"


def _named(ref: Any, home: str, schemas: dict[str, Any]) -> str | None:
    """The schema of the document that a reference, or a value of ``mapping``, means."""
    if not isinstance(ref, str):
        return None
    start = f"#{home}/"
    name = ref[len(start) :].replace("~1", "/").replace("~0", "~") if ref.startswith(start) else ref
    return name if name in schemas else None


def _parents(schema: Any, home: str, schemas: dict[str, Any]) -> list[str]:
    """The schemas to which the ``allOf`` of a schema refers."""
    members = schema.get("allOf") if isinstance(schema, dict) else None
    refs = [one.get("$ref") for one in members if isinstance(one, dict)] if isinstance(members, list) else []
    found = (_named(ref, home, schemas) for ref in refs if isinstance(ref, str) and ref.startswith("#"))
    return [name for name in found if name is not None]


def _descendants(name: str, below: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        more = [one for one in below.get(pending.pop(), ()) if one not in found]
        found.update(more)
        pending += more
    return found


def _within(schema: dict[str, Any], moved: dict[str, str]) -> dict[str, Any]:
    """A schema whose ``allOf`` refers to parents where they stand now."""
    members = []
    for one in schema["allOf"]:
        ref = one.get("$ref") if isinstance(one, dict) else None
        members.append({**one, "$ref": moved[ref]} if isinstance(ref, str) and ref in moved else one)
    return {**schema, "allOf": members}


def _led(value: Any, moved: dict[str, str]) -> Any:
    """A copy in which references to parts of parents lead to where these stand now."""
    if isinstance(value, list):
        return [_led(one, moved) for one in value]
    if not isinstance(value, dict):
        return value
    out = {key: _led(one, moved) for key, one in value.items()}
    ref = out.get("$ref")
    if isinstance(ref, str):
        to = next((to for start, to in moved.items() if ref.startswith(f"{start}/")), None)
        out["$ref"] = ref if to is None else to + ref[len(to.rpartition(f"/{ITSELF}/")[0]) :]
    return out
