"""Patterns against Python's own engine, over every short text of a few characters."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import re
from typing import Any

import pytest

from toolc.compiler import Options, compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, SchemaError, UnsatisfiableError, UnsupportedError
from toolc.compiler.regex.parser import MOST_NESTED
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.patterns import text_lengths

from .recogniser import Compiled

TEXTS = ["".join(text) for length in range(7) for text in itertools.product("ab,", repeat=length)]
ANCHORS_IN_REPEATED_GROUPS = [
    "^([^,]+(,|$)){3,}$",
    "^((^|,)a+)*$",
    "((^|,)(a|b)){2}",
    "(a|$){2}b?",
    "(^|a){3}b",
    "(^a|b$|,)+",
    "(^a$|b){1,2}",
    "(^a$|b){2}",
    "(^a$|b?){2}",
    "(^$|a){2,3}",
    "(^|$){2}",
    "(?:^a)+b",
    "(a$){2}|(^b){2,}",
    "((^a|,)(b|$))*b",
    "((a|^){2}(,|$)){1,2}b*$",
    "(,|a$b?){0,2}b$",
    "(^a|b){0}b$",
]


ASSERTIONS = [
    "^(?:(?:a|bb)(?:,(?!$)|$)){2}$",
    "^((?!,)[ab,]{1,3}(?<!,),)+a{2,3}$",
    "(?=^.{2,4}$)(^((?!,)[b,]{1,3}(?<!,)a)+b$)",
    "(?!^a+$)^.+$",
    "(?!^a)b",
    "(?=^a|,)[a,]b",
    "^(?!(^|.*,)bb(,|$)).*$",
    "^(?!.*\\bab\\b).*$",
    "^([ab]+(\\b|,))+$",
    "^([ab]+\\b,?)+$",
    "(?:^|,)(?:a(?!$)|b)+$",
    "^.*(?<!ab)$",
    "(?:a|,b)(?<=,b)$(?<!bb)",
    "(?<!^)b",
    "a(?!b+\\b)b",
    "(?:a\\b)+\\b",
    "(?:a\\b,?)+\\bb",
    "((?:[ab]\\b)+,)+\\b",
    "(?:a(?<=a)){2}(?<!b)",
]


REPEATS_AT_OPEN_ENDS = [
    "a.{1,40}", "a.{0,40}", ".{1,40}a", ".{2,40}a.{2,40}", "a(?:b.{1,40})", "(?:a|b{0,9})", "a(?:b|,.{0,40})",
    "(?:a?b{0,9}){3}", "^a{2,40}", "a{2,40}$", "(?:ab){2,40}", "(?:a{1,9}b{0,9}){2,40}", "a(?=b).{0,40}", "a\\b.{1,40}",
    ".{0,40}(?<=a)b", ".{1,40}\\ba", "(?:^|,)a{1,40}|b{2,40}", "(?!^a).{1,40}b",
]  # fmt: skip


def accepts_alike(pattern: str, texts: list[str], judge: str = "") -> None:
    plain = re.compile((judge or pattern).replace("$", r"\Z"))
    try:
        accepts = Compiled(schema_to_lark({"type": "string", "pattern": pattern})[0]).accepts
    except UnsatisfiableError:  # no text at all has it
        accepts = lambda _: False  # noqa: E731
    for text in texts:
        assert accepts(json.dumps(text)) == bool(plain.search(text)), (pattern, text)


@pytest.mark.parametrize("pattern", ANCHORS_IN_REPEATED_GROUPS + ASSERTIONS)
def test_assertions(pattern: str) -> None:
    accepts_alike(pattern, TEXTS)


@pytest.mark.parametrize("pattern", REPEATS_AT_OPEN_ENDS)
def test_repeats_at_open_ends_are_read_no_oftener_than_they_must(pattern: str) -> None:
    """Each beginning was followed to its end: a set of up to 40 of them at once."""
    compile_schema({"type": "string", "pattern": pattern}, options=Options(budget=Budget(pattern_states=2_000)))
    accepts_alike(pattern, TEXTS)


@pytest.mark.parametrize(
    ("schema", "text", "accepts"),
    [
        ({"enum": ["", "ab"], "pattern": "\\B"}, '""', True),
        ({"enum": ["", "a"], "not": {"pattern": "\\B"}}, '""', False),
        ({"enum": ["", "a"], "pattern": "^(?!\\B)"}, '""', False),
        ({"enum": ["", "a"], "pattern": "\\b"}, '""', False),
        ({"type": "string", "maxLength": 0, "pattern": "\\B"}, '""', True),
        ({"items": {"enum": ["", "a"]}, "contains": {"pattern": "^\\B"}, "maxItems": 2}, '[""]', True),
        ({"properties": {"": {"type": "integer"}}, "patternProperties": {"\\B": {"minimum": 5}}}, '{"": 3}', False),
        ({"propertyNames": {"pattern": "\\B"}, "required": [""]}, '{"": 1}', True),
    ],
)
def test_an_empty_text_has_no_word_boundary(schema: Any, text: str, accepts: bool) -> None:
    """ECMA-262, 22.2.2.4; Python says so from 3.14 on."""
    try:
        ours = Compiled(schema_to_lark(schema)[0])
    except UnsatisfiableError:
        assert not accepts
        return
    assert ours.accepts(text) == accepts


@pytest.mark.parametrize("pattern", ["^" + "a" * 100_000 + "$", "^" + "ab" * 50_000])
def test_long_patterns_take_as_long_as_they_are(pattern: str) -> None:
    """They took the square of that, and looked at no clock."""
    made = compile_schema({"type": "string", "pattern": pattern}, options=Options(budget=Budget(seconds=60)))
    assert made.report["counts"]["states"] > 100_000


def test_a_pattern_that_takes_too_long_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"0\.5 seconds"):
        compile_schema({"type": "string", "pattern": "a" * 100_000}, options=Options(budget=Budget(seconds=0.5)))


@pytest.mark.parametrize(
    ("pattern", "plain"),
    [("(?<=^|,)a", "(?:^|(?<=,))a"), ("(?<!^|,)a", "(?<!^)(?<!,)a"), ("[ab]+(?<=,a|b)$", "[ab]+(?:(?<=,a)|(?<=b))$")],
)
def test_looks_back_at_several_things(pattern: str, plain: str) -> None:
    """Python's engine wants the options apart."""
    accepts_alike(pattern, TEXTS, plain)


