"""Read a grammar as a frame and pieces: the arguments of every tool are read once, and kept with their text.

Leaves out   reading Lark text (reader.py), writing and keeping pieces (../schema/cached_text.py).
Invariants   the sum is the grammar of the whole text, names aside: a piece's rules have names of their own, and others
             know it by the name of its root alone; it refers to its own rules, those that all share, and the gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from ..budget import Budget
from ..regex import Regex
from ..schema.cached_text import Piece
from ..schema.report import at
from .analysis import inner_first, references
from .fast_reader import tokens_of
from .ir import Closed, Expr, Grammar, renamed
from .reader import read_grammar

GAPS = ("_w", "_c", "_k")


def read_pieces(
    frame: str,
    terminals: Mapping[str, Regex],
    pieces: Mapping[str, tuple[Piece, str]],
    name: str,
    budget: Budget,
    in_context: bool = False,
) -> Grammar:
    """The grammar of a frame and pieces.

    Raises BudgetError: it took too many seconds.

    Args:
        frame: Lark text.
        terminals: those that are not in the text, by name.
        pieces: name of the root in the frame → piece, where its places begin.
        name: how errors name it.
        in_context: see `read_grammar`.
    """
    grammar = read_grammar(frame, name, known=pieces, terminals=terminals, budget=budget, in_context=in_context)
    apart = {}
    for root, (piece, origin) in pieces.items():
        budget.check("")
        apart[root] = piece.made(_closed), origin
    return replace(grammar, apart=apart)


def _closed(piece: Piece, _: None) -> Closed:
    known = {*GAPS, *piece.common.rules}
    grammar = read_grammar(piece.text, "", piece.root, known=known, terminals=piece.terminals)
    grammar = replace(grammar, places=piece.places)
    return Closed(grammar, piece.order)


def inlined(grammar: Grammar, chosen: Callable[[Closed], bool] = lambda _: True) -> Grammar:
    """The grammar in which the rules of some of what is apart stand like any others."""
    rules, places, apart = dict(grammar.rules), dict(grammar.places), {}
    for root, (closed, origin) in grammar.apart.items():
        if not chosen(closed):
            apart[root] = closed, origin
            continue
        name = {one: _name(one, closed.grammar.start, root) for one in closed.grammar.rules}
        rules |= {name[rule]: renamed(expr, name) for rule, expr in closed.grammar.rules.items()}
        places |= {name[rule]: at(origin, place) for rule, place in closed.grammar.places.items() if rule in name}
    return replace(grammar, rules=rules, places=places, apart=apart)


def shared(grammar: Grammar, budget: Budget) -> Grammar:
    """The grammar in which rules of one content are one rule, the first of them; those that are known by name stay.

    A rule is looked at after those that it refers to, so mostly once. A rule of a circle is looked at again where what
    it refers to turned out to be another rule; of two equal rules the one with fewer users does.

    Raises BudgetError: it took too many seconds.
    """
    rules, known = grammar.rules, {grammar.start, *grammar.entries.values(), *grammar.marks}
    edges = {rule: [one for one in dict.fromkeys(references(expr)) if one in rules] for rule, expr in rules.items()}
    order = [rule for rule in inner_first(edges) if rule not in known]
    place = {rule: at for at, rule in enumerate(order)}
    users: dict[str, list[str]] = {rule: [] for rule in order}
    for rule in order:
        for one in edges[rule]:
            if one in users:
                users[one].append(rule)
    alike: dict[str, list[str]] = {rule: [rule] for rule in order}  # leader → the rules that it stands for
    leader: dict[str, str] = {}  # of the other rules
    first: dict[Expr, str] = {}
    queue = list(range(len(order)))  # a heap of places
    for steps in count():
        if not queue:
            break
        if steps & 63 == 0:
            budget.check("")
        rule = order[heappop(queue)]
        if rule in leader:
            continue
        expr = renamed(rules[rule], leader)
        other = first.setdefault(expr, rule)
        if other == rule:
            continue
        if len(users[rule]) + len(alike[rule]) > len(users[other]) + len(alike[other]):
            first[expr], rule, other = rule, other, rule
        leader.update(dict.fromkeys(alike[rule], other))
        alike[other] += alike.pop(rule)
        for user in users[rule]:
            heappush(queue, place[user])
        users[other] += users.pop(rule)
    if not leader:
        return grammar
    rank = {rule: at for at, rule in enumerate(rules)}
    same: dict[str, str] = {}
    for group in alike.values():
        chosen = min(group, key=rank.__getitem__)
        same.update((rule, chosen) for rule in group if rule != chosen)
    return replace(grammar, rules={rule: renamed(expr, same) for rule, expr in rules.items() if rule not in same})


def renamed_text(piece: Piece, root: str) -> str:
    """The Lark text of a piece's own definitions, named after the name of its root."""
    name = {one: _name(one, piece.root, root) for one in (*piece.rules, *piece.own_terminals)}
    return "".join(name.get(token, token) for token in tokens_of(piece.own_text))


def renamed_places(piece: Piece, root: str, origin: str) -> dict[str, str]:
    """The places of its rules and terminals, by the names that they have in that text."""
    return {_name(one, piece.root, root): at(origin, place) for one, place in piece.places.items()}


def _name(one: str, old: str, root: str) -> str:
    """What a rule or terminal of a piece is called outside."""
    if one == old:
        return root
    return f"{root.upper()}__{one}" if one.isupper() else f"{root}__{one}"
