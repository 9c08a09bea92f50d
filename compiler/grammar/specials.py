"""Delimiters that are tokens or text, and free text between them: what a protocol says, what a tokenizer makes of it.

A protocol writes them as uses of the templates of grammars/protocol.lark, so that its text stays Lark. reader.py turns
each use into a Special or a Text; ``resolve_specials`` settles them once the tokenizer is known:

    _tag{"<x>"}         the token whose content is <x>, or the text <x> where the tokenizer has no such token
    _token{"<x>"}       the token; an error where the tokenizer has none
    _end{"<x>"}         the same as _tag, but nothing where <x> ends a turn by itself in this tokenizer
    _words{"a<x>b"}     text in which the tokenizer's tokens are tokens
    _inner_words{…}     the same, and no text at all where one of these tokens ends the turn
    _last_words{…}      the same at the end of a turn, where a token that ends the turn by itself is left out;
    _last_token{…}      such a token
    _text{STOP}         any text in which none of STOP occurs
    _last_text{STOP}    the same, at the end of a turn: it may not end in the beginning of one of STOP
    _text_before{"x", STOP}  a _text{STOP} that x follows: the two have no string of STOP before the end of x
    _other_text{FIRST}  any text that does not begin, after blanks, with one of FIRST, nor is the beginning of one
    _prose{FIRST, STOP} what is both an _other_text{FIRST} and a _last_text{STOP}
    _indented{/\n(?:  )*/}  a new line, and as many times two blanks as brackets with lines are open (indentation.py)

A declared terminal (``%declare``) is the one special token that has its words: TOOL_CALL is <tool_call>, [TOOL_CALL] or
<|tool_call|>, END_TOOL_CALL is </tool_call>. An error where a tokenizer has none, or several.

STOP and FIRST are strings and regular expressions: one, or a terminal that lists several. A string that is a token is
kept out, too: spelled by other tokens it would look the same to a parser that reads text. Of a token there is no half,
and of what a regular expression matches none is known.

Leaves out   reading Lark text (reader.py), ids (../lift): a Special names a token by its content.
Invariants   a resolved grammar has no Text and no Special that may be text; rules without either are the same objects.
             Every Text becomes a rule of its own, marked as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from toolc.runtime.format.meta import MOST_INDENT

from .. import regex as rx
from ..errors import VocabError
from ..ir.nodes import (
    EMPTY,
    Expr,
    Grammar,
    Line,
    Literal,
    Mark,
    Otherwise,
    Ref,
    Special,
    Terminal,
    Text,
    rebuilt,
    sequence,
)
from .analysis import leaves

MEANING = {
    "token_or_text": "_tag",
    "token": "_token",
    "token_that_ends_the_turn": "_end",
    "text_with_tokens": "_words",
    "inner_text_with_tokens": "_inner_words",
    "last_text_with_tokens": "_last_words",
    "last_token": "_last_token",
    "text_without": "_text",
    "text_that_follows": "_text_before",
    "last_text_without": "_last_text",
    "text_not_beginning_with": "_other_text",
    "prose_not_beginning_with": "_prose",
    "new_line_and_indentation": "_indented",
}
"""First parameter → template: its name is what tells toolc's own templates from others of the same name."""

_OF_TWO = ("prose_not_beginning_with", "text_that_follows")

MARKS = {
    "name_of_a_parameter": Mark("key"),
    "value_of_a_parameter": Mark("value"),
    "text_of_a_parameter": Mark("string"),
}
"""Likewise of the templates _key, _value and _string, whose texts are marked for reading calls back."""

_OTHERWISE: dict[str, Otherwise] = {
    "_tag": "text",
    "_token": "refuse",
    "_last_token": "refuse or end",
    "_end": "end",
    "_words": "words",
    "_inner_words": "inner words",
    "_last_words": "last words",
}
_ANYTHING = rx.repeat(rx.ANY, 0, None)
_BLANKS = rx.repeat(rx.Chars(((9, 10), (13, 13), (32, 32))), 0, None)
_OPEN = frozenset((Special, Text))
_INDENTED = re.compile(r"\\n(?:\(\?:((?: |\\t)+)\)|( |\\t))\*")


def meaning(params: tuple[str, ...]) -> str | None:
    """Which of the templates above a definition with these parameters is; None: an ordinary one."""
    if len(params) != (2 if params[0].rpartition("protocol__")[2] in _OF_TWO else 1):
        return None
    _, imported, name = params[0].rpartition("protocol__")  # how lark names what comes from a file called protocol
    return MEANING.get(name if imported else params[0])


