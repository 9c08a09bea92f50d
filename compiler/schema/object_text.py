"""Objects as Lark text: declared members in order, then undeclared ones.

Leaves out   which members there may be (machine.py), the text of values (writer.py).
Invariants   the text is linear in the shape, or in the states of its automaton; no declared key is matched as an
             undeclared one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import strings
from .atoms import Conj, both
from .machine import Machine, Named, Open, Payload, Run, object_is_plain
from .patterns import content
from .scalar_text import INLINE, bracketed, grouped, repeated, string_tail
from .shapes import Constants, Objects, OpenKeys, Strings
from .state_text import state_text

if TYPE_CHECKING:
    from .writer import LarkWriter


def object_text(writer: LarkWriter, shape: Objects, hint: str) -> str:
    """An object."""
    if writer.options.key_order == "any" and len(shape.named) > 0:
        return _by_states(writer, shape, hint, writer.normaliser.any_order_machine(shape, writer.places.get(hint)))
    if not object_is_plain(shape):
        machine = writer.normaliser.object_machine(shape)
        assert machine is not None, "a shape that does not live is not written"
        if len(shape.named) + len(shape.opened) > 1:
            writer.restrictions.add("key-order")
        return _by_states(writer, shape, hint, machine)
    required = set(shape.required)
    members: list[tuple[str, bool]] = []
    for name, value in shape.named:
        if writer.normaliser.alive(value):
            assert value is not None
            members.append((f"{strings.quoted(name)} _k {writer.value(value, name)}", name in required))
    more = _open(writer, shape, hint)
    if len(members) + bool(more) > 1:
        writer.restrictions.add("key-order")
    if members:
        writer.restrictions.add("minimal-escapes")
    inside = _sequence(writer, members, more, hint)
    if not inside:
        return bracketed(writer, "{", [], "}")
    if not required and not shape.low:
        return f'"{{" {writer.blank}({grouped(inside, writer.gap)}{" _w" if writer.gap else ""})? "}}"'
    inside = inside if required else grouped(inside, True)
    return f'"{{" {writer.blank}{inside} {writer.blank}"}}"'


def _open(writer: LarkWriter, shape: Objects, hint: str) -> str:
    """One member whose key is not declared, or nothing."""
    options: list[str] = []
    for one in shape.opened:
        if writer.normaliser.alive(one.value):
            member = _open_member(writer, shape, one, 0, one.value, hint)
            if member:
                options.append(member)
    if len(options) > 1:
        return writer.rule(" | ".join(options), hint if hint.endswith("_more") else f"{hint}_more", None)
    return options[0] if options else ""


def _open_member(writer: LarkWriter, shape: Objects, one: OpenKeys, needs: int, value: Conj, hint: str) -> str:
    """One member whose key is of a class, is not declared, and meets some needs (bits)."""
    key, names = shape.key, {name: None for name, _ in shape.named}
    matched, unmatched = list(one.matched), list(one.unmatched)
    for bit, need in enumerate(shape.needs):
        if needs >> bit & 1:
            key = both(key, need.key)
            names.update(dict.fromkeys(need.names))
            for match in need.patterns:
                (matched if match.positive else unmatched).append(match)
    declared = "|".join(strings.regex_of(strings.spelled(name)) for name in names)
    never = [f'(?:{declared})"'] if names else []
    never += [content(match.pattern, match.place, True) for match in dict.fromkeys(unmatched)]
    ahead = f"(?!{'|'.join(never)})" if never else ""
    wanted = list(dict.fromkeys(matched))
    last = strings.PLAIN_TAIL
    if wanted and not key:
        last = content(wanted[0].pattern, wanted[0].place)
        del wanted[0]
    heads = [f"(?={content(match.pattern, match.place, True)})" for match in wanted]
    assert value is not None
    tails: list[str] = []
    if not key:
        tails.append("".join(heads) + last)
    else:
        for option in writer.normaliser.shapes(key).get("string", ()) if key is not None else ():
            if isinstance(option, Constants):
                texts = "|".join(strings.regex_of(strings.spelled(one.value)) for one in option.values)
                tails.append("".join(heads) + f'(?:{texts})"')
            else:
                assert isinstance(option, Strings)
                more, last = string_tail(writer, option)
                tails.append("".join(heads + more) + last)
    if not tails:
        return ""
    writer.restrictions.update(("open-keys", "minimal-escapes"))
    regex = f'"{ahead}{tails[0]}' if len(tails) == 1 else f'"{ahead}(?:{"|".join(tails)})'
    terminal = writer.terminal(regex, f"{hint}_key" if len(regex) > len(strings.PLAIN_TAIL) + 1 else "KEY")
    return f"{terminal} _k {writer.value(value, hint if hint.endswith('_more') else f'{hint}_more')}"


def _sequence(writer: LarkWriter, members: list[tuple[str, bool]], more: str, hint: str) -> str:
    """Members in order, at least one of them, each but the required ones optional; then any number of ``more``."""
    pivot = next((index for index, (_, needed) in enumerate(members) if needed), None)
    if pivot is None:
        texts = [text for text, _ in members]
        if more:
            texts.append(f"{more} (_c {more})*" if len(more) <= INLINE else _list_of(writer, more, hint))
        return _choose(writer, texts, hint) if texts else ""
    parts = [f"({text} _c)?" for text, _ in members[:pivot]]
    parts.append(members[pivot][0])
    parts += [f"_c {text}" if needed else f"(_c {text})?" for text, needed in members[pivot + 1 :]]
    if more:
        parts.append(f"(_c {more})*")
    return " ".join(parts)


def _list_of(writer: LarkWriter, more: str, hint: str) -> str:
    one = writer.rule(more, f"{hint}_open", None)
    return f"{one} (_c {one})*"


def _choose(writer: LarkWriter, texts: list[str], hint: str) -> str:
    """Some of the texts in order, at least one: linear by halving."""
    if len(texts) == 1:
        return texts[0]
    middle = (len(texts) + 1) // 2
    left, right = _choose(writer, texts[:middle], hint), _choose(writer, texts[middle:], hint)
    if len(right) > INLINE:
        right = writer.rule(right, f"{hint}_part", None)
    first = f"({left})" if " | " in left else left
    second = f"({right})" if " | " in right else right
    return f"{first} (_c {second})? | {right}"


def _by_states(writer: LarkWriter, shape: Objects, hint: str, machine: Machine) -> str:
    """An object as rules, one for each state of its automaton."""
    if shape.named:
        writer.restrictions.add("minimal-escapes")

    def text(payload: Payload, started: bool) -> str:
        if payload is None:
            return ""
        comma = "_c " if started else ""
        if isinstance(payload, Named):
            assert payload.value is not None
            return f"{comma}{strings.quoted(payload.name)} _k {writer.value(payload.value, payload.name)}"
        if isinstance(payload, Open):
            one = _open_member(writer, shape, shape.opened[payload.index], payload.needs, payload.value, hint)
            return f"{comma}{one}"
        assert isinstance(payload, Run)
        more = _open(writer, shape, hint)
        if len(more) > 12:
            more = writer.rule(more, f"{hint}_open", None)
        if started:
            return repeated(f"(_c {more})", payload.low, payload.high)
        high = None if payload.high is None else payload.high - 1
        return f"{more} {repeated(f'(_c {more})', max(payload.low - 1, 0), high)}".rstrip()

    return f'"{{" {writer.blank}{state_text(writer, machine, text, hint)} "}}"'
