"""The canonical form of rules that recur: names and order are of no matter, content is."""

from __future__ import annotations

from toolc.compiler.grammar.analysis import references, strong_components
from toolc.compiler.ir.nodes import Expr, Grammar, Literal, Ref, choice, sequence
from toolc.compiler.link.canonical import add_signatures, merged


def grammar(rules: dict[str, Expr]) -> Grammar:
    return Grammar(rules, next(iter(rules)))


def signature(made: Grammar) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    edges = {rule: list(references(expr)) for rule, expr in made.rules.items()}
    add_signatures(found, made, strong_components(edges))
    return found


def ring(names: str, last: bytes = b"]") -> dict[str, Expr]:
    """Rules that name the next one, and the last the first."""
    bodies = {}
    for n, name in enumerate(names):
        follower = Ref(names[(n + 1) % len(names)])
        end = last if n + 1 == len(names) else b"]"
        bodies[name] = sequence(Literal(b"["), choice(follower, Literal(b"%d" % n)), Literal(end))
    return bodies


def test_names_and_order_are_of_no_matter() -> None:
    one, other = signature(grammar(ring("abc"))), signature(grammar(dict(reversed(ring("xyz").items()))))
    assert [one[name] for name in "abc"] == [other[name] for name in "xyz"]


def test_what_is_far_away_counts() -> None:
    one, other = signature(grammar(ring("abcdefgh"))), signature(grammar(ring("abcdefgh", b")")))
    assert not set(one.values()) & set(other.values())


def test_rules_that_derive_the_same_are_merged_into_entries() -> None:
    rules = {"start": sequence(Ref("a"), Ref("b")), **{n: sequence(Literal(b"["), Ref(m)) for n, m in ("ab", "ba")}}
    made = grammar(rules)
    found = signature(made)
    assert found["a"] == found["b"] != found["start"]
    left = merged(made, ["b"], found)
    assert left.rules == {"start": sequence(Ref("b"), Ref("b")), "b": sequence(Literal(b"["), Ref("b"))}
    assert merged(grammar(ring("abc")), ["a"], signature(grammar(ring("abc")))).rules == ring("abc")


def test_components_that_differ_far_away_are_not_merged() -> None:
    """In one grammar, too."""
    other = {name.upper(): expr for name, expr in ring("ABCDEFGH", b")").items()}
    made = grammar({"start": sequence(Ref("a"), Ref("A")), **ring("abcdefgh"), **other})
    assert merged(made, ["a"], signature(made)) is made
