"""Resolve the rows of a part that look into the parts it calls, and what it tells those who call it.

A part's tables were made with stubs in the place of what it calls. States from which a token reaches a stub are walked
anew over the joined parts; what leaves a called part is continued in the frames of the caller.

Leaves out   the walks (walk.py), joining (numbering.py).
Invariants   no state that is walked anew counts (stubs.py), and none of them is ever read in mode 1 (link.py); so they
             have one cell, walked in mode 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toolc.runtime.format.kernels.step import phases_of
from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.format.tables import Tables
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.jit.memory import kernel
from toolc.runtime.jit.sort import ascend
from toolc.runtime.selection.comb import CombRows

from ..budget import Budget, walks_at_a_time
from ..lift.rows import RowStore
from ..pushdown.pushdown import Automaton
from ..pushdown.unique_rows import distinct_numbers, distinct_rows
from ..terminals.offsets import offsets
from ..terminals.pool import Pool, intern, room
from .numbering import Joined
from .part import ROWS, Cut, Part, within
from .stubs import Apart
from .vocab_queries import Words
from .walk import Machine, Memo, Nodes, walk_chains, walk_states

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
        depth = vocab.longest + 2
        self._st, self._frames = np.zeros((depth, 5), np.int64), np.zeros((depth, 4), np.int64)

    def states(self, states: np.ndarray) -> np.ndarray:
        """int32 [·, 4] as `walk_states` gives it."""
        return self._states(states, self.words.opening(self.openers, self.before))

    def deciding(self, states: np.ndarray) -> np.ndarray:
        """bool [·]: whether a token decides against a tool above the frames of some states."""
        return self._states(states, self.words.whole)[:, 2] > 0

    def _states(self, states: np.ndarray, nodes: Nodes) -> np.ndarray:
        memo = Memo.make((self.lists.longest, self.profiles.longest), len(states))
        return self._run(
            lambda part, at, out: walk_states(
                self.machine, nodes, part, at, self.specials, memo, self._st, self._frames, self.lists.arrays,
                self.profiles.arrays, self._limits, out,
            ),
            states.reshape(-1, 1),
        )  # fmt: skip

    def chains(self, jobs: np.ndarray) -> np.ndarray:
        """The same for int32 [·, 2]: profile, stack symbol."""
        memo = Memo.make((self.lists.longest, self.profiles.longest), len(jobs))
        return self._run(
            lambda part, at, out: walk_chains(
                self.machine, self.words.whole, part, at, memo, self._st, self._frames, self.lists.arrays,
                self.profiles.arrays, self._limits, out,
            ),
            jobs,
        )  # fmt: skip

    def contents(self, records: np.ndarray, begin: np.ndarray) -> list[int]:
        """The numbers of profiles of some contents, int32 [·], each of which begins at one of int32 [profiles + 1]."""
        out = np.empty(begin.size - 1, np.int64)
        at = 0
        while (at := _intern(*self.profiles.arrays, self.profiles.longest, records, begin, at, out)) < out.size:
            self.profiles.grow()
        return out.tolist()

    @property
    def _limits(self) -> np.ndarray:
        return np.array([self.lists.longest, self.profiles.longest], np.int64)

    def _run(self, walk: Callable[[np.ndarray, int, np.ndarray], int], jobs: np.ndarray) -> np.ndarray:
        jobs = np.ascontiguousarray(jobs, np.int32)
        out = np.zeros((len(jobs), 4), np.int32)
        batch = walks_at_a_time(self.words.whole.order.size, _BATCH)
        for begin in range(0, len(jobs), batch):
            part, found, at = jobs[begin : begin + batch], out[begin : begin + batch], 0
            while at < len(part):
                self.budget.check("")
                at = walk(part, at, found)
                if at < len(part):
                    self.lists.grow()
                    self.profiles.grow()
        return out


class Resolve:
    """A part whose tables have stubs → the part.

    Args:
        near: what `near_decisions` finds; None where no state decides against a tool.
    """

    def __init__(
        self, part: Part, cut: Cut, a: Automaton, t: Tables, old: tuple[np.ndarray, np.ndarray], joined: Joined,
        near: np.ndarray | None, vocab: Vocab, specials: np.ndarray, budget: Budget,
    ) -> None:  # fmt: skip
        self.part, self.cut, self.a, self.t, self.profiles, self.joined = part, cut, a, t, old, joined
        self.near = near
        marks = a.marks
        narrow_state = np.concatenate([[False, False], marks.narrow_state[cut.kept]])
        narrow_push = marks.narrow_symbol[[a.pushes[p][0] for p in cut.pushes]] if cut.pushes else np.zeros(0, bool)
        openers = cut.stubs.openers
        ahead = Words.of(vocab).most_ahead(openers)
        machine = joined.machine(narrow_state, narrow_push, cut.rows, ahead)
        self.walks = Walks(machine, vocab, specials, openers, budget)
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
        if self.t.state_break[some].any():
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
        kind_of, first = distinct_rows(kinds)
        exit_of = np.full(len(first), -1, np.int32)
        for n, (e, more, top) in enumerate(kinds[first].tolist()):
            content = self._merged(e, more)
            if content >= 0:
                exit_of[n] = self._profile(content)
                pairs.update(dict.fromkeys((content, g) for g in self.a.sets[top].tolist()))
        exits = exit_of[kind_of]
        entering: list[tuple[int, int, int, int]] = []  # import, its profile, content, symbol
        symbols_of: dict[int, list[int]] = {}
        for g, (number, _) in self.cut.stubs.symbol.items():
            symbols_of.setdefault(number, []).append(g)
        for slot, (other, entry) in enumerate(self.joined.imports[0]):
            profiles, *held = self.joined.parts[other].outer(entry)
            for profile, e in zip(profiles, self.walks.contents(*held), strict=True):
                for g in symbols_of.get(slot, ()):
                    entering.append((slot, profile, e, g))
                    pairs[e, g] = None
        place, below = self._below(pairs)
        # Chains of new profiles and of imports: import or -1, profile, stack symbol, place in ``below``.
        stubs = self.cut.stubs.symbol
        own = [(-1, self.number[e], g, at) for (e, g), at in place.items() if g not in stubs]
        imported = [(slot, profile, g, place[e, g]) for slot, profile, e, g in entering]
        chains = np.array(own + imported, np.int64).reshape(-1, 4)
        self._add_rows(cells, states, found[:, 0], found[:, 3], exits, below, chains)
        if self.near is not None:
            near = states[self.near[some]]
            self.decided = near[self.walks.deciding(near)].tolist()
        for slot, profile in chains[below[chains[:, 3], 2] > 0, :2].tolist():
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
            held = np.concatenate([one[:1], pairs.reshape(-1)])
            known = self.walks.contents(held, np.array([0, held.size], np.int32))[0] if pairs.size else -1
            self._merges[e, more] = known
        return known

    def _profile(self, content: int) -> int:
        return self.number.setdefault(content, self.part.profiles + len(self.number))

    def _below(self, pairs: dict[tuple[int, int], None]) -> tuple[dict[tuple[int, int], int], np.ndarray]:
        """What lies below (content, stack symbol), those that follow too: the place of each in int32 [·, 4]: list, exit
        profile, whether it decides, the largest bound. Those under the root are noted."""
        place: dict[tuple[int, int], int] = {}
        found = [np.zeros((0, 4), np.int32)]
        wave = list(pairs)
        while wave:
            self.outer.update(dict.fromkeys(pair for pair in wave if pair[1] in self.roots))
            wave = [pair for pair in wave if pair[1] not in self.roots]
            place.update(zip(wave, range(len(place), len(place) + len(wave)), strict=True))
            jobs = np.array(wave, np.int32).reshape(-1, 2)
            jobs[:, 1] = self.cut.symbol[jobs[:, 1]]
            out = self.walks.chains(jobs)
            found.append(out)
            more: dict[tuple[int, int], None] = {}
            for n, after in enumerate(out[:, 1].tolist()):
                if after >= 0:
                    out[n, 1] = self._profile(after)
                    under = self.a.sets[self.a.below[wave[n][1]]]
                    more.update(dict.fromkeys([(after, h) for h in under.tolist()]))
            wave = [pair for pair in more if pair not in place and pair not in self.outer]
        return place, np.concatenate(found)

    def _add_rows(
        self, cells: np.ndarray, states: np.ndarray, lists: np.ndarray, dearest: np.ndarray, exits: np.ndarray,
        below: np.ndarray, chains: np.ndarray,
    ) -> None:  # fmt: skip
        x = self.arrays
        toggled, number = self._toggled(x["cell_row"][cells, 0], lists)
        x["cell_row"][cells] = number[:, None]
        x["cell_exit"][cells] = exits[:, None]
        at_close = x["state_close"][states - 2]
        x["close_after"][at_close] = np.maximum(x["close_after"][at_close], dearest[:, None])
        store = RowStore(self.vocab.size, self.walks.lists)
        wanted = np.full((len(below), 3), -1, np.int32)
        wanted[:, 2] = below[:, 0]
        rows = store.rows(wanted)[chains[:, 3]] + np.int32(x["row_slice"].size + toggled["row_slice"].size)
        x |= _behind(x, toggled, store.arrays())
        base = x["chain_row"].size
        after = below[chains[:, 3]]
        more = {
            "chain_import": chains[:, 0], "chain_profile": chains[:, 1], "chain_symbol": self.cut.symbol[chains[:, 2]],
            "chain_cell": base + np.arange(rows.size), "chain_break": np.zeros(rows.size),
            "chain_row": rows, "chain_exit": after[:, 1], "chain_after": after[:, 3],
        }  # fmt: skip
        for name, array in more.items():
            x[name] = np.concatenate([x[name], array.astype(np.int32)])

    def _toggled(self, rows: np.ndarray, lists: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Rows behind those that there are, which are some of these and lists of further tokens, and their numbers."""
        x, lists_ = self.arrays, self.walks.lists
        of, ends, tokens, which = _toggled(
            rows, lists.copy(), x["row_slice"], x["row_units"], x["row_dense"], x["row_list"],
            x["list_offset"], x["list_tokens"], x["list_base"], lists_.data, lists_.offset,
        )  # fmt: skip
        return {
            "row_slice": of[0],
            "row_units": of[1],
            "row_dense": of[2],
            "row_list": x["list_base"].size + np.arange(of.shape[1], dtype=np.int32),
            "list_offset": x["list_offset"][-1] + ends,
            "list_tokens": tokens,
            "list_base": of[3],
        }, (x["row_slice"].size + which).astype(np.int32)

    def _forget_unused(self) -> None:
        """Leave out chains of own profiles that no cell and no chain exits with any more."""
        x = self.arrays
        self.used = np.zeros(self.part.profiles + len(self.number), bool)
        kept, cells, first = _kept(
            x["cell_exit"].reshape(-1),
            x["chain_profile"],
            x["chain_import"],
            x["chain_break"],
            x["breaks"],
            x["chain_exit"],
            self.used,
        )
        if kept.all():
            return
        for name in ("chain_row", "chain_exit", "chain_after"):
            x[name] = x[name][cells]
        for name in ("chain_import", "chain_profile", "chain_symbol", "chain_break"):
            x[name] = x[name][kept]
        x["chain_cell"] = first

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
            "outer_offset": offsets(map(len, listed), np.int32),
            "outer_records": np.concatenate([np.zeros(0, np.int32), *listed]),
        }


