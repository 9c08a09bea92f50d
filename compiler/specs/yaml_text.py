"""YAML text → the value of JSON that it stands for.

Leaves out   JSON text, of which errors show the place alike (json_text.py); what JSON cannot say though YAML can, such
             as numbers that are none (json_values.py).
Invariants   keys are text, each once in a mapping; own keys win over merged ones; it nests at most MAX_YAML_DEPTH deep.
Source       YAML 1.2 core schema: no dates, no ``yes``/``no``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..errors import SpecError
from .exact_numbers import MAX_DIGITS, TooLong, read_number
from .json_text import digits, excerpt
from .json_values import MAX_REPEATED, too_deep
from .model import quote

MAX_YAML_DEPTH = 125  # composing YAML recurses several frames a level


def parse_yaml(text: str, name: str) -> Any:
    import yaml  # type: ignore[import-untyped,unused-ignore]

    try:
        _check_yaml_depth(yaml, text, name)
        return yaml.load(text, Loader=_yaml_loader(yaml))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        if "nesting depth" in problem:  # libyaml has a limit of its own, and looks ahead
            raise too_deep(place, MAX_YAML_DEPTH) from None
        raise SpecError(
            f"this is not YAML: {problem}",
            place=place,
            hint=excerpt(None, text, _offset(text, mark.line, mark.column)) if mark else None,
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
                raise too_deep(place, MAX_YAML_DEPTH)
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
    return float(text.replace(".", "", 1)) if text[-1] in "fFnN" else read_number(text)


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
            if tag == "int" and digits(text) > MAX_DIGITS:
                raise refused(None, None, f"this number is too long: {digits(text):,} digits", node.start_mark)
            if not pattern.match(text):
                raise refused(None, None, f"{quote(text)} is no {tag}", node.start_mark)
            try:
                return _yaml_scalar(tag, text)
            except TooLong:
                problem = f"this number is too long: {text[:40]}; expected {TooLong.expected}"
                raise refused(None, None, problem, node.start_mark) from None

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
