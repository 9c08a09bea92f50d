"""A slow plain recogniser over Grammar expressions: the oracle for the reader.

Leaves out   speed. Handles any grammar, left-recursive ones too, as a least fixpoint over (rule, start).
"""

from __future__ import annotations

from toolc.compiler.ir.nodes import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Terminal
from toolc.compiler.terminals.terminal import terminal_dfa


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether the start rule derives exactly ``text``."""
    data = text.encode()
    ends: dict[tuple[str, int], frozenset[int]] = {}
    asked: dict[tuple[str, int], None] = {(grammar.start, 0): None}

    def match(expr: Expr, at: int) -> frozenset[int]:
        if isinstance(expr, Literal):
            return frozenset([at + len(expr.data)] if data.startswith(expr.data, at) else [])
        if isinstance(expr, Terminal):
            dfa = terminal_dfa(expr.regex)
            return frozenset(end for end in range(at, len(data) + 1) if dfa.accepts(data[at:end]))
        if isinstance(expr, Ref):
            asked.setdefault((expr.name, at))
            return ends.get((expr.name, at), frozenset())
        if isinstance(expr, Choice):
            return frozenset().union(*(match(option, at) for option in expr.options))
        if isinstance(expr, Sequence):
            current = frozenset([at])
            for item in expr.items:
                current = frozenset().union(*(match(item, one) for one in current))
            return current
        assert isinstance(expr, Repeat)
        current, found, count = frozenset([at]), frozenset[int](), 0
        seen: set[tuple[int, frozenset[int]]] = set()
        while current and (expr.high is None or count <= expr.high):
            if count >= expr.low:
                found |= current
            key = (min(count, expr.low), current)
            if key in seen and count >= expr.low:
                break
            seen.add(key)
            current = frozenset().union(*(match(expr.item, one) for one in current))
            count += 1
        return found

    grew = True
    while grew:
        grew = False
        for name, at in list(asked):
            before = len(asked)
            found = match(grammar.rules[name], at)
            if found != ends.get((name, at), frozenset()) or len(asked) != before:
                ends[name, at] = found
                grew = True
    return len(data) in ends.get((grammar.start, 0), frozenset())