WORDS = "foo bar baz qux alpha beta gamma delta eps zeta eta theta iota kappa lam mu".split()


@pytest.mark.parametrize(
    "pattern",
    [
        "^" + "|".join(WORDS) + "$",  # parentheses forgotten
        rf"\b(?:{'|'.join(WORDS)})\b",
        "|".join(rf"\b{word}\b" for word in WORDS),
        "|".join(word + ".*" for word in WORDS),
    ],
    ids=["anchored", "between boundaries", "each between boundaries", "anything behind"],
)
def test_alternatives_that_go_on_alike_are_few_states(pattern: str) -> None:
    """Which of them was found does not matter behind it: telling so in every combination was 2^16 states."""
    few = Options(budget=Budget(pattern_states=2_000))
    compile_schema({"type": "string", "pattern": pattern}, options=few)
    pieces = ["", " ", "x", "foo", "bar", "mu", "zeta", "et", "a"]
    accepts_alike(pattern, ["".join(parts) for parts in itertools.product(pieces, repeat=3)])


def test_random_assertions() -> None:
    rng = random.Random(5)
    looks = ["(?={})", "(?!{})"]
    backs = ["(?<=a)", "(?<![b,])", "(?<!ab)", "(?<=,a)", r"\b", "(?<!^)"]

    def some(depth: int) -> str:
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(["a", "b", ",", "^", "$", "[ab]", "a?", ",b", rng.choice(backs)])
        if rng.random() < 0.15:
            return rng.choice(looks).format(some(depth - 1))
        if rng.random() < 0.4:
            return f"(?:{some(depth - 1)}){rng.choice(['*', '+', '?', '{2}', '{1,3}', '{2,}', '{0,2}'])}"
        parts = [some(depth - 1) for _ in range(rng.randrange(2, 4))]
        return f"(?:{'|'.join(parts)})" if rng.random() < 0.5 else "".join(parts)

    compared = 0
    for _ in range(600):
        pattern = some(4)
        with contextlib.suppress(UnsupportedError):
            accepts_alike(pattern, rng.sample(TEXTS, 60))
            compared += 1
    assert compared > 300


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?:^a?|(?=b)b?)+", "that may be empty"),
        ("(?:\\ba)+\\b", "from the start of a group"),
        ("(?:(?<!a)b)+(?<=b)", "from the start of a group"),
        ("(?:\\ba)+", "from the start of a group"),
        ("^(?:(?!\\ba\\b).)*$", "from the start of a group"),
        ("^(?:(?!^a).)*$", "start anchor in a look-ahead in a repeated group"),
        ("(?:(?<!a)b|,)+$", "from the start of a group"),
        ("a(?!.*\\bb\\b)b", "from the start of a group"),
        ("(?<!ab),", "more than one character"),
    ],
)
def test_what_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        schema_to_lark({"type": "string", "pattern": pattern})


