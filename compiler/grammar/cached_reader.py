"""Make a grammar of a protocol, rules and pieces: the arguments of every tool are worked out once, and kept.

Leaves out   reading Lark text (reader.py), writing and keeping pieces (../schema/cached_rules.py).
Invariants   the sum is the grammar of the whole text, names aside: a piece's rules have names of their own, and others
             know it by the name of its root alone; it refers to its own rules, those that all share, and the gaps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from ..budget import Budget
from ..ir.nodes import Closed, Expr, Grammar, matched, renamed
from ..ir.printer import lines_of, rules_text, terminals_text
from ..regex import Regex
from ..schema.cached_rules import Piece
from ..schema.report import at
from .analysis import inner_first, references
from .leftrec import without_left_recursion
from .templates import apply_templates, definitions_of

if TYPE_CHECKING:
    from .reader import LarkText

GAPS = ("_w", "_c", "_k")
_MOST_PROTOCOLS = 64


_protocols: dict[str, LarkText] = {}


def read_protocol(text: str, name: str, budget: Budget | None = None) -> LarkText:
    """The text of a protocol, or a part of it, which may use rules for gaps that stand elsewhere; read once.

    Args:
        name: how errors name it.
        budget: limit on time.
    """
    from .reader import LarkText  # which loads lark, and most schemas need none

    known = _protocols.get(text)
    if known is None:
        if len(_protocols) >= _MOST_PROTOCOLS:
            _protocols.clear()
        gaps = [gap for gap in GAPS if not re.search(rf"(?m)^{gap}[ \t]*:", text)]
        known = _protocols[text] = LarkText(text, name, budget=budget, elsewhere=gaps)
    return known.named(name, budget)


def read_pieces(
    lark: str,
    rules: Mapping[str, Expr],
    terminals: Mapping[str, Regex],
    pieces: Mapping[str, tuple[Piece, str]],
    name: str,
    budget: Budget,
) -> Grammar:
    """The grammar of a protocol, rules around it, and pieces.

    Args:
        lark: text of the protocol; empty for none.
        rules: all that stand neither there nor in a piece.
        terminals: of these, by name.
        pieces: name of the root in the rules → piece, where its places begin.
        name: how errors name the text of the whole.

    Raises:
        BudgetError: it took too many seconds.
        GrammarError: the protocol is malformed, or uses a template wrongly.
    """
    line = lark.count("\n") + 1
    places: dict[str, str] = {}
    for rule, expr in rules.items():
        places[rule] = f"{name}:{line}"
        line += lines_of(expr)
    if lark:
        definitions = read_protocol(lark, name, budget).definitions.joined(rules, places)
    else:
        definitions = definitions_of(rules, places)
    named = {one: matched(regex, one) for one, regex in terminals.items()}
    grammar = without_left_recursion(apply_templates(definitions, "start", budget, named), budget)
    apart = {}
    for root, (piece, origin) in pieces.items():
        budget.check("")
        apart[root] = piece.made(_closed), origin
    return replace(grammar, apart=apart)


def _closed(piece: Piece, _: None) -> Closed:
    budget = Budget(seconds=None)
    terminals = {one: matched(regex, one) for one, regex in piece.terminals.items()}
    grammar = apply_templates(definitions_of(piece.rules, piece.places), piece.root, budget, terminals)
    return Closed(replace(without_left_recursion(grammar, budget), places=piece.places), piece.order)


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
    own = piece.own_terminals
    name = {one: _name(one, piece.root, root) for one in (*piece.rules, *own)}
    rules = {name[one]: renamed(expr, name) for one, expr in piece.rules.items()}
    return rules_text(rules) + terminals_text({name[one]: regex for one, regex in own.items()})


def renamed_places(piece: Piece, root: str, origin: str) -> dict[str, str]:
    """The places of its rules and terminals, by the names that they have in that text."""
    return {_name(one, piece.root, root): at(origin, place) for one, place in piece.places.items()}


def _name(one: str, old: str, root: str) -> str:
    """What a rule or terminal of a piece is called outside."""
    if one == old:
        return root
    return f"{root.upper()}__{one}" if one.isupper() else f"{root}__{one}"
