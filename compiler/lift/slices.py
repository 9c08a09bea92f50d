"""Slices: token sets that are worked out once per tokenizer, so that states inside of strings need no walk over all
tokens.

A *unit automaton* reads characters (units) of a common language and goes on for ever. For each of its states the
slice is the set of tokens on which it stays alive from that state; a local state that can do whatever a unit state
can (it *simulates* it, see slice_simulation.py) allows the whole slice, and only the other tokens are walked.

Leaves out   which local states simulate which unit states (slice_simulation.py), the walk (walk.py).
Invariants   state 0 of each automaton lies between units; a unit begins with the byte that leaves a state of
             `boundary`.
Arrays       next_unit uint8 [unit states, 256], 255 is dead; numbers run through all automata.
Source       JSON characters: RFC 8259 section 7; UTF-8: Unicode 15, table 3-7; Python's: ``repr`` of a str.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

DEAD = 255
URI = "uri"
WORD = "word"
COPIED = DIGITS, BLANKS = "digits", "blanks"  # units that are also followed through copies (slice_simulation.py)
_HEX = b"0123456789abcdefABCDEF"


@dataclass
class _Builder:
    names: list[str] = field(default_factory=list)
    moves: list[dict[int, int]] = field(default_factory=list)

    def state(self, name: str) -> int:
        self.names.append(name)
        self.moves.append({})
        return len(self.names) - 1

    def on(self, source: int, data: bytes | range, target: int) -> None:
        for byte in data:
            self.moves[source].setdefault(byte, target)


def _utf8(b: _Builder, name: str, home: int) -> None:
    """Characters of two to four bytes from ``home`` and back."""
    tail = range(0x80, 0xC0)
    one, two, three = (b.state(f"{name}:utf8-{n}") for n in (1, 2, 3))
    b.on(one, tail, home)
    b.on(two, tail, one)
    b.on(three, tail, two)
    b.on(home, range(0xC2, 0xE0), one)
    for lead, second, rest in (
        (0xE0, range(0xA0, 0xC0), one),
        (0xED, range(0x80, 0xA0), one),
        (0xF0, range(0x90, 0xC0), two),
        (0xF4, range(0x80, 0x90), two),
    ):
        state = b.state(f"{name}:utf8-{lead:x}")
        b.on(home, bytes([lead]), state)
        b.on(state, second, rest)
    b.on(home, range(0xE1, 0xF0), two)
    b.on(home, range(0xF1, 0xF4), three)


def _plain(b: _Builder, name: str, without: bytes = b'"\\') -> int:
    """Raw characters of a string; controls are left out, and by default what JSON escapes: a quote and a backslash."""
    home = b.state(name)
    b.on(home, bytes(c for c in range(0x20, 0x80) if c not in without), home)
    _utf8(b, name, home)
    return home


def _free(b: _Builder) -> int:
    """Any character of a JSON string with any escape; surrogates in right pairs count as one."""
    name = "json"
    home = _plain(b, name)
    escape, u, one, two, three, d, high2, high3, slash, low_u, low, low_d = (
        b.state(f"{name}:{part}")
        for part in ("escape", "u", "u1", "u2", "u3", "ud", "high2", "high3", "low", "low-u", "low-u0", "low-ud")
    )
    b.on(home, b"\\", escape)
    b.on(escape, b'"\\/bfnrt', home)
    b.on(escape, b"u", u)
    b.on(u, b"dD", d)
    b.on(u, _HEX, one)
    b.on(one, _HEX, two)
    b.on(two, _HEX, three)
    b.on(three, _HEX, home)
    b.on(d, b"01234567", two)
    b.on(d, b"89abAB", high2)
    b.on(high2, _HEX, high3)
    b.on(high3, _HEX, slash)
    b.on(slash, b"\\", low_u)
    b.on(low_u, b"u", low)
    b.on(low, b"dD", low_d)
    b.on(low_d, b"cdefCDEF", two)
    return home


def _minimal(b: _Builder) -> int:
    """Any character of a JSON string with only the escapes that JSON needs."""
    name = "json-minimal"
    home = _plain(b, name)
    escape, u, zero, double, low, high = (
        b.state(f"{name}:{part}") for part in ("escape", "u", "u0", "u00", "u000", "u001")
    )
    b.on(home, b"\\", escape)
    b.on(escape, b'"\\bfnrt', home)
    b.on(escape, b"u", u)
    b.on(u, b"0", zero)
    b.on(zero, b"0", double)
    b.on(double, b"0", low)
    b.on(double, b"1", high)
    b.on(low, b"01234567bef", home)
    b.on(high, b"0123456789abcdef", home)
    return home


def _python(b: _Builder) -> int:
    """Any character of a Python string as ``repr`` writes it, but for both quotes: one of them ends the string."""
    name = "python"
    home = _plain(b, name, b"\"'\\\x7f")
    escape, x, zero, one, seven = (b.state(f"{name}:{part}") for part in ("escape", "x", "x0", "x1", "x7"))
    b.on(home, b"\\", escape)
    b.on(escape, b"\\nrt", home)
    b.on(escape, b"x", x)
    b.on(x, b"0", zero)
    b.on(x, b"1", one)
    b.on(x, b"7", seven)
    b.on(zero, b"012345678bcef", home)
    b.on(one, b"0123456789abcdef", home)
    b.on(seven, b"f", home)
    return home


def _uri(b: _Builder) -> int:
    """What paths, queries and fragments of URIs hold as it is, and the mark that leads from a path to a query."""
    home = b.state(URI)
    marks = b"-._~!$&'()*+,;=:@/?"
    b.on(home, b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789" + marks, home)
    return home


def _word(b: _Builder) -> int:
    """ASCII letters, digits, underscore, hyphen."""
    home = b.state(WORD)
    b.on(home, b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", home)
    return home


def _digits(b: _Builder) -> int:
    """Decimal digits."""
    home = b.state(DIGITS)
    b.on(home, b"0123456789", home)
    return home


def _blanks(b: _Builder) -> int:
    """White space of JSON."""
    home = b.state(BLANKS)
    b.on(home, b" \t\n\r", home)
    return home


def _text(b: _Builder) -> int:
    """Any UTF-8 text."""
    home = b.state("text")
    b.on(home, range(0x80), home)
    _utf8(b, "text", home)
    return home


def _untagged(b: _Builder) -> int:
    """Any UTF-8 text without what mostly begins a tag: raw text that some tag must be kept out of."""
    home = b.state("untagged")
    b.on(home, bytes(c for c in range(0x80) if c not in b"<]"), home)
    _utf8(b, "untagged", home)
    return home


@dataclass(frozen=True)
class UnitAutomata:
    """All unit automata in one numbering.

    Attributes:
        names: one per unit state; the slice of that state has the same number and name.
        next_unit: uint8 [states, 256].
        boundary: bool [states], states between two units.
        alive: uint64 [states, 4], the bytes that a state lives on, as in children.py.
    """

    names: tuple[str, ...]
    next_unit: np.ndarray
    boundary: np.ndarray
    alive: np.ndarray

    def bytes_from(self, state: int) -> np.ndarray:
        """bool [256]: the bytes that can be read from a unit state on."""
        found, todo = {state}, [state]
        while todo:
            more = set(self.next_unit[todo.pop()].tolist()) - found - {DEAD}
            found |= more
            todo += more
        return (self.next_unit[list(found)] != DEAD).any(axis=0)


@cache
def unit_automata() -> UnitAutomata:
    """The unit automata that every vocab file is cut by."""
    b = _Builder()
    homes = [
        *(_free(b), _minimal(b), _plain(b, "json-raw"), _python(b), _text(b), _untagged(b)),
        *(_uri(b), _word(b), _digits(b), _blanks(b)),
    ]
    next_unit = np.full((len(b.names), 256), DEAD, np.uint8)
    for state, moves in enumerate(b.moves):
        for byte, target in moves.items():
            next_unit[state, byte] = target
    boundary = np.zeros(len(b.names), bool)
    boundary[homes] = True
    alive = np.packbits(next_unit != DEAD, axis=1, bitorder="little").view("<u8").astype(np.uint64)
    return UnitAutomata(tuple(b.names), next_unit, boundary, alive)
