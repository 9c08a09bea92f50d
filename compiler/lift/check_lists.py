"""List the tokens that registers take out of rows, in objects whose members stand in any order.

The trie of the vocabulary is walked from every cell of a frame that has members, and on below every stack symbol with
which such a frame goes on. A token on whose way some state tests the register is put into the check list, with the
tests in terms of the register before the token: bits that the token sets itself are left out of their masks.

Leaves out   the rules of states: register_rules.py. Rows: walk.py, chains.py.
Invariants   what is pushed within a token has a fresh register, whose tests pass (`reads_members_at_once`).
             A list only takes out: it may have tokens that the row does not have.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.kernels.step import act, op_in, return_in
from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import Tables
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.jit.memory import kernel
from toolc.runtime.selection.subset import counters
from toolc.runtime.selection.trie_walk import Machine, Trie, cell_of

from ..budget import Budget
from ..pushdown.member_marks import MembersClash
from .register_rules import NEVER, PASSES, Frames, Rules, Test

_QUOTE = ord('"')


class _Quotes:
    """Where a vocabulary has quotes; one of each (`Vocab.once`).

    Attributes:
        key_behind_brace: see `reads_keys_at_once`;  item_behind_bracket: see `reads_items_at_once`.
    """

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        text = vocab.token_bytes.tobytes()

        def behind(opener: str) -> set[bytes]:
            """The ends of tokens from an opening bracket on."""
            place = np.flatnonzero(vocab.token_bytes == ord(opener))
            end = vocab.token_offset[np.searchsorted(vocab.token_offset, place, side="right")]
            return {text[begin:stop] for begin, stop in zip(place.tolist(), end.tolist(), strict=True)}

        self.key_behind_brace = any(one.count(b'"') + one.count(b"'") > 1 for one in behind("{"))
        self.item_behind_bracket = any(one.count(b'"') > 1 for one in behind("["))
        self._below: dict[tuple[int, ...], np.ndarray] = {}

    def below(self, quotes: tuple[int, ...]) -> np.ndarray:
        """bool [nodes]: one of some bytes is in the subtree of the node, its own byte included."""
        found = self._below.get(quotes)
        if found is None:
            byte, skip = self.vocab.node_byte, self.vocab.node_skip
            before = np.zeros(byte.size + 1, np.int32)
            np.cumsum(np.isin(np.arange(256), quotes)[byte], out=before[1:])
            found = self._below[quotes] = before[skip] > before[:-1]
        return found


def reads_keys_at_once(vocab: Vocab) -> bool:
    """Whether some token holds an opening brace and, behind it, two quotes: it could read a key of what it opens."""
    return vocab.once(_Quotes).key_behind_brace


def reads_items_at_once(vocab: Vocab) -> bool:
    """Whether some token holds an opening bracket and, behind it, two double quotes: it could read an item of what it
    opens. Arrays in other quotes have no registers."""
    return vocab.once(_Quotes).item_behind_bracket


class _Asked(NamedTuple):
    """What a walk has to know of registers.

    Attributes:
        ruled: int32 [states]: not 0 where entering the state, or a pop from it, has a rule.
        calm: bool [states]: what is read from it up to the next quote stays in the frame, in states without rules.
        quoted: bool [nodes]: a quote is in the subtree of the node, its own byte included.
    """

    ruled: np.ndarray
    calm: np.ndarray
    quoted: np.ndarray


@kernel()
def _walk(m, t, asked, starts, count, mode, st, frames, events, records, exits, result):  # type: ignore[no-untyped-def]
    """Walk parts of the trie, for the tokens on whose way the register of the frame is asked, or with which it is left.

    Args:
        m, t: the tables and the trie (toolc/runtime/selection/trie_walk.py);  asked: `_Asked`.
        starts: int32 [·, 4], of which `count` are walked: first node, node after the last, state, counter. They are
            apart, so a node is met once at most.
        mode: of the tokens where they begin.
        st: int32 [longest token + 2, 5]: state, counter, top frame or -1, cell, last event or -1.
        frames: int32 [longest token + 2, 3]: stack symbol, saved counter, frame beneath.
        events: int32 [nodes, 2], receives the event before, or -1, and a state that is entered, or ~state: left by a
            pop.
        records: int32 [nodes, 2], receives node and event of tokens on whose way there was an event.
        exits: int32 [nodes, 3], receives node, return set and event, or -1, where the frame is left.
        result: int64 [3], receives how many records, exits and events.
    """
    found = 0
    left = 0
    happened = 0
    for s in range(count):
        i = starts[s, 0]
        end = starts[s, 1]
        if i >= end:
            continue
        base = t.node_depth[i] - 1
        q0 = starts[s, 2]
        st[base, 0] = q0
        st[base, 1] = starts[s, 3]
        st[base, 2] = -1
        st[base, 3] = cell_of(m, q0, starts[s, 3])
        st[base, 4] = -1
        while i < end:
            depth = t.node_depth[i]
            q = st[depth - 1, 0]
            c = st[depth - 1, 1]
            top = st[depth - 1, 2]
            event = st[depth - 1, 4]
            cell = st[depth - 1, 3]
            if asked.calm[q] and top < 0 and not asked.quoted[i] and event < 0:
                i = t.node_skip[i]
                continue
            op = op_in(m.delta, m.cell_delta[cell], m.cell_default[cell], m.symbol_class[t.node_byte[i]])
            if op == 0:
                i = t.node_skip[i]
                continue
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
                if asked.ruled[q]:
                    events[happened, 0] = event
                    events[happened, 1] = ~q
                    event = happened
                    happened += 1
            if inside and q == 0:
                i = t.node_skip[i]
                continue
            if inside and top < 0 and asked.ruled[q]:
                events[happened, 0] = event
                events[happened, 1] = q
                event = happened
                happened += 1
            if not inside:
                exits[left, 0] = i
                exits[left, 1] = value
                exits[left, 2] = event
                left += 1
                i = t.node_skip[i]
                continue
            if event >= 0 and t.node_token_offset[i + 1] > t.node_token_offset[i]:
                records[found, 0] = i
                records[found, 1] = event
                found += 1
            st[depth, 0] = q
            st[depth, 1] = c
            st[depth, 2] = top
            st[depth, 4] = event
            if t.node_skip[i] > i + 1:
                st[depth, 3] = cell_of(m, q, c)
            i += 1
    result[0] = found
    result[1] = left
    result[2] = happened


class _Texts(NamedTuple):
    """The tokens of a vocabulary, by node of its trie: token_offset, tokens, skip as in the vocab file; ordinary bool
    [V]: it is read by its bytes."""

    token_offset: np.ndarray
    tokens: np.ndarray
    skip: np.ndarray
    ordinary: np.ndarray


@kernel()
def _tokens(texts, records, exits, of_event, tests, rows):  # type: ignore[no-untyped-def]
    """Into rows int32 [V, 3]: the tokens on whose way the register is asked, each with its two tests. Returns how many,
    or -1 where one has more tests.

    Args:
        texts: `_Texts`;  records int32 [·, 2], exits int32 [·, 3]: what `_walk` found.
        of_event int32 [events], tests int32 [·, 2]: the conditions of events, and their tests.
    """
    count = 0
    for i in range(records.shape[0] + exits.shape[0]):
        if i < records.shape[0]:
            node, event = records[i, 0], records[i, 1]
            end = node + 1
        else:
            node, event = exits[i - records.shape[0], 0], exits[i - records.shape[0], 2]
            end = texts.skip[node]
        if event < 0 or tests[of_event[event], 0] == 0:
            continue
        for k in range(texts.token_offset[node], texts.token_offset[end]):
            token = texts.tokens[k]
            if not texts.ordinary[token]:
                continue
            if tests[of_event[event], 1] < 0:
                return -1
            rows[count, 0] = token
            rows[count, 1] = tests[of_event[event], 0]
            rows[count, 2] = tests[of_event[event], 1]
            count += 1
    return count


Exit = tuple[int, int]  # a node of the trie, at which a frame is left, and the return set


@kernel()
def _follow(events, count, at, start, keys, numbers, found):  # type: ignore[no-untyped-def]
    """Number the conditions of events from number ``at`` on; returns the first that is not known, or ``count``.

    Args:
        events: see `_walk`;  start: the condition where the walk began.
        keys: int64 [power of two], numbers: int32, a table: condition and state → the condition after it, -1 for none.
        found: int32 [events], receives the conditions.
    """
    last = keys.size - 1
    for i in range(at, count):
        before = np.int64(start if events[i, 0] < 0 else found[events[i, 0]])
        key = before << 32 | np.int64(events[i, 1]) & 0xFFFFFFFF
        place = (key * 0x9E3779B1 >> 20) & last
        while keys[place] != key and keys[place] >= 0:
            place = place + 1 & last
        if keys[place] < 0:
            return i
        found[i] = numbers[place]
    return count


@kernel()
def _keep(key, number, keys, numbers):  # type: ignore[no-untyped-def]
    """Put an entry into the table of `_follow`, which has room."""
    last = keys.size - 1
    place = (key * 0x9E3779B1 >> 20) & last
    while keys[place] >= 0:
        place = place + 1 & last
    keys[place], numbers[place] = key, number


class _Conditions:
    """What ways through a frame ask of the register where they begin: conditions by number.

    A condition is (the test that the beginning has passed, bits that the way sets, its tests).

    Attributes:
        tests: int32 [·, 2]: the numbers of the tests of each condition; 0 passes always, -1: there are more than two.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._known: dict[tuple[Test, int, tuple[Test, ...]], int] = {}
        self._all: list[tuple[Test, int, tuple[Test, ...]]] = []
        self.tests = np.zeros((64, 2), np.int32)
        self._after = 0  # entries of the table: see `_follow`
        self._keys, self._numbers = np.full(1024, -1, np.int64), np.zeros(1024, np.int32)

    def _number(self, condition: tuple[Test, int, tuple[Test, ...]]) -> int:
        number = self._known.get(condition)
        if number is None:
            number = self._known[condition] = len(self._all)
            self._all.append(condition)
            if number == len(self.tests):
                self.tests = np.concatenate([self.tests, np.zeros_like(self.tests)])
            asked = [*map(self.rules.test, condition[2]), 0, 0]
            self.tests[number] = asked[0], asked[1] if len(condition[2]) < 3 else -1
        return number

    def of_events(self, live: Test, events: np.ndarray) -> np.ndarray:
        """The conditions of the ways to events, int32 [events], from where the register has passed a test."""
        start = self._number((live, 0, ()))
        count, at = len(events), 0
        found = np.empty(count, np.int32)
        while (at := _follow(events, count, at, start, self._keys, self._numbers, found)) < count:
            before, state = events[at].tolist()
            condition = start if before < 0 else int(found[before])
            self._remember(
                condition << 32 | state & 0xFFFFFFFF, self._number(self._longer(*self._all[condition], state))
            )
        return found

    def _remember(self, key: int, number: int) -> None:
        self._after += 1
        if 2 * self._after > self._keys.size:
            keys, numbers = self._keys, self._numbers
            self._keys, self._numbers = np.full(2 * keys.size, -1, np.int64), np.zeros(2 * keys.size, np.int32)
            for place in np.flatnonzero(keys >= 0).tolist():
                _keep(keys[place], numbers[place], self._keys, self._numbers)
        _keep(np.int64(key), np.int32(number), self._keys, self._numbers)

    def _longer(self, live: Test, own: int, asked: tuple[Test, ...], state: int) -> tuple[Test, int, tuple[Test, ...]]:
        rules = self.rules
        if NEVER in asked:
            return live, own, asked
        wants, mask = rules.entering.get(state, PASSES) if state >= 0 else rules.popping.get(~state, PASSES)
        mask &= ~own
        if wants and not mask:
            asked = (NEVER,)
        elif wants and not any(one[0] and one[1] & ~mask == 0 for one in (live, *asked)):  # else it follows from that
            asked = *(one for one in asked if not one[0] or mask & ~one[1]), (wants, mask)  # those left out follow
        elif not wants and mask and (wants, mask) not in asked:
            asked = *asked, (wants, mask)
        if state >= 0 and state in rules.bit:
            own |= 1 << rules.bit[state]
        return live, own, asked


