"""The kernels of the lift: walk a vocabulary trie through the automaton, many walks a call.

Leaves out   which walks are needed and what becomes of them (lift.py), slices (slice_simulation.py), interning
             (pool.py, walk_results.py).
Arrays       `Machine` and `Walkable` below; st int32 [depth, 6] is scratch: op row, counter, top frame (-1 none),
             increments of the first frame's counter since the start (-1 once it was set anew), frames, place in
             `order` where that has a record in `children` (else -1); frames int32 [depth, 4]: stack symbol, saved
             counter, frame beneath, increments. A frame is named by the depth of the byte that pushed it, so
             backing up in the trie needs no undo.
             A profile is the sequence mode, node, R, node, R, … of where walks leave the frame with tokens below.
Source       preorder tries with skips: the token trie of AICI/llguidance (docs/toktrie.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import BARE, kernel, largest_in

from ..terminals.pool import intern, room
from .bounded_equivalence import representative_op
from .children import Children, next_child
from .counter_intervals import descend_counting
from .walk_results import HEAD, intern_piece, piece_at

_NEVER = 1 << 40  # no counter comes so far


class Machine(NamedTuple):
    """The automaton as arrays.

    state_row int32 [states + 1]: op rows of a state, one per region;  threshold_offset int32 [states + 1],
    threshold int32 [·]; ops int32 [rows, classes];  symbol_class int32 [symbols];  push int32 [pushes, 4];
    return_offset int32 [stack symbols]; return_ int32 [·, 2], a comb (comb.py);  narrow_state bool [states],
    narrow_push bool [pushes]: whether going there decides against a tool (pushdown/marks.py);  alive uint64 [rows, 4]:
    see children.py.
    """

    state_row: np.ndarray
    threshold_offset: np.ndarray
    threshold: np.ndarray
    ops: np.ndarray
    symbol_class: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    narrow_state: np.ndarray
    narrow_push: np.ndarray
    alive: np.ndarray


class Walkable(NamedTuple):
    """A trie, or the part of one that holds the tokens outside of a slice.

    order int32 [n]: full-trie nodes in preorder;  skip int32 [n]: place in `order` after the subtree;  node_byte,
    node_depth,
    token_offset, tokens: of the full trie;  own bool [V]: tokens of the part;
    children: see children.py;  packed int64 [n, 2]: what a walk wants of a place, side by side: skip, byte << 32,
    depth << 40, 1 << 62 where a token of the part ends, and less than 0 where all bytes below it are calm (`is_calm`)
    or a token ends there and those below that are not are control characters; the node, and 1 + that token << 32, 0
    where there is none or several;  longest_rest int32 [256]: by first byte, how many bytes
    of a token follow it at most.
    """

    order: np.ndarray
    skip: np.ndarray
    node_byte: np.ndarray
    node_depth: np.ndarray
    token_offset: np.ndarray
    tokens: np.ndarray
    own: np.ndarray
    children: Children
    packed: np.ndarray
    longest_rest: np.ndarray


@kernel(**BARE)
def is_calm(byte):  # type: ignore[no-untyped-def]
    """Whether a byte is one that most strings only go on with: printable ASCII, no quote, no backslash."""
    return byte >= 32 and byte < 127 and byte != 34 and byte != 92


@kernel()
def packed_places(order, skip, node_byte, node_depth, token_offset, tokens, own):  # type: ignore[no-untyped-def]
    """What a walk wants of the places of a part, see `Walkable`."""
    out = np.empty((order.size, 2), np.int64)
    # By depth, of the nodes that were met since the last one above: 0 all are calm, 1 others are controls, 2 neither.
    worst = np.zeros(largest_in(node_depth) + 2 if node_depth.size > 0 else 2, np.int64)
    for i in range(order.size - 1, -1, -1):
        node = np.int64(order[i])
        ends, last = np.int64(0), np.int64(-1)
        for k in range(token_offset[node], token_offset[node + 1]):
            if own[tokens[k]]:
                last = np.int64(tokens[k]) if ends == 0 else np.int64(-1)
                ends = np.int64(1)
        depth, byte = np.int64(node_depth[node]), np.int64(node_byte[node])
        below, worst[depth + 1] = worst[depth + 1], 0
        worst[depth] = max(worst[depth], below, 0 if is_calm(byte) else 1 if byte < 32 else 2)
        ends |= 2 if below <= ends else 0
        out[i, 0] = np.int64(skip[i]) | byte << 32 | depth << 40 | ends << 62
        out[i, 1] = node | last + 1 << 32
    return out


@kernel()
def longest_rests(order, skip, node_byte, node_depth):  # type: ignore[no-untyped-def]
    """How many bytes of a token follow each first byte at most: int32 [256]."""
    out = np.zeros(256, np.int32)
    i = np.int64(0)
    while i < order.size:
        first = node_byte[order[i]]
        for k in range(i, skip[i]):
            out[first] = max(out[first], node_depth[order[k]] - 1)
        i = np.int64(skip[i])
    return out


@kernel(inline="always", **BARE)  # see `_walk`
def row_at(m, q, c):  # type: ignore[no-untyped-def]
    """The op row of a state at a counter value."""
    row = m.state_row[q]
    for i in range(m.threshold_offset[q], m.threshold_offset[q + 1]):
        if m.threshold[i] <= c:
            row += 1
    return row


@kernel()
def rows_at(m, states, counters):  # type: ignore[no-untyped-def]
    """The op rows of many states, each at a counter value."""
    out = np.empty(states.size, np.int64)
    for i in range(states.size):
        out[i] = row_at(m, np.int64(states[i]), np.int64(counters[i]))
    return out


@kernel(**BARE)
def _take(t, i, out, found):  # type: ignore[no-untyped-def]
    """Append the tokens of the part that end at a place; returns how many there are then."""
    node = t.packed[i, 1]
    if node >> 32:
        out[found] = (node >> 32) - 1
        return found + 1
    for k in range(t.token_offset[node], t.token_offset[node + 1]):
        if t.own[t.tokens[k]]:
            out[found] = t.tokens[k]
            found += 1
    return found


@kernel(inline="always", **BARE)  # a call with so many arrays takes longer than most walks
def _walk(m, t, segments, count, mode, st, frames, out, found, records, left, result):  # type: ignore[no-untyped-def]
    """Walk parts of a trie.

    Args:
        segments: int32 [·, 6], the first ``count`` are walked: first place in `order`, place after the last, state,
            counter, increments so far (-1 if the counter was set on the way here), place of the parent.
        out, found: receives, from place ``found``, the tokens that stay alive or leave the frame with their last byte.
        records, left: receives, from place ``left``, node, R, … where the walk leaves the frame with tokens below.
        result: int64 [6], receives the places after the last token and record, the most increments before a
            threshold was looked at, the most frames pushed, whether anything was pushed, whether it decided
            against a tool.
    """
    most = 0
    tallest = 0
    pushed = 0
    narrowed = 0
    packed, wide = t.packed, t.children.wide
    for s in range(count):
        i = np.int64(segments[s, 0])
        end = np.int64(segments[s, 1])
        if i >= end:
            continue
        base = (packed[i, 0] >> 40 & 0x3FFFFF) - 1
        st[base, 0] = row_at(m, np.int64(segments[s, 2]), np.int64(segments[s, 3]))
        st[base, 1] = segments[s, 3]
        st[base, 2] = -1
        st[base, 3] = segments[s, 4]
        st[base, 4] = 0
        st[base, 5] = segments[s, 5] if wide[segments[s, 5]] >= 0 else -1
        while i < end:
            place = packed[i, 0]
            next_, byte, depth = place & 0xFFFFFFFF, place >> 32 & 255, place >> 40 & 0x3FFFFF
            row = np.int64(st[depth - 1, 0])
            op = m.ops[row, m.symbol_class[byte]]
            if op == 0:
                parent = np.int64(st[depth - 1, 5])
                if parent < 0:
                    i = next_
                else:
                    after = np.int64(t.skip[parent]) if parent < t.skip.size else end
                    i = next_child(t.children, m.alive, row, parent, byte, after)
                continue
            kind = op & KIND_MASK
            value = op >> KIND_BITS
            top = st[depth - 1, 2]
            if place >> 62 & 1:
                found = _take(t, i, out, found)
            if kind < PUSH:
                if m.narrow_state[value]:
                    narrowed = 1
            elif kind == PUSH:
                pushed = 1
                tallest = max(tallest, st[depth - 1, 4] + 1)
                if m.narrow_push[value]:
                    narrowed = 1
            elif top < 0:
                if next_ > i + 1:
                    records[left] = packed[i, 1] & 0xFFFFFFFF
                    records[left + 1] = value
                    left += 2
                i = next_
                continue
            if next_ == i + 1:  # nothing lies below
                i = next_
                continue
            c = st[depth - 1, 1]
            inc = st[depth - 1, 3]
            height = st[depth - 1, 4]
            action = kind
            if kind < PUSH:
                q = value
            elif kind == PUSH:
                action = m.push[value, 3]
                frames[depth, 0] = m.push[value, 0]
                frames[depth, 1] = c if action == 0 else c + 1 if action == 1 else action - 2
                frames[depth, 2] = top
                frames[depth, 3] = inc + 1 if action == 1 and inc >= 0 else -1 if action >= 2 else inc
                top = depth
                height += 1
                q = m.push[value, 1 + mode]
                c = 0
                inc = -1
                action = 0
            else:
                back = m.return_[m.return_offset[frames[top, 0]] + value, 1]
                q = back >> ACTION_BITS
                action = back & ACTION_MASK
                c = frames[top, 1]
                inc = frames[top, 3]
                top = frames[top, 2]
                height -= 1
            if action == 1:
                c += 1
                if inc >= 0:
                    inc += 1
            elif action >= 2:
                c = action - 2
                inc = -1
            row = m.state_row[q]
            if m.state_row[q + 1] - row > 1:
                row = row_at(m, q, c)
                most = max(most, inc)
            st[depth, 0] = row
            st[depth, 1] = c
            st[depth, 2] = top
            st[depth, 3] = inc
            st[depth, 4] = height
            if wide[i] >= 0:
                st[depth, 5] = i
                i = next_child(t.children, m.alive, np.int64(row), i, np.int64(-1), next_)
            else:
                st[depth, 5] = -1
                i += 1
    result[0] = found
    result[1] = left
    result[2] = most
    result[3] = tallest
    result[4] = pushed
    result[5] = narrowed


@kernel(**BARE)
def _range(ahead, q, c):  # type: ignore[no-untyped-def]
    """The last threshold of a state up to a counter value, -1 for none, and the first beyond it, or _NEVER."""
    low, high = np.int64(-1), np.int64(_NEVER)
    for k in range(ahead.offset[q], ahead.offset[q + 1]):
        if ahead.value[k] > c:
            high = np.int64(ahead.value[k])
            break
        low = np.int64(ahead.value[k])
    return low, high


@kernel(**BARE)
def _slot(slots, key, place):  # type: ignore[no-untyped-def]
    """Where a walk is remembered, or can be: see `Memo`."""
    slot = ((key * 0x9E3779B1 + place * 0x85EBCA6B) >> 12) & (slots.shape[0] - 1)
    while slots[slot, 0] >> 40 == key >> 40 and (slots[slot, 0] != key or slots[slot, 1] != place):
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


@kernel(**BARE)
def _look_up(memo, low, high, op_and_byte, c):  # type: ignore[no-untyped-def]
    """Where a walk is remembered, or would be, and whether there is one that values far from ``high`` share."""
    slots = memo.slots
    key = memo.round_[0] << 40 | op_and_byte
    slot = _slot(slots, key, 2 * low + 2)
    shared = slots[slot, 0] == key
    if high < _NEVER and (not shared or c + memo.pieces[0][memo.pieces[1][slots[slot, 2] & 0xFFFFFFFF]] >= high):
        slot = _slot(slots, key, 2 * c + 1)
    return slot, shared


@kernel(**BARE)
def _remember(memo, op_and_byte, place, n, until):  # type: ignore[no-untyped-def]
    """Remember that piece n is what a walk finds, below which counter value, see `Memo`."""
    round_, slots = memo.round_, memo.slots
    if 2 * round_[1] >= slots.shape[0]:  # forget: a table that is full has no end for `_slot`
        round_[0] += 1
        round_[1] = 0
    key = round_[0] << 40 | op_and_byte
    slot = _slot(slots, key, place)
    round_[1] += 1
    slots[slot, 0], slots[slot, 1], slots[slot, 2] = key, place, n | until << 32


@kernel(**BARE)
def _mark_changes(below, parts, c, last, changes):  # type: ignore[no-untyped-def]
    """Note at which counter values, from the second to that behind the last, other parts are found than at the one
    before, see `Space`."""
    for value in range(last - c + 2):
        changes[value] = False
    changes[last - c + 1] = True
    for k in range(parts):
        changes[max(below[0, k] - c, 0)] = True
        changes[min(below[1, k], last) + 1 - c] = True


@kernel(**BARE)
def walk_states(  # type: ignore[no-untyped-def]
    m, t, jobs, at, end, mode, ahead, representative, specials, extra, memo, st, frames, lists, profiles, limits, out
):
    """Rows of states.

    What lies below a first byte depends on nothing but the op on that byte, where no counter meets a threshold: it
    is walked once for all states of a call that share the op, as states of one gap between values do, or whose ops lead
    to states that are equivalent on what can follow (bounded_equivalence.py). Where a
    counter is looked at, a walk is shared by all values that are farther from the next threshold than it counted;
    nearer ones share another one, below the first bytes that come so far (counter_intervals.py). What such a
    walk finds is a piece; states of equal pieces have equal results (walk_results.py).

    Args:
        jobs: int32 [·, 2]: state and counter; those from number ``at`` to ``end`` are walked.
        ahead: `Ahead` of the states (reachable_thresholds.py).
        representative: see `equivalent_states` (bounded_equivalence.py).
        specials: int32 [·, 2]: symbol and token of the special tokens, which no trie holds.
        extra: int32 [·]: the piece of tokens that a job adds as they are, -1 for none.
        memo: see `Memo`.
        lists, profiles: the arrays of two pools;  limits int64 [6]: the longest sequence of each, of pieces and keys;
            how many counter values one walk is for beyond the first; whether jobs share walks.
        out: int32 [·, 6], receives per job the list, the profile (-1 none), the most increments, frames, whether it
            pushed, whether it decided against a tool.

    Returns:
        the number of the first job that was not walked: a pool is full, or all are done.
    """
    data, offset, table, count = lists
    data2, offset2, table2, count2 = profiles
    pieces, piece_offset, piece_table, piece_count = memo.pieces
    keys, key_offset, key_table, key_count = memo.keys
    slots = memo.slots
    space = memo.space
    segment, result, below, firsts = space.segment, space.result, space.below, space.firsts
    lively = 0
    root = t.order.size
    for j in range(at, end):
        if (
            not room(data, offset, table, count, limits[0])
            or not room(data2, offset2, table2, count2, limits[1])
            or not room(keys, key_offset, key_table, key_count, limits[3])
        ):
            return j
        q = jobs[j, 0]
        row = row_at(m, np.int64(q), np.int64(jobs[j, 1]))
        begin2 = np.int64(offset2[count2[0]])
        begin3 = np.int64(key_offset[key_count[0]])
        last3 = begin3 + 1
        keys[begin3] = mode
        c = np.int64(jobs[j, 1])
        low, high = _range(ahead, q, c)
        if limits[5] == 0:
            memo.round_[0] += 1
            memo.round_[1] = 0
        if j == at or limits[5] == 0 or q != jobs[j - 1, 0] or c <= jobs[j - 1, 1] or jobs[j - 1, 1] < low:
            # else much is as before
            lively = 0
            i = next_child(t.children, m.alive, row, root, np.int64(-1), root)
            while i < root:
                x = np.int64(t.node_byte[t.order[i]])
                firsts[lively, 0], firsts[lively, 1], firsts[lively, 3] = i, x, -1
                lively += 1
                i = next_child(t.children, m.alive, row, root, x, root)
        for nth in range(lively):
            n, until = firsts[nth, 2], firsts[nth, 3]
            if c < until:
                if n > 0:
                    keys[last3] = n
                    last3 += 1
                continue
            place, x = firsts[nth, 0], firsts[nth, 1]
            op = np.int64(m.ops[row, m.symbol_class[x]])
            op = representative_op(representative, op, np.int64(t.longest_rest[x]))
            slot, shared = _look_up(memo, low, high, op << 8 | x, c)
            if slots[slot, 0] == memo.round_[0] << 40 | op << 8 | x:
                n, until = slots[slot, 2] & 0xFFFFFFFF, slots[slot, 2] >> 32
                share = slots[slot, 1] == 2 * low + 2
            else:
                if not room(pieces, piece_offset, piece_table, piece_count, limits[2]):
                    return j
                last, apart = c, -2 - low  # under `apart` stands that one walk cannot be for many values
                many = limits[4] > 0 and high < _NEVER and c > max(low, 0)
                if many:
                    slot = _slot(slots, memo.round_[0] << 40 | op << 8 | x, apart)
                    many = slots[slot, 0] != memo.round_[0] << 40 | op << 8 | x
                if many and shared:
                    last = min(high - 1, c + limits[4])
                begin = np.int64(piece_offset[piece_count[0]]) + HEAD
                while True:
                    if last > c:
                        parts = descend_counting(m, ahead, t.packed, t.children, root, q, place, c, last, space)
                    else:
                        parts = np.int64(1)
                        below[0, 0], below[1, 0], below[2, 0], below[3, 0] = c, c, place, t.skip[place]
                        below[4, 0], below[5, 0], below[6, 0], below[7, 0] = root, q, c, 0
                    result[0], result[1] = begin, begin2
                    failed = parts < 0
                    for part in range(parts):
                        if below[3, part] < 0:
                            result[0] = _take(t, below[2, part], pieces, result[0])
                        else:
                            segment[0, 0], segment[0, 1], segment[0, 5] = below[2, part], below[3, part], below[4, part]
                            segment[0, 2], segment[0, 3], segment[0, 4] = below[5, part], below[6, part], below[7, part]
                            _walk(m, t, segment, 1, mode, st, frames, pieces, result[0], data2, result[1], result)
                            failed |= last > c and result[2] > 0
                            for k in range(4):
                                below[10 + k, part] = result[2 + k]
                        below[8, part], below[9, part] = result[0] - begin, result[1] - begin2
                    for k in range(4):
                        result[2 + k] = 0
                        for part in range(parts):
                            result[2 + k] = max(result[2 + k], below[10 + k, part])
                    if failed:
                        last = c
                        _remember(memo, op << 8 | x, apart, np.int64(0), np.int64(0))
                    elif many and last == c and not shared and c + result[2] >= high:
                        last = min(high - 1, c + limits[4])
                    else:
                        break
                    many = False
                n = source = intern_piece(memo.pieces, result[0], data2, begin2, result)
                share, until = not shared and last == c and c + result[2] < high, c + 1
                if last > c:
                    n = np.int64(-1)
                    value = c
                    _mark_changes(below, parts, c, last, space.changes)
                    while value <= last and room(pieces, piece_offset, piece_table, piece_count, limits[2]):
                        lower = piece_at(memo.pieces, source, parts, value, space)
                        beyond = value + 1
                        while not space.changes[beyond - c]:
                            beyond += 1
                        _remember(memo, op << 8 | x, 2 * value + 1, lower, beyond)
                        if value == c:
                            n, until = lower, beyond
                        value = beyond
                    if n < 0:
                        return j
                else:
                    _remember(memo, op << 8 | x, 2 * low + 2 if share else 2 * c + 1, n, until)
            firsts[nth, 2], firsts[nth, 3] = n, high - pieces[piece_offset[n]] if share else until
            if n > 0:  # 0 is the empty one
                keys[last3] = n
                last3 += 1
        narrowed = False
        if extra[j] >= 0:
            keys[last3] = extra[j]
            last3 += 1
        for k in range(specials.shape[0]):
            op = m.ops[row, m.symbol_class[specials[k, 0]]]
            if op != 0:
                keys[last3] = -1 - specials[k, 1]
                last3 += 1
            kind, number = op & KIND_MASK, op >> KIND_BITS
            if (kind < PUSH and m.narrow_state[number]) or (kind == PUSH and m.narrow_push[number]):
                keys[begin3] = mode | 2
                narrowed = True
        fresh = key_count[0]
        n = intern(keys, key_offset, key_table, key_count, last3)
        if n < fresh:
            for k in range(6):
                out[j, k] = memo.found[n, k]
            continue
        last = np.int64(offset[count[0]])
        last2 = begin2 + 1
        data2[begin2] = mode
        for k in range(5):
            out[j, k] = 0
        out[j, 5] = narrowed
        for k in range(begin3 + 1, last3):
            n = keys[k]
            if n < 0:
                data[last] = -1 - n
                last += 1
                continue
            first, after = piece_offset[n], piece_offset[n + 1]
            middle = first + HEAD + pieces[first + 3]
            for i in range(first + HEAD, middle):
                data[last] = pieces[i]
                last += 1
            for i in range(middle, after):
                data2[last2] = pieces[i]
                last2 += 1
            out[j, 2] = max(out[j, 2], pieces[first])
            out[j, 3] = max(out[j, 3], pieces[first + 1])
            out[j, 4] |= pieces[first + 2] & 1
            out[j, 5] |= pieces[first + 2] >> 1
        out[j, 0] = intern(data, offset, table, count, last)
        out[j, 1] = intern(data2, offset2, table2, count2, last2) if last2 > begin2 + 1 else -1
        for k in range(6):
            memo.found[fresh, k] = out[j, k]
    return end


@kernel()
def walk_chains(m, t, jobs, at, end, st, frames, lists, profiles, limits, out):  # type: ignore[no-untyped-def]
    """Rows of exit profiles continued under a stack symbol.

    Args:
        jobs: int32 [·, 3]: profile, stack symbol, the counter saved beside it; those from number ``at`` to
            ``end`` are walked.
        lists, profiles, limits, out: as for `walk_states`.

    Returns:
        the number of the first job that was not walked.
    """
    data, offset, table, count = lists
    data2, offset2, table2, count2 = profiles
    result = np.zeros(6, np.int64)
    for j in range(at, end):
        if not room(data, offset, table, count, limits[0]) or not room(data2, offset2, table2, count2, limits[1]):
            return j
        first = offset2[jobs[j, 0]]
        records = (offset2[jobs[j, 0] + 1] - first - 1) // 2
        mode = np.int64(data2[first])
        segments = np.zeros((records, 6), np.int32)
        used = 0
        base = m.return_offset[jobs[j, 1]]
        for i in range(records):
            node = data2[first + 1 + 2 * i]
            place = base + data2[first + 2 + 2 * i]
            if m.return_[place, 0] != base:
                continue  # this stack symbol is never under such a frame
            action = m.return_[place, 1] & ACTION_MASK
            c = jobs[j, 2]
            segments[used, 0] = node + 1
            segments[used, 1] = t.skip[node]
            segments[used, 2] = m.return_[place, 1] >> ACTION_BITS
            segments[used, 3] = c if action == 0 else c + 1 if action == 1 else action - 2
            segments[used, 4] = 0 if action <= 1 else -1
            segments[used, 5] = node
            used += 1
        begin, begin2 = np.int64(offset[count[0]]), np.int64(offset2[count2[0]])
        data2[begin2] = mode
        _walk(m, t, segments, used, mode, st, frames, data, begin, data2, begin2 + 1, result)
        out[j, 0] = intern(data, offset, table, count, result[0])
        out[j, 1] = intern(data2, offset2, table2, count2, result[1]) if result[1] > begin2 + 1 else -1
        out[j, 2] = result[2]
        out[j, 3] = result[3]
        out[j, 4] = result[4]
        out[j, 5] = result[5]
    return end
