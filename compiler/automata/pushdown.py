"""Grammar → deterministic pushdown automaton over bytes: the heart of toolc.

A local state is a set of NFA states of one frame. On a symbol it stays, pushes or pops:

    stay   to another local state, with an action on the frame's counter
    push   all calls that can start with the symbol together; the stack symbol maps each instance to where it returns
    pop    the symbol completes a set R of instances; the frame below goes on from the union of what R returns to

States, stack symbols and (stack symbol, R) pairs are found by a worklist; only reachable ones exist. Where
alternatives disagree (one pushes where another stays, two counters run apart) the choice of what is called, inlined
or copied is revised and the NFA built anew; where nothing is left to revise the grammar is refused.

Leaves out   the loops over states (determinise.py), NFA states (nfa.py), the automata of terminals (terminal.py),
             vocabularies (../lift).
Invariants   state 0 is dead, 1 finished; every other state can reach the end; numbers follow discovery.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from ..budget import Budget
from ..errors import GrammarError, UnsupportedError
from ..grammar.ir import Grammar
from .determinise import determinise
from .factor import factor
from .marks import Marks, read_marks
from .nfa import END_OF_TURN, Choices, Nfa
from .nodes import NodePool, read_nodes
from .terminal import terminal_dfa
from .workspace import ALL_DONE, APART, CLASH, FULL, GOES_ON, GROUP, NESTED, ONE_BYTE, PAUSED, Workspace

_REVISIONS = 64


@dataclass
class Automaton:
    """A deterministic pushdown automaton, as built (see docs/architecture.md for ops and actions).

    Attributes:
        symbol_class: int32 [256 + specials], class of each symbol.
        specials: names of the special tokens beyond end of turn: symbol 257 + i.
        classes: number of symbol classes.
        thresholds: per state the counter values at which it changes: region r of counter c is how many are <= c.
        ops: int32 [rows, classes], one row per region of every state: those of q begin at row ``state_row[q]``.
        state_row: int32 [states + 1].
        pushes: (stack symbol, state entered in mode 0, in mode 1, action on the caller's counter).
        returns: (stack symbol, R) → (state, action on the restored counter).
        under: per state, the stack symbols that can be on top of the stack in it, as a bit set.
        beneath: per stack symbol, the stack symbols that can lie right under it, as a bit set.
        soft_depth: see the document; the bound on frames where the grammar has one of its own.
        shallow_height: most frames that the twins add beyond it.
        marks: what states and stack symbols are to whoever reads calls back.
        entries: state of every entry of the grammar, by rule; ``start`` is that of the start rule.
    """

    symbol_class: np.ndarray
    specials: tuple[str, ...]
    classes: int
    thresholds: list[tuple[int, ...]]
    ops: np.ndarray
    state_row: np.ndarray
    pushes: list[tuple[int, int, int, int]]
    returns: dict[tuple[int, int], tuple[int, int]]
    stack_symbols: int
    completions: int
    under: list[int]
    beneath: list[int]
    start: int
    modes: int
    soft_depth: int
    shallow_height: int
    marks: Marks
    entries: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


class _Clash(Exception):
    """Alternatives disagree; ``revised`` are choices under which they no longer do so."""

    def __init__(self, revised: Choices) -> None:
        self.revised = revised


def build_automaton(grammar: Grammar, *, budget: Budget | None = None, soft_depth: int = 64) -> Automaton:
    """Determinise a grammar.

    Args:
        grammar: the rules; the text ends where the start rule does.
        budget: limits on states and time.
        soft_depth: nesting up to which a recursive grammar is unrestricted; beyond it only texts of minimum height.

    Raises:
        GrammarError: the grammar is outside the class; names the rule.
        UnsatisfiableError: no text matches.
        BudgetError: a limit was reached.
    """
    budget = budget or Budget()
    pool = read_nodes(grammar, budget, terminal_dfa)
    factor(pool, budget)
    choices = Choices()
    for _ in range(_REVISIONS):
        try:
            nfa = Nfa(pool, choices, budget)
            return _Determiniser(pool, nfa, budget).run(soft_depth)
        except _Clash as clash:
            choices = clash.revised
    raise GrammarError(
        "the alternatives of this grammar keep disagreeing on where brackets open",
        place=grammar.place(grammar.start),
    )


class _Determiniser:
    """Runs the kernels over an NFA, and says what is wrong where they stop."""

    def __init__(self, pool: NodePool, nfa: Nfa, budget: Budget) -> None:
        self.pool = pool
        self.nfa = nfa
        self.budget = budget
        self.symbol_class, self.classes_of_mask = _classes(nfa.masks, len(nfa.specials))
        self.classes = int(self.symbol_class.max()) + 1
        self.space = Workspace(self._flatten(), self.classes)

    def _flatten(self) -> dict[str, np.ndarray]:
        """The NFA as the arrays that the kernels read."""
        nfa = self.nfa
        core = [bool(e or g or c or f >= 0) for e, g, c, f in zip(nfa.edges, nfa.guards, nfa.calls, nfa.final)]
        first, first_bad = zip(*map(self._first, range(len(nfa.instances))), strict=True)
        out = {
            "scope": np.array(nfa.scope),
            "final": np.array(nfa.final),
            "core": np.array(core),
            "first_bad": np.array(first_bad),
        }
        for name, rows, columns in (
            ("edge", nfa.edges, 3), ("free", nfa.free, 2), ("guard", nfa.guards, 3), ("call", nfa.calls, 4),
            ("first", first, 2),
        ):  # fmt: skip
            out[f"{name}_offset"] = np.cumsum([0, *map(len, rows)])
            out[name] = np.array([entry for row in rows for entry in row], np.int32).reshape(-1, columns)
        out["mask_offset"] = np.cumsum([0, *map(len, self.classes_of_mask)])
        out["mask_class"] = np.concatenate(self.classes_of_mask)
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
            moves.update((k, t) for mask, t, _ in nfa.edges[s] for k in self.classes_of_mask[mask].tolist())
            bad = bad or bool(nfa.calls[s] or nfa.guards[s])
            for t, _ in nfa.free[s]:
                if t not in seen:
                    seen.add(t)
                    todo.append(t)
        return sorted(moves), bad

    # -- the whole -----------------------------------------------------------------------------------------------------

    def run(self, soft_depth: int) -> Automaton:
        nfa, space = self.nfa, self.space
        enter = np.array([nfa.finished, *nfa.entries], np.int32)
        states = space.pools["states"]
        code = int(PAUSED)
        while code != ALL_DONE:
            code = int(determinise(space.address, enter))
            if code == FULL:
                space.grow()
            elif code in (APART, GROUP, CLASH):
                self.refuse(code, space.arrays["why"])
            else:
                self.budget.check("states", len(states), self.rule_at(space.expanded - 1))
        self.cores = states.sequences()
        closed, closed_to = space.pools["closed"], space.arrays["closed_to"]
        state_of = {int(closed[i][0]): int(closed_to[2 * i]) for i in range(1, min(len(closed), len(enter) + 1))}
        assert state_of[nfa.finished] == 1
        entries = {rule: state_of[state] for rule, state in zip(self.pool.entries, nfa.entries, strict=True)}
        under, beneath = self.stack_order()
        for_all = {rule for name, rule in self.pool.grammar.entries.items() if not name.startswith("tool:")}
        kept = [state for rule, state in entries.items() if rule == self.pool.start or rule in for_all]
        max_depth = nfa.max_depth
        height = max((nfa._height[node] + 1 for node, shallow in nfa.instances if shallow), default=0)
        ops, row_end, threshold_end = space.rows()
        ends = [0, *threshold_end.tolist()]
        thresholds = space.arrays["threshold"][: ends[-1]].tolist()
        pushes, returns = space.pools["pushes"].sequences(), space.pools["returns"].sequences()
        returned = space.arrays["return_to"][: 2 * len(returns)].reshape(-1, 2).tolist()
        return Automaton(
            symbol_class=self.symbol_class,
            specials=tuple(nfa.specials),
            classes=self.classes,
            thresholds=[tuple(thresholds[a:b]) for a, b in itertools.pairwise(ends)],
            ops=ops.copy(),
            state_row=np.concatenate([[0], row_end]).astype(np.int32),
            pushes=[(g, entry, shallow, action) for g, entry, shallow, action in pushes],
            returns={(g, r): (to, action) for (g, r), (to, action) in zip(returns, returned, strict=True)},
            stack_symbols=len(space.pools["symbols"]),
            completions=len(space.pools["completions"]),
            under=under,
            beneath=beneath,
            start=entries[self.pool.start],
            entries=entries,
            marks=self.marks(kept),
            modes=1 if max_depth is not None else 2,
            soft_depth=soft_depth if max_depth is None else max_depth,
            shallow_height=height if max_depth is None else 0,
            counts={"nfa_states": len(nfa.edges), "local_states": len(states), "classes": self.classes},
        )

    def marks(self, kept: list[int]) -> Marks:
        """Marks of states and stack symbols; ``kept`` are the entries that any choice among the tools keeps."""
        pools = self.space.pools
        backs = [pairs[1::2] for pairs in pools["symbols"].sequences()]
        links, callers = pools["links"].sequences(), pools["callers"].sequences()
        return read_marks(self.nfa, self.cores, backs, links, callers, kept)

    def stack_order(self) -> tuple[list[int], list[int]]:
        """Which stack symbols can be on top in each state, and which right under each stack symbol; bit sets."""
        pools = self.space.pools
        callers = pools["callers"].sequences()
        goes_on: list[list[int]] = [[] for _ in self.cores]
        for q, target in pools["links"].sequences():
            goes_on[q].append(target)
        top = [0] * len(self.cores)
        todo = []
        for entry, _, g in callers:
            top[entry] |= 1 << g
            todo.append(entry)
        while todo:
            q = todo.pop()
            for target in goes_on[q]:
                if top[q] & ~top[target]:
                    top[target] |= top[q]
                    todo.append(target)
        below = [0] * len(pools["symbols"])
        for _, q, g in callers:
            below[g] |= top[q]
        return top, below

    # -- disagreements -----------------------------------------------------------------------------------------------

    def rule_at(self, q: int) -> str:
        """The rule that a state is in, for errors."""
        core = self.space.pools["states"][q]
        node = self.nfa.instances[self.nfa.instance[core[0]]][0] if core.size else -1
        rule = self.pool.start if node < 0 else self.nfa.rule_of(node)
        return self.pool.grammar.place(rule)

    def refuse(self, code: int, why: np.ndarray) -> None:
        """Raise what a kernel stopped for."""
        count = int(why[0])
        things = set(why[1 : 1 + count].tolist())
        extra = int(why[1 + count])
        if code == APART:
            self.apart(things)
        if code == CLASH:
            items = why[3 + count : 3 + count + int(why[2 + count])].tolist()
            here = {s for s in items if any(extra in self.classes_of_mask[m] for m, _, _ in self.nfa.edges[s])}
            self.disagree_on_push(things, here)
        assert code == GROUP
        instances = things if extra == NESTED else {self.nfa.instance[s] for s in things}
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
        for entry, node in nfa.string_entries:
            todo, seen = [entry], {entry}
            while todo:
                for t, _ in nfa.free[todo.pop()]:
                    if t not in seen:
                        seen.add(t)
                        todo.append(t)
            for s in staying:
                if s in seen or not seen.isdisjoint(nfa.taken.get(s, ())):
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
        if nodes and not nodes & (nfa.choices.inlined | nfa.choices.called) and all(nfa.may_inline(n) for n in nodes):
            raise _Clash(Choices(nfa.choices.called, nfa.choices.inlined | nodes, nfa.choices.expanded))
        rule = nfa.rule_of(min(nodes)) if nodes else self.pool.start
        raise GrammarError(
            f"a bracketed group of rule {rule} {why}",
            place=self.pool.grammar.place(rule),
            expected="alternatives that agree on which bytes open and close a group",
        )


def _classes(masks: list[int], specials: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Symbols that every mask treats alike share a class; numbered by their first symbol."""
    symbols = END_OF_TURN + 1 + specials
    member = np.zeros((len(masks), symbols), bool)
    for i, mask in enumerate(masks):
        bits = np.frombuffer(mask.to_bytes((symbols + 7) // 8, "little"), np.uint8)
        member[i] = np.unpackbits(bits, bitorder="little")[:symbols]
    _, first, inverse = np.unique(member, axis=1, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    symbol_class = order[inverse.reshape(-1)].astype(np.int32)
    representative = np.sort(first)
    return symbol_class, [np.flatnonzero(row[representative]) for row in member]
