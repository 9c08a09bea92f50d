"""Determinise the stacks of a network: sets of configurations, which push and pop one stack symbol together.

A configuration is a state of the network and the states to return to. The nearest of these are its *buffer*, the others
lie in the stack: every symbol of the stack holds a *chunk* of return states for each group of configurations that were
alike above it, and a configuration knows its group. So a state of the automaton is a set of

    (network state, buffer, group in the symbol below, height)

and a byte does one of three things, by the state and the byte:

    stay   the configurations read it. What they call goes into the buffers.
    push   where then every buffer has something recursive that must read before it is over: the buffers become the
           chunks of one symbol, and are empty.
    pop    where one is over, its buffer is empty, and what is below it reads the byte: every configuration takes its
           chunk back into its buffer, and those that were over read the byte below. As chunks have something that
           must read, this is one symbol.

Alternatives may disagree about the depth of the stack as long as they do so by a bounded number of calls. Else the
buffers grow without bound (`Unbounded`), unless configurations are left out whose texts are texts of others
(inclusion.py), or those that have more than ``limit`` recursive calls in their buffers are.

Mode 1       A push in mode 1 enters the configurations that need the fewest recursive calls, with that number as their
             *height*: they make no more. Height is -1 where there is no such limit.
Leaves out   networks (networks.py), the automaton with numbers and tables (deterministic.py).
Source       Alur and Madhusudan 2004 for the sets; Aycock and Horspool 1999 for pushing recursive calls only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..budget import Budget
from ..grammar.analysis import strong_components
from .inclusion import Inclusions, Word
from .networks import FINISHED, Network

Group = tuple[int, int]  # a number in the symbol below, and the classes that are read below, as a bit mask
ROOT: Group = (-1, 0)  # the group of a configuration below which there is no stack
FREE = -1  # the height of a configuration that may call as it likes
_MOST_TIMES = 4  # so often a return state may be in one buffer, and again for each call that is kept there

_MOST_ITEMS = 400  # so many configurations are followed beside each other

Item = tuple[int, tuple[int, ...], Group, int]  # network state, buffer, group, height
Set = frozenset[Item]
Low = frozenset[tuple[tuple[int, ...], Group, int]]  # chunk, group below, height below
Symbol = tuple[Low, ...]  # by group
Pop = tuple[
    Set, frozenset[tuple[Group, int]], int
]  # who reads, (group, height) of who is over, class or -1: none is read


OVER: Set = frozenset([(FINISHED, (), ROOT, FREE)])  # the text is over


class Unbounded(Exception):
    """The buffers grow without bound, or one byte would pop more than one symbol.

    Attributes:
        items: the configurations behind a byte, those with the fewest open calls first.
        k: the class of the byte.
    """

    def __init__(self, items: list[Item], k: int = -1) -> None:
        self.items = items
        self.k = k


@dataclass(frozen=True)
class Push:
    """A symbol, and the sets that are entered in mode 0 and 1."""

    symbol: Symbol
    into: Set
    least: Set


class Calls:
    """What the states of a network read and call.

    Attributes:
        recursive: per state whether a call that returns to it is of a rule that leads to itself.
        need: per state the fewest recursive calls, one inside of the other, on a way to the end of its rule.
    """

    def __init__(self, network: Network, budget: Budget) -> None:
        self.network = network
        self.budget = budget
        self._first: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}
        self._reads: dict[Word, tuple[list[tuple[int, Word]], bool]] = {}
        self.tails: set[tuple[int, int]] = set()
        self.inclusions = Inclusions(lambda word: self.reads(word)[0], network.final)
        self._find_tails()
        self.recursive = self._recursive()
        self.need = self._needs()

    def _find_tails(self) -> None:
        """Find the calls behind which nothing can be read that the callee could not read itself."""
        network = self.network
        pairs = dict.fromkeys(pair for row in network.calls for pair in row if network.final[pair[1]])
        self.tails = {pair for pair in pairs if network.over(pair[1])}
        found = {
            (entry, back)
            for entry, back in pairs
            if (entry, back) not in self.tails and self.inclusions.holds((entry, back), frozenset([(entry,)]))
        }
        self.tails |= found
        self._first.clear()
        self._reads.clear()

    def first(self, state: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """(symbols, target, states to return to, the nearest first) of all that a state reads."""
        found = self._first.get(state)
        if found is None:
            self.budget.check("")
            network = self.network
            rows: dict[tuple[int, int, tuple[int, ...]], None] = {}
            for mask, target in network.edges[state]:
                rows[mask, target, ()] = None
            for entry, back in network.calls[state]:
                chain = () if (entry, back) in self.tails else (back,)
                rows.update(dict.fromkeys((mask, t, more + chain) for mask, t, more in self.first(entry)))
            found = self._first[state] = list(rows)
        return found

    def reads(self, word: Word) -> tuple[list[tuple[int, Word]], bool]:
        """(symbols, next word) of a word, and whether it may be over."""
        found = self._reads.get(word)
        if found is None:
            network = self.network
            rows: dict[Word, int] = {}
            k = 0
            while k < len(word):
                for mask, target, chain in self.first(word[k]):
                    then = self.shortened((target, *chain, *word[k + 1 :]))
                    rows[then] = rows.get(then, 0) | mask
                if not network.final[word[k]]:
                    break
                k += 1
            found = self._reads[word] = [(mask, then) for then, mask in rows.items()], k == len(word)
        return found

    def shortened(self, word: Word) -> Word:
        """The word without states in its front whose rules are over; the last stays."""
        k = 0
        while k + 1 < len(word) and word[k] >= 0 and self.network.over(word[k]):
            k += 1
        return word[k:]

    def _frame(self, entry: int) -> tuple[list[int], list[tuple[int, int]]]:
        """The states that a rule comes to from its entry, and its calls."""
        network = self.network
        seen = dict.fromkeys([entry])
        todo = [entry]
        calls: dict[tuple[int, int], None] = {}
        for s in todo:
            more = [t for _, t in network.edges[s]]
            for pair in network.calls[s]:
                calls[pair] = None
                if pair not in self.tails:
                    more.append(pair[1])
            for t in more:
                if t not in seen and t != FINISHED:
                    seen[t] = None
                    todo.append(t)
        return todo, list(calls)

    def _recursive(self) -> list[bool]:
        network = self.network
        entries = dict.fromkeys(
            [*(s for s in network.starts.values() if s >= 0), *(e for row in network.calls for e, _ in row)]
        )
        calls = {entry: self._frame(entry)[1] for entry in entries}
        part_of: dict[int, int] = {}
        graph = {str(entry): [str(e) for e, _ in found] for entry, found in calls.items()}
        for n, part in enumerate(strong_components(graph)):
            part_of.update(dict.fromkeys(map(int, part), n))
        found = [False] * len(network.final)
        for entry, some in calls.items():
            for callee, back in some:
                if (callee, back) not in self.tails and part_of[entry] == part_of[callee]:
                    found[back] = True
        return found

    def _needs(self) -> list[int]:
        network = self.network
        far = 1 << 20
        need = [0 if final else far for final in network.final]
        need[network.end] = 0
        grew = True
        while grew:
            grew = False
            for s in range(len(need)):
                best = min([need[s], *(need[t] for _, t in network.edges[s] if t != FINISHED)])
                for pair in network.calls[s]:
                    callee, back = pair
                    if pair in self.tails:
                        best = min(best, need[callee])
                    else:
                        best = min(best, max(need[callee] + self.recursive[back], need[back]))
                if best < need[s]:
                    need[s] = best
                    grew = True
        return need

    def open(self, buffer: tuple[int, ...]) -> int:
        """How many recursive calls are open in a buffer."""
        return sum(self.recursive[r] for r in buffer)

    def needs(self, state: int, buffer: tuple[int, ...]) -> int:
        """The fewest recursive calls that are open at a time on a way to the end of all rules in the buffer."""
        left = self.open(buffer)
        most = left + (self.need[state] if state != FINISHED else 0)
        for r in buffer:
            left -= self.recursive[r]
            most = max(most, left + self.need[r])
        return most


class Sets:
    """The moves of sets of configurations.

    Args:
        calls: of the network.
        prune: whether to leave out configurations that others include.
        keep: so many recursive calls that must read stay in the buffers when the others are pushed: alternatives whose
            depths differ by so many calls do not push and pop all the time.
        forced: whether buffers that grow are pushed though those of others have nothing to push.
        limit: most recursive calls that a buffer may have; what would have more is left out. None: no limit.
    """

    def __init__(self, calls: Calls, prune: bool, keep: int, forced: bool, limit: int | None) -> None:
        self.calls = calls
        self.prune, self.keep, self.forced, self.limit = prune, keep, forced, limit
        masks = [m for row in calls.network.edges for m, _ in row]
        self.class_of, self.classes = _classes(masks, 257 + len(calls.network.specials))
        self._classes_of: dict[int, list[int]] = {}
        self._returned: dict[tuple[Symbol, Pop], Set] = {}

    def classes_of(self, mask: int) -> list[int]:
        found = self._classes_of.get(mask)
        if found is None:
            found = sorted({k for s, k in enumerate(self.class_of) if mask >> s & 1})
            self._classes_of[mask] = found
        return found

    @cached_property
    def end_class(self) -> int:
        return self.class_of[256]

    def start(self, entry: str) -> Set:
        """The set at the start of a rule, behind which the text ends."""
        network = self.calls.network
        state = network.starts[entry]
        items: list[Item] = [] if state < 0 else [(state, (network.end,), ROOT, FREE)]
        if entry in network.empty:
            items.append((network.end, (), ROOT, FREE))
        return frozenset(items)

    def _next(self, item: Item, state: int, buffer: tuple[int, ...]) -> Item | None:
        """An item behind another; None where it would call more than it may."""
        _, before, group, height = item
        calls = self.calls
        if height >= 0 and calls.needs(state, buffer) > height:
            return None
        if self.limit is not None:
            needed = calls.needs(state, buffer)
            if needed > self.limit and needed > calls.needs(item[0], before):
                return None
        return state, buffer, group, height

    def moves(self, set_: Set) -> dict[int, Set | Push | Pop]:
        """What a set does on each class that it may read."""
        calls = self.calls
        reading: dict[int, set[Item]] = {}
        over: set[tuple[Group, int]] = set()
        for item in sorted(set_):
            rows, ends = calls.reads((item[0], *item[1]))
            if ends:
                over.add((item[2], item[3]))
            for mask, word in rows:
                then = self._next(item, word[0], word[1:])
                if then is not None:
                    for k in self.classes_of(mask):
                        reading.setdefault(k, set()).add(then)
        found: dict[int, Set | Push | Pop] = {}
        for k in range(self.classes):
            below = frozenset(one for one in over if one[0][1] >> k & 1)
            if below and k == self.end_class:
                found[k] = OVER
            elif below:
                found[k] = frozenset(reading.get(k, ())), below, k
            elif k in reading:
                found[k] = self._after(reading[k], k)
        return found

    def _after(self, items: set[Item], k: int) -> Set | Push | Pop:
        """Stay, push or pop behind a byte."""
        calls = self.calls
        if any(item[0] == FINISHED for item in items):
            return OVER
        if len(items) > _MOST_ITEMS and self.limit is None:
            raise Unbounded(sorted(items, key=lambda item: (calls.open(item[1]), item)), k)
        kept = self._pruned(items)
        if all(q >= 0 and calls.network.over(q) and not buffer for q, buffer, _, _ in kept):
            return frozenset(), frozenset((group, height) for _, _, group, height in kept), -1
        times = max((self._times(buffer) for _, buffer, _, height in kept if height < 0), default=0)
        most = _MOST_TIMES * (1 + self.keep)
        if times > (2 * most if self.forced else most) and self.limit is None:
            raise Unbounded(sorted(kept, key=lambda item: (calls.open(item[1]), item)), k)
        cuts = {item: self._cut(item[1]) for item in kept}
        if None not in cuts.values():
            return self._push(cuts)  # type: ignore[arg-type]
        if times > most and self.limit is None:
            return self._push({item: 0 if calls.open(item[1]) else len(item[1]) for item in kept})
        return frozenset(kept)

    def _cut(self, buffer: tuple[int, ...]) -> int | None:
        """From where on a buffer may be pushed, a recursive call that must read; None where it has too few of them."""
        calls, left = self.calls, self.keep
        for n, r in enumerate(buffer):
            if calls.recursive[r] and not calls.network.final[r]:
                if not left:
                    return n
                left -= 1
        return None

    def _times(self, buffer: tuple[int, ...]) -> int:
        """How often the most frequent recursive call is open in a buffer."""
        return max((buffer.count(r) for r in set(buffer) if self.calls.recursive[r]), default=0)

    def _push(self, cuts: dict[Item, int]) -> Push:
        """One symbol of all buffers from their cuts on."""
        calls = self.calls
        lows: dict[tuple[int, tuple[int, ...], int], set[tuple[tuple[int, ...], Group, int]]] = {}
        for (q, buffer, group, height), cut in cuts.items():
            kept, chunk = buffer[:cut], buffer[cut:]
            above = q, kept, height if height < 0 else height - calls.open(chunk)
            lows.setdefault(above, set()).add((chunk, group, height))
        sets = {above: frozenset(low) for above, low in lows.items()}
        symbol = tuple(sorted(set(sets.values()), key=sorted))
        number = {low: (n, self._follow(low)) for n, low in enumerate(symbol)}
        into = frozenset((q, kept, number[low], height) for (q, kept, height), low in sets.items())
        if any(height >= 0 for _, _, _, height in into):
            return Push(symbol, into, into)
        least = min(calls.needs(q, kept) for q, kept, _, _ in into)
        return Push(
            symbol,
            into,
            frozenset((q, kept, n, least) for q, kept, n, _ in into if calls.needs(q, kept) <= least),
        )

    def _follow(self, low: Low) -> int:
        """The classes that can be read below a group."""
        found = 0
        for chunk, (_, follow), _ in low:
            rows, ends = self.calls.reads(chunk)
            for mask, _ in rows:
                for k in self.classes_of(mask):
                    found |= 1 << k
            if ends:
                found |= follow
        return found

    def returned(self, symbol: Symbol, pop: Pop) -> Set:
        """The set below a symbol after a pop; the empty one where the byte cannot be read there."""
        found = self._returned.get((symbol, pop))
        if found is None:
            found = self._returned[symbol, pop] = frozenset(self._below(symbol, *pop))
        return found

    def _below(self, symbol: Symbol, reading: Set, over: frozenset[tuple[Group, int]], k: int) -> set[Item]:
        calls = self.calls
        items: set[Item] = set()
        for group, height in over:
            for chunk, below, height_below in symbol[group[0]]:
                if height >= 0 and height_below >= 0 and height != height_below - calls.open(chunk):
                    continue
                if k < 0 and chunk:
                    word = calls.shortened(chunk)
                    items.add((word[0], word[1:], below, height_below))
                    continue
                rows, ends = calls.reads(chunk)
                if ends and below[1] >> k & 1:
                    raise Unbounded([(FINISHED, (), group, height)])
                item = chunk[0], chunk[1:], below, height_below
                for mask, word in rows:
                    if k in self.classes_of(mask):
                        then = self._next(item, word[0], word[1:])
                        if then is not None:
                            items.add(then)
        for q, buffer, group, height in reading:
            for chunk, below, height_below in symbol[group[0]]:
                if height >= 0 and height_below >= 0 and height != height_below - calls.open(chunk):
                    continue
                items.add((q, buffer + chunk, below, height_below))
        if any(item[0] == FINISHED for item in items):
            return set(OVER)
        if self.limit is not None and items:
            needs = {item: calls.needs(item[0], item[1]) for item in items}
            most = max(self.limit, min(needs.values()))
            items = {item for item in items if needs[item] <= most}
        return self._pruned(items)

    def _pruned(self, items: set[Item]) -> set[Item]:
        """The items without those that others include."""
        if not self.prune or len(items) < 2:
            return items
        together: dict[tuple[Group, int], list[Word]] = {}
        for q, buffer, group, height in items:
            if q != FINISHED:
                together.setdefault((group, height), []).append((q, *buffer))
        dropped: set[Item] = set()
        for (group, height), words in together.items():
            left = set(words)
            for word in sorted(words, key=lambda word: (-len(word), word)):
                rest = frozenset(left - {word})
                if rest and self.calls.inclusions.holds(word, rest):
                    left.remove(word)
                    dropped.add((word[0], word[1:], group, height))
        return items - dropped


def _classes(masks: list[int], symbols: int) -> tuple[list[int], int]:
    """The class of every symbol: of those that all masks treat alike, by the first of them; and how many there are."""
    key = [0] * symbols
    for mask in dict.fromkeys(masks):
        known: dict[tuple[int, int], int] = {}
        key = [known.setdefault((key[s], mask >> s & 1), len(known)) for s in range(symbols)]
    return key, max(key) + 1
