"""Operations of an API, and calls of them as request lines, told a second time: with urllib, without Lark."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from toolc.compiler.specs import Spec

from .codecs import fits

EXAMPLE = "GET /movie/550/credits?language=en-US&page=2"
"""A call of an operation below."""


def parameter(name: str, place: str, schema: dict[str, Any], required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema, "required": required or place == "path"}


PAGE = {"type": "integer", "minimum": 1}
PATHS: dict[str, Any] = {
    "/movie/{id}/credits": {"get": {"parameters": [
        parameter("id", "path", {"type": "integer"}), parameter("language", "query", {"type": "string"}),
        parameter("page", "query", PAGE), parameter("X-Trace", "header", {"type": "string"}),
    ]}},
    "/search": {"get": {"parameters": [
        parameter("adult", "query", {"type": "boolean"}), parameter("query", "query", {"type": "string"}, True),
        parameter("sort", "query", {"enum": ["by name", "by/date"]}),
        parameter("limit", "query", {"type": ["integer", "string"]}),
        parameter("tags", "query", {"type": "array", "items": {"type": "string"}}),
    ]}},
    "/list/{name}": {
        "delete": {"parameters": [parameter("name", "path", {"type": "string", "maxLength": 4})]},
        "post": {"parameters": [parameter("name", "path", {"type": "string", "maxLength": 4})], "requestBody": {
            "required": True, "content": {"application/json": {"schema": {"type": "object", "properties": {
                "ids": {"type": "array", "items": PAGE}}, "additionalProperties": False}}}}},
    },
}  # fmt: skip
DOCUMENT = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": PATHS}


CALLS: list[tuple[str, Any]] = [
    ("get_movie_id_credits", {"id": 550, "language": "en-US", "page": 2}),
    ("get_search", {"adult": True, "query": "café & 😀", "sort": "by/date", "limit": 5}),
    ("get_search", {"query": "", "limit": "many"}),
    ("delete_list_name", {"name": "a/b"}),
    ("post_list_name", {"name": "x", "body": {"ids": [1, 2]}}),
]


@dataclass(frozen=True)
class Requests:
    """How RestGPT calls the operations of a spec; one call is a turn.

    Attributes:
        spec: its tools, each with its request: method, route, argument → (part, name there).
    """

    spec: Spec
    many: bool = False
    before: str = ""
    text: str = "I have what I need."

    def write(self, calls: list[tuple[str, Any]], compact: bool = False) -> str:
        """The request line of a call, and its body."""
        ((name, arguments),) = calls
        method, line, parts = next(tool.request for tool in self.spec.tools if tool.name == name)  # type: ignore[misc]
        query = []
        for argument, value in arguments.items():
            part, key = parts[argument]
            spelled = quote(value if isinstance(value, str) else json.dumps(value), safe="")
            if part == "path":
                line = line.replace("{" + key + "}", spelled)
            elif part == "query":
                query.append(f"{key}={spelled}")
        body = [json.dumps(value) for argument, value in arguments.items() if parts[argument][0] == "body"]
        return " ".join([f"{method} {line}" + ("?" + "&".join(query) if query else ""), *body])

    def read(self, text: str, schemas: dict[str, Any]) -> list[tuple[str, Any]] | None:
        """The call in a text; None if it is none."""
        found = re.fullmatch(r"([A-Z]+) ([^ ?]+)(?:\?([^ ?]+))?(?: (.*))?", text, re.DOTALL)
        for tool in self.spec.tools:
            method, route, parts = tool.request  # type: ignore[misc]
            pattern = re.sub(r"\\\{(.*?)\\\}", r"(?P<\1>[^/]+)", re.escape(route))
            matched = re.fullmatch(pattern, found[2]) if found and found[1] == method else None
            if found is None or matched is None:
                continue
            texts = {("path", key): value for key, value in matched.groupdict().items()}
            texts |= {("query", one.partition("=")[0]): one.partition("=")[2] for one in (found[3] or "").split("&")}
            texts.pop(("query", ""), None)
            arguments: dict[str, Any] = {}
            for argument, (part, key) in parts.items():
                try:
                    if (part, key) in texts:
                        said = unquote(texts.pop((part, key)), errors="strict")
                        arguments[argument] = _value(said, schemas[tool.name]["properties"][argument])
                    elif part == "body" and found[4]:
                        arguments[argument] = json.loads(found[4])
                except ValueError:
                    return None
            return None if texts else [(tool.name, arguments)]
        return None


def _value(text: str, schema: Any) -> Any:
    """What is no string and valid is that value; else the text is a string."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if not isinstance(value, str) and fits(value, schema) else text
