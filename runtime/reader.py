"""Reading back: tokens or text → what was said, thought and called, while it streams.

Every local state carries a mark that says which region of the text its last symbol lay in, and of which tool's call
(docs/architecture.md, "Marks"). A reader steps through the bundle's own tables and cuts the text where the marks
change: there is no second parser for any protocol.

    reader = Reader(bundle)
    for token in tokens:
        for event in reader.feed(token): ...
    for event in reader.finish(): ...

Leaves out   values of arguments: see arguments.py. Masks: see matcher.py. Where marks come from: the compiler.
Invariants   equals `Matcher` in what is refused. Events do not depend on how the text was cut into tokens or pieces, up
             to how text and arguments are split over events. Needs numpy and msgpack only.
Unsettled    Where a text may still become a delimiter, nothing is said until that is settled.
"""

from __future__ import annotations

import codecs
import itertools
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from .arguments import Part, decode
from .calls import Call, Event, Unfinished
from .errors import DecodeError
from .tables import (
    ARGUMENTS,
    AROUND,
    DEAD,
    END_OF_TURN,
    FINISHED,
    KEY,
    NAME,
    POP,
    PUSH,
    REASONING,
    STRING,
    TEXT,
    UNSETTLED,
    VALUE,
    tools_of,
)

if TYPE_CHECKING:
    from .bundle import Bundle

_BRACKETS = (b"{", b"[", b"(")


@dataclass
class _Open:
    """The call that is being read: its number, where its name begins, its tool (-1: not settled yet), where its name
    ends and its arguments begin (-1: not yet)."""

    number: int
    begin: int
    tool: int = -1
    named: int = -1
    arguments: int = -1
    parts: list[Part] = field(default_factory=list)
    key: str | None = None  # of a parameter whose value has not come

    def take_empty(self) -> None:
        """A value of no text at all has come."""
        self.parts += self.empty
        self.key = None

    @property
    def empty(self) -> list[Part]:
        """The part whose value would be no text at all, where one is due."""
        return [] if self.key is None else [Part(self.key, "", True)]


