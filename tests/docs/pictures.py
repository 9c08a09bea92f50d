"""Draw the pictures of docs/ as SVG: the pipeline, and the automaton, the trie and the masks of docs/tutorial.md.

The last three come from the tables of the tutorial's bundle. ``python -m tests.golden`` draws them anew; the tests
compare the files with what this module draws.

Source    frames, states and edges: compiler/commands/graph.py, as for ``toolc inspect --html``.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from toolc.compiler.commands.graph import COLUMN, ROW, Edge, Frame, frames_of, label
from toolc.runtime import Bundle, Vocab
from toolc.runtime.format.ops import END_OF_TURN, FINISHED, KIND_MASK, POP
from toolc.runtime.reference import Machine, Sequence

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
PIPELINE = (  # folder, what it does, what it hands on
    ("compiler/specs/", "read tools, OpenAPI, schemas", "a JSON Schema for each tool"),
    ("compiler/schema/", "write a schema as rules", "Lark rules"),
    ("compiler/grammar/", "put the rules into a protocol", "a grammar"),
    ("compiler/pushdown/", "make an automaton over bytes", "an automaton"),
    ("compiler/lift/", "find the tokens of every state", "tables"),
)
BESIDE = (  # folder, what it reads, what it hands on, to the stage of this number
    ("compiler/terminals/", "regular expressions", "automata of patterns", 3),
    ("compiler/vocab/", "tokenizer files", "tokens as bytes", 4),
)
READERS = (
    ("runtime/device/", "masks on a GPU, with torch"),
    ("runtime/host/", "masks on the CPU"),
    ("runtime/calls/", "read calls back"),
)
LETTER = 7.3  # width of a letter at size 12
BLUE, ORANGE, GREEN, LINE, INK = "#9cc3e6", "#f4b183", "#c9e7c5", "#667", "#222"


class Paper:
    """A drawing in the making."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
            'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        ]

    def text(self, x: float, y: float, words: str, anchor: str = "start", more: str = "") -> None:
        """Words; blanks in them are kept."""
        words = escape(words).replace(" ", "\u00a0")
        self.parts.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{INK}"{more}>{words}</text>')

    def box(self, x: float, y: float, width: float, height: float, fill: str, more: str = "") -> None:
        """A rectangle."""
        place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
        self.parts.append(f'<rect {place} fill="{fill}"{more}/>')

    def circle(self, x: float, y: float, radius: float, fill: str, more: str = "") -> None:
        """A circle with a border."""
        self.parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius}" fill="{fill}" stroke="{LINE}"{more}/>')

    def path(self, d: str, more: str = "") -> None:
        """A line without a fill."""
        self.parts.append(f'<path d="{d}" fill="none" stroke="{LINE}"{more}/>')

    def done(self) -> str:
        """The document."""
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def shown(text: str) -> str:
    """Text with visible blanks."""
    return text.replace(" ", "␣")


# ---------------------------------------------------------------- the first picture


def front() -> str:
    """What toolc does, for README.md: a spec becomes a file, and the file masks what a model writes.

    Its colours follow the reader's, light or dark.
    """
    texts: list[str] = []

    def text(x: int, y: int, words: str, kind: str = "code") -> None:
        texts.append(f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>')

    def box(x: int, y: int, width: int, height: int, kind: str = "box") -> None:
        texts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="{kind}"/>')

    def arrow(x: int, u: int, y: int) -> None:
        texts.append(f'<path d="M{x} {y}H{u - 7}M{u - 7} {y - 4}L{u} {y}L{u - 7} {y + 4}z"/>')

    for x, width, title in ((10, 250, "your tools"), (300, 120, "a bundle"), (460, 330, "while the model writes")):
        text(x, 22, title, "title")
        box(x, 32, width, 150)
    for number, line in enumerate(
        (
            "def current_weather(",
            "    place: str,",
            '    units: Literal["celsius",',
            '            "fahrenheit"],',
            ")",
        )
    ):
        text(22, 58 + 22 * number, line.replace(" ", "\u00a0"))
    text(312, 62, "weather.toolc")
    for row, bits in enumerate((0x5A3, 0x0F1, 0xC36, 0x91D)):
        for column in range(9):
            box(312 + 11 * column, 80 + 20 * row, 8, 14, "on" if bits >> column & 1 else "off")
    text(472, 58, '{"name": "current_weather",'.replace(" ", "\u00a0"))
    text(472, 80, ' "arguments": {"place": "Basel",'.replace(" ", "\u00a0"))
    text(472, 102, '  "units": "'.replace(" ", "\u00a0"))
    for number, (word, allowed) in enumerate((("cel", True), ("kel", False), ("fahren", True), ('"', False))):
        x = 472 + 78 * number
        box(x, 124, 70, 24, "on" if allowed else "off")
        text(x + 8, 141, word, "code" if allowed else "no")
    text(472, 169, "tokens that may come next, and others", "small")
    arrow(264, 296, 106)
    arrow(424, 456, 106)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 192" role="img" '
        'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">\n'
        "<title>toolc compiles tools into a bundle, which masks the tokens of a model</title>\n"
        "<style>text{fill:#222}path{fill:#667;stroke:#667}.box{fill:#f6f8fa;stroke:#99a}.on{fill:#9ed8a4}.off{fill:#dde}\n"
        ".title{font-weight:bold}.small{font-size:11px}.no{text-decoration:line-through;opacity:.6}\n"
        "@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.box{fill:#1c2128;stroke:#667}.on{fill:#2d6a3a}.off{fill:#3a404a}}"
        "</style>\n" + "\n".join(texts) + "\n</svg>\n"
    )


