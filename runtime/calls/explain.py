"""Explain why a token is masked: how far it is read, what could stand there, and which keywords of the schema rule it.

    print(explain(bundle, '{"name": "current_weather", "arguments": {"place": "Basel", "units": "kel'))
    print(matcher.explain(token))

Leaves out   masks (host/matcher.py), reading (reader.py), what may come next (whole_text.py).
Invariants   a token is explained as masked exactly where `Matcher` refuses it. The tables hold no rules: the place in
             the value comes from the text, and its keywords from the bundle's keyword report, by the names on the way
             there. Where that way leads through a ``$ref``, its place is named: the report does not say its target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BundleError, DecodeError
from ..expected import did_you_mean, named_kind
from ..format.keyword_report import unpack
from ..format.tables import ARGUMENTS, KEY, NAME, REASONING, STRING, TEXT, VALUE, tools_of
from ..reference import Configuration
from .reader import Reader, text_bytes
from .reader_records import Refusal
from .whole_text import expected

if TYPE_CHECKING:
    from ..format.bundle import Bundle


_REGIONS = {
    TEXT: "free text",
    REASONING: "reasoning",
    NAME: "the name of a tool",
    ARGUMENTS: "arguments",
    KEY: "a key of arguments",
    VALUE: "a value of arguments",
    STRING: "a string of arguments",
}
_SKIPPED = ("anyOf", "oneOf", "allOf", "prefixItems")
_BESIDE = ("then", "else", "if", "not")
_ANY = object()


@dataclass(frozen=True)
class Explanation:
    """Why a token may come next, or may not.

    Attributes:
        allowed: whether it may.
        shown: the token, or the text, as people read it.
        offset: bytes of text before the place where it is refused; -1 where the text before is not known.
        found: what stands there; empty where it is allowed.
        expected: what could stand there.
        region: in what kind of text that is, and of which tools.
        pointer: JSON pointer of the value that is being written, in the arguments or the response; None if not known.
        rules: places of the spec that rule this value, each with its keywords.
        reason: more than the tables of symbols say, as that only the budget forbids a token.
    """

    allowed: bool
    shown: str
    offset: int = -1
    found: str = ""
    expected: tuple[str, ...] = ()
    region: str = ""
    pointer: str | None = None
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        at = "" if self.offset < 0 else f" at byte {self.offset:,}"
        lines = [f"{self.shown} is allowed" if self.allowed else f"{self.shown} is masked{at}"]
        if self.region:
            lines[0] += f", in {self.region}"
        if self.pointer is not None:
            lines[0] += f", at {self.pointer or 'the root of the value'}"
        if self.reason:
            lines.append(self.reason)
        if self.found:
            lines.append(f"found {self.found}, expected {' or '.join(self.expected) or 'nothing'}")
        lines += [f"{place}: {', '.join(keywords)}" for place, keywords in self.rules]
        return "\n  ".join(lines)


def explain(bundle: Bundle, text: str | bytes | Iterable[int], entry: str = "start") -> Explanation:
    """Why a text, or its last tokens, cannot stand under a bundle: at the first place that is refused.

    Args:
        text: a text, which may go on, or the ids of its tokens.
        entry: where it begins.

    Raises:
        DecodeError: there is no such entry or token.
    """
    reader = Reader(bundle, entry)
    reader.be_exact()
    tokens = None if isinstance(text, (str, bytes)) else list(text)
    data = text_bytes(text) if isinstance(text, (str, bytes)) else b""
    shown = "the text"
    try:
        if tokens is None:
            reader.feed_text(data)
            reader.read_held()
        for token in tokens or ():
            known = 0 <= token < bundle.vocab.size if isinstance(token, int) else False
            shown = f"token {token}, {bundle.vocab.shown(token)}," if known else f"token {token}"
            reader.feed(token)
    except Refusal as error:
        found, wanted = str(error.found), (error.wanted,) if error.wanted else tuple(expected(bundle, error.at))
        if tokens is None and error.offset < len(data):
            found = repr(data[error.offset :].decode(errors="replace")[0])
        return _explanation(reader, shown, error.offset, found, wanted)
    return _explanation(reader, shown if tokens is None else "the sequence", len(reader.data), "", ())


def explain_token(here: Configuration, token: int | str, allowed: bool, left: int | None) -> Explanation:
    """Why a token is masked where a matcher stands, whose text is not known.

    Args:
        token: its id, or its text.
        allowed: whether the mask of the matcher has it.
        left: the tokens that the budget leaves, if there is one.
    """
    bundle = here.bundle
    number = token_id(bundle, token)
    shown, region = f"token {number}, {bundle.vocab.shown(number)},", _region_of(here)
    if allowed:
        return Explanation(True, shown.rstrip(","), region=region)
    t, mode, at = bundle.tables, here.mode, here.copy()
    special = dict(zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True))
    data = bundle.vocab.token(number)
    symbols: Sequence[int] = [special[number]] if number in special else data
    if not symbols:
        return Explanation(
            False, shown, reason="it stands for no text, and the bundle reads no such token", region=region
        )
    for count, symbol in enumerate(symbols):
        op = at.op(symbol)
        if not op or at.overflows(op):
            found = bundle.vocab.shown(number) if number in special else repr(data[count:].decode(errors="replace")[0])
            reason = f"its first {count} bytes could stand here" if count else ""
            return Explanation(False, shown, -1, found, tuple(expected(bundle, at)), region, reason=reason)
        at.step(op, mode)
    budget = "the budget" if left is None else f"the budget, which leaves {left} tokens,"
    return Explanation(False, shown, region=region, reason=f"only {budget} forbids it: the text could not end in time")


def token_id(bundle: Bundle, token: int | str) -> int:
    """The id of a token that is given by its id or its text.

    Raises:
        DecodeError: there is none.
    """
    if isinstance(token, (int, np.integer)) and not isinstance(token, bool):
        if 0 <= token < bundle.vocab.size:
            return int(token)
        raise DecodeError("no such token", found=str(token), expected=f"0 to {bundle.vocab.size - 1}")
    if not isinstance(token, str):
        raise DecodeError("a token is no integer", found=named_kind(token), expected="the id of a token, or its text")
    special = bundle.vocab.meta["special"]
    if token in special:
        return int(special[token])
    data = token.encode(errors="surrogatepass")
    found = next((n for n in range(bundle.vocab.size) if bundle.vocab.token(n) == data), None)
    if found is None:
        hint = did_you_mean(token, special) or "explain(bundle, text) explains whole texts"
        raise DecodeError("the tokenizer has no token of this text", found=repr(token)[:80], hint=hint)
    return found


def _region_of(here: Configuration) -> str:
    """The region that a state's mark tells."""
    t, bundle = here.bundle.tables, here.bundle
    if here.state <= 1:
        return ""
    kind, _, tools, _, _ = t.mark[int(t.state_mark[here.state])].tolist()
    known = _REGIONS.get(kind, "")
    names = [str(tool["name"]) for tool in tools_of(bundle.meta)]
    members = t.tool_members[t.tool_offset[tools] : t.tool_offset[tools + 1]].tolist() if tools >= 0 else []
    return known + (f" of {_listed([names[n] for n in members])}" if known and 0 < len(members) < len(names) else "")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _explanation(reader: Reader, shown: str, offset: int, found: str, wanted: tuple[str, ...]) -> Explanation:
    bundle = reader.bundle
    region, base, text, path = _place(reader)
    pointer: str | None = None
    rules: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if text is not None:
        path = [*path, *open_path(text)]
        pointer = "".join("/" + str(one).replace("~", "~0").replace("/", "~1") for one in path)
        rules = _rules(bundle, base, path)
    return Explanation(not found, shown, offset, found, wanted, region, pointer, rules)


