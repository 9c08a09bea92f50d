"""Text → nodes: a parser for two dialects of regular expressions.

Leaves out   what the nodes mean (nodes.py), sets of code points (charset.py).
Invariants   ``parse_regex(to_text(r)) == r`` for every r in normal form.
Dialects     "python": Python's ``re`` on str (what Lark terminals use), flags a i m s u x.
             "ecma": ECMA-262 2025 with the u flag (JSON Schema patterns), flags i m s u, also for a group,
             ``(?i-s:…)``; identity escapes of what is no letter and lone brackets are tolerated as without u: letters
             and ``[[:alpha:]]`` mean something in other dialects. ``(?i)`` where a pattern begins, which ECMA-262 does
             not have, is read as other dialects do: the flags of the whole.
References   a back-reference is regular where its group has few texts: what follows the group in its alternative is
             read once for each, with the text in place of the reference. In all other places it is refused.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ..budget import look
from ..errors import GrammarError, UnsupportedError
from . import charset
from .charset import Ranges
from .few_texts import few_texts
from .nodes import (
    ANY,
    END,
    MOST_TIMES,
    START,
    Chars,
    End,
    Look,
    Regex,
    Repeat,
    Start,
    WordBoundary,
    character,
    concat,
    literal,
    repeat,
    union,
)

_NEWLINE = Chars(((10, 10),))

MOST_NESTED = {"ecma": 40, "python": 60}
"""How deep groups may nest. A level takes five frames here and up to seven in what makes an automaton of the nodes, and
the caller has used some of the thousand that Python allows. Patterns, which are ECMA-262's, become Python expressions
that nest a little deeper."""


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
_ELSEWHERE = {"A": "^", "Z": "$", "z": "$", "h": "[ \\t]", "R": r"\r?\n", "e": r"\x1b", "a": r"\x07"}
"""What is written in ECMA-262 for escapes of other dialects."""

_POSIX = re.compile(r"\[:\^?[a-z]+:\]")

_REPEATED = "write each text that may come again with what repeats it, as aXa|bXb for ([ab])X\\1"
"""What to write in place of a back-reference."""

_REFERENCE = re.compile(r"\\([1-9][0-9]*|k<[^>]*>)|\(\?P=([^)]*)\)|\\.", re.DOTALL)
"""What may be a back-reference, by number or name; or another escape."""

_CAPTURES = re.compile(r"\((?:(?!\?)|\?P?<(?![=!])([^>]*)>)")
"""The beginning of a group that is numbered."""

_NUMBER = re.compile(r"[0-9]+")
_SHORT_NUMBER = re.compile(r"[0-9]{1,2}")

MOST_TEXTS = 256
"""Texts of a group that a back-reference repeats."""

MOST_COPIES = 4096
"""How often what follows such groups is read, in one expression."""

MOST_COPIED = 1 << 18
"""Characters of these copies, in one expression."""

_HEX = frozenset("0123456789abcdefABCDEF")

_RUN = re.compile(r"[A-Za-z0-9_ !\"%&',/:;<=>@`~-]+(?![*+?{])")
"""Characters that stand for themselves, up to one that may be repeated."""

_WORD = _RUN.pattern.partition("+")[0] + "*"
_WORDS = re.compile(rf"{_WORD}(?:\|{_WORD})+(?=\)|\Z)")
"""Alternatives that are texts of such characters, to the end of their group."""

_CLASS = re.compile(r"\[[^]\\^][^]\\]*\]")
"""A class that ends where it seems to."""

_MOST_KEPT = 4096
_LONGEST_KEPT = 256

_kept: dict[tuple[str, frozenset[str], bool, bool], tuple[Regex | None, int, int]] = {}
"""What is left of a text, flags, whether it is ECMA's and lazy → the group or class that it begins with, its length,
how deep groups nest in it: many texts end alike."""

_kept_classes: dict[tuple[str, frozenset[str], bool], Regex] = {}
"""A class, flags, whether it is ECMA's → what it is."""


