"""Compute the shortest completion: per state the token that ends the text soonest, and the bounds around it.

From the tables of a bundle: `state_close`, `close_…`, `owed_…`, `chain_after` of docs/format.md, and how many
tokens every entry needs. A configuration's bound is that of its state and counter plus what every frame below owes.

Steps        1. The least bytes out of every state, over states, pushes and returns. A push costs what the dearer mode
             of the called group needs, and what its stack symbol owes: the largest bound of the states it returns to.
             2. The fewest tokens along that way, for both modes; the first is the close token. Where a vocabulary lacks
             single bytes, the way is searched token by token.
             3. The largest bound after any token of a mask.
Leaves out   the kernels (runtime/selection/shortest_paths.py, token_costs.py), the tables themselves (lift.py), use
             (runtime).
Invariants   in both modes the close token of a cell takes the bound down by at least one, but for way lists; so a run
             that only takes close tokens ends within its bound, with way lists too. After any token that a mask allows
             the bound is at most the largest of `close_after` and `chain_after` that belong to the mask, plus what is
             owed below.
Upper bounds What is owed below a frame counts its dearest completion; the way out of a frame is the shortest in bytes,
             read in as few tokens as it can be; tokens that leave a frame and go on are not used for closing. So a
             bound may be above the least number of tokens, never below it. `close_after` counts plain text of any
             length where that makes hardly a difference (text_bounds.py).
Any order    Where the members of an object stand in any order, its missing required members are owed beside what its
             stack symbol owes, and its states may have way lists (member_ways.py).
Counters     A state has close cells for ranges of its counter: at least those of its masks; where a range must be
             counted through to its end before the text can end, one for each value. Beyond `MOST_CELLS` there is no
             bound (NEVER), and no budget can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, FINISHED, KIND_BITS, KIND_MASK, PUSH, ZERO
from toolc.runtime.format.tables import NEVER, Tables
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.selection import completion_automaton as bounds
from toolc.runtime.selection import shortest_paths as ways
from toolc.runtime.selection.comb import CombRows
from toolc.runtime.selection.completion_automaton import MANY, Closing, lows_of, phases, ranges_of, returns_of

from ..budget import Budget, check_breaks, walks_at_a_time
from ..passes import Pass
from ..pushdown.unique_rows import distinct_numbers
from ..vocab.encode import Encode
from . import token_costs as costs
from .breakpoints import interned
from .cells import steps
from .chains import chain_keys
from .children import alive_in_comb
from .forced import forced_arrays
from .member_ways import WAITING, Members, has_members
from .register_rules import Frames
from .text_bounds import bounds_along
from .vocab_tries import PLAIN, Words, plain_bytes

MOST_CELLS = 1 << 18
MOST_WALKS = 1 << 10  # close cells of counting states; of more, no token is tried but the worst assumed
MOST_EXACT = 1 << 12  # cells of which every token is walked; of more, those of plain text are not
_LOOSE = 1  # so much more than its bound a cell may seem to need after a token, and nothing is looked at closer
_WORTH = 32  # cells with a slice for which it is worked out what its bytes can lead to
_BATCH = 1024  # walks between two looks at the clock

Profiles = tuple[np.ndarray, np.ndarray]  # contents int32 [·] (walk.py), and where each begins, int64 [profiles + 1]


def close_arrays(
    t: Tables,
    vocab: Vocab,
    rows: CombRows,
    profiles: Profiles,
    encode: Encode | None = None,
    budget: Budget | None = None,
    held: Mapping[int, tuple[int, int, int]] | None = None,
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """The arrays of the shortest close and, with an encoder, of the forced tokens, which the tables need not have; the
    least weight (runtime/selection/shortest_paths.py) that leads out of every close cell, int32; and what is due of the
    frame that every push enters (`Closing`), int32 [pushes].

    Args:
        rows, profiles: see `Lifted`.
        held: states without transitions whose weight and bound are known, and what is due of their frames: what stands
            in their place is elsewhere (../link).

    Raises BudgetError: it took too many seconds.
    """
    close = _Close(t, vocab, rows, profiles, budget or Budget(), held or {})
    found, weight = close.arrays()
    close.words.hand_back_memo(close.whole_memo)
    return found | forced_arrays(t, vocab, close.a, encode, close.budget), weight, close.due[t.push[:, 0]]


class _Close:
    def __init__(
        self, t: Tables, vocab: Vocab, rows: CombRows, profiles: Profiles, budget: Budget,
        held: Mapping[int, tuple[int, int, int]],
    ) -> None:  # fmt: skip
        self.t = t
        self.ops = rows
        self.profiles = profiles
        self.held = np.array(list(held), np.int64)
        self.held_weight, self.held_bound, self.held_due = np.array(list(held.values()), np.int32).reshape(-1, 3).T
        self.budget = budget
        self.vocab = vocab
        self.words = Words.of(vocab)
        self.specials = np.stack([t.special_symbol, t.special_token], axis=1)
        self.is_special = np.zeros(vocab.size, bool)
        self.is_special[t.special_token] = True
        self.back_offset, self.back = returns_of(t, np.ones(t.states, bool))
        self.alive = alive_in_comb(self.ops.offset, self.ops.column, t.classes, t.symbol_class)[self.ops.of]
        self.lows = lows_of(t.state_break, t.breaks)
        self.due = np.zeros(t.return_offset.size, np.int32)
        self.signs = ways.signs_of(t, vocab)
        self.members = Members.of(t, Frames(t, self.budget), self.signs, self.budget) if has_members(t) else None
        self.a = self._closing()
        self.whole_memo = self.words.take_memo()
        self.memo = self.whole_memo.part(2 * self.a.bound.size)
        self._known: dict[int, np.ndarray] = {}
        self._remembered: int | None = None  # slice whose rest the memo is of
        self._of_state: np.ndarray | None = None  # see token_costs.py; None where bounds have changed
        self.st = np.zeros((vocab.longest + 2, 7), np.int64)
        self.frames = np.zeros((vocab.longest + 2, 5), np.int64)
        self.open_ = np.zeros((vocab.longest + 2, 6), np.int64)

    def _closing(self) -> Closing:
        t = self.t
        first, low, high = ranges_of(self.lows, t.states)
        bound = np.full(low.size, NEVER, np.int32)
        cells = first, *_breaks(self.lows, t.states), low, high
        return Closing.of(t, t.delta, (self.back_offset, self.back), cells, bound, self.alive, self.due)

    def arrays(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """See `close_arrays`."""
        t = self.t
        if self.held_due.any():
            self._set_due(dict(zip(self.held.tolist(), self.held_due.tolist(), strict=True)).get)
        rows, value, policy, order = self._shortest()
        a = self.a
        a.bound[a.close_first[self.held]] = self.held_bound
        close_token = np.full((a.bound.size, t.modes), -1, np.int32)
        if self.members:
            value = self._in_rounds(rows, close_token)
        else:
            self._tokens(value, policy, order, close_token)
        self._mend(rows, value, close_token)
        after = self._after(rows)
        chain_after = self._chain_after()
        a.bound[a.close_first[FINISHED]] = 0
        owed_lows = self._owed_lows()
        symbols = t.return_offset.size
        owed_first, below, above = ranges_of(owed_lows, symbols)
        owed = np.zeros(below.size, np.int32)
        of = np.repeat(np.arange(symbols, dtype=np.int32), np.diff(owed_first))
        bounds.owed_cells(a, of, below, above, owed)
        (close_break, owed_break), close_breaks = interned((a.close_break, a.close_breaks), _breaks(owed_lows, symbols))
        check_breaks(close_breaks.shape[1])
        return {
            "state_close": a.close_first[:-1].copy(),
            "close_break": close_break,
            "close_breaks": close_breaks,
            "close_bound": a.bound,
            "close_token": close_token,
            "close_after": after,
            "owed_first": owed_first[:-1].copy(),
            "owed_break": owed_break,
            "owed": owed,
            "chain_after": chain_after,
        }, np.where(value < NEVER, value, a.bound)

    # -- the ways ----------------------------------------------------------------------------------------------------

    def _shortest(self) -> tuple[ways.Rows, np.ndarray, np.ndarray, np.ndarray]:
        found = self._least_ways()
        if self._count_through(found[1]):
            self.a = self._closing()
            found = self._least_ways()
        return found

    def _least_ways(self) -> tuple[ways.Rows, np.ndarray, np.ndarray, np.ndarray]:
        self.budget.check("")
        rows = ways.rows_of(self.a, self.ops)
        known = self.a.close_first[self.held]
        return rows, *ways.ways_out(self.a, rows, self.signs, known, self.held_weight, self._look)

    def _tokens(self, value: np.ndarray, policy: np.ndarray, order: np.ndarray, close_token: np.ndarray) -> None:
        """Bounds and close tokens along ways with these weights."""
        open_ = value < NEVER
        open_[self.a.close_first[self.held]] = False
        stops = np.zeros(self.t.states, bool)
        ways.tokens_along(self.a, self.vocab, self.signs, order[open_[order]], policy, stops, close_token, self._look)

    def _in_rounds(self, rows: ways.Rows, close_token: np.ndarray) -> np.ndarray:
        """Weights, bounds and close tokens where objects have members in any order.

        A round finds the ways that need no object of which it is not known yet what its required members take. What a
        round has found stays.
        """
        a, members = self.a, self.members
        assert members is not None
        without = members.behind.copy()  # states that no way of others may go to
        settled = np.zeros(a.bound.size, bool)
        settled[a.close_first[self.held]] = True
        value = np.full(a.bound.size, NEVER, np.int32)
        value[a.close_first[self.held]] = self.held_weight
        policy = np.full(a.bound.size, -1, np.int32)
        for q in members.waiting:
            some = slice(a.close_first[q], a.close_first[q + 1])
            a.bound[some] = value[some] = WAITING
            settled[some] = True
        held = dict(zip(self.held.tolist(), self.held_due.tolist(), strict=True))
        while True:
            self._set_due(lambda q, none: held.get(q, none) or members.due_of(q))
            left = _without(rows, settled, np.flatnonzero(without))
            known = np.flatnonzero(settled)
            found, chosen, order = ways.ways_out(a, left, self.signs, known, value[known], self._look)
            fresh = (found < NEVER) & ~settled
            value[fresh], policy[fresh] = found[fresh], chosen[fresh]
            ways.tokens_along(
                a, self.vocab, self.signs, order[fresh[order]], policy, members.stops, close_token, self._look
            )
            settled |= fresh
            more = members.settle(self._bound_of_states())
            before = self._bound_of_states()
            for q in self._entered:
                bound = members.begin(q, before)
                if bound != before[q]:
                    some = slice(a.close_first[q], a.close_first[q + 1])
                    without[q] |= before[q] >= NEVER  # known as the beginning of an object, not as a place in it
                    a.bound[some] = value[some] = bound
                    settled[some] = more = True
            if not more:
                break
        other = np.minimum.reduceat(policy, a.close_first[:-1]) >= 0
        for q, bound in members.bounds(self._bound_of_states(), other).items():
            a.bound[a.close_first[q] : a.close_first[q + 1]] = bound
        return value

    @cached_property
    def _entered(self) -> list[int]:
        """The states that pushes enter."""
        found: list[int] = np.unique(self.t.push[:, 1:3]).tolist()
        return found

    def _bound_of_states(self) -> np.ndarray:
        """int32 [states]: the largest bound of each."""
        return np.maximum.reduceat(self.a.bound, self.a.close_first[:-1])

    def _set_due(self, due_of: Callable[[int, int], int]) -> None:
        """Set what is due of frames, by the stack symbols with which they are entered.

        Args:
            due_of: gives it of a frame that begins in a state, or what it is handed if that is not known.
        """
        self.due[:] = 0
        for symbol, *entered, _ in self.t.push.tolist():
            self.due[symbol] = max(self.due[symbol], *(due_of(q, 0) for q in entered))

    def _look(self) -> None:
        self.budget.check("")

    def _count_through(self, value: np.ndarray) -> bool:
        """Give every counter of the ranges that have no way a close cell of its own; whether there was one."""
        a = self.a
        wide = (value >= NEVER) & (a.high > a.low) & (a.high < MANY)
        wide[: a.close_first[2]] = False
        more = 0
        for q in np.unique(np.searchsorted(a.close_first, np.flatnonzero(wide), side="right") - 1).tolist():
            found: list[np.ndarray] = []
            for x in range(a.close_first[q], a.close_first[q + 1]):
                low, size = int(a.low[x]), 1
                if wide[x] and more + a.high[x] - low < MOST_CELLS:
                    size = int(a.high[x]) - low + 1
                    more += size
                found.append(np.arange(low, low + size, dtype=np.int32))
            self.lows[q] = np.concatenate(found)
        return more > 0

    def _owed_lows(self) -> dict[int, np.ndarray]:
        """The least counter of every owed cell, of the stack symbols that have more than one."""
        if not self.lows:
            return {}
        zero = np.zeros(1, np.int32)
        found: dict[int, list[np.ndarray]] = {}
        counts = np.diff(self.a.close_first) > 1
        symbol_of = np.repeat(np.arange(self.back_offset.size - 1), np.diff(self.back_offset))
        some = np.flatnonzero(counts[self.back >> ACTION_BITS] & (self.back & ACTION_MASK < ZERO))
        for g, v in zip(symbol_of[some].tolist(), self.back[some].tolist(), strict=True):
            found.setdefault(g, [zero]).append(np.maximum(0, self.lows[v >> ACTION_BITS] - (v & ACTION_MASK)))
        owed = {g: np.unique(np.concatenate(lows)) for g, lows in found.items()}
        return {g: lows for g, lows in owed.items() if lows.size > 1}

    # -- what tokens can cost ----------------------------------------------------------------------------------------

    @cached_property
    def _state(self) -> np.ndarray:
        """int32 [close cells]: whose each is."""
        return np.repeat(np.arange(self.t.states, dtype=np.int32), np.diff(self.a.close_first))

    def _mend(self, rows: ways.Rows, value: np.ndarray, close_token: np.ndarray) -> None:
        """Bounds of cells that no way along single tokens of a byte has: a vocabulary may lack some, and of ranges of
        counters some have none. By trying every token; where there are many, only for want of such tokens."""
        a = self.a
        x = np.flatnonzero((a.bound >= NEVER) & (self._state > 1))
        if self.members:
            x = x[~self.members.inside[self._state[x]]]  # where tokens are allowed that registers refuse
        if x.size > MOST_WALKS:
            x = x[value[x] < NEVER]
        if not x.size:
            return
        row, offset = rows.of_close[x], rows.ops.offset
        x = x[offset[row + 1] > offset[row]]  # that read something
        while True:
            x = x[a.bound[x] >= NEVER]
            if not x.size:
                return
            out = [self._dearest(x, mode, -1) for mode in range(self.t.modes)]
            least = np.max([o[:, 1] for o in out], axis=0)
            if not (least < NEVER).any():
                return
            # Only the least of them: what is found later may then be nearer.
            best = x[least == least.min()]
            for mode, o in enumerate(out):
                close_token[best, mode] = o[least == least.min(), 2]
            a.bound[best] = least.min() + 1
            self._remembered = self._of_state = None

    def _dearest(self, x: np.ndarray, mode: int, slice_: int) -> np.ndarray:
        """What `costs.dearest_of_cells` finds, of the tokens outside of a slice (-1: of all); int64 [·, 4]."""
        state, out = self._state[x], np.zeros((x.size, 4), np.int64)
        known, trie = self._known_of(slice_), self.words.rest(slice_)
        batch = walks_at_a_time(trie.order.size, _BATCH)
        for begin in range(0, x.size, batch):
            self.budget.check("")
            part = slice(begin, begin + batch)
            costs.dearest_of_cells(
                self.a, known, trie, x[part], state[part], mode, self.specials,
                self.is_special, self.memo, self.open_, self.st, self.frames, out[part],
            )  # fmt: skip
        return out

    def _known_of(self, slice_: int) -> np.ndarray:
        """See `costs.rows_and_bounds`; the memo is of the rest of the slice then."""
        if self._remembered != slice_:
            self.memo.forget()
            self._remembered = slice_
        if self._of_state is None:
            self._of_state = costs.rows_and_bounds(self.a)
        return self._of_state

    def _after(self, rows: ways.Rows) -> np.ndarray:
        """`close_after` int32 [close cells, modes]."""
        after = np.zeros((self.a.bound.size, self.t.modes), np.int32)
        stands = self._stands(rows)
        self._try(rows, np.flatnonzero((self._state > 1) & (stands == np.arange(stands.size))), after)
        return after[stands]

    def _try(self, rows: ways.Rows, x: np.ndarray, after: np.ndarray) -> None:
        """`_after` of some close cells.

        Tokens of a slice cost at most what its bytes can lead to; the other tokens are walked.
        """
        a, t, state = self.a, self.t, self._state
        if self.lows:
            counted = np.diff(a.close_first)[state[x]] > 1
            if np.count_nonzero(counted) > MOST_WALKS:
                after[x[counted]] = self._after_any_text(rows)[x[counted], None]
                x = x[~counted]
        pushed = np.ones(x.size, bool)
        for mode in range(t.modes):
            slices, along = self._slices(rows, x, mode)
            if mode:
                after[x[~pushed], mode] = after[x[~pushed], 0]
            left = np.flatnonzero(pushed) if mode else np.arange(x.size)
            of = slices[left]
            for s in np.unique(of).tolist():
                some = left[of == s]
                out = self._dearest(x[some], mode, s)
                after[x[some], mode] = np.maximum(out[:, 0], along[some])
                pushed[some] = out[:, 3] > 0

    def _stands(self, rows: ways.Rows) -> np.ndarray:
        """A close cell of the same state that costs as much as each or more, int64 [close cells].

        From some count on, more only takes transitions away and bounds down, whatever the state. What a token costs
        from a count beyond that, it costs at least from a lesser one: all counts on its way are apart by as much, or
        equal.
        """
        low, bound, row = self.a.low, self.a.bound, rows.of_close
        cells = np.arange(low.size)
        if not self.lows or not Pass.EQUAL_COSTS.on:
            return cells
        later = np.flatnonzero(low > 0)  # the cell before each is of the same state
        grows = (bound[later] > bound[later - 1]) | ~_within(rows.ops, row[later], row[later - 1])
        later = later[low[later - 1] >= low[later[grows]].max(initial=0)]
        first = cells.copy()
        first[later] = 0
        return np.maximum.accumulate(first)

    def _slices(self, rows: ways.Rows, x: np.ndarray, mode: int) -> tuple[np.ndarray, np.ndarray]:
        """The slice (vocab_tries.py) of close cells whose tokens are not walked, int32 [·], and what those can cost: 0
        where it is -1.

        Plain text where it costs hardly more than the cell's own bound, as in literals and between values, or the cell
        is one of a string; or the slice of the cell's row, as in numbers, where that is one of many.
        """
        if not Pass.TEXT_BOUNDS.on:
            return np.full(x.size, -1, np.int32), np.zeros(x.size, np.int32)
        t, a, json = self.t, self.a, self.words.json
        row_slice = t.row_slice if self.words.own_slices else t.row_slice[:0]
        slices, found, own = costs.plain_or_own(
            x, self._state, a.low, a.bound, self._along(rows, PLAIN), _LOOSE, json, MOST_EXACT, PLAIN,
            t.state_cell, t.state_break, t.breaks, t.cell_row, row_slice, mode,
        )  # fmt: skip
        left = slices == -1
        for s, cells in enumerate(np.bincount(own[left] + 1, minlength=1)[1:].tolist()):
            if cells >= _WORTH and not json[s]:
                along = self._along(rows, s)[x]
                some = left & (own == s) & (along < NEVER)
                slices[some], found[some] = s, along[some]
        return slices, found

    def _along(self, rows: ways.Rows, slice_: int) -> np.ndarray:
        """int32 [close cells]: at least the largest bound after a token of a slice."""
        known = self._known.get(slice_)
        if known is None:
            reads = np.zeros(self.t.classes, bool)
            some = plain_bytes() if slice_ == PLAIN else self.words.units.bytes_from(slice_)
            reads[self.t.symbol_class[:256][some]] = True
            known = self._known[slice_] = bounds_along(self.a, rows, reads, self.budget)
        return known

    def _after_any_text(self, rows: ways.Rows) -> np.ndarray:
        """The same for any token; where frames open without end, the largest bound and what as many frames owe as a
        token can open."""
        t, a, v = self.t, self.a, self.vocab
        anything = np.ones(t.classes, np.int32)
        after = bounds_along(a, rows, anything > 0, self.budget)
        if (after < NEVER).all():
            return after
        opens = np.concatenate([[0], np.cumsum(self._pushing()[t.symbol_class[:256]][v.token_bytes])])
        tallest = int((opens[v.token_offset[1:]] - opens[v.token_offset[:-1]]).max(initial=0))
        symbols = t.return_offset.size
        owed = np.zeros(symbols, np.int32)
        every = np.zeros(symbols, np.int32), np.full(symbols, MANY, np.int32)
        bounds.owed_cells(a, np.arange(symbols, dtype=np.int32), *every, owed)
        reached = (a.bound < NEVER) | (np.diff(ways.ops_of(rows, anything, anything).offset) > 0)[rows.of_close]
        dearest = int(a.bound[reached & (self._state > 1)].max(initial=0))
        return np.minimum(after, min(NEVER, dearest + max(1, tallest) * int(owed.max(initial=0))))

    def _pushing(self) -> np.ndarray:
        """bool [symbol classes]: whether some state pushes on it."""
        t = self.t
        entry = np.flatnonzero((t.delta[:, 0] >= 0) & (t.delta[:, 1] & KIND_MASK == PUSH))
        found = np.zeros(t.classes, bool)
        found[entry - t.delta[entry, 0]] = True
        return found

    def _chain_after(self) -> np.ndarray:
        """`chain_after` int32 [chain cells]."""
        t = self.t
        content, offset = self.profiles
        e, g, n = chain_keys(t)
        first, low, high = ranges_of(lows_of(t.chain_break, t.breaks), len(t.chain_break))
        count = np.diff(first)[n]
        of = np.repeat(np.arange(n.size), count)
        range_ = np.repeat(first[n], count) + steps(count)
        jobs = np.stack([e[of], g[of], low[range_], high[range_]], axis=1).astype(np.int32)
        found = np.zeros((len(jobs), 4), np.int64)
        batch = walks_at_a_time(self.words.whole.order.size, _BATCH)
        for begin in range(0, len(jobs), batch):
            self.budget.check("")
            part = slice(begin, begin + batch)
            costs.dearest_below(
                self.a, self._known_of(-1), self.words.whole, jobs[part], offset, content, self.is_special, self.memo,
                self.open_, self.st, self.frames, found[part],
            )  # fmt: skip
        after = np.zeros(t.chain_row.size, np.int32)
        place = t.chain_cell[n[of]] + phases(t.chain_break[n[of]], t.breaks, jobs[:, 2])
        np.maximum.at(after, place, found[:, 0])
        return after


# -- ranges of counters ------------------------------------------------------------------------------------------------


def _breaks(lows: Mapping[int, np.ndarray], owners: int) -> tuple[np.ndarray, np.ndarray]:
    """Number of each owner's list of breakpoints, int32 [owners], and the lists, int32 [·, ·, 2].

    The phases that they begin are at the least counters of the ranges, of which the first is 0. Counters one after
    the other are one breakpoint, at the last of them.
    """
    if not lows:
        return np.zeros(owners, np.int32), np.zeros((1, 0, 2), np.int32)
    sizes = np.array([x.size - 1 for x in lows.values()])
    at = np.concatenate([x[1:] for x in lows.values()])
    which = np.repeat(np.arange(sizes.size), sizes)
    first = np.ones(at.size, bool)
    first[1:] = (np.diff(at) != 1) | (np.diff(which) != 0)
    begin = np.flatnonzero(first)
    end = np.append(begin, at.size)[1:]
    which = which[begin]
    runs = np.bincount(which, minlength=sizes.size)
    place = np.arange(begin.size) - (np.cumsum(runs) - runs)[which]
    out = np.zeros((1 + sizes.size, int(runs.max(initial=0)), 2), np.int32)
    out[1 + which, place, 0], out[1 + which, place, 1] = at[end - 1], end - begin
    number = np.zeros(owners, np.int32)
    number[np.array(list(lows), np.int64)] = np.arange(1, 1 + sizes.size)
    return number, out


def _without(rows: ways.Rows, known: np.ndarray, states: np.ndarray) -> ways.Rows:
    """The rows without moves to some states, int64 [·]; none of close cells that are known, bool [close cells]."""
    ops = rows.ops
    kept = ~((ops.value & KIND_MASK < PUSH) & np.isin(ops.value >> KIND_BITS, states))
    ends = np.concatenate([[0], np.cumsum(kept)])
    left = CombRows(ops.of, ends[ops.offset], ops.column[kept], ops.value[kept])
    return ways.Rows(left, np.where(known, left.rows, rows.of_close).astype(np.int32))


def _within(rows: CombRows, some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """bool [·]: whether every entry of one row, int [·], is one of another, too."""
    pairs, which, _, _ = distinct_numbers(some.astype(np.int64) * (rows.rows + 1) + others)
    some, others = np.divmod(pairs, rows.rows + 1)
    count = np.diff(rows.offset)[some]
    entry = np.repeat(rows.offset[some], count) + steps(count)
    width = int(rows.column.max(initial=0)) + 1
    keys = np.repeat(np.arange(rows.rows + 1), np.diff(rows.offset)) * width + rows.column
    wanted = np.repeat(others * width, count) + rows.column[entry]
    place = np.minimum(np.searchsorted(keys, wanted), max(0, keys.size - 1))
    missing = (keys[place] != wanted) | (rows.value[place] != rows.value[entry])
    return (np.bincount(np.repeat(np.arange(pairs.size), count)[missing], minlength=pairs.size) == 0)[which]