def _place(reader: Reader) -> tuple[str, str, bytes | None, list[str | int]]:
    """The region where a reader stands; the place of its schema in the spec; the JSON that is being written there, and
    the way to it."""
    bundle, held = reader.bundle, reader.open
    spec = bundle.meta.get("spec") or {}
    name = spec.get("name", "")
    if held is None:
        if reader.writes_json:
            return "the value", f"{name}#", bytes(reader.data), []
        return _region_of(reader.here), "", None, []
    tools = tools_of(bundle.meta)
    if held.tool < 0:
        return _region_of(reader.here), "", None, []
    tool = tools[held.tool]
    region, base = f"a call of {tool['name']}", f"{name}#{tool.get('pointer', '')}"
    if held.arguments < 0:
        return region, "", None, []
    region = f"the arguments of {tool['name']}"
    if reader.encoding in ("json", "bare"):
        return region, base, bytes(reader.data[held.arguments :]), []
    kind = int(bundle.tables.mark[int(bundle.tables.state_mark[reader.here.state])][0])
    if held.key is not None:
        return region, base, b"", [held.key]
    if held.parts and kind in (VALUE, STRING):  # it is whole, and what ends it is still to come
        return region, base, b"", [held.parts[-1].key]
    return region, base, b"", []


def open_path(text: bytes) -> list[str | int]:
    """The way to the value that is being written at the end of the beginning of a JSON text: keys and numbers of items.

    Of a key that is being written, and between two values, it is that of the object or array around it.
    """
    frames: list[list[Any]] = []  # [is an object, key or number, whether a value is due or begun]
    at, size = 0, len(text)
    while at < size:
        byte = text[at : at + 1]
        if byte == b'"':
            end = at + 1
            while end < size and text[end : end + 1] != b'"':
                end += 2 if text[end : end + 1] == b"\\" else 1
            if frames and frames[-1][0] and not frames[-1][2]:
                frames[-1][1] = text[at + 1 : end].decode(errors="replace") if end < size else None
            elif end < size and frames:
                frames[-1][2] = False
            at = end + 1
            continue
        if byte in (b"{", b"["):
            frames.append([byte == b"{", None if byte == b"{" else 0, byte == b"["])
        elif byte in (b"}", b"]"):
            if frames:
                frames.pop()
            if frames:
                frames[-1][2] = False
        elif byte == b":" and frames and frames[-1][0]:
            frames[-1][2] = True
        elif byte == b"," and frames:
            frames[-1][1:] = [None, False] if frames[-1][0] else [frames[-1][1] + 1, True]
        at += 1
    return [key for _, key, due in frames if due and key is not None]


