"""Objects as Lark text: declared members in order, then undeclared ones.

Leaves out   which members there may be (member_automata.py), the text of values (writer.py).
Invariants   the text is linear in the shape, or in the states of its automaton; no declared key is matched as an
             undeclared one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from ..regex import Look, Regex, concat, size, union
from . import strings
from .atoms import Conj, Matches, both
from .encoding import Quote
from .member_automata import Machine, Named, Open, Payload, Run, object_is_plain
from .patterns import content, searcher
from .quoted_text import raw_key
from .required_unions import separated
from .rules import INLINE, Rules
from .scalar_text import bracketed, grouped, key_text, string_tail
from .shapes import Constants, Objects, OpenKeys, Shape, Strings
from .state_text import state_text
from .strings import repeated

_SIZE_OF_ANY_KEY = size(concat(strings.QUOTE, strings.PLAIN_TAIL))
"""Keys whose expressions are no larger have a short name."""


@dataclass(frozen=True)
class Members:
    """How members stand beside each other.

    Attributes:
        comma: Lark text between two of them.
        blank: what may stand before the end.
        named: (writer, key, value) → a member whose key is declared.
        opened: (writer, key as Lark text, value, hint) → one whose key is not.
        keys: the ways of writing an undeclared key; none: as a string of JSON, with its quotes.
    """

    comma: str
    blank: str
    named: Callable[[Rules, str, Conj], str]
    opened: Callable[[Rules, str, Conj, str], str]
    keys: tuple[Quote, ...]


def object_text(writer: Rules, shape: Objects, hint: str) -> str:
    """An object."""
    if len(apart := _apart(writer, shape)) > 1:
        return f"({' | '.join(object_text(writer, one, hint) for one in apart)})"
    bare, quotes = writer.encoding.bare_key, writer.encoding.quotes
    members = Members(writer.gaps.comma, writer.blank.strip(), _named, _opened, quotes if bare is None else (bare,))
    machine = _machine(writer, shape, hint)
    if machine is not None:
        return f'"{{" {writer.blank}{_by_states(writer, shape, members, hint, machine)} "}}"'
    inside, may_be_empty = _plain(writer, shape, members, hint)
    if not inside:
        return bracketed(writer, "{", [], "}")
    if may_be_empty:
        return f'"{{" {writer.blank}({inside}{f" {writer.gaps.inside}" if writer.gap else ""})? "}}"'
    return f'"{{" {writer.blank}{inside} {writer.blank}"}}"'


def members_text(writer: Rules, shape: Objects, members: Members, hint: str) -> str:
    """The members of an object with nothing around them, fit to be an alternative."""
    if len(apart := _apart(writer, shape)) > 1:
        return f"({' | '.join(members_text(writer, one, members, hint) for one in apart)})"
    machine = _machine(writer, shape, hint)
    if machine is not None:
        return _by_states(writer, shape, members, hint, machine)
    inside, may_be_empty = _plain(writer, shape, members, hint)
    return f"({inside})?" if inside and may_be_empty else inside


def _apart(writer: Rules, shape: Objects) -> list[Objects]:
    """The objects to write: where keys may be in another order, too, that is said of those that are a list."""
    if not writer.encoding.sorted_too:
        return [shape]
    return [one for one in separated(shape) if writer.normaliser.lives(one)]


def _named(writer: Rules, name: str, value: Conj) -> str:
    assert value is not None
    return f"{key_text(writer, name, writer.encoding.bare_key)} {writer.gaps.colon} {writer.value(value, name)}"


def _opened(writer: Rules, key: str, value: Conj, hint: str) -> str:
    assert value is not None
    return f"{grouped(key, True)} {writer.gaps.colon} {writer.value(value, hint)}"


def _plain(writer: Rules, shape: Objects, members: Members, hint: str) -> tuple[str, bool]:
    """The members of a plain shape, and whether there may be none; no members where there can be none but that."""
    required = set(shape.required)
    texts: list[tuple[str, bool]] = []
    alive: list[str] = []
    for name, value in shape.named:
        if writer.normaliser.alive(value):
            alive.append(name)
            texts.append((members.named(writer, name, value), name in required))
    more = _open(writer, shape, members, hint)
    if len(texts) + bool(more) > 1:
        writer.restrictions.add("key-order")
    if texts:
        writer.restrictions.add("minimal-escapes")
    comma = members.comma + " " if members.comma else ""
    inside = sequence(writer, texts, more, comma, hint)
    if writer.encoding.sorted_too:
        order = sorted(range(len(texts)), key=lambda n: alive[n].lower())
        if order != list(range(len(texts))):
            other = sequence(writer, [texts[n] for n in order], more, comma, hint)
            inside = f"({inside} | {other})"
    may_be_empty = not required and not shape.low
    return inside or ("" if may_be_empty else writer.nothing()), may_be_empty


def _open(writer: Rules, shape: Objects, members: Members, hint: str) -> str:
    """One member whose key is not declared, or nothing."""
    options: list[str] = []
    for one in shape.opened:
        if writer.normaliser.alive(one.value):
            member = _open_member(writer, shape, one, members, 0, one.value, hint)
            if member:
                options.append(member)
    if len(options) > 1:
        return writer.rule(" | ".join(options), hint if hint.endswith("_more") else f"{hint}_more", None)
    return options[0] if options else ""


def _open_member(
    writer: Rules, shape: Objects, one: OpenKeys, members: Members, needs: int, value: Conj, hint: str
) -> str:
    """One member whose key is of a class, is not declared, and meets some needs (bits); empty where no key can be
    written."""
    key, names = shape.key, {name: None for name, _ in shape.named}
    matched, unmatched = list(one.matched), list(one.unmatched)
    for bit, need in enumerate(shape.needs):
        if needs >> bit & 1:
            key = both(key, need.key)
            names.update(dict.fromkeys(need.names))
            for match in need.patterns:
                (matched if match.positive else unmatched).append(match)
    stem = hint if hint.endswith("_more") else f"{hint}_more"
    if members.keys:
        matches = (*(replace(m, positive=True) for m in matched), *(replace(m, positive=False) for m in unmatched))
        found = _quoted_key(writer, members.keys, key, tuple(dict.fromkeys(matches)), tuple(names), hint)
        writer.restrictions.add("open-keys")
        return members.opened(writer, found, value, stem) if found else ""
    never = [strings.tails(names)] if names else []
    never += [content(match.pattern, match.place, True) for match in dict.fromkeys(unmatched)]
    ahead = [Look(union(*never), negative=True)] if never else []
    wanted = list(dict.fromkeys(matched))
    last = strings.PLAIN_TAIL
    if wanted and not key:
        last = content(wanted[0].pattern, wanted[0].place)
        del wanted[0]
    heads: list[Regex] = [Look(content(match.pattern, match.place, True)) for match in wanted]
    tails: list[Regex] = []
    if not key:
        tails.append(concat(*heads, last))
    else:
        for option in writer.normaliser.shapes(key).get("string", ()) if key is not None else ():
            if isinstance(option, Constants):
                tails.append(concat(*heads, strings.tails(one.value for one in option.values)))
            else:
                assert isinstance(option, Strings)
                more, last = string_tail(writer, option)
                tails.append(concat(*heads, *more, last))
    if not tails:
        return ""
    writer.restrictions.update(("open-keys", "minimal-escapes"))
    regex = concat(strings.QUOTE, *ahead, union(*tails))
    terminal = writer.terminal(regex, f"{hint}_key" if size(regex) > _SIZE_OF_ANY_KEY else "KEY")
    return members.opened(writer, terminal, value, stem)


def _quoted_key(
    writer: Rules,
    quotes: tuple[Quote, ...],
    key: Conj,
    matches: tuple[Matches, ...],
    names: tuple[str, ...],
    hint: str,
) -> str | None:
    """An undeclared key between marks; None where there is none."""
    options: list[Strings | tuple[str, ...]] = []
    shapes: tuple[Shape, ...] = (Strings(),)
    if key:
        shapes = writer.normaliser.shapes(key).get("string", ())
    elif key is None:
        shapes = ()
    for shape in shapes:
        if isinstance(shape, Constants):
            texts = [one.value for one in shape.values if one.value not in names]
            options.append(tuple(text for text in texts if all(_found(m, text) == m.positive for m in matches)))
        else:
            assert isinstance(shape, Strings)
            options.append(replace(shape, patterns=shape.patterns + matches, excluded=shape.excluded + names))
    found = [raw_key(writer, quote, options, f"{hint}_key") for quote in quotes]
    return " | ".join(one for one in found if one) or None


def _found(match: Matches, text: str) -> bool:
    return searcher(match.pattern, match.place)(text)


def sequence(writer: Rules, members: list[tuple[str, bool]], more: str, comma: str, hint: str) -> str:
    """Members in order, at least one of them, each but the required ones optional; then any number of ``more``; fit to
    be followed by more."""
    pivot = next((index for index, (_, needed) in enumerate(members) if needed), None)
    if pivot is None:
        texts = [text for text, _ in members]
        if more:
            texts.append(f"{more} ({comma}{more})*" if len(more) <= INLINE else _list_of(writer, more, comma, hint))
        return _choose(writer, texts, comma, hint)
    parts = [f"({text} {comma}".rstrip() + ")?" for text, _ in members[:pivot]]
    parts.append(members[pivot][0])
    parts += [f"{comma}{text}" if needed else f"({comma}{text})?" for text, needed in members[pivot + 1 :]]
    if more:
        parts.append(f"({comma}{more})*")
    return " ".join(parts)


def _choose(writer: Rules, texts: list[str], comma: str, hint: str) -> str:
    """Some of the texts in order, at least one: from each on that one and perhaps some behind it, or only these."""
    if len(texts) < 2:
        return texts[0] if texts else ""
    rest = texts[-1]
    for text in texts[-2::-1]:
        if len(rest) > INLINE:
            rest = writer.rule(rest, f"{hint}_rest", None)
        behind = f"({rest})" if " | " in rest else rest
        rest = f"{text} ({comma}{behind})? | {rest}"
    return f"({rest})"


def _list_of(writer: Rules, more: str, comma: str, hint: str) -> str:
    one = writer.rule(more, f"{hint}_open", None)
    return f"{one} ({comma}{one})*"


def _machine(writer: Rules, shape: Objects, hint: str) -> Machine | None:
    """The automaton of an object whose members are more than a list; None where they are one."""
    if writer.options.key_order == "any" and len(shape.named) > 0:
        return writer.normaliser.any_order_machine(shape, writer.places.get(hint))
    if object_is_plain(shape):
        return None
    machine = writer.normaliser.object_machine(shape)
    assert machine is not None, "a shape that does not live is not written"
    if len(shape.named) + len(shape.opened) > 1:
        writer.restrictions.add("key-order")
    return machine


def _by_states(writer: Rules, shape: Objects, members: Members, hint: str, machine: Machine) -> str:
    """Members as rules, one for each state of the object's automaton."""
    if shape.named:
        writer.restrictions.add("minimal-escapes")
    between = members.comma + " " if members.comma else ""

    def text(payload: Payload) -> str:
        if isinstance(payload, Named):
            return members.named(writer, payload.name, payload.value)
        assert isinstance(payload, Open)
        opened = shape.opened[payload.index]
        member = _open_member(writer, shape, opened, members, payload.needs, payload.value, hint)
        return member or writer.nothing()

    @cache  # many members lead to the same few
    def run(payload: Run, started: bool) -> str:
        more = _open(writer, shape, members, hint) or writer.nothing()
        if len(more) > 12:
            more = writer.rule(more, f"{hint}_open", None)
        if started:
            return repeated(f"({between}{more})", payload.low, payload.high)
        high = None if payload.high is None else payload.high - 1
        return f"{more} {repeated(f'({between}{more})', max(payload.low - 1, 0), high)}".rstrip()

    return state_text(writer, machine, text, hint, members.comma, members.blank, run)
