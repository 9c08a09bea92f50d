"""grammars/toolc: each grammar against an independent judge.

Each text of a grammar is one of its language; what one edit makes of it is so, too, where the grammar still accepts it;
and texts that another program writes are accepted, within the limits that the grammar's file states.
"""

from __future__ import annotations

import ast
import csv
import datetime
import io
import json
import random
import re
import sqlite3
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.compiler import compile_grammar
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.testing import valid_texts
from toolc.runtime import Bundle, Reader
from toolc.runtime.errors import DecodeError

FOLDER = Path(__file__).parents[2] / "grammars" / "toolc"
NAMES = sorted(path.stem for path in FOLDER.glob("*.lark"))


@cache
def bundle(name: str) -> Bundle:
    return compile_grammar(FOLDER / f"{name}.lark", "builtin").bundle


def reads(found: Bundle, text: str) -> bool:
    reader = Reader(found)
    reader.be_exact()
    try:
        reader.feed_text(text)
        reader.read_held()
    except DecodeError:
        return False
    return reader.is_whole


def accepts(name: str, text: str) -> bool:
    return reads(bundle(name), text)


# -- the judges


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def is_json_with_comments(text: str) -> bool:
    """JSON after comments have become blanks; strings are kept."""
    plain = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or " ", text, flags=re.DOTALL)
    return is_json(plain)


def is_arithmetic(text: str) -> bool:
    allowed = ast.Expression | ast.BinOp | ast.UnaryOp | ast.Constant | ast.operator | ast.unaryop
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return all(isinstance(node, allowed) for node in ast.walk(tree))


def is_expression(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text, mode="eval")
        except (SyntaxError, ValueError):
            return False
    return True


def is_date(text: str) -> bool:
    for read in (datetime.date.fromisoformat, datetime.time.fromisoformat, datetime.datetime.fromisoformat):
        try:
            read(text)
            return True
        except ValueError:
            pass
    return False


def is_row(text: str) -> bool:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return len(rows) <= 1


def is_select(text: str) -> bool:
    try:
        sqlite3.connect(":memory:").execute(f"EXPLAIN {text}")
    except sqlite3.Error as error:  # there are no tables, nor columns
        return not re.search("syntax error|incomplete input|unrecognized token", str(error))
    return True


def is_table(text: str) -> bool:
    """Read as GitHub's Markdown says: cells are parted by what no backslash is before."""
    rows = [re.split(r"(?<!\\)\|", line) for line in text.split("\n")]
    cells = [row[1:-1] for row in rows if row[0] == row[-1] == ""]
    dashes = len(cells) > 1 and all(re.fullmatch(r"\s*:?-+:?\s*", cell) for cell in cells[1])
    return dashes and len(cells) == len(rows) and len({len(row) for row in cells}) == 1 and len(cells[0]) > 0


def is_article(text: str) -> bool:
    try:
        tree = ET.fromstring(text)
    except ET.ParseError:
        return False
    return {node.tag for node in tree.iter()} <= {"article", "section", "title", "p", "ul", "li", "b", "i", "a"}


def is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and 0 <= (parts.port or 0) < 1 << 16
    except ValueError:
        return False


JUDGES: dict[str, Callable[[str], bool]] = {
    "arithmetic": is_arithmetic, "csv": is_row, "dates": is_date, "json": is_json,
    "json_comments": is_json_with_comments, "markdown_table": is_table, "python": is_expression, "sql": is_select,
    "url": is_url, "xml": is_article,
}  # fmt: skip


def test_each_grammar_has_a_judge_and_says_its_limits() -> None:
    assert sorted(JUDGES) == NAMES
    for name in NAMES:
        about = (FOLDER / f"{name}.lark").read_text(encoding="utf-8").partition("start:")[0]
        assert f"%import toolc.{name} (" in about and "// Limits:" in about


def test_lark_reads_each_grammar() -> None:
    for name in NAMES:
        text = (FOLDER / f"{name}.lark").read_text(encoding="utf-8")
        assert lark.Lark(text, parser="earley", lexer="dynamic", import_paths=[str(FOLDER.parent)])


def test_each_rule_of_the_page_can_be_imported(repository: Path) -> None:
    page = (repository / "docs" / "grammars.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `toolc\.(\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert sorted(rows) == NAMES
    for name, rules in rows.items():
        for rule in re.findall(r"`(\w+)`", rules):
            assert read_grammar(f"%import toolc.{name}.{rule}\nstart: {rule}").rules


@pytest.mark.skipif(sys.version_info < (3, 11), reason="datetime reads Z since Python 3.11")
@pytest.mark.parametrize("name", NAMES)
def test_its_texts_are_of_the_language(name: str) -> None:
    judge = JUDGES[name]

    @settings(max_examples=60, deadline=None)
    @given(valid_texts(bundle(name)), st.randoms(use_true_random=False))
    def check(text: str, rng: random.Random) -> None:
        assert judge(text), text
        assert accepts(name, text), text
        for edited in edits(text, rng):
            assert judge(edited) or not accepts(name, edited), edited

    check()


def edits(text: str, rng: random.Random) -> Iterator[str]:
    for _ in range(8):
        at, to = rng.randint(0, len(text)), rng.choice(text + "\"'(){}[]|,.:;<>/\\-+*=01aeT \n")
        yield rng.choice([text[:at] + to + text[at:], text[:at] + text[at + 1 :], text[:at] + to + text[at + 1 :]])


# -- texts of other programs

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=4), some, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(values, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_json_that_python_writes(value: Any, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert accepts("json", text) and accepts("json_comments", text)
    commented = re.sub(r'("(?:[^"\\]|\\.)*")|\[', lambda found: found[1] or "[ /* [ **/ // ]\n", text)
    assert accepts("json_comments", f"// x\n{commented} /**/")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6), min_size=2))
