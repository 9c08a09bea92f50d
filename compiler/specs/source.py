"""From a path, text or Python value to a checked JSON document.

Leaves out   what the document means: read.py tells the kinds apart.
Invariants   a document holds dict (text keys, each once), list, str, int, finite float, bool and None;
             it nests at most MAX_DEPTH deep, from YAML MAX_YAML_DEPTH, so that recursion over it is safe; it came from
             at most ``max_bytes``.
Source       RFC 8259 for JSON; YAML 1.2 core schema for YAML (no dates, no ``yes``/``no``), keys made text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import SpecError
from .model import escape, quote

MAX_BYTES = 32 << 20
MAX_DEPTH = 500
MAX_YAML_DEPTH = 125  # composing YAML recurses several frames a level
MAX_NODES = 20_000_000
MAX_DIGITS = 4000  # Python reads up to 4300, and time grows with the square
_TOO_LONG = 10**MAX_DIGITS
_MOST_AT_ONCE = 1 << 32  # room of so many bytes is asked for before a byte is read
MAX_REPEATED = 2_000_000
"""Most values that aliases of YAML, or one Python value at several places, may add to those that are written."""
_TEXT = frozenset((str,))

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:"\s]+', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_YAML_START = re.compile(r"\s*(?:---|#|%YAML|[A-Za-z$][\w$-]*:(?:\s|$))")


def load_document(source: Any, name: str | None, max_bytes: int | None) -> tuple[Any, str]:
    """The document and the name that errors give it.

    Args:
        source: a Path or a text path to read; text that starts with a bracket, or bytes, to parse; or a value as is.
        name: overrides the name.
        max_bytes: the largest text that is read; None for no limit.
    """
    if isinstance(source, str) and not source.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        source = Path(source)
    if isinstance(source, Path):
        name = name or source.name
        data = _read(source, name, max_bytes)
    elif isinstance(source, str):
        data = source.encode("utf-8", "surrogatepass")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        name = name or "spec"
        check_value(source, name)
        return source, name
    name = name or "spec"
    _check_size(len(data), max_bytes, name)
    return parse(data, name), name


def _read(path: Path, name: str, max_bytes: int | None) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read() if max_bytes is None or max_bytes > _MOST_AT_ONCE else file.read(max_bytes + 1)
            if max_bytes is not None and len(data) > max_bytes:
                _check_size(max(path.stat().st_size, len(data)), max_bytes, name)
            return data
    except FileNotFoundError:
        raise SpecError("no such file", place=str(path), expected="the path of a spec document") from None
    except IsADirectoryError:
        raise SpecError("this is a folder", place=str(path), expected="the path of a spec document") from None
    except OSError as error:
        raise SpecError(f"cannot read this file: {error.strerror}", place=str(path)) from None
    except ValueError:  # a zero byte
        raise SpecError("this cannot be a path", place=name.replace("\0", "\\0"), found=quote(str(path))) from None


def _check_size(size: int, max_bytes: int | None, name: str) -> None:
    if max_bytes is not None and size > max_bytes:
        raise SpecError(
            "the document is too large",
            place=name,
            found=f"{size:,} bytes",
            expected=f"at most {max_bytes:,}",
            hint="split it, or raise the limit with --max-spec-bytes",
        )


def parse(data: bytes, name: str) -> Any:
    """The document in ``data``: JSON, or YAML where the name or the first line says so."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = max(data.rfind(b"\n", 0, error.start) + 1, 0)
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:4]
        raise SpecError(
            "the document is not UTF-8",
            place=f"{name}:{data.count(bytes([10]), 0, error.start) + 1}:{error.start - start + 1}",
            found=f"byte 0x{data[error.start]:02x}",
            hint="save it as UTF-8" + (", not UTF-16" if wide else ""),
        ) from None
    if name.lower().endswith((".yaml", ".yml")) or _YAML_START.match(text):
        document = _parse_yaml(text, name)
        check_value(document, name)
        return document
    return parse_json(text, name)


# ---------------------------------------------------------------- JSON


