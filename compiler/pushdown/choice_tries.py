"""Read alternatives of a large choice that begin alike by a trie, in the place of free moves to each of them.

Behind the quote of a key may come any later key. As moves to each of them, a set of states would hold all later keys,
once for each key: a square. The trie of the keys from one on is that of those behind it and one path more, with which
it shares all else. So it is one state, and equal sets are equal states.

Leaves out   small choices, whose sets are small, too, and those that lead back to themselves; alternatives behind their
             first fork.
Invariants   the texts are the same. Only moves that do not count, within one place, are put together.
Source       path copying: Driscoll, Sarnak, Sleator, Tarjan 1989.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from toolc.runtime.jit.memory import kernel

if TYPE_CHECKING:
    from .nfa import Nfa

MANY = 24  # alternatives of a choice that has a trie
_LONGEST = 4096  # symbols: what is alike for longer is left apart
_MOST_TARGETS = 16  # of a state of a trie on one set of symbols, …
_MOST_SETS = 256  # … and sets that it tells apart: each alternative copies these, so more alternatives stay apart
_ONE_EDGE, _EDGES, _CHOICE, _OTHER = range(4)


class Tries:
    """The states of the tries of an NFA, numbered behind all others.

    Attributes:
        like: of each, one that lies where it does and comes from the same rule.
    """

    def __init__(self, nfa: Nfa, places: np.ndarray, kind: np.ndarray) -> None:
        self.like: list[int] = []
        self._nfa, self._size = nfa, len(places)
        self._kind, self._places = kind.data, places.reshape(-1).data  # told sooner than by arrays
        self._holds: list[list[int]] = []  # of each: the states whose moves it has
        self._moves: list[dict[int, tuple[int, ...]]] = []  # of each: symbols, by the number of the set → targets
        self._with: dict[tuple[int, int], int] = {}  # (state, trie) → the trie that holds both
        self._root: dict[int, int] = {}  # choice → its trie
        self._rest: dict[int, int] = {}  # choice → where the rest of it begins, if there is any
        self._free: list[tuple[int, int]] = []

    def share(self, choice: int) -> None:
        """Give a choice a trie, those inside of it before it."""
        targets = [target for target, _ in self._nfa.free.of(choice)]
        inside = next((target for target in targets if target in self._root), -1)
        root, rest = self._root.get(inside, -1), [self._rest[inside]] if inside in self._rest else []
        for state in reversed(self._alternatives([target for target in targets if target != inside])):
            if self._kind[state] != _ONE_EDGE:
                rest.append(state)
            elif root < 0:
                root = state
            else:
                both = state, root
                if both not in self._with:
                    self._nfa.budget.check("states", self._size + len(self.like))
                    self._with[both] = self._insert(*both)
                if self._with[both] < 0:
                    rest.append(state)
                else:
                    root = self._with[both]
        if root < 0:
            self._kind[choice] = _OTHER  # one state among those of a larger one
            return
        if len(rest) > 1:
            new = self._new(choice, [], {})
            self._free += [(new, state) for state in rest]
            rest = [new]
        self._root[choice] = root
        self._rest.update((choice, state) for state in rest)
        self._free += [(choice, state) for state in (root, *rest)]

    def _alternatives(self, states: list[int]) -> list[int]:
        """What choices without tries of their own lead to."""
        todo, found = states[::-1], []
        while todo:
            state = todo.pop()
            if state not in self._root and self._kind[state] == _CHOICE:
                todo += [target for target, _ in self._nfa.free.of(state)][::-1]
            else:
                found.append(state)
        return found

    def _insert(self, state: int, trie: int) -> int:
        """A trie that reads what another does, or what is read from a state on; -1: it would fork too often."""
        root = above = by = -1
        node, before = trie, len(self.like)
        for _ in range(_LONGEST):
            if node == state:
                break
            copy = self._new(state, [state, node], dict(self._moves_of(node)))
            if above < 0:
                root = copy
            else:
                self._moves[above - self._size][by] = (copy,)
            moves = self._moves[copy - self._size]
            ((symbols, target, _),) = self._nfa.edges.of(state)
            found = moves.get(symbols, ())
            if len(found) != 1 or not self._goes_on(target, found[0]):
                if target not in found:
                    moves[symbols] = (*found, target)
                if len(found) < _MOST_TARGETS and len(moves) <= _MOST_SETS:
                    return root
                del self.like[before:], self._holds[before:], self._moves[before:]
                return -1
            above, by, state, node = copy, symbols, target, found[0]
        if node != state:
            self._moves[above - self._size][by] = (node, state)
        return root if above >= 0 else trie

    def _moves_of(self, node: int) -> dict[int, tuple[int, ...]]:
        if node >= self._size:
            return self._moves[node - self._size]
        moves: dict[int, tuple[int, ...]] = {}
        for symbols, target, _ in self._nfa.edges.of(node):
            moves[symbols] = (*moves.get(symbols, ()), target)
        return moves

    def _goes_on(self, state: int, node: int) -> bool:
        """Whether a state that an alternative comes to can be put into one that a trie comes to."""
        if self._kind[state] != _ONE_EDGE or (node < self._size and self._kind[node] > _EDGES):
            return False
        one, other = 3 * state, 3 * (node if node < self._size else self.like[node - self._size])
        return self._places[one : one + 3] == self._places[other : other + 3]

    def _new(self, like: int, holds: list[int], moves: dict[int, tuple[int, ...]]) -> int:
        self.like.append(like)
        self._holds.append(holds)
        self._moves.append(moves)
        return self._size + len(self.like) - 1

    def by_state(self) -> dict[int, list[int]]:
        """State → those that it reads for."""
        return {self._size + n: states for n, states in enumerate(self._holds) if states}

    def finish(self) -> None:
        """Let the choices have these moves and no others."""
        used = {*self._root.values(), *self._rest.values()}
        todo = list(used)
        edges = []
        for at, node in enumerate(todo):
            if at & 63 == 0:
                self._nfa.budget.check("")
            for symbols, targets in self._moves[node - self._size].items() if node >= self._size else ():
                edges += [(node, symbols, target, 0) for target in targets]
                more = [target for target in targets if target not in used]
                used.update(more)
                todo += more
        states = self._size + len(self.like)
        self._nfa.edges.replace(np.array(edges, np.int32).reshape(-1, 4), states)
        self._nfa.free.replace(np.array([(*row, 0) for row in self._free], np.int32).reshape(-1, 3), states)


def share_tries(nfa: Nfa, places: np.ndarray) -> Tries | None:
    """Give the large choices of an NFA tries, where all moves are there by state; None where there are none.

    Args:
        places: int32 [states, 3]: where each lies.
    """
    edges, free = nfa.edges, nfa.free
    final = np.zeros(len(places), bool)
    final[list(nfa.final)] = True
    choices, kind = _large_choices(
        edges.data, edges.offset, free.data, free.offset, nfa.calls.offset, nfa.guards.offset, places, final, MANY
    )
    if not choices.size:
        return None
    tries = Tries(nfa, places, kind)
    with nfa.budget.blaming(nfa.largest_rule):
        for choice in choices.tolist():
            tries.share(choice)
            nfa.budget.check("states", len(places) + len(tries.like))
    tries.finish()
    return tries


@kernel()
def _large_choices(edge, edge_offset, free, free_offset, call_offset, guard_offset, place, final, many):  # type: ignore[no-untyped-def]
    """The choices with many alternatives.

    Args:
        edge, edge_offset, free, free_offset, call_offset, guard_offset: rows by state, see `Nfa`; the last states have
            neither calls nor guards.
        place: int32 [states, 3];  final: bool [states].
        many: alternatives of a choice that is large.

    Returns:
        the choices, int32 [·], those inside of others first; what every state is, int32 [states].
    """
    states, before = place.shape[0], call_offset.shape[0] - 1
    kind = np.full(states, _OTHER, np.int32)
    for s in range(states):
        if final[s] or (s < before and (call_offset[s] < call_offset[s + 1] or guard_offset[s] < guard_offset[s + 1])):
            continue
        reads, leads = edge_offset[s + 1] - edge_offset[s], free_offset[s + 1] - free_offset[s]
        counts = False
        for i in range(edge_offset[s], edge_offset[s + 1]):
            counts |= edge[i, 2] != 0
        for i in range(free_offset[s], free_offset[s + 1]):
            t = free[i, 0]
            counts |= free[i, 1] != 0
            for k in range(3):
                counts |= place[s, k] != place[t, k]
        if counts or (reads > 0 and leads > 0):
            continue
        if leads > 0:
            kind[s] = _CHOICE
        elif reads > 0:
            kind[s] = _ONE_EDGE if reads == 1 else _EDGES
    weight = np.ones(states, np.int32)  # how many alternatives, at most ``many``
    done = kind != _CHOICE
    found = np.empty(states, np.int32)
    stack, at = np.empty(states, np.int32), np.empty(states, np.int32)
    wait = kind == _CHOICE
    count = 0
    for root in range(states):
        if not wait[root]:
            continue
        wait[root] = False
        weight[root] = 0
        stack[0], at[0], depth = root, free_offset[root], 1
        while depth:
            s = stack[depth - 1]
            if at[depth - 1] == free_offset[s + 1]:
                depth -= 1
                done[s] = True
                if kind[s] == _CHOICE and weight[s] >= many:
                    found[count] = s
                    count += 1
                continue
            t = free[at[depth - 1], 0]
            if wait[t]:
                wait[t] = False
                weight[t] = 0
                stack[depth], at[depth] = t, free_offset[t]
                depth += 1
                continue
            at[depth - 1] += 1
            if not done[t]:  # it leads back to itself, as what may be empty in a loop does: it stays as it is
                kind[s] = _OTHER
            weight[s] = 1 if kind[s] == _OTHER else min(weight[s] + weight[t], many)
    return found[:count].copy(), kind
