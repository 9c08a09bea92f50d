r"""Make terminals see the text around them: an ignored terminal takes its longest match; ``^ $ \b`` and look-arounds
look past the edges of their terminal.

Product      A terminal becomes one or more ways. A state is (class of the last character, rest). Each rule gets a copy
             for every pair of a state before it and a state after it (Bar-Hillel, Perles, Shamir 1961: intersection
             with a regular language). What repeats, and what stands in brackets, gets rules of its own, so copies stay
             as small as their rules.
Alone        A terminal that is the whole text has nothing around it, and may look as far as it likes.
Leaves out   reading Lark text (reader.py), the ways (ways.py), automata (../pushdown).
Invariants   a grammar in which nothing looks past an edge is returned as it is. A terminal that this module cannot
             handle raises an UnsupportedError with its name. docs/grammars.md says which of Lark's parsers is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .. import regex as rx
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
from ..terminals.dfa import equals
from ..terminals.terminal import terminal_dfa
from .analysis import regex_nullable
from .neighbours import ANYTHING, empty_rules, may_be_empty, neighbours
from .ways import FREE, Rest, Unknown, Way, matters, partition, regex_of, ways_of, ways_to_longest, zero_widths

_MOST_COPIES = 5_000  # of rules
_MOST_TIMES = 64  # of a repeat that is written out

_BRACKETS = {ord("("): ord(")"), ord("["): ord("]"), ord("{"): ord("}")}

START = -1
"""The class of the last character where there is none."""

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
    seen = any(True for one in (*ignored, *others) for _ in zero_widths(regex_of(one) or rx.EMPTY))
    around = neighbours(grammar) if seen else {}
    ways: dict[tuple[Expr, bool], tuple[Way, ...]] = {}
    for expr, skipped in [*((one, True) for one in ignored), *((one, False) for one in others)]:
        regex = regex_of(expr)
        if regex is None:
            continue
        try:
            found = ways_of(regex, around.get(expr, ANYTHING))
            if skipped and found == (Way(regex),) and matters(regex, ignored, others):
                found = ways_to_longest(regex)
        except Unknown as error:
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
            self.classes = partition(iter(befores)) if befores else []
        except Unknown as error:
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
        if isinstance(expr, Special) and expr.otherwise == "member":
            return {state: expr}
        last, rest = state
        regex = regex_of(expr)
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