def near_decisions(a: Automaton, cells: np.ndarray, rows: CombRows, longest: int) -> np.ndarray:
    """bool [states]: those from which a way of at most ``longest`` bytes may decide against a tool.

    A call is taken to return after a single byte, whatever it has to read: the answer may have states too many, but
    never too few.

    Args:
        cells: int32 [states]: the first cell of each.
        rows: of the transitions, by cell.
    """
    states, symbols = cells.size, a.stack_symbols
    row = np.repeat(np.arange(rows.offset.size - 1), np.diff(rows.offset))
    kind, value = rows.value & KIND_MASK, rows.value >> KIND_BITS
    goes, pushes = kind < PUSH, kind == PUSH
    pushed = a.pushes[value[pushes], 0]
    deciding = [row[goes][a.marks.narrow_state[value[goes]]], row[pushes][a.marks.narrow_symbol[pushed]]]
    goes &= np.isin(rows.column, a.symbol_class[:256])
    # A graph: from a state to its rows, from a row to the next states and to the stack symbols that are pushed, from a
    # symbol to the states where its frame goes on. A byte takes two steps at most. We go backwards from deciding rows.
    first = states + symbols
    row += first
    owner = np.searchsorted(cells, np.arange(rows.of.size), side="right") - 1
    before = np.concatenate([row[goes], row[pushes], row[pushes], states + a.return_key[:, 0], owner])
    after = np.concatenate(
        [value[goes], a.pushes[value[pushes], 1], states + pushed, a.return_to[:, 0], first + rows.of]
    )
    order = np.argsort(after, kind="stable")
    nodes = first + rows.offset.size - 1
    before, begin = before[order], np.searchsorted(after[order], np.arange(nodes + 1))
    known = np.zeros(nodes, bool)
    wave = np.unique(first + np.concatenate(deciding))
    for _ in range(2 * longest + 1):
        known[wave] = True
        counts = begin[wave + 1] - begin[wave]
        next_ = before[np.repeat(begin[wave], counts) + within(counts)]
        wave = np.unique(next_[~known[next_]])
        if not wave.size:
            break
    known[wave] = True
    return known[:states]


