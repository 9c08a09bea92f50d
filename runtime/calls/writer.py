"""Writing: a call → a text that a model could write next, found in the bundle's own tables.

What stands around a name and its arguments is in no table of its own: it is whatever the tables allow there. So the
text is searched for, symbol by symbol, and a `Reader` says of every step what it makes of it: a step after which a name
or an argument is another than was asked for is taken back.

    write_call(Reader(bundle, "required/one"), "current_weather", {"place": "Basel"}).pieces
    -> ('<tool_call>', b'\\n{"name": "current_weather", "arguments": {"place": "Basel"}}\\n', '</tool_call>')

Leaves out   tokens: see the tokenizer.
Invariants   the reader, having read the text, has read exactly this call more than before, and no free text; where the
             text may end it does. Where blanks are free they are those of `json.dumps`, and a new line that belongs to
             the protocol is written. Arguments stand in the order given. What is not found in STEPS a byte of the call
             is taken for not writable; one that is writable takes up to 6. Time and memory grow as the calls do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import ArgumentError, DecodeError
from ..expected import expect, named_kind
from ..format.tables import tools_of
from .arguments import INPUT, Part, decode
from .blanks import BLANKS
from .elements import element_texts
from .events import Unfinished
from .request_line import request_line

if TYPE_CHECKING:
    from .events import Event
    from .reader import Reader
    from .reader_records import Saved

STEPS = 32
AROUND = 128
"""Bytes around a call that are allowed for."""
DEEPEST = 100
"""Containers in one another, in the arguments of a call: each takes some of Python's stack."""


class Written(NamedTuple):
    """A text.

    Attributes:
        pieces: delimiters that are tokens, by their names, and the bytes between them.
        reader: has read it.
    """

    pieces: tuple[str | bytes, ...]
    reader: Reader

    @property
    def text(self) -> bytes:
        """The text, delimiters under their names."""
        return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in self.pieces)


def write_calls(reader: Reader, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> Written | None:
    """What follows what a reader has read, so that it reads these calls next, and no other; None if the bundle allows
    no such text, or arguments are more than DEEPEST containers deep.

    Where the reader is inside of a call, that is the first one, and this begins with the rest of it.

    Args:
        reader: as it stands; it is left so.
        calls: names of tools, and arguments as JSON values.

    Raises:
        DecodeError: the bundle's protocol writes arguments in a way that is not known here, or the reader was fed half
            a delimiter.
    """
    from .reader import Reader  # which is of no use to importers of this module otherwise

    hints = {"Bundle": "write Reader(bundle)", "Compiled": "write Reader(compiled.bundle)"}
    expect(reader, Reader, "write_calls(reader)", "a Reader", hints)
    expect(calls, Iterable, "write_calls(calls)", "a list of (name, arguments)")
    calls = list(calls)
    for one in calls:
        if not (isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Mapping)):
            place, wanted = "write_calls(calls)", 'pairs of a name and arguments, as ("look", {"at": 1})'
            raise ArgumentError(place=place, found=named_kind(one), expected=wanted)
    if any(_depth(arguments) > DEEPEST for _, arguments in calls):
        return None
    start = reader.fork()
    start.read_held()
    start.be_exact()
    how = reader.bundle.meta.get("arguments") or {"encoding": "json"}
    tools = {str(tool["name"]): tool for tool in tools_of(reader.bundle.meta)}
    ways = [_spellings(how, tools.get(name, {}), name, arguments) for name, arguments in calls]
    if not all(ways):
        return None
    for n in range(max(map(len, ways), default=0)):
        found = _Search(start, [way[min(n, len(way) - 1)] for way in ways]).run()
        if found is not None:
            return found
    return None


def write_call(reader: Reader, name: str, arguments: Mapping[str, Any]) -> Written | None:
    """As `write_calls`, of one."""
    return write_calls(reader, [(name, arguments)])


