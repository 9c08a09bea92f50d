"""Find rules that derive nothing, or that nothing leads to, and where the reason is.

Leaves out   the nodes (nodes.py).
Invariants   what is left derives some text, every entry and the call of every tool among it; else the error names the
             innermost place that does not, by its JSON pointer where the grammar is that of a schema.
"""

from __future__ import annotations

from ..errors import UnsatisfiableError
from ..ir import nodes as ir
from .nodes import CHOICE, COUNTED, LITERAL, REF, REPEAT, SEQUENCE, SPECIAL, TERMINAL, NodePool, rewrite


def trim(pool: NodePool) -> None:
    """Drop rules that derive nothing or that the start rule does not reach."""
    if pool.nothing in pool.rules.values() or pool.recurring()[1]:  # else no rule derives nothing
        _drop_dead(pool)
    mentions = pool.mentions()
    reached = dict.fromkeys(pool.entries)
    todo = list(reached)
    for rule in todo:
        todo += mentions[rule].difference(reached)
        reached.update(dict.fromkeys(mentions[rule]))
    if len(reached) < len(pool.rules):
        pool.rules = {rule: root for rule, root in pool.rules.items() if rule in reached}
        pool.mentions()


def _drop_dead(pool: NodePool) -> None:
    """Drop mentions of rules that derive nothing; a call of a tool has to derive something, as every entry."""
    productive = _productive(pool)
    calls = [rule for rule, mark in pool.grammar.marks.items() if mark.kind == "tool" and rule in pool.rules]
    for entry in dict.fromkeys([*pool.entries, *calls]):
        if not productive[pool.rules[entry]]:
            place, unwritable = _culprit(pool, productive, entry)
            raise UnsatisfiableError(
                "no text at all matches",
                place=place,
                hint="no value that is allowed here can be written in this protocol: loosen it, or choose another one"
                if unwritable
                else "loosen what contradicts itself here",
            )
    dead = {rule for rule, root in pool.rules.items() if not productive[root]}
    if dead:
        rewrite(pool, lambda n: pool.nothing if pool.nodes[n][0] == REF and pool.nodes[n][1] in dead else None)


def _productive(pool: NodePool) -> list[bool]:
    """Of every node whether it derives some text."""
    nodes = pool.nodes
    found = [node[0] in (LITERAL, TERMINAL, SPECIAL, COUNTED) for node in nodes]
    lacks: dict[int, int] = {}  # how many children still have to derive something
    users: dict[int, list[int]] = {}
    ready: list[int] = []
    for root in pool.rules.values():
        for n in pool.inside(root):
            if found[n] or n in lacks:
                continue
            node = nodes[n]
            kind = node[0]
            children = (pool.rules[node[1]],) if kind == REF else node[1] if kind in (SEQUENCE, CHOICE) else (node[1],)
            missing = [child for child in children if not found[child]]
            if kind == SEQUENCE:
                lacks[n] = len(missing)
            else:
                lacks[n] = int(len(missing) == len(children) and not (kind == REPEAT and node[2] == 0))
            if lacks[n]:
                for child in missing:
                    users.setdefault(child, []).append(n)
            else:
                ready.append(n)
    while ready:
        n = ready.pop()
        found[n] = True
        for user in users.get(n, ()):
            lacks[user] -= 1
            if lacks[user] == 0:
                ready.append(user)
    return found


def _culprit(pool: NodePool, productive: list[bool], entry: str) -> tuple[str, bool]:
    """The innermost place that derives nothing by itself: a JSON pointer where the grammar is that of a schema; and
    whether nothing was written there."""
    grammar = pool.grammar

    def derives(expr: ir.Expr) -> bool:
        if isinstance(expr, ir.Ref):
            return productive[pool.rules[expr.name]]
        if isinstance(expr, ir.Sequence):
            return all(map(derives, expr.items))
        if isinstance(expr, ir.Choice):
            return any(map(derives, expr.options))
        if isinstance(expr, ir.Repeat):
            return expr.low == 0 or derives(expr.item)
        return pool.node_of[id(expr)] != pool.nothing

    def nearer(name: str, place: str) -> str:
        """The place of a rule or terminal, if it says more than that of what is around it."""
        found = grammar.places.get(name, place)
        return found if "#" in found or "#" not in place else place

    def innermost(expr: ir.Expr, rule: str, seen: frozenset[str], depth: int, place: str) -> tuple[str, str, bool]:
        """(rule, place, whether nothing is there) of what derives nothing in an expression that does not, itself at the
        last of the rules."""
        while True:
            if isinstance(expr, ir.Ref) and expr.name not in seen:
                rule, seen = expr.name, seen | {expr.name}
                place = nearer(rule, place)
                expr = grammar.rules[rule]
            elif isinstance(expr, ir.Sequence):
                expr = next(item for item in expr.items if not derives(item))
            elif isinstance(expr, ir.Repeat):
                expr = expr.item
            elif isinstance(expr, ir.Choice) and expr.options and depth:
                found = {innermost(option, rule, seen, depth - 1, place) for option in expr.options}
                same = {at for _, at, _ in found if at}
                return min(found) if len(same) == 1 and all(at for _, at, _ in found) else (rule, place, False)
            else:
                return rule, nearer(expr.name, place) if isinstance(expr, ir.Terminal) else place, expr == ir.NOTHING

    first = nearer(entry, "")
    rule, place, nothing = innermost(grammar.rules[entry], entry, frozenset({entry}), 64, first)
    return place if "#" in place else grammar.place(rule), nothing