class _Parser:
    """Recursive descent over one text; ``at`` is the next character, ``flags`` those of the group being read, which is
    ``depth`` groups deep, where ``deepest`` is the most since that was set."""

    def __init__(self, text: str, flags: str, dialect: str, lazy: bool) -> None:
        if dialect not in ("python", "ecma"):
            raise ValueError(f"dialect is {dialect!r}, expected 'python' or 'ecma'")
        self.text = text
        self.at = 0
        self.lazy = lazy
        self.ecma = dialect == "ecma"
        self.depth = self.deepest = 0
        self.most = MOST_NESTED[dialect]
        self.flags = frozenset(flags)
        found = () if lazy else _REFERENCE.findall(text)
        found = [(number, name) for number, name in found if number or name]
        self.referred = frozenset(number.removeprefix("k<").removesuffix(">") or name for number, name in found)
        self.texts: dict[str, Regex] = {}  # number or name of a group → what it has matched here
        self.groups = self.copies = self.behind = 0  # opened; read for their texts; look-behinds around
        self.copied = self.followed = 0  # characters of these copies; groups that what is read follows
        unknown = self.flags - frozenset("imsu" if self.ecma else "aimsux")
        if unknown:
            raise UnsupportedError(
                f"the flag {min(unknown)!r} of a regular expression is not supported",
                place=f"/{self._short()[0]}/",
                hint="the flags known in this dialect are " + (" ".join("imsu" if self.ecma else "aimsux")),
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

    def unsupported(self, what: str, at: int, advice: str = "") -> UnsupportedError:
        """The error for a construct that is understood and refused."""
        self.at = at
        place, picture = self._place()
        return UnsupportedError(f"{what} not supported in a regular expression", place=place, hint=advice + picture)

    # -- reading ---------------------------------------------------------------------------------------------------

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def whole(self) -> Regex:
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
            if other := next((one for one in letters if one in "L" + ("ax" if self.ecma else "")), ""):
                raise self.unsupported(f"the flag {other} is", self.at)
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
        words = _WORDS.match(self.text, self.at) if self.flags.isdisjoint("ix") else None
        if words is not None:
            self.at = words.end()
            return union(*map(literal, words[0].split("|")))
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        return options[0] if len(options) == 1 else union(*options)

    def sequence(self) -> Regex:
        items: list[Regex] = []
        text, size = self.text, len(self.text)
        verbose = "x" in self.flags
        runs = not verbose and "i" not in self.flags
        while True:
            if verbose:
                self.skip_blanks()
            start = self.at
            if start >= size or text[start] in "|)":
                return concat(*items)
            run = _RUN.match(text, start) if runs else None
            if run is not None:
                items += map(character, run[0])
                self.at = run.end()
                continue
            number = self.groups + 1
            item = self.again() if text[start] in "([" else self.atom()
            if item is None:
                continue
            if verbose:
                self.skip_blanks()
            if self.referred and text[start] == "(":
                options = self.repeated(item, start, number)
                if options is not None:
                    return concat(*items, options)
            items.append(self.quantified(item, start))

    def repeated(self, item: Regex, start: int, number: int) -> Regex | None:
        """A group that back-references repeat, with what follows it in its alternative; None where it is none, or one
        that may have matched something else when it is referred to."""
        opens = _CAPTURES.match(self.text, start)
        if opens is None:
            return None
        names = {str(number), opens[1] or str(number)}
        quantifier = self.text[self.at : self.at + 1]
        texts = few_texts(item, MOST_TEXTS) if names & self.referred and not self.behind else None
        if not texts or (quantifier and quantifier in "*+?{"):
            return None
        self.copies += len(texts)
        self.copied += len(texts) * (len(self.text) - self.at)
        if self.copies > MOST_COPIES or self.copied > MOST_COPIED:
            raise self.unsupported("a back-reference to a group of so many texts is", start, _REPEATED)
        if self.followed + self.depth >= self.most:
            raise self.unsupported("a back-reference behind so many groups is", start, _REPEATED)
        self.followed += 1
        at, groups = self.at, self.groups
        options: list[Regex] = []
        for text in texts:
            look()
            self.at, self.groups = at, groups
            self.texts |= dict.fromkeys(names, text)
            options.append(concat(text, self.sequence()))
        self.followed -= 1
        for name in names:
            self.texts.pop(name, None)
        return union(*options)

    def reference(self, name: str, start: int) -> Regex:
        """What a back-reference matches, which ends at ``at``."""
        if name not in self.texts or "i" in self.flags:
            raise self.unsupported("a back-reference is", start, _REPEATED)
        return self.texts[name]

    def again(self) -> Regex | None:
        """A group or class, perhaps as it was read before: when so much was left, or by itself."""
        start = self.at
        alone = _CLASS.match(self.text, start)
        if alone is not None:
            return self.alone(alone)
        if len(self.text) - start > _LONGEST_KEPT or self.referred:
            return self.atom()
        key = self.text[start:], self.flags, self.ecma, self.lazy
        found = _kept.get(key)
        if found is None:
            outside, self.deepest = self.deepest, self.depth
            regex = self.atom()
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            found = _kept[key] = regex, self.at - start, self.deepest - self.depth
            self.deepest = max(outside, self.deepest)
        elif self.depth + found[2] > self.most:
            return self.atom()  # to find where that is
        self.at = start + found[1]
        self.deepest = max(self.deepest, self.depth + found[2])
        return found[0]

    def alone(self, match: re.Match[str]) -> Regex:
        """A class, perhaps as it was read before."""
        key = match[0], self.flags, self.ecma
        known = _kept_classes.get(key)
        if known is None:
            if len(_kept_classes) >= _MOST_KEPT:
                _kept_classes.clear()
            known = _kept_classes[key] = self.bracket()
        self.at = match.end()
        return known

    def quantified(self, item: Regex, start: int) -> Regex:
        at = self.at
        one = self.text[at : at + 1]
        if one == "" or one not in "*+?{":
            return item
        bounds = self.bounds()
        if bounds is None:
            return item
        group = self.text[start] == "("
        look = self.text.startswith(("(?=", "(?!", "(?<=", "(?<!"), start)
        if (self.ecma and look) or (not group and isinstance(item, (Start, End, WordBoundary, Look))):
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
        if least >= MOST_TIMES or (most is not None and most >= MOST_TIMES):
            raise self.wrong("a number below 2**29", "the repetition number is too large", at)
        if most is not None and most < least:
            raise self.wrong("bounds in ascending order", "min repeat greater than max repeat", at)
        self.at = end + 1
        return least, most

    def chars(self, ranges: Ranges) -> Chars:
        return Chars(self.folded(ranges))

    def folded(self, ranges: Ranges) -> Ranges:
        """A set with what the flag i takes for the same, where it holds."""
        if "i" not in self.flags:
            return ranges
        return charset.fold_case(ranges) if self.ecma else charset.ignore_case(ranges)

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
            line = Chars(charset.ECMA_LINE_END) if self.ecma else _NEWLINE
            return union(START, Look(line, ahead=False)) if "m" in self.flags else START
        if one == "$":
            if self.ecma:
                return union(END, Look(Chars(charset.ECMA_LINE_END))) if "m" in self.flags else END
            if "m" in self.flags:
                return Look(union(_NEWLINE, END))
            return Look(concat(Repeat(_NEWLINE, 0, 1), END))
        if self.ecma and 0xD800 <= ord(one) <= 0xDFFF:
            raise self.wrong("no lone surrogate", at=start)
        return self.chars(charset.single(ord(one))) if "i" in self.flags else character(one)

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
                self.groups += 1
            elif self.ecma:
                self.modifiers(start)
            elif self.take("P<"):
                self.group_name(">")
                self.groups += 1
            elif self.take("P="):
                self.group_name(")")
                return self.reference(self.text[start + 4 : self.at - 1], start)
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
        else:
            self.groups += 1
        if self.depth == self.most:
            self.at = start
            place, picture = self._place()
            kind = UnsupportedError if self.ecma else GrammarError
            raise kind(f"groups nest more than {self.most} deep in a regular expression", place=place, hint=picture)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        behind = make is not None and not make[0]
        self.behind += behind
        inner = self.alternatives()
        self.behind -= behind
        self.depth -= 1
        if not self.take(")"):
            raise self.wrong("a closing ) for the ( at character " + str(start + 1), "missing ), unterminated group")
        self.flags = outer
        return inner if make is None else Look(inner, *make)

    def group_name(self, end: str) -> None:
        stop = self.text.find(end, self.at)
        if stop < 0 or not self.text[self.at : stop].replace("$", "_").isidentifier():
            raise self.wrong("a name and " + end, "bad group name")
        self.at = stop + 1

    def modifiers(self, start: int) -> None:
        """The letters of ``(?i-s:`` as ECMA-262 has them."""
        end = self.at
        while self.text[end : end + 1] and self.text[end] in "ims-":
            end += 1
        add, _, drop = self.text[self.at : end].partition("-")
        if end > self.at and self.text.startswith(")", end):
            raise self.unsupported("a flag for the rest of a group is", start, "write (?i:…) around what it is for")
        plain = "-" not in drop and len(set(add + drop)) == len(add + drop) and (add or drop)
        if not plain or not self.text.startswith(":", end):
            raise self.wrong("one of : = ! < or flags and :", "unknown kind of group")
        self.at = end + 1
        self.flags = (self.flags | set(add)) - set(drop)

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
            if self.ecma and "i" in self.flags:  # two letters beyond ASCII belong to words there
                raise self.unsupported("a word boundary where case is ignored is", start)
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
            found = _NUMBER.match(self.text, start + 1) if self.ecma else _SHORT_NUMBER.match(self.text, start + 1)
            assert found is not None
            self.at = found.end()
            return self.reference(found[0], start)
        if one == "k" and self.ecma and self.text.startswith("<", start + 2):
            self.at = start + 3
            self.group_name(">")
            return self.reference(self.text[start + 3 : self.at - 1], start)
        escaped = self.escaped()
        if isinstance(escaped, int):
            return self.chars(charset.single(escaped))
        return self.chars(escaped) if self.ecma else Chars(escaped)

    def escaped(self) -> int | Ranges:
        """An escape that may stand in brackets too: a code point, or the set of a class."""
        start = self.at
        if start + 1 >= len(self.text):
            raise self.wrong("a character after the backslash", "bad escape at the end", len(self.text))
        one = self.text[start + 1]
        self.at = start + 2
        if one in "dDsSwW":
            ranges = self.folded(self.shorthand(one.lower()))
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
        if one == "x":
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
                raise self.wrong("4 hexadecimal digits after it", "incomplete escape", start)
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
        if one.isascii() and one.isalpha():
            other = _ELSEWHERE.get(one)
            advice = "ECMA-262 knows no such escape" + (f": write {other}" if other else "")
            if (one == "A" and start == 0) or (one in "Zz" and self.at == len(self.text)):
                advice += "; --repair reads it so in a spec"
            raise self.unsupported(f"the escape \\{one} is", start, advice)
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
            if self.ecma and _POSIX.match(self.text, at):
                raise self.unsupported("a class of POSIX is", at, r"write its characters, or \d, \w, \s or \p{…}")
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
        ranges = self.folded(charset.normal(found))
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
