"""The shortest legal close: per state the token that ends the text soonest, and what is needed before and after it.

From the tables of a bundle: `state_close`, `close_…`, `owed_…`, `chain_after` of docs/architecture.md, and how many
tokens every entry needs. A configuration's bound is that of its state and counter plus what every frame below owes.

Leaves out   the kernels (ways.py, costs.py), the tables themselves (lift.py), use (runtime).
Invariants   in both modes the close token of a cell takes the bound down by at least one, so a run that only takes
             close tokens ends within its bound. After any token that a mask allows the bound is at most the largest of
             `close_after` and `chain_after` that belong to the mask, plus what is owed below.
Upper bounds What is owed below a frame counts its dearest completion; the way out of a frame is the shortest in bytes,
             read in as few tokens as it can be; tokens that leave a frame and go on are not used for closing. So a
             bound may be above the least number of tokens, never below it.
Counters     A state has close cells for ranges of its counter: at least those of its masks; where a range must be
             counted through to its end before the text can end, one for each value. Beyond `MOST_CELLS` there is no
             bound (NEVER), and no budget can be kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from toolc.runtime import bounds, ways
from toolc.runtime.bounds import MANY, Closing, lows_of, phases, returns_of
from toolc.runtime.tables import FINISHED, NEVER, PUSH, Tables
from toolc.runtime.vocab import Vocab

from ..budget import Budget
from ..vocab.encode import Encode
from . import costs
from .children import alive_in_comb
from .costs import Memo
from .forced import forced_arrays
from .words import Words

MOST_CELLS = 1 << 18
MOST_WALKS = 1 << 8  # close cells of counting states; of more, not every token is tried but the worst assumed
_BATCH = 1024  # walks between two looks at the clock


def close_arrays(
    t: Tables,
    vocab: Vocab,
    encode: Encode | None = None,
    budget: Budget | None = None,
    held: Mapping[int, int] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of the shortest close and, with an encoder, of the forced tokens; the tables need not have them.

    Args:
        held: states without transitions whose bound is known: what stands in their place is elsewhere (../link).

    Raises BudgetError: it took too many seconds.
    """
    close = _Close(t, vocab, budget or Budget(), held or {})
    found = close.arrays()
    return found | forced_arrays(t, vocab, close.a, encode)