def parse_json(text: str, name: str) -> Any:
    """JSON text, strictly: no key twice, no NaN, no number beyond a float, at most MAX_DEPTH deep."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(text, name)
    try:
        document = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
        )
    except json.JSONDecodeError as error:
        raise _syntax_error(text, name, error) from None
    except _Refused:
        raise _find_refused(text, name) from None
    if _HALF.search(text):  # the text itself is UTF-8, so only escapes can be halves
        check_value(document, name)
    return document


class _Refused(Exception):
    """Something that json reads and we do not; found again, with its place, by _find_refused."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _Refused
    return out


def _no_constant(_: str) -> Any:
    raise _Refused


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Refused
    return value


def _digits(number: str) -> int:
    return len(number.lstrip("+-"))


def _short(text: str) -> int:
    if _digits(text) > MAX_DIGITS:
        raise _Refused
    return int(text)


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for piece in _PIECE.finditer(text):
        if (char := piece[0][0]) in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise _too_deep(f"{name}:{_line_column(text, piece.start())}")
        elif char in "]}":
            depth -= 1


def _too_deep(place: str, most: int = MAX_DEPTH) -> SpecError:
    return SpecError(
        f"the document nests more than {most} deep here",
        place=place,
        expected=f"at most {most} open brackets",
        hint="define the repeated part once and use $ref",
    )


_NO_NUMBER = re.compile("NaN|-?Infinity")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<rest>(?:\.\d+)?(?:[eE][-+]?\d+)?)")


def _find_refused(text: str, name: str) -> SpecError:
    """Where the first thing of _Refused stands: json's hooks are not told."""
    keys: list[set[str] | None] = []
    before = ""
    # json reads a number as far as it is one; what is wrong behind it comes later.
    for piece in _PIECE.finditer(text):
        token = piece[0]
        place = f"{name}:{_line_column(text, piece.start())}"
        if token == "{":
            keys.append(set())
        elif token == "[":
            keys.append(None)
        elif token in ("}", "]"):
            keys.pop()
        elif token[0] == '"' and before in ("{", ",") and keys and (seen := keys[-1]) is not None:
            key = json.loads(token)
            if key in seen:
                return SpecError(
                    f"the key {quote(key)} stands twice in one object",
                    place=place,
                    expected="every key once",
                    hint=_excerpt("remove or rename one", text, piece.start()),
                )
            seen.add(key)
        elif found := _NO_NUMBER.match(token):
            return SpecError(
                "JSON has no such number",
                place=place,
                found=found[0],
                hint=_excerpt("leave the keyword out, or write a number", text, piece.start()),
            )
        elif number := _NUMBER.match(token):
            if not number["rest"] and _digits(number[0]) > MAX_DIGITS:
                return SpecError("this number is too long", place=place, found=f"{_digits(number[0]):,} digits")
            if number["rest"] and math.isinf(float(number[0])):
                large = number[0][:40]
                return SpecError("this number is too large", place=place, found=large, expected="less than 1.8e308")
        before = token
    raise AssertionError("json refused what the scan does not find")


_HINTS = (
    ("Illegal trailing comma", "remove the trailing comma", -1),
    ("Expecting property name", None, 0),
    ("Expecting value", None, 0),
    ("Expecting ',' delimiter", 'a comma is missing, or a quote inside a string is not written \\"', 0),
    ("Expecting ':' delimiter", "write a colon after the key", 0),
    ("Unterminated string", "close the string with a quote", 0),
    ("Invalid control character", "write \\n for a new line inside a string", 0),
    ("Invalid \\escape", "write \\\\ for a backslash", 0),
    ("Invalid \\uXXXX", "write four hexadecimal digits after \\u", 0),
    ("Extra data", "the document ends before this; put several tools into one array", 0),
)


