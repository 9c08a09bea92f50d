"""Grammars that Lark's Earley parser reads too: (id, text, alphabet of random texts, texts worth trying)."""

from __future__ import annotations

LARK_GRAMMARS: list[tuple[str, str, str, list[str]]] = [
    (
        "arithmetic",
        'start: start "+" term | start "-" term | term\nterm: term "*" atom | atom\natom: /[0-9]/ | "(" start ")"',
        "1+-*()",
        ["1", "1+2*3", "(1-2)*3", "((4))", "1+", "()", "1--2"],
    ),
    (
        "json",
        r"""
start: value
value: "{" (pair ("," pair)*)? "}" | "[" (value ("," value)*)? "]" | STRING | "1" | "true"
pair: STRING ":" value
STRING: /"[ab]*"/
""",
        '{}[],:"a1',
        ["{}", "[]", '{"a":1}', '[1,{"a":[true]}]', '{"a"}', "[1,]", '"ab"'],
    ),
    (
        "templates",
        'start: _list{item, ","} ";" _list{pair{item, item}, "-"}\n'
        '_list{x, sep}: x (sep x)*\npair{a, b}: a b\nitem: "a" | "b"',
        "ab,;-",
        ["a;aa", "a,b;ab-ba", "a,;aa", "a;a", "b,b,b;bb-bb-bb"],
    ),
    ("ignore", 'start: "a" B+ "c"\nB: "b" | "bb"\n%ignore " "+', "abc ", ["abc", " a b b c ", "a bb c", "ab b", "a c"]),
    (
        "ignore-inside-terminals",
        'start: WORD ("," WORD)*\nWORD: /[a-b]+/\n%ignore /[ \\t]+/',
        "ab, \t",
        ["a", "ab ,ba", "a b", " a", "a , ", "\ta,b\t"],
    ),
    ("ranges", 'start: "a".."c" "x".."z"~2', "abcxyzd", ["axx", "czz", "dxx", "ax", "axxx"]),
    (
        "repeats",
        'start: "a"~2 ("b" | "c")~1..3 "d"? "e"* "f"+',
        "abcdef",
        ["aabf", "aabcbdeeff", "abf", "aabbbbf", "aabd"],
    ),
    ("repeat-of-rules", 'start: x~2..3\nx: "a" | "b" x', "ab", ["aa", "aba", "bbaa", "a", "aaaa", "bababa"]),
    ("maybe", 'start: ["a"] "b" [("c" | "d") "e"]', "abcde", ["b", "ab", "bce", "abde", "a", "bc"]),
    ("backslash-before-a-quote", r"""start: /"(?:[^"\\]|\\")*"/""", '"\\a', ['""', '"a"', '"a"a"', r'"\"', r'"\""']),
    ("right-recursion", 'start: "a" start | "b"', "ab", ["b", "ab", "aab", "a", "ba"]),
    ("two-left-recursions", 'start: start "x" | start "y" "z" | "a" | "b"', "abxyz", ["a", "bx", "ayzx", "ay", "x"]),
    (
        "indirect-left-recursion",
        'start: a\na: b "x" | "p"\nb: a "y" | "q"',
        "pqxy",
        ["p", "qx", "pyx", "qxyx", "q", "py", "pyxyx"],
    ),
    ("case", 'start: "ab"i KEY\nKEY: /c[d]/i', "abcdABCD", ["abcd", "ABCD", "aBcD", "abc", "abdc"]),
    (
        "imports",
        '%import common.INT\n%import common.CNAME -> NAME\nstart: NAME "=" INT',
        "ab_1=",
        ["a=1", "_b1=11", "1=1", "a="],
    ),
    (
        "nested-terminals",
        'start: A\nA: B "-" B | B\nB: "x" C?\nC: "y"+',
        "xy-",
        ["x", "xyy", "x-xy", "xy-x", "y", "x-"],
    ),
    (
        "look-ahead",
        'start: KEY ":" /[a-c]+/\nKEY: /(?!no)[a-z]{2}/',
        "noabc:",
        ["ab:c", "no:a", "na:b", "oo:cc", "ab:"],
    ),
]