class _Wanted:
    """One way to spell a call: all of its arguments as one text, or parts that have a text each; perhaps no name."""

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        text: str | None,
        parts: Iterable[str] = (),
        named: bool = True,
        reads: Callable[[Part], Any] | None = None,
    ) -> None:
        self.name, self.value = name, _told(arguments)
        self.written = name.encode() if named else b""
        self.text = None if text is None else text.encode()
        self.reads, self.values = reads, [_told(value) for value in arguments.values()]
        self.parts = [(key.encode(), part.encode()) for key, part in zip(arguments, parts, strict=False)]

    def rest(self, at: Unfinished | None) -> tuple[bytes, int, bool]:
        """The text that is being read, or would be next; how much of it was read; and whether it has begun."""
        name = self.written
        if at is None:
            return name or self.text or b"", 0, False
        if not _length(at.arguments) and at.part is None and (read := _length(at.name)) < len(name):
            return name, read, read > 0
        if self.text is not None:
            return self.text, (read := _length(at.arguments)), read > 0
        done = at.parts
        if done < len(self.parts) and at.key is not None and at.part is None and not self.parts[done][1]:
            return (self.parts[done + 1][0] if done + 1 < len(self.parts) else b""), 0, False  # no text to come
        if done == len(self.parts):
            return b"", 0, False
        key, value = self.parts[done]
        return (key if at.key is None else value), _length(at.part or (0, 0)), at.part is not None

    def agrees(self, at: Unfinished, reader: Reader, before: Unfinished | None = None) -> bool:
        """Whether what is settled of a call is the beginning of this one.

        Args:
            at: what is settled, as the reader tells it.
            reader: has the bytes.
            before: what was settled a symbol earlier, and agreed: only what is new is compared.
        """
        if before is None or before.number != at.number:
            before = Unfinished(at.number, (at.name[0], at.name[0]), (at.arguments[0], at.arguments[0]), 0, None, None)
        if at.name != before.name and not self.written.startswith(reader.slice(*at.name)):
            return False
        if self.text is not None:
            begin, end = at.arguments
            read = before.arguments[1] if before.arguments[0] == begin else begin
            return end - begin <= len(self.text) and self.text.startswith(reader.slice(read, end), read - begin)
        done = at.parts
        if done < before.parts or done > len(self.parts):
            return False
        if done > before.parts:
            new = reader.parts(before.parts)
            if [(part.key.encode(), part.text.encode()) for part in new] != self.parts[before.parts : done]:
                return False
            if self.reads is not None and _told(self.reads(new[-1])) != self.values[done - 1]:
                return False  # its type, if it is told, is another
        if at.key is None and at.part is None:
            return True
        if done == len(self.parts):
            return False
        key, value = self.parts[done]
        begin, end = at.part or (0, 0)
        same = before.part is not None and before.part[0] == begin and (before.parts, before.key) == (done, at.key)
        read = before.part[1] if same and before.part is not None else begin
        if at.key is not None and (at.key != before.key or done != before.parts) and at.key.encode() != key:
            return False
        wanted = key if at.key is None else value
        return end - begin <= len(wanted) and wanted.startswith(reader.slice(read, end), read - begin)


def _length(span: tuple[int, int]) -> int:
    return span[1] - span[0]


