"""A grammar → the tables of its bundle by parts: what is compiled already is taken as it is.

Leaves out   the stages of one part (../pushdown, ../lift), keeping parts (cache.py).
Invariants   equal grammars, vocabularies and options give equal tables, whatever is in the cache. Masks are those of
             the grammar compiled as a whole: where that is not certain, the grammar is compiled as a whole.
Whole        A grammar is compiled as a whole where arguments of two tools can begin at the same place (they stand
             before the name), where the tail of a call has no last delimiter, where its first symbol may go on another
             name, where a counter of the caller goes on behind a part, where the main part recurs, and where the soft
             depth is a few frames.
Modes        Only a part that recurs has two modes. The frames of all others, and the first frames of those that recur,
             lie below the soft depth, and no token is long enough to come down to them from where mode 1 begins.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from toolc.runtime.format.container import blake
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.format.tables import NEVER, Tables
from toolc.runtime.format.vocab import Vocab

from ..budget import Budget
from ..errors import BudgetError, RefusedTools, ToolcError, UnsatisfiableError
from ..ir.nodes import Grammar
from ..lift.completion import close_arrays
from ..lift.lift import lift
from ..lift.reachable_thresholds import thresholds_ahead
from ..passes import Pass
from ..progress import tell
from ..pushdown.member_marks import MembersClash
from ..pushdown.pushdown import Automaton, build_automaton
from ..schema.report import at
from ..vocab.encode import Encode
from .cache import Parts
from .call_tails import Opener
from .numbering import Joined
from .part import Cut, Part, PartEntry, entries_of
from .resolve import Resolve, near_decisions
from .split import Entry, Split, Unit, split, stubs_in
from .stubs import Apart, Stubs, find_stubs, refuse_shared
from .tables import tables_of
from .tool_groups import Group, Work, grouped
from .vocab_queries import Words

ALONE = 2  # units are made, alone or in a group, before workers are: then most kernels are loaded
WORTH = 0.2  # seconds of work that two workers do sooner


@dataclass(frozen=True)
class Linked:
    """What linking gives, and lifting a grammar as a whole.

    Attributes:
        tables: of the bundle.
        counts: as those of the lift.
        modes: 1 or 2.
        entries: state by rule.
        separable, ends: see the automaton's marks.
        parts, reused: how many parts there are besides the main one, and how many of them were there before; None: it
            was lifted as a whole.
        restrictions: of the automaton.
    """

    tables: Tables
    counts: dict[str, int]
    modes: int
    entries: dict[str, int]
    separable: bool
    ends: dict[int, tuple[int, ...]]
    parts: int | None
    reused: int
    restrictions: tuple[str, ...] = ()


def link(
    grammar: Grammar,
    vocab: Vocab,
    ends: Sequence[int],
    encode: Encode | None,
    budget: Budget,
    soft_depth: int,
    context: bytes,
    common: Sequence[str] = (),
    jobs: int | None = 1,
    skip: bool = False,
) -> Linked | RefusedTools | None:
    """Compile a grammar by parts; None where it has to be compiled as a whole.

    With ``skip`` the errors of some tools are returned where the whole may do all the same.

    Raises:
        BudgetError: it took too many seconds, states, rows or bytes, as the whole would.
        RefusedTools: the arguments of some tools did, or no text matches them.

    Args:
        context: digest of the vocabulary, of what encodes, and of the compiler.
        common: rules that many grammars have: parts also where no arguments are.
        jobs: see workers.py.
        skip: whether to go through all tools before the errors of some are raised.
    """
    whole = split(grammar, common) if Pass.PARTS.on else None
    if whole is None:
        return None
    parts = Parts(blake(context, repr((sorted(ends), whole.specials)).encode()))
    linker = _Linker(whole, vocab, ends, encode, budget, soft_depth, parts, skip)
    try:
        return linker.link(jobs)
    except (BudgetError, RefusedTools):
        raise  # what a part passes the whole passes too
    except (Apart, ToolcError):
        return None  # compiled as a whole it may do, or the error names the right place
    finally:
        parts.close()


class _Linker:
    def __init__(
        self, whole: Split, vocab: Vocab, ends: Sequence[int], encode: Encode | None, budget: Budget, soft_depth: int,
        cache: Parts, skip: bool,
    ) -> None:  # fmt: skip
        self.whole, self.vocab, self.ends, self.encode = whole, vocab, list(ends), encode
        self.budget, self.soft_depth, self.cache = budget, soft_depth, cache
        self.words = Words.of(vocab)
        known = [(n, vocab.special[name]) for n, name in enumerate(whole.specials, END_OF_TURN + 1)]
        self.specials = np.array([*((END_OF_TURN, token) for token in sorted(set(ends))), *known], np.int32)
        self.parts: dict[bytes, Part] = {}
        self._entries: dict[Entry, Entry] = {}  # by which part, and which entry of it, a unit can be called
        self.reused = 0
        self._skip = skip
        self._clashes: dict[bytes, MembersClash] = {}  # units with objects that no register fits, and that need such
        self._failed: dict[bytes, ToolcError] = {}  # units that passed a limit or are refused, and those that need them
        # Units that the main part calls are arguments of tools; the others are definitions.
        self._called = {digest for digest, _ in whole.imports}

    def link(self, jobs: int | None) -> Linked | RefusedTools:
        work = grouped(self.whole) if Pass.TOOL_GROUPS.on else self.whole.units
        units = [one for unit in work for one in self._possible(unit)]
        self._units(units, jobs)
        if self._clashes:
            raise MembersClash.of_all(self._clashes.values())
        self._blame_callers(units)
        if self._called & self._failed.keys():
            return self._refused()
        left = [unit for unit in units if unit.digest not in self._failed]
        self.parts = {one.digest: self.parts[one.digest] for unit in left for one in self._made_of(unit)}
        return self._main([self._entries[entry] for entry in self.whole.imports])

    def _possible(self, unit: Work) -> Sequence[Work]:
        """The unit, or the members of a group that was found to be none."""
        return unit.members if isinstance(unit, Group) and self.cache.is_given_up(unit.digest) else [unit]

    def _made_of(self, unit: Work) -> Sequence[Work]:
        """The same, after they were made; notes how others call them, too."""
        if unit.digest not in self.parts:
            assert isinstance(unit, Group)
            return [one for member in unit.members for one in self._made_of(member)]
        members = unit.members if isinstance(unit, Group) else (unit,)
        entries = [(member.digest, n) for member in members for n in range(len(member.entries))]
        self._entries |= {entry: (unit.digest, n) for n, entry in enumerate(entries)}
        return [unit]

    def _units(self, units: Sequence[Work], jobs: int | None) -> None:
        """Take the parts of units from the cache, or make them, each after those that it imports; by workers where that
        is sooner done."""
        missing = [unit for unit in units if not self._take(unit)]
        if jobs != 1 and len(missing) > ALONE and self.encode is not None:
            self.encode.ready()
        failed: dict[bytes, Exception] = {}
        hands = jobs
        made = 0
        for n, unit in enumerate(missing, 1):
            if unit.digest in self.parts:
                continue
            begin = time.perf_counter()
            tell("parts", n, len(missing), _place_of(unit))
            try:
                self._keep(unit, self._attempt(unit, failed.get(unit.digest)))
            except MembersClash as error:
                self._clashes[unit.digest] = error
            except (Apart, ToolcError) as error:
                if isinstance(unit, Unit):
                    self._note_failure(unit, error)
                    continue
                if not isinstance(error, BudgetError):
                    self.cache.give_up(unit.digest)
                self._units(unit.members, 1)  # one of them has to be made otherwise, or this is an error of it
                hands = jobs  # workers may not have made what is behind it
            seconds = time.perf_counter() - begin
            made += len(unit.members) if isinstance(unit, Group) else 1
            if hands == 1 or made < ALONE or seconds * (len(missing) - n) <= WORTH:
                continue
            left = [one for one in missing[n:] if one.digest not in self.parts and one.digest not in failed]
            if len(left) > 1 and seconds * len(left) > WORTH:
                from .workers import spread

                errors = (ToolcError, Apart, MembersClash)
                passing = (ToolcError, MembersClash) if self._skip else (MembersClash,)
                how = hands, seconds, self.budget, passing
                failed |= spread(left, self.parts, self._unit, self._keep, errors, *how)
                hands = 1

    def _attempt(self, unit: Work, failed: Exception | None) -> Part:
        """Make the part of a unit.

        Args:
            failed: what a worker raised for it.

        Raises:
            Apart, MembersClash, ToolcError: of the unit, or of one that it imports.
        """
        if failed is not None:
            raise failed
        below = self._failed_below(unit)
        # A definition that no text matches is one alternative, perhaps: with a copy of it, others remain.
        if isinstance(unit, Unit) and isinstance(below, UnsatisfiableError):
            return self._unit_alone(unit)
        if below is not None:
            raise below
        clash = next((self._clashes[digest] for digest, _ in unit.imports if digest in self._clashes), None)
        if clash is not None:
            raise clash
        return self._unit(unit)

    def _note_failure(self, unit: Unit, error: Apart | ToolcError) -> None:
        """Keep the error of a unit where the others are made all the same, or raise it."""
        if isinstance(error, Apart) or self.budget.is_late:
            raise error
        definition = unit.digest not in self._called
        may_pass = definition and isinstance(error, UnsatisfiableError)
        if not self._skip and not may_pass and not isinstance(error, BudgetError):
            raise error
        self._failed[unit.digest] = _without_frames(error)
        if not self._skip and not definition:
            self._refused()

    def _blame_callers(self, units: Sequence[Work]) -> None:
        """A unit that needs one that passed a limit fails, too, even where its own part was in the cache."""
        for unit in units:  # each after those that it imports
            for one in unit.members if isinstance(unit, Group) else (unit,):
                below = self._failed_below(one)
                if isinstance(below, BudgetError):
                    self._failed.setdefault(one.digest, below)

    def _failed_below(self, unit: Work) -> ToolcError | None:
        """The error of a unit that this one imports, if there is one."""
        return next((self._failed[digest] for digest, _ in unit.imports if digest in self._failed), None)

    def _refused(self) -> RefusedTools:
        """The errors of units as those of the tools that need them; the whole may compile all the same.

        Raises:
            RefusedTools: it would not. Units passed a limit, then with their errors alone; or no text matches the
                arguments of any of these tools.
        """
        passed = {digest: error for digest, error in self._failed.items() if isinstance(error, BudgetError)}
        failed = passed or self._failed
        errors: dict[int, ToolcError] = {}
        rules, marks = self.whole.main.rules, self.whole.main.marks
        for number, rule in ((mark.number, rule) for rule, mark in marks.items() if mark.kind == "tool"):
            for stub in stubs_in(rules, rule):
                digest, _ = self.whole.imports[stub]
                if digest in failed:
                    errors.setdefault(number, failed[digest])
        if not errors:
            raise next(iter(failed.values()))  # of what no tool needs by itself
        unsatisfiable = all(isinstance(error, UnsatisfiableError) for error in errors.values())
        if passed or (unsatisfiable and not self.whole.tails):  # a tail is not all that a call can go on with
            raise RefusedTools(errors)
        return RefusedTools(errors)

    def _take(self, unit: Work) -> bool:
        """Take a part from the cache; whether it is there. One that passes a limit is made again, so that the error has
        its place."""
        part, most = self.cache.get(unit.digest), self.budget.states
        if part is not None and most is not None and max(part.counts["nfa_states"], part.counts["local_states"]) > most:
            return False
        if part is not None:
            self.parts[unit.digest] = part
            self.reused += 1
        return part is not None

    def _keep(self, unit: Work, part: Part) -> None:
        self.cache.put(unit.digest, part)
        self.parts[unit.digest] = part

    def _unit(self, unit: Work) -> Part:
        if isinstance(unit, Group):
            return self._made(unit.grammar(), list(unit.imports), unit.entries)[0].part
        try:
            return self._made(_placed(unit.grammar, unit), list(unit.imports), unit.entries)[0].part
        except Apart:
            if not unit.imports:
                raise
            return self._unit_alone(unit)

    def _unit_alone(self, unit: Work) -> Part:
        """The part of a unit, not of a group, that has copies of those that it would import."""
        assert isinstance(unit, Unit)
        return self._made(_placed(unit.alone(), unit), [], unit.entries)[0].part

    def _made(
        self, grammar: Grammar, imports: list[tuple[bytes, int]], entries: Sequence[tuple[int, Opener]] | None
    ) -> tuple[_Made, Automaton]:
        """Build, lift and cut one part: of a unit, or the main one where ``entries`` is None.

        The main part also moves the other parts to its classes of symbols. Returns the part and its automaton, which
        has no transitions any more.
        """
        a = build_automaton(grammar, budget=self.budget, watch=refuse_shared if imports else None)
        if imports and a.modes > 1:
            raise Apart("what calls parts recurs itself")
        ahead = thresholds_ahead(a)
        stubs = find_stubs(a, ahead.some) if imports else Stubs({}, {}, {}, np.zeros(0, np.int64), b"")
        if self.words.begins_stub(stubs.openers):
            raise Apart("a token begins a stub")
        entry = None if entries is None else entries_of(a, entries)
        called = [self.parts[digest].entries[k] for digest, k in imports]
        marks = a.marks
        symbols = marks.narrow_symbol.copy()
        symbols[list(stubs.symbol)] = True
        with self.budget.blaming(a.largest_rule):
            t, rows, profiles, counts = lift(
                replace(a, marks=replace(marks, narrow_symbol=symbols)), self.vocab, self.ends, self.budget, ahead
            )
        near = near_decisions(a, t.state_cell, rows, self.vocab.longest) if marks.tools else None
        a = replace(a, ops=np.zeros((0, a.classes), np.int32))  # the largest array, and nothing below reads it
        cells = t.state_cell.copy()
        cells[stubs.inside] = t.state_cell[0]  # inside of a stub nothing is read: the part that it stands for goes on
        t = t.but(state_cell=cells)
        close_of = {q: called[number].close for q, number in stubs.entry.items()}
        with self.budget.blaming(a.largest_rule):
            closes, weight, due = close_arrays(t, self.vocab, rows, profiles, self.encode, self.budget, close_of)
            t = t.but(**closes)
        self.budget.check("")
        others = self.parts.values() if entries is None else None
        cut = Cut(a, t, rows, stubs, entry, [one.left for one in called], self.whole.specials, others)
        self.budget.check("")
        arrays = cut.arrays()
        exported = []
        for push, left in entry or ():
            _, free, shallow, _ = a.pushes[push]
            close = *max(_closed(t, weight, free), _closed(t, weight, shallow), key=itemgetter(1)), int(due[push])
            exported.append(PartEntry(int(cut.state[free]), int(cut.state[shallow]), close, left))
        own_depth = a.soft_depth if a.modes == 1 else 1
        further = [self.parts[digest].depth for digest, _ in imports if self.parts[digest].modes == 1]
        part = Part(
            arrays, exported, imports, a.modes, own_depth + max([0, *(d - 1 for d in further)]),
            counts["capacity"] - a.soft_depth, int(t.chain_offset.size), max(1, a.completions),
            {rule: int(cut.state[q]) for rule, q in a.entries.items()}, counts,
        )  # fmt: skip
        if entries is None:
            for digest, other in self.parts.items():
                self.budget.check("")
                self.parts[digest] = other.over(cut.representative)
        self.budget.check("")
        joined = Joined.of(part, self.parts, cut.symbol_class)
        roots: dict[int, list[int]] = {}
        for k, (push, _) in enumerate(entry or ()):
            roots.setdefault(int(a.pushes[push][0]), []).append(k)
        resolve = Resolve(part, cut, a, t, profiles, joined, near, self.vocab, self.specials, self.budget)
        part = resolve.resolved(roots)
        ends = {int(cut.state[q]): tools for q, tools in a.marks.ends.items()}
        return _Made(part, resolve, joined, ends), a

    def _main(self, imports: list[Entry]) -> Linked:
        made, a = self._made(self.whole.main, imports, None)
        self.budget.check("")
        joined = made.joined.behind(made.part)
        tables, longest = tables_of(
            joined, made.resolve.walks.machine, a.marks, self.specials, made.resolve.decided, made.resolve.deciding
        )
        parts = joined.parts
        deepest = made.part.depth
        modes = joined.modes
        if modes == 2 and deepest + self.words.most_leaving(_leaving(joined)) >= self.soft_depth:
            raise Apart("mode 1 would begin in frames that have only one")
        soft = self.soft_depth if modes == 2 else deepest
        total = sum(x.nbytes for x in tables.arrays().values())
        self.budget.check("rows", tables.rows)
        self.budget.check("bytes", total)
        counts = {
            **made.part.counts,
            "nfa_states": sum(p.counts["nfa_states"] for p in parts),
            "local_states": sum(p.counts["local_states"] for p in parts),
            "classes": tables.classes,
            "states": tables.states,
            "stack_symbols": int(tables.return_offset.size),
            "profiles": int(tables.chain_offset.size),
            "cells": tables.cells,
            "chains": int(tables.chain_cell.size),
            "rows": tables.rows,
            "dense_rows": int(tables.dense.shape[0]),
            "max_chain": longest,
            "capacity": max(1, soft + sum(sorted(p.deeper for p in parts)[-deepest - 1 :])),
            "soft_depth": soft,
            "bytes": total,
            "walks": sum(p.counts["walks"] for p in parts),
        }
        return Linked(
            tables, counts, modes, made.part.places, a.marks.separable, made.ends, len(self.parts), self.reused
        )


@dataclass(frozen=True)
class _Made:
    part: Part
    resolve: Resolve
    joined: Joined
    ends: dict[int, tuple[int, ...]]


def _without_frames(error: ToolcError) -> ToolcError:
    """An error that is kept, without the frames that it came through: these hold all that was made of its part, which
    may be gigabytes."""
    error.__traceback__ = error.__context__ = None
    return error


def _placed(grammar: Grammar, unit: Unit) -> Grammar:
    """A grammar of a unit with the places in the spec."""
    return replace(grammar, places={rule: at(unit.origin, place) for rule, place in grammar.places.items()})


def _place_of(unit: Work) -> str:
    """Where in the spec a part begins; of several, the first."""
    first = unit.members[0] if isinstance(unit, Group) else unit
    return at(first.origin, next(iter(first.grammar.places.values()), ""))


def _closed(t: Tables, weight: np.ndarray, q: int) -> tuple[int, int]:
    """The least weight that leads out of a state, int32 [close cells], and its bound."""
    past = sum(min(max(count - at, 0), count) for at, count in t.close_breaks[t.close_break[q]].tolist())
    cell = int(t.state_close[q]) + past
    return min(NEVER, int(weight[cell])), min(NEVER, int(t.close_bound[cell]))


def _leaving(joined: Joined) -> np.ndarray:
    """bool [256]: bytes with which some state leaves a frame that may lie beyond the soft depth."""
    pops = np.zeros(joined.width, bool)
    for part in joined.parts:
        if part.modes == 2:
            pops |= part.leaving
    return pops[joined.symbol_class[:256]]
