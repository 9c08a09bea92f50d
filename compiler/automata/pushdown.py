"""Grammar → deterministic pushdown automaton over bytes: the heart of toolc.

A local state is a set of NFA states of one frame. On a symbol it stays, pushes or pops:

    stay   to another local state, with an action on the frame's counter
    push   all calls that can start with the symbol together; the stack symbol maps each instance to where it returns
    pop    the symbol completes a set R of instances; the frame below goes on from the union of what R returns to

States, stack symbols and (stack symbol, R) pairs are found by a worklist; only reachable ones exist. Where
alternatives disagree (one pushes where another stays, two counters run apart) the choice of what is called, inlined
or copied is revised and the NFA built anew; where nothing is left to revise the grammar is refused.

Leaves out   NFA states (nfa.py), the automata of terminals (terminal.py), vocabularies (../lift).
Invariants   state 0 is dead, 1 finished; every other state can reach the end; numbers follow discovery over sorted
             classes.
Source       the summary edges are those of Reps, Horwitz, Sagiv 1995, kept backwards as sets of completions per state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ..budget import Budget
from ..errors import GrammarError, UnsupportedError
from ..grammar.ir import Grammar
from .nfa import END_OF_TURN, Choices, Nfa
from .nodes import NodePool, read_nodes
from .terminal import terminal_dfa

KEEP, ADD_ONE, SET_ZERO, SET_ONE = range(4)
PUSH, POP = 4, 5
_REVISIONS = 64


@dataclass
class Automaton:
    """A deterministic pushdown automaton, as built (see docs/architecture.md for ops and actions).

    Attributes:
        symbol_class: int32 [256 + specials], class of each symbol.
        specials: names of the special tokens beyond end of turn: symbol 257 + i.
        classes: number of symbol classes.
        thresholds: per state the counter values at which it changes: region r of counter c is how many are <= c.
        rows: per state one op array int32 [classes] per region.
        pushes: (stack symbol, state entered in mode 0, in mode 1, action on the caller's counter).
        returns: (stack symbol, R) → (state, action on the restored counter).
        under: per state, the stack symbols that can be on top of the stack in it, as a bit set.
        beneath: per stack symbol, the stack symbols that can lie right under it, as a bit set.
        soft_depth: see the document; the bound on frames where the grammar has one of its own.
        shallow_height: most frames that the twins add beyond it.
        entries: state of every entry of the grammar, by rule; ``start`` is that of the start rule.
    """

    symbol_class: np.ndarray
    specials: tuple[str, ...]
    classes: int
    thresholds: list[tuple[int, ...]]
    rows: list[list[np.ndarray]]
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


Item = tuple[int, int]  # NFA state, action on the counter that is live in it


class _Determiniser:
    def __init__(self, pool: NodePool, nfa: Nfa, budget: Budget) -> None:
        self.pool = pool
        self.nfa = nfa
        self.budget = budget
        self.core = [
            bool(nfa.edges[s] or nfa.guards[s] or nfa.calls[s] or nfa.final[s] >= 0) for s in range(len(nfa.edges))
        ]
        self.symbol_class, self.classes_of_mask = _classes(nfa.masks, len(nfa.specials))
        self.classes = int(self.symbol_class.max()) + 1
        self.symbols_of_class = [0] * self.classes
        for symbol, k in enumerate(self.symbol_class.tolist()):
            self.symbols_of_class[k] |= 1 << symbol
        self.states: list[tuple[int, ...]] = [()]
        self.number_of: dict[tuple[int, ...], int] = {(): 0}
        self.thresholds: list[tuple[int, ...]] = [()]
        self.rows: list[list[np.ndarray]] = [[np.zeros(self.classes, np.int32)]]
        self.symbols: list[dict[int, tuple[int, ...]]] = []
        self.symbol_of: dict[tuple, int] = {}
        self.pushes: list[tuple[int, int, int, int]] = []
        self.push_of: dict[tuple[int, int, int, int], int] = {}
        self.completion: list[int] = [-1]  # per state, see completed()
        self.completions: list[tuple[int, ...]] = []
        self.completion_of: dict[tuple[int, ...], int] = {}
        self.returns: dict[tuple[int, int], tuple[int, int]] = {}
        self.todo: list[int] = []
        # The summary: comes_before[q] are states of the frame that go on to q; completes[q] is a bit set of the R
        # that can follow in the frame; callers[e] are the (state, stack symbol) that enter a frame in e.
        self.comes_before: list[dict[int, None]] = [{}]
        self.completes: list[int] = [0]
        self.callers: list[dict[tuple[int, int], None]] = [{}]
        self.spread: list[tuple[int, int]] = []
        self._closed: dict[tuple[Item, ...], tuple[int, int]] = {}
        self._first: dict[int, dict[int, list[int]]] = {}

    # -- sets of NFA states ------------------------------------------------------------------------------------------

    def close(self, items: tuple[Item, ...]) -> tuple[int, int]:
        """The local state after these moves and the action on the counter that is live in it (-1: none is)."""
        known = self._closed.get(items)
        if known is not None:
            return known
        nfa = self.nfa
        action_of: dict[int, int] = {}
        todo = list(items)
        while todo:
            s, action = todo.pop()
            before = action_of.get(s)
            if before is not None:
                if before != action and nfa.scope[s] >= 0:
                    self.apart({nfa.scope[s]})
                continue
            action_of[s] = action
            todo.extend((t, SET_ZERO if enters else action) for t, enters in nfa.free[s])
        core = tuple(sorted(s for s in action_of if self.core[s]))
        live = {action_of[s] for s in core if nfa.scope[s] >= 0}
        if len(live) > 1:
            self.apart({nfa.scope[s] for s in core if nfa.scope[s] >= 0})
        result = self.state(core), live.pop() if live else -1
        self._closed[items] = result
        return result

    def state(self, core: tuple[int, ...]) -> int:
        number = self.number_of.get(core)
        if number is None:
            number = self.number_of[core] = len(self.states)
            self.states.append(core)
            self.completion.append(self.completed(core))
            self.thresholds.append(())
            self.rows.append([])
            self.comes_before.append({})
            self.completes.append(0)
            self.callers.append({})
            self.todo.append(number)
        return number

    def moves(self, q: int) -> list[tuple[int, list[Item]]]:
        """For every region of the counter: its number and the NFA states of q whose moves are open in it."""
        nfa = self.nfa
        core = self.states[q]
        if not any(nfa.guards[s] for s in core):
            return [(0, [(s, KEEP) for s in core])]
        thresholds: set[int] = set()
        todo, seen = list(core), set(core)
        while todo:
            s = todo.pop()
            targets = [t for t, _ in nfa.free[s]] if s not in core else []
            for _, threshold, t in nfa.guards[s]:
                thresholds.add(threshold)
                targets.append(t)
            todo.extend(t for t in targets if t not in seen)
            seen.update(targets)
        self.thresholds[q] = tuple(sorted(thresholds))
        out = []
        for region in range(len(thresholds) + 1):
            low = self.thresholds[q][region - 1] if region else 0
            action_of: dict[int, int] = {}
            items = [(s, KEEP) for s in core]
            while items:
                s, action = items.pop()
                if s in action_of:
                    if action_of[s] != action and nfa.scope[s] >= 0:
                        self.apart({nfa.scope[s]})
                    continue
                action_of[s] = action
                count = low if action == KEEP else 0
                for at_least, threshold, t in nfa.guards[s]:
                    if (count >= threshold) == at_least:
                        items.append((t, action))
                if s not in core:
                    items += [(t, SET_ZERO if enters else action) for t, enters in nfa.free[s]]
            out.append((region, sorted(action_of.items())))
        return out

    def first(self, instance: int) -> dict[int, list[int]]:
        """Class → NFA states after it, from the start of an instance."""
        known = self._first.get(instance)
        if known is None:
            known = self._first[instance] = {}
            todo = [self.nfa.starts[instance]]
            seen = set(todo)
            while todo:
                s = todo.pop()
                for mask, t, _ in self.nfa.edges[s]:
                    for k in self.classes_of_mask[mask].tolist():
                        known.setdefault(k, []).append(t)
                if self.nfa.calls[s] or self.nfa.guards[s]:
                    self.refuse_group({instance}, "begins with another group or a counted repeat")
                for t, _ in self.nfa.free[s]:
                    if t not in seen:
                        seen.add(t)
                        todo.append(t)
        return known

    # -- transitions -------------------------------------------------------------------------------------------------

    def expand(self, q: int) -> None:
        """Fill in the op rows of a state."""
        nfa = self.nfa
        scoped = any(nfa.scope[s] >= 0 for s in self.states[q])
        for _, items in self.moves(q):
            row = np.zeros(self.classes, np.int32)
            edges: list[tuple[int, Item]] = []
            calls: dict[int, list[tuple[int, int, int, int]]] = {}
            for s, action in items:
                for mask, t, adds in nfa.edges[s]:
                    edges.append((mask, (t, action + adds if nfa.scope[t] >= 0 else KEEP)))
                for free, shallow, back, adds in nfa.calls[s]:
                    call = (free, shallow, back, action + adds if nfa.scope[back] >= 0 else -1)
                    for k in self.first(free if free >= 0 else shallow):
                        calls.setdefault(k, []).append(call)
            once = twice = 0  # symbols of some edge; of several
            for mask, _ in edges:
                symbols = nfa.masks[mask]
                twice |= once & symbols
                once |= symbols
            for mask, item in edges:
                classes = self.classes_of_mask[mask]
                if nfa.masks[mask] & twice:
                    classes = classes[[not twice & self.symbols_of_class[k] for k in classes.tolist()]]
                    if not classes.size:
                        continue
                row[classes] = self.stay(q, (item,), scoped)
            if twice:
                self.expand_shared(q, edges, twice, scoped, row)
            for k in sorted(calls):
                if row[k]:
                    self.disagree_on_push(calls[k], items, k)
                row[k] = self.push(q, calls[k], k) << 3 | PUSH
            self.rows[q].append(row)

    def expand_shared(self, q: int, edges: list[tuple[int, Item]], symbols: int, scoped: bool, row: np.ndarray) -> None:
        """The ops on symbols that several edges share: class by class."""
        targets: dict[int, list[Item]] = {}
        for mask, item in edges:
            if self.nfa.masks[mask] & symbols:
                for k in self.classes_of_mask[mask].tolist():
                    if self.symbols_of_class[k] & symbols:
                        targets.setdefault(k, []).append(item)
        known: dict[tuple[Item, ...], int] = {}
        for k, items in sorted(targets.items()):
            key = tuple(sorted(set(items)))
            if key not in known:
                known[key] = self.stay(q, key, scoped)
            row[k] = known[key]

    def stay(self, q: int, targets: tuple[Item, ...], scoped: bool) -> int:
        target, action = self.close(targets)
        if target == 0:
            return 0
        number = self.completion[target]
        if number >= 0:
            if not self.completes[q] >> number & 1:
                self.spread.append((q, number))
            return number << 3 | POP
        self.link(q, target)
        return target << 3 | (action if action >= 0 else SET_ZERO if scoped else KEEP)

    def completed(self, core: tuple[int, ...]) -> int:
        """The number of the set of instances that is complete in a state, -1 if none is."""
        final = self.nfa.final
        done = tuple(sorted({final[s] for s in core if final[s] >= 0}))
        if not done:
            return -1
        if any(final[s] < 0 for s in core):
            self.refuse_group(
                {self.nfa.instance[s] for s in core}, "can end where another alternative goes on with the same text"
            )
        number = self.completion_of.setdefault(done, len(self.completions))
        if number == len(self.completions):
            self.completions.append(done)
        return number

    def push(self, q: int, calls: list[tuple[int, int, int, int]], k: int) -> int:
        nfa = self.nfa
        actions = {action for *_, action in calls if action >= 0}
        if len(actions) > 1:
            self.apart({nfa.scope[back] for _, _, back, _ in calls if nfa.scope[back] >= 0})
        back_of: dict[int, set[int]] = {}
        for free, shallow, back, _ in calls:
            for instance in (free, shallow):
                if instance >= 0:
                    back_of.setdefault(instance, set()).add(back)
        key = tuple((instance, tuple(sorted(back_of[instance]))) for instance in sorted(back_of))
        g = self.symbol_of.get(key)
        if g is None:
            g = self.symbol_of[key] = len(self.symbols)
            self.symbols.append(dict(key))
        deep = sorted({shallow for _, shallow, _, _ in calls if shallow >= 0})
        free_or_deep = sorted({free if free >= 0 else shallow for free, shallow, _, _ in calls})
        entry = self.enter(free_or_deep, k)
        shallow_entry = self.enter(deep, k) if deep else entry
        push = (g, entry, shallow_entry, actions.pop() if actions else KEEP)
        number = self.push_of.get(push)
        if number is None:
            number = self.push_of[push] = len(self.pushes)
            self.pushes.append(push)
        for e in {entry: None, shallow_entry: None}:
            self.called_from(e, q, g)
        return number

    def enter(self, instances: Iterable[int], k: int) -> int:
        targets = sorted({t for instance in instances for t in self.first(instance).get(k, ())})
        entry, _ = self.close(tuple((t, KEEP) for t in targets))
        if self.completion[entry] >= 0:
            self.refuse_group({self.nfa.instance[s] for s in self.states[entry]}, "is complete after one byte")
        return entry

    # -- the summary -------------------------------------------------------------------------------------------------

    def link(self, q: int, target: int) -> None:
        """q goes on to target in the same frame."""
        if q not in self.comes_before[target]:
            self.comes_before[target][q] = None
            new = self.completes[target] & ~self.completes[q]
            while new:
                number = (new & -new).bit_length() - 1
                self.spread.append((q, number))
                new &= new - 1

    def called_from(self, entry: int, q: int, g: int) -> None:
        if (q, g) in self.callers[entry]:
            return
        self.callers[entry][q, g] = None
        done = self.completes[entry]
        while done:
            number = (done & -done).bit_length() - 1
            self.come_back(q, g, number)
            done &= done - 1

    def come_back(self, q: int, g: int, number: int) -> None:
        known = self.returns.get((g, number))
        if known is None:
            backs = sorted({b for instance in self.completions[number] for b in self.symbols[g].get(instance, ())})
            target, action = self.close(tuple((b, KEEP) for b in backs))
            known = self.returns[g, number] = target, max(action, 0)
        if known[0]:
            self.link(q, known[0])

    def settle(self) -> None:
        """Carry completions backwards to every state they can follow, and return to the callers."""
        while self.spread:
            q, number = self.spread.pop()
            if self.completes[q] >> number & 1:
                continue
            self.completes[q] |= 1 << number
            self.spread.extend((p, number) for p in self.comes_before[q] if not self.completes[p] >> number & 1)
            for caller, g in self.callers[q]:
                self.come_back(caller, g, number)

    # -- the whole -----------------------------------------------------------------------------------------------------

    def run(self, soft_depth: int) -> Automaton:
        nfa = self.nfa
        finished, _ = self.close(((nfa.finished, KEEP),))
        assert finished == 1
        entries = {
            rule: self.close(((state, KEEP),))[0] for rule, state in zip(self.pool.entries, nfa.entries, strict=True)
        }
        position = 0
        while position < len(self.todo) or self.spread:
            self.settle()
            if position < len(self.todo):
                self.expand(self.todo[position])
                position += 1
                if not position & 255:
                    self.budget.check("states", len(self.states), self.rule_at(self.todo[position - 1]))
        self.budget.check("states", len(self.states))
        under, beneath = self.stack_order()
        max_depth = nfa.max_depth
        height = max((nfa._height[node] + 1 for node, shallow in nfa.instances if shallow), default=0)
        return Automaton(
            symbol_class=self.symbol_class,
            specials=tuple(nfa.specials),
            classes=self.classes,
            thresholds=self.thresholds,
            rows=self.rows,
            pushes=self.pushes,
            returns=self.returns,
            stack_symbols=len(self.symbols),
            completions=len(self.completions),
            under=under,
            beneath=beneath,
            start=entries[self.pool.start],
            entries=entries,
            modes=1 if max_depth is not None else 2,
            soft_depth=soft_depth if max_depth is None else max_depth,
            shallow_height=height if max_depth is None else 0,
            counts={"nfa_states": len(nfa.edges), "local_states": len(self.states), "classes": self.classes},
        )

    def stack_order(self) -> tuple[list[int], list[int]]:
        """Which stack symbols can be on top in each state, and which right under each stack symbol; bit sets."""
        goes_on: list[list[int]] = [[] for _ in self.states]
        for target, sources in enumerate(self.comes_before):
            for q in sources:
                goes_on[q].append(target)
        top = [0] * len(self.states)
        todo = []
        for entry, callers in enumerate(self.callers):
            for _, g in callers:
                top[entry] |= 1 << g
            if callers:
                todo.append(entry)
        while todo:
            q = todo.pop()
            for target in goes_on[q]:
                if top[q] & ~top[target]:
                    top[target] |= top[q]
                    todo.append(target)
        below = [0] * len(self.symbols)
        for callers in self.callers:
            for q, g in callers:
                below[g] |= top[q]
        return top, below

    # -- disagreements -----------------------------------------------------------------------------------------------

    def rule_at(self, q: int) -> str:
        """The rule that a state is in, for errors."""
        core = self.states[q]
        node = self.nfa.instances[self.nfa.instance[core[0]]][0] if core else -1
        rule = self.pool.start if node < 0 else self.nfa.rule_of(node)
        return self.pool.grammar.place(rule)

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

    def disagree_on_push(self, calls: list[tuple[int, int, int, int]], items: list[Item], k: int) -> None:
        """A symbol opens a group in one alternative and is plain text in another: call both, or none."""
        nfa = self.nfa
        staying = {s for s, _ in items if any(k in self.classes_of_mask[m] for m, _, _ in nfa.edges[s])}
        strings: dict[int, set[int]] = {}
        for entry, node in nfa.string_entries:
            todo, seen = [entry], {entry}
            while todo:
                for t, _ in nfa.free[todo.pop()]:
                    if t not in seen:
                        seen.add(t)
                        todo.append(t)
            for s in seen & staying:
                strings.setdefault(s, set()).add(node)
        if set(strings) == staying:
            more = set().union(*strings.values()) - nfa.choices.called
            if more:
                raise _Clash(Choices(nfa.choices.called | more, nfa.choices.inlined, nfa.choices.expanded))
        instances = {i for free, shallow, _, _ in calls for i in (free, shallow) if i >= 0}
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
