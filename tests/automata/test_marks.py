"""Marks against a plain reading of their definition: sets and dicts, state by state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toolc.compiler.grammar.protocol import protocol_names
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.grammar.specials import resolve_specials
from toolc.compiler.options import Options
from toolc.compiler.pipeline import grammar_of
from toolc.compiler.pushdown import pushdown
from toolc.compiler.pushdown.marks import Marks, read_marks
from toolc.compiler.pushdown.nfa import Nfa
from toolc.compiler.specs import read_spec
from toolc.compiler.terminals.workspace import Workspace
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.format.tables import ARGUMENTS, AROUND, KEY, REASONING, STRING, TEXT, UNSETTLED, VALUE

UNKNOWN = -1
MOST = 255
Past = dict[Any, int]  # kind of the region before, or "here" → how many symbols; "none" where a way reads none here

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": properties, "required": list(properties)[:1]},
        },
    }
    for name, properties in (
        ("get", {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}}),
        ("get_more", {"a": {"type": "string", "maxLength": 40}, "c": {"enum": ["x", "y"]}}),
        ("put", {}),
    )
]


def joined(one: Past, other: Past) -> Past:
    out = dict(one)
    for key, age in other.items():
        out[key] = age if out.get(key, age) == age else UNKNOWN
    return out


class Plain:
    """What `read_marks` gives, found state by state."""

    def __init__(self, nfa: Nfa, space: Workspace, begins: Sequence[int]) -> None:
        self.nfa = nfa
        self.kind = [nfa.regions[r].kind for r in nfa.region]
        self.tool = [nfa.regions[r].tool for r in nfa.region]
        self.marked = {int(nfa.instance[s]) for s, r in enumerate(nfa.region) if r}
        self.past = self.pasts()
        states = [space.pools["states"][n].tolist() for n in range(len(space.pools["states"]))]
        symbols = [space.pools["symbols"][n][1::2].tolist() for n in range(len(space.pools["symbols"]))]
        self.table: dict[tuple[int, ...], int] = {(AROUND, UNKNOWN, -1, 0): 0}
        self.sets: dict[tuple[int, ...], int] = {}
        self.state = [self.table.setdefault(self.of_state(core), len(self.table)) for core in states]
        self.symbol = [self.table.setdefault(self.of_symbol(backs), len(self.table)) for backs in symbols]
        inside = [core for core in states if self.is_marked(core)]
        self.separable = all(
            len({self.tool[s] for s in core}) < 2 or all(map(self.stays, core)) for core in inside
        ) and all(len({self.tool[s] for s in backs}) == 1 for backs in symbols)
        self.ends = {n: tools for n, core in enumerate(states) if (tools := self.whole_calls(core))}
        self.narrow(space, begins)

    def whole_calls(self, core: list[int]) -> tuple[int, ...]:
        """Where a text may end in calls of several tools, those that are whole."""
        if not self.is_marked(core) or len({self.tool[s] for s in core}) < 2:
            return ()
        turn = self.nfa.mask(1 << END_OF_TURN)
        ending = {self.tool[s] for s in core if any(mask == turn for mask, _, _ in self.nfa.edges.of(s))}
        return tuple(sorted(ending - {-1}))

    def is_marked(self, core: list[int]) -> bool:
        return any(int(self.nfa.instance[s]) in self.marked for s in core)

    def pasts(self) -> dict[int, Past]:
        nfa = self.nfa
        past: dict[int, Past] = {}
        starts = [*nfa.entries, *(s for i, s in enumerate(nfa.starts) if i in self.marked)]
        todo = [(s, {"none": 1}) for s in starts]
        while todo:
            s, more = todo.pop()
            new = joined(past.get(s, {}), more)
            if past.get(s) == new:
                continue
            past[s] = new
            before = {k: v for k, v in new.items() if isinstance(k, int)}
            for t in [t for t, _ in nfa.free.of(s)] + [t for _, _, t in nfa.guards.of(s)]:
                own = {self.kind[s]: new["here"]} if "here" in new else {}
                todo.append((t, new if self.kind[t] == self.kind[s] else {"none": 1, **joined(before, own)}))
            for _, t, _ in nfa.edges.of(s):
                if "here" in new:
                    todo.append((t, {"here": new["here"] + 1 if 0 <= new["here"] < MOST else UNKNOWN}))
                if "none" in new:
                    todo.append((t, {"here": 1}))
            todo += [(back, {"here": UNKNOWN}) for _, _, back, _ in nfa.calls.of(s)]
        return past

    def last(self, s: int) -> Past:
        if s not in self.past:
            return {AROUND: UNKNOWN}
        before = {k: v for k, v in self.past[s].items() if isinstance(k, int)}
        return joined(before, {self.kind[s]: self.past[s]["here"]} if "here" in self.past[s] else {})

    def set_of(self, members: list[int]) -> int:
        tools = {self.tool[s] for s in members}
        return -1 if -1 in tools else self.sets.setdefault(tuple(sorted(tools)), len(self.sets))

    def of_state(self, core: list[int]) -> tuple[int, ...]:
        if not self.is_marked(core):
            return AROUND, UNKNOWN, -1, 0
        seen = [self.last(s) for s in core]
        common = set(seen[0]).intersection(*seen[1:])
        kind = common.pop() if len(common) == 1 else UNSETTLED
        if kind == UNSETTLED:
            ages = {TEXT, REASONING, VALUE, STRING} & {k for one in seen for k in one}
        else:
            ages = {one[kind] for one in seen} - {UNKNOWN}
        kinds = {self.kind[s] for s in core}
        within = kind in kinds or (kind == ARGUMENTS and bool(kinds & {KEY, VALUE, STRING}))
        return kind, ages.pop() if len(ages) == 1 else UNKNOWN, self.set_of(core), int(kind >= 0 and not within)

    def of_symbol(self, backs: list[int]) -> tuple[int, ...]:
        kinds = {self.kind[s] for s in backs}
        return kinds.pop() if len(kinds) == 1 else UNSETTLED, UNKNOWN, self.set_of(backs), 0

    def stays(self, state: int) -> bool:
        """Whether the next symbol cannot take a state out of its tool's call."""
        nfa, tool = self.nfa, self.tool[state]
        todo = [t for _, t, _ in nfa.edges.of(state)] if tool >= 0 else []
        seen = set(todo)
        while todo:
            s = todo.pop()
            if self.tool[s] != tool and (nfa.edges.of(s) or nfa.calls.of(s) or s in nfa.final):
                return False
            more = {t for t, _ in nfa.free.of(s)} | {t for _, _, t in nfa.guards.of(s)}
            todo += more - seen
            seen |= more
        return True

    def narrow(self, space: Workspace, begins: Sequence[int]) -> None:
        links, callers = space.pools["links"].rows(2).tolist(), space.pools["callers"].rows(3).tolist()
        steps = links + [(p, q) for q, p, _ in callers]
        kept = set(begins) if self.sets else set()
        while more := {q for p, q in steps if p in kept and q not in kept}:
            kept |= more
        rows = list(self.table)
        whole = self.sets.get(tuple(sorted({region.tool for region in self.nfa.regions} - {-1})), -1)
        tools = [rows[m][2] for m in self.state]
        pushed = [rows[m][2] for m in self.symbol]
        self.narrow_state = {q for p, q in steps if p in kept and tools[q] not in (-1, whole, tools[p])}
        self.narrow_symbol = {g for _, p, g in callers if p in kept and pushed[g] not in (-1, whole, tools[p])}


