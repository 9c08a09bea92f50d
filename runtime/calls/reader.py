"""Read tokens or text back while they stream: what was said, thought and called.

Every local state carries a mark that says which region of the text its last symbol lay in, and of which tool's call
(docs/format.md, "Marks"). A reader steps through the bundle's own tables and cuts the text where the marks
change: there is no second parser for any protocol.

    reader = Reader(bundle)
    for token in tokens:
        for event in reader.feed(token): ...
    for event in reader.finish(): ...

Leaves out   what it knows of the bundle: see facts.py. Values of arguments: see arguments.py. Masks: see matcher.py.
             Where marks come from: the compiler.
Invariants   refuses what `Matcher` refuses, except for blanks. Events do not depend on how the text was cut into
             tokens or pieces, except for how text and arguments are split over events. Needs numpy and msgpack only.
Unsettled    While a text may still become a delimiter, the reader sends no event for it.
Blanks       The reader reads what masks allow as it stands. Otherwise, between tokens of JSON, it skips a blank that
             the state cannot read, and inserts one that the state requires. Masks allow the text with these changes.
"""

from __future__ import annotations

import codecs
import operator
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import DecodeError
from ..expected import expect, named_kind
from ..format.entries import entry_state
from ..format.ops import DEAD, END_OF_TURN, FINISHED, POP, PUSH, kind_of
from ..format.tables import ARGUMENTS, AROUND, KEY, NAME, REASONING, STRING, TEXT, UNSETTLED, VALUE, tools_of
from ..reference import Configuration
from .arguments import INPUT, Part, decode
from .blanks import BLANKS, Place, Scanner, fewest_blanks, first_of, goes_on, is_cut
from .events import Call, Event, Unfinished
from .facts import Facts
from .reader_records import OpenCall, Refusal, Saved

if TYPE_CHECKING:
    from ..format.bundle import Bundle

_BEFORE_CONSTANT = (b":", b",", b"[", b">", b"\n")
_AFTER_CONSTANT = b",]}<\n"
AGES = 256
"""Symbols behind the last one that a mark may speak of, at most."""

