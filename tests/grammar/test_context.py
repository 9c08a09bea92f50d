"""Terminals in their context against Lark's own parsers: what is ignored, anchors, word boundaries, look-arounds."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import LarkError

from tests.automata import machine
from toolc.compiler import compile_grammar
from toolc.compiler.budget import Budget
from toolc.compiler.commands.check import check
from toolc.compiler.errors import BudgetError, GrammarError, UnsatisfiableError, UnsupportedError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Grammar, size_of
from toolc.compiler.pushdown.pushdown import build_automaton

from .recognise import accepts

FUZZ = os.environ.get("TOOLC_HYPOTHESIS_PROFILE") == "fuzz"


def theirs(text: str, **options: str) -> Callable[[str], bool]:
    """What one of Lark's parsers accepts."""
    parser = Lark(text, **options)  # type: ignore[arg-type]

    def accepts(one: str) -> bool:
        try:
            parser.parse(one)
        except LarkError:
            return False
        except RuntimeError as error:  # lark 1.3.1, of a text that it has derived in two ways
            assert "multiple start symbol items" in str(error)
        return True

    return accepts


def accepted_by(grammar: Grammar) -> Callable[[str], bool]:
    """What a grammar derives, by its automaton, or by a plain recogniser where it has none."""
    try:
        automaton = build_automaton(grammar, budget=Budget(states=100_000))
    except UnsatisfiableError:
        return lambda _: False
    except (GrammarError, BudgetError):
        return lambda text: accepts(grammar, text)
    return lambda text: machine.accepts(automaton, text.encode())


def texts(characters: str, most: int) -> list[str]:
    return ["".join(one) for size in range(most + 1) for one in itertools.product(characters, repeat=size)]


def compare(text: str, some: list[str]) -> int:
    """All that ``dynamic`` accepts is, and nothing that ``dynamic_complete`` refuses; how often the two differ."""
    complete, dynamic = (theirs(text, parser="earley", lexer=lexer) for lexer in ("dynamic_complete", "dynamic"))
    try:
        grammar = read_grammar(text, in_context=True)
    except UnsatisfiableError:
        grammar = None
    ours_of = (lambda _: False) if grammar is None else accepted_by(grammar)
    differ = 0
    for one in some:
        ours, least, most = ours_of(one), dynamic(one), complete(one)
        assert least <= ours <= most, (text, one, least, ours, most)
        differ += least != most
    return differ


COMMENT = "%import common.SH_COMMENT\n%ignore SH_COMMENT\n"

