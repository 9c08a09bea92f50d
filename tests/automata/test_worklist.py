"""States and tasks against a plain loop over the same nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Mark
from toolc.compiler.pushdown import worklist as filling_module
from toolc.compiler.pushdown.blocks import block_of
from toolc.compiler.pushdown.interning import read_nodes
from toolc.compiler.pushdown.node_analysis import Facts
from toolc.compiler.pushdown.nodes import CALL, CHOICE, LITERAL, QUOTED, REF, SEQUENCE, TERMINAL, NodePool
from toolc.compiler.pushdown.pushdown import build_automaton
from toolc.compiler.pushdown.regions import OUTSIDE, Region
from toolc.compiler.pushdown.worklist import ASK, DONE, Filling
from toolc.compiler.terminals.terminal import terminal_dfa
from toolc.runtime.format.tables import ARGUMENTS, KEY, NAME, REASONING, TEXT

MARKS = {
    "think": Mark("reasoning"), "said": Mark("text"), "tool": Mark("tool", 3), "other": Mark("tool", 0),
    "name": Mark("name"), "arguments": Mark("arguments"), "key": Mark("key"), "inner": Mark("arguments"),
}  # fmt: skip
GRAMMARS = [
    'start: "a" b c | b c\nb: "x" | "yz" |\nc: /[0-9]+/ "." b',
    'start: "k:" (item ("," item)*)?\nitem: /[a-z]+/ "=" value\nvalue: "1" | "2" | text\ntext: "\\"" /[a-z]*/ "\\""',
    'start: ' + " ".join(f'("{n}" w)?' for n in range(60)) + '\nw: " "*\n',
    'start: "[" list "]"\nlist: one ("," one)*\none: "{" start? "}" | "x"~2..5 | start',
    'start: think? said tool (said | tool | other)\nthink: "t" said\nsaid: /[a-z]+/ | "(" said ")" |\n'
    'tool: "1" name arguments\nother: "2" name ":" key "=" arguments key\nname: "n" | "name"\nkey: /[k-m]/\n'
    'arguments: "{" key? "}" | "{" inner "}" | inner |\ninner: "i" | name',
]  # fmt: skip


ROWS = ("free", "use", "text", "call", "fresh", "behind", "skipped")


class _Plain:
    """What `Filling` makes, in dictionaries and lists."""

    def __init__(self, pool: NodePool, facts: Facts) -> None:
        self.pool, self.facts = pool, facts
        self.place: list[tuple[int, int, Region]] = []
        self.tasks: list[tuple[int, int, int, int]] = []
        self.first: set[int] = set()
        self.known: dict[tuple[int, int, int], int] = {}
        self.frame: dict[tuple[int, bool], tuple[int, int, int]] = {}
        self.rows: dict[str, list[list[int]]] = {name: [] for name in ROWS}

    def named(self, node: int) -> int:
        while self.pool.nodes[node][0] == REF and self.pool.nodes[node][1] not in self.pool.grammar.marks:
            node = self.pool.rules[self.pool.nodes[node][1]]
        return node

    def new(self, place: tuple[int, int, Region]) -> int:
        self.place.append(place)
        return len(self.place) - 1

    def get(self, node: int, back: int, height: int) -> int:
        node = self.named(node)
        if node == self.pool.empty:
            return back
        if (node, back, height) not in self.known:
            self.known[node, back, height] = self.new(self.place[back])
            self.tasks.append((len(self.place) - 1, node, back, height))
        return self.known[node, back, height]

    def begin(self, entry: int, node: int, back: int, height: int) -> None:
        node = self.named(node)
        if (
            entry in self.first
            or node == self.pool.empty
            or (node, back, height) in self.known
            or self.place[entry] != self.place[back]
        ):
            self.rows["free"].append([entry, self.get(node, back, height), 0])
        else:
            self.known[node, back, height] = entry
            self.tasks.append((entry, node, back, height))

    def called(self, callee: int, shallow: bool) -> int:
        if (callee, shallow) not in self.frame:
            number = len(self.frame) + 1
            end = self.new((number, -1, Region(0, -1, False)))
            start = self.new(self.place[end])
            self.first.add(start)
            self.frame[callee, shallow] = number, start, end
            self.tasks.append((start, callee, end, self.facts.height[callee] if shallow else -1))
        return self.frame[callee, shallow][0]

    def call(self, entry: int, callee: int, back: int, height: int) -> None:
        twin = self.facts.recursive and self.facts.may_be_deeper(callee)
        shallow = self.called(callee, True) if twin else -1
        free = self.called(callee, False) if height < 0 or not twin else -1
        self.rows["call"].append([entry, free, shallow, back, 0])

    def mark(self, entry: int, rule: str, back: int, height: int) -> None:
        instance, scope, outer = self.place[back]
        mark = self.pool.grammar.marks[rule]
        inner = {
            "tool": outer._replace(tool=mark.number),
            "reasoning": outer._replace(reasoning=True),
            "text": outer._replace(kind=REASONING if outer.reasoning else TEXT),
        }.get(mark.kind) or outer._replace(kind={"name": NAME, "arguments": ARGUMENTS, "key": KEY}[mark.kind])
        last = self.new((instance, scope, inner))
        first = self.get(self.pool.rules[rule], last, height)
        if outer.tool != inner.tool:
            self.rows["free"].append([entry, first, 0])
            self.rows["behind"].append([last, back])
        elif outer.kind == inner.kind:
            self.rows["free"] += [[entry, first, 0], [last, back, 0]]
        else:
            border, after = self.new(self.place[last]), self.new(self.place[back])
            self.rows["free"] += [[entry, border, 0], [last, after, 0]]
            self.rows["fresh"] += [[border, first], [after, back]]
            self.rows["skipped"] += [[border, after]] * (inner.kind == ARGUMENTS)

    def run(self) -> None:
        while self.tasks:
            entry, number, back, height = self.tasks.pop()
            node = self.pool.nodes[number]
            kind = node[0]
            if kind in (LITERAL, TERMINAL):
                own = len(node[1]) - 1 if kind == LITERAL else block_of(self.pool.dfas[node[1]]).own
                self.rows["text" if kind == LITERAL else "use"].append([number, entry, back, len(self.place)])
                self.place += [self.place[back]] * own
            elif kind == SEQUENCE:
                for item in node[1][:0:-1]:
                    back = self.get(item, back, height)
                self.begin(entry, node[1][0], back, height)
            elif kind == CHOICE:
                some = [one for one in node[1] if height < 0 or self.facts.height[one] <= height]
                self.rows["free"] += [[entry, self.get(option, back, height), 0] for option in some]
            elif kind == QUOTED:
                self.begin(entry, node[1], back, height)
            elif kind == CALL:
                self.call(entry, node[1], back, height)
            elif kind == REF:
                self.mark(entry, node[1], back, height)
            elif node[2:] == (0, None) and not self.facts.is_marked(node[1]):
                self.rows["free"].append([entry, back, 0])
                if height < 0 or self.facts.height[node[1]] <= height:
                    self.rows["free"].append([entry, self.get(node[1], entry, height), 0])


def pool_of(text: str) -> NodePool:
    """The nodes of a grammar, some rules of which are marked by their names."""
    grammar = read_grammar(text)
    marks = {rule: mark for rule, mark in MARKS.items() if rule in grammar.rules}
    return read_nodes(replace(grammar, marks=marks), Budget(), terminal_dfa)


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("text", GRAMMARS)
def test_the_kernel_makes_what_a_loop_makes(text: str, tight: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tight:  # all arrays have to grow
        monkeypatch.setattr(filling_module, "_USUAL", (0,) * 11)
    pool = pool_of(text)
    facts = Facts(pool)
    plain = _Plain(pool, facts)
    filling = Filling(facts, frozenset(), frozenset(), plain.named)
    assert filling.new((0, -1, OUTSIDE)) == plain.new((0, -1, Region(0, -1, False)))
    filling.let_first(-1, 0)
    roots = [plain.named(root) for root in pool.rules.values()]
    for root in roots:  # later ones find much of it known
        assert filling.get(root, 0, -1) == plain.get(root, 0, -1)
        plain.run()
        while (code := filling.run()) != DONE:
            if code == ASK:
                filling.pop()
    assert [(*place, Region.of(region)) for *place, region in filling.rows("place").tolist()] == plain.place
    assert filling.rows("known").tolist() == [[*key, state] for key, state in plain.known.items()]
    frames = [[2 * node + shallow, start, end] for (node, shallow), (_, start, end) in plain.frame.items()]
    assert filling.rows("frame").tolist()[1:] == frames
    for name, rows in plain.rows.items():
        assert filling.rows(name).tolist() == rows


def test_all_rows_are_met() -> None:
    """The grammars above have every kind of row, so none is compared in vain."""
    met = set()
    for text in GRAMMARS:
        pool = pool_of(text)
        plain = _Plain(pool, Facts(pool))
        plain.new((0, -1, Region(0, -1, False)))
        plain.get(pool.rules["start"], 0, -1)
        plain.run()
        met |= {name for name, rows in plain.rows.items() if rows}
        met |= {"shallow" for _, shallow in plain.frame if shallow}
    assert met == {*ROWS, "shallow"}


def test_a_first_state_is_no_others() -> None:
    pool = read_nodes(read_grammar('start: "a"*'), Budget(), terminal_dfa)
    filling = Filling(Facts(pool), frozenset(), frozenset(), lambda node: node)
    back = filling.new((0, -1, OUTSIDE))
    root = pool.rules["start"]
    state = filling.get(root, back, -1)
    filling.let_first(state, back)
    assert filling.run() == ASK  # a loop's head would be the state itself
    assert filling.pop() == (state, root, back, -1)


TWO_COUNTERS = r"""
start: "{" (a "x" | b "y") (c "x" | d "z") value "}"
a: /"[a-z]{0,100}"/
b: /"([b-z][a-d]){0,60}"/
c: /"([c-y]){0,50}"/
d: /"([d-x][a-f]){0,40}"/
value: VALUE
"""


@pytest.mark.parametrize("value", ['"[" (value ("," value)*)? "]" | "1"', '"1"'])
def test_terminals_that_are_copied_later_have_states_of_their_own(value: str) -> None:
    """Counters that run apart are copied one by one: nodes come behind those that facts are known of."""
    grammar = read_grammar(TWO_COUNTERS.replace("VALUE", value))
    made = build_automaton(grammar)
    for most in range(20, made.counts["nfa_states"], 9):
        with pytest.raises(BudgetError) as error:
            build_automaton(grammar, budget=Budget(states=most))
        assert error.value.place is not None and error.value.place.startswith("rule ")
    assert made.largest_rule().startswith("rule ")