class _Search:
    """Depth first, the likeliest symbol first; nothing is tried twice. One reader goes forth and back."""

    def __init__(self, start: Reader, wanted: list[_Wanted]) -> None:
        self.reader, self.wanted = start.fork(), wanted
        self.before = len(start.calls)
        self.said = start.text + start.unsettled.decode(errors="replace")
        self.seen: set[tuple[Any, ...]] = set()
        self.least: dict[tuple[Any, ...], int] = {}

    def run(self) -> Written | None:
        reader = self.reader
        at = reader.unfinished
        if at is not None and not self.wanted[0].agrees(at, reader):
            return None
        stack = [(-1, reader.save(), at, self._order(at))]
        limit = STEPS * sum(AROUND + len(call.name) + len(call.value) for call in self.wanted)
        for _ in range(limit):
            _, here, at, symbols = stack[-1]
            symbol = next(symbols, None)
            if symbol is None:
                stack.pop()
                if not stack:
                    return None
                reader.go_back(stack[-1][1])
                continue
            if not self._step(symbol, at):
                reader.go_back(here)
                continue
            at = reader.unfinished
            stack.append((symbol, reader.save(), at, self._order(at)))
            if reader.is_whole and self._is_done(stack[-1][1]):
                return Written(_pieces(reader, [symbol for symbol, _, _, _ in stack[1:]]), reader)
        return None

    def _is_done(self, here: Saved) -> bool:
        """Whether the calls are whole where the text ends; the reader stays."""
        reader = self.reader
        try:
            reader.finish()
            made = reader.calls[self.before :]
            return (
                [call.name for call in made] == [one.name for one in self.wanted]
                and all(_told(call.arguments) == one.value for call, one in zip(made, self.wanted, strict=True))
                and self.said.startswith(reader.text)
            )
        except DecodeError:
            return False
        finally:
            reader.go_back(here)

    def _step(self, symbol: int, before: Unfinished | None) -> bool:
        """Read a symbol; False where that leads away, or was tried."""
        reader = self.reader
        try:
            events = reader.read(symbol)
        except DecodeError:
            return False
        at = reader.unfinished
        if not all(map(self._fits, events)):
            return False
        if at is not None and not self.wanted[at.number - self.before].agrees(at, reader, before):
            return False
        if any(event.kind == "text" for event in events) and not self.said.startswith(reader.text):
            return False
        place = (reader.configuration, _told_apart(at), len(reader.calls))
        if self._is_too_long(at, place):
            return False
        found = (*place, *self._perhaps(at))
        if found in self.seen:
            return False
        self.seen.add(found)
        return True

    def _is_too_long(self, at: Unfinished | None, place: tuple[Any, ...]) -> bool:
        """Whether there is more text without a region than what is wanted and what may be a delimiter: of that there
        is as much wherever the reader stands alike, so no more than the least text."""
        text = self.reader.unsettled_bytes
        least = self.least[place] = min(text, self.least.get(place, text))
        whole, read, _ = self._rest(at)
        return text > least + len(whole) - read

    def _perhaps(self, at: Unfinished | None) -> tuple[int, ...]:
        """What matters of a text without a region: its length, and how much of its head and which tails are wanted."""
        text, (whole, read, _) = self.reader.unsettled, self._rest(at)
        most = min(len(text), len(whole) - read)
        head = next((n for n in range(most) if text[n] != whole[read + n]), most)
        return len(text), head, *(n for n in range(1, len(text) + 1) if whole.startswith(text[-n:], read))

    def _rest(self, at: Unfinished | None) -> tuple[bytes, int, bool]:
        """As `_Wanted.rest`, of the call that is open or would be next."""
        number = (len(self.reader.calls) if at is None else at.number) - self.before
        return self.wanted[number].rest(at) if number < len(self.wanted) else (b"", 0, False)

    def _fits(self, event: Event) -> bool:
        number = event.number - self.before
        if event.kind == "reasoning" or number >= len(self.wanted):
            return False
        if event.kind == "name":
            return event.text == self.wanted[number].name
        return event.call is None or _told(event.call.arguments) == self.wanted[number].value

    def _order(self, at: Unfinished | None) -> Iterator[int]:
        """The symbols that may come next, the likeliest first; the rest is looked at once the first led nowhere."""
        reader = self.reader
        whole, read, begun = self._rest(at)
        unsettled, last = reader.unsettled_bytes, reader.last
        read += unsettled
        first: list[int] = []
        if not begun and not unsettled and last in (b",", b":") and reader.is_lowest(0x20):
            first.append(0x20)
        elif last in (b">", b"}") and reader.is_lowest(0x0A) and not reader.is_lowest(0x20):
            first.append(0x0A)
        if read < len(whole):
            names = reader.delimiters.get(whole[read], ())
            token = next((one for one, name in names if whole.startswith(name, read) and reader.may_read(one)), None)
            if token is not None:
                first.append(token)
            elif reader.may_read(whole[read]) and whole[read] not in first:
                first.append(whole[read])
            yield from first
        rank = {symbol: _rank(symbol) if at else _rank_outside(symbol) for symbol in reader.symbols().values()}
        order = sorted(rank, key=lambda symbol: (rank[symbol], symbol))
        if read < len(whole):
            yield from (symbol for symbol in order if symbol not in first)
            return
        found: dict[int, int] = {}  # where no byte is wanted, one of those that lead to the same place is enough
        for symbol in [*first, *(symbol for symbol in order if symbol not in first)]:
            found.setdefault(reader.step_of(symbol), symbol)
        yield from found.values()


