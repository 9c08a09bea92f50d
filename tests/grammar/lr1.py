"""Make random grammars that are LR(1): rules at random, kept where the canonical collection has no conflict.

Leaves out   what is done with them (test_deterministic.py).
Source       Knuth 1965.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

Rules = dict[str, list[tuple[str, ...]]]
"""Alternatives by rule; a symbol that is no rule is a terminal, which reads its own name."""

_MOST_ITEM_SETS = 400


def random_lr1(rng: random.Random, letters: str = "abcd") -> Rules:
    """A random grammar whose rules all derive something and are all used, and recur somewhere; it is LR(1)."""
    while True:
        names = ["start", *(f"r{n}" for n in range(rng.randint(0, 3)))]
        words = [*letters[: rng.randint(2, len(letters))]]
        rules: Rules = {}
        for name in names:
            options: dict[tuple[str, ...], None] = {}
            for _ in range(rng.randint(1, 3)):
                size = rng.choice([0, 1, 1, 2, 2, 3, 3, 4])
                options[tuple(rng.choice(names) if rng.random() < 0.45 else rng.choice(words) for _ in range(size))] = (
                    None
                )
            rules[name] = list(options)
        if _is_reduced(rules) and _recurs(rules) and is_lr1(rules):
            return rules


def lark_text(rules: Rules) -> str:
    """The rules as Lark text."""
    shown = {
        name: " | ".join(" ".join(one if one in rules else f'"{one}"' for one in option) for option in options)
        for name, options in rules.items()
    }
    return "".join(f"{name}: {body}\n" for name, body in shown.items())


def _is_reduced(rules: Rules) -> bool:
    productive: set[str] = set()
    while more := {
        name
        for name, options in rules.items()
        if name not in productive and any(all(s in productive or s not in rules for s in option) for option in options)
    }:
        productive |= more
    return productive == rules.keys() and _reached(rules, "start") | {"start"} == rules.keys()


def _reached(rules: Rules, begin: str) -> set[str]:
    found: set[str] = set()
    todo = [begin]
    while todo:
        for option in rules[todo.pop()]:
            for one in option:
                if one in rules and one not in found:
                    found.add(one)
                    todo.append(one)
    return found


def _recurs(rules: Rules) -> bool:
    return any(name in _reached(rules, name) for name in rules)


def is_lr1(rules: Rules) -> bool:
    """Whether the canonical LR(1) collection is small and has no conflict."""
    first = firsts(rules)
    grammar: Rules = {"": [("start",)], **rules}

    def first_of(symbols: tuple[str, ...], after: str) -> Iterator[str]:
        for one in symbols:
            yield from first[one] - {""} if one in rules else {one}
            if one not in rules or "" not in first[one]:
                return
        yield after

    def closed(kernel: frozenset[tuple[str, int, int, str]]) -> frozenset[tuple[str, int, int, str]]:
        found, todo = set(kernel), list(kernel)
        while todo:
            name, number, dot, after = todo.pop()
            option = grammar[name][number]
            if dot < len(option) and option[dot] in rules:
                for look in set(first_of(option[dot + 1 :], after)):
                    for n in range(len(rules[option[dot]])):
                        item = option[dot], n, 0, look
                        if item not in found:
                            found.add(item)
                            todo.append(item)
        return frozenset(found)

    begin = closed(frozenset([("", 0, 0, "$")]))
    seen, todo = {begin}, [begin]
    while todo:
        items = todo.pop()
        actions: dict[str, object] = {}
        moves: dict[str, set[tuple[str, int, int, str]]] = {}
        for name, number, dot, after in items:
            option = grammar[name][number]
            if dot == len(option):
                if actions.setdefault(after, (name, number)) != (name, number):
                    return False
            else:
                moves.setdefault(option[dot], set()).add((name, number, dot + 1, after))
        for symbol in moves:
            if symbol not in rules and actions.setdefault(symbol, "shift") != "shift":
                return False
        for kernel in moves.values():
            then = closed(frozenset(kernel))
            if then not in seen:
                if len(seen) >= _MOST_ITEM_SETS:
                    return False
                seen.add(then)
                todo.append(then)
    return True


def firsts(rules: Rules) -> dict[str, set[str]]:
    """Per rule the terminals that its texts begin with, and the empty text where that is one."""
    found: dict[str, set[str]] = {name: set() for name in rules}
    grew = True
    while grew:
        grew = False
        for name, options in rules.items():
            for option in options:
                more: set[str] = {""}
                for one in option:
                    more = more - {""} | (found[one] if one in rules else {one})
                    if "" not in more:
                        break
                if not more <= found[name]:
                    found[name] |= more
                    grew = True
    return found
