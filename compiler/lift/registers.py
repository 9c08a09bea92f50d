"""Work out the tests of registers, in objects whose members stand in any order, and the tokens that they take out.

Takes tables in which the states behind keys are marked with their member (../pushdown/members.py): they read a superset
of the texts. A register keeps the bits of the members so far. Every other state of such an object is *live* where some
text goes on from it: a member whose bit is clear comes first on some way, or the end of the object on another, for
which the bits of all required members have to be set. From this follows

    the rule of a state    the test on entering it (it is live), the bit that it sets, the test before a pop
    check lists            the tokens of a row on whose way some test is, with that test

Leaves out   what tests and check lists mean: toolc/runtime/reference.py.
Invariants   `MembersClash` where two tests do not say it, or one token could read a whole object: the caller writes the
             objects without marks then. Behind the last member of an object, either all required ones are there or
             some member is left: so a state from which both a comma and the end may come is live.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.kernels.step import act, op_in, phase, return_in
from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import Tables
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.jit.memory import kernel
from toolc.runtime.selection.subset import counters

from ..budget import Budget
from ..pushdown.members import MembersClash

_CHUNK = 4096  # cells whose ops are looked at together
_QUOTE = ord('"')
_OPENER = ord("{")
PASSES, NEVER = (0, 0), (1, 0)  # tests as (wants, mask): the first passes always, the second never


def has_members(tables: Tables) -> bool:
    """Whether some state is marked with a member."""
    return bool(tables.mark[:, 4].any())


def with_registers(tables: Tables, vocab: Vocab, budget: Budget) -> Tables:
    """The tables with rules and check lists of registers.

    Raises:
        MembersClash: the members of some object cannot be kept in a register.
    """
    if not has_members(tables):
        return tables
    frames = _Frames(tables, budget)
    rules = _Rules(tables.states)
    for states in frames.with_members:
        budget.check("")
        _rule(frames, states, rules)
    if _reads_members_at_once(vocab):
        raise MembersClash
    return _Checks(tables, vocab, frames, rules, budget).tables()


class _Frames:
    """The states of each frame, and the moves between them.

    Attributes:
        member: int32 [states].
        after: state → the states that it goes to, or goes on in once what it pushes is over.
        pops: bool [states]: whether it may pop.
        with_members: states of each frame that has some with a member.
    """

    def __init__(self, t: Tables, budget: Budget) -> None:
        self.member = t.mark[t.state_mark, 4]
        self.pops = np.zeros(t.states, bool)
        self._leaves = np.zeros(t.states, bool)  # whether what is read before a quote may push or pop
        quote = int(t.symbol_class[_QUOTE])
        cell_state = np.repeat(np.arange(t.states), t.cells_of("state_break"))
        pairs: list[np.ndarray] = []
        quiet: list[np.ndarray] = []
        back = _returns(t)
        for begin in range(0, t.cells, _CHUNK):
            budget.check("")
            ops = _ops(t, np.arange(begin, min(begin + _CHUNK, t.cells)))
            row, column = np.nonzero(ops)
            state, op = cell_state[begin + row], ops[row, column]
            kind, number = op & KIND_MASK, op >> KIND_BITS
            goes = kind < PUSH
            pairs.append(_distinct(state[goes], number[goes]))
            goes &= column != quote
            quiet.append(_distinct(state[goes], number[goes]))
            other = (kind >= PUSH) & (column != quote)
            self._leaves[state[other]] = True
            self.pops[state[kind == POP]] = True
            for q, n in _distinct(state[kind == PUSH], t.push[number[kind == PUSH], 0]).tolist():
                pairs.append(np.array([(q, to) for to in back[n]], np.int64).reshape(-1, 2))
        moves = np.unique(np.concatenate(pairs), axis=0)
        self.moves = moves
        first = np.searchsorted(moves[:, 0], np.arange(t.states + 1))
        self.after = lambda q: moves[first[q] : first[q + 1], 1].tolist()
        self._quiet = np.unique(np.concatenate(quiet), axis=0)
        frame = _components(moves, t.states)
        wanted = np.unique(frame[self.member > 0])
        order = np.argsort(frame, kind="stable")
        begin_ = np.searchsorted(frame[order], wanted)
        end = np.searchsorted(frame[order], wanted, side="right")
        self.with_members = [order[a:b] for a, b in zip(begin_, end, strict=True)]
        self.marked = np.zeros(t.states, bool)  # states of such frames
        for states in self.with_members:
            self.marked[states] = True


    def calm(self, ruled: np.ndarray) -> np.ndarray:
        """bool [states]: what is read from it up to the next quote stays in the frame, in states without rules.

        Args:
            ruled: bool [states].
        """
        return ~_reached(self._quiet, self._leaves | ruled)


def _returns(t: Tables) -> list[list[int]]:
    """Of every stack symbol the states in which the frame below goes on."""
    owner, value = t.return_[:, 0], t.return_[:, 1] >> ACTION_BITS
    found: dict[int, set[int]] = defaultdict(set)
    for base, to in zip(owner.tolist(), value.tolist(), strict=True):
        if base >= 0 and to:
            found[base].add(to)
    return [sorted(found[base]) for base in t.return_offset.tolist()]


def _ops(t: Tables, cells: np.ndarray) -> np.ndarray:
    """int32 [cells, classes]: their ops."""
    column = np.arange(t.classes)
    found = np.zeros((cells.size, t.classes), np.int32)
    for base in (t.cell_default[cells], t.cell_delta[cells]):
        place = base[:, None] + column
        owned = t.delta[place, 0] == base[:, None]
        found[owned] = t.delta[place[owned], 1]
    return found


def _distinct(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distinct pairs of two arrays, int64 [·, 2]."""
    key = np.unique(one.astype(np.int64) << 32 | other)
    return np.stack([key >> 32, key & 0xFFFFFFFF], axis=1)