def _told_apart(at: Unfinished | None) -> tuple[Any, ...] | None:
    """What tells apart what is settled of a call that agrees: how much of each text."""
    if at is None:
        return None
    return at.number, _length(at.name), _length(at.arguments), at.parts, at.key, at.part and _length(at.part)


def _pieces(reader: Reader, symbols: Iterable[int]) -> tuple[str | bytes, ...]:
    out: list[str | bytes] = []
    for symbol in symbols:
        if symbol > 0xFF:
            out.append(reader.delimiter(symbol))
        elif out and isinstance(out[-1], bytes):
            out[-1] += bytes((symbol,))
        else:
            out.append(bytes((symbol,)))
    return tuple(out)


def _rank(symbol: int) -> int:
    """What closes; other text; what may begin a delimiter; blanks."""
    if symbol > 0xFF or symbol == 0x3C:
        return 2
    return 0 if symbol in b"]})" else 3 if symbol in BLANKS else 1


def _rank_outside(symbol: int) -> int:
    """The same where no call is open: what may begin JSON or a delimiter comes before other text."""
    if symbol > 0xFF or symbol == 0x3C:
        return 1
    return 0 if symbol in b"[{" else _rank(symbol) + 1


def _depth(value: Any) -> int:
    """How many containers of JSON stand in one another, up to one more than DEEPEST."""
    depth, wave = 0, [value]
    while depth <= DEEPEST and (wave := [one for one in wave if isinstance(one, (Mapping, list))]):
        depth += 1
        wave = [part for one in wave for part in (one.values() if isinstance(one, Mapping) else one)]
    return depth


