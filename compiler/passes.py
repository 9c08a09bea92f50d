"""List the passes that only make a compile faster or its bundle smaller; each has a switch.

A compile without any of them takes the plain path: it makes the same masks, later or in a larger file. The switches are
for tests (tests/test_passes.py) and measurements (benchmarks/ablation.py); no option leads here.

Stages       what is not in the list has no plain path, and is needed: the NFA (pushdown/nfa.py, worklist.py, splice.py,
             counted.py), the borders of regions and counted loops (copied_transitions.py, marks.py, symbol_history.py),
             determinisation and the sets of stack symbols; minimal automata of terminals; the walks (lift/walk.py),
             cells, chains, thresholds, the packing into combs; the shortest completion and forced tokens.
             Workers (link/workers.py) have an option of their own, `jobs`.
Leaves out   the passes themselves: each is called at one place, where the switch is asked.
Invariants   masks do not depend on the switches; numbers of states, rows and parts, and upper bounds, may.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum


class Pass(Enum):
    """A pass: its file below ``compiler/``, and what it is for."""

    GROUP_FACTORING = (
        "pushdown/group_factoring.py",
        "Alternative objects become one object over the minimal automaton of their members.",
    )
    LEFT_FACTORING = (
        "pushdown/left_factoring.py",
        "A choice reads the first symbol that all its alternatives share, as the quote of every key.",
    )
    CHOICE_TRIES = (
        "pushdown/choice_tries.py",
        "A choice of many texts is a trie that shares all but one path with the next choice.",
    )
    TEXT_LISTS = (
        "terminals/text_lists.py",
        "The automaton of a list of texts is their merged trie, without the subset construction.",
    )
    REFUSED_TEXTS = (
        "terminals/dfa.py",
        "The automaton of all keys but some is that of all keys with states copied along these.",
    )
    KEPT_TERMINALS = (
        "terminals/terminal.py",
        "The automaton of a pattern is kept for the next compile of the process.",
    )
    SLICES = (
        "lift/slice_simulation.py",
        "A state inside of a string takes the tokens of plain text as one set; only others are walked.",
    )
    COPIED_UNITS = (
        "lift/slice_simulation.py",
        "A state in front of copies of a digit or a blank takes the tokens of as many.",
    )
    SLICE_EXCEPTIONS = (
        "lift/slice_simulation.py",
        "A state of free text, which differs little from one inside of a string, takes the set with exceptions.",
    )
    REGIONS = (
        "lift/region_rows.py",
        "States that count words or characters share a walk over a trie of few classes of bytes.",
    )
    INSIDE_UNITS = (
        "lift/inside_units.py",
        "States between the bytes of a character are proved to allow no token outside of their set.",
    )
    SHARED_WALKS = (
        "lift/walk_results.py",
        "What lies below a first byte is walked once for all states that share the transition on it.",
    )
    BOUNDED_EQUIVALENCE = (
        "lift/bounded_equivalence.py",
        "States that differ only on texts longer than the tokens share their walks, as positions of a repetition.",
    )
    COUNTER_INTERVALS = (
        "lift/counter_intervals.py",
        "One walk serves a run of counter values.",
    )
    CHILDREN = (
        "lift/children.py",
        "A walk steps from one child on which the state lives to the next, past all between.",
    )
    TEXT_BOUNDS = (
        "lift/text_bounds.py",
        "What plain text can cost is bounded from transitions, without walks.",
    )
    COST_MEMO = (
        "lift/token_costs.py",
        "What tokens of a large subtree can cost is remembered by the transition into it.",
    )
    EQUAL_COSTS = (
        "lift/completion.py",
        "Counter values from which no more costs arise share the walks for what tokens can cost.",
    )
    LIST_DIFFERENCES = (
        "lift/rows.py",
        "A list of tokens is stored as its difference from one that is much like it.",
    )
    PARTS = (
        "link/link.py",
        "The arguments of each tool are compiled by themselves and linked.",
    )
    DEFINITIONS = (
        "link/definitions.py",
        "A large object inside of arguments is compiled by itself: several tools may have it.",
    )
    LARGE_STRINGS = (
        "link/large_strings.py",
        "A string with a large pattern is compiled by itself: several tools may have it.",
    )
    TOOL_GROUPS = (
        "link/tool_groups.py",
        "The arguments of some tools are compiled together.",
    )
    CALL_TAILS = (
        "link/call_tails.py",
        "Arguments without brackets of their own are parts, too.",
    )
    EQUAL_ROWS = (
        "link/row_hashes.py",
        "Equal rows of different parts are stored once.",
    )
    PART_CACHE = (
        "link/cache.py",
        "Parts are kept in memory and in files for the next compile.",
    )

    def __init__(self, file: str, purpose: str) -> None:
        self.file = file
        self.purpose = purpose

    @property
    def on(self) -> bool:
        """Whether compiles make this pass here."""
        return self not in _off.get()


_off: ContextVar[frozenset[Pass]] = ContextVar("passes that are off", default=frozenset())


@contextmanager
def without(*passes: Pass) -> Iterator[None]:
    """Inside, compiles of this thread leave out these passes, too."""
    token = _off.set(_off.get() | set(passes))
    try:
        yield
    finally:
        _off.reset(token)


def switches() -> str:
    """The passes that are off, by name: what is kept of a compile is of these switches."""
    return " ".join(sorted(one.name for one in _off.get()))
