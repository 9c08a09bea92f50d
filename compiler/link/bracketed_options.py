"""Give large objects and arrays that are one of several alternatives rules of their own, so that they can be parts.

``anyOf: [{"type": "array", …}, {"type": "null"}]`` becomes one rule, a Choice. Only a bracketed rule can be a
definition (definitions.py), and a Choice is none. Once the array is a rule, it is compiled once, and tools share it.

Leaves out   a Choice inside of a sequence: only rules that are a Choice as a whole are searched.
Invariants   the grammar derives the same texts. Only what can be a definition is given a rule. A rule that reaches
             itself keeps its alternatives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..grammar.analysis import references, strong_components
from ..ir.nodes import Choice, Expr, Grammar, Ref, choice, free_name
from .definitions import definitions, is_worth_a_part


def references_of(grammar: Grammar) -> dict[str, list[str]]:
    """The rules that each rule names; one that stands apart (``Grammar.apart``) counts as naming none."""
    refs: dict[str, list[str]] = {root: [] for root in grammar.apart}
    return refs | {rule: list(dict.fromkeys(references(expr))) for rule, expr in grammar.rules.items()}


def with_bracketed_options(grammar: Grammar, bracketed: Callable[[Expr], bool]) -> Grammar:
    """The grammar in which large bracketed options are rules; a reference takes the place of each.

    Args:
        bracketed: whether an expression is one group in brackets.

    Raises BudgetError: it took too many seconds.
    """
    refs = references_of(grammar)
    large: list[tuple[str, int]] = [
        (rule, number)
        for rule, expr in grammar.rules.items()
        if isinstance(expr, Choice)
        for number, option in enumerate(expr.options)
        if bracketed(option) and is_worth_a_part(option, grammar.rules, refs)
    ]
    if not large:
        return grammar
    components = (part for part in strong_components(refs) if len(part) > 1 or part[0] in refs[part[0]])
    recursive = {rule for part in components for rule in part}
    name_of = {
        (rule, number): free_name(f"{rule}#option{number}", grammar.rules)
        for rule, number in large
        if rule not in recursive
    }
    tried = _with_rules(grammar, name_of)
    chosen = set(definitions(tried, references_of(tried), lambda rule: bracketed(tried.rules[rule]), ()))
    return _with_rules(grammar, {option: name for option, name in name_of.items() if name in chosen})


def _with_rules(grammar: Grammar, name_of: dict[tuple[str, int], str]) -> Grammar:
    """The grammar in which options, by rule and number, are rules of these names."""
    rules, places = dict(grammar.rules), dict(grammar.places)
    for rule in dict.fromkeys(rule for rule, _ in name_of):
        expr = grammar.rules[rule]
        assert isinstance(expr, Choice)
        options = list(expr.options)
        for number, option in enumerate(expr.options):
            name = name_of.get((rule, number))
            if name is not None:
                rules[name], options[number] = option, Ref(name)
                if rule in places:
                    places[name] = places[rule]
        rules[rule] = choice(*options)
    return replace(grammar, rules=rules, places=places)