@pytest.mark.parametrize(
    ("head", "tail"), [("(", ")"), ("(?:", ")*"), ("(?:a|b", ")*"), ("(?:a(?:b|", "c)*)?"), (r"(?:a\b|", ")")]
)
def test_groups_as_deep_as_is_allowed_compile_far_down_a_stack(head: str, tail: str) -> None:
    deep = MOST_NESTED["ecma"] // head.count("(")

    def further(frames: int) -> None:
        if frames:
            further(frames - 1)
        else:
            compile_schema({"type": "string", "pattern": f"^{head * deep}d{tail * deep}{len(head)}$"})

    further(500)


@pytest.mark.parametrize(
    ("pattern", "shortest", "longest"),
    [
        ("^a{3}$", 3, 3),
        ("a{3}", 3, None),
        ("^(a|bc)$", 1, 2),
        ("^a|b$", 1, None),
        ("(^a$|^bb$)", 1, 2),
        ("(?=x)^ab$(?<!c)", 2, 2),
        ("^(a{2,3}b?){2}$", 4, 8),
        ("^[\\ud83d\\ude00]a{0,2}$", 1, 3),
        ("^a*$", 0, None),
        ("^(a*){0}$", 0, 0),
        ("(?:^)+a$", 1, None),
    ],
)
def test_lengths_of_texts(pattern: str, shortest: int, longest: int | None) -> None:
    assert text_lengths(pattern) == (shortest, longest)


@pytest.mark.parametrize("pattern", ["a)(?:b", "(", "a)|(?:"])
def test_a_broken_pattern_is_not_made_whole(pattern: str) -> None:
    """Not by what is put around it where it has to be of the whole string, either."""
    assert text_lengths(pattern) is None
    with pytest.raises(SchemaError) as refused:
        schema_to_lark({"type": "string", "pattern": pattern, "maxLength": 0})
    assert refused.value.place == "#/pattern" and f"/{pattern}/" in str(refused.value)