# ---------------------------------------------------------------- the pipeline


def pipeline() -> str:
    """The folders as boxes, each with what it hands on."""
    wide, high, step, right = 250, 44, 68, 470
    paper = Paper(right + 220, 30 + step * len(PIPELINE) + 136, "The pipeline of toolc")

    def box(x: float, y: float, width: float, folder: str, does: str, fill: str) -> None:
        paper.box(x, y, width, high, fill, f' stroke="{LINE}" rx="6"')
        paper.text(x + 12, y + 18, folder, more=' font-weight="bold"')
        paper.text(x + 12, y + 35, does)

    paper.text(76, 28, "a spec")
    tops = [40.0 + step * number for number in range(len(PIPELINE) + 1)]
    for top, (folder, does, gives) in zip(tops, PIPELINE, strict=False):
        paper.path(f"M64 {top - 22:.0f}V{top - 2:.0f}", ARROW)
        box(40, top, wide, folder, does, "#eef")
        paper.text(76, top + high + 15, gives)
    for folder, reads, gives, stage in BESIDE:
        box(right, tops[stage], 200, folder, reads, "#eef")
        paper.path(f"M{right} {tops[stage] + 22:.0f}H{42 + wide}", ARROW)
        paper.text(right - 8, tops[stage] + 16, gives, "end")
    y = tops[-1]
    paper.path(f"M64 {y - 22:.0f}V{y - 2:.0f}", ARROW)
    paper.box(40, y, wide, 26, "#ffe9b8", f' stroke="{LINE}"')
    paper.text(52, y + 17, "a bundle: a file of tables")
    x = 40.0
    for folder, does in READERS:
        paper.path(f"M64 {y + 28:.0f}V{y + 40:.0f}H{x + 24:.0f}V{y + 56:.0f}", ARROW)
        box(x, y + 58, 205, folder, does, GREEN)
        x += 217
    return paper.done()


ARROW = ' marker-end="url(#head)"'


# ---------------------------------------------------------------- the automaton