_BLANK = frozenset(BLANKS)
_MOST_BLANKS = 256  # that a protocol writes beside a value


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
        begin = entry_state(bundle, entry)
        self.bundle = bundle
        self.calls: list[Call] = []
        self.text = self.reasoning = ""
        self._facts = Facts(bundle)
        self._at = Configuration(self._facts.machine, begin)
        self._arounds: list[int] = []  # kind around every frame
        self._around = AROUND
        self._all_json, self._responds = self._facts.json_at(entry)
        self._spelled: tuple[bytes, bytes, int] | None = None  # a constant as it is read, as it is written; how far
        self._spelled_at = -1  # where the last such constant begins
        self._twin: Reader | None = None  # as it stood where one may have begun that may be a string, too
        self._told = 0  # characters of arguments that were sent
        self._data = bytearray()
        self._begins = array("q")  # offset at which every symbol begins
        self._ends: list[int] = []  # offset after every token
        self._read_end = 0  # offset behind the last symbol
        self._gap = -1  # offset of the first blank that was passed over since then, or since a symbol and blanks
        self._gap_place = Place.OUTSIDE
        self._scanner: Scanner | None = None
        self._scan_from = 0  # offset behind the last text that is not JSON for sure
        self._value_end = -1  # offset behind the last value of JSON that a region ended with
        self._held = b""
        self._in_blanks = False  # the last symbol was a blank
        self._before, self._blanks_from = self._at.copy(), 0  # where the first of these blanks began
        self._exact = False
        self._kind = UNSETTLED  # of the open region
        self._perhaps = -1  # what is not settled may be text or a value of this kind
        self._begin = 0  # of the open region
        self._settled = 0  # offset up to which everything has a region
        self._sent = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._open: OpenCall | None = None
        self._count = 0
        self._events: list[Event] = []

    def __repr__(self) -> str:
        calls = f"{len(self.calls)} calls read" + (", one open" if self._open is not None else "")
        return f"<Reader of {self.bundle.name}: {len(self._data):,} bytes, {calls}>"

    # -- feeding -----------------------------------------------------------------------------------------------------

    @property
    def is_finished(self) -> bool:
        """The end of turn was read."""
        return self._at.state == FINISHED

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
        try:
            token = operator.index(token)
        except TypeError:
            text = "read text with feed_text" if isinstance(token, (str, bytes)) else None
            raise DecodeError(
                "a token is no integer", found=named_kind(token), expected="the id of a token", hint=text
            ) from None
        if not 0 <= token < vocab.size:
            raise DecodeError("no such token", found=str(token), expected=f"0 to {vocab.size - 1}")
        if self._held:
            # A delimiter that is a token is none in pieces.
            self._read_held(self._facts.symbol_of.get(token) == END_OF_TURN)
        if self._at.state == FINISHED:
            if self._facts.symbol_of.get(token) != END_OF_TURN:
                raise self._refusal(vocab.shown(token))
            return self._flush()
        mode = self._at.mode
        symbol = self._facts.symbol_of.get(token)
        if symbol is not None:
            self._read(symbol, self._facts.shown_symbol.get(symbol, b""), mode)
        else:
            text = vocab.token(token)
            if not text:
                raise self._refusal(vocab.shown(token))
            for byte in text:
                self._read(byte, bytes((byte,)), mode)
        self._ends.append(len(self._data))
        return self._flush()

    def feed_text(self, data: bytes | str) -> list[Event]:
        """Read a piece of text; a delimiter that is a token is read as that token, wherever it stands, and so is the
        end of turn where the text may end and nothing else follows.

        Raises:
            DecodeError: it is not a text of the bundle.
        """
        data, self._held = self._held + text_bytes(data), b""
        if self._facts.tokens:
            whole = max((data.rfind(name) + len(name) for name in self._facts.tokens if name in data), default=0)
            most = min(max(map(len, self._facts.tokens)) - 1, len(data) - whole)
            for keep in range(most, 0, -1):  # perhaps half a delimiter
                if any(name.startswith(data[-keep:]) for name in self._facts.tokens):
                    data, self._held = data[:-keep], data[-keep:]
                    break
        self._feed_whole(data, None)
        return self._flush()

    def _feed_whole(self, data: bytes, ended: bool | None) -> None:
        """Read whole delimiters and what stands between them.

        Args:
            ended: whether the end of turn is one where nothing else follows in ``data``; None: hold it back.
        """
        pieces = [piece for piece in self._facts.splits.split(data) if piece]
        last = len(pieces)  # the first of the ends of turn that nothing else follows
        while last and pieces[last - 1] in self._facts.ending:
            last -= 1
        for n, piece in enumerate(pieces):
            if n >= last and ended is not False and self.is_whole:
                if ended is None:
                    self._held = b"".join(pieces[n:]) + self._held
                    return
                if self._at.state != FINISHED:
                    self._read(END_OF_TURN, b"", self._at.mode)
            elif piece in self._facts.tokens and piece not in self._facts.ending:
                self._read(self._facts.symbol_of[self._facts.tokens[piece]], piece, self._at.mode)
            else:
                for byte in piece:
                    self._read(byte, bytes((byte,)), self._at.mode)

    def read_held(self) -> None:
        """Read what `feed_text` holds back, half a delimiter or the end of turn, as the text that it is so far."""
        self._read_held(False)

    def _read_held(self, ended: bool) -> None:
        held, self._held = self._held, b""
        self._feed_whole(held, ended)

    def be_exact(self) -> None:
        """Refuse blanks that masks do not allow, from here on."""
        self._exact = True

    def finish(self) -> list[Event]:
        """Say that nothing follows. Of what was not settled, text before it takes it; a call that may end here does."""
        self._read_held(True)
        self._settle_rest()
        if self.is_whole:
            if self._ended_before_blanks(self._in_blanks):
                self._at = self._before.copy()
            self._end_turn(self._at.state)
        return self._flush()

    @property
    def is_whole(self) -> bool:
        """The text may end here, or has ended."""
        if self._ended_before_blanks(self._in_blanks):
            return True
        if self._gap < 0 or self._gap_place is Place.INSIDE or self._at.state == FINISHED:
            return self._at.may_end
        return self._at.may_end and self._leaves_delimiters(END_OF_TURN, self._gap_place)

    def fork(self) -> Reader:
        """An independent copy that has read the same; ``copy`` and ``deepcopy`` make one, too."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.calls, twin._ends = self.calls.copy(), self._ends.copy()
        twin._at, twin._arounds = self._at.copy(), self._arounds.copy()
        twin._data, twin._begins, twin._events = self._data.copy(), self._begins[:], self._events.copy()
        twin._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        twin._utf8.setstate(self._utf8.getstate())
        twin._scanner = None if self._scanner is None else self._scanner.copy()
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
        if self._at.state <= FINISHED:
            return {}
        return {number: symbol for number, symbol in self._facts.symbols if self._at.op(symbol)}

    def may_read(self, symbol: int) -> bool:
        """Whether a symbol may come next."""
        return bool(self._at.op(symbol))

    def is_lowest(self, symbol: int) -> bool:
        """Whether `symbols` names a symbol: it may come next, and is the lowest of its class."""
        return symbol in self._facts.lowest and self.may_read(symbol)

    def class_of(self, symbol: int) -> int:
        """Symbols of one class lead to the same state."""
        return int(self._facts.view["symbol_class"][symbol])

    def step_of(self, symbol: int) -> int:
        """Of two symbols that may come next, equal ones lead to the same place, too."""
        return self._at.machine.entry(self._at.cell, self.class_of(symbol))

    @property
    def delimiters(self) -> dict[int, list[tuple[int, bytes]]]:
        """(symbol, name) of each delimiter that is a token, by the first byte of its name."""
        return self._facts.delimiters

    def delimiter(self, symbol: int) -> str:
        """The name of a delimiter that is a token."""
        return self._facts.shown_symbol[symbol].decode()

    def read(self, symbol: int) -> list[Event]:
        """Read a byte, or a delimiter by its symbol.

        Raises:
            DecodeError: see feed.
        """
        shown = bytes((symbol,)) if symbol < END_OF_TURN else self._facts.shown_symbol[symbol]
        self._read(symbol, shown, self._at.mode)
        return self._flush()

    @property
    def configuration(self) -> tuple[Any, ...]:
        """Where the reader stands: readers with equal ones go on alike, but for what is unsettled or unfinished."""
        at = self._at
        frames = at.register, tuple(at.stack), tuple(at.registers), tuple(self._arounds)
        return at.state, at.counter, *frames, self._around, self._kind

    @property
    def here(self) -> Configuration:
        """Where the reader stands in the tables."""
        return self._at

    @property
    def open(self) -> OpenCall | None:
        """The call that is being read, with what is known of it."""
        return self._open

    @property
    def encoding(self) -> str:
        """How arguments are written."""
        return str(self._facts.how["encoding"])

    @property
    def writes_json(self) -> bool:
        """The whole text is one value of JSON."""
        return self._all_json

    @property
    def unsettled(self) -> bytes:
        """What has no region yet."""
        return bytes(self._data[self._settled :])

    @property
    def unsettled_bytes(self) -> int:
        """How much of the text has no region yet."""
        return len(self._data) - self._settled

    @property
    def last(self) -> bytes:
        """The last byte; none at the beginning."""
        return bytes(self._data[-1:])

    def slice(self, begin: int, end: int) -> bytes:
        """Some bytes of the text."""
        return bytes(self._data[begin:end])

    @property
    def unfinished(self) -> Unfinished | None:
        """The call that is being read."""
        held = self._open
        if held is None:
            return None
        inside = self._kind in (KEY, VALUE, STRING)
        named = self._settled if self._kind == NAME else max(held.named, held.begin)
        again = self._kind == KEY  # the value of the key before had no text
        return Unfinished(
            held.number,
            (held.begin, named),
            (held.arguments, self._settled) if held.arguments >= 0 else (0, 0),
            len(held.parts) + (again and held.key is not None),
            None if again else held.key,
            (self._begin, self._settled) if inside else None,
        )

    def parts(self, begin: int = 0) -> list[Part]:
        """The parts of the call that is being read that are whole, from one on."""
        held = self._open
        if held is None:
            return []
        more = held.empty if self._kind == KEY and begin <= len(held.parts) else []
        return held.parts[begin:] + more

    # -- searching: one reader that goes back, since a copy at every symbol would copy the text as often -------------

    def save(self) -> Saved:
        """Where the reader stands, for `go_back`; only `read` and `finish` may come between."""
        held = self._open
        plain = tuple(map(self.__dict__.__getitem__, _PLAIN))
        inside = () if held is None else (held.tool, held.named, held.arguments, held.key, len(held.parts))
        sizes = len(self._data), len(self._begins), len(self.calls)
        return Saved(plain, self._at.copy(), tuple(self._arounds), self._utf8.getstate(), *sizes, held, inside)

    def go_back(self, saved: Saved) -> None:
        """Stand where the reader stood; what was read since is forgotten."""
        self.__dict__.update(zip(_PLAIN, saved.plain, strict=True))
        self._at, self._scanner = saved.at.copy(), None
        self._arounds[:] = saved.arounds
        self._utf8.setstate(saved.utf8)
        del self._data[saved.data :], self._begins[saved.begins :], self.calls[saved.calls :]
        self._events = []
        self._open = held = saved.open
        if held is not None:
            held.tool, held.named, held.arguments, held.key, count = saved.held
            del held.parts[count:]

    # -- the automaton -----------------------------------------------------------------------------------------------

    def _read(self, symbol: int, shown: bytes, mode: int) -> None:
        """One symbol; where it is refused after a constant that began as a string may, the constant is read anew."""
        if self._facts.how["encoding"] == "parameters" and self._spelled is None and self._reads_as(symbol):
            both = self.may_read(symbol) and self.may_read(self._facts.read_as[symbol][1][0])
            if both and self._data.endswith(_BEFORE_CONSTANT):
                self._twin = self.fork()
                self._twin._twin, self._twin._events = None, []
        before, end = self._twin, len(self._data)
        try:
            self._read_symbol(symbol, shown, mode)
        except DecodeError as error:
            if before is None:
                raise
            self._read_anew(before.fork(), end, symbol, shown, error)

    def _read_anew(self, twin: Reader, end: int, symbol: int, shown: bytes, error: DecodeError) -> None:
        """Read what was read since a constant may have begun, and the symbol, with the constant as JSON writes it.

        Args:
            twin: the reader before the constant;  end: of what was read since;  error: how the symbol was refused.

        Raises:
            DecodeError: there is none, or what follows it is refused, too; then this is the first refusal.
        """
        since = bytes(self._data[len(twin._data) : end])
        read, written = self._facts.read_as[since[0]]
        if not since.startswith(read):
            raise error
        twin._spelled, twin._spelled_at = (read, written, 0), len(twin._data)
        try:
            for byte in since:
                twin._read_symbol(byte, bytes((byte,)), twin._at.mode)
            twin._read_symbol(symbol, shown, twin._at.mode)
        except DecodeError:
            raise error from None
        twin._leave_out(self._told)
        events, ends = self._events + twin._events, self._ends
        self.__dict__.update(twin.__dict__)
        self._events, self._ends = events, ends

    def _leave_out(self, told: int) -> None:
        """Take out of the events what was sent before: arguments up to so many characters."""
        self._say()
        left = told - self._told + sum(len(event.text) for event in self._events if event.kind == "arguments")
        for n, event in enumerate(self._events):
            if event.kind == "arguments" and left > 0:
                self._events[n], left = replace(event, text=event.text[left:]), left - len(event.text)
        self._events = [event for event in self._events if event.kind != "arguments" or event.text]

    def _read_symbol(self, symbol: int, shown: bytes, mode: int) -> None:
        """One symbol, as in runtime/reference.py, and what its mark says."""
        op = self._at.op(symbol)
        if self._spelled is not None or (not op and self._reads_as(symbol)):
            op = self._at.op(self._as_written(symbol, shown))
        behind_blanks = self._in_blanks
        if symbol not in _BLANK:
            self._in_blanks = self._in_blanks and self._gap >= 0
        elif not self._in_blanks:
            self._in_blanks, self._before, self._blanks_from = True, self._at.copy(), len(self._data)
        if (op and self._gap < 0) or self._exact:
            if not op:
                raise self._refusal(_found(shown))
            self._take(op, shown, mode)
        else:
            self._read_in_gap(symbol, shown, mode, op, behind_blanks)

    def _take(self, op: int, shown: bytes, mode: int) -> None:
        """Do what an op says that reads a symbol."""
        at = self._at
        before = at.state
        kind = kind_of(op)
        self._begins.append(self._read_end if self._kind >= ARGUMENTS else len(self._data))
        self._data += shown
        self._read_end = len(self._data)
        if kind < PUSH:
            at.step(op, mode)
        elif kind == PUSH:
            if at.overflows(op):
                raise self._refusal("more frames than the stack has room for: the bundle is unsound")
            at.step(op, mode)
            self._arounds.append(self._around)
            region, age, tools, _ = self._facts.marks[self._facts.view["symbol_mark"][at.stack[-1][0]]]
            if self._facts.marks[self._facts.view["state_mark"][at.state]][0] == AROUND:
                self._mark(region, age, tools, 0)
            else:  # a region inside of the frame begins with it
                self._mark(UNSETTLED, self._perhaps, tools, 0)
            self._around = self._around if region == AROUND else region
        elif kind == POP:
            g = at.stack[-1][0]
            at.step(op, mode)
            self._around = self._arounds.pop()
            region, age, tools, _ = self._facts.marks[self._facts.view["symbol_mark"][g]]
            self._mark(region, age, tools, 0)
        if at.state == DEAD:
            raise self._refusal(_found(shown))
        if at.state == FINISHED:
            self._settle_rest()
            self._end_turn(before)
        else:
            self._mark(*self._facts.marks[self._facts.view["state_mark"][at.state]])

    def _reads_as(self, symbol: int) -> bool:
        """Whether a constant may begin here whose spelling is read and not written: not in a structured response."""
        return symbol in self._facts.read_as and not (self._responds and self._kind == TEXT)

    def _as_written(self, symbol: int, shown: bytes) -> int:
        """The symbol in place of one of a constant's spelling that is read, and not written: see `read_only`.

        Raises:
            DecodeError: what stands there is no whole constant.
        """
        if self._spelled is None:
            read, written = self._facts.read_as[symbol]
            if not self._data.endswith(_BEFORE_CONSTANT):
                return symbol
            self._spelled, self._spelled_at = (read, written, 1), len(self._data)
            return written[0]
        read, written, at = self._spelled
        if at == len(read) and (not shown or shown[:1] in _AFTER_CONSTANT):
            self._spelled = None
            return symbol
        if at == len(read) or symbol != read[at]:
            raise self._refusal(_found(shown))
        self._spelled = read, written, at + 1
        return written[at]

    def _refusal(self, found: str, offset: int = -1) -> Refusal:
        return Refusal(self.bundle, len(self._data) if offset < 0 else offset, self._at.copy(), found)

    # -- blanks between tokens of JSON -------------------------------------------------------------------------------

    def _read_in_gap(self, symbol: int, shown: bytes, mode: int, op: int, behind_blanks: bool) -> None:
        """One symbol that the state cannot read, or behind a blank that it could not."""
        if self._at.state <= FINISHED:
            raise self._refusal(_found(shown))
        place = self._gap_place if self._gap >= 0 else self._place()
        blank = symbol in BLANKS if symbol < END_OF_TURN else False
        if not op and blank:
            if place is Place.STRING:
                raise self._refusal(_found(shown))
            if self._gap < 0:
                self._gap, self._gap_place = len(self._data), place
            self._data += shown
            return
        if blank:
            self._take(op, shown, mode)
            return
        begin = self._gap if self._gap >= 0 else len(self._data)
        supplied = None if op or place is not Place.INSIDE else fewest_blanks(self._at, symbol)
        if symbol == END_OF_TURN and not op and self._ended_before_blanks(behind_blanks):
            self._at = self._before.copy()
            op, begin = self._at.op(symbol), self._blanks_from
        elif place is Place.INSIDE and not op and not supplied and behind_blanks:
            # The blanks before the symbol were read as those of another gap: as if they had been passed over.
            op, supplied, begin = self._before.op(symbol), fewest_blanks(self._before, symbol), self._blanks_from
            if (op or supplied) and len(self._before.stack) == len(self._at.stack):
                self._at = self._before.copy()
            else:
                op, supplied = 0, None
        if not op and not supplied:
            raise self._refusal(_found(shown)) if place is not Place.OUTSIDE or self._gap < 0 else self._stray()
        if begin and symbol < END_OF_TURN and is_cut(self._data[begin - 1], symbol):
            raise self._refusal(_found(shown)) if place is not Place.OUTSIDE or self._gap < 0 else self._stray()
        if place is not Place.INSIDE and self._gap >= 0 and not self._leaves_delimiters(symbol, place):
            raise self._stray()
        stray = self._stray() if place is Place.OUTSIDE else None
        for one in supplied or b"":
            self._take(self._at.op(one), b"", mode)
        self._take(op or self._at.op(symbol), shown, mode)
        self._gap, self._in_blanks = -1, False
        if stray is not None and not self._begins_value(symbol, shown):
            raise stray

    def end_refused(self) -> Refusal:
        """That nothing follows, where something has to."""
        return self._stray() if self._gap >= 0 and self._at.may_end else self._refusal("the end of the text")

    def _ended_before_blanks(self, behind_blanks: bool) -> bool:
        """Whether the blanks behind a last value were read as the beginning of what does not follow."""
        at, before = self._at, self._before
        if not behind_blanks or self._exact or at.may_end or not before.may_end:
            return False
        return len(before.stack) == len(at.stack) and self._place() is Place.AFTER

    def _leaves_delimiters(self, symbol: int, place: Place) -> bool:
        """Whether the blanks before a symbol that the protocol writes itself stand together, behind those that belong
        to the value before them, or before those of the value that begins."""
        blanks = bytes(self._data[self._blanks_from :])
        counts = range(min(len(blanks), _MOST_BLANKS) + 1)
        if place is Place.AFTER:
            return any(self._reads(blanks[len(blanks) - n :], symbol) for n in counts)
        return symbol != END_OF_TURN and any(self._reads(blanks[:n], symbol) for n in counts)

    def _reads(self, blanks: bytes, symbol: int) -> bool:
        """Whether blanks and then a symbol can be read where the last blanks began."""
        at = self._before.copy()
        for blank in blanks:
            op = at.op(blank)
            if not op:
                return False
            at.step(op, at.mode)
        return bool(at.op(symbol))

    def _stray(self) -> Refusal:
        """A blank was passed over where none may stand."""
        return self._refusal(_found(bytes((self._data[self._gap],))), self._gap)

    def _place(self) -> Place:
        """Where in JSON the text ends: outside where some may begin, and in a string where no blank may stand."""
        if self._value_end >= 0 and first_of(self._data, self._value_end) < 0:
            return Place.AFTER
        scanner = self._scanner_here()
        if scanner is None:
            may_begin = self._responds or self._facts.writing in ("json", "positional")
            found = Place.OUTSIDE if may_begin and self._kind in (UNSETTLED, AROUND, NAME) else Place.STRING
        else:
            if self._scanner is None or self._scanner.key != scanner.key:
                self._scanner = scanner
            found = self._scanner.place(self._data)
            if found is Place.OPENING:
                text = self._data.rstrip(BLANKS)
                found = Place.INSIDE if goes_on(text[-1], self._at.expected_bytes()) else Place.OUTSIDE
            if found is not Place.INSIDE and scanner.key[2:] != (False, False):  # a raw value, or Python
                found = Place.STRING
        return found

    def _scanner_here(self) -> Scanner | None:
        """What reads the JSON that the text may end in; None where there is none."""
        kind, how, held = self._kind, self._facts.writing, self._open
        if self._all_json:
            return Scanner(0, whole=True)
        if kind == TEXT:
            return Scanner(self._begin, whole=True) if self._responds else None
        if kind in (REASONING, KEY, STRING):
            return None
        if kind == VALUE:
            return Scanner(self._begin, sure=True) if self._is_container() else None
        if how == "keywords":
            return Scanner(self._scan_from, python=True)
        if self._in_text():
            return None
        if kind == ARGUMENTS and held is not None and held.arguments >= 0:
            if how == "positional":
                return Scanner(held.arguments, whole=True)
            if how == "request":
                body = self._body(held)
                return Scanner(body, whole=True) if body >= 0 else None
        if how == "json" or (self._responds and kind == UNSETTLED):
            return Scanner(self._scan_from)
        return None

    def _in_text(self) -> bool:
        """Whether the open call is one of a custom tool whose arguments are a text as it is."""
        held = self._open
        return held is not None and held.tool >= 0 and self._facts.tools[held.tool].get("input") == "text"

    def _body(self, held: OpenCall) -> int:
        """Where the body of a request line begins: behind its second blank; -1: it has none."""
        method = self._data.find(b" ", held.arguments)
        return self._data.find(b" ", method + 1) if method >= 0 else -1

    def _is_container(self) -> bool:
        """Whether the parameter that is read is an array or object of JSON: what begins as one is one, where one may
        be (compiler/schema/channel.py)."""
        held = self._open
        at = first_of(self._data, self._begin)
        if (
            self._facts.writing != "parameters"
            or held is None
            or held.tool < 0
            or at < 0
            or self._data[at] not in b"[{"
        ):
            return False
        types = dict(self._facts.tools[held.tool].get("parameters", []))
        found = types.get(held.key, types.get(""))
        return found is None or ("array" if self._data[at] == b"["[0] else "object") in found

    def _begins_value(self, symbol: int, shown: bytes) -> bool:
        """Whether the symbol that was just read is the first one of a value of JSON."""
        kind, how = self._kind, self._facts.writing
        if self._in_text():
            return False
        if (kind == ARGUMENTS and how in ("json", "positional")) or (kind == TEXT and self._responds):
            return self._data[self._begin :].lstrip(BLANKS) == shown
        if shown not in (b"[", b"{") or not (how == "json" or self._responds):
            return False
        return kind in (UNSETTLED, AROUND) and goes_on(symbol, self._at.expected_bytes())

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
        if held is not None and tools >= 0 and held.tool < 0 and self._facts.only[tools] >= 0:
            held.tool = self._facts.only[tools]
            self._events.append(Event("name", self._facts.names[held.tool], held.number))
        if ended and kind != UNSETTLED:
            self._close(self._settled)
        if whole:
            self._end_call(self._settled)
        elif kind == AROUND and held is not None and held.tool >= 0 and held.named >= 0 > held.arguments:
            inside = len(self._at.stack) > held.depth
            if held is self._open and not self._facts.arguments_may_come(self._at.state, inside, held.tool):
                self._end_call(self._settled)

    def _settle(self, kind: int, age: int) -> None:
        """The last symbol is of this kind, and so are the ``age`` - 1 before it; -1: all that were not settled."""
        begin = before = self._settled
        if 0 < age <= min(AGES, len(self._begins)):
            begin = max(begin, self._begins[-age])
        if begin > self._settled and self._perhaps >= 0 and kind != self._perhaps != self._kind:
            self._close(self._settled)  # what was not settled is a region of its own
            self._kind, self._begin, self._sent = self._perhaps, self._settled, self._settled
        if kind != self._kind:
            begin = begin if kind != self._perhaps else self._settled
            if kind == ARGUMENTS and self._facts.writing in ("json", "positional") and not self._in_text():
                begin = max(begin, first_of(self._data, begin))  # blanks before a value are none of it
            self._close(begin)
            self._kind, self._begin, self._sent = kind, begin, begin
            if kind < ARGUMENTS:
                held = self._open
                if held is not None and (held.arguments >= 0 or kind != AROUND):
                    self._end_call(begin)
            if kind == NAME or (kind >= ARGUMENTS and self._open is None):  # a protocol may write no names
                self._around = max(self._around, AROUND)  # whatever else the frame might have been
                self._open = OpenCall(self._count, begin, len(self._at.stack))
                self._count += 1
                self._events.append(Event("call", number=self._open.number))
            if kind >= ARGUMENTS and self._open is not None and self._open.arguments < 0:
                # what stands before a key and was not settled until now leads it in
                self._open.arguments = self._sent = before if kind == KEY else begin
        self._settled, self._perhaps = self._read_end, -1

    def _settle_rest(self) -> None:
        """Nothing follows that could settle the rest."""
        if self._settled < self._read_end:
            self._settle(self._perhaps if self._kind == UNSETTLED and self._perhaps >= 0 else self._kind, -1)
        self._close(self._read_end)

    def _close(self, end: int) -> None:
        """The open region ends here."""
        if self._kind == UNSETTLED:
            return
        self._settled = end
        self._say(True)
        if self._kind == REASONING or (self._kind == TEXT and not self._responds):
            self._scan_from = end
        elif self._kind == TEXT or (self._kind == ARGUMENTS and self._facts.writing == "positional"):
            self._value_end = end
        elif self._kind == ARGUMENTS and self._facts.writing == "request" and self._open is not None:
            self._value_end = end if self._body(self._open) >= 0 else -1
        if self._kind in (KEY, VALUE, STRING) and self._open is not None:
            self._twin = None
            said = self._data[self._begin : end].decode(errors="replace")
            if self._spelled_at >= self._begin and (self._kind != VALUE or not self._is_constant(said)):
                raise self._refusal(repr(said))  # what is written so is a string or part of one
            if self._kind != KEY:
                self._open.parts.append(Part(self._open.key or "", said, self._kind == STRING))
                self._open.key = None
            else:
                self._open.take_empty()
                self._open.key = said
        elif self._kind == NAME and self._open is not None:
            self._open.named = end
        self._kind = UNSETTLED

    def _is_constant(self, said: str) -> bool:
        """Whether a parameter's text is a constant, as its types say."""
        held = self._open
        assert held is not None
        part = Part(held.key or "", said, False)
        return not isinstance(decode(self._facts.how, tools_of(self.bundle.meta)[held.tool], "", [part])[part.key], str)

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
            self._told += len(text)
            self._events.append(Event("arguments", text, self._open.number))

    def _end_turn(self, state: int) -> None:
        """The text ends, in a state; where a call may be over in which others could go on, that tells whose it is.

        Raises:
            DecodeError: no tool is called so.
        """
        held = self._open
        if held is not None and held.tool < 0:
            tools, end = self._facts.tools, self._read_end
            text = self._data[held.arguments if held.arguments >= 0 else end : end].decode(errors="replace")
            # Of two paths that a request may mean it is the one with fewer parameters (OpenAPI 3.1, "Paths Object").
            whole = sorted(
                self._facts.ends_of.get(state, ()), key=lambda n: str(tools[n].get("request", [])[1:2]).count("{")
            )
            for tool in whole:
                try:
                    decode(self._facts.how, tools[tool], text, (*held.parts, *held.empty))
                except DecodeError:
                    continue
                held.tool = tool
                self._events.append(Event("name", self._facts.names[tool], held.number))
                break
            else:
                raise Refusal(
                    self.bundle,
                    end,
                    self._at.copy(),
                    repr(bytes(self._data[held.begin :])[:80]),
                    "whose call this is cannot be told",
                    "the call of one tool",
                    "what ends a call belongs in the protocol's template tool",
                )
        self._end_call(self._read_end)

    def _end_call(self, end: int) -> None:
        """The open call is whole."""
        held, self._open = self._open, None
        if held is None or held.tool < 0:
            return
        text = ""
        if held.arguments < 0:
            end = held.named
            arguments: dict[str, Any] = {INPUT: ""} if self._facts.tools[held.tool].get("input") == "text" else {}
        else:
            held.take_empty()
            text = self._data[held.arguments : end].decode(errors="replace")
            arguments = decode(self._facts.how, self._facts.tools[held.tool], text, held.parts)
        name = self._facts.names[held.tool]
        declared = self.bundle.declared.get(name)
        custom = self._facts.tools[held.tool].get("input")
        mode = "text" if custom == "text" else str(self._facts.how["encoding"])
        unions = self._facts.tools[held.tool].get("unions", ())
        how = {"declared": declared, "custom": custom is not None, "unions": unions}
        call = Call(name, arguments, text, (held.begin, end), mode, **how)
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


_PLAIN = (
    "text", "reasoning", "_around", "_held", "_kind", "_perhaps", "_begin", "_settled", "_sent", "_count",
    "_read_end", "_gap", "_gap_place", "_scan_from", "_value_end", "_in_blanks", "_before", "_blanks_from", "_spelled",
    "_spelled_at", "_twin", "_told",
)  # fmt: skip
"""What a reader holds that is replaced, not changed, as it reads."""


def text_bytes(text: str | bytes) -> bytes:
    """A text as bytes.

    Raises:
        DecodeError: it has half a character.
    """
    if isinstance(text, bytes):
        return text
    expect(
        text, str, "text", "text, or its bytes", {"list": "feed tokens one by one, with feed", "int": "feed a token"}
    )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DecodeError("half a character is no text", found=repr(text[error.start])) from None


def _found(shown: bytes) -> str:
    return repr(shown)[1:] if shown else "the end of turn"
