"""States and tasks against a plain loop over the same nodes."""

from __future__ import annotations

import pytest

from toolc.compiler.automata import filling as filling_module
from toolc.compiler.automata.facts import Facts
from toolc.compiler.automata.filling import ASK, DONE, Filling
from toolc.compiler.automata.nodes import CHOICE, LITERAL, QUOTED, REF, REPEAT, SEQUENCE, TERMINAL, NodePool, read_nodes
from toolc.compiler.automata.splice import piece_of
from toolc.compiler.automata.terminal import terminal_dfa
from toolc.compiler.budget import Budget
from toolc.compiler.grammar.reader import read_grammar

GRAMMARS = [
    'start: "a" b c | b c\nb: "x" | "yz" |\nc: /[0-9]+/ "." b',
    'start: "k:" (item ("," item)*)?\nitem: /[a-z]+/ "=" value\nvalue: "1" | "2" | text\ntext: "\\"" /[a-z]*/ "\\""',
    'start: ' + " ".join(f'("{n}" w)?' for n in range(60)) + '\nw: " "*\n',
    'start: "[" list "]"\nlist: one ("," one)*\none: "{" start? "}" | "x"~2..5 | start',
]  # fmt: skip


class _Plain:
    """What `Filling` makes, in dictionaries and lists."""

    def __init__(self, pool: NodePool, facts: Facts) -> None:
        self.pool, self.facts = pool, facts
        self.place: list[int] = []
        self.tasks: list[tuple[int, int, int, int]] = []
        self.known: dict[tuple[int, int, int], int] = {}
        self.free: list[list[int]] = []
        self.use: list[list[int]] = []
        self.text: list[list[int]] = []

    def named(self, node: int) -> int:
        while self.pool.nodes[node][0] == REF:
            node = self.pool.rules[self.pool.nodes[node][1]]
        return node

    def get(self, node: int, back: int) -> int:
        node = self.named(node)
        if node == self.pool.empty:
            return back
        if (node, back, -1) not in self.known:
            self.known[node, back, -1] = len(self.place)
            self.tasks.append((len(self.place), node, back, -1))
            self.place.append(self.place[back])
        return self.known[node, back, -1]

    def begin(self, entry: int, node: int, back: int) -> None:
        node = self.named(node)
        if node == self.pool.empty or (node, back, -1) in self.known:
            self.free.append([entry, self.get(node, back), 0])
        else:
            self.known[node, back, -1] = entry
            self.tasks.append((entry, node, back, -1))

    def run(self) -> None:
        while self.tasks:
            entry, number, back, _ = self.tasks.pop()
            node = self.pool.nodes[number]
            kind = node[0]
            if kind in (LITERAL, TERMINAL):
                own = len(node[1]) - 1 if kind == LITERAL else piece_of(self.pool.dfas[node[1]]).own
                (self.text if kind == LITERAL else self.use).append([number, entry, back, len(self.place)])
                self.place += [self.place[back]] * own
            elif kind == SEQUENCE:
                for item in node[1][:0:-1]:
                    back = self.get(item, back)
                self.begin(entry, node[1][0], back)
            elif kind == CHOICE:
                self.free += [[entry, self.get(option, back), 0] for option in node[1]]
            elif kind == QUOTED:
                self.begin(entry, node[1], back)
            elif kind == REPEAT and node[2:] == (0, None):
                self.free += [[entry, back, 0], [entry, self.get(node[1], entry), 0]]


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("text", GRAMMARS)
def test_the_kernel_makes_what_a_loop_makes(text: str, tight: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if tight:  # all arrays have to grow
        monkeypatch.setattr(filling_module, "_USUAL", (0,) * 6)
    pool = read_nodes(read_grammar(text), Budget(), terminal_dfa)
    facts = Facts(pool)
    plain = _Plain(pool, facts)
    filling = Filling(facts, frozenset(), frozenset(), plain.named)
    plain.place.append(filling.new(0))
    roots = [plain.named(root) for root in pool.rules.values()]
    for root in roots:  # later ones find much of it known
        assert filling.get(root, 0, -1) == plain.get(root, 0)
        plain.run()
        while (code := filling.run()) != DONE:
            if code == ASK:
                filling.pop()
    assert filling.size == len(plain.place)
    assert filling.rows("known").tolist() == [[*key, state] for key, state in plain.known.items()]
    assert filling.rows("free").tolist() == plain.free
    assert filling.rows("use").tolist() == plain.use
    assert filling.rows("text").tolist() == plain.text


def test_a_first_state_is_no_others() -> None:
    pool = read_nodes(read_grammar('start: "a"*'), Budget(), terminal_dfa)
    filling = Filling(Facts(pool), frozenset(), frozenset(), lambda node: node)
    back = filling.new(0)
    root = pool.rules["start"]
    state = filling.first(root, back, -1)
    assert filling.run() == ASK  # a loop's head would be the state itself
    assert filling.pop() == (state, True, root, back, -1)
    assert filling.get(root, back, -1) != state
