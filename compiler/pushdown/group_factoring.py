"""Merge bracketed groups that are alternatives into one group, whose bodies become one automaton over their items.

A union of objects, as oneOf, anyOf and their complements give, lists bodies, up to hundreds, that differ in a few
members. Told apart byte by byte, the sets of bodies that are still possible are what the states of the pushdown
automaton multiply by: 2^10 where each of ten bodies asks for a key of its own. Over whole items most of these sets go
on alike, so they are merged before there are any bytes. Terminals that loops read, such as the keys that each body
leaves open, are cut into disjoint ones where they are met beside others: of bodies that their first member tells apart
none would get shorter, and each would list the keys of all.

Takes a pool in which groups are calls; leaves one of the same language, with a rule for each state of the automaton.

Leaves out   other items that differ but overlap: pushdown.py tells them apart.
Invariants   where the automaton would be larger than the alternatives as they stand, they are left.
Source       subset construction and minimisation as for terminals, over items for symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..budget import Budget
from ..terminals.dfa import enumerate_texts, from_literal
from ..terminals.minimise import equal_states
from ..terminals.partition import parts
from .nodes import CALL, CHOICE, LITERAL, REF, REPEAT, SEQUENCE, TERMINAL, NodePool, rewrite

_CUT_ROOM = 4096  # states of a product of terminals that are cut


def factor(pool: NodePool, budget: Budget) -> None:
    """Merge groups that are alternatives of one another, and factor their bodies."""
    if any(node[0] == CHOICE and sum(pool.nodes[n][0] == CALL for n in node[1]) > 1 for node in pool.nodes):
        rewrite(pool, rechoose=lambda rule, options: _merge_calls(pool, budget, rule, options))


def _merge_calls(pool: NodePool, budget: Budget, rule: str, options: Sequence[int]) -> Sequence[int]:
    """Options with the groups of one kind of bracket merged, in the place of the first."""
    groups: dict[tuple[int, int], list[int]] = {}
    for option in options:
        brackets = _brackets(pool, option)
        if brackets is not None:
            groups.setdefault(brackets, []).append(option)
    out: dict[int, None] = {}
    for option in options:
        brackets = _brackets(pool, option)
        same = groups[brackets] if brackets is not None else []
        if brackets is None or len(same) < 2:
            out.setdefault(option)
        elif option == same[0]:
            bodies = [pool.sequence(pool.nodes[pool.nodes[n][1]][1][1:-1]) for n in dict.fromkeys(same)]
            body = _Factored(pool, budget, rule, bodies).node()
            out.setdefault(pool.add((CALL, pool.sequence([brackets[0], body, brackets[1]]))))
    return list(out)


def _brackets(pool: NodePool, number: int) -> tuple[int, int] | None:
    """The nodes of the brackets, if a node is a group between two bytes."""
    if pool.nodes[number][0] != CALL:
        return None
    inner = pool.nodes[pool.nodes[number][1]]
    if inner[0] != SEQUENCE or len(inner[1]) < 2:
        return None
    first, last = inner[1][0], inner[1][-1]
    if any(pool.nodes[n][0] != LITERAL or len(pool.nodes[n][1]) != 1 for n in (first, last)):
        return None
    return first, last


def _joined(groups: Iterable[Iterable[int]]) -> list[list[int]]:
    """Groups with those that share a member made into one; all in order."""
    group_of: dict[int, set[int]] = {}
    for group in groups:
        whole = set(group)
        for other in {id(group_of[n]): group_of[n] for n in whole & group_of.keys()}.values():
            whole |= other
        group_of.update(dict.fromkeys(whole, whole))
    return sorted(map(sorted, {id(one): one for one in group_of.values()}.values()))


class _Factored:
    """The automaton of some alternatives: nondeterministic states, then sets of them, then classes of equal sets."""

    def __init__(self, pool: NodePool, budget: Budget, rule: str, options: Sequence[int]) -> None:
        self.pool = pool
        self.budget = budget
        self.rule = rule
        self.options = options
        self.moves: list[list[tuple[int, int]]] = [[]]  # (item, target); state 0 is the end
        self.free: list[list[int]] = [[]]
        self.known: dict[tuple[int, int], int] = {}
        self.closed: dict[int, tuple[int, ...]] = {}  # see `close`; asked for when all is built
        self.looping, self.texts = self.overlapping()
        self.cut: dict[tuple[int, ...], dict[int, list[int]]] = {}  # what is known of groups

    def node(self) -> int:
        """A node of the same language as a choice of the options."""
        start = self.state()
        for option in self.options:
            self.free[start].append(self.build(option, 0))
        groups: list[list[int]] = []
        while True:
            self.budget.check("", place=self.pool.grammar.place(self.rule))
            found = self.sets(start, self.cuts(groups))
            if found is None:
                return self.pool.choice(self.options)
            rows, ends, met = found
            known, groups = groups, _joined([*groups, *met])
            if groups == known:
                return self.write(rows, ends)

    def sets(
        self, start: int, cut: dict[int, list[int]]
    ) -> tuple[list[dict[int, int]], list[bool], set[tuple[int, ...]]] | None:
        """The sets of states that can be reached; None where there are more than states.

        Args:
            cut: items that stand in the place of others.

        Returns:
            where each item leads; whether each set may be the last; items that are met in one, and may overlap.
        """
        sets = {self.close([start]): 0}
        order = list(sets)
        rows: list[dict[int, int]] = []
        met: set[tuple[int, ...]] = set()
        for states in order:
            targets: dict[int, list[int]] = {}
            here: set[int] = set()
            for s in states:
                for item, t in self.moves[s]:
                    if item in self.looping or item in self.texts:
                        here.add(item)
                    for part in cut.get(item, (item,)):
                        targets.setdefault(part, []).append(t)
            if len(here) > 1 and not here.isdisjoint(self.looping):
                met.add(tuple(sorted(here)))
            row = {}
            for item in sorted(targets):
                closed = self.close(targets[item])
                if closed not in sets:
                    if len(sets) > len(self.moves):
                        return None
                    if not len(sets) & 1023:
                        self.budget.check("states", len(sets), self.pool.grammar.place(self.rule))
                    sets[closed] = len(order)
                    order.append(closed)
                row[item] = sets[closed]
            rows.append(row)
        return rows, [0 in states for states in order], met

    def overlapping(self) -> tuple[set[int], set[int]]:
        """Terminals that loops read, and literals: some texts may be of several of these."""
        pool = self.pool
        texts: set[int] = set()
        looping: set[int] = set()
        todo = [(option, False) for option in self.options]
        seen = set(todo)
        while todo:
            number, inside = todo.pop()
            node = pool.nodes[number]
            if node[0] == TERMINAL and inside:
                looping.add(number)
            elif node[0] == LITERAL and len(node[1]) > 1:
                texts.add(number)
            elif node[0] in (SEQUENCE, CHOICE, REPEAT):
                loops = inside or (node[0] == REPEAT and node[2:] == (0, None))
                for child in pool.children(number):
                    if (child, loops) not in seen:
                        seen.add((child, loops))
                        todo.append((child, loops))
        return looping, texts

    def cuts(self, groups: Sequence[Sequence[int]]) -> dict[int, list[int]]:
        """For items that are met beside others, by groups, the disjoint ones that they consist of; nothing where these
        are many."""
        found: dict[int, list[int]] = {}
        for group in map(tuple, groups):
            if group not in self.cut:
                self.budget.check("", place=self.pool.grammar.place(self.rule))
                self.cut[group] = self._cut(group)
            found |= self.cut[group]
        return found

    def _cut(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        pool = self.pool
        out: dict[int, list[int]] = {}
        dfas = [pool.dfas[pool.nodes[n][1]] if n in self.looping else from_literal(pool.nodes[n][1]) for n in numbers]
        found = parts(dfas, _CUT_ROOM) or ()
        for dfa, which in found:
            texts = list(enumerate_texts(dfa, 2)) if any(numbers[i] in self.texts for i in which) else []
            if len(which) == 1 and len(texts) != 1 and sum(1 for _, other in found if which[0] in other) == 1:
                continue  # whole as it is
            if len(texts) == 1:
                part = pool.add((LITERAL, texts[0]))
            else:
                part = pool.add((TERMINAL, len(pool.dfas)))
                pool.dfas.append(dfa)
                pool.dfa_names.append(pool.dfa_names[pool.nodes[numbers[which[0]]][1]])
            for i in which:
                out.setdefault(numbers[i], []).append(part)
        return out

    def state(self) -> int:
        self.moves.append([])
        self.free.append([])
        return len(self.moves) - 1

    def build(self, number: int, after: int) -> int:
        """The state from which a node and then everything from ``after`` on is read."""
        node = self.pool.nodes[number]
        if node[0] == SEQUENCE:
            for item in reversed(node[1]):
                after = self.build(item, after)
            return after
        found = self.known.get((number, after))
        if found is not None:
            return found
        state = self.known[number, after] = self.state()
        if node[0] == CHOICE:
            self.free[state] = [self.build(option, after) for option in node[1]]
        elif node[0] == REPEAT and node[2:] == (0, 1):
            self.free[state] = [after, self.build(node[1], after)]
        elif node[0] == REPEAT and node[2:] == (0, None):
            self.free[state] = [after, self.build(node[1], state)]
        else:
            self.moves[state].append((number, after))
        return state

    def close(self, states: Sequence[int]) -> tuple[int, ...]:
        """What is reached from these without an item, but for states that have none and are not the end."""
        if len(states) == 1:
            return self._closed(states[0])
        return tuple(sorted(set().union(*map(self._closed, set(states)))))

    def _closed(self, state: int) -> tuple[int, ...]:
        known = self.closed.get(state)
        if known is None:
            seen, todo = {state}, [state]
            while todo:
                for t in self.free[todo.pop()]:
                    if t not in seen:
                        seen.add(t)
                        todo.append(t)
            known = self.closed[state] = tuple(sorted(s for s in seen if s == 0 or self.moves[s]))
        return known

    def write(self, rows: list[dict[int, int]], ends: list[bool]) -> int:
        """The automaton, made minimal, as nodes: a rule for every state."""
        pool = self.pool
        moves = [(item, s, t) for s, row in enumerate(rows) for item, t in row.items()]
        classes = equal_states(np.array(moves, np.int32).reshape(-1, 3), np.array(ends, bool)).tolist()
        if classes[0] < 0:
            return pool.nothing
        number = {classes[0]: 0}  # of each class, breadth first, and a state of it
        order = [0]
        merged: list[list[tuple[int, int]]] = []
        for s in order:
            row = []
            for item, t in rows[s].items():  # in the order of items, as they were made
                if classes[t] >= 0:
                    if classes[t] not in number:
                        number[classes[t]] = len(order)
                        order.append(t)
                    row.append((item, number[classes[t]]))
            merged.append(row)
        last = [ends[s] and not row for s, row in zip(order, merged, strict=True)]
        names = self.fresh_names(len(order))
        for at, row in enumerate(merged):
            if last[at]:
                continue
            by_target: dict[int, list[int]] = {}
            for item, t in row:
                by_target.setdefault(t, []).append(item)
            options = [
                pool.sequence([pool.choice(some), pool.empty if last[t] else pool.add((REF, names[t]))])
                for t, some in by_target.items()
            ]
            pool.rules[names[at]] = pool.choice([*options, pool.empty] if ends[order[at]] else options)
        return pool.empty if last[0] else pool.add((REF, names[0]))

    def fresh_names(self, count: int) -> list[str]:
        """Names of rules that are not there yet: of one rule more than one kind of groups may be factored."""
        out: list[str] = []
        number = len(self.pool.rules)
        while len(out) < count:
            name = f"{self.rule}#{number}"
            number += 1
            if name not in self.pool.rules:
                out.append(name)
        return out
