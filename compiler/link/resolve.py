"""The rows of a part that look into the parts it calls, and what it tells those who call it.

A part's tables were made with stubs in the place of what it calls. States from which a token reaches a stub are walked
anew over the joined parts; what leaves a called part is continued in the frames of the caller.

Leaves out   the walks (walk.py), joining (joined.py).
Invariants   no state that is walked anew counts (stubs.py), and none of them is ever read in mode 1 (link.py); so they
             have one cell, walked in mode 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolc.runtime.memory import kernel
from toolc.runtime.tables import PUSH, Tables
from toolc.runtime.vocab import Vocab

from ..automata.marks import by_first
from ..automata.pool import Pool, intern
from ..automata.pushdown import Automaton
from ..budget import Budget
from ..lift.rows import RowStore
from .joined import Joined
from .part import ROWS, Cut, Part, within
from .stubs import Apart
from .walk import Machine, Memo, Nodes, walk_chains, walk_states
from .words import Words

_BATCH = 2048


class Walks:
    """Walks over joined parts, with the pools of what they found."""

    def __init__(
        self, joined: tuple[Machine, bytes], vocab: Vocab, specials: np.ndarray, openers: bytes, budget: Budget
    ) -> None:
        self.machine, self.before = joined
        self.budget = budget
        self.specials = specials
        self.words = Words.of(vocab)
        self.openers = openers
        self.lists = Pool(vocab.size + specials.shape[0] + 64)
        self.profiles = Pool(2 * vocab.node_byte.size + 2)
        depth = int(vocab.node_depth.max(initial=0)) + 2
        self._st, self._frames = np.zeros((depth, 5), np.int64), np.zeros((depth, 4), np.int64)

    def states(self, states: np.ndarray) -> np.ndarray:
        """int32 [·, 4] as `walk_states` gives it."""
        return self._states(states, self.words.opening(self.openers, self.before))

    def deciding(self, states: np.ndarray) -> np.ndarray:
        """bool [·]: whether a token decides against a tool above the frames of some states."""
        return self._states(states, self.words.whole)[:, 2] > 0

    def _states(self, states: np.ndarray, nodes: Nodes) -> np.ndarray:
        memo = Memo.make((self.lists.longest, self.profiles.longest))
        return self._run(
            lambda part, at, out: walk_states(
                self.machine, nodes, part, at, self.specials, memo, self._st, self._frames, self.lists.arrays,
                self.profiles.arrays, self._limits, out,
            ),
            states.reshape(-1, 1),
        )  # fmt: skip

    def chains(self, jobs: np.ndarray) -> np.ndarray:
        """The same for int32 [·, 3]: profile, stack symbol, counter."""
        return self._run(
            lambda part, at, out: walk_chains(
                self.machine, self.words.whole, part, at, self._st, self._frames, self.lists.arrays,
                self.profiles.arrays, self._limits, out,
            ),
            jobs,
        )  # fmt: skip

    def content(self, held: bytes) -> int:
        """The number of a profile of this content."""
        records = np.frombuffer(held, np.int32)
        out = self.profiles
        while out.data.size - out.offset[len(out)] < out.longest or 2 * len(out) + 4 >= out.table.size:
            out.grow()
        begin = int(out.offset[len(out)])
        out.data[begin : begin + records.size] = records
        return int(intern(*out.arrays, begin + records.size))

    @property
    def _limits(self) -> np.ndarray:
        return np.array([self.lists.longest, self.profiles.longest], np.int64)

    def _run(self, walk: Callable[[np.ndarray, int, np.ndarray], int], jobs: np.ndarray) -> np.ndarray:
        jobs = np.ascontiguousarray(jobs, np.int32)
        out = np.zeros((len(jobs), 4), np.int32)
        for begin in range(0, len(jobs), _BATCH):
            part, found, at = jobs[begin : begin + _BATCH], out[begin : begin + _BATCH], 0
            while at < len(part):
                self.budget.check("")
                at = walk(part, at, found)
                if at < len(part):
                    self.lists.grow()
                    self.profiles.grow()
        return out


class Resolve:
    """A part whose tables have stubs → the part."""

    def __init__(
        self, part: Part, cut: Cut, a: Automaton, t: Tables, old: tuple[np.ndarray, np.ndarray], joined: Joined,
        vocab: Vocab, specials: np.ndarray, budget: Budget,
    ) -> None:  # fmt: skip
        self.part, self.cut, self.a, self.t, self.profiles, self.joined = part, cut, a, t, old, joined
        marks = a.marks
        narrow_state = np.concatenate([[False, False], marks.narrow_state[cut.kept]])
        narrow_push = marks.narrow_symbol[[a.pushes[p][0] for p in cut.pushes]] if cut.pushes else np.zeros(0, bool)
        openers = cut.stubs.openers
        ahead = Words.of(vocab).most_ahead(openers)
        self.walks = Walks(joined.machine(narrow_state, narrow_push, ahead), vocab, specials, openers, budget)
        self.vocab = vocab
        self.arrays = part.arrays
        self.number: dict[int, int] = {}  # content → new profile
        self.decided: list[int] = []  # states from which a token decides against a tool, above their frames
        self.deciding: set[tuple[int, int]] = set()  # (import or -1, profile) for those of which a continuation does
        self.outer: dict[tuple[int, int], None] = {}  # (content, stack symbol of the root)
        self.roots: dict[int, list[int]] = {}
        self.used = np.zeros(0, bool)  # profiles
        self._merges: dict[tuple[int, int], int] = {}

    def resolved(self, roots: dict[int, list[int]]) -> Part:
        """The part.

        Args:
            roots: stack symbol of the root → entries.
        """
        self.roots = roots
        some = self.t.narrowing[self.cut.state[self.t.narrowing] >= 2]
        if self.t.state_break[some, :, 1].any():
            raise Apart("a state that counts looks into a part")
        self.arrays = dict(self.arrays)
        for name in ("cell_row", "cell_exit", "close_after"):
            self.arrays[name] = self.arrays[name].copy()
        states = self.cut.state[some]
        found = self.walks.states(states)
        cells = self.arrays["state_cell"][states - 2]
        pairs: dict[tuple[int, int], None] = {}
        before = self.arrays["cell_exit"][cells, 0]
        kinds = np.stack([before, found[:, 1], self.a.top[some]], axis=1)
        _, mores, tops = kinds.max(axis=0, initial=0).tolist()
        first, kind_of = by_first(kinds @ np.array([(mores + 1) * (tops + 1), tops + 1, 1]))
        exit_of = np.full(len(first), -1, np.int32)
        for n, (e, more, top) in enumerate(kinds[first].tolist()):
            content = self._merged(e, more)
            if content >= 0:
                exit_of[n] = self._profile(content)
                pairs.update(dict.fromkeys((content, g) for g in self.a.sets[top].tolist()))
        exits = exit_of[kind_of]
        entering: list[tuple[int, int, int, int]] = []  # import, its profile, content, symbol
        contents: dict[bytes, int] = {}
        symbols_of: dict[int, list[int]] = {}
        for g, (number, _) in self.cut.stubs.symbol.items():
            symbols_of.setdefault(number, []).append(g)
        for slot, (other, entry) in enumerate(self.joined.imports[0]):
            for profile, records in self.joined.parts[other].outer.get(entry, ()):
                known = contents.get(records)
                e = contents[records] = self.walks.content(records) if known is None else known
                for g in symbols_of.get(slot, ()):
                    entering.append((slot, profile, e, g))
                    pairs[e, g] = None
        below = self._below(pairs)
        # Chains of new profiles and of imports.
        chains: list[tuple[int, int, int, int]] = []  # import or -1, profile, symbol, place in `found`
        keys = list(below)
        place = {key: n for n, key in enumerate(keys)}
        for e, g in keys:
            if g not in self.cut.stubs.symbol:
                chains.append((-1, self.number[e], g, place[e, g]))
        for slot, profile, e, g in entering:
            chains.append((slot, profile, g, place[e, g]))
        result = np.array([below[key] for key in keys], np.int64).reshape(-1, 4)
        self._add_rows(cells, states, found[:, 0], found[:, 3], exits, result, chains)
        if self.a.marks.tools:  # else nothing decides against one
            near = states[near_decisions(self.a, int(self.vocab.node_depth.max(initial=0)))[some]]
            self.decided = near[self.walks.deciding(near)].tolist()
        for slot, profile, _, at in chains:
            if result[at, 2]:
                self.deciding.add((slot, profile))
        self._forget_unused()
        outer = self._outer()
        return Part(
            {**self.arrays, **outer},
            self.part.entries,
            self.part.imports,
            self.part.modes,
            self.part.depth,
            self.part.deeper,
            self.part.profiles + len(self.number),
            self.part.most_left,
            self.part.places,
            self.part.counts,
        )

    def _old(self, e: int) -> np.ndarray:
        """The content of a profile of the part's own lift."""
        content, begin = self.profiles
        return content[begin[e] : begin[e + 1]]

    def _merged(self, e: int, more: int) -> int:
        """The content of old profile e (-1: none) in mode 0 with more records, in the order of nodes; -1: none."""
        known = self._merges.get((e, more))
        if known is None:
            one = self._old(e) if e >= 0 else np.zeros(1, np.int32)
            pairs = np.concatenate([one[1:], self.walks.profiles[more]]).reshape(-1, 2)
            pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
            held = np.concatenate([one[:1], pairs.reshape(-1)]).tobytes()
            known = self.walks.content(held) if pairs.size else -1
            self._merges[e, more] = known
        return known

    def _profile(self, content: int) -> int:
        return self.number.setdefault(content, self.part.profiles + len(self.number))

    def _below(self, pairs: dict[tuple[int, int], None]) -> dict[tuple[int, int], tuple[int, ...]]:
        """What lies below (content, stack symbol): list, exit profile, whether it decides, the largest bound; and of
        all that follow. Those under the root are noted."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        wave = list(pairs)
        while wave:
            for e, g in wave:
                if g in self.roots:
                    self.outer[e, g] = None
            wave = [(e, g) for e, g in wave if g not in self.roots]
            jobs = np.array([(e, self.cut.symbol[g], 0) for e, g in wave], np.int32).reshape(-1, 3)
            out = self.walks.chains(jobs).tolist()
            more: dict[tuple[int, int], None] = {}
            for (e, g), row in zip(wave, out, strict=True):
                after = row[1]
                found[e, g] = (row[0], -1 if after < 0 else self._profile(after), row[2], row[3])
                if after >= 0:
                    more.update(dict.fromkeys((after, h) for h in self.a.sets[self.a.below[g]].tolist()))
            wave = [pair for pair in more if pair not in found and (pair not in self.outer)]
        return found

    def _add_rows(
        self, cells: np.ndarray, states: np.ndarray, lists: np.ndarray, dearest: np.ndarray, exits: np.ndarray,
        below: np.ndarray, chains: list[tuple[int, int, int, int]],
    ) -> None:  # fmt: skip
        x = self.arrays
        rows_, number = self._toggled(x["cell_row"][cells, 0], lists)
        x["cell_row"][cells] = number[:, None]
        x["cell_exit"][cells] = exits[:, None]
        at_close = x["state_close"][states - 2]
        x["close_after"][at_close] = np.maximum(x["close_after"][at_close], dearest[:, None])
        self.arrays = x = x | rows_
        before = x["row_slice"].size
        store = RowStore(self.vocab.size, self.walks.lists)
        none = np.full(len(below), -1, np.int32)
        chain_row = store.rows(np.stack([none, none, below[:, 0]], axis=1).astype(np.int32))
        if len(store):
            self.arrays = x = x | joined_rows(x, store.arrays())
        base = x["chain_row"].size
        at = np.array([c[3] for c in chains], np.int64)
        own = np.array([(c[0], c[1], self.cut.symbol[c[2]]) for c in chains], np.int64).reshape(-1, 3)
        after = below[at]
        rows = chain_row[at] + before
        width = x["chain_break"].shape[1]
        more = {
            "chain_import": own[:, 0], "chain_profile": own[:, 1], "chain_symbol": own[:, 2],
            "chain_cell": base + np.arange(at.size), "chain_break": np.zeros((at.size, width, 2)), "chain_row": rows,
            "chain_exit": after[:, 1], "chain_after": after[:, 3],
        }  # fmt: skip
        for name, array in more.items():
            x[name] = np.concatenate([x[name], array.astype(np.int32)])

    def _toggled(self, rows: np.ndarray, lists: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The rows' arrays with those added that are some rows and lists of further tokens, and their numbers."""
        x = self.arrays
        count = len(self.walks.lists)
        pairs, which = np.unique(rows * np.int64(count) + lists, return_inverse=True)
        numbers, more = np.divmod(pairs, count)
        slices, units, dense, list_ = (x[name][numbers] for name in ("row_slice", "row_units", "row_dense", "row_list"))
        added = {n: np.sort(self.walks.lists[n]) for n in np.unique(more).tolist()}
        further = [added[n] for n in more.tolist()]
        offset, tokens, base = _with_more(
            x["list_offset"], x["list_tokens"], x["list_base"], list_,
            np.cumsum([0, *map(len, further)]), np.concatenate([np.zeros(0, np.int32), *further]),
        )  # fmt: skip
        lists_before, rows_before = x["list_base"].size, x["row_slice"].size
        added_rows = {
            "row_slice": slices,
            "row_units": units,
            "row_dense": dense,
            "row_list": lists_before + np.arange(base.size),
            "list_offset": x["list_offset"][-1] + offset[1:],
            "list_tokens": tokens,
            "list_base": base,
            "dense": x["dense"][:0],
        }
        joined = {name: np.concatenate([x[name], added_rows[name].astype(x[name].dtype)]) for name in ROWS}
        return joined, (rows_before + which.reshape(-1)).astype(np.int32)

    def _forget_unused(self) -> None:
        """Leave out chains of own profiles that no cell and no chain exits with any more."""
        x = self.arrays
        count = x["chain_break"][:, :, 1].sum(axis=1, dtype=np.int64) + 1
        used = np.zeros(self.part.profiles + len(self.number) + 1, bool)  # the last answers for -1
        used[x["cell_exit"]] = True
        mine = x["chain_import"] < 0
        owner = np.repeat(np.arange(count.size), count)
        while True:
            used[-1] = False
            kept = ~mine | used[np.where(mine, x["chain_profile"], -1)]
            after = x["chain_exit"][kept[owner]]
            more = after[(after >= 0)]
            more = more[~used[more]]
            if not more.size:
                break
            used[more] = True
        self.used = used
        if kept.all():
            return
        cells = kept[owner]
        for name in ("chain_row", "chain_exit", "chain_after"):
            x[name] = x[name][cells]
        for name in ("chain_import", "chain_profile", "chain_symbol", "chain_break"):
            x[name] = x[name][kept]
        x["chain_cell"] = (np.cumsum(count[kept]) - count[kept]).astype(np.int32)

    def _outer(self) -> dict[str, np.ndarray]:
        """Profiles in mode 0 with which an entry's frame is left, and what is in them."""
        found: dict[tuple[int, int], int] = {}  # (profile, entry) → content
        for e, g in self.outer:
            found.update({(self.number[e], entry): e for entry in self.roots[g]})
        contents = {key: self.walks.profiles[e] for key, e in found.items()}
        for g, profiles in self.cut.outer.items():
            for e in profiles:
                if self.used[e] and self._old(e)[0] == 0:
                    contents.update({(e, entry): self._old(e) for entry in self.roots[g]})
        keys = sorted(contents)
        listed = [contents[key] for key in keys]
        return {
            "outer_profile": np.array([e for e, _ in keys], np.int32),
            "outer_entry": np.array([k for _, k in keys], np.int32),
            "outer_offset": np.cumsum([0, *map(len, listed)]).astype(np.int32),
            "outer_records": np.concatenate([np.zeros(0, np.int32), *listed]),
        }


