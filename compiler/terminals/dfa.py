"""Deterministic automata over bytes: the form every terminal takes before it is inlined, and their algebra.

Leaves out   regular expressions (terminal.py makes a Dfa from one), brackets and calls (pushdown.py).
Invariants   every state but a lone start is reachable and can reach acceptance (trim); minimal; classes numbered by
             their first byte, states by discovery over classes, so equal languages give equal arrays.
Arrays       class_of_byte uint8 [256], entries < classes;  next_state int32 [states, classes], -1 is dead;
             accepting bool [states].  State 0 is the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolc.runtime.jit.memory import kernel

from ..budget import Budget, look
from .minimise import minimise_table, number

__all__ = [
    "Dfa", "complement", "difference", "enumerate_texts", "equals", "from_literal", "intersection", "is_empty",
    "make_dfa", "minimise", "shortest", "union", "utf8_texts", "without_beginnings",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Dfa:
    """A trim deterministic automaton over bytes. The empty language is one state that does not accept."""

    class_of_byte: np.ndarray
    next_state: np.ndarray
    accepting: np.ndarray

    @cached_property
    def is_empty(self) -> bool:
        """True if no text at all is accepted."""
        return not bool(self.accepting.any())

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.accepting)

    def accepts(self, data: bytes) -> bool:
        """Whether the whole of ``data`` is in the language."""
        state = 0
        for byte in data:
            state = int(self.next_state[state, self.class_of_byte[byte]])
            if state < 0:
                return False
        return bool(self.accepting[state])


def make_dfa(class_of_byte: np.ndarray, table: np.ndarray, accepting: np.ndarray, *, minimal: bool = False) -> Dfa:
    """Any reachable-or-not table as a Dfa in canonical form.

    Args:
        class_of_byte: int [256], column of each byte.
        table: int32 [states, columns], -1 is dead.
        accepting: bool [states].
        minimal: the table is known to be trim and minimal; only columns and numbers are put in order.
    """
    if not minimal:
        table, accepting = minimise_table(np.asarray(table, np.int32), np.asarray(accepting, bool))
    columns, table = np.asarray(class_of_byte, np.int64), np.ascontiguousarray(table, np.int32)
    return Dfa(*_in_order(columns, table, np.asarray(accepting, bool)))


@kernel()
def _in_order(class_of_byte, table, accepting):  # type: ignore[no-untyped-def]
    """Columns that act alike joined, and numbered by their first byte, then states numbered by discovery: uint8 [256],
    int32 [states, fewer] and bool [states]."""
    states, columns = table.shape
    digest = np.zeros(columns, np.uint64)
    for s in range(states):
        for k in range(columns):
            digest[k] = (digest[k] ^ np.uint64(table[s, k])) * np.uint64(0x9E3779B97F4A7C15)
            digest[k] ^= digest[k] >> np.uint64(29)
    number_of, first, count = np.full(columns, -1, np.int64), np.empty(256, np.int64), 0
    classes = np.empty(256, np.uint8)
    for byte in range(256):
        k = class_of_byte[byte]
        if number_of[k] < 0:
            n = 0
            while n < count:
                if digest[first[n]] == digest[k]:
                    s = 0
                    while s < states and table[s, first[n]] == table[s, k]:
                        s += 1
                    if s == states:
                        break
                n += 1
            if n == count:
                first[count] = k
                count += 1
            number_of[k] = n
        classes[byte] = number_of[k]
    out = np.empty((states, count), np.int32)
    for s in range(states):
        for n in range(count):
            out[s, n] = table[s, first[n]]
    out, final = number(out, accepting, 0)
    return classes, out, final


def minimise(dfa: Dfa) -> Dfa:
    """The same language in canonical form."""
    return make_dfa(dfa.class_of_byte, dfa.next_state, dfa.accepting)


def from_literal(data: bytes) -> Dfa:
    """Exactly these bytes."""
    column = {byte: n for n, byte in enumerate(dict.fromkeys(data))}
    classes = np.full(256, len(column), np.intp)
    table = np.full((len(data) + 1, len(column) + 1), -1, np.int32)
    for at, byte in enumerate(data):
        classes[byte] = column[byte]
        table[at, column[byte]] = at + 1
    accepting = np.zeros(len(data) + 1, bool)
    accepting[-1] = True
    return make_dfa(classes, table, accepting, minimal=True)


def is_empty(dfa: Dfa) -> bool:
    """True if no text at all is accepted."""
    return dfa.is_empty


def equals(left: Dfa, right: Dfa) -> bool:
    """Whether two canonical automata have the same language."""
    return (
        np.array_equal(left.class_of_byte, right.class_of_byte)
        and np.array_equal(left.next_state, right.next_state)
        and np.array_equal(left.accepting, right.accepting)
    )


def _product(
    left: Dfa, right: Dfa, keep: Callable[[bool, bool], bool], need_left: bool, need_right: bool,
    budget: Budget | None, place: str | None,
) -> Dfa:  # fmt: skip
    """Pairs of states; a side that is dead is state -1, and a pair that lacks a needed side is dropped."""
    pairs: dict[tuple[int, int], int] = {}
    classes = np.empty(256, np.intp)
    for byte in range(256):
        pair = (int(left.class_of_byte[byte]), int(right.class_of_byte[byte]))
        classes[byte] = pairs.setdefault(pair, len(pairs))
    left_columns, right_columns = [a for a, _ in pairs], [b for _, b in pairs]
    dead = [-1] * len(pairs)
    left_rows = [*left.next_state[:, left_columns].tolist(), dead]
    right_rows = [*right.next_state[:, right_columns].tolist(), dead]
    left_final, right_final = [*left.accepting.tolist(), False], [*right.accepting.tolist(), False]
    ids = {(0, 0): 0}
    order = [(0, 0)]
    rows: list[list[int]] = []
    for a, b in order:
        if len(rows) & 255 == 0:
            look()
        row: list[int] = []
        for pair in zip(left_rows[a], right_rows[b], strict=True):
            if (need_left and pair[0] < 0) or (need_right and pair[1] < 0) or (pair[0] < 0 and pair[1] < 0):
                row.append(-1)
                continue
            found = ids.get(pair)
            if found is None:
                found = ids[pair] = len(order)
                order.append(pair)
                if budget is not None and found % 1024 == 0:
                    budget.check("states", found, place)
            row.append(found)
        rows.append(row)
    accepting = np.fromiter((keep(left_final[a], right_final[b]) for a, b in order), bool, len(order))
    return make_dfa(classes, np.array(rows, np.int32), accepting)


def union(left: Dfa, right: Dfa, budget: Budget | None = None, place: str | None = None) -> Dfa:
    """Texts of either."""
    return _product(left, right, lambda a, b: a or b, False, False, budget, place)


def intersection(left: Dfa, right: Dfa, budget: Budget | None = None, place: str | None = None) -> Dfa:
    """Texts of both."""
    return _product(left, right, lambda a, b: a and b, True, True, budget, place)


def difference(left: Dfa, right: Dfa, budget: Budget | None = None, place: str | None = None) -> Dfa:
    """Texts of the first only."""
    return _product(left, right, lambda a, b: a and not b, True, False, budget, place)


def without_beginnings(dfa: Dfa, texts: Sequence[bytes]) -> Dfa:
    """Texts of a canonical automaton that begin with none of these.

    Along the texts the states are copied, last ones first. The rest is minimal, so a copy that equals another state has
    the same row as it.
    """
    data = np.frombuffer(b"".join(texts), np.uint8)
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    used = np.flatnonzero(np.bincount(data, minlength=256))
    columns = dfa.next_state.shape[1]
    classes = dfa.class_of_byte.astype(np.int64)
    classes[used] = np.arange(columns, columns + len(used))  # a column for each byte of the texts
    rows = np.concatenate([dfa.next_state, dfa.next_state[:, dfa.class_of_byte[used]]], axis=1)
    size = dfa.size + len(data) + 1
    table, accepting = np.empty((size, rows.shape[1]), np.int32), np.empty(size, bool)
    start = _along(rows, dfa.accepting, classes, data, ends, table, accepting)
    if start < 0:
        return Dfa(np.zeros(256, np.uint8), np.full((1, 1), -1, np.int32), np.zeros(1, bool))
    table, accepting = number(table, accepting, start)
    return make_dfa(classes, table, accepting, minimal=True)


@kernel()
def _along(rows, accepting, column, data, ends, out, final):  # type: ignore[no-untyped-def]
    """Write states, all distinct, with those along texts copied, which go nowhere where a text ends.

    Args:
        rows: int32 [states, columns].
        accepting: bool [states].
        column: int64 [256], that of every byte, no two bytes of the texts in one; columns of no byte are left out.
        data: uint8 [·], the texts; text n ends at ends[n].
        out, final: like ``rows`` and ``accepting``, for the result, copies last; with room.

    Returns:
        the copy of state 0, or the state that it equals, or -1.
    """
    size, columns = rows.shape
    read = np.zeros(columns, np.bool_)
    read[column] = True
    # The trie of the texts: of each node its byte, a child, the next child of its parent, the state at it.
    most = data.size + 1
    byte, child, sibling = np.zeros(most, np.int64), np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    state, refused = np.full(most, -1, np.int64), np.zeros(most, np.int64)
    state[0] = 0
    nodes, at = 1, 0
    for end in ends:
        node = 0
        while at < end:
            found = child[node]
            while found >= 0 and byte[found] != data[at]:
                found = sibling[found]
            if found < 0:
                found = nodes
                nodes += 1
                byte[found], sibling[found], child[node] = data[at], child[node], found
                if state[node] >= 0:
                    state[found] = rows[state[node], column[data[at]]]
            node = found
            at += 1
        refused[node] = 1
    room = 16
    while room < 2 * (size + nodes):
        room *= 2
    table = np.full(room, -1, np.int64)
    made = np.full(nodes, -1, np.int64)
    count = 0
    for n in range(size + nodes):  # the states, then the nodes, children first
        node = size + nodes - 1 - n
        source = n if n < size else state[node]
        if n >= size and (source < 0 or refused[node]):
            continue
        for k in range(columns):
            out[count, k] = rows[source, k] if read[k] else -1
        final[count] = accepting[source]
        found = child[node] if n >= size else -1
        while found >= 0:
            if state[found] >= 0:
                out[count, column[byte[found]]] = made[found]
            found = sibling[found]
        live = 1 if final[count] else 0
        h = np.uint64(live)
        for k in range(columns):
            if out[count, k] >= 0:
                live = 1
            h = (h ^ np.uint64(out[count, k])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(room - 1))
        while table[slot] >= 0:
            other = table[slot]
            k = 0 if final[other] == final[count] else columns + 1
            while k < columns and out[other, k] == out[count, k]:
                k += 1
            if k == columns:
                break
            slot = (slot + 1) & (room - 1)
        if table[slot] < 0 and (live or n < size):
            table[slot] = count
            count += 1
        if live and n >= size:
            made[node] = table[slot]
    return made[0]


def complement(dfa: Dfa, budget: Budget | None = None, place: str | None = None) -> Dfa:
    """Valid UTF-8 texts that are not in the language (never bytes that are no UTF-8)."""
    return difference(utf8_texts(), dfa, budget, place)


_UTF8: list[Dfa] = []


def utf8_texts() -> Dfa:
    """All valid UTF-8 texts (RFC 3629: no surrogates, no overlong forms, up to 10FFFF)."""
    if not _UTF8:
        leads = [(0x00, 0x7F, 0), (0xC2, 0xDF, 1), (0xE0, 0xE0, 4), (0xE1, 0xEC, 2), (0xED, 0xED, 5), (0xEE, 0xEF, 2),
                 (0xF0, 0xF0, 6), (0xF1, 0xF3, 3), (0xF4, 0xF4, 7)]  # fmt: skip
        table = np.full((8, 256), -1, np.int32)
        for low, high, target in leads:
            table[0, low : high + 1] = target
        for state, low, high, target in (
            (1, 0x80, 0xBF, 0), (2, 0x80, 0xBF, 1), (3, 0x80, 0xBF, 2), (4, 0xA0, 0xBF, 1), (5, 0x80, 0x9F, 1),
            (6, 0x90, 0xBF, 2), (7, 0x80, 0x8F, 2),
        ):  # fmt: skip
            table[state, low : high + 1] = target
        accepting = np.zeros(8, bool)
        accepting[0] = True
        _UTF8.append(make_dfa(np.arange(256), table, accepting))
    return _UTF8[0]


def shortest(dfa: Dfa) -> bytes | None:
    """The shortest accepted text, the least of several; None if there is none."""
    return next(enumerate_texts(dfa, 1), None)


def enumerate_texts(dfa: Dfa, limit: int) -> Iterator[bytes]:
    """The first ``limit`` accepted texts, shorter before longer, then by bytes.

    Paths that are still open are kept, so a language with many long texts costs memory in ``limit`` times its width.
    """
    if dfa.is_empty:
        return
    to_end = _distance_to_end(dfa)
    moves: dict[int, list[tuple[int, int]]] = {}
    given, length = 0, int(to_end[0])
    while given < limit:
        # Depth first over texts of exactly this length.
        again = -1
        stack: list[tuple[bytes, int]] = [(b"", 0)]
        while stack and given < limit:
            text, state = stack.pop()
            if state not in moves:
                row = dfa.next_state[state][dfa.class_of_byte]
                bytes_ = np.flatnonzero(row >= 0)
                moves[state] = list(zip(bytes_.tolist(), row[bytes_].tolist(), strict=True))
            left = length - len(text)
            if left == 0:
                if dfa.accepting[state]:
                    yield text
                    given += 1
                if moves[state]:
                    again = length + 1
                continue
            if to_end[state] > left:
                again = length + 1
                continue
            stack.extend((text + bytes((byte,)), target) for byte, target in reversed(moves[state]))
        if again < 0:
            return
        length = again


def _distance_to_end(dfa: Dfa) -> list[int]:
    """Least number of bytes from each state to acceptance."""
    back: list[list[int]] = [[] for _ in range(dfa.size)]
    for state, row in enumerate(dfa.next_state.tolist()):
        for target in dict.fromkeys(row):
            if target >= 0:
                back[target].append(state)
    out = [-1] * dfa.size
    order = [state for state in range(dfa.size) if dfa.accepting[state]]
    for state in order:
        out[state] = 0
    for state in order:
        for before in back[state]:
            if out[before] < 0:
                out[before] = out[state] + 1
                order.append(before)
    return out
