"""Grammars that the automaton must accept exactly, by id; tests/automata and tests/lift run every one of them."""

from __future__ import annotations

_JSON = r"""
value: object | array | string | NUMBER | "true" | "false" | "null"
object: "{" _w (pair (_c pair)* _w)? "}"
pair: string _w ":" _w value
array: "[" _w (value (_c value)* _w)? "]"
string: "\"" CHAR* "\""
_c: _w "," _w
_w: WS?
WS: /[ \t\n\r]{1,3}/
CHAR: /[^"\\\x00-\x1f]|\\["\\\/bfnrt]/
NUMBER: /-?(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,3})?/
"""

GRAMMARS: dict[str, str] = {
    "literals": 'start: "abc" | "abd" | "x"',
    "any-json": "start: _w value _w" + _JSON,
    "recursive-tree": r"""
start: node
node: "{" "\"name\":" NAME ("," "\"children\":" kids)? "}"
kids: "[" (node ("," node)*)? "]"
NAME: /"[a-z]{1,8}"/
""",
    "any-of-objects": r"""
start: "[" (item ("," item)*)? "]"
item: a | b | c
a: "{" "\"kind\":" "\"point\"" ",\"at\":" pos "}"
b: "{" "\"kind\":" "\"line\"" ",\"at\":" pos ",\"to\":" pos "}"
c: "{" "\"kind\":" KIND "}"
pos: "{" "\"x\":" INT ",\"y\":" INT "}"
KIND: /"(?:none|line|void)"/
INT: /-?[0-9]{1,3}/
""",
    "enum-of-objects": r"""
start: "{\"a\": 1, \"b\": [1, 2]}" | "{\"a\": 1, \"b\": [1, 3]}" | "{\"a\": 2}" | "[]" | "[[1]]"
""",
    "patterns": r"""
start: "{" "\"id\": " ID ", \"when\": " DATE ", \"tag\": " TAG "}"
ID: /"[A-Z]{2}-[0-9]{3,6}"/
DATE: /"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"/
TAG: /"(?!no)[a-z]+(?:-[a-z]+)*"/
""",
    "counted-strings": r"""
start: "[" s ("," s)* "]"
s: "\"" CHAR~3..40 "\"" | "\"" CHAR~20..90 "\"" | "\"no\"" | OTHER
CHAR: /[^"\\\x00-\x1f]|\\["\\bfnrt]/
OTHER: /"[#]{1,4}"/
""",
    "counted-items": r"""
start: "[" INT ("," INT)~9..30 "]" | "{" (KEY (";" KEY)~0..70)? "}"
INT: /[0-9]{1,4}/
KEY: /[a-f]{1,5}/
""",
    "counted-groups": r"""
start: ("{" A "b"? "}" ",")~4..30
A: /a{1,3}/
""",
    "counted-in-counted": r"""
start: "[" s ("," s)~4..25 "]"
s: "\"" CHAR~10..30 "\"" | "\"yes\"" | NO | INT
CHAR: /[^"\\\x00-\x1f]/
NO: /"no{1,3}"/
INT: /[0-9]{1,3}/
""",
    "counted-patterns": r"""
start: "{" "\"a\":" A ("," "\"b\":" B)? "}" | "[" (C ("," C)~0..30)? "]"
A: /"(?=[a-z ]+\x22)(?:[^"\\\x00-\x1f]|\\["\\bfnrt]){4,60}"/
B: /"(?=[^"]*x[^"]*")(?![a-c])(?:[^"\\\x00-\x1f]|\\["\\bfnrt]){0,90}"/
C: /"(?=(?:[a-z]+-)*\x22)(?:[^"\\\x00-\x1f]){0,40}"/
""",
    # from a counted loop most ways lead into free text: what dies of the slice depends on the counter
    "counted-then-free": r"""
start: "\"" AB~0..90 ("\"" | OTHER CHAR* "\"")
AB: /[ a-]/
OTHER: /[^" a\-\\\x00-\x1f]/
CHAR: /[^"\\\x00-\x1f]/
""",
    "counters-apart": r"""
start: A~5..40 B~5..40 | A~30
A: /[ab]/
B: /[bc]/
""",
    "open-keys": r"""
start: "{" "\"city\":" STR ("," OPEN ":" STR)* "}"
STR: /"(?:[^"\\\x00-\x1f]|\\["\\bfnrt])*"/
OPEN: /"(?!(?:city|cities|days)")(?:[^"\\\x00-\x1f]|\\["\\bfnrt])*"/
""",
    "arithmetic": r"""
start: sum
sum: sum "+" product | sum "-" product | product
product: product "*" atom | atom
atom: INT | "(" sum ")" | "-" atom
INT: /[0-9]{1,3}/
""",
    "delimiters": r"""
start: item
item: "<" item* ">" | "begin " item " end" | WORD
WORD: /[x-z]+/
""",
    "right-recursion": 'start: "a" start | "b" tail\ntail: "c" tail | "d"',
    "strings-beside-called-strings": r"""
start: "[" item ("," item)~6..20 "]" | "[" other ("," other)* "]"
item: "\"" CHAR~12..30 "\""
other: "\"x\"" | "\"" LETTER* "\""
CHAR: /[^"\\\x00-\x1f]/
LETTER: /[a-z]/
""",
}
