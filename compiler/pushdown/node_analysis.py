"""Analyse nodes before states are made: whether each can be empty, how deep its calls nest, what it costs.

Leaves out   the nodes (nodes.py), the states (nfa.py).
Invariants   nothing here depends on what pushdown.py decides about calls and copies: facts are found once per grammar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property

from ..grammar.analysis import inner_first
from .nodes import (
    CALL,
    CHOICE,
    COUNTED,
    LITERAL,
    QUOTE,
    QUOTED,
    REF,
    REPEAT,
    SEQUENCE,
    TERMINAL,
    NodePool,
    inline_references,
    recurring,
)

EXPAND_STATES = 64  # a repeat that costs no more states than this is copied; see nfa.py
DEPTH_CAP = 64
SIZE_CAP = 4096
_UNKNOWN = 1 << 30


class Facts:
    """By node number.

    Attributes:
        nullable: whether it derives the empty text.
        height: least number of nested calls in a text of it.
        depth: largest number of them, capped where the grammar has no bound.
        size: about how many states it costs when inlined, capped; rules that recur count as the cap.
        recursive: whether calls nest without bound.

    Args:
        look: called now and then; what it raises ends the work.
    """

    def __init__(self, pool: NodePool, look: Callable[[], None] = lambda: None) -> None:
        self.pool = pool
        self._look = look
        self._inside: dict[str, list[int]] = {}  # children first
        for rule, root in pool.rules.items():
            look()
            self._inside[rule] = pool.inside(root)
        self._component, self._circular = pool.recurring()
        self._string: dict[int, bool] = {}
        self.recursive = bool(self._circular) and any(
            pool.nodes[n][0] == CALL and self._recurs(n, rule) for rule, inside in self._inside.items() for n in inside
        )
        self.nullable = [False] * len(pool.nodes)
        self.height = [_UNKNOWN] * len(pool.nodes)
        self.depth = [0] * len(pool.nodes)
        mentions = pool.mentions()
        parts: dict[int, list[str]] = {}
        for rule in pool.rules:
            parts.setdefault(self._component[rule], []).append(rule)
        done: set[int] = set()
        waiting: list[int] = []
        for number in sorted(parts):  # what is mentioned before what mentions it
            rules = parts[number]
            if len(rules) > 1:  # else the values of a long circle would be settled rule by rule
                look()
                among = set(rules)
                rules = inner_first({rule: sorted(mentions[rule] & among) for rule in rules})
            nodes = [n for rule in rules for n in self._inside[rule] if n not in done]
            done.update(nodes)
            if rules[0] not in self._circular:
                waiting += nodes
                continue
            self._settle(waiting)
            waiting = []
            while self._settle(nodes):
                pass
        self._settle(waiting)

    def _settle(self, numbers: list[int]) -> bool:
        """Work the values of some nodes out from those of others, children first; whether one changed."""
        pool, nullable, height, depth = self.pool, self.nullable, self.height, self.depth
        cap = DEPTH_CAP if self.recursive else 1 + len(pool.nodes)
        changed = False
        for at, n in enumerate(numbers):
            if at & 1023 == 0:
                self._look()
            node = pool.nodes[n]
            kind = node[0]
            if kind == SEQUENCE:
                empty, high, deep = True, 0, 0
                for i in node[1]:
                    empty = empty and nullable[i]
                    high = height[i] if height[i] > high else high
                    deep = depth[i] if depth[i] > deep else deep
                values = empty, high, deep
            elif kind == CHOICE:
                empty, high, deep = False, _UNKNOWN, 0
                for i in node[1]:
                    empty = empty or nullable[i]
                    high = height[i] if height[i] < high else high
                    deep = depth[i] if depth[i] > deep else deep
                values = empty, high, deep
            elif kind in (LITERAL, COUNTED):
                values = False, 0, 0
            elif kind == TERMINAL:
                values = bool(pool.dfas[node[1]].accepting[0]), 0, 0
            elif kind == REF:
                root = pool.rules[node[1]]
                values = nullable[root], height[root], depth[root]
            elif kind == REPEAT:
                item = node[1]
                free = node[2] == 0
                values = free or nullable[item], 0 if free else height[item], depth[item]
            elif kind in (CALL, QUOTED):
                item, more = node[1], kind == CALL
                values = nullable[item], min(_UNKNOWN, height[item] + more), min(cap, depth[item] + more)
            else:
                values = False, 0, 0
            if values != (nullable[n], height[n], depth[n]):
                nullable[n], height[n], depth[n] = values
                changed = True
        return changed

    @cached_property
    def repeats(self) -> list[int]:
        """The repeats of all rules."""
        inside = set().union(*self._inside.values())
        return sorted(n for n in inside if self.pool.nodes[n][0] == REPEAT)

    @cached_property
    def size(self) -> dict[int, int]:
        pool = self.pool
        component = self._component
        of_rule: dict[str, int] = {}
        if self._circular:  # not that of a rule that is mentioned in calls alone
            component, circular = recurring(inline_references(pool))
            of_rule = dict.fromkeys(circular, SIZE_CAP)
        value: dict[int, int] = {}
        order = sorted(component, key=component.__getitem__)  # what a rule mentions outside of calls comes before it,
        for rule in [*order, *order] if self._circular else order:  # and inside of them is known the second time
            for n in self._inside[rule]:
                node = pool.nodes[n]
                kind = node[0]
                if kind == LITERAL:
                    size = len(node[1])
                elif kind in (TERMINAL, COUNTED):
                    size = len(pool.dfas[node[1]].accepting)
                elif kind == REF:
                    size = of_rule.get(node[1], 1)
                elif kind in (SEQUENCE, CHOICE):
                    size = sum([value[c] for c in node[1]])
                elif kind == REPEAT:
                    cost = max(1, node[2] if node[3] is None else node[3]) * value[node[1]]
                    size = cost if cost <= EXPAND_STATES else value[node[1]] + 3
                else:
                    size = value[node[1]] if kind == QUOTED else 1
                value[n] = min(SIZE_CAP, size)
            of_rule.setdefault(rule, value[pool.rules[rule]])
        return value

    @cached_property
    def _marked(self) -> set[str]:
        """The marked rules, and those that mention one of these."""
        found = set(self.pool.grammar.marks)
        mentioned_by: dict[str, list[str]] = {}
        for rule, others in self.pool.mentions().items():
            for other in others:
                mentioned_by.setdefault(other, []).append(rule)
        todo = list(found)
        while todo:
            more = [rule for rule in mentioned_by.get(todo.pop(), ()) if rule not in found]
            found.update(more)
            todo += more
        return found

    def is_marked(self, number: int) -> bool:
        """Whether marked rules can be met in a node."""
        marked = self._marked if self.pool.grammar.marks else ()
        nodes = self.pool.nodes
        return bool(marked) and any(nodes[n][0] == REF and nodes[n][1] in marked for n in self.pool.inside(number))

    def most_frames(self, called: bool) -> int | None:
        """Most frames on the stack at a time, one more where strings are called; None if there is no bound."""
        if self.recursive:
            return None
        return max(self.depth[self.pool.rules[rule]] for rule in self.pool.entries) + called

    def may_be_deeper(self, callee: int) -> bool:
        """Whether some texts of a called node are higher than others."""
        return self.depth[callee] == DEPTH_CAP or self.depth[callee] > self.height[callee]

    def _recurs(self, number: int, rule: str) -> bool:
        """Whether a node of a rule mentions a rule of the same component."""
        inside = (self.pool.nodes[n] for n in self.pool.inside(number))
        return rule in self._circular and any(
            node[0] == REF and self._component[node[1]] == self._component[rule] for node in inside
        )

    def may_inline(self, number: int) -> bool:
        """Whether a called node can be inlined: it does not contain itself."""
        return not any(self._recurs(number, rule) for rule, inside in self._inside.items() if number in inside)

    @cached_property
    def _first_rule(self) -> dict[int, str]:
        return {n: rule for rule, inside in reversed(self._inside.items()) for n in inside}

    def rule_of(self, number: int) -> str:
        """The first rule that holds a node, for errors."""
        return self._first_rule.get(number, self.pool.start)

    def is_shared(self, number: int) -> bool:
        """Whether several rules hold a node."""
        return self._holders[number] > 1

    @cached_property
    def _holders(self) -> Counter[int]:
        return Counter(n for inside in self._inside.values() for n in inside)

    def is_string(self, number: int) -> bool:
        """Whether a node is quoted text as a whole: it can be called at its opening quote."""
        found = self._string.get(number)
        if found is None:
            found = self._string[number] = self._is_string(number)
        return found

    def _is_string(self, number: int) -> bool:
        node = self.pool.nodes[number]
        if node[0] == TERMINAL:
            dfa = self.pool.dfas[node[1]]
            quote = dfa.class_of_byte[QUOTE]
            first = [k for k in range(dfa.next_state.shape[1]) if dfa.next_state[0, k] >= 0]
            alone = first == [quote] and int((dfa.class_of_byte == quote).sum()) == 1
            return alone and not bool((dfa.next_state[dfa.accepting] >= 0).any())
        if node[0] == LITERAL:
            return len(node[1]) > 1 and node[1][0] == QUOTE == node[1][-1] and node[1].count(b'"') == 2
        return node[0] == QUOTED or (node[0] == COUNTED and self.pool.counted[number].quoted)
