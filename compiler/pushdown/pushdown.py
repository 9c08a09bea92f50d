"""Grammar → deterministic pushdown automaton over bytes: the heart of toolc.

A local state is a set of NFA states of one frame. On a symbol it stays, pushes or pops:

    stay   to another local state, with an action on the frame's counter
    push   all calls that can start with the symbol together; the stack symbol maps each instance to where it returns
    pop    the symbol completes a set R of instances; the frame below goes on from the union of what R returns to

States, stack symbols and (stack symbol, R) pairs are found by a worklist; only reachable ones exist. Where
alternatives disagree (one pushes where another stays, two counters run apart) the choice of what is called, inlined
or copied is revised and the NFA built anew; where nothing is left to revise the grammar is refused.

Counter      A frame has one counter. A push saves it beside the stack symbol, a pop restores it. An iteration of a
             counted loop adds one on its first symbol; guards compare the counter with thresholds. Loops that start
             together and step together share the counter. Other loops are copied within the budget, or refused.
Modes        The depth is the number of frames on the stack. Only a recursive grammar has no bound on it. A token that
             begins at depth `soft_depth` or deeper is read in mode 1: each push enters the shallow twin of the called
             group, which accepts only its texts of least height. So the stack never passes `capacity`, and no state is
             a dead end.
Leaves out   the loops over states (determinise.py), NFA states (nfa.py), the automata of terminals (terminal.py),
             vocabularies (../lift).
Invariants   state 0 is dead, 1 finished; every other state can reach the end; numbers follow discovery.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.jit.memory import kernel

from ..budget import Budget, check_breaks
from ..errors import GrammarError, UnsupportedError
from ..ir.nodes import Grammar
from ..passes import Pass
from ..terminals.offsets import offsets
from ..terminals.terminal import terminal_dfa
from ..terminals.workspace import (
    ALL_DONE,
    APART,
    BOUNDS,
    CLASH,
    FULL,
    GOES_ON,
    GROUP,
    NESTED,
    ONE_BYTE,
    PAUSED,
    Workspace,
)
from .build_nfa import build_nfa
from .determinise import determinise
from .group_factoring import factor
from .interning import read_nodes
from .marks import Marks, read_marks
from .members import check_frames, place_of, without_marks
from .nfa import Choices, Nfa
from .node_analysis import Facts
from .nodes import NodePool
from .stack_symbols import stack_order
from .union_ends import Transitions


@dataclass
class Automaton:
    """A deterministic pushdown automaton, as built (see docs/format.md for ops and actions).

    Attributes:
        symbol_class: int32 [256 + specials], class of each symbol.
        specials: names of the special tokens beyond end of turn: symbol 257 + i.
        classes: number of symbol classes.
        threshold_offset, threshold: int32: per state the counter values at which it changes: region r of counter c is
            how many are <= c.
        ops: int32 [rows, classes], one row per region of every state: those of q begin at row ``state_row[q]``.
        state_row: int32 [states + 1].
        pushes: int32 [·, 4]: stack symbol, state entered in mode 0, in mode 1, action on the caller's counter.
        return_key, return_to: int32 [·, 2]: (stack symbol, R); state, action on the restored counter.
        sets: sets of stack symbols, ascending.
        top: int32 [states]: number of the set of those that can be on top of the stack.
        below: int32 [stack symbols]: number of the set of those that can lie right under it.
        soft_depth: see the document; the bound on frames where the grammar has one of its own.
        shallow_height: most frames that the twins add beyond it.
        marks: what states and stack symbols are to whoever reads calls back.
        entries: state of every entry of the grammar, by rule; ``start`` is that of the start rule.
        restrictions: what texts are left out, by name.
        largest_rule: finds the rule that most states come from, for errors about limits.
        place_of: finds the JSON pointer of the value in whose frame a state lies; empty where its rule has none.
    """

    symbol_class: np.ndarray
    specials: tuple[str, ...]
    classes: int
    threshold_offset: np.ndarray
    threshold: np.ndarray
    ops: np.ndarray
    state_row: np.ndarray
    pushes: np.ndarray
    return_key: np.ndarray
    return_to: np.ndarray
    stack_symbols: int
    completions: int
    sets: list[np.ndarray]
    top: np.ndarray
    below: np.ndarray
    start: int
    modes: int
    soft_depth: int
    shallow_height: int
    marks: Marks
    largest_rule: Callable[[], str]
    entries: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    restrictions: tuple[str, ...] = ()
    place_of: Callable[[int], str] = lambda _: ""

    @cached_property
    def thresholds(self) -> list[tuple[int, ...]]:
        """Per state."""
        begins, values = self.threshold_offset, self.threshold.tolist()
        out: list[tuple[int, ...]] = [()] * (len(begins) - 1)  # most states have none
        for q in np.flatnonzero(np.diff(begins)).tolist():
            out[q] = tuple(values[begins[q] : begins[q + 1]])
        return out

    @cached_property
    def returns(self) -> dict[tuple[int, int], tuple[int, int]]:
        """(stack symbol, R) → (state, action on the restored counter)."""
        return dict(zip(map(tuple, self.return_key.tolist()), map(tuple, self.return_to.tolist()), strict=True))

    @cached_property
    def _bits(self) -> list[int]:
        return [sum(1 << g for g in one.tolist()) for one in self.sets]

    @cached_property
    def under(self) -> list[int]:
        """Per state, the stack symbols that can be on top of the stack in it, as a bit set."""
        return [self._bits[n] for n in self.top.tolist()]

    @cached_property
    def beneath(self) -> list[int]:
        """Per stack symbol, the stack symbols that can lie right under it, as a bit set."""
        return [self._bits[n] for n in self.below.tolist()]


class _Clash(Exception):
    """Alternatives disagree; ``revised`` are choices under which they no longer do so."""

    def __init__(self, revised: Choices) -> None:
        self.revised = revised


def build_automaton(
    grammar: Grammar,
    *,
    budget: Budget | None = None,
    soft_depth: int = 64,
    watch: Callable[[np.ndarray, np.ndarray], None] | None = None,
) -> Automaton:
    """Determinise a grammar.

    Args:
        grammar: the rules; the text ends where the start rule does.
        budget: limits on states and time.
        soft_depth: nesting up to which a recursive grammar is unrestricted; beyond it only texts of minimum height.
        watch: called with `symbol_class` and op rows as they are made, with none before the first; what it raises ends
            the work.

    Raises:
        GrammarError: the grammar is outside the class; names the rule.
        UnsatisfiableError: no text matches.
        BudgetError: a limit was reached.
    """
    budget = budget or Budget()
    pool = read_nodes(grammar, budget, terminal_dfa)
    if Pass.GROUP_FACTORING.on:
        factor(pool, budget)
    budget.check("")
    facts = Facts(pool, partial(budget.check, ""))
    choices = Choices()
    while True:  # choices only grow, so this ends
        budget.check("")
        try:
            nfa = build_nfa(facts, choices, budget)
            a = _Determiniser(pool, nfa, budget).run(soft_depth, watch)
            t = Transitions(a.ops, a.state_row, a.pushes, a.return_key, a.return_to)
            return replace(a, **without_marks(a.specials, a.symbol_class, t, a.marks, a.place_of))
        except _Clash as clash:
            choices = clash.revised


class _Determiniser:
    """Runs the kernels over an NFA, and says what is wrong where they stop."""

    def __init__(self, pool: NodePool, nfa: Nfa, budget: Budget) -> None:
        self.pool = pool
        self.nfa = nfa
        self.budget = budget
        self.symbol_class, self.mask_class, self.mask_offset = _classes(nfa.masks, len(nfa.specials))
        self.classes = int(self.symbol_class.max()) + 1
        self._classes_of: dict[int, list[int]] = {}
        self.space = Workspace(self._flatten(), self.classes)

    def classes_of(self, mask: int) -> list[int]:
        """The classes of a mask, by number."""
        found = self._classes_of.get(mask)
        if found is None:
            found = self.mask_class[self.mask_offset[mask] : self.mask_offset[mask + 1]].tolist()
            self._classes_of[mask] = found
        return found

    def _flatten(self) -> dict[str, np.ndarray]:
        """The NFA as the arrays that the kernels read."""
        nfa = self.nfa
        final = np.full(nfa.size, -1, np.int32)
        for state, instance in nfa.final.items():
            final[state] = instance
        out = {
            "scope": nfa.scope,
            "final": final,
            "core": final >= 0,
            "mask_offset": self.mask_offset,
            "mask_class": self.mask_class,
        }
        for name, moves in (("edge", nfa.edges), ("free", nfa.free), ("guard", nfa.guards), ("call", nfa.calls)):
            out[name], out[f"{name}_offset"] = moves.data, moves.offset
            if name != "free":
                out["core"] |= moves.offset[1:] > moves.offset[:-1]
        first = [self._first(instance) for instance in range(len(nfa.instances))]
        out["first_bad"] = np.array([bad for _, bad in first])
        out["first_offset"] = offsets(len(rows) for rows, _ in first)
        out["first"] = np.array([row for rows, _ in first for row in rows], np.int32).reshape(-1, 2)
        return out

    def _first(self, instance: int) -> tuple[list[tuple[int, int]], bool]:
        """(class, NFA state after it) from the start of an instance, by class; whether it has other first moves."""
        nfa = self.nfa
        if nfa.instances[instance][0] < 0:
            return [], False
        moves: set[tuple[int, int]] = set()
        todo, seen, bad = [nfa.starts[instance]], {nfa.starts[instance]}, False
        while todo:
            s = todo.pop()
            moves.update((k, t) for mask, t, _ in nfa.edges.of(s) for k in self.classes_of(mask))
            bad = bad or bool(nfa.calls.of(s) or nfa.guards.of(s))
            for t, _ in nfa.free.of(s):
                if t not in seen:
                    seen.add(t)
                    todo.append(t)
        return sorted(moves), bad

    # -- the whole -----------------------------------------------------------------------------------------------------

    def run(self, soft_depth: int, watch: Callable[[np.ndarray, np.ndarray], None] | None) -> Automaton:
        nfa, space = self.nfa, self.space
        enter = np.array([nfa.finished, *nfa.entries], np.int32)
        states = space.pools["states"]
        code, seen = int(PAUSED), 0
        while code != ALL_DONE:
            if watch is not None:
                ops = space.rows()[0]
                watch(self.symbol_class, ops[seen:])
                seen = len(ops)
            code = int(determinise(space.address, enter))
            if code == FULL:
                space.grow()
            elif code in (APART, GROUP, CLASH, BOUNDS):
                self.refuse(code, space.arrays["why"])
            else:
                with self.budget.blaming(lambda: nfa.largest_rule(states.flat()[0])):
                    self.budget.check("states", len(states))
        check_frames(nfa, space)
        closed, closed_to = space.pools["closed"], space.arrays["closed_to"]
        state_of = {int(closed[i][0]): int(closed_to[2 * i]) for i in range(1, min(len(closed), len(enter) + 1))}
        assert state_of[nfa.finished] == 1
        entries = {rule: state_of[state] for rule, state in zip(self.pool.entries, nfa.entries, strict=True)}
        for_all = {rule for name, rule in self.pool.grammar.entries.items() if not name.startswith("tool:")}
        kept = [state for rule, state in entries.items() if rule == self.pool.start or rule in for_all]
        max_depth = nfa.facts.most_frames(bool(nfa.choices.called))
        height = max((nfa.facts.height[node] + 1 for node, shallow in nfa.instances if shallow), default=0)
        ops, row_end, threshold_end = space.rows()
        top, below, sets = stack_order(space)
        returns = space.pools["returns"]
        return Automaton(
            symbol_class=self.symbol_class,
            specials=tuple(nfa.specials),
            classes=self.classes,
            threshold_offset=np.concatenate([[0], threshold_end]).astype(np.int32),
            threshold=space.arrays["threshold"][: threshold_end[-1]].copy(),
            ops=ops,
            state_row=np.concatenate([[0], row_end]).astype(np.int32),
            pushes=space.pools["pushes"].rows(4).copy(),
            return_key=returns.rows(2).copy(),
            return_to=space.arrays["return_to"][: 2 * len(returns)].reshape(-1, 2).copy(),
            stack_symbols=len(space.pools["symbols"]),
            completions=len(space.pools["completions"]),
            sets=sets,
            top=top,
            below=below,
            start=entries[self.pool.start],
            entries=entries,
            marks=read_marks(nfa, space, kept),
            modes=1 if max_depth is not None else 2,
            soft_depth=soft_depth if max_depth is None else max_depth,
            shallow_height=height if max_depth is None else 0,
            counts={"nfa_states": nfa.size, "local_states": len(states), "classes": self.classes},
            largest_rule=partial(nfa.largest_rule, states.flat()[0]),
            place_of=partial(place_of, nfa, *states.flat()),
        )

    # -- disagreements -----------------------------------------------------------------------------------------------

    def refuse(self, code: int, why: np.ndarray) -> None:
        """Raise what a kernel stopped for."""
        count = int(why[0])
        things = set(why[1 : 1 + count].tolist())
        extra = int(why[1 + count])
        if code == APART:
            self.apart(things)
        if code == CLASH:
            items = why[3 + count : 3 + count + int(why[2 + count])].tolist()
            here = self.nfa.alternatives(items)
            staying = {s for s in here if any(extra in self.classes_of(m) for m, _, _ in self.nfa.edges.of(s))}
            self.disagree_on_push(things, staying)
        if code == BOUNDS:
            with self.budget.blaming(lambda: self.nfa.largest_rule(np.array(sorted(things)))):
                check_breaks(extra)
        assert code == GROUP
        instances = things if extra == NESTED else {self.nfa.where(s).instance for s in things}
        self.refuse_group(
            instances,
            {
                int(NESTED): "begins with another group or a counted repeat",
                int(GOES_ON): "can end where another alternative goes on with the same text",
                int(ONE_BYTE): "is complete after one byte",
            }[extra],
        )

    def apart(self, loops: set[int]) -> None:
        """Two counters run apart: copy the cheaper repeat."""
        nfa = self.nfa
        nodes = {nfa.loops[k].node for k in loops} - nfa.choices.expanded
        if not nodes:
            raise UnsupportedError(
                "two counted repeats run side by side", place=self.pool.grammar.place(self.pool.start)
            )
        node = min(nodes, key=lambda n: (nfa.copies_cost(n), n))
        raise _Clash(Choices(nfa.choices.called, nfa.choices.inlined, nfa.choices.expanded | {node}))

    def disagree_on_push(self, instances: set[int], staying: set[int]) -> None:
        """A symbol opens a group in one alternative and is plain text in another: call both, or none."""
        nfa = self.nfa
        strings: dict[int, set[int]] = {}
        taken = {s: nfa.alternatives(nfa.taken.get(s, ())) for s in staying}
        for entry, node in nfa.string_entries:
            seen = nfa.led_to([entry])
            for s in staying:
                if s in seen or not seen.isdisjoint(taken[s]):
                    strings.setdefault(s, set()).add(node)
        if set(strings) == staying:
            more = set().union(*strings.values()) - nfa.choices.called
            if more:
                raise _Clash(Choices(nfa.choices.called | more, nfa.choices.inlined, nfa.choices.expanded))
        self.refuse_group(instances, "opens with a byte that another alternative reads as plain text")

    def refuse_group(self, instances: set[int], why: str) -> None:
        """Inline the called groups if they do not recur, else refuse the grammar."""
        nfa = self.nfa
        nodes = {nfa.instances[i][0] for i in instances} - {-1}
        if (
            nodes
            and not nodes & (nfa.choices.inlined | nfa.choices.called)
            and all(nfa.facts.may_inline(n) for n in nodes)
        ):
            raise _Clash(Choices(nfa.choices.called, nfa.choices.inlined | nodes, nfa.choices.expanded))
        rule = nfa.facts.rule_of(min(nodes)) if nodes else self.pool.start
        raise GrammarError(
            f"a bracketed group of rule {rule} {why}",
            place=self.pool.grammar.place(rule),
            expected="alternatives that agree on which bytes open and close a group",
            hint="let the bracket stand for one thing: quote it, or leave it out of the other alternative",
        )


def _classes(masks: list[int], specials: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Symbols that every mask treats alike share a class; numbered by their first symbol.

    Returns:
        class of each symbol; the classes of every mask, one after the other, and where each begins.
    """
    symbols = END_OF_TURN + 1 + specials
    size = (symbols + 7) // 8
    packed = np.frombuffer(b"".join([mask.to_bytes(size, "little") for mask in masks]), np.uint8)
    return _told_apart(packed.reshape(len(masks), size), symbols)


