"""Small inputs that ask for very much work: name → (what reads it, the input, options).

Leaves out   how they are run: see tests/test_budget_clock.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Bomb = tuple[str, Any, dict[str, Any]]
BOMBS: dict[str, Callable[[], Bomb]] = {}


def _add(name: str, kind: str, make: Callable[[], Any], **options: Any) -> None:
    BOMBS[name] = lambda: (kind, make(), options)


def _tool(schema: Any, name: str = "t") -> dict[str, Any]:
    return {"name": name, "inputSchema": schema}


def _object(properties: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


# -- references that lead back


def _back(width: int, default: bool, items: bool = False) -> list[Any]:
    """A schema that refers to itself through some properties."""
    node: dict[str, Any] = {"$ref": "#/$defs/N"}
    if items:
        node = {"type": "array", "items": node}
    members: dict[str, Any] = {f"p{n}": node for n in range(width)}
    if default:
        members["x"] = {"type": "integer", "default": 3}
    return [_tool({**_object({"a": {"$ref": "#/$defs/N"}}), "$defs": {"N": _object(members)}})]


_add("defaults", "tools", lambda: _back(12, False))
_add("defaults-said", "tools", lambda: _back(12, True))
_add("defaults-of-items", "tools", lambda: _back(12, True, items=True))


def _openapi(schemas: dict[str, Any], **operation: Any) -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "x", "version": "1"},
        "paths": {"/a": {"post": {"operationId": "a", "requestBody": body, "responses": {}, **operation}}},
        "components": {"schemas": schemas},
    }


def _component(name: object) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/S{name}"}


def _all_of(count: int, circle: bool) -> dict[str, Any]:
    """Schemas each of which adds to the next, all of them with properties that lead to all of them."""
    found = {}
    for n in range(count):
        found[f"S{n}"] = _object({f"p{k}": _component((n * k + k) % count) for k in range(8)})
        if circle or n + 1 < count:
            found[f"S{n}"]["allOf"] = [_component((n + 1) % count)]
    return _openapi(found)


_add("all-of-in-a-row", "tools", lambda: _all_of(4, circle=False))
_add("all-of-in-a-circle", "tools", lambda: _all_of(6, circle=True))


def _doubled(keyword: str, levels: int) -> dict[str, Any]:
    """Each level names that below it twice."""
    found: dict[str, Any] = {"d0": _object({"a": {"type": "string"}}, required=["a"])}
    for n in range(1, levels):
        below = {"$ref": f"#/$defs/d{n - 1}"}
        found[f"d{n}"] = {keyword: [below, _object({f"b{n}": below}, required=[f"b{n}"])]}
    return {"$defs": found, "$ref": f"#/$defs/d{levels - 1}"}


for _keyword in ("allOf", "anyOf", "oneOf"):
    _add(f"doubled-{_keyword}", "schema", lambda _keyword=_keyword: _doubled(_keyword, 40))

# -- alternatives that multiply


def _asked(count: int, keyword: str, **more: Any) -> dict[str, Any]:
    """One of two members, so many times."""
    return {
        "type": "object",
        "allOf": [{keyword: [{"required": [f"{c}{n}"]} for c in "ab"]} for n in range(count)],
    } | more


def _conditions(count: int) -> dict[str, Any]:
    def of(n: int) -> dict[str, Any]:
        asked = {"properties": {f"p{n}": {"const": "x"}}}
        return {"if": asked, "then": {"required": [f"q{n}"]}, "else": {"required": [f"r{n}"]}}

    return _object({f"p{n}": {"enum": ["x", "y", "z"]} for n in range(count)}, allOf=[of(n) for n in range(count)])


_add("any-of-required", "schema", lambda: _asked(12, "anyOf"))
_add("one-of-required", "schema", lambda: _asked(9, "oneOf"))
_add("conditions", "schema", lambda: _conditions(12))
_add("not-both", "schema", lambda: {"type": "object", "allOf": [
    {"not": {"required": [f"a{n}", f"b{n}"]}} for n in range(12)]})  # fmt: skip
_add("dependent", "schema", lambda: {"type": "object", "dependentRequired": {
    f"a{n}": [f"b{n}", f"c{n}"] for n in range(14)}})  # fmt: skip
_add("coprime-circles", "schema", lambda: {
    "$defs": {f"n{p}_{n}": _object({"l": {"$ref": f"#/$defs/n{p}_{(n + 1) % p}"}}) for p in (2, 3, 5, 7, 11, 13, 17)
              for n in range(p)},
    "allOf": [{"$ref": f"#/$defs/n{p}_0"} for p in (2, 3, 5, 7, 11, 13, 17)]})  # fmt: skip
_add("enums-that-meet", "schema", lambda: {"allOf": [
    {"enum": [f"v{n}" for n in range(first, 20_000 + first)]} for first in range(30)]})  # fmt: skip
_add("enum-of-objects", "schema", lambda: {"enum": [{"a": n, "b": [n] * 5} for n in range(8000)]})

# -- patterns


def _pattern(text: str) -> dict[str, Any]:
    return {"type": "string", "pattern": text}


_add("many-classes", "schema", lambda: _pattern(
    "^(" + "|".join(f"[{chr(0x4E00 + 3 * n)}-{chr(0x4E28 + 3 * n)}]+" for n in range(1500)) + ")$"))  # fmt: skip
_add("classes-in-a-row", "schema", lambda: _pattern(
    "^" + "".join(f"[{chr(0x4E00 + 3 * n)}-{chr(0x4E28 + 3 * n)}]" for n in range(5000)) + "$"))  # fmt: skip
_add("large-classes", "schema", lambda: _pattern("^" + r"\p{L}\p{N}\p{Lu}" * 3000 + "$"))
_add("looks-behind", "schema", lambda: _pattern("^" + "(?<!a)b" * 20_000 + "$"))
_add("word-boundaries", "schema", lambda: _pattern("^" + r"\b[a-z]+\b " * 20_000 + "$"))
_add("looks-that-may-be", "schema", lambda: _pattern("^" + "".join(f"(?:(?=.*x{n})|)" for n in range(25)) + ".*$"))
_add("beginnings", "schema", lambda: _pattern("^(" + "|".join("a" * n for n in range(1, 2000)) + ")$"))
_add("a-long-text-often", "schema", lambda: _pattern(
    "^" + "a" * 100_000 + "(" + "|".join(f"b{n}" for n in range(20_000)) + ")$"))  # fmt: skip
_add("formats-that-meet", "schema", lambda: _object({
    f"p{n}": {"type": "string", "format": "date-time", "pattern": f"^{1000 + n}"} for n in range(500)}))  # fmt: skip
_add("a-long-name", "schema", lambda: _object({"n" * 1_000_000: {"type": "integer"}}))
_add("a-long-memory", "grammar", lambda: 'start: /[^"]*a[^"]{16}/ "x"\n')
_add("nested-counts", "schema", lambda: _pattern("^((((a{1,50}){1,50}){1,50}){1,50})$"))
_add("many-looks", "schema", lambda: _pattern("^" + "".join(f"(?=.*x{n})" for n in range(14)) + ".*$"))
_add("patterns-that-meet", "schema", lambda: {"type": "string", "allOf": [{"pattern": f"a{n}.*b"} for n in range(14)]})
_add("many-terminals", "schema", lambda: {
    "type": "array", "prefixItems": [{"type": "integer", "minimum": n} for n in range(5000)]})  # fmt: skip

# -- grammars


def _lines(lines: Iterator[str], first: str, last: str = "") -> str:
    return "\n".join([first, *lines, last]) + "\n"


_add("rules-that-name-rules", "grammar", lambda: _lines(
    (f"r{n}: r{n + 1}" for n in range(6000)), "start: r0", 'r6000: "a"'))  # fmt: skip
_add("empty-rules", "grammar", lambda: _lines(
    (f"r{n}: r{n + 1} r{n + 1}" for n in range(4000)), 'start: "x" r0', "r4000: "))  # fmt: skip
_add("doubled-rules", "grammar", lambda: _lines(
    (f"r{n}: r{n + 1} r{n + 1}" for n in range(40)), "start: r0", 'r40: "a"'))  # fmt: skip
_add("a-long-circle", "grammar", lambda: _lines(
    (f'r{n}: "(" r{n + 1} ")" | "[" r{n + 1} "]"' for n in range(3000)),
    "start: r0", 'r3000: "x" | "(" r0 ")"'))  # fmt: skip
_add("a-long-circle-backwards", "grammar", lambda: _lines(
    (f'r{n + 1}: "(" r{n} ")" | "[" r{n} "]"' for n in range(3000)),
    "start: r3000", 'r0: "x" | "(" r3000 ")"'))  # fmt: skip
_add("long-alternatives", "grammar", lambda: "start: " + " | ".join(f'"{"ab" * 20}{n}"' for n in range(20_000)) + "\n")
_add("left-recursion", "grammar", lambda: _lines((
    f"r{n}: " + " | ".join(f'r{k} "{chr(97 + k)}{n}"' for k in range(12)) + f' | "z{n}"'
    for n in range(12)), "start: r0"))  # fmt: skip

_add("terminals-in-a-row", "grammar", lambda: _lines((f"T{n}: T{n + 1}" for n in range(20_000)),
     "start: T0", 'T20000: "a"'))  # fmt: skip
_add("a-text-of-any-case", "grammar", lambda: f'start: "{"ab" * 40_000}"i\n')
_add("lazy-repeats", "grammar", lambda: f'start: /{"[a-z]*?;" * 2000}/ "x"\n')
_add("lazy-repeats-doubled", "grammar", lambda: f'start: /{"a*?b" * 40}/ "x"\n')
_add("a-long-sequence", "grammar", lambda: "start: " + '"a" ' * 20_000 + "\n")
_add("long-sequences", "grammar", lambda: "start: " + " | ".join('"a" ' * 3000 + f'"{n}"' for n in range(10)) + "\n")
_add("sequences-that-may-end", "grammar", lambda: "start: " + '"a"? ' * 3000 + "\n")
_add("counts-of-many-ways", "grammar", lambda: (
    "start: (" + " | ".join(f'"{chr(65 + n)}" "{chr(66 + n)}"' for n in range(57) if n != 27 and n != 26)
    + ')~250000..900000 "!"\n'))  # fmt: skip
_add("members-of-many-counts", "tools", lambda: [
    _tool(_object({f"p{n}": {"type": "integer"} for n in range(10)}, minProperties=3))],
    protocol="qwen3_coder", key_order="any")  # fmt: skip


def _equal(count: int) -> list[Any]:
    """Two tools with the same many parameters, which are compiled as a whole."""
    members = {f"p{n}": {"type": "integer"} for n in range(count)}
    return [_tool(_object(members), "a"), _tool(_object(members), "b"), _tool({"type": "object"}, "c")]


_add("many-parameters-in-tags", "tools", lambda: [
    _tool(_object({f"p{n}": {"type": "string"} for n in range(2000)}))], protocol="glm45")  # fmt: skip
_add("equal-rules", "tools", lambda: _equal(1500), protocol="mistral_v11")

# -- references that are followed again and again

_add("a-web", "schema", lambda: {"$ref": "#/$defs/d0", "$defs": {
    f"d{n}": _object({f"p{k}": {"$ref": f"#/$defs/d{(n * 7 + k * 13) % 300}"} for k in range(30)})
    for n in range(300)}})  # fmt: skip
_add("references-in-a-circle", "schema", lambda: _object({
    f"p{n}": {"$id": f"http://x/{n}", "$ref": f"http://x/{(n + 1) % 4000}"} for n in range(4000)}))  # fmt: skip
_add("one-property-said-often", "schema", lambda: {"allOf": [
    _object({f"b{k}": {"minLength": n} for k in range(100)}) for n in range(300)]})  # fmt: skip
_add("read-only-in-a-row", "tools", lambda: _openapi({"S1500": {"type": "object"}} | {
    f"S{n}": _object({f"p{n}": {"type": "string", "readOnly": True}, "x": _component(n + 1)},
                     allOf=[_component(n + 1)]) for n in range(1500)}))  # fmt: skip
_add("members-told-apart", "schema", lambda: {"oneOf": [
    _object({"k": {"const": f"c{n}"}, f"b{n}": {"type": "string"}}, required=["k"]) for n in range(1500)]})  # fmt: skip

# -- documents, whose reading no clock of a compile measures


def _references(count: int) -> dict[str, Any]:
    """Parameters each of which is named by the one before."""
    found = _openapi({"S0": {"type": "object"}}, parameters=[
        {"$ref": f"#/components/parameters/P{n}"} for n in range(count)])  # fmt: skip
    found["components"]["parameters"] = {
        f"P{n}": {"$ref": f"#/components/parameters/P{n + 1}"} for n in range(count)
    } | {f"P{count}": {"name": "x", "in": "query", "schema": {"type": "string"}}}
    return found


def _one_item(paths: int, parameters: int) -> dict[str, Any]:
    """Many paths with one path item."""
    found = _openapi({"S0": {"type": "object"}})
    listed = [{"name": f"n{n}", "in": "query", "schema": {"type": "string"}} for n in range(parameters)]
    found["components"]["pathItems"] = {"X": {method: {"parameters": listed} for method in ("get", "put", "post")}}
    found["paths"] = {f"/p{n}": {"$ref": "#/components/pathItems/X"} for n in range(paths)}
    return found


_add("references-in-a-row", "tools", lambda: _references(3000))
_add("one-path-item", "tools", lambda: _one_item(2000, 500))
_add("many-parameters", "tools", lambda: _one_item(1, 15_000))
_add("a-key-twice", "tools", lambda: "[{" + ",".join(f'"k{n}":[1,2,3]' for n in range(60_000)) + ',"k0":1}]')
_add("quotes-that-do-not-end", "tools", lambda: "[" + "[]" * 600 + '{"a":"' + '\\"' * 300_000)
_add("aliases", "tools", lambda: (
    "openapi: 3.0.0\nx: &a0 [1, 1, 1]\n"
    + "".join(f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))).encode())  # fmt: skip