@kernel()
def _toggled(rows, more, row_slice, row_units, row_dense, row_list, offset, tokens, base, data, begin):  # type: ignore[no-untyped-def]
    """Rows with tokens that their lists do not hold, each pair of both once: int32 [4, pairs], the slice, units, bit
    row and base of each; the ends of their lists, int64 [pairs], and the tokens, ascending; the number of the pair of
    every one of ``rows``. A row whose list has no base gets that list as base.

    Args:
        more: number of a list in a pool of ``data`` and ``begin``, for each row.
    """
    numbers = np.empty(rows.size, np.int64)
    for n in range(rows.size):
        numbers[n] = np.int64(rows[n]) * begin.size + more[n]
    pairs, which, first, _ = distinct_numbers(numbers)
    of = np.empty((4, pairs.size), np.int32)
    ends = np.empty(pairs.size, np.int64)
    most = np.int64(0)
    for j in range(pairs.size):
        n, m = row_list[rows[first[j]]], more[first[j]]
        most += offset[n + 1] - offset[n] + begin[m + 1] - begin[m]
    out, at = np.empty(most, np.int32), 0
    for j in range(pairs.size):
        r, m = rows[first[j]], more[first[j]]
        n = row_list[r]
        of[0, j], of[1, j], of[2, j], of[3, j] = row_slice[r], row_units[r], row_dense[r], base[n]
        i, i_end = np.int64(offset[n]), np.int64(offset[n + 1])
        if base[n] < 0:
            of[3, j] = n
            i = i_end
        further = data[begin[m] : begin[m + 1]].copy()
        ascend(further)
        k = 0
        while i < i_end or k < further.size:
            if k == further.size or (i < i_end and tokens[i] < further[k]):
                out[at] = tokens[i]
                at += 1
                i += 1
            elif i == i_end or further[k] < tokens[i]:
                out[at] = further[k]
                at += 1
                k += 1
            else:
                i += 1
                k += 1
        ends[j] = at
    return of, ends, out[:at].copy(), which


