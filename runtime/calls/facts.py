"""Look up what a reader needs to know of a bundle: its delimiters, its tools, what its marks mean.

Leaves out   where a reader stands: see reader.py.
Invariants   nothing here changes, but for answers that are kept; readers that fork share it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..format.ops import END_OF_TURN, FINISHED, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import ARGUMENTS, NAME, tools_of
from ..reference import Machine
from .arguments import read_only

if TYPE_CHECKING:
    from ..format.bundle import Bundle


class Facts:
    """What a reader looks up in a bundle.

    Attributes:
        machine, view: the tables, as the reference reads them.
        symbol_of: token → symbol, of tokens that are read as one symbol.
        tokens: name → token, of these; shown_symbol: symbol → name, without the end of turn.
        ending: names of the tokens that end a turn.
        splits: matches a name of `tokens` in a text, the longest first.
        symbols: (class, its lowest symbol), but for the end of turn; lowest: these symbols.
        delimiters: (symbol, name) of `shown_symbol`, by the first byte of the name.
        tools, names: of the meta.
        ends_of: state → tools whose calls are complete there; see docs/format.md, `ends`.
        how: how arguments are written; writing: its encoding, "" without tools.
        read_as: constants that are read, and never written so; see `read_only`.
        only: the tool of each set of tools; -1: several.
        marks: the rows of `mark`.
    """

    def __init__(self, bundle: Bundle) -> None:
        t, meta = bundle.tables, bundle.meta
        self.machine = Machine(bundle)
        self.view = self.machine.view
        self.symbol_of: dict[int, int] = dict(zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True))
        special = {number: name for name, number in bundle.vocab.meta["special"].items()}
        shown = {token: special.get(token, "").encode() for token in self.symbol_of}
        self.ending = {name for token, name in shown.items() if name and self.symbol_of[token] == END_OF_TURN}
        self.tokens = {name: token for token, name in sorted(shown.items(), reverse=True) if name}
        self.shown_symbol = {self.symbol_of[token]: name for name, token in self.tokens.items()}
        self.shown_symbol.pop(END_OF_TURN, None)
        longest_first = sorted(self.tokens, key=len, reverse=True)
        self.splits = re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + b")" if longest_first else b"(?!)")
        self.symbols = _one_of_each(self.view["symbol_class"], [*range(END_OF_TURN), *self.shown_symbol])
        self.lowest = frozenset(symbol for _, symbol in self.symbols)
        self.delimiters: dict[int, list[tuple[int, bytes]]] = {}
        for one, name in sorted(self.shown_symbol.items()):
            self.delimiters.setdefault(name[0], []).append((one, name))
        self.tools = tools_of(meta)
        self.names = [str(tool["name"]) for tool in self.tools]
        self.ends_of: dict[int, list[int]] = dict(meta.get("ends", ()))
        self.how = meta.get("arguments") or {"encoding": "json"}
        self.writing = str(self.how["encoding"]) if self.names else ""
        self.read_as = read_only(self.how)
        offset, members = t.tool_offset.tolist(), t.tool_members.tolist()
        self.only = [members[a] if b - a == 1 else -1 for a, b in itertools.pairwise(offset)]
        self.marks: list[tuple[int, int, int, int]] = [tuple(row) for row in t.mark[:, :4].tolist()]
        spec = meta.get("spec")
        self._spec: dict[str, Any] = spec if isinstance(spec, dict) else {}
        self._protocol = meta.get("protocol")
        self._ahead: dict[tuple[int, bool, int], bool] = {}  # what `arguments_may_come` found

    def json_at(self, entry: str) -> tuple[bool, bool]:
        """Of texts of an entry: whether the whole text is a value of JSON; whether its text is, between the calls."""
        values = "answer" not in self._spec  # answers are values of JSON, and no texts in which such may stand
        begins = str(self._spec.get("begins", "")) if entry == "start" else entry
        whole = values and self._spec.get("kind") == "schema" and not self._protocol
        return whole, values and begins.startswith(("response", "either"))

    def arguments_may_come(self, state: int, inside: bool, tool: int) -> bool:
        """Whether arguments can begin in a state of a tool's call, or in one that follows.

        Args:
            inside: the state is one of a frame of this call alone, whose marks name no tool.
        """
        start = state, inside, tool
        if start not in self._ahead:
            self._ahead[start] = self._leads_to_arguments(*start)
        return self._ahead[start]

    def _leads_to_arguments(self, state: int, inside: bool, tool: int) -> bool:
        todo, seen = [(state, inside)], {(state, inside)}
        while todo:
            q, inside = todo.pop()
            if q <= FINISHED:
                continue
            cells = self.machine.cells(q)
            ops = {self.machine.entry(cell, number) for cell in cells for number, _ in self.symbols}
            for op in sorted(ops):
                kind, n = op & KIND_MASK, op >> KIND_BITS
                if kind == POP or not op:
                    continue
                if kind == PUSH:
                    region, _, tools, _ = self.marks[self.view["symbol_mark"][self.view["push"][n, 0]]]
                    if region >= ARGUMENTS:
                        return True
                    after = [(int(self.view["push"][n, mode]), True) for mode in (1, 2)]
                else:
                    region, _, tools, _ = self.marks[self.view["state_mark"][n]]
                    after = [(n, inside)]
                region = self.marks[self.view["state_mark"][after[0][0]]][0] if kind == PUSH else region
                if region >= ARGUMENTS:
                    return True
                if region == NAME or not (inside or (tools >= 0 and self.only[tools] == tool)):
                    continue  # another call
                for one in after:
                    if one not in seen:
                        seen.add(one)
                        todo.append(one)
        return False


def _one_of_each(classes: Any, symbols: Iterable[int]) -> list[tuple[int, int]]:
    """(class, its lowest symbol), in the order of the symbols."""
    lowest: dict[int, int] = {}
    for symbol in symbols:
        lowest.setdefault(int(classes[symbol]), symbol)
    return list(lowest.items())
