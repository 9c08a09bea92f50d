"""Malformed grammars: id, text, error, place (after the name), words of the message."""

from __future__ import annotations

from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError

GRAMMAR_ERRORS: list[tuple[str, str, type[ToolcError], str, str]] = [
    ("syntax/group", "start: (\n", GrammarError, ":1:9", "Unclosed parenthesis"),
    ("syntax/colon", 'start:: "a"\n', GrammarError, ":1:7", "Unexpected colon"),
    ("syntax/string", 'start: "a\n', GrammarError, ":1:8", "malformed grammar"),
    ("syntax/character", "start: a\na: `a`", GrammarError, ":2:4", "found '`'"),
    ("syntax/operator", 'start: "a"\na: b??', GrammarError, ":2:6", "Expecting a value"),
    ("undefined/rule", "start: a\n", GrammarError, ":1:8", "Rule 'a' used but not defined"),
    ("undefined/second", 'start: "x" a\na: "b" c\n', GrammarError, ":2:8", "Rule 'c' used but not defined"),
    ("undefined/terminal", 'start: "a" | B\n', GrammarError, ":1:14", "Terminal 'B' used but not defined"),
    ("undefined/start", 'a: "x"', GrammarError, "", "no rule start"),
    ("undefined/import", "%import nowhere.X\nstart: X", GrammarError, ":1:1", "nowhere"),
    ("undefined/declared", "start: X\n%declare X\n", GrammarError, ":1:8", "declared but not defined"),
    ("twice", 'start: "a"\nstart: "b"', GrammarError, ":2:1", "more than once"),
    ("repeat/order", 'start: "a"~3..2\n', GrammarError, ":1:11", "~3..2"),
    ("range/order", 'start: "b".."a"', GrammarError, ":1:8", "ascending"),
    ("range/width", 'start: "ab".."c"', GrammarError, ":1:8", "one character"),
    ("terminal/empty", 'start: ""', GrammarError, ":1:8", "Empty terminals"),
    ("terminal/recursion", "A: B\nB: A\nstart: A", GrammarError, ":1:1", "Recursion in terminal"),
    ("terminal/surrogate", 'start: "\\ud800"', GrammarError, ":1:8", "lone surrogate"),
    ("regexp/group", "start: /a(/\n", GrammarError, ":1:8", "unterminated group"),
    ("regexp/reference", 'start: "x"\n  | /(a)\\1/\n', UnsupportedError, ":2:5", "back-reference"),
    (
        "regexp/deep",
        "start: A\nA: /" + "(" * 300 + "a" + ")" * 300 + "/",
        GrammarError,
        ":2:4",
        "nest more than 60 deep",
    ),
    ("group/deep", "start: " + '("b" ' * 300 + '"a"' + ")*" * 300, GrammarError, ":1:508", "nest more than 100 deep"),
    (
        "group/deep in a terminal",
        "start: A\nA: " + '["(" ' * 101 + '"a"' + "]" * 101,
        GrammarError,
        ":2:504",
        "nest more than 100 deep",
    ),
    (
        "terminal/chain",
        "start: A0\n" + "".join(f'A{n}: "x" (A{n + 1} | "y")*\n' for n in range(70)) + 'A70: "z"',
        GrammarError,
        ":2:1",
        "terminal A0 nests too deep",
    ),
    (
        "terminal/doubles",
        "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(40)) + 'T40: "z"',
        GrammarError,
        ":26:1",
        "terminal T24 has more than 100,000 uses of terminals",
    ),
    (
        "terminal/doubles, read by Lark",
        "start: T0\n"
        + "".join(f'T{n}.2: T{n + 1} "(" | /b/ T{n + 1} // T0\n' for n in range(40))
        + 'T40: "z"\n%ignore " "',
        GrammarError,
        ":26:1",
        "terminal T24 has more than 100,000 uses of terminals",
    ),
    (
        "terminal/doubles, indented",
        "  start: T0\n" + "".join(f"\tT{n}: T{n + 1} T{n + 1}\n" for n in range(40)) + '  T40: "z"',
        GrammarError,
        ":26:2",
        "terminal T24 has more than 100,000 uses of terminals",
    ),
    (
        "terminal/doubles, extended",
        "start: T0\n" + "".join(f'T{n}: "a"\n%extend T{n}: T{n + 1} T{n + 1}\n' for n in range(40)) + 'T40: "z"',
        GrammarError,
        ":50:1",
        "terminal T24 has more than 100,000 uses of terminals",
    ),
    (
        "terminal/doubles, overridden",
        "start: T0\n" + "".join(f'T{n}: "a"\n%override T{n}: T{n + 1} T{n + 1}\n' for n in range(40)) + 'T40: "z"',
        GrammarError,
        ":50:1",
        "terminal T24 has more than 100,000 uses of terminals",
    ),
    ("terminal/recursion, extended", 'A: "a"\n%extend A: A\nstart: A', GrammarError, ":1:1", "Recursion in terminal"),
    (
        "terminal/long",
        'start: A\nA: B B B B\nB: "' + "x" * 300_000 + '"',
        GrammarError,
        ":2:1",
        "terminal A has more than 1,000,000 parts",
    ),
    ("template/count", 'start: t{"x","y"}\nt{x}: x', GrammarError, ":1:8", "Wrong number of template arguments"),
    ("template/endless", 'start: t{"x"}\nt{x}: "a" t{u{x}}\nu{y}: y "b"', GrammarError, ":3:1", "without end"),
    ("left/circle", 'start: a a "x" | "y"\na: start | \n', GrammarError, "rule start", "start → a → start"),
    ("left/empty", 'start: start start "x" | \n', GrammarError, "rule start", "start → start"),
]