class Reader:
    """Reads one text of a bundle.

    Args:
        bundle: what it was written under.
        entry: where it begins.

    Attributes:
        calls: those that are whole.
        text, reasoning: all that was said, and thought, so far.
    """

    def __init__(self, bundle: Bundle, entry: str = "start") -> None:
        t = bundle.tables
        entries = bundle.entry
        if entry not in entries:
            raise DecodeError("no such entry", found=repr(entry), expected="one of " + ", ".join(sorted(entries)))
        self.bundle = bundle
        self.calls: list[Call] = []
        self.text = self.reasoning = ""
        self._state, self._counter = entries[entry], 0
        self._stack: list[tuple[int, int, int]] = []  # stack symbol, saved counter, kind around it
        self._around = AROUND
        self._led = -1  # depth of a frame that begins with what leads to its arguments
        self._view = {name: array.data for name, array in t.arrays().items() if array.size}
        self._breaks = t.breaks
        self._modes, self._soft_depth = t.modes, bundle.meta["soft_depth"]
        self._symbol_of = dict(zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True))
        special = {number: name for name, number in bundle.vocab.meta["special"].items()}
        self._shown = {i: special.get(i, "").encode() for i, s in self._symbol_of.items() if s != END_OF_TURN}
        self._shown_symbol = {self._symbol_of[token]: name for token, name in self._shown.items() if name}
        self._symbols = _one_of_each(self._view["symbol_class"], [*range(END_OF_TURN), *self._shown_symbol])
        self._names = [str(tool["name"]) for tool in tools_of(bundle.meta)]
        self._ends_of: dict[int, list[int]] = dict(bundle.meta.get("ends", ()))
        self._how = bundle.meta.get("arguments") or {"encoding": "json"}
        offset, members = t.tool_offset.tolist(), t.tool_members.tolist()
        self._only = [members[a] if b - a == 1 else -1 for a, b in itertools.pairwise(offset)]
        self._marks: list[tuple[int, int, int, int]] = [tuple(row) for row in t.mark.tolist()]
        self._data = bytearray()
        self._begins: deque[int] = deque(maxlen=256)  # offsets at which the last symbols begin
        self._ends: list[int] = []  # offset after every token
        self._held = b""
        self._splits: re.Pattern[bytes] | None = None
        self._kind = UNSETTLED  # of the open region
        self._perhaps = -1  # what is not settled may be text or a value of this kind
        self._begin = 0  # of the open region
        self._settled = 0  # offset up to which everything has a region
        self._sent = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._open: _Open | None = None
        self._count = 0
        self._events: list[Event] = []

    # -- feeding -----------------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """The end of turn was read."""
        return self._state == FINISHED

    @property
    def data(self) -> bytes:
        """The whole text so far, special tokens by their names."""
        return bytes(self._data)

    def feed(self, token: int) -> list[Event]:
        """Read one token.

        Raises:
            DecodeError: it is not allowed here; the reader is of no more use.
        """
        vocab = self.bundle.vocab
        if not 0 <= token < vocab.size:
            raise DecodeError("no such token", found=str(token), expected=f"0 to {vocab.size - 1}")
        if self._held:
            self.read_held()  # a delimiter that is a token is none in pieces
        if self._state == FINISHED:
            if self._symbol_of.get(token) != END_OF_TURN:
                raise self._refusal(vocab.shown(token))
            return self._flush()
        mode = self._mode()
        symbol = self._symbol_of.get(token)
        if symbol is not None:
            self._read(symbol, self._shown.get(token, b""), mode)
        else:
            text = vocab.token(token)
            if not text:
                raise self._refusal(vocab.shown(token))
            for byte in text:
                self._read(byte, bytes((byte,)), mode)
        self._ends.append(len(self._data))
        return self._flush()

    def feed_text(self, data: bytes | str) -> list[Event]:
        """Read a piece of text; a delimiter that is a token is read as that token, wherever it stands.

        Raises:
            DecodeError: it is not a text of the bundle.
        """
        if isinstance(data, str):
            try:
                data = data.encode()
            except UnicodeEncodeError as error:
                raise DecodeError("half a character is no text", found=repr(data[error.start])) from None
        data = self._held + data
        tokens = {name: token for token, name in sorted(self._shown.items(), reverse=True) if name}
        self._held = b""
        if tokens:
            whole = max((data.rfind(name) + len(name) for name in tokens if name in data), default=0)
            most = min(max(map(len, tokens)) - 1, len(data) - whole)
            for keep in range(most, 0, -1):  # perhaps half a delimiter
                if any(name.startswith(data[-keep:]) for name in tokens):
                    data, self._held = data[:-keep], data[-keep:]
                    break
        self._feed_whole(data, tokens)
        return self._flush()

    def _feed_whole(self, data: bytes, tokens: dict[bytes, int]) -> None:
        if self._splits is None:
            longest_first = sorted(tokens, key=len, reverse=True)
            self._splits = re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + b")" if tokens else b"(?!)")
        for piece in self._splits.split(data):
            if piece in tokens:
                self._read(self._symbol_of[tokens[piece]], piece, self._mode())
            else:
                for byte in piece:
                    self._read(byte, bytes((byte,)), self._mode())

    def read_held(self) -> None:
        """Read what `feed_text` holds back, half a delimiter, as the text that it is so far."""
        held, self._held = self._held, b""
        self._feed_whole(held, {name: token for token, name in self._shown.items() if name})

    def finish(self) -> list[Event]:
        """Say that nothing follows. Of what was not settled, text before it takes it; a call that may end here does."""
        self.read_held()
        self._settle_rest()
        if self.is_whole:
            self._end_turn(self._state)
        return self._flush()

    @property
    def is_whole(self) -> bool:
        """The text may end here, or has ended."""
        base = self._view["cell_delta"][self._cell(self._state, self._counter)]
        place = base + self._view["symbol_class"][END_OF_TURN]
        whole = self._view["delta"][place, 0] == base and self._view["delta"][place, 1] != 0
        return self._state == FINISHED or (self._state > FINISHED and bool(whole))

    # -- looking ahead -----------------------------------------------------------------------------------------------

    def fork(self) -> Reader:
        """An independent copy that has read the same; ``copy`` and ``deepcopy`` make one, too."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.calls, twin._stack, twin._ends = self.calls.copy(), self._stack.copy(), self._ends.copy()
        twin._data, twin._begins, twin._events = self._data.copy(), self._begins.copy(), self._events.copy()
        twin._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        twin._utf8.setstate(self._utf8.getstate())
        if self._open is not None:
            twin._open = replace(self._open, parts=self._open.parts.copy())
        return twin

    def __copy__(self) -> Reader:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, object]) -> Reader:
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Reader cannot be pickled: send its bundle and what it has read")

    def symbols(self) -> dict[int, int]:
        """What may come next: class → its lowest symbol; without the end of turn."""
        view = self._view
        if self._state <= FINISHED:
            return {}
        base = view["cell_delta"][self._cell(self._state, self._counter)]
        return {
            number: symbol
            for number, symbol in self._symbols
            if view["delta"][base + number, 0] == base and view["delta"][base + number, 1] != 0
        }

    def class_of(self, symbol: int) -> int:
        """Symbols of one class lead to the same state."""
        return int(self._view["symbol_class"][symbol])

    def step_of(self, symbol: int) -> int:
        """Of two symbols that may come next, equal ones lead to the same place, too."""
        base = self._view["cell_delta"][self._cell(self._state, self._counter)]
        return int(self._view["delta"][base + self.class_of(symbol), 1])

    def delimiter(self, symbol: int) -> str:
        """The name of a delimiter that is a token."""
        return self._shown_symbol[symbol].decode()

    def read(self, symbol: int) -> list[Event]:
        """Read a byte, or a delimiter by its symbol.

        Raises:
            DecodeError: see feed.
        """
        shown = bytes((symbol,)) if symbol < END_OF_TURN else self._shown_symbol[symbol]
        self._read(symbol, shown, self._mode())
        return self._flush()

    @property
    def configuration(self) -> tuple[Any, ...]:
        """Where the reader stands: readers with equal ones go on alike, but for what is unsettled or unfinished."""
        return self._state, self._counter, tuple(self._stack), self._around, self._kind

    @property
    def unsettled(self) -> bytes:
        """What has no region yet."""
        return bytes(self._data[self._settled :])

    @property
    def unfinished(self) -> Unfinished | None:
        """The call that is being read."""
        held, data = self._open, self._data
        if held is None:
            return None
        inside = self._kind in (KEY, VALUE, STRING)
        named = self._settled if self._kind == NAME else max(held.named, held.begin)
        again = self._kind == KEY  # the value of the key before had no text
        return Unfinished(
            held.number,
            bytes(data[held.begin : named]),
            bytes(data[held.arguments : self._settled]) if held.arguments >= 0 else b"",
            (*held.parts, *(held.empty if again else ())),
            None if again else held.key,
            bytes(data[self._begin : self._settled]) if inside else None,
        )

    # -- the automaton -----------------------------------------------------------------------------------------------

    def _mode(self) -> int:
        return self._modes - 1 if len(self._stack) >= self._soft_depth else 0

    def _cell(self, q: int, c: int) -> int:
        cell = self._view["state_cell"][q]
        for b in range(self._breaks):
            at, count = self._view["state_break"][q, b, 0], self._view["state_break"][q, b, 1]
            cell += min(max(c - at + count, 0), count)
        return int(cell)

    def _read(self, symbol: int, shown: bytes, mode: int) -> None:
        """One symbol, as in docs/architecture.md, "Reading a symbol", and what its mark says."""
        view, q, c = self._view, self._state, self._counter
        base = view["cell_delta"][self._cell(q, c)]
        place = base + view["symbol_class"][symbol]
        op = view["delta"][place, 1] if view["delta"][place, 0] == base else 0
        kind, n = op & 7, op >> 3
        if q <= FINISHED or op == 0:
            raise self._refusal(repr(shown)[1:] if shown else "the end of turn")
        begin = len(self._data)
        self._data += shown
        self._begins.append(begin)
        if kind < PUSH:
            self._state, self._counter = n, (c, c + 1, 0, 1)[kind]
            if self._led == len(self._stack) and shown in _BRACKETS:
                self._around, self._led = ARGUMENTS, -1
        elif kind == PUSH:
            g, action = view["push"][n, 0], view["push"][n, 3]
            if len(self._stack) >= self.bundle.meta["capacity"]:
                raise self._refusal("more frames than the stack has room for: the bundle is unsound")
            self._stack.append((g, (c, c + 1, 0, 1)[action], self._around))
            self._state, self._counter = view["push"][n, 2 if mode else 1], 0
            region, age, tools, led = self._marks[view["symbol_mark"][g]]
            if led:
                self._led, region = len(self._stack), AROUND
            if self._marks[view["state_mark"][self._state]][0] == AROUND:
                self._mark(region, age, tools, 0)
            else:  # a region inside of the frame begins with it
                self._mark(UNSETTLED, self._perhaps, tools, 0)
            self._around = self._around if region == AROUND else region
        elif kind == POP:
            if not self._stack:
                raise self._refusal(repr(shown)[1:])
            g, saved, around = self._stack.pop()
            base = view["return_offset"][g]
            owner, value = view["return"][base + n, 0], view["return"][base + n, 1]
            if owner != base:
                raise self._refusal(repr(shown)[1:])
            self._around = around
            self._mark(*self._marks[view["symbol_mark"][g]][:3], 0)
            self._state, self._counter = value >> 2, (saved, saved + 1, 0, 1)[value & 3]
        if self._state == DEAD:
            raise self._refusal(repr(shown)[1:])
        if self._state == FINISHED:
            self._settle_rest()
            self._end_turn(q)
        else:
            self._mark(*self._marks[view["state_mark"][self._state]])

    def _refusal(self, found: str) -> DecodeError:
        return DecodeError(
            "the text is none of the bundle",
            place=f"{self.bundle.name}, byte {len(self._data)}, state {self._state}, depth {len(self._stack)}",
            found=found,
            expected="what its masks allow",
        )

    # -- regions -----------------------------------------------------------------------------------------------------

    def _mark(self, kind: int, age: int, tools: int, ended: int) -> None:
        """What a mark says of the text up to here."""
        whole = ended and kind == ARGUMENTS
        kind = self._around if kind == AROUND else kind
        if kind == UNSETTLED:
            self._perhaps = age
        elif age >= 0 or ended or self._perhaps < VALUE or kind == self._perhaps or self._settled >= self._begins[-1]:
            self._settle(kind, age)  # else what comes next decides how much is still of the value that may go on
        held = self._open
        if held is not None and tools >= 0 and held.tool < 0 and self._only[tools] >= 0:
            held.tool = self._only[tools]
            self._events.append(Event("name", self._names[held.tool], held.number))
        if ended and kind != UNSETTLED:
            self._close(self._settled)
        if whole:
            self._end_call(self._settled)

    def _settle(self, kind: int, age: int) -> None:
        """The last symbol is of this kind, and so are the ``age`` - 1 before it; -1: all that were not settled."""
        begin = before = self._settled
        if 0 < age <= len(self._begins):
            begin = max(begin, self._begins[-age])
        if begin > self._settled and self._perhaps >= 0 and kind != self._perhaps != self._kind:
            self._close(self._settled)  # what was not settled is a region of its own
            self._kind, self._begin, self._sent = self._perhaps, self._settled, self._settled
        if kind != self._kind:
            begin = begin if kind != self._perhaps else self._settled
            self._close(begin)
            self._kind, self._begin, self._sent = kind, begin, begin
            if kind < ARGUMENTS:
                held = self._open
                if held is not None and (held.arguments >= 0 or kind != AROUND):
                    self._end_call(begin)
            if kind == NAME or (kind >= ARGUMENTS and self._open is None):  # a protocol may write no names
                self._around = max(self._around, AROUND)  # whatever else the frame might have been
                self._open = _Open(self._count, begin)
                self._count += 1
                self._events.append(Event("call", number=self._open.number))
            if kind >= ARGUMENTS and self._open is not None and self._open.arguments < 0:
                # what stands before a key and was not settled until now leads it in
                self._open.arguments = self._sent = before if kind == KEY else begin
        self._settled, self._perhaps = len(self._data), -1

    def _settle_rest(self) -> None:
        """Nothing follows that could settle the rest."""
        if self._settled < len(self._data):
            self._settle(self._perhaps if self._kind == UNSETTLED and self._perhaps >= 0 else self._kind, -1)
        self._close(len(self._data))

    def _close(self, end: int) -> None:
        """The open region ends here."""
        if self._kind == UNSETTLED:
            return
        self._settled = end
        self._say(True)
        if self._kind in (KEY, VALUE, STRING) and self._open is not None:
            said = self._data[self._begin : end].decode(errors="replace")
            if self._kind != KEY:
                self._open.parts.append(Part(self._open.key or "", said, self._kind == STRING))
                self._open.key = None
            else:
                self._open.take_empty()
                self._open.key = said
        elif self._kind == NAME and self._open is not None:
            self._open.named = end
        self._kind = UNSETTLED

    def _say(self, final: bool = False) -> None:
        """Send what is settled of the open region, where it is one to be sent."""
        if self._kind in (AROUND, NAME, UNSETTLED) or self._sent > self._settled:
            return
        text = self._utf8.decode(bytes(self._data[self._sent : self._settled]), final)
        self._sent = self._settled
        if not text:
            return
        if self._kind == TEXT:
            self.text += text
            self._events.append(Event("text", text))
        elif self._kind == REASONING:
            self.reasoning += text
            self._events.append(Event("reasoning", text))
        elif self._open is not None:
            self._events.append(Event("arguments", text, self._open.number))

    def _end_turn(self, state: int) -> None:
        """The text ends, in a state; where a call may be over in which others could go on, that tells whose it is.

        Raises:
            DecodeError: no tool is called so.
        """
        held = self._open
        if held is not None and held.tool < 0:
            tools, end = tools_of(self.bundle.meta), len(self._data)
            text = self._data[held.arguments if held.arguments >= 0 else end :].decode(errors="replace")
            # Of two paths that a request may mean it is the one with fewer parameters (OpenAPI 3.1, "Paths Object").
            whole = sorted(self._ends_of.get(state, ()), key=lambda n: str(tools[n].get("request", [])[1:2]).count("{"))
            for tool in whole:
                try:
                    decode(self._how, tools[tool], text, (*held.parts, *held.empty))
                except DecodeError:
                    continue
                held.tool = tool
                self._events.append(Event("name", self._names[tool], held.number))
                break
            else:
                raise DecodeError(
                    "whose call this is cannot be told",
                    place=f"{self.bundle.name}, byte {end}, state {state}",
                    found=repr(bytes(self._data[held.begin :])[:80]),
                    expected="the call of one tool",
                    hint="what ends a call belongs in the protocol's template tool",
                )
        self._end_call(len(self._data))

    def _end_call(self, end: int) -> None:
        """The open call is whole."""
        held, self._open = self._open, None
        if held is None or held.tool < 0:
            return
        text = ""
        if held.arguments < 0:
            end = held.named
            arguments: dict[str, Any] = {}
        else:
            held.take_empty()
            text = self._data[held.arguments : end].decode(errors="replace")
            arguments = decode(self._how, tools_of(self.bundle.meta)[held.tool], text, held.parts)
        call = Call(self._names[held.tool], arguments, text, (held.begin, end), str(self._how["encoding"]))
        self.calls.append(call)
        self._events.append(Event("end", number=held.number, call=call))

    def _flush(self) -> list[Event]:
        """The events since the last time."""
        self._say()
        found, self._events = self._events, []
        return found

    def tokens_of(self, span: tuple[int, int]) -> tuple[int, int]:
        """Numbers [begin, end) of the tokens that some bytes lie in, where tokens were fed."""
        return bisect_right(self._ends, span[0]), bisect_left(self._ends, span[1]) + 1


def _one_of_each(classes: Any, symbols: Iterable[int]) -> list[tuple[int, int]]:
    """(class, its lowest symbol), in the order of the symbols."""
    lowest: dict[int, int] = {}
    for symbol in symbols:
        lowest.setdefault(int(classes[symbol]), symbol)
    return list(lowest.items())


def read_calls(bundle: Bundle, text: str | bytes | Iterable[int], entry: str = "start") -> list[Call]:
    """The calls in a whole text, given as text or as token ids; see Reader for what surrounds them.

    Raises:
        DecodeError: it is not a text of the bundle, or it ends where it may not end.
    """
    reader = Reader(bundle, entry)
    if isinstance(text, (str, bytes)):
        reader.feed_text(text)
    else:
        for token in text:
            reader.feed(token)
    reader.finish()
    if not reader.is_whole:
        raise reader._refusal("the end of the text")
    return reader.calls
