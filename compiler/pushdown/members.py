"""Replace the marks of objects whose members stand in any order by members of states, and by what ends ask for.

A mark (ir/nodes.py, `member` and `members`) is a symbol that no text has. In the automaton its one transition goes from
the state behind a key to the state before the colon. The state behind the key takes over the transitions of the other,
and is marked with the *member*: one more than twice the bit, and one more if it is required. The symbols are gone then.

In a union of objects the marks in front of the closing brace say which members an alternative requires: union_ends.py.

The automaton reads a superset of the texts: members may come again, and required ones be left out. What the registers
have to keep is worked out of the marked states (../lift/registers.py).

Leaves out   which objects have marks (../schema/object_rules.py, ../schema/object_unions.py).
Invariants   a marked object, or union, has a frame of its own, in which nothing else is read; `MembersClash` otherwise,
             and the caller writes the objects without marks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN, KEEP, KIND_BITS, KIND_MASK

from ..terminals.workspace import Workspace
from .member_marks import MembersClash, is_required, member_of
from .nodes import CALL, REF, SPECIAL, NodePool
from .union_ends import Transitions, put_ends

if TYPE_CHECKING:
    from .marks import Marks
    from .nfa import Nfa


def check_frames(nfa: Nfa, space: Workspace) -> None:
    """Refuse objects with marks that share a frame with something else, as an alternative or since they are inlined,
    and those whose shallow twin, which has only texts of least height, lacks a required member.

    Raises MembersClash: names them.
    """
    marked = {nfa.mask(1 << END_OF_TURN + 1 + n) for n, name in enumerate(nfa.specials) if member_of(name)}
    if not marked:
        return
    pool, facts = nfa.pool, nfa.facts
    source = np.repeat(np.arange(nfa.size), np.diff(nfa.edges.offset))
    read = np.isin(nfa.edges.data[:, 0], list(marked))
    source, symbol = source[read], nfa.edges.data[read, 0]
    node = np.array([node for node, _ in nfa.instances])[nfa.instance]  # of the frame of every NFA state
    frames = np.unique(node[source])
    data, ends = space.pools["states"].flat()
    begin = ends[:-1][np.diff(ends) > 0]
    low, high = np.minimum.reduceat(node[data], begin), np.maximum.reduceat(node[data], begin)
    mixed = np.concatenate([low[low != high], high[low != high]])
    clashing = {one for one in nfa.choices.inlined if marks_in(pool, one)}
    clashing.update(frames[np.isin(frames, mixed)].tolist())
    number = {nfa.mask(1 << END_OF_TURN + 1 + n): member_of(name) for n, name in enumerate(nfa.specials)}
    for instance in np.unique(nfa.instance[source]).tolist():  # the shallow twin of a frame has only its least texts
        held = {number[one] for one in np.unique(symbol[nfa.instance[source] == instance]).tolist()}
        group = nfa.instances[instance][0]
        if group >= 0 and any(is_required(one) for one in marks_in(pool, group) - held):
            clashing.add(group)
    if clashing or (frames < 0).any():  # the outermost frame is no object's, and has no place
        places = {pool.grammar.places.get(facts.rule_of(one), "") for one in clashing if one >= 0}
        raise MembersClash(places - {""})


def place_of(nfa: Nfa, data: np.ndarray, first: np.ndarray, state: int) -> str:
    """JSON pointer of the value in whose frame a state of the automaton lies; empty where its rule has none.

    Args:
        data, first: the NFA states of all states, and where those of each begin.
    """
    node, _ = nfa.instances[int(nfa.instance[data[first[state]]])]
    place = nfa.pool.grammar.places.get(nfa.facts.rule_of(node), "") if node >= 0 else ""
    return place if "#" in place else ""


def marks_in(pool: NodePool, root: int) -> set[int]:
    """The members whose marks are in a node, those in groups inside of it left out."""
    found: set[int] = set()
    todo, seen = [root], {root}
    while todo:
        n = todo.pop()
        kind, *payload = pool.nodes[n]
        if kind == SPECIAL and member_of(payload[0]):
            found.add(member_of(payload[0]))
        inside = () if kind == CALL else (pool.rules[payload[0]],) if kind == REF else pool.children(n)
        todo += [one for one in inside if one not in seen]
        seen.update(inside)
    return found


def without_marks(
    specials: tuple[str, ...], symbol_class: np.ndarray, t: Transitions, marks: Marks, place_of: Callable[[int], str]
) -> dict[str, Any]:
    """Members of states in the place of marks: what changes of an `Automaton`, by field; nothing where it has none.

    Args:
        specials, symbol_class, marks: of the automaton;  place_of: state → see `place_of`.

    Raises:
        MembersClash: behind a key there is something else than the mark; or see `put_ends`.
    """
    members = [member_of(name) for name in specials]
    if not any(members):
        return {}
    of_class = np.zeros(t.ops.shape[1], np.int64)
    of_class[symbol_class[END_OF_TURN + 1 :]] = members
    columns = np.flatnonzero(of_class > 0)
    rows, column = np.nonzero(t.ops[:, columns])
    state = np.searchsorted(t.state_row, rows, side="right") - 1
    op = t.ops[rows, columns[column]]
    target = op >> KIND_BITS
    one_row = np.diff(t.state_row) == 1
    alone = np.count_nonzero(t.ops[rows], axis=1) == 1
    clashing = ~(alone & one_row[state] & one_row[target] & (op & KIND_MASK == KEEP)) | np.isin(target, state)
    if clashing.any():
        places = {place_of(q) for q in np.unique(state[clashing]).tolist()}
        raise MembersClash(() if "" in places else places)
    ops = t.ops.copy()
    ops[rows] = t.ops[t.state_row[target]]
    marked = dict(zip(state.tolist(), of_class[columns[column]].tolist(), strict=True))
    if (of_class < 0).any():
        put_ends(t._replace(ops=ops), of_class, symbol_class, marked, place_of)
    kept = np.flatnonzero(of_class == 0)
    number = np.cumsum(of_class == 0) - 1
    symbols = np.concatenate([np.arange(END_OF_TURN + 1), END_OF_TURN + 1 + np.flatnonzero(np.array(members) == 0)])
    return {
        "symbol_class": number[symbol_class[symbols]].astype(np.int32),
        "specials": tuple(name for name, one in zip(specials, members, strict=True) if not one),
        "classes": len(kept),
        "ops": np.ascontiguousarray(ops[:, kept]),
        "marks": _marked(marks, marked),
    }


def _marked(marks: Marks, members: dict[int, int]) -> Marks:
    """The marks, with what members says of some states."""
    number = {row: n for n, row in enumerate(marks.table)}
    found = np.array(marks.state, np.int32)
    for q, one in members.items():
        row = (*marks.table[marks.state[q]][:4], one)
        found[q] = number.setdefault(row, len(number))
    return replace(marks, state=found, table=list(number))
