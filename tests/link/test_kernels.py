"""The kernels of linking against plain ones: keys of rows, joint classes, toggled lists, chains, where calls lie."""

from __future__ import annotations

import random
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np

from toolc.compiler.lift import comb as combs
from toolc.compiler.lift.chains import chain_keys
from toolc.compiler.link.resolve import _kept, _toggled
from toolc.compiler.link.row_hashes import keys
from toolc.compiler.link.symbol_classes import common, leaders, spread
from toolc.compiler.link.vocab_queries import Words
from toolc.compiler.link.walk import bytes_to_call
from toolc.runtime.format.ops import POP, PUSH
from toolc.runtime.selection.comb import CombRows, pack_quickly, rows_at

from ..lift.test_masks import vocab


def _lists(rng: random.Random, count: int, tokens: int, most: int) -> list[list[int]]:
    return [sorted(rng.sample(range(tokens), rng.randint(0, most))) for _ in range(count)]


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offset = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    return offset, np.array([token for one in lists for token in one], np.int32)


def test_keys_are_equal_where_rows_hold_the_same() -> None:
    rng = random.Random(1)
    met = 0
    for _ in range(30):
        lists = _lists(rng, 12, 4, 3)
        base = [-1] * 6 + [rng.randrange(-1, 6) for _ in range(6)]
        offset, tokens = _flat(lists)
        rows = [
            (rng.randrange(-1, 2), rng.randrange(-1, 2), rng.randrange(-1, 2), rng.randrange(12)) for _ in range(30)
        ]
        slices, units, dense, list_of = (np.array(x, np.int32) for x in zip(*rows, strict=True))
        arrays = {
            "list_offset": offset, "list_tokens": tokens, "list_base": np.array(base, np.int32), "row_slice": slices,
            "row_units": units, "row_dense": dense, "row_list": list_of, "dense": np.array([[0, 5], [5, 0]], np.uint32),
        }  # fmt: skip
        row_key, list_key = keys(arrays)
        held = [set(one) ^ (set(lists[n]) if n >= 0 else set()) for one, n in zip(lists, base, strict=True)]
        for i, j in combinations(range(12), 2):
            same = held[i] == held[j] and (base[i] < 0) == (base[j] < 0)
            assert (list_key[i] == list_key[j]).all() == same
        for i, j in combinations(range(30), 2):
            same = rows[i][:3] == rows[j][:3] and held[rows[i][3]] == held[rows[j][3]]
            assert (row_key[i] == row_key[j]).all() == same
            met += same
    assert met > 50


