r"""Work out the ways to read a terminal: what its own text is between the characters that stand around it.

Ways         A way has a regular expression for the terminal's own text, the characters that may stand before it, and a
             *rest*: what must not follow. The expression is specialised for each class of characters before and after
             the terminal, so that it looks at its own text only.
Longest      A text t of an ignored terminal with the language L is its longest match if no v with tv in L follows. So
             the rest is t⁻¹L; its states are sets of partial derivatives (Antimirov 1996).
Leaves out   which characters stand where (neighbours.py), the grammar of the ways (context.py).
Invariants   a terminal has one plain way if it looks past no edge, or if nothing that may stand around it matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from .. import regex as rx
from ..budget import look
from ..ir.nodes import Expr, Literal, Terminal
from ..regex import charset
from ..regex.charset import Ranges
from ..terminals.dfa import equals
from ..terminals.terminal import terminal_dfa
from .analysis import regex_nullable
from .neighbours import Around, edge_of

_MOST_CLASSES = 64  # of characters around a terminal
_MOST_DERIVED = 300  # states of one ignored terminal
_DEEPEST = 4  # characters until it is known whether a text goes on

_NEWLINE: Ranges = ((10, 10),)
_LAST_LINE = rx.Look(rx.concat(rx.Repeat(rx.Chars(_NEWLINE), 0, 1), rx.END))
"""``$`` of Python: the end, or a line feed and the end."""


class Unknown(Exception):
    """Something that is refused: what it does, and what to write instead."""

    def __init__(self, problem: str, hint: str) -> None:
        self.problem, self.hint = problem, hint


@dataclass(frozen=True)
class Rest:
    """What the rest of a text must not be.

    Attributes:
        never: no text of this expression may begin it.
        end: it may be empty.
        later: it may end within a beginning of ``never``.
    """

    never: rx.Regex = rx.NOTHING
    end: bool = True
    later: bool = True


FREE = Rest()
_NO_MORE = Rest(rx.ANY)


@dataclass(frozen=True)
class Way:
    """One way to read a terminal.

    Attributes:
        regex: its text.
        before: the characters that may stand before it; None: any, and none.
        start: it may stand at the start of the text, where ``before`` is not None.
        rest: what must not follow.
    """

    regex: rx.Regex
    before: Ranges | None = None
    start: bool = True
    rest: Rest = FREE


def regex_of(expr: Expr) -> rx.Regex | None:
    if isinstance(expr, Terminal):
        return expr.regex
    if isinstance(expr, Literal):
        return rx.literal(expr.data.decode())
    return None


# -- what looks past an edge


def zero_widths(regex: rx.Regex) -> Iterator[rx.Regex]:
    """What is zero-width in an expression, looks not opened."""
    if isinstance(regex, rx.Concat | rx.Union):
        look()
        for part in regex.items if isinstance(regex, rx.Concat) else regex.options:
            yield from zero_widths(part)
    elif isinstance(regex, rx.Repeat):
        yield from zero_widths(regex.item)
    elif not isinstance(regex, rx.Chars):
        yield regex


def _sets(regex: rx.Regex) -> Iterator[Ranges]:
    """All sets of characters in an expression, what is zero-width opened."""
    if isinstance(regex, rx.Chars):
        yield regex.ranges
    elif isinstance(regex, rx.Concat | rx.Union):
        look()
        for part in regex.items if isinstance(regex, rx.Concat) else regex.options:
            yield from _sets(part)
    elif isinstance(regex, rx.Repeat | rx.Look):
        yield from _sets(regex.item)
    elif isinstance(regex, rx.WordBoundary):
        yield _word(regex)


def _word(regex: rx.WordBoundary) -> Ranges:
    return charset.ASCII_WORD if regex.ascii else charset.python_word()


def partition(sets: Iterator[Ranges]) -> list[Ranges]:
    """The coarsest classes of characters of which every set is a union."""
    classes = [charset.ALL]
    for one in dict.fromkeys(sets):
        look()
        parts = [part for c in classes for part in (charset.intersection(c, one), charset.difference(c, one)) if part]
        classes = list(dict.fromkeys(parts))
        if len(classes) > _MOST_CLASSES:
            raise Unknown(
                "looks at too many kinds of characters", "look at fewer, or put what they are into the terminal"
            )
    return sorted(classes)


@lru_cache(maxsize=1024)
def ways_of(regex: rx.Regex, around: Around) -> tuple[Way, ...]:
    """The ways to read a terminal in its context, to its longest text; one plain way where it looks past no edge, or
    all that may stand around it is the same to it."""
    outer = list(zero_widths(regex))
    looks = [one for part in outer for one in (part, *_inside(part))]
    if not looks:
        return (Way(regex),)
    lines = [_NEWLINE] if _LAST_LINE in looks else []
    seen_before = [one for look in looks if _sees(look, False) for one in _sets(look)]
    seen_after = [*(one for look in looks if _sees(look, True) for one in _sets(look)), *lines]
    befores, afters = ([None, *partition(iter(seen))] for seen in (seen_before, seen_after))
    alone = terminal_dfa(regex)
    if not lines and _sees_nothing(regex, befores, afters):
        return (Way(regex),)
    if alone.accepts(b""):
        raise Unknown("may be empty, and looks at what is around it", "let it read a character")
    if lines and _LAST_LINE not in outer:
        raise Unknown("has $ inside of a look-around", "look at [^\\n] there")
    core = _derived(_blind(regex))
    afters = [None, *partition(iter([*seen_after, *(ranges for moves, _ in core.ends for ranges, _ in moves)]))]
    always = _same(regex, core, around, befores, [*((one, False) for one in afters), *((one, True) for one in lines)])
    if always is not None:
        return (Way(always),)
    first_of: dict[bytes, rx.Regex] = {}
    found: list[Way] = []
    for after, text_end in [*((one, False) for one in afters), *((one, True) for one in lines)]:
        for before in befores:
            look()
            text = _longest_of(regex, core, before, after, text_end)
            dfa = terminal_dfa(text)
            if not dfa.is_empty:
                key = dfa.class_of_byte.tobytes() + dfa.next_state.tobytes() + dfa.accepting.tobytes()
                found.append(Way(first_of.setdefault(key, text), before or (), before is None, _rest(after, text_end)))
    return _joined(found)


def _sees_nothing(regex: rx.Regex, befores: list[Ranges | None], afters: list[Ranges | None]) -> bool:
    """Whether a terminal has the same texts between whatever characters."""
    alone = terminal_dfa(regex)
    try:
        return all(equals(terminal_dfa(_seen(regex, *edges)), alone) for edges in product(befores, afters))
    except Unknown:  # between some characters; perhaps these never stand there
        return False


def _same(
    regex: rx.Regex,
    core: _Derived,
    around: Around,
    befores: list[Ranges | None],
    afters: list[tuple[Ranges | None, bool]],
) -> rx.Regex | None:
    """The texts of a terminal, where they are the same between all characters that may stand around it; else None."""
    edges = [
        (some and charset.intersection(some, around.before), more and charset.intersection(more, around.after), line)
        for some, (more, line) in product(befores, afters)
        if (around.start if some is None else charset.intersection(some, around.before))
        and (around.end if more is None else charset.intersection(more, around.after))
    ]
    texts = [_longest_of(regex, core, *edge) for edge in edges]
    if not texts or any(not equals(terminal_dfa(one), terminal_dfa(texts[0])) for one in texts[1:]):
        return None
    return texts[0]


def _sees(look: rx.Regex, ahead: bool) -> bool:
    """Whether something zero-width looks ahead, or behind."""
    return look == (rx.END if ahead else rx.START) or (
        look.ahead == ahead if isinstance(look, rx.Look) else isinstance(look, rx.WordBoundary)
    )


def _rest(after: Ranges | None, text_end: bool) -> Rest:
    """What must not follow, where characters of a class do; None: where nothing does."""
    if text_end:
        return Rest(rx.union(rx.Chars(charset.complement(_NEWLINE)), rx.concat(rx.Chars(_NEWLINE), rx.ANY)), end=False)
    return _NO_MORE if after is None else Rest(rx.Chars(charset.complement(after)), end=False)


def _longest_of(
    regex: rx.Regex, core: _Derived, before: Ranges | None, after: Ranges | None, text_end: bool
) -> rx.Regex:
    """The texts of a terminal between two classes of characters that do not go on with what follows."""
    moves = [] if after is None else [(at, one) for some, at in core.ends for one in some]
    on = {at: to for at, (ranges, to) in moves if charset.intersection(ranges, after or ())}
    if not on:
        return _seen(regex, before, after, text_end)
    stays = [at for _, at in core.ends if at not in on]
    longest = _seen(regex, before, after, text_end, _exactly(_reaching(core, stays)))
    if not (_only_heads(regex) and all(core.accepting[to] for to in on.values())):
        shorter = _seen(regex, before, after, text_end, _exactly(_reaching(core, sorted(on))))
        if not terminal_dfa(shorter).is_empty:
            raise Unknown(
                "looks past its end at text that it could go on with",
                "leave the look-around out, or put what must follow into the terminal",
            )
    return longest


def _exactly(regex: rx.Regex) -> rx.Regex:
    """A look for a whole text, at its beginning."""
    return rx.Look(rx.concat(regex, rx.END))


def _only_heads(regex: rx.Regex) -> bool:
    """Whether all looks stand at the beginning, where they say the same of every text of the terminal."""
    items = list(regex.items) if isinstance(regex, rx.Concat) else [regex]
    while items and _blind(items[0]) == rx.EMPTY:
        del items[0]
    return not any(True for item in items for _ in zero_widths(item))


def _inside(regex: rx.Regex) -> Iterator[rx.Regex]:
    """What is zero-width inside of a look."""
    if isinstance(regex, rx.Look):
        for one in zero_widths(regex.item):
            yield one
            yield from _inside(one)


def _joined(ways: list[Way]) -> tuple[Way, ...]:
    """Fewer ways that are the same: what may follow is put together where all else is equal."""
    groups: dict[tuple[rx.Regex, Ranges | None, bool], list[Rest]] = {}
    for way in ways:
        groups.setdefault((way.regex, way.before, way.start), []).append(way.rest)
    found = []
    for (regex, before, start), rests in groups.items():
        plain = [rest for rest in rests if isinstance(rest.never, rx.Chars)]
        if plain:
            allowed = charset.union(*(charset.complement(one.never.ranges) for one in plain))  # type: ignore[union-attr]
            never = rx.Chars(charset.complement(allowed))
            rest = Rest(never, end=any(one.end for one in plain))
            rests = [FREE if rest == FREE else rest, *(one for one in rests if one not in plain)]
        any_before = before == charset.ALL and start
        found += [Way(regex, None if any_before else before, any_before or start, one) for one in rests]
    return tuple(found)


def _blind(regex: rx.Regex) -> rx.Regex:
    """The expression without what is zero-width."""
    if isinstance(regex, rx.Concat):
        return rx.concat(*map(_blind, regex.items))
    if isinstance(regex, rx.Union):
        return rx.union(*map(_blind, regex.options))
    if isinstance(regex, rx.Repeat):
        return rx.repeat(_blind(regex.item), regex.low, regex.high)
    return regex if isinstance(regex, rx.Chars) else rx.EMPTY


# -- what an expression says between two characters


def _seen(
    regex: rx.Regex, before: Ranges | None, after: Ranges | None, text_end: bool = False, only: rx.Regex = rx.EMPTY
) -> rx.Regex:
    """The terminal's own texts between a class of characters and another one (None: the start, the end).

    Args:
        text_end: what follows is a line feed, and then the end.
        only: a look that these texts meet.

    Raises:
        Unknown: a look of some text goes on beyond these characters.
    """
    least, most = (rx.concat(only, _specialised(regex, before, after, text_end, one)) for one in (False, True))
    if least != most and not equals(terminal_dfa(least), terminal_dfa(most)):
        raise Unknown(
            "looks more than one character past its edge",
            "look at one character, or put what is looked at into the terminal",
        )
    return least


def _specialised(
    regex: rx.Regex, before: Ranges | None, after: Ranges | None, text_end: bool, passes: bool
) -> rx.Regex:
    """See `_seen`; ``passes``: looks that go on beyond what is known are met, else they are not."""

    def inner(one: rx.Regex, passes: bool) -> rx.Regex:
        if isinstance(one, rx.Chars):
            return one
        if isinstance(one, rx.Concat):
            return rx.concat(*(inner(item, passes) for item in one.items))
        if isinstance(one, rx.Union):
            return rx.union(*(inner(option, passes) for option in one.options))
        if isinstance(one, rx.Repeat):
            return rx.repeat(inner(one.item, passes), one.low, one.high, one.lazy)
        if one == rx.START:
            return one if before is None else rx.NOTHING
        if one == rx.END:
            return one if after is None else rx.NOTHING
        if one == _LAST_LINE:
            return rx.Look(rx.END) if text_end else one if after is None else _WITHIN
        if isinstance(one, rx.WordBoundary):
            return boundary(one)
        assert isinstance(one, rx.Look)
        holds = passes != one.negative
        parts = [inner(one.item, holds)]
        edge = after if one.ahead else before
        if edge is not None:
            unsure: list[rx.Regex] = []
            at_edge = _quotient(one.item, edge, one.ahead, unsure)
            parts += [_to_edge(part, one.ahead) for part in (at_edge, *(unsure if holds else ())) if part != rx.NOTHING]
        return rx.Look(rx.union(*parts), one.ahead, one.negative)

    def boundary(one: rx.WordBoundary) -> rx.Regex:
        word = _word(one)
        left = before is not None and bool(charset.intersection(before, word))
        right = after is not None and bool(charset.intersection(after, word))
        if not left and not right:
            return one
        other = rx.WordBoundary(not one.negative, one.ascii)
        some_before, some_behind = rx.Look(rx.ANY, ahead=False), rx.Look(rx.ANY)
        return rx.union(
            rx.concat(some_before, some_behind, one),
            rx.concat(rx.START, some_behind, other if left else one),
            rx.concat(some_before, rx.END, other if right else one),
        )

    return inner(regex, passes)


_WITHIN = rx.Look(rx.concat(rx.Chars(_NEWLINE), rx.NOTHING))
"""``$`` where more than a line feed follows: never."""


def _to_edge(regex: rx.Regex, ahead: bool) -> rx.Regex:
    return rx.concat(regex, rx.END) if ahead else rx.concat(rx.START, regex)


def _quotient(regex: rx.Regex, edge: Ranges, ahead: bool, unsure: list[rx.Regex]) -> rx.Regex:
    """What is left of the texts of a look whose last character (first, of a look-behind) is of a class, less that one.

    To ``unsure`` is added what is left of those that go on beyond that character.
    """
    if isinstance(regex, rx.Chars):
        return rx.EMPTY if charset.intersection(regex.ranges, edge) else rx.NOTHING
    if isinstance(regex, rx.Union):
        return rx.union(*(_quotient(option, edge, ahead, unsure) for option in regex.options))
    if isinstance(regex, rx.Repeat):
        if any(charset.intersection(one, edge) for one in _sets(regex)):
            unsure.append(rx.repeat(regex.item, 0, regex.high))
        return rx.NOTHING
    if not isinstance(regex, rx.Concat):
        return rx.NOTHING
    items = list(regex.items) if ahead else list(reversed(regex.items))
    found: list[rx.Regex] = []
    for at, item in enumerate(items):  # the character at the edge is read by this item
        more: list[rx.Regex] = []
        here = _quotient(item, edge, ahead, more)
        whole = all(regex_nullable(one) and not any(True for _ in zero_widths(one)) for one in items[at + 1 :])
        (found if whole else unsure).extend(_read(items[:at], here, ahead) for _ in range(here != rx.NOTHING))
        unsure.extend(_read(items[:at], one, ahead) for one in more)
    return rx.union(*found)


def _read(items: list[rx.Regex], last: rx.Regex, ahead: bool) -> rx.Regex:
    """Items and the last of them, in the order of the text."""
    return rx.concat(*items, last) if ahead else rx.concat(last, *reversed(items))


# -- what is ignored is read to its longest text


@dataclass(frozen=True)
class _Derived:
    """States of subsets of partial derivatives: what may come next and the state after it.

    Attributes:
        moves: of each state.
        ends: of each state in which a text may end its moves, and its number.
    """

    moves: tuple[tuple[tuple[Ranges, int], ...], ...]
    accepting: tuple[bool, ...]

    @property
    def ends(self) -> Iterator[tuple[tuple[tuple[Ranges, int], ...], int]]:
        return ((self.moves[at], at) for at, ends in enumerate(self.accepting) if ends)


@lru_cache(maxsize=256)
def _derived(regex: rx.Regex) -> _Derived:
    """The states of an expression without looks; one that leads nowhere is left out."""
    from ..regex.meet import rests_of

    first = frozenset((regex,))
    number = {first: 0}
    states = [first]
    moves: list[tuple[tuple[Ranges, int], ...]] = []
    for state in states:  # which grows
        pairs = [pair for one in sorted(state, key=repr) for pair in rests_of(one) if pair[0]]
        classes: list[Ranges] = []
        for ranges, _ in pairs:
            classes = [
                p for c in classes for p in (charset.intersection(c, ranges), charset.difference(c, ranges)) if p
            ]
            new = ranges
            for one in classes:
                new = charset.difference(new, one)
            classes += [new] if new else []
        to: dict[int, list[Ranges]] = {}
        for one in classes:
            after = frozenset(rest for ranges, rest in pairs if charset.intersection(ranges, one))
            if after not in number:
                number[after] = len(states)
                states.append(after)
                if len(states) > _MOST_DERIVED:
                    raise Unknown("has too many states to be read to its longest text", "bound its repeats less")
            to.setdefault(number[after], []).append(one)
        moves.append(tuple((charset.union(*some), after) for after, some in to.items()))
    return _Derived(tuple(moves), tuple(any(map(regex_nullable, state)) for state in states))


def _is_prefix_free(regex: rx.Regex) -> bool:
    """Whether no text of a terminal begins another one."""
    dfa = terminal_dfa(regex)
    return bool((dfa.next_state[dfa.accepting] < 0).all())


def matters(regex: rx.Regex, ignored: list[Expr], others: list[Expr]) -> bool:
    """Whether it may matter that an ignored terminal is read to its longest text: something may begin with what it
    could go on with, other than what is ignored and would be read as a part of the same longest text."""
    if _is_prefix_free(regex):
        return False
    plain = _blind(regex)
    derived = _derived(plain)
    more = charset.union(*(ranges for moves, _ in derived.ends for ranges, _ in moves))
    if any(charset.intersection(edge_of(one, True), more) for one in others):
        return True
    grows = all(all(derived.accepting[to] for _, to in moves) and _covers(moves, more) for moves, _ in derived.ends)
    for one in ignored:
        text = regex_of(one)
        assert text is not None
        if charset.intersection(edge_of(one, True), more):
            inside = not charset.difference(charset.union(*_sets(_blind(text))), more)
            if not (grows and inside):
                return True
    return False


def _covers(moves: tuple[tuple[Ranges, int], ...], more: Ranges) -> bool:
    return not charset.difference(more, charset.union(*(ranges for ranges, _ in moves)))


def ways_to_longest(regex: rx.Regex) -> tuple[Way, ...]:
    """The ways to read what is ignored, to its longest text."""
    if any(True for _ in zero_widths(regex)):
        raise Unknown("looks around and may go on, so its longest text is not known", "write it without look-arounds")
    derived = _derived(regex)
    groups: dict[rx.Regex, list[int]] = {}
    for _, at in derived.ends:
        groups.setdefault(_goes_on(derived, at, 0), []).append(at)
    if len(groups) == 1:
        return (Way(regex, rest=Rest(next(iter(groups)))),)
    return tuple(Way(_reaching(derived, ends), rest=Rest(never)) for never, ends in groups.items())


def _goes_on(derived: _Derived, at: int, depth: int) -> rx.Regex:
    """The shortest texts after a state with which the terminal would be longer."""
    if depth > _DEEPEST:
        raise Unknown(
            "may go on after any number of characters that it does not end with",
            "end it at its first end: write .*? and not .*, or [^x]* up to an x",
        )
    parts: list[rx.Regex] = []
    for ranges, to in derived.moves[at]:
        if derived.accepting[to]:
            parts.append(rx.Chars(ranges))
        else:
            after = _goes_on(derived, to, depth + 1)
            if after != rx.NOTHING:
                parts.append(rx.concat(rx.Chars(ranges), after))
    return rx.union(*parts)


def _reaching(derived: _Derived, ends: list[int]) -> rx.Regex:
    """The texts that lead to some states, by eliminating the others (Kleene 1956)."""
    if len(derived.moves) > 60:
        raise Unknown("has too many states to be read to its longest text", "bound its repeats less")
    final = len(derived.moves)
    edges: dict[tuple[int, int], rx.Regex] = {}

    def add(begin: int, to: int, regex: rx.Regex) -> None:
        known = edges.get((begin, to))
        edges[begin, to] = regex if known is None else rx.union(known, regex)

    for begin, moves in enumerate(derived.moves):
        for ranges, to in moves:
            add(begin, to, rx.Chars(ranges))
    for one in ends:
        add(one, final, rx.EMPTY)
    add(-1, 0, rx.EMPTY)
    for gone in reversed(range(final)):
        loop = edges.pop((gone, gone), None)
        middle = rx.EMPTY if loop is None else rx.repeat(loop, 0, None)
        into = [(begin, regex) for (begin, to), regex in edges.items() if to == gone]
        out = [(to, regex) for (begin, to), regex in edges.items() if begin == gone]
        edges = {key: regex for key, regex in edges.items() if gone not in key}
        for begin, left in into:
            for to, right in out:
                add(begin, to, rx.concat(left, middle, right))
    return edges.get((-1, final), rx.NOTHING)
