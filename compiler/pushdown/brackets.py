"""Find what has to be called: bracketed groups, and recursion between quotes or in the middle of a sequence.

Leaves out   the nodes (nodes.py), groups on which alternatives disagree (pushdown.py).
Invariants   the recursion that is left outside of calls is in tail position, so inlining it ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ..errors import GrammarError
from .nodes import (
    CALL,
    CHOICE,
    CLOSER,
    LITERAL,
    OPENER,
    QUOTE,
    QUOTED,
    REF,
    REPEAT,
    SEQUENCE,
    SPECIAL,
    TERMINAL,
    NodePool,
    inline_references,
    recurring,
    rewrite,
)


def call_brackets(pool: NodePool, groups: Collection[str]) -> None:
    """Make calls of bracketed groups, of rules that are called though in no brackets, and of what recurs.

    Raises GrammarError: a rule recurs in a way that no bracket encloses.
    """
    brackets = _brackets(pool)
    rewrite(pool, regroup=lambda items: _group(pool, brackets, items))
    for rule, root in pool.rules.items():
        if rule in groups:
            pool.rules[rule] = pool.add((CALL, _without_last(pool, root)))
    pool.keep_mentions()
    _enclose_recursion(pool)


def _without_last(pool: NodePool, root: int) -> int:
    """The text of a group, in which what would be called at its end is not: one symbol pops one frame."""
    node = pool.nodes[root]
    if node[0] == QUOTED:
        return int(node[1])
    if node[0] == SEQUENCE and node[1] and pool.nodes[node[1][-1]][0] == CALL:
        *before, last = node[1]
        return pool.sequence([*before, pool.nodes[last][1]])
    return root


def _brackets(pool: NodePool) -> dict[int, int]:
    """The literals that are a bracket or a quote, and rules that only name one: node → byte."""
    marks = {*CLOSER, *OPENER, QUOTE}
    nodes = pool.nodes
    literals = {
        n: node[1][0]
        for n, node in enumerate(nodes)
        if node[0] == LITERAL and len(node[1]) == 1 and node[1][0] in marks
    }
    named = {rule: literals[root] for rule, root in pool.rules.items() if root in literals}
    return literals | {n: named[node[1]] for n, node in enumerate(nodes) if node[0] == REF and node[1] in named}


def _group(pool: NodePool, brackets: dict[int, int], items: Sequence[int]) -> Sequence[int]:
    """Every balanced group ``{ … }``, ``[ … ]``, ``( … )`` among the items as one CALL, ``" … "`` as one QUOTED, and so
    what stands between any two equal marks, if these are all items."""
    if brackets.keys().isdisjoint(items):
        between = len(items) == 3 and items[0] == items[2] and _is_mark(pool, items[0])
        return [pool.add((QUOTED, pool.sequence(items)))] if between else items
    out: list[int] = []
    opened: list[tuple[int, int]] = []  # (byte, index in out)
    for item in items:
        byte = brackets.get(item, -1)
        out.append(item)
        if byte < 0:
            continue
        if byte == QUOTE and opened and opened[-1][0] == QUOTE:
            _, begin = opened.pop()
            out[begin:] = [pool.add((QUOTED, pool.sequence(out[begin:])))]
        elif byte in CLOSER or byte == QUOTE:
            opened.append((byte, len(out) - 1))
        else:
            while opened and opened[-1][0] != OPENER[byte]:
                opened.pop()
            if opened:
                _, begin = opened.pop()
                out[begin:] = [pool.add((CALL, pool.sequence(out[begin:])))]
    return out


def _is_mark(pool: NodePool, number: int) -> bool:
    """Whether a node is one text that is not empty, or a special token."""
    node = pool.nodes[number]
    if node[0] == REF:  # a rule that names another is none
        node = pool.nodes[pool.rules[node[1]]]
    if node[0] == TERMINAL:
        dfa = pool.dfas[node[1]]
        bytes_of = np.bincount(dfa.class_of_byte, minlength=dfa.next_state.shape[1])
        return dfa.size > 1 and bool((((dfa.next_state >= 0) * bytes_of).sum(axis=1) == ~dfa.accepting).all())
    return node[0] in (LITERAL, SPECIAL)


def _enclose_recursion(pool: NodePool) -> None:
    """Make calls of what recurs in the middle of a sequence, from the nearest literal before to the nearest after.

    Raises GrammarError where there is none: the language is not one of brackets.
    """
    if not pool.recurring()[1]:
        return
    _call_quoted(pool)
    for _ in range(len(pool.rules) + 1):
        graph = inline_references(pool)
        component, looping = recurring(graph)
        offender = next(((r, n) for r in graph if r in looping for n in _middle(pool, r, component)), None)
        if offender is None:
            return
        rule, number = offender
        node = pool.nodes[number]
        items = list(node[1]) if node[0] == SEQUENCE else []
        inner = [k for k, item in enumerate(items) if _mentions(pool, item, component, component[rule])]
        last = len(items) - 1
        inner = [k for k in inner if k < last or pool.nodes[items[k]][0] == REPEAT]
        before = [k for k in range(inner[0]) if pool.nodes[items[k]][0] == LITERAL] if inner else []
        after = [k for k in range(inner[0] + 1, len(items)) if pool.nodes[items[k]][0] == LITERAL] if inner else []
        if not before or not after:
            raise GrammarError(
                f"rule {rule} contains itself with text on both sides, and no bracket tells where it begins and ends",
                place=pool.grammar.place(rule),
                expected="a rule that contains itself at its very left or right, or between two delimiters",
                hint=f'put it between delimiters of its own, as "(" {rule} ")"; for palindromes there are none',
            )
        begin, end = before[-1], after[0]
        call = pool.add((CALL, pool.sequence(items[begin : end + 1])))
        replacement = pool.sequence([*items[:begin], call, *items[end + 1 :]])
        rewrite(pool, lambda n, old=number, new=replacement: new if n == old else None)  # type: ignore[misc]
    raise GrammarError("the recursion of this grammar could not be enclosed in brackets", place=pool.start)


def _call_quoted(pool: NodePool) -> None:
    """Make calls of what stands between two quotes and recurs there: inlined, it would have no end."""
    if all(node[0] != QUOTED for node in pool.nodes):
        return
    component, looping = recurring(inline_references(pool))
    calls: dict[int, int] = {}
    for rule in sorted(looping):
        todo, seen = [pool.rules[rule]], {pool.rules[rule]}
        for n in todo:
            node = pool.nodes[n]
            if node[0] == QUOTED and _mentions(pool, node[1], component, component[rule]):
                calls[n] = pool.add((CALL, node[1]))
            elif node[0] != CALL:
                more = [child for child in dict.fromkeys(pool.children(n)) if child not in seen]
                seen.update(more)
                todo += more
    if calls:
        rewrite(pool, calls.get)


def _mentions(pool: NodePool, number: int, component: dict[str, int], which: int) -> bool:
    todo = [number]
    while todo:
        node = pool.nodes[todo.pop()]
        if node[0] == REF:
            if component[node[1]] == which:
                return True
        elif node[0] in (SEQUENCE, CHOICE):
            todo.extend(node[1])
        elif node[0] == REPEAT:
            todo.append(node[1])
    return False


def _middle(pool: NodePool, rule: str, component: dict[str, int]) -> Iterator[int]:
    """Nodes of a rule in which a rule of its own component is mentioned elsewhere than at the end."""
    which = component[rule]
    todo = [pool.rules[rule]]
    while todo:
        n = todo.pop()
        node = pool.nodes[n]
        if node[0] == CHOICE:
            todo.extend(node[1])
        elif node[0] == SEQUENCE:
            if any(_mentions(pool, item, component, which) for item in node[1][:-1]):
                yield n
            elif node[1]:
                todo.append(node[1][-1])
        elif node[0] == REPEAT and _mentions(pool, node[1], component, which):
            inner = node[1]
            yield inner if pool.nodes[inner][0] == SEQUENCE else n
