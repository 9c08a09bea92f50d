r"""Regular expressions over code points: the nodes, a parser for two dialects, and a printer.

Leaves out   matching (../automata/terminal.py makes an automaton), sets of code points (charset.py).
Invariants   nodes are frozen and compared by value, with the hash kept; those built by ``concat``, ``union`` and
             ``repeat`` are in normal form: no Concat in a Concat, no Union in a Union, at most one Chars in a Union,
             never exactly one item, no Repeat of 1..1 or of 0..0. ``EMPTY`` is the empty text, ``NOTHING`` no text.
             Only the language is kept: captures and order of alternatives are read and dropped, greed too unless asked.
             ``parse_regex(to_text(r)) == r`` for every r in normal form.
Dialects     "python": Python's ``re`` on str (what Lark terminals use), flags a i m s u x.
             "ecma": ECMA-262 with the u flag (JSON Schema patterns), flags s u; identity escapes and lone brackets are
             tolerated as without u. Case-insensitive matching is for the Python dialect only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ..errors import GrammarError, UnsupportedError
from . import charset
from .charset import Ranges

__all__ = [
    "ANY", "EMPTY", "END", "NOTHING", "START", "Chars", "Concat", "End", "Look", "Regex", "Repeat", "Start", "Union",
    "WordBoundary", "concat", "literal", "literal_text", "parse_regex", "repeat", "searching", "shortest", "to_text",
    "union",
]  # fmt: skip


def _kept_hash(self: object) -> int:
    try:
        return self._hash  # type: ignore[attr-defined]
    except AttributeError:
        # The tuple of fields, as dataclasses would; kept because a terminal can have ten thousand nodes.
        fields = self.__dataclass_fields__  # type: ignore[attr-defined]
        value = hash((_ORDER[type(self).__name__], *(getattr(self, name) for name in fields)))
        object.__setattr__(self, "_hash", value)
        return value


@dataclass(frozen=True)
class Chars:
    """One code point of a set."""

    ranges: Ranges
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Concat:
    """All items in order; no items is the empty text."""

    items: tuple[Regex, ...]
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Union:
    """One of the options (at least two)."""

    options: tuple[Regex, ...]
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Repeat:
    """``low`` to ``high`` copies; ``high`` None is without bound. Only ``shortest`` gives ``lazy`` a sense."""

    item: Regex
    low: int
    high: int | None
    lazy: bool = False
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Look:
    """Nothing read, if the text from here (or up to here) starts (or ends) with the item; or if it does not."""

    item: Regex
    ahead: bool = True
    negative: bool = False
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Start:
    r"""Nothing read, at the start of the text (``\A``)."""

    __hash__ = _kept_hash


@dataclass(frozen=True)
class End:
    r"""Nothing read, at the very end of the text (``\Z``)."""

    __hash__ = _kept_hash


@dataclass(frozen=True)
class WordBoundary:
    r"""Nothing read, between a word character and another (``\b``), or not there (``\B``)."""

    negative: bool = False
    ascii: bool = False
    __hash__ = _kept_hash


Regex: TypeAlias = Chars | Concat | Union | Repeat | Look | Start | End | WordBoundary

_KINDS = (Chars, Concat, Union, Repeat, Look, Start, End, WordBoundary)
_ORDER = {kind.__name__: n for n, kind in enumerate(_KINDS)}

EMPTY = Concat(())
NOTHING = Chars(())
ANY = Chars(charset.ALL)
START = Start()
END = End()
_NEWLINE = Chars(((10, 10),))
_MOST = 1 << 32


def concat(*items: Regex) -> Regex:
    """Items in order, in normal form."""
    flat: list[Regex] = []
    for item in items:
        if type(item) is Concat:
            flat.extend(item.items)
        else:
            flat.append(item)
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def union(*options: Regex) -> Regex:
    """One of the options, in normal form: sets of characters are joined where the first of them stood."""
    flat: dict[Regex, None] = {}
    sets: list[Ranges] = []
    at: Chars | None = None
    for option in options:
        for one in option.options if type(option) is Union else (option,):
            if type(one) is Chars:
                sets.append(one.ranges)
                at = at or one
                flat.setdefault(at)
            else:
                flat.setdefault(one)
    if at is None:
        parts = tuple(flat)
    else:
        joined = Chars(sets[0] if len(sets) == 1 else charset.union(*sets))
        parts = tuple(joined if one is at else one for one in flat)
        if not joined.ranges and len(parts) > 1:
            parts = tuple(one for one in parts if one is not joined)
    if not parts:
        return NOTHING
    return parts[0] if len(parts) == 1 else Union(parts)


def repeat(item: Regex, low: int, high: int | None, lazy: bool = False) -> Regex:
    """``low`` to ``high`` copies of the item, in normal form."""
    if (low, high) == (1, 1) or item == EMPTY:
        return item
    return EMPTY if high == 0 else Repeat(item, low, high, lazy)


def literal(text: str) -> Regex:
    """Exactly this text. A lone surrogate matches nothing."""
    return concat(*(Chars(charset.single(ord(one))) for one in text))


def literal_text(regex: Regex) -> str | None:
    """The one text of an expression that is plainly a literal, else None."""
    out: list[str] = []
    for item in regex.items if type(regex) is Concat else (regex,):
        if type(item) is not Chars or len(item.ranges) != 1 or item.ranges[0][0] != item.ranges[0][1]:
            return None
        out.append(chr(item.ranges[0][0]))
    return "".join(out)


def searching(regex: Regex) -> Regex:
    """Any text with a match of the expression somewhere in it: how JSON Schema uses patterns."""
    rest = Repeat(ANY, 0, None)
    return concat(rest, regex, rest)


def shortest(regex: Regex, after: Regex = EMPTY) -> Regex:
    """Give lazy repeats their sense: ``x*?y`` stops at the first ``y``, so it is ``(?:(?!y)x)*y``.

    ``after`` is what follows the expression. Lazy repeats inside other repeats and inside looks become plain ones.
    """
    if type(regex) is Concat:
        out: list[Regex] = []
        for item in reversed(regex.items):
            done = shortest(item, after)
            out.append(done)
            after = concat(done, after)
        return concat(*reversed(out))
    if type(regex) is Union:
        return union(*(shortest(option, after) for option in regex.options))
    if type(regex) is Repeat and regex.lazy:
        item, low, high = _without_lazy(regex.item), regex.low, regex.high
        more = repeat(concat(Look(after, negative=True), item), 0, None if high is None else high - low)
        return concat(repeat(item, low, low), more)
    return _without_lazy(regex)


def _without_lazy(regex: Regex) -> Regex:
    if type(regex) is Concat:
        return concat(*map(_without_lazy, regex.items))
    if type(regex) is Union:
        return union(*map(_without_lazy, regex.options))
    if type(regex) is Repeat:
        return repeat(_without_lazy(regex.item), regex.low, regex.high)
    return Look(_without_lazy(regex.item), regex.ahead, regex.negative) if type(regex) is Look else regex


@lru_cache(maxsize=4096)
def parse_regex(text: str, flags: str = "", dialect: str = "python", lazy: bool = False) -> Regex:
    """Read a regular expression.

    Args:
        text: the expression, without delimiters.
        flags: letters, see the dialects above; the order and repetition do not matter.
        dialect: "python" or "ecma".
        lazy: mark lazy quantifiers for ``shortest``; else they are read as greedy.

    Raises:
        GrammarError: the text is malformed; ``place`` is ``character N of /…/``, ``hint`` shows it with a caret.
        UnsupportedError: it uses what is not regular (back-references, …) or not known exactly.
    """
    return _Parser(text, flags, dialect, lazy).whole()


_PYTHON_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ECMA_CONTROL = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX = frozenset("0123456789abcdefABCDEF")


class _Parser:
    """Recursive descent over one text; ``at`` is the next character, ``flags`` those of the group being read."""

    def __init__(self, text: str, flags: str, dialect: str, lazy: bool) -> None:
        if dialect not in ("python", "ecma"):
            raise ValueError(f"dialect is {dialect!r}, expected 'python' or 'ecma'")
        self.text = text
        self.at = 0
        self.lazy = lazy
        self.ecma = dialect == "ecma"
        self.flags = frozenset(flags)
        unknown = self.flags - frozenset("su" if self.ecma else "aimsux")
        if unknown:
            raise UnsupportedError(
                f"the flag {min(unknown)!r} of a regular expression is not supported",
                place=f"/{self._short()[0]}/",
                hint="the flags known in this dialect are " + (" ".join("su" if self.ecma else "aimsux")),
            )

    # -- errors ----------------------------------------------------------------------------------------------------

    def _short(self) -> tuple[str, int]:
        """A printable window of the text, and the column of ``at`` in it."""
        start = max(0, self.at - 40)
        shown = [("…" if start else "")]
        column = len(shown[0])
        for n, one in enumerate(self.text[start : self.at + 30], start):
            if n == self.at:
                column = sum(map(len, shown))
            shown.append(one if one.isprintable() else one.encode("unicode_escape").decode())
        if self.at >= len(self.text):
            column = sum(map(len, shown))
        return "".join(shown) + ("…" if self.at + 30 < len(self.text) else ""), column

    def _place(self) -> tuple[str, str]:
        shown, column = self._short()
        return f"character {self.at + 1} of /{shown}/", f"\n    {shown}\n    {' ' * column}^"

    def wrong(
        self, expected: str, message: str = "malformed regular expression", at: int | None = None
    ) -> GrammarError:
        """The error for what stands at ``at``."""
        if at is not None:
            self.at = at
        place, picture = self._place()
        found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
        return GrammarError(message, place=place, found=found, expected=expected, hint=picture)

    def unsupported(self, what: str, at: int) -> UnsupportedError:
        """The error for a construct that is understood and refused."""
        self.at = at
        place, picture = self._place()
        return UnsupportedError(f"{what} not supported in a regular expression", place=place, hint=picture)

    # -- reading ---------------------------------------------------------------------------------------------------

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def whole(self) -> Regex:
        if not self.ecma:
            self._global_flags()
        result = self.alternatives()
        if self.at < len(self.text):
            raise self.wrong("the end", "unbalanced parenthesis")
        return result

    def _global_flags(self) -> None:
        while self.text.startswith("(?", self.at):
            end = self.at + 2
            while end < len(self.text) and self.text[end] in "aiLmsux":
                end += 1
            if end == self.at + 2 or not self.text.startswith(")", end):
                return
            letters = self.text[self.at + 2 : end]
            if "L" in letters:
                raise self.unsupported("the flag L is", self.at)
            self.flags |= frozenset(letters)
            self.at = end + 1

    def skip_blanks(self) -> None:
        """White space and comments under the x flag."""
        while self.at < len(self.text):
            one = self.text[self.at]
            if one in " \t\n\r\v\f":
                self.at += 1
            elif one == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
            else:
                return

    def alternatives(self) -> Regex:
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else union(*options)

    def sequence(self) -> Regex:
        items: list[Regex] = []
        text, size = self.text, len(self.text)
        verbose = "x" in self.flags
        while True:
            if verbose:
                self.skip_blanks()
            if self.at >= size or text[self.at] in "|)":
                return concat(*items)
            start = self.at
            item = self.atom()
            if item is None:
                continue
            if verbose:
                self.skip_blanks()
            items.append(self.quantified(item, start))

    def quantified(self, item: Regex, start: int) -> Regex:
        at = self.at
        one = self.text[at : at + 1]
        if one == "" or one not in "*+?{":
            return item
        bounds = self.bounds()
        if bounds is None:
            return item
        group = self.text[start] == "("
        if (self.ecma and isinstance(item, Look)) or (not group and isinstance(item, (Start, End, WordBoundary, Look))):
            raise self.wrong("something to repeat before it", "nothing to repeat", at)
        if self.peek("+") and not self.ecma:
            raise self.unsupported("a possessive quantifier is", at)
        lazy = self.take("?") and self.lazy
        if self.text[self.at : self.at + 1] in ("*", "+", "?") and self.at < len(self.text):
            raise self.wrong("no second quantifier", "multiple repeat")
        if self.peek("{"):
            at = self.at
            if self.bounds() is not None:
                raise self.wrong("no second quantifier", "multiple repeat", at)
            self.at = at
        return repeat(item, *bounds, lazy)

    def bounds(self) -> tuple[int, int | None] | None:
        """A quantifier's bounds; None, with nothing read, where a brace is not one."""
        at = self.at
        one = self.text[at]
        self.at += 1
        if one != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[one]
        end = self.text.find("}", at)
        low, comma, high = self.text[at + 1 : end].partition(",") if end > at else ("", "", "")
        plain = (low + high).isascii() and (low + high).isdigit() and low.isdigit() <= (not comma or True)
        if end < 0 or not plain or (low and not low.isdigit()) or (high and not high.isdigit()):
            if not (end > at and comma and not low and not high and not self.ecma):
                self.at = at
                return None
            self.at = end + 1
            return (0, None)  # Python reads {,} as {0,}
        if not low and self.ecma:
            self.at = at
            return None
        least = int(low) if low else 0
        most = (int(high) if high else None) if comma else least
        if least >= _MOST or (most is not None and most >= _MOST):
            raise self.wrong("a number below 2**32", "the repetition number is too large", at)
        if most is not None and most < least:
            raise self.wrong("bounds in ascending order", "min repeat greater than max repeat", at)
        self.at = end + 1
        return least, most

    def chars(self, ranges: Ranges) -> Chars:
        return Chars(charset.ignore_case(ranges) if "i" in self.flags else ranges)

    def atom(self) -> Regex | None:
        start = self.at
        one = self.text[start]
        if one == "(":
            return self.group()
        if one == "[":
            return self.bracket()
        if one == "\\":
            return self.escape()
        if one in "*+?":
            raise self.wrong("something to repeat before it", "nothing to repeat")
        if one == "{" and self.ecma and self.bounds() is not None:
            raise self.wrong("something to repeat before it", "nothing to repeat", start)
        if one == "{" and not self.ecma and self.bounds() is not None:
            # Python takes a brace after nothing as itself only where it is no quantifier.
            raise self.wrong("something to repeat before it", "nothing to repeat", start)
        self.at = start + 1
        if one == ".":
            if "s" in self.flags:
                return ANY
            return Chars(charset.complement(charset.ECMA_LINE_END if self.ecma else ((10, 10),)))
        if one == "^":
            return union(START, Look(_NEWLINE, ahead=False)) if "m" in self.flags else START
        if one == "$":
            if self.ecma:
                return END
            if "m" in self.flags:
                return Look(union(_NEWLINE, END))
            return Look(concat(Repeat(_NEWLINE, 0, 1), END))
        if self.ecma and 0xD800 <= ord(one) <= 0xDFFF:
            raise self.wrong("no lone surrogate", at=start)
        return self.chars(charset.single(ord(one)))

    def group(self) -> Regex | None:
        start = self.at
        self.at += 1
        outer = self.flags
        make = None
        if self.take("?"):
            if self.take(":"):
                pass
            elif self.take("="):
                make = (True, False)
            elif self.take("!"):
                make = (True, True)
            elif self.take("<="):
                make = (False, False)
            elif self.take("<!"):
                make = (False, True)
            elif self.ecma and self.take("<"):
                self.group_name(">")
            elif self.ecma:
                if self.text[self.at : self.at + 1] in ("i", "m", "s", "-"):
                    raise self.unsupported("a group with flags is", start)
                raise self.wrong("one of : = ! <", "unknown kind of group")
            elif self.take("P<"):
                self.group_name(">")
            elif self.peek("P="):
                raise self.unsupported("a back-reference is", start)
            elif self.peek(">"):
                raise self.unsupported("an atomic group is", start)
            elif self.peek("("):
                raise self.unsupported("a conditional group is", start)
            elif self.take("#"):
                end = self.text.find(")", self.at)
                if end < 0:
                    raise self.wrong("a closing )", "missing ), unterminated comment", len(self.text))
                self.at = end + 1
                return None
            else:
                self.group_flags()
        inner = self.alternatives()
        if not self.take(")"):
            raise self.wrong("a closing ) for the ( at character " + str(start + 1), "missing ), unterminated group")
        self.flags = outer
        return inner if make is None else Look(inner, *make)

    def group_name(self, end: str) -> None:
        stop = self.text.find(end, self.at)
        if stop < 0 or not self.text[self.at : stop].replace("$", "_").isidentifier():
            raise self.wrong("a name and " + end, "bad group name")
        self.at = stop + 1

    def group_flags(self) -> None:
        """The letters of ``(?i-s:``."""
        start = self.at
        add, drop, into = set[str](), set[str](), 0
        while self.at < len(self.text) and self.text[self.at] in "aiLmsux-":
            one = self.text[self.at]
            if one == "-":
                into += 1
            elif one == "L":
                raise self.unsupported("the flag L is", self.at)
            else:
                (drop if into else add).add(one)
            self.at += 1
        if self.peek(")") and add and not into:
            raise self.wrong(": (flags for the whole stand at its start)", "global flags not at the start")
        if into > 1 or (into and not drop) or drop & set("au") or add & drop or {"a", "u"} <= add or not self.peek(":"):
            raise self.wrong("one of : = ! <= <! P< # or flags and :", "unknown kind of group")
        if self.at == start:
            raise self.wrong("flags", "unknown kind of group")
        if "u" in add:
            drop.add("a")
        self.at += 1
        self.flags = (self.flags | add) - drop

    # -- escapes ---------------------------------------------------------------------------------------------------

    def escape(self) -> Regex:
        """An escape outside of brackets."""
        start = self.at
        one = self.text[start + 1 : start + 2]
        if one in ("b", "B"):
            self.at += 2
            return WordBoundary(one == "B", self.ecma or "a" in self.flags)
        if not self.ecma and one == "A":
            self.at += 2
            return START
        if not self.ecma and one == "Z":
            self.at += 2
            return END
        if one and one in "123456789":
            if not self.ecma and self.text[start + 1 : start + 4].isdigit() and one in "123":
                digits = self.text[start + 1 : start + 4]
                if len(digits) == 3 and all(d in "01234567" for d in digits):
                    self.at += 4
                    return self.chars(charset.single(int(digits, 8)))
            raise self.unsupported("a back-reference is", start)
        if one == "k" and self.ecma and self.text.startswith("<", start + 2):
            raise self.unsupported("a back-reference is", start)
        found = self.escaped()
        if isinstance(found, int):
            return self.chars(charset.single(found))
        return Chars(found)

    def escaped(self) -> int | Ranges:
        """An escape that may stand in brackets too: a code point, or the set of a class."""
        start = self.at
        if start + 1 >= len(self.text):
            raise self.wrong("a character after the backslash", "bad escape at the end", len(self.text))
        one = self.text[start + 1]
        self.at = start + 2
        if one in "dDsSwW":
            ranges = self.shorthand(one.lower())
            if "i" in self.flags:
                ranges = charset.ignore_case(ranges)
            return charset.complement(ranges) if one.isupper() else ranges
        control = (_ECMA_CONTROL if self.ecma else _PYTHON_CONTROL).get(one)
        if control is not None:
            return control
        return self.ecma_escape(one, start) if self.ecma else self.python_escape(one, start)

    def shorthand(self, letter: str) -> Ranges:
        if self.ecma:
            return {"d": charset.ASCII_DIGIT, "s": charset.ECMA_SPACE, "w": charset.ASCII_WORD}[letter]
        if "a" in self.flags:
            return {"d": charset.ASCII_DIGIT, "s": charset.ASCII_SPACE, "w": charset.ASCII_WORD}[letter]
        if letter == "d":
            return charset.python_digit()
        return charset.python_space() if letter == "s" else charset.python_word()

    def hexadecimal(self, count: int, start: int) -> int:
        digits = self.text[self.at : self.at + count]
        if len(digits) < count or not _HEX.issuperset(digits):
            raise self.wrong(f"{count} hexadecimal digits after it", "incomplete escape", start)
        self.at += count
        return int(digits, 16)

    def python_escape(self, one: str, start: int) -> int:
        if one == "x":
            return self.hexadecimal(2, start)
        if one == "u":
            return self.hexadecimal(4, start)
        if one == "U":
            code = self.hexadecimal(8, start)
            if code > charset.LAST:
                raise self.wrong("a code point up to 10FFFF", "bad escape", start)
            return code
        if one == "N":
            raise self.unsupported("a character name is", start)
        if one in "01234567":
            end = start + 1
            while end < min(len(self.text), start + 4) and self.text[end] in "01234567":
                end += 1
            self.at = end
            code = int(self.text[start + 1 : end], 8)
            if code > 0o377:
                raise self.wrong("an octal escape up to 377", "bad escape", start)
            return code
        if one.isascii() and one.isalnum():
            raise self.wrong("a known escape", f"bad escape \\{one}", start)
        return ord(one)

    def ecma_escape(self, one: str, start: int) -> int | Ranges:
        if one == "x" and _HEX.issuperset(self.text[self.at : self.at + 2]) and self.at + 2 <= len(self.text):
            return self.hexadecimal(2, start)
        if one == "u":
            if self.take("{"):
                end = self.text.find("}", self.at)
                digits = self.text[self.at : end] if end > self.at else ""
                if not digits or not _HEX.issuperset(digits) or int(digits, 16) > charset.LAST:
                    raise self.wrong("hexadecimal digits up to 10FFFF and }", "bad escape", start)
                self.at = end + 1
                return int(digits, 16)
            if len(self.text) < self.at + 4 or not _HEX.issuperset(self.text[self.at : self.at + 4]):
                return ord(one)
            code = self.hexadecimal(4, start)
            low = self.text[self.at : self.at + 6]
            if 0xD800 <= code < 0xDC00 and low[:2] == "\\u" and len(low) == 6 and _HEX.issuperset(low[2:]):
                second = int(low[2:], 16)
                if 0xDC00 <= second < 0xE000:
                    self.at += 6
                    return 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00)
            return code
        if one == "c":
            letter = self.text[self.at : self.at + 1]
            if letter.isascii() and letter.isalpha():
                self.at += 1
                return ord(letter) & 31
            raise self.wrong("a letter after \\c", "bad escape", start)
        if one in "pP":
            return self.property(one, start)
        if one == "0":
            if self.text[self.at : self.at + 1].isdigit():
                raise self.unsupported("an octal escape is", start)
            return 0
        if one.isdigit():
            raise self.unsupported("an octal escape is", start)
        return ord(one)

    def property(self, one: str, start: int) -> Ranges:
        end = self.text.find("}", self.at)
        if not self.peek("{") or end < 0:
            raise self.wrong("{name} after it", "bad escape", start)
        name, equals, value = self.text[self.at + 1 : end].partition("=")
        ranges = charset.named_property(name, value if equals else None)
        if ranges is None:
            raise self.unsupported(f"the property {self.text[self.at + 1 : end]!r} is", start)
        self.at = end + 1
        return charset.complement(ranges) if one == "P" else ranges

    # -- classes ---------------------------------------------------------------------------------------------------

    def bracket(self) -> Regex:
        start = self.at
        self.at += 1
        negative = self.take("^")
        found: list[tuple[int, int]] = []
        first = True
        while True:
            if self.at >= len(self.text):
                raise self.wrong(f"a closing ] for the [ at character {start + 1}", "unterminated character set")
            if self.peek("]") and (self.ecma or not first):
                self.at += 1
                break
            first = False
            at = self.at
            low = self.class_item()
            if not (self.peek("-") and not self.text.startswith("]", self.at + 1) and self.at + 1 < len(self.text)):
                found.extend([(low, low)] if isinstance(low, int) else low)
                continue
            dash = self.at
            self.at += 1
            high = self.class_item()
            if isinstance(low, int) and isinstance(high, int):
                if high < low:
                    raise self.wrong("a range in ascending order", "bad character range", at)
                found.append((low, high))
            elif self.ecma:  # as without u: the dash is itself
                for part in (low, dash, high):
                    found.extend([(0x2D, 0x2D)] if part is dash else [(part, part)] if isinstance(part, int) else part)
            else:
                raise self.wrong("a character at both ends of a range", "bad character range", at)
        ranges = charset.normal(found)
        if "i" in self.flags:
            ranges = charset.ignore_case(ranges)
        return Chars(charset.complement(ranges) if negative else ranges)

    def class_item(self) -> int | Ranges:
        if not self.peek("\\"):
            self.at += 1
            return ord(self.text[self.at - 1])
        if self.text.startswith("b", self.at + 1):
            self.at += 2
            return 8
        if self.ecma and self.text.startswith("-", self.at + 1):
            self.at += 2
            return 0x2D
        return self.escaped()