def near_decisions(a: Automaton, most: int) -> np.ndarray:
    """bool [states]: those from which a way of at most ``most`` bytes may decide against a tool.

    What a push calls is taken to be left with the next byte: so none is missed, and some may be too many.
    """
    row, symbol = np.divmod(np.flatnonzero(a.ops != 0), a.classes)
    op = a.ops[row, symbol]
    state = np.searchsorted(a.state_row, row, side="right") - 1
    kind, value = op & 7, op >> 3
    goes, pushes = kind < PUSH, kind == PUSH
    pushed = a.pushes[value[pushes], 0]
    found = np.zeros(a.state_row.size - 1, bool)
    found[state[goes][a.marks.narrow_state[value[goes]]]] = True
    found[state[pushes][a.marks.narrow_symbol[pushed]]] = True
    wave = np.flatnonzero(found)
    if not wave.size:
        return found
    text = np.isin(symbol, a.symbol_class[:256])
    goes &= text
    # Through a frame: state, return; from all that push a symbol to all that it returns to, by way of the symbol.
    symbol_of, target = a.return_key[:, 0], a.return_to[:, 0]
    nodes = found.size
    before = np.concatenate([state[goes], state[pushes], state[pushes], nodes + symbol_of])
    after = np.concatenate([value[goes], a.pushes[value[pushes], 1], nodes + pushed, target])
    order = np.argsort(after, kind="stable")
    before, begin = before[order], np.searchsorted(after[order], np.arange(nodes + a.stack_symbols + 1))
    known = np.concatenate([found, np.zeros(a.stack_symbols, bool)])
    for _ in range(most):
        counts = begin[wave + 1] - begin[wave]
        next_ = before[np.repeat(begin[wave], counts) + within(counts)]
        wave = np.unique(next_[~known[next_]])
        if not wave.size:
            break
        known[wave] = True
    return known[:nodes]


