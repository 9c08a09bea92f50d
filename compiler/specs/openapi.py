"""OpenAPI 3.0, 3.1 and 3.2 documents: every operation under ``paths`` is a tool.

The arguments are one object: path, query, header and cookie parameters under their own names, then the request
body under ``body``. Nothing else may stand in it.

OpenAPI 3.0 schemas are JSON Schema draft 4 but for ``nullable``, which is made a type here; those of 3.1 and 3.2 are
2020-12.

Leaves out   what the schemas mean: they stay as written, with their ``$ref`` into the document; properties that are
             ``readOnly`` are left out of requests where schemas are read (../schema/nodes.py).
Invariants   the order is that of the document: parameters of the path item, those of the operation, the body;
             path parameters are required; a name in two places is prefixed by the place (``path_id``, ``query_id``).
Source       OpenAPI Specification 3.0.4, 3.1.1 and 3.2.0, sections Path Item, Operation, Parameter, Request Body.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, TypeAlias
from urllib.parse import unquote

from ..errors import SpecError
from .marks import marks_of
from .model import Dialect, Refused, Repair, ToolSpec, escape, quote, shown, skipping, want
from .selection import Selection

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
READ_ONLY = frozenset({"get", "head", "query"})
IDEMPOTENT = frozenset({"get", "head", "put", "delete", "options", "trace", "query"})  # RFC 9110, 9.2.2
PLACES = ("path", "query", "header", "cookie")
QUERY = "query"
OTHERS = "additionalOperations"
WHOLE_QUERY = "querystring"
"""What 3.2 adds: a method, an object of further ones, a place."""
IGNORED_HEADERS = frozenset({"accept", "content-type", "authorization"})  # the specification says so
BODY, OTHER_BODY = "body", "requestBody"
MAX_HOPS = 100
"""References in a row that lead to a parameter, a request body or a path item."""
MAX_ARGUMENTS = 200_000
"""Of all operations; path items and lists of parameters that many refer to multiply."""


def read_openapi(
    document: dict[str, Any],
    name: str,
    refused: list[Refused] | None = None,
    select: Selection | None = None,
    repairs: list[Repair] | None = None,
) -> list[ToolSpec]:
    """The tools of an OpenAPI document, in its order.

    Args:
        refused: receives the operations that cannot be read; None: the first of them is an error.
        select: the operations that are read; None: all.
        repairs: receives what is read otherwise than it stands; None: nothing is.
    """
    version = document["openapi"]
    if not isinstance(version, str) or not re.match(r"3\.[012](\.\d+)?([-+].*)?\Z", version):
        raise SpecError(
            "this version of OpenAPI is not read",
            place=f"{name}#/openapi",
            found=shown(version),
            expected='"3.0.x", "3.1.x" or "3.2.x"',
        )
    dialect: Dialect = "openapi-3.0" if version.startswith("3.0") else "openapi-3.1"
    if dialect == "openapi-3.0":
        document = as_draft_4(document)
    paths = want(document.get("paths", {}), dict, f"{name}#/paths", "an object of paths")
    return Reader(document, name, dialect, refused, select, repairs).paths(paths)


Parameters: TypeAlias = dict[tuple[str, str], tuple[dict[str, Any], str]]
"""Place and name → a parameter and its JSON pointer."""


class Reader:
    """Path items of one document; swagger.py changes what a parameter is.

    Attributes:
        places: where parameters may stand.
    """

    places: tuple[str, ...] = PLACES

    def __init__(
        self,
        document: dict[str, Any],
        name: str,
        dialect: Dialect,
        refused: list[Refused] | None = None,
        select: Selection | None = None,
        repairs: list[Repair] | None = None,
    ) -> None:
        self.document = document
        self.name = name
        self.dialect = dialect
        self.arguments = 0  # of the operations so far
        self.refused = refused
        self._parameters: dict[tuple[int, str], Parameters] = {}  # of lists that were read before
        self.select = select or Selection()
        self.later = str(document.get("openapi", "")).startswith("3.2")
        if self.later:
            self.places = (*self.places, WHOLE_QUERY)
        self.repairs = repairs

    def paths(self, paths: dict[str, Any]) -> list[ToolSpec]:
        """The operations of all paths."""
        tools: list[ToolSpec] = []
        for path, item in paths.items():
            if not path.startswith("x-"):
                with skipping(self.refused, path):
                    tools.extend(self.path_item(path, item, f"/paths/{escape(path)}"))
        return tools

    def path_item(self, path: str, item: Any, pointer: str) -> list[ToolSpec]:
        """The operations of one path."""
        item, at = self.resolve(item, pointer, "a path item: an object")
        tools = []
        listed = {method: (operation, f"{at}/{method}") for method, operation in item.items()}
        if self.later and isinstance(item.get(OTHERS), dict):
            above = f"{at}/{OTHERS}"
            listed |= {method: (one, f"{above}/{escape(method)}") for method, one in item[OTHERS].items()}
        known = {*METHODS, QUERY, *item.get(OTHERS, ())} if self.later else METHODS
        for method, (operation, where) in listed.items():
            if method in known:
                named = isinstance(operation, dict) and isinstance(operation.get("operationId"), str)
                called = operation["operationId"] if named else f"{method} {path}"
                said = plain_name(called if named else method + path)
                if not self.select.takes(said, tags_in(operation), method, path):
                    continue
                with skipping(self.refused, called):
                    want(operation, dict, f"{self.name}#{where}", "an operation: an object")
                    shared = self.parameters(item.get("parameters"), f"{at}/parameters")
                    own = self.parameters(operation.get("parameters"), f"{where}/parameters")
                    tools.append(self.operation(method, path, operation, where, shared | own))
        return tools

    def operation(
        self, method: str, path: str, operation: dict[str, Any], pointer: str, parameters: dict[Any, Any]
    ) -> ToolSpec:
        self.arguments += len(parameters)
        if self.arguments > MAX_ARGUMENTS:
            raise SpecError(
                "the operations have too many parameters",
                place=f"{self.name}#{pointer}",
                found=f"{self.arguments:,} up to this operation",
                expected=f"at most {MAX_ARGUMENTS:,} in one document",
                hint="split the document",
            )
        self.check_path(path, pointer, parameters)
        properties: dict[str, Any] = {}
        required: list[str] = []
        places: dict[str, str] = {}
        parts: dict[str, tuple[str, str]] = {}

        def add(argument: str, schema: Any, needed: bool, at: str) -> None:
            key = f"/properties/{escape(argument)}"
            if argument in properties:
                raise SpecError(
                    f"two arguments have the name {quote(argument)}",
                    place=f"{self.name}#{at}",
                    expected=f"a name that differs from that of {self.name}#{places[key]}",
                    hint="rename one of the parameters",
                )
            properties[argument] = schema
            places[key] = at
            if needed:
                required.append(argument)

        names = Counter(self.argument_name(*key) for key in parameters)
        for (place, parameter_name), (parameter, at) in parameters.items():
            schema, schema_at = self.parameter_schema(parameter, at)
            argument = self.argument_name(place, parameter_name)
            argument = argument if names[argument] == 1 else f"{place}_{parameter_name}"
            add(argument, schema, parameter.get("required", False) or place == "path", schema_at)
            parts[argument] = place, parameter_name
        if operation.get("requestBody") is not None:
            schema, at, needed = self.body(operation["requestBody"], f"{pointer}/requestBody")
            argument = OTHER_BODY if BODY in properties else BODY
            add(argument, schema, needed, at)
            parts[argument] = "body", argument

        description = operation.get("description") or operation.get("summary") or ""
        by_method: dict[str, Any] = {"read_only": True} if method.lower() in READ_ONLY else {}
        by_method |= {"idempotent": True} if method.lower() in IDEMPOTENT else {}
        by_method |= marks_of(operation, f"{self.name}#{pointer}", annotations=False)
        return ToolSpec(
            name=self.tool_name(method, path, operation, pointer),
            description=description if isinstance(description, str) else "",
            schema={"type": "object", "properties": properties, "required": required, "additionalProperties": False},
            pointer=pointer,
            document=self.document,
            **by_method,
            dialect=self.dialect,
            places=places,
            request=(method.upper(), path, parts),
            tags=tags_in(operation),
        )

    def argument_name(self, place: str, name: str) -> str:
        """What the argument for a parameter is called, if no other is called so."""
        return name

    def tool_name(self, method: str, path: str, operation: dict[str, Any], pointer: str) -> str:
        name = operation.get("operationId")
        if name is None:
            name = method + path
        elif not isinstance(name, str) or not re.search(r"[A-Za-z0-9]", name):
            raise SpecError(place=f"{self.name}#{pointer}/operationId", found=shown(name), expected="a name")
        return plain_name(name)

    def check_path(self, path: str, pointer: str, parameters: dict[Any, Any]) -> None:
        """Every part of a path in braces is a path parameter; with repairs, those that are none become one."""
        for needed in re.findall(r"\{([^{}]+)\}", path):
            if ("path", needed) in parameters:
                continue
            if self.repairs is not None:
                self.repairs.append(Repair(pointer, f"the path holds {{{needed}}}, which is text"))
                text = {"name": needed, "in": "path", "required": True, "type": "string", "schema": {"type": "string"}}
                parameters["path", needed] = text, pointer
            else:
                raise SpecError(
                    f"the path holds {{{needed}}}, and no path parameter has this name",
                    place=f"{self.name}#{pointer}",
                    expected=f'a parameter {{"name": {quote(needed)}, "in": "path", "schema": …}}',
                    hint="declare it; --repair takes it as text",
                )

    def parameters(self, items: Any, pointer: str) -> Parameters:
        """(place, name) → the parameter and its JSON pointer; what many operations refer to is read once."""
        known = id(items), pointer
        if known not in self._parameters:
            self._parameters[known] = self._read_parameters(items, pointer)
        return dict(self._parameters[known])

    def _read_parameters(self, items: Any, pointer: str) -> Parameters:
        out: Parameters = {}
        listed: dict[tuple[str, str], str] = {}  # where the list has them, perhaps as references to one place
        for i, item in enumerate(want([] if items is None else items, list, f"{self.name}#{pointer}", "an array")):
            parameter, at = self.resolve(item, f"{pointer}/{i}", "a parameter: an object")
            for key in ("name", "in"):
                if key not in parameter:
                    raise SpecError(f"the parameter has no {key}", place=f"{self.name}#{at}", expected=f'"{key}": …')
                want(parameter[key], str, f"{self.name}#{at}/{key}", "text")
            self.flag(parameter, at)
            name, place = parameter["name"], parameter["in"]
            if place not in self.places:
                hint = "this is Swagger 2.0; use requestBody" if place in ("body", "formData") else None
                expected = "path, query, header or cookie"
                raise SpecError(place=f"{self.name}#{at}/in", found=shown(place), expected=expected, hint=hint)
            if place == "header" and name.lower() in IGNORED_HEADERS:
                continue
            if (place, name) in out:
                raise SpecError(
                    f"two {place} parameters have the name {quote(name)}",
                    place=f"{self.name}#{pointer}/{i}",
                    expected=f"a name that differs from that of {self.name}#{listed[place, name]}",
                )
            out[place, name], listed[place, name] = (parameter, at), f"{pointer}/{i}"
        return out

    def parameter_schema(self, parameter: dict[str, Any], at: str) -> tuple[Any, str]:
        if "schema" in parameter:
            return self.schema(parameter["schema"], f"{at}/schema")
        if "content" in parameter:
            return self.content(parameter["content"], f"{at}/content")
        raise SpecError("the parameter has no schema", place=f"{self.name}#{at}", expected='"schema" or "content"')

    def body(self, body: Any, pointer: str) -> tuple[Any, str, bool]:
        body, at = self.resolve(body, pointer, "a request body: an object")
        if "content" not in body:
            raise SpecError("the request body has no content", place=f"{self.name}#{at}", expected='"content": {…}')
        needed = self.flag(body, at)
        return *self.content(body["content"], f"{at}/content"), needed

    def content(self, content: Any, at: str) -> tuple[Any, str]:
        """The schema of a ``content`` object: that of its JSON media type, else that of its first."""
        want(content, dict, f"{self.name}#{at}", "an object of media types")
        if not content:
            raise SpecError("there is no media type", place=f"{self.name}#{at}", expected='"application/json": {…}')
        chosen = min(content, key=_preference)
        media, at = self.resolve(content[chosen], f"{at}/{escape(chosen)}", "a media type: an object")
        return self.schema(media.get("schema", {}), f"{at}/schema")

    def flag(self, value: dict[str, Any], at: str) -> bool:
        """Whether a parameter or a body is required."""
        found = value.get("required", False)
        hint = "write it without quotes; --repair reads it so" if isinstance(found, str) else None
        said: bool = want(found, bool, f"{self.name}#{at}/required", "true or false", hint)
        return said

    def schema(self, schema: Any, at: str) -> tuple[Any, str]:
        return want(schema, (dict, bool), f"{self.name}#{at}", "a JSON Schema"), at

    def resolve(self, value: Any, pointer: str, expected: str) -> tuple[dict[str, Any], str]:
        """Follow ``$ref`` to an object and its JSON pointer."""
        seen = {pointer}
        while True:
            want(value, dict, f"{self.name}#{pointer}", expected)
            if "$ref" not in value:
                return value, pointer
            where = f"{self.name}#{pointer}/$ref"
            ref = want(value["$ref"], str, where, "a reference: text")
            if not ref.startswith("#/"):
                raise SpecError(
                    "a reference to another document is not followed",
                    place=where,
                    found=quote(ref),
                    expected="one that starts with #/",
                    hint="put its file beside the spec, or name its folder with --schemas",
                )
            pointer = unquote(ref[1:])
            if pointer in seen:
                raise SpecError("the reference leads back to itself", place=where, found=quote(ref))
            if len(seen) > MAX_HOPS:
                raise SpecError(
                    "the reference leads through too many others",
                    place=where,
                    found=quote(ref),
                    expected=f"at most {MAX_HOPS} on the way",
                    hint="refer to the last of them",
                )
            seen.add(pointer)
            value = self.at_pointer(pointer, where, ref)

    def at_pointer(self, pointer: str, where: str, ref: str) -> Any:
        value: Any = self.document
        for token in pointer.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and re.fullmatch(r"0|[1-9]\d{0,8}", key) and int(key) < len(value):
                value = value[int(key)]
            else:
                raise SpecError("the reference leads nowhere", place=where, found=quote(ref))
        return value


def plain_name(name: str) -> str:
    """What a tool is called for an operation: characters that a name may not have become ``_``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", re.sub(r"[{}]", "", name)).strip("_")