@kernel()
def _told_apart(masks, symbols):  # type: ignore[no-untyped-def]
    """The same of masks uint8 [·, ·], bit s & 7 of byte s >> 3 for symbol s; all int32."""
    parts = np.zeros(symbols, np.int64)  # symbols that the masks so far treat alike share one
    room = masks.shape[0] * symbols + 1
    made, cut = np.empty(room, np.int64), np.full(room, -1, np.int64)
    count, read = 1, 0
    for n in range(masks.shape[0]):
        for s in range(symbols):
            if masks[n, s >> 3] >> (s & 7) & 1:
                read += 1
                part = parts[s]
                if cut[part] != n:
                    cut[part], made[part] = n, count
                    count += 1
                parts[s] = made[part]
    number = np.full(count, -1, np.int64)
    symbol_class, first, classes = np.empty(symbols, np.int32), np.empty(symbols, np.int64), 0
    for s in range(symbols):
        if number[parts[s]] < 0:
            number[parts[s]] = classes
            first[classes] = s
            classes += 1
        symbol_class[s] = number[parts[s]]
    of_mask, offset = np.empty(read, np.int32), np.zeros(masks.shape[0] + 1, np.int32)
    found = 0
    for n in range(masks.shape[0]):
        for k in range(classes):
            if masks[n, first[k] >> 3] >> (first[k] & 7) & 1:
                of_mask[found] = k
                found += 1
        offset[n + 1] = found
    return symbol_class, of_mask[:found].copy(), offset
