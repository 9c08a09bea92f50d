"""Check what a bundle says about itself, so that whoever reads it may take every type for granted.

Leaves out   the numbers that tables depend on (checks.py), the limits of a container (container.py), the keyword
             report (compiler/schema/report.py).
Invariants   after `check_meta_of` every field is known and of its type; entries and `ends` name states and tools; the
             fields of tools and of `arguments` that reading back and writing use have the form that arguments.py and
             elements.py define. Reading a part always consumes some text, so reading terminates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import BundleError
from .container import UNSOUND, refuse
from .ops import FINISHED

_TEXT = (str, type(None))
FIELDS: dict[str, tuple[type, ...]] = {
    "format": (int,),
    "compiler": (str,),
    "recipe": (str,),
    "vocab_digest": (str,),
    "vocab_size": (int,),
    "vocab_source": _TEXT,
    "soft_depth": (int,),
    "capacity": (int,),
    "max_chain": (int,),
    "stack_symbols": (int,),
    "modes": (int,),
    "entry": (dict,),
    "protocol": _TEXT,
    "delimiters": (dict,),
    "separable": (bool,),
    "subset": (list,),
    "ends": (list,),
    "arguments": (dict,),
    "spec": (dict,),
    "options": (dict,),
    "restrictions": (list,),
    "many_keys": (list,),
    "keywords": (list, dict),
    "report": (list,),
    "dropped": (list,),
    "counts": (dict,),
}
"""Every field that a bundle may have; those that it must have are asked for where they are used."""
SKIPPED = {"tool", "error", "message", "place", "found", "expected", "hint"}
"""What a bundle says of a tool that was left out."""
_TEXT_ONLY = frozenset((str,))
_INT_ONLY = frozenset((int,))
MOST_INDENT = 64
"""Blanks by which a bracket indents what stands in it."""

_UNION_KEYS = frozenset(("tag", "also", "members", "rest", "items"))


def check_meta_of(name: str, meta: dict[str, Any], states: int, checked_spec: dict[str, Any] | None = None) -> None:
    """Refuse a bundle's meta that anything could stumble over.

    Args:
        name: the bundle, as errors call it.
        meta: its meta, of plain data.
        states: how many states its tables have.
        checked_spec: a spec that was checked before: it is not again.

    Raises:
        BundleError: naming the field.
    """
    for key, value in meta.items():
        kinds = FIELDS.get(key)
        if kinds is None:
            raise _wrong(name, key, "a field", "none of that name")
        if type(value) not in kinds:
            raise _wrong(name, key, type(value).__name__, " or ".join(kind.__name__ for kind in kinds))
    _check_entries(name, meta.get("entry"), states)
    spec: dict[str, Any] = meta.get("spec", {})
    tools = len(spec.get("tools", [])) if spec is checked_spec else _check_spec(name, spec)
    _check_texts(name, "subset", meta.get("subset", []))
    _check_ends(name, meta.get("ends", []), states, tools)
    for key in ("restrictions", "many_keys", "dropped"):
        _check_texts(name, key, meta.get(key, []))
    for token in meta.get("delimiters", {}).values():
        if token is not None and type(token) is not int:
            raise _wrong(name, "delimiters", repr(token)[:80], "ids of tokens, or none")
    _check_arguments(name, meta.get("arguments", {}))


def _wrong(name: str, field: str, found: object, expected: str) -> BundleError:
    return refuse(name, f"meta/{field}", found, expected, UNSOUND)


def _check_texts(name: str, field: str, values: Iterable[object]) -> None:
    if not _TEXT_ONLY.issuperset(map(type, values)):
        found = next(value for value in values if type(value) is not str)
        raise _wrong(name, field, repr(found)[:80], "texts")


def _check_entries(name: str, entries: dict[str, Any] | None, states: int) -> None:
    if not entries:
        raise _wrong(name, "entry", "nothing" if entries is None else "none", "at least one entry")
    found = entries.values()
    if not _INT_ONLY.issuperset(map(type, found)) or min(found) <= FINISHED or max(found) >= states:
        key, state = next(
            (key, state) for key, state in entries.items() if type(state) is not int or not FINISHED < state < states
        )
        raise _wrong(name, f"entry/{key}", repr(state)[:80], f"2 to {states - 1}")


def _check_ends(name: str, ends: list[Any], states: int, tools: int) -> None:
    for one in ends:
        state, whole = one if isinstance(one, list) and len(one) == 2 else (None, None)
        sound = type(state) is int and 0 <= state < states and isinstance(whole, list)
        if not sound or not all(type(tool) is int and 0 <= tool < tools for tool in whole or ()):
            raise _wrong(name, "ends", repr(one)[:80], "a state, and tools of the spec")


def _check_spec(name: str, spec: dict[str, Any]) -> int:
    """How many tools there are."""
    tools = spec.get("tools", [])
    if type(tools) is not list:
        raise _wrong(name, "spec/tools", type(tools).__name__, "list")
    for key in ("kind", "name", "digest", "begins", "answer"):
        if type(spec.get(key, "")) is not str:
            raise _wrong(name, f"spec/{key}", type(spec[key]).__name__, "str")
    unwritable = spec.get("unwritable", [])
    if type(unwritable) is not list or not all(map(_is_unwritable, unwritable)):
        raise _wrong(name, "spec/unwritable", repr(unwritable)[:80], "places, keywords and reasons")
    skipped = spec.get("skipped", [])
    if type(skipped) is not list or not all(map(_is_skipped, skipped)):
        raise _wrong(name, "spec/skipped", repr(skipped)[:80], "tools and the errors that left them out")
    for number, tool in enumerate(tools):
        place = f"spec/tools/{number}"
        if type(tool) is not dict:
            raise _wrong(name, place, type(tool).__name__, "dict")
        if type(tool.get("name")) is not str:
            raise _wrong(name, f"{place}/name", type(tool.get("name")).__name__, "str")
        for key, check in _OF_TOOL.items():
            if key in tool and not check(tool[key]):
                raise _wrong(name, f"{place}/{key}", repr(tool[key])[:80], _FORMS[key])
    return len(tools)


def _is_unwritable(value: object) -> bool:
    """A part of a schema that no text has: its place, the keywords that keep texts from it, and why."""
    if type(value) is not dict or value.keys() != {"pointer", "keywords", "why"}:
        return False
    return type(value["pointer"]) is str and type(value["why"]) is str and _are_texts(value["keywords"])


def _is_skipped(value: object) -> bool:
    """A tool that was left out, and why: the fields of an error."""
    if type(value) is not dict or value.keys() != SKIPPED:
        return False
    return all(type(one) is str or one is None for one in value.values()) and type(value["tool"]) is str


def _are_texts(value: object, length: int | None = None) -> bool:
    return type(value) is list and _TEXT_ONLY.issuperset(map(type, value)) and length in (None, len(value))


def _are_types(value: object) -> bool:
    """Types of a value: None for any, or their names."""
    return value is None or _are_texts(value)


def _are_parameters(value: object) -> bool:
    if type(value) is not list:
        return False
    return all(type(one) is list and len(one) == 2 and type(one[0]) is str and _are_types(one[1]) for one in value)


def _is_request(value: object) -> bool:
    if type(value) is not list or len(value) != 3 or not _are_texts(value[:2]) or type(value[2]) is not list:
        return False
    return all(_are_texts(one, 3) for one in value[2])


def _are_elements(value: object) -> bool:
    if type(value) is not list:
        return False
    nodes = range(-1, len(value))

    def are_nodes(numbers: Iterable[Any]) -> bool:
        return all(type(number) is int and number in nodes for number in numbers)

    for node in value:
        if type(node) is not list or len(node) not in (5, 6):
            return False
        types, members, first, rest, empty = node[:5]
        if not _are_types(types) or type(members) is not dict or type(first) is not list or type(empty) is not str:
            return False
        if not are_nodes((*members.values(), *first, rest)):
            return False
        if len(node) == 6 and (type(node[5]) is not list or [*map(type, node[5])] != [int, int]):
            return False
    return True


def _is_input(value: object) -> bool:
    return value in ("text", "member")


def _are_unions(value: object) -> bool:
    """Nodes that say where discriminators name the branches of unions (../calls/branches.py)."""
    if (
        type(value) is not list
        or not value
        or not all(type(node) is dict and node.keys() <= _UNION_KEYS for node in value)
    ):
        return False

    def is_node(number: object, least: int = 0) -> bool:
        return type(number) is int and least <= number < len(value)

    for node in value:
        tag, also, members = node.get("tag", ["", []]), node.get("also", []), node.get("members", {})
        if type(tag) is not list or len(tag) != 2 or type(tag[0]) is not str or type(tag[1]) is not list:
            return False
        for one in tag[1]:
            if type(one) is not list or len(one) != 3 or not _are_texts(one[:2]) or not is_node(one[2], -1):
                return False
        if type(also) is not list or not all(map(is_node, also)):
            return False
        if type(members) is not dict or not all(type(name) is str and is_node(n, -1) for name, n in members.items()):
            return False
        if not all(is_node(node[key]) for key in ("rest", "items") if key in node):
            return False
    return True


_OF_TOOL = {
    "parameters": _are_parameters,
    "request": _is_request,
    "elements": _are_elements,
    "input": _is_input,
    "unions": _are_unions,
}
_FORMS = {
    "parameters": "names with their types",
    "request": "a method, a path, and [argument, part, name] of every argument",
    "input": "text or member",
    "elements": "nodes as in runtime/calls/elements.py, which name nodes that there are",
    "unions": "nodes as in runtime/calls/branches.py, which name nodes that there are",
}


def _check_arguments(name: str, how: dict[str, Any]) -> None:
    if not how:
        return
    encoding = how.get("encoding")
    if type(encoding) is not str:
        raise _wrong(name, "arguments/encoding", type(encoding).__name__, "str")
    constants = how.get("constants", {})
    if type(constants) is not dict or any(value not in (None, True, False) for value in constants.values()):
        raise _wrong(name, "arguments/constants", repr(constants)[:80], "spellings of null, true and false")
    quote = how.get("quote", [] if encoding == "bare" else None)
    if quote is not None and not (_are_texts(quote) and quote and quote[0]):
        raise _wrong(name, "arguments/quote", repr(quote)[:80], "what is around a text")
    indent = how.get("indent", 1)
    if type(indent) is not int or not 1 <= indent <= MOST_INDENT:
        raise _wrong(name, "arguments/indent", repr(indent)[:80], f"1 to {MOST_INDENT} blanks")
    parts = how.get("parts", [] if encoding == "elements" else None)
    if parts is None:
        return
    if type(parts) is not list or not parts:
        raise _wrong(name, "arguments/parts", repr(parts)[:80], "the parts that there are")
    for one in parts:
        if not _are_texts(one, 6) or one[0] not in ("parameter", "item") or not "".join(one[2:5]):
            raise _wrong(name, "arguments/parts", repr(one)[:80], "six texts, of which some begin or end a part")
    kinds = {(of, kind) for of, kind, *_ in parts}
    for of in ("parameter", "item"):
        if (of, "") not in kinds and not kinds.issuperset((of, kind) for kind in ("text", "array", "object", "other")):
            raise _wrong(name, "arguments/parts", sorted(kinds), f"every kind of {of}")
