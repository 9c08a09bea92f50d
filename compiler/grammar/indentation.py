"""Expand the new lines of indented JSON: each Line becomes a new line and the blanks that its depth asks for.

A rule with lines inside is written once for each depth at which it is used, as the depth is in no state of an
automaton. Of a rule that reaches itself there would be no end of that: what it opens at depth DEEPEST or deeper stands
on one line, with a space after a comma.

Leaves out   where lines stand (../schema/rules.py; protocols).
Depth        A Line after ``{`` or ``[`` opens a bracket, after a comma it keeps the depth, after anything else it
             closes a bracket.
Invariants   rules without lines inside stay the same objects. A rule keeps its name where it is met first, the entries
             first of all; what follows a # in the other names is only there to tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..budget import Budget
from ..errors import GrammarError
from ..ir.nodes import EMPTY, Choice, Expr, Grammar, Line, Literal, Ref, Repeat, Sequence, choice, repeated, sequence
from .analysis import inner_first, leaves, recursive_components, references
from .cached_reader import inlined

DEEPEST = 8
"""Open brackets from which on a recursive rule writes what it opens on one line."""


def has_lines(grammar: Grammar) -> bool:
    """Whether there is something to write."""
    return any(type(leaf) is Line for expr in grammar.rules.values() for leaf in leaves(expr))


def indented(grammar: Grammar, budget: Budget) -> tuple[Grammar, bool]:
    """The grammar without a Line, and whether something stands on one line as it may be too deep.

    Raises:
        BudgetError: it took too many seconds.
        GrammarError: after two alternatives different numbers of brackets are open, or more are closed than opened.
    """
    return _Indentation(inlined(grammar), budget).result()


@dataclass(frozen=True)
class _Place:
    """Where a text stands.

    Attributes:
        depth: brackets with lines that are open.
        flat: the depth of the outermost bracket that is written on one line; None: none is. Lines return outside of it.
    """

    depth: int
    flat: int | None = None

    def moved(self, by: int) -> _Place:
        """The place after some brackets."""
        depth = self.depth + by
        return _Place(depth, None if self.flat is not None and depth <= self.flat else self.flat)


_FLAT = _Place(0, -1 << 30)
"""Where a rule begins that is used inside of what stands on one line."""


class _Indentation:
    """Expands the lines of one grammar.

    Attributes:
        within: rules with lines inside, but for those of ``lines``.
        lines: rules that are one Line and nothing else, which are read as that Line.
        change: rule with lines inside → how many brackets more are open after it.
        recursive: rules that reach themselves.
        copies: (rule, where it begins) → its name there; ``taken`` are all these names.
        todo: the keys of ``copies``, in the order in which they are expanded.
        cut: something stands on one line as it may be too deep.
    """

    def __init__(self, grammar: Grammar, budget: Budget) -> None:
        self.grammar, self.budget = grammar, budget
        self.lines = {rule: expr for rule, expr in grammar.rules.items() if type(expr) is Line}
        self.recursive = {rule for part in recursive_components(grammar) for rule in part}
        self.within = self._with_lines()
        self.change: dict[str, int] = {}
        self.copies: dict[tuple[str, _Place], str] = {}
        self.todo: list[tuple[str, _Place]] = []
        self.taken: set[str] = set()
        self.cut = False

    def _with_lines(self) -> set[str]:
        users: dict[str, list[str]] = {}
        todo = []
        for rule, expr in self.grammar.rules.items():
            for leaf in leaves(expr):
                if type(leaf) is Ref:
                    users.setdefault(leaf.name, []).append(rule)
            if any(type(leaf) is Line for leaf in leaves(expr)):
                todo.append(rule)
        found = set(todo)
        for rule in todo:  # which grows
            new = [user for user in users.get(rule, ()) if user not in found]
            found.update(new)
            todo += dict.fromkeys(new)
        return found - self.lines.keys()

    def result(self) -> tuple[Grammar, bool]:
        """See `indented`."""
        old = self.grammar
        self._find_changes()
        for rule in (old.start, *old.entries.values()):
            self._copy(rule, _Place(0))
        made: dict[str, Expr] = {}
        marks = {rule: mark for rule, mark in old.marks.items() if rule not in self.within}
        groups = set(old.groups - self.within)
        for rule, place in self.todo:  # which grows
            self.budget.check("")
            name = self.copies[rule, place]
            made[name] = self._written(old.rules[rule], place, rule, None)[0]
            if rule in old.marks:
                marks[name] = old.marks[rule]
            if rule in old.groups:
                groups.add(name)
        kept = {rule: expr for rule, expr in old.rules.items() if rule not in self.within and rule not in self.lines}
        rules = {rule: made[rule] for rule in old.rules if rule in made} | made | kept
        return replace(old, rules=rules, marks=marks, groups=frozenset(groups)), self.cut

    # -- how many brackets a rule opens or closes

    def _find_changes(self) -> None:
        rules = {rule: expr for rule, expr in self.grammar.rules.items() if rule in self.within}
        order = inner_first({rule: [one for one in references(expr) if one in rules] for rule, expr in rules.items()})
        for _ in range(2 * len(order) + 2):  # every rule becomes known, and perhaps another number, once
            self.budget.check("")
            unsettled = ""
            for rule in order:
                found = self._changed(self.grammar.rules[rule], None, rule)[0]
                if found is not None and found != self.change.get(rule):
                    self.change[rule] = found
                    unsettled = rule
            if not unsettled:
                return
        raise self._fault(unsettled)  # a rule that reaches itself opens more brackets each time

    def _changed(self, expr: Expr, before: bytes | None, rule: str) -> tuple[int | None, bytes | None]:
        """How many brackets more are open after an expression, None where that is not known yet; and the byte that it
        ends in.

        Args:
            before: the byte before it, where that is one.
        """
        if type(expr) is Sequence:
            all_of: int | None = 0
            for item in expr.items:
                one, before = self._changed(item, before, rule)
                all_of = None if one is None or all_of is None else all_of + one
            return all_of, before
        if type(expr) is Choice:
            each = [self._changed(option, before, rule) for option in expr.options]
            ends = {end for _, end in each}
            known = {one for one, _ in each if one is not None}
            return self._agreed(known, rule) if known else None, ends.pop() if len(ends) == 1 else None
        if type(expr) is Repeat:
            one, _ = self._changed(expr.item, before, rule)
            if one:
                raise self._fault(rule)
            return 0, None
        return self._of_leaf(expr, before)

    def _of_leaf(self, leaf: Expr, before: bytes | None) -> tuple[int | None, bytes | None]:
        if type(leaf) is Literal:
            return 0, leaf.data[-1:]
        if type(leaf) is Line or (type(leaf) is Ref and leaf.name in self.lines):
            return 1 if before in (b"{", b"[") else 0 if before == b"," else -1, None
        if type(leaf) is Ref and leaf.name in self.within:
            return self.change.get(leaf.name), None
        return 0, None

    def _agreed(self, changes: set[int], rule: str) -> int:
        """What alternatives change: those without lines, as blanks that a protocol writes itself, follow the others."""
        lines = changes - {0}
        if len(lines) > 1:
            raise self._fault(rule)
        return lines.pop() if lines else 0

    def _fault(self, rule: str) -> GrammarError:
        return GrammarError(
            "how deep a line of indented JSON stands is not known, as its alternatives open and close other brackets",
            place=self.grammar.place(rule),
        )

    # -- copies

    def _copy(self, rule: str, place: _Place) -> str:
        key = rule, place
        name = self.copies.get(key)
        if rule not in self.within:
            return rule
        if name is None:
            name, number = rule, 1
            while name in self.taken or (name != rule and name in self.grammar.rules):
                number += 1
                name = f"{rule}#{number}"
            self.taken.add(name)
            self.copies[key] = name
            self.todo.append(key)
        return name

    def _written(self, expr: Expr, at: _Place, rule: str, before: bytes | None) -> tuple[Expr, _Place, bytes | None]:
        """An expression at a place; the place after it, and the byte that it ends in."""
        if type(expr) is Sequence:
            items = []
            for item in expr.items:
                item, at, before = self._written(item, at, rule, before)
                items.append(item)
            return sequence(*items), at, before
        if type(expr) is Choice:
            each = [self._written(option, at, rule, before) for option in expr.options]
            ends = {end for _, _, end in each}
            places = {place for _, place, _ in each} - {at}
            assert len(places) <= 1, "_find_changes has asked"
            after = places.pop() if places else at
            return choice(*[one for one, _, _ in each]), after, ends.pop() if len(ends) == 1 else None
        if type(expr) is Repeat:
            item, after, _ = self._written(expr.item, at, rule, before)
            assert after == at, "_find_changes has asked"
            return repeated(item, expr.low, expr.high), at, None
        by, end = self._of_leaf(expr, before)
        line = self.lines.get(expr.name) if type(expr) is Ref else expr
        if type(line) is not Line:
            assert by is not None or type(expr) is Ref
            if type(expr) is Ref:
                expr = Ref(self._copy(expr.name, at if at.flat is None else _FLAT))
            return expr, at.moved(by or 0), end
        assert by is not None
        if by == 1 and at.flat is None and at.depth >= DEEPEST and rule in self.recursive:
            at = _Place(at.depth, at.depth)
            self.cut = True
        after = at.moved(by) if by < 1 else _Place(at.depth + 1, at.flat)
        if after.depth < 0 and after.flat is None:
            raise GrammarError(
                "a line of indented JSON closes a bracket that no line has opened",
                place=self.grammar.place(rule),
                hint="_indented stands after an opening bracket, after each comma, and before the closing bracket",
            )
        if at.flat is not None:
            return Literal(b" ") if by == 0 else EMPTY, after, None
        return Literal(b"\n" + line.indent.encode() * after.depth), after, None