def automaton(bundle: Bundle) -> str:
    """Every frame in a box of its own, the outermost first."""
    frames, left_out = frames_of(bundle)
    assert not left_out and not any(frame.left_out for frame in frames)
    machine, paper = Machine(bundle), Paper(0, 0, "The automaton")
    widest, top = 0.0, 14.0
    symbol_of = {entered: int(g) for g, *states, _ in bundle.tables.push.tolist() for entered in states if entered != 0}
    for number, frame in enumerate(frames):
        columns = _columns(bundle, frame)
        low = min(y for _, y in frame.place.values())
        high = max(y for _, y in frame.place.values())
        arches = 34 if any(_place(frame, edge)[0] for edge in frame.edges) else 0
        place = {s: (columns[x // COLUMN], top + 62 + arches + y - low) for s, (x, y) in frame.place.items()}
        name = f"frame of stack symbol {symbol_of[frame.roots[0]]}" if number else "bottom frame: the stack is empty"
        tall = high - low + 112 + arches
        width = max(columns.values()) + 110
        widest = max(widest, width)
        paper.box(10, top, width, tall, "#fafafc", ' stroke="#bbc" rx="8"')
        paper.text(22, top + 20, name, more=' font-weight="bold"')
        for edge in frame.edges:
            _edge(paper, bundle, frame, edge, place)
        for state, (x, y) in place.items():
            fill = "#ddd" if state == FINISHED else GREEN if state in frame.roots else "#eef"
            paper.circle(x, y, 15, fill)
            paper.text(x, y + 4, "end" if state == FINISHED else str(state), "middle")
            pops = _pops(machine, state) if state in frame.pops else b""
            if pops:
                paper.path(f"M{x + 10:.0f} {y + 12:.0f}L{x + 26:.0f} {y + 28:.0f}", ARROW)
                paper.text(x + 30, y + 36, f"{shown(pops.decode())} pop")
        top += tall + 14
    return (
        paper.done()
        .replace('viewBox="0 0 0 0"', f'viewBox="0 0 {widest + 20:.0f} {top:.0f}"')
        .replace('<rect width="0" height="0"', f'<rect width="{widest + 20:.0f}" height="{top:.0f}"')
    )


def _label(bundle: Bundle, edge: Edge) -> str:
    if edge.calls is not None:
        return f"{label(bundle, edge, 200).removesuffix(' …')} push {edge.calls}"
    words = label(bundle, edge, 200)
    return words if any(symbol >= END_OF_TURN for symbol in edge.symbols) else shown(words)


def _columns(bundle: Bundle, frame: Frame) -> dict[int, float]:
    """Layer → x: as far from the layer before as the longest label between the two needs."""
    need: dict[int, float] = defaultdict(lambda: 90.0)
    for edge in frame.edges:
        backwards, column = _place(frame, edge)
        if not backwards:
            need[column] = max(need[column], LETTER * len(_label(bundle, edge)) + 62)
    columns, x = {}, 50.0
    for column in sorted({x // COLUMN for x, _ in frame.place.values()}):
        columns[column] = x
        x += need[column + 1]
    return columns


def _place(frame: Frame, edge: Edge) -> tuple[bool, int]:
    """Whether an edge leads backwards, or skips a layer; and the layer of its target."""
    source, target = frame.place[edge.source][0] // COLUMN, frame.place[edge.target][0] // COLUMN
    return target != source + 1, target


def _edge(paper: Paper, bundle: Bundle, frame: Frame, edge: Edge, place: dict[int, tuple[float, float]]) -> None:
    (x, y), (u, v) = place[edge.source], place[edge.target]
    dashes = ' stroke-dasharray="5 4"' if edge.calls is not None else ""
    words = _label(bundle, edge)
    siblings = [one for one in frame.edges if (one.source, one.target) == (edge.source, edge.target)]
    bend = (siblings.index(edge) - (len(siblings) - 1) / 2) * 30
    if _place(frame, edge)[0]:
        bend = min(y, v) - 1.2 * ROW
        paper.path(f"M{x:.0f} {y - 15:.0f}C{x:.0f} {bend:.0f} {u:.0f} {bend:.0f} {u:.0f} {v - 16:.0f}", ARROW + dashes)
        paper.text((x + u) / 2, (min(y, v) + bend) / 2 - 6, words, "middle")
        return
    middle = (y + v) / 2 + bend
    curve = f"M{x + 15:.0f} {y:.0f}C{x + 45:.0f} {middle:.0f} {u - 45:.0f} {middle:.0f} {u - 16:.0f} {v:.0f}"
    paper.path(curve, ARROW + dashes)
    paper.text((x + u) / 2, (y + v) / 2 + bend * 0.75 + (13 if bend > 0 else -5), words, "middle")


def _pops(machine: Machine, state: int) -> bytes:
    """The bytes by which a state leaves its frame."""
    cell, of_byte = machine.view["state_cell"][state], machine.view["symbol_class"]
    return bytes(byte for byte in range(END_OF_TURN) if machine.entry(cell, of_byte[byte]) & KIND_MASK == POP)


# ---------------------------------------------------------------- the trie


def trie(vocab: Vocab) -> str:
    """The nodes from left to right, children below each other, in two halves."""
    depth, skip = vocab.node_depth.tolist(), vocab.node_skip.tolist()
    nodes = range(len(depth))
    line = [0] * len(depth)
    leaves = 0
    for node in nodes:  # in preorder; a first child stands on the line of its parent
        line[node] = leaves
        leaves += skip[node] == node + 1
    half = next(line[node] for node in nodes if depth[node] == 1 and line[node] * 2 >= leaves)
    wide, high, x0 = 46, 21, 40
    second = x0 + 60 + wide * max(depth[node] for node in nodes if line[node] < half)
    rows = max(half, leaves - half)
    width = second + 30 + wide * max(depth[node] for node in nodes if line[node] >= half)
    paper = Paper(width, 20 + rows * high + 12, "The trie of the vocabulary")

    def place(node: int) -> tuple[float, float]:
        left = x0 if line[node] < half else second
        return left + (depth[node] - 1) * wide, 24 + (line[node] - (0 if line[node] < half else half)) * high

    for left, first, last in ((x0, 0, half), (second, half, leaves)):
        paper.path(f"M{left - 24} 20V{20 + (last - first - 1) * high + 4}")
    parents: list[int] = []
    for node in nodes:
        del parents[depth[node] - 1 :]
        x, y = place(node)
        if parents:
            u, v = place(parents[-1])
            paper.path(
                f"M{u + 9:.0f} {v:.0f}H{x - 9:.0f}"
                if u + wide == x and v == y
                else f"M{u:.0f} {v + 9:.0f}V{y:.0f}H{x - 9:.0f}"
            )
        else:
            paper.path(f"M{x - 24:.0f} {y:.0f}H{x - 9:.0f}")
        parents.append(node)
    for node in nodes:
        x, y = place(node)
        tokens = vocab.node_tokens[vocab.node_token_offset[node] : vocab.node_token_offset[node + 1]].tolist()
        paper.circle(x, y, 9, BLUE if tokens else "white")
        paper.text(x, y + 4, shown(chr(vocab.node_byte[node])), "middle")
        if tokens:
            paper.text(x + 10, y - 3, ",".join(map(str, tokens)), more=' font-size="8.5"')
    return paper.done()


# ---------------------------------------------------------------- the masks


def masks(bundle: Bundle, tokens: list[int]) -> str:
    """Every step of some tokens, the end of turn last: the text so far, the state, and the mask by its rows."""
    vocab = bundle.vocab
    steps = [*tokens, vocab.end_of_turn[0]]
    names = [shown(vocab.token(t).decode()) if vocab.token(t) else "end" for t in range(vocab.size)]
    texts = [""]
    for token in tokens:
        texts.append(texts[-1] + vocab.token(token).decode())
    size, left, top = 15, 40 + LETTER * max(map(len, texts)) + 44, 12 + 7.3 * max(map(len, names))
    paper = Paper(left + size * vocab.size + 14, top + 22 * len(steps) + 34, "The masks of one call")
    for token, name in enumerate(names):
        x = left + size * token + 11
        paper.text(x, top - 4, name, more=f' transform="rotate(-90 {x:.0f} {top - 4:.0f})"')
    paper.text(10, top - 4, "text so far", more=' font-weight="bold"')
    paper.text(left - 10, top - 4, "state", "end", ' font-weight="bold"')
    sequence = Sequence.start(bundle)
    for number, token in enumerate(steps):
        y = top + 22 * number
        paper.text(10, y + 15, shown(texts[number]))
        paper.text(left - 10, y + 15, str(sequence.state), "end")
        own, *below = (sequence.row(row) for row, _, _ in sequence.rows())
        for t in range(vocab.size):
            fill = BLUE if t in own else ORANGE if any(t in some for some in below) else "#f3f3f3"
            paper.box(left + size * t, y + 2, size - 2, 18, fill)
        paper.circle(left + size * token + 6.5, y + 11, 5, "none", ' stroke-width="2"')
        assert sequence.advance(token)
    y = top + 22 * len(steps) + 22
    for x, fill, words in ((10, BLUE, "from the row of the state"), (230, ORANGE, "from the chain")):
        paper.box(x, y - 11, 13, 13, fill)
        paper.text(x + 20, y, words)
    paper.circle(386, y - 4, 5, "none", ' stroke-width="2"')
    paper.text(400, y, "the token that is chosen")
    return paper.done()


def pictures(names: dict[str, Any]) -> dict[str, str]:
    """File name → what it holds.

    Args:
        names: what the code of docs/tutorial.md defines.
    """
    bundle, texts = names["bundle"], names["texts"]
    return {
        "front.svg": front(),
        "pipeline.svg": pipeline(),
        "automaton.svg": automaton(bundle),
        "trie.svg": trie(bundle.vocab),
        "masks.svg": masks(bundle, [texts.index(text) for text in names["call"]]),
    }