def _told(value: Any) -> str:
    """A text that tells values of JSON apart, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True)


# ---------------------------------------------------------------- spellings


def _spellings(
    how: Mapping[str, Any], tool: Mapping[str, Any], name: str, arguments: Mapping[str, Any]
) -> list[_Wanted]:
    """Ways to spell a call, the usual one first; as `arguments.decode` reads them."""
    encoding = how["encoding"]
    forms = _indented_forms(how["indent"], encoding) if "indent" in how else _FORMS
    if re.search("[\ud800-\udfff]", name + _json(arguments)):
        return []  # half a character is no text
    if tool.get("input") == "text":
        text = arguments.get(INPUT)
        return [_Wanted(name, arguments, text)] if list(arguments) == [INPUT] and isinstance(text, str) else []
    if encoding == "parameters":
        usual: Mapping[str, Any] = {}
        spelled = (
            [_raw(value, form, constants) for value in arguments.values()]
            for constants in (usual, how.get("constants", usual))
            for form in forms
        )

        def read(part: Part) -> Any:
            return decode(how, tool, "", [part])[part.key]

        return [_Wanted(name, arguments, None, one, reads=read) for one in _distinct(map(tuple, spelled))]
    if encoding == "elements":
        leaves = [lambda value, form=form: _raw(value, form, {}) for form in forms]
        nodes = tool.get("elements", [])
        trees = [
            (nodes, bool(how.get("open"))),
            (nodes, True),
            ([], False),
        ]  # what may be anything in parts; all as JSON
        by_parts = [element_texts(how["parts"], *tree, arguments, leaf) for tree in trees for leaf in leaves]
        return [_Wanted(name, arguments, None, one) for one in _distinct(by_parts)]
    texts = {
        "json": lambda: [_json(arguments, form) for form in forms],
        "positional": lambda: [
            (", ", ",")[form.compact].join(_json(value, form) for value in arguments.values()) for form in forms
        ],
        "keywords": lambda: [
            (", ", ",")[compact].join(
                f"{key}={_short(_python(value, compact, leaf))}" for key, value in arguments.items()
            )
            for leaf in (repr, _as_it_is, _plainly)
            for compact in (False, True)
        ],
        "bare": lambda: [
            _bare(dict(pairs), str(how["quote"][0]))
            for pairs in (arguments.items(), sorted(arguments.items(), key=lambda pair: pair[0].lower()))
        ],
    }
    if encoding == "request":
        if "request" not in tool:
            return []
        lines = [request_line(tool["request"], arguments, partial(_json, form=form)) for form in forms]
        return [_Wanted(name, arguments, line, named=False) for line in _distinct(lines)]
    if encoding not in texts:
        raise DecodeError(
            "calls of this protocol cannot be written",
            found=f"arguments as {encoding!r}",
            expected=", ".join([*texts, "parameters", "elements", "request"]),
        )
    return [_Wanted(name, arguments, text) for text in _distinct(texts[encoding]())]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


class _Form(NamedTuple):
    """How JSON is spelled.

    Attributes:
        compact: without blanks.
        plain: numbers without an exponent, as beside bounds and ``multipleOf``.
        indent: blanks for each bracket around a line; 0: all on one line.
        depth: brackets around the text, which lines inside are indented by as well.
    """

    compact: bool
    plain: bool
    indent: int = 0
    depth: int = 0


_USUAL = _Form(False, False)
_FORMS = (_USUAL, _Form(True, False), _Form(False, True), _Form(True, True))


def _json(value: Any, form: _Form = _USUAL) -> str:
    separators = (",", ":") if form.compact else None
    text = _short(json.dumps(value, ensure_ascii=False, separators=separators, indent=form.indent or None))
    text = text.replace("\n", "\n" + " " * form.indent * form.depth)
    return _EXPONENT.sub(_without_exponent, text) if form.plain else text


def _indented_forms(indent: int, encoding: str) -> list[_Form]:
    """Those with new lines; what stands around arguments that are one object may be one or several brackets."""
    depths = (1, 2, 0, 3) if encoding == "json" else (0,)
    return [_Form(False, plain, indent, depth) for depth in depths for plain in (False, True)]


_EXPONENT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|(?P<number>-?[0-9]+(?:\.[0-9]+)?[eE][+-]?[0-9]{1,3})(?![0-9])", re.DOTALL)


def _without_exponent(found: re.Match[str]) -> str:
    if found["number"] is None:
        return found[0]
    text = format(Decimal(found["number"]), "f")
    return text if "." in text else text + ".0"  # a float is read as one


def _plainly(value: Any) -> str:
    """A literal of Python; of a float, without an exponent."""
    return _EXPONENT.sub(_without_exponent, repr(value)) if isinstance(value, float) else repr(value)


_LONG = re.compile(
    r"""\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?P<sign>-?)(?P<digits>[1-9][0-9]*?)(?P<zeros>0{200,})(?![0-9])""",
    re.DOTALL,
)


def _short(text: str) -> str:
    """A text of JSON or Python in which integers beyond floats (json_text.py) have an exponent."""
    if len(text) < 200:
        return text
    return _LONG.sub(lambda one: f"{one['sign']}{one['digits']}e{len(one['zeros'])}" if one["zeros"] else one[0], text)


def _raw(value: Any, form: _Form, constants: Mapping[str, Any]) -> str:
    """A parameter in a part of its own."""
    if isinstance(value, str):
        return value
    spelled = next((text for text, meant in constants.items() if meant is value), None)
    return _json(value, form) if spelled is None else spelled


_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|.)")


def _python(value: Any, compact: bool, leaf: Callable[[Any], str]) -> str:
    """A literal of Python."""
    comma, colon = (",", ":") if compact else (", ", ": ")
    if isinstance(value, list):
        return "[" + comma.join(_python(one, compact, leaf) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + comma.join(f"{leaf(key)}{colon}{_python(one, compact, leaf)}" for key, one in value.items()) + "}"
    return leaf(value)


def _as_it_is(value: Any) -> str:
    """A literal of Python in which all beyond ASCII is as it is, unprintable or not."""

    def unescaped(found: re.Match[str]) -> str:
        code = int(found[found.lastindex], 16) if found.lastindex else 0
        return chr(code) if code > 0x7F else found[0]

    return _ESCAPE.sub(unescaped, repr(value))


def _bare(value: Any, quote: str) -> str:
    """A value with bare keys and strings as they are."""
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, list):
        return "[" + ",".join(_bare(one, quote) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_bare(one, quote)}" for key, one in value.items()) + "}"
    return _json(value)