# -- printing ------------------------------------------------------------------------------------------------------

_PLAIN = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_ ,:;<>=!@%'`")
_NAMED = {10: "\\n", 13: "\\r", 9: "\\t"}


def _char_text(code: int) -> str:
    one = chr(code)
    if one in _PLAIN:
        return one
    if code in _NAMED:
        return _NAMED[code]
    if 0x20 < code < 0x7F:
        # Lark drops one of two backslashes before a quote, so a quote is never written as itself.
        return "\\x22" if one == '"' else "\\" + one
    if code > 0x7F and one.isprintable():
        return one
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _chars_text(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char_text(ranges[0][0])
    if len(ranges) > 50:
        for name, table in (("\\w", charset.python_word()), ("\\d", charset.python_digit())):
            if ranges == table:
                return name
            if ranges == charset.complement(table):
                return name.upper()
    inverse = charset.complement(ranges)
    negative = len(inverse) < len(ranges) and bool(inverse)
    shown = list(inverse if negative else ranges)
    if not shown:
        return "[^\\x00-\\U0010ffff]"
    out: list[str] = []
    for n, (low, high) in enumerate(shown):
        if low == 0xE000 and n and shown[n - 1][1] == 0xD7FF:
            continue
        if high == 0xD7FF and n + 1 < len(shown) and shown[n + 1][0] == 0xE000:
            high = shown[n + 1][1]
        dash = "-" if high > low + 1 else ""
        out.append(_char_text(low) + ((dash + _char_text(high)) if high > low else ""))
    return f"[{'^' if negative else ''}{''.join(out)}]"


def to_text(regex: Regex) -> str:
    """The expression in Python's ``re`` syntax, for use between the slashes of a Lark terminal.

    Every slash, quote, line end and unprintable is escaped so that Lark's own unescaping leaves it alone. Look-behinds
    of varying width are written, though Python's ``re`` (and Lark, which asks it) would refuse them.
    """
    text = _text(regex)
    return text or "(?:)"


def _text(regex: Regex) -> str:
    if type(regex) is Chars:
        return _chars_text(regex.ranges)
    if type(regex) is Concat:
        return "".join(f"(?:{_text(item)})" if type(item) in (Union, Concat) else _text(item) for item in regex.items)
    if type(regex) is Union:
        return "|".join(f"(?:{_text(o)})" if type(o) is Union else _text(o) for o in regex.options)
    if type(regex) is Repeat:
        low, high = regex.low, regex.high
        count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
        if count is None:
            count = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
        inner = _text(regex.item)
        return (inner if type(regex.item) is Chars else f"(?:{inner})") + count + ("?" if regex.lazy else "")
    if type(regex) is Look:
        return f"(?{'' if regex.ahead else '<'}{'!' if regex.negative else '='}{_text(regex.item)})"
    if type(regex) is Start:
        return "\\A"
    if type(regex) is End:
        return "\\Z"
    assert type(regex) is WordBoundary
    shown = "\\B" if regex.negative else "\\b"
    return f"(?a:{shown})" if regex.ascii else shown