def mark_of(params: tuple[str, ...]) -> Mark | None:
    """How the texts of a template with these parameters are marked; None: not at all."""
    return MARKS.get(params[0].rpartition("protocol__")[2]) if len(params) == 1 else None


def special_of(kind: str, arguments: tuple[Expr, ...]) -> Expr | None:
    """The expression for a use of a template; None where an argument is not what it takes."""
    if kind == "_indented":
        found = _INDENTED.fullmatch(rx.to_text(arguments[0].regex)) if isinstance(arguments[0], Terminal) else None
        indent = (found[1] or found[2]).replace("\\t", "\t") if found else None
        return Line(indent) if indent and len(indent) <= MOST_INDENT else None
    listed = [_listed(argument) for argument in arguments]
    if not all(listed):
        return None
    if kind == "_prose":
        return Text(listed[1], listed[0], True)
    if kind == "_other_text":
        return Text((), listed[0], True)
    if kind == "_text_before":
        follows = listed[0][0]
        known = isinstance(follows, str) and all(isinstance(one, (str, rx.Chars)) for one in listed[1])
        return Text(listed[1], before=str(follows)) if known else None
    if kind in ("_text", "_last_text"):
        return Text(listed[0], (), kind == "_last_text")
    text = listed[0][0]
    return Special(text, _OTHERWISE[kind]) if isinstance(text, str) and len(listed[0]) == 1 else None


def _listed(argument: Expr) -> tuple[str | rx.Regex, ...]:
    """The strings and regular expressions of a literal, or of a terminal that lists some; none matches no text."""
    if isinstance(argument, Literal):
        return (argument.data.decode(),)
    if not isinstance(argument, Terminal):
        return ()
    options = argument.regex.options if isinstance(argument.regex, rx.Union) else (argument.regex,)
    if any(rx.lengths(option)[0] == 0 for option in options):
        return ()
    return tuple(rx.literal_text(option) or option for option in options)


def resolve_specials(
    grammar: Grammar, special: Mapping[str, int], ends: Iterable[int], source: str
) -> tuple[Grammar, dict[str, int | None]]:
    """The grammar for one tokenizer.

    Args:
        grammar: as read.
        special: the tokenizer's special and added tokens, by content.
        ends: ids that end a turn.
        source: the tokenizer's name, for errors.

    Returns:
        The grammar, and for every delimiter in it the token's id, or None where it is text.

    Raises:
        VocabError: a token is needed that the tokenizer does not have.
    """
    resolver = _Resolver(grammar, special, set(ends), source)
    rules = {name: resolver.resolve(e, name) if _is_open(e) else e for name, e in grammar.rules.items()}
    for text, rule in resolver.texts.items():
        rules[rule] = Terminal(text_regex(text, special), "free text")
    marks = {**grammar.marks, **{rule: Mark("text") for rule in resolver.texts.values()}}
    return replace(grammar, rules=rules, marks=marks), dict(sorted(resolver.found.items()))