def _behind(
    one: dict[str, np.ndarray], two: dict[str, np.ndarray], three: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Rows after rows after rows: ``two`` is in the numbers of ``one``, ``three`` in its own."""
    lists, dense = one["list_base"].size + two["list_base"].size, one["dense"].shape[0]
    moved = {
        **three,
        "row_dense": np.where(three["row_dense"] >= 0, three["row_dense"] + dense, -1),
        "row_list": three["row_list"] + lists,
        "list_offset": three["list_offset"][1:] + np.append(one["list_offset"][-1:], two["list_offset"])[-1],
        "list_base": np.where(three["list_base"] >= 0, three["list_base"] + lists, -1),
    }
    found = {}
    for name in ROWS:
        kind = one[name].dtype
        pieces = [piece[name].astype(kind, copy=False) for piece in (one, two, moved) if name in piece]
        found[name] = np.concatenate(pieces)
    return found


@kernel()
def _kept(exits, profile, imports, lists, breaks, chain_exits, used):  # type: ignore[no-untyped-def]
    """The chains that some cell or chain may exit with, and all of imports: bool [chains]; bool [chain cells]; and the
    first cell of each of them among theirs, int32 [·].

    Args:
        used: bool [profiles], all False, receives which profiles are exited with.
    """
    for e in exits:
        if e >= 0:
            used[e] = True
    kept, cells = np.zeros(profile.size, np.bool_), np.zeros(chain_exits.size, np.bool_)
    grew = True
    while grew:
        grew = False
        cell = 0
        for n in range(profile.size):
            begin = cell
            cell += phases_of(breaks, lists[n])
            if kept[n] or (imports[n] < 0 and not used[profile[n]]):
                continue
            kept[n] = grew = True
            for i in range(begin, cell):
                cells[i] = True
                if chain_exits[i] >= 0:
                    used[chain_exits[i]] = True
    first = np.empty(profile.size, np.int32)
    cell = count = 0
    for n in range(profile.size):
        if kept[n]:
            first[count] = cell
            count += 1
            cell += phases_of(breaks, lists[n])
    return kept, cells, first[:count].copy()


@kernel()
def _intern(data, offset, table, count, longest, records, begin, at, out):  # type: ignore[no-untyped-def]
    """Keep sequences from number ``at`` on in a pool, see `Walks.contents`; the number of the first that found no
    room."""
    while at < out.size and room(data, offset, table, count, longest):
        first, size = offset[count[0]], begin[at + 1] - begin[at]
        for i in range(size):
            data[first + i] = records[begin[at] + i]
        out[at] = intern(data, offset, table, count, first + size)
        at += 1
    return at