def tags_in(operation: Any) -> tuple[str, ...]:
    """The tags of an operation that may be of no form."""
    tags = operation.get("tags") if isinstance(operation, dict) else None
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def _preference(media_type: str) -> int:
    kind = media_type.split(";")[0].strip().lower()
    return 0 if kind == "application/json" else 1 if kind.endswith(("+json", "/json")) else 2


# ---------------------------------------------------------------- OpenAPI 3.0

_DATA = frozenset({"enum", "default", "example", "examples", "const"})
_MAPS = frozenset({"properties", "patternProperties", "schemas", "parameters", "requestBodies", "definitions"})


def as_draft_4(document: dict[str, Any], nullable: str = "nullable") -> dict[str, Any]:
    """A copy whose schemas are of draft 4: ``nullable`` becomes a second type. Every pointer stays what it was."""
    return {"$schema": "http://json-schema.org/draft-04/schema#", **_without_nullable(document, False, nullable)}


def _without_nullable(value: Any, names: bool, nullable: str) -> Any:
    """``names``: the keys of ``value`` are names that the document's author chose, not keywords."""
    if isinstance(value, list):
        items = []
        for one in value:
            items.append(_without_nullable(one, False, nullable))
        return items
    if not isinstance(value, dict):
        return value
    out = {}
    for key, one in value.items():
        data = not names and (key in _DATA or key.startswith("x-"))
        inner = not names and key in _MAPS and isinstance(one, dict)
        out[key] = one if data else _without_nullable(one, inner, nullable)
    if not names and out.get(nullable) is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out
