"""Make large objects and arrays that are one of several alternatives rules, so that they can be parts.

``anyOf: [{"type": "array", …}, {"type": "null"}]`` is one rule, a choice. Only a rule in brackets can be a definition
(definitions.py); as one, several tools share it and it is compiled once.

Leaves out   whether such a rule is a part: definitions.py, stubs.py.
Invariants   the grammar derives the same texts. What recurs stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..grammar.analysis import strong_components
from ..ir.nodes import Choice, Expr, Grammar, Ref, choice
from .definitions import is_large


def with_bracketed_options(
    grammar: Grammar, refs: Mapping[str, list[str]], bracketed: Callable[[Expr], bool]
) -> Grammar:
    """The grammar in which each large option in brackets of a rule is a rule.

    Args:
        refs: the rules that each rule names.
        bracketed: whether an expression is one group in brackets.

    Raises BudgetError: it took too many seconds.
    """
    rules = grammar.rules
    large = {
        rule: found
        for rule, expr in grammar.rules.items()
        if isinstance(expr, Choice)
        and (found := [one for one in expr.options if bracketed(one) and is_large(one, grammar.rules, refs)])
    }
    if not large:
        return grammar
    rules, places = dict(grammar.rules), dict(grammar.places)
    recurring = (part for part in strong_components(refs) if len(part) > 1 or part[0] in refs[part[0]])
    recur = {rule for part in recurring for rule in part}
    for rule, found in large.items():
        if rule in recur:
            continue
        names = {}
        for n, option in enumerate(found):
            name = names[option] = f"{rule}#{n}"
            rules[name] = option
            if rule in places:
                places[name] = places[rule]
        expr = rules[rule]
        assert isinstance(expr, Choice)
        rules[rule] = choice(*(Ref(names[one]) if one in names else one for one in expr.options))
    return replace(grammar, rules=rules, places=places)