@pytest.mark.parametrize(
    "pattern", ["a{2}", "^a{1,3}$", "(a|bb)+", "^(?:a|bb){2}", "b$", "a(?!b)", "^$|aab", "a{2,}b?"]
)
def test_bounds_beside_patterns(pattern: str) -> None:
    """Those that the pattern implies, and those that make it one of the whole string."""
    for low, high in itertools.product(range(4), (None, 0, 1, 2, 3, 4)):
        schema = {"type": "string", "pattern": pattern, "minLength": low} | (
            {} if high is None else {"maxLength": high}
        )
        wanted = [
            text for text in TEXTS
            if re.search(pattern, text) and low <= len(text) and (high is None or len(text) <= high)
        ]  # fmt: skip
        try:
            ours = Compiled(schema_to_lark(schema)[0])
        except UnsatisfiableError:
            assert not wanted
            continue
        assert [text for text in TEXTS if ours.accepts(json.dumps(text))] == wanted, schema


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^[a-z ]{1,255}$", "minLength": 1, "maxLength": 255},
        {"pattern": "AC[0-9a-fA-F]{32}", "minLength": 34, "maxLength": 34},
        {"pattern": "^.{1,65535}$", "minLength": 1, "maxLength": 65535},
        {"pattern": "[A-Za-z][A-Za-z0-9_]{31}", "maxLength": 32},
    ],
)
def test_implied_bounds_are_not_counted(schema: dict[str, Any]) -> None:
    """Without the bounds, each of which took seconds or passed the limit on states, as many states are enough."""
    held = schema["pattern"] if schema["pattern"].startswith("^") else f"^{schema['pattern']}$"
    plain = compile_schema({"type": "string", "pattern": held}).report["counts"]["states"]
    assert compile_schema({"type": "string", **schema}).report["counts"]["states"] == plain


FLAGGED = [
    # pattern, the same for the judge, its flags
    ("(?i)^(all|none)$", "^(all|none)$", "ui"),
    ("(?i:^k)s", "(?i:^k)s", "u"),
    ("^(?i:ab)c(?i:[x-z])$", "^(?i:ab)c(?i:[x-z])$", "u"),
    ("(?i)^[^k]$", "^[^k]$", "ui"),
    ("(?i)^\\w$", "^\\w$", "ui"),
    ("(?i)^\\W$", "^\\W$", "ui"),
    ("(?i)^\\p{Lu}$", "^\\p{Lu}$", "ui"),
    ("(?i)^\\P{Lu}$", "^\\P{Lu}$", "ui"),
    ("(?i)^(?-i:a)b$", "^(?-i:a)b$", "ui"),
    ("(?s)^a.b$", "^a.b$", "us"),
    ("^a(?s:.)b.$", "^a(?s:.)b.$", "u"),
    ("(?m)^a$", "^a$", "um"),
    ("(?m:^a$)b?$", "(?m:^a$)b?$", "u"),
    ("(?im)^A", "^A", "uim"),
]
FLAGGED_TEXTS = [
    "all",
    "ALL",
    "None",
    "nONE",
    "al",
    "ks",
    "Ks",
    "kS",
    "\u212as",
    "abc",
    "ABcX",
    "aBcz",
    "ABCZ",
    "abcx",
    "k",
    "K",
    "\u212a",
    "s",
    "\u017f",
    "\u0131",
    "I",
    "\u0130",
    "\u1e9e",
    "\u00df",
    "-",
    "_",
    "aB",
    "ab",
    "AB",
    "a\nb",
    "a\u2028b",
    "a\rbx",
    "axbx",
    "a",
    "b\na",
    "a\nb",
    "b\na\nb",
    "xa\n",
    "ax\na",
    "A\n",
    "x\nA",
    "\ufb05",
    "\ufb06",
    "\u01c5",
    "\u0345",
    "",
]


@pytest.mark.parametrize(("pattern", "same", "flags"), FLAGGED, ids=[row[0] for row in FLAGGED])
def test_flags(pattern: str, same: str, flags: str) -> None:
    """As an engine of ECMA-262 matches with these flags; the flags of the whole are other dialects'."""
    import regress

    judge = regress.Regex(same, flags)
    ours = Compiled(schema_to_lark({"type": "string", "pattern": pattern})[0])
    found = [text for text in FLAGGED_TEXTS if ours.accepts(json.dumps(text, ensure_ascii=False))]
    assert found == [text for text in FLAGGED_TEXTS if judge.find(text) is not None]


def test_a_back_reference_names_what_to_write() -> None:
    with pytest.raises(UnsupportedError, match=r"aXa\|bXb for") as caught:
        schema_to_lark({"type": "string", "pattern": "^(.)x\\1$"})
    assert caught.value.place == "#/pattern"