def test_rows_that_python_writes(fields: list[str]) -> None:
    file = io.StringIO()
    csv.writer(file).writerow(fields)
    assert accepts("csv", file.getvalue().removesuffix("\r\n"))


@settings(max_examples=100, deadline=None)
@given(st.datetimes(timezones=st.none() | st.just(datetime.timezone.utc)), st.dates())
def test_dates_that_python_writes(when: datetime.datetime, day: datetime.date) -> None:
    for text in (when.isoformat(), day.isoformat(), when.time().isoformat(), when.isoformat().replace("+00:00", "Z")):
        assert accepts("dates", text), text


def test_the_days_of_the_calendar() -> None:
    for year in (1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999):
        for month in range(14):
            for day in (0, 1, 28, 29, 30, 31, 32):
                text = f"{year:04}-{month:02}-{day:02}"
                assert accepts("dates", text) == is_date(text), text


NAMES_OF_PYTHON = ["a", "b_1", "order2", "notx", "iff", "1.5", "20", "'x y'", '"a\\n"', "None"]
OPERATORS = ["+", "*", "<", "**", "or", "and", "in", "not in", "is not"]


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(NAMES_OF_PYTHON)
    one, two = random_expression(rng, depth - 1), random_expression(rng, rng.randrange(depth))
    sign = rng.choice(OPERATORS)
    forms = [f"({one}) {sign} ({two})", f"({one}) if ({two}) else ({one})", f"[{one}, {two}]", f"f({one}, {two})"]
    return rng.choice([*forms, f"{{a: {one}, {two}: 1}}", f"a.y[{one}]", f"not ({one})", f"({one}, )", f"-({one})"])


def test_expressions_that_python_writes() -> None:
    rng = random.Random(11)
    for _ in range(200):
        text = random_expression(rng, rng.randint(0, 3))
        for one in (text, ast.unparse(ast.parse(text, mode="eval"))):
            assert accepts("python", one), one


SELECTS = [
    "SELECT * FROM users",
    "SELECT name, COUNT(*) AS n FROM orders AS o JOIN users ON o.user = users.id GROUP BY name HAVING COUNT(*) > 3",
    "SELECT DISTINCT a.b, 'it''s' || c FROM t LEFT JOIN s ON x = y WHERE a IS NOT NULL AND (b = 1 OR NOT c LIKE 'x%')",
    "SELECT a FROM t WHERE b IN (SELECT c FROM s WHERE EXISTS (SELECT 1 FROM r)) ORDER BY a DESC, b LIMIT 10 OFFSET 5",
    "SELECT -1 * (2 + x) % 3 FROM (SELECT x FROM y) AS z WHERE x BETWEEN 1 AND 2 AND x NOT IN (1, 2.5)",
    "SELECT MAX(orders) FROM fromage WHERE android = 1 AND knot <> selected",
]
NO_SELECTS = ["SELECT FROM t", "SELECT a FROM where", "SELECT a FROM t WHERE", "SELECT a FROM t GROUP a", "a"]


def test_selects() -> None:
    for text in SELECTS:
        assert is_select(text) and accepts("sql", text), text
    for text in NO_SELECTS:
        assert not is_select(text) and not accepts("sql", text), text


def test_articles_tables_and_urls() -> None:
    yes = {
        "xml": ["<article><title>T &amp; U</title><section><p>a <b>b<i>c</i></b></p></section></article>"],
        "markdown_table": ["| a | b |\n| --- | :-: |\n| 1 \\| 2 |  |", "| a |\n| --- |"],
        "url": ["http://a", "https://www.example.org:8080/a%20b/(c)?d=e&f#g/h", "http://127.0.0.1/?", "https://x.y/?#"],
    }
    no = {
        "xml": ["<article><p></article></p>", "<article>a</article>", "<article><p>&x;</p></article>", "<b></b>"],
        "markdown_table": ["| a | b |\n| --- |", "| a |", "| a |\n| -a |", "| a |\n| --- |\n"],
        "url": ["ftp://a", "http://", "http://a:65536", "http://a b", "http://-a", "http://256.1.1.1", "http://a/%2"],
    }
    for rows, wanted in ((yes, True), (no, False)):
        for name, texts in rows.items():
            assert [accepts(name, text) for text in texts] == [wanted] * len(texts), name
    for path in ("a b", "ä/ü", "100%"):
        assert accepts("url", f"https://x.org/{quote(path)}")


def test_grammars_are_imported_by_name() -> None:
    text = '%import toolc.json (value)\n%import toolc.url (URL)\nstart: "see " URL | "got " value\n'
    found = compile_grammar(text, "builtin").bundle
    texts = {"see http://a.b": True, 'got {"a": [1]}': True, "got http://a.b": False}
    assert {text: reads(found, text) for text in texts} == texts