ROWS = [
    # what is ignored
    ("comment", 'start: "a" "b"\n' + COMMENT + '%ignore " "\n', "ab# \n", 5),
    ("comment and line feeds", 'start: "a" "b"\n' + COMMENT + "%ignore /[ \\n]+/\n", "ab# \n", 5),
    ("comment with its line feed", 'start: "a" "b"?\n%ignore /#[^\\n]*\\n?/\n', "ab#\n", 5),
    ("comment of words", 'start: ("a" | "b")+\n%ignore /#[ab]+/\n', "ab#", 6),
    ("short comment", 'start: ("a" | "b")+\n%ignore /#[ab]{0,2}/\n', "ab#", 6),
    ("comments of two kinds", 'start: ("a" | "#")+\n%ignore /\\/\\/.*/\n%ignore /#a/\n%ignore /\\n/\n', "a/#\n", 5),
    ("slashes that divide", 'start: "a" ("/" "a")*\n%ignore /\\/\\/[^\\n]*/\n%ignore /\\n/\n', "a/\n", 6),
    ("minus signs", 'start: "a" ("-" "a")*\n%import common.SQL_COMMENT\n%ignore SQL_COMMENT\n', "a-\n", 6),
    ("brackets", 'start: "(" start ")" | "a"\n' + COMMENT + "%ignore /\\s+/\n", "(a)#\n", 5),
    ("blanks that a terminal begins with", 'start: ("a" | " a")+\n%ignore / +/\n', "a ", 7),
    ("pairs of blanks", 'start: ("a" | " a")+\n%ignore /  /\n', "a ", 7),
    ("ends after two characters", 'start: ("a" | "b")+\n%ignore /a(bb)+/\n', "ab", 8),
    ("left recursion", 'start: start "+" "a" | "a"\n' + COMMENT + '%ignore " "\n', "a+# ", 5),
    ("templates", 'start: list{"a"}\nlist{x}: x ("," x)*\n' + COMMENT + "%ignore /\\n/\n", "a,#\n", 5),
    ("counts", 'start: "a"~2..3\n' + COMMENT + "%ignore /\\n/\n", "a#\n", 6),
    # anchors
    ("line start", 'start: "a"+\n%ignore /^#.*\\n/m\n%ignore " "\n', "a# \n", 5),
    ("line start of a token", 'start: ("a" | X)+\nX: /^x/m\n%ignore /\\n/\n', "ax\n", 5),
    ("text start", 'start: ("a" | X)+\nX: /^x|\\Ay|z/\n', "axyz", 4),
    ("line end", 'start: ("a" | X)+\nX: /x+$/m\n%ignore /\\n/\n', "ax\n", 6),
    ("last line end", 'start: ("a" | X | "\\n")+\nX: /x$/\n', "ax\n", 6),
    ("last line end, ignored", 'start: ("a" | X)+\nX: /x$/\n%ignore /\\n/\n', "ax\n", 6),
    ("text end", 'start: ("a" | X)+\nX: /x\\Z/\n%ignore " "\n', "ax ", 5),
    ("nothing is left", 'start: "a" X "b"\nX: /x$/\n', "axb", 4),
    ("word", 'start: W+\nW: /\\bab\\b/\n%ignore " "\n', "ab ", 7),
    ("word of any length", 'start: (W | "-")+\nW: /\\b[ab]+\\b/\n', "ab-", 5),
    ("no word boundary", 'start: ("a" | X)*\nX: /x\\B/\n%ignore " "\n', "ax ", 5),
    ("boundary before", 'start: ("a" | X)*\nX: /\\Bx|\\b-/\n', "ax-", 5),
    # look-arounds
    ("look-around", 'start: "x" W "y"\nW: /(?<=x)q(?=y)/\n', "xqy", 4),
    ("look-ahead", 'start: A* "b"?\nA: /a+(?=b)/\n', "ab", 6),
    ("negative look-ahead", 'start: A* "b"?\nA: /a(?!b)/\n', "ab", 6),
    ("negative look-behind", 'start: ("a" | X)*\nX: /(?<![ax])x/\n%ignore " "\n', "ax ", 5),
    ("a word but for some", 'start: (N | "if" | " ")+\nN: /(?!if\\b)\\w+/\n', "ifa ", 5),
    ("a word but for some, ignored blanks", 'start: (N | "if")+\nN: /(?!(?:if|f)\\b)[a-z]+/\n%ignore " "\n', "if ", 6),
    ("optional look-ahead", 'start: ("a" | X | "b")*\nX: /x(?=ab?)/\n', "abx", 5),
    ("alternatives that look", 'start: ("a" | X)*\nX: /x(?=a)|y(?!a)|^z/\n', "axyz", 4),
]  # fmt: skip