def _rules(bundle: Bundle, base: str, path: list[str | int]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The places of the keyword report whose schemas a value at this path has to meet, with their keywords."""
    try:
        rows = unpack(bundle.meta.get("report") or [[], []])
    except BundleError:  # an older or damaged report explains nothing, and is no reason to refuse
        return ()
    found: dict[str, list[str]] = {}
    for place, keyword, status, _ in rows:
        if status != "enforced" or not place.startswith(base):
            continue
        way = _way(place[len(base) :])
        if way is None:
            continue
        whole = len(way) == len(path) and all(one is _ANY or one == step for one, step in zip(way, path))
        led = keyword == "$ref" and len(way) < len(path) and all(one is _ANY or one == s for one, s in zip(way, path))
        if whole or led:
            found.setdefault(place, []).append(keyword)
    return tuple((place, tuple(keywords)) for place, keywords in found.items())


def _way(rest: str) -> list[Any] | None:
    """The way in a value that the rest of a schema's place stands for; None where it stands for none."""
    steps = [one.replace("~1", "/").replace("~0", "~") for one in rest.split("/")[1:]]
    way: list[Any] = []
    at = 0
    while at < len(steps):
        step, following = steps[at], steps[at + 1] if at + 1 < len(steps) else ""
        at += 1
        if step in ("properties", "patternProperties", "dependentSchemas", *_SKIPPED):
            at += 1
            if step == "properties":
                way.append(following)
            elif step == "patternProperties":
                way.append(_ANY)
            elif step == "prefixItems":
                way.append(int(following) if following.isdecimal() else _ANY)
        elif step == "items" and following.isdecimal():
            at += 1
            way.append(int(following))
        elif step in ("items", "additionalItems", "contains", "additionalProperties", "unevaluatedProperties"):
            way.append(_ANY)
        elif step not in _BESIDE:
            return None
    return way
