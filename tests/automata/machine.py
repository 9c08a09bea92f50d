"""Plain readings of an automaton and of a grammar, for tests: run, walk at random, derive at random.

Leaves out   speed; vocabularies (tests/lift).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from toolc.compiler.budget import Budget
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Terminal
from toolc.compiler.pushdown import pushdown
from toolc.compiler.pushdown.build_nfa import build_nfa
from toolc.compiler.pushdown.interning import read_nodes
from toolc.compiler.pushdown.nfa import END_OF_TURN, Choices
from toolc.compiler.pushdown.node_analysis import Facts
from toolc.compiler.pushdown.nodes import NodePool
from toolc.compiler.pushdown.pushdown import Automaton
from toolc.compiler.terminals.terminal import terminal_dfa
from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH


@dataclass
class Run:
    """One reading of an automaton, byte by byte; `mode` is chosen anew before each byte, as if a byte were a token."""

    automaton: Automaton
    state: int = -1
    counter: int = 0
    stack: list[tuple[int, int]] = field(default_factory=list)
    deepest: int = 0

    def __post_init__(self) -> None:
        if self.state < 0:
            self.state = self.automaton.start

    def op(self, symbol: int) -> int:
        a = self.automaton
        region = sum(t <= self.counter for t in a.thresholds[self.state])
        return int(a.ops[a.state_row[self.state] + region, a.symbol_class[symbol]])

    def step(self, symbol: int) -> bool:
        a, op = self.automaton, self.op(symbol)
        mode = a.modes - 1 if len(self.stack) >= a.soft_depth else 0
        kind, value = op & KIND_MASK, op >> KIND_BITS
        if op == 0:
            return False
        if kind < PUSH:
            self.state, self.counter = value, (self.counter, self.counter + 1, 0, 1)[kind]
        elif kind == PUSH:
            g, free, shallow, action = a.pushes[value]
            self.stack.append((g, (self.counter, self.counter + 1, 0, 1)[action]))
            self.state, self.counter = (shallow if mode else free), 0
        else:
            g, saved = self.stack.pop()
            self.state, action = a.returns[g, value]
            self.counter = (saved, saved + 1, 0, 1)[action]
        self.deepest = max(self.deepest, len(self.stack))
        return True

    def symbols(self) -> list[int]:
        """Every symbol that the next step may read."""
        return [s for s in range(self.automaton.symbol_class.size) if self.op(s)]

    @property
    def may_end(self) -> bool:
        return not self.stack and bool(self.op(END_OF_TURN))


def accepts(automaton: Automaton, data: bytes) -> bool:
    """Whether the automaton reads the whole of a text."""
    run = Run(automaton)
    return all(run.step(byte) for byte in data) and run.may_end


def random_text(automaton: Automaton, rng: random.Random, longest: int = 400) -> bytes | None:
    """A random walk to the end, or None if it took too long; never stuck."""
    run, out = Run(automaton), bytearray()
    while len(out) < longest:
        symbols = run.symbols()
        assert symbols, f"dead end after {bytes(out)!r}"
        if END_OF_TURN in symbols and rng.random() < 0.5:
            return bytes(out)
        closers = [s for s in symbols if s < 256 and chr(s) in '"]})']
        pool = closers if closers and rng.random() < 0.3 else [s for s in symbols if s < 256] or symbols
        symbol = rng.choice(pool)
        if symbol == END_OF_TURN:
            return bytes(out)
        run.step(symbol)
        out.append(symbol)
    return None


def derive(grammar: Grammar, rng: random.Random, depth: int = 12) -> bytes | None:
    """A random text of the grammar, or None where the derivation went too deep."""

    def visit(expr: Expr, left: int) -> bytes | None:
        if left < 0:
            return None
        if isinstance(expr, Literal):
            return expr.data
        if isinstance(expr, Ref):
            return visit(grammar.rules[expr.name], left - 1)
        if isinstance(expr, Terminal):
            return _from_dfa(expr, rng)
        if isinstance(expr, Choice):
            return visit(rng.choice(expr.options), left) if expr.options else None
        if isinstance(expr, Sequence):
            parts = [visit(item, left) for item in expr.items]
            return None if None in parts else b"".join(p for p in parts if p is not None)
        assert isinstance(expr, Repeat)
        high = expr.low + 3 if expr.high is None else expr.high
        if high >= 60:
            high = expr.low + 5
        count = rng.choice([expr.low, high, rng.randint(expr.low, high)])
        parts = [visit(expr.item, left) for _ in range(count)]
        return None if None in parts else b"".join(p for p in parts if p is not None)

    return visit(grammar.rules[grammar.start], depth)


def _from_dfa(terminal: Terminal, rng: random.Random) -> bytes | None:
    dfa = terminal_dfa(terminal.regex)
    state, out = 0, bytearray()
    for _ in range(200):
        moves = np.flatnonzero(dfa.next_state[state][dfa.class_of_byte] >= 0).tolist()
        if dfa.accepting[state] and (not moves or rng.random() < 0.3):
            return bytes(out)
        if not moves:
            return None
        byte = rng.choice(moves)
        out.append(byte)
        state = int(dfa.next_state[state, dfa.class_of_byte[byte]])
    return None


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A near miss: one byte dropped, doubled, replaced or moved."""
    if not data:
        return rng.choice([b"", b"[", b"a"])
    out = bytearray(data)
    at = rng.randrange(len(out))
    kind = rng.randrange(4)
    if kind == 0:
        del out[at]
    elif kind == 1:
        out.insert(at, out[at])
    elif kind == 2:
        out[at] = rng.choice(b'{}[]",:0a ')
    else:
        other = rng.randrange(len(out))
        out[at], out[other] = out[other], out[at]
    return bytes(out)


def members(text: str, *passes: Callable[[NodePool], None]) -> int:
    """How many NFA states the states of an automaton hold, all together; ``passes`` over its nodes come before."""
    pool = read_nodes(read_grammar(text), Budget(), terminal_dfa)
    for one in passes:
        one(pool)
    determiniser = pushdown._Determiniser(pool, build_nfa(Facts(pool), Choices(), Budget()), Budget())
    determiniser.run(64, None)
    return len(determiniser.space.pools["states"].flat()[0])
