"""Find members that stand in order, so that one loop can read them all.

Members of an object are written as a chain: behind each may come any later one. So the states inside of a value, and
those of the gap behind it, stand there once for each member. As a loop over one trie of keys they stand there once for
all members with equal values; the counter of the frame holds the number of the last key (`Nfa.ordered`).

    CHOSEN   a: A ("," b)? | b     b: B ("," c)? | c     …     some members, at least one
    AFTER    ("," A)? ("," B)? …
    BEFORE   (A ",")? (B ",")? …

Takes a pool in which groups are calls; notes nodes of these forms in `NodePool.ordered`. A run of items within a longer
sequence becomes a rule of its own.

Leaves out   the states of a loop (nfa.py), which decides whether there is one.
Invariants   the texts of a node are as before; no key of a loop is the beginning of another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..budget import Budget
from .nodes import CHOICE, LITERAL, REF, SEQUENCE, Member, NodePool, Ordered, rewrite

LEAST = 3  # members of a loop; fewer are left a chain
CHOSEN, AFTER, BEFORE = range(3)


def find_ordered(pool: NodePool, budget: Budget) -> None:
    """Note the nodes whose texts are members in order."""
    runs: dict[str, Ordered] = {}

    def regroup(items: Sequence[int]) -> Sequence[int]:
        budget.check("")
        return _with_runs(pool, items, runs)

    rewrite(pool, regroup=regroup)
    for rule, run in runs.items():
        pool.ordered[pool.rules[rule]] = run
    links: dict[int, tuple[Member, int, int]] = {}  # node of a chain → its member, the comma, the node behind
    for root in pool.rules.values():
        for n in pool.inside(root):
            if pool.nodes[n][0] == CHOICE and n not in links:
                found = _link(pool, n)
                if found is not None:
                    links[n] = found
    inner = {behind for _, _, behind in links.values()}
    for n in links:
        budget.check("")
        if n not in inner:
            found_chain = _chain(pool, n, links)
            if found_chain is not None:
                pool.ordered[n] = found_chain


def _behind_names(pool: NodePool, number: int) -> int:
    """What stands behind the names of rules without marks."""
    seen: set[int] = set()
    while pool.nodes[number][0] == REF and number not in seen and pool.nodes[number][1] not in pool.grammar.marks:
        seen.add(number)
        number = pool.rules[pool.nodes[number][1]]
    return number


def _optional(pool: NodePool, number: int) -> Sequence[int]:
    """The items of a sequence that may be left out; none where a node is something else."""
    node = pool.nodes[number]
    if node[0] != CHOICE or len(node[1]) != 2 or pool.empty not in node[1]:
        return ()
    inner = pool.nodes[next(n for n in node[1] if n != pool.empty)]
    return inner[1] if inner[0] == SEQUENCE and len(inner[1]) > 1 else ()


def _member(pool: NodePool, items: Sequence[int]) -> Member | None:
    """The member that is written as these items."""
    if len(items) < 2:
        return None
    node = pool.nodes[items[0]]
    return Member(node[1], tuple(items[1:])) if node[0] == LITERAL else None


def _prefix_free(members: Sequence[Member]) -> bool:
    keys = sorted(member.key for member in members)
    return not any(b.startswith(a) for a, b in pairwise(keys))


def _link(pool: NodePool, number: int) -> tuple[Member, int, int] | None:
    """The first member of a chain, the comma, and the node of the chain behind it."""
    options = [n for n in pool.nodes[number][1] if n != pool.empty]
    first = pool.nodes[options[0] if len(options) > 1 else pool.empty]
    if first[0] != SEQUENCE or len(first[1]) < 3:
        return None
    member, more = _member(pool, first[1][:-1]), _optional(pool, first[1][-1])
    if member is None or not more:
        return None
    others, comma = tuple(options[1:]), more[0]
    behind = others[0]
    if len(others) > 1:
        behind = more[1]
        if pool.nodes[behind] != (CHOICE, others):
            return None
    node = pool.nodes[behind]
    if tuple(more[1:]) != (node[1] if node[0] == SEQUENCE else (behind,)):
        return None
    return member, comma, _behind_names(pool, behind)


def _chain(pool: NodePool, number: int, links: dict[int, tuple[Member, int, int]]) -> Ordered | None:
    """The chain that begins with a node."""
    optional = pool.empty in pool.nodes[number][1]
    members: list[Member] = []
    comma, seen = links[number][1], set()
    while number in links and links[number][1] == comma and number not in seen:
        if members and pool.empty in pool.nodes[number][1]:
            break
        seen.add(number)
        member, _, number = links[number]
        members.append(member)
    if len(members) < LEAST or not _prefix_free(members):
        return None
    return Ordered(CHOSEN, comma, tuple(members), number, optional)


def _with_runs(pool: NodePool, items: Sequence[int], runs: dict[str, Ordered]) -> Sequence[int]:
    """The items of a sequence, with runs of members in the place of these."""
    out: list[int] = []
    at = 0
    while at < len(items):
        form, members, comma = _run(pool, items, at)
        if len(members) < LEAST or not _prefix_free(members):
            out.append(items[at])
            at += 1
            continue
        name = f"{pool.start}#ordered{len(pool.rules)}"
        pool.rules[name] = pool.add((SEQUENCE, tuple(items[at : at + len(members)])))
        runs[name] = Ordered(form, comma, tuple(members), -1, True)
        out.append(pool.add((REF, name)))
        at += len(members)
    return out if len(out) < len(items) else items


def _run(pool: NodePool, items: Sequence[int], at: int) -> tuple[int, list[Member], int]:
    """The longest run of members from an item on: its form, they, and the comma."""
    best: tuple[int, list[Member], int] = (AFTER, [], -1)
    for form in (AFTER, BEFORE):
        members: list[Member] = []
        comma = -1
        for item in items[at:]:
            some = _optional(pool, item)
            if not some:
                break
            between, inner = (some[0], some[1:]) if form == AFTER else (some[-1], some[:-1])
            member = _member(pool, inner)
            if member is None or (members and between != comma):
                break
            members.append(member)
            comma = between
        if len(members) > len(best[1]):
            best = form, members, comma
    return best
