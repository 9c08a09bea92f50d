"""How arguments are written in each kind of protocol, told a second time, by hand and with Python's own parsers.

``write`` writes arguments as the family's chat template does; ``read`` is the independent reading: it takes the
arguments at the beginning of a text and says how long they were, or raises ValueError.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from typing import Any

import jsonschema

Schema = dict[str, Any]


def fits(value: Any, schema: Any) -> bool:
    """Whether a value is valid."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    return bool(jsonschema.Draft202012Validator(schema, format_checker=checker).is_valid(value))


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of pairs whose keys must differ."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def dumps(value: Any, compact: bool = False) -> str:
    """JSON as templates write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if compact else None)


class Json:
    """One object of JSON."""

    def write(self, arguments: Any, compact: bool = False) -> str:
        return dumps(arguments, compact)

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        rest = text.lstrip()
        value, length = json.JSONDecoder(object_pairs_hook=once, parse_constant=_no_constant).raw_decode(rest)
        return value, length + len(text) - len(rest)


def _no_constant(word: str) -> Any:
    raise ValueError(word)


@dataclass(frozen=True)
class Raw:
    """Parameters, each between marks: strings as they are.

    Attributes:
        parameter: one parameter, with {key}, {value} and perhaps {type}.
        text_parameter: one that is a string, where that differs.
        python: whether constants that Python spells are read, too.
    """

    parameter: str
    text_parameter: str = ""
    python: bool = False

    def write(self, arguments: Any, compact: bool = False) -> str:
        if not isinstance(arguments, dict):
            return dumps(arguments)
        out = []
        for key, value in arguments.items():
            form = self.text_parameter if isinstance(value, str) and self.text_parameter else self.parameter
            text = value if isinstance(value, str) else dumps(value, compact)
            out.append(form.replace("{key}", key).replace("{type}", _type_of(value)).replace("{value}", text))
        return "".join(out)

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        pairs: list[tuple[str, Any]] = []
        at = 0
        while True:
            forms = [
                re.compile(r"\s*" + _pattern(form.strip())) for form in (self.text_parameter, self.parameter) if form
            ]
            matches = [form.match(text, at) for form in forms]
            found = next((match for match in matches if match), None)
            if found is None:
                return once(pairs), at
            is_text = bool(self.text_parameter) and found is matches[0]
            key, value, type_ = found["key"], found["value"], found.groupdict().get("type")
            if type_ is not None:
                read = value if type_ == "string" else json.loads(value, parse_constant=_no_constant)
                if _type_of(read) != type_:
                    raise ValueError("the type is not what it says")
            elif self.text_parameter:
                read = value if is_text else json.loads(value, parse_constant=_no_constant)
                if not is_text and isinstance(read, str):
                    raise ValueError("a string said to be none")
            else:
                read = self._interpret(value, schema.get("properties", {}).get(key, {}))
            pairs.append((key, read))
            at = found.end()

    def _interpret(self, text: str, schema: Any) -> Any:
        """What is no string and valid is that value; else the text is a string. An integer alone has no exponent."""
        spelled = {"True": "true", "False": "false", "None": "null"}.get(text, text) if self.python else text
        try:
            value = json.loads(spelled, parse_constant=_no_constant)
        except ValueError:
            return text
        if _is_no_integer(text, value, schema):
            return text
        return value if not isinstance(value, str) and fits(value, schema) else text


def _is_no_integer(text: str, value: Any, schema: Any) -> bool:
    """Whether a text spells a number by its exponent, where only integers may stand."""
    return isinstance(value, float) and not fits(4.5, schema) and not re.fullmatch(r"-?\d+\.0+", text.strip())


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _pattern(form: str) -> str:
    parts = re.split(r"(\{key\}|\{value\}|\{type\})", form)
    named = {"{key}": r"(?P<key>[\w.-]+)", "{value}": r"(?P<value>(?s:.*?))", "{type}": r"(?P<type>\w+)"}
    seen: set[str] = set()
    out = ""
    for part in parts:
        if part in seen:
            out += "(?P=" + part[1:-1] + ")"
        else:  # a new line between two tags may be missing
            out += named.get(part, re.escape(part).replace(">\\\n<", ">\\s*<"))
        if part in named:
            seen.add(part)
    return out


_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")


class Keywords:
    """Python's name=value."""

    def write(self, arguments: Any, compact: bool = False) -> str:
        if not isinstance(arguments, dict):
            return repr(arguments)
        comma = "," if compact else ", "
        form = (lambda value: _double(value)) if compact else repr
        return comma.join(f"{key}={form(value)}" for key, value in arguments.items())

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        end = _closing(text)
        one_line = _STRING.sub(lambda found: found[0].replace("\n", "\\n"), text[:end])  # as LFM2 may write them
        call = ast.parse(f"f({one_line})", mode="eval").body
        if not isinstance(call, ast.Call) or call.args:
            raise ValueError("no call by keywords")
        return once([(one.arg or "", ast.literal_eval(one.value)) for one in call.keywords]), end


