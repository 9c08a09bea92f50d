"""Merge equivalent states of a partial automaton, drop those that accept nothing, number the rest by discovery.

Leaves out   bytes and characters: the columns are symbol classes of any kind (dfa.py, terminal.py).
Invariants   every state is reachable before; after, every state can also reach acceptance, no two are equivalent, and
             equal languages over equal columns give equal arrays. The empty language is one state without moves.
Arrays       table int32 [states, classes], -1 is dead; accepting bool [states]; state 0 is the start.
Cost         strongly connected components are taken last first. A component of one state is merged by hashing its row,
             so chains and tries are linear; a larger one is refined by itself (Hopcroft 1971), then compared with
             what is already there.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.memory import kernel

_SELF = -2  # in a row: the state itself, not yet numbered


def minimise_table(table: np.ndarray, accepting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimal trim automaton of the same language, numbered breadth first over its columns."""
    block, rep = _blocks(table, accepting)
    if block[0] < 0:
        return np.full((1, table.shape[1]), -1, np.int32), np.zeros(1, bool)
    return number(block[table[rep]], accepting[rep], int(block[0]))


def number(table: np.ndarray, accepting: np.ndarray, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The part reachable from ``start``, numbered breadth first over the columns."""
    order, new = _discover(np.ascontiguousarray(table, np.int32), start)
    return new[table[order]], accepting[order]


@kernel()
def _discover(table, start):  # type: ignore[no-untyped-def]
    """States in the order of their discovery, and the place of each there; -1 for those not found, and at the end."""
    order = np.empty(len(table), np.int32)
    new = np.full(len(table) + 1, -1, np.int32)
    order[0] = start
    new[start] = 0
    count = 1
    at = 0
    while at < count:
        for target in table[order[at]]:
            if target >= 0 and new[target] < 0:
                new[target] = count
                order[count] = target
                count += 1
        at += 1
    return order[:count], new


def _components(targets: list[list[int]]) -> list[list[int]]:
    """Strongly connected components of what state 0 reaches, successors before predecessors (Tarjan)."""
    size = len(targets)
    index = [0] * size
    low = [0] * size
    stack: list[int] = []
    out: list[list[int]] = []
    count = 1
    index[0] = low[0] = 1
    stack.append(0)
    path: list[tuple[int, int]] = [(0, 0)]
    done = size + 2
    while path:
        state, at = path.pop()
        row = targets[state]
        lowest = low[state]
        while at < len(row):
            target = row[at]
            if index[target] == 0:
                break
            if index[target] < lowest:
                lowest = index[target]
            at += 1
        low[state] = lowest
        if at < len(row):
            path.append((state, at))
            count += 1
            index[target] = low[target] = count
            stack.append(target)
            path.append((target, 0))
            continue
        if lowest == index[state]:
            part: list[int] = []
            while True:
                one = stack.pop()
                index[one] = done
                part.append(one)
                if one == state:
                    break
            out.append(part)
        if path:
            above = path[-1][0]
            if lowest < low[above]:
                low[above] = lowest
    return out


def _blocks(table: np.ndarray, accepting: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Block of every state (-1 accepts nothing; unreachable ones too) and one member of every block."""
    size = len(table)
    block = np.full(size + 1, -1, np.int32)  # the last entry answers for target -1
    final = accepting.tolist()
    targets = [[t for t in dict.fromkeys(row) if t >= 0] for row in table.tolist()]
    known: dict[tuple[bool, bytes], int] = {}
    looping: dict[tuple[bool, bytes], list[int]] = {}
    rep: list[int] = []

    def add(state: int) -> int:
        rep.append(state)
        block[state] = len(rep) - 1
        return len(rep) - 1

    def remember(state: int, number_: int) -> None:
        """Both keys of a finished block: as seen by others, and as seen by a state that would be it."""
        row = block[table[state]]
        known[final[state], row.tobytes()] = number_
        if (row == number_).any():
            looping.setdefault((final[state], (row >= 0).tobytes()), []).append(number_)
            row[row == number_] = _SELF
            known[final[state], row.tobytes()] = number_

    for part in _components(targets):
        if len(part) == 1:
            state = part[0]
            loops = state in targets[state]
            if not final[state] and all(t == state or block[t] < 0 for t in targets[state]):
                continue
            if loops:
                block[state] = _SELF
            row = block[table[state]]
            key = (final[state], row.tobytes())
            found = known.get(key)
            if found is None and loops:
                # It may also be a state that it leads to: {a, b}* made as a state on a before one on a and b.
                for other in dict.fromkeys(row.tolist()):
                    if (
                        other >= 0
                        and known.get((final[state], np.where(row == _SELF, np.int32(other), row).tobytes())) == other
                    ):
                        found = other
                        break
            if found is None:
                found = add(state)
                if loops:
                    remember(state, found)
                else:
                    known[key] = found
            block[state] = found
            continue
        inside = set(part)
        if not any(final[s] for s in part) and all(t in inside or block[t] < 0 for s in part for t in targets[s]):
            continue
        block[part] = _SELF
        groups = _refine(table, part, block, final)
        # The whole part may be equivalent to blocks found before; then its first state is, and the rest follows.
        first = min(group[0] for group in groups)
        live = (final[first], ((block[table[first]] >= 0) | (block[table[first]] == _SELF)).tobytes())
        matched = None
        for candidate in _alike(table, first, looping.get(live, []), block, rep):
            matched = _simulate(table, first, candidate, block, rep, final)
            if matched is not None:
                break
        if matched is not None:
            for group in groups:
                for state in group:
                    block[state] = matched[group[0]] if group[0] in matched else _any_of(matched, group)
            continue
        fresh = []
        for group in groups:
            made = add(group[0])
            block[group] = made
            fresh.append(made)
        for made in fresh:
            remember(rep[made], made)
            row = block[table[rep[made]]]
            key = (final[rep[made]], (row >= 0).tobytes())
            if made not in looping.setdefault(key, []):
                looping[key].append(made)
    return block, rep


def _alike(table: np.ndarray, first: int, candidates: list[int], block: np.ndarray, rep: list[int]) -> list[int]:
    """The blocks of which `_simulate` does not say at the first state that it is not in them."""
    if not candidates:
        return candidates
    seen = block[table[first]]
    wanted = block[table[[rep[n] for n in candidates]]]
    fits = np.where(seen == _SELF, wanted >= 0, wanted == seen).all(axis=1)
    return [candidates[n] for n in np.flatnonzero(fits).tolist()]


def _any_of(matched: dict[int, int], group: list[int]) -> int:
    return next(matched[state] for state in group if state in matched)


def _simulate(
    table: np.ndarray, first: int, candidate: int, block: np.ndarray, rep: list[int], final: list[bool]
) -> dict[int, int] | None:
    """The block each state of first's component must be in if ``first`` is in ``candidate``; None if it is not."""
    matched = {first: candidate}
    todo = [first]
    for state in todo:
        wanted = block[table[rep[matched[state]]]]
        if final[state] != final[rep[matched[state]]]:
            return None
        seen = block[table[state]]
        inner = seen == _SELF
        if not np.array_equal(seen[~inner], wanted[~inner]):
            return None
        for target, want in dict.fromkeys(zip(table[state][inner].tolist(), wanted[inner].tolist(), strict=True)):
            if want < 0:
                return None
            if target not in matched:
                matched[target] = want
                todo.append(target)
            elif matched[target] != want:
                return None
    return matched


def _refine(table: np.ndarray, part: list[int], block: np.ndarray, final: list[bool]) -> list[list[int]]:
    """Classes of equivalence inside one component whose states have block ``_SELF``."""
    part = sorted(part)
    local = {state: n for n, state in enumerate(part)}
    group_of: list[int] = []
    first: dict[tuple[bool, bytes], int] = {}
    rows = block[table[part]]
    for n, state in enumerate(part):
        group_of.append(first.setdefault((final[state], rows[n].tobytes()), len(first)))
    members: list[set[int]] = [set() for _ in first]
    for n, g in enumerate(group_of):
        members[g].add(n)
    # Predecessors by column; columns that act alike inside the component are one.
    columns: dict[bytes, np.ndarray] = {}
    inner = np.where(rows == _SELF, table[part], -1)
    for column in np.ascontiguousarray(inner.T):
        columns.setdefault(column.tobytes(), column)
    before: list[dict[int, list[int]]] = []
    for column in columns.values():
        back: dict[int, list[int]] = {}
        for n, target in enumerate(column.tolist()):
            if target >= 0:
                back.setdefault(local[target], []).append(n)
        if back:
            before.append(back)
    waiting = list(range(len(members)))
    queued = set(waiting)
    while waiting:
        g = waiting.pop()
        queued.discard(g)
        splitter = sorted(members[g])
        for back in before:
            touched: dict[int, list[int]] = {}
            for target in splitter:
                for n in back.get(target, ()):
                    touched.setdefault(group_of[n], []).append(n)
            for h, hit in touched.items():
                if len(hit) == len(members[h]):
                    continue
                fresh = len(members)
                rest = members[h]
                if 2 * len(hit) <= len(rest):
                    part_of = set(hit)
                    rest -= part_of
                else:
                    part_of = rest - set(hit)
                    members[h] = set(hit)
                members.append(part_of)
                for n in part_of:
                    group_of[n] = fresh
                waiting.append(fresh)
                queued.add(fresh)
                # If h waits, both halves must; else the smaller one, which is always the fresh one, is enough.
    return sorted([part[n] for n in sorted(group)] for group in members)