class CheckLists:
    """The check lists of cells and chains."""

    def __init__(self, t: Tables, vocab: Vocab, frames: Frames, rules: Rules, budget: Budget) -> None:
        self.t, self.vocab, self.frames, self.rules, self.budget = t, vocab, frames, rules, budget
        self.machine = Machine.of(t, t.delta)
        self.trie = Trie(*(getattr(vocab, name) for name in Trie._fields))
        quotes = np.flatnonzero(t.symbol_class[:256] == t.symbol_class[_QUOTE])
        quoted = vocab.once(_Quotes).below(tuple(quotes.tolist()))
        self.asked = _Asked(rules.of_state, frames.calm(rules.of_state > 0), quoted)
        self._st = np.zeros((vocab.longest + 2, 5), np.int32)
        self._frames = np.zeros((vocab.longest + 2, 3), np.int32)
        nodes = vocab.node_byte.size
        self._events = np.zeros((nodes, 2), np.int32)
        self._records = np.zeros((nodes, 2), np.int32)
        self._exits = np.zeros((nodes, 3), np.int32)
        self._result = np.zeros(3, np.int64)
        ordinary = np.ones(vocab.size, bool)  # special tokens are never read by their bytes
        ordinary[t.special_token] = False
        self._texts = _Texts(vocab.node_token_offset, vocab.node_tokens, vocab.node_skip, ordinary)
        self._rows = np.empty((vocab.size, 3), np.int32)
        self.conditions = _Conditions(rules)
        self.lists: dict[bytes, int] = {b"": 0}
        self.rows: list[np.ndarray] = [np.zeros((0, 3), np.int32)]
        self.cell_check = np.zeros((t.cells, t.modes), np.int32)
        self.chain_check = np.zeros(t.chain_row.size, np.int32)

    def walk(self, starts: list[tuple[int, int, int, int]], mode: int) -> None:
        """Walk parts of the trie, from a configuration each; what is found is in `_records` and so on."""
        begin = np.array(starts, np.int32).reshape(-1, 4)
        _walk(
            self.machine, self.trie, self.asked, begin, len(starts), mode, self._st, self._frames, self._events,
            self._records, self._exits, self._result,
        )  # fmt: skip

    def exits(self) -> list[Exit]:
        """Where the last walk left the frame."""
        return [(node, r) for node, r, _ in self._exits[: self._result[1]].tolist()]

    def list_of(self, live: Test, special: list[tuple[int, int]]) -> int:
        """The number of the check list of the last walk.

        Args:
            live: the test that the register has passed where the walk began.
            special: special tokens, and the numbers of their tests, that come to it.
        """
        events = self._events[: self._result[2]]
        if not len(events) and not special:
            return 0
        of_event = self.conditions.of_events(live, events)
        asked = self._records[: self._result[0]], self._exits[: self._result[1]]
        count = _tokens(self._texts, *asked, of_event, self.conditions.tests, self._rows)
        if count < 0:
            raise MembersClash
        rows = self._rows[:count]
        if special:
            rows = np.concatenate([rows, [(token, test, 0) for token, test in special]])
        rows = np.ascontiguousarray(rows[np.argsort(rows[:, 0], kind="stable")], np.int32)
        key = rows.tobytes()
        number = self.lists.get(key)
        if number is None:
            number = self.lists[key] = len(self.rows)
            self.rows.append(rows)
        return number

    # -- cells

    def cells(self) -> None:
        """The check lists of the cells of frames with members."""
        t, nodes = self.t, self.trie.node_byte.size
        special = list(zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True))
        for q in np.flatnonzero(self.frames.marked).tolist():
            self.budget.check("")
            live = PASSES if q in self.rules.bit else self.rules.entering.get(q, PASSES)
            for p, c in counters(t.breaks[t.state_break[q]]).items():
                cell = int(t.state_cell[q]) + p
                for mode in range(t.modes):
                    self.walk([(0, nodes, q, c)], mode)
                    more = [(token, test) for token, symbol in special if (test := self._special(q, cell, symbol))]
                    self.cell_check[cell, mode] = self.list_of(live, more)

    def _special(self, q: int, cell: int, symbol: int) -> int:
        """The number of the test on the way of a special token."""
        t = self.t
        base, default, k = int(t.cell_delta[cell]), int(t.cell_default[cell]), int(t.symbol_class[symbol])
        op = int(op_in(t.delta, base, default, k))
        kind, number = op & KIND_MASK, op >> KIND_BITS
        test = PASSES
        if op and kind < PUSH:
            test = self.rules.entering.get(number, PASSES)
        elif kind == POP:
            test = self.rules.popping.get(q, PASSES)
        return self.rules.test(test)

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
        if not needed.any():
            return
        if any(q in self.rules.bit or q in self.rules.entering for q in np.unique(value[good]).tolist()):
            raise MembersClash  # a value ends where a key does
        points: dict[int, tuple[int, list[Exit]]] = {}
        nodes = self.trie.node_byte.size
        state_of = np.repeat(np.arange(t.states), t.cells_of("state_break"))
        for mode in range(t.modes):
            for cell in np.flatnonzero(needed[t.cell_exit[:, mode]] & (t.cell_exit[:, mode] >= 0)).tolist():
                e, q = int(t.cell_exit[cell, mode]), int(state_of[cell])
                if e in points:
                    continue
                self.budget.check("")
                c = counters(t.breaks[t.state_break[q]]).get(cell - int(t.state_cell[q]))
                if c is not None:  # some counter comes to this cell
                    self.walk([(0, nodes, q, c)], mode)
                    points[e] = mode, self.exits()
        todo = list(points)
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
        t, skip = self.t, self.trie.node_skip
        starts: list[tuple[int, int, int, int]] = []
        for node, r in held:
            base = int(t.return_offset[g])
            owned, value = t.return_[base + r].tolist()
            q = value >> ACTION_BITS
            if owned != base or q == 0:
                continue
            c = (saved, saved + 1, 0, 1)[value & ACTION_MASK]
            starts.append((node + 1, int(skip[node]), q, c))
        self.walk(starts, mode)
        if chain >= 0:
            self.chain_check[chain] = self.list_of(PASSES, [])
        return self.exits()

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
        """The tables with rules and check lists."""
        self.cells()
        self.chains()
        t, rules = self.t, self.rules
        top = max(mask for _, mask in rules.tests)
        words = -(-max(top.bit_length(), 1 + max(rules.bit.values())) // 32)
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