def _double(value: Any) -> str:
    """A Python literal with double quotes."""
    if isinstance(value, str):
        return '"' + "".join('\\"' if char == '"' else "'" if char == "'" else repr(char)[1:-1] for char in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(_double, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{_double(k)}:{_double(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _closing(text: str) -> int:
    """Where the parenthesis that is open at the beginning closes, strings aside."""
    depth, at = 0, 0
    while at < len(text):
        if text[at] in "\"'":
            found = _STRING.match(text, at)
            if not found:
                raise ValueError("a string without an end")
            at = found.end()
            continue
        if text[at] == ")" and not depth:
            return at
        depth += (text[at] in "([{") - (text[at] in ")]}")
        at += 1
    raise ValueError("no closing parenthesis")


@dataclass(frozen=True)
class Bare:
    """Gemma's: bare keys, strings as they are between two marks."""

    mark: str

    def write(self, value: Any, compact: bool = False) -> str:
        if isinstance(value, str):
            return self.mark + value + self.mark
        if isinstance(value, list):
            return "[" + ",".join(self.write(one) for one in value) + "]"
        if isinstance(value, dict):
            pairs = sorted(value.items(), key=lambda pair: pair[0].lower()) if compact else value.items()
            return "{" + ",".join(f"{key}:{self.write(one, compact)}" for key, one in pairs) + "}"
        return dumps(value)

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        value, at = self._value(text, 0)
        return value, at

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        if text.startswith(self.mark, at):
            end = text.index(self.mark, at + len(self.mark))
            return text[at + len(self.mark) : end], end + len(self.mark)
        if text[at : at + 1] == "[":
            items: list[Any] = []
            at += 1
            while text[at : at + 1] != "]":
                if items:
                    at = _expect(text, at, ",")
                item, at = self._value(text, at)
                items.append(item)
            return items, at + 1
        if text[at : at + 1] == "{":
            pairs: list[tuple[str, Any]] = []
            at += 1
            while text[at : at + 1] != "}":
                if pairs:
                    at = _expect(text, at, ",")
                key = re.compile(r"[\w.-]+").match(text, at)
                if not key:
                    raise ValueError("key")
                item, at = self._value(text, _expect(text, key.end(), ":"))
                pairs.append((key[0], item))
            return once(pairs), at + 1
        word = re.compile(r"[A-Za-z]+|-?[0-9][0-9.eE+-]*").match(text, at)
        if not word:
            raise ValueError("value")
        return json.loads("null" if word[0] == "None" else word[0], parse_constant=_no_constant), word.end()


def _expect(text: str, at: int, char: str) -> int:
    if not text.startswith(char, at):
        raise ValueError(char)
    return at + len(char)


class Positional:
    """Values alone; those of a call are the first of its parameters."""

    def write(self, arguments: Any, compact: bool = False) -> str:
        if not isinstance(arguments, dict):
            return dumps(arguments)
        return ("," if compact else ", ").join(dumps(value, compact) for value in arguments.values())

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        end = _closing(text)
        values = json.loads(f"[{text[:end]}]", parse_constant=_no_constant, object_pairs_hook=once)
        names = list(schema.get("properties", {}))
        if len(values) > len(names):
            raise ValueError("too many values")
        return dict(zip(names, values, strict=False)), end


class _Tree:
    """Parameters, arrays and objects part by part."""

    def write(self, arguments: Any, compact: bool = False) -> str:
        if not isinstance(arguments, dict):
            return dumps(arguments)
        return "".join(self.part(key, value, compact) for key, value in arguments.items())

    def inside(self, value: Any, compact: bool) -> str:
        if isinstance(value, dict):
            return "".join(self.part(key, one, compact) for key, one in value.items())
        if isinstance(value, list):
            return "".join(self.part(None, one, compact) for one in value)
        return value if isinstance(value, str) else dumps(value, compact)

    def part(self, key: str | None, value: Any, compact: bool) -> str:
        raise NotImplementedError

    def read(self, text: str, schema: Schema) -> tuple[Any, int]:
        at, pairs = 0, []
        while found := self.opening(text, at):
            value, at = self.content(text, found, schema.get("properties", {}).get(found["key"], {}))
            pairs.append((found["key"], value))
        return once(pairs), at

    def opening(self, text: str, at: int) -> re.Match[str] | None:
        raise NotImplementedError

    def content(self, text: str, found: re.Match[str], schema: Any) -> tuple[Any, int]:
        raise NotImplementedError


def items_of(schema: Any, number: int) -> Any:
    """The schema of an item."""
    prefix = schema.get("prefixItems", [])
    return prefix[number] if number < len(prefix) else schema.get("items", {})


@dataclass(frozen=True)
class Tags(_Tree):
    """MiniMax M3's: a tag after a mark, named as the parameter or member, or item."""

    mark: str

    def part(self, key: str | None, value: Any, compact: bool) -> str:
        return f"{self.mark}<{key or 'item'}>{self.inside(value, compact)}{self.mark}</{key or 'item'}>"

    def opening(self, text: str, at: int) -> re.Match[str] | None:
        return re.compile(rf"\s*{re.escape(self.mark)}<(?P<key>[\w.-]+)>").match(text, at)

    def content(self, text: str, found: re.Match[str], schema: Any) -> tuple[Any, int]:
        close, at = f"{self.mark}</{found['key']}>", found.end()
        types = schema.get("type", []) if isinstance(schema, dict) else []
        child = self.opening(text, at)
        if child is None:
            end = text.index(close, at)
            return self._leaf(text[at:end], schema, types), end + len(close)
        below: list[tuple[str, Any]] = []
        while child:
            inner = items_of(schema, len(below)) if "array" in types else schema.get("properties", {}).get(child["key"])
            if inner is None:
                raise ValueError("an undeclared member")
            value, at = self.content(text, child, inner)
            below.append((child["key"], value))
            child = self.opening(text, at)
        gap = re.compile(r"\s*" + re.escape(close)).match(text, at)
        if not gap or ("array" in types and {key for key, _ in below} != {"item"}):
            raise ValueError("no end")
        return ([value for _, value in below] if "array" in types else once(below)), gap.end()

    def _leaf(self, text: str, schema: Any, types: Any) -> Any:
        if not text:
            return next((empty for name, empty in (("array", []), ("object", {})) if name in types), "")
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except ValueError:
            return text
        if "array" in types and isinstance(value, list):
            raise ValueError("an array as JSON")
        if isinstance(value, dict) and schema.get("properties"):
            raise ValueError("an object as JSON")
        if _is_no_integer(text, value, schema):
            return text
        return value if not isinstance(value, str) and fits(value, schema) else text


class Cofl(_Tree):
    """Cohere's: every value in a tag that says raw, json, dict or list."""

    END = "</cofl:value>"

    def part(self, key: str | None, value: Any, compact: bool) -> str:
        kind = {str: "raw", dict: "dict", list: "list"}.get(type(value), "json")
        name = "" if key is None else f' name="{key}"'
        return f'<cofl:value{name} type="{kind}">{self.inside(value, compact)}{self.END}'

    def opening(self, text: str, at: int) -> re.Match[str] | None:
        return re.compile(r'<cofl:value(?: name="(?P<key>[\w.-]+)")? type="(?P<kind>\w+)">').match(text, at)

    def content(self, text: str, found: re.Match[str], schema: Any) -> tuple[Any, int]:
        kind, at = found["kind"], found.end()
        if kind in ("raw", "json"):
            end = text.index(self.END, at)
            value = text[at:end] if kind == "raw" else json.loads(text[at:end], parse_constant=_no_constant)
            if kind == "json" and isinstance(value, (str, list, dict)):
                raise ValueError("no scalar")
            return value, end + len(self.END)
        below: list[tuple[str | None, Any]] = []
        while child := self.opening(text, at):
            if (child["key"] is None) != (kind == "list"):
                raise ValueError("a name, or none")
            value, at = self.content(text, child, {})
            below.append((child["key"], value))
        end = _expect(text, at, self.END)
        return ([value for _, value in below] if kind == "list" else once(below)), end  # type: ignore[arg-type]
