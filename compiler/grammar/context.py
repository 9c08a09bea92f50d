r"""Make terminals see the text around them: an ignored terminal takes its longest match; ``^ $ \b`` and look-arounds
look past the edges of their terminal.

Ways         A terminal becomes one or more *ways*. A way has a regular expression for the terminal's own text, the
             characters that may stand before it, and a *rest*: what must not follow. The expression
             is specialised for each class of characters before and after the terminal, so that it looks at its own text
             only.
Product      A state is (class of the last character, rest). Each rule gets a copy for every pair of a state before it
             and a state after it (Bar-Hillel, Perles, Shamir 1961: intersection with a regular language).
Longest      A text t of an ignored terminal with the language L is its longest match if no v with tv in L follows. So
             the rest is t⁻¹L; its states are sets of partial derivatives (Antimirov 1996).
Leaves out   reading Lark text (reader.py), automata (../automata).
Alone        A terminal that is the whole text has nothing around it, and may look as far as it likes.
Invariants   a grammar in which nothing looks past an edge is returned as it is. A terminal that this module cannot
             handle raises an UnsupportedError with its name. docs/specs.md says which of Lark's parsers is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from .. import regex as rx
from ..budget import look
from ..errors import UnsatisfiableError, UnsupportedError
from ..ir.nodes import (
    EMPTY,
    NOTHING,
    Choice,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Sequence,
    Special,
    Terminal,
    choice,
    sequence,
)
from ..regex import charset
from ..regex.charset import Ranges
from ..terminals.dfa import equals
from ..terminals.terminal import terminal_dfa
from .analysis import regex_nullable
from .neighbours import ANYTHING, Around, edge_of_regex, empty_rules, may_be_empty, neighbours

_MOST_CLASSES = 64  # of characters around a terminal
_MOST_DERIVED = 300  # states of one ignored terminal
_MOST_COPIES = 5_000  # of rules
_MOST_TIMES = 64  # of a repeat that is written out
_DEEPEST = 4  # characters until it is known whether a text goes on

_NEWLINE: Ranges = ((10, 10),)
_LAST_LINE = rx.Look(rx.concat(rx.Repeat(rx.Chars(_NEWLINE), 0, 1), rx.END))
"""``$`` of Python: the end, or a line feed and the end."""

_BRACKETS = {ord("("): ord(")"), ord("["): ord("]"), ord("{"): ord("}")}

START = -1
"""The class of the last character where there is none."""


class _Unknown(Exception):
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


State = tuple[int, Rest]


def in_context(grammar: Grammar, ignoring: str, place: Callable[[str], str]) -> Grammar:
    """The grammar whose terminals see the text around them.

    Args:
        grammar: without left recursion.
        ignoring: the rule that reads what is ignored; "" where nothing is.
        place: where a terminal, named so or "", stands.

    Raises:
        UnsupportedError: a terminal looks at more than is known here.
    """
    if isinstance(_whole(grammar), Terminal):
        return grammar
    used = {rule: list(dict.fromkeys(_leaves(expr))) for rule, expr in grammar.rules.items()}
    ignored: list[Expr] = [one for one in used.get(ignoring, []) if not isinstance(one, Special)]
    others = list(dict.fromkeys(one for rule, some in used.items() if rule != ignoring for one in some))
    seen = any(True for one in (*ignored, *others) for _ in _looks(_regex_of(one) or rx.EMPTY))
    around = neighbours(grammar) if seen else {}
    ways: dict[tuple[Expr, bool], tuple[Way, ...]] = {}
    for expr, skipped in [*((one, True) for one in ignored), *((one, False) for one in others)]:
        regex = _regex_of(expr)
        if regex is None:
            continue
        try:
            found = _ways(regex, around.get(expr, ANYTHING))
            if skipped and found == (Way(regex),) and _matters(regex, ignored, others):
                found = _longest(regex)
        except _Unknown as error:
            name = expr.name if isinstance(expr, Terminal) else ""
            kind = "the ignored terminal" if skipped else "the terminal"
            raise UnsupportedError(
                f"{kind} {name or f'/{rx.to_text(regex)[:60]}/'} {error.problem}",
                place=place(name),
                found=rx.to_text(regex)[:80],
                hint=error.hint,
            ) from None
        if found != (Way(regex),):
            ways[expr, skipped] = found
    if not ways:
        return grammar
    return _Product(grammar, ignoring, ways, place).made()


def _whole(grammar: Grammar) -> Expr:
    """What the whole text is: the body of the start rule, or of a rule that it only names."""
    expr = grammar.rules[grammar.start]
    for _ in grammar.rules:
        if not isinstance(expr, Ref):
            break
        expr = grammar.rules[expr.name]
    return expr


def _leaves(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Sequence | Choice):
        for part in expr.items if isinstance(expr, Sequence) else expr.options:
            yield from _leaves(part)
    elif isinstance(expr, Repeat):
        yield from _leaves(expr.item)
    elif not isinstance(expr, Ref):
        yield expr


def _regex_of(expr: Expr) -> rx.Regex | None:
    if isinstance(expr, Terminal):
        return expr.regex
    if isinstance(expr, Literal):
        return rx.literal(expr.data.decode())
    return None


# -- what looks past an edge


def _looks(regex: rx.Regex) -> Iterator[rx.Regex]:
    """What is zero-width in an expression, looks not opened."""
    if isinstance(regex, rx.Concat | rx.Union):
        look()
        for part in regex.items if isinstance(regex, rx.Concat) else regex.options:
            yield from _looks(part)
    elif isinstance(regex, rx.Repeat):
        yield from _looks(regex.item)
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


def _partition(sets: Iterator[Ranges]) -> list[Ranges]:
    """The coarsest classes of characters of which every set is a union."""
    classes = [charset.ALL]
    for one in dict.fromkeys(sets):
        look()
        parts = [part for c in classes for part in (charset.intersection(c, one), charset.difference(c, one)) if part]
        classes = list(dict.fromkeys(parts))
        if len(classes) > _MOST_CLASSES:
            raise _Unknown(
                "looks at too many kinds of characters", "look at fewer, or put what they are into the terminal"
            )
    return sorted(classes)


@lru_cache(maxsize=1024)
def _ways(regex: rx.Regex, around: Around) -> tuple[Way, ...]:
    """The ways to read a terminal in its context, to its longest text; one plain way where it looks past no edge, or
    all that may stand around it is the same to it."""
    outer = list(_looks(regex))
    looks = [one for part in outer for one in (part, *_inside(part))]
    if not looks:
        return (Way(regex),)
    lines = [_NEWLINE] if _LAST_LINE in looks else []
    seen_before = [one for look in looks if _sees(look, False) for one in _sets(look)]
    seen_after = [*(one for look in looks if _sees(look, True) for one in _sets(look)), *lines]
    befores, afters = ([None, *_partition(iter(seen))] for seen in (seen_before, seen_after))
    alone = terminal_dfa(regex)
    if not lines and all(equals(terminal_dfa(_seen(regex, *edges)), alone) for edges in product(befores, afters)):
        return (Way(regex),)
    if alone.accepts(b""):
        raise _Unknown("may be empty, and looks at what is around it", "let it read a character")
    if lines and _LAST_LINE not in outer:
        raise _Unknown("has $ inside of a look-around", "look at [^\\n] there")
    core = _derived(_blind(regex))
    afters = [None, *_partition(iter([*seen_after, *(ranges for moves, _ in core.ends for ranges, _ in moves)]))]
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


def _same(
    regex: rx.Regex,
    core: _Derived,
    around: Around,
    befores: list[Ranges | None],
    afters: list[tuple[Ranges | None, bool]],
) -> rx.Regex | None:
    """The texts of a terminal, where they are the same between all characters that may stand around it, if only two
    terminals met there read past the same text."""
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
            raise _Unknown(
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
    return not any(True for item in items for _ in _looks(item))


def _inside(regex: rx.Regex) -> Iterator[rx.Regex]:
    """What is zero-width inside of a look."""
    if isinstance(regex, rx.Look):
        for one in _looks(regex.item):
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
        _Unknown: a look of some text goes on beyond these characters.
    """
    least, most = (rx.concat(only, _specialised(regex, before, after, text_end, one)) for one in (False, True))
    if least != most and not equals(terminal_dfa(least), terminal_dfa(most)):
        raise _Unknown(
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
        whole = all(regex_nullable(one) and not any(True for _ in _looks(one)) for one in items[at + 1 :])
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
                    raise _Unknown("has too many states to be read to its longest text", "bound its repeats less")
            to.setdefault(number[after], []).append(one)
        moves.append(tuple((charset.union(*some), after) for after, some in to.items()))
    return _Derived(tuple(moves), tuple(any(map(regex_nullable, state)) for state in states))


def _is_prefix_free(regex: rx.Regex) -> bool:
    """Whether no text of a terminal begins another one."""
    dfa = terminal_dfa(regex)
    return bool((dfa.next_state[dfa.accepting] < 0).all())


def _matters(regex: rx.Regex, ignored: list[Expr], others: list[Expr]) -> bool:
    """Whether it may matter that an ignored terminal is read to its longest text: something may begin with what it
    could go on with, other than what is ignored and would be read as a part of the same longest text."""
    if _is_prefix_free(regex):
        return False
    plain = _blind(regex)
    derived = _derived(plain)
    more = charset.union(*(ranges for moves, _ in derived.ends for ranges, _ in moves))
    if any(charset.intersection(_first(one), more) for one in others):
        return True
    grows = all(all(derived.accepting[to] for _, to in moves) and _covers(moves, more) for moves, _ in derived.ends)
    for one in ignored:
        text = _regex_of(one)
        assert text is not None
        if charset.intersection(_first(one), more):
            inside = not charset.difference(charset.union(*_sets(_blind(text))), more)
            if not (grows and inside):
                return True
    return False


def _covers(moves: tuple[tuple[Ranges, int], ...], more: Ranges) -> bool:
    return not charset.difference(more, charset.union(*(ranges for ranges, _ in moves)))


def _first(expr: Expr) -> Ranges:
    """Characters with which a text may begin; perhaps more."""
    regex = _regex_of(expr)
    if regex is None:
        known = isinstance(expr, Special) and expr.otherwise != "declared" and expr.name
        return charset.single(ord(known[0])) if known else charset.ALL

    return edge_of_regex(regex, True)[0]


def _longest(regex: rx.Regex) -> tuple[Way, ...]:
    """The ways to read what is ignored, to its longest text."""
    if any(True for _ in _looks(regex)):
        raise _Unknown("looks around and may go on, so its longest text is not known", "write it without look-arounds")
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
        raise _Unknown(
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
        raise _Unknown("has too many states to be read to its longest text", "bound its repeats less")
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


# -- the product


class _Product:
    """Copies of rules between states of what was read."""

    def __init__(
        self,
        grammar: Grammar,
        ignoring: str,
        ways: dict[tuple[Expr, bool], tuple[Way, ...]],
        place: Callable[[str], str],
    ) -> None:
        self.grammar, self.ignoring, self.ways, self.place = grammar, ignoring, ways, place
        self.rules = dict(grammar.rules)
        self.empty = empty_rules(grammar)
        self.own: dict[tuple[Expr, bool], str] = {}  # rules made here, and whether what is ignored is in them
        self.skipped = {ignoring}  # rules of what is ignored
        self.rule = ""  # the one that is copied
        self.parts: dict[tuple[Sequence, bool], list[Expr | tuple[Expr, ...]]] = {}
        befores = [way.before for some in ways.values() for way in some if way.before is not None]
        try:
            self.classes = _partition(iter(befores)) if befores else []
        except _Unknown as error:
            raise UnsupportedError(f"the grammar {error.problem}", place=place(""), hint=error.hint) from None
        self.copies: dict[tuple[str, State], dict[State, Expr]] = {}
        self.names: dict[tuple[str, State, State], str] = {}
        self.taken: dict[str, int] = {}
        self.steps: dict[tuple[Expr, bool, State], dict[State, Expr]] = {}
        self.skipping = False

    def made(self) -> Grammar:
        """The grammar of all copies that are used."""
        first: State = START if self.classes else 0, FREE
        start = self.grammar.start, first
        self.copies[start] = {}
        changed = True
        while changed:
            changed = False
            for name, state in list(self.copies):
                before = len(self.copies)
                self.rule, self.skipping = name, name in self.skipped
                found = self.copy(self.rules[name], state)
                if found.keys() != self.copies[name, state].keys() or len(self.copies) > before:
                    changed = True
                self.copies[name, state] = found
                if len(self.copies) > _MOST_COPIES:
                    raise UnsupportedError(
                        "what terminals see around them makes too many copies of the rules", place=self.place(""),
                        found=f"more than {_MOST_COPIES:,}", hint="look around in fewer terminals",
                    )  # fmt: skip
        ends = [state for state in self.copies[start] if state[1].end]
        rules: dict[str, Expr] = {}
        whole = f"{self.grammar.start}#"
        rules[whole] = choice(*(Ref(self.named(self.grammar.start, first, state)) for state in ends))
        for (name, begin, end), copied in list(self.names.items()):  # which are all by now
            rules[copied] = self.copies.get((name, begin), {}).get(end, NOTHING)
        if not ends:
            raise UnsatisfiableError("no text is left once terminals see the text around them", place=self.place(""))
        marks = {
            copied: self.grammar.marks[name] for (name, *_), copied in self.names.items() if name in self.grammar.marks
        }
        return replace(self.grammar, rules=rules, start=whole, marks=marks)

    def named(self, rule: str, begin: State, end: State) -> str:
        """The name of a copy."""
        key = rule, begin, end
        if key not in self.names:
            count = self.taken[rule] = self.taken.get(rule, 0) + 1
            self.names[key] = f"{rule}#{count}"
        return self.names[key]

    def copy(self, expr: Expr, state: State) -> dict[State, Expr]:
        """What is read from a state on, by the state that it leads to."""
        if isinstance(expr, Ref):
            if expr.name not in self.rules:
                return {state: expr}
            known = self.copies.setdefault((expr.name, state), {})
            return {end: Ref(self.named(expr.name, state, end)) for end in known}
        if isinstance(expr, Sequence):
            return self.in_order(self.grouped(expr), state)
        if isinstance(expr, Choice):
            found: dict[State, list[Expr]] = {}
            for option in expr.options:
                for end, text in self.copy(option, state).items():
                    found.setdefault(end, []).append(text)
            return {end: choice(*some) for end, some in found.items()}
        if isinstance(expr, Repeat):
            return self.repeated(expr, state)
        key = expr, self.skipping, state
        if key not in self.steps:
            self.steps[key] = self.step(expr, state)
        return self.steps[key]

    def grouped(self, expr: Sequence) -> list[Expr | tuple[Expr, ...]]:
        """The items of a sequence; a bracketed group as a bracket, a rule for what is inside, and the other bracket:
        else copies of the brackets would part from each other."""
        key = expr, self.skipping
        if key not in self.parts:
            out: list[Expr | tuple[Expr, ...]] = []
            opened: list[tuple[int, int, int]] = []  # (number of the item, its byte, its index in out)
            for number, item in enumerate(expr.items):
                out.append(item)
                byte = item.data[0] if isinstance(item, Literal) and len(item.data) == 1 else -1
                if byte in _BRACKETS:
                    opened.append((number, byte, len(out) - 1))
                while opened and byte in _BRACKETS.values():
                    begin, open_, at = opened.pop()
                    if _BRACKETS[open_] == byte:
                        inside = self.named_part(sequence(*expr.items[begin + 1 : number]))
                        out[at:] = [(expr.items[begin], inside, item)]
                        break
            self.parts[key] = out
        return self.parts[key]

    def named_part(self, expr: Expr) -> Expr:
        """A part of the rule that is copied as a rule of its own."""
        return expr if isinstance(expr, Ref) or expr == EMPTY else Ref(self.own_rule(expr, lambda _: expr))

    def own_rule(self, part: Expr, body: Callable[[str], Expr]) -> str:
        """The name of the rule made for a part of others; its body, which may use that name."""
        key = part, self.skipping
        if key not in self.own:
            name = self.own[key] = f"{self.rule.partition('#')[0]}#part{len(self.own)}"
            self.rules[name] = body(name)
            if self.skipping:
                self.skipped.add(name)
        return self.own[key]

    def in_order(self, items: list[Expr | tuple[Expr, ...]], state: State) -> dict[State, Expr]:
        current: dict[State, Expr] = {state: EMPTY}
        for item in items:
            current = self.then(current, item)
        return current

    def then(self, before: dict[State, Expr], item: Expr | tuple[Expr, ...]) -> dict[State, Expr]:
        found: dict[State, list[Expr]] = {}
        for middle, head in before.items():
            copied = self.in_order(list(item), middle) if isinstance(item, tuple) else self.copy(item, middle)
            for end, tail in copied.items():
                found.setdefault(end, []).append(sequence(head, tail))
        return {end: choice(*some) for end, some in found.items()}

    def repeated(self, expr: Repeat, state: State) -> dict[State, Expr]:
        """A repeat: as it is where it leads back to where it began, else copy by copy."""
        once = self.copy(expr.item, state)
        if once.keys() <= {state}:
            return {state: Repeat(once[state], expr.low, expr.high)} if once else {state: EMPTY} if not expr.low else {}
        if max(expr.low, expr.high or 0) > _MOST_TIMES:
            raise UnsupportedError(
                "a repeat of what sees the text around it is too long", place=self.place(""),
                found=f"~{expr.low}..{expr.high or ''}", expected=f"at most {_MOST_TIMES}",
            )  # fmt: skip
        current: dict[State, Expr] = {state: EMPTY}
        for _ in range(expr.low):
            current = self.then(current, expr.item)
        found: dict[State, list[Expr]] = {}
        if expr.high is None:
            for begin, head in current.items():
                for end, tail in self.star(expr.item, begin).items():
                    found.setdefault(end, []).append(sequence(head, tail))
            return {end: choice(*some) for end, some in found.items()}
        for _ in range(expr.high - expr.low + 1):
            for end, text in current.items():
                found.setdefault(end, []).append(text)
            current = self.then(current, expr.item)
        return {end: choice(*some) for end, some in found.items()}

    def star(self, item: Expr, state: State) -> dict[State, Expr]:
        """Any number of an item, from a state on: a rule that recurs at its end; of an item that may be empty, all
        states that it leads to, eliminated one by one (Kleene 1956)."""
        if not may_be_empty(item, self.empty):
            name = self.own_rule(Repeat(item, 0, None), lambda name: choice(sequence(item, Ref(name)), EMPTY))
            return self.copy(Ref(name), state)
        states = [state]
        edges: dict[tuple[State, State], Expr] = {}
        for one in states:  # which grows
            for end, text in self.copy(item, one).items():
                edges[one, end] = text
                if end not in states:
                    states.append(end)
        for middle in states:
            loop = edges.get((middle, middle))
            around = EMPTY if loop is None else Repeat(loop, 0, None)
            into = [(one, edges[one, middle]) for one in states if (one, middle) in edges and one != middle]
            out = [(one, edges[middle, one]) for one in states if (middle, one) in edges and one != middle]
            for begin, left in into:
                for end, right in out:
                    text = sequence(left, around, right)
                    edges[begin, end] = choice(edges[begin, end], text) if (begin, end) in edges else text
            # what ends at, or begins at, the middle may go round it, too
            for begin, left in into:
                edges[begin, middle] = sequence(left, around)
            for end, right in out:
                edges[middle, end] = sequence(around, right)
            if loop is not None:
                edges[middle, middle] = around
        found = {end: edges[state, end] for end in states if (state, end) in edges}
        found[state] = choice(found[state], EMPTY) if state in found else EMPTY
        return found

    # -- terminals

    def step(self, expr: Expr, state: State) -> dict[State, Expr]:
        """What a terminal reads from a state on."""
        last, rest = state
        regex = _regex_of(expr)
        if regex is None:
            if isinstance(expr, Special) and expr.otherwise == "declared":
                raise UnsupportedError(
                    f"the declared terminal {expr.name} beside terminals that look around is not supported",
                    place=self.place(expr.name),
                    hint='name the token: _token{"<tool_call>"}, after %import protocol (_token)',
                )
            if isinstance(expr, Special):
                regex = rx.literal(expr.name or "x")
            else:
                raise UnsupportedError(
                    "free text beside terminals that look around is not supported", place=self.place("")
                )
        found: dict[State, list[Expr]] = {}
        if terminal_dfa(regex).accepts(b""):
            found[state] = [EMPTY]
        for way in self.ways.get((expr, self.skipping), (Way(regex),)):
            if way.before is not None and not (
                way.start if last == START else not charset.difference(self.classes[last], way.before)
            ):
                continue
            for text, after in self.admitted(way, rest):
                for kind, ended in self.by_last(text):
                    dfa = terminal_dfa(ended)
                    if dfa.is_empty:
                        continue
                    whole = isinstance(expr, Special) or equals(dfa, terminal_dfa(regex))
                    name = expr.name if isinstance(expr, Terminal) else ""
                    found.setdefault((kind, after), []).append(expr if whole else _leaf(ended, name))
        return {end: choice(*some) for end, some in found.items()}

    def admitted(self, way: Way, rest: Rest) -> Iterator[tuple[rx.Regex, Rest]]:
        """The texts of a way that may follow what was read, and what must not follow them."""
        text = way.regex
        if terminal_dfa(text).accepts(b""):
            text = rx.concat(rx.Look(rx.ANY), text)
        if rest.never == rx.NOTHING:
            yield text, way.rest
            return
        begun = list(_begun(rest.never))
        heads: list[rx.Regex] = [rx.Look(rest.never, negative=True)]
        heads += [rx.Look(rx.concat(begin, rx.END), negative=True) for begin, _ in begun]
        yield rx.concat(*heads, text), way.rest
        for begin, after in begun:
            short = rx.concat(rx.Look(rx.concat(begin, rx.END)), text)
            if not terminal_dfa(short).is_empty:
                both = Rest(rx.union(after, way.rest.never), rest.later and way.rest.end, rest.later and way.rest.later)
                if way.rest.never != rx.NOTHING and not way.rest.end:
                    raise UnsupportedError(
                        "two terminals look past the same text", place=self.place(""),
                        found=rx.to_text(way.regex)[:80], hint="let one of them look at one character only",
                    )  # fmt: skip
                yield short, both

    def by_last(self, text: rx.Regex) -> Iterator[tuple[int, rx.Regex]]:
        """The texts by the class of their last character."""
        if not self.classes:
            yield 0, text
        for number, ranges in enumerate(self.classes):
            ended = rx.concat(text, rx.Look(rx.Chars(ranges), ahead=False))
            dfa = terminal_dfa(ended)
            if not dfa.is_empty:
                yield number, text if equals(dfa, terminal_dfa(text)) else ended


def _begun(never: rx.Regex) -> Iterator[tuple[rx.Regex, rx.Regex]]:
    """Beginnings of the texts of an expression, less those, each with what is left."""
    from ..regex.meet import rests_of

    todo: list[tuple[rx.Regex, rx.Regex]] = [(rx.EMPTY, never)]
    for begin, left in todo:  # which grows
        for ranges, after in rests_of(left):
            if not regex_nullable(after):
                todo.append((rx.concat(begin, rx.Chars(ranges)), after))
                yield todo[-1]


def _leaf(regex: rx.Regex, name: str) -> Expr:
    text = rx.literal_text(regex)
    return Literal(text.encode()) if text else Terminal(regex, name)