class _Close:
    def __init__(self, t: Tables, vocab: Vocab, budget: Budget, held: Mapping[int, int]) -> None:
        self.t = t
        self.held = np.array(list(held), np.int64)
        self.held_bound = np.array(list(held.values()), np.int32)
        self.budget = budget
        self.vocab = vocab
        self.words = Words.of(vocab)
        ends = [(s, i) for s, i in zip(t.special_symbol.tolist(), t.special_token.tolist(), strict=True)]
        self.specials = np.array(ends, np.int32).reshape(-1, 2)
        self.is_special = np.zeros(vocab.size, bool)
        self.is_special[t.special_token] = True
        self.back_offset, self.back = returns_of(t, np.ones(t.states, bool))
        base, row = np.unique(t.cell_delta, return_inverse=True)
        self.alive = alive_in_comb(t.delta, base, t.classes, t.symbol_class)[row.reshape(-1)]
        self.lows = _mask_lows(t)
        self.a = self._closing()
        self.memo = Memo.make(vocab.node_byte.size)
        self._remembered: int | None = None  # slice whose rest the memo is of
        self._records, self._kept = np.empty((0, 2), np.int32), 0

    def _closing(self) -> Closing:
        t = self.t
        count = np.ones(t.states, np.int64)
        for q, lows in self.lows.items():
            count[q] = len(lows)
        first = np.zeros(t.states + 1, np.int32)
        np.cumsum(count, out=first[1:])
        low, high = np.zeros(first[-1], np.int32), np.full(first[-1], MANY, np.int32)
        for q, lows in self.lows.items():
            low[first[q] : first[q + 1]] = lows
            high[first[q] : first[q + 1] - 1] = np.array(lows[1:]) - 1
        breaks = _breaks([self.lows.get(q, [0]) for q in range(t.states)])
        bound = np.full(low.size, NEVER, np.int32)
        return Closing(
            t.symbol_class, t.state_cell, t.state_break, t.cell_delta, t.delta, t.push, t.return_offset, t.return_,
            self.back_offset, self.back, first, breaks, low, high, bound, t.modes, self.alive,
        )  # fmt: skip

    def arrays(self) -> dict[str, np.ndarray]:
        t = self.t
        signs = ways.signs_of(t, self.vocab)
        value, policy = self._shortest(signs)
        a = self.a
        order = np.argsort(value, kind="stable")
        known = a.close_first[self.held]
        a.bound[known] = self.held_bound
        order = order[~np.isin(order, known)]
        close_token = np.full((a.bound.size, t.modes), -1, np.int32)
        ways.tokens_along(a, self.vocab, signs, order[value[order] < NEVER], policy, close_token)
        self._mend(close_token)
        after, chain_after = self._after()
        a.bound[a.close_first[FINISHED]] = 0
        owed_lows = [self._owed_lows(g) for g in range(t.return_offset.size)]
        owed_first = np.zeros(len(owed_lows), np.int32)
        np.cumsum([len(x) for x in owed_lows[:-1]], out=owed_first[1:])
        below = np.array([x for lows in owed_lows for x in lows], np.int32)
        above = np.array([x - 1 for lows in owed_lows for x in [*lows[1:], MANY + 1]], np.int32)
        symbol_of = np.repeat(np.arange(len(owed_lows), dtype=np.int32), [len(x) for x in owed_lows])
        owed = np.zeros(below.size, np.int32)
        bounds.owed_cells(a, symbol_of, below, above, owed)
        width = max((len(_runs(x)) for x in owed_lows), default=0)
        width = max(width, a.close_break.shape[1])
        return {
            "state_close": a.close_first[:-1].copy(),
            "close_break": _widened(a.close_break, width),
            "close_bound": a.bound,
            "close_token": close_token,
            "close_after": after,
            "owed_first": owed_first,
            "owed_break": _widened(_breaks(owed_lows), width),
            "owed": owed,
            "chain_after": chain_after,
        }

    # -- the ways ----------------------------------------------------------------------------------------------------

    def _shortest(self, signs: ways.Signs) -> tuple[np.ndarray, np.ndarray]:
        value, policy = self._least_ways(signs)
        if self._count_through(value):
            self.a = self._closing()
            value, policy = self._least_ways(signs)
        return value, policy

    def _least_ways(self, signs: ways.Signs) -> tuple[np.ndarray, np.ndarray]:
        self.budget.check("")
        return ways.ways_out(self.a, signs, self.a.close_first[self.held], self.held_bound)

    def _count_through(self, value: np.ndarray) -> bool:
        """Give every counter of the ranges that have no way a close cell of its own; whether there was one."""
        a = self.a
        more = 0
        for q, lows in self.lows.items():
            first = int(a.close_first[q])
            found: list[int] = []
            for n, (low, end) in enumerate(pairwise(lows)):
                wide = value[first + n] >= NEVER and q > 1 and end - low > 1
                if wide and more + end - low <= MOST_CELLS:
                    more += end - low
                    found += range(low, end)
                else:
                    found.append(low)
            self.lows[q] = [*found, lows[-1]]
        return more > 0

    def _owed_lows(self, g: int) -> list[int]:
        found = {0}
        for v in self.back[self.back_offset[g] : self.back_offset[g + 1]].tolist():
            if v & 3 < 2:
                found.update(max(0, low - (v & 3)) for low in self.lows.get(v >> 2, [0]))
        return sorted(found)

    # -- what tokens can cost ----------------------------------------------------------------------------------------

    def _mend(self, close_token: np.ndarray) -> None:
        """Bounds of cells that no way along single bytes has: a vocabulary may lack some. By trying every token."""
        a = self.a
        while True:
            state = np.repeat(np.arange(self.t.states), np.diff(a.close_first))
            x = np.flatnonzero((a.bound >= NEVER) & (state > 1))
            if not x.size:
                return
            jobs = np.stack([state[x], x, np.zeros_like(x)], axis=1).astype(np.int32)
            out = [self._dearest(jobs, mode, -1) for mode in range(self.t.modes)]
            least = np.max([o[:, 1] for o in out], axis=0)
            if not (least < NEVER).any():
                return
            # Only the least of them: what is found later may then be nearer.
            best = x[least == least.min()]
            for mode, o in enumerate(out):
                close_token[best, mode] = o[least == least.min(), 2]
            a.bound[best] = least.min() + 1
            self._remembered = None

    def _dearest(self, jobs: np.ndarray, mode: int, unit: int) -> np.ndarray:
        """What `costs.dearest` finds; the records that are kept come behind those that there are."""
        w, s, trie = self.words, self._scratch, self.words.rest(unit)
        out = np.zeros((len(jobs), 6), np.int64)
        self._remember(unit)
        for begin in range(0, len(jobs), _BATCH):
            part, found, at = jobs[begin : begin + _BATCH], out[begin : begin + _BATCH], 0
            while at < len(part):
                self.budget.check("")
                records = self._room(trie.order.size)
                at = costs.dearest(
                    self.a, trie, part, at, mode, self.specials, self.is_special, unit, w.units.next_unit,
                    s["alphabet"], s["tops"], s["known"], s["seen"], s["todo"], self.memo, s["st"], s["frames"],
                    records, self._kept, found,
                )  # fmt: skip
                self._kept = int(found[at - 1, 5])
        return out

    def _remember(self, unit: int) -> None:
        """Make the memo one of the trie outside of a slice."""
        if self._remembered != unit:
            self.memo.forget()
            self._remembered = unit

    def _room(self, more: int) -> np.ndarray:
        """The records that are kept, int32 [·, 2], with room for more behind them."""
        if len(self._records) - self._kept < more:
            bigger = np.empty((2 * self._kept + 2 * more, 2), np.int32)
            bigger[: self._kept] = self._records[: self._kept]
            self._records = bigger
        return self._records

    @property
    def _scratch(self) -> dict[str, np.ndarray]:
        known: dict[str, np.ndarray] | None = self.__dict__.get("_held")
        if known is None:
            a, units = self.a, len(self.words.units.names)
            alike = np.concatenate([self.t.symbol_class[None, :256], self.words.units.next_unit])
            alphabet = np.unique(alike, axis=1, return_index=True)[1]
            depth = int(self.vocab.node_depth.max(initial=0)) + 2
            known = self.__dict__["_held"] = {
                "alphabet": alphabet.astype(np.uint8),
                "tops": a.bound.copy(),
                "known": np.full((self.t.states, units), -1, np.int32),
                "seen": np.zeros((self.t.states, units), np.int32),
                "todo": np.zeros((self.t.states * units + 1, 2), np.int32),
                "st": np.zeros((depth, 6), np.int64),
                "frames": np.zeros((depth, 5), np.int64),
            }
        return known

    def _after(self) -> tuple[np.ndarray, np.ndarray]:
        """`close_after` int32 [close cells, modes] and `chain_after` int32 [chain cells]."""
        a, t = self.a, self.t
        tops = self._scratch["tops"]
        tops[:] = a.bound
        self._scratch["known"][:] = -1
        for q in self.lows:
            part = tops[a.close_first[q] : a.close_first[q + 1]]
            part[:] = np.maximum.accumulate(part[::-1])[::-1]
        state = np.repeat(np.arange(t.states), np.diff(a.close_first)).astype(np.int32)
        after = np.zeros((a.bound.size, t.modes), np.int32)
        x = np.flatnonzero(state > 1).astype(np.int32)
        counted = np.diff(a.close_first)[state[x]] > 1
        if np.count_nonzero(counted) > MOST_WALKS:
            after[x[counted]] = self._dearest_of_all()
            first = np.zeros(x.size, bool)
            cell = t.state_cell[state[x]] + phases(t.state_break[state[x]], a.low[x])
            for mode in range(t.modes):
                first[np.unique(t.cell_exit[cell, mode], return_index=True)[1]] = True
            x = x[~counted | first]
        cell = t.state_cell[state[x]] + phases(t.state_break[state[x]], a.low[x])
        sliced = self.vocab.meta["slices"] == list(self.words.units.names)
        begin = np.full((t.chain_offset.size, 2), -1, np.int64)  # per profile, of its records
        mode_of = np.zeros(t.chain_offset.size, np.int32)
        pushed = np.ones(x.size, bool)
        for mode in range(t.modes):
            if mode:
                after[x[~pushed], mode] = after[x[~pushed], 0]
            unit = t.row_slice[t.cell_row[cell, mode]] if sliced else np.full(x.size, -1)
            exits = t.cell_exit[cell, mode]
            _, leaders = np.unique(exits, return_index=True)
            leads = np.zeros(x.size, bool)
            leads[leaders[exits[leaders] >= 0]] = True
            wanted = pushed | leads
            for u in np.unique(unit[wanted]).tolist():
                some = np.flatnonzero(wanted & (unit == u))
                out = self._dearest(np.stack([state[x[some]], x[some], leads[some]], axis=1), mode, u)
                after[x[some], mode] = out[:, 0]
                pushed[some] = out[:, 3] > 0
                kept = leads[some]
                begin[exits[some[kept]]] = out[kept, 4:]
                mode_of[exits[some[kept]]] = mode
        return after, self._chain_after(begin, mode_of)

    def _dearest_of_all(self) -> int:
        """Not more than this after any token: the largest bound, and what as many frames owe as a token can open."""
        t, a, v = self.t, self.a, self.vocab
        k = np.flatnonzero(np.isin(t.symbol_class[:256], self._pushing()))
        opens = np.concatenate([[0], np.cumsum(np.isin(v.token_bytes, k))])
        tallest = int((opens[v.token_offset[1:]] - opens[v.token_offset[:-1]]).max(initial=0))
        dearest = int(a.bound[a.close_first[2] :].max(initial=0))
        owed = [bounds.owes(a, a.bound, g, 0, MANY) for g in range(t.return_offset.size)]
        return min(NEVER, dearest + max(1, tallest) * max(owed, default=0))

    def _pushing(self) -> np.ndarray:
        """Symbol classes on which some state pushes."""
        t = self.t
        entry = np.flatnonzero((t.delta[:, 0] >= 0) & (t.delta[:, 1] & 7 == PUSH))
        return np.unique(entry - t.delta[entry, 0])

    def _chain_after(self, begin: np.ndarray, mode_of: np.ndarray) -> np.ndarray:
        """`chain_after`, by waves: the continuations of profiles give the records of more profiles.

        Args:
            begin: int64 [profiles, 2]: places of the records of each, -1 where they are not known yet.
            mode_of: int32 [profiles], of those that are known.
        """
        t, s = self.t, self._scratch
        after = np.zeros(t.chain_row.size, np.int32)
        place = np.arange(t.return_offset.size) + t.chain_offset[:, None]
        mine = t.chain[place, 0] == t.chain_offset[:, None]
        lows = lows_of(t.chain_break)
        self._remember(-1)
        wave = np.flatnonzero(begin[:, 0] >= 0)
        while wave.size:
            which, g = np.nonzero(mine[wave])
            n = t.chain[place[wave[which], g], 1]
            ranges = [lows.get(i, [0]) for i in n.tolist()]
            of = np.repeat(np.arange(n.size), [len(r) for r in ranges])
            low = np.array([c for r in ranges for c in r], np.int64)
            high = np.array([c - 1 for r in ranges for c in [*r[1:], MANY + 1]], np.int64)
            x = t.chain_cell[n[of]] + phases(t.chain_break[n[of]], low)
            following = t.chain_exit[x]
            new, leaders = np.unique(following, return_index=True)
            leaders, new = leaders[new >= 0], new[new >= 0]
            leaders, new = leaders[begin[new, 0] < 0], new[begin[new, 0] < 0]
            keep = np.zeros(x.size, np.int32)
            keep[leaders] = 1
            e = wave[which[of]]
            jobs = np.stack([e, g[of], low, high, mode_of[e], keep], axis=1).astype(np.int32)
            out = np.zeros((len(jobs), 3), np.int64)
            at = 0
            while at < len(jobs):
                self.budget.check("")
                records = self._room(self.vocab.node_byte.size)
                at = costs.dearest_below(
                    self.a, self.words.whole, jobs, at, begin, self.is_special, self.memo, s["st"], s["frames"],
                    records, self._kept, out,
                )  # fmt: skip
                self._kept = int(out[at - 1, 2])
            after[x] = out[:, 0]
            begin[new] = out[leaders, 1:]
            mode_of[new] = mode_of[e[leaders]]
            wave = new
        return after


# -- ranges of counters ------------------------------------------------------------------------------------------------


def _mask_lows(t: Tables) -> dict[int, list[int]]:
    return lows_of(t.state_break)


def _runs(lows: list[int]) -> list[tuple[int, int]]:
    """Breakpoints (at, count) whose phases begin at these counters, of which the first is 0."""
    found: list[tuple[int, int]] = []
    for c in lows[1:]:
        if found and found[-1][0] == c - 1:
            found[-1] = c, found[-1][1] + 1
        else:
            found.append((c, 1))
    return found


def _breaks(lows: list[list[int]]) -> np.ndarray:
    runs = [_runs(x) for x in lows]
    out = np.zeros((len(lows), max(map(len, runs), default=0), 2), np.int32)
    for owner, pairs in enumerate(runs):
        if pairs:
            out[owner, : len(pairs)] = pairs
    return out


def _widened(breaks: np.ndarray, width: int) -> np.ndarray:
    out = np.zeros((breaks.shape[0], width, 2), np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out