class _Resolver:
    """See `resolve_specials`.

    Attributes:
        found: delimiter → id, or None.
        texts: free text → the rule that is made of it.
    """

    def __init__(self, grammar: Grammar, special: Mapping[str, int], ends: set[int], source: str) -> None:
        self.grammar, self.special, self.ends, self.source = grammar, special, ends, source
        self.found: dict[str, int | None] = {}
        self.texts: dict[Text, str] = {}
        self._known: dict[int, Expr] = {}  # by identity: the automaton's stages share what is one object

    def resolve(self, expr: Expr, rule: str) -> Expr:
        done = self._known.get(id(expr))
        if done is None:
            done = self._known[id(expr)] = self._make(expr, rule)
        return done

    def _make(self, expr: Expr, rule: str) -> Expr:
        if isinstance(expr, Special):
            return self._delimiter(expr, rule)
        if isinstance(expr, Text):
            return Ref(self.texts.setdefault(expr, f"free text {len(self.texts)}"))
        return rebuilt(expr, lambda part: part if isinstance(part, (Literal, Ref)) else self.resolve(part, rule))

    def _declared(self, terminal: str, rule: str) -> str:
        """The content of the token that a declared terminal stands for."""
        found = sorted(token for token in self.special if words_of(token) == terminal)
        if len(found) == 1:
            return found[0]
        raise VocabError(
            f"the terminal {terminal}, which %declare makes a special token, is "
            + ("more than one token here" if found else "no token of this tokenizer"),
            place=f"{self.source}, for {self.grammar.place(rule)}",
            found=" and ".join(found) if found else None,
            expected="a token with its words, as <tool_call> for TOOL_CALL and </tool_call> for END_TOOL_CALL",
            hint='name the token: _token{"<tool_call>"}, after %import protocol (_token)',
        )

    def _delimiter(self, expr: Special, rule: str) -> Expr:
        if expr.otherwise == "member":
            return expr
        if expr.otherwise in ("words", "inner words", "last words"):
            return self._words(expr, rule)
        if expr.otherwise == "declared":
            expr = Special(self._declared(expr.name, rule))
        token = self.special.get(expr.name)
        self.found[expr.name] = token
        place = self.grammar.place(rule)
        if token is None and expr.otherwise in ("refuse", "refuse or end"):
            raise VocabError(
                f"the grammar needs the token {expr.name}, which the tokenizer does not have",
                place=f"{self.source}, for {place}" if self.source else place,
                hint="choose the tokenizer of the model, or the protocol made for it; see toolc protocols",
            )
        if token is None:  # brackets inside are no brackets of the grammar
            return Terminal(rx.literal(expr.name), expr.name)
        if token in self.ends:
            if expr.otherwise in ("end", "refuse or end"):
                return EMPTY
            raise VocabError(
                f"the token {expr.name} ends a turn in this tokenizer, and the grammar goes on after it",
                place=f"{self.source}, for {place}" if self.source else place,
                hint="name the tokens that end a turn with --eos",
            )
        return Special(expr.name)

    def _words(self, expr: Special, rule: str) -> Expr:
        """A text in which what the tokenizer has as tokens are tokens, the longest at each place."""
        parts: list[Expr] = []
        pieces = [one for one in _pieces(expr.name, self.special) if one]
        for number, piece in enumerate(pieces):
            if piece not in self.special:
                parts.append(Terminal(rx.literal(piece), piece))  # brackets inside are no brackets of the grammar
            elif expr.otherwise == "inner words" and self.special[piece] in self.ends:
                return Terminal(rx.NOTHING, expr.name)
            elif expr.otherwise == "last words" and number == len(pieces) - 1:
                parts.append(self._delimiter(Special(piece, "end"), rule))
            else:
                parts.append(self._delimiter(Special(piece), rule))
        return sequence(*parts)


def _pieces(text: str, tokens: Iterable[str]) -> list[str]:
    """A text in pieces: each a token, the longest one at each place, or without any."""
    listed = sorted((one for one in tokens if one and one in text), key=len, reverse=True)
    return re.split("(" + "|".join(map(re.escape, listed)) + ")", text) if listed else [text]


def words_of(token: str) -> str:
    """The words of a special token as the name of a terminal; a slash is the word END."""
    return "_".join(re.findall(r"[^\W_]+", token.replace("/", " end "))).upper()


def _is_open(expr: Expr) -> bool:
    """Whether something in an expression is to be settled; in rules of schemas nothing is."""
    return not _OPEN.isdisjoint(map(type, leaves(expr)))


def _heads_before(text: Text, tokens: Iterable[str]) -> list[str]:
    """With what a text cannot end, since with the beginning of what follows it would be a string that is kept out."""
    follows = _pieces(text.before, tokens)[0]  # no string goes on behind a token
    found: dict[str, None] = {}
    for stop in text.stops:
        if not isinstance(stop, str):  # a character, which has no half
            continue
        for n in range(1, min(len(stop), len(follows) + 1)):
            if follows.startswith(stop[-n:]):
                found[stop[:-n]] = None
    return list(found)


def text_regex(text: Text, tokens: Iterable[str] = ()) -> rx.Regex:
    """The expression of free text, where some strings are tokens."""
    return rx.concat(without(text, tokens), _ANYTHING)


def without(text: Text, tokens: Iterable[str] = ()) -> rx.Regex:
    """What stands before the expression of a text, so that it is one of these free texts, too."""
    refused: list[rx.Regex] = []
    for before, listed in ((_ANYTHING, text.stops), (_BLANKS, text.first)):
        whole = dict.fromkeys(rx.literal(one) if isinstance(one, str) else one for one in listed)
        refused += [rx.concat(before, one) for one in whole]
        if text.last:
            halves = [one for one in listed if isinstance(one, str) and one not in tokens]
            begun = dict.fromkeys(one[:n] for one in halves for n in range(1, len(one)))
            refused += [rx.concat(before, rx.literal(half), rx.END) for half in begun]
    if text.before:
        heads = _heads_before(text, tokens)
        refused += [rx.concat(_ANYTHING, rx.literal(one), rx.END) for one in heads]
    return rx.Look(rx.union(*refused), negative=True) if refused else rx.EMPTY
