r"""The whole-match language of a regular expression as a minimal automaton over the bytes of UTF-8.

Steps        1. anchors that say nothing are dropped; 2. a nondeterministic automaton over sets of code points, built
             from the right, so every piece is made with what follows it; 3. code points that no set tells apart become
             one class, a set of classes one int used as bits; 4. subset construction; 5. minimise; 6. UTF-8.
Looking      A look-ahead seen while reading becomes an *obligation* on that thread: the subset automaton of its item,
             run beside it, which must come to accept (or, negative, must not). A look-behind is a *tracker*: the subset
             automaton of "anything, then the item", run from the start of the text, asked at that point. Both are exact
             anywhere, also inside repetitions and inside each other, except a look-ahead inside a look-behind, which is
             refused. ``^``, ``\A`` are look-behinds for nothing before; ``$``, ``\Z`` look-aheads for nothing after;
             what lies outside the terminal's own text is not seen. ``\B`` holds in the empty text, as in ECMA-262 and
             in Python from 3.14 on.
Leaves out   parsing (../regex), classes (code_points.py), the byte level (utf8.py), merging (minimise.py).
Invariants   node 0 is the end of the text, node 1 the end of a look-ahead's item (any text may follow). Results are
             kept by value, so equal expressions cost once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from .. import regex as rx
from ..budget import Budget, look, running
from ..errors import UnsupportedError
from ..passes import Pass
from ..regex import charset
from .code_points import class_code_points
from .dfa import Dfa, without_beginnings
from .minimise import minimise_table
from .offsets import offsets
from .subsets import Nodes, subsets
from .text_lists import from_texts
from .utf8 import to_bytes

_FINAL, _SINK = 0, 1
_KEPT = 4096
_BYTES = 4  # of a place in a table

Threads = tuple  # of (node, (obligation, ...)), sorted

_kept: dict[rx.Regex, Dfa] = {}


def terminal_dfa(regex: rx.Regex, budget: Budget | None = None, place: str | None = None) -> Dfa:
    """Texts that ``regex`` matches from end to end, as UTF-8.

    Args:
        regex: the expression.
        budget: limits on NFA states (``states``), DFA states (``pattern_states``), tables (``bytes``) and time; by
            default those of the compile that is running.
        place: for errors.

    Raises:
        BudgetError: too many states, before they are made where counting shows it.
        UnsupportedError: a look-ahead inside a look-behind.
    """
    found = _kept.get(regex) if Pass.KEPT_TERMINALS.on else None
    if found is None:
        found = _make(regex, budget or running() or Budget(), place)
        if len(_kept) >= _KEPT:
            _kept.clear()
        _kept[regex] = found
    return found


def _make(regex: rx.Regex, budget: Budget, place: str | None) -> Dfa:
    count = partial(budget.check, "states", place=place)
    texts = _texts(regex, count) if Pass.TEXT_LISTS.on else None
    if texts is not None:
        return from_texts([text.encode() for text in texts])
    if _looks(regex):
        regex = _without_idle_anchors(regex, True, True)
        cut = _refused_beginnings(regex, count) if Pass.REFUSED_TEXTS.on else None
        if cut is not None:
            count(_size(cut[0]) + sum(map(len, cut[1])) + 2)
            return without_beginnings(terminal_dfa(cut[0], budget, place), cut[1])
    count(_size(regex) + 2)
    nfa = _Nfa(place)
    start = nfa.build(regex, _FINAL)
    segments, member = class_code_points(nfa.sets)
    if nfa.looks:
        moves, ends = _determinise_looking(nfa, start, _masks(member), budget, place)
        budget.check("bytes", _BYTES * len(moves) * member.shape[1], place)
        table, accepting = _table(moves, member.shape[1]), np.array(ends, bool)
    else:
        nodes = nfa.nodes(start, member)
        table, accepting = subsets(nodes, partial(_check, budget, nodes, place))
    return to_bytes(*minimise_table(table, accepting), segments, lambda: budget.check("", place=place))


def _check(budget: Budget, nodes: Nodes, place: str | None, states: int) -> None:
    """Refuse an automaton with too many states beyond those of its nodes, or too large a table."""
    budget.check("pattern_states", states - nodes.set_of.size, place)
    budget.check("bytes", _BYTES * states * nodes.member.shape[1], place)


# -- anchors ---------------------------------------------------------------------------------------------------------


def _looks(regex: rx.Regex) -> bool:
    """Whether anything in it looks ahead or behind."""
    kind = type(regex)
    if kind is rx.Chars:
        return False
    if isinstance(regex, rx.Repeat):
        return _looks(regex.item)
    if isinstance(regex, rx.Concat | rx.Union):
        parts = regex.items if isinstance(regex, rx.Concat) else regex.options
        return any(_looks(part) for part in parts if type(part) is not rx.Chars)
    return True


@lru_cache(maxsize=1024)
def _can_be_empty(regex: rx.Regex) -> bool:
    """Whether it surely matches the empty text, wherever it stands."""
    if isinstance(regex, rx.Concat):
        return all(map(_can_be_empty, regex.items))
    if isinstance(regex, rx.Union):
        return any(map(_can_be_empty, regex.options))
    if isinstance(regex, rx.Repeat):
        return regex.low == 0 or _can_be_empty(regex.item)
    return False


def _without_idle_anchors(regex: rx.Regex, first: bool, last: bool) -> rx.Regex:
    """The same with anchors at the ends dropped: what stands before a start or after an end can only be empty."""
    if isinstance(regex, rx.Start) and first:
        return rx.EMPTY
    if isinstance(regex, rx.End) and last:
        return rx.EMPTY
    if isinstance(regex, rx.Union):
        return rx.union(*(_without_idle_anchors(option, first, last) for option in regex.options))
    if not isinstance(regex, rx.Concat):
        return regex
    items = list(regex.items)
    for at in range(len(items) - 1, -1, -1):
        if isinstance(items[at], rx.Start) and all(map(_can_be_empty, items[:at])):
            items = items[at:]
            break
    for at in range(len(items)):
        if isinstance(items[at], rx.End) and all(map(_can_be_empty, items[at + 1 :])):
            items = items[: at + 1]
            break
    if first:
        while items and isinstance(items[0], rx.Start):
            del items[0]
    if last:
        while items and isinstance(items[-1], rx.End):
            del items[-1]
    if items and isinstance(items[0], rx.Union):
        items[0] = _without_idle_anchors(items[0], first, last and len(items) == 1)
    if len(items) > 1 and isinstance(items[-1], rx.Union):
        items[-1] = _without_idle_anchors(items[-1], False, last)
    return regex if items == [*regex.items] else rx.concat(*items)


def _refused_beginnings(regex: rx.Regex, count: Callable[[int], None]) -> tuple[rx.Regex, list[bytes]] | None:
    """Of ``text(?!one|other)rest``, as keys have that are not declared: ``text rest``, "text one", "text other"."""
    if not isinstance(regex, rx.Concat) or not regex.items:
        return None
    at = next((n for n, item in enumerate(regex.items) if not isinstance(item, rx.Chars)), 0)
    refused, before = regex.items[at], rx.literal_text(rx.concat(*regex.items[:at]))
    if before is None or not isinstance(refused, rx.Look) or not refused.ahead or not refused.negative:
        return None
    texts = _texts(refused.item, count)
    if texts is None:
        return None
    count(len(before) * len(texts))
    return rx.concat(*regex.items[:at], *regex.items[at + 1 :]), [(before + text).encode() for text in texts]


def _texts(regex: rx.Regex, count: Callable[[int], None]) -> list[str] | None:
    """The texts of literals that are alternatives, with literals around them; None if it is anything else.

    ``count``: called with the number of their characters; what it raises ends the work.
    """
    before, several, behind = list[str](), [""], list[str]()
    for item in regex.items if isinstance(regex, rx.Concat) else (regex,):
        options = []
        for option in item.options if isinstance(item, rx.Union) else (item,):
            literal = rx.literal_text(option)
            if literal is None:
                return None
            options.append(literal)
        if len(options) == 1:
            (before if len(several) == 1 else behind).append(options[0])
        elif len(several) == 1:
            several = options
        else:
            return None
    head, tail = "".join(before), "".join(behind)
    count(sum(map(len, several)) + len(several) * len(head + tail))
    return [head + text + tail for text in several]


# -- the nondeterministic automaton --------------------------------------------------------------------------------


def _size(regex: rx.Regex) -> int:
    """How many nodes ``_Nfa.build`` will make, nearly."""
    look()
    if isinstance(regex, rx.Concat):
        return sum([1 if type(item) is rx.Chars else _size(item) for item in regex.items])
    if isinstance(regex, rx.Union):
        return 1 + sum(map(_size, regex.options))
    if isinstance(regex, rx.Repeat):
        one = _size(regex.item)
        if regex.high is None:
            return max(regex.low, 1) * one + 1
        return regex.high * one + regex.high - regex.low
    if isinstance(regex, rx.Look):
        return 2 + _size(regex.item)
    return 5 if isinstance(regex, rx.WordBoundary) else 1


class _Nfa:
    """Nodes as parallel lists. A node reads a set (``set_of`` ≥ 0, on to ``next_of``), or forks, or looks.

    Attributes:
        set_of: number of the set it reads, -1 if none.
        next_of: the node after that, or after the look.
        forks: nodes it stands for, if it is neither.
        look: (ahead?, node of the item or number of the tracker, negative?), else None.
        sets: code points of every set.
        trackers: (start, end) nodes of every look-behind, inner before outer.
    """

    def __init__(self, place: str | None) -> None:
        self.place = place
        self.set_of: list[int] = [-1, -1]
        self.next_of: list[int] = [-1, -1]
        self.forks: list[tuple[int, ...]] = [(), ()]
        self.look: list[tuple[bool, int, bool] | None] = [None, None]
        self.sets: dict[charset.Ranges, int] = {}
        self.trackers: list[tuple[int, int]] = []
        self.looks = False
        self._tracker_of: dict[rx.Regex, int] = {}
        self._item_of: dict[rx.Regex, int] = {}
        # Alternatives that go on alike share nodes: else states tell which of them did, in every combination.
        self._reading_of: dict[tuple[charset.Ranges, int], int] = {}
        self._loop_of: dict[tuple[rx.Regex, int], int] = {}
        self._look_of: dict[tuple[bool, int, bool, int], int] = {}
        self._behind = False

    def add(self, set_: int = -1, next_: int = -1, forks: tuple[int, ...] = ()) -> int:
        self.set_of.append(set_)
        self.next_of.append(next_)
        self.forks.append(forks)
        self.look.append(None)
        return len(self.set_of) - 1

    def nodes(self, start: int, member: np.ndarray) -> Nodes:
        """The same as arrays, where nothing looks; ``member`` is bool [sets, classes]."""
        offset = offsets(map(len, self.forks), np.int32)
        fork = np.array(list(chain.from_iterable(self.forks)), np.int32)
        return Nodes(np.array(self.set_of, np.int32), np.array(self.next_of, np.int32), offset, fork, member, start)

    def reading(self, ranges: charset.Ranges, next_: int) -> int:
        known = self._reading_of.get((ranges, next_))
        if known is None:
            known = self.add(self.sets.setdefault(ranges, len(self.sets)), next_)
            self._reading_of[ranges, next_] = known
        return known

    def build(self, regex: rx.Regex, after: int) -> int:
        """The node from which ``regex`` and then everything from ``after`` on is read."""
        kind = type(regex)
        if kind is rx.Chars:
            return self.reading(regex.ranges, after)  # type: ignore[union-attr]
        if isinstance(regex, rx.Concat):
            for item in reversed(regex.items):
                after = self.build(item, after)
            return after
        if isinstance(regex, rx.Union):
            return self.add(forks=tuple(self.build(option, after) for option in regex.options))
        if isinstance(regex, rx.Repeat):
            return self.repeat(regex, after)
        if isinstance(regex, rx.Look):
            return self.looking(regex.item, regex.ahead, regex.negative, after)
        if isinstance(regex, rx.Start):
            return self.looking(rx.ANY, False, True, after)
        if isinstance(regex, rx.End):
            return self.looking(rx.ANY, True, True, after)
        assert isinstance(regex, rx.WordBoundary)
        word = rx.Chars(charset.ASCII_WORD if regex.ascii else charset.python_word())
        out = self.looking(word, True, not regex.negative, after)
        into = self.looking(word, True, regex.negative, after)
        return self.add(forks=(self.looking(word, False, False, out), self.looking(word, False, True, into)))

    def repeat(self, regex: rx.Repeat, after: int) -> int:
        item, low, high = regex.item, regex.low, regex.high
        if high is None:
            # after <- fork <-> item: the last of the needed copies is the loop's own.
            fork = self._loop_of.get((item, after), -1)
            if fork < 0:
                fork = self._loop_of[item, after] = self.add()
                self.forks[fork] = (self.build(item, fork), after)
            after = fork if low == 0 else self.forks[fork][0]
            needed = max(low - 1, 0)
        else:
            end = after
            for _ in range(high - low):
                after = self.add(forks=(self.build(item, after), end))
            needed = low
        for _ in range(needed):
            after = self.build(item, after)
        return after

    def looking(self, item: rx.Regex, ahead: bool, negative: bool, after: int) -> int:
        self.looks = True
        if ahead:
            if self._behind:
                raise UnsupportedError(
                    "a look-ahead, $ or \\b inside a look-behind is not supported",
                    place=self.place,
                    hint="put it beside the look-behind",
                )
            found = self._item_of.get(item)
            if found is None:
                if self.set_of[_SINK] < 0:
                    self.set_of[_SINK] = self.sets.setdefault(charset.ALL, len(self.sets))
                    self.next_of[_SINK] = _SINK
                found = self._item_of[item] = self.build(item, _SINK)
        else:
            known = self._tracker_of.get(item)
            if known is None:
                outer, self._behind = self._behind, True
                end = self.add()
                start = self.build(rx.concat(rx.Repeat(rx.ANY, 0, None), item), end)
                self._behind = outer
                known = self._tracker_of[item] = len(self.trackers)
                self.trackers.append((start, end))
            found = known
        key = ahead, found, negative, after
        node = self._look_of.get(key, -1)
        if node < 0:
            node = self._look_of[key] = self.add(next_=after)
            self.look[node] = ahead, found, negative
        return node


# -- classes of code points ------------------------------------------------------------------------------------------


def _masks(member: np.ndarray) -> list[int]:
    """The classes of every set as bits."""
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(member, axis=1, bitorder="little")]


def _bits(mask: int) -> list[int]:
    text = bin(mask)[:1:-1]
    out, at = [], text.find("1")
    while at >= 0:
        out.append(at)
        at = text.find("1", at + 1)
    return out


def _table(moves: list[list[tuple[int, int]]], classes: int) -> np.ndarray:
    """Moves on sets of classes as one dense table."""
    table = np.full((len(moves), classes), -1, np.int32)
    by_mask: dict[int, tuple[list[int], list[int]]] = {}
    for state, row in enumerate(moves):
        for mask, target in row:
            froms, tos = by_mask.setdefault(mask, ([], []))
            froms.append(state)
            tos.append(target)
    for mask, (froms, tos) in by_mask.items():
        if len(froms) == 1:
            table[froms[0], _bits(mask)] = tos[0]
        else:
            table[np.array(froms)[:, None], _bits(mask)] = np.array(tos, np.int32)[:, None]
    return table


# -- subset construction ---------------------------------------------------------------------------------------------


def _split(by_mask: dict[int, list[int]]) -> Iterable[tuple[int, list[int]]]:
    """Disjoint sets of classes, each with the targets of every mask that holds it."""
    if len(by_mask) == 1:
        return by_mask.items()
    singles: dict[int, list[int]] = {}
    groups: list[tuple[int, list[int]]] = []
    for mask, targets in by_mask.items():
        if mask & (mask - 1) == 0:
            singles[mask] = targets
            continue
        left = mask
        fresh: list[tuple[int, list[int]]] = []
        for group, known in groups:
            both = group & left
            if not both:
                fresh.append((group, known))
                continue
            fresh.append((both, known + targets))
            if group != both:
                fresh.append((group ^ both, known))
            left ^= both
        if left:
            fresh.append((left, targets))
        groups = fresh
    if not singles:
        return groups
    out: list[tuple[int, list[int]]] = []
    taken = 0
    for mask, targets in singles.items():
        taken |= mask
        for group, known in groups:
            if group & mask:
                targets = targets + known
                break
        out.append((mask, targets))
    out.extend((group & ~taken, known) for group, known in groups if group & ~taken)
    return out


_DONE = ((_SINK, ()),)


class _Looking:
    """Subset construction with looks. A thread is (node, obligations); a state is (trackers' threads, threads)."""

    def __init__(self, nfa: _Nfa, masks: list[int], look: Callable[[int], None]) -> None:
        self.nfa = nfa
        self.look = look  # called with the number of threads now and then
        self.mask_of = [masks[s] if s >= 0 else 0 for s in nfa.set_of]
        self.ends = frozenset(end for _, end in nfa.trackers) | {_FINAL}
        self.obligations: list[tuple[bool, Threads]] = []
        self.ids: dict[tuple[bool, Threads], int] = {}
        self.masks_of_obligation: list[frozenset[int]] = []
        # Obligations after a code point, by its class and what the trackers say: many states have the same ones.
        self.stepped: dict[tuple[int, tuple[bool, ...]], dict[int, int | bool]] = {}
        self.work = 0  # threads that were looked at, those of obligations too

    def obligation(self, negative: bool, threads: Threads) -> int | bool:
        """Its number, or what it is worth where that is known."""
        if not threads:
            return negative
        if threads == _DONE:
            return not negative
        key = (negative, threads)
        found = self.ids.get(key)
        if found is None:
            found = self.ids[key] = len(self.obligations)
            self.obligations.append(key)
            self.masks_of_obligation.append(frozenset(self.masks(threads)))
        return found

    def masks(self, threads: Threads) -> set[int]:
        """Sets of classes that these threads, and what hangs on them, tell apart."""
        out: set[int] = set()
        for node, hanging in threads:
            if self.mask_of[node]:
                out.add(self.mask_of[node])
            for one in hanging:
                out |= self.masks_of_obligation[one]
        return out

    def close(self, seeds: Iterable[tuple[int, tuple[int, ...]]], truths: list[bool]) -> Threads:
        """Threads after forks and looks, which may be many: each look doubles what may hang on a node. ``truths``: what
        each tracker says here."""
        nfa = self.nfa
        stack = list(dict.fromkeys(seeds))  # many threads may come to one
        seen = set(stack)
        out: list[tuple[int, tuple[int, ...]]] = []
        turns = 0
        while stack:
            turns += 1
            if turns & 255 == 0:
                self.look(len(seen))
            thread = stack.pop()
            node, hanging = thread
            if self.mask_of[node] or node in self.ends:
                out.append(thread)
                continue
            look = nfa.look[node]
            if look is None:
                fresh = [(fork, hanging) for fork in nfa.forks[node]]
            else:
                ahead, item, negative = look
                if ahead:
                    worth = self.obligation(negative, self.close([(item, ())], truths))
                    if worth is False:
                        continue
                    if worth is not True:
                        hanging = tuple(sorted({*hanging, int(worth)}))
                elif truths[item] == negative:
                    continue
                fresh = [(nfa.next_of[node], hanging)]
            for one in fresh:
                if one not in seen:
                    seen.add(one)
                    stack.append(one)
        self.work += len(seen) + 1
        free = {node for node, hanging in out if not hanging}
        if _SINK in free:
            return _DONE
        if len(free) < len(out):
            out = [one for one in out if not one[1] or one[0] not in free]
        out.sort()
        return tuple(out)

    def step(self, threads: Threads, bit: int, truths: list[bool]) -> Threads:
        """Threads after one code point of the class ``bit``."""
        known = self.stepped.setdefault((bit, tuple(truths)), {})
        seeds = []
        for node, hanging in threads:
            if not self.mask_of[node] & bit:
                continue
            if hanging:
                left = []
                for one in hanging:
                    worth = known.get(one)
                    if worth is None:
                        negative, inner = self.obligations[one]
                        worth = known[one] = self.obligation(negative, self.step(inner, bit, truths))
                    if worth is False:
                        break
                    if worth is not True:
                        left.append(int(worth))
                else:
                    seeds.append((self.nfa.next_of[node], tuple(sorted(set(left)))))
                continue
            seeds.append((self.nfa.next_of[node], ()))
        return self.close(seeds, truths)

    def accepts(self, threads: Threads) -> bool:
        """Whether the text may end here."""
        for node, hanging in threads:
            if node in (_FINAL, _SINK) and all(
                self.accepts(self.obligations[one][1]) != self.obligations[one][0] for one in hanging
            ):
                return True
        return False

    def track(self, before: tuple[Threads, ...] | None, bit: int) -> tuple[tuple[Threads, ...], list[bool]]:
        """The trackers after one more code point, or at the start of the text; and what each says there."""
        truths: list[bool] = []
        out: list[Threads] = []
        for n, (start, end) in enumerate(self.nfa.trackers):
            if before is None:
                threads = self.close([(start, ())], truths)
            else:
                threads = self.step(before[n], bit, truths)
            out.append(threads)
            truths.append(any(node == end for node, _ in threads))
        return tuple(out), truths


def _determinise_looking(
    nfa: _Nfa, start: int, masks: list[int], budget: Budget, place: str | None
) -> tuple[list[list[tuple[int, int]]], list[bool]]:
    """Moves of every state on sets of classes, and whether it accepts."""
    machine = _Looking(nfa, masks, partial(budget.check, "states", place=place))
    trackers, truths = machine.track(None, 0)
    first = (trackers, machine.close([(start, ())], truths))
    ids = {first: 0}
    order = [first]
    moves: list[list[tuple[int, int]]] = []
    for before, threads in order:
        if machine.work > 10_000:
            budget.check("pattern_states", len(order) + len(machine.obligations) - len(nfa.set_of), place)
            machine.work = 0
        by_mask: dict[int, list[int]] = {mask: [] for mask in sorted(machine.masks(threads))}
        if threads:
            for tracked in before:
                by_mask.update((mask, []) for mask in sorted(machine.masks(tracked)))
        row: list[tuple[int, int]] = []
        for mask, _ in _split(by_mask) if by_mask else ():
            bit = mask & -mask
            after, truths = machine.track(before, bit)
            stepped = machine.step(threads, bit, truths)
            if not stepped:
                continue
            state = (after, stepped)
            found = ids.get(state)
            if found is None:
                found = ids[state] = len(order)
                order.append(state)
            row.append((mask, found))
        moves.append(row)
    budget.check("pattern_states", len(order) - len(nfa.set_of), place)
    return moves, [machine.accepts(threads) for _, threads in order]