@pytest.mark.parametrize(("text", "characters", "most"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_every_short_text(text: str, characters: str, most: int) -> None:
    compare(text, texts(characters, most))


def test_lalr_agrees_where_tokens_are_told_apart() -> None:
    for name, text, characters, most in ROWS:
        if name in (
            "comment",
            "comment and line feeds",
            "comment with its line feed",
            "brackets",
            "line start",
            "counts",
        ):
            lalr, ours = theirs(text, parser="lalr"), accepted_by(read_grammar(text, in_context=True))
            some = texts(characters, most)
            assert [one for one in some if lalr(one)] == [one for one in some if ours(one)], name


REFUSED = [
    ('start: "a" X "ab"\nX: /x(?=ab)/\n', "2:1", "the terminal X looks more than one character past its edge"),
    ('start: (X | "b")+\nX: /(?<!ab)x/\n', "2:1", "the terminal X looks more than one character"),
    ('start: "a" X "ab"\nX: /x(?=a*b)/\n', "2:1", "the terminal X looks more than one character"),
    ('start: X+\nX: /a+(?=a)/\n', "2:1", "the terminal X looks past its end at text that it could go on with"),
    ('start: "a" X\nX: /x(?!b$)/\n', "2:1", "the terminal X has $ inside of a look-around"),
    ('start: "a" X "b"\nX: /$/m\n', "2:1", "the terminal X may be empty"),
    ('start: "a"+\n%ignore C\nC: /\\/\\*[^#]*\\*\\//\n', "3:1", "the ignored terminal C may go on after any number"),
    ('start: ("a" | "#")+\n%ignore C\nC: /#(?!b)[a-z]+/\n', "3:1", "the ignored terminal C looks around and may go on"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "words"), REFUSED, ids=[row[2][:40] for row in REFUSED])
def test_what_is_not_known_is_refused_by_name(text: str, place: str, words: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        compile_grammar(text, name="g.lark")
    assert error.value.place == f"g.lark:{place}" and words in str(error.value) and error.value.hint


SAME = [
    'start: "a" ("," "a")*\n%import common.WS\n%ignore WS\n',
    'start: "{" [pair ("," pair)*] "}"\npair: STRING ":" NUMBER\nSTRING: /"[^"]*"/\nNUMBER: /[0-9]+/\n'
    "%ignore /[ \\t]/\n%ignore /\\n+/\n",
    'start: "a"+\n%import common.C_COMMENT\n%import common.WS\n%ignore C_COMMENT\n%ignore WS\n',
    "start: X+\nX: /(?=[ab]*c)[a-c]*c/\n",
    'start: "a" X\nX: /x(?!y)./ | /^/ /[0-9]/\n'.replace("/^/ ", ""),
    'start: "a"+ /#[^\\n]*/ "\\n"\n',
    'start: "a"+\n%ignore /#[^\\n]*\\n/\n%ignore " "\n%ignore /[ \\t]+/\n',
]


@pytest.mark.parametrize("text", SAME)
def test_grammars_in_which_nothing_looks_around_stay_as_they_are(text: str) -> None:
    assert read_grammar(text, in_context=True) == read_grammar(text)


def test_rules_keep_their_places_and_what_reads_them() -> None:
    grammar = read_grammar('start: list\nlist: "(" list* ")"\n' + COMMENT, "g.lark", in_context=True)
    assert len(grammar.rules) > 3
    assert {grammar.place(rule) for rule in grammar.rules if rule.startswith("list#")} == {"rule list (g.lark:2)"}


def test_the_cases_that_were_collected(shared: Path) -> None:
    for case in ("79-lark-line-comments", "80-lark-anchors", "42i-sql"):
        folder = shared / "cases" / "reported" / case
        bundle = compile_grammar((folder / "grammar.lark").read_text(), name="grammar.lark").bundle
        for name in ("valid", "invalid"):
            whole = (folder / f"{name}.txt").read_text().rstrip("\n")
            joined = whole.replace("\n LIMIT", "\0 LIMIT")
            some = [whole] if case == "80-lark-anchors" else [one.replace("\0", "\n") for one in joined.split("\n")]
            for one in some:
                assert check(bundle, one.encode())["accepted"] == (name == "valid"), (case, one)
    compile_grammar((shared / "cases" / "reported" / "79-lark-line-comments" / "refused.lark").read_text())


# -- random grammars

TERMINALS = [
    "a",
    "b",
    "ab",
    "aa",
    "[ab]",
    "a+",
    "[ab]+",
    "b*a",
    "-",
    "-+",
    "[-a]+",
    "a{1,2}",
    "(?:ab)+",
    "\\n",
    "[a\\n]",
]
HEADS = ["^", "\\A", "\\b", "\\B", "(?<=a)", "(?<![ab])", "(?<!-)", "(?<=\\n)", "(?!a)", "(?!ab\\b)", "(?=[ab])"]
TAILS = ["$", "\\Z", "\\b", "\\B", "(?=b)", "(?!a)", "(?![ab])", "(?=[-\\n])", "(?!\\w)", "(?=a?)"]
IGNORED = ["#[^\\n]*", "#[ab]*", "-", " +", "\\s+", "\\n", "#.*\\n?", "--[^\\n]*", "-+", "#(?:ab)*", "[ -]+"]


def random_grammar(rng: random.Random) -> str:
    """A small grammar of terminals some of which look around, with some that are ignored."""
    names = "ABC"[: rng.randint(1, 3)]
    lines = []
    for name in names:
        head = rng.choice(HEADS) if rng.random() < 0.4 else ""
        tail = rng.choice(TAILS) if rng.random() < 0.4 else ""
        flags = rng.choice(["", "m"])
        lines.append(f"{name}: /{head}{rng.choice(TERMINALS)}{tail}/{flags}")
    one = list(names)

    def body(depth: int) -> str:
        kind = rng.randrange(6)
        if depth == 0 or kind == 0:
            return rng.choice([*one, '"a"', '"b"'])
        if kind == 1:
            return f"({body(depth - 1)} | {body(depth - 1)})"
        if kind == 2:
            return f"({body(depth - 1)}){rng.choice('?*+')}"
        if kind == 3 and depth > 1:
            return f'"(" {body(depth - 1)} ")"'
        return f"{body(depth - 1)} {body(depth - 1)}"

    ignored = rng.sample(IGNORED, rng.choice([0, 1, 1, 2]))
    lines += [f"%ignore /{rng.choice(['', '', '', '^'])}{text}/{rng.choice(['', 'm'])}" for text in ignored]
    return "\n".join([f"start: {body(3)}", *lines]) + "\n"


def random_texts(rng: random.Random, count: int) -> list[str]:
    return ["".join(rng.choice("aab-#\n ()") for _ in range(rng.randint(0, 9))) for _ in range(count)] + ["", "a", "ab"]


def compare_random(grammars: int, seed: int, count: int) -> dict[str, int]:
    """Figures of many random grammars, each with random texts and short ones."""
    rng = random.Random(seed)
    counts = {"grammars": 0, "refused": 0, "texts": 0, "lark differs": 0}
    for _ in range(grammars):
        text = random_grammar(rng)
        some = [*random_texts(rng, count), *texts("a-b", 3), *texts("a\n#", 3)]
        counts["grammars"] += 1
        try:
            counts["lark differs"] += compare(text, some)
        except UnsupportedError as error:
            assert re.search("terminal", str(error)), text
            counts["refused"] += 1
            continue
        counts["texts"] += len(some)
    return counts


def test_random_grammars() -> None:
    counts = compare_random(4000 if FUZZ else 40, 17, 60)
    assert counts["refused"] < counts["grammars"] / 2, counts


def expression(written: Callable[[str], str], gap: str, more: str) -> str:
    """A grammar of expressions with keywords beside names, as ``written``, and gaps around operators."""
    return f"""
start: or
or: and ({written("or")} and)*
and: not ({written("and")} not)*
not: {written("not")} not | sum (({gap} "<" {gap} | {written("in")}) sum)*
sum: atom ({gap} ("+" | "-") {gap} atom)*
atom: NAME | /[0-9]/ | "(" {gap} or {gap} ")"
NAME: /(?!(?:or|and|not|in)\\b)[a-z][a-z0-9]*/
{more}
"""


KEYWORDS = {
    "blanks in rules": expression(lambda word: f'{"_b" if word != "not" else ""} "{word}" _b', "_b?", '_b: " "+'),
    "blanks in keywords": expression(lambda word: f'"{word} "' if word == "not" else f'" {word} "', "", ""),
    "blanks ignored": expression(lambda word: f'"{word}"', "", '%ignore " "'),
    "keywords that end": expression(lambda word: f"/{word}\\b/", "", '%ignore " "'),
}


@pytest.mark.parametrize("which", KEYWORDS)
def test_keywords_beside_names_compile(which: str) -> None:
    """A name that is no keyword looks at what follows it; rules are copied for it, few and small."""
    grammar = read_grammar(KEYWORDS[which], in_context=True)
    assert sum(map(size_of, grammar.rules.values())) < 10_000
    automaton = build_automaton(grammar, budget=Budget(states=100_000))
    lark, rng = theirs(KEYWORDS[which], parser="earley", lexer="dynamic"), random.Random(5)
    words, accepted = ["a", "b", "or", "and", "not", "in", "(", ")", " ", " ", "+", "<", "0", "nota", "inb"], 0
    for _ in range(3000 if FUZZ else 300):
        text = "".join(rng.choice(words) for _ in range(rng.randint(1, 9)))
        accepted += lark(text)
        assert machine.accepts(automaton, text.encode()) == lark(text), text
    assert accepted > 20
