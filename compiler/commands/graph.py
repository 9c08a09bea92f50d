"""The automaton of a bundle as a drawing: frames, states, labelled edges, places on the paper.

A frame is what is read between a push and its pop; the states of the entries are the outermost one. An edge that calls
goes from the state that pushes to the states to which the callee may return. States with one way in and one way on, by
one byte, are drawn as one edge with their text.

Leaves out   the page around it: see page.py. What a state means: docs/format.md.
Invariants   every state that an entry reaches is in one frame; where a drawing is cut, `left_out` says how many states.
             Counters are not drawn: an edge stands if it is there for some value of the counter.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.ops import FINISHED, KIND_BITS, KIND_MASK, PUSH, state_of_return

MOST_STATES = 240  # of one frame: more cannot be read
NEAR = 40  # states that a frame shows at first
MOST_DRAWN = 6_000  # of all frames together: a page of more does not open
COLUMN, ROW = 150, 44  # distances on the paper
WHOLE = 14  # letters: a shorter word is not cut


@dataclass
class Edge:
    """From one state to another: its symbols, or the text of several bytes; `calls`: by way of another frame."""

    source: int
    target: int
    symbols: list[int] = field(default_factory=list)
    text: str = ""
    calls: int | None = None


@dataclass
class Frame:
    """One drawing.

    Attributes:
        name: what leads into it.
        roots: states in which it begins.
        place: state → x, y.
        edges: those drawn.
        pops: states that may leave the frame.
        left_out: states that are not drawn.
    """

    name: str
    roots: list[int]
    place: dict[int, tuple[int, int]]
    edges: list[Edge]
    pops: set[int]
    left_out: int


class _Row(NamedTuple):
    """What a state does at some counter: symbols by target and callee, (symbol, states entered), whether it may pop."""

    symbols: dict[tuple[int, int | None], list[int]]
    pushes: list[tuple[int, list[int]]]
    pops: bool


def frames_of(bundle: Bundle) -> tuple[list[Frame], int]:
    """The frames, the outermost first, then by the number of their first state; and how many are left out."""
    edges, pops, pushes = _edges(bundle)
    roots: dict[int, list[str]] = defaultdict(list)
    for name, state in bundle.entry.items():
        roots[state].append(name)
    parent: dict[int, int] = {}

    def find(state: int) -> int:
        while parent.setdefault(state, state) != state:
            state = parent[state]
        return state

    for out in edges.values():
        for edge in out:
            if edge.target != FINISHED:
                a, b = find(edge.source), find(edge.target)
                parent[max(a, b)] = min(a, b)
    first = find(min(roots))
    for state in roots:  # all entries are one frame
        a = find(state)
        parent[max(a, first)] = first = min(a, first)
    members: dict[int, list[int]] = defaultdict(list)
    reached = _reached(edges, pushes, list(roots))
    for state in sorted(reached - {FINISHED}):
        members[find(state)].append(state)
    callers: dict[int, str] = {}
    for state, calls in sorted(pushes.items()):
        for symbol, entered in calls:
            for one in entered:
                if state in reached:
                    callers.setdefault(find(one), f"after {_symbol_name(bundle, symbol)}, called at state {state}")
    frames: list[Frame] = []
    drawn = 0
    outer = find(min(roots))
    begins: dict[int, set[int]] = defaultdict(set)
    for one in (*roots, *(one for calls in pushes.values() for _, entered in calls for one in entered)):
        begins[find(one)].add(one)
    for group in sorted(members, key=lambda g: (g != outer, g)):
        if drawn > MOST_DRAWN:
            break
        starts = sorted(begins[group])
        name = "entries" if group == outer else callers.get(group, "")
        frames.append(_draw(bundle, name, starts, members[group], edges, pops))
        drawn += len(frames[-1].place)
    return frames, len(members) - len(frames)


def _edges(
    bundle: Bundle,
) -> tuple[dict[int, list[Edge]], set[int], dict[int, list[tuple[int, list[int]]]]]:
    """Edges inside of frames by source; states that pop; pushes by source: (symbol, states entered)."""
    t = bundle.tables
    symbols_of: dict[int, list[int]] = defaultdict(list)
    for symbol, number in enumerate(t.symbol_class.tolist()):
        symbols_of[number].append(symbol)
    returns: dict[int, set[int]] = {}
    for g, base in enumerate(t.return_offset.tolist()):
        returns[g] = {state_of_return(int(v)) for v in t.return_[t.return_[:, 0] == base, 1]}
    owner, op = t.delta[:, 0], t.delta[:, 1]
    used = np.flatnonzero(owner >= 0)
    used = used[np.argsort(owner[used], kind="stable")]
    ends = np.searchsorted(owner[used], np.arange(len(owner) + 1)).tolist()
    places, ops = (used - owner[used]).tolist(), op[used].tolist()
    default_of = dict(zip(t.cell_delta.tolist(), t.cell_default.tolist(), strict=True))

    def own(base: int) -> dict[int, int]:
        """Symbol class → op, of the entries of the comb that the row at a base owns."""
        some = slice(ends[base], ends[base + 1])
        return dict(zip(places[some], ops[some], strict=True))

    def read(base: int) -> _Row:
        """The row at a base, with what its default row adds."""
        row = _Row({}, [], False)
        for number, done in sorted({**own(default_of[base]), **own(base)}.items()):
            if done == 0:
                continue
            kind, n, symbols = done & KIND_MASK, done >> KIND_BITS, symbols_of[number]
            if kind < PUSH:
                row.symbols.setdefault((n, None), []).extend(symbols)
            elif kind == PUSH:
                g, free, shallow, _ = t.push[n].tolist()
                row.pushes.append((symbols[0], sorted({free, shallow} - {0})))
                for target in sorted(returns[g] - {0}):
                    row.symbols.setdefault((target, g), []).extend(symbols)
            else:
                row = row._replace(pops=True)
        return row

    rows: dict[int, _Row] = {}
    edges: dict[int, list[Edge]] = {}
    pops: set[int] = set()
    pushes: dict[int, list[tuple[int, list[int]]]] = {}
    cells = t.cells_of("state_break")
    starts, counts, bases = t.state_cell.tolist(), cells.tolist(), t.cell_delta.tolist()
    for state in range(FINISHED + 1, len(starts)):
        found: dict[tuple[int, int | None], dict[int, None]] = {}
        for base in dict.fromkeys(bases[starts[state] : starts[state] + counts[state]]):
            row = rows[base] = rows.get(base) or read(base)
            for (target, callee), symbols in row.symbols.items():
                found.setdefault((target, callee), {}).update(dict.fromkeys(symbols))
            if row.pushes:
                pushes.setdefault(state, []).extend(row.pushes)
            if row.pops:
                pops.add(state)
        edges[state] = [Edge(state, target, list(some), calls=callee) for (target, callee), some in found.items()]
    return edges, pops, pushes


def _reached(
    edges: dict[int, list[Edge]], pushes: dict[int, list[tuple[int, list[int]]]], roots: list[int]
) -> set[int]:
    seen, todo = set(roots), list(roots)
    while todo:
        state = todo.pop()
        more = [edge.target for edge in edges.get(state, [])]
        more += [one for _, entered in pushes.get(state, []) for one in entered]
        for one in more:
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return seen - {0}


def _draw(
    bundle: Bundle, name: str, roots: list[int], states: list[int], edges: dict[int, list[Edge]], pops: set[int]
) -> Frame:
    """Chains joined, states in layers by their distance from the roots."""
    inside = set(states)
    into: dict[int, int] = defaultdict(int)
    for state in states:
        for edge in edges[state]:
            into[edge.target] += 1

    def plain(state: int) -> bool:
        out = edges[state]
        return (
            state in inside
            and state not in roots
            and state not in pops
            and into[state] == 1
            and len(out) == 1
            and out[0].calls is None
            and len(out[0].symbols) == 1
            and out[0].symbols[0] < 256
            and out[0].target not in (state, FINISHED)
        )

    drawn: list[Edge] = []
    layer = dict.fromkeys(roots, 0)
    queue = list(roots)
    for state in queue:
        if len(layer) > MOST_STATES:
            break
        for edge in edges.get(state, []):
            data, target = bytes(edge.symbols) if len(edge.symbols) == 1 and edge.symbols[0] < 256 else b"", edge.target
            joined = edge
            if data and edge.calls is None:
                passed = {state}
                while target != FINISHED and plain(target) and target not in passed:
                    passed.add(target)
                    data += bytes(edges[target][0].symbols)
                    target = edges[target][0].target
                joined = Edge(state, target, edge.symbols, data.decode("utf-8", "backslashreplace"))
            drawn.append(joined)
            if target not in layer:
                layer[target] = layer[state] + 1
                queue.append(target)
    drawn = [edge for edge in drawn if edge.target in layer]
    columns: dict[int, list[int]] = defaultdict(list)
    for state, column in layer.items():
        columns[column].append(state)
    place = _placed([columns[column] for column in sorted(columns)], drawn)
    shown = {edge.source for edge in drawn} | set(place)
    hidden = len(inside) - len(shown & inside) - _joined(drawn)
    return Frame(name, roots, place, drawn, pops & set(place), max(0, hidden))


def _joined(drawn: list[Edge]) -> int:
    """States that stand inside of edges."""
    return sum(max(0, len(edge.text.encode("utf-8", "replace")) - 1) for edge in drawn if edge.text)


def near(frame: Frame) -> Frame:
    """What is drawn at first: what the first root reaches, whole layers up to NEAR states, one step at least.

    Bytes of characters beyond ASCII are left out, with what only they reach: they are the same in every text.
    """
    ways: dict[int, list[Edge]] = defaultdict(list)
    for edge in frame.edges:
        if not edge.symbols or min(edge.symbols) < 0x80 or max(edge.symbols) > 0xFF:
            ways[edge.source].append(edge)
    layer = [frame.roots[0]]
    shown = dict.fromkeys(layer)
    columns = [layer]
    while layer:
        layer = list(dict.fromkeys(edge.target for one in layer for edge in ways[one] if edge.target not in shown))
        if len(columns) > 1 and len(shown) + len(layer) > NEAR:
            break
        shown.update(dict.fromkeys(layer))
        columns.append(layer)
    columns = [[one for one in layer if one != FINISHED] for layer in columns]
    if FINISHED in shown:
        columns.append([FINISHED])  # last, so that no edge leads back to it
    columns = [layer for layer in columns if layer]
    edges = [edge for one in shown for edge in ways[one] if edge.target in shown]
    return replace(frame, place=_placed(columns, edges), edges=edges, pops=frame.pops & shown.keys())


def _placed(columns: list[list[int]], edges: list[Edge]) -> dict[int, tuple[int, int]]:
    """State → x, y: layers as columns, each state as high as those that lead to it."""
    before: dict[int, list[int]] = defaultdict(list)
    for edge in edges:
        before[edge.target].append(edge.source)
    place: dict[int, tuple[int, int]] = {}
    for column, layer in enumerate(columns):

        def height(state: int) -> float:
            above = [place[one][1] for one in before[state] if one in place]
            return sum(above) / len(above) if above else 0.0

        ordered = sorted(layer, key=lambda state: (height(state), state))
        for number, state in enumerate(ordered):
            place[state] = (column * COLUMN, int((number - (len(ordered) - 1) / 2) * ROW))
    return place


def shortened(text: str, most: int) -> str:
    """A text cut between two words, or inside of a word that is longer than WHOLE."""
    if len(text) <= most:
        return text
    cut = most - 1
    while cut > most - 1 - WHOLE and text[cut - 1].isalnum() and text[cut].isalnum():
        cut -= 1
    inside = text[cut - 1].isalnum() and text[cut].isalnum()
    return text[: most - 1 if inside else cut] + "…"


def label(bundle: Bundle, edge: Edge, most: int = 34) -> str:
    """What stands beside an edge."""
    if edge.text:
        text = edge.text if edge.text.isprintable() else repr(edge.text)[1:-1]
        return shortened(text, most)
    if len(edge.symbols) > 128:
        missing = sorted(set(range(256)) - set(edge.symbols))
        text = "any byte" + (f" but {_ranges(bundle, missing)}" if missing else "")
    else:
        text = _ranges(bundle, sorted(edge.symbols))
    if edge.calls is not None:
        text += " …"
    return shortened(text, most)


def _ranges(bundle: Bundle, symbols: list[int]) -> str:
    parts: list[str] = []
    start = last = -2
    for symbol in [*symbols, 1 << 30]:
        if symbol == last + 1 and symbol < 256:
            last = symbol
            continue
        if start >= 0:
            dash = "–" if last > start + 1 else " "
            parts.append(_symbol_name(bundle, start) + (dash + _symbol_name(bundle, last) if last > start else ""))
        start = last = symbol
    return " ".join(parts)


def _symbol_name(bundle: Bundle, symbol: int) -> str:
    if symbol >= 256:
        t = bundle.tables
        ids = t.special_token[t.special_symbol == symbol].tolist()
        return "end of turn" if symbol == 256 else bundle.vocab.shown(ids[0]) if ids else f"symbol {symbol}"
    if symbol == 32:
        return "␣"
    return chr(symbol) if 32 < symbol < 127 else f"{symbol:02x}"