def test_joint_classes_are_the_fewest() -> None:
    rng = np.random.default_rng(2)
    roles = (np.arange(256) // 7).astype(np.int32)  # classes of bytes that stand beside each other
    symbols = np.concatenate([roles, np.arange(4, dtype=np.int32) + roles.max() + 1])
    count = int(symbols.max()) + 1
    for parts in range(1, 4):
        alike = [rng.integers(0, 4, count) for _ in range(parts)]
        classes, chosen = common(symbols, alike)
        told = [(s == 256, *(int(one[c]) for one in alike)) for s, c in enumerate(symbols.tolist())]
        number: dict[tuple[int, ...], int] = {}
        assert classes.tolist() == [number.setdefault(one, len(number)) for one in told]
        assert [told[symbols.tolist().index(c)] for c in chosen.tolist()] == list(number)


def test_leaders_are_the_first_of_equal_columns() -> None:
    rng = np.random.default_rng(3)
    ops = rng.integers(0, 2, (5, 7)).astype(np.int32) << 3
    comb = np.full((5 * 7 + 7, 2), -1, np.int32)
    rows = np.arange(5) * 7
    comb[: ops.size, 0], comb[: ops.size, 1] = np.repeat(rows, 7), ops.reshape(-1)
    comb[:35][ops.reshape(-1) == 0] = -1, 0
    wanted = [next(j for j in range(k + 1) if (ops[:, j] == ops[:, k]).all()) for k in range(7)]
    found = rows_at(comb, *(rows.astype(np.int32),) * 2, 7)
    assert leaders(found.offset, found.column, found.value, 7).tolist() == wanted


def test_entries_outside_of_rows_are_none() -> None:
    comb = np.array([(0, 5), (0, 6), (0, 7), (9, 8), (4, 9), (1 << 40 - 10, 3), (4, 0), (-1, 2)], np.int32)
    places = np.array([4, 0], np.int32)
    found = rows_at(comb, places, places, 2)
    assert found.of.tolist() == [1, 0] and found.offset.tolist() == [0, 2, 3, 3]
    assert list(zip(found.column.tolist(), found.value.tolist(), strict=True)) == [(0, 5), (1, 6), (0, 9)]


def test_rows_are_spread_over_other_classes() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        rows, classes, others = (int(n) for n in rng.integers(1, 9, 3))
        kinds = rng.integers(0, POP + 1, (rows, classes))
        ops = ((rng.integers(0, 3, (rows, classes)) << 3 | kinds) * (rng.random((rows, classes)) < 0.6)).astype(
            np.int32
        )
        given = CombRows(np.arange(rows), *combs.compressed(ops, np.arange(rows)))
        at, comb = combs.pack(given.offset[:-1], given.column, given.value, classes)
        class_of = rng.integers(0, classes, others)
        state, push = np.array([0, 5, 7]), np.array([4, 6, 2])
        asked = rng.permutation(rows)
        found = rows_at(comb, at[asked], at[asked], classes)
        assert at[asked].tolist() == np.sort(at)[found.of].tolist()
        order = np.argsort(at)
        offset, columns, new = spread(found.offset, found.column, found.value, class_of, state, push)
        assert offset.size == rows + 2 and found.rows == rows
        chosen = rng.integers(0, rows, 5)
        some = given.at(chosen)
        kept = list(dict.fromkeys(chosen.tolist()))
        assert [kept[n] for n in some.of] == chosen.tolist() and some.rows == len(kept)
        for n, r in enumerate(kept):
            part = slice(some.offset[n], some.offset[n + 1])
            assert dict(zip(some.column[part].tolist(), some.value[part].tolist(), strict=True)) == {
                k: op for k, op in enumerate(ops[r].tolist()) if op
            }
        for r, row in enumerate(ops[order].tolist()):
            wanted = []
            for j, k in enumerate(class_of.tolist()):
                kind, number = row[k] & 7, row[k] >> 3
                moved = state[number] if kind < PUSH else push[number] if kind == PUSH else number
                wanted += [(j, moved << 3 | kind)] if row[k] else []
            part = slice(offset[r], offset[r + 1])
            assert list(zip(columns[part].tolist(), new[part].tolist(), strict=True)) == wanted


def test_toggled_rows() -> None:
    rng = random.Random(5)
    lists = _lists(rng, 9, 30, 12)
    base = np.array([-1, -1, -1, 0, 1, 2, 0, -1, 1], np.int32)
    row_list, more = [rng.randrange(9) for _ in range(12)], _lists(rng, 6, 30, 8)
    begin, tokens = _flat([rng.sample(one, len(one)) for one in more])  # a pool's lists are in no order
    columns = [np.array([rng.randrange(-1, 4) for _ in row_list], np.int32) for _ in range(3)]
    rows, further = (np.array([rng.randrange(n) for _ in range(40)], np.int32) for n in (12, 6))
    of, ends, out, which = _toggled(
        rows, further, *columns, np.array(row_list, np.int32), *_flat(lists), base, tokens, begin.astype(np.int64)
    )
    pairs = sorted(set(zip(rows.tolist(), further.tolist(), strict=True)))
    assert [pairs[n] for n in which.tolist()] == list(zip(rows.tolist(), further.tolist(), strict=True))
    first = 0
    for j, (row, m) in enumerate(pairs):
        n = row_list[row]
        assert of[:3, j].tolist() == [column[row] for column in columns]
        own = set(lists[n]) if base[n] >= 0 else set()
        assert out[first : ends[j]].tolist() == sorted(own ^ set(more[m]))
        assert of[3, j] == (n if base[n] < 0 else base[n])
        first = ends[j]


def test_chains_by_profile_and_symbol() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        table = rng.random((int(rng.integers(1, 30)), int(rng.integers(1, 12)))) < 0.3
        e, g = (x.astype(np.int32) for x in np.nonzero(table))
        begin = np.searchsorted(e, np.arange(len(table) + 1)).astype(np.int32)
        number = rng.permutation(e.size).astype(np.int32)
        offset, chain = combs.pack(begin, g, number, table.shape[1])
        found = chain_keys(SimpleNamespace(chain_offset=offset, chain=chain))  # type: ignore[arg-type]
        assert [x.tolist() for x in found] == [e.tolist(), g.tolist(), number.tolist()]


def test_calls_lie_behind_what_can_stand_before_them() -> None:
    held = vocab("builtin")
    words = Words.of(held)
    for openers, before in ((b"{", bytes(range(256))), (b"{[", b": ,"), (b'"', b""), (b"e", b"hr")):
        nodes = words.opening(openers, before)
        token: list[bytes] = []
        path: list[int] = []
        for byte, depth in zip(nodes.byte.tolist(), nodes.depth.tolist(), strict=True):
            path[depth - 1 :] = [byte]
            token.append(bytes(path))
        for i, text in enumerate(token):
            below = [token[j] for j in range(i, int(nodes.skip[i])) if nodes.skip[j] > j + 1]
            deep = [len(t) for t in below if t[-1] in openers and (len(t) == 1 or t[-2] in before)]
            assert nodes.ahead[i] == max(0, max(deep, default=0) - len(text) + 1)
    assert words.most_ahead(b"{") == max(words.opening(b"{").ahead)


def test_chains_that_nothing_exits_with_are_not_kept() -> None:
    rng = np.random.default_rng(6)
    left_out = 0
    for _ in range(60):
        profiles, chains = int(rng.integers(1, 9)), int(rng.integers(0, 12))
        profile = rng.integers(0, profiles, chains).astype(np.int32)
        imports = rng.integers(-4, 2, chains).clip(-1).astype(np.int32)
        breaks = rng.integers(0, 2, (chains, 2, 2)).astype(np.int32)
        lists = np.arange(chains, dtype=np.int32)
        breaks[:1] = 0
        count = breaks[:, :, 1].sum(axis=1) + 1
        owner = np.repeat(np.arange(chains), count)
        exits = rng.integers(-3, profiles, owner.size).clip(-1).astype(np.int32)
        cells = rng.integers(-3, profiles, 2).clip(-1).astype(np.int32)
        used = set(cells[cells >= 0].tolist())
        for _ in range(chains + 1):
            stay = [bool(imports[n] >= 0 or profile[n] in used) for n in range(chains)]
            used |= {e for e, n in zip(exits.tolist(), owner.tolist(), strict=True) if stay[n] and e >= 0}
        marked = np.zeros(profiles, bool)
        kept, kept_cells, first = _kept(cells, profile, imports, lists, breaks, exits, marked)
        assert kept.tolist() == stay and np.flatnonzero(marked).tolist() == sorted(used)
        assert kept_cells.tolist() == [stay[n] for n in owner.tolist()]
        assert first.tolist() == [n for n, start in enumerate(_starts(owner[kept_cells])) if start]
        left_out += stay.count(False)
    assert left_out > 30


def _starts(owner: np.ndarray) -> list[bool]:
    """Whether each is the first of its owner."""
    return [n == 0 or one != owner[n - 1] for n, one in enumerate(owner.tolist())]


def test_bytes_to_call_are_those_of_the_shortest_way() -> None:
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(60):
        states, width, pushes, most = int(rng.integers(3, 14)), 5, 4, int(rng.integers(2, 6))
        kinds = rng.choice([0, 0, 0, 0, 1, PUSH, POP], (states, width), p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.05, 0.05])
        number = np.where(
            kinds == PUSH, rng.integers(0, pushes, (states, width)), rng.integers(2, states, (states, width))
        )
        ops = ((number << 3 | kinds) * (rng.random((states, width)) < 0.5)).astype(np.int32)
        calls = rng.random(pushes) < 0.5
        push = np.zeros((pushes, 4), np.int32)
        push[:, 1] = rng.integers(2, states, pushes)
        row_of = rng.integers(0, states, 2 * (states - 2))  # the cells of all states but the first two
        cells = np.sort(np.concatenate([[0], rng.choice(np.arange(1, row_of.size), states - 3, replace=False)]))
        of_state = [set(part.tolist()) for part in np.split(row_of, cells[1:])]
        rows = CombRows(np.arange(states), *combs.compressed(ops, np.arange(states))).at(row_of)
        found = np.full(states, most + 1, np.int32)
        before = bytes_to_call(
            rows.of, rows.offset, rows.column, rows.value, (cells + 2).astype(np.int32), push, calls, width, most, found
        )
        wanted = [most + 1] * states
        for _ in range(most):
            for q, own in enumerate(of_state, 2):
                for op in (op for r in own for op in ops[r].tolist() if op):
                    kind, n = op & 7, op >> 3
                    way = wanted[n] + 1 if kind < PUSH else (1 if calls[n] else 2) if kind == PUSH else most + 1
                    wanted[q] = min(wanted[q], way)
        assert found.tolist() == wanted
        stands = [False] * width
        for r in set().union(*of_state):
            for k, op in enumerate(ops[r].tolist()):
                kind, n = op & 7, op >> 3
                if kind < PUSH:
                    stands[k] |= op > 0 and wanted[n] == 1
                else:
                    stands[k] |= kind == POP or (not calls[n] and wanted[push[n, 1]] == 1)
        assert before.tolist() == stands
        seen.update(found.tolist())
    assert seen >= {1, 2, 3, 4}


