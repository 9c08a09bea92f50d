"""Lift hand-made automata to a vocabulary slowly and obviously: `reference_lift` walks every token from every cell.

Leaves out   speed. What the tables mean: toolc.runtime.reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolc.compiler.lift.completion import close_arrays
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.ops import KIND_BITS, POP, PUSH
from toolc.runtime.format.tables import without_close, without_registers
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.reference import act
from toolc.runtime.selection.comb import rows_at

Stack = list[tuple[int, int]]


DEAD = (0, 0)


def phase(breaks: Any, c: int) -> int:
    """As `Machine.phase` of the reference, over the breakpoints themselves."""
    return sum(min(max(c - at + count, 0), count) for at, count in breaks.tolist())


def bits_of(tokens: Iterable[int], size: int) -> np.ndarray:
    """uint32 [ceil(size/32)] of a set of tokens."""
    mask = np.zeros(-(-size // 32), dtype=np.uint32)
    for token in tokens:
        mask[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    return mask


# ---------------------------------------------------------------- vocabularies


def reference_vocab(
    tokens: list[bytes],
    special: Mapping[str, int],
    end_of_turn: list[int],
    slices: Mapping[str, Callable[[bytes], bool]] | None = None,
) -> Vocab:
    """A vocab from the bytes of every id (empty: no text), by sorting and counting."""
    slices = slices or {}
    prefixes = sorted({t[:n] for t in tokens for n in range(1, len(t) + 1)})
    number = {p: i for i, p in enumerate(prefixes)}
    skip = [
        next((j for j in range(i + 1, len(prefixes)) if not prefixes[j].startswith(p)), len(prefixes))
        for i, p in enumerate(prefixes)
    ]
    ends: list[list[int]] = [[] for _ in prefixes]
    for i, t in enumerate(tokens):
        if t:
            ends[number[t]].append(i)
    members = {s: [i for i, t in enumerate(tokens) if t and inside(t)] for s, inside in slices.items()}
    ordered = [sorted(m, key=lambda i: (len(tokens[i]), i)) for m in members.values()]

    def ints(values: Iterable[int]) -> np.ndarray:
        return np.array(list(values), dtype=np.int32)

    def offsets(lists: Iterable[Any]) -> np.ndarray:
        return np.cumsum([0, *(len(x) for x in lists)], dtype=np.int32)

    return Vocab(
        token_offset=offsets(tokens),
        token_bytes=np.frombuffer(b"".join(tokens), dtype=np.uint8),
        node_byte=np.array([p[-1] for p in prefixes], dtype=np.uint8),
        node_depth=ints(len(p) for p in prefixes),
        node_skip=ints(skip),
        node_token_offset=offsets(ends),
        node_tokens=ints(i for e in ends for i in e),
        slice_token_offset=offsets(ordered),
        slice_tokens=ints(i for m in ordered for i in m),
        slice_units=ints(len(tokens[i]) for m in ordered for i in m),
        meta={
            "size": len(tokens),
            "special": dict(special),
            "end_of_turn": list(end_of_turn),
            "source": "tests",
            "slices": list(slices),
        },
    )


# ---------------------------------------------------------------- machines

Op = tuple[Any, ...]  # ("go", state, action) | ("push", g, free, shallow, action) | ("pop", R)
Move = Callable[[int, int, int], Op | None]  # (state, counter, symbol) -> op; a function of phase(counter)


@dataclass
class Machine:
    """A hand-made pushdown automaton.

    Attributes:
        states: how many, with 0 dead and 1 finished.
        symbols: 256 + specials.
        breaks: of each state, (at, count); the count must cover the longest token.
        move: the transition.
        returns: (stack symbol, R) -> (state, action).
        special: token -> symbol.
    """

    states: int
    symbols: int
    breaks: list[list[tuple[int, int]]]
    move: Move
    stack_symbols: int
    returns: dict[tuple[int, int], tuple[int, int]]
    special: dict[int, int]
    entry: dict[str, int]
    soft_depth: int = 100
    capacity: int = 100
    modes: int = 1


def counters(breaks: list[tuple[int, int]]) -> list[int | None]:
    """For each phase the least counter that has it; None where none has."""
    total = sum(count for _, count in breaks)
    found: list[int | None] = [None] * (total + 1)
    for c in range(max([at for at, _ in breaks], default=0) + 1):
        p = phase(np.array(breaks).reshape(-1, 2), c)
        if found[p] is None:
            found[p] = c
    return found


def comb(vectors: list[dict[int, int]], width: int) -> tuple[list[int], np.ndarray]:
    """First fit of sparse vectors; (offset of each, int32 [·, 2] of owner and value). Equal vectors share."""
    owner: dict[int, int] = {}
    value: dict[int, int] = {}
    bases: dict[tuple[tuple[int, int], ...], int] = {}
    offsets = []
    for vector in vectors:
        key = tuple(sorted(vector.items()))
        if key not in bases:
            base = 0
            while base in bases.values() or any(base + k in owner for k in vector):
                base += 1
            bases[key] = base
            for k, v in vector.items():
                owner[base + k], value[base + k] = base, v
        offsets.append(bases[key])
    length = max(bases.values(), default=0) + width
    return offsets, np.array([(owner.get(i, -1), value.get(i, 0)) for i in range(length)], dtype=np.int32).reshape(
        -1, 2
    )


Walked = tuple[int, int, Stack]  # local state, counter, frames opened by this token


def walk(m: Machine, at: Walked, symbol: int, mode: int) -> Walked | int | None:
    """One symbol above the frame; R if it leaves the frame; None if refused."""
    q, c, stack = at
    op = None if q == 1 else m.move(q, c, symbol)
    if op is None:
        return None
    if op[0] == "go":
        return op[1], act(op[2], c), stack
    if op[0] == "push":
        _, g, free, shallow, action = op
        state = shallow if mode else free
        return (state, 0, [*stack, (g, act(action, c))]) if state else None
    if not stack:
        return int(op[1])
    g, saved = stack[-1]
    state, action = m.returns[g, op[1]]
    return state, act(action, saved), stack[:-1]


def run(m: Machine, at: Walked, symbols: list[int], mode: int) -> tuple[str, int, int]:
    """("in", 0, 0), ("dead", 0, 0), or ("out", symbols read when the frame is left, R)."""
    here: Walked | int | None = at
    for n, symbol in enumerate(symbols):
        here = walk(m, here, symbol, mode)  # type: ignore[arg-type]
        if here is None:
            return "dead", 0, 0
        if isinstance(here, int):
            return "out", n + 1, here
    return "in", 0, 0


def _contents(profiles: list[tuple[int, tuple[tuple[bytes, int], ...]]], vocab: Vocab) -> tuple[np.ndarray, np.ndarray]:
    """Profiles as close_arrays takes them: by the nodes of their prefixes."""
    node: dict[bytes, int] = {}
    path: list[int] = []
    for i, (byte, depth) in enumerate(zip(vocab.node_byte.tolist(), vocab.node_depth.tolist(), strict=True)):
        path[depth - 1 :] = [byte]
        node[bytes(path)] = i
    rows = [[mode, *(x for prefix, r in records for x in (node[prefix], r))] for mode, records in profiles]
    offset = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.array([x for row in rows for x in row], np.int32), offset


def reference_lift(m: Machine, vocab: Vocab, all_dense: bool = False) -> Bundle:
    """The bundle of a machine, by walking every token from every cell and every profile under every stack symbol."""
    tokens = [[m.special[i]] if i in m.special else list(vocab.token(i)) for i in range(vocab.size)]
    width = max(len(b) for b in m.breaks)

    # transitions by (state, phase)
    column: dict[int, list[Any]] = {s: [] for s in range(m.symbols)}
    cells: list[tuple[int, int | None]] = []
    state_cell = []
    for q in range(m.states):
        state_cell.append(len(cells))
        cells.extend((q, c) for c in counters(m.breaks[q]))
    for s in range(m.symbols):
        column[s] = [None if q < 2 or c is None else m.move(q, c, s) for q, c in cells]
    kinds: dict[tuple[Any, ...], int] = {}
    symbol_class = [kinds.setdefault(tuple(column[s]), len(kinds)) for s in range(m.symbols)]
    first = {k: s for s, k in reversed(list(enumerate(symbol_class)))}
    pushes: dict[Op, int] = {}

    def encode(op: Op) -> int:
        if op[0] == "go":
            return int(op[1] << KIND_BITS | op[2])
        if op[0] == "push":
            return pushes.setdefault(op[1:], len(pushes)) << KIND_BITS | PUSH
        return int(op[1] << KIND_BITS | POP)

    vectors = [
        {k: encode(column[s][x]) for k, s in sorted(first.items()) if column[s][x] is not None}
        for x in range(len(cells))
    ]
    cell_delta, delta = comb(vectors, len(kinds))
    sets = 1 + max((r for _, r in m.returns), default=0)
    back: list[dict[int, int]] = [{} for _ in range(m.stack_symbols)]
    for (g, r), (state, action) in sorted(m.returns.items()):
        back[g][r] = state * 4 + action
    return_offset, return_ = comb(back, sets)

    # rows and profiles
    rows: dict[frozenset[int], int] = {frozenset(): 0}
    profiles: dict[tuple[int, tuple[tuple[bytes, int], ...]], int] = {}

    def row(found: set[int]) -> int:
        return rows.setdefault(frozenset(found), len(rows))

    def profile(mode: int, records: set[tuple[bytes, int]]) -> int:
        return profiles.setdefault((mode, tuple(sorted(records))), len(profiles)) if records else -1

    def below(starts: list[tuple[bytes, Walked]], mode: int) -> tuple[int, int]:
        """Row and next profile of the tokens that continue each prefix from its configuration."""
        bits: set[int] = set()
        records: set[tuple[bytes, int]] = set()
        for prefix, at in starts:
            for i, symbols in enumerate(tokens):
                if i in m.special:
                    if not prefix and run(m, at, symbols, mode)[0] != "dead":
                        bits.add(i)
                    continue
                if len(symbols) <= len(prefix) or bytes(symbols[: len(prefix)]) != prefix:
                    continue
                how, n, r = run(m, at, symbols[len(prefix) :], mode)
                n += len(prefix)
                if how == "in" or (how == "out" and n == len(symbols)):
                    bits.add(i)
                elif how == "out":
                    records.add((bytes(symbols[:n]), r))
        return row(bits), profile(mode, records)

    cell_row, cell_exit = [], []
    for q, c in cells:
        found = [below([(b"", (q, c, []))], mode) if q > 1 and c is not None else (0, -1) for mode in range(m.modes)]
        cell_row.append([r for r, _ in found])
        cell_exit.append([e for _, e in found])

    chain_vectors: list[dict[int, int]] = []
    chain_cell: list[int] = []
    chain_break: list[list[tuple[int, int]]] = []
    chain_row: list[int] = []
    chain_exit: list[int] = []
    done = 0
    while done < len(profiles):
        mode, records = list(profiles)[done]
        vector = {}
        for g in range(m.stack_symbols):
            breaks: list[tuple[int, int]] = []
            for _, r in records:
                if (g, r) in m.returns:
                    state, action = m.returns[g, r]
                    for at, count in m.breaks[state]:
                        pair = (at - (action == 1), count)
                        if action < 2 and pair not in breaks:
                            # one step less far away when the return adds one
                            breaks.append(pair if pair[0] >= 0 else (0, 0))
            vector[g] = len(chain_cell)
            chain_cell.append(len(chain_row))
            chain_break.append(breaks)
            width = max(width, len(breaks))
            for saved in counters(breaks):
                if saved is None:
                    chain_row.append(0)
                    chain_exit.append(-1)
                    continue
                starts = []
                for prefix, r in records:
                    if (g, r) in m.returns:
                        state, action = m.returns[g, r]
                        starts.append((prefix, (state, act(action, saved), [])))
                a, b = below(starts, mode)
                chain_row.append(a)
                chain_exit.append(b)
        chain_vectors.append(vector)
        done += 1
    # Unique start rows: a profile must not share one with another whose records differ; equal vectors cannot occur.
    chain_offset, chain = comb(chain_vectors, m.stack_symbols)

    def depth_of(e: int) -> int:
        if e < 0:
            return 0
        exits = [
            chain_exit[i]
            for n in chain_vectors[e].values()
            for i in range(chain_cell[n], (chain_cell + [len(chain_row)])[n + 1])
        ]
        return 1 + max((depth_of(x) for x in exits), default=0)

    # rows in every form that the format has
    row_slice, row_units, row_dense, row_list, dense = [], [], [], [], []
    lists: list[tuple[int, list[int]]] = []  # base or -1, tokens
    for number, members in enumerate(rows):
        best: tuple[int, int, int, set[int]] = (0, -1, -1, set())
        for s in range(vocab.slice_token_offset.size - 1):
            span = range(vocab.slice_token_offset[s], vocab.slice_token_offset[s + 1])
            for units in (-1, *sorted({int(vocab.slice_units[k]) for k in span})):
                part = {int(vocab.slice_tokens[k]) for k in span if units < 0 or vocab.slice_units[k] <= units}
                gain = len(part) - 2 * len(part - members)  # a few that do not belong are toggled away
                if gain > best[0]:
                    best = (gain, s, units, part)
        row_slice.append(best[1])
        row_units.append(best[2])
        more = sorted(members ^ best[3])
        if all_dense or (number % 3 == 2 and more):
            row_dense.append(len(dense))
            half = more if all_dense else more[::2]
            dense.append(bits_of(half, vocab.size))
            more = sorted(set(more) - set(half))
        else:
            row_dense.append(-1)
        # Every second list is the difference to the list before it, if that has no base.
        base = len(lists) - 1 if number % 2 and lists and lists[-1][0] < 0 else -1
        entry = base, sorted(set(more) ^ set(lists[base][1])) if base >= 0 else more
        if entry not in lists:
            lists.append(entry)
        row_list.append(lists.index(entry))

    def ints(values: Any, *shape: int) -> np.ndarray:
        return np.array(values, dtype=np.int32).reshape(*(shape or (-1,)))

    def padded(breaks: list[list[tuple[int, int]]]) -> np.ndarray:
        return ints([b + [(0, 0)] * (width - len(b)) for b in breaks], len(breaks), width, 2)

    spans = [[], *m.breaks, *chain_break]  # equal ones are there as often as they are used

    specials = sorted(m.special.items())
    tables = without_close(
        {
            "symbol_class": ints(symbol_class),
            "special_token": ints([i for i, _ in specials]),
            "special_symbol": ints([s for _, s in specials]),
            "state_cell": ints(state_cell),
            "state_break": ints(range(1, 1 + m.states)),
            "breaks": padded(spans),
            "cell_row": ints(cell_row, len(cells), m.modes),
            "cell_exit": ints(cell_exit, len(cells), m.modes),
            "cell_delta": ints(cell_delta),
            "cell_default": ints(cell_delta),
            "delta": delta,
            "push": ints([list(p) for p in pushes], len(pushes), 4),
            "return_offset": ints(return_offset),
            "return_": return_,
            "chain_offset": ints(chain_offset),
            "chain": chain,
            "chain_cell": ints(chain_cell),
            "chain_break": ints(range(1 + m.states, len(spans))),
            "chain_row": ints(chain_row),
            "chain_exit": ints(chain_exit),
            "row_slice": ints(row_slice),
            "row_units": ints(row_units),
            "row_dense": ints(row_dense),
            "row_list": ints(row_list),
            "list_offset": np.cumsum([0, *(len(tokens) for _, tokens in lists)], dtype=np.int32),
            "list_tokens": ints([i for _, tokens in lists for i in tokens]),
            "list_base": ints([base for base, _ in lists]),
            "dense": np.array(dense, dtype=np.uint32).reshape(len(dense), vocab.words),
            "state_mark": ints([0] * m.states),
            "symbol_mark": ints([0] * m.stack_symbols),
            "mark": ints([[0, -1, -1, 0, 0]], 1, 5),
            "tool_offset": ints([0]),
            "tool_members": ints([]),
            "narrowing": ints([]),
            **without_registers(m.states, len(cells), m.modes, len(chain_row)),
        }
    )
    rows = rows_at(tables.delta, tables.cell_delta, tables.cell_default, tables.classes)
    tables = replace(tables, **close_arrays(tables, vocab, rows, _contents(list(profiles), vocab))[0])
    meta = {
        "format": 1,
        "compiler": "tests",
        "vocab_digest": vocab.digest,
        "vocab_size": vocab.size,
        "entry": m.entry,
        "soft_depth": m.soft_depth,
        "capacity": m.capacity,
        "max_chain": max((depth_of(e) for e in range(len(profiles))), default=0),
        "modes": m.modes,
        "stack_symbols": m.stack_symbols,
        "spec": {"kind": "hand-made", "digest": "", "tools": []},
        "options": {},
        "restrictions": [],
        "keywords": {},
        "counts": {},
    }
    return Bundle(tables, meta, vocab)