def _syntax_error(text: str, name: str, error: json.JSONDecodeError) -> SpecError:
    at = error.pos
    hint: str | None = None
    for head, known, _ in _HINTS:
        if error.msg.startswith(head):
            hint = known
            break
    previous = text[:at].rstrip()
    if at < len(text) and text[at] in "}]" and previous.endswith(","):
        hint, at = "remove the trailing comma", len(previous) - 1
    elif error.msg.startswith("Illegal trailing comma"):
        pass
    elif not text.strip():
        hint = "the document is empty"
    elif at >= len(text.rstrip()):
        opened = _open_brackets(text)
        hint = f"the document ends too early; still open: {opened}" if opened else "the document ends too early"
    elif hint is None:
        hint = _value_hint(text, at)
    what = {"Extra data": "something follows the document"}.get(error.msg, error.msg[0].lower() + error.msg[1:])
    return SpecError(
        "this is not JSON: " + what.replace(" enclosed in double quotes", " in double quotes"),
        place=f"{name}:{_line_column(text, at)}",
        found="the end of the text" if at >= len(text) else quote(text[at : at + 12].splitlines()[0] or "\n"),
        hint=_excerpt(hint, text, at),
    )


def _value_hint(text: str, at: int) -> str | None:
    rest = text[at : at + 20]
    if rest.startswith("'"):
        return "write \" and not ' around text"
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments; remove it"
    for word, json_word in (("None", "null"), ("True", "true"), ("False", "false"), ("undefined", "null")):
        if rest.startswith(word):
            return f"write {json_word}"
    if re.match(r"[A-Za-z_]", rest):
        return 'put text and keys between "'
    if re.match(r"[.+]?\d", rest):
        return "write a number as JSON does: 0.5, not .5, +0.5 or 00.5"
    return None


def _open_brackets(text: str) -> str:
    stack: list[str] = []
    for piece in _PIECE.finditer(text):
        if piece[0] in ("{", "["):
            stack.append(piece[0])
        elif piece[0] in ("}", "]") and stack:
            stack.pop()
    return " ".join(stack) if len(stack) <= 12 else f"{len(stack)} brackets"


