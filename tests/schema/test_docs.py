"""docs/json-schema.md holds the tables that the compiler uses."""

from __future__ import annotations

import re
from pathlib import Path

from toolc.compiler.schema.tables import format_table, keyword_table

from .peers import peer_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "json-schema.md"


def current() -> str:
    """The document with its tables made anew."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, table in (("keywords", keyword_table()), ("formats", format_table()), ("peers", peer_table())):
        pattern = rf"(<!-- {name}: [^>]*-->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda found, table=table: f"{found[1]}{table}\n{found[2]}", text, flags=re.S)  # type: ignore[misc]
    return text


def rebuild() -> Path:
    """Write the tables into the document."""
    DOCUMENT.write_text(current(), encoding="utf-8")
    return DOCUMENT


def test_tables_are_current() -> None:
    assert current() == DOCUMENT.read_text(encoding="utf-8"), "python -m tests.golden writes the tables anew"


def test_the_examples_are_executed() -> None:
    code = "".join(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S))
    exec(compile(code, "json-schema.md", "exec"), {})  # a test of our own file
