"""Strings between marks, or between none, as expressions: every string outside of JSON.

Leaves out   strings of JSON (scalar_rules.py), what the marks are (encoding.py).
Invariants   the terminal holds what stands between the marks; it never matches the empty text, which is made optional
             around it; a string that cannot be written is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..ir.nodes import EMPTY, Expr, choice, optional, repeated, sequence, string
from ..regex import ANY, END, Look, Regex, charset, concat, literal, parse_regex, repeat, to_text, union
from .atoms import Matches
from .encoding import Quote, is_name
from .formats import FORMATS
from .patterns import content, searcher
from .rules import Rules
from .shapes import Strings


def quoted_string(writer: Rules, shape: Strings, hint: str) -> Expr:
    """A string in each of the encoding's quotes, as alternatives."""
    options = [between(quote, string_inside(writer, quote, shape, hint)) for quote in writer.encoding.quotes]
    return choice(*[option for option in options if option is not None] or [writer.nothing()])


def quoted_constants(writer: Rules, texts: Sequence[str], hint: str) -> Expr:
    """One of some strings in each of the encoding's quotes."""
    writer.restrictions.add("minimal-escapes")
    options = [between(quote, constants_inside(writer, quote, texts, hint)) for quote in writer.encoding.quotes]
    return choice(*[option for option in options if option is not None] or [writer.nothing()])


def between(quote: Quote, inside: Expr | None) -> Expr | None:
    """A string with its marks; None where there is none."""
    return None if inside is None else sequence(quote.mark, inside, quote.mark)


def raw_key(writer: Rules, quote: Quote, options: Iterable[Strings | tuple[str, ...]], hint: str) -> Expr | None:
    """An undeclared key between its marks: of any of some shapes, or one of some texts; empty only between marks."""
    found: list[Expr] = []
    least = 1 if quote.mark == EMPTY else 0
    for option in options:
        if isinstance(option, Strings):
            low = Strings(max(least, option.low), option.high, option.patterns, option.excluded)
            inside = string_inside(writer, quote, low, hint, ())
        else:
            inside = constants_inside(writer, quote, [text for text in option if len(text) >= least], hint)
        if inside is not None:
            found.append(sequence(quote.mark, inside, quote.mark))
    return choice(*found) if found else None


def given_name(writer: Rules, name: str) -> Expr | None:
    """A declared name, bare; None where it cannot be written."""
    if is_name(name):
        return string(name)
    writer.restrictions.add("writable")
    return None


def constants_inside(writer: Rules, quote: Quote, texts: Sequence[str], hint: str) -> Expr | None:
    """One of some strings, as they stand between the marks; None where none of them can be written."""
    spelled = [quote.spelling.spell(text) for text in texts]
    kept = [text for text in spelled if text is not None and _may_stand(quote, text)]
    if len(kept) < len(texts):
        writer.restrictions.add("writable")
    if not kept:
        return None
    some = [text for text in kept if text]
    if not some:
        return EMPTY
    term = writer.terminal(union(*map(literal, some)), hint)
    return term if len(some) == len(kept) else optional(term)


def string_inside(writer: Rules, quote: Quote, shape: Strings, hint: str, unlike: Sequence[str] = ()) -> Expr | None:
    """What stands between the marks: a terminal, perhaps optional; None where no string can be written.

    Args:
        unlike: expressions that the whole string must not match.
    """
    spelling = quote.spelling
    never = [] if quote.never is None else [concat(quote.never, END)]
    if not (shape.patterns or shape.excluded or unlike or quote.keep_out) and quote.free is not None:
        if not never:
            return repeated(writer.terminal(quote.free, "CHAR"), shape.low, shape.high)
        return _terminal(writer, [Look(never[0], negative=True)], quote.free, shape, hint)
    if spelling.escapes:
        writer.restrictions.add("minimal-escapes")
    for match in shape.patterns:
        if match.format and FORMATS[match.format].narrowed:
            writer.restrictions.add("formats")
    if quote.keep_out or charset.complement(spelling.raw):
        writer.restrictions.add("writable")
    whole = [content(f"^(?:{one})$", "", True, spelling) if spelling.escapes else parse_regex(one) for one in unlike]
    refused = [text for text in map(spelling.spell, shape.excluded) if text]
    if refused:
        whole.append(union(*map(literal, refused)))
    never += [concat(repeat(ANY, 0, None), union(*map(literal, quote.keep_out)))] if quote.keep_out else []
    never += [concat(union(*whole), END)] if whole else []
    never += [content(one.pattern, one.place, True, spelling) for one in shape.patterns if not one.positive]
    wanted = [content(one.pattern, one.place, True, spelling) for one in shape.patterns if one.positive]
    heads = [*map(Look, wanted), *([Look(union(*never), negative=True)] if never else [])]
    return _terminal(writer, heads, spelling.character(charset.ALL), shape, hint)


def _terminal(writer: Rules, heads: list[Look], unit: Regex, shape: Strings, hint: str) -> Expr | None:
    """So many units as a shape has characters, after conditions on the whole text."""
    if shape.high == 0:
        return EMPTY if _allows_empty(shape) else None
    term = writer.terminal(concat(*heads, repeat(unit, max(1, shape.low), shape.high)), hint)
    return optional(term) if _allows_empty(shape) else term


def _may_stand(quote: Quote, text: str) -> bool:
    """Whether the text of a string is one that stands between the marks."""
    return not any(stop in text for stop in quote.keep_out) and (
        quote.never is None or not re.fullmatch(to_text(quote.never), text)
    )


def _allows_empty(shape: Strings) -> bool:
    return shape.low == 0 and "" not in shape.excluded and all(_holds(match) for match in shape.patterns)


def _holds(match: Matches) -> bool:
    return searcher(match.pattern, match.place)("") == match.positive