def _line_column(text: str, at: int) -> str:
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def _excerpt(hint: str | None, text: str, at: int) -> str:
    """The hint, and below it the line with a caret under the place."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    left, right = max(start, at - 50), min(end, at + 30)
    line = ("…" if left > start else "") + text[left:right] + ("…" if right < end else "")
    line = "".join(char if char.isprintable() else " " for char in line)
    caret = " " * (at - left + (left > start)) + "^"
    return f"{hint or 'see the mark'}\n    {line}\n    {caret}"


# ---------------------------------------------------------------- YAML


def _parse_yaml(text: str, name: str) -> Any:
    import yaml  # type: ignore[import-untyped,unused-ignore]

    try:
        _check_yaml_depth(yaml, text, name)
        return yaml.load(text, Loader=_yaml_loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        if "nesting depth" in problem:  # libyaml has a limit of its own, and looks ahead
            raise _too_deep(place, MAX_YAML_DEPTH) from None
        raise SpecError(
            f"this is not YAML: {problem}",
            place=place,
            hint=_excerpt(None, text, _offset(text, mark.line, mark.column)) if mark else None,
        ) from None


def _offset(text: str, line: int, column: int) -> int:
    return min(sum(len(one) + 1 for one in text.split("\n")[:line]) + column, len(text))


def _check_yaml_depth(yaml: Any, text: str, name: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.events.CollectionStartEvent):
            depth += 1
            if depth > MAX_YAML_DEPTH:
                place = f"{name}:{event.start_mark.line + 1}:{event.start_mark.column + 1}"
                raise _too_deep(place, MAX_YAML_DEPTH)
        elif isinstance(event, yaml.events.CollectionEndEvent):
            depth -= 1


_CORE = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)
"""Tag, pattern and first characters of the scalars of the YAML 1.2 core schema, and of merge keys."""
_NO_JSON = ("timestamp", "binary", "omap", "pairs", "set")
_TAG = "tag:yaml.org,2002:"


def _yaml_scalar(tag: str, text: str) -> Any:
    """The value of a scalar that matches its pattern in _CORE."""
    if tag == "null":
        return None
    if tag == "bool":
        return text[0] in "tT"
    if tag == "int":
        return int(text[2:], {"o": 8, "x": 16}[text[1]]) if text[:2] in ("0o", "0x") else int(text)
    return float(text.replace(".", "", 1)) if text[-1] in "fFnN" else float(text)


def _yaml_loader(yaml: Any) -> Any:
    """A safe loader of the YAML 1.2 core schema whose mappings have text keys, each once; own keys win over merged."""
    refused = yaml.constructor.ConstructorError

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, list[Any]] = {}

        def __init__(self, stream: Any) -> None:
            super().__init__(stream)
            self.flat: dict[int, bool] = {}  # of a mapping node, by id: whether it is done
            self.copied = 0

        def flatten_mapping(self, node: Any) -> None:
            """Put what ``<<`` names into the node, once; before own keys, as PyYAML does."""
            if not isinstance(node, yaml.nodes.MappingNode):
                raise refused(None, None, "this is tagged as a mapping and is none", node.start_mark)
            if id(node) in self.flat:
                if not self.flat[id(node)]:
                    raise refused(None, None, "this mapping is merged into itself", node.start_mark)
                return
            self.flat[id(node)] = False
            own: dict[str, Any] = {}
            sources: list[Any] = []
            for key, value in node.value:
                if not isinstance(key, yaml.nodes.ScalarNode):
                    raise refused(None, None, "a key is not text", key.start_mark)
                if key.value in own or key.tag == f"{_TAG}merge" and sources:
                    raise refused(None, None, f"the key {quote(key.value)} stands twice in one mapping", key.start_mark)
                if key.tag == f"{_TAG}merge":
                    sources = value.value if isinstance(value, yaml.nodes.SequenceNode) else [value]
                    continue
                own[key.value] = key, value
            if sources:
                pairs: dict[str, Any] = {}
                for source in reversed(sources):  # the first that has a key says its value
                    if not isinstance(source, yaml.nodes.MappingNode):
                        problem = "<< merges mappings, or a list of mappings"
                        raise refused(None, None, problem, source.start_mark)
                    self.flatten_mapping(source)
                    self.copied += len(source.value)
                    if self.copied > MAX_REPEATED:
                        problem = f"merged keys are more than {MAX_REPEATED:,}"
                        raise refused(None, None, problem, source.start_mark)
                    pairs.update((key.value, (key, value)) for key, value in source.value)
                node.value = list((pairs | own).values())
            self.flat[id(node)] = True

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            self.flatten_mapping(node)
            return {key.value: self.construct_object(value, deep=True) for key, value in node.value}

    def construct(loader: Any, node: Any) -> Iterator[dict[str, Any]]:
        out: dict[str, Any] = {}
        yield out
        out.update(loader.construct_mapping(node))

    def scalar(tag: str, pattern: re.Pattern[str]) -> Any:
        def build(loader: Any, node: Any) -> Any:
            text = loader.construct_scalar(node)
            if tag == "int" and _digits(text) > MAX_DIGITS:
                raise refused(None, None, f"this number is too long: {_digits(text):,} digits", node.start_mark)
            if not pattern.match(text):
                raise refused(None, None, f"{quote(text)} is no {tag}", node.start_mark)
            return _yaml_scalar(tag, text)

        return build

    def unknown(loader: Any, node: Any) -> Any:
        raise refused(None, None, f"JSON has no value of the kind !!{node.tag[len(_TAG) :]}", node.start_mark)

    Loader.add_constructor(f"{_TAG}map", construct)
    for tag, text, first in _CORE:
        pattern = re.compile(f"(?:{text})\\Z")
        Loader.add_implicit_resolver(f"{_TAG}{tag}", pattern, list(first))
        if tag != "merge":
            Loader.add_constructor(f"{_TAG}{tag}", scalar(tag, pattern))
    for tag in _NO_JSON:
        Loader.add_constructor(f"{_TAG}{tag}", unknown)
    return Loader


# ---------------------------------------------------------------- values


def check_response(schema: Any, name: str = "response") -> None:
    """Refuse what is no schema of a structured response.

    Raises:
        SpecError: at a place in ``name``.
    """
    check_value(schema, name)
    if not isinstance(schema, (dict, bool)):
        raise SpecError("the response is no schema", place=f"{name}#", expected="an object, true or false")


def check_value(document: Any, name: str) -> None:
    """SpecError unless the value is what JSON can say, nested at most MAX_DEPTH deep (so without a cycle).

    What stands at several places (an alias of YAML) is looked at once, and counted as often as it stands.
    """
    if _is_plainly_json(document):
        return
    size: dict[int, int] = {}  # of a container, by id: values in it
    height: dict[int, int] = {}
    path: list[tuple[Any, Iterator[tuple[str, Any]]]] = []
    keys: list[str] = []
    own = 0

    def place(*more: str) -> str:
        return f"{name}#" + "".join("/" + escape(one) for one in (*keys, *more))

    def enter(value: Any, key: str | None) -> None:
        """Check a value and go into it if it is a container not seen before."""
        nonlocal own
        at = () if key is None else (key,)
        if value is None:
            return
        if isinstance(value, int):
            if abs(value) >= _TOO_LONG:
                digits = int(value.bit_length() * math.log10(2)) + 1  # one too many at times
                raise SpecError("this number is too long", place=place(*at), found=f"{digits:,} digits")
            return
        if isinstance(value, str):
            if not _is_text(value):
                raise SpecError("a lone surrogate is no text", place=place(*at), found=ascii(value)[:40])
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise SpecError("JSON has no such number", place=place(*at), found=repr(value))
        elif isinstance(value, (dict, list)):
            if id(value) in size:
                return
            if key is not None:
                keys.append(key)
            if isinstance(value, dict):
                _check_keys(value, place())
            own += len(value)
            members = value.items() if isinstance(value, dict) else ((str(i), one) for i, one in enumerate(value))
            path.append((value, iter(members)))
            if len(path) > MAX_DEPTH:
                raise _too_deep(name)
        else:
            raise SpecError("JSON has no such value", place=place(*at), found=type(value).__name__)

    enter(document, None)
    while path:
        value, members = path[-1]
        depth = len(path)
        for key, one in members:
            enter(one, key)
            if len(path) > depth:
                break
        else:
            path.pop()
            if keys:
                keys.pop()
            inside = [id(one) for one in (value.values() if isinstance(value, dict) else value) if id(one) in size]
            size[id(value)] = len(value) + sum(size[one] for one in inside)
            height[id(value)] = 1 + max((height[one] for one in inside), default=0)
    if not isinstance(document, (dict, list)):
        return
    if height[id(document)] > MAX_DEPTH:
        raise _too_deep(name)
    count = size[id(document)] + 1
    if count > MAX_NODES or count - own > MAX_REPEATED:
        repeated = count - own > MAX_REPEATED
        raise SpecError(
            "the document is too large",
            place=name,
            found=f"{count:,} values" + (f", {own:,} of them written" if repeated else ""),
            expected=f"at most {MAX_REPEATED if repeated else MAX_NODES:,}"
            + (" that are repeated" if repeated else ""),
            hint="define what is repeated once and use $ref" if repeated else None,
        )


def _check_keys(value: dict[Any, Any], place: str) -> None:
    for key in value:
        if not isinstance(key, str):
            raise SpecError("a key is not text", place=place, found=repr(key)[:40], hint="write it between quotes")
        if not _is_text(key):
            raise SpecError("a lone surrogate is no text", place=place, found=f"the key {ascii(key)[:40]}")


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plainly_json(document: Any) -> bool:
    """Whether a value is surely what JSON can say, neither deep nor large; what is not is looked at place by place."""
    level, nodes = [document], 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                if not _TEXT.issuperset(map(type, value)) or not _is_text("".join(value)):
                    return False
            elif kind is str:
                if not _is_text(value):
                    return False
                continue
            elif kind is float:
                if not math.isfinite(value):
                    return False
                continue
            elif kind is int:
                if abs(value) >= _TOO_LONG:
                    return False
                continue
            elif kind is not list:
                if value is not None and kind is not bool:
                    return False
                continue
            nodes += len(value)
            if nodes > MAX_NODES // 20:
                return False
            below += value.values() if kind is dict else value
        if not below:
            return True
        level = below
    return False
