"""Custom tools of OpenAI's, as chat completions and as Responses write them, with valid inputs and others."""

from __future__ import annotations

from typing import Any

LARK = 'start: "SELECT " term\nterm: NAME | "(" term "+" term ")"\nNAME: /[a-z]+/'
REGEX = "[0-9]{4}-[0-9]{2}"
VALID = {
    "code": ["", " a\n", '{"x": [1,  2]\n }', "<x>é\\\"'</x>"],
    "when": ["2026-11"],
    "sql": ["SELECT a", "SELECT (a+(b+c))"],
}
INVALID = {
    "code": [],
    "when": ["", "2026-1", " 2026-11", "2026-11 "],
    "sql": ["", "SELECT (a + b)", "SELECT (a+b", "SELECT  a"],
}
FUNCTION = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}


def chat(name: str, syntax: str = "", definition: str = "") -> dict[str, Any]:
    """A custom tool of chat completions."""
    grammar = {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
    return {"type": "custom", "custom": {"name": name, "format": grammar if syntax else {"type": "text"}}}


def flat(name: str, syntax: str = "", definition: str = "") -> dict[str, Any]:
    """The same of Responses."""
    grammar = {"type": "grammar", "syntax": syntax, "definition": definition}
    return {"type": "custom", "name": name, "format": grammar if syntax else {"type": "text"}}


def three(form: Any) -> list[dict[str, Any]]:
    """One of each format."""
    return [form("code"), form("when", "regex", REGEX), form("sql", "lark", LARK)]


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("no name", {"type": "custom", "custom": {}}, "#/0/custom", "no name"),
    ("format", {"type": "custom", "name": "a", "format": {"type": "json"}}, "#/0/format/type", "text, grammar"),
    ("syntax", flat("a", "larc", "x"), "#/0/format/syntax", "did you mean 'lark'?"),
    ("syntax of chat completions", chat("a", "ebnf", "x"), "#/0/custom/format/grammar/syntax", "lark, regex"),
    ("definition", flat("a", "lark", 3), "#/0/format/definition", "the text of the grammar"),  # type: ignore[arg-type]
    ("stray key", {**flat("a"), "strict": True}, "#/0/strict", "not read here"),
    ("stray key of a format", {"type": "custom", "name": "a", "format": {"type": "text", "definition": "x"}},
     "#/0/format/definition", "not read here"),
    ("regex", flat("a", "regex", "(a"), "#/0/format/definition", "missing )"),
    ("grammar", chat("a", "lark", 'start: "a'), "#/0/custom/format/grammar/definition (grammar:1", "malformed"),
    ("name", flat("a b"), "#/0/name", "cannot be the name"),
    ("namespace", {"type": "namespace", "name": "crm", "tools": [flat("a", "larc", "x")]},
     "#/0/tools/0/format/syntax", "did you mean 'lark'?"),
]  # fmt: skip