def test_how_many_of_some_bytes_a_token_has() -> None:
    held = vocab("builtin")
    words = Words(held)
    begin, text = held.token_offset.tolist(), held.token_bytes.tobytes()
    rng = random.Random(3)
    for some in (b"", *(bytes([x]) for x in range(256)), *(rng.randbytes(20) for _ in range(20)), bytes(range(256))):
        marked = np.isin(np.arange(256), list(some))
        counts = [sum(byte in some for byte in text[a:b]) for a, b in pairwise(begin)]
        for _ in range(2):  # the second time it is known
            assert words.most_leaving(marked) == max(counts)


def test_rows_that_are_packed_quickly_are_read_back() -> None:
    """Empty rows, rows of one column and rows that begin late have places of their own all the same."""
    rng = np.random.default_rng(8)
    for _ in range(80):
        columns = int(rng.integers(1, 12))
        rows = [np.flatnonzero(rng.random(columns) < rng.choice([0.05, 0.3, 0.9])) for _ in range(rng.integers(0, 9))]
        offset = np.concatenate([[0], np.cumsum([row.size for row in rows])]).astype(np.int64)
        column = np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int32)
        value = rng.integers(1, 99, column.size).astype(np.int32)
        base, comb = pack_quickly(offset, column, value, columns)
        assert len(set(base.tolist())) == len(rows)
        for n, start in enumerate(base.tolist()):
            held = comb[start : start + columns]
            assert len(held) == columns
            mine = held[:, 0] == start
            assert np.flatnonzero(mine).tolist() == rows[n].tolist()
            assert held[mine, 1].tolist() == value[offset[n] : offset[n + 1]].tolist()
        assert (comb[:, 0] >= 0).sum() == column.size