@pytest.mark.parametrize("name", ["json", "hermes", "qwen3_coder", "kimi_k2", "harmony", "react"])
def test_marks_are_what_they_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert name in protocol_names()
    assembled = grammar_of(read_spec(TOOLS, name="tools"), Options(protocol=name))
    grammar = read_grammar(assembled.text, name)
    grammar = type(grammar)(grammar.rules, grammar.start, {}, assembled.entries, {**grammar.marks, **assembled.marks})
    grammar, _ = resolve_specials(grammar, {}, (), "none")
    seen: list[tuple[Marks, Plain]] = []

    def both(nfa: Nfa, space: Workspace, begins: Sequence[int]) -> Marks:
        found = read_marks(nfa, space, begins)
        seen.append((found, Plain(nfa, space, begins)))
        return found

    monkeypatch.setattr(pushdown, "read_marks", both)
    pushdown.build_automaton(grammar)
    (marks, plain) = seen[-1]
    assert len(plain.table) > 3
    assert marks.table == [(*row, 0) for row in plain.table]
    assert marks.tools == list(plain.sets)
    assert marks.state.tolist() == plain.state
    assert marks.symbol.tolist() == plain.symbol
    assert set(np.flatnonzero(marks.narrow_state).tolist()) == plain.narrow_state
    assert set(np.flatnonzero(marks.narrow_symbol).tolist()) == plain.narrow_symbol
    assert marks.separable == plain.separable
    assert marks.ends == plain.ends
