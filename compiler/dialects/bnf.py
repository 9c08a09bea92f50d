"""Read rules of the form ``name ::= body``, and write them as Lark text: what GBNF and XGrammar's EBNF have in common.

Leaves out   what one of them has alone (gbnf.py, ebnf.py).
Invariants   each rule of the text becomes one rule of Lark, in the same line where the text has no more than one there;
             the root becomes ``start``; other names keep their letters, in lower case, and clash with none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, NoReturn

from .. import regex as rx
from ..budget import look
from ..errors import UnsupportedError
from ..grammar.faults import MOST_NESTED, Source
from ..ir.nodes import EMPTY, Choice, Expr, Ref, Terminal, Use, choice, matched, repeated, sequence, string
from ..ir.printer import text_of
from ..regex import charset

TOKEN = "_token"
"""The template of grammars/protocol.lark that names a special token."""

_HEX = re.compile("[0-9a-fA-F]*")
_DIGITS = re.compile("[0-9]+")
_TIMES: Mapping[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class BnfReader:
    """Recursive descent over one text; ``at`` is the next character, ``depth`` how many groups are open.

    Attributes:
        NAME: what names of rules look like.
        ESCAPES: what may follow a backslash → the character.
        IN_CLASSES: further ones in a class of characters.
        STACKED: whether a quantifier may follow another.
        LINE_ENDS: characters that no string or class holds as they are.
    """

    NAME: ClassVar[re.Pattern[str]]
    ESCAPES: ClassVar[Mapping[str, str]]
    IN_CLASSES: ClassVar[Mapping[str, str]] = {}
    STACKED: ClassVar[bool] = False
    LINE_ENDS: ClassVar[str] = "\r\n"
    ROOT = "root"

    def __init__(self, text: str, name: str) -> None:
        self.text, self.source = text, Source(text, name)
        self.at = self.depth = 0
        self.bodies: dict[str, tuple[int, Expr]] = {}
        self.used: dict[str, int] = {}
        self.names = {self.ROOT: "start"}

    # -- what the languages say in their own ways

    def skip(self, lines: bool) -> None:
        """Go over blanks and comments; with ``lines`` over line ends."""
        raise NotImplementedError

    def atom(self) -> Expr | None:
        """What only this language has; None: something else stands here."""
        raise NotImplementedError

    def attributes(self) -> None:
        """What may stand between the name of a rule and ``::=``."""

    def ends(self) -> bool:
        """Whether the body of a rule ends here, though what follows could go on with it."""
        return False

    def end_of_rule(self) -> None:
        """What stands behind the body of a rule."""

    # -- errors and characters

    def wrong(
        self, expected: str, message: str = "malformed grammar", at: int | None = None, hint: str = ""
    ) -> NoReturn:
        """The error for what stands at ``at``."""
        at = self.at if at is None else at
        found = repr(self.text[at]) if at < len(self.text) else "the end of the text"
        raise self.source.error(message, *self.source.line_of(at), found=found, expected=expected, hint=hint)

    def unsupported(self, what: str, at: int, hint: str) -> NoReturn:
        """The error for what is understood and refused."""
        error = self.source.error(f"{what} is not supported", *self.source.line_of(at), hint=hint)
        raise UnsupportedError(error.message, place=error.place, hint=error.hint)

    def next_is(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str, expected: str) -> None:
        if not self.next_is(text):
            self.wrong(expected)
        self.at += len(text)

    def name(self) -> str:
        found = self.NAME.match(self.text, self.at)
        if found is None:
            self.wrong("the name of a rule", hint="before an alternative | ends the line, or ( is open")
        self.at = found.end()
        return found[0]

    def character(self, escapes: Mapping[str, str]) -> str:
        """One character of a string or class, which may be escaped."""
        begin = self.at
        if begin >= len(self.text):
            self.wrong("the end of this string or class")
        self.at += 1
        if self.text[begin] != "\\":
            return self.text[begin]
        kind = self.text[self.at : self.at + 1]
        self.at += 1
        if kind in escapes:
            return escapes[kind]
        if kind not in ("x", "u", "U"):
            self.wrong("one of " + " ".join([*escapes, "x", "u", "U"]), "no escape of this language", begin + 1)
        return self.coded(kind, begin)

    def coded(self, kind: str, begin: int) -> str:
        """The character of an escape in hexadecimal digits."""
        width = {"x": 2, "u": 4, "U": 8}[kind]
        digits = self.hexadecimal(kind, width)
        code = int(digits, 16) if digits else -1
        if code < 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.wrong(f"{width} hexadecimal digits of a character", "no character", begin)
        return chr(code)

    def hexadecimal(self, kind: str, width: int) -> str:
        """The digits of an escape; none where there are too few."""
        found = _HEX.match(self.text, self.at)
        digits = found[0][:width] if found else ""
        self.at += len(digits)
        return digits if len(digits) == width else ""

    # -- rules

    def lark(self) -> str:
        """The Lark text of the whole."""
        self.skip(True)
        while self.at < len(self.text):
            look()
            self.rule()
        if self.ROOT not in self.bodies:
            raise self.source.error(f"there is no rule {self.ROOT} to start from", found=", ".join([*self.bodies][:8]))
        for name, at in self.used.items():
            if name not in self.bodies:
                raise self.source.error(f"there is no rule {name}", *self.source.line_of(at))
        return self.written()

    def rule(self) -> None:
        begin = self.at
        name = self.name()
        if name in self.bodies:
            raise self.source.error(f"the rule {name} is defined twice", *self.source.line_of(begin))
        self.attributes()
        self.skip(False)
        self.take("::=", "::=")
        self.skip(True)
        self.bodies[name] = self.source.line_of(begin)[0], self.alternatives(nested=False)
        self.lark_name(name)
        self.end_of_rule()
        self.skip(True)

    def lark_name(self, name: str) -> str:
        """What a rule is called in Lark."""
        found = self.names.get(name)
        if found is None:
            plain = re.sub(r"[^a-z0-9]", "_", name.lower())
            plain = plain if plain[0].isalpha() else f"r{plain}"
            taken, found, count = set(self.names.values()), plain, 1
            while found in taken:
                count += 1
                found = f"{plain}_{count}"
            self.names[name] = found
        return found

    def written(self) -> str:
        lines: list[str] = []
        for name, (line, body) in self.bodies.items():
            lines += [""] * (line - 1 - len(lines))
            lines.append(f"{self.lark_name(name)}: {text_of(body)}".rstrip())
        if any(TOKEN in line for line in lines):
            lines.append(f"%import protocol ({TOKEN})")
        return "\n".join(lines) + "\n"

    def alternatives(self, nested: bool) -> Expr:
        options = [self.items(nested)]
        while self.next_is("|"):
            look()
            self.at += 1
            self.skip(True)
            options.append(self.items(nested))
        found = choice(*options)
        if isinstance(found, Choice) and EMPTY in found.options:  # which Lark writes last
            found = choice(*(one for one in found.options if one != EMPTY), EMPTY)
        return found

    def items(self, nested: bool) -> Expr:
        """A sequence, which may be empty."""
        found: list[Expr] = []
        while not self.ends():
            look()
            item = self.item()
            if item is None:
                break
            self.skip(nested)
            found.append(self.quantified(item, nested))
        return sequence(*found)

    def quantified(self, item: Expr, nested: bool) -> Expr:
        """What stands before quantifiers, with them."""
        while True:
            sign = self.text[self.at : self.at + 1]
            if sign == "{":
                item = repeated(item, *self.bounds())
            elif sign in _TIMES:
                self.at += 1
                item = repeated(item, *_TIMES[sign])
            else:
                return item
            self.skip(nested)
            if not self.STACKED:
                return item

    def bounds(self) -> tuple[int, int | None]:
        """Of ``{3}``, ``{3,}`` or ``{3,5}``."""
        begin = self.at
        self.at += 1
        low = self.number()
        high: int | None = low
        if self.next_is(","):
            self.at += 1
            self.skip(False)
            high = None if self.next_is("}") else self.number()
        self.take("}", "} or ,")
        if high is not None and not low <= high < rx.MOST_TIMES:
            self.wrong("{least,most}, in this order and below 2**29", at=begin)
        return low, high

    def number(self) -> int:
        self.skip(False)
        found = _DIGITS.match(self.text, self.at)
        if found is None or len(found[0]) > 9:
            self.wrong("a number of at most nine digits")
        self.at = found.end()
        self.skip(False)
        return int(found[0])

    def item(self) -> Expr | None:
        """One item without its quantifier; None where there is none."""
        if self.next_is('"'):
            return self.literal()
        if self.next_is("["):
            return self.character_class()
        own = self.atom()
        if own is not None:
            return own
        if self.next_is("("):
            return self.group()
        begin = self.at
        if self.NAME.match(self.text, begin) is None:
            return None
        name = self.name()
        self.used.setdefault(name, begin)
        return Ref(self.lark_name(name))

    def group(self) -> Expr:
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.wrong(f"at most {MOST_NESTED} groups in each other")
        self.at += 1
        self.skip(True)
        found = self.alternatives(nested=True)
        self.take(")", "an item, | or )")
        self.depth -= 1
        return found

    def literal(self) -> Expr:
        return string(self.quoted())

    def quoted(self) -> str:
        """The text of a string in quotes."""
        begin, out = self.at, []
        self.at += 1
        while not self.next_is('"'):
            if self.at >= len(self.text) or self.text[self.at] in self.LINE_ENDS:
                self.wrong('"', "a string without an end", begin)
            out.append(self.character(self.ESCAPES))
        self.at += 1
        return "".join(out)

    def character_class(self) -> Expr:
        begin, ranges = self.at, []
        self.at += 1
        negative = self.next_is("^")
        self.at += negative
        while not self.next_is("]"):
            look()
            if self.at >= len(self.text) or self.text[self.at] in self.LINE_ENDS:
                self.wrong("]", "a class of characters without an end", begin)
            at, low = self.at, self.class_character()
            high = low
            if self.next_is("-") and not self.next_is("-]"):
                self.at += 1
                high = self.class_character()
            if high < low:
                self.wrong("a range in ascending order", at=at)
            ranges.append((ord(low), ord(high)))
        self.at += 1
        if not ranges and not negative:
            self.wrong("a character", "a class of no characters", begin)
        found = charset.normal(ranges)
        return Terminal(rx.Chars(charset.complement(found) if negative else found))

    def class_character(self) -> str:
        return self.character({**self.ESCAPES, **self.IN_CLASSES})


def special_token(content: str) -> Expr:
    """The token with this content, as grammars/protocol.lark names it."""
    return Use(TOKEN, (matched(rx.literal(content)),))