@kernel()
def _with_more(offset, tokens, base, lists, begin, more):  # type: ignore[no-untyped-def]
    """Lists with tokens that they do not hold: offset, tokens and base of each. One that has no base gets the list as
    its base.

    Args:
        begin, more: those of list ``lists[n]``, ascending: ``more[begin[n]:begin[n + 1]]``.
    """
    own = np.int64(0)
    for n in lists:
        own += offset[n + 1] - offset[n]
    out, ends = np.empty(own + more.size, np.int32), np.zeros(lists.size + 1, np.int64)
    base_of = np.empty(lists.size, np.int32)
    at = 0
    for j in range(lists.size):
        n = lists[j]
        i, i_end = np.int64(offset[n]), np.int64(offset[n + 1])
        base_of[j] = base[n]
        if base[n] < 0:
            base_of[j] = n
            i = i_end
        k, k_end = begin[j], begin[j + 1]
        while i < i_end or k < k_end:
            if k == k_end or (i < i_end and tokens[i] < more[k]):
                out[at] = tokens[i]
                at += 1
                i += 1
            elif i == i_end or more[k] < tokens[i]:
                out[at] = more[k]
                at += 1
                k += 1
            else:
                i += 1
                k += 1
        ends[j + 1] = at
    return ends, out[:at].copy(), base_of


def joined_rows(one: dict[str, Any], other: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rows after rows."""
    lists, dense = one["list_base"].size, one["dense"].shape[0]
    moved = {
        **other,
        "row_dense": np.where(other["row_dense"] >= 0, other["row_dense"] + dense, -1),
        "row_list": other["row_list"] + lists,
        "list_offset": other["list_offset"][1:] + one["list_offset"][-1],
        "list_base": np.where(other["list_base"] >= 0, other["list_base"] + lists, -1),
    }
    return {name: np.concatenate([one[name], moved[name].astype(one[name].dtype)]) for name in ROWS}
