"""Order the rules of a part that recurs by what they derive, and merge those that derive the same.

Several tools may use definitions that recur through each other. Each tool meets these definitions in an order of its
own, and has helper rules of its own. In the canonical form the definitions are the same part for all of them.

Two rules have the same signature if their expressions are equal once each name in them is replaced by the signature of
the rule of that name. Signatures of rules that recur through each other are refined until their number stays the same
(partition refinement); then each is joined with all of them, as two components may differ far from a rule.

Leaves out   which rules are parts (split.py).
Invariants   rules of equal signatures derive the same texts, with the same marks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..budget import look
from ..ir.nodes import Grammar, renamed
from .digests import say

_BYTES = 16


def add_signatures(signature: dict[str, bytes], grammar: Grammar, components: Iterable[Sequence[str]]) -> None:
    """Add the signature of each rule of some components; the name of a rule without signature stands for itself.

    Args:
        components: strongly connected, each after those that it refers to.

    Raises BudgetError: it took too many seconds.
    """
    for component in components:
        look()
        content = {rule: _content(grammar, rule) for rule in component}
        own = {rule: _hash(said) for rule, (said, _) in content.items()}
        distinct = 0
        while distinct != (distinct := len(set(own.values()))):
            own = {
                rule: _hash(said, *[own.get(name) or signature.get(name) or name.encode() for name in names])
                for rule, (said, names) in content.items()
            }
        if len(component) > 1:  # what tells two components apart may lie far from a rule
            all_ = _hash(*sorted(set(own.values())))
            own = {rule: _hash(one, all_) for rule, one in own.items()}
        signature |= own


def merged(grammar: Grammar, entries: Iterable[str], signature: Mapping[str, bytes]) -> Grammar:
    """The grammar in which of rules with equal signatures one is left: an entry, or the first."""
    first = {signature[rule]: rule for rule in entries}
    same: dict[str, str] = {}
    for rule in grammar.rules:
        other = first.setdefault(signature.get(rule) or rule.encode(), rule)
        if other != rule:
            same[rule] = other
    return _without(grammar, same) if same else grammar


def _content(grammar: Grammar, rule: str) -> tuple[bytes, list[str]]:
    """What an expression is but for the names in it, and these."""
    said: list[bytes] = []
    names: list[str] = []
    say(grammar.rules[rule], said, {}, names)
    kind = grammar.marks[rule].kind if rule in grammar.marks else ""
    said.append(b"%b %d" % (kind.encode(), rule in grammar.groups))
    return b"".join(said), names


def _without(grammar: Grammar, same: Mapping[str, str]) -> Grammar:
    """The grammar without some rules, for which others stand."""
    rules = {rule: renamed(expr, same) for rule, expr in grammar.rules.items() if rule not in same}
    return replace(grammar, rules=rules, groups=grammar.groups - same.keys())


def _hash(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=_BYTES).digest()