@kernel()
def _joined(moves, label):  # type: ignore[no-untyped-def]
    """Label states that moves connect alike: union by the least number."""
    for i in range(moves.shape[0]):
        a, b = moves[i, 0], moves[i, 1]
        while label[a] != a:
            label[a] = label[label[a]]
            a = label[a]
        while label[b] != b:
            label[b] = label[label[b]]
            b = label[b]
        if a < b:
            label[b] = a
        else:
            label[a] = b
    for i in range(label.size):
        label[i] = label[label[i]]


def _components(moves: np.ndarray, states: int) -> np.ndarray:
    label = np.arange(states, dtype=np.int64)
    kept = moves[(moves > 1).all(axis=1)]  # the dead state and the finished one join no frames
    _joined(np.ascontiguousarray(kept), label)
    for _ in range(64):  # parents come before, so labels settle at once; this is for chains of them
        if (label[label] == label).all():
            break
        label = label[label]
    return label


def _reached(moves: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """bool [states]: from which moves lead to a marked state; those among them."""
    found = marked.copy()
    order = np.argsort(moves[:, 1], kind="stable")
    source, target = moves[order, 0], moves[order, 1]
    first = np.searchsorted(target, np.arange(found.size + 1))
    todo = np.flatnonzero(found).tolist()
    while todo:
        q = todo.pop()
        for p in source[first[q] : first[q + 1]].tolist():
            if not found[p]:
                found[p] = True
                todo.append(p)
    return found


# ---------------------------------------------------------------- rules


class _Rules:
    """Rules of states, and tests, by number.

    Attributes:
        of_state: int32 [states].
        rules: (test, bit, test) → number;  tests: (wants, mask) → number.
        entering: state → its test as (wants, mask), where it has one.
    """

    def __init__(self, states: int) -> None:
        self.of_state = np.zeros(states, np.int32)
        self.rules = {(0, -1, 0): 0}
        self.tests = {PASSES: 0}
        self.entering: dict[int, tuple[int, int]] = {}
        self.bit: dict[int, int] = {}
        self.popping: dict[int, tuple[int, int]] = {}

    def test(self, test: tuple[int, int]) -> int:
        return self.tests.setdefault(test, len(self.tests))

    def put(self, state: int, entering: tuple[int, int], bit: int, popping: tuple[int, int]) -> None:
        rule = self.test(entering), bit, self.test(popping)
        self.of_state[state] = self.rules.setdefault(rule, len(self.rules))
        if entering != PASSES:
            self.entering[state] = entering
        if bit >= 0:
            self.bit[state] = bit
        if popping != PASSES:
            self.popping[state] = popping


def _rule(frames: _Frames, states: np.ndarray, rules: _Rules) -> None:
    """The rules of the states of one frame."""
    member = dict(zip(states.tolist(), frames.member[states].tolist(), strict=True))
    bit = {q: (one - 1) >> 1 for q, one in member.items() if one}
    required = 0
    for one in member.values():
        if one and (one - 1) & 1:
            required |= 1 << ((one - 1) >> 1)
    keys = dict.fromkeys(member, 0)  # the members of which one may come next
    ends = {q: bool(frames.pops[q]) for q in member}  # whether the end may come before any member
    after: dict[int, list[int]] = {}
    for q in member:
        after[q] = [to for to in frames.after(q) if to in member]
        for to in after[q]:
            if to in bit:
                keys[q] |= 1 << bit[to]
        after[q] = [to for to in after[q] if to not in bit]
    order, changed = _last_first(after), True
    while changed:
        changed = False
        for q in order:
            found, end = keys[q], ends[q]
            for to in after[q]:
                found |= keys[to]
                end |= ends[to]
            if found != keys[q] or end != ends[q]:
                keys[q], ends[q], changed = found, end, True
    for q in member:
        popping = (0, required) if frames.pops[q] and required else PASSES
        if q in bit:
            rules.put(q, (1, 1 << bit[q]), bit[q], popping)
        elif ends[q] and required & ~keys[q] == 0:
            rules.put(q, PASSES, -1, popping)
        elif not ends[q]:
            rules.put(q, (1, keys[q]) if keys[q] else PASSES, -1, popping)
        elif not keys[q]:
            rules.put(q, (0, required), -1, popping)
        else:
            raise MembersClash


def _last_first(after: dict[int, list[int]]) -> list[int]:
    """The states, each behind those that it leads to, but for circles."""
    order: list[int] = []
    seen: set[int] = set()
    for root in after:
        todo = [(root, False)]
        while todo:
            q, left = todo.pop()
            if left:
                order.append(q)
            elif q not in seen:
                seen.add(q)
                todo.append((q, True))
                todo += [(to, False) for to in after[q] if to not in seen]
    return order


def _reads_members_at_once(vocab: Vocab) -> bool:
    """Whether some token holds an opening brace and, behind it, two quotes: it could read a key of what it opens."""
    quotes = np.concatenate([[0], np.cumsum(vocab.token_bytes == _QUOTE)])
    place = np.flatnonzero(vocab.token_bytes == _OPENER)
    end = vocab.token_offset[np.searchsorted(vocab.token_offset, place, side="right")]
    return bool((quotes[end] - quotes[place] >= 2).any())


# ---------------------------------------------------------------- walks


class _Walked(NamedTuple):
    """Tables that say how symbols are read, the trie of the vocabulary, and what the rules ask."""

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    breaks: np.ndarray
    cell_delta: np.ndarray
    cell_default: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    node_byte: np.ndarray
    node_depth: np.ndarray
    node_skip: np.ndarray
    node_token_offset: np.ndarray
    quoted: np.ndarray
    calm: np.ndarray
    ruled: np.ndarray


@kernel()
def _walk(m, starts, count, mode, st, frames, events, records, exits, result):  # type: ignore[no-untyped-def]
    """Walk parts of the trie, for the tokens on whose way the register of the frame is asked, or with which it is left.

    Args:
        m: `_Walked`. quoted bool [nodes]: a quote is in the node's subtree, or is its own byte; calm bool [states];
            ruled int32 [states]: not 0 where entering the state asks or sets something.
        starts: int32 [·, 4]: first node, node after the last, state, counter; `count` of them.
        st: int32 [longest token + 2, 5]: state, counter, top frame or -1, cell, last event or -1.
        events: int32 [·, 2], receives the event before, or -1, and a state that is entered, or ~state: left by a pop.
        records: int32 [·, 2], receives node and event of tokens on whose way there was an event.
        exits: int32 [·, 3], receives node, return set and event where the frame is left.
        result: int64 [3], receives how many of each; events or records may not be more than there is room for: -1.
    """
    found = 0
    left = 0
    happened = 0
    for s in range(count):
        i = starts[s, 0]
        end = starts[s, 1]
        if i >= end:
            continue
        base = m.node_depth[i] - 1
        q0 = starts[s, 2]
        st[base, 0] = q0
        st[base, 1] = starts[s, 3]
        st[base, 2] = -1
        st[base, 3] = m.state_cell[q0] + phase(m.breaks, m.state_break[q0], np.int64(starts[s, 3]))
        st[base, 4] = starts[s, 4]
        while i < end:
            depth = m.node_depth[i]
            q = st[depth - 1, 0]
            c = st[depth - 1, 1]
            top = st[depth - 1, 2]
            event = st[depth - 1, 4]
            cell = st[depth - 1, 3]
            if m.calm[q] and top < 0 and not m.quoted[i] and event < 0:
                i = m.node_skip[i]
                continue
            op = op_in(m.delta, m.cell_delta[cell], m.cell_default[cell], m.symbol_class[m.node_byte[i]])
            if op == 0:
                i = m.node_skip[i]
                continue
            if happened + 1 >= events.shape[0] or found >= records.shape[0] or left >= exits.shape[0]:
                result[0] = -1
                return
            kind = op & KIND_MASK
            value = op >> KIND_BITS
            inside = True
            if kind < PUSH:
                q = value
                c = act(kind, c)
            elif kind == PUSH:
                frames[depth, 0] = m.push[value, 0]
                frames[depth, 1] = act(m.push[value, 3], c)
                frames[depth, 2] = top
                top = depth
                q = m.push[value, 1 + mode]
                c = 0
            elif top >= 0:
                back = return_in(m.return_, m.return_offset[frames[top, 0]], value)
                q = back >> ACTION_BITS
                c = act(back & ACTION_MASK, frames[top, 1])
                top = frames[top, 2]
            else:
                inside = False
                if m.ruled[q]:
                    events[happened, 0] = event
                    events[happened, 1] = ~q
                    event = happened
                    happened += 1
            if inside and q == 0:
                i = m.node_skip[i]
                continue
            if inside and top < 0 and m.ruled[q]:
                events[happened, 0] = event
                events[happened, 1] = q
                event = happened
                happened += 1
            if not inside:
                exits[left, 0] = i
                exits[left, 1] = value
                exits[left, 2] = event
                left += 1
                i = m.node_skip[i]
                continue
            if event >= 0 and m.node_token_offset[i + 1] > m.node_token_offset[i]:
                records[found, 0] = i
                records[found, 1] = event
                found += 1
            st[depth, 0] = q
            st[depth, 1] = c
            st[depth, 2] = top
            st[depth, 4] = event
            if m.node_skip[i] > i + 1:
                st[depth, 3] = m.state_cell[q] + phase(m.breaks, m.state_break[q], np.int64(c))
            i += 1
    result[0] = found
    result[1] = left
    result[2] = happened


Test = tuple[int, int]
Exit = tuple[int, int]  # a node of the trie, at which a frame is left, and the return set


class _Checks:
    """The check lists of cells and chains."""

    def __init__(self, t: Tables, vocab: Vocab, frames: _Frames, rules: _Rules, budget: Budget) -> None:
        self.t, self.vocab, self.frames, self.rules, self.budget = t, vocab, frames, rules, budget
        quotes = np.concatenate([[0], np.cumsum(vocab.node_byte == _QUOTE)])
        self.walked = _Walked(
            t.symbol_class, t.state_cell, t.state_break, t.breaks, t.cell_delta, t.cell_default, t.delta, t.push,
            t.return_offset, t.return_, vocab.node_byte, vocab.node_depth, vocab.node_skip, vocab.node_token_offset,
            quotes[vocab.node_skip] > quotes[:-1], frames.calm(rules.of_state > 0), rules.of_state,
        )  # fmt: skip
        self._st = np.zeros((vocab.longest + 2, 5), np.int32)
        self._frames = np.zeros((vocab.longest + 2, 3), np.int32)
        nodes = vocab.node_byte.size + 1
        self._events = np.zeros((nodes, 2), np.int32)
        self._records = np.zeros((nodes, 2), np.int32)
        self._exits = np.zeros((nodes, 3), np.int32)
        self._result = np.zeros(3, np.int64)
        self.lists: dict[bytes, int] = {b"": 0}
        self.rows: list[np.ndarray] = [np.zeros((0, 3), np.int32)]
        self.cell_check = np.zeros((t.cells, t.modes), np.int32)
        self.chain_check = np.zeros(t.chain_row.size, np.int32)

    # -- what is asked

    def tests(self, live: Test, event: int, memo: dict[int, tuple[int, list[Test]]]) -> tuple[int, list[Test]]:
        """What the way to an event sets, and its tests in terms of the register where it begins.

        Args:
            live: the test that the state where it begins has passed.
        """
        if event < 0:
            return 0, []
        known = memo.get(event)
        if known is not None:
            return known
        previous, state = self._events[event].tolist()
        own, asked = self.tests(live, previous, memo)
        asked = list(asked)
        entering = self.rules.entering.get(state, PASSES) if state >= 0 else self.rules.popping.get(~state, PASSES)
        wants, mask = entering
        mask &= ~own
        if not wants and mask == 0:
            pass
        elif wants and mask == 0:
            asked = [NEVER]
        elif wants:
            if not (live[0] and live[1] & ~mask == 0):  # else the beginning is live by less
                asked = [one for one in asked if not (one[0] and mask & ~one[1] == 0)] + [(wants, mask)]
        elif (wants, mask) not in asked:
            asked.append((wants, mask))
        if state >= 0 and state in self.rules.bit:
            own |= 1 << self.rules.bit[state]
        memo[event] = own, asked
        return own, asked

    def walk(self, starts: list[tuple[int, int, int, int, int]], mode: int) -> tuple[np.ndarray, np.ndarray]:
        """The records and the exits of a walk."""
        begin = np.array(starts, np.int32).reshape(-1, 5)
        _walk(
            self.walked, begin, len(starts), mode, self._st, self._frames, self._events, self._records, self._exits,
            self._result,
        )  # fmt: skip
        found, left, _ = self._result.tolist()
        if found < 0:
            raise MembersClash
        return self._records[:found], self._exits[:left]

    def list_of(self, live: Test, records: np.ndarray, exits: np.ndarray, more: Iterable[tuple[int, list[Test]]]) -> int:
        """The number of a check list.

        Args:
            more: tokens and tests of theirs that come to it.
        """
        memo: dict[int, tuple[int, list[Test]]] = {}
        found: dict[int, list[Test]] = {}
        offset, tokens, skip = self.vocab.node_token_offset, self.vocab.node_tokens, self.vocab.node_skip
        for node, event in records.tolist():
            _, asked = self.tests(live, event, memo)
            if asked:
                for token in tokens[offset[node] : offset[node + 1]].tolist():
                    found[token] = asked
        for node, _, event in exits.tolist():
            _, asked = self.tests(live, event, memo)
            if asked:
                for token in tokens[offset[node] : offset[skip[node]]].tolist():
                    found[token] = asked
        for token, asked in more:
            if asked:
                found[token] = asked
        rows = []
        for token in sorted(found):
            asked = found[token]
            if len(asked) > 2:
                raise MembersClash
            one, two = [self.rules.test(test) for test in asked] + [0] * (2 - len(asked))
            rows.append((token, one, two))
        array = np.array(rows, np.int32).reshape(-1, 3)
        key = array.tobytes()
        number = self.lists.get(key)
        if number is None:
            number = self.lists[key] = len(self.rows)
            self.rows.append(array)
        return number

    # -- cells

    def cells(self) -> None:
        """The check lists of the cells of frames with members."""
        t, nodes = self.t, self.walked.node_byte.size
        special = list(zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True))
        for q in np.flatnonzero(self.frames.marked).tolist():
            self.budget.check("")
            live = self.rules.entering.get(q, PASSES)
            if q in self.rules.bit:  # it has set its bit
                live = PASSES
            for p, c in counters(t.breaks[t.state_break[q]]).items():
                cell = int(t.state_cell[q]) + p
                for mode in range(t.modes):
                    records, exits = self.walk([(0, nodes, q, c, -1)], mode)
                    more = [(token, self._special(q, cell, symbol)) for token, symbol in special]
                    self.cell_check[cell, mode] = self.list_of(live, records, exits, more)

    def _special(self, q: int, cell: int, symbol: int) -> list[Test]:
        """The tests on the way of a special token."""
        t = self.t
        base, default, k = int(t.cell_delta[cell]), int(t.cell_default[cell]), int(t.symbol_class[symbol])
        op = int(op_in(t.delta, base, default, k))
        kind, number = op & KIND_MASK, op >> KIND_BITS
        test = PASSES
        if op and kind < PUSH:
            test = self.rules.entering.get(number, PASSES)
        elif kind == POP:
            test = self.rules.popping.get(q, PASSES)
        return [] if test == PASSES else [test]

    # -- chains

    def chains(self) -> None:
        """The check lists of chains, from the profiles of cells down."""
        t = self.t
        owner, value = t.return_[:, 0], t.return_[:, 1] >> ACTION_BITS
        here = np.zeros(len(t.return_) + 1, bool)
        good = (owner >= 0) & self.frames.marked[value]
        here[owner[good]] = True
        marked_symbol = here[t.return_offset]  # stack symbols with which a frame with members goes on
        needed = self._needed(marked_symbol)
        points: dict[int, tuple[int, list[Exit]]] = {}
        nodes = self.walked.node_byte.size
        first: dict[int, tuple[int, int]] = {}
        for mode in range(t.modes):
            exits = t.cell_exit[:, mode]
            found, at = np.unique(exits, return_index=True)
            for e, cell in zip(found.tolist(), at.tolist(), strict=True):
                if e >= 0 and needed[e]:
                    first.setdefault(e, (cell, mode))
        state_of = np.repeat(np.arange(t.states), t.cells_of("state_break"))
        todo: list[int] = []
        for e, (cell, mode) in first.items():
            self.budget.check("")
            q = int(state_of[cell])
            c = counters(t.breaks[t.state_break[q]]).get(cell - int(t.state_cell[q]))
            if c is None:
                continue
            _, exits_ = self.walk([(0, nodes, q, c, -1)], mode)
            points[e] = mode, [(node, r) for node, r, _ in exits_.tolist()]
            todo.append(e)
        while todo:
            self.budget.check("")
            e = todo.pop()
            mode, held = points[e]
            base = int(t.chain_offset[e])
            for g in np.flatnonzero(t.chain[base : base + t.return_offset.size, 0] == base).tolist():
                number = int(t.chain[base + g, 1])
                for p, saved in counters(t.breaks[t.chain_break[number]]).items():
                    chain = int(t.chain_cell[number]) + p
                    further = int(t.chain_exit[chain])
                    if not marked_symbol[g] and (further < 0 or not needed[further] or further in points):
                        continue
                    exits_ = self._below(g, held, saved, mode, chain if marked_symbol[g] else -1)
                    if further >= 0 and needed[further] and further not in points:
                        points[further] = mode, exits_
                        todo.append(further)

    def _below(self, g: int, held: list[Exit], saved: int, mode: int, chain: int) -> list[Exit]:
        """Walk on below a stack symbol: sets the check list of a chain cell, if any, and gives the exits."""
        t, skip = self.t, self.walked.node_skip
        starts: list[tuple[int, int, int, int, int]] = []
        more: list[tuple[int, list[Test]]] = []
        offset, tokens = self.vocab.node_token_offset, self.vocab.node_tokens
        for node, r in held:
            base = int(t.return_offset[g])
            owned, value = t.return_[base + r].tolist()
            q = value >> ACTION_BITS
            if owned != base or q == 0:
                continue
            if self.rules.bit.get(q) is not None:
                raise MembersClash
            asked = self.rules.entering.get(q)
            if asked is not None:
                raise MembersClash
            c = (saved, saved + 1, 0, 1)[value & ACTION_MASK]
            starts.append((node + 1, int(skip[node]), q, c, -1))
        del offset, tokens
        records, exits = self.walk(starts, mode)
        if chain >= 0:
            self.chain_check[chain] = self.list_of(PASSES, records, exits, more)
        return [(node, r) for node, r, _ in exits.tolist()]

    def _needed(self, marked_symbol: np.ndarray) -> np.ndarray:
        """bool [profiles]: whether a token may come to a frame with members by them."""
        t = self.t
        count = int(t.chain_offset.size)
        found = np.zeros(count, bool)
        follows: dict[int, set[int]] = defaultdict(set)
        entry = np.flatnonzero(t.chain[:, 0] >= 0)
        by_base: dict[int, list[int]] = defaultdict(list)
        for place in entry.tolist():
            by_base[int(t.chain[place, 0])].append(place)
        cells = t.cells_of("chain_break")
        for e, base in enumerate(t.chain_offset.tolist()):
            for place in by_base[base]:
                if marked_symbol[place - base]:
                    found[e] = True
                number = int(t.chain[place, 1])
                begin = int(t.chain_cell[number])
                for x in t.chain_exit[begin : begin + int(cells[number])].tolist():
                    if x >= 0:
                        follows[x].add(e)
        todo = np.flatnonzero(found).tolist()
        while todo:
            for e in follows[todo.pop()]:
                if not found[e]:
                    found[e] = True
                    todo.append(e)
        return found

    # -- tables

    def tables(self) -> Tables:
        """The tables with all of it, and without ways to close, which know nothing of registers."""
        self.cells()
        self.chains()
        t, rules = self.t, self.rules
        top = max(mask for _, mask in rules.tests)
        words = max(1, -(-max(top.bit_length(), 1 + max(rules.bit.values())) // 32))
        masks = [np.frombuffer(mask.to_bytes(4 * words, "little"), np.uint32) for _, mask in rules.tests]
        return t.but(
            state_register=rules.of_state,
            register_rule=np.array(list(rules.rules), np.int32),
            test_wants=np.array([wants for wants, _ in rules.tests], np.int32),
            test_mask=np.array(masks, np.uint32),
            cell_check=self.cell_check,
            chain_check=self.chain_check,
            check_offset=np.concatenate([[0], np.cumsum([len(one) for one in self.rows])]).astype(np.int32),
            check=np.concatenate(self.rows),
        )
