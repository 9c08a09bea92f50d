"""Compare an automaton with the rules that it was made of, letter by letter; compile rules as the pipeline does.

Leaves out   tokens (tests/lift), the rules (lr1.py), the oracle (earley.py).
"""

from __future__ import annotations

import random

from tests.automata.machine import Run
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Grammar
from toolc.compiler.options import Options
from toolc.compiler.pushdown.pushdown import Automaton
from toolc.compiler.stages import automaton_of
from toolc.runtime.format.ops import END_OF_TURN, POP

from .earley import Chart
from .lr1 import Rules


def as_written(text: str) -> Grammar:
    return read_grammar(text, in_context=True, keeps_left=True)


def compiled(text: str, options: Options | None = None) -> Automaton:
    """The automaton of a grammar, which the pipeline would lift."""
    return automaton_of(read_grammar(text, in_context=True), lambda: as_written(text), False, options or Options())


def reads(run: Run, symbol: int) -> bool:
    """Whether a symbol may come next, with a look at what a pop returns to."""
    op = run.op(symbol)
    if op & 7 != POP:
        return bool(op)
    return bool(run.stack) and bool(run.automaton.returns.get((run.stack[-1][0], op >> 3), (0, 0))[0])


def first_difference(automaton: Automaton, rules: Rules, rng: random.Random, configurations: int) -> str | None:
    """A text after which the automaton allows another letter than the rules do; None where there is none among those
    that are looked at."""
    letters = sorted({one for options in rules.values() for option in options for one in option if one not in rules})
    todo = [(Run(automaton), Chart(rules), "")]
    for _ in range(configurations):
        if not todo:
            break
        run, chart, text = todo.pop(rng.randrange(len(todo)))
        if reads(run, END_OF_TURN) != chart.is_whole:
            return text
        for letter in letters:
            after = chart.after(letter)
            if reads(run, ord(letter)) != (after is not None):
                return text + letter
            if after is not None:
                then = Run(automaton, run.state, 0, list(run.stack))
                then.step(ord(letter))
                todo.append((then, after, text + letter))
    return None
